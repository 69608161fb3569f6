"""Other forms of attention beside softmax, in one run on one thread: `python benchmarks/measure/fast.py [--page]`.

    1,000 gates in two variables, float64: the bare NumPy expression 1/(1 + E G) C in chunks that fit the cache, our linear
    attention, our softmax path under torch.compile and plain, and nn.MultiheadAttention with the same weights
    10,000 memory tokens: dense, and sparse with its proved remainder
    the paper's own 8,930 gates: softmax, linear, adaptive

Every ratio is of times in the same run, each the best of several; `--page` writes the tables into fast.md.
"""

import time
from collections.abc import Callable

import numpy as np
import torch

import onelayer as ol
from onelayer.common.numbers import at_most
from onelayer.deployment.attention.linear import LinearAttention
from onelayer.deployment.attention.sparse import SparseAttention
from onelayer.layer.arithmetic import FLOAT64
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.form import form_of
from onelayer.layer.heads import Gates, Hinges, scattered_memory
from onelayer.layer.layer import GateLayer, gate_layer, memory_layer
from onelayer.layer.reading import form_of_model
from onelayer.layer.rounding.deployed import FormProgram
from page import markdown, options, page_of, placed

PAGE = page_of("fast.md")
RUNS, ROWS = 7, 128  # rows of NumPy's chunks: a matrix of a megabyte
BETA, GATES, TOKENS = 20.0, 1000, 10_000


