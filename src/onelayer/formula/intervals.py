"""Interval: a closed real interval with exact endpoints, and rigorous arithmetic on it.

[lo, hi] with lo ≤ hi held as two exact binary floating-point numbers (arb balls of radius 0). Every operation computes
the endpoints as balls at the current precision and rounds them outward, so that

    x ∈ X, y ∈ Y  ⇒  x ∘ y ∈ X ∘ Y        with no slack to add.

Exact endpoints let an interval end exactly at 0 or 1, which a midpoint and a radius cannot in general. `UNDEFINED`
(endpoints NaN) means "no enclosure": the operation is undefined somewhere, or unbounded, or too large. It is absorbing.
Each operation by itself gives the exact range up to rounding; dependent operands overestimate (X − X ≠ 0). Operands
must have no more bits than the current precision, or endpoints that are only negated or copied turn inexact: `rounded`
brings an interval to the current precision.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from ..common.errors import InputError

Endpoint: TypeAlias = float | int | Fraction | arb

ZERO = arb(0)
ONE = arb(1)


class Interval:
    """[lo, hi] with exact endpoints. Build one with `interval`; the constructor does not check."""

    __slots__ = ("hi", "lo")

    def __init__(self, lo: arb, hi: arb) -> None:
        self.lo = lo
        self.hi = hi

    def __repr__(self) -> str:
        return f"Interval({self.lo.str(17, radius=False)}, {self.hi.str(17, radius=False)})"

    def is_finite(self) -> bool:
        """Whether this is an enclosure at all; False for UNDEFINED only."""
        return self is not UNDEFINED and bool(self.lo.is_finite() and self.hi.is_finite())

    def lower(self) -> float:
        """The largest double ≤ lo; NaN for UNDEFINED."""
        nearest = float(self.lo)
        above = nearest == math.inf or arb(nearest) > self.lo
        return math.nextafter(nearest, -math.inf) if above else nearest

    def upper(self) -> float:
        """The smallest double ≥ hi; NaN for UNDEFINED."""
        nearest = float(self.hi)
        below = nearest == -math.inf or arb(nearest) < self.hi
        return math.nextafter(nearest, math.inf) if below else nearest

    def magnitude(self) -> float:
        """The smallest double ≥ max |x| over the interval; NaN for UNDEFINED."""
        return max(-self.lower(), self.upper()) if self.is_finite() else math.nan

    def contains(self, point: "Endpoint | Interval") -> bool:
        """Whether the point, ball or interval lies inside, proved at the current precision; UNDEFINED never does."""
        other = point if isinstance(point, Interval) else interval(point)
        return bool(self.lo <= other.lo and other.hi <= self.hi)

    def ball(self) -> arb:
        """A ball that contains the interval; the midpoint-radius form may stick out at both ends."""
        return self.lo.union(self.hi)

    def __neg__(self) -> "Interval":
        return UNDEFINED if self is UNDEFINED else Interval(-self.hi, -self.lo)

    def __abs__(self) -> "Interval":
        if self is UNDEFINED or self.lo >= 0:
            return self
        return -self if self.hi <= 0 else Interval(ZERO, -self.lo if -self.lo > self.hi else self.hi)

    def __mul__(self, other: "Interval") -> "Interval":
        a, b, c, d = self.lo, self.hi, other.lo, other.hi
        if a >= 0:
            return rounded(a * c, b * d) if c >= 0 else rounded(b * c, (a if d <= 0 else b) * d)
        if b <= 0:
            return rounded(a * d, b * c) if c >= 0 else rounded((b if d <= 0 else a) * d, a * c)
        if c >= 0:
            return rounded(a * d, b * d)
        if d <= 0:
            return rounded(b * c, a * c)
        return hull([rounded(a * d, a * c), rounded(b * c, b * d)])

    def __truediv__(self, other: "Interval") -> "Interval":
        """UNDEFINED if 0 is in the divisor."""
        a, b, c, d = self.lo, self.hi, other.lo, other.hi
        if c > 0:
            return rounded(a / (d if a >= 0 else c), b / (c if b >= 0 else d))
        if d < 0:
            return rounded(b / (d if b >= 0 else c), a / (c if a >= 0 else d))
        return UNDEFINED

    def __pow__(self, n: int) -> "Interval":
        """Exact range; x⁰ = 1; UNDEFINED if n < 0 and 0 ∈ x."""
        if self is UNDEFINED:
            return UNDEFINED
        if n <= 0:
            return Interval(ONE, ONE) / self**-n if n else Interval(ONE, ONE)
        x = self if n % 2 else abs(self)
        return rounded(x.lo * x.lo, x.hi * x.hi) if n == 2 else rounded(x.lo**n, x.hi**n)


UNDEFINED = Interval(arb(math.nan), arb(math.nan))


def interval(lo: Endpoint, hi: Endpoint | None = None) -> Interval:
    """[lo, hi], or the point lo. Floats and ints are taken exactly; rationals and balls are rounded outward."""
    low = _ball(lo)
    high = low if hi is None else _ball(hi)
    found = Interval(low if low.is_exact() else low.lower(), high if high.is_exact() else high.upper())
    if not (found.lo.is_finite() and found.hi.is_finite() and found.lo <= found.hi):
        raise InputError("an interval with finite ends lo ≤ hi", f"lo={lo}, hi={hi}", "exchange or bound the ends")
    return found


def _ball(end: Endpoint) -> arb:
    if isinstance(end, Fraction):
        return arb(end.numerator) / arb(end.denominator)
    return end if isinstance(end, arb) else arb(end if isinstance(end, float | int) else end.item())


def rounded(low: arb, high: arb) -> Interval:
    """The interval from the lower end of one ball to the upper end of another, or UNDEFINED if not finite."""
    lo, hi = low.lower(), high.upper()
    return Interval(lo, hi) if lo.is_finite() and hi.is_finite() else UNDEFINED


def hull(parts: Sequence[Interval]) -> Interval:
    """The smallest interval that contains all parts."""
    if UNDEFINED in parts:
        return UNDEFINED
    return Interval(min([x.lo for x in parts]), max([x.hi for x in parts]))


def extreme(parts: Sequence[Interval], largest: bool) -> Interval:
    """max or min."""
    of = max if largest else min
    return UNDEFINED if UNDEFINED in parts else Interval(of([x.lo for x in parts]), of([x.hi for x in parts]))


def total(terms: Sequence[Interval]) -> Interval:
    """Sum, rounded once."""
    low, high = terms[0].lo, terms[0].hi
    for term in terms[1:]:
        low, high = low + term.lo, high + term.hi
    return rounded(low, high)
