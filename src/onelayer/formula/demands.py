"""What must hold for a tree to have a value, read off its nodes."""

from collections.abc import Iterator
from typing import TypeAlias

from .functions import FUNCTIONS
from .tree import Call, IntegerPower, Number, Power, Quotient, Relation, Tree, Where, children

Key: TypeAlias = tuple[object, ...]  # a condition, and the nodes, by identity, on which it is

_SHARED = {"log": "positive", "sqrt": "not negative", "asin": "arc", "acos": "arc"}  # conditions that others have, too
GIVES = {"positive": ("not negative", "not zero")}


def key_of(tree: Tree) -> Key | None:
    """What must hold for the node to have a value where its operands have one; None if nothing."""
    match tree:
        case Quotient(_, base):
            return "not zero", id(base)
        case IntegerPower(base, n) if n < 0:
            return "not zero", id(base)
        case Power(base, Number(q)) if q > 0:
            return "not negative", id(base)
        case Power(base, _):
            return "positive", id(base)
        case Call("atan2", (y, x)):
            return "atan2", id(y), id(x)
        case Call(name, (u,)) if FUNCTIONS[name].partial:
            return _SHARED.get(name, name), id(u)
        case Where():
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
            inner = tree.condition if isinstance(tree, Where) else tree
            pending += children(inner) if inner is tree or isinstance(inner, Relation) else ()
