"""Formulas as compositions: every additive term is h(g(x)) with an outer function h of one variable.

    sin(x1*x2)**2        g = x1*x2,                       h(u) = sin(u)**2
    sqrt(x1**2 + x2**2)  g = x1**2 + x2**2,               h(u) = sqrt(u)
    x1*x2/x3             g = log x1 + log x2 + log(1/x3),  h(u) = exp(u)

g is any subtree through which the term sees all of its variables. A product whose factors fall into sets with variables of
their own, none of which can be 0, is ± the exponential of a sum of logarithms. So g often has fewer variables that interact.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from .additive import additive_terms, components
from .tree import (
    Call,
    IntegerPower,
    Negation,
    Node,
    Number,
    Product,
    Quotient,
    Sum,
    Tree,
    Variable,
    children,
    postorder,
    variables,
)

MOST_NODES = 400  # of a term that is searched for inner functions
ONE = Number(Fraction(1))
U = Variable(1)  # the variable of an outer function

Sign = Callable[[Node], int]  # 1 or −1 where a function is proved to have that sign on the whole domain, else 0


@dataclass(frozen=True)
class Composition:
    """A term h(g(x)): `inner` is g, in the variables of the formula, `outer` is h, in the variable x1."""

    inner: Node
    outer: Node

    @property
    def interacting(self) -> int:
        """The largest number of variables that interact in g."""
        links = [tuple(variables(term)) for term in additive_terms(self.inner)]
        return max(map(len, components(links)), default=0)


def compositions(term: Node, sign: Sign) -> list[Composition]:
    """The ways to write a term as h(g(x)), h not affine; the fewest interacting variables in g first."""
    if len(postorder((term,))) > MOST_NODES:
        return []
    found = list[Composition]()
    for inner in _bottlenecks(term):
        if inner is not term and not isinstance(inner, Variable):
            found.append(Composition(inner, substituted(term, inner, U)))
        logarithms = _logarithms(inner, sign)
        if logarithms is not None:
            factor, total = logarithms
            found.append(Composition(total, substituted(term, inner, Product((factor, Call("exp", (U,)))))))
    return sorted(found, key=lambda c: c.interacting)


def _bottlenecks(term: Node) -> list[Node]:
    """The term itself and all subtrees through which it sees all of its variables, the outermost first."""
    return [tree for tree in reversed(postorder((term,))) if _is_value(tree) and _hides(term, tree)]  # type: ignore[misc]


def _is_value(tree: Tree) -> bool:
    return not type(tree).__name__ in ("Relation", "And", "Or", "Not") and bool(variables(tree))


def _hides(term: Node, inner: Tree) -> bool:
    """Whether no variable of the term is left outside `inner`."""
    pending, seen = [term], set[int]()
    while pending:
        tree: Any = pending.pop()
        if tree is inner or id(tree) in seen:
            continue
        if isinstance(tree, Variable):
            return False
        seen.add(id(tree))
        pending += children(tree)  # type: ignore[arg-type]
    return True


def substituted(term: Node, inner: Tree, by: Node) -> Node:
    """The term with `by` in the place of the subtree `inner`."""
    done: dict[int, Any] = {id(inner): by}
    for tree in postorder((term,)):
        if id(tree) in done:
            continue
        changes: dict[str, Any] = {}
        for field in fields(tree):
            value = getattr(tree, field.name)
            if isinstance(value, tuple):
                changes[field.name] = tuple(done[id(part)] for part in value)
            elif id(value) in done:
                changes[field.name] = done[id(value)]
        rebuild: Any = replace
        done[id(tree)] = rebuild(tree, **changes)
    result: Node = done[id(term)]
    return result


def _logarithms(node: Node, sign: Sign) -> tuple[Node, Node] | None:
    """(c, Σ log|φ_i|) with node = c·exp(Σ …), the φ_i having no variables in common; None if there is no such form."""
    factors = _factors(node)
    varying = [factor for factor in factors if variables(factor)]
    groups = components([tuple(variables(factor)) for factor in varying])
    if len(groups) < 2:
        return None
    positive, logs = True, list[Node]()
    for group in groups:
        own = [factor for factor in varying if set(variables(factor)) <= set(group)]
        whole = own[0] if len(own) == 1 else Product(tuple(own))
        direction = sign(whole)
        if not direction:
            return None
        positive = positive == (direction > 0)
        logs.append(Call("log", (whole if direction > 0 else Negation(whole),)))
    constants = [factor for factor in factors if not variables(factor)]
    constant: Node = Product(tuple(constants)) if len(constants) > 1 else (constants or [ONE])[0]
    return constant if positive else Negation(constant), Sum(tuple(logs))


def _factors(node: Node) -> list[Node]:
    """Nodes whose product is the given one."""
    match node:
        case Product(parts):
            return [factor for part in parts for factor in _factors(part)]
        case Negation(operand):
            return [Number(Fraction(-1)), *_factors(operand)]
        case Quotient(dividend, divisor):
            return [*_factors(dividend), *(Quotient(ONE, factor) for factor in _factors(divisor))]
        case IntegerPower(base, exponent):
            return [IntegerPower(factor, exponent) for factor in _factors(base)]
        case _:
            return [node]
