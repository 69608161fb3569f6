"""Real enclosures: the range of a formula over a box, with proof.

`enclose(formula, box)` returns for every output an interval that contains f(x) for all x in the box. Where a condition
or the order in min, max, abs is not decided on the whole box, the result covers every possibility. UNDEFINED means "no
enclosure": f is unbounded in the box, or undefined, or this arithmetic cannot tell. Not guaranteed: the smallest
interval; enclosures tighten as the box shrinks.

Intervals cannot tell an argument of sqrt that is a little negative from one that only seems to be. So arguments of sqrt,
asin, acos and of roots are cut to the closed domain of the function. That encloses f̃, in which sqrt(u) is
sqrt(max(u, 0)) and so on: f̃ has values on the whole box and equals f wherever f is defined. With `strict` nothing is cut,
and a finite result proves that f is defined everywhere in the box; conditions are always read so.

The working precision is flint's, set inside the call and restored after it; flint keeps it per process, so calls
from several threads at once are not safe.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx

from ..common.errors import InputError
from ..common.numbers import counted
from .elementary import RANGES, angle, natural, rational_power
from .expression import Condition, Formula, Operators
from .intervals import UNDEFINED, ZERO, Interval, extreme, hull, interval, rounded, total

PRECISION = 128  # bits

Side: TypeAlias = Interval | float | int | Fraction | arb


Truth: TypeAlias = bool | Interval | None  # UNDEFINED for a comparison whose sides have no enclosure


class IntervalAlgebra(Operators[Interval, Truth]):
    """Intervals at the current precision over one box, of f̃ or, if strict, of f."""

    def __init__(self, box: Sequence[Interval], strict: bool = False) -> None:
        self.box, self.strict = box, strict
        self.key = (ctx.prec, strict)

    def number(self, value: Fraction) -> Interval:
        ball = arb(value.numerator) / value.denominator
        return rounded(ball, ball)

    def constant(self, name: str) -> Interval:
        ball = arb.pi() if name == "pi" else arb.const_e()
        return rounded(ball, ball)

    def variable(self, index: int) -> Interval:
        return self.box[index - 1]

    def sum(self, terms: Sequence[Interval]) -> Interval:
        return total(terms)

    def rational_power(self, exponent: Fraction, base: Interval) -> Interval:
        return rational_power(base if self.strict or exponent < 0 else natural("sqrt", base), exponent)

    def call(self, name: str, arguments: Sequence[Interval]) -> Interval:
        if name in ("min", "max"):
            return extreme(arguments, name == "max")
        if name == "atan2":
            return angle(*arguments)
        return RANGES[name](arguments[0] if self.strict else natural(name, arguments[0]))

    def where(self, condition: Truth, yes: Interval, no: Interval) -> Interval:
        if condition is UNDEFINED:
            return UNDEFINED
        return hull([yes, no]) if condition is None else yes if condition else no

    def comparison(self, relation: str, left: Interval, right: Interval) -> Truth:
        """True or False if that holds for all pairs, None if undecided."""
        if left is UNDEFINED or right is UNDEFINED:
            return UNDEFINED
        if relation in (">", ">="):
            left, right, relation = right, left, "<" if relation == ">" else "<="
        if relation == "<":
            return True if left.hi < right.lo else False if left.lo >= right.hi else None
        return True if left.hi <= right.lo else False if left.lo > right.hi else None


class Switches(IntervalAlgebra):
    """The truth of the condition of every `where`, and the value of every floor, which is odd or not; None where it varies.

    They stand in the order of the formula.
    """

    def __init__(self, box: Sequence[Interval]) -> None:
        super().__init__(box, strict=True)
        self.key, self.truths, self.floors = None, list[bool | None](), list[float | None]()

    def call(self, name: str, arguments: Sequence[Interval]) -> Interval:
        found = super().call(name, arguments)
        if name == "floor":
            self.floors.append(found.lower() if found.is_finite() and found.lo == found.hi else None)
            self.truths.append(None if self.floors[-1] is None else self.floors[-1] % 2 == 1)
        return found

    def where(self, condition: Truth, yes: Interval, no: Interval) -> Interval:
        self.truths.append(condition if isinstance(condition, bool) else None)
        return super().where(condition, yes, no)


def switched(formula: Formula, box: Sequence[Side], prec: int = PRECISION) -> Switches:
    """The switches of a formula on a box, or at a point."""
    with ctx.workprec(prec):
        algebra = Switches(real_box(formula.dimension, box))
        formula.tape.run(algebra)
    return algebra


def real_box(dimension: int, box: Sequence[Side]) -> list[Interval]:
    """The sides as intervals at the current precision, at least as many as the dimension."""
    if len(box) < dimension:
        asked = f"a box with {counted(dimension, 'side')}"
        raise InputError(asked, counted(len(box), "side"), "give one interval per variable")
    sides = [side if isinstance(side, Interval) else interval(side) for side in box]
    return [rounded(side.lo, side.hi) for side in sides]


def enclose(formula: Formula, box: Sequence[Side], prec: int = PRECISION, *, strict: bool = False) -> list[Interval]:
    """For every output an interval that contains its values on the box; UNDEFINED if there is no enclosure.

    A side of the box is an Interval, or a number for a point. If strict, a finite interval proves that f is defined everywhere.
    """
    with ctx.workprec(prec):
        values: list[Interval] = formula.tape.run(IntervalAlgebra(real_box(formula.dimension, box), strict))
        return values


def gradient(
    formula: Formula, box: Sequence[Side], prec: int = PRECISION
) -> tuple[list[Interval], list[list[Interval]]]:
    """Values of the outputs over the box, and partials[output][variable], one for every side of the box.

    They contain every slope and every difference quotient in the box (`gradients`), so that L_j = max |G_j| satisfies
    |f(a) − f(b)| ≤ Σ_j L_j |a_j − b_j| for a, b in the box. UNDEFINED where no finite bound was proved: an unbounded slope, a
    jump, or an output without a value.
    """
    m, D = len(formula.outputs), formula.dimension
    with ctx.workprec(prec):
        found: list[Interval] = formula.jet.run(IntervalAlgebra(real_box(D, box)))
    beyond = [Interval(ZERO, ZERO)] * (len(box) - D)
    rows = [[*found[m + o * D : m + (o + 1) * D], *beyond] for o in range(m)]
    return found[:m], [row if found[o] is not UNDEFINED else [UNDEFINED] * len(row) for o, row in enumerate(rows)]


def holds(condition: Condition, box: Sequence[Side], prec: int = PRECISION) -> bool | None:
    """True if the condition is proved everywhere in the box, False if it is refuted everywhere, None if undecided."""
    with ctx.workprec(prec):
        truth = condition.tape.run(IntervalAlgebra(real_box(condition.dimension, box), strict=True))[0]
        return None if truth is UNDEFINED else truth
