"""The checker reads formulas as the builder does: a true folder is never called INVALID for the way it is written."""

import random

import numpy as np
import pytest
from flint import acb, arb, ctx

import onelayer as ol
from checking import check, checker, forged
from onelayer.common.errors import InputError
from onelayer.formula import enclose, parse
from onelayer.formula.complex_rectangles import enclose_rectangles
from onelayer.formula.vocabulary import BINARY
from onelayer.formula.vocabulary import UNARY as ENGINE

UNARY = [name for name in ENGINE if checker.takes(name, 1)]
DECIMALS = " + ".join(f"0.{n:03d}" for n in range(1, 301))
WRITTEN = {
    "a variable named e": ("sin(e) + t", {"e": (0, 1), "t": (0, 1)}),
    "a long exponent": ("x1*1e-0002 + 1e+00*x1", [(0, 1)]),
    "a sum of decimals as exponent": (f"(1 + x1)**(({DECIMALS})/45)", [(0, 1)]),
    "odd spacing": ("where(x1<0.5or x1>0.7, x1, x1)", [(0, 1)]),
    "deep brackets": ("(" * 90 + "x1" + ")" * 90, [(0, 1)]),
    "deep nesting": ("sin(" * 40 + "x1" + ")" * 40, [(0, 1)]),
    "odd powers across 0": ("abs(x1**3) + x1**3", [(-1, 1)]),
    "exact ends": ("x1", [("sqrt(4)", "16**0.5")]),
    "letters that Python reads as others": ("x1", {"x1": (0, 1), "ﬁ": (0, 1)}),
}


def test_functions_that_the_checker_does_not_know(tmp_path):
    """Other functions are not called false."""
    folder = ol.build("sin(x1)", [(0, 3)], 0.1).save(tmp_path / "f")
    found = check(forged(folder, tmp_path / "g", target=lambda t: t | {"formula": "dawsn(x1)"}))
    assert (found.verdict, found.reason) == ("NOT CHECKABLE", "the function in 'dawsn(x1)' is not known here")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", WRITTEN)
def test_what_the_builder_writes_is_not_invalid(tmp_path, name):
    found = ol.build(*WRITTEN[name], 0.2, method="solved")
    assert found.certificate.verdict == "CERTIFIED"
    verdict = check(found.save(tmp_path / "f"), seconds=60.0)
    assert verdict.verdict == ("NOT CHECKABLE" if name.startswith("letters") else "VALID"), str(verdict)


class Writer:
    """Random text of the formula language."""

    def __init__(self, seed, names):
        self.draw, self.names = random.Random(seed), names

    def literal(self):
        r = self.draw
        zeros, sign = "0" * r.randrange(6), r.choice(["", "+", "-"])
        return r.choice([
            str(r.randrange(20)), f"{r.random():.{r.randrange(1, 30)}f}", f"{r.randrange(1, 9)}e{sign}{zeros}{r.randrange(12)}",
            f".{r.randrange(999)}", f"{r.randrange(9)}.", f"{r.randrange(1, 9)}.E-{r.randrange(5)}", "00",
            f"{r.randrange(10**40)}e-40", "pi", "e",
        ])  # fmt: skip

    def exponent(self):
        r = self.draw
        return r.choice([
            str(r.randrange(-3, 6)), f"({r.randrange(-5, 5)}/{r.randrange(1, 9)})", "0.5", f"(2**{r.randrange(-4, 4)})",
            "(" + "+".join(f"0.{r.randrange(10**9)}" for _ in range(r.randrange(2, 300))) + ")",
            "(" + "*".join(f"{r.randrange(1, 9)}/{r.randrange(1, 9)}" for _ in range(r.randrange(2, 20))) + ")",
        ])  # fmt: skip

    def condition(self, depth):
        r, sides = self.draw, [self.term(depth - 1) for _ in range(3)]
        some = [f"{sides[0]} < {sides[1]}", f"{sides[0]} >= {sides[1]} > {sides[2]}"]
        if depth > 1:
            some += [f"({self.condition(depth - 1)} {r.choice(['and', 'or'])} {self.condition(depth - 1)})"]
            some += [f"not ({self.condition(depth - 1)})"]
        return r.choice(some)

    def term(self, depth):
        r = self.draw
        if depth <= 0:
            return r.choice([self.literal(), *self.names, *self.names])
        a, b, blank = self.term(depth - 1), self.term(depth - 1), r.choice(["", " "])
        return r.choice([
            f"({a}{blank}+{blank}{b})", f"({a} -{blank}{b})", f"{a}*{b}", f"({a})/({b})", f"({a})**{self.exponent()}",
            f"({a})**({b})", f"-{a}", f"+{a}", f"max({a}, {b})", f"min({a}, {b}, {self.literal()})",
            f"where({self.condition(depth - 1)}, {a}, {b})", f"{a}*{r.choice(self.names)}*{r.choice(self.names)}",
            f"{r.choice([*UNARY])}({a})", f"{r.choice([*UNARY])}({a})", f"{r.choice([*BINARY])}({a}, {b})",
            f"{r.choice(['sin', 'expm1', 'log1p', 'tan', 'sinh', 'atan'])}({a})/({a})", f"(1 - cos({a}))/({a})**2",
        ])  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "names",
    [
        ("x1", "x2"),
        ("e", "é"),
        *(pytest.param(n, marks=pytest.mark.long) for n in (("E", "pi2"), ("inf", "_"), ("é", "T"))),
    ],
)
def test_both_readers_agree(names):
    """Whatever the builder's parser takes, the checker's takes too, and both mean the same number."""
    writer, read = Writer(len(names[0]) + ord(names[0][0]), names), 0
    for _ in range(300):
        text = writer.term(writer.draw.randrange(1, 5))
        try:
            formula = parse(text, names)
        except InputError:
            continue
        with ctx.workprec(128):
            node, x = checker.Reader(names, text).node(), [writer.draw.uniform(-2, 2) for _ in names]
            ours, theirs = enclose(formula, x)[0], checker.value(node, [arb(v) for v in x])
        if ours.is_finite() and theirs.is_finite():
            read += 1
            assert theirs.upper() >= ours.lower()
            assert theirs.lower() <= ours.upper()
    assert read > 100


