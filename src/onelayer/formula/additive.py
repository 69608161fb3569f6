"""Which variables interact: f = Σ_g f_g(x_g) over groups of coordinates.

A formula shows its groups: the terms of its sums, followed through negation and constant factors, link the variables they
contain; connected components are the groups. That is a proof of additivity.
"""

from collections.abc import Iterable
from fractions import Fraction

from . import Formula
from .tree import Negation, Node, Number, Product, Quotient, Sum, Variable, at, variables


def components(links: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Connected components of the coordinates that the links join."""
    found: list[set[int]] = []
    for link in map(set, links):
        if not link:
            continue
        touching = [c for c in found if c & link]
        found = [c for c in found if not c & link] + [link.union(*touching)]
    return sorted(tuple(sorted(c)) for c in found)


def maximal(links: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The links that no other contains: sets of coordinates, which may overlap, that hold every link."""
    sets = {frozenset(link) for link in links if link}
    return sorted(tuple(sorted(s)) for s in sets if not any(s < other for other in sets))


def links_of(formula: Formula) -> list[tuple[int, ...]]:
    """The coordinates (from 0) of every additive term of every output."""
    return [tuple(i - 1 for i in term) for output in formula.outputs for term in terms_of(output)]


def home_of(link: Iterable[int], groups: list[tuple[int, ...]]) -> int:
    """The first group that holds the link; the very first if the link is empty."""
    own = set(link)
    return next(i for i, group in enumerate(groups) if own <= set(group))


def terms_of(node: Node) -> list[tuple[int, ...]]:
    """The variables (from 1) of every additive term."""
    return [variables(term) for term in additive_terms(node)]


def additive_terms(node: Node) -> list[Node]:
    """Nodes whose sum is the given one: sums are followed through negation, constant factors and constant divisors."""
    match node:
        case Sum(parts):
            return [term for part in parts for term in additive_terms(part)]
        case Negation(operand):
            return [Negation(term) for term in additive_terms(operand)]
        case Product(factors):
            varying = [i for i, factor in enumerate(factors) if variables(factor)]
            if len(varying) != 1:
                return [node]
            before, one, after = factors[: varying[0]], factors[varying[0]], factors[varying[0] + 1 :]
            return [Product((*before, term, *after)) for term in additive_terms(one)]
        case Quotient(dividend, divisor) if not variables(divisor):
            return [Quotient(term, divisor) for term in additive_terms(dividend)]
        case _:
            return [node]


def parts_of(formula: Formula, groups: list[tuple[int, ...]]) -> list[Formula]:
    """Formulas f_g of the coordinates of each group with f = Σ_g f_g: every additive term goes to the first that holds it.

    Coordinates are renumbered within the group. Groups may overlap; every term must lie in one.
    """
    rows = [additive_terms(output) for output in formula.outputs]
    homes = [[(term, home_of((i - 1 for i in variables(term)), groups)) for term in row] for row in rows]
    found = []
    for position, group in enumerate(groups):
        place = {j + 1: i + 1 for i, j in enumerate(group)}
        outputs = []
        for placed in homes:
            terms = [term for term, home in placed if home == position]
            outputs.append(Sum((Number(Fraction(0)), *(at(term, lambda i: Variable(place[i])) for term in terms))))  # noqa: B023
        names = tuple(formula.names[j] for j in group)
        found.append(Formula(formula.text, names, tuple(outputs)))
    return found
