"""Ranges of the elementary functions on intervals with exact endpoints.

A monotone function is evaluated at the two ends, each end rounded outward. sin and cos also look for the multiples of
π/2 inside. Every range is cut to the function's known bounds (|sin| ≤ 1, exp ≥ 0, …), which rounding may overstep.
Outside the domain of a function, or across a pole, the range is UNDEFINED: nothing is clamped silently.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from .intervals import ONE, UNDEFINED, ZERO, Interval, absolute, hull, integer_power, product, rounded

Range: TypeAlias = Callable[[Interval], Interval]

_MINUS_ONE = arb(-1)
_WIDE = arb(2) ** 64


def cut(x: Interval, lo: arb | None, hi: arb | None) -> Interval:
    """The part of x between two bounds that the true range is known to keep."""
    if x is UNDEFINED:
        return x
    low = lo if lo is not None and x.lo < lo else x.lo
    high = hi if hi is not None and x.hi > hi else x.hi
    return Interval(low, high)


def _increasing(
    function: Callable[[arb], arb], lo: arb | None = None, hi: arb | None = None, least: arb | None = None
) -> Range:
    """Range of an increasing function with bounds lo, hi on the domain [least, ∞)."""

    def on(x: Interval) -> Interval:
        if x is UNDEFINED or (least is not None and x.lo < least):
            return UNDEFINED
        return cut(rounded(function(x.lo), function(x.hi)), lo, hi)

    return on


def _logarithm(x: Interval) -> Interval:
    return rounded(x.lo.log(), x.hi.log()) if x.lo > 0 else UNDEFINED


def _arcsine(x: Interval) -> Interval:
    return rounded(x.lo.asin(), x.hi.asin()) if x.lo >= -1 and x.hi <= 1 else UNDEFINED


def _arccosine(x: Interval) -> Interval:
    return cut(rounded(x.hi.acos(), x.lo.acos()), ZERO, None) if x.lo >= -1 and x.hi <= 1 else UNDEFINED


def _sigmoid(point: arb) -> arb:
    if point >= 0:
        return 1 / (1 + (-point).exp())
    growth = point.exp()
    return growth / (1 + growth)


def _hyperbolic_cosine(x: Interval) -> Interval:
    size = absolute(x)
    return UNDEFINED if size is UNDEFINED else cut(rounded(size.lo.cosh(), size.hi.cosh()), ONE, None)


def _turns(x: Interval, shift: Fraction) -> tuple[int, int] | None:
    """First and last integer k that may satisfy (k + shift)·π ∈ x; None if x is too large to tell."""
    if not (x.lo > -_WIDE and x.hi < _WIDE):
        return None
    offset = arb(shift.numerator) / shift.denominator
    first = (x.lo / arb.pi() - offset).lower().ceil().unique_fmpz()
    last = (x.hi / arb.pi() - offset).upper().floor().unique_fmpz()
    return None if first is None or last is None else (int(first), int(last))


def _wave(function: Callable[[arb], arb], shift: Fraction) -> Range:
    """Range of a wave with maxima 1 at (2k + shift)·π, minima −1 at (2k + 1 + shift)·π, monotone in between."""

    def on(x: Interval) -> Interval:
        if x is UNDEFINED:
            return x
        turns = _turns(x, shift)
        if turns is None:
            whole = Interval(_MINUS_ONE, ONE)
            return cut(rounded(function(x.lo), function(x.hi)), _MINUS_ONE, ONE) if x.lo == x.hi else whole
        first, last = turns
        if last > first:
            return Interval(_MINUS_ONE, ONE)
        ends = (function(x.lo), function(x.hi))
        span = cut(hull([rounded(ends[0], ends[0]), rounded(ends[1], ends[1])]), _MINUS_ONE, ONE)
        if first == last:
            return Interval(span.lo, ONE) if first % 2 == 0 else Interval(_MINUS_ONE, span.hi)
        return span

    return on


def _tangent(x: Interval) -> Interval:
    if x is UNDEFINED:
        return x
    turns = _turns(x, Fraction(1, 2))
    return UNDEFINED if turns is None or turns[0] <= turns[1] else rounded(x.lo.tan(), x.hi.tan())


exponential = _increasing(arb.exp, ZERO)
logarithm: Range = _logarithm
square_root = _increasing(arb.sqrt, ZERO, least=ZERO)
sine = _wave(arb.sin, Fraction(1, 2))
cosine = _wave(arb.cos, Fraction(0))

RANGES: dict[str, Range] = {
    "sin": sine,
    "cos": cosine,
    "tan": _tangent,
    "exp": exponential,
    "log": logarithm,
    "sqrt": square_root,
    "tanh": _increasing(arb.tanh, _MINUS_ONE, ONE),
    "sinh": _increasing(arb.sinh),
    "cosh": _hyperbolic_cosine,
    "atan": _increasing(arb.atan),
    "asin": _arcsine,
    "acos": _arccosine,
    "sigmoid": _increasing(_sigmoid, ZERO, ONE),
    "erf": _increasing(arb.erf, _MINUS_ONE, ONE),
    "abs": absolute,
    "sqr": lambda x: integer_power(x, 2),
}


def rational_power(x: Interval, exponent: Fraction) -> Interval:
    """x^q for a rational q that is no integer: x ≥ 0, and x > 0 if q < 0; else UNDEFINED."""
    if x is UNDEFINED or x.lo < 0 or (exponent < 0 and x.lo <= 0):
        return UNDEFINED
    power = arb(exponent.numerator) / exponent.denominator
    ends = [ZERO if end.is_zero() else end**power for end in (x.lo, x.hi)]
    return cut(rounded(*ends if exponent > 0 else reversed(ends)), ZERO, None)


def general_power(x: Interval, exponent: Interval) -> Interval:
    """exp(exponent · log x): x > 0, else UNDEFINED."""
    return exponential(product(exponent, logarithm(x)))
