"""The formula language: what is read, what is refused, and that refusing is quick."""

import pickle
import subprocess
import sys
import time
import warnings
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formula_cases import dice, draw_condition, draw_text, settings
from onelayer.common.errors import InputError
from onelayer.formula import Formula, parse, parse_condition, to_text
from onelayer.formula.tree import (
    And,
    Call,
    Constant,
    IntegerPower,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Relation,
    Sum,
    Variable,
    Where,
    postorder,
)

x1, x2 = Variable(1), Variable(2)


def number(text):
    return Number(Fraction(text))


GOOD = {
    "x1": x1,
    "  x1\n + \t x2 ": Sum((x1, x2)),
    "x1 - x2": Sum((x1, Negation(x2))),
    "x1 + x2 - 1": Sum((x1, x2, Negation(number("1")))),
    "x1 + (x2 - 1)": Sum((x1, Sum((x2, Negation(number("1")))))),
    "+x1": x1,
    "-x1**2": Negation(IntegerPower(x1, 2)),
    "(-x1)**2": IntegerPower(Negation(x1), 2),
    "0.1": number("1/10"),
    "1e-3*x1": Product((number("1/1000"), x1)),
    ".5": number("1/2"),
    "2.": number("2"),
    "100000000000000000000000.1": number("1000000000000000000000001/10"),
    "pi*e": Product((Constant("pi"), Constant("e"))),
    "x1*x1*x1": IntegerPower(x1, 3),
    "x1*x1*x2": Product((IntegerPower(x1, 2), x2)),
    "x1/x2/2": Quotient(Quotient(x1, x2), number("2")),
    "x1**-2": IntegerPower(x1, -2),
    "x1**(4/2)": IntegerPower(x1, 2),
    "x1**2**3": IntegerPower(x1, 8),
    "x1**0.5": Power(x1, number("1/2")),
    "x1**(1/3)": Power(x1, number("1/3")),
    "x1**-2.5": Power(x1, number("-5/2")),
    "x1**pi": Power(x1, Constant("pi")),
    "2**x1": Power(number("2"), x1),
    "x1**1000": IntegerPower(x1, 1000),
    "min(x1, x2, 1)": Call("min", (x1, x2, number("1"))),
    "where(x1 < 0, x1, x2)": Where(Relation("<", x1, number("0")), x1, x2),
    "where(0 <= x1 < x2, 1, 2)": Where(
        And((Relation("<=", number("0"), x1), Relation("<", x1, x2))), number("1"), number("2")
    ),
    "(" * 90 + "x1" + ")" * 90: x1,
}


@pytest.mark.parametrize("text", GOOD)
def test_reads(text):
    assert parse(text).outputs == (GOOD[text],)


# text → a piece of the line that refuses it
BAD = {
    "": "empty",
    " \n ": "empty",
    "9**9**9**9": "too large",
    "2**1001": "too large",
    "x1**1e300": "too large",
    "x1**(10**1000)": "too large",
    "x1**(1e300**1000)": "too large",
    "x1**1000.5": "too large",
    "x1**(1/0)": "divides by zero",
    "x1 # note": "comments",
    "x0": "'x0'",
    "sine(x1)": "write sin(x1)",
    "sin": "without arguments",
    "sin()": "0 arguments",
    "sin(x1, x2)": "2 arguments",
    "min(x1)": "1 argument in",
    "where(x1 < 0, x1)": "2 arguments",
    "sin(x=x1)": "named or starred",
    "sin(*x1)": "named or starred",
    "sin(**x1)": "named or starred",
    "__import__('os').system('x')": "__import__",
    "().__class__": "attribute",
    "x1.real": "attribute",
    "x1[0]": "subscript",
    "lambda: x1": "lambda",
    "(x1 := 2)": "assignment",
    "f'{x1}'": "f-string",
    "[x1 for x1 in x1]": "comprehension",
    "x1 if x2 else 1": "where(",
    "x1, x2": ";",
    "x1;": "empty output",
    "x1;;x2": "empty output",
    "x1 // 2": "the operator // in",
    "x1 % 2": "the operator % in",
    "x1 @ x2": "the operator @ in",
    "~x1": "the operator ~ in",
    "x1 < 2": "condition",
    "1 + (x1 < 2)": "condition",
    "not x1": "condition",
    "where(x1, 1, 2)": "not a comparison",
    "where(x1 == 1, 1, 2)": "comparison",
    "where(x1 < 1 in x2, 1, 2)": "comparison",
    "0x10": "0x10",
    "1_000": "1_000",
    "1j": "1j",
    "True": "True",
    "None": "None",
    "'text'": "literal",
    "...": "literal",
    "1e999999999": "between",
    "1e-999999999": "between",
    "1e301": "between",
    "1" * 401: "401 characters",
    "1" * 9_000: "characters",
    "x99999999999": "x10000",
    "x1\0": "unprintable",
    "x1 x2": "write x1*x2",
    "(x1": "not an expression",
    "x1)": "not an expression",
    "1and 2": "condition",
    "'\\d'": "backslash",
    "(" * 10_000 + "x1" + ")" * 10_000: "characters",
    "(" * 4_000 + "x1" + ")" * 4_000: "deep",
    "[" * 4_000: "deep",
    "sin(" * 1_900 + "x1" + ")" * 1_900: "deep",
    "-" * 9_000 + "x1": "operations",
    "-" * 500 + "x1": "deep",
    "x1**" * 2_000 + "2": "operations",
    "x1**" * 200 + "2": "deep",
    "+".join(["x1"] * 3_300): "operations",
    "x1/" * 150 + "2": "deep",
    "x1" + "." + "a." * 3_000 + "b": "characters",
    "not " * 2_000 + "x1": "condition",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: ascii(text[:30]))
