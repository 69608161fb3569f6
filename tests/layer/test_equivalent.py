"""Layers of sigmoid and linear attention that are layers of softmax attention."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from onelayer.layer.assemble import Frame, Outputs, assemble
from onelayer.layer.equivalent import softmax_equivalent
from onelayer.layer.heads import EDGE, Gates, Maxima, Ramps, Ridges
from onelayer.layer.layer import gate_layer, memory_layer
from onelayer.layer.reading import form_of_model
from onelayer.model.transformer import SingleLayerTransformer

FRAME, ONE = Frame((0.0, 0.0), (1.0, 1.0)), Outputs(1, 1, (0,))


def gates(sharpness=6.0, dimension=2):
    rng = torch.Generator().manual_seed(3)
    n = 5
    kept = torch.rand(n, dimension, generator=rng) < 0.7
    kept[:, 0] = True
    heads = Gates(
        sharpness * torch.randn(n, generator=rng).double(), torch.rand(n, dimension, generator=rng).double(), kept
    )
    values = torch.randn(n, dimension + 2, 1, generator=rng).double()
    values[:, 1:-1][~kept] = 0.0
    linear = torch.randn(dimension, 1, generator=rng).double()
    return gate_layer(torch.ones(1, dtype=torch.float64), dimension, (heads, values), linear=linear)


def ridges(kind):
    rng = torch.Generator().manual_seed(4)
    heads = kind(3 * torch.randn(6, 2, generator=rng).double(), torch.randn(6, generator=rng).double())
    values = torch.randn(6, 1, generator=rng).double()
    linear = torch.ones(2, 1, dtype=torch.float64)
    return memory_layer(torch.ones(1, dtype=torch.float64), 2, ridges=(heads, values), linear=linear)


def points():
    return torch.from_numpy(np.random.default_rng(0).uniform(-0.5, 0.5, (400, 2)))


def answers(model, x):
    with torch.no_grad():
        return model(x.reshape(len(x), model.config.tokens, model.config.features_in)).flatten(1)


@pytest.mark.parametrize(
    ("layer", "attention"), [(gates(), "linear"), (ridges(Ridges), "sigmoid"), (ridges(Ramps), "sparsemax")]
)
def test_the_model_computes_its_layer(layer, attention):
    model, x = assemble(layer, FRAME, ONE, attention=attention), points()
    assert model.config.attention == attention
    assert torch.allclose(answers(model, x), layer(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("layer", "attention"), [(gates(), "linear"), (ridges(Ridges), "sigmoid")])
def test_the_form_is_that_of_the_softmax(layer, attention):
    model, x = assemble(layer, FRAME, ONE, attention=attention), points()
    reading = form_of_model(model, (0,), EDGE)
    assert reading is not None
    assert torch.allclose(reading.form(x), layer(x), rtol=0, atol=1e-12)
    softmax = softmax_equivalent(model, (0,), EDGE)
    assert torch.allclose(answers(softmax.model, x), answers(model, x), rtol=0, atol=1e-12)


def test_keys_above_0_have_no_equivalent():
    """φ(t) = 1 + t there: another function, so a form would be wrong."""
    model = assemble(gates(), FRAME, ONE, attention="linear")
    with torch.no_grad():
        model.W_K[:, 1:4, 0] += 50.0
    assert softmax_equivalent(model, (0,), EDGE) is None
    assert form_of_model(model, (0,), EDGE) is None
    softmax = SingleLayerTransformer(replace(model.config, attention="softmax"))
    softmax.load_state_dict(model.state_dict())
    assert not torch.allclose(answers(softmax, points()), answers(model, points()), atol=1e-3)


def test_a_box_that_is_too_wide_has_no_equivalent():
    model = assemble(gates(), FRAME, ONE, attention="linear")
    assert softmax_equivalent(model, (0,), EDGE) is not None
    assert softmax_equivalent(model, (0,), 3.0) is None


def test_queries_other_than_1_have_no_equivalent():
    model = assemble(gates(), FRAME, ONE, attention="linear")
    with torch.no_grad():
        model.W_Q[0] *= 2
    assert softmax_equivalent(model, (0,), EDGE) is None


def test_scores_too_far_apart_have_no_equivalent():
    """Then all exponentials of a row may vanish, and the answer is not a number."""
    one = torch.ones(1, dtype=torch.float64)
    head = Maxima(one * 5000, torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool))
    layer = gate_layer(one, 2, maxima=(head, one[:, None]))
    model = assemble(layer, FRAME, ONE, attention="linear")
    assert softmax_equivalent(model, (0,), EDGE) is None
    assert answers(model, torch.full((1, 2), -0.4, dtype=torch.float64)).isnan().all()


def test_several_tokens_of_sigmoid_attention_are_not_read():
    """Their weights do not sum to 1."""
    model = assemble(gates(), FRAME, ONE)
    sigmoid = SingleLayerTransformer(replace(model.config, attention="sigmoid"))
    sigmoid.load_state_dict(model.state_dict())
    assert form_of_model(model, (0,), EDGE) is not None
    assert form_of_model(sigmoid, (0,), EDGE) is None
