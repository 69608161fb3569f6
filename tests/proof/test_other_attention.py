"""Sigmoid, linear attention, sparsemax and windows on boxes: enclosed with zero slack, certified, refuted."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import OTHERS, configs, plain_config, random_model
from enclosing import follows, require_enclosed
from one_weight import FORMULAS, one_weight
from onelayer.formula.taylor.series import Space, Taylor
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.model.on_tensors import attention_weights, linear_features
from onelayer.proof.bisection import on_taylor, other_attention, transformer
from onelayer.proof.bisection.other_attention import features

DTYPES = (torch.float32, torch.float64)
random_models = given(
    configs(), st.sampled_from(OTHERS), st.integers(0, 10**6), st.floats(-8, 0.5), st.floats(-2, 3.0), st.booleans()
)


@settings(max_examples=20)
@random_models
def test_any_model_is_enclosed_in_its_own_arithmetic(config, other, seed, size, sharp, single):
    require_enclosed(dataclasses.replace(config, **other), seed, size, sharp, single)


@pytest.mark.long
@settings(max_examples=150)
@random_models
def test_many_models_are_enclosed_in_their_own_arithmetic(config, other, seed, size, sharp, single):
    causal = config.readout != "output" and seed % 3 == 0
    require_enclosed(dataclasses.replace(config, **other, causal=causal), seed, size, sharp, single)


@pytest.mark.parametrize("attention", ["sigmoid", "linear", "sparsemax"])
def test_the_hunt_can_fail(attention, monkeypatch):
    """The enclosure of another attention is noticed."""
    monkeypatch.setitem(on_taylor.ATTENDED, attention, on_taylor.ATTENDED["softmax"])
    with pytest.raises(AssertionError):
        require_enclosed(plain_config(attention=attention), 0, -8.0, 1.0, False)


def test_features_are_enclosed_by_what_their_bend_needs():
    """φ on boxes across 0: where the remainder is a tenth smaller, it is too small."""
    rng = np.random.default_rng(0)
    middle, half = 0.3 * rng.normal(size=(200, 1)), 10 ** rng.uniform(-6, 1, size=(200, 1))
    model = features(Space(middle - half, middle + half).variable(0))
    shrunk, missed = Taylor(model.space, model.c, 0.9 * model.r), 0
    with ctx.workprec(200):
        for b, t in itertools.product(range(200), [-1, -0.9, -0.5, 0.0, 0.5, 0.9, 1]):
            x = float(np.clip(middle[b, 0] + t * half[b, 0], middle[b, 0] - half[b, 0], middle[b, 0] + half[b, 0]))
            value = arb(min(x, 0)).exp() + arb(max(x, 0))
            assert follows(model, b, [x], value)
            missed += not follows(shrunk, b, [x], value)
    assert missed


@pytest.mark.parametrize("attention", ["sigmoid", "linear", "sparsemax"])
def test_rounding_of_one_step_is_covered_and_needed(attention):
    """Eq. (5)–(7) of exact queries, keys and values in float32 against float64: within `off`, and not within 2% of it."""
    rng, worst = np.random.default_rng(0), 0.0
    for case in range(60):
        n, width, sharp = int(rng.integers(1, 9)), int(rng.integers(1, 5)), 10 ** rng.uniform(-1, 2.5)
        q, k, v = (rng.normal(size=(1, 1, m, w)).astype(np.float32) for m, w in ((1, width), (n, width), (n, 1)))
        q *= np.float32(sharp)
        space = Space(np.zeros((1, 1)), np.ones((1, 1)))
        models = [space.constant(t.astype(float)) for t in (q, k, v)]
        offs = tuple(np.zeros(t.shape) for t in (q, k, v))
        z, off = on_taylor.ATTENDED[attention](*models, offs, math.sqrt(width), FLOAT32)
        single, double = (_step(attention, *(torch.from_numpy(t).to(d) for t in (q, k, v))) for d in DTYPES)
        assert abs(double - z.c[0].item()) <= z.r.item() + 1e-12 * sharp, case
        if off.item() == math.inf:  # all products may underflow, 0/0: nothing is claimed
            assert attention == "linear"
            continue
        assert abs(single - double) <= off.item(), case
        worst = max(worst, abs(single - double) / off.item())
    assert worst > 0.02


def _step(attention, q, k, v):
    q, k = (linear_features(t) for t in (q, k)) if attention == "linear" else (q, k)
    scores = q @ k.mT if attention == "linear" else q @ k.mT / math.sqrt(q.shape[-1])
    return float((attention_weights(scores, attention) @ v).double())


def test_sparsemax_is_exact_where_the_support_does_not_change():
    """On either side of the kinks T is affine, and enclosed up to rounding; across one it is not."""
    model = one_weight("sparsemax")
    lower, upper = np.array([[-1.0], [-0.24], [0.26], [0.0]]), np.array([[-0.26], [0.24], [1.0], [0.5]])
    answer = transformer.Network(model, FLOAT64)(Space(lower, upper))
    assert (answer.model.r[:3] < 1e-13).all()
    assert 0.05 < answer.model.r[3, 0] < 0.5
    assert answer.model.c[1, :3, 0] == pytest.approx([0, 0.48, 0], abs=1e-11)  # half·slope


@pytest.mark.parametrize("attention", ["sigmoid", "linear", "sparsemax", pytest.param("local", marks=pytest.mark.long)])
def test_a_weight_is_certified_against_its_own_formula(attention):
    certificate = ol.certify(one_weight(attention), ol.Target(FORMULAS[attention], [(-1, 1)]), 1e-6)
    assert certificate.verdict == "CERTIFIED"
    assert f"explicit {attention} attention" in " ".join(certificate.assumptions)


@pytest.mark.parametrize("attention", ["sigmoid", "linear", "sparsemax", "local"])
def test_and_refuted_against_another(attention):
    target = ol.Target(f"{FORMULAS[attention]} + x1**2/50", [(-1, 1)])
    model = one_weight(attention, torch.float32)
    assert ol.certify(model, target, 0.021).verdict == "CERTIFIED"
    refuted = ol.certify(model, target, 0.019)
    assert refuted.verdict == "REFUTED"
    assert 0.0199 < refuted.lower <= 0.02 <= refuted.bound
    with torch.no_grad():
        model.W_R[3, 0] *= 1.1
    assert ol.certify(model, target, 0.021).verdict == "REFUTED"


@pytest.mark.parametrize("attention", ["sigmoid", "linear", "sparsemax"])
def test_scores_that_overflow_prove_nothing(attention):
    model = one_weight(attention)
    with torch.no_grad():
        model.W_K.mul_(1e300)
        model.W_Q.mul_(1e300)
    assert ol.certify(model, ol.Target("x1", [(-1, 1)]), 10.0, boxes=20).verdict == "UNDECIDED"


@pytest.mark.long
def test_slopes_are_not_claimed():
    """Where no slopes are derived nothing is proved about them; a window has those of the softmax."""
    found = {
        name: ol.certify(
            one_weight(name), ol.Target(FORMULAS[name], [(0.3, 1)]), 1e-6, slope_tolerance=1e-3, seconds=5.0
        )
        for name in ("sigmoid", "sparsemax", "local")
    }
    assert found["local"].verdict == "CERTIFIED"
    assert found["sigmoid"].verdict == found["sparsemax"].verdict == "UNDECIDED"


def test_the_deployed_sigmoid_is_as_accurate_as_assumed():
    generator = torch.Generator().manual_seed(0)
    for dtype, u in ((torch.float64, 2.0**-53), (torch.float32, 2.0**-24)):
        x = torch.cat([(torch.rand(2000, generator=generator) - 0.5) * s for s in (1, 10, 80, 170)]).to(dtype)
        with ctx.workprec(200):
            exact = [1 / (1 + (-arb(float(t))).exp()) for t in x]
            off = [abs(arb(float(y)) - t) / t for y, t in zip(torch.sigmoid(x), exact, strict=True)]
            assert max(map(float, off)) <= other_attention.SIGMOID_UNITS * u


@pytest.mark.long
def test_random_models_are_bounded_closely():
    """The bound is within a factor of what is seen: no engine that says ∞ to everything."""
    for other in OTHERS:
        model = random_model(plain_config(**other, tokens=2, features_in=1, features_out=1, d_model=4, readout="mean"))
        certificate = ol.certify(model.eval(), ol.Target("0", [(-1, 1)] * 2), 1e-3, boxes=1500)
        assert certificate.observed <= certificate.bound <= 1.5 * certificate.observed, other
