"""What must hold for a tree to have a value, read off its nodes, and the value of a tree of numbers.

It is computed exactly, with sizes bounded before every operation: the exponent 9**9**9 is refused and never computed.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from . import tree as trees
from .functions import FUNCTIONS
from .screen import refuse
from .tree import Node, Tree, children
from .vocabulary import MAX_EXPONENT

Key: TypeAlias = tuple[object, ...]  # a condition, and the nodes, by identity, on which it is

_SHARED = {"log": "positive", "sqrt": "not negative", "asin": "arc", "acos": "arc"}  # conditions that others have, too
GIVES = {"positive": ("not negative", "not zero")}
ARITHMETIC = trees.Number | trees.Negation | trees.Sum | trees.Product | trees.Quotient | trees.IntegerPower
_BITS = 4096


def key_of(tree: Tree) -> Key | None:
    """What must hold for the node to have a value where its operands have one; None if nothing."""
    match tree:
        case trees.Quotient(_, base):
            return "not zero", id(base)
        case trees.IntegerPower(base, n) if n < 0:
            return "not zero", id(base)
        case trees.Power(base, trees.Number(q)) if q > 0:
            return "not negative", id(base)
        case trees.Power(base, _):
            return "positive", id(base)
        case trees.Call("atan2", (y, x)):
            return "atan2", id(y), id(x)
        case trees.Call(name, (u,)) if FUNCTIONS[name].partial:
            return _SHARED.get(name, name), id(u)
        case trees.Where():
            return "where", id(tree)
        case _:
            return None


def needed(root: Tree) -> Iterator[Tree]:
    """The nodes without whose value the root has none: branches of `where` are left out. The outermost come first."""
    pending, seen = [root], set[int]()
    while pending:
        tree = pending.pop()
        if id(tree) not in seen:
            seen.add(id(tree))
            yield tree
            inner = tree.condition if isinstance(tree, trees.Where) else tree
            pending += children(inner) if inner is tree or isinstance(inner, trees.Relation) else ()


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
        case trees.Negation():
            return -values[0]
        case trees.Sum():
            return reduce(lambda a, b: _bounded(a + b), values, Fraction(0))
        case trees.Product():
            return reduce(lambda a, b: _bounded(a * b), values, Fraction(1))
        case trees.Quotient():
            return _bounded(values[0] / _nonzero(values[1]))
        case trees.IntegerPower(_, n):
            if _bits(values[0]) * abs(n) > 2 * _BITS:
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
    if _bits(value) > _BITS:
        raise _too_large()
    return value


def _nonzero(value: Fraction) -> Fraction:
    if value == 0:
        raise refuse("an exponent that divides by zero", "use another exponent")
    return value


def _too_large() -> Exception:
    change = f"keep constant exponents between -{MAX_EXPONENT} and {MAX_EXPONENT}"
    return refuse("an exponent that is too large", change)
