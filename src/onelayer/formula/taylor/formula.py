"""A formula on Taylor models: every operation of the language, kinks and undecided conditions included.

Beside the model each value carries plain bounds, which hold where the model breaks down (sqrt at 0, |x| huge). A `where`
whose condition is not decided on a box takes the hull of both branches; `undecided` remembers these boxes. Where a
formula is unbounded, or this arithmetic cannot tell, the bounds are infinite. What is bounded is f̃ of `real_balls`, which is f
wherever f is defined; if `strict`, bounds are finite only where f is proved to be defined, which conditions need.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from ...common.outward import UP_FEW, U
from .. import Condition, Formula, interval
from ..boxes import OnBoxes
from ..functions import natural_domain
from ..real_balls import switched
from .functions import apply, power
from .kink import maximum
from .series import TINY, Space, Taylor


@dataclass
class Enclosed:
    """A value on every box: a Taylor model, and bounds low ≤ value ≤ high. Nested maxima remember their arguments."""

    model: Taylor
    low: np.ndarray
    high: np.ndarray
    top: "tuple[Enclosed, ...]" = ()  # the value is the largest of these
    bottom: "tuple[Enclosed, ...]" = ()  # minus the value is the largest of these


@dataclass
class Truth:
    """Boxes where a condition is proved true, where it is proved false, and where it may have no value."""

    yes: np.ndarray
    no: np.ndarray
    lost: np.ndarray


class TaylorAlgebra(OnBoxes[Enclosed, Truth]):
    """Values over the boxes of a space."""

    def __init__(self, space: Space, strict: bool = False, formula: Formula | None = None) -> None:
        self.space, self.strict = space, strict
        self.formula, self.floors = formula, 0  # whose floors are looked at exactly where rounding hides them
        self.shape: tuple[int, ...] = (space.boxes,)  # of every value
        self.undecided = np.zeros(space.boxes, dtype=bool)

    def known(self, v: float, error: float) -> Enclosed:
        at = np.full(self.shape, v)
        return Enclosed(self.space.constant(at, error), at - error, at + error)

    def ends(self, value: Enclosed) -> tuple[np.ndarray, np.ndarray]:
        return value.low, value.high

    def chosen(self, where: np.ndarray, value: Enclosed, other: Enclosed) -> Enclosed:
        low, high = np.where(where, value.low, other.low), np.where(where, value.high, other.high)
        return Enclosed(other.model.choose(where, value.model), low, high)

    def _between(self, low: np.ndarray, high: np.ndarray) -> Enclosed:
        return Enclosed(self.space.between(low, high), low, high)

    def variable(self, index: int) -> Enclosed:
        i = index - 1
        return Enclosed(self.space.variable(i), self.space.lower[:, i], self.space.upper[:, i])

    def plus(self, a: Enclosed, b: Enclosed) -> Enclosed:
        with np.errstate(all="ignore"):
            low, high = a.low + b.low, a.high + b.high
            low, high = low - 2 * U * np.abs(low), high + 2 * U * np.abs(high)
        return self._tight(a.model + b.model, low, high)

    def negation(self, operand: Enclosed) -> Enclosed:
        return Enclosed(-operand.model, -operand.high, -operand.low, operand.bottom, operand.top)

    def times(self, a: Enclosed, b: Enclosed) -> Enclosed:
        with np.errstate(all="ignore"):
            ends = np.stack([x * y for x in (a.low, a.high) for y in (b.low, b.high)])
            low, high = ends.min(axis=0), ends.max(axis=0)  # NaN from 0·∞ stays NaN and is dropped
            low, high = low - 2 * U * np.abs(low) - TINY, high + 2 * U * np.abs(high) + TINY
            same = ((a.low >= 0) & (b.low >= 0)) | ((a.high <= 0) & (b.high <= 0))
            low = np.where(same, np.maximum(low, 0.0), low)
        for one, other in ((a.model, b.model), (b.model, a.model)):
            if not one.c[1:].any() and not one.a:  # a constant keeps the kinks of the other factor
                return self._tight(other.times(one.c[0], one.r), low, high)
        return self._tight(a.model * b.model, low, high)

    def quotient(self, dividend: Enclosed, divisor: Enclosed) -> Enclosed:
        return self.times(dividend, self.integer_power(-1, divisor))

    def integer_power(self, exponent: int, base: Enclosed) -> Enclosed:
        return self._power(base, float(exponent))

    def rational_power(self, exponent: Fraction, base: Enclosed) -> Enclosed:
        q = float(exponent)
        result = self._power(base, q)
        if Fraction(q) == exponent:
            return result
        with np.errstate(all="ignore"):  # x^(q + d) = x^q e^(d log x); x^q |log x| ≤ 1/(e q) on [0, 1]
            logs = np.maximum(np.abs(np.log(base.low)), np.abs(np.log(base.high)))
            off = np.expm1(logs * 2 * U * abs(q) * UP_FEW) * np.maximum(np.abs(result.low), np.abs(result.high))
            from_0 = 2.0**-51 * (1 / math.e + q * np.abs(result.high) * np.maximum(np.log(base.high), 0.0))
            off = np.where((base.low == 0) & (q > 0), from_0, off) * UP_FEW + TINY
            off = np.where(np.isfinite(off), off, np.inf)
        r = result.model.r + off
        return self._tight(Taylor(self.space, result.model.c, r, result.model.a), result.low - off, result.high + off)

    def _power(self, base: Enclosed, q: float) -> Enclosed:
        y = power(base.model, q, (base.low, base.high))
        low, high = y.range()
        found = self._tight(y, np.fmax(low, 0.0) if q % 2 == 0 else low, high)
        return found if q < 0 or q.is_integer() else self._defined("sqrt", base, found)

    def call(self, name: str, arguments: Sequence[Enclosed]) -> Enclosed:
        u = arguments[0]
        if name in ("min", "max"):
            sign = 1.0 if name == "max" else -1.0
            return self._largest(list(arguments), sign)
        if name == "abs":
            return self._largest([u, self.negation(u)], 1.0)
        if name == "sqr":
            return self._power(u, 2.0)
        if name == "atan2":
            whole = np.where(arguments[1].high < 0, 3.2, np.inf)  # all angles across the cut, where y = 0 and x < 0
            return self.angle(u, arguments[1], self._between(-whole, whole))
        if name == "floor":
            u = self._settled(u)
            self.undecided |= ~(np.floor(u.low) == np.floor(u.high))
        y = apply(name, u.model, (u.low, u.high))
        return self._defined(name, u, self._tight(y, *y.range()))

    def _settled(self, u: Enclosed) -> Enclosed:
        """The argument of a floor, where only rounding took it across a whole number on that side of which it is."""
        place, low, high = self.floors, u.low.copy(), u.high.copy()
        self.floors += 1
        whole = np.floor(high)
        with np.errstate(all="ignore"):
            near = np.minimum(whole - low, high - whole) < 1e-9 * (1 + np.abs(whole))
        if self.formula is None:
            return u
        for b in np.flatnonzero((np.floor(low) == whole - 1) & near):
            ends = zip(self.space.lower[b].tolist(), self.space.upper[b].tolist(), strict=True)
            value = switched(self.formula, [interval(*side) for side in ends]).floors[place]
            if value is not None:
                low[b], high[b] = max(low[b], value), min(high[b], np.nextafter(value + 1, value))
        return Enclosed(u.model, low, high)

    def _defined(self, name: str, u: Enclosed, found: Enclosed) -> Enclosed:
        """The value of a function; if strict, without bounds where u may lie outside its domain."""
        domain = natural_domain(name) if self.strict else None
        if domain is None:
            return found
        inside, whole = (u.low >= domain[0]) & (u.high <= domain[1]), np.full(self.shape, np.inf)
        return self.chosen(inside, found, self._between(-whole, whole))

    def _largest(self, values: list[Enclosed], sign: float) -> Enclosed:
        """max, or min as −max(−·)."""
        if sign < 0:
            values = [self.negation(v) for v in values]
        values = [inner for v in values for inner in (v.top or (v,))]
        low, high = (np.stack([getattr(v, end) for v in values]).max(axis=0) for end in ("low", "high"))
        good = np.all([np.isfinite(v.low) & np.isfinite(v.high) for v in values], axis=0)
        low, high = np.where(good, low, -np.inf), np.where(good, high, np.inf)  # one argument may be undefined
        top = maximum([v.model for v in values])
        top = top if good.all() else top.choose(~good, self.space.between(low, high))
        found = self._tight(top, low, high)
        found.top = tuple(values)
        return self.negation(found) if sign < 0 else found

    def where(self, condition: Truth, yes: Enclosed, no: Enclosed) -> Enclosed:
        unsure = ~(condition.yes | condition.no)
        self.undecided |= unsure
        hull = np.minimum(yes.low, no.low), np.maximum(yes.high, no.high)
        hull = np.where(condition.lost, -np.inf, hull[0]), np.where(condition.lost, np.inf, hull[1])
        return self.chosen(unsure, self._between(*hull), self.chosen(condition.yes, yes, no))

    def comparison(self, relation: str, left: Enclosed, right: Enclosed) -> Truth:
        gap = self.plus(left, self.negation(right))
        if relation in (">", ">="):
            gap, relation = self.negation(gap), "<" if relation == ">" else "<="
        lost = ~(np.isfinite(gap.low) & np.isfinite(gap.high))
        if relation == "<":
            return Truth((gap.high < 0) & ~lost, (gap.low >= 0) & ~lost, lost)
        return Truth((gap.high <= 0) & ~lost, (gap.low > 0) & ~lost, lost)

    def conjunction(self, parts: Sequence[Truth]) -> Truth:
        no = reduce(np.logical_or, [p.no for p in parts])
        lost = reduce(np.logical_or, [p.lost for p in parts]) & ~no
        return Truth(reduce(np.logical_and, [p.yes for p in parts]), no, lost)

    def complement(self, part: Truth) -> Truth:
        return Truth(part.no, part.yes, part.lost)

    def _tight(self, model: Taylor, low: np.ndarray, high: np.ndarray) -> Enclosed:
        """The value with the better of its bounds; the model gives way to them where its remainder is larger."""
        own = model.range()
        with np.errstate(all="ignore"):
            low, high = np.fmax(low, own[0]), np.fmin(high, own[1])
            low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
            lost = ~(model.r <= (high - low) / 2) | ~np.isfinite(np.abs(model.c).sum(axis=0))
        return Enclosed(model.choose(lost, self.space.between(low, high)) if lost.any() else model, low, high)


def condition_on(space: Space, condition: Condition) -> Truth:
    """Where a condition is proved true or false."""
    found: Truth = condition.tape.run(TaylorAlgebra(space, strict=True))[0]
    return found
