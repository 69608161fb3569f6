"""Complex enclosures: finite only where the formula is analytic, and then they contain its values."""

import math
import random

import pytest
from flint import acb, arb, ctx
from hypothesis import given

from formula_cases import complex_value, dice, draw_formula, settings
from onelayer.common.errors import InputError
from onelayer.formula import complex_balls as analytic
from onelayer.formula import enclose_complex, parse

PI = math.pi


def ball(centre, radius):
    return acb(arb(complex(centre).real, radius), arb(complex(centre).imag, radius))


def draw_complex_box(rng):
    centres = [complex(rng.uniform(-2, 2), rng.choice([0, 0, rng.uniform(-1, 1)])) for _ in range(2)]
    return [ball(centre, rng.choice([0, 1e-6, 0.01, 0.1, 0.4])) for centre in centres]


def draw_complex_point(rng, box):
    """A point of each ball, exactly inside: corners are left out, they need exact radii."""
    return [
        acb(
            side.real.mid() + rng.uniform(-1, 1) * side.real.rad(),
            side.imag.mid() + rng.uniform(-1, 1) * side.imag.rad(),
        )
        for side in box
    ]


def escapes(formula, box, found, rng, count=4):
    """Points of the box whose principal value certainly is not in `found`."""
    caught = []
    for _ in range(count):
        with ctx.workprec(400):
            point = draw_complex_point(rng, box)
            value = complex_value(formula.outputs[0], point)
            if found.is_finite() and value.is_finite() and not found.overlaps(value):
                caught.append(point)
    return caught


@settings
@given(dice)
def test_random_formulas_over_random_boxes(rng):
    formula, box = draw_formula(rng, rng.randint(1, 3), kinks=False), draw_complex_box(rng)
    if formula is not None:
        (found,) = enclose_complex(formula, box)
        assert not escapes(formula, box, found, rng), (formula.text, box)


def test_a_thousand_more_and_enough_are_finite():
    rng, finite = random.Random(3), 0
    for _ in range(1000):
        formula, box = draw_formula(rng, 2, kinks=False), draw_complex_box(rng)
        if formula is not None:
            (found,) = enclose_complex(formula, box)
            assert not escapes(formula, box, found, rng, 3), (formula.text, box)
            finite += found.is_finite()
    assert finite > 500


# text → centres of balls with radius 0.1 that meet a cut or a pole
SINGULAR = {
    "sqrt(x1)": [0, -1, -1 + 0.1j, 0.1],
    "log(x1)": [0, -2 - 0.05j, 0.1],
    "x1**0.5": [-1, 0],
    "x1**(1/3)": [-1, 0, -5 + 0.1j],
    "x1**-2.5": [-1, 0],
    "x1**pi": [-1, 0],
    "x1**x1": [-1, 0],
    "(-1)**x1": [0, 1j],
    "asin(x1)": [1, -1, 2, -3 + 0.1j],
    "acos(x1)": [1, -1, 2, -3 + 0.1j],
    "atan(x1)": [1j, -1j, 2j, 0.1 - 3j],
    "1/x1": [0, 0.1, 0.1 + 0.1j],
    "x1**-1": [0, 0.1],
    "x1**-3": [0, 0.05],
    "1/sin(x1)": [0, PI],
    "tan(x1)": [PI / 2, -PI / 2, 3 * PI / 2, PI / 2 + 0.09j],
    "tanh(x1)": [1j * PI / 2, -1j * PI / 2, 0.09 + 1j * PI / 2],
    "sigmoid(x1)": [1j * PI, -1j * PI, 3j * PI, 0.09 + 1j * PI],
    "abs(x1)": [0, 0.1, 1j],
    "min(x1, 1)": [1, 1 + 2j, 0.9],
    "max(x1, x1)": [1],
    "where(x1 < 1, 1, 2)": [1, 1 + 5j],
    "where(log(x1) < 1, 1, 1)": [0],
    "0*sqrt(x1)": [0],
    "sqrt(x1)**0": [-1],
    "min(sqrt(x1), -100)": [-1],
}


@pytest.mark.parametrize("text", SINGULAR)
def test_not_finite_at_cuts_and_poles(text):
    for centre in SINGULAR[text]:
        (found,) = enclose_complex(parse(text), [ball(centre, 0.1)])
        assert not found.is_finite(), (text, centre, found)


@pytest.mark.parametrize("text", ["tan(x1)", "tanh(x1)", "sigmoid(x1)", "1/x1", "1/(1 + sqr(x1))", "1/(exp(x1) - 1)"])
def test_never_finite_around_a_pole_of_any_shape(text):
    pole = {"tan": PI / 2, "tanh": 1j * PI / 2, "sig": 1j * PI, "1/x": 0, "1/(": 1j}
    rng = random.Random(4)
    centre = 0 if "exp" in text else pole["tanh" if "tanh" in text else text[:3]]
    for _ in range(300):
        wide, high = 10 ** rng.uniform(-12, 2), 10 ** rng.uniform(-12, 2)
        shift = complex(rng.uniform(-0.99, 0.99) * wide, rng.uniform(-0.99, 0.99) * high)
        box = acb(arb(centre.real + shift.real, wide + 1e-15), arb(complex(centre).imag + shift.imag, high + 1e-15))
        assert not enclose_complex(parse(text), [box])[0].is_finite(), (text, box)


