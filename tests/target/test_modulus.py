"""Derived moduli are bounds, with zero slack; and close to the truth where the truth is known."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer import Target
from onelayer.construction.representative.layer import expected_modulus

FRANKE = (
    "0.75*exp(-((9*x1-2)**2 + (9*x2-2)**2)/4) + 0.75*exp(-(9*x1+1)**2/49 - (9*x2+1)/10)"
    " + 0.5*exp(-((9*x1-7)**2 + (9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2 - (9*x2-7)**2)"
)
KNOWN = [  # formula, domain, the smallest Lipschitz constants
    ("sin(x1) + 3*sin(2*x2)", [(0, "2*pi")] * 2, (1.0, 6.0)),
    ("abs(x1 - x2)", [(0, 1)] * 2, (1.0, 1.0)),
    ("max(x1, 2*x2, x3)", [(0, 1)] * 3, (1.0, 2.0, 1.0)),
    ("x1*x2; x1 - x2**2", [(0, 1)] * 2, (1.0, 2.0)),
    ("exp(x1)", [(0, 2)], (math.exp(2),)),
    ("x1**2", [(-3, 1)], (6.0,)),
    ("7", [(0, 1)], (0.0,)),
]


@pytest.mark.parametrize(("formula", "domain", "constants"), KNOWN)
def test_lipschitz_constants_are_bounds_and_close(formula, domain, constants):
    modulus = Target(formula, domain).modulus
    assert modulus.kind == "derived"
    for found, true in zip(modulus.lipschitz, constants, strict=True):
        assert true <= found <= 1.03 * true + 1e-12


@functools.cache
def on_cube(formula, dimension):
    return Target(formula, [(0, 1)] * dimension)


def differences(target, seed, close):
    """(|f(a) − f(b)| maximal over outputs, |a − b| per coordinate) for random pairs."""
    rng = np.random.default_rng(seed)
    a = rng.random((400, target.dimension))
    b = np.clip(a + close * rng.uniform(-1, 1, a.shape), 0, 1)
    x, y = target.domain.points(a), target.domain.points(b)
    return np.abs(target(x) - target(y)).max(axis=1), np.abs(x - y), a, b


smooth_pairs = given(
    st.sampled_from([k[0] for k in KNOWN[:5]] + [FRANKE, "tanh(5*(x1-x2))", "sqrt(x1+0.01)*x2", "1/(0.1+x1*x2)"]),
    st.integers(0, 99),
    st.sampled_from([1.0, 1e-1, 1e-3]),
)


def require_below_the_lipschitz_bound(formula, seed, close):
    target = on_cube(formula, 3)
    gaps, moves, _, _ = differences(target, seed, close)
    allowed = moves @ np.array(target.modulus.lipschitz)
    assert (gaps <= allowed * (1 + 1e-12) + 1e-13).all()  # f itself is evaluated in floating point


@pytest.mark.long
@settings(max_examples=6)
@smooth_pairs
def test_no_pair_of_points_beats_the_lipschitz_bound(formula, seed, close):
    require_below_the_lipschitz_bound(formula, seed, close)


@pytest.mark.long
@settings(max_examples=40)
@smooth_pairs
def test_no_pair_of_many_beats_the_lipschitz_bound(formula, seed, close):
    require_below_the_lipschitz_bound(formula, seed, close)


steep_pairs = given(
    st.sampled_from(["sqrt(x1)", "sqrt(x1*x2)", "x1**0.3 + x2", "asin(x1)*x2"]), st.integers(0, 99), st.floats(1e-4, 1)
)


def require_below_omega(formula, seed, r):
    target = on_cube(formula, 2)
    modulus = target.modulus
    assert modulus.lipschitz is None
    gaps, _, a, b = differences(target, seed, r)
    assert (np.abs(a - b).max(axis=1) <= r).all()
    assert gaps.max() <= modulus.omega(r) + 1e-13


@settings(max_examples=4)
@steep_pairs
def test_no_pair_of_points_beats_omega(formula, seed, r):
    require_below_omega(formula, seed, r)


@pytest.mark.long
@settings(max_examples=40)
@steep_pairs
def test_no_pair_of_many_beats_omega(formula, seed, r):
    require_below_omega(formula, seed, r)


def test_omega_is_close_to_the_truth():
    omega = Target("sqrt(x1)", [(0, 1)]).modulus.omega
    for r in (1e-4, 1e-2, 0.3):
        assert math.sqrt(r) <= omega(r) <= 1.2 * math.sqrt(r)


def test_a_jump_has_no_small_omega():
    assert Target("where(x1 < 0.5, 0, 1)", [(0, 1)]).modulus.omega(1e-6) >= 1.0


def test_declared_and_estimated():
    f = Target(lambda x: np.sin(3 * x[:, 0]), [(0, 2)])
    assert f.modulus.kind == "estimated"
    assert 3.0 <= f.modulus.lipschitz[0] <= 5.0
    assert Target(lambda x: x[:, 0], [(0, 1)], lipschitz=2.0).modulus.kind == "declared"
    declared = Target(lambda x: x[:, 0], [(0, 4)], modulus=lambda r: r).modulus
    assert 1.0 <= declared.omega(0.25) <= 1.0 + 1e-15  # a quarter of a side of length 4, rounded up


def test_the_expected_modulus_is_above_its_monte_carlo_value():
    """E ω(c + ‖Z‖/β) with Z multivariate logistic, Z_j = ln(E_0/E_j)."""
    rng = np.random.default_rng(0)
    for D, beta, cell in [(1, 20.0, 0.01), (2, 100.0, 0.05), (5, 50.0, 0.0)]:
        E = rng.exponential(size=(200_000, D + 1))
        norms = np.abs(np.log(E[:, :1] / E[:, 1:])).max(axis=1)
        for omega in (lambda r: r, lambda r: math.sqrt(r), lambda r: 1.0 if r > 0.1 else 0.0):
            sampled = np.array([omega(min(cell + n / beta, 1.0)) for n in norms])
            bound = expected_modulus(omega, cell, beta, D)
            assert sampled.mean() - 4 * sampled.std() / math.sqrt(len(norms)) <= bound
            assert bound <= 1.6 * sampled.mean() + 0.02
