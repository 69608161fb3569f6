"""The range of g = T − f on boxes, with proof: interpolation, the range of the interpolant, and all errors.

On a box of degree p the interpolant of g is Σ_k a_k T_k. Coefficients beyond some degree q are tiny and are paid for by
Σ|a_k|; what remains is a polynomial of degree q, whose range follows from its values at N^D points (Ehlich–Zeller): around
the middle of those values it reaches at most cos(qπ/2N)^(−D) times as far. Added to this: the truncation, what rounded
nodes cost, what constants in the place of singular nodes cost, the errors of T and f at the nodes times Λ^D, the rounding of
the transforms. A value that is not finite makes the range infinite.

T at the nodes of boxes for layers with very sharp heads, point by point, with a bound on its rounding for every box.

`grid` bounds rounding once for the whole domain, in proportion to the largest key: too much where keys are 10⁷, although a head
that sharp is constant, up to rounding, on most boxes. Here the bound is that of a model (`layer.rounding.deployed`) on
each box, and T is evaluated in the same order as there: scores, weights, values, the average of each head, their sum.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP, UP_FEW, U
from ...formula.float_bounds import evaluate_bounded_on_axes
from ...layer.arithmetic import FLOAT64
from ...layer.assemble import Frame
from ...layer.form import Form
from ...layer.rounding.deployed import Boxes, FormProgram
from . import chebyshev
from .grid import AT_ONCE, Grids, on_grids
from .summand import Summand
from .tiles import Tiles

SHARP = 2.0**12  # spread of scores over the domain from which this pays


def is_sharp(form: Form, edge: float) -> bool:
    return float(form.spreads.max()) * edge > SHARP


def on_sharp_grids(
    form: Form, grids: Grids, frame: Frame
) -> tuple[Float[Tensor, "box point out"], Float[Tensor, "box out"]]:
    """(T at every point of every grid, a bound on its rounding); x̂ is computed as the frame does."""
    boxes, points, m = len(grids.axes), grids.axes.shape[2] ** grids.dimension, len(form.bias)
    numbers = max([1, *(block.biases.numel() * (1 + m) for block in form.blocks)])
    rows = grids.points().split(max(1, AT_ONCE // numbers))
    T = torch.cat([_at(form, x) for x in rows]).reshape(boxes, points, m)
    halves = grids.halves * UP_FEW + 4 * FLOAT64.u * (grids.centres.abs() + grids.halves)
    program = FormProgram.of_form(form, FLOAT64, frame, factored=False)
    return T, program.on_boxes(Boxes(grids.centres, halves))


def _at(form: Form, x: Float[Tensor, "point coordinate"]) -> Float[Tensor, "point out"]:
    y = form.bias.expand(len(x), -1)
    for i in range(x.shape[1]):
        y = y + x[:, i, None] * form.linear[i]
    for block in form.blocks:
        weights = torch.softmax(torch.einsum("bd,htd->bht", x, block.keys) + block.biases, dim=-1)
        values = block.values.expand(len(x), -1, -1, -1)
        if block.slopes.any():
            values = values + torch.einsum("bd,htdo->bhto", x, block.slopes)
        y = y + torch.einsum("bht,bhto->bho", weights, values).sum(dim=1)
    return y


MOST_POINTS = 1_000  # per degree, however close a bound is to be: halved boxes come closer for less


@dataclass(frozen=True)
class Fineness:
    """How closely polynomials are bounded: points per degree, and the share of the range that dropped terms may cost."""

    points: int
    share: float


COARSE = Fineness(3, 0.05)
FINE = Fineness(10, 0.003)


def fineness_for(close: float | None, dimension: int) -> Fineness:
    """The fineness at which polynomials are bounded within a quarter of this share, if that is not too fine, and some more for
    dropped terms."""
    if close is None:
        return FINE
    points = math.ceil(math.pi / 2 * math.sqrt(2 * dimension / close))  # cos(π/2k)^(−D) ≈ 1 + D(π/2k)²/2
    return Fineness(min(max(points, FINE.points), MOST_POINTS), min(close / 16, FINE.share))


@dataclass(frozen=True)
class Ranges:
    """Proved: low ≤ g ≤ high on every box, [box, out]. *_seen: extreme nodal values in the domain.

    bottom, top: values that g takes on the box, if all of it belongs to the domain, up to rounding; slack: how much of the
    range is due to truncation, rounding and constants in the place of singular nodes.
    """

    low: np.ndarray
    high: np.ndarray
    smallest_seen: np.ndarray
    largest_seen: np.ndarray
    bottom: np.ndarray
    top: np.ndarray
    slack: np.ndarray


def enclosed(summand: Summand, tiles: Tiles, p: int, fineness: Fineness) -> Ranges:
    """The ranges of g on boxes that are interpolated at degree p."""
    rows = max(1, AT_ONCE // ((p + 1) ** summand.dimension * (len(summand.form.bias) + summand.dimension) * 4))
    found = []
    for i in range(0, len(tiles), rows):
        found.append(_enclosed(summand, tiles[i : i + rows], p, fineness))
        summand.budget.require_time()
    return Ranges(*(np.concatenate([getattr(r, f.name) for r in found]) for f in fields(Ranges)))


def _enclosed(summand: Summand, tiles: Tiles, p: int, fineness: Fineness) -> Ranges:
    D, m, boxes = summand.dimension, len(summand.form.bias), len(tiles)
    g, nodal, inside = _nodal_values(summand, tiles, p)
    size = np.abs(g).max(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        a = chebyshev.along(chebyshev.coefficients(p), g.reshape(boxes, *(p + 1,) * D, m), D)
        nodal = nodal + 2 * U * size
        slack = nodal * (chebyshev.lebesgue(p) * UP) ** D + chebyshev.rounding(p, D) * size
        slack = slack + tiles.truncation(p) + tiles.displacement(p) + tiles.cost
        low, high, bottom, top = _polynomial_range(a, (g.max(axis=1) - g.min(axis=1)).max(axis=1), fineness)
        bottom, top = bottom + slack, top - slack
        low, high = low - slack * UP - 1e-15 * np.abs(low), high + slack * UP + 1e-15 * np.abs(high)
    good = np.isfinite(low) & np.isfinite(high) & np.isfinite(size) & np.isfinite(slack)
    smallest_seen = np.where(inside[:, :, None], g, np.inf).min(axis=1)
    largest_seen = np.where(inside[:, :, None], g, -np.inf).max(axis=1)
    bottom, top = np.where(good, bottom, np.inf), np.where(good, top, -np.inf)
    low, high = np.where(good, low, -np.inf), np.where(good, high, np.inf)
    return Ranges(low, high, smallest_seen, largest_seen, bottom, top, slack)


def _nodal_values(summand: Summand, tiles: Tiles, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(g at the nodes [box, node, out], a bound on its error [box, out], which nodes lie in the domain [box, node])."""
    boxes = tiles.boxes
    t = chebyshev.nodes(p)
    middle, half = (boxes[:, 0] + boxes[:, 1]) / 2, (boxes[:, 1] - boxes[:, 0]) / 2
    axes = np.clip(middle[:, :, None] + half[:, :, None] * t, boxes[:, 0, :, None], boxes[:, 1, :, None])
    found = evaluate_bounded_on_axes(summand.formula, list(axes.swapaxes(0, 1)), tiles.constants)
    f, f_error = (v.reshape(len(boxes), -1, v.shape[-1]) for v in found)
    shift, scale = summand.normalisation
    centres = torch.from_numpy((middle - shift) * scale)
    grids = Grids(centres, torch.from_numpy((axes - shift[:, None]) * scale[:, None]))
    if summand.box is not None or is_sharp(summand.form, summand.edge):
        T, rounding = on_sharp_grids(summand.form, grids, Frame(tuple(shift.tolist()), tuple(scale.tolist())))
    else:
        T, rounding = on_grids(summand.form, grids, summand.edge, summand.device)
    with np.errstate(invalid="ignore"):
        return T.numpy() - f, f_error.max(axis=1) + rounding.numpy(), _inside(summand, axes)


