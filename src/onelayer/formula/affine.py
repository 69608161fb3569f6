"""Affine functions in a formula, with exact coefficients, and formulas that are made of them by abs, max and min.

Any such formula is a difference of two maxima of affine functions: with u = max P − max Q,

    −u = max Q − max P,    u₁ + u₂ = max(P₁ + P₂) − max(Q₁ + Q₂),    max(u₁, u₂) = max((P₁ + Q₂) ∪ (P₂ + Q₁)) − max(Q₁ + Q₂),

where P + Q are all sums of a member of each. Rational constants are exact, with sizes bounded before every operation: the
exponent 9**9**9 is refused and never computed. Others, like pi or sqrt(2), are rounded to `PRECISION` bits, far beyond any float.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import prod
from typing import TypeAlias

from ..common.errors import InputError
from . import tree as trees
from .expression import Formula
from .screen import refuse
from .tree import Call, IntegerPower, Negation, Node, Product, Quotient, Sum, Variable, children, variables
from .vocabulary import MAX_EXPONENT

PRECISION = 256  # bits
MOST_BITS = 2048  # of a constant; larger ones have no float
ARITHMETIC = trees.Number | Negation | Sum | Product | Quotient | IntegerPower
BITS = 4096  # of an exact value
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

    from .real_balls import enclose

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


def rational_value(tree: Node) -> Fraction | None:
    """The exact value of a tree of numbers and + − * / and integer powers; None if it has other parts.

    Raises InputError when the value is too long to compute or divides by zero.
    """
    if not isinstance(tree, ARITHMETIC):
        return None
    found = [rational_value(child) for child in children(tree)]  # type: ignore[arg-type]
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        return None
    match tree:
        case trees.Number(value):
            return value
        case Negation():
            return -values[0]
        case Sum():
            return reduce(lambda a, b: _bounded(a + b), values, Fraction(0))
        case Product():
            return reduce(lambda a, b: _bounded(a * b), values, Fraction(1))
        case Quotient():
            return _bounded(values[0] / _nonzero(values[1]))
        case IntegerPower(_, n):
            if _bits(values[0]) * abs(n) > 2 * BITS:
                raise _too_large()
            return _bounded(values[0] ** n if n >= 0 else 1 / _nonzero(values[0]) ** -n)


def constant_exponent(tree: Node) -> Fraction | None:
    """The exact value of an exponent if it is rational, |value| ≤ MAX_EXPONENT; None if it is not."""
    value = rational_value(tree)
    if value is not None and abs(value) > MAX_EXPONENT:
        raise _too_large()
    return value


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _bounded(value: Fraction) -> Fraction:
    if _bits(value) > BITS:
        raise _too_large()
    return value


def _nonzero(value: Fraction) -> Fraction:
    if value == 0:
        raise refuse("an exponent that divides by zero", "use another exponent")
    return value


def _too_large() -> InputError:
    change = f"keep constant exponents between -{MAX_EXPONENT} and {MAX_EXPONENT}"
    return refuse("an exponent that is too large", change)


Forms: TypeAlias = list[Affine]
Pair: TypeAlias = tuple[Forms, Forms]


def difference(node: Node, dimension: int) -> tuple[Forms, Forms] | None:
    """(P, Q): the node is max P − max Q; None if it has other parts, or too many. Q is [0] if the node is convex."""
    if not variables(node):
        value = value_of(node)
        return None if value is None else ([flat(value, dimension)], [flat(Fraction(0), dimension)])
    match node:
        case Variable(index):
            slopes = tuple(Fraction(j == index - 1) for j in range(dimension))
            return [Affine(Fraction(0), slopes)], [flat(Fraction(0), dimension)]
        case Negation(operand):
            return _scaled(difference(operand, dimension), Fraction(-1))
        case IntegerPower(base, 1):
            return difference(base, dimension)
        case Sum(terms):
            parts = [difference(term, dimension) for term in terms]
            return _all(parts, lambda u, v: _tidy(_sums(u[0], v[0]), _sums(u[1], v[1])))
        case Product(factors):
            varying = [factor for factor in factors if variables(factor)]
            values = [value_of(factor) for factor in factors if not variables(factor)]
            known = [value for value in values if value is not None]
            if len(varying) > 1 or len(known) < len(values):
                return None
            return _scaled(difference(varying[0], dimension), prod(known, start=Fraction(1)))
        case Quotient(dividend, divisor) if not variables(divisor):
            below = value_of(divisor)
            return _scaled(difference(dividend, dimension), 1 / below) if below else None
        case Call("abs", (operand,)):
            u = difference(operand, dimension)
            return _all([u, _scaled(u, Fraction(-1))], _maximum)
        case Call("max", arguments):
            return _all([difference(argument, dimension) for argument in arguments], _maximum)
        case Call("min", arguments):
            parts = [_scaled(difference(argument, dimension), Fraction(-1)) for argument in arguments]
            return _scaled(_all(parts, _maximum), Fraction(-1))
        case _:
            return None


def _all(parts: "list[Pair | None]", join: "Callable[[Pair, Pair], Pair | None]") -> "Pair | None":
    """All parts joined, one after the other; None if one is missing or they become too many."""
    found = parts[0]
    for part in parts[1:]:
        found = join(found, part) if found is not None and part is not None else None
    return found


def _maximum(u: Pair, v: Pair) -> Pair | None:
    return _tidy(_sums(u[0], v[1]) + _sums(v[0], u[1]), _sums(u[1], v[1]))


def _scaled(u: Pair | None, factor: Fraction) -> Pair | None:
    if u is None:
        return None
    P, Q = u if factor >= 0 else (u[1], u[0])
    return _tidy(*([form.times(abs(factor)) for form in forms] for forms in (P, Q)))


def _sums(P: Forms, Q: Forms) -> Forms:
    return reduced([p + q for p in P for q in Q])


def _tidy(P: Forms, Q: Forms) -> Pair | None:
    """The same difference with Q = [0] if Q is one form, else with P = [0] if P is."""
    P, Q = reduced(P), reduced(Q)
    if len(P) > MOST_FORMS or len(Q) > MOST_FORMS:
        return None
    common = Q[0] if len(Q) == 1 else P[0] if len(P) == 1 else None
    return (P, Q) if common is None else ([p - common for p in P], [q - common for q in Q])


def reduced(forms: Sequence[Affine]) -> list[Affine]:
    """The forms without repetition; of those that differ by a constant, the largest alone."""
    best: dict[tuple[Fraction, ...], Affine] = {}
    for form in forms:
        known = best.setdefault(form.slopes, form)
        best[form.slopes] = form if form.constant > known.constant else known
    return list(best.values())


def contending(forms: Sequence[Affine], lower: Sequence[float], upper: Sequence[float]) -> list[Affine]:
    """The forms that no other one equals or exceeds everywhere on the box: their maximum is the same."""
    left = reduced(forms)
    return [u for u in left if not any(v is not u and (v - u).least(lower, upper) >= 0 for v in left)]


def along(forms: Sequence[Affine]) -> tuple[Affine, list[tuple[Fraction, Affine]]] | None:
    """(line, bends): the maximum is line + Σ factor·max(d, 0) over bends, if all forms differ along one direction.

    d has the slope 1 in its first variable. The upper envelope of lines, from the smallest slope to the largest.
    """
    gaps = [form - forms[0] for form in forms]
    moving = next((gap for gap in gaps if gap.support), None)
    if moving is None:
        return None
    first = moving.support[0]
    axis = Affine(Fraction(0), moving.slopes).times(1 / moving.slopes[first])
    if any(gap.slopes != axis.times(gap.slopes[first]).slopes for gap in gaps):
        return None
    lines = sorted((gap.slopes[first], gap.constant) for gap in gaps)  # slope and height along the axis
    hull = list[tuple[Fraction, Fraction]]()
    for line in lines:
        while len(hull) > 1 and _meet(hull[-2], line) <= _meet(hull[-2], hull[-1]):
            hull.pop()
        hull.append(line)
    base = forms[0] + axis.times(hull[0][0]) + flat(hull[0][1], len(axis.slopes))
    return base, [(v[0] - u[0], axis - flat(_meet(u, v), len(axis.slopes))) for u, v in pairwise(hull)]


def _meet(u: tuple[Fraction, Fraction], v: tuple[Fraction, Fraction]) -> Fraction:
    """Where two lines (slope, height) of different slopes cross."""
    return (u[1] - v[1]) / (v[0] - u[0])
