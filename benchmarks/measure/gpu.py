"""What a GPU adds: `python benchmarks/measure/gpu.py`, on a machine with one; `--page` writes benchmarks.md with the card's name.

    evaluation   8,192 gates in two variables at 2^20 points, and 10,000 memory tokens: fused kernels beside eager torch on the
                 same card, with the difference from float64 and the proved rounding
    solving      10,000 units in four variables, Σ|c| and what was observed
    building     functions of four variables polished and proved on the card, beside the same on the CPU

Absolute times are those of that card, CPU rows those of the machine that holds it.
"""

import time
from collections.abc import Callable
from pathlib import Path

import torch

import onelayer as ol
from onelayer.common.numbers import at_most
from onelayer.construction.request import Request
from onelayer.construction.solved.layer import solved_layer
from onelayer.deployment.attention.kernels import card, summands
from onelayer.deployment.attention.linear import CompiledForm
from onelayer.layer.arithmetic import arithmetic_of
from onelayer.layer.form import Form, form_of
from onelayer.layer.heads import Gates, scattered_memory
from onelayer.layer.layer import gate_layer, memory_layer
from onelayer.layer.rounding.deployed import FormProgram
from page import markdown, options, page_of, placed
from targets import named

PAGE = page_of("benchmarks.md")
GATES, TOKENS, POINTS, BETA = 8192, 10_000, 2**20, 8.0


def best(call: Callable[[], object], runs: int = 10) -> float:
    """The shortest of several runs, in seconds on the card."""
    call()
    found = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end) / 1e3)
    return min(found)


def forms() -> list[tuple[str, Form, int]]:
    """(name, form, heads or tokens) to evaluate."""
    g = torch.Generator().manual_seed(0)
    one = torch.zeros(1, dtype=torch.float64)
    offsets = torch.rand(GATES, 2, generator=g, dtype=torch.float64) - 0.5
    gates = Gates(torch.full((GATES,), BETA).double(), offsets, torch.ones(GATES, 2, dtype=torch.bool))
    values = torch.zeros(GATES, 4, 1, dtype=torch.float64)
    values[:, 0, 0] = torch.randn(GATES, generator=g, dtype=torch.float64)
    memory = scattered_memory(TOKENS, (0, 1), 2, 0.6, 0.5, 0)
    tokens = torch.randn(TOKENS, 1, generator=g, dtype=torch.float64)
    pair = (gate_layer(one, 2, (gates, values)), memory_layer(one, 2, (memory, tokens)))
    found = [(f"{GATES:,} gates", GATES), (f"{TOKENS:,} memory tokens", TOKENS)]
    made = []
    for (name, count), layer in zip(found, pair, strict=True):
        form = form_of(layer)
        assert form is not None
        made.append((name, form, count))
    return made


def rounded(form: Form, dtype: torch.dtype) -> Form:
    """The form of a model that stores its numbers in that dtype."""
    blocks = [type(b)(*(t.to(dtype).double() for t in (b.keys, b.biases, b.values, b.slopes))) for b in form.blocks]
    return Form(form.bias.to(dtype).double(), form.linear.to(dtype).double(), tuple(blocks))


def eager(form: Form, x: torch.Tensor) -> torch.Tensor:
    """Linear attention of gates in eager torch, softmax of memory tokens, in pieces that fit the card's memory."""
    block = form.blocks[0].to("cuda")
    keys, biases, values = (t.to(x.dtype) for t in (block.keys, block.biases, block.values))
    found = []
    for part in x.split(2**16):
        if keys.shape[1] == 3:
            E, G = torch.exp(-BETA * part), torch.exp(biases[:, 1:]).T
            found.append((1 / (1 + E @ G)) @ values[:, 0])
        else:
            found.append(torch.softmax(part @ keys[0].T + biases[0], dim=1) @ values[0])
    return torch.cat(found)


