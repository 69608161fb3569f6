"""What readings of a formula on many boxes at once have in common: constants known up to an error, angles, what boxes decide."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, reduce
from typing import Any, TypeAlias

import numpy as np

from ..common.outward import U
from .expression import Algebra, T, V
from .taylor.series import TINY

Masks: TypeAlias = tuple[Any, Any]  # where a condition is proved true, and where false
ROUNDED = 4e-16  # more than π, π/2 and e lose as floats


class OnBoxes(Algebra[V, T]):
    """Values with a range on every box."""

    @abstractmethod
    def known(self, v: float, error: float) -> V:
        """The constant v, known up to an error."""

    @abstractmethod
    def ends(self, value: V) -> tuple[Any, ...]:
        """The bounds of a value, the lower and the upper one first."""

    @abstractmethod
    def chosen(self, where: Any, value: V, other: V) -> V:
        """One value on some boxes, the other elsewhere."""

    def number(self, value: Fraction) -> V:
        v = float(value)
        return self.known(v, 0.0 if Fraction(v) == value else 2 * U * abs(v) + TINY)

    def constant(self, name: str) -> V:
        return self.known(math.pi if name == "pi" else math.e, ROUNDED)

    def finite(self, value: V) -> Any:
        """Where a value has bounds."""
        return reduce(np.logical_and, map(np.isfinite, self.ends(value)))

    def angle(self, y: V, x: V, found: V) -> V:
        """atan2(y, x) by a quotient that is defined, where y ≥ 0 and x < 0 from above the cut; `found` elsewhere."""
        half_turn, (bottom, top), (left, right) = self.known(math.pi / 2, ROUNDED), self.ends(y)[:2], self.ends(x)[:2]

        @cache
        def arc(upright: bool) -> V:
            return self.call("atan", [self.quotient(x, y) if upright else self.quotient(y, x)])

        left_over: Any = True
        for where, value in (
            (left > 0, lambda: arc(False)),
            (top < 0, lambda: self.negation(self.sum([half_turn, arc(True)]))),
            (bottom > 0, lambda: self.sum([half_turn, self.negation(arc(True))])),
            ((right < 0) & (bottom >= 0), lambda: self.sum([half_turn, half_turn, arc(False)])),
        ):
            if np.any(where & left_over):
                own = value()
                known = where & left_over & self.finite(own)
                found, left_over = self.chosen(known, own, found), left_over & ~known
        return found


class Deciding(OnBoxes[V, Masks]):
    """Every comparison has to be decided on all of a box. `lost`: the boxes where one is not, or some value has no bounds."""

    lost: Any = False

    @abstractmethod
    def square(self, value: V) -> V: ...

    @abstractmethod
    def function(self, name: str, u: V) -> V:
        """A function of one variable, other than abs and sqr."""

    def kept(self, value: V) -> V:
        self.lost = self.lost | ~self.finite(value)
        return value

    def sum(self, terms: Sequence[V]) -> V:
        return self.kept(super().sum(terms))

    def product(self, factors: Sequence[V]) -> V:
        return self.kept(super().product(factors))

    def integer_power(self, exponent: int, base: V) -> V:
        """By squaring, of an exponent that is not negative."""
        found: V | None = None
        while exponent:
            if exponent % 2:
                found = base if found is None else self.product([found, base])
            exponent //= 2
            base = self.square(base) if exponent else base
        return self.known(1.0, 0.0) if found is None else found

    def call(self, name: str, arguments: Sequence[V]) -> V:
        u = arguments[0]
        if name in ("min", "max"):
            return reduce(lambda x, y: self.extreme(x, y, name == "max"), arguments)
        if name == "abs":
            return self.extreme(u, self.negation(u), True)
        if name == "atan2":
            before = self.lost
            found = self.angle(u, arguments[1], self.known(math.nan, 0.0))
            self.lost = before  # one of the quotients is enough
            return self.kept(found)
        return self.kept(self.square(u) if name == "sqr" else self.function(name, u))

    def extreme(self, x: V, y: V, largest: bool) -> V:
        return self.where(self.comparison(">" if largest else "<", x, y), x, y)

    def where(self, condition: Masks, yes: V, no: V) -> V:
        self.lost = self.lost | ~(condition[0] | condition[1])
        return self.chosen(condition[0], yes, no)

    def comparison(self, relation: str, left: V, right: V) -> Masks:
        (a, b), (c, d) = self.ends(left)[:2], self.ends(right)[:2]
        below, above = b < c, a > d
        return (below, above) if relation in ("<", "<=") else (above, below)

    def conjunction(self, parts: Sequence[Masks]) -> Masks:
        return reduce(np.logical_and, [p[0] for p in parts]), reduce(np.logical_or, [p[1] for p in parts])

    def complement(self, part: Masks) -> Masks:
        return part[1], part[0]
