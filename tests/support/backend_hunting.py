"""The hunt for a rounding bound below the truth, program by program: layers evaluated by other kernels, with zero slack.

At every point the answer of a program is compared with the real function of the stored weights, in float64 for float32 programs
and in extended precision (64 bits) for float64 ones, and the distance with the bound at that very point: the box of
`layer.rounding.deployed` shrunk to it. Layers are made to be difficult: scores up to 1e4, scores that rise from block to block,
ties, exponentials that vanish, values that cancel, and numbers of tokens around the sizes of blocks.
"""

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import onelayer as ol
from cases import loud, random_layer
from exporting import wrapped
from onelayer.deployment.attention.evaluator import deployment_by
from onelayer.deployment.attention.kernels import KERNELS
from onelayer.deployment.attention.linear import LinearAttention
from onelayer.layer.arithmetic import arithmetic_of
from onelayer.layer.assemble import Frame, assemble, frame_of, outputs_of
from onelayer.layer.form import Form
from onelayer.layer.heads import Memory
from onelayer.layer.layer import GateLayer, MemoryLayer, memory_layer
from onelayer.layer.reading import Reading, form_of_model
from onelayer.layer.rounding.any_order import CUDA, FUSED, MEMORY_EFFICIENT, ONNX_RUNTIME, Backend
from onelayer.layer.rounding.deployed import Boxes, Deployment, box_rounding
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.proof.decision import deployment_of

OWN = Backend("torch, softmax", {"float64": 2.0, "float32": 2.0})
Answer = Callable[[torch.Tensor], torch.Tensor]  # points [batch, D] → [batch, outputs], both on the CPU
DEPTH = {torch.float32: 110.0, torch.float64: 760.0}  # exp of minus this is 0
SIDE = (-1.0, 2.0)
MOST_REFUSED = 1_000  # layers that a kernel does not take; one that is absent takes none
AROUND_BLOCKS = (2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1025, 2048)  # numbers of tokens


@dataclass(frozen=True)
class Program:
    """A way to evaluate a layer: what is assumed of it, and how it is run."""

    name: str
    backend: Backend
    run: Callable[[SingleLayerTransformer, Reading], Answer]

    def how(self, model: SingleLayerTransformer, reading: Reading) -> Deployment:
        """How its rounding is bounded; our own kernels evaluate the form."""
        if self.backend is KERNELS:
            return deployment_by(reading, model, LinearAttention(reading.form, reading.frame))
        own = arithmetic_of(model.W_E.dtype)
        return deployment_of(reading, self.backend.arithmetic(own, model.config.all_tokens))


class Contiguous(SingleLayerTransformer):
    """A model whose heads of width one are laid out as all kernels want them."""

    def _project(self, x: torch.Tensor, which: str) -> torch.Tensor:
        return super()._project(x, which).clone(memory_format=torch.contiguous_format)


