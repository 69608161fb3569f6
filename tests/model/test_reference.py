"""The NumPy reference of the whole layer: its forward equals the model, its hand-derived backward equals autograd."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from cases import OTHERS, VARIANTS, arrays, configs, plain_config, random_input, random_model
from onelayer import reference
from onelayer.model.reference import attention, sublayers, transformer
from onelayer.model.transformer import fixed_code

GRADIENT = {"rtol": 0, "atol": 1e-10}


def both_gradients(config, masks=None):
    """(reference, autograd) gradients by name, the input's under "x", for a random linear loss."""
    model, x = random_model(config), random_input(config).requires_grad_()
    out = model(x)
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(9), dtype=out.dtype)
    names = ["x", *(name for name, _ in model.named_parameters())]
    expected = torch.autograd.grad((out * upstream).sum(), [x, *model.parameters()])
    w = arrays(model)
    y, passed = transformer.forward(config, w, x.detach().numpy(), masks)
    np.testing.assert_allclose(y, out.detach().numpy(), rtol=1e-11, atol=1e-11)
    dx, gradients = transformer.backward(config, w, passed, upstream.numpy(), masks)
    return gradients | {"x": dx}, {name: g.numpy() for name, g in zip(names, expected, strict=True)}


def assert_equal_gradients(got, expected):
    assert got.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], err_msg=name, **GRADIENT)


@given(configs(), st.sampled_from([{}, *OTHERS]))
def test_forward_equals_the_model(config, other):
    config = dataclasses.replace(config, **other)
    model, x = random_model(config), random_input(config)
    y, passed = transformer.forward(config, arrays(model), x.numpy())
    np.testing.assert_allclose(y, model(x).detach().numpy(), rtol=1e-11, atol=1e-11)
    weights = np.stack([head.weights for head in passed.heads[0]], axis=1)
    np.testing.assert_allclose(model.attention(x).detach().numpy(), weights, rtol=0, atol=1e-11)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(map(str, v.values())))
@pytest.mark.parametrize("readout", ["position", "output", "mean"])
def test_backward_equals_autograd(variant, readout):
    assert_equal_gradients(*both_gradients(plain_config(**variant, readout=readout, code="learned")))


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other["attention"])
@pytest.mark.parametrize("norm", ["none", "pre"])
def test_backward_equals_autograd_for_other_attention(other, norm):
    assert_equal_gradients(*both_gradients(plain_config(**other, norm=norm, tokens=4, d_model=8, code="learned")))


@given(configs(norm_eps=1e-2))  # a d_model of 1 or 2 makes LayerNorm nearly singular at the usual eps
def test_backward_equals_autograd_on_drawn_configs(config):
    assert_equal_gradients(*both_gradients(config))


def test_backward_with_dropout_equals_autograd(monkeypatch):
    config = plain_config(dropout=0.3, anchor_tokens=0, output_tokens=0, norm="post", code="learned")
    masks = transformer.draw_masks(config, 3, np.random.default_rng(0))
    queue = [torch.from_numpy(getattr(masks, f.name)) for f in dataclasses.fields(masks)]
    assert all((q == 0).any() for q in queue)
    monkeypatch.setattr(F, "dropout", lambda x, p, training: x * queue.pop(0))
    assert_equal_gradients(*both_gradients(config, masks))
    assert not queue


def test_the_comparison_can_fail(monkeypatch):
    """A wrong Jacobian (its second term forgotten) is noticed."""
    for kind in ("softmax", "sigmoid", "sparsemax"):
        right, _ = attention.WEIGHTS[kind]
        monkeypatch.setitem(attention.WEIGHTS, kind, (right, lambda weights, upstream: weights * upstream))
        with pytest.raises(AssertionError):
            assert_equal_gradients(*both_gradients(plain_config(attention=kind)))
    monkeypatch.setattr(attention, "linear_features", lambda t: np.exp(t))
    with pytest.raises(AssertionError):
        assert_equal_gradients(*both_gradients(plain_config(attention="linear")))


def test_attention_is_equations_5_to_8():
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    for i in range(4):
        e = [np.exp(Q[i] @ K[j] / np.sqrt(3)) for j in range(5)]
        np.testing.assert_allclose(attention.attention_weights(Q, K)[i], np.array(e) / sum(e), rtol=1e-14)
        np.testing.assert_allclose(
            attention.attend(Q, K, V)[i], sum(e[j] / sum(e) * V[j] for j in range(5)), rtol=1e-13
        )
    X = rng.normal(size=(2, 4, 3))
    w = {f"W_{s}": rng.normal(size=(2, 3, 2)) for s in "QKV"} | {"W_O": rng.normal(size=(4, 3))}
    Z = [attention.attend(*(X @ w[f"W_{s}"][i] for s in "QKV")) for i in range(2)]
    np.testing.assert_allclose(attention.multi_head(X, w)[0], np.concatenate(Z, axis=-1) @ w["W_O"], rtol=1e-13)


@pytest.mark.parametrize("d_model", [4, 7])
def test_positional_codes_equal_the_models(d_model):
    sinusoidal = plain_config(d_model=d_model, code="sinusoidal")
    np.testing.assert_allclose(fixed_code(sinusoidal).numpy(), attention.sinusoidal_code(3, d_model), atol=1e-15)
    one_hot = plain_config(d_model=d_model + 3)
    np.testing.assert_array_equal(fixed_code(one_hot).numpy(), attention.one_hot_code(3, d_model + 3, 2))


def test_layer_norm_equals_torch():
    rng = np.random.default_rng(0)
    X, gain, offset = rng.normal(size=(2, 3, 5)), rng.normal(size=5), rng.normal(size=5)
    expected = F.layer_norm(*map(torch.from_numpy, (X,)), (5,), torch.from_numpy(gain), torch.from_numpy(offset), 1e-5)
    np.testing.assert_allclose(sublayers.layer_norm(X, gain, offset, 1e-5)[0], expected.numpy(), rtol=1e-12, atol=1e-13)


def test_dropout_keeps_the_expectation():
    mask = sublayers.dropout_mask((100_000,), 0.3, np.random.default_rng(0))
    assert set(np.unique(mask)) == {0.0, 1 / 0.7}
    assert abs(mask.mean() - 1) < 4 * np.sqrt(0.3 / 0.7 / 100_000)


def test_the_reference_is_independent_of_torch():
    import subprocess
    import sys

    modules = [
        f"onelayer.model.reference.{m}" for m in ("perceptron", "losses", "optimisers", "attention", "transformer")
    ]
    code = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert reference.__doc__
