"""Complex enclosures of a formula on many boxes at once: rectangles symmetric about the real line.

A value is (low, high, im): Re z ∈ [low, high], |Im z| ≤ im. Formulas are real on the real line, so with symmetric arguments
every value is symmetric. Where a result is finite, two things are proved: the formula is analytic around the box (some analytic
function equals it at the real points), and its values there lie in the rectangle. One non-finite value on the way makes the
result infinite: sqrt, log and powers need Re z > 0, quotients Re z ≠ 0, atan2(y, x) Re x > 0 or Re y ≠ 0; abs, min, max and
`where` must be decided by real parts that are apart.

`rectangle_functions` says how ends are rounded outward.
"""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from .derived import rectangles
from .expression import Formula
from .functions import FUNCTIONS
from .rectangle_functions import (
    MAPS,
    Rectangle,
    exponential,
    logarithm,
    negated,
    outward,
    product,
    reciprocal,
    sizes,
    square,
    total,
)
from .tape import Algebra


class RectangleAlgebra(Algebra[Rectangle, Any]):
    """Rectangles as arrays over the boxes; truth values are (true, false) masks. `lost`: where some value is not finite."""

    key: Hashable = None

    def __init__(self, box: Sequence[Rectangle]) -> None:
        self.box = box
        self.lost: Any = False

    def _kept(self, z: Rectangle) -> Rectangle:
        self.lost = self.lost | ~(np.isfinite(z[0]) & np.isfinite(z[1]) & np.isfinite(z[2]))
        return z

    def number(self, value: Fraction) -> Rectangle:
        v = np.array([float(value)])
        return (v, v, np.zeros(1)) if Fraction(float(value)) == value else outward(v, v, np.zeros(1), np.abs(v))

    def constant(self, name: str) -> Rectangle:
        v = np.array([math.pi if name == "pi" else math.e])
        return outward(v, v, np.zeros(1), v)

    def variable(self, index: int) -> Rectangle:
        return self.box[index - 1]

    def sum(self, terms: Sequence[Rectangle]) -> Rectangle:
        return self._kept(reduce(total, terms))

    def negation(self, operand: Rectangle) -> Rectangle:
        return negated(operand)

    def product(self, factors: Sequence[Rectangle]) -> Rectangle:
        return self._kept(reduce(product, factors))

    def quotient(self, dividend: Rectangle, divisor: Rectangle) -> Rectangle:
        return self._kept(product(dividend, self._kept(reciprocal(divisor))))

    def integer_power(self, exponent: int, base: Rectangle) -> Rectangle:
        z, n = (base, exponent) if exponent >= 0 else (self._kept(reciprocal(base)), -exponent)
        found: Rectangle | None = None
        while n:
            if n % 2:
                found = z if found is None else product(found, z)
            n //= 2
            z = square(z) if n else z
        return self.number(Fraction(1)) if found is None else self._kept(found)

    def rational_power(self, exponent: Fraction, base: Rectangle) -> Rectangle:
        return self.power(base, self.number(exponent))

    def power(self, base: Rectangle, exponent: Rectangle) -> Rectangle:
        return self._kept(exponential(self._kept(product(exponent, self._kept(logarithm(base))))))

    def call(self, name: str, arguments: Sequence[Rectangle]) -> Rectangle:
        if name in ("min", "max"):
            return reduce(lambda x, y: self._extreme(x, y, name == "max"), arguments)
        if name == "abs":
            return self._extreme(arguments[0], negated(arguments[0]), True)
        if name == "atan2":
            return self._angle(*arguments)
        if name in MAPS:
            return self._kept(MAPS[name](arguments[0]))
        low, high, im = rectangles(FUNCTIONS[name], *arguments[0])
        return self._kept((low, high, im))

    def _angle(self, y: Rectangle, x: Rectangle) -> Rectangle:
        """atan2(y, x) = atan(y/x) where Re x > 0, ±π/2 − atan(x/y) where Re y is apart from 0."""
        below, across = (MAPS["atan"](product(a, reciprocal(b))) for a, b in ((y, x), (x, y)))
        right, half_turn = (x[0] > 0) & np.isfinite(below[2]), np.where(y[0] > 0, math.pi / 2, -math.pi / 2)
        turned = outward(half_turn - across[1], half_turn - across[0], across[2], 2 + sizes(across))
        low, high, im = (np.where(right, a, b) for a, b in zip(below, turned, strict=True))
        return self._kept((low, high, im))

    def _extreme(self, x: Rectangle, y: Rectangle, largest: bool) -> Rectangle:
        above, below = x[0] > y[1], x[1] < y[0]
        self.lost = self.lost | ~(above | below)
        first = above if largest else below
        return np.where(first, x[0], y[0]), np.where(first, x[1], y[1]), np.where(first, x[2], y[2])

    def where(self, condition: Any, yes: Rectangle, no: Rectangle) -> Rectangle:
        self.lost = self.lost | ~(condition[0] | condition[1])
        low, high, im = (np.where(condition[0], a, b) for a, b in zip(yes, no, strict=True))
        return low, high, im

    def comparison(self, relation: str, left: Rectangle, right: Rectangle) -> Any:
        below, above = left[1] < right[0], left[0] > right[1]
        return (below, above) if relation in ("<", "<=") else (above, below)

    def conjunction(self, parts: Sequence[Any]) -> Any:
        return reduce(np.logical_and, [p[0] for p in parts]), reduce(np.logical_or, [p[1] for p in parts])

    def complement(self, part: Any) -> Any:
        return part[1], part[0]


def enclose_rectangles(formula: Formula, box: Sequence[Rectangle]) -> list[Rectangle]:
    """For every output a rectangle, as arrays over the boxes; the ends are infinite where nothing is proved."""
    algebra = RectangleAlgebra(box)
    with np.errstate(all="ignore"):
        found = formula.tape.run(algebra)
    return [
        (np.where(algebra.lost, -np.inf, a), np.where(algebra.lost, np.inf, b), np.where(algebra.lost, np.inf, e))
        for a, b, e in found
    ]
