"""Derivative enclosures: all partial derivatives of a formula over a box, with proof.

Forward differentiation over intervals: every value carries intervals G_j with

    ∂_j f(x) ∈ G_j     for all x in the box, in the sense of Clarke where f has a kink inside the box,

with f as a function on the box alone (|x1| on [0, 1] has slope 1). So L_j = max |G_j| satisfies

    |f(a) − f(b)| ≤ Σ_j L_j |a_j − b_j|     for a, b in the box.

At an undecided kink (abs, min, max) G_j is the hull over the pieces. G_j is UNDEFINED where no finite bound was proved:
an unbounded slope such as sqrt at 0, or a variable that can switch an undecided `where`, which may jump. Where f may be
undefined, f is f̃ of `real_balls`. Not guaranteed: the smallest G_j, or a finite one where that needs cancellation
(sqrt(x1**2) at 0).
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx

from . import elementary
from .derived import slope_range
from .expression import Formula
from .functions import FUNCTIONS
from .intervals import (
    ONE,
    UNDEFINED,
    ZERO,
    Interval,
    hull,
    integer_power,
    maximum,
    minimum,
    negation,
    product,
    quotient,
    reciprocal,
    rounded,
    total,
)
from .real_balls import PRECISION, IntervalAlgebra, Side, Truth, complement, conjunction, disjunction, real_box
from .tape import Algebra

Slope: TypeAlias = Callable[[Interval, Interval], Interval]

_NONE = Interval(ZERO, ZERO)
_UNIT = Interval(ONE, ONE)


class Jet:
    """Range of a value and of its partial derivatives; a variable that is not listed has partial derivative 0."""

    __slots__ = ("partials", "value")

    def __init__(self, value: Interval, partials: dict[int, Interval]) -> None:
        self.value = value
        self.partials = partials


def _exact(number: int, over: int = 1) -> Interval:
    ball = arb(number) / over
    return rounded(ball, ball)


def _complement(square: Interval) -> Interval:
    return total([_UNIT, negation(square)])


def _square(x: Interval) -> Interval:
    return integer_power(x, 2)


def _half_circle(x: Interval) -> Interval:
    return reciprocal(elementary.square_root(_complement(_square(x))))


def _bell(x: Interval) -> Interval:
    root = 2 / arb.pi().sqrt()
    return product(rounded(root, root), elementary.exponential(negation(_square(x))))


def _logistic(y: Interval) -> Interval:
    """y(1 − y) as 1/4 − (y − 1/2)², the exact range."""
    return total([_exact(1, 4), negation(_square(total([y, _exact(-1, 2)])))])


def _sign(x: Interval) -> Interval:
    return _UNIT if x.lo >= 0 else negation(_UNIT) if x.hi <= 0 else Interval(-ONE, ONE)


_SLOPES: dict[str, Slope] = {  # derivative at the argument x, where the function has the value y
    "sin": lambda x, y: elementary.cosine(x),
    "cos": lambda x, y: negation(elementary.sine(x)),
    "tan": lambda x, y: total([_UNIT, _square(y)]),
    "exp": lambda x, y: y,
    "log": lambda x, y: reciprocal(x),
    "sqrt": lambda x, y: reciprocal(total([y, y])),
    "tanh": lambda x, y: _complement(_square(y)),
    "sinh": lambda x, y: elementary.RANGES["cosh"](x),
    "cosh": lambda x, y: elementary.RANGES["sinh"](x),
    "atan": lambda x, y: reciprocal(total([_UNIT, _square(x)])),
    "asin": lambda x, y: _half_circle(x),
    "acos": lambda x, y: negation(_half_circle(x)),
    "sigmoid": lambda x, y: _logistic(y),
    "erf": lambda x, y: _bell(x),
    "expm1": lambda x, y: elementary.exponential(x),
    "log1p": lambda x, y: reciprocal(total([_UNIT, x])),
    "softplus": lambda x, y: elementary.RANGES["sigmoid"](x),
    "sinc": lambda x, y: elementary.cardinal_slope(x),
    "exprel": lambda x, y: elementary.exprel_slope(x),
    "cbrt": lambda x, y: reciprocal(product(_exact(3), _square(y))),
    "abs": lambda x, y: _sign(x),
    "sqr": lambda x, y: total([x, x]),
}


def _listed(jets: Iterable[Jet]) -> list[int]:
    return sorted({index for jet in jets for index in jet.partials})


def _chain(value: Interval, *links: tuple[Interval, Jet]) -> Jet:
    """The value with partials Σ slope · partial over the links (slope, jet)."""
    if value is UNDEFINED:
        return Jet(UNDEFINED, dict.fromkeys(_listed(jet for _, jet in links), UNDEFINED))
    sums: dict[int, list[Interval]] = {}
    for slope, jet in links:
        for index, partial in jet.partials.items():
            sums.setdefault(index, []).append(slope if partial is _UNIT else product(slope, partial))
    return Jet(value, {index: terms[0] if len(terms) == 1 else total(terms) for index, terms in sums.items()})


def _joined(value: Interval, jets: Sequence[Jet]) -> Jet:
    """The value with the hull of the partials of several jets."""
    return Jet(value, {index: hull([jet.partials.get(index, _NONE) for jet in jets]) for index in _listed(jets)})


Test: TypeAlias = tuple[Truth, frozenset[int]]  # truth value and the variables that can change it


class JetAlgebra(Algebra[Jet, Test]):
    """Intervals with partial derivatives over one box."""

    def __init__(self, box: Sequence[Interval]) -> None:
        self.ranges = IntervalAlgebra(box)
        self.key = ctx.prec

    def number(self, value: Fraction) -> Jet:
        return Jet(self.ranges.number(value), {})

    def constant(self, name: str) -> Jet:
        return Jet(self.ranges.constant(name), {})

    def variable(self, index: int) -> Jet:
        return Jet(self.ranges.variable(index), {index: _UNIT})

    def sum(self, terms: Sequence[Jet]) -> Jet:
        sums: dict[int, list[Interval]] = {}
        for term in terms:
            for index, partial in term.partials.items():
                sums.setdefault(index, []).append(partial)
        partials = {index: parts[0] if len(parts) == 1 else total(parts) for index, parts in sums.items()}
        return Jet(total([term.value for term in terms]), partials)

    def negation(self, operand: Jet) -> Jet:
        return Jet(negation(operand.value), {index: negation(part) for index, part in operand.partials.items()})

    def product(self, factors: Sequence[Jet]) -> Jet:
        result = factors[0]
        for jet in factors[1:]:
            result = _chain(product(result.value, jet.value), (jet.value, result), (result.value, jet))
        return result

    def quotient(self, dividend: Jet, divisor: Jet) -> Jet:
        y = divisor.value
        value = quotient(dividend.value, y)
        links = [(reciprocal(y), dividend)] if dividend.partials else []
        if divisor.partials:
            links.append((negation(quotient(value, y)), divisor))
        return _chain(value, *links)

    def integer_power(self, exponent: int, base: Jet) -> Jet:
        slope = product(_exact(exponent), integer_power(base.value, exponent - 1)) if exponent else _NONE
        return _chain(integer_power(base.value, exponent), (slope, base))

    def rational_power(self, exponent: Fraction, base: Jet) -> Jet:
        factor = _exact(exponent.numerator, exponent.denominator)
        x = elementary.natural("sqrt", base.value) if exponent > 0 else base.value
        slope = product(factor, elementary.rational_power(x, exponent - 1))
        return _chain(elementary.rational_power(x, exponent), (slope, base))

    def power(self, base: Jet, exponent: Jet) -> Jet:
        x, y = base.value, exponent.value
        value = elementary.general_power(x, y)
        by_base = product(y, elementary.general_power(x, total([y, negation(_UNIT)])))
        return _chain(value, (by_base, base), (product(value, elementary.logarithm(x)), exponent))

    def call(self, name: str, arguments: Sequence[Jet]) -> Jet:
        if name in ("min", "max"):
            return _extreme(arguments, largest=name == "max")
        if name == "atan2":
            return _angle(*arguments)
        x = elementary.natural(name, arguments[0].value)
        value = elementary.RANGES[name](x)
        if value is UNDEFINED:
            return _chain(value, (value, arguments[0]))
        return _chain(
            value,
            (_SLOPES[name](x, value) if name in _SLOPES else slope_range(FUNCTIONS[name], x, value), arguments[0]),
        )

    def slope_of(self, name: str, dividend: Jet, argument: Jet) -> Jet:
        """|sinc″| ≤ 1/3 and 0 < exprel″ ≤ exprel′; or as a quotient, where that is known."""
        whole, u = self.quotient(dividend, argument), argument.value
        value = self.ranges.slope_of(name, dividend.value, u)
        if all(partial.is_finite() for partial in whole.partials.values()) or value is UNDEFINED:
            return Jet(value, whole.partials)
        third = _exact(1, 3)
        bend = hull([negation(third), third]) if name == "sinc" else hull([_NONE, value])
        return _chain(value, (bend, argument))

    def where(self, condition: Test, yes: Jet, no: Jet) -> Jet:
        truth, switches = condition
        if isinstance(truth, bool):
            return yes if truth else no
        either = _joined(self.ranges.where(truth, yes.value, no.value), [yes, no])
        return Jet(either.value, {**either.partials, **dict.fromkeys(switches, UNDEFINED)})

    def comparison(self, relation: str, left: Jet, right: Jet) -> Test:
        return self.ranges.comparison(relation, left.value, right.value), frozenset(_listed([left, right]))

    def conjunction(self, parts: Sequence[Test]) -> Test:
        return conjunction([truth for truth, _ in parts]), frozenset().union(*(names for _, names in parts))

    def disjunction(self, parts: Sequence[Test]) -> Test:
        return disjunction([truth for truth, _ in parts]), frozenset().union(*(names for _, names in parts))

    def complement(self, part: Test) -> Test:
        return complement(part[0]), part[1]


def _angle(y: Jet, x: Jet) -> Jet:
    """atan2: the gradient (x, −y)/(x² + y²) in (y, x); none where the cut may be inside."""
    value = elementary.angle(y.value, x.value)
    smooth = x.value.lo > 0 or y.value.hi < 0 or y.value.lo > 0 or (y.value.lo >= 0 and x.value.hi < 0)
    if not smooth:
        return Jet(value, dict.fromkeys(_listed([y, x]), UNDEFINED))
    square = total([_square(x.value), _square(y.value)])
    return _chain(value, (quotient(x.value, square), y), (negation(quotient(y.value, square)), x))


def _extreme(jets: Sequence[Jet], largest: bool) -> Jet:
    """min or max: the hull of the partials of every argument that may attain it somewhere in the box."""
    values = [jet.value for jet in jets]
    value = maximum(values) if largest else minimum(values)
    if value is UNDEFINED:
        return Jet(UNDEFINED, dict.fromkeys(_listed(jets), UNDEFINED))
    active = [jet for jet in jets if (jet.value.hi >= value.lo if largest else jet.value.lo <= value.hi)]
    return _joined(value, active)


def gradient(
    formula: Formula, box: Sequence[Side], prec: int = PRECISION
) -> tuple[list[Interval], list[list[Interval]]]:
    """Values of the outputs over the box, and partials[output][variable], one for every side of the box.

    Where an output has no enclosure, all its partial derivatives are UNDEFINED.
    """
    with ctx.workprec(prec):
        jets: list[Jet] = formula.tape.run(JetAlgebra(real_box(formula.dimension, box)))
    columns = range(1, len(box) + 1)
    partials = [
        [UNDEFINED if jet.value is UNDEFINED else jet.partials.get(index, _NONE) for index in columns] for jet in jets
    ]
    return [jet.value for jet in jets], partials
