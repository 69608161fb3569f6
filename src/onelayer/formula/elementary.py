"""Ranges of the elementary functions on intervals with exact endpoints.

A monotone function is evaluated at the two ends, each end rounded outward. sin and cos also look for the multiples of
π/2 inside. Every range is cut to the function's known bounds (|sin| ≤ 1, exp ≥ 0, …), which rounding may overstep.
Outside the domain of a function, or across a pole, the range is UNDEFINED: nothing is clamped silently. `natural` is the
part of an argument that lies in the closed domain of sqrt, asin or acos, for those who speak only of where f is defined.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from .intervals import (
    ONE,
    UNDEFINED,
    ZERO,
    Interval,
    absolute,
    hull,
    integer_power,
    negation,
    product,
    quotient,
    rounded,
    total,
)

Range: TypeAlias = Callable[[Interval], Interval]

_MINUS_ONE = arb(-1)
_WIDE = arb(2) ** 64
_TURN = arb(4.49)  # sinc decreases up to 4.4934…, where it is −0.21723…
_SINC_LEAST = arb(-0.21724)
_STEEPEST = arb(0.43619)  # of sinc
NATURAL: dict[str, tuple[arb | None, arb | None]] = {
    "sqrt": (ZERO, None),
    "asin": (_MINUS_ONE, ONE),
    "acos": (_MINUS_ONE, ONE),
}


def natural(name: str, x: Interval) -> Interval:
    """The part of x in the closed domain of a function; x itself where there is none, or no such function."""
    lo, hi = NATURAL.get(name, (None, None))
    outside = x is UNDEFINED or (lo is not None and x.hi < lo) or (hi is not None and x.lo > hi)
    return x if outside else cut(x, lo, hi)


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


def _sigmoid(point: arb) -> arb:
    if point >= 0:
        return 1 / (1 + (-point).exp())
    growth = point.exp()
    return growth / (1 + growth)


def meet(parts: list[Interval]) -> Interval:
    """What several enclosures of the same thing leave; UNDEFINED if there are none."""
    known = [part for part in parts if part is not UNDEFINED]
    if not known:
        return UNDEFINED
    lo, hi = known[0].lo, known[0].hi
    for part in known[1:]:
        lo, hi = part.lo if part.lo > lo else lo, part.hi if part.hi < hi else hi
    return Interval(lo, hi)


def _cardinal_sine(x: Interval) -> Interval:
    """sinc: even, decreasing up to its first minimum, sin(u)/u beyond."""
    size = absolute(x)
    if size is UNDEFINED:
        return UNDEFINED
    parts = []
    if size.lo <= _TURN:
        end = size.hi if size.hi < _TURN else _TURN
        parts.append(cut(rounded(end.sinc(), size.lo.sinc()), _SINC_LEAST, ONE))
    if size.hi > _TURN:
        far = cut(size, _TURN, None)
        parts.append(cut(quotient(sine(far), far), _SINC_LEAST, ONE))
    return hull(parts)


def cardinal_slope(x: Interval) -> Interval:
    """sinc′(u) = −u/3·₀F₁(5/2; −u²/4), |sinc″| ≤ 1/3, and sinc′(u) = −u·∫t² sinc(tu)dt over [0, 1] near 0."""
    if x is UNDEFINED:
        return x
    c = x.ball().mid()
    centre = -c / 3 * (-c * c / 4).hypgeom_0f1(arb(5) / 2)
    reach = (x.hi - c).max(c - x.lo) / 3
    mean = _cardinal_sine(Interval(ZERO, absolute(x).hi))
    third = product(rounded(ONE / 3, ONE / 3), mean)
    near = negation(product(x, third))
    return cut(meet([rounded(centre - reach, centre + reach), near]), -_STEEPEST, _STEEPEST)


def _relative_exponential(point: arb) -> arb:
    return ONE if point.is_zero() else point.expm1() / point


def _cube_root(point: arb) -> arb:
    return point if point.is_zero() else point.root(3) if point > 0 else -(-point).root(3)


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
exprel_slope = _increasing(lambda x: x.hypgeom_1f1(2, 3) / 2, ZERO)  # ∫t e^(tx)dt over [0, 1]
logarithm: Range = lambda x: rounded(x.lo.log(), x.hi.log()) if x.lo > 0 else UNDEFINED  # noqa: E731
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
    "asin": lambda x: rounded(x.lo.asin(), x.hi.asin()) if x.lo >= -1 and x.hi <= 1 else UNDEFINED,
    "acos": lambda x: cut(rounded(x.hi.acos(), x.lo.acos()), ZERO, None) if x.lo >= -1 and x.hi <= 1 else UNDEFINED,
    "sigmoid": _increasing(_sigmoid, ZERO, ONE),
    "erf": _increasing(arb.erf, _MINUS_ONE, ONE),
    "expm1": _increasing(arb.expm1, _MINUS_ONE),
    "log1p": lambda x: rounded(x.lo.log1p(), x.hi.log1p()) if x.lo > _MINUS_ONE else UNDEFINED,
    "softplus": _increasing(lambda x: x + (-x).exp().log1p() if x > 0 else x.exp().log1p(), ZERO),
    "sinc": _cardinal_sine,
    "exprel": _increasing(_relative_exponential, ZERO),
    "cbrt": _increasing(_cube_root),
    "abs": absolute,
    "sqr": lambda x: integer_power(x, 2),
}

SLOPE_RANGES: dict[str, Range] = {"sinc": cardinal_slope, "exprel": exprel_slope}


def rational_power(x: Interval, exponent: Fraction) -> Interval:
    """x^q for a rational q that is no integer: x ≥ 0, and x > 0 if q < 0; else UNDEFINED."""
    if x is UNDEFINED or x.lo < 0 or (exponent < 0 and x.lo <= 0):
        return UNDEFINED
    power = arb(exponent.numerator) / exponent.denominator
    ends = [ZERO if end.is_zero() else end**power for end in (x.lo, x.hi)]
    return cut(rounded(*ends if exponent > 0 else reversed(ends)), ZERO, None)


def angle(y: Interval, x: Interval) -> Interval:
    """atan2(y, x): the angle of (x, y); all angles across its cut, where y = 0 and x < 0; UNDEFINED around (0, 0)."""
    if y is UNDEFINED or x is UNDEFINED:
        return UNDEFINED
    half_turn = rounded(arb.pi() / 2, arb.pi() / 2)
    if x.lo > 0:
        return RANGES["atan"](quotient(y, x))
    if y.lo > 0 or y.hi < 0:
        return total([half_turn if y.lo > 0 else negation(half_turn), negation(RANGES["atan"](quotient(x, y)))])
    if x.hi < 0 and y.lo >= 0:
        return total([half_turn, half_turn, RANGES["atan"](quotient(y, x))])
    whole = rounded(arb.pi(), arb.pi()).hi
    return Interval(-whole, whole) if x.hi < 0 else UNDEFINED


def general_power(x: Interval, exponent: Interval) -> Interval:
    """exp(exponent · log x): x > 0, else UNDEFINED."""
    return exponential(product(exponent, logarithm(x)))
