"""The repaired theorem: what the layer computes, that its bound holds with zero slack, and that its rate is the theory's."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from onelayer.construction.representative.layer import Lattice, plan_representative, representative_layer
from onelayer.construction.representative.theorem import certify_theorem
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.proof.claim import Claim
from onelayer.proof.decision import decide
from onelayer.views.costs import plan_followed


def F(z):
    """The multivariate logistic distribution function; infinite arguments drop out."""
    return 1 / (1 + np.exp(-z).sum(axis=-1))


def mollified(target, plan, x):
    """E f_pc(x − Z/β) as Σ_cells y_k P(x − Z/β in cell k), cell probabilities by inclusion–exclusion over its corners.

    Independent of the library's gates, mixed differences and weights: only y_k and the formula for F are shared.
    """
    low, side = np.array(target.domain.lower), np.array(target.domain.upper) - np.array(target.domain.lower)
    t = (x - low) / side
    axes = [np.concatenate([[-np.inf], np.arange(1, n) / n, [np.inf]]) for n in plan.counts]
    y = target(low + side * Lattice(plan.counts).representatives()).reshape(*plan.counts, -1)
    total = np.zeros((len(x), y.shape[-1]))
    for cell in itertools.product(*(range(n) for n in plan.counts)):
        probability = np.zeros(len(x))
        for ends in itertools.product((0, 1), repeat=len(cell)):
            corner = np.array([axes[j][c + e] for j, (c, e) in enumerate(zip(cell, ends, strict=True))])
            inside = F(plan.sharpness * (t - corner)) if not np.isinf(corner).any() or (corner < 0).any() else None
            if (corner == np.inf).any():
                inside = np.zeros(len(x))  # P(Z ≤ −∞) = 0
            assert inside is not None
            probability += (-1) ** sum(ends) * inside
        total += probability[:, None] * y[cell]
    return total


@pytest.mark.parametrize(
    ("formula", "domain", "tolerance"),
    [
        ("exp(x1)", [(-1, 2)], 0.6),
        ("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1.5),
        ("x1*x2; x1 - x2**2", [(0, 1)] * 2, 0.4),
        ("x1*x2 + x3", [(0, 1)] * 3, 0.9),
    ],
)
def test_the_model_is_the_mollified_step_function(formula, domain, tolerance):
    approx = ol.build(formula, domain, tolerance, method="representative")
    x = approx.domain.points(np.random.default_rng(0).random((40, approx.domain.dimension)))
    expected = mollified(approx.target, plan_followed(approx), x)
    np.testing.assert_allclose(approx(x).reshape(len(x), -1), expected, rtol=0, atol=1e-12)


def test_the_model_is_a_monte_carlo_average():
    """T(x) = E f_pc(x − Z/β), Z_j = ln(E_0/E_j) with independent exponentials."""
    approx = ol.build("sin(3*x1)*x2", [(0, 1)] * 2, 0.7, method="representative")
    target, plan = approx.target, plan_followed(approx)
    rng = np.random.default_rng(0)
    E = rng.exponential(size=(400_000, 3))
    Z = np.log(E[:, :1] / E[:, 1:])
    counts = np.array(plan.counts)
    for x in ([0.3, 0.8], [0.0, 1.0], [0.52, 0.49]):
        index = np.clip(np.floor((np.array(x) - Z / plan.sharpness) * counts), 0, counts - 1)
        y = target((index + 0.5) / counts)[:, 0]
        assert abs(y.mean() - approx(np.array(x))) < 5 * y.std() / math.sqrt(len(y)) + 1e-12


CASES = {
    "1-D": {"function": "sin(3*x1)", "domain": [(0, 2)], "tolerance": 0.2},
    "2-D": {"function": "sin(x1)+sin(x2)", "domain": [(0, "2*pi")] * 2, "tolerance": 0.5},
    "3-D": {"function": "x1*x2 - x3**2", "domain": [(0, 1)] * 3, "tolerance": 0.5},
    "square root": {"function": "sqrt(x1)", "domain": [(0, 1)], "tolerance": 0.1},
    "disc": {"function": "x1*exp(x2)", "domain": [(-1, 1)] * 2, "tolerance": 0.5, "within": "x1**2 + x2**2 <= 1"},
    "two outputs": {"function": "x1*x2; x1 - x2**2", "domain": [(0, 1)] * 2, "tolerance": 0.2},
    "sequence": {
        "function": "x1*x3; x2; x1 - x4; max(x2, x3)",
        "domain": [(0, 1)] * 4,
        "tolerance": 0.8,
        "shape": (2, 2),
        "output_shape": (2, 2),
    },
    "callable": {
        "function": lambda x: np.abs(x[:, 0] - 0.3) + np.sin(x[:, 1]),
        "domain": [(0, 1)] * 2,
        "tolerance": 0.2,
        "lipschitz": 1.0,
    },
    "callable with a modulus": {
        "function": lambda x: np.sqrt(np.abs(x[:, 0])),
        "domain": [(-1, 1)],
        "tolerance": 0.3,
        "modulus": math.sqrt,
    },
    "far from zero": {"function": "(x1 - 1000)**2", "domain": [(1000, 1001)], "tolerance": 0.05},
    "a flat coordinate": {"function": "cos(x2)", "domain": [(0, 1), (0, 3)], "tolerance": 0.1},
    "constant": {"function": "7", "domain": [(0, 1)], "tolerance": 0.1},
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", CASES)
def test_observed_is_below_the_bound_which_is_below_the_tolerance(name):
    approx = ol.build(method="representative", seed=5, **CASES[name])
    c, plan = approx.certificate, plan_followed(approx)
    assert c.verdict == "CERTIFIED"
    assert c.method == "theorem"
    assert c.observed <= c.bound <= c.tolerance
    assert c.evidence.terms["a priori"] == plan.bound
    # the plan is what was built
    assert plan.units == approx.units == math.prod(plan.counts)
    assert plan.parameters == approx.parameters
    assert plan.config == approx.model.config


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "name",
    [pytest.param("sequence", marks=pytest.mark.long), "two outputs", pytest.param("2-D", marks=pytest.mark.long)],
)
def test_the_three_layouts_agree(name):
    token, wide, heads = (
        ol.build(method="representative", layout=k, **CASES[name]) for k in ("token", "wide", "heads")
    )
    x = token.domain.points(np.random.default_rng(1).random((500, token.domain.dimension)))
    assert np.abs(token(x) - wide(x)).max() <= 1e-9
    assert np.abs(token(x) - heads(x)).max() <= 1e-9
    assert token(x).shape == (500, *token.output_shape) or token.output_shape == (1,)
    assert all(
        a.certificate.verdict == "CERTIFIED" and plan_followed(a).config == a.model.config for a in (wide, heads)
    )


def test_an_estimated_modulus_never_certifies():
    approx = ol.build(lambda x: np.sin(x[:, 0]), [(0, 1)], 0.2, method="representative")
    assert approx.certificate.observed < 0.2
    assert approx.certificate.verdict == "UNDECIDED"
    assert approx.certificate.bound == math.inf


@pytest.mark.parametrize(
    ("D", "formula"), [(1, "sin(5*x1)"), pytest.param(2, "sin(5*x1)*cos(3*x2)", marks=pytest.mark.long)]
)
def test_the_rate_is_the_theorys(D, formula):
    """log observed error against log heads has slope −1/D."""
    heads, errors = [], []
    for tolerance in (1.6, 0.8, 0.4, 0.2) if D == 2 else (0.4, 0.2, 0.1, 0.05, 0.025):
        approx = ol.build(formula, [(0, 1)] * D, tolerance, method="representative")
        heads.append(approx.units)
        errors.append(approx.certificate.observed)
    slope = np.polyfit(np.log(heads), np.log(errors), 1)[0]
    assert abs(slope + 1 / D) < 0.1


def random_lipschitz(seed, D, m):
    """A random maximum of affine functions minus another: Lipschitz with known constants, kinks everywhere."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, m, 5, D)), rng.normal(size=(2, m, 5))
    constants = np.abs(a).max(axis=(1, 2)).sum(axis=0)

    def f(x):
        pieces = np.einsum("smkd,nd->snmk", a, x) + b[:, None]
        return pieces[0].max(axis=-1) - pieces[1].max(axis=-1)

    return f, constants.tolist()


