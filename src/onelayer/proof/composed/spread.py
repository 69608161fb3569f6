"""How far a lane A can be from its inner function g where g has a given value.

|A − g| ≤ δ holds everywhere, but the error of a lane is often large where the outer function is flat, and small where it is
steep. Both g = Σ g_i and A − g = Σ e_i are sums over groups of coordinates. The box of every group is cut into cells, on which
g_i and e_i are enclosed, and their sums are gathered in bins of g (`bins`). The checker does the same, with code of its own.

Bins of a sum: how large Σ_i e_i can be where Σ_i g_i has a given value, from cells on which g_i and e_i are enclosed.

Let w be the width of a bin. A cell with g_i in [p, q] and e_i ≤ t is entered in the bins ⌊p/w⌋, …, ⌊q/w⌋, and top_i(k) is the
largest t entered in bin k, −∞ without any. The cells of a group cover its box, so e_i(x) ≤ top_i(k_i) for k_i = ⌊g_i(x)/w⌋.
With K = k_1 + … + k_n

    Σ_i e_i(x) ≤ C(K),  C(K) = max over k_1 + … + k_n = K of Σ_i top_i(k_i),    and    K ≤ Σ_i g_i(x)/w < K + n.

C is found by adding one group after the other: the cost is the product of two numbers of bins, not of all numbers of cells.
w is a power of two, so that quotients are exact and bins need no slack (`bin_of` sees to underflow).
"""

from dataclasses import dataclass

import numpy as np

from ...common.budget import Budget, OutOfTime
from ...common.outward import UP_FEW, U
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

UNKNOWN = 1e300  # in the place of ∞, which must not meet −∞
MOST_BINS = 2.0**40  # from 0 to any value
THINNEST, TINY = 1e-150, 1e-200  # bins are wider than the first; values below the second are moved


def width_for(ranges: list[np.ndarray], bins: int) -> float:
    """A power of two: the sums of values from all of these ranges, [cell, 2], fall into about this many bins, or fewer."""
    total, size = sum(float(np.ptp(r)) for r in ranges), max(float(np.abs(r).max()) for r in ranges)
    return float(2.0 ** np.ceil(np.log2(max(total / bins, size / MOST_BINS, THINNEST))))


def bin_of(values: np.ndarray, width: float) -> np.ndarray:
    """⌊value/width⌋, exactly. A quotient might underflow to 0, so tiny values become ±TINY, in the same bin, 0 or −1."""
    moved = np.where(np.abs(values) < TINY, np.sign(values) * TINY, values)
    return np.floor(moved / width)


@dataclass(frozen=True)
class Binned:
    """One group: the bins of its cells, and top(k) for the bins from `first` on."""

    bins: np.ndarray  # [cell, 2]: the first and the last bin of a cell
    errors: np.ndarray  # e ≤ errors on a cell, [cell]
    first: int
    top: np.ndarray

    @staticmethod
    def of(values: np.ndarray, errors: np.ndarray, width: float) -> "Binned":
        """From the ranges of g, [cell, 2], and upper bounds of e, [cell]."""
        bins = bin_of(values, width).astype(np.int64)
        first, count = int(bins[:, 0].min()), bins[:, 1] - bins[:, 0] + 1
        top = np.full(int(bins[:, 1].max()) - first + 1, -np.inf)
        starts = np.repeat(bins[:, 0] - first - np.cumsum(count) + count, count)
        errors = np.where(errors < UNKNOWN, errors, UNKNOWN)
        np.maximum.at(top, starts + np.arange(len(starts)), np.repeat(errors, count))
        return Binned(bins, errors, first, top)

    def cell(self, k: int) -> int:
        """The cell that decides in bin k, counted from `first`."""
        own = (self.bins[:, 0] <= k + self.first) & (k + self.first <= self.bins[:, 1])
        return int(np.where(own, self.errors, -np.inf).argmax())


@dataclass(frozen=True)
class Tops:
    """C, rounding included, for K from `first` on."""

    groups: tuple[Binned, ...]
    partial: tuple[np.ndarray, ...]  # C of the first groups alone, one more each time; the last is rounded upward
    first: int

    @staticmethod
    def of(groups: list[Binned]) -> "Tops":
        partial = [groups[0].top]
        for group in groups[1:]:
            partial.append(_largest_sums(partial[-1], group.top))
        known = [np.abs(g.top[np.abs(g.top) < UNKNOWN]).max(initial=0.0) for g in groups]
        partial[-1] = partial[-1] + 4 * len(groups) * U * float(sum(known))
        return Tops(tuple(groups), tuple(partial), sum(g.first for g in groups))

    @property
    def values(self) -> np.ndarray:
        return self.partial[-1]

    def cells(self, place: int) -> list[int]:
        """Cells, one of each group, whose errors add up to C at this place."""
        found = list[int]()
        for group, before in zip(reversed(self.groups[1:]), reversed(self.partial[:-1]), strict=True):
            k = np.arange(max(0, place - len(before) + 1), min(len(group.top), place + 1))
            own = int(k[(group.top[k] + before[place - k]).argmax()])
            found.append(group.cell(own))
            place -= own
        return [self.groups[0].cell(place), *reversed(found)]


def _largest_sums(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """max over i + j = k of one_i + two_j, for every k."""
    long, short = (one, two) if len(one) >= len(two) else (two, one)
    found = np.full(len(one) + len(two) - 1, -np.inf)
    for k, more in enumerate(short.tolist()):
        if more > -np.inf:
            own = found[k : k + len(long)]
            np.maximum(own, long + more, out=own)
    return found


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
