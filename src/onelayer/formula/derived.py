"""What follows from the record of a function: its Taylor coefficients in balls, and with them every reading of arrays of floats.

    taylor        φ^(k)/k! on a ball, k = 0 … n, from the slope: y′ = s(u, y) gives one coefficient after the other
    values        φ at floats, within a unit in the last place: balls of as many bits as that takes
    bounds        the range on intervals                 coefficients   of all orders on intervals
    expansion     third order at centres, with the fourth derivative on intervals          spread   how far φ moves
    rectangles    values around complex rectangles, where φ is proved analytic

Arrays are read number by number, equal ones once: a thousand times slower than NumPy, and still quick enough for a search.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from flint import acb, arb, arb_series, ctx

from ..common.outward import UP_FEW
from .elementary import RANGES, crude_range
from .expression import Operators
from .functions import FUNCTIONS, NOWHERE
from .intervals import UNDEFINED, Interval
from .record import Function, Turning

BITS = 80  # of balls that are rounded to floats
LEAST = 5e-324  # what a float may lose of a smaller number
MORE_BITS = (64, 96, 160, 320, 1200, 4800)  # until 55 are right
NATIVE = ("exp", "log", "sin", "cos", "tan", "sqrt", "atan", "asin", "acos", "erf")  # flint has their series
UNKNOWN = arb("nan")
VANISHING = arb(2) ** -1080


class SeriesAlgebra(Operators[Any, bool | None]):
    """Power series in flint's balls, of u and y."""

    def __init__(self, u: Any, y: Any, order: int) -> None:
        self.given, self.order = (u, y), order

    def number(self, value: Fraction) -> Any:
        return arb_series([arb(value.numerator) / value.denominator], self.order + 1)

    def constant(self, name: str) -> Any:
        return arb_series([arb.pi() if name == "pi" else arb.const_e()], self.order + 1)

    def variable(self, index: int) -> Any:
        return self.given[index - 1]

    def quotient(self, dividend: Any, divisor: Any) -> Any:
        return dividend / divisor if divisor[0] > 0 or divisor[0] < 0 else self._unknown()

    def integer_power(self, exponent: int, base: Any) -> Any:
        power = reduce(lambda a, _: a * base, range(abs(exponent)), self.number(Fraction(1)))
        return power if exponent >= 0 else self.quotient(self.number(Fraction(1)), power)

    def call(self, name: str, arguments: Sequence[Any]) -> Any:
        u = arguments[0]
        if name in ("min", "max"):
            return reduce(
                lambda a, b: self.where(self.comparison("<" if name == "min" else ">", a, b), a, b), arguments
            )
        if name == "atan2":
            return self._unknown()
        if name in NATIVE:
            if name in ("log", "sqrt") and not u[0] > 0:
                return self._unknown()
            return getattr(u, name)()
        coefficients = taylor(FUNCTIONS[name], u[0], self.order)
        rest, found = u - u[0], self.number(Fraction(0))
        for c in reversed(coefficients):
            found = found * rest + c
        return found

    def _unknown(self) -> Any:
        return arb_series([UNKNOWN] * (self.order + 1), self.order + 1)

    def where(self, condition: bool | None, yes: Any, no: Any) -> Any:
        return self._unknown() if condition is None else yes if condition else no

    def comparison(self, relation: str, left: Any, right: Any) -> bool | None:
        below, above = bool(left[0] < right[0]), bool(left[0] > right[0])
        return (below if relation in ("<", "<=") else above) if below or above else None


def taylor(f: Function, x: arb, order: int) -> list[arb]:
    """φ^(k)/k! on x for k = 0 … order; NaN where nothing is known."""
    if not x.is_finite() or (f.domain and not f.domain.has(x)):
        return [UNKNOWN] * (order + 1)
    if f.ends and not x.is_exact():  # every derivative lies between its values at the ends
        ends = zip(taylor(f, x.lower(), order)[1:], taylor(f, x.upper(), order)[1:], strict=True)
        return [range_of(f, x), *(a.union(b) for a, b in ends)]
    if f.taylor is not None:
        return f.taylor(x, order)
    found = [range_of(f, x)]
    if f.slope == NOWHERE:
        return found + [UNKNOWN] * order
    tape, own = f.slope_formula.tape, 2 in f.slope_formula.variables
    before = ctx.cap
    try:
        for k in range(order):
            n = k if own else order - 1  # the order of the slope that can be known, and is needed
            ctx.cap = n + 1
            algebra = SeriesAlgebra(arb_series([x, 1], n + 1), arb_series(found, n + 1), n)
            slope = tape.run(algebra)[0]
            found += [slope[j] / (j + 1) for j in range(k, n + 1)]
            if not own:
                break
    finally:
        ctx.cap = before
    return found


def on_torch(f: Function, x: Any) -> Any:
    """φ of a tensor, with its slope for autograd."""
    import torch

    from .numeric import evaluate

    class ThroughBalls(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, u: Any) -> Any:
            y = torch.from_numpy(values(f, u.detach().cpu().double().numpy())).to(u)
            context.save_for_backward(u, y)
            return y

        @staticmethod
        def backward(context: Any, above: Any) -> Any:
            u, y = (t.reshape(-1) for t in context.saved_tensors)
            slope = evaluate(f.slope_formula, torch.stack([u, y], dim=1))
            return above * slope.reshape(above.shape)

    return ThroughBalls.apply(x)


