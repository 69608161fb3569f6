"""How far a lane A can be from its inner function g where g has a given value.

|A − g| ≤ δ holds everywhere, but the error of a lane is often large where the outer function is flat, and small where it is
steep. Both g = Σ g_i and A − g = Σ e_i are sums over groups of coordinates. The box of every group is cut into cells, on which
g_i and e_i are enclosed, and their sums are gathered in bins of g (`bins`). The checker does the same, with code of its own.
"""

from dataclasses import dataclass

import numpy as np

from ...common.budget import Budget, OutOfTime
from ...common.outward import UP_FEW
from ...formula.additive import parts_of
from ...formula.taylor.formula import Enclosed, TaylorAlgebra
from ...formula.taylor.series import Space
from ...layer.assemble import Frame
from ...layer.form import Form
from ...target.target import Target
from ..analytic.cover import bounded
from ..analytic.subdivision import measured
from ..analytic.summand import Summand
from ..certificate import Box
from ..claim import Proof
from .bins import UNKNOWN, Binned, Tops, bin_of, width_for


@dataclass(frozen=True)
class Resolution:
    """How finely lanes are looked at."""

    cells: dict[int, int]  # along a side, by the number of coordinates of the group
    bins: int
    truncation: float  # share of δ that interpolation may cost


RESOLUTIONS = (
    Resolution({1: 512, 2: 32}, 2048, 0.01),
    Resolution({1: 2048, 2: 64, 3: 16}, 8192, 0.003),
    Resolution({1: 8192, 2: 128, 3: 24}, 32768, 0.001),
)
LARGEST = 1e100  # values of g, so that no width overflows
Cells = tuple[tuple[int, ...], np.ndarray]  # a group, its cells [cell, 2, coordinate]


@dataclass(frozen=True)
class Spread:
    """low ≤ A − g ≤ high wherever g/width is between k and k + groups, k from `first` on; low > high if it never is."""

    low: np.ndarray  # [k]
    high: np.ndarray
    first: int = 0
    width: float = 1.0
    groups: int = 1
    cells: tuple[Cells, ...] = ()
    tops: tuple[Tops, ...] = ()  # of A − g, and of g − A

    @staticmethod
    def everywhere(delta: float) -> "Spread":
        """|A − g| ≤ δ, whatever g is."""
        return Spread(np.array([-delta]), np.array([delta]))

    def on(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of A − g where g lies in these intervals; (0, 0) where it never does."""
        first, last = self._places(lower, upper)
        low, high = -largest_between(-self.low, first, last), largest_between(self.high, first, last)
        return np.where(low <= high, low, 0.0), np.where(low <= high, high, 0.0)

    def _places(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last k with g/width in [k, k + groups) for a g in the interval; what is outside is moved inside."""
        ends = bin_of(lower, self.width) - (self.groups - 1), bin_of(upper, self.width)
        first, last = (np.clip(end - self.first, 0, len(self.low) - 1).astype(np.int64) for end in ends)
        return first, last

    def box(self, lower: float, upper: float, above: bool) -> Box | None:
        """Where A − g may be largest (above) or smallest for g between these; None if all is said with δ."""
        if not self.tops:
            return None
        (first,), (last,) = self._places(np.array([lower]), np.array([upper]))
        values = self.high if above else -self.low
        place = int(first + values[first : last + 1].argmax())
        if not np.isfinite(values[place]):
            return None
        ends = dict[int, tuple[float, float]]()
        for (group, cells), cell in zip(self.cells, self.tops[0 if above else 1].cells(place), strict=True):
            ends |= {j: (float(a), float(b)) for j, (a, b) in zip(group, cells[cell].T, strict=True)}
        axes = tuple(sorted(ends))
        return Box(axes, tuple(ends[j][0] for j in axes), tuple(ends[j][1] for j in axes))


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


def spread_of(form: Form, frame: Frame, inner: Target, proof: Proof, budget: Budget, how: Resolution) -> Spread:
    """The spread of a lane of this form around the inner function; `proof` is that of |A − g| ≤ δ."""
    delta, groups, formula = proof.bound, list(proof.evidence.groups or ()), inner.formula
    uniform = Spread.everywhere(delta)
    if formula is None or not groups or any(len(group) not in how.cells for group in groups):
        return uniform
    goal = how.truncation * delta / len(groups)
    cells, values, errors = list[Cells](), list[np.ndarray](), list[np.ndarray]()
    for group, own, part in zip(groups, form.split(groups), parts_of(formula, groups), strict=True):
        summand = Summand(own, part, inner, frame, group, budget=budget)
        boxes = _cells(summand, how.cells[len(group)])
        try:
            errors.append(_errors(summand, boxes, goal))
        except OutOfTime:
            return uniform
        g: Enclosed = part.tape.run(TaylorAlgebra(Space(boxes[:, 0], boxes[:, 1])))[0]
        values.append(np.stack([g.low, g.high], axis=1))
        cells.append((group, boxes))
        if budget.over() or not (np.abs(values[-1]) < LARGEST).all():
            return uniform
    width, rounding = width_for(values, how.bins), (proof.evidence.rounding or 0.0) * UP_FEW
    tops = [Tops.of([Binned.of(g, e[:, s], width) for g, e in zip(values, errors, strict=True)]) for s in (0, 1)]
    high, low = (np.where(top.values > -np.inf, np.minimum(top.values + rounding, delta), -np.inf) for top in tops)
    return Spread(-low, high, tops[0].first, width, len(groups), tuple(cells), tuple(tops))


def _errors(summand: Summand, boxes: np.ndarray, goal: float) -> np.ndarray:
    """Upper bounds of e and of −e on the cells, [cell, 2]; next to places where f is singular there are none."""
    tiles, found = measured(summand, boxes), np.full((len(boxes), 2), UNKNOWN)
    good = np.isfinite(tiles.sizes).all(axis=(1, 2))
    if good.any():
        ranges = bounded(summand, tiles[good], np.ones(int(good.sum()), dtype=np.int64), goal)
        assert ranges is not None
        found[good] = np.stack([ranges[0].high[:, 0], -ranges[0].low[:, 0]], axis=1)
    return found


def _cells(summand: Summand, count: int) -> np.ndarray:
    """Equal cells of the group's box, [cell, 2, coordinate], with shared faces."""
    (lower, upper), D = summand.sides, summand.dimension
    cuts = np.linspace(lower, upper, count + 1)
    cuts[0], cuts[-1] = lower, upper
    index = np.stack(np.meshgrid(*[np.arange(count)] * D, indexing="ij"), axis=-1).reshape(-1, D)
    return np.stack([np.take_along_axis(cuts, index, axis=0), np.take_along_axis(cuts, index + 1, axis=0)], axis=1)
