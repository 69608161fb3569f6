"""Whole formulas on boxes: Taylor coefficients along the axes, and complex rectangles, by values at points inside."""

import math
import random

import hypothesis
import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from formula_cases import PARTIAL, SMOOTH, complex_value, dice, draw_formula, settings, value_at
from onelayer.formula import enclose, gradient, interval, parse
from onelayer.formula.complex_rectangles import enclose_rectangles
from onelayer.formula.float_bounds import evaluate_bounded
from onelayer.formula.taylor.axes import axis_coefficients
from readings import divided, points

ORDER = 6
EVERY = [f"{name}(x1*(1 + 0.3*x2))" for name in SMOOTH + PARTIAL] + [
    "x1**-3*x2", "x1**2.5/x2", "(x1 + x2)**(1/3)", "x1**x2", "abs(x1 - 9)*x2", "max(x1, -x2, 3)/x1", "1e8 + x1*x2",
    "where(x1 < 5, x1**7, x2)", "(x1 - x2)**2*3", "x1/(x1 + x2)", "1/(0.01 + sqr(x1 - x2))", "5", "pi*x2 - e", "x1**0",
    "where(x1 < 1 and x2 > 0 or not x1 < 3, sqrt(x1), 1/x2)", "atan2(x1, x2)", "atan2(x2, -x1)", "x2*min(x1, sqrt(x2), 9)",
]  # fmt: skip


def boxes_of(rng, D, count=6):
    """Random boxes: wide and narrow, some far from 0."""
    width = 10.0 ** rng.uniform(-3, 0, size=(count, D))
    lower = rng.uniform(-1.0, 1.0, size=(count, D)) * 10.0 ** rng.uniform(-1, 0.3, size=(count, 1))
    return lower, lower + width


def point_of(rng, low, high):
    """A point of a box, often a corner."""
    t = rng.integers(0, 2, len(low)) if rng.random() < 0.3 else rng.random(len(low))
    return np.clip(low + t * (high - low), low, high).tolist()


def check_taylor(formula, lower, upper, rng):
    """Divided differences along a line through a box lie in the enclosures of coefficients; how many were compared."""
    enclosed = axis_coefficients(formula, lower, upper, (upper / 2 - lower / 2) * (1 + 2.0**-51), ORDER)
    compared = 0
    for b in range(len(lower)):
        x, i = point_of(rng, lower[b], upper[b]), int(rng.integers(lower.shape[1]))
        line = points(float(lower[b, i]), float(upper[b, i]))
        for (low, high), tree in zip(enclosed, formula.outputs, strict=True):
            values = [(s, value_at(tree, [*x[:i], s, *x[i + 1 :]])) for s in line]
            with ctx.workprec(400):
                half = (arb(line[-1]) - arb(line[0])) / 2
                for j, quotient in enumerate(divided(values)):
                    if math.isfinite(low[j, i, b]):
                        value = quotient * half**j
                        assert not value < arb(low[j, i, b]), (formula.text, j, x, low[j, i, b], value)
                        assert not value > arb(high[j, i, b]), (formula.text, j, x, high[j, i, b], value)
                        compared += 1
    return compared


def check_rectangles(formula, lower, upper, rng):
    """No value at a complex point of a box lies outside its rectangle; the number of values that were compared."""
    im = np.where(rng.random(lower.shape) < 0.5, 0.0, (upper - lower) * 10.0 ** rng.uniform(-2, 1, size=lower.shape))
    box = [(lower[:, i], upper[:, i], im[:, i]) for i in range(lower.shape[1])]
    found = [[np.broadcast_to(e, len(lower)) for e in z] for z in enclose_rectangles(formula, box)]
    compared = 0
    with ctx.workprec(300):
        for b in range(len(lower)):
            if not all(np.isfinite(z[2][b]) for z in found):
                continue
            for _ in range(6):
                x, y = point_of(rng, lower[b], upper[b]), point_of(rng, -im[b], im[b])
                z = [acb(arb(u), arb(v)) for u, v in zip(x, y, strict=True)]
                for (low, high, across), tree in zip(found, formula.outputs, strict=True):
                    value = complex_value(tree, z)
                    assert value.is_finite(), (formula.text, z)  # a finite rectangle proves that f is analytic
                    assert not value.real < arb(float(low[b])), (formula.text, z)
                    assert not value.real > arb(float(high[b])), (formula.text, z)
                    assert not abs(value.imag) > arb(float(across[b])), (formula.text, z, across[b], value)
                    compared += 1
    return compared


