"""Taylor coefficients of a formula along every coordinate, enclosed on many boxes at once.

On a box x_i = centre_i + half_i·t_i, t ∈ [−1, 1]^D, the coefficient of order j along coordinate i is half_i^j ∂_i^j f/j!.
`axis_coefficients` encloses it over the whole box, by interval arithmetic on series (power series of the functions by
their differential equations). It is 0 where f is a polynomial of lower degree in x_i. A finite coefficient of order j
proves that f is j times differentiable along x_i on the box. That of order 0 is a range of f where f is defined: arguments of
sqrt, asin, acos and roots are cut to the domain of the function, as in `bounds`.

A series is (low, high), both [order + 1, coordinate, box]; coefficients beyond its order are 0. Sums of products are
widened by `SLIP` relative to the sizes of their terms, which covers their rounding.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from ..expression import Formula
from ..tape import Algebra
from .bounds import BOUNDS, Bounds, power_bounds
from .moments import MOMENTS
from .series import TINY

SLIP = 1e-14
Series: TypeAlias = tuple[np.ndarray, np.ndarray]
Coefficients: TypeAlias = Callable[
    [list[Bounds], int], Bounds
]  # from coefficients 0 … j of y that of order j of something


def _out(low: Any, high: Any, size: Any) -> Bounds:
    return low - SLIP * size - TINY, high + SLIP * size + TINY


def _times(x: Bounds, y: Bounds) -> Bounds:
    """The product of intervals, not yet rounded outward."""
    ends = x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1]
    return reduce(np.minimum, ends), reduce(np.maximum, ends)


def _total(low: np.ndarray, high: np.ndarray) -> Bounds:
    """The sum along the first axis, outward."""
    return _out(low.sum(axis=0), high.sum(axis=0), np.maximum(np.abs(low), np.abs(high)).sum(axis=0))


def _convolved(x: Series, y: Series, j: int, first: int = 0, last: int | None = None, weighted: bool = False) -> Bounds:
    """Σ_i x_i y_{j−i} over i from `first` to `last`; with a factor i if `weighted`."""
    i0 = max(first, j - len(y[0]) + 1)
    i1 = min(j if last is None else last, len(x[0]) - 1, j)
    if i1 < i0:
        zero = np.zeros(np.broadcast_shapes(x[0].shape[1:], y[0].shape[1:]))
        return zero, zero
    mine, other = slice(i0, i1 + 1), slice(j - i1, j - i0 + 1)
    low, high = _times((x[0][mine], x[1][mine]), (y[0][other][::-1], y[1][other][::-1]))
    if weighted:
        factor = np.arange(i0, i1 + 1.0).reshape(-1, *[1] * (low.ndim - 1))
        low, high = low * factor, high * factor
    return _total(low, high)


def _stacked(coefficients: Sequence[Bounds]) -> Series:
    shape = np.broadcast_shapes(*(c[0].shape for c in coefficients))
    low, high = (np.stack([np.broadcast_to(c[end], shape) for c in coefficients]) for end in (0, 1))
    return low, high


def _padded(coefficients: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([coefficients, np.zeros((n - len(coefficients), *coefficients.shape[1:]))])


def _sum(x: Series, y: Series) -> Series:
    n = max(len(x[0]), len(y[0]))
    low, high = (_padded(x[end], n) + _padded(y[end], n) for end in (0, 1))
    found = _out(low, high, np.maximum(np.abs(low), np.abs(high)))
    nothing = (low == 0) & (high == 0)
    return np.where(nothing, 0.0, found[0]), np.where(nothing, 0.0, found[1])


def _first(x: Series) -> Bounds:
    return x[0][0], x[1][0]


def _product(x: Series, y: Series, order: int) -> Series:
    n = min(len(x[0]) + len(y[0]) - 2, order)
    return _stacked([_convolved(x, y, j) for j in range(n + 1)])


def _with_range(x: Series, known: Bounds) -> Series:
    """The series with a better zeroth coefficient."""
    low, high = x[0].copy(), x[1].copy()
    low[0], high[0] = np.fmax(low[0], known[0]), np.fmin(high[0], known[1])
    return low, high


def _inverse(x: Bounds) -> Bounds:
    return power_bounds(x[0], x[1], -1.0)


def _quotient(x: Series, y: Series, order: int) -> Series:
    """q with q y = x: q_j = (x_j − Σ_{i<j} q_i y_{j−i})/y_0."""
    below = _inverse(_first(y))
    n = order if len(y[0]) > 1 else len(x[0]) - 1
    found: list[Bounds] = []
    for j in range(n + 1):
        above = (x[0][j], x[1][j]) if j < len(x[0]) else (np.zeros(1), np.zeros(1))
        if found:
            taken = _convolved(_stacked(found), y, j, 0, j - 1)
            low, high = above[0] - taken[1], above[1] - taken[0]
            above = _out(low, high, np.abs(low) + np.abs(high) + np.abs(taken[0]) + np.abs(taken[1]))
        low, high = _times(above, below)
        found.append(_out(low, high, np.maximum(np.abs(low), np.abs(high))))
    return _stacked(found)


def _integrated(u: Series, start: Bounds, slope: Coefficients, order: int) -> Series:
    """y with y_0 = start and y' = slope(y)·u': j y_j = Σ_{i≥1} i u_i slope_{j−i}."""
    y: list[Bounds] = [start]
    slopes: list[Bounds] = []
    for j in range(1, order + 1):
        slopes.append(slope(y, j - 1))
        low, high = _convolved(u, _stacked(slopes), j, first=1, weighted=True)
        y.append(_out(low / j, high / j, (np.abs(low) + np.abs(high)) / j))
    return _stacked(y)


def _square_slope(constant: float, linear: float, square: float) -> Coefficients:
    """The coefficients of constant + linear·y + square·y²."""

    def on(y: list[Bounds], j: int) -> Bounds:
        s = _stacked(y)
        low, high = _convolved(s, s, j)
        if j == 0:
            low, high = power_bounds(s[0][0], s[1][0], 2.0)
        low, high = (square * low, square * high) if square > 0 else (square * high, square * low)
        low, high = low + linear * s[0][j], high + linear * s[1][j]
        low, high = (low + constant, high + constant) if j == 0 else (low, high)
        return _out(low, high, 1 + np.abs(low) + np.abs(high))

    return on


def _known(d: Series) -> Coefficients:
    """The coefficients of a series that is there already."""
    zero = np.zeros(1)
    return lambda y, j: (d[0][j], d[1][j]) if j < len(d[0]) else (zero, zero)


def _pair(u: Series, first: Bounds, second: Bounds, sign: float, order: int) -> tuple[Series, Series]:
    """(y, z) with y' = z u', z' = sign·y u': sine and cosine, or the hyperbolic ones."""
    y, z = [first], [second]
    for j in range(1, order + 1):
        rows = []
        for other, factor in ((z, 1.0), (y, sign)):
            low, high = _convolved(u, _stacked(other), j, first=1, weighted=True)
            low, high = (low, high) if factor > 0 else (-high, -low)
            rows.append(_out(low / j, high / j, (np.abs(low) + np.abs(high)) / j))
        y.append(rows[0])
        z.append(rows[1])
    return _stacked(y), _stacked(z)


def _power(u: Series, q: float, start: Bounds, order: int) -> Series:
    """y = u^q from u y' = q u' y: j u_0 y_j = Σ_{i≥1} (q i − j + i) u_i y_{j−i}, q rounded."""
    below, y = _inverse(_first(u)), [start]
    for j in range(1, order + 1):
        low: Any = 0.0
        high: Any = 0.0
        size: Any = 0.0
        for i in range(1, min(j, len(u[0]) - 1) + 1):
            factor = q * i - j + i
            a, b = _times((u[0][i], u[1][i]), y[j - i])
            a, b = (factor * a, factor * b) if factor > 0 else (factor * b, factor * a)
            terms = (abs(q) * i + j + i) * np.maximum(*(np.abs(t) for t in _times((u[0][i], u[1][i]), y[j - i])))
            low, high, size = low + a, high + b, size + terms
        low, high = _times(_out(low / j, high / j, size), below)
        y.append(_out(low, high, np.maximum(np.abs(low), np.abs(high))))
    return _stacked(y)


def _composed(u: Series, coefficients: Bounds, order: int) -> Series:
    """φ(u) from its own Taylor coefficients [k, …] on the range of u: Σ_k φ_k (u − u_0)^k, by Horner."""
    swing = u[0].copy(), u[1].copy()
    swing[0][0] = swing[1][0] = 0.0
    rows = [_stacked([(coefficients[0][k], coefficients[1][k])]) for k in range(order + 1)]
    found = rows.pop()
    while rows:
        found = _sum(_product(found, swing, order), rows.pop())
    return found


def _narrowed(x: Series, y: Series) -> Series:
    """The coefficients that lie in both; one of the two may be unknown."""
    return np.fmax(x[0], y[0]), np.fmin(x[1], y[1])


class AxisAlgebra(Algebra[Series, Any]):
    """Series along all coordinates, up to an order; truth values are (true, false) masks. `lost`: where one has no range."""

    key: Hashable = None

    def __init__(self, lower: np.ndarray, upper: np.ndarray, half: np.ndarray, order: int) -> None:
        self.lower, self.upper, self.half, self.order = lower, upper, half, order
        self.lost = np.zeros(len(lower), dtype=bool)

    def _kept(self, x: Series) -> Series:
        self.lost = self.lost | ~(np.isfinite(x[0][0]) & np.isfinite(x[1][0])).all(axis=0)
        return x

    def _constant(self, v: float, error: float) -> Series:
        return np.full((1, 1, 1), v - error), np.full((1, 1, 1), v + error)

    def number(self, value: Fraction) -> Series:
        v = float(value)
        return self._constant(v, 0.0 if Fraction(v) == value else SLIP * abs(v) + TINY)

    def constant(self, name: str) -> Series:
        return self._constant(math.pi if name == "pi" else math.e, SLIP)

    def variable(self, index: int) -> Series:
        i, (b, D) = index - 1, self.lower.shape
        low, high = np.zeros((2, D, b)), np.zeros((2, D, b))
        low[0], high[0] = self.lower[:, i], self.upper[:, i]
        low[1, i], high[1, i] = self.half[:, i] * (1 - SLIP), self.half[:, i]
        return low, high

    def sum(self, terms: Sequence[Series]) -> Series:
        return self._kept(reduce(_sum, terms))

    def negation(self, operand: Series) -> Series:
        return -operand[1], -operand[0]

    def product(self, factors: Sequence[Series]) -> Series:
        return self._kept(reduce(lambda x, y: _product(x, y, self.order), factors))

    def quotient(self, dividend: Series, divisor: Series) -> Series:
        return self._kept(_quotient(dividend, divisor, self.order))

    def integer_power(self, exponent: int, base: Series) -> Series:
        n, x = abs(exponent), base
        found: Series | None = None
        while n:
            if n % 2:
                found = x if found is None else _product(found, x, self.order)
            n //= 2
            x = self._square(x) if n else x
        if found is None:
            return self._constant(1.0, 0.0)
        found = self._kept(_with_range(found, power_bounds(*_first(base), float(abs(exponent)))))
        return found if exponent > 0 else self.quotient(self._constant(1.0, 0.0), found)

    def _square(self, x: Series) -> Series:
        return _with_range(_product(x, x, self.order), power_bounds(*_first(x), 2.0))

    def rational_power(self, exponent: Fraction, base: Series) -> Series:
        least, most = _first(base)
        logs, q = (
            BOUNDS["log"](np.where(least > 0, least, most) if exponent > 0 else least, most),
            self.number(exponent),
        )
        low, high = _times(logs, _first(q))
        start = BOUNDS["exp"](*_out(low, high, np.maximum(np.abs(low), np.abs(high))))
        start = np.where(least > 0, start[0], 0.0), start[1]
        return self._kept(_power(base, float(exponent), start, self.order))

    def power(self, base: Series, exponent: Series) -> Series:
        return self.call("exp", [self.product([exponent, self.call("log", [base])])])

    def call(self, name: str, arguments: Sequence[Series]) -> Series:
        u = arguments[0]
        if name in ("min", "max"):
            return reduce(lambda x, y: self._extreme(x, y, name == "max"), arguments)
        if name == "abs":
            return self._extreme(u, self.negation(u), True)
        if name == "sqr":
            return self._kept(self._square(u))
        if name == "atan2":
            return self._angle(u, arguments[1])
        if name not in BOUNDS:  # no enclosure
            self.lost = np.ones_like(self.lost)
            return u
        start = BOUNDS[name](*_first(u))
        if len(u[0]) == 1:
            return self._kept(_stacked([start]))
        return self._kept(self._called(name, u, start))

    def _called(self, name: str, u: Series, start: Bounds) -> Series:
        one = self._constant(1.0, 0.0)
        match name:
            case "exp":
                return _integrated(u, start, lambda y, j: y[j], self.order)
            case "sin" | "cos":
                sine, cosine = _pair(u, BOUNDS["sin"](*_first(u)), BOUNDS["cos"](*_first(u)), -1.0, self.order)
                return sine if name == "sin" else cosine
            case "sinh" | "cosh":
                sinh, cosh = _pair(u, BOUNDS["sinh"](*_first(u)), BOUNDS["cosh"](*_first(u)), 1.0, self.order)
                return sinh if name == "sinh" else cosh
            case "tan":
                return _integrated(u, start, _square_slope(1.0, 0.0, 1.0), self.order)
            case "tanh":
                return _integrated(u, start, _square_slope(1.0, 0.0, -1.0), self.order)
            case "sigmoid":
                return _integrated(u, start, _square_slope(0.0, 1.0, -1.0), self.order)
            case "expm1":
                low, high = self.call("exp", [u])
                return _stacked([start, *zip(low[1:], high[1:], strict=True)])
            case "softplus":
                return _integrated(u, start, _known(self.call("sigmoid", [u])), self.order)
            case "sinc" | "exprel":
                whole = _composed(u, MOMENTS[name](*_first(u), self.order), self.order)
                grown = self._called(
                    *(("sin", u, start) if name == "sinc" else ("expm1", u, BOUNDS["expm1"](*_first(u))))
                )
                return _with_range(_narrowed(whole, _quotient(grown, u, self.order)), start)
            case "cbrt":
                return _power(u, 1 / 3, start, self.order)
            case "log1p":
                return _integrated(u, start, _known(_quotient(one, _sum(one, u), self.order)), self.order)
            case "log":
                return _integrated(u, start, _known(_quotient(one, u, self.order)), self.order)
            case "sqrt":
                return _power(u, 0.5, start, self.order)
            case "atan":
                slope = _quotient(one, _sum(one, self._square(u)), self.order)
                return _integrated(u, start, _known(slope), self.order)
            case "asin" | "acos":
                left, lost = _sum(one, self.negation(self._square(u))), self.lost
                slope = self.rational_power(Fraction(-1, 2), left)
                self.lost = lost  # where there is no slope there is still a range
                slope = slope if name == "asin" else self.negation(slope)
                return _integrated(u, start, _known(slope), self.order)
            case "erf":
                bell = self.call("exp", [self.negation(self._square(u))])
                slope = _product(self._constant(2 / math.sqrt(math.pi), SLIP), bell, self.order)
                return _integrated(u, start, _known(slope), self.order)
            case _:  # a range, and nothing about slopes
                return _stacked([start] + [(np.array(-np.inf), np.array(np.inf))] * self.order)

    def _angle(self, y: Series, x: Series) -> Series:
        """atan2(y, x) by the quotient that is defined; where y ≥ 0 and x < 0 from above the cut."""
        lost, half_turn = self.lost, self._constant(math.pi / 2, SLIP)
        below, across = (self.call("atan", [self.quotient(a, b)]) for a, b in ((y, x), (x, y)))
        self.lost = lost  # one of the quotients is enough
        found = self._constant(math.nan, 0.0)
        for where, value in (
            ((x[1][0] < 0) & (y[0][0] >= 0), _sum(_sum(half_turn, half_turn), below)),
            (y[0][0] > 0, _sum(half_turn, self.negation(across))),
            (y[1][0] < 0, self.negation(_sum(half_turn, across))),
            (x[0][0] > 0, below),
        ):
            n = max(len(value[0]), len(found[0]))
            low, high = (np.where(where, _padded(value[end], n), _padded(found[end], n)) for end in (0, 1))
            found = low, high
        return self._kept(found)

    def _extreme(self, x: Series, y: Series, largest: bool) -> Series:
        above, below = x[0][0] > y[1][0], x[1][0] < y[0][0]
        self.lost = self.lost | ~(above | below).all(axis=0)
        return self.where((above, below) if largest else (below, above), x, y)

    def where(self, condition: Any, yes: Series, no: Series) -> Series:
        decided = (condition[0] | condition[1]).reshape(-1, np.shape(condition[0])[-1])
        self.lost = self.lost | ~decided.all(axis=0)
        n = max(len(yes[0]), len(no[0]))
        low, high = (np.where(condition[0], _padded(yes[end], n), _padded(no[end], n)) for end in (0, 1))
        return low, high

    def comparison(self, relation: str, left: Series, right: Series) -> Any:
        below, above = left[1][0] < right[0][0], left[0][0] > right[1][0]
        return (below, above) if relation in ("<", "<=") else (above, below)

    def conjunction(self, parts: Sequence[Any]) -> Any:
        return reduce(np.logical_and, [p[0] for p in parts]), reduce(np.logical_or, [p[1] for p in parts])

    def disjunction(self, parts: Sequence[Any]) -> Any:
        return self.complement(self.conjunction([self.complement(p) for p in parts]))

    def complement(self, part: Any) -> Any:
        return part[1], part[0]


def axis_coefficients(
    formula: Formula, lower: np.ndarray, upper: np.ndarray, half: np.ndarray, order: int
) -> list[Series]:
    """For every output (low, high) [order + 1, coordinate, box]; infinite where nothing is proved.

    `half` [box, coordinate] is at least half a side, by less than SLIP/2 relative.
    """
    algebra, (b, D) = AxisAlgebra(lower, upper, half, order), lower.shape
    with np.errstate(all="ignore"):
        found = formula.tape.run(algebra)
    results = []
    for series in found:
        low, high = (np.zeros((order + 1, D, b)) for _ in range(2))
        low[: len(series[0])], high[: len(series[1])] = series
        bad = algebra.lost | ~(np.isfinite(low) & np.isfinite(high))
        results.append((np.where(bad, -np.inf, low), np.where(bad, np.inf, high)))
    return results