def _inside(summand: Summand, axes: np.ndarray) -> np.ndarray:
    """Which points of the grids lie in the domain, [box, node]."""
    boxes, D, n = axes.shape
    if summand.target.domain.within is None:
        return np.ones((boxes, n**D), dtype=bool)
    index = np.meshgrid(*([np.arange(n)] * D), indexing="ij")
    x = np.stack([axes[:, j, index[j].reshape(-1)] for j in range(D)], axis=-1)
    return summand.target.domain.contains(x.reshape(-1, D)).reshape(boxes, n**D)


def _polynomial_range(a: np.ndarray, spread: np.ndarray, fineness: Fineness) -> tuple[np.ndarray, ...]:
    """(low, high) of Σ a_k T_k, and values (bottom, top) that it takes, [box, out], a: [box, degrees…, out].

    Terms beyond some degree q, one per box, are dropped.
    """
    p, D, m = a.shape[1] - 1, a.ndim - 2, a.shape[-1]
    order = np.stack(np.meshgrid(*([np.arange(p + 1)] * D), indexing="ij")).max(axis=0).reshape(-1)
    by_order = np.argsort(order, kind="stable")
    starts = np.searchsorted(order[by_order], np.arange(p + 1))
    mass = np.add.reduceat(np.abs(a).reshape(len(a), -1, m)[:, by_order], starts, axis=1)  # [box, max degree, out]
    beyond = np.concatenate([np.cumsum(mass[:, ::-1], axis=1)[:, ::-1][:, 1:], np.zeros((len(a), 1, m))], axis=1)
    enough = beyond.max(axis=2) <= fineness.share * spread[:, None]
    enough[:, -1] = True
    side = int(AT_ONCE ** (1 / D))  # points per axis, at most
    wanted = np.clip(enough.argmax(axis=1), 1, side // 3)
    low, high = np.full((len(a), m), -np.inf), np.full((len(a), m), np.inf)
    bottom, top = high.copy(), low.copy()
    for q in np.unique(wanted).tolist():
        N = max(3 * q, min(fineness.points * q, side))
        V, grow = chebyshev.values(q, N), chebyshev.enlargement(q, N, D)
        own = np.flatnonzero(wanted == q)
        for some in np.array_split(own, min(len(own), 1 + len(own) * N**D * m // AT_ONCE)):
            corner: tuple[Any, ...] = (some, *(slice(q + 1),) * D)
            kept = a[corner]
            values = chebyshev.along(V, kept, D).reshape(len(some), -1, m)
            most, least = values.max(axis=1), values.min(axis=1)
            middle = (most + least) / 2
            reach = ((most - least) / 2 * grow + beyond[some, q]) * UP + 4e-16 * np.abs(middle)
            low[some], high[some] = middle - reach, middle + reach
            bottom[some], top[some] = least + beyond[some, q], most - beyond[some, q]
    return low, high, bottom, top
