"""Taylor models: every enclosure contains the function, on boxes of all sizes, with zero slack."""

import numpy as np
import pytest
from hypothesis import given

from enclosing import follows, inside
from formula_cases import dice, draw_box, draw_formula, draw_point, value_at
from formula_cases import settings as formula_settings
from onelayer.formula import parse, parse_condition
from onelayer.formula.taylor.formula import TaylorAlgebra, condition_on
from onelayer.formula.taylor.kink import maximum, merged
from onelayer.formula.taylor.series import Space, monomials


def space_of(box):
    """One box, given as pairs (low, high)."""
    return Space(*(np.array([[side[end] for side in box]]) for end in (0, 1)))


@formula_settings
@given(dice)
def test_drawn_formulas_are_enclosed(rng):
    formula = draw_formula(rng, rng.randint(1, 4))
    if formula is None:
        return
    box = draw_box(rng)
    found = formula.tape.run(TaylorAlgebra(space_of(box)))[0]
    model_low, model_high = found.model.range()
    for _ in range(8):
        point = draw_point(rng, box)
        value = value_at(formula.outputs[0], point)
        if value is None or value == "outside":
            continue
        if value == "undefined":
            assert not (np.isfinite(found.low[0]) and np.isfinite(found.high[0])), (formula.text, box)
            continue
        for low, high in ((found.low[0], found.high[0]), (model_low[0], model_high[0])):
            assert inside(value, low, high), (formula.text, box, low, high)
        assert follows(found.model, 0, point, value), (formula.text, box, point)


STEEP = [
    "sin(1e3*x1)", "exp(-(9*x1-4)**2)", "1/(x1+1e-3)", "sqrt(x1)", "sqrt(x1*x2)", "log(x1+1e-9)", "asin(x1)", "acos(x1)",
    "atan(1e3*x1)", "tan(1.57*x1)", "sigmoid(200*(x1-x2))", "erf(30*x1-9)", "tanh(1e3*x1-300)", "x1**0.3", "x1**-2.5",
    "x1**x2", "(1e8+x1)-1e8", "1e9*(x1+1)**2-1e9*x1**2", "abs(x1-x2)", "max(x1,x2,0.3)", "min(x1*x2,sin(9*x1))",
    "where(x1<x2,x1,x2**2)", "abs(abs(x1-0.5)-abs(x2-0.5))", "cosh(9*x1)-sinh(9*x1)", "x1**7-x2**5",
    "1e234*(exp((1e13+269.0009)-1e13+0.01*x1))**-2", "1e250*(1e-130*(x1+1))*(1e-130*x2+1e-131)", "1/(1+25*(x1-x2)**2)",
]  # fmt: skip


@pytest.mark.parametrize("text", STEEP)
def test_steep_formulas_are_enclosed_on_boxes_down_to_a_billionth(text):
    rng = np.random.default_rng(0)
    formula = parse(text, ("x1", "x2"))
    n = 60
    half = 10.0 ** rng.uniform(-12, 0, size=(n, 1)) * rng.random((n, 2))
    middle = np.where(rng.random((n, 2)) < 0.3, rng.integers(0, 2, size=(n, 2)), rng.random((n, 2)))
    lower, upper = np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)
    found = formula.tape.run(TaylorAlgebra(Space(lower, upper)))[0]
    low, high = found.model.range()
    for b in range(n):
        for corner in (rng.random(2), rng.random(2), rng.integers(0, 2, size=2)):
            point = np.clip(lower[b] + (upper[b] - lower[b]) * corner, lower[b], upper[b]).tolist()
            value = value_at(formula.outputs[0], point)
            if value is None or isinstance(value, str):
                continue
            for a, z in ((found.low[b], found.high[b]), (low[b], high[b])):
                assert inside(value, a, z), (point, a, z)
            assert follows(found.model, b, point, value), point


@pytest.mark.parametrize("text", ["log(x1)", "sqrt(x1)", "cbrt(x1)", "1/x1", "x1**0.3", "x1**-2.5"])
def test_powers_of_small_arguments_may_underflow(text):
    """Where a power of the argument, or of its root, loses digits."""
    rng = np.random.default_rng(1)
    lower = 10.0 ** rng.choice([-162, -129, -108, -81, -65], size=(2_000, 1)) * rng.uniform(0.5, 5, size=(2_000, 1))
    upper = lower * (1 + 10.0 ** rng.uniform(-4, 0, size=lower.shape))
    formula = parse(text, ("x1",))
    found = formula.tape.run(TaylorAlgebra(Space(lower, upper)))[0]
    for b in range(len(lower)):
        for point in (lower[b].tolist(), upper[b].tolist()):
            value = value_at(formula.outputs[0], point)
            assert inside(value, found.low[b], found.high[b]), point
            assert follows(found.model, b, point, value), point


def test_enclosures_are_of_fourth_order():
    """Halving a box of a smooth formula divides the remainder by about 16."""
    formula = parse("exp(x1)*sin(3*x2)/(1+x1**2)", ("x1", "x2"))
    rests = [
        formula.tape.run(TaylorAlgebra(space_of([(0.3, 0.3 + h), (0.4, 0.4 + h)])))[0].model.r[0] for h in (0.1, 0.05)
    ]
    assert 12 < rests[0] / rests[1] < 20


def test_conditions():
    space = Space(np.array([[0.0], [0.6], [0.4]]), np.array([[0.4], [1.0], [0.6]]))
    truth = condition_on(space, parse_condition("x1 < 0.5", ("x1",)))
    assert truth.yes.tolist() == [True, False, False]
    assert truth.no.tolist() == [False, True, False]
    lost = condition_on(space, parse_condition("1/(x1-0.2) < 1e9", ("x1",)))
    assert not lost.yes[0]


def test_equal_kinks_cancel_and_others_do_not():
    space = Space(np.zeros((3, 2)), np.array([[1.0, 1.0], [0.5, 1.0], [1e-3, 1e-3]]))
    x, y = space.variable(0), space.variable(1)
    zero = space.constant(np.zeros(3))
    one = maximum([x, y])
    for other, like in (
        (maximum([zero, (y - x).times(np.full(3, 7.0))]).times(np.full(3, 1 / 7)) + x, True),  # relu(7(y − x))/7 + x
        (maximum([y.times(np.full(3, 2.0)), x.times(np.full(3, 2.0))]).times(np.full(3, 0.5)), True),
        (maximum([x, y.times(np.full(3, 1.1))]), False),
    ):
        gap = one - other
        low, high = merged(gap).range()
        wide = gap.range()
        assert (wide[1] - wide[0] > 1e-6).all()
        assert (high - low < 1e-12).all() == like


def test_monomials():
    m = monomials(2)
    assert len(m) == 10
    assert m.exponents[:3].tolist() == [[0, 0], [1, 0], [0, 1]]
    assert all((m.exponents[i] + m.exponents[j] == m.exponents[k]).all() for i, j, k in m.pairs)
