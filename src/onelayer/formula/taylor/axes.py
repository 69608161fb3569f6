"""Taylor coefficients of a formula along every coordinate, enclosed on many boxes at once.

On a box x_i = centre_i + half_i·t_i, t ∈ [−1, 1]^D, the coefficient of order j along coordinate i is half_i^j ∂_i^j f/j!.
`axis_coefficients` encloses it over the whole box, by interval arithmetic on series (`interval_series`). It is 0 where f is a
polynomial of lower degree in x_i. A finite coefficient of order j proves that f is j times differentiable along x_i on the
box. That of order 0 is a range of f where f is defined: arguments of sqrt, asin, acos and roots are cut to the domain of the
function, as in `bounds`.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ..boxes import Deciding
from ..derived import coefficients
from ..expression import Formula, Tape
from ..functions import FUNCTIONS
from ..record import Function, Readings
from ..tree import Call, postorder
from . import interval_series as of_series
from .bounds import BOUNDS, MOMENTS, Bounds, power_bounds
from .interval_series import SLIP, Series, integrated, power_of, product, range_of, slope_of, sum_of_two, with_range


class AxisAlgebra(Deciding[Series]):
    """Series along all coordinates, up to an order. `lost`: where one has no range along some coordinate."""

    def __init__(self, lower: np.ndarray, upper: np.ndarray, half: np.ndarray, order: int) -> None:
        self.lower, self.upper, self.half, self.order = lower, upper, half, order

    def known(self, v: float, error: float) -> Series:
        return np.full((1, 1, 1), v - error), np.full((1, 1, 1), v + error)

    def ends(self, value: Series) -> Bounds:
        return range_of(value)

    def chosen(self, where: Any, value: Series, other: Series) -> Series:
        n = max(len(value[0]), len(other[0]))
        parts = ([of_series.padded(x[end], n) for x in (value, other)] for end in (0, 1))
        low, high = (np.where(where, *both) for both in parts)
        return low, high

    def variable(self, index: int) -> Series:
        i, (b, D) = index - 1, self.lower.shape
        low, high = np.zeros((2, D, b)), np.zeros((2, D, b))
        low[0], high[0] = self.lower[:, i], self.upper[:, i]
        low[1, i], high[1, i] = self.half[:, i] * (1 - SLIP), self.half[:, i]
        return low, high

    def plus(self, a: Series, b: Series) -> Series:
        return sum_of_two(a, b)

    def negation(self, operand: Series) -> Series:
        return -operand[1], -operand[0]

    def times(self, a: Series, b: Series) -> Series:
        return product(a, b, self.order)

    def quotient(self, dividend: Series, divisor: Series) -> Series:
        return self.kept(of_series.quotient(dividend, divisor, self.order))

    def integer_power(self, exponent: int, base: Series) -> Series:
        found = super().integer_power(abs(exponent), base)
        found = self.kept(with_range(found, power_bounds(*range_of(base), float(abs(exponent))))) if exponent else found
        return found if exponent >= 0 else self.quotient(self.known(1.0, 0.0), found)

    def square(self, value: Series) -> Series:
        return with_range(product(value, value, self.order), power_bounds(*range_of(value), 2.0))

    def rational_power(self, exponent: Fraction, base: Series) -> Series:
        least, most = range_of(base)
        logs = BOUNDS["log"](np.where(least > 0, least, most) if exponent > 0 else least, most)
        low, high = of_series.product_of_ranges(logs, range_of(self.number(exponent)))
        start = BOUNDS["exp"](*of_series.outward(low, high, np.maximum(np.abs(low), np.abs(high))))
        start = np.where(least > 0, start[0], 0.0), start[1]
        return self.kept(power_of(base, float(exponent), start, self.order))

    def function(self, name: str, u: Series) -> Series:
        start = BOUNDS[name](*range_of(u))
        if len(u[0]) == 1:
            return of_series.stacked([start])
        slope = SLOPES_OF_ARRAYS[name]
        if slope is not None:
            return integrated(u, start, slope_of(slope.run(_OfOneSeries(self, u))[0]), self.order)
        match name:
            case "exp":
                return integrated(u, start, lambda y, j: y[j], self.order)
            case "sin" | "cos" | "sinh" | "cosh":
                both = ("sin", "cos") if name in ("sin", "cos") else ("sinh", "cosh")
                first, second = (BOUNDS[one](*range_of(u)) for one in both)
                return of_series.pair(u, first, second, -1.0 if both[0] == "sin" else 1.0, self.order)[both.index(name)]
            case "tan" | "tanh" | "sigmoid":
                return integrated(u, start, of_series.square_slope(*SQUARES[name]), self.order)
            case "sinc" | "exprel" | "sinc1" | "exprel1":  # by the integral, and as a quotient
                whole = of_series.composed(u, MOMENTS[name](*range_of(u), self.order), self.order)
                above = self.call({"sinc": "sin", "exprel": "expm1", "sinc1": "cos", "exprel1": "exp"}[name], [u])
                if name.endswith("1"):
                    above = sum_of_two(above, self.negation(self.call(name[:-1], [u])))
                return with_range(of_series.narrowed(whole, of_series.quotient(above, u, self.order)), start)
            case "erf":
                bell = self.call("exp", [self.negation(self.square(u))])
                steep = product(self.known(2 / math.sqrt(math.pi), SLIP), bell, self.order)
                return integrated(u, start, slope_of(steep), self.order)
            case "cbrt" | "sqrt":
                return power_of(u, 1 / 3 if name == "cbrt" else 0.5, start, self.order)
            case "asin" | "acos":
                left = sum_of_two(self.known(1.0, 0.0), self.negation(self.square(u)))
                steep = _OfOneSeries(self, u).rational_power(Fraction(-1, 2), left)
                return integrated(u, start, slope_of(steep if name == "asin" else self.negation(steep)), self.order)
            case _:
                known = coefficients(FUNCTIONS[name], *range_of(u), self.order)
                return with_range(of_series.composed(u, known, self.order), start)


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
    quick = (
        2 not in slope.variables and not f.taylor and all(call in FUNCTIONS and FUNCTIONS[call].array for call in calls)
    )
    return slope.tape if quick and f.name not in BY_HAND else None


SLOPES_OF_ARRAYS = Readings(_slope_of_arrays)
SQUARES = {"tan": (1.0, 0.0, 1.0), "tanh": (1.0, 0.0, -1.0), "sigmoid": (0.0, 1.0, -1.0)}  # the slope in 1, y and y²
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
        bad = np.any(algebra.lost, axis=0) | ~(np.isfinite(low) & np.isfinite(high))
        results.append((np.where(bad, -np.inf, low), np.where(bad, np.inf, high)))
    return results
