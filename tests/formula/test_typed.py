"""Formulas as people type them: what is understood, what is answered, and what is kept."""

import re
import time
from contextlib import suppress

import pytest
from hypothesis import given

from formula_cases import dice, draw_condition, draw_text, settings
from onelayer.checker import Reader
from onelayer.common.errors import InputError
from onelayer.formula import parse, parse_condition, to_text

# typed → (the text that is kept, the variables)
UNDERSTOOD = {
    "x*exp(-x^2)": ("x*exp(-x**2)", "x"),
    "-x^2": ("-x**2", "x"),
    "2^-x": ("2**-x", "x"),
    "x^y^z": ("x**y**z", "x y z"),
    "2x": ("2*x", "x"),
    "2 x + 1": ("2*x + 1", "x"),
    "1.5e-3x": ("1.5e-3*x", "x"),
    "2e + 2e1": ("2*e + 2e1", ""),
    "2(x+1)": ("2*(x+1)", "x"),
    "(x+1)(x-1)": ("(x+1)*(x-1)", "x"),
    "3sin(x)cos(x)": ("3*sin(x)*cos(x)", "x"),
    "x/(2y)": ("x/(2*y)", "x y"),
    "2πr": ("2*pi*r", "r"),
    "πr²": ("pi*r**2", "r"),
    "x²y³": ("x**2*y**3", "x y"),
    "10⁻³x": ("10**-3*x", "x"),
    "2^x²": ("2**x**2", "x"),
    "e^(x)y": ("e**(x)*y", "x y"),
    "x − 1·y × 2 ÷ 3 – t": ("x - 1*y * 2 / 3 - t", "x y t"),
    "|x| + 2|y - 1|": ("abs(x) + 2*abs(y - 1)", "x y"),
    "||x| - 1|": ("abs(abs(x) - 1)", "x"),
    "√(x)": ("sqrt(x)", "x"),
    "ln(x) + arcsin(x) + arccos(x) + arctan(x)": ("log(x) + asin(x) + acos(x) + atan(x)", "x"),
    "1/log10(x)^2": ("1/log10(x)**2", "x"),
    "jv(3, 2x)": ("j3(2*x)", "x"),
    "j + x": ("j + x", "x j"),
    "eval_legendre(5, x)": ("legendre5(x)", "x"),
    "polygamma(0, x) + polygamma(2, x)": ("digamma(x) + digamma2(x)", "x"),
    "beta + gamma(x)": ("beta + gamma(x)", "x beta"),
    "log2(2x)": ("log2(2*x)", "x"),
    "x₁ + x₂": ("x1 + x2", "x1 x2"),
    "x3": ("x3", "x1 x2 x3"),
    "y = x^2": ("x**2", "x"),
    "f(x) = x + 1": ("x + 1", "x"),
    "u = x; v = y": ("x; y", "x y"),
    "f(y, x) = x - y": ("x - y", "y x"),
    "f(x, y) = x; g(x, y) = 2y": ("x; 2*y", "x y"),
    "z*t + y*x": ("z*t + y*x", "x y z t"),
    "exp(-k/T)*x": ("exp(-k/T)*x", "x T k"),
    "where(x ≤ 0, x, y)": ("where(x <= 0, x, y)", "x y"),
    "µ*x": ("μ*x", "x μ"),
    "é + λ": ("é + λ", "é λ"),
    "pi*e": ("pi*e", ""),
    "x\u00a0+\u20091": ("x + 1", "x"),
    "t1 + max1": ("t1 + max1", "max1 t1"),
}

