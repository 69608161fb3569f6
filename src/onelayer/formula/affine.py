"""Affine functions in a formula, with exact coefficients, and the formulas that are a maximum of such.

Rational constants are exact; others, like pi or sqrt(2), are rounded to `PRECISION` bits, far beyond any float.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from ..errors import InputError
from .expression import Formula
from .literal import rational_value
from .tree import Call, IntegerPower, Negation, Node, Product, Quotient, Sum, Variable, variables

PRECISION = 256  # bits
MOST_BITS = 2048  # of a constant; larger ones have no float
MOST_FORMS = 64  # of one maximum: sums of maxima multiply


@dataclass(frozen=True)
class Affine:
    """constant + Σ_j slopes[j]·x_(j+1)."""

    constant: Fraction
    slopes: tuple[Fraction, ...]

    def __add__(self, other: "Affine") -> "Affine":
        slopes = tuple(a + b for a, b in zip(self.slopes, other.slopes, strict=True))
        return Affine(self.constant + other.constant, slopes)

    def __sub__(self, other: "Affine") -> "Affine":
        return self + other.times(Fraction(-1))

    def times(self, factor: Fraction) -> "Affine":
        return Affine(factor * self.constant, tuple(factor * a for a in self.slopes))

    @property
    def support(self) -> tuple[int, ...]:
        """The coordinates (from 0) that it depends on."""
        return tuple(j for j, a in enumerate(self.slopes) if a)

    def least(self, lower: Sequence[float], upper: Sequence[float]) -> Fraction:
        """Its minimum over a box."""
        ends = zip(self.slopes, lower, upper, strict=True)
        return self.constant + sum((a * Fraction(low if a > 0 else high) for a, low, high in ends if a), Fraction(0))


def flat(value: Fraction, dimension: int) -> Affine:
    """A constant."""
    return Affine(value, (Fraction(0),) * dimension)


def value_of(node: Node) -> Fraction | None:
    """The value of a tree without variables; None where it has none, or too large a one."""
    from flint import ctx

    from .balls import enclose

    try:
        exact = rational_value(node)
    except InputError:
        return None
    if exact is not None:
        return exact
    with ctx.workprec(PRECISION):
        ball = enclose(Formula("", (), (node,)), [], prec=PRECISION)[0]
        if not ball.is_finite():
            return None
        digits, exponent = (int(part) for part in ball.ball().mid().man_exp())
    return Fraction(digits) * Fraction(2) ** exponent if abs(exponent) + digits.bit_length() < MOST_BITS else None


def tops(node: Node, dimension: int, sign: int = 1) -> list[Affine] | None:
    """Affine functions whose maximum is sign·node; one if it is affine, None if it is no such maximum.

    max(u, v) has those of u and of v, |u| those of u and of −u; a sum has all sums.
    """
    if not variables(node):
        value = value_of(node)
        return None if value is None else [flat(sign * value, dimension)]
    match node:
        case Variable(index):
            return [Affine(Fraction(0), tuple(Fraction(sign * (j == index - 1)) for j in range(dimension)))]
        case Negation(operand):
            return tops(operand, dimension, -sign)
        case IntegerPower(base, 1):
            return tops(base, dimension, sign)
        case Sum(terms):
            rows = [tops(term, dimension, sign) for term in terms]
            found = [row for row in rows if row is not None]
            if len(found) < len(rows) or prod(map(len, found)) > MOST_FORMS:
                return None
            return reduced([sum(forms[1:], forms[0]) for forms in product(*found)])
        case Product(factors):
            varying = [factor for factor in factors if variables(factor)]
            values = [value_of(factor) for factor in factors if not variables(factor)]
            known = [value for value in values if value is not None]
            if len(varying) > 1 or len(known) < len(values):
                return None
            return _scaled(varying[0], dimension, sign * prod(known, start=Fraction(1)))
        case Quotient(dividend, divisor) if not variables(divisor):
            below = value_of(divisor)
            return _scaled(dividend, dimension, sign / below) if below else None
        case Call(name, arguments) if name == "abs" or name == ("max" if sign > 0 else "min"):
            signs = (1, -1) if name == "abs" else (sign,)
            if name == "abs" and sign < 0:
                return None
            rows = [tops(argument, dimension, s) for argument in arguments for s in signs]
            found = [row for row in rows if row is not None]
            return reduced([form for row in found for form in row]) if len(found) == len(rows) else None
        case _:
            return None


def _scaled(node: Node, dimension: int, factor: Fraction) -> list[Affine] | None:
    found = tops(node, dimension, -1 if factor < 0 else 1)
    return None if found is None else reduced([form.times(abs(factor)) for form in found])


def reduced(forms: Sequence[Affine]) -> list[Affine]:
    """Of forms that differ by a constant the largest alone; none stands there twice."""
    best: dict[tuple[Fraction, ...], Affine] = {}
    for form in forms:
        known = best.setdefault(form.slopes, form)
        best[form.slopes] = form if form.constant > known.constant else known
    return list(best.values())


def contending(forms: Sequence[Affine], lower: Sequence[float], upper: Sequence[float]) -> list[Affine]:
    """Those forms that on the box no other one is above everywhere: their maximum is the same."""
    left = reduced(forms)
    return [u for u in left if not any(v is not u and (v - u).least(lower, upper) >= 0 for v in left)]
