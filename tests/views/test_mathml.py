"""Typeset formulas: what is drawn is read back, and means what the tree means."""

from xml.etree import ElementTree

import numpy as np
import pytest

from onelayer.formula import parse, parse_condition
from onelayer.formula.functions import FUNCTIONS
from onelayer.formula.numeric import evaluate
from onelayer.formula.vocabulary import BINARY, UNARY, VARIADIC
from onelayer.views.mathml import formula_mathml, mathml

SILENT = {"\u2062": "*", "\u2061": "", "⋅": "*", "−": "-", "≤": "<=", "≥": ">="}
NAMES = {f.drawn.replace("_", ""): name for name, f in FUNCTIONS.items() if f.drawn} | {"π": "pi"}


def read(element):
    """The text that a reader of the picture would type."""
    tag, parts = element.tag.rpartition("}")[2], list(element)
    match tag:
        case "mn":
            return element.text
        case "mi":
            return NAMES.get(element.text, element.text)
        case "mo":
            return SILENT.get(element.text, element.text)
        case "mtext":
            return f" {element.text.strip()} "
        case "mspace":
            return ""
        case "mfrac":
            return f"(({read(parts[0])})/({read(parts[1])}))"
        case "msqrt":
            return f"sqrt({row(parts)})"
        case "mroot":
            return f"cbrt({read(parts[0])})"
        case "msub":
            name = parts[0].text + parts[1].text
            return NAMES.get(name, name)
        case "msup" if parts[0].tag.endswith("mi") and parts[0].text in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
            return f"{parts[0].text}^{parts[1].text}"
        case "msup":
            return f"({read(parts[0])})**({read(parts[1])})" if read(parts[0]) != "e" else f"exp({read(parts[1])})"
        case "mtable":
            (yes, test), (no, _) = ([read(cell) for cell in line] for line in parts)
            return f"where({test.replace(' if ', '')}, {yes}, {no})"
        case _:
            return row(parts)


def row(parts):
    texts = [read(part) for part in parts if part.text != "{"]
    if texts[:1] == ["|"]:
        return f"abs({''.join(texts[1:-1])})"
    if "^" in texts[0]:  # sin²(x)
        name, _, power = texts[0].partition("^")
        return f"{name}{''.join(texts[1:])}**{power}"
    return "".join(texts)


def typed_again(formula):
    found = [read(ElementTree.fromstring(mathml(output, formula.names))) for output in formula.outputs]
    return "; ".join(found)


def assert_same(text, names=("x", "y", "z")):
    formula = parse(text, names)
    again = parse(typed_again(formula), names)
    x = np.random.default_rng(0).uniform(0.1, 0.9, (50, len(names)))
    assert np.allclose(evaluate(formula, x), evaluate(again, x), rtol=1e-12, atol=1e-13, equal_nan=True), text


@pytest.mark.parametrize("name", [*UNARY, *BINARY, *VARIADIC])
def test_every_function_is_drawn_as_it_is_read(name):
    arguments = "x - y/2" if name in UNARY else "x - y, 2*y" if name in BINARY else "x - y, 2*y, z"
    for text in (
        f"{name}({arguments})",
        f"{name}({arguments})**3 - x",
        f"2*{name}({arguments})*z",
        f"-{name}({arguments})/z",
    ):
        assert_same(text)


@pytest.mark.parametrize(
    "text",
    [
        "x + y - z", "x - (y - z)", "x - (y + z)", "-(x + y)", "-x*y", "x*(-y)", "x*-2", "(-x)**2", "-x**2", "2*3*x", "x*2",
        "(x + y)*(x - y)", "x/y/z", "x/(y/z)", "(x/y)**2", "x*y/z", "x*(y/z)", "x**-2", "x**0.5", "x**(1/3)", "x**(-2/3)",
        "x**y", "x**(y + z)", "(x**y)**z", "x**y**z", "(x*y)**2", "2**x", "x*2**y", "exp(x)**2", "exp(-x**2/2)", "sin(x)**2",
        "sin(x**2)", "sin(x)**-1", "sqrt(x)**3", "abs(x - y)**2", "abs(abs(x) - y)", "pi*x + e", "1e-30*x", "1e25*x", "0.125*x",
        "where(x < y, x, y)", "where(x <= 0.5 and (y > 0.3 or not z >= 0.4), x*y, -z)", "2*where(x < y, x, y) + 1",
        "where(x < 0.3, 1, where(y < 0.5, 2, 3))", "min(x, y)*max(x, y, z)", "log(x)/log(10)", "1/(1 + 25*x**2)",
        "(x + 1)*2", "x*(2*y)", "3*(2**x)", "exp(x) - 1", "(exp(x) - 1)/x", "log(1 + x)", "hypot(x, y)", "expm1(x)*2",
    ],
)  # fmt: skip
def test_structure(text):
    assert_same(text)


def test_names_and_outputs():
    assert "<msub><mi>x</mi><mn>12</mn></msub>" in mathml(parse("x12").outputs[0])
    formula = parse("alpha + beta_1; alpha*β", ("alpha", "beta_1", "β"))
    drawn = formula_mathml(formula)
    assert "<msub><mi>beta</mi><mn>1</mn></msub>" in drawn
    assert drawn.count("<mtr>") == 2
    assert 'alttext="alpha + beta_1; alpha*β"' in drawn
    ElementTree.fromstring(drawn)
    drawn = formula_mathml(parse_condition("x1**2 + x2**2 <= 1 and not x1 < 0"))
    assert "≤" in drawn
    ElementTree.fromstring(drawn)


def test_nothing_of_a_text_becomes_markup():
    drawn = formula_mathml(parse("where(x < 1, x, 2)"))
    assert "<1" not in drawn
    assert 'alttext="where(x &lt; 1, x, 2)"' in drawn
