"""Tree to text: the canonical text that parses back to an equal tree.

parse(to_text(node)) == node for every node that `parse` can produce. A Number outside an exponent whose decimal
expansion is infinite (no parse makes one) is written as a quotient, equal in value only.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from . import tree as trees
from .tree import Tree, children, postorder

# held(part, least): what is written for a part, in brackets if it binds less tightly
Held: TypeAlias = Callable[..., str]
Written: TypeAlias = tuple[str, int]  # a text, and how tightly it binds
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)  # how tightly a text binds


def to_text(tree: Tree, names: Sequence[str] | None = None) -> str:
    """The tree as text, with variables called x1, x2, … or by their names."""

    def write(tree: Tree, held: Held) -> Written:
        match tree:
            case trees.Number(value):
                return decimal_text(value)
            case trees.Constant(name):
                return name, _ATOM
            case trees.Variable(index):
                return (f"x{index}" if names is None else names[index - 1]), _ATOM
            case trees.Sum(terms):
                word = held(terms[0], _PRODUCT)
                for term in terms[1:]:
                    sign, part = ("-", term.operand) if isinstance(term, trees.Negation) else ("+", term)
                    word += f" {sign} {held(part, _PRODUCT)}"
                return word, _SUM
            case trees.Negation(operand):
                return "-" + held(operand, _POWER), _SIGN
            case trees.Product(factors):
                return "*".join([held(factors[0], _PRODUCT), *(held(part, _POWER) for part in factors[1:])]), _PRODUCT
            case trees.Quotient(dividend, divisor):
                return f"{held(dividend, _PRODUCT)}/{held(divisor, _POWER)}", _PRODUCT
            case trees.IntegerPower(base, exponent):
                return f"{held(base, _ATOM)}**{exponent if exponent >= 0 else f'({exponent})'}", _POWER
            case trees.Power(base, trees.Number(value)):
                return f"{held(base, _ATOM)}**({value})", _POWER
            case trees.Power(base, exponent):
                return f"{held(base, _ATOM)}**{held(exponent, _ATOM)}", _POWER
            case trees.Call() | trees.Where():
                word = tree.name if isinstance(tree, trees.Call) else "where"
                return f"{word}({', '.join(map(held, children(tree)))})", _ATOM
            case trees.Relation(sign, left, right):
                return f"{held(left, _SUM)} {sign} {held(right, _SUM)}", _COMPARE
            case trees.And(parts):
                return " and ".join(held(part, _NOT) for part in parts), _AND
            case trees.Or(parts):
                return " or ".join(held(part, _AND) for part in parts), _OR
            case trees.Not(part):
                return "not " + held(part, _NOT), _NOT

    return written(tree, write, lambda word: f"({word})")


def written(tree: Tree, write: Callable[[Tree, Held], Written], bracketed: Callable[[str], str]) -> str:
    """A tree as text, each part made from those inside it."""
    words: dict[int, Written] = {}

    def held(part: Tree, least: int = 0) -> str:
        word, strength = words[id(part)]
        return word if strength >= least else bracketed(word)

    for part in postorder([tree]):
        words[id(part)] = write(part, held)
    return words[id(tree)][0]


def decimal_text(value: Fraction) -> Written:
    """The exact decimal of a rational, or a quotient if there is none, and how tightly it binds."""
    top, bottom, shift = abs(value.numerator), value.denominator, 0
    while bottom % 10 == 0:
        bottom, shift = bottom // 10, shift + 1
    for prime, partner in ((2, 5), (5, 2)):
        while bottom % prime == 0:
            top, bottom, shift = top * partner, bottom // prime, shift + 1
    sign = "-" if value < 0 else ""
    if bottom != 1:
        return f"{sign}{value.numerator if value >= 0 else -value.numerator}/{value.denominator}", _PRODUCT
    digits = str(top)
    zeros = len(digits) - len(digits.rstrip("0")) if top else 0
    if shift == 0:
        word = digits if zeros < 20 else f"{digits[:-zeros]}e{zeros}"
    elif shift < 20:
        digits = digits.rjust(shift + 1, "0")
        word = f"{digits[:-shift]}.{digits[-shift:]}"
    else:
        word = f"{digits}e-{shift}"
    return sign + word, _SIGN if value < 0 else _ATOM
