"""Which variables interact: f = Σ_g f_g(x_g) over groups of coordinates.

A formula shows its groups: the terms of its sums, followed through negation and constant factors, link the variables they
contain; connected components are the groups. That is a proof of additivity.

The other way: sums, products and quotients of trees are made without zeros and ones, and with numbers as one.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from .expression import Formula
from .tree import IntegerPower, Make, Negation, Node, Number, Product, Quotient, Sum, Variable, at, new, variables

ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


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
            outputs.append(Sum((ZERO, *(at(term, lambda i: Variable(place[i])) for term in terms))))  # noqa: B023
        names = tuple(formula.names[j] for j in group)
        found.append(Formula(formula.text, names, tuple(outputs)))
    return found


def gathered(kind: type[Any], parts: Sequence[Node], make: Make = new) -> Node:
    """A sum or product of the parts: the only one by itself, 0 or 1 if there are none."""
    return make(kind, tuple(parts)) if len(parts) > 1 else parts[0] if parts else ZERO if kind is Sum else ONE


def negated(node: Node) -> Node:
    return node.operand if isinstance(node, Negation) else node if node == ZERO else Negation(node)


def power(base: Node, n: int) -> Node:
    return ONE if n == 0 else base if n == 1 else IntegerPower(base, n)


def over(dividend: Node, divisor: Node) -> Node:
    if isinstance(dividend, Negation):
        return Negation(over(dividend.operand, divisor))
    return dividend if dividend == ZERO else Quotient(dividend, divisor)


def plus(terms: Iterable[Node]) -> Node:
    """The sum, without zeros and with its positive numbers as one."""
    rest = [part for term in terms for part in (term.terms if isinstance(term, Sum) else (term,)) if part != ZERO]
    numbers = [part for part in rest if isinstance(part, Number)]
    if len(numbers) > 1:
        rest = [Number(sum((number.value for number in numbers), Fraction(0))), *(p for p in rest if p not in numbers)]
    return gathered(Sum, rest)


def times(*nodes: Node) -> Node:
    """The product: numbers become one, signs go to the front, n/d becomes a division of the whole."""
    pending, number, factors, divisors = list(nodes[::-1]), Fraction(1), list[Node](), list[Node]()
    while pending:
        match pending.pop():
            case Number(value):
                number *= value
            case Negation(operand):
                number, pending = -number, [*pending, operand]
            case Product(parts):
                pending += parts[::-1]
            case Quotient(Number(value), divisor) if value:
                number, divisors = number * value, [*divisors, divisor]
            case node:
                factors.append(node)
    if number == 0:
        return ZERO
    size, over = abs(number), 1
    if 10**60 % size.denominator:
        size, over = Fraction(size.numerator), size.denominator
    factors = [Number(size), *factors] if size != 1 or not factors else factors
    divisors = [Number(Fraction(over)), *divisors] if over > 1 else divisors
    above = gathered(Product, factors)
    whole = Quotient(above, gathered(Product, divisors)) if divisors else above
    return whole if number > 0 else Negation(whole)