# typed → (what is found, what to change)
ANSWERED = {
    "1/2x": ("'2x' after /, which has two readings", "write 1/2*x, or with the whole divisor in brackets"),
    "1/(x+1)(x-1)": (
        "')(' after /, which has two readings",
        "write 1/(x+1)*(x-1), or with the whole divisor in brackets",
    ),
    "x^2y": ("'2y' after ^, which has two readings", "write x**2*y, or with the whole exponent in brackets"),
    "2^-3x": ("'3x' after ^, which has two readings", "write 2**-3*x, or with the whole exponent in brackets"),
    "1/x²y": ("'²y' after /, which has two readings", "write 1/x**2*y, or with the whole divisor in brackets"),
    "xy": ("the name 'xy'", "write x*y, or with xy named in the domain"),
    "2sinx + 1": ("the name 'sinx'", "write 2*sin(x) + 1, or with sinx named in the domain"),
    "sin2x": ("the name 'sin2x'", "write sin(2*x), or with sin2x named in the domain"),
    "x1x2": ("the name 'x1x2'", "write x1*x2, or with x1x2 named in the domain"),
    "cosec(x)^2": ("the unknown function 'cosec'", "write csc(x)**2"),
    "relu(2x)": ("the unknown function 'relu'", "write max(0, 2*x)"),
    "log_2(x)": ("the unknown function 'log_2'", "write (log(x)/log(2))"),
    "signum(x)": ("the unknown function 'signum'", "write sign(x)"),
    "j(x)": ("'j' without its order", "write j(2, …), of a whole order from 0 to 20"),
    "legendre(2.5, x)": ("the order '2.5' of legendre", "write legendre(2, …), of a whole order from 0 to 50"),
    "chebyshev(51, x)": ("the order '51' of chebyshev", "write chebyshev(2, …), of a whole order from 0 to 50"),
    "j(1 + 1, x)": ("the order '1+1' of j", "write j(2, …), of a whole order from 0 to 20"),
    "erfcinv(x)": ("the unknown function 'erfcinv'", "write erfinv(1 - (x))"),
    "foo(x)": ("the unknown function 'foo'", "did you mean floor?"),
    "sin(x) = cos(x)": ("an equation", "write what stands on one side of = alone"),
    "sin^-1(x)": ("a power between sin and its argument", "write 1/sin(…), or asin(…)"),
    "if x>0 then x else 0": (
        "'if x>0 then x else 0', not an expression: 'invalid syntax'",
        "write where(condition, a, b)",
    ),
    "x'": ("\"x'\", not an expression: 'a quotation mark'", "leave quotation marks out"),
    "data/run 1.csv": (
        "the name of a file, 'data/run 1.csv'",
        "write a formula; samples in a file are for `onelayer build` and `onelayer memorize`, in Python pass (X, Y)",
    ),
    "xsin(x)": ("the unknown function 'xsin'", "write x*sin(x)"),
    "sin x": ("'sin' without brackets", "write sin(x)"),
    "x y": ("no operator in 'x y'", "write x*y"),
    "x(x+1)": ("no operator in 'x('", "write x*(x+1)"),
    "(x+1)2": ("no operator in ')2'", "write (x+1)*2"),
    "|x|y|z|": ("(1) no operator in '|y' (2) no operator in 'y|'", "write abs(x)*y*abs(z)"),
    "sin^2(x) + cos²(x)": (
        "(1) a power between sin and its argument (2) a power between cos and its argument",
        "write sin(x)**2 + cos(x)**2",
    ),
    "sin⁻¹(x)": ("a power between sin and its argument", "write 1/sin(…), or asin(…)"),
    "Pi*x": ("the name 'Pi'", "write pi*x, or with Pi named in the domain"),
    "Exp(x)": ("the unknown function 'Exp'", "write exp(x)"),
    "x1 + x": ("'x' beside x1 (did you mean x2?)", "write x1 + x2"),
    "x0": ("the variable 'x0'", "count variables from x1"),
    "2 3": ("no operator between 2 and 3", "write one"),
    "x²^3": ("'²^', a power of a power", "use brackets"),
    "y = y^2": ("'y' on both sides of =", "write the formula without ="),
    "x^2 + y^2 = 1": ("an equation", "write what stands on one side of = alone"),
    "f(x) = 1; g(y) = y": ("outputs with different arguments", "give every output the same arguments"),
    "f(x) = x*y": ("the unknown name 'y'", "use x, pi, e, or add y to the variables"),
    "x1 = 2": ("an equation", "write what stands on one side of = alone"),
    "х + 1": ("the name 'х'", "name it in the domain, or use other letters than 'х' (CYRILLIC SMALL LETTER HA)"),
    "_a + 1": ("the name '_a'", "name it in the domain, or use other letters than '_'"),
    "f(y, x) = x y": ("no operator in 'x y'", "write f(y, x) = x*y"),
    "|x": ("a | without a partner", "write abs(…)"),
    "(|x)|": ("| and ) that cross", "write abs(…)"),
    "(x": ("""'(x', not an expression: "'(' was never closed\"""", "correct the brackets and operators"),
    "[x + 1]": ("square brackets, '[x + 1]'", "use round brackets"),
    "0,5*x": ("a list of values, '0,5*x'", "separate outputs with ; and write decimals with a point"),
    "lambda*x": ("'lambda*x', not an expression: 'invalid syntax'", "use another name than lambda"),
    "sin(x, y) + min(x)": (
        "(1) 1 argument in 'min(x)' (2) 2 arguments in 'sin(x, y)'",
        "(1) give min 2 or more arguments (2) give sin 1 argument",
    ),
    "1/2x + sin x + 3(yz)": (
        "(1) '2x' after /, which has two readings (2) 'sin' without brackets (3) the name 'yz'",
        "write 1/2*x + sin(x) + 3*(y*z), or with the whole divisor in brackets, or with yz named in the domain",
    ),
}


