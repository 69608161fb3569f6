"""Ranges of the elementary functions on intervals with exact endpoints.

They follow from the shape in a function's record: a monotone function is evaluated at the two ends, each end rounded outward;
sin and cos also look for the multiples of π/2 inside. Every range is cut to the function's known bounds (|sin| ≤ 1, exp ≥ 0, …).
Outside the domain of a function, or across a pole, the range is UNDEFINED: nothing is clamped silently. `natural` is the
part of an argument that lies in the closed domain of sqrt, asin or acos, for those who speak only of where f is defined.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from flint import arb

from . import record as facts
from .functions import natural_domain
from .intervals import ONE, UNDEFINED, ZERO, Interval, hull, rounded, total
from .record import Function, Readings

Range: TypeAlias = Callable[[Interval], Interval]

_MINUS_ONE = arb(-1)
_WIDE = arb(2) ** 64
_TURN = arb(4.49)  # sinc decreases up to 4.4934…, where it is −0.21723…
_SINC_LEAST = arb(-0.21724)
_STEEPEST = arb(0.43619)


def natural(name: str, x: Interval) -> Interval:
    """The part of x in the closed domain of a function; x itself where there is none, or no such function."""
    domain = natural_domain(name)
    if domain is None or x is UNDEFINED or x.hi < domain[0] or x.lo > domain[1]:
        return x
    return cut(x, *map(_bound, domain))


def cut(x: Interval, lo: arb | None, hi: arb | None) -> Interval:
    """The part of x between two bounds that the true range is known to keep."""
    if x is UNDEFINED:
        return x
    low = lo if lo is not None and x.lo < lo else x.lo
    high = hi if hi is not None and x.hi > hi else x.hi
    return Interval(low, high)


def meet(parts: list[Interval]) -> Interval:
    """What several enclosures of the same thing leave; UNDEFINED if there are none."""
    known = [part for part in parts if part is not UNDEFINED]
    return Interval(max([x.lo for x in known]), min([x.hi for x in known])) if known else UNDEFINED


def _bound(end: float | None) -> arb | None:
    return None if end is None or math.isinf(end) else arb(end)


def _known_ends(f: Function) -> tuple[arb | None, arb | None]:
    return _bound(getattr(f.shape, "least", None)), _bound(getattr(f.shape, "most", None))


def _between(f: Function, first: arb, last: arb, rises: bool) -> Interval:
    """The range between two arguments between which φ is monotone."""
    low, high = (first, last) if rises else (last, first)
    return rounded(f.ball(low), f.ball(high))


def _valley(f: Function, shape: facts.Valley, x: Interval) -> Interval:
    if x.hi <= shape.left or x.lo >= shape.right:
        return _between(f, x.lo, x.hi, bool(x.lo >= shape.right))
    ends = [rounded(value, value) for value in (f.ball(x.lo), f.ball(x.hi))]
    return UNDEFINED if UNDEFINED in ends else Interval(arb(shape.least), hull(ends).hi)


def _turning(f: Function, x: Interval) -> Interval:
    """What a ball gives, or the mean value form of second order; between the ends where the slope keeps its sign."""
    from .derived import taylor

    crude = crude_range(f, x)
    if x.lo == x.hi:
        return crude
    c = x.ball().mid()
    reach = x.ball() - c
    at, (around, _, bend) = taylor(f, c, 1), taylor(f, x.ball(), 2)
    crude = meet([crude, rounded(around, around)])
    slope = at[1] + 2 * bend * reach
    if slope > 0 or slope < 0:
        return cut(_between(f, x.lo, x.hi, bool(slope > 0)), *_known_ends(f))
    value = at[0] + (at[1] + bend * reach) * reach
    return cut(meet([crude, rounded(value, value)]), *_known_ends(f))


def crude_range(f: Function, x: Interval) -> Interval:
    """What balls and known ends give, without a look at slopes."""
    least, most = _known_ends(f)
    value = f.ball(x.lo if x.lo == x.hi else x.ball())
    if not value.is_finite() and least is not None and most is not None:
        return Interval(least, most)
    return cut(rounded(value, value), least, most)


def _cardinal_sine(x: Interval) -> Interval:
    """sinc: even, decreasing up to its first minimum, sin(u)/u beyond."""
    size, parts = abs(x), []
    if size.lo <= _TURN:
        end = size.hi if size.hi < _TURN else _TURN
        parts.append(cut(rounded(end.sinc(), size.lo.sinc()), _SINC_LEAST, ONE))
    if size.hi > _TURN:
        far = cut(size, _TURN, None)
        parts.append(cut(RANGES["sin"](far) / far, _SINC_LEAST, ONE))
    return hull(parts)


def _cardinal_slope(x: Interval) -> Interval:
    """sinc′(u) = −u/3·₀F₁(5/2; −u²/4), |sinc″| ≤ 1/3, and sinc′(u) = −u·∫t² sinc(tu)dt over [0, 1] near 0."""
    c = x.ball().mid()
    centre = -c / 3 * (-c * c / 4).hypgeom_0f1(arb(5) / 2)
    reach = (x.hi - c).max(c - x.lo) / 3
    mean = _cardinal_sine(Interval(ZERO, abs(x).hi))
    near = -(x * (rounded(ONE / 3, ONE / 3) * mean))
    return cut(meet([rounded(centre - reach, centre + reach), near]), -_STEEPEST, _STEEPEST)


def _turns(x: Interval, shift: Fraction) -> tuple[int, int] | None:
    """First and last integer k that may satisfy (k + shift)·π ∈ x; None if x is too large to tell."""
    if not (x.lo > -_WIDE and x.hi < _WIDE):
        return None
    offset = arb(shift.numerator) / shift.denominator
    first = (x.lo / arb.pi() - offset).lower().ceil().unique_fmpz()
    last = (x.hi / arb.pi() - offset).upper().floor().unique_fmpz()
    return None if first is None or last is None else (int(first), int(last))


def _wave(f: Function, shift: Fraction, x: Interval) -> Interval:
    """Maxima 1 at (2k + shift)·π, minima −1 at (2k + 1 + shift)·π, monotone in between."""
    turns = _turns(x, shift)
    if turns is None:
        return cut(rounded(f.ball(x.lo), f.ball(x.hi)), _MINUS_ONE, ONE) if x.lo == x.hi else Interval(_MINUS_ONE, ONE)
    first, last = turns
    if last > first:
        return Interval(_MINUS_ONE, ONE)
    ends = (f.ball(x.lo), f.ball(x.hi))
    span = cut(hull([rounded(ends[0], ends[0]), rounded(ends[1], ends[1])]), _MINUS_ONE, ONE)
    if first == last:
        return Interval(span.lo, ONE) if first % 2 == 0 else Interval(_MINUS_ONE, span.hi)
    return span


def _tangent(f: Function, x: Interval) -> Interval:
    turns = _turns(x, Fraction(1, 2))
    return UNDEFINED if turns is None or turns[0] <= turns[1] else _between(f, x.lo, x.hi, True)


def _by_shape(f: Function) -> Range:
    """The range on an interval inside the domain."""
    least, most = _known_ends(f)
    match f.shape:
        case facts.Monotone(rises=rises):
            return lambda x: cut(_between(f, x.lo, x.hi, rises), least, most)
        case facts.Even():
            return lambda x: cut(_between(f, abs(x).lo, abs(x).hi, True), least, None)
        case facts.Valley() as valley:
            return partial(_valley, f, valley)
        case facts.Pole():
            return lambda x: _between(f, x.lo, x.hi, bool(x.lo > 0)) if x.lo > 0 or x.hi < 0 else UNDEFINED
        case facts.Wave(phase):
            return partial(_wave, f, Fraction(1, 2) - Fraction(phase))
        case facts.BetweenPoles():
            return partial(_tangent, f)
        case facts.Turning():
            return partial(_turning, f)


_OWN: dict[str, Range] = {  # sharper than by shape
    "sinc": _cardinal_sine,
    "sinc1": _cardinal_slope,
    "abs": abs,
    "sqr": lambda x: x**2,
}


def _where_defined(f: Function) -> Range:
    """The range by the shape of a function; UNDEFINED beyond its domain."""
    inside = _OWN.get(f.name) or _by_shape(f)
    domain = f.domain

    def on(x: Interval) -> Interval:
        if x is UNDEFINED or (domain and not (domain.has(x.lo) and domain.has(x.hi))):
            return UNDEFINED
        return inside(x)

    return on


RANGES = Readings(_where_defined)


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
        return RANGES["atan"](y / x)
    if y.lo > 0 or y.hi < 0:
        return total([half_turn if y.lo > 0 else -half_turn, -RANGES["atan"](x / y)])
    if x.hi < 0 and y.lo >= 0:
        return total([half_turn, half_turn, RANGES["atan"](y / x)])
    whole = rounded(arb.pi(), arb.pi()).hi
    return Interval(-whole, whole) if x.hi < 0 else UNDEFINED
