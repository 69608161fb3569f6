"""Kinks and jumps that a box does not cross: |x| on [0, 1] is x, although 0 belongs to the box.

If u ≥ 0 on all of a box with an inside, |u| = u there as functions, so that both have the same slopes: at its faces the one-sided
ones. The same holds for the argument of max or min that is the largest or smallest on all of the box, and for the branch of a
`where` whose condition holds, or fails, on all of it. A tie at every point, as
in max(x, x), is settled too: the arguments are then equal. Inside smaller boxes nothing of the kind is decided (`ties`).
"""

import operator
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from .expression import Condition, Formula
from .intervals import Interval, interval
from .real_balls import enclose, holds
from .tree import Call, Negation, Node, Number, Sum, Where, has_kinks, postorder, substituted, variables

MOST_KINKS = 60  # a formula with more is left as it is: every one of them is enclosed


def one_sided(formula: Formula, lower: Sequence[float], upper: Sequence[float]) -> Formula:
    """The formula with abs, min, max, floor and `where` replaced where one side is proved to be the value on all of the box."""
    box = [interval(a, b) for a, b in zip(lower, upper, strict=True)]
    while 0 < len(_kinks(formula)) <= MOST_KINKS and all(map(operator.lt, lower, upper)):
        sides = {id(kink): side for kink in _kinks(formula) if (side := _side(kink, formula.names, box)) is not None}
        if not sides:
            break
        outputs = tuple(substituted(output, lambda tree: sides.get(id(tree))) for output in formula.outputs)  # noqa: B023
        formula = replace(formula, outputs=outputs)  # kinks inside those that went have still to be looked at
    return formula


def _kinks(formula: Formula) -> list[Call | Where]:
    """Every abs, min, max, floor and `where` in a formula."""
    return [tree for tree in postorder(formula.outputs) if has_kinks(tree) and variables(tree)]  # type: ignore[misc]


def _side(kink: Call | Where, names: tuple[str, ...], box: list[Interval]) -> Node | None:
    """The side that is the value on all of the box; None if that is not proved."""
    if isinstance(kink, Where):
        truth = holds(Condition("", names, kink.condition), box)
        return None if truth is None else kink.yes if truth else kink.no
    if kink.name == "floor":
        (value,) = enclose(Formula("", names, (kink,)), box, strict=True)
        return Number(Fraction(value.lower())) if value.is_finite() and value.lo == value.hi else None
    if kink.name == "abs":
        u = kink.arguments[0]
        return next((side for side in (u, Negation(u)) if _never_negative([side], names, box)), None)
    for own in kink.arguments:
        others = [other for other in kink.arguments if other is not own]
        pairs = [(own, other) if kink.name == "max" else (other, own) for other in others]
        if _never_negative([Sum((high, Negation(low))) for high, low in pairs], names, box):
            return own
    return None


def _never_negative(nodes: list[Node], names: tuple[str, ...], box: list[Interval]) -> bool:
    """Whether all nodes have values everywhere on the box, all ≥ 0."""
    found = enclose(Formula("", names, tuple(nodes)), box, strict=True)
    return all(value.is_finite() and value.lower() >= 0 for value in found)
