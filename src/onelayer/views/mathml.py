"""Tree to MathML: a formula as a browser typesets it, without a script and without a font of ours.

What is drawn is the tree, so that a reader sees how the text was read: 1/2*x is a half times x. The text itself goes along
for programs that read pages aloud.
"""

import html
import re
from collections.abc import Sequence
from fractions import Fraction

from ..formula import tree as trees
from ..formula.expression import Condition, Formula
from ..formula.functions import FUNCTIONS
from ..formula.printing import Held, Written, decimal_text, to_text, written
from ..formula.tree import Tree

_OR, _AND, _NOT, _COMPARE, _SUM, _SIGN, _PRODUCT, _FRACTION, _POWER, _ATOM = range(10)  # how tightly a part binds
_SIGNS = {"<": "&lt;", ">": "&gt;", "<=": "≤", ">=": "≥"}
_TIMES, _APPLY = "<mo>&#x2062;</mo>", "<mo>&#x2061;</mo>"  # both are silent
_DOT, _SPACE = "<mo>⋅</mo>", '<mspace width="0.17em"></mspace>'


def mathml(tree: Tree, names: Sequence[str] | None = None) -> str:
    """The tree as one <math> element; variables are called x1, x2, … or by their names."""
    return _math(_body(tree, names), to_text(tree, names))


def formula_mathml(formula: Formula | Condition) -> str:
    """f(x1, x2) = …, its outputs below each other; a condition as it is."""
    if isinstance(formula, Condition):
        return mathml(formula.root, formula.names)
    rows = [_body(output, formula.names) for output in formula.outputs]
    arguments = "<mo>,</mo>".join(_named(name) for name in formula.names)
    left = f"<mi>f</mi>{_APPLY}{_bracketed(arguments)}<mo>=</mo>"
    table = "".join(f'<mtr><mtd style="text-align: left">{row}</mtd></mtr>' for row in rows)
    right = rows[0] if len(rows) == 1 else f"<mrow><mo>(</mo><mtable>{table}</mtable><mo>)</mo></mrow>"
    return _math(f"<mrow>{left}{right}</mrow>", formula.text)


def _math(body: str, text: str) -> str:
    start = '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"'
    return f'{start} alttext="{html.escape(text)}">{body}</math>'


def _body(tree: Tree, names: Sequence[str] | None) -> str:
    def draw(tree: Tree, held: Held) -> Written:
        match tree:
            case trees.Number(value):
                return _number(value)
            case trees.Constant(name):
                return f"<mi>{'π' if name == 'pi' else name}</mi>", _ATOM
            case trees.Variable(index):
                return _named(f"x{index}" if names is None else names[index - 1]), _ATOM
            case trees.Sum(terms):
                drawn = held(terms[0], _SIGN)
                for term in terms[1:]:
                    sign, part = ("−", term.operand) if isinstance(term, trees.Negation) else ("+", term)
                    drawn += f"<mo>{sign}</mo>{held(part, _PRODUCT)}"
                return f"<mrow>{drawn}</mrow>", _SUM
            case trees.Negation(operand):
                return f"<mrow><mo>−</mo>{held(operand, _PRODUCT)}</mrow>", _SIGN
            case trees.Product(factors):
                drawn = held(factors[0], _PRODUCT)
                for factor in factors[1:]:
                    drawn += (_DOT if _starts_with_digit(factor) else _TIMES + _SPACE) + held(factor, _FRACTION)
                return f"<mrow>{drawn}</mrow>", _PRODUCT
            case trees.Quotient(dividend, divisor):
                return f"<mfrac>{held(dividend)}{held(divisor)}</mfrac>", _FRACTION
            case trees.IntegerPower(trees.Call(name, (argument,)), exponent) if name in _SUPERSCRIPTED and exponent > 1:
                head = f"<msup>{_function(name)}<mn>{exponent}</mn></msup>"
                return f"<mrow>{head}{_APPLY}{_bracketed(held(argument))}</mrow>", _POWER
            case trees.IntegerPower(base, exponent):
                return f"<msup>{held(base, _ATOM)}{_number(Fraction(exponent))[0]}</msup>", _POWER
            case trees.Power(base, trees.Number(value)):
                return f"<msup>{held(base, _ATOM)}{_inline(value)}</msup>", _POWER
            case trees.Power(base, exponent):
                return f"<msup>{held(base, _ATOM)}{held(exponent)}</msup>", _POWER
            case trees.Call(name, arguments):
                return _call(name, arguments, held)
            case trees.Where(condition, yes, no):
                table = ""
                for shown, word, test in ((held(yes), "if", held(condition)), (held(no), "otherwise", "")):
                    note = f"<mrow><mtext>{word}&#xa0;</mtext>{test}</mrow>"
                    table += f"<mtr><mtd>{shown}</mtd><mtd>{note}</mtd></mtr>"
                return f'<mrow><mo stretchy="true">{{</mo><mtable>{table}</mtable></mrow>', _SUM
            case trees.Relation(sign, left, right):
                return f"<mrow>{held(left, _SUM)}<mo>{_SIGNS[sign]}</mo>{held(right, _SUM)}</mrow>", _COMPARE
            case trees.And(tests):
                return _worded("and", [held(test, _NOT) for test in tests]), _AND
            case trees.Or(tests):
                return _worded("or", [held(test, _AND) for test in tests]), _OR
            case trees.Not(test):
                return f"<mrow><mtext>not&#xa0;</mtext>{held(test, _NOT)}</mrow>", _NOT

    return written(tree, draw, _bracketed)