def range_of(f: Function, x: arb) -> arb:
    """The range on a ball, as a ball."""
    if x.is_exact():
        return f.ball(x)
    whole = Interval(x.lower(), x.upper())
    found = crude_range(f, whole) if isinstance(f.shape, Turning) else RANGES.of(f)(whole)  # the other asks for slopes
    return found.ball() if found is not UNDEFINED else UNKNOWN


def _each(function: Callable[..., Sequence[float]], results: int, *arrays: np.ndarray) -> list[np.ndarray]:
    """The results of a function of floats at every place of the arrays; equal places once."""
    arrays = np.broadcast_arrays(*arrays)
    rows = np.stack([np.asarray(a, dtype=float).reshape(-1) for a in arrays], axis=1)
    alone, places = np.unique(rows, axis=0, return_inverse=True)
    with ctx.workprec(BITS):
        found = np.array([function(*row) for row in alone.tolist()], dtype=float).reshape(len(alone), results)
    return [found[places.reshape(-1), i].reshape(arrays[0].shape) for i in range(results)]


def _ends(x: arb | Interval, unknown: float = math.inf) -> tuple[float, float]:
    """The ends as floats, rounded outward."""
    found = x if isinstance(x, Interval) else Interval(x.lower(), x.upper())
    return (found.lower(), found.upper()) if found.is_finite() else (-unknown, unknown)


def _ball(low: float, high: float) -> arb:
    return arb(low).union(arb(high)) if math.isfinite(low) and math.isfinite(high) else UNKNOWN


def values(f: Function, x: np.ndarray) -> np.ndarray:
    """φ at floats, NaN where it is not defined."""

    def at(value: float) -> tuple[float]:
        if not math.isfinite(value) or (f.domain and not f.domain.has(value)):
            return (math.nan,)
        for bits in MORE_BITS:
            with ctx.workprec(bits):
                ball = f.ball(arb(value))
                if ball.rel_accuracy_bits() >= 55 or ball.is_zero():
                    return (float(ball),)
        return (float(ball) if ball.is_finite() and ball.rad() < VANISHING else math.nan,)  # a zero, or not well known

    return _each(at, 1, x)[0]


def bounds(f: Function, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The range on intervals; infinite where there is none. Arguments are cut to a closed domain."""
    closed = f.natural or (-math.inf, math.inf)

    def on(low: float, high: float) -> tuple[float, float]:
        low, high = max(low, closed[0]), min(high, closed[1])
        known = math.isfinite(low) and math.isfinite(high) and low <= high
        return _ends(RANGES.of(f)(Interval(arb(low), arb(high))) if known else UNDEFINED)

    least, most = _each(on, 2, low, high)
    return least, most


def coefficients(f: Function, low: np.ndarray, high: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """φ^(k)/k! on intervals for k = 0 … order, [k, …]; NaN where nothing is known."""

    def on(low: float, high: float) -> list[float]:
        return [end for c in taylor(f, _ball(low, high), order) for end in _ends(c, math.nan)]

    found = np.stack(_each(on, 2 * order + 2, low, high))
    return found[::2], found[1::2]


def expansion(
    f: Function, c: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """As `taylor.expansions` has it: coefficients at c, bounds on their sizes, max |φ⁗| on [low, high]."""

    def at(c: float, low: float, high: float) -> list[float]:
        own = taylor(f, _ball(c, c), 3)
        fourth = taylor(f, _ball(low, high), 4)[4] * 24
        sizes = [float(abs(k).upper()) + float(k.rad()) * 2.0**50 for k in own]  # inexact ones count more
        last = float(fourth.abs_upper()) if fourth.is_finite() else math.inf
        return [*(float(k.mid()) for k in own), *sizes, last * UP_FEW + 1e-300]

    *found, last = _each(at, 9, c, low, high)
    good = np.isfinite(np.stack(found)).all(axis=0) & ~np.isnan(last)
    return found[:4], found[4:], np.where(good, last, np.inf)


def spread(f: Function, x: np.ndarray, e: np.ndarray) -> np.ndarray:
    """How far φ can move when x is off by e."""

    def at(x: float, e: float) -> tuple[float]:
        if e == 0:
            return (0.0,)
        if not (math.isfinite(x) and math.isfinite(e)):
            return (math.inf,)
        slope = taylor(f, arb(x) + arb(0, e), 1)[1]
        moved = float((slope * e).abs_upper()) * UP_FEW + LEAST if slope.is_finite() else math.inf
        if f.holder and f.domain and (f.domain.has(x + e) or f.domain.has(x - e)):
            moved = min(moved, f.holder[0] * e ** f.holder[1] * UP_FEW)
        return (moved if not math.isnan(moved) else math.inf,)

    return _each(at, 1, x, e)[0]


def continued(f: Function, z: acb) -> acb:
    """φ on a complex ball around which it is proved analytic, and real on the real line; NaN elsewhere."""
    inside = f.analytic is not None and z.is_finite() and (f.domain is None or f.domain.has(z.real)) and f.analytic(z)
    return f.ball(z) if inside else acb(UNKNOWN)


def rectangles(f: Function, low: np.ndarray, high: np.ndarray, im: np.ndarray) -> list[np.ndarray]:
    """(low, high, im) of φ around rectangles symmetric about the real line; NaN where it is not proved analytic."""

    def on(low: float, high: float, im: float) -> tuple[float, float, float]:
        value = continued(f, acb(_ball(low, high), arb(0, im)) if math.isfinite(im) else acb(UNKNOWN))
        far = float(value.imag.abs_upper()) * UP_FEW + LEAST * (im > 0)
        return (*_ends(value.real, math.nan), far) if value.is_finite() else (math.nan,) * 3

    return _each(on, 3, low, high, im)