def by_model(
    fused: SDPBackend | None = None, device: str = "cpu"
) -> Callable[[SingleLayerTransformer, Reading], Answer]:
    """The model itself, or with one of torch's kernels; a kernel that does not take the layer raises RuntimeError."""

    def run(model: SingleLayerTransformer, _: Reading) -> Answer:
        c, D = model.config, model.config.tokens * model.config.features_in
        chosen = Contiguous(replace(c, attention="fused" if fused else "softmax"), dtype=model.W_E.dtype)
        chosen.load_state_dict(model.state_dict())
        chosen = chosen.to(device)

        @torch.no_grad()
        def answer(x: torch.Tensor) -> torch.Tensor:
            with sdpa_kernel(fused or SDPBackend.MATH), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # why a kernel does not take a layer
                return chosen(x.to(device).reshape(-1, c.tokens, D // c.tokens)).flatten(1).cpu()

        return answer

    return run


def by_onnx(model: SingleLayerTransformer, _: Reading) -> Answer:
    """The exported graph in ONNX Runtime."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        ol.export(wrapped(model), Path(folder) / "model.onnx", to="onnx", points=1)
        text = (Path(folder) / "model.onnx").read_bytes()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
    return lambda x: torch.from_numpy(session.run(["y"], {"x": x.numpy()})[0]).reshape(len(x), -1)


def by_form(device: str = "cpu") -> Callable[[SingleLayerTransformer, Reading], Answer]:
    """`approx.fast()`: linear attention, on a GPU by our own kernels."""

    def run(_: SingleLayerTransformer, reading: Reading) -> Answer:
        fast = LinearAttention(reading.form, reading.frame, device=device)
        return lambda x: fast(x.to(device)).cpu()

    return run


def programs(device: str) -> list[Program]:
    """What there is on a CPU, or on an NVIDIA card."""
    if device == "cpu":
        return [
            Program("torch, softmax", OWN, by_model()),
            Program("torch, linear attention", OWN, by_form()),
            Program("torch, fused: flash", FUSED, by_model(SDPBackend.FLASH_ATTENTION)),
            Program("torch, fused: math", FUSED, by_model(SDPBackend.MATH)),
            Program("ONNX Runtime", ONNX_RUNTIME, by_onnx),
        ]
    return [
        Program("torch, softmax", CUDA, by_model(None, device)),
        Program("torch, fused: math", CUDA, by_model(SDPBackend.MATH, device)),
        Program("torch, fused: memory-efficient", MEMORY_EFFICIENT, by_model(SDPBackend.EFFICIENT_ATTENTION, device)),
        Program("our kernels (Triton)", KERNELS, by_form(device)),
    ]


def kernel_refuses(error: RuntimeError) -> bool:
    """Whether torch has no such kernel for these heads, or none at all."""
    return "No available kernel" in str(error) or "No viable backend" in str(error)


def difficult_layers(dtype: torch.dtype, seed: int) -> Iterator[tuple[str, GateLayer | MemoryLayer]]:
    """Endless: gates and memory tokens by turns. Heads of memory tokens are four wide, which all kernels take."""
    for number in itertools.count(seed):
        rng = np.random.default_rng(number)
        sharp = float(rng.choice([1.0, 30.0, 1e3, 1e4]))
        if number % 4 == 0:
            outputs = int(rng.choice([1, 4]))
            yield f"gates, sharpness {sharp:g}, {number}", random_layer(2, outputs, number, sharp, "gates")
        else:
            yield memory_tokens(int(rng.choice(AROUND_BLOCKS)), sharp, DEPTH[dtype], number)


def memory_tokens(count: int, sharp: float, depth: float, seed: int) -> tuple[str, MemoryLayer]:
    """Memory tokens in three variables with four outputs."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["random", "rising", "ties", "close", "vanishing", "one above all"])
    keys, biases = rng.normal(size=(count, 3)) * sharp, rng.normal(size=count) * sharp
    if kind == "rising":  # every block has the largest score so far
        biases = np.sort(biases)
        keys = keys * 1e-3
    elif kind == "ties":
        keys, biases = np.rint(keys[rng.integers(0, min(count, 3), count)]), np.zeros(count)
    elif kind == "close":
        biases, keys = 1 + np.arange(count) * 2.0**-20, np.ones((count, 3))
    elif kind == "vanishing":
        biases, keys = -depth * rng.random(count), rng.normal(size=(count, 3))
    elif kind == "one above all":
        biases[rng.integers(count)] = 2 * sharp * np.sqrt(count)
    memory = Memory(torch.from_numpy(keys), torch.from_numpy(biases), torch.zeros(count, dtype=torch.int64))
    values = torch.from_numpy(rng.normal(size=(count, 4)))
    bias, linear = torch.from_numpy(rng.normal(size=4)), torch.from_numpy(rng.normal(size=(3, 4)))
    layer = memory_layer(bias, 3, (memory, values), linear=linear)
    cancels = count > 1 and rng.random() < 0.3
    name = f"{count} tokens, {kind}, scores of size {sharp:g}{', cancelling' if cancels else ''}, {seed}"
    return name, loud(layer, 1e6, seed) if cancels else layer


def assembled(layer: GateLayer | MemoryLayer, dtype: torch.dtype) -> SingleLayerTransformer:
    D, m = layer.dimension, layer.outputs
    target = ol.Target("; ".join(["x1"] * m), [SIDE] * D)
    return assemble(layer, frame_of(target.domain), outputs_of(target)).to(dtype)


def difficult_points(
    form: Form, frame: Frame, how: Deployment, count: int, dtype: torch.dtype, seed: int
) -> torch.Tensor:
    """Corners, random points, and points close to those where the bound is largest."""
    rng, D = np.random.default_rng(seed), form.dimension
    unit = rng.random((256, D))
    bounds = bound_at(form, frame, torch.from_numpy(unit * 3 - 1), how).amax(dim=1).numpy()
    worst = unit[np.argsort(-bounds)[: max(1, count // 16)]]
    near = worst[rng.integers(0, len(worst), count // 2)]
    near = near + rng.normal(size=near.shape) * 10.0 ** rng.uniform(-7, -1, (len(near), 1))
    corners = rng.integers(0, 2, (max(1, count // 16), D)).astype(float)
    rest = rng.random((max(0, count - len(near) - len(corners)), D))
    x = np.clip(np.concatenate([corners, near, rest]), 0, 1) * (SIDE[1] - SIDE[0]) + SIDE[0]
    return torch.from_numpy(x).to(dtype)


def bound_at(form: Form, frame: Frame, x: torch.Tensor, how: Deployment) -> torch.Tensor:
    """The bound at single points [point, out]: boxes that hold no more than the exact x̂."""
    centres = frame(x.double())
    return box_rounding(form, Boxes(centres, 2.0**-50 * (centres.abs() + 1)), how) + how.beside


def real_values(form: Form, frame: Frame, x: torch.Tensor) -> np.ndarray:
    """The real function of the stored weights at float32 points in float64, at float64 points in extended precision."""
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        parts = x.split(max(1, -(-len(x) // torch.get_num_threads())))
        return np.concatenate(list(pool.map(lambda part: _real_values(form, frame, part), parts)))


def _real_values(form: Form, frame: Frame, x: torch.Tensor) -> np.ndarray:
    real = np.float64 if x.dtype == torch.float32 else np.longdouble
    if real is np.longdouble and np.finfo(real).nmant < 63:
        raise RuntimeError("this machine has no extended precision to compare float64 with")
    z = (x.double().numpy().astype(real) - np.array(frame.shift, real)) * np.array(frame.scale, real)
    total = form.bias.numpy().astype(real) + z @ form.linear.numpy().astype(real)
    for b in form.blocks:
        keys, biases, values, slopes = (t.numpy().astype(real) for t in (b.keys, b.biases, b.values, b.slopes))
        for h in range(len(keys)):
            w = z @ keys[h].T + biases[h]
            w = np.exp(w - w.max(axis=1, keepdims=True))
            w /= w.sum(axis=1, keepdims=True)
            total += w @ values[h]
            if slopes[h].any():
                total += np.einsum("bt,bd,tdo->bo", w, z, slopes[h])
    return total


@dataclass
class Tally:
    """What a hunt found: scores evaluated, answers beyond their bound, and the largest share of a bound that was reached."""

    scores: int = 0
    answers: int = 0
    violations: int = 0
    largest: float = 0.0
    worst: str = ""


def hunt(program: Program, dtype: torch.dtype, scores: int, seed: int = 0, shrink: float = 1.0) -> Tally:
    """At least this many scores; bounds are multiplied by `shrink`, which is 1 unless a test wants to see a violation."""
    tally, refused = Tally(), 0
    for name, layer in difficult_layers(dtype, seed):
        if tally.scores >= scores:
            return tally
        model = assembled(layer, dtype)
        reading = form_of_model(model)
        if reading is None:
            raise AssertionError(f"no form: {name}")
        form, frame = reading.form, reading.frame
        size = max(1, sum(b.biases.numel() for b in form.blocks))
        how = program.how(model, reading)
        count = min(max(64, min(2**21, scores // 8) // size), 20_000)
        x = difficult_points(form, frame, how, count, dtype, seed + tally.answers)
        try:
            y = program.run(model, reading)(x)
        except RuntimeError as refusal:  # heads of this width are not for this kernel
            refused += 1
            if not kernel_refuses(refusal) or refused == MOST_REFUSED:
                raise
            continue
        bound = bound_at(form, frame, x, how).numpy() * shrink
        off = np.abs(y.double().numpy() - real_values(form, frame, x))
        beyond = ~(off <= bound)  # NaN too
        tally.scores += size * len(x)
        tally.answers += off.size
        tally.violations += int(beyond.sum())
        share = float(np.where(np.isfinite(bound), off / bound, 0.0).max())
        if share > tally.largest or beyond.any():
            tally.largest, tally.worst = max(share, tally.largest), name
    raise AssertionError


def exp_units(program: Program, dtype: torch.dtype, count: int, seed: int = 0) -> float:
    """The largest error of a program's exponential that shows, in units in the last place, up to 1 for the division.

    Two tokens of scores 0 and s, and 30 of score −1e5, so that kernels use their vectors: the answers are 1/(1 + e^s) and
    e^s/(1 + e^s), and their quotient is e^s. All numbers but the exponentials are exact, except in programs that multiply scores
    by log2 e first, or split them: there −1 ≤ s ≤ 0, and s has 11 bits.
    """
    depth = 2 * DEPTH[dtype]
    scale = 2.0 ** -np.ceil(np.log2(2 * depth))
    keys = torch.zeros(32, 1, dtype=torch.float64)
    keys[1] = 1 / scale
    biases = torch.full((32,), -1e5, dtype=torch.float64)
    biases[:2] = 0.0
    memory = Memory(keys, biases, torch.zeros(32, dtype=torch.int64))
    layer = memory_layer(torch.zeros(4).double(), 1, (memory, torch.eye(32, 4).double()))
    target = ol.Target("x1; x1; x1; x1", [(-1.0, 0.0)])
    model = assemble(layer, Frame((0.0,), (float(scale),)), outputs_of(target)).to(dtype)
    reading = form_of_model(model)
    assert reading is not None
    answer, rng = program.run(model, reading), np.random.default_rng(seed)
    finite = np.finfo(np.float32 if dtype == torch.float32 else np.float64)
    lowest, worst = float(np.log(np.longdouble(finite.tiny) * 4)), 0.0
    for start in range(0, count, 2**18):
        some = min(2**18, count - start)
        s = np.concatenate(
            [lowest * rng.random(some // 2), -np.exp(rng.uniform(-18, np.log(-lowest), some - some // 2))]
        )
        if program.backend in (KERNELS, MEMORY_EFFICIENT):
            s = np.rint(s / lowest * 1024) / -1024
        x = torch.from_numpy(s).to(dtype)[:, None]
        y = answer(x).double().numpy().astype(np.longdouble)
        true = np.exp(x[:, 0].double().numpy().astype(np.longdouble))
        worst = max(worst, float((np.abs(y[:, 1] / y[:, 0] - true) / true).max() / finite.eps))
    return worst