def best(call: Callable[[], object], runs: int = RUNS) -> float:
    """The shortest of several times, in seconds."""
    call()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def gates_layer() -> GateLayer:
    """Gates of one sharpness with a value on the anchor alone."""
    offsets = torch.rand(GATES, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 0.5
    gates = Gates(torch.full((GATES,), BETA).double(), offsets, torch.ones(GATES, 2, dtype=torch.bool))
    values = torch.zeros(GATES, 4, 1, dtype=torch.float64)
    values[:, 0, 0] = drawn(GATES)
    return gate_layer(torch.zeros(1, dtype=torch.float64), 2, (gates, values))


def bare(layer: GateLayer, x: np.ndarray) -> np.ndarray:
    """1/(1 + E G) C in NumPy, x normalised."""
    G = np.exp(BETA * layer.gates.offsets.numpy().T)
    c, y = layer.gate_values[:, 0, 0].numpy(), np.empty(len(x))
    for first in range(0, len(x), ROWS):
        E = np.exp(-BETA * x[first : first + ROWS])
        y[first : first + ROWS] = 1 / (1 + E @ G) @ c
    return y


def stock(layer: GateLayer) -> tuple[torch.nn.MultiheadAttention, Callable[[torch.Tensor], torch.Tensor]]:
    """The same gates in torch's own attention, as many features as heads, and the points as its tokens."""
    M = GATES
    attention = torch.nn.MultiheadAttention(M, M, batch_first=True, dtype=torch.float64)
    W, b = torch.zeros(3 * M, M, dtype=torch.float64), torch.zeros(3 * M, dtype=torch.float64)
    b[:M] = 1.0  # every query is 1; stream coordinates: x, the code of each token, the anchor
    W[M : 2 * M, 0] = -BETA
    W[M : 2 * M, 1:3] = BETA * layer.gates.offsets
    W[2 * M :, 3] = 1.0
    out = torch.zeros(M, M, dtype=torch.float64)
    out[0] = layer.gate_values[:, 0, 0]
    with torch.no_grad():
        attention.in_proj_weight.copy_(W), attention.in_proj_bias.copy_(b)
        attention.out_proj.weight.copy_(out), attention.out_proj.bias.zero_()

    def tokens(x: torch.Tensor) -> torch.Tensor:
        e = torch.zeros(len(x), 3, M, dtype=torch.float64)
        e[:, 0, 3] = 1.0
        e[:, 1:, 0] = x
        e[:, 1, 1] = e[:, 2, 2] = 1.0
        return e

    return attention, tokens


def gates_table() -> str:
    layer, target = gates_layer(), ol.Target("x1", [(0, 1)] * 2)
    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    reading = form_of_model(model)
    assert reading is not None
    fast = LinearAttention(reading.form, reading.frame)
    x = torch.from_numpy(np.random.default_rng(0).random((20_000, 2)))
    some, hat = x[:2000], x.numpy() - 0.5
    attention, tokens = stock(layer)
    few = x[:200]
    with torch.no_grad():
        own = model(some.unsqueeze(-1)).flatten()
        compiled = torch.compile(model)
        calls = [
            ("NumPy, 1/(1 + E G) C in chunks", len(x), lambda: bare(layer, hat), bare(layer, hat[:2000])),
            ("linear attention", len(x), lambda: fast(x), fast(some).flatten().numpy()),
            ("softmax, torch.compile", len(some), lambda: compiled(some.unsqueeze(-1)), None),
            ("softmax (the model)", len(some), lambda: model(some.unsqueeze(-1)), own.numpy()),
        ]
        e = tokens(few - 0.5)
        theirs = attention(e[:, :1], e, e, need_weights=False)[0][:, 0, 0]
        calls.append(
            ("nn.MultiheadAttention", len(few), lambda: attention(e[:, :1], e, e, need_weights=False), theirs.numpy())
        )
        seconds = [best(call) / count for _, count, call, _ in calls]
    rows = []
    for (name, _, _, values), each in zip(calls, seconds, strict=True):
        off = "–" if values is None else f"{np.abs(values - own.numpy()[: len(values)]).max():.1e}"
        rows.append([name, f"{GATES / each:.2g}", f"{each / seconds[1]:.2f}", off])
    return markdown(["1,000 gates, D = 2, float64", "head-evaluations/s", "time / linear", "difference"], rows)


def memory_table() -> str:
    memory = scattered_memory(TOKENS, (0, 1), 2, 0.6, 0.5, 0)
    layer = memory_layer(torch.zeros(1, dtype=torch.float64), 2, (memory, drawn(TOKENS, 1)))
    form = form_of(layer)
    assert form is not None
    x = torch.from_numpy(np.random.default_rng(0).random((100_000, 2))) - 0.5
    dense = LinearAttention(form, frame_of(ol.Target("x1", [(-0.5, 0.5)] * 2).domain))
    none = (Hinges(torch.zeros(0, 2).double(), torch.zeros(0).double()), torch.zeros(0, 1).double())
    slow, rows = best(lambda: dense(x), 1), []
    exact = dense(x)
    for remainder in (1e-4, 1e-8):
        sparse = SparseAttention(form, none, FormProgram.of_form(form, FLOAT64), remainder, 64)
        found = sparse(x)
        quick, (_, cells) = best(lambda s=sparse: s(x), 3), sparse.cells[0]
        left = np.mean([cell.tokens for cell in cells.made.values()])
        off = float((found - exact).abs().max())
        rows.append([f"{remainder:g}", f"{len(cells.made):,}", f"{left:.0f}", f"{slow / quick:.1f}", f"{off:.1e}"])
    columns = ["10,000 memory tokens: remainder (proved)", "cells", "tokens left", "dense time / sparse", "difference"]
    return markdown(columns, rows)


def adaptive_table() -> str:
    paper = ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 0.1, method="representative")
    x = paper.domain.points(np.random.default_rng(0).random((20_000, 2)))
    slow, exact = best(lambda: paper(x[:1000]), 3) * 20, paper(x)
    rows = [["softmax", "1", at_most(paper.certificate.bound, 7), "–"]]
    for attention in ("linear", "adaptive"):
        fast = paper.fast(attention)
        off = np.abs(fast(x) - exact).max()
        rows.append([attention, f"{slow / best(lambda f=fast: f(x), 3):.0f}", at_most(fast.bound, 7), f"{off:.1e}"])
    columns = [
        f"the paper's construction, {paper.units:,} gates",
        "softmax time / its time",
        "bound (proved)",
        "difference",
    ]
    return markdown(columns, rows)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the tables into fast.md")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tables = {}
    for name, table in (("gates", gates_table), ("memory", memory_table), ("adaptive", adaptive_table)):
        tables[name] = table()
        print(tables[name], end="\n\n", flush=True)
    if args.page:
        page = PAGE.read_text()
        for name, text in tables.items():
            page = placed(page, name, text)
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
