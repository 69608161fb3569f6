"""Numbers with error bounds: a formula at a batch of points in float64, with |value − f| ≤ error for every point.

Running error analysis in NumPy: each operation carries the errors of its operands through its slope and adds its own
rounding, u = 2^−53 for + − * / and sqrt, and `ULPS` units in the last place for every other function, which is an assumption
about the libraries (they document or measure 1 to 4). Where no bound is found the error is infinite. Thousands of times
quicker than balls when there are many points.

Rounding may move an argument out of the natural domain of sqrt, asin, acos or a root. It is cut to that domain, as in
`real_balls`: the bound is on f wherever f is defined. `DefinedAlgebra` proves in addition that f is defined.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ..common.outward import UP, U
from .derived import spread
from .expression import Algebra, Condition, Formula
from .functions import FUNCTIONS, natural_domain
from .numeric import NEAR, ArrayAlgebra, evaluate, exprel
from .real_balls import holds

ULPS = 8
FUNCTION = ULPS * 2 * U
SMALLEST = 2.0**-1070  # 16 times the smallest number: covers every underflow of one operation

Pair = tuple[Any, Any]  # values and errors


class BoundedAlgebra(Algebra[Pair, Any]):
    """Values and absolute errors, as arrays over the batch."""

    def __init__(self, x: np.ndarray) -> None:
        self.plain = ArrayAlgebra(np, x)

    def number(self, value: Fraction) -> Pair:
        v = np.float64(float(value))
        return v, 0.0 if Fraction(float(v)) == value else U * abs(v) + SMALLEST

    def constant(self, name: str) -> Pair:
        v = self.plain.constant(name)
        return v, U * abs(v)

    def variable(self, index: int) -> Pair:
        return self.plain.variable(index), 0.0

    def plus(self, a: Pair, b: Pair) -> Pair:
        return _rounded(a[0] + b[0], a[1] + b[1])

    def negation(self, operand: Pair) -> Pair:
        return -operand[0], operand[1]

    def times(self, a: Pair, b: Pair) -> Pair:
        (x, ex), (y, ey) = a, b
        return _rounded(x * y, _times(np.abs(x), ey) + _times(np.abs(y), ex) + ex * ey)

    def quotient(self, dividend: Pair, divisor: Pair) -> Pair:
        (a, ea), (b, eb) = dividend, divisor
        q = a / b
        return _rounded(q, _over(ea + np.abs(q) * (1 + 2 * U) * eb, np.abs(b) - eb))

    def integer_power(self, exponent: int, base: Pair) -> Pair:
        x, e = base
        if exponent == 0:
            return np.ones_like(x), 0.0
        value = x**exponent
        if exponent > 0:
            return _called(value, _times(exponent * (np.abs(x) + e) ** (exponent - 1), e))
        return _called(value, _relative_spread(value, np.abs(x) - e, e, float(-exponent)))

    def rational_power(self, exponent: Fraction, base: Pair) -> Pair:
        x, e = base
        q = float(exponent)
        inside = np.maximum(x, 0.0) if q > 0 else x
        value = inside**q
        shift = _grown(value, U * abs(q) * np.abs(np.log(x)))  # the exponent is rounded too
        spread = _relative_spread(value, x - e, e, abs(q)) + np.where(x > e, shift, 0.0)
        if q > 0:  # near 0 both powers lie between 0 and (x + e)^q
            from_0 = np.where(x + e == 0, 0.0, (x + e) ** q * UP)
            spread = np.where(x > e, spread, np.where(x >= -e, from_0, np.inf))
        return _called(value, spread)

    def power(self, base: Pair, exponent: Pair) -> Pair:
        (a, ea), (b, eb) = base, exponent
        least = a - ea
        relative = _over((np.abs(b) + eb) * ea, least) + (np.abs(np.log(a)) + 1e-15) * eb
        value = a**b
        return _called(value, np.where(least > 0, _grown(value, relative), np.inf))

    def call(self, name: str, arguments: Sequence[Pair]) -> Pair:
        values = [v for v, _ in arguments]
        if domain := natural_domain(name):  # NaN stays NaN
            values = [np.minimum(np.maximum(values[0], domain[0]), domain[1])]
        y = self.plain.call(name, values)
        if name in ("min", "max"):
            return y, reduce(np.maximum, [e for _, e in arguments])
        if name == "atan2":
            return _called(y, _turn(*arguments))
        x, e = arguments[0]
        if name == "abs":
            return y, e
        if name == "sqr":
            return self.times(arguments[0], arguments[0])
        if name == "sqrt":
            return _rounded(y, _of_root(x, e))
        if name in SPREADS:
            return _called(y, SPREADS[name](x, y, e))
        f = FUNCTIONS[name]
        return _called(y, f.steepest * e if math.isfinite(f.steepest) else spread(f, *np.broadcast_arrays(x, e)))

    def where(self, condition: Pair, yes: Pair, no: Pair) -> Pair:
        truth, sure = condition
        value = np.where(truth, yes[0], no[0])
        error = np.where(truth, yes[1], no[1])
        either = np.maximum(yes[1], no[1]) + np.abs(yes[0] - no[0])
        return value, np.where(sure, error, either)

    def comparison(self, relation: str, left: Pair, right: Pair) -> Pair:
        truth = self.plain.comparison(relation, left[0], right[0])
        exact = np.equal(left[1], 0) & np.equal(right[1], 0)
        return truth, exact | (np.abs(left[0] - right[0]) > (left[1] + right[1]) * UP)

    def conjunction(self, parts: Sequence[Pair]) -> Pair:
        return reduce(np.logical_and, [t for t, _ in parts]), reduce(np.logical_and, [s for _, s in parts])

    def complement(self, part: Pair) -> Pair:
        return np.logical_not(part[0]), part[1]


def _times(slope: Any, e: Any) -> Any:
    """slope·e, with 0 where e is 0 (an infinite slope at an exact argument costs nothing)."""
    return np.where(np.equal(e, 0), 0.0, slope * e)


def _over(e: Any, least: Any) -> Any:
    """e/least, infinite where that is not positive."""
    return np.where(least > 0, e / np.where(least > 0, least, 1.0), np.inf)


def _relative_spread(value: Any, least: Any, e: Any, exponent: float) -> Any:
    """How far x^±exponent moves when x > 0 is off by e, x − e = least: a factor (1 + e/least)^exponent at most.

    Relative on purpose: the slope itself can underflow where the value times a large constant does not.
    """
    moved = _grown(value, exponent * np.log1p(_over(e, least)))
    return np.where(least > 0, np.where(np.equal(e, 0), 0.0, moved), np.inf)


def _grown(value: Any, relative: Any) -> Any:
    """How far a number may be moved by a factor e^±relative; `value` is what was computed, and may have underflowed."""
    return (np.abs(value) * (1 + FUNCTION) + SMALLEST) * np.expm1(relative)


def _rounded(value: Any, error: Any, units: float = U) -> Pair:
    return value, error + units * np.abs(value) + SMALLEST


def _called(value: Any, error: Any) -> Pair:
    return _rounded(value, error, FUNCTION)


def _of_arc(x: Any, y: Any, e: Any) -> Any:
    left = 1 - np.square(np.abs(x) + e) * (1 + 4 * U)
    moved = _times(_over(1.0, np.sqrt(np.maximum(left, 0.0))), e)
    moved = np.minimum(moved, np.pi * np.sqrt(e / 2))  # π√(e/2) ≥ acos(1 − e), the most anywhere
    return np.where(np.abs(x) - e <= 1, moved, np.inf)


def _of_root(x: Any, e: Any) -> Any:
    spread = np.where(x > e, _over(e, np.sqrt(np.maximum(x - e, 0.0))), np.sqrt(2 * np.abs(e)))
    return np.where(x >= -e, np.where(np.equal(e, 0), 0.0, spread), np.inf)


def _of_difference(x: Any, y: Any, parts: Any) -> Any:
    """What rounding does to sinc′ or exprel′: a sum near 0, elsewhere a difference of such parts divided by x."""
    return np.where(np.abs(x) < NEAR, np.abs(y), parts / np.abs(x)) * (2 * FUNCTION) * UP


def _of_sinc1(x: Any, y: Any, e: Any) -> Any:  # |sinc″| ≤ 1/3
    return (_of_difference(x, y, 1 + 1 / np.abs(x)) + e / 3) * UP


def _of_exprel1(x: Any, y: Any, e: Any) -> Any:  # 0 < exprel″ < exprel′, which grows like e^e
    own = _of_difference(x, y, np.exp(x) + exprel(np, x))
    return (own + (np.abs(y) + own + SMALLEST) * e * np.exp(e)) * UP


# how far f(x) = y can move when x is off by e; elsewhere it is f.steepest times that, or found through balls
SPREADS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "exp": lambda x, y, e: _grown(y, e),
    "expm1": lambda x, y, e: _grown(np.exp(x), e),
    # exprel′ ≤ exprel, at x + e e^e times as much
    "exprel": lambda x, y, e: (y * (1 + FUNCTION) + SMALLEST) * e * np.exp(e),
    **dict.fromkeys(("sinh", "cosh"), lambda x, y, e: _times(np.cosh(np.abs(x) + e) * (1 + FUNCTION), e)),
    "log": lambda x, y, e: _over(e, x - e),
    "log1p": lambda x, y, e: _over(e, (1 + x) * (1 - 4 * U) - e),
    "tan": lambda x, y, e: _times(_over(1.0, np.square(np.maximum(np.abs(np.cos(x)) - e - FUNCTION, 0.0))), e),
    **dict.fromkeys(("asin", "acos"), _of_arc),
    # |∛a − ∛b| ≤ 4^(1/3)·|a − b|^(1/3)
    "cbrt": lambda x, y, e: np.where(np.abs(x) > e, _relative_spread(y, np.abs(x) - e, e, 1 / 3), 1.6 * np.cbrt(e)),
    "floor": lambda x, y, e: np.maximum(np.floor(x + e * UP) - y, y - np.floor(x - e * UP)),
    "sinc1": _of_sinc1,
    "exprel1": _of_exprel1,
}


def _turn(y: Pair, x: Pair) -> Any:
    """How far the angle of the point (x, y) can move: π/2·d/r at a distance r from 0, if the point is off by d < r.

    Across the cut, y = 0 and x < 0, it can jump by 2π.
    """
    (v, ev), (h, eh) = y, x
    off, away = np.hypot(ev, eh) * UP, np.hypot(v, h)
    jumps = (h - eh <= 0) & (np.abs(v) <= ev) & (ev > 0)
    moved = np.where(off > 0, np.pi / 2 * off / np.where(off < away, away, 1.0), 0.0)
    return np.where(off < away, np.where(jumps, 6.3, moved), np.inf)


def evaluate_bounded(
    formula: Formula, x: Float[np.ndarray, "point coordinate"]
) -> tuple[Float[np.ndarray, "point out"], Float[np.ndarray, "point out"]]:
    """(values, errors) of all outputs at every row of x. A value that is not finite has an infinite error."""
    with np.errstate(all="ignore"):
        return _stacked(formula.tape.run(BoundedAlgebra(x)), (len(x),))


def evaluate_defined(formula: Formula, x: Float[np.ndarray, "point coordinate"]) -> Float[np.ndarray, "point out"]:
    """f at every row of x, as `evaluate`; where only rounding left the domain of a root or an arc, the value it hides."""
    values: np.ndarray = evaluate(formula, x)
    rows = np.flatnonzero(np.isnan(values).any(axis=1))
    if len(rows):
        found, errors = evaluate_bounded(formula, x[rows])
        values[rows] = np.where(np.isnan(values[rows]) & np.isfinite(errors), found, values[rows])
    return values


class DefinedAlgebra(BoundedAlgebra):
    """Values and errors; the error is infinite also where rounding hides whether a root or an arc has a value."""

    def rational_power(self, exponent: Fraction, base: Pair) -> Pair:
        value, error = super().rational_power(exponent, base)
        return value, np.where(base[0] >= base[1], error, np.inf)

    def call(self, name: str, arguments: Sequence[Pair]) -> Pair:
        value, error = super().call(name, arguments)
        if domain := natural_domain(name):
            (x, e), (low, high) = arguments[0], domain
            inside = np.where(np.equal(e, 0), (x >= low) & (x <= high), (x - e > low) & (x + e < high))
            error = np.where(inside, error, np.inf)
        return value, error


def proved_at(condition: Condition, x: Float[np.ndarray, "point coordinate"]) -> Bool[np.ndarray, " point"]:
    """The points at which a condition is proved to hold; close calls are decided in balls."""
    with np.errstate(all="ignore"):
        truth, sure = (np.broadcast_to(part, (len(x),)) for part in condition.tape.run(DefinedAlgebra(x))[0])
    proved = truth & sure
    for i in np.flatnonzero(~sure):
        proved[i] = holds(condition, x[i].tolist()) is True
    return proved


class GridAlgebra(BoundedAlgebra):
    """Values and errors on product grids: what depends on some of the coordinates only is computed along those only."""

    def __init__(self, axes: Sequence[np.ndarray], constants: np.ndarray | None = None) -> None:
        self.plain, self.axes, self.constants = ArrayAlgebra(np, axes[0]), axes, constants

    def variable(self, index: int) -> Pair:
        D = len(self.axes)
        if self.constants is not None and index > D:
            return self.constants[:, index - 1 - D].reshape(-1, *(1,) * D), 0.0
        own = self.axes[index - 1]
        shape = [own.shape[1] if i == index - 1 else 1 for i in range(D)]
        return own.reshape(-1, *shape), 0.0


def evaluate_bounded_on_axes(
    formula: Formula,
    axes: Sequence[Float[np.ndarray, "grid point"]],
    constants: Float[np.ndarray, "grid constant"] | None = None,
) -> tuple[Float[np.ndarray, "grid *node out"], Float[np.ndarray, "grid *node out"]]:
    """(values, errors) at all points of product grids given by their axes, one array of points per coordinate.

    Variables after the coordinates have the same value all over a grid: its `constants`.
    """
    shape = (len(axes[0]), *(own.shape[1] for own in axes))
    with np.errstate(all="ignore"):
        return _stacked(formula.tape.run(GridAlgebra(axes, constants)), shape)


def _stacked(pairs: list[Pair], shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    values = np.stack([np.broadcast_to(v, shape) for v, _ in pairs], axis=-1).astype(np.float64)
    errors = np.stack([np.broadcast_to(e, shape) for _, e in pairs], axis=-1) * UP
    good = np.isfinite(values) & np.isfinite(errors)
    return values, np.where(good, errors, np.inf)