_SUPERSCRIPTED = frozenset(["sin", "cos", "tan", "sinh", "cosh", "tanh"])  # sin²(x) is (sin x)²


def _call(name: str, arguments: Sequence[Tree], held: Held) -> Written:
    """A function at its arguments, as books write it."""
    first, one = held(arguments[0]), "<mn>1</mn>"
    power = f"<msup><mi>e</mi>{first}</msup>"
    match name:
        case "exp":
            return power, _POWER
        case "expm1":
            return f"<mrow>{power}<mo>−</mo>{one}</mrow>", _SUM
        case "exprel":
            return f"<mfrac><mrow>{power}<mo>−</mo>{one}</mrow>{first}</mfrac>", _FRACTION
        case "log1p" | "softplus":
            inside = f"{one}<mo>+</mo>{power if name == 'softplus' else first}"
            return f"<mrow>{_function('log')}{_APPLY}{_bracketed(inside)}</mrow>", _POWER
        case "sqrt":
            return f"<msqrt>{first}</msqrt>", _ATOM
        case "cbrt":
            return f"<mroot>{first}<mn>3</mn></mroot>", _ATOM
        case "abs":
            return f'<mrow><mo fence="true">|</mo>{first}<mo fence="true">|</mo></mrow>', _ATOM
        case "sqr":
            return f"<msup>{held(arguments[0], _ATOM)}<mn>2</mn></msup>", _POWER
        case _:
            listed = "<mo>,</mo>".join(map(held, arguments))
            return f"<mrow>{_function(name)}{_APPLY}{_bracketed(listed)}</mrow>", _POWER


def _function(name: str) -> str:
    drawn = FUNCTIONS[name].drawn if name in FUNCTIONS else ""
    letter, _, index = drawn.partition("_")
    return f"<msub><mi>{letter}</mi><mn>{index}</mn></msub>" if index else f"<mi>{drawn or name}</mi>"


def _bracketed(drawn: str) -> str:
    return f"<mrow><mo>(</mo>{drawn}<mo>)</mo></mrow>"


def _worded(word: str, drawn: list[str]) -> str:
    return f"<mrow>{f'<mtext>&#xa0;{word}&#xa0;</mtext>'.join(drawn)}</mrow>"


def _named(name: str) -> str:
    """A variable; digits at its end are an index."""
    found = re.fullmatch(r"(.*[^\W\d_])_?([0-9]+)", name)
    if found is None:
        return f"<mi>{html.escape(name)}</mi>"
    return f"<msub><mi>{html.escape(found[1])}</mi><mn>{found[2]}</mn></msub>"


def _number(value: Fraction) -> Written:
    """A rational: its decimal, a power of ten behind it, or a fraction."""
    if value < 0:
        return f"<mrow><mo>−</mo>{_number(-value)[0]}</mrow>", _SIGN
    word, _ = decimal_text(value)
    if "/" in word:
        return f"<mfrac><mn>{value.numerator}</mn><mn>{value.denominator}</mn></mfrac>", _FRACTION
    digits, _, power = word.partition("e")
    if not power:
        return f"<mn>{word}</mn>", _ATOM
    ten = f"<msup><mn>10</mn>{_number(Fraction(power))[0]}</msup>"
    return f"<mrow><mn>{digits}</mn><mo>⋅</mo>{ten}</mrow>", _PRODUCT


def _inline(value: Fraction) -> str:
    """A rational exponent on one line."""
    minus = "<mo>−</mo>" if value < 0 else ""
    return f"<mrow>{minus}<mn>{abs(value.numerator)}</mn><mo>/</mo><mn>{value.denominator}</mn></mrow>"


def _starts_with_digit(factor: Tree) -> bool:
    """Whether a factor must not stand right behind another one: 2·3 is not 23."""
    while isinstance(factor, trees.Product | trees.Power | trees.IntegerPower):
        factor = factor.factors[0] if isinstance(factor, trees.Product) else factor.base
    return isinstance(factor, trees.Number)
