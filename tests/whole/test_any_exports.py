"""Exports and fast evaluation of weights made by hand: what is stated beside them is true, or nothing is stated."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import onelayer as ol
from checking import numbers
from made_by_hand import blank
from onelayer.approximation import Approximation
from onelayer.deployment.export.deviation import deviation
from onelayer.deployment.export.layernorm import doubled
from onelayer.deployment.export.onnx import SingleLengthGraph
from onelayer.deployment.export.subject import Bound, Measured, Subject, subject_of
from onelayer.deployment.export.value_bounds import value_bounds
from onelayer.layer.arithmetic import FLOAT32
from onelayer.layer.form import Block, Form
from onelayer.layer.rounding.computed_slopes import gradient_rounding
from onelayer.layer.rounding.deployed import FormProgram
from onelayer.proof.witness import in_balls


def held(model, target):
    """The layer with what is proved of it in a second."""
    facts = ol.build("x1", [(-0.5, 0.5)], 0.01).facts
    return Approximation.of(model, target, ol.certify(model, target, 1.0, seconds=1.0), facts)


def test_slopes_in_c_that_the_scale_makes_subnormal():
    """x̂ = x·2^-124: what is left of a slope is a multiple of 2^-149."""
    form = Form(torch.ones(1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64), ())
    assert float(gradient_rounding(form, (2.0**-124,), 1.0, FLOAT32)) >= 2.0**-149


def test_coefficients_of_a_form_that_are_no_float32_numbers():
    """2^-151·x̂ with |x̂| ≤ 2^120: as a float32 number the coefficient is 0."""
    form = Form(torch.zeros(1, dtype=torch.float64), torch.full((1, 1), 2.0**-151, dtype=torch.float64), ())
    edge = torch.full((1,), 2.0**120, dtype=torch.float64)
    assert float(form.linear.float()) == 0.0
    assert float(FormProgram.of_form(form, FLOAT32, stores=True).rounding(-edge, edge)) >= 2.0**-31


@pytest.mark.parametrize(
    ("linear", "key", "value"), [(2.0**-160, 0.0, 0.0), (0.0, 2.0**-180, 2.0**100), (0.0, 2.0**80, 2.0**-160)]
)
def test_slopes_of_coefficients_that_are_no_float32_numbers(linear, key, value):
    """What float32 makes 0 counts as often as the scale, the other factor or the numbers say."""
    keys, values = numbers([0.0], [key])[None], numbers([0.0], [value])[None]
    block = Block(keys, numbers([0.0, 0.0]), values, torch.zeros(1, 2, 1, 1, dtype=torch.float64))
    form = Form(torch.zeros(1, dtype=torch.float64), numbers([linear]), (block,) if key else ())
    scale, slope = 1.0 if key else 2.0**50, linear + key * value / 4  # at 0
    stored = float(np.float32(linear)) + float(np.float32(key)) * float(np.float32(value)) / 4
    found = gradient_rounding(form, (scale,), 2.0**-80 if key > 1 else 2.0**100, FLOAT32)
    assert float(found) >= scale * abs(slope - stored) > 0


def test_adaptive_attention_of_constants_alone():
    """Three heads that see no coordinate: their averages are part of the answer all the same."""
    model = blank(torch.float64, d_model=7, heads=3)
    model.b_E[0] = model.S[0, 1] = model.W_R[2, 0] = 1.0
    model.W_Q[:, 0, 0], model.W_K[:, 1, 0] = 1.0, torch.tensor([0.5, 1.0, 2.0])
    model.W_V[:, 1, 0], model.W_O[:, 2] = torch.tensor([1.0, 2.0, -4.0]), 1.0
    value = float(model(torch.zeros(1, 1, 1, dtype=torch.float64)))
    fast = held(model, ol.Target(f"{value!r} + 0*x1", [(0, 1)])).fast("adaptive")
    assert abs(value) > 0.1
    assert float(np.asarray(fast(np.array([[0.25]]))).reshape(-1)[0]) == pytest.approx(value, abs=1e-2)
    assert fast.bound < 1.0


@pytest.mark.parametrize("attention", ["sparse", "adaptive"])
def test_points_that_the_model_itself_answers(attention):
    """Beyond |x̂| = 0.51 sparse attention leaves points to the model, which rounds x + 2^23 − 2^23."""
    model = blank(torch.float32, d_model=8)
    model.W_E[0, 0] = model.W_R[0, 0] = model.W_R[1, 0] = 1.0
    model.b_E[1], model.b_R[0] = 2.0**23, -(2.0**23)
    fast = held(model, ol.Target("x1", [(-1, 1)])).fast(attention)
    error = abs(float(np.asarray(fast(np.array([[0.75]]))).reshape(-1)[0]) - 0.75)
    assert 0.2 < error <= fast.rounding + fast.remainder


@pytest.mark.parametrize("attention", ["linear", "softmax", "sparse"])
def test_fast_evaluation_knows_how_well_the_weights_were_read(attention):
    """A key is 0.0035 or 0, depending on the order of a sum that cancels: of the form nobody knows which."""
    model = blank(torch.float64, d_model=8)
    model.W_E[0, 0] = model.b_E[1] = model.W_Q[0, 1, 0] = model.S[0, 5] = model.W_V[0, 5, 0] = model.W_O[0, 6] = 1.0
    model.S[0, 2:5], model.W_K[0, 2:5, 0], model.W_R[[0, 6], 0] = torch.tensor([2.0**46, 0.0035, -(2.0**46)]), 1.0, 1.0
    fast = held(model, ol.Target("x1 + 1/2", [(-0.5, 0.5)])).fast(attention)
    found = float(np.asarray(fast(np.array([[0.25]]))).reshape(-1)[0])
    error = float(abs(in_balls(model, [0.25])[0][0] - found))
    assert 1e-4 < error <= fast.rounding + fast.remainder


def test_onnx_states_no_bound_where_a_weight_times_the_scale_vanishes():
    pytest.importorskip("onnx")
    model = blank(torch.float32, d_model=8)
    model.scale.fill_(2.0**-100)
    model.W_E[0, 0], model.W_E[0, 3], model.W_R[0, 0] = 1.0, 2.0**-60, 1.0
    target = ol.Target(f"x1/{2**100}", [(-(2.0**99), 2.0**99)])
    graph = SingleLengthGraph(Subject(held(model, target), model))
    graph.tokens()
    assert graph.vanishing
    model.W_E[0, 3] = 2.0**-20
    graph = SingleLengthGraph(Subject(held(model, target), model))
    graph.tokens()
    assert not graph.vanishing


def test_layernorm_knows_scores_of_an_embedding_that_cancels():
    """A coordinate is 1, added up from 2^60, 1 and −2^60: its score is as large as the memory token's, and so is its weight."""
    model, large = blank(torch.float64, d_model=8, features_in=2, code="learned"), 2.0**60
    model.W_E[:, 0], model.b_E[0], model.P[0, 0], model.S[0, 0] = -large, large, 1.0, 1.0
    model.b_E[1] = model.W_Q[0, 1, 0] = model.W_V[0, 2, 0] = model.W_O[0, 3] = model.W_R[3, 0] = 1.0
    model.W_E[:, 2], model.W_K[0, 0, 0] = 1e6, 1000.0
    built = ol.build("x1", [(0, 1)], 0.01)
    words = replace(
        built.description, kind="gallery", formula=None, vocabulary=2, sequence=True, shape=(1, 1), entry="x"
    )
    claim = replace(built.certificate, weights=model.fingerprint(), method="lemma")
    subject = subject_of(Approximation(model, claim, built.facts, words), None)
    added = float(model(torch.tensor([[[1.0, 0.0]]], dtype=torch.float64)))
    assert added == 5e5
    assert float(value_bounds(subject).attended[0, 3]) >= added


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_layernorm_is_not_bounded_where_half_a_weight_is_none(norm):
    """The smallest float32 number is made large again: T(x) = x, and its half is 0."""
    model = blank(torch.float32, d_model=2)
    model.W_E[0, 0], model.W_1[0, 0], model.W_2[0, 1], model.W_R[1, 0] = 2.0**22, 2.0**-149, 2.0**100, 2.0**27
    subject = Subject(held(model, ol.Target("x1", [(0.5, 1)])), model)
    assert deviation(subject, doubled(subject, norm), norm) == float("inf")
    model.W_1[0, 0], model.W_2[0, 1] = 2.0**-20, 2.0**-29
    assert deviation(subject, doubled(subject, norm), norm) < float("inf")


def test_a_bound_that_a_difference_contradicts_is_not_stated():
    bound = Bound(1e-3, "any difference", 1e-3)
    assert bound.unless_contradicted(Measured(10, 2e-3, None)) is None
    assert bound.unless_contradicted(Measured(10, 1e-3, None)) is bound
    assert bound.unless_contradicted(None) is bound
