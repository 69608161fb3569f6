"""Formulas rewritten exactly: kinks apart from the rest, nested kinks as sums of simple ones.

    min(max(x, 0), 1) = max(x, 0) − max(x − 1, 0)        max(0, 1 − |x|) = max(x + 1, 0) + max(x − 1, 0) − |x| − x

(`affine.difference` and `affine.along` say how). Nothing depends on a domain.
"""

from dataclasses import replace
from fractions import Fraction

from ..common.errors import InputError
from . import Formula
from .additive import additive_terms
from .affine import Affine, along, difference
from .compact import ZERO, gathered
from .literal import rational_value
from .tree import Call, Node, Number, Product, Sum, Tree, Variable, Where, children, has_kinks, variables

LARGEST = Fraction(10) ** 280  # of numbers that may become floats; their inverses are the smallest
FEW = 8  # affine functions of a maximum that may take the place of a nested one


def kinks_in(tree: Tree) -> list[Tree]:
    """The outermost parts that have kinks or jumps."""
    if has_kinks(tree):
        return [tree] if variables(tree) else []
    return [part for child in children(tree) for part in kinks_in(child)]


def parted(formula: Formula) -> tuple[Formula, Formula] | None:
    """(kinks of affine functions, the rest), which add up to the formula; None if either has nothing, or other kinks."""
    D, kinks, rest = formula.dimension, list[Node](), list[Node]()
    for output in formula.outputs:
        trees = [(tree, bool(kinks_in(tree))) for tree in additive_terms(output)]
        if any(kinked and difference(tree, D) is None for tree, kinked in trees):
            return None
        kinks.append(gathered(Sum, [tree for tree, kinked in trees if kinked]))
        rest.append(gathered(Sum, [tree for tree, kinked in trees if not kinked]))
    straight = all(difference(tree, D) is not None for output in rest for tree in additive_terms(output))
    if straight or not variables(*kinks):
        return None
    return replace(formula, outputs=tuple(kinks)), replace(formula, outputs=tuple(rest))


def plain(formula: Formula) -> Formula:
    """The same function; additive terms with kinks inside kinks, of rational affine functions, are sums of simple kinks."""
    found = [[(tree, _plain(tree, formula.dimension)) for tree in additive_terms(output)] for output in formula.outputs]
    if not any(new for row in found for _, new in row):
        return formula
    outputs = tuple(gathered(Sum, [part for tree, new in row for part in new or [tree]]) for row in found)
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
            terms.append(Product((Number(Fraction(sign)), Call("max", tuple(map(_written, forms))))))
            continue
        terms.append(_written(found[0].times(Fraction(sign))))
        terms += [Product((Number(sign * c), Call("max", (_written(d), ZERO)))) for c, d in found[1]]
    return terms


def _ordinary(form: Affine) -> bool:
    """Whether all coefficients are within the range of floats."""
    return all(v == 0 or 1 / LARGEST <= abs(v) <= LARGEST for v in (form.constant, *form.slopes))


def _rational(tree: Tree) -> bool:
    """Whether all constants are exact rationals."""
    if isinstance(tree, Variable):
        return True
    if not variables(tree):
        try:
            return not isinstance(tree, Where) and rational_value(tree) is not None  # type: ignore[arg-type]
        except InputError:
            return False
    return all(_rational(child) for child in children(tree))


def _written(form: Affine) -> Node:
    """An affine function as a tree."""
    parts: list[Node] = [Product((Number(form.slopes[j]), Variable(j + 1))) for j in form.support]
    return Sum((Number(form.constant), *parts)) if parts else Number(form.constant)
