"""Weights other than softmax: what they are by definition, and what they do where floating point is hard on them."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cases import OTHERS, plain_config, random_input, random_model
from onelayer import InputError
from onelayer.model.on_tensors import attention_weights, linear_features, sparsemax

scores = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8).map(lambda s: torch.tensor(s, dtype=torch.float64))


@given(scores)
def test_sparsemax_is_on_the_simplex_and_has_one_threshold(s):
    alpha = sparsemax(s)
    assert (alpha >= 0).all()
    assert abs(float(alpha.sum()) - 1) <= 1e-12
    gaps = (s - alpha)[alpha > 0]  # τ on the support, and no score above it elsewhere
    assert gaps.max() - gaps.min() <= 1e-12 * (1 + s.abs().max())
    assert (s[alpha == 0] <= gaps.max() + 1e-12 * (1 + s.abs().max())).all()


def test_sparsemax_is_the_closest_point_of_the_simplex():
    """Against a general-purpose optimiser, which knows nothing of thresholds."""
    rng = np.random.default_rng(0)
    for spread in (0.1, 1.0, 3.0):
        s = rng.normal(size=6) * spread
        found = minimize(
            lambda p, s=s: ((p - s) ** 2).sum(), np.full(6, 1 / 6), bounds=[(0, 1)] * 6, tol=1e-14,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        )  # fmt: skip
        np.testing.assert_allclose(sparsemax(torch.from_numpy(s)).numpy(), found.x, atol=1e-6)


def test_sparsemax_of_huge_scores_is_exact():
    s = torch.tensor([1e300, -1e300, 1e300, 0.0], dtype=torch.float64)
    assert sparsemax(s).tolist() == [0.5, 0.0, 0.5, 0.0]


def test_features_of_linear_attention_keep_their_digits():
    t = torch.tensor([-700.0, -40.0, -1e-9, 0.0, 2.5], dtype=torch.float64)
    assert linear_features(t).tolist() == [*np.exp([-700.0, -40.0, -1e-9]).tolist(), 1.0, 3.5]
    assert (torch.nn.functional.elu(t) + 1)[:2].tolist() == [0.0, 0.0]  # why it is not computed like that


@pytest.mark.parametrize("attention", ["softmax", "fused", "sigmoid", "linear", "sparsemax", "local"])
def test_hidden_tokens_have_no_weight_and_change_nothing(attention):
    s = torch.rand(2, 1, 3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    hidden = torch.tensor([False, True, False, True, False]).expand(1, 3, 5)
    alpha = attention_weights(s, attention, hidden)
    assert (alpha[..., [1, 3]] == 0).all()
    torch.testing.assert_close(alpha[..., [0, 2, 4]], attention_weights(s[..., [0, 2, 4]], attention))


def test_weights_are_what_the_configuration_says():
    """α from queries and keys, by the definitions in LayerConfig's docstring, written out."""
    for other in OTHERS:
        config = plain_config(**other, projection_bias=False)
        model, x = random_model(config), random_input(config)
        e, alpha = model.tokens(x), model.attention(x)
        q, k = model._project(e, "Q"), model._project(e, "K")
        s = (q.unsqueeze(3) * k.unsqueeze(2)).sum(dim=-1) / 3**0.5
        phi = [torch.nn.functional.elu(t) + 1 for t in (q, k)]
        product = (phi[0].unsqueeze(3) * phi[1].unsqueeze(2)).sum(dim=-1)
        far = torch.zeros(5, 5, dtype=torch.bool)
        far[0, 2] = far[2, 0] = True  # of three data tokens with window 1; the special tokens see and are seen
        wanted = {
            "sigmoid": lambda s=s: 1 / (1 + (-s).exp()),
            "linear": lambda product=product: product / product.sum(dim=-1, keepdim=True),
            "sparsemax": lambda s=s: sparsemax(s),
            "local": lambda s=s, far=far: torch.softmax(s.masked_fill(far, -torch.inf), dim=-1),
        }[other["attention"]]()
        torch.testing.assert_close(alpha, wanted, rtol=1e-11, atol=1e-13)


def test_a_window_belongs_to_local_attention():
    with pytest.raises(InputError, match="found: window=2 with attention='softmax'; change: set window=0"):
        plain_config(window=2)
    assert dataclasses.replace(plain_config(attention="local", window=2)).seen_by(0) == [0, 1, 2, 3, 4]
    assert plain_config(attention="local").seen_by(1) == [1, 3, 4]
    assert plain_config(attention="local", window=1, causal=True).seen_by(2) == [1, 2, 3, 4]
    assert plain_config(attention="local", readout="output").seen_by(0) == [0, 1, 2, 3, 4]


def test_a_layer_says_which_attention_it_has():
    assert "2 heads of sparsemax attention (d_k=3" in str(random_model(plain_config(attention="sparsemax")))
