"""The expression tree: what a formula is, once the text is gone.

    Node       Number | Constant | Variable | Sum | Negation | Product | Quotient
               | IntegerPower | Power | Call | Where                                     values in ℝ
    Predicate  Relation | And | Or | Not                                                 values in {true, false}

A difference a − b is Sum((a, Negation(b))); a long sum or product is one node, so that depth counts brackets and not
terms. Trees are immutable and may share subtrees: the parser makes equal subtrees the same object. Nothing here
evaluates anything, and the constructors do not check their arguments; `parse` is the way to a checked tree.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, TypeAlias, get_args


@dataclass(frozen=True, slots=True)
class Number:
    """An exact rational: 0.1 is 1/10."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Constant:
    """π or e."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """The coordinate x_index, counted from 1: column index − 1 of a batch."""

    index: int


@dataclass(frozen=True, slots=True)
class Sum:
    terms: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Negation:
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Product:
    factors: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Quotient:
    dividend: "Node"
    divisor: "Node"


@dataclass(frozen=True, slots=True)
class IntegerPower:
    """baseⁿ, with x⁰ = 1 also at 0."""

    base: "Node"
    exponent: int


@dataclass(frozen=True, slots=True)
class Power:
    """exp(exponent · log base); for a positive rational exponent also 0 at base 0.

    A rational exponent is one exact Number; it is never an integer (that is IntegerPower).
    """

    base: "Node"
    exponent: "Node"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the vocabulary at its arguments."""

    name: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Where:
    """`yes` where the condition is true, `no` elsewhere."""

    condition: "Predicate"
    yes: "Node"
    no: "Node"


@dataclass(frozen=True, slots=True)
class Relation:
    """left < right, or one of <=, >, >=."""

    sign: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class And:
    """False where one part is false, even where another part has no value."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True where one part is true, even where another part has no value."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: "Predicate"


Node: TypeAlias = (
    Number | Constant | Variable | Sum | Negation | Product | Quotient | IntegerPower | Power | Call | Where
)
Predicate: TypeAlias = Relation | And | Or | Not
Tree: TypeAlias = Node | Predicate


def _subtrees(kind: type[Any]) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """The fields of a class that hold subtrees, those that hold other data, and whether its subtrees are one tuple."""
    types = {field.name: str(field.type) for field in fields(kind)}
    parts = tuple(name for name, held in types.items() if "Node" in held or "Predicate" in held)
    others = tuple(name for name in types if name not in parts)
    return parts, others, any(types[name].startswith("tuple") for name in parts)


SUBTREES: dict[type[Any], tuple[tuple[str, ...], tuple[str, ...], bool]] = {
    kind: _subtrees(kind) for union in (Node, Predicate) for kind in get_args(union)
}


def children(tree: Tree) -> tuple[Tree, ...]:
    """The direct subtrees, in reading order."""
    names, _, listed = SUBTREES[type(tree)]
    parts = tuple(getattr(tree, name) for name in names)
    return parts[0] if listed else parts


def postorder(roots: Iterable[Tree]) -> tuple[Tree, ...]:
    """Every distinct subtree object once, children before parents."""
    seen: set[int] = set()
    order: list[Tree] = []
    pending: list[tuple[Tree, bool]] = [(root, False) for root in reversed(tuple(roots))]
    while pending:
        tree, ready = pending.pop()
        if ready:
            order.append(tree)
        elif id(tree) not in seen:
            seen.add(id(tree))
            pending.append((tree, True))
            pending.extend((child, False) for child in reversed(children(tree)))
    return tuple(order)


def variables(*roots: Tree) -> tuple[int, ...]:
    """Indices (from 1) of the variables that occur, in increasing order."""
    return tuple(sorted({tree.index for tree in postorder(roots) if isinstance(tree, Variable)}))


KINKED = ("abs", "min", "max", "floor")  # functions with kinks or jumps


def has_kinks(tree: Tree) -> bool:
    """Whether the node itself has kinks or jumps."""
    return isinstance(tree, Where) or (isinstance(tree, Call) and tree.name in KINKED)


def switches(roots: Iterable[Tree]) -> list[Tree]:
    """What decides where values may jump: the conditions of `where`, and the arguments of floor."""
    found = list[Tree]()
    for tree in postorder(roots):
        if isinstance(tree, Where):
            found.append(tree.condition)
        elif isinstance(tree, Call) and tree.name == "floor":
            found += tree.arguments
    return found


Make: TypeAlias = Callable[..., Any]  # make(kind, *fields): the node


def new(kind: type[Any], *held: Any) -> Any:
    """A node, not shared with any other."""
    return kind(*held)


def substituted(root: Node, instead: Callable[[Tree], Node | None], make: Make = new) -> Node:
    """The tree with other nodes in the place of those for which `instead` gives one; shared subtrees stay shared."""
    done: dict[int, Any] = {}
    for tree in postorder((root,)):
        held = (getattr(tree, field.name) for field in fields(tree))
        held = (tuple(done[id(p)] for p in h) if isinstance(h, tuple) else done.get(id(h), h) for h in held)
        other = instead(tree)
        done[id(tree)] = make(type(tree), *held) if other is None else other
    found: Node = done[id(root)]
    return found


def at(root: Node, arguments: Callable[[int], Node], make: Make = new) -> Node:
    """The tree with other nodes in the place of its variables, by their indices."""
    return substituted(root, lambda tree: arguments(tree.index) if isinstance(tree, Variable) else None, make)
