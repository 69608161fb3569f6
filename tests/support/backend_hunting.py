"""The hunt for a rounding bound below the truth, program by program: layers evaluated by other kernels, with zero slack.

At every point the answer of a program is compared with the real function of the stored weights, in float64 for float32 programs
and in extended precision (64 bits) for float64 ones, and the distance with the bound at that very point: the box of
`layer.rounding.deployed` shrunk to it. Layers are made to be difficult: scores up to 1e4, scores that rise from block to block,
ties, exponentials that vanish, values that cancel, and numbers of tokens around the sizes of blocks.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

import onelayer as ol
from backend_programs import Program, kernel_refuses
from difficult_layers import DEPTH, SIDE, assembled, difficult_layers
from onelayer.deployment.attention.kernels import KERNELS
from onelayer.layer.assemble import Frame, assemble, outputs_of
from onelayer.layer.form import Form
from onelayer.layer.heads import Memory
from onelayer.layer.layer import memory_layer
from onelayer.layer.reading import form_of_model
from onelayer.layer.rounding.deployed import Boxes, FormProgram
from onelayer.layer.rounding.online_softmax import MEMORY_EFFICIENT

MOST_REFUSED = 1_000  # layers that a kernel does not take; one that is absent takes none


def difficult_points(rounding: FormProgram, frame: Frame, count: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Corners, random points, and points close to those where the bound is largest."""
    rng, D = np.random.default_rng(seed), len(frame.scale)
    unit = rng.random((256, D))
    bounds = bound_at(rounding, frame, torch.from_numpy(unit * 3 - 1)).amax(dim=1).numpy()
    worst = unit[np.argsort(-bounds)[: max(1, count // 16)]]
    near = worst[rng.integers(0, len(worst), count // 2)]
    near = near + rng.normal(size=near.shape) * 10.0 ** rng.uniform(-7, -1, (len(near), 1))
    corners = rng.integers(0, 2, (max(1, count // 16), D)).astype(float)
    rest = rng.random((max(0, count - len(near) - len(corners)), D))
    x = np.clip(np.concatenate([corners, near, rest]), 0, 1) * (SIDE[1] - SIDE[0]) + SIDE[0]
    return torch.from_numpy(x).to(dtype)


def bound_at(rounding: FormProgram, frame: Frame, x: torch.Tensor) -> torch.Tensor:
    """The bound at single points [point, out]: boxes that hold no more than the exact x̂."""
    centres = frame(x.double())
    return rounding.on_boxes(Boxes(centres, 2.0**-50 * (centres.abs() + 1)))


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
        rounding = program.rounding(model, reading)
        count = min(max(64, min(2**21, scores // 8) // size), 20_000)
        x = difficult_points(rounding, frame, count, dtype, seed + tally.answers)
        try:
            y = program.run(model, reading)(x)
        except RuntimeError as refusal:  # heads of this width are not for this kernel
            refused += 1
            if not kernel_refuses(refusal) or refused == MOST_REFUSED:
                raise
            continue
        bound = bound_at(rounding, frame, x).numpy() * shrink
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