@pytest.mark.one_in(2)
@pytest.mark.parametrize("text", EVERY)
def test_composed_formulas_are_enclosed(text):
    rng, formula = np.random.default_rng(len(text)), parse(text, ("x1", "x2"))
    taylor = rectangles = 0
    for shift in (0.0, 1.5):
        lower, upper = boxes_of(rng, 2, 12)
        scale = 0.3 if "asin" in text or "acos" in text or "tan(" in text else 1.0
        lower, upper = lower * scale + shift * scale, upper * scale + shift * scale
        taylor += check_taylor(formula, lower, upper, rng)
        rectangles += check_rectangles(formula, lower, upper, rng)
    assert taylor > 20
    assert rectangles > 10


@hypothesis.settings(settings, max_examples=60)
@given(dice, st.integers(0, 10**6))
def test_random_formulas_are_enclosed(rng, seed):
    formula, numbers = draw_formula(rng, 3), np.random.default_rng(seed)
    if formula is not None:
        lower, upper = boxes_of(numbers, 2, 3)
        check_rectangles(formula, lower, upper, numbers)
        check_taylor(formula, lower, upper, numbers)


def test_enough_rectangles_are_finite():
    rng, numbers, finite = random.Random(3), np.random.default_rng(3), 0
    for _ in range(300):
        formula = draw_formula(rng, 2, kinks=False)
        finite += bool(formula and check_rectangles(formula, *boxes_of(numbers, 2, 1), numbers))
    assert finite > 150


def test_polynomials_end():
    """Along a coordinate in which f is a polynomial of degree 2, coefficients beyond that are nothing but underflow."""
    formula = parse("x1**2*exp(x2) + x1*x2", ("x1", "x2"))
    ((low, high),) = axis_coefficients(formula, np.zeros((1, 2)), np.ones((1, 2)), np.full((1, 2), 0.5), ORDER)
    assert np.abs([low[3:, 0], high[3:, 0]]).max() < 1e-200
    assert high[3, 1] > 0.01


ACROSS = ["abs(x1)", "log(x1 + 0.1)", "1/x1", "where(x1 < 0.1, 1, 2)", "log1p(x1 - 0.7)", "atan2(x1, -1)", "x1**-0.5"]
CUT = ["sqrt(x1)", "asin(x1 + 0.9)", "acos(x1 - 0.9)", "cbrt(x1)", "x1**(1/3)", "x1*sqrt(x1)", "sqrt(x1)**2"]


@pytest.mark.parametrize("text", ACROSS + CUT)
def test_nothing_is_claimed_across_singularities(text):
    """The box [−0.5, 0.5] holds a singularity of each. Some have a range there: of the values where they are defined."""
    formula = parse(text, ("x1",))
    lower, upper = np.array([[-0.5]]), np.array([[0.5]])
    ((low, high),) = axis_coefficients(formula, lower, upper, np.array([[0.5]]), ORDER)
    first = 1 if text in CUT else 0
    assert np.isfinite([low[:first], high[:first]]).all()
    assert np.isinf([low[first:], high[first:]]).all()
    ((low, high, im),) = enclose_rectangles(formula, [(lower[:, 0], upper[:, 0], np.zeros(1))])
    assert np.isinf([low, high, im]).all()


def rectangle(text, centre, im):
    """(low, high, im) on a box of the real radius 0.1."""
    ((low, high, across),) = enclose_rectangles(
        parse(text), [(np.array([centre - 0.1]), np.array([centre + 0.1]), np.array([im]))]
    )
    return float(low[0]), float(high[0]), float(across[0])


@pytest.mark.parametrize(("text", "centre", "im"), [
    ("atan(x1)", 0, 1.1), ("tanh(x1)", 0, 1.6), ("sigmoid(x1)", 0, 3.2), ("tan(x1)", 1.5, 0), ("1/(1 + sqr(x1))", 0, 1.1),
    ("1/(exp(x1) - 1)", 0, 0), ("1/(exp(x1) - 1)", 0, 7), ("1/sin(x1)", 3.1, 0), ("0*sqrt(x1)", 0, 0), ("sqrt(x1)**0", -1, 0),
    ("min(sqrt(x1), -100)", -1, 0), ("max(x1, x1)", 1, 0), ("where(log(x1) < 1, 1, 1)", 0, 0), ("x1**x1", -1, 0),
    ("(-1)**x1", 0, 0), ("where(x1 < 1, 1, 2)", 1, 5), ("x1**pi", -1, 0.2), ("asin(x1)", 2, 0), ("log(x1*x1)", 0, 0),
])  # fmt: skip
def test_no_rectangle_meets_a_cut_or_a_pole(text, centre, im):
    assert rectangle(text, centre, im) == (-math.inf, math.inf, math.inf)


