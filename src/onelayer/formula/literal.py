"""Literals and constant exponents as exact rationals.

A literal is read from its source text, so that 0.1 is 1/10 and not the nearest float. The value of a constant exponent
is computed exactly, with sizes bounded before every operation: 9**9**9**9 is refused and never computed.
"""

import re
from fractions import Fraction

from .screen import clip, refuse
from .tree import IntegerPower, Negation, Node, Number, Product, Quotient, Sum
from .vocabulary import MAX_DIGITS, MAX_EXPONENT, MAX_MAGNITUDE

_LITERAL = re.compile(r"(\d+\.?\d*|\.\d+)([eE]([+-]?\d+))?", re.ASCII)
DECIMAL = "write numbers in decimal, such as 12, 0.5 or 1e-3"
_LIMIT = 10**MAX_MAGNITUDE
_BITS = 4096


def literal(source: str) -> Fraction:
    """The number that decimal text such as 12, .5 or 1e-3 denotes."""
    match = _LITERAL.fullmatch(source)
    if match is None:
        raise refuse(f"the literal {clip(source)}", DECIMAL)
    if len(source) > MAX_DIGITS:
        raise refuse(f"a literal of {len(source)} characters", f"use at most {MAX_DIGITS} characters")
    exponent = match[3] or "0"
    value = Fraction(source) if len(exponent.lstrip("+-0")) <= 4 and abs(int(exponent)) <= 2 * MAX_DIGITS else None
    if value is None or (value != 0 and not Fraction(1, _LIMIT) <= value <= _LIMIT):
        raise refuse(f"the literal {clip(source)}", f"keep numbers between 1e-{MAX_MAGNITUDE} and 1e{MAX_MAGNITUDE}")
    return value


def rational_value(tree: Node) -> Fraction | None:
    """The exact value of a tree of numbers and + − * / and integer powers; None if it has other parts.

    Raises InputError when the value is too long to compute or divides by zero.
    """
    match tree:
        case Number(value):
            return value
        case Negation(operand):
            inner = rational_value(operand)
            return None if inner is None else -inner
        case Sum(parts) | Product(parts):
            total = Fraction(0 if isinstance(tree, Sum) else 1)
            for item in [rational_value(part) for part in parts]:
                if item is None:
                    return None
                total = _bounded(total + item if isinstance(tree, Sum) else total * item)
            return total
        case Quotient(dividend, divisor):
            top, bottom = rational_value(dividend), rational_value(divisor)
            if top is None or bottom is None:
                return None
            return _bounded(top / _nonzero(bottom))
        case IntegerPower(base, exponent):
            root = rational_value(base)
            if root is None:
                return None
            if _bits(root) * abs(exponent) > 2 * _BITS:
                raise _too_large()
            return _bounded(root**exponent if exponent >= 0 else 1 / _nonzero(root) ** -exponent)
        case _:
            return None


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