random_targets = given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 2), st.floats(0.3, 0.9))


def require_below_the_bound(seed, D, m, share):
    f, constants = random_lipschitz(seed, D, m)
    tolerance = {1: 0.02, 2: 0.1, 3: 0.3}[D] * sum(constants) * 2
    target = ol.Target(f, [(-1, 1)] * D, lipschitz=constants)
    plan = plan_representative(target, tolerance, share)
    layer, values_error = representative_layer(target, plan)
    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    proved = certify_theorem(target, plan, layer, values_error, "token")
    certificate = decide(model, Claim(target, tolerance, seed=seed % 1000), proved=proved)
    assert certificate.method == "theorem"
    assert certificate.observed <= certificate.bound <= tolerance


@pytest.mark.long
@settings(max_examples=4)
@random_targets
def test_no_random_lipschitz_target_beats_the_bound(seed, D, m, share):
    require_below_the_bound(seed, D, m, share)


@pytest.mark.long
@settings(max_examples=12)
@random_targets
def test_no_random_lipschitz_target_of_many_beats_the_bound(seed, D, m, share):
    require_below_the_bound(seed, D, m, share)


def test_can_fail():
    """One value moved by more than the slack is noticed: the observed error exceeds the bound."""
    approx = ol.build("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 0.5, method="representative")
    x = approx.domain.points(np.random.default_rng(0).random((2000, 2)))
    with torch.no_grad():
        approx.model.W_O[0, 0] += 1.0
    moved = approx.values_of(approx.model, torch.from_numpy(x)).detach().numpy()
    assert np.abs(moved - approx.target(x)).max() > approx.certificate.bound


def test_layer_and_model_are_the_same_function():
    target = ol.Target("x1*x2; x1 - x2**2", [(0, 2), (-1, 1)])
    plan = plan_representative(target, 0.8)
    layer, error = representative_layer(target, plan)
    assert error < 1e-14
    approx = ol.build(target, tolerance=0.8, method="representative")
    x = torch.from_numpy(target.domain.points(np.random.default_rng(0).random((100, 2))))
    torch.testing.assert_close(approx(x), layer(frame_of(target.domain)(x)), rtol=0, atol=1e-12)