CUTS = {  # text → the point of a cut at distance t ≥ 0 from its end
    "sqrt(x1)": lambda t: -t,
    "log(x1)": lambda t: -t,
    "x1**(1/3)": lambda t: -t,
    "x1**-0.5": lambda t: -t,
    "x1**e": lambda t: -t,
    "asin(x1)": lambda t: 1 + t,
    "acos(x1)": lambda t: -1 - t,
    "atan(x1)": lambda t: 1j * (1 + t),
    "atan(-x1)": lambda t: 1j * (1 + t),
}


@pytest.mark.parametrize("text", CUTS)
def test_never_finite_across_a_cut_of_any_shape(text):
    rng, formula = random.Random(8), parse(text)
    for _ in range(200):
        point = complex(CUTS[text](rng.choice([0, 10 ** rng.uniform(-9, 2)])))
        wide, high = 10 ** rng.uniform(-9, 2), 10 ** rng.uniform(-9, 2)
        shift = complex(rng.uniform(-0.9, 0.9) * wide, rng.uniform(-0.9, 0.9) * high)
        box = acb(arb(point.real + shift.real, wide), arb(point.imag + shift.imag, high))
        assert box.contains(acb(point))
        assert not enclose_complex(formula, [box])[0].is_finite(), (text, box)


# text → centres of balls with radius 0.1 where it is analytic
REGULAR = {
    "sqrt(x1)": [1, -1 + 1j, -1j],
    "log(x1)": [0.2, -2 + 0.2j],
    "x1**(1/3)": [1, -1 - 1j],
    "x1**x1": [1, 1j],
    "asin(x1)": [0, 0.8, 3 + 1j],
    "acos(x1)": [0, -0.8, 3 - 1j],
    "atan(x1)": [0, 5, 0.5 + 2j],
    "1/x1": [1, 0.2j, -1],
    "tan(x1)": [0, 1.4, PI / 2 + 0.3j],
    "tanh(x1)": [0, 100, -100, 1.4j],
    "sigmoid(x1)": [0, 1000, -1000, 2.9j, 5 + 3j],
    "erf(x1)": [0, 3, 1j],
    "abs(x1)": [1, -1 + 5j],
    "min(x1, 1)": [0.5, 2],
    "max(x1, 1, 10)": [0.5],
    "where(x1 < 1 and x1 > 0, sqrt(x1), 1/x1)": [0.5, 2],
    "exp(x1) + sin(x1)*cosh(x1)": [0, 1 + 1j],
}


@pytest.mark.parametrize("text", REGULAR)
def test_finite_where_analytic(text):
    for centre in REGULAR[text]:
        assert enclose_complex(parse(text), [ball(centre, 0.1)])[0].is_finite(), (text, centre)


def test_decided_kinks_continue_the_real_branch():
    assert enclose_complex(parse("abs(x1)"), [acb(-2, 1)])[0].overlaps(acb(2, -1))
    assert enclose_complex(parse("max(x1, 1)"), [acb(2, 3)])[0].overlaps(acb(2, 3))
    assert enclose_complex(parse("where(x1 >= 1, x1, 0)"), [acb(2, 3)])[0].overlaps(acb(2, 3))


def test_wide_strips_stay_bounded():
    strip = acb(arb(0, 50), arb(0, 0.5))
    assert enclose_complex(parse("tanh(x1)"), [strip])[0].abs_upper() < 1.5
    assert enclose_complex(parse("sigmoid(x1)"), [strip])[0].abs_upper() < 1.2
    assert not enclose_complex(parse("tanh(x1)"), [acb(arb(0, 50), arb(0, 1.6))])[0].is_finite()


def test_the_check_can_fail(monkeypatch):
    """Without the test for the cut, asin looks finite across it, and the values of one side escape elsewhere."""
    monkeypatch.setitem(analytic._MAPS, "asin", acb.asin)
    assert enclose_complex(parse("asin(x1)"), [ball(2, 0.1)])[0].is_finite()
    monkeypatch.setitem(analytic._MAPS, "sin", acb.cos)
    formula, box = parse("sin(x1)"), [ball(1, 0.1)]
    assert escapes(formula, box, enclose_complex(formula, box)[0], random.Random(0))


def test_boxes_need_enough_sides():
    with pytest.raises(InputError, match="2 sides"):
        enclose_complex(parse("x1 + x2"), [acb(1)])
