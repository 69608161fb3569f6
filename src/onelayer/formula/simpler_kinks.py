"""Kinks made simpler, exactly: nested ones become sums of simple ones, and those that a box does not cross go.

    min(max(x, 0), 1) = max(x, 0) − max(x − 1, 0)        max(0, 1 − |x|) = max(x + 1, 0) + max(x − 1, 0) − |x| − x

(`affine.difference` and `affine.along` say how; it does not depend on a domain.) On [0, 1], |x| is x, although 0 belongs to it:

If u ≥ 0 on all of a box with an inside, |u| = u there as functions, so that both have the same slopes: at its faces the one-sided
ones (`one_sided`). The same holds for the argument of max or min that is the largest or smallest on all of the box, and for the
branch of a `where` whose condition holds, or fails, on all of it. A tie at every point, as in max(x, x), is settled too: the
arguments are then equal. Inside smaller boxes nothing of the kind is decided (`gradients`).
"""

import operator
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ..common.errors import InputError
from . import tree as trees
from .additive import ZERO, additive_terms, gathered
from .affine import Affine, along, difference, rational_value
from .expression import Condition, Formula
from .intervals import Interval, interval
from .real_balls import enclose, gradient, holds
from .tree import Node, Tree, children, has_kinks, postorder, substituted, variables

LARGEST = Fraction(10) ** 280  # of numbers that may become floats; their inverses are the smallest
MOST_KINKS = 60  # a formula with more is left as it is: every one of them is enclosed
FEW = 8  # affine functions of a maximum that may take the place of a nested one


def kinks_in(tree: Tree) -> list[Tree]:
    """The outermost parts that have kinks or jumps."""
    if has_kinks(tree):
        return [tree] if variables(tree) else []
    return [part for child in children(tree) for part in kinks_in(child)]


def plain(formula: Formula) -> Formula:
    """The same function; additive terms with kinks inside kinks, of rational affine functions, are sums of simple kinks."""
    found = [[(tree, _plain(tree, formula.dimension)) for tree in additive_terms(output)] for output in formula.outputs]
    if not any(new for row in found for _, new in row):
        return formula
    outputs = tuple(gathered(trees.Sum, [part for tree, new in row for part in new or [tree]]) for row in found)
    return replace(formula, outputs=outputs)


def _plain(tree: Node, dimension: int) -> list[Node]:
    """The terms that a nested kink is the sum of; none if it is not nested, or not of that kind."""
    nested = any(kinks_in(child) for kink in kinks_in(tree) for child in children(kink))
    pair = difference(tree, dimension) if nested and _rational(tree) else None
    if pair is not None and not all(_ordinary(form) for forms in pair for form in forms):
        return []
    terms = list[Node]()
    for sign, forms in zip((1, -1), pair or (), strict=False):
        if len(forms) == 1:
            terms.append(_written(forms[0].times(Fraction(sign))))
            continue
        found = along(forms)
        if found is None and len(forms) > FEW:
            return []
        if found is None:
            terms.append(trees.Product((trees.Number(Fraction(sign)), trees.Call("max", tuple(map(_written, forms))))))
            continue
        terms.append(_written(found[0].times(Fraction(sign))))
        terms += [trees.Product((trees.Number(sign * c), trees.Call("max", (_written(d), ZERO)))) for c, d in found[1]]
    return terms


def _ordinary(form: Affine) -> bool:
    """Whether all coefficients are within the range of floats."""
    return all(v == 0 or 1 / LARGEST <= abs(v) <= LARGEST for v in (form.constant, *form.slopes))


def _rational(tree: Tree) -> bool:
    """Whether all constants are exact rationals."""
    if isinstance(tree, trees.Variable):
        return True
    if not variables(tree):
        try:
            return not isinstance(tree, trees.Where) and rational_value(tree) is not None  # type: ignore[arg-type]
        except InputError:
            return False
    return all(_rational(child) for child in children(tree))


def _written(form: Affine) -> Node:
    """An affine function as a tree."""
    parts: list[Node] = [trees.Product((trees.Number(form.slopes[j]), trees.Variable(j + 1))) for j in form.support]
    return trees.Sum((trees.Number(form.constant), *parts)) if parts else trees.Number(form.constant)


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


def branches(formula: Formula, most: int) -> list[Formula]:
    """The formulas that it may be at a point, by which side of every kink holds there; none if there are more than so many."""
    kinks = _kinks(formula)
    if not kinks:
        return [formula]
    kink = kinks[-1]
    if isinstance(kink, trees.Where):
        sides: tuple[Node, ...] = (kink.yes, kink.no)
    elif kink.name == "abs":
        sides = (kink.arguments[0], trees.Negation(kink.arguments[0]))
    else:
        sides = kink.arguments if kink.name != "floor" else ()
    found = list[Formula]()
    for side in sides:
        outputs = tuple(substituted(output, lambda tree: side if tree is kink else None) for output in formula.outputs)  # noqa: B023
        found += branches(replace(formula, outputs=outputs), most)
    return found if len(found) <= most else []


def _kinks(formula: Formula) -> list[trees.Call | trees.Where]:
    """Every abs, min, max, floor and `where` in a formula."""
    return [tree for tree in postorder(formula.outputs) if has_kinks(tree) and variables(tree)]  # type: ignore[misc]


def _side(kink: trees.Call | trees.Where, names: tuple[str, ...], box: list[Interval]) -> Node | None:
    """The side that is the value on all of the box; None if that is not proved."""
    if isinstance(kink, trees.Where):
        truth = holds(Condition("", names, (kink.condition,)), box)
        return None if truth is None else kink.yes if truth else kink.no
    if kink.name == "floor":
        (value,) = enclose(Formula("", names, (kink,)), box, strict=True)
        whole = value.lo.unique_fmpz() if value.is_finite() and value.lo == value.hi else None
        return None if whole is None else trees.Number(Fraction(int(whole)))
    if kink.name == "abs":
        u = kink.arguments[0]
        return next((side for side in (u, trees.Negation(u)) if _never_negative([side], names, box)), None)
    for own in kink.arguments:
        others = [other for other in kink.arguments if other is not own]
        pairs = [(own, other) if kink.name == "max" else (other, own) for other in others]
        if _never_negative([trees.Sum((high, trees.Negation(low))) for high, low in pairs], names, box):
            return own
    return None


def _never_negative(nodes: list[Node], names: tuple[str, ...], box: list[Interval]) -> bool:
    """Whether all nodes have values everywhere on the box, all ≥ 0: on one side perhaps because they rise or fall."""
    for node in nodes:
        formula = Formula("", names, (node,))
        (value,) = enclose(formula, box, strict=True)
        if value.is_finite() and value.lower() < 0 and len(box) == 1:
            ((slope,),) = gradient(formula, box)[1]
            if slope.is_finite() and (slope.lower() >= 0 or slope.upper() <= 0):
                (value,) = enclose(formula, [box[0].lo if slope.lower() >= 0 else box[0].hi], strict=True)
        if not (value.is_finite() and value.lower() >= 0):
            return False
    return True
