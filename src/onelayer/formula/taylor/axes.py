"""Taylor coefficients of a formula along every coordinate, enclosed on many boxes at once.

On a box x_i = centre_i + half_i·t_i, t ∈ [−1, 1]^D, the coefficient of order j along coordinate i is half_i^j ∂_i^j f/j!.
`axis_coefficients` encloses it over the whole box, by interval arithmetic on series (`interval_series`). It is 0 where f is a
polynomial of lower degree in x_i. A finite coefficient of order j proves that f is j times differentiable along x_i on the
box. That of order 0 is a range of f where f is defined: arguments of sqrt, asin, acos and roots are cut to the domain of the
function, as in `bounds`.
"""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from ..derived import coefficients
from ..expression import Formula
from ..functions import FUNCTIONS, Function, Readings
from ..tape import Algebra, Tape
from ..tree import Call, postorder
from .bounds import BOUNDS, Bounds, power_bounds
from .interval_series import (
    SLIP,
    Series,
    composed,
    integrated,
    narrowed,
    outward,
    padded,
    pair,
    power_of,
    product,
    product_of_ranges,
    quotient,
    range_of,
    slope_of,
    square_slope,
    stacked,
    sum_of_two,
    with_range,
)
from .moments import MOMENTS
from .series import TINY


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
        return self._kept(reduce(sum_of_two, terms))

    def negation(self, operand: Series) -> Series:
        return -operand[1], -operand[0]

    def product(self, factors: Sequence[Series]) -> Series:
        return self._kept(reduce(lambda x, y: product(x, y, self.order), factors))

    def quotient(self, dividend: Series, divisor: Series) -> Series:
        return self._kept(quotient(dividend, divisor, self.order))

    def integer_power(self, exponent: int, base: Series) -> Series:
        n, x = abs(exponent), base
        found: Series | None = None
        while n:
            if n % 2:
                found = x if found is None else product(found, x, self.order)
            n //= 2
            x = self._square(x) if n else x
        if found is None:
            return self._constant(1.0, 0.0)
        found = self._kept(with_range(found, power_bounds(*range_of(base), float(abs(exponent)))))
        return found if exponent > 0 else self.quotient(self._constant(1.0, 0.0), found)

    def _square(self, x: Series) -> Series:
        return with_range(product(x, x, self.order), power_bounds(*range_of(x), 2.0))

    def rational_power(self, exponent: Fraction, base: Series) -> Series:
        least, most = range_of(base)
        logs, q = (
            BOUNDS["log"](np.where(least > 0, least, most) if exponent > 0 else least, most),
            self.number(exponent),
        )
        low, high = product_of_ranges(logs, range_of(q))
        start = BOUNDS["exp"](*outward(low, high, np.maximum(np.abs(low), np.abs(high))))
        start = np.where(least > 0, start[0], 0.0), start[1]
        return self._kept(power_of(base, float(exponent), start, self.order))

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
        start = BOUNDS[name](*range_of(u))
        if len(u[0]) == 1:
            return self._kept(stacked([start]))
        return self._kept(self._called(name, u, start))

    def _called(self, name: str, u: Series, start: Bounds) -> Series:
        slope = SLOPES_OF_ARRAYS[name]
        if slope is not None:
            return integrated(u, start, slope_of(slope.run(_OfOneSeries(self, u))[0]), self.order)
        match name:
            case "exp":
                return integrated(u, start, lambda y, j: y[j], self.order)
            case "sin" | "cos":
                sine, cosine = pair(u, BOUNDS["sin"](*range_of(u)), BOUNDS["cos"](*range_of(u)), -1.0, self.order)
                return sine if name == "sin" else cosine
            case "sinh" | "cosh":
                sinh, cosh = pair(u, BOUNDS["sinh"](*range_of(u)), BOUNDS["cosh"](*range_of(u)), 1.0, self.order)
                return sinh if name == "sinh" else cosh
            case "tan":
                return integrated(u, start, square_slope(1.0, 0.0, 1.0), self.order)
            case "tanh":
                return integrated(u, start, square_slope(1.0, 0.0, -1.0), self.order)
            case "sigmoid":
                return integrated(u, start, square_slope(0.0, 1.0, -1.0), self.order)
            case "sinc" | "exprel" | "sinc1" | "exprel1":  # by the integral, and as a quotient
                whole = composed(u, MOMENTS[name](*range_of(u), self.order), self.order)
                above = self.call({"sinc": "sin", "exprel": "expm1", "sinc1": "cos", "exprel1": "exp"}[name], [u])
                if name.endswith("1"):
                    above = sum_of_two(above, self.negation(self.call(name[:-1], [u])))
                return with_range(narrowed(whole, quotient(above, u, self.order)), start)
            case "erf":
                bell = self.call("exp", [self.negation(self._square(u))])
                slope = product(self._constant(2 / math.sqrt(math.pi), SLIP), bell, self.order)
                return integrated(u, start, slope_of(slope), self.order)
            case "cbrt":
                return power_of(u, 1 / 3, start, self.order)
            case "sqrt":
                return power_of(u, 0.5, start, self.order)
            case "asin" | "acos":
                left = sum_of_two(self._constant(1.0, 0.0), self.negation(self._square(u)))
                steep = _OfOneSeries(self, u).rational_power(Fraction(-1, 2), left)
                return integrated(u, start, slope_of(steep if name == "asin" else self.negation(steep)), self.order)
            case _:
                known = coefficients(FUNCTIONS[name], *range_of(u), self.order)
                return with_range(composed(u, known, self.order), start)

    def _angle(self, y: Series, x: Series) -> Series:
        """atan2(y, x) by the quotient that is defined; where y ≥ 0 and x < 0 from above the cut."""
        lost, half_turn = self.lost, self._constant(math.pi / 2, SLIP)
        below, across = (self.call("atan", [self.quotient(a, b)]) for a, b in ((y, x), (x, y)))
        self.lost = lost  # one of the quotients is enough
        found = self._constant(math.nan, 0.0)
        for where, value in (
            ((x[1][0] < 0) & (y[0][0] >= 0), sum_of_two(sum_of_two(half_turn, half_turn), below)),
            (y[0][0] > 0, sum_of_two(half_turn, self.negation(across))),
            (y[1][0] < 0, self.negation(sum_of_two(half_turn, across))),
            (x[0][0] > 0, below),
        ):
            n = max(len(value[0]), len(found[0]))
            low, high = (np.where(where, padded(value[end], n), padded(found[end], n)) for end in (0, 1))
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
        low, high = (np.where(condition[0], padded(yes[end], n), padded(no[end], n)) for end in (0, 1))
        return low, high

    def comparison(self, relation: str, left: Series, right: Series) -> Any:
        below, above = left[1][0] < right[0][0], left[0][0] > right[1][0]
        return (below, above) if relation in ("<", "<=") else (above, below)

    def conjunction(self, parts: Sequence[Any]) -> Any:
        return reduce(np.logical_and, [p[0] for p in parts]), reduce(np.logical_or, [p[1] for p in parts])

    def complement(self, part: Any) -> Any:
        return part[1], part[0]


