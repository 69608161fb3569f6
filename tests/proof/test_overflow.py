"""Overflow: no step of a layer is forgotten."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cases import configs, plain_config, random_input, random_model
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.proof.overflow import cannot_overflow

RICH = plain_config(projection_bias=True, norm="pre", readout="mean", code="learned", memory_tokens=1)


@pytest.mark.parametrize("name", sorted(random_model(RICH).state_dict().keys() - {"scale", "shift"}))
def test_every_weight_that_is_too_large_is_seen(name):
    model = random_model(RICH).float()
    assert cannot_overflow(model, 1.0, FLOAT32)
    with torch.no_grad():
        getattr(model, name).fill_(1e38)
    assert not cannot_overflow(model, 1.0, FLOAT32)
    assert cannot_overflow(model, 1.0, FLOAT64) or name in ("W_E", "b_E", "P", "S")  # squared twice by LayerNorm


@given(configs(), st.integers(0, 1000), st.sampled_from(["W_E", "W_Q", "W_K", "W_V", "W_O", "W_1", "W_2", "W_R"]))
def test_answers_are_finite_where_nothing_can_overflow(config, seed, name):
    model, x = random_model(config, seed).float().eval(), random_input(config, 20, seed).float()
    with torch.no_grad():
        for power in (15, 30, 36):
            model.load_state_dict(random_model(config, seed).float().state_dict())
            getattr(model, name).mul_(10.0**power)
            edge = float(((x - model.shift) * model.scale).abs().max())
            assert model(x).isfinite().all() or not cannot_overflow(model, edge, FLOAT32)


@pytest.mark.parametrize("attention", ["sigmoid", "linear", "sparsemax", "local", "fused"])
def test_every_attention_has_its_size(attention):
    model = random_model(plain_config(attention=attention)).float()
    assert cannot_overflow(model, 1.0, FLOAT32)
    with torch.no_grad():
        model.W_V.fill_(1e38)
    assert not cannot_overflow(model, 1.0, FLOAT32)


def test_the_distance_from_the_centre_may_overflow():
    """x - shift is 6e38 where x̂ is 6e8."""
    model = random_model(plain_config()).float()
    with torch.no_grad():
        model.scale.fill_(1e-30)
    assert not cannot_overflow(model, 6e8, FLOAT32)
    assert cannot_overflow(model, 1.0, FLOAT32)