def test_refuses_in_one_line_and_quickly(text):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError) as caught:
            parse(text)
    assert time.perf_counter() - start < 1
    line = str(caught.value)
    assert BAD[text] in line
    assert "\n" not in line
    assert len(line) < 600


PIECES = ["x1", "x2", "sin", "where", "(", ")", "[", "]", ",", ";", "**", "*", "/", "-", "<", "<=", "==", "and", "not"]
PIECES += ["9", "0.1", "1e9", "e", "pi", " ", ".", ":", "=", "lambda", "if", "else", "'", '"', "{", "}", "0x", "_", "~"]
PIECES += ["for", "in", "x", "f'", "@", "!", "min", "\\", "\n", "\x0c", "é", "²", "١", "\u202e", "\ud800", "^"]


@settings
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    lines = []
    for read in (parse, parse_condition):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                read(text)
            except InputError as refusal:
                lines.append(str(refusal))
    assert all(line.isprintable() for line in lines)


def test_refuses_what_is_no_text(as_user):
    for thing in (None, 3, b"x1", ["x1"]):
        with pytest.raises(InputError, match=f"found: {type(thing).__name__}; change: pass the formula as text, a str"):
            parse(thing)


def test_names_stand_in_their_order():
    formula = parse("v - u*e", ["u", "v", "e", "θ"])
    assert formula.outputs == (Sum((Variable(2), Negation(Product((Variable(1), Variable(3)))))),)
    assert formula.names == ("u", "v", "e", "θ")
    assert formula.dimension == 4
    assert formula.variables == (1, 2, 3)
    assert parse("θ**2", ["θ"]).outputs == (IntegerPower(x1, 2),)
    with pytest.raises(InputError, match="did you mean v1"):
        parse("v + 1", ["v1", "u"])
    for names in (["sin"], ["pi"], ["u", "u"], ["2u"], ["where"], ["a b"], ["lambda"], "uv"):
        with pytest.raises(InputError):
            parse("1", names)


def test_outputs_dimension_and_variables():
    formula = parse("x3 + 1; x1*x5; 2")
    assert len(formula.outputs) == 3
    assert formula.dimension == 5
    assert formula.variables == (1, 3, 5)
    assert formula.output_variables == ((3,), (1, 5), ())
    assert parse("1").dimension == 0


def test_conditions():
    disk = parse_condition("x1**2 + x2**2 <= 1")
    assert disk.root == Relation("<=", Sum((IntegerPower(x1, 2), IntegerPower(x2, 2))), number("1"))
    assert disk.dimension == 2
    assert parse_condition("0 < x1 < x2 and not (x3 > 1 or x1 >= 2)").variables == (1, 2, 3)
    for text in ("x1", "x1 == 2", "x1 < 1; x2 < 2", "x1 < 1 and x2", "", "(x1 < 1) + 1"):
        with pytest.raises(InputError):
            parse_condition(text)


def test_equal_subtrees_are_one_object():
    formula = parse("sin(x1 + 1)*cos(sin(x1 + 1)); sin(x1 + 1)")
    nodes = postorder(formula.outputs)
    assert len(nodes) == len(set(map(repr, nodes)))


def test_long_sums_are_flat():
    assert len(parse(" + ".join(["x1*x2"] * 500)).outputs[0].terms) == 500


@settings
@given(dice)
def test_text_of_a_tree_parses_back(rng):
    text = f"{draw_text(rng, 4, 3)}; {draw_text(rng, 2, 3)}"
    try:
        formula = parse(text)
    except InputError:  # a drawn constant exponent too large or dividing by zero
        return
    for output in formula.outputs:
        assert parse(to_text(output)).outputs == (output,)
        names = ["u", "v", "w"]
        assert parse(to_text(output, names), names).outputs == (output,)


@settings
@given(dice)
def test_text_of_a_condition_parses_back(rng):
    try:
        condition = parse_condition(draw_condition(rng, 3))
    except InputError:
        return
    assert parse_condition(to_text(condition.root)).root == condition.root


def test_decimals_survive_text_exactly():
    for text in ("0.1", "1e-300", "123456.789e-20", "1e300", "7e25", "0", "1.50"):
        assert parse(to_text(parse(text).outputs[0])).outputs == (number(text),)


def test_formulas_pickle_with_their_tape():
    formula = parse("x1 + sin(x2)")
    assert formula.tape is not None
    assert pickle.loads(pickle.dumps(formula)) == formula
    assert isinstance(formula, Formula)


def test_import_is_light():
    code = "import sys, onelayer.formula as f; f.parse('x1'); print('torch' in sys.modules, 'flint' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
