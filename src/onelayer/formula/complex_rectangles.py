"""Complex enclosures of a formula on many boxes at once: rectangles symmetric about the real line.

A value is (low, high, im): Re z ∈ [low, high], |Im z| ≤ im. Formulas are real on the real line, so with symmetric arguments
every value is symmetric. Where a result is finite, two things are proved: the formula is analytic around the box (some analytic
function equals it at the real points), and its values there lie in the rectangle. One non-finite value on the way makes the
result infinite: sqrt, log and powers need Re z > 0, quotients Re z ≠ 0, atan2(y, x) Re x > 0 or Re y ≠ 0; abs, min, max and
`where` must be decided by real parts that are apart.

`rectangle_functions` says how ends are rounded outward.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .boxes import Deciding
from .derived import rectangles
from .expression import Formula
from .functions import FUNCTIONS
from .rectangle_functions import MAPS, Rectangle, negated, product, reciprocal, square, total


class RectangleAlgebra(Deciding[Rectangle]):
    """Rectangles as arrays over the boxes. `lost`: where some value is not finite."""

    plus: Any = staticmethod(total)
    times: Any = staticmethod(product)
    negation: Any = staticmethod(negated)
    square: Any = staticmethod(square)

    def __init__(self, box: Sequence[Rectangle]) -> None:
        self.box = box

    def known(self, v: float, error: float) -> Rectangle:
        return np.array([v - error]), np.array([v + error]), np.zeros(1)

    def ends(self, value: Rectangle) -> Rectangle:
        return value

    def chosen(self, where: Any, value: Rectangle, other: Rectangle) -> Rectangle:
        low, high, im = (np.where(where, a, b) for a, b in zip(value, other, strict=True))
        return low, high, im

    def variable(self, index: int) -> Rectangle:
        return self.box[index - 1]

    def quotient(self, dividend: Rectangle, divisor: Rectangle) -> Rectangle:
        return self.kept(product(dividend, self.kept(reciprocal(divisor))))

    def integer_power(self, exponent: int, base: Rectangle) -> Rectangle:
        base = base if exponent >= 0 else self.kept(reciprocal(base))
        return self.kept(super().integer_power(abs(exponent), base))

    def function(self, name: str, u: Rectangle) -> Rectangle:
        if name in MAPS:
            return MAPS[name](u)
        low, high, im = rectangles(FUNCTIONS[name], *u)
        return low, high, im


def enclose_rectangles(formula: Formula, box: Sequence[Rectangle]) -> list[Rectangle]:
    """For every output a rectangle, as arrays over the boxes; the ends are infinite where nothing is proved."""
    algebra = RectangleAlgebra(box)
    with np.errstate(all="ignore"):
        found = formula.tape.run(algebra)
    return [algebra.chosen(algebra.lost, (-np.inf, np.inf, np.inf), value) for value in found]