@pytest.mark.parametrize(("text", "centre", "im"), [
    ("sqrt(x1)", 1, 3), ("x1**x1", 1, 0.1), ("atan(x1)", 5, 0.1), ("tanh(x1)", 100, 0.1), ("sigmoid(x1)", -1000, 0.1),
    ("erf(x1)", 3, 0.1), ("max(x1, 1, 10)", 0.5, 3), ("where(x1 < 1 and x1 > 0, sqrt(x1), 1/x1)", 2, 0.1),
    ("exp(x1) + sin(x1)*cosh(x1)", 1, 1), ("abs(x1)", -1, 5), ("asin(x1)", 0.8, 0.05), ("tan(x1)", 1.4, 0.05),
])  # fmt: skip
def test_rectangles_are_finite_where_a_formula_is_analytic(text, centre, im):
    assert np.isfinite(rectangle(text, centre, im)).all()


def test_wide_strips_stay_bounded():
    strip = [(np.array([-50.0]), np.array([50.0]), np.array([0.5]))]
    for low, high, im in enclose_rectangles(parse("tanh(x1); sigmoid(x1)"), strip):
        assert max(-low[0], high[0], im[0]) < 1.5


def test_ranges_are_cut_to_where_functions_are_defined():
    """√u decides a condition though u may be negative."""
    formula = parse(
        "where(sqrt(x1) < 5, x1, 7) + where(asin(x1 + 0.9) > -1, 1, 0) + where(x1**0.3 < 2, x1, 0)", ("x1",)
    )
    ends = np.array([[-0.5]]), np.array([[0.5]])
    ((low, high),) = axis_coefficients(formula, *ends, np.array([[0.5]]), 1)
    np.testing.assert_allclose([low[:, 0, 0], high[:, 0, 0]], [[0.0, 1.0], [2.0, 1.0]], atol=1e-12)


@pytest.mark.parametrize(
    "text", ["expm1(x1)", "log1p(x1)", "exp(x1) - 1", "log(1 + x1)", "x1*sinc(x1)", "x1*exprel(x1)", "sinc(x1) - 1"]
)
def test_enclosures_are_tight_near_0(text):
    formula, lower, upper = parse(text, ("x1",)), np.array([[1e-10]]), np.array([[2e-10]])
    (value,), ((slope,),) = gradient(formula, [interval(1e-10, 2e-10)])
    assert value.upper() - value.lower() < 1.001e-10
    assert slope.upper() - slope.lower() < 1e-9
    if text != "sinc(x1) - 1":
        ((low, high),) = axis_coefficients(formula, lower, upper, np.array([[0.5e-10]]), 3)
        assert (high - low)[0, 0, 0] < 1.001e-10
        assert (high - low)[1, 0, 0] < 1e-19
        ((a, b, e),) = enclose_rectangles(formula, [(lower[:, 0], upper[:, 0], np.array([1e-11]))])
        assert b - a < 1.001e-10
        assert e < 1.001e-11
        values, errors = evaluate_bounded(formula, lower)
        assert errors[0, 0] < 1e-14 * abs(values[0, 0])


@pytest.mark.parametrize("text", ["cbrt(x1)", "hypot(x1, 2*x1)", "sqrt(x1)", "asin(1 - x1)"])
def test_kinks_have_values_and_no_slopes(text):
    (value,), ((slope,),) = gradient(parse(text, ("x1",)), [interval(0, 0.5)])
    assert value.is_finite()
    assert not slope.is_finite()


def test_outputs_and_sides():
    values, partials = gradient(parse("x1*x2; x2; 1/(x1 - x1)"), [interval(0, 1), interval(2, 3), interval(0, 0)])
    assert [len(row) for row in partials] == [3, 3, 3]
    assert (partials[0][0].lower(), partials[0][0].upper()) == (2, 3)
    assert not values[2].is_finite()
    assert not any(partial.is_finite() for partial in partials[2])
    (plain,) = enclose(parse("x1*x2"), [interval(0, 1), interval(2, 3)])
    assert (values[0].lo, values[0].hi) == (plain.lo, plain.hi)


def test_the_judge_can_fail(monkeypatch):
    from onelayer.formula import rectangle_functions
    from onelayer.formula.taylor import axes

    with monkeypatch.context() as patch:
        patch.setitem(rectangle_functions.MAPS, "exprel", rectangle_functions._sinc)
        with pytest.raises(AssertionError):
            test_composed_formulas_are_enclosed("exprel(x1*(1 + 0.3*x2))")
    with monkeypatch.context() as patch:
        patch.setitem(axes.MOMENTS, "sinc", axes.MOMENTS["exprel"])
        with pytest.raises(AssertionError):
            test_composed_formulas_are_enclosed("sinc(x1*(1 + 0.3*x2))")