LIMITS = [
    "sin(x1)/x1", "sin(x1)**2/x1**2", "(exp(x1) - 1)/x1", "x1/(exp(x1) - 1)", "(1 - cos(x1))/x1**2", "log(1 + x1)/x1",
    "tan(x1)/x1", "sinh(x1)/x1", "tanh(x1)/x1", "asin(x1)/x1", "atan(x1)/x1", "sin(x1*x2)/(-3*x1)", "sin(x1 - x2)/(x2 - x1)",
    "x1*x2/sin(x1*x2)", "x2*sin(x1*x2/2)**2/(x1*x2/2)**2", "sqr(sin(x1))*x1**-2", "expm1(2*x1)/x1", "log1p(-x1)/x1",
]  # fmt: skip


@pytest.mark.parametrize("text", [*LIMITS, *(f"{name}(x1)" for name in UNARY), *(f"{n}(x1, x2 - 0.5)" for n in BINARY)])
def test_both_read_the_same_numbers_on_boxes_and_at_points(text):
    """The checker's balls, intervals and Taylor models hold the builder's values; limits are taken at the same points."""
    formula, node, draw = parse(text, ("x1", "x2")), checker.Reader(("x1", "x2"), text).node(), random.Random(text)
    for n in range(60):
        ends = [
            (c, c + draw.choice([0.0, 1e-9, 0.1, 0.5]))
            for c in (draw.choice([0.0, -0.05, draw.uniform(-3, 3)]), draw.uniform(0, 1))
        ]
        box = checker.Sides(ends)
        with ctx.workprec(96):
            jets = checker.Jets(box, [0, 1])
            found = [checker.interval(node, box), jets.ends(jets.of(node))]
            ball = checker.value(node, box)
            for _ in range(4):
                x = [draw.choice([a, b, draw.uniform(a, b)]) for a, b in ends]
                value = enclose(formula, x, strict=True)[0]
                point = checker.value(node, [arb(v) for v in x])
                if n < 40 and value.is_finite() and text in LIMITS:
                    assert point.is_finite(), x
                if value.is_finite():
                    all_found = [*found, (ball.lower(), ball.upper()), (point.lower(), point.upper())]
                    assert not any(low > value.hi or high < value.lo for low, high in all_found), (x, ends)


KINKED = {"abs", "floor", "ceil", "round", "sign"}


@pytest.mark.parametrize("text", [*LIMITS[:11], *(f"{name}(x1)" for name in sorted(set(UNARY) - KINKED))])
def test_both_read_the_same_complex_numbers(text):
    formula, node, draw = parse(text, ("x1",)), checker.Reader(("x1",), text).node(), random.Random(text)
    for _ in range(40):
        c, r, im = draw.uniform(-2, 2), draw.choice([0.0, 0.2]), draw.choice([1e-9, 0.3])
        z = acb(arb(c - r).union(arb(c + r)), arb(0, im))
        ((low, high, across),) = enclose_rectangles(formula, [(np.array([c - r]), np.array([c + r]), np.array([im]))])
        theirs, (value,) = checker.value(node, [z], {}), enclose(formula, [c], strict=True)
        if np.isfinite(across[0]) and theirs.is_finite():
            ours = acb(arb(float(low[0])).union(arb(float(high[0]))), arb(0, float(across[0])))
            assert acb(theirs).overlaps(ours), z
        if theirs.is_finite() and value.is_finite():
            assert acb(theirs).overlaps(acb(value.ball())), z
