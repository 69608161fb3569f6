"""A new activation costs its record: proofs about a layer with it hold without a line of their own."""

import numpy as np
import pytest
import torch

from cases import plain_config, random_model
from enclosing import inside, require_enclosed
from onelayer.formula.taylor.series import Space
from onelayer.layer.arithmetic import FLOAT32
from onelayer.model.activations import ACTIVATIONS, ActivationFunction
from onelayer.proof.bisection.tangents import Slopes
from onelayer.proof.overflow import cannot_overflow
from onelayer.proof.slopes import slopes_at

NEW = {
    "tanh": ActivationFunction("tanh(x1)", "1 - tanh(x1)*tanh(x1)", torch.tanh, 1.0, shrinks=True),
    "sigmoid": ActivationFunction(
        "sigmoid(x1)", "sigmoid(x1) - sigmoid(x1)*sigmoid(x1)", torch.sigmoid, 0.26, at_0=0.5
    ),
    "softplus": ActivationFunction(
        "softplus(x1)", "sigmoid(x1)", lambda u: torch.logaddexp(u, torch.zeros_like(u)), 1.0, at_0=0.7
    ),
}


@pytest.fixture(params=NEW)
def new(request, monkeypatch):
    """The name whose place a new activation takes."""
    monkeypatch.setitem(ACTIVATIONS, "silu", NEW[request.param])
    return "silu"


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
@pytest.mark.parametrize("single", [False, True])
def test_layers_are_enclosed(new, norm, single):
    for seed in range(4):
        config = plain_config(activation=new, norm=norm, residual=seed % 2 == 0)
        require_enclosed(config, seed, -0.5 * seed, 0.0, single)


def test_slopes_are_enclosed(new):
    model, rng = random_model(plain_config(activation=new, tokens=2, features_in=1)), np.random.default_rng(0)
    lower = rng.uniform(-1, 1, (4, 2))
    upper = lower + 10 ** rng.uniform(-4, -1, (4, 1))
    low, high = Slopes(model)(Space(lower, upper)).model.range()
    at = slopes_at(model, tuple(range(model.config.places)))
    for box in range(4):
        found = at(lower[box] + (upper[box] - lower[box]) * rng.random((50, 2)))
        rounding = 1e-11 * (1 + np.abs(found).max())
        assert (found >= low[box] - rounding).all()
        assert (found <= high[box] + rounding).all()
    assert np.isfinite(high - low).all()


def test_the_value_at_0_is_not_forgotten(new):
    """With hidden units that see nothing, what they pass on is φ(0)."""
    phi = ACTIVATIONS[new]
    model = random_model(plain_config(activation=new)).float()
    with torch.no_grad():
        model.W_1.zero_()
        model.b_1.zero_()
        model.W_2.fill_(1e37)
    assert cannot_overflow(model, 1.0, FLOAT32) == (phi.at_0 == 0)


def test_the_hunt_can_fail(monkeypatch):
    """With the formula of another activation the enclosures miss the truth."""
    monkeypatch.setitem(ACTIVATIONS, "silu", NEW["tanh"])
    config = plain_config(activation="silu")
    model, point = random_model(config), np.zeros(config.tokens * config.features_in)
    from onelayer.proof.bisection.transformer import Network
    from onelayer.proof.witness import in_balls

    answer = Network(model, FLOAT32)(Space(point[None] - 1e-6, point[None] + 1e-6)).model
    monkeypatch.setitem(ACTIVATIONS, "silu", NEW["sigmoid"])
    exact = [v for place in in_balls(model, point.tolist()) for v in place]
    low, high = answer.range()
    assert not any(inside(v, low[0, o], high[0, o]) for o, v in enumerate(exact))