@pytest.mark.parametrize("typed", UNDERSTOOD)
def test_understood(typed):
    formula = parse(typed)
    assert (formula.text, " ".join(formula.names)) == UNDERSTOOD[typed]


@pytest.mark.parametrize("typed", UNDERSTOOD)
def test_what_is_kept_is_read_alike_here_and_by_the_checker(typed):
    formula = parse(typed)
    again = parse(formula.text, formula.names)
    assert (again.text, again.outputs) == (formula.text, formula.outputs)
    for part in formula.text.split(";"):
        Reader(formula.names, part).node()  # raises if it is not in the language of the checker


@pytest.mark.parametrize("typed", ANSWERED)
def test_answered(typed):
    with pytest.raises(InputError) as caught:
        parse(typed)
    assert (caught.value.found, caught.value.change) == ANSWERED[typed]


@pytest.mark.parametrize("typed", [text for text in ANSWERED if ANSWERED[text][1].startswith("write ")])
def test_a_correction_can_be_pasted(typed):
    correction = re.match(r"write ([^,…]+)(, or |$)", ANSWERED[typed][1])
    if correction and "(…)" not in ANSWERED[typed][1] and "without =" not in correction[1] and "=" not in correction[1]:
        assert parse(correction[1]).text == correction[1]


def test_names_in_the_domain_win():
    assert parse("2e + ln", ["e", "ln"]).text == "2*e + ln"
    assert parse("2xy", ["xy"]).text == "2*xy"
    assert parse("π", ["π"]).names == ("π",)
    with pytest.raises(InputError, match=r"write a\*b, or with ab named in the domain"):
        parse("ab", ["a", "b"])
    with pytest.raises(InputError, match="did you mean x2"):
        parse("x", ["x1", "x2"])


def test_conditions():
    assert parse_condition("x² + y² ≤ 1").text == "x**2 + y**2 <= 1"
    assert parse_condition("0 < 2x < |y| and not y > 3").names == ("x", "y")
    with pytest.raises(InputError, match=r"asked: a condition such as .* change: compare with <, <=, > or >="):
        parse_condition("x = 1")


@settings
@given(dice)
def test_canonical_text_is_kept_to_the_character(rng):
    text = f"{draw_text(rng, 4, 3)};{draw_text(rng, 2, 3)}"
    with suppress(InputError):  # a drawn exponent that is too large
        assert parse(text).text == text
    condition = draw_condition(rng, 3)
    assert parse_condition(condition).text == condition


@pytest.mark.long
@settings
@given(dice)
def test_carets_and_letters_are_other_spellings(rng):
    text = draw_text(rng, 4, 3)
    try:
        formula = parse(text)
    except InputError:
        return
    letters = {"x1": "x", "x2": "y", "x3": "z"}
    typed = re.sub("x[123]", lambda name: letters[name[0]], text).replace("**", "^").replace("pi", "π")
    typed = typed.replace("-", "−").replace("*", "·") if "e−" not in typed and "1e-" not in typed else typed
    names = ["x", "y", "z"]
    assert [to_text(output) for output in parse(typed, names).outputs] == list(map(to_text, formula.outputs))


@pytest.mark.parametrize(
    "text",
    [
        "2(" * 99 + "x" + ")" * 99,
        "|" * 4_000,
        "2x" * 3_000,
        "x²" * 3_000,
        "sin " * 2_000 + "x",
        "x^" * 3_000 + "x",
        "y=x;" * 2_000,
        " ".join(f"n{i}" for i in range(1_500)),
        "+".join(f"n{i}" for i in range(1_200)),
        "x" * 399 + "y",
        "f(" * 90,
        "f(" + ",".join(f"a{i}" for i in range(1_500)) + ") = a1",
        "|x|+" * 2_000,
    ],
    ids=lambda text: text[:12],
)
def test_long_text_is_read_or_refused_quickly(text):
    start = time.perf_counter()
    line = ""
    try:
        parse(text)
    except InputError as refusal:
        line = str(refusal)
    assert time.perf_counter() - start < 2
    assert len(line) < 1_500
    assert line.isprintable()


def test_what_grows_beyond_the_limit_is_refused():
    """What is kept is bounded too, since the checker reads it."""
    with pytest.raises(InputError, match="characters"):
        parse("+".join(["|x|"] * 2_400))
