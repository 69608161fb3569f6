"""Formulas at batches of points: NumPy, torch and Python's math agree."""

import cmath
import math
import warnings

import numpy as np
import pytest
import torch
from flint import arb
from hypothesis import given

from formula_cases import dice, draw_formula, draw_point, settings, value_at
from onelayer.common.errors import InputError
from onelayer.formula import enclose, evaluate, parse, parse_condition, satisfies

FRANKE = (
    "0.75*exp(-((9*x1-2)**2 + (9*x2-2)**2)/4) + 0.75*exp(-(9*x1+1)**2/49 - (9*x2+1)/10)"
    " + 0.5*exp(-((9*x1-7)**2 + (9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2 - (9*x2-7)**2)"
)


def batch(rows, columns=2, low=0.05, high=0.95):
    return np.random.default_rng(0).uniform(low, high, (rows, columns))


CASES = [
    FRANKE,
    "where(x1 < x2, min(x1, 0.3), max(x1, x2, 0.2)); x1**x2 - x1**(1/3)*x2**-2.5; 3; abs(x1 - x2)",
    "where(0.2 < x1 < 0.7 and not x2 > 0.5 or x2 <= 0.1, pi, e)",
]


@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpy_equals_torch_in_kind_and_value(text, dtype):
    x = batch(200).astype(dtype)
    formula = parse(text)
    here, there = evaluate(formula, x), evaluate(formula, torch.tensor(x))
    assert here.shape == (200, len(formula.outputs))
    assert here.dtype == x.dtype
    assert there.dtype == getattr(torch, dtype)
    np.testing.assert_allclose(there.numpy(), here, rtol=40 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


@settings
@given(dice)
def test_random_formulas_near_their_exact_value(rng):
    """Loose: floating point may cancel; a wrong operation would be far off most of the time."""
    formula = draw_formula(rng, 2)
    point = draw_point(
        rng, [(0.30017, 0.60013), (0.20011, 0.70019)]
    )  # no constant of a condition, which floats may miss
    exact = formula and value_at(formula.outputs[0], point)
    if isinstance(exact, arb) and abs(float(exact)) < 1e6:
        found = evaluate(formula, np.array([point]))[0, 0]
        assert math.isclose(found, float(exact), rel_tol=1e-6, abs_tol=1e-9), (formula.text, point)


@pytest.mark.parametrize(("text", "point", "value"), [
    ("sinc(x1)", 0, 1), ("exprel(x1)", 0, 1), ("cbrt(x1)", -8, -2), ("cbrt(x1)", 0, 0), ("softplus(x1)", 1e6, 1e6),
    ("expm1(x1)", 1e-20, 1e-20), ("log1p(x1)", 1e-20, 1e-20), ("hypot(x1, 4)", 3, 5), ("hypot(x1, x1)", 0, 0),
    ("atan2(x1, -1)", 0, math.pi), ("atan2(-x1, -1)", 0, math.pi), ("atan2(x1, 0)", -2, -math.pi / 2),
    ("log2(x1)", 8, 3), ("log10(x1)", 1000, 3), ("arcsin(x1) + arccos(x1)", 1, math.pi / 2), ("ln(x1)", 1, 0),
])  # fmt: skip
def test_values(text, point, value):
    formula = parse(text, ("x1",))
    (found,) = enclose(formula, [point])
    assert found.lower() - 1e-15 * abs(value) <= value <= found.upper() + 1e-15 * abs(value)
    for x in (np.array([[float(point)]]), torch.tensor([[float(point)]], dtype=torch.float64)):
        assert float(evaluate(formula, x)[0, 0]) == pytest.approx(value, rel=4e-16, abs=1e-300)


def test_constants_broadcast_and_extra_columns_are_ignored():
    assert (
        evaluate(parse("1; pi; 1/3"), np.zeros((4, 3), np.float32)).tolist()
        == [[1, np.float32(np.pi), np.float32(1) / np.float32(3)]] * 4
    )
    assert evaluate(parse("2"), torch.zeros(3, 0)).shape == (3, 1)
    assert evaluate(parse("x1"), np.zeros((0, 1))).shape == (0, 1)


def test_no_value_is_nan_or_inf_without_warnings():
    formula = parse("log(x1 - 2); 1/(x1 - x1); sqrt(-x1); 1/0; x1**1000; exp(1000*x1); (-x1)**0.5; 1e300*x1*1e300")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (np.ones((1, 1)) * 3, np.ones((1, 1), np.float32) * 1.5, torch.ones(1, 1) * 1.5):
            assert not np.isfinite(np.asarray(evaluate(formula, x))[0, 2:4]).any()
    with np.errstate(all="raise"):
        evaluate(formula, np.full((1, 1), 1.5))


def test_autograd_differentiates():
    x = torch.tensor(batch(20), requires_grad=True)
    formula = parse(FRANKE + "; where(x1 < x2, x1**3, sin(x2)); abs(x1 - x2)*sigmoid(x1) + erf(x2)")
    for column in range(3):
        (slope,) = torch.autograd.grad(evaluate(formula, x)[:, column].sum(), x)
        for j in range(2):
            step = torch.zeros(2, dtype=torch.float64)
            step[j] = 1e-6
            there, back = evaluate(formula, x.detach() + step), evaluate(formula, x.detach() - step)
            torch.testing.assert_close(slope[:, j], ((there - back) / 2e-6)[:, column], rtol=1e-6, atol=1e-7)


def test_complex_batches_follow_principal_branches():
    z = np.array([[1.5 + 0.3j], [-0.4 - 2j], [0.2 + 0j]])
    table = {"sqrt(x1)": cmath.sqrt, "log(x1)": cmath.log, "x1**2.5": lambda v: v**2.5, "asin(x1)": cmath.asin}
    table |= {"sigmoid(x1)": lambda v: 1 / (1 + cmath.exp(-v)), "abs(x1)": lambda v: v if v.real >= 0 else -v}
    table |= {
        "max(x1, 0.1)": lambda v: v if v.real >= 0.1 else 0.1,
        "where(x1 < 0, 1, x1)": lambda v: 1 if v.real < 0 else v,
    }
    for text, function in table.items():
        formula = parse(text)
        np.testing.assert_allclose(evaluate(formula, z)[:, 0], [function(complex(v)) for v in z[:, 0]], rtol=1e-14)
        np.testing.assert_allclose(evaluate(formula, torch.tensor(z)).numpy(), evaluate(formula, z), rtol=1e-14)
    assert evaluate(parse("erf(x1)"), z).dtype == np.complex128


def test_conditions_at_points():
    disk = parse_condition("x1**2 + x2**2 <= 1 and not x1 < 0")
    x = np.array([[0.5, 0.5], [1.0, 0.0], [1.0, 0.1], [-0.1, 0.0], [np.nan, 0.0]])
    assert satisfies(disk, x).tolist() == [True, True, False, False, False]
    assert satisfies(disk, torch.tensor(x)).tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((2, 1)), np.zeros((2, 2), int), [[1.0, 2.0]], torch.zeros(2, 1)])
def test_wrong_batches_are_refused(x, as_user):
    with pytest.raises(InputError, match="batch"):
        evaluate(parse("x1 + x2"), x)
