"""Formulas as compositions: every additive term is a sum of h(g(x)) with outer functions h of one variable.

    sin(x1*x2)**2        g = x1*x2,                       h(u) = sin(u)**2
    sqrt(x1**2 + x2**2)  g = x1**2 + x2**2,               h(u) = sqrt(u)
    x1*x2/x3             g = log x1 + log x2 + log(1/x3),  h(u) = exp(u)
    x1*cos(x2)           = x1*(cos(x2) + 2) − 2*x1, and both are products of positive factors
    x1*(x2 + x3*x4)      = x1*x2 + x1*x3*x4

g is any subtree through which a term sees all of its variables. A product whose factors fall into sets with variables of
their own is ± the exponential of a sum of logarithms, after a constant is added to a factor that can be 0. So g often has
fewer variables that interact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

from . import tree as trees
from .additive import ONE, additive_terms, components, gathered
from .tree import Node, Predicate, postorder, substituted, variables

MOST_NODES = 400  # of a term that is searched for inner functions
DEEPEST = 3  # products of sums inside products of sums
U = trees.Variable(1)  # the variable of an outer function

Bounds = Callable[[Node], tuple[float, float]]  # of a function everywhere, proved; infinite where none are known


@dataclass(frozen=True)
class Composition:
    """h(g(x)): `inner` is g, in the variables of the formula, `outer` is h, in the variable x1."""

    inner: Node
    outer: Node

    @property
    def plain(self) -> bool:
        """Whether there is no outer function."""
        return self.outer is U

    @property
    def interacting(self) -> int:
        """The largest number of variables that interact in g."""
        links = [tuple(variables(term)) for term in additive_terms(self.inner)]
        return max(map(len, components(links)), default=0)


Way = tuple[Composition, ...]  # compositions whose sum is a term


def ways(term: Node, bounds: Bounds, depth: int = 0) -> list[Way]:
    """The ways to write a term as a sum of compositions: the fewest interacting variables first, then the fewest summands."""
    if len(variables(term)) < 2 or len(postorder((term,))) > MOST_NODES:
        return [(Composition(term, U),)]
    found: list[Way] = [(alone,) for alone in _compositions(term, bounds)]

    def add(parts: list[Node], depth: int) -> None:
        best = [ways(part, bounds, depth) for part in parts]
        if best and all(best):
            found.append(tuple(one for options in best for one in options[0]))

    add(_distributed(term) if depth < DEEPEST else [], depth + 1)
    add([] if found or depth > DEEPEST else _shifted(term, bounds), DEEPEST + 1)
    return sorted(found, key=lambda way: (max(one.interacting for one in way), len(way)))


def _compositions(term: Node, bounds: Bounds) -> list[Composition]:
    """The ways to write a term as one composition."""
    found = list[Composition]()
    for inner in _bottlenecks(term):
        if inner is not term:
            found.append(Composition(inner, _with(term, inner, U)))
        logarithms = _logarithms(inner, bounds)
        if logarithms is not None:
            factor, total = logarithms
            found.append(Composition(total, _with(term, inner, trees.Product((factor, trees.Call("exp", (U,)))))))
    return found


def _bottlenecks(term: Node) -> list[Node]:
    """The term itself and all subtrees through which it sees all of its variables, the outermost first."""
    whole, values = variables(term), (tree for tree in postorder((term,)) if not isinstance(tree, Predicate))
    seeing = [tree for tree in values if variables(tree) == whole]
    return [tree for tree in reversed(seeing) if not variables(_with(term, tree, ONE))]


def _with(term: Node, inner: Node, by: Node) -> Node:
    """The term with `by` in the place of the subtree `inner`."""
    return substituted(term, lambda tree: by if tree is inner else None)


def _sign(node: Node, bounds: Bounds) -> int:
    low, high = bounds(node)
    return 1 if low > 0 else -1 if high < 0 else 0


def _logarithms(node: Node, bounds: Bounds) -> tuple[Node, Node] | None:
    """(c, Σ log|φ_i|) with node = c·exp(Σ …), if its factors φ_i fall into sets with variables of their own; else None."""
    factors, sets = _separated(node)
    if len(sets) < 2:
        return None
    positive, logs = True, list[Node]()
    for own in sets:
        signs = [_sign(factor, bounds) for factor in own]
        if not all(signs):  # perhaps their product has a sign
            own = [trees.Product(tuple(own))]
            signs = [_sign(own[0], bounds)]
        if not all(signs):
            return None
        positive ^= signs.count(-1) % 2 == 1
        logs += [_log(factor if sign > 0 else trees.Negation(factor)) for factor, sign in zip(own, signs, strict=True)]
    constant = gathered(trees.Product, [factor for factor in factors if not variables(factor)])
    return constant if positive else trees.Negation(constant), trees.Sum(tuple(logs))


def _log(node: Node) -> Node:
    """The logarithm of a positive function."""
    match node:
        case trees.Call("exp", (only,)):
            return only
        case trees.Quotient(trees.Number(Fraction(numerator=1, denominator=1)), trees.Call("exp", (only,))):
            return trees.Negation(only)
    return trees.Call("log", (node,))


def _distributed(term: Node) -> list[Node]:
    """The terms that a product with a sum as a factor is the sum of; none if there is no such factor."""
    factors = _factors(term)
    for i, factor in enumerate(factors):
        parts = additive_terms(factor) if variables(factor) else []
        if len(parts) > 1:
            return [gathered(trees.Product, [*factors[:i], part, *factors[i + 1 :]]) for part in parts]
    return []


def _shifted(term: Node, bounds: Bounds) -> list[Node]:
    """[(φ + c)·rest, −c·rest], where φ is all that can be 0 in a product φ·rest and φ + c cannot; none if there is more."""
    factors, sets = _separated(term)
    ranges = [(own, *bounds(gathered(trees.Product, own))) for own in sets]
    loose = [(own, low, high) for own, low, high in ranges if not (low > 0 or high < 0)]
    if len(sets) < 2 or len(loose) != 1 or not all(map(isfinite, loose[0][1:])):
        return []
    own, low, high = loose[0]
    rest = [factor for factor in factors if not any(factor is one for one in own)]
    shift = trees.Number(Fraction(f"{(high - low) / 2 - low:.3g}"))
    above = trees.Sum((gathered(trees.Product, own), shift))
    return [gathered(trees.Product, [above, *rest]), trees.Negation(gathered(trees.Product, [shift, *rest]))]


def _separated(node: Node) -> tuple[list[Node], list[list[Node]]]:
    """(the factors of a node, sets of those with variables, each with variables of its own)."""
    factors = _factors(node)
    varying = [factor for factor in factors if variables(factor)]
    groups = components([tuple(variables(factor)) for factor in varying])
    return factors, [[one for one in varying if set(variables(one)) <= set(group)] for group in groups]


def _factors(node: Node) -> list[Node]:
    """Nodes whose product is the given one."""
    match node:
        case trees.Product(parts):
            return [factor for part in parts for factor in _factors(part)]
        case trees.Negation(operand):
            return [trees.Number(Fraction(-1)), *_factors(operand)]
        case trees.Quotient(dividend, divisor):
            return [*_factors(dividend), *(trees.Quotient(ONE, factor) for factor in _factors(divisor))]
        case trees.IntegerPower(base, exponent):
            return [trees.IntegerPower(factor, exponent) for factor in _factors(base)]
        case _:
            return [node]