def evaluation() -> str:
    rows = []
    points = torch.rand(POINTS, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.5
    edge = torch.full((2,), 0.5, dtype=torch.float64)
    for name, form, count in forms():
        for dtype in (torch.float32, torch.float64):
            own = rounded(form, dtype)
            compiled, x = CompiledForm.of(own, dtype).to("cuda"), points.to(dtype).cuda()
            seconds, slow = best(lambda p=compiled, x=x: p(x)), best(lambda f=own, x=x: eager(f, x), 3)
            some = x[: 2**14]
            exact = torch.cat([own(part) for part in some.double().cpu().split(2**10)])
            off = float((compiled(some).cpu().double() - exact).abs().max())
            program = FormProgram.of_form(own, card(arithmetic_of(dtype)), terms=summands(own.heads, dtype) + 10)
            proved = float(program.rounding(-edge, edge).max())
            speed = [f"{count * POINTS / t:.2e}" for t in (seconds, slow)]
            numbers = [*speed, f"{slow / seconds:.1f}", f"{off:.1e}", f"{proved:.1e}"]
            rows.append([name, str(dtype).removeprefix("torch."), *numbers])
    columns = ["dtype", "fused, per second", "eager torch", "ratio", "difference", "rounding (proved)"]
    return markdown(["D = 2, 2^20 points", *columns], rows)


def solving() -> str:
    rows = []
    for units in (2000, 10_000, 20_000):
        target = named("gauss-4d").target
        for device in ("cuda", "cpu"):
            if device == "cpu" and units > 2000:
                continue
            request = Request(target, 1e-9, construction="memory", units=units, device=device)
            started = time.perf_counter()
            layer = solved_layer(request)
            seconds = time.perf_counter() - started
            total = float(layer.memory_values.abs().sum())
            form = form_of(layer)
            assert form is not None
            hat = torch.rand(2**16, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 0.5
            values = torch.from_numpy(target(target.domain.points((hat + 0.5).numpy())))
            compiled = CompiledForm.of(form, torch.float64).to("cuda")
            off = float((compiled(hat.cuda()).cpu() - values).abs().max())
            rows.append([f"{units:,}", device, f"{seconds:.1f}", f"{off:.2g}", f"{total:.3g}"])
    return markdown(["Gauss, 4-D: memory tokens", "device", "seconds", "observed error", r"Σ\|c\|"], rows)


def building() -> str:
    four = ol.Target("1/(1 + x1*x2 + x3*x4)", [(0, 1)] * 4)
    other = ol.Target("cos(3*x1*x2)*exp(-x3*x4)", [(0, 1)] * 4)
    cases = [("Gauss, 4-D", named("gauss-4d").target, 1e-4), ("1/(1 + x1·x2 + x3·x4)", four, 1e-5)]
    cases += [("cos(3x1·x2)·exp(−x3·x4)", other, 1e-3)]
    rows = []
    for name, target, tolerance in cases:
        ol.build(target, tolerance=1e-1, construction="memory", device="cuda")  # the card's libraries are loaded
        seconds = list[float]()
        for device in ("cuda", "cpu"):
            approx = ol.build(target, tolerance=tolerance, construction="memory", device=device)
            c = approx.certificate
            seconds.append(approx.facts.seconds)
            started = time.perf_counter()
            ol.certify(approx, device=device)
            proof = time.perf_counter() - started
            ratio = "" if device == "cuda" else f"{seconds[1] / seconds[0]:.1f}"
            numbers = [str(approx.units), c.verdict, at_most(c.bound, 3), f"{proof:.1f}", f"{seconds[-1]:.1f}", ratio]
            rows.append([name, f"{tolerance:g}", device, *numbers])
    columns = [
        "tolerance",
        "device",
        "units",
        "verdict",
        "bound (proved)",
        "its proof alone, s",
        "seconds",
        "CPU / GPU",
    ]
    return markdown(["polished, memory tokens", *columns], rows)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument(
        "--page", type=Path, nargs="?", const=PAGE, help="write the tables into benchmarks.md, or into PAGE"
    )
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no GPU on this machine")
    from gpu_limit import exponentials  # needs Triton

    name, limit = torch.cuda.get_device_name(), exponentials(best)
    text = f"Measured on one {name}, torch {torch.__version__.split('+')[0]}."
    text += f" A kernel that does nothing but float32 exponentials: {limit:.2e} of them a second."
    for table in (evaluation, solving, building):
        found = table()
        print(found, end="\n\n", flush=True)
        text += f"\n\n{found}"
    if args.page:
        args.page.write_text(placed(args.page.read_text(), "gpu", text))


if __name__ == "__main__":
    main()
