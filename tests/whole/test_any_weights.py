"""Weights and formulas made by hand so that numbers vanish or overflow inside our own algebra: nothing false is said of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import onelayer as ol
from made_by_hand import blank, proved
from onelayer.deployment.export.subject import Bound, Subject
from onelayer.formula.taylor.kink import relu_lines
from onelayer.layer.arithmetic import FLOAT32
from onelayer.layer.number_range import out_of_range
from onelayer.layer.reading import form_of_model
from onelayer.proof.overflow import cannot_overflow
from onelayer.proof.two_sided import Supremum
from onelayer.proof.witness import in_balls

UNIT = [(0, 1)]


def masked(dtype, value, score):
    """A memory token of this value, masked by a score of `score` − 900 x, beside a unit that is silent by a hair."""
    model = blank(dtype, d_model=7, d_k=4)
    model.shift.fill_(0.5)
    model.W_E[0, 0], model.b_E[1], model.S[0, 5], model.S[0, 2] = 1.0, 1.0, 1.0, value
    model.W_Q[0, 1, 0], model.W_Q[0, 0, 1] = 1.0, 1.0
    model.W_K[0, 5, 0], model.W_K[0, 5, 1] = 2 * (score - 450.0), -1800.0
    model.W_V[0, 2, 0], model.W_O[0, 3] = 1.0, 1.0
    model.W_1[3, 0], model.b_1[0], model.W_2[0, 4], model.W_R[4, 0] = 1.0, -(2.0**-60), 2.0**10, 1.0
    return model


def hinged(inner, outer):
    """Three ReLUs, a hat of height inner·outer²·2^−22, whose outgoing weights are small twice."""
    width, at = 2.0**-22, 0.1
    model = blank(torch.float64, d_model=2, ffn_width=3, memory_tokens=0)
    model.shift.fill_(0.5)
    model.W_E[0, 0], model.W_R[1, 0] = 1.0, outer
    for unit, height in enumerate((1.0, -2.0, 1.0)):
        model.W_1[0, unit], model.b_1[unit], model.W_2[unit, 1] = inner, -inner * (at + unit * width), height * outer
    return model, 0.5 + at + width


def test_weight_on_a_masked_token_opens_a_silent_unit():
    """The real function is above 1e-11 at 0, where the token is least masked."""
    model, target = masked(torch.float32, 2.0**105, -104.5), ol.Target("1e-14*x1", UNIT)
    assert proved(model, target) >= float(in_balls(model, [0.0])[0][0]) > 1e-11
    reading = form_of_model(model, (0,), 0.5)
    assert reading is None or float(reading.error) > 1e-11


def test_products_of_two_outgoing_weights_vanish():
    """W_2·W_R is 0 in float64, and the hat is 2.6e-26 high all the same: by neither engine is the bound below it."""
    model, x = hinged(2.0**1013, 2.0**-538)
    target = ol.Target("1e-31*abs(x1 - 0.25) + 1e-31*sin(x1)", UNIT)
    height = float(model(torch.tensor([[[x]]], dtype=torch.float64)))
    assert height > 1e-26
    assert proved(model, target) >= height
    assert "products of weights" in str(ol.certify(model, target, 1e-30, seconds=1.0).assumptions)


def test_products_of_queries_and_keys_vanish():
    """A slope of 1/8 that a product of 2^-1200 carries: it is not proved to be small."""
    model = blank(torch.float64, d_k=4, memory_tokens=2)
    model.shift.fill_(0.5)
    model.scale.fill_(2.0**500)
    model.W_E[0, 0] = model.b_E[1] = model.S[0, 2] = model.S[1, 3] = model.W_Q[0, 1, 0] = 1.0
    model.W_Q[0, 0, 1] = model.W_K[0, 2, 1] = 2.0**-600
    model.W_K[0, 1, 0], model.W_V[0, 2, 0], model.W_V[0, 3, 0] = -4000.0, 2.0**699, -(2.0**699)
    model.W_O[0, 4] = model.W_R[4, 0] = 1.0
    found = ol.certify(model, ol.Target("0*x1", UNIT), 1e250, slope_tolerance=1e-3, seconds=1.0)
    assert found.slope is not None
    assert found.slope.bound >= 0.125


@pytest.mark.parametrize(
    "formula",
    [
        "1e-170*(1e-170*abs(1e140*x1))",
        "1e-170*(1e-170*abs(1e140*x1*(1 + 1e-9*sin(x1))))",
        "1e-170*(1e-170*max(1e140*x1, sin(x1)))",
    ],
)
def test_the_coefficient_of_a_kink_vanishes(formula):
    found = ol.supremum(formula, "0", domain=[(-1e150, 1e150)], seconds=1.0)
    assert 9.9e-51 < found.lower <= found.upper


@pytest.mark.parametrize("formula", ["1e-160*x1", "1e-165", "1e-155*(1 + x1)", "1e-165; 1e-166*x1"])
def test_squares_vanish(formula):
    size = {"1e-160*x1": 1e-160 / math.sqrt(3), "1e-165": 1e-165}.get(formula)
    found = ol.norm(formula, "; ".join("0" for _ in formula.split(";")), domain=UNIT, seconds=1.0)
    assert 0 < found.lower <= found.upper
    assert size is None or (found.lower <= size * (1 + 1e-12) and size <= found.upper * (1 + 1e-12))


def test_a_bias_of_a_projection_overflows():
    shape = {"tokens": 2, "features_in": 1, "features_out": 1, "d_model": 3, "heads": 1, "d_k": 1, "d_v": 1}
    model = ol.SingleLayerTransformer(ol.LayerConfig(**shape, ffn_width=2, projection_bias=True), dtype=torch.float32)
    with torch.no_grad():
        model.b_V.fill_(3e38)
        model.W_O.fill_(4.0)
        model.W_2.fill_(0.0)
        model.W_R.fill_(1e-38)
        assert model(torch.zeros(1, 2, 1)).isnan().all()
    assert not cannot_overflow(model, 1.0, FLOAT32)


def test_a_relu_on_an_interval_that_is_too_wide():
    share, width = relu_lines(np.array([-1.5e308]), np.array([1.5e308]))
    assert share[0] == 0.0
    assert width[0] == math.inf


def test_what_an_export_says_in_all_does_not_rest_on_evidence():
    """A bound of which the evidence says that it is all rounding."""
    approximation = ol.build("sin(x1)", UNIT, 1e-3)
    certificate = approximation.certificate
    evidence = replace(certificate.evidence, rounding=certificate.bound * (1 - 1e-6))
    approximation = replace(approximation, certificate=replace(certificate, evidence=evidence))
    total = Subject(approximation, approximation.model).in_all(Bound(1e-15, "the file", 1e-15))
    assert total is not None
    assert total >= approximation.certificate.bound


def test_ends_that_contradict_each_other_withdraw_the_upper_one():
    found = Supremum(2.0, 1.0, None, 0.1, "bisect", 1, "x1 in [0, 1]", ("p", "q")).unless_contradicted()
    assert found.upper == math.inf
    assert "contradicted" in found.assumptions[-1]


def test_the_door():
    """Numbers that proofs can multiply are let in, whatever they are alone; others are named."""
    model, _ = hinged(2.0**900, 2.0**-30)
    assert out_of_range(model, 0.5) is None
    for inner, outer in ((2.0**900, 2.0**100), (1.0, 2.0**-500)):
        reason = out_of_range(hinged(inner, outer)[0], 0.5)
        assert reason is not None
        assert "W_2" in reason
    model.scale.fill_(2.0**600)
    assert "another unit" in str(out_of_range(model, 0.5))
    model.b_R.fill_(math.inf)
    assert "not finite" in str(out_of_range(model, 0.5))
    with pytest.raises(ol.InputError, match="weights that proofs can multiply"):
        ol.norm(hinged(2.0**900, 2.0**100)[0], ol.Target("x1", UNIT), seconds=1.0)
