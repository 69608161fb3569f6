"""Numbers with error bounds against high-precision balls, zero slack, on drawn trees and on steep places."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given

from formula_cases import dice, draw_formula, settings
from onelayer.formula import enclose, parse
from onelayer.formula.float_bounds import evaluate_bounded


def check(formula, x):
    """Every finite error covers the distance to the exact value; returns how many were finite."""
    values, errors = evaluate_bounded(formula, x)
    finite = 0
    with ctx.workprec(300):
        for point, row, bounds in zip(x.tolist(), values.tolist(), errors.tolist(), strict=True):
            for ball, value, error in zip(enclose(formula, point, prec=300), row, bounds, strict=True):
                if np.isfinite(error) and ball.is_finite():
                    finite += 1
                    assert abs(ball.ball() - arb(value)) <= arb(error), (formula.text, point, value, error)
    return finite


@settings
@given(dice)
def test_drawn_formulas_are_within_their_errors(rng):
    formula = draw_formula(rng, rng.randint(1, 4))
    if formula is not None:
        points = [[rng.uniform(-2, 2) * 10.0 ** rng.randint(-3, 1) for _ in range(2)] for _ in range(6)]
        check(formula, np.array(points))


@pytest.mark.parametrize(
    "text",
    [
        "exp(20*sin(5*x1))", "sin(1e5*x1)", "tan(3*x1)", "sqrt(x1)", "sqrt(abs(x1 - 0.1))", "log(x1)", "1/(x1 - x2)",
        "asin(x1)", "acos(0.999*x1)", "atan(50*x1)", "sinh(10*x1) - cosh(10*x1)", "tanh(9*x1)", "erf(3*x1)",
        "sigmoid(30*x1)", "x1**7 - x2**5", "x1**(-3)", "x1**0.3", "x1**x2", "(x1 + 1e8) - 1e8", "0.1*x1 + pi*x2",
        "max(x1, x2)*min(x1, 0.5)",
        "1e234*(exp((1e13+269.0009)-1e13+0.01*x1))**-2", "1e292*(exp((1e13+269.0009)-1e13+0.01*x1))**-2.5",
        "1e300*2**((1e18*(1 + x1) + 60*(1 - x1)) - 1e18*(1 + x1) - 1080)",
        "1e250*(1e-130*(x1 + 1))*(1e-130*x2 + 1e-131)", "1e290/(1e145*(x1 + 1))**2", "1e300*(1e-100*(x1 + 1))**3",
        "where(x1 < x2, x1, x2**2)", "sqr(x1 - x2)*1e10", "exp(-(9*x1-4)**2 - (9*x2-7)**2)",
    ],
)  # fmt: skip
def test_functions_are_within_their_errors(text):
    rng = np.random.default_rng(0)
    formula = parse(text, ("x1", "x2"))
    x = np.concatenate([rng.random((200, 2)), 10.0 ** rng.uniform(-9, 0, size=(50, 2))])
    assert check(formula, x) >= 200


def test_errors_are_small_where_the_formula_is_tame():
    values, errors = evaluate_bounded(parse("sin(x1) + exp(-x2)*x1**2"), np.random.default_rng(0).random((100, 2)))
    assert (errors < 1e-14).all()
    assert np.isfinite(values).all()


def test_the_comparison_can_fail(monkeypatch):
    monkeypatch.setattr("onelayer.formula.float_bounds.FUNCTION", 0.0)
    with pytest.raises(AssertionError):
        check(parse("exp(sin(x1))"), np.random.default_rng(0).random((300, 1)))