class _OfOneSeries(AxisAlgebra):
    """The same, of formulas in one series. What is `lost` in them stays there: without a slope there is still a range."""

    def __init__(self, whole: AxisAlgebra, u: Series) -> None:
        super().__init__(whole.lower, whole.upper, whole.half, whole.order)
        self.u = u

    def variable(self, index: int) -> Series:
        return self.u


def _slope_of_arrays(f: Function) -> Tape | None:
    """The slope of a function as a tape in u, if arrays have all that is in it; None where a slope has y."""
    slope = f.slope_formula
    calls = [tree.name for tree in postorder(slope.outputs) if isinstance(tree, Call)]
    quick = 2 not in slope.variables and not f.taylor and all(FUNCTIONS[call].array for call in calls)
    return slope.tape if quick and f.name not in BY_HAND else None


SLOPES_OF_ARRAYS = Readings(_slope_of_arrays)
BY_HAND = ("exp", "sin", "cos", "sinh", "cosh", "tan", "tanh", "sigmoid", "cbrt", "sqrt", "asin", "acos", "erf")


def has_series(f: Function) -> bool:
    """Whether the coefficients of a function need no balls."""
    return f.name in BY_HAND or SLOPES_OF_ARRAYS.of(f) is not None


def series_of(name: str, low: np.ndarray, high: np.ndarray, order: int) -> Series:
    """φ^(k)/k! on intervals, [k, box]; NaN or infinite where φ is not smooth."""
    one = np.ones_like(low)
    algebra = AxisAlgebra(low[:, None], high[:, None], one[:, None], order)
    found = algebra.call(name, [(np.stack([low, one])[:, None], np.stack([high, one])[:, None])])
    return found[0][:, 0], found[1][:, 0]


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
