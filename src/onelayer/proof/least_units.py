"""The least number of units for f and ε in one variable: lower bounds that hold for every choice of weights.

Let T be within ε of f. Points where f says something about T (docs/theory/sizes.md has the proofs):

    crossings   f − p is above ε and below −ε in turn at m + 1 points, p a line: T − p has m zeros
    turns       f − s·x rises and falls in turn, m times, by more than 2ε each: the slope of T − s·x has m − 1 zeros
    bends       m triples of points, one after the other, with f more than 2ε off the chord at the middle point: a piecewise
                linear T has m breakpoints, one in each

A sum Σ_j p_j(x) e^(λ_j x) with E distinct real λ_j and polynomials of degree ≤ d has at most (d + 1)E − 1 real zeros. Cleared of
its denominators a layer is such a sum, and so are its slopes, which limits m for a given number n of units:

    units                                                             crossings       turns
    plain     gates of one sharpness, values on anchors, no line      n, p constant   2n − 1, s = 0
    equal     gates of one sharpness, values and slopes, and a line   2n + 1          4n
    gates     gates of any sharpness, values and slopes, and a line   2^(n+1) − 1     2·3^n − 2^n
    memory    memory tokens of one head, and a line                   2n − 1          n(n + 1)/2
    hinges    ReLUs and a line: one breakpoint each

f is evaluated in ball arithmetic at finitely many points, and every comparison allows for rounding: the bounds are proved. They
are not the largest that could be proved: more points may show more.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from ..common.checks import require_whole
from ..common.errors import InputError
from ..common.outward import UP_FEW, U
from ..layer.reading import Reading
from ..target.target import Target, require_tolerance

POINTS = 2048
MOST_POINTS = 2**20
KINDS = ("plain", "equal", "gates", "memory", "hinges")
LEVELS = 128  # lines of one slope that are tried
Values = Float[np.ndarray, " point"]


@dataclass(frozen=True)
class Alternation:
    """Points in order, at which f − slope·x is above and below a level in turn, or rises and falls in turn."""

    slope: float = 0.0
    points: tuple[float, ...] = ()

    @property
    def count(self) -> int:
        return max(len(self.points) - 1, 0)


@dataclass(frozen=True)
class LeastUnits:
    """The least number of units of each kind, and the points that prove it."""

    plain: int
    equal: int
    gates: int
    memory: int
    hinges: int
    crossings: Alternation
    turns: Alternation
    bends: tuple[tuple[float, float, float], ...]


def least_units(target: Target, tolerance: float, points: int = POINTS) -> LeastUnits:
    """The least number of units that a layer within the tolerance of a function of one variable has, kind by kind."""
    require_tolerance(tolerance)
    require_whole("points", points, 3, MOST_POINTS)
    if target.formula is None or target.dimension != 1 or target.outputs != 1 or target.leaves_points_out:
        found = f"{target.text} in {target.dimension} variables"
        raise InputError("a formula in one variable with one value, everywhere in scope", found, "choose such a target")
    x = target.domain.points(((np.arange(points) + 0.5) / points)[:, None])
    x = np.unique(x[target.domain.contains(x)], axis=0)
    if len(x) < 3:
        raise InputError("three points of the domain at least", f"{len(x)} of {points}", "use more points")
    values, error = target.values_with_error(x)
    known = _Known(x[:, 0], values[:, 0], error, tolerance)
    lines = [known.less(slope) for slope in known.slopes()]
    crossings, turns = [line.most_crossings() for line in lines], [line.turns() for line in lines]
    most_crossings, most_turns = max(crossings, key=_count), max(turns, key=_count)
    m, r, m0, r0 = (_count(found) for found in (most_crossings, most_turns, crossings[0], turns[0]))
    bends = tuple(known.bends())
    return LeastUnits(
        plain=_least(lambda n: m0 <= n and r0 <= max(2 * n - 1, 0)),
        equal=_least(lambda n: m <= 2 * n + 1 and r <= max(4 * n, 1)),
        gates=_least(lambda n: m <= 2 ** (n + 1) - 1 and r <= 2 * 3**n - 2**n),
        memory=_least(lambda n: m <= max(2 * n - 1, 1) and r <= max(n * (n + 1) // 2, 1)),
        hinges=len(bends),
        crossings=most_crossings,
        turns=most_turns,
        bends=bends,
    )


def units_of(reading: Reading) -> tuple[str, int] | None:
    """Kind and number of the units of a layer in one variable; None if they are of several kinds, or of none of these."""
    form, hinges = reading.form, len(reading.hinges)
    keys = [head[there].unique() for b in form.blocks for head, there in zip(b.keys, b.there, strict=True)]
    slopes = any(bool(b.slopes[b.there].any()) for b in form.blocks)
    if hinges or not keys:
        return None if keys else ("hinges", hinges)
    if len(keys) == 1 and len(keys[0]) > 2:
        return None if slopes else ("memory", len(keys[0]))
    if any(len(key) > 2 for key in keys):
        return None
    sharpness = {float(key.max() - key.min()) for key in keys}
    kind = "gates" if len(sharpness) > 1 else "equal" if slopes or bool(form.linear.any()) else "plain"
    return kind, len(keys)


def _count(found: Alternation) -> int:
    return found.count


def _least(possible: Callable[[int], bool]) -> int:
    n = 0
    while not possible(n):
        n += 1
    return n


@dataclass(frozen=True)
class _Known:
    """Floats y within `error` of f − slope·x at points x in increasing order."""

    x: Values
    y: Values
    error: float
    tolerance: float
    slope: float = 0.0

    @property
    def reach(self) -> float:
        """How far y may be from a T that is within the tolerance; rounded up, for one more comparison as well."""
        return (self.tolerance + self.error) * UP_FEW

    def slopes(self) -> list[float]:
        """0, and the slopes of the chord and of the least-squares line: lines that f may oscillate around."""
        chord = float((self.y[-1] - self.y[0]) / (self.x[-1] - self.x[0]))
        return [0.0, chord, float(np.polyfit(self.x - self.x[0], self.y, 1)[0])]

    def less(self, slope: float) -> "_Known":
        """The same of f − slope·x: two roundings more."""
        if slope == 0:
            return self
        size = float(np.abs(self.y).max() + abs(slope) * np.abs(self.x).max())
        return _Known(self.x, self.y - slope * self.x, (self.error + 4 * U * size) * UP_FEW, self.tolerance, slope)

    def most_crossings(self) -> Alternation:
        """Points where f is above and below a level in turn, by more than ε; the level with the most of them."""
        low, high = float(self.y.min()), float(self.y.max())
        levels = low + (high - low) * (np.arange(LEVELS) + 0.5) / LEVELS
        return max((self._crossings(float(level)) for level in levels), key=_count)

    def _crossings(self, level: float) -> Alternation:
        above = self.y > math.nextafter(level + self.reach, math.inf)
        sides = above.astype(int) - (self.y < math.nextafter(level - self.reach, -math.inf))
        there = np.flatnonzero(sides)
        first = np.flatnonzero(np.diff(sides[there], prepend=0))  # sides are ±1: the first, and every change
        return self._at(there[first].tolist())

    def turns(self) -> Alternation:
        """Points between which f rises and falls in turn, by more than 2ε each."""
        needed, found = 2 * self.reach, [0]
        rising: bool | None = None
        low = high = 0  # the lowest and highest point since the last turn
        for i, y in enumerate(self.y.tolist()):
            low, high = (i if y < self.y[low] else low), (i if y > self.y[high] else high)
            if rising is not True and y - self.y[low] > needed:
                found, rising, high = [*found[: None if rising is False else 0], low], True, i
            elif rising is not False and self.y[high] - y > needed:
                found, rising, low = [*found[: None if rising else 0], high], False, i
        return Alternation() if rising is None else self._at([*found, high if rising else low])

    def _at(self, indices: list[int]) -> Alternation:
        return Alternation(self.slope, tuple(self.x[indices].tolist()))

    def bends(self) -> Iterator[tuple[float, float, float]]:
        """Triples that no line is within ε of, one after the other, each as short as possible."""
        start, count = 0, len(self.x)
        while start < count - 2:
            fits, stop = start + 1, start + 2  # the largest end known to fit a line, and one that is tried
            while stop < count and self._bend(start, stop) is None:
                fits, stop = stop, min(2 * stop - start, count - 1) if stop < count - 1 else count
            if stop >= count:
                return
            while stop - fits > 1:
                middle = (fits + stop) // 2
                fits, stop = (middle, stop) if self._bend(start, middle) is None else (fits, middle)
            triple = self._bend(start, stop)
            assert triple is not None
            yield triple
            start = int(np.searchsorted(self.x, triple[2]))

    def _bend(self, start: int, stop: int) -> tuple[float, float, float] | None:
        """Three of the points start … stop that no line is within ε of, if there are any: tried on the two hulls."""
        for sign in (1, -1):
            hull = _upper_hull(self.x, sign * self.y, start, stop)
            at = np.arange(start, stop + 1)
            gaps = np.interp(self.x[at], self.x[hull], sign * self.y[hull]) - sign * self.y[at]
            middle = int(at[np.argmax(gaps)])
            after = int(np.searchsorted(hull, middle))
            if gaps.max() > 2 * self.tolerance and hull[after] != middle:
                triple = (hull[after - 1], middle, hull[after])
                if self._off_chord(*triple) > 2 * (Fraction(self.tolerance) + Fraction(self.error)):
                    a, b, c = self.x[list(triple)].tolist()
                    return a, b, c
        return None

    def _off_chord(self, i: int, j: int, k: int) -> Fraction:
        """How far the middle point is from the chord, exactly."""
        (a, b, c), (p, q, r) = ([Fraction(float(v[t])) for t in (i, j, k)] for v in (self.x, self.y))
        return abs(q - (p * (c - b) + r * (b - a)) / (c - a))


def _upper_hull(x: Values, y: Values, start: int, stop: int) -> list[int]:
    """Indices of the corners of the least concave function above the points start … stop, up to rounding."""
    hull: list[tuple[int, float, float]] = []
    for i, (b, q) in enumerate(zip(x[start : stop + 1].tolist(), y[start : stop + 1].tolist(), strict=True), start):
        while len(hull) > 1:
            (_, o, r), (_, a, p) = hull[-2:]
            if (a - o) * (q - r) < (p - r) * (b - o):
                break
            hull.pop()
        hull.append((i, b, q))
    return [i for i, _, _ in hull]
