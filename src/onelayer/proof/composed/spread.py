"""How far a lane A can be from its inner function g where g has a given value.

|A − g| ≤ δ holds everywhere, but the error of a lane is often large where the outer function is flat, and small where it is
steep. Both A − g and g are sums over groups of coordinates. The box of every group is cut into cells, on which both summands
are enclosed, and sums over cells of all groups are gathered in bins of g. Every point of the domain lies in a cell of every
group, so its (g, A − g) is in some bin. The groups are added one after the other: the cost grows with their number, not with
the number of products of cells.
"""

from dataclasses import dataclass

import numpy as np

from ...common.budget import Budget
from ...common.outward import U
from ...formula.additive import parts_of
from ...formula.taylor.formula import Enclosed, TaylorAlgebra
from ...formula.taylor.series import Space
from ...layer.assemble import Frame
from ...layer.form import Form
from ...target.target import Target
from ..analytic.cover import bounded
from ..analytic.subdivision import measured
from ..analytic.summand import Summand
from ..claim import Proof

BINS = 2048
CELLS = {1: 512, 2: 48}  # along a side, by the number of coordinates of the group
TRUNCATION_SHARE = 0.01  # share of δ that interpolation may cost in a cell
BIN_SLACK = 1e-6  # of a bin's width: more than rounding moves an end


@dataclass(frozen=True)
class Spread:
    """low ≤ A − g ≤ high wherever g is between two edges of a bin; low > high in a bin without points."""

    edges: np.ndarray
    low: np.ndarray  # [bin]
    high: np.ndarray

    @staticmethod
    def everywhere(delta: float) -> "Spread":
        """|A − g| ≤ δ, whatever g is."""
        return Spread(np.array([-np.inf, np.inf]), np.array([-delta]), np.array([delta]))

    def on(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of A − g where g lies in these intervals; (0, 0) where it never does."""
        last = len(self.low) - 1
        first = np.clip(np.searchsorted(self.edges, lower, side="left") - 1, 0, last)
        final = np.clip(np.searchsorted(self.edges, upper, side="right") - 1, 0, last)
        low, high = -largest_between(-self.low, first, final), largest_between(self.high, first, final)
        return np.where(low <= high, low, 0.0), np.where(low <= high, high, 0.0)


def largest_between(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The largest of values[first], …, values[last]."""
    table = [values]  # maxima over 1, 2, 4, … values
    while len(table[-1]) > 1 and 2 ** len(table) <= len(values):
        step = 2 ** (len(table) - 1)
        table.append(np.maximum(table[-1][:-step], table[-1][step:]))
    level = np.floor(np.log2(last - first + 1)).astype(int)
    found = np.zeros(len(first))
    for k in np.unique(level).tolist():
        own = level == k
        found[own] = np.maximum(table[k][first[own]], table[k][last[own] + 1 - 2**k])
    return found


def spread_of(form: Form, frame: Frame, inner: Target, proof: Proof, budget: Budget) -> Spread:
    """The spread of a lane of this form around the inner function; `proof` is that of |A − g| ≤ δ."""
    delta, groups, formula = proof.bound, list(proof.evidence.groups or ()), inner.formula
    uniform = Spread.everywhere(delta)
    if formula is None or any(len(group) not in CELLS for group in groups):
        return uniform
    goal, sums = TRUNCATION_SHARE * delta / len(groups), (np.zeros((1, 2)), np.zeros((1, 2)))
    for group, own, part in zip(groups, form.split(groups), parts_of(formula, groups), strict=True):
        summand = Summand(own, part, inner, frame, group, budget=budget)
        cells = _cells(summand)
        found = bounded(summand, measured(summand, cells), np.ones(len(cells), dtype=np.int64), goal)
        if found is None or budget.over():
            return uniform
        values: Enclosed = part.tape.run(TaylorAlgebra(Space(cells[:, 0], cells[:, 1])))[0]
        errors = np.stack([found[0].low[:, 0], found[0].high[:, 0]], axis=1)
        sums = _added(sums, (np.stack([values.low, values.high], axis=1), errors))
        if not np.isfinite(sums[0]).all():
            return uniform
    (bins, errors), rounding = sums, proof.evidence.rounding or 0.0
    low, high = np.maximum(errors[:, 0] - rounding, -delta), np.minimum(errors[:, 1] + rounding, delta)
    empty = errors[:, 0] > errors[:, 1]
    low, high = np.where(empty, np.inf, low), np.where(empty, -np.inf, high)
    return Spread(np.append(bins[:, 0], bins[-1, 1]), low, high)


def _cells(summand: Summand) -> np.ndarray:
    """Equal cells of the group's box, [cell, 2, coordinate], with shared faces."""
    lower, upper = summand.sides
    count, D = CELLS[summand.dimension], summand.dimension
    cuts = np.linspace(lower, upper, count + 1)
    cuts[0], cuts[-1] = lower, upper
    index = np.stack(np.meshgrid(*[np.arange(count)] * D, indexing="ij"), axis=-1).reshape(-1, D)
    return np.stack([np.take_along_axis(cuts, index, axis=0), np.take_along_axis(cuts, index + 1, axis=0)], axis=1)


Sums = tuple[np.ndarray, np.ndarray]  # ends of g and of A − g, […, 2]


def _added(one: Sums, two: Sums) -> Sums:
    """All sums of an entry of one and an entry of the other, gathered in equal bins of g; an entry low > high is none."""
    there = one[1][:, 0] <= one[1][:, 1]
    g, errors = ((a[there][:, None] + b[None]).reshape(-1, 2) for a, b in zip(one, two, strict=True))
    size = np.abs(g).max() + 1e-300
    g, errors = g + np.array([-4, 4]) * U * size, errors + np.array([-4, 4]) * U * np.abs(errors)
    if not np.isfinite(g).all():
        return g, errors
    edges = np.linspace(g[:, 0].min() - 1e-12 * size, g[:, 1].max() + 1e-12 * size, BINS + 1)
    places = (g - edges[0]) / (edges[-1] - edges[0]) * BINS + np.array([-BIN_SLACK, BIN_SLACK])
    first, last = np.clip(np.floor(places).astype(np.int64), 0, BINS - 1).T
    low, high = np.full(BINS, np.inf), np.full(BINS, -np.inf)
    for step in range(int((last - first).max()) + 1):
        own = first + step <= last
        np.minimum.at(low, (first + step)[own], errors[own, 0])
        np.maximum.at(high, (first + step)[own], errors[own, 1])
    return np.stack([edges[:-1], edges[1:]], axis=1), np.stack([low, high], axis=1)
