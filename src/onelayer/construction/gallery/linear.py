"""Affine maps of a sequence, means, and clipping: what rounding alone keeps from being exact."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ...approximation import Approximation
from ...common.checks import is_number, known_options
from ...common.errors import InputError
from ...common.numbers import exact
from ...common.outward import UP_MANY
from ...layer.assemble import Frame, Outputs
from ...layer.assemble.frame import write_identity
from ...layer.assemble.gates import asks_itself, assemble_gates
from ...layer.heads import MASKED
from ...layer.layer import gate_layer
from ...layer.reading import Reading, form_of_model
from ...model.transformer import SingleLayerTransformer
from ..lemma import ROOM, Lemma
from .entry import Ends, Entry, Function, entry
from .one_head import one_head
from .routing import ASSUMES, route

CHECKED = 5  # roundings of a mean that the independent checker counts besides


@known_options
def affine(
    matrix: Sequence[Sequence[float]] | np.ndarray,
    offset: Sequence[float] | np.ndarray | None = None,
    tolerance: float | None = None,
    *,
    domain: Ends = (-1.0, 1.0),
    dtype: str = "float64",
) -> Approximation:
    """A x + b for any matrix A [m, n] and offset b [m]: n read-heads, and A in W^O."""
    A, b = _matrix(matrix, offset)
    m, n = A.shape
    given = {"matrix": A.tolist(), "offset": b.tolist()}
    it = entry("affine", f"an affine map of {n} numbers to {m}", n, m, _allowed(tolerance), domain, dtype, **given)
    layer = gate_layer(torch.from_numpy(b), n, linear=torch.from_numpy(A.T.copy()))
    plain, outputs = Frame((0.0,) * n, (1.0,) * n), Outputs(1, m, (0,))
    alone = asks_itself(n, outputs, "token")  # one number would need no head
    model = assemble_gates(layer, plain, outputs, "token", residual=not alone).to(it.arithmetic.dtype)
    X = max(map(abs, it.ends))
    with np.errstate(over="ignore"):
        size = np.abs(A).sum(axis=1) * X + np.abs(b)
    reading = form_of_model(model, (0,), X) if it.holds(float(size.max())) else None
    lemma = None
    if reading is not None and not reading.form.blocks and not len(reading.hinges):
        stored = np.abs(reading.form.linear.numpy() - A.T).sum(axis=0) * X + np.abs(reading.form.bias.numpy() - b)
        lemma = Lemma(
            "the read-heads copy the numbers exactly (all other scores are 800 lower); the sum over them is rounded",
            {"stored weights": float(stored.max()) * UP_MANY, "rounding": _sum_rounding(reading) * ROOM},
            ASSUMES,
        )
    heads = len(layer.reads)
    story = f"Head j reads x_j, for the {heads} numbers that matter; W^O holds the matrix, and the read-out adds the offset."
    return _finished(it, model, lemma, tolerance, lambda x: x @ A.T + b, (("read", heads),), story)


@known_options
def mean(
    n: int, tolerance: float | None = None, *, domain: Ends = (-1.0, 1.0), dtype: str = "float64"
) -> Approximation:
    """The mean of n numbers: one head that attends to all of them alike, no positional codes."""
    it = entry("mean", f"the mean of {n} numbers", n, 1, _allowed(tolerance), domain, dtype)
    model = one_head(n, (1, 1), 3, 1, 1, 2, code="none", output_tokens=1)
    X, DATA, OUTPUT = range(3)  # coordinates of the stream
    with torch.no_grad():
        model.W_E[0, X] = model.b_E[DATA] = model.S[0, OUTPUT] = 1.0
        model.W_Q[0, OUTPUT, 0] = model.W_V[0, X, 0] = model.W_O[0, 0] = 1.0
        model.W_K[0, OUTPUT, 0] = -MASKED
        write_identity(model, 1, torch.zeros(1, dtype=torch.float64))
    model = model.to(it.arithmetic.dtype)
    reach = max(map(abs, it.ends))
    reading = form_of_model(model, (0,), reach)
    lemma = None
    if reading is not None and _is_mean(reading, n) and it.holds(n * reach):
        a = it.arithmetic
        weights = math.expm1(4 * a.exp_error) * reach + (2 * n + 8) * a.u * reach
        rounding = (weights + CHECKED * a.u * reach) * (1 + 8 * a.u) + _sum_rounding(reading)
        statement = "all scores are equal, so that all weights are 1/n up to rounding"
        lemma = Lemma(statement, {"rounding": rounding * UP_MANY})
    story = "The one head gives every number the same score, so it outputs their mean. There are no positional codes."
    return _finished(it, model, lemma, tolerance, _mean, (("mean", 1),), story)


@known_options
def clip(
    n: int,
    low: float = -0.5,
    high: float = 0.5,
    tolerance: float | None = None,
    *,
    domain: Ends = (-1.0, 1.0),
    dtype: str = "float64",
) -> Approximation:
    """Every number moved to the nearest one between low and high: by the feed-forward network."""
    if not all(is_number(v) and math.isfinite(v) for v in (low, high)) or low > high:
        raise InputError("finite numbers low ≤ high", f"low = {low!r}, high = {high!r}", "give two numbers in order")
    given = {"low": float(low), "high": float(high)}
    it = entry(
        "clip",
        f"{n} numbers clipped to [{exact(low)}, {exact(high)}]",
        n,
        n,
        _allowed(tolerance),
        domain,
        dtype,
        **given,
    )
    model = _with_hinges(route(list(range(n))), low, high).to(it.arithmetic.dtype)
    size = max(map(abs, it.ends)) + abs(low) + abs(high)
    wanted = torch.tensor([0.0, 0.0, low, -high], dtype=torch.float64)
    stored = float((model.b_1.detach().double() - wanted).abs().sum())
    lemma = None
    if it.holds(4 * size):
        rounding = (8 * it.arithmetic.u * size + 16 * it.arithmetic.smallest) * UP_MANY
        lemma = Lemma(
            "every position reads its own number exactly; x + relu(low − x) − relu(x − high) is rounded",
            {"stored weights": stored * UP_MANY, "rounding": rounding},
            ASSUMES,
        )
    story = (
        "The one head reads the number at its own position. The FFN computes relu(x) − relu(−x) + relu(low − x)"
        " − relu(x − high): x itself between the two, low below, high above."
    )
    return _finished(it, model, lemma, tolerance, lambda x: np.clip(x, low, high), (("read", 1),), story)


def _allowed(tolerance: float | None) -> float:
    """The tolerance; where none is given, a number that the proved bound replaces (`_finished`)."""
    return 1.0 if tolerance is None else tolerance


def _finished(
    it: Entry,
    model: SingleLayerTransformer,
    lemma: Lemma | None,
    tolerance: float | None,
    function: Function,
    heads: tuple[tuple[str, int], ...],
    story: str,
) -> Approximation:
    """The Approximation, with the proved bound as tolerance where none was given."""
    if tolerance is None and lemma is not None:
        it = replace(it, tolerance=lemma.bound, parameters=it.parameters | {"tolerance": None})
    return it.approximation(model, it.require(lemma), function, heads=heads, story=story)


def _sum_rounding(reading: Reading) -> float:
    """What is computed is this far from the form at most, apart from what the averages of heads are off by."""
    reach = torch.full((reading.form.dimension,), reading.edge, dtype=torch.float64)
    heads = [(head.sizes * reading.edge).sum(dim=(0, 1)) for head in reading.program.heads]
    return float((reading.program.beside(reach) + sum(heads)).max()) * UP_MANY


def _is_mean(reading: Reading, n: int) -> bool:
    form = reading.form
    if n == 1:
        return not form.blocks and form.linear.tolist() == [[1.0]] and not form.bias.any()
    if len(form.blocks) != 1 or form.linear.any() or form.bias.any():
        return False
    block = form.blocks[0]
    even = not (block.keys.any() or block.biases.any() or block.values.any()) and block.biases.shape == (1, n)
    return even and torch.equal(block.slopes[0, :, :, 0], torch.eye(n, dtype=torch.float64))


def _mean(x: np.ndarray) -> np.ndarray:
    return np.array([[math.fsum(row) / len(row)] for row in x.tolist()])


def _with_hinges(model: SingleLayerTransformer, low: float, high: float) -> SingleLayerTransformer:
    """The routing layer with two more hidden units: + relu(low − x) − relu(x − high)."""
    wider = SingleLayerTransformer(replace(model.config, ffn_width=4))
    old = model.state_dict()
    with torch.no_grad():
        for name, t in wider.state_dict().items():
            t.copy_(old[name] if t.shape == old[name].shape else torch.zeros_like(t))
        wider.W_1[:, :2], wider.W_2[:2] = old["W_1"], old["W_2"]
        wider.W_1[0, 2], wider.W_1[0, 3] = -1.0, 1.0
        wider.b_1[2], wider.b_1[3] = low, -high
        wider.W_2[2, 0], wider.W_2[3, 0] = 1.0, -1.0
    return wider


def _matrix(matrix: Any, offset: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        A = np.array(matrix, dtype=np.float64)
        b = np.zeros(A.shape[0] if A.ndim else 1) if offset is None else np.array(offset, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("a matrix and an offset of numbers", "something else", "make all rows equally long") from None
    if A.ndim != 2 or not A.size or b.shape != A.shape[:1] or not (np.isfinite(A).all() and np.isfinite(b).all()):
        raise InputError("a finite matrix [m, n] and an offset [m]", f"shapes {A.shape} and {b.shape}", "make them fit")
    return A, b
