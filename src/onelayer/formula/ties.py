"""Comparisons that no enclosure decides where both sides are equal, not even at a single point.

The right side gets + (pi - pi): exactly 0, also in floating point, but no enclosure of it is a point.
"""

from .compact import ZERO
from .tree import And, Constant, Negation, Node, Not, Or, Predicate, Relation, Sum

BLUR = Sum((Constant("pi"), Negation(Constant("pi"))))


def blurred(node: Node) -> Node:
    """node + (pi - pi): equal, and no enclosure of it is a point."""
    if node == BLUR or (isinstance(node, Sum) and node.terms[-1] == BLUR):
        return node
    return BLUR if node == ZERO else Sum((node, BLUR))


def clear(test: Predicate) -> Predicate:
    """The same condition, which enclosures leave undecided where the sides of a comparison are equal."""
    match test:
        case Relation(sign, left, right):
            return Relation(sign, left, blurred(right))
        case And(parts) | Or(parts):
            return type(test)(tuple(map(clear, parts)))
        case Not(part):
            return Not(clear(part))


def tells(test: Predicate) -> bool:
    """Whether a condition is of that kind."""
    return clear(test) == test
