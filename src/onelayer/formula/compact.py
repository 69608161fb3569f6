"""Sums, products and quotients of trees, without zeros and ones, and with numbers as one."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from .tree import IntegerPower, Make, Negation, Node, Number, Product, Quotient, Sum, new

ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


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
