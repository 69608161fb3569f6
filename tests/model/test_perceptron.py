"""Eq. (1), (9), (10): both consistent readings of δ give autograd's gradients; the paper's mixture does not (G6)."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onelayer.model.reference import perceptron

TORCH = {
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
    "sigmoid": torch.sigmoid,
    "identity": lambda z: z,
}


def network(widths, activations, seed):
    rng = np.random.default_rng(seed)
    weights = [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in pairwise(widths)]
    return weights, rng.normal(size=widths[0]), rng.normal(size=widths[-1]), list(activations)


def autograd(weights, x, upstream, activations):
    parameters = [tuple(torch.from_numpy(t).requires_grad_() for t in pair) for pair in weights]
    h = torch.from_numpy(x)
    for (W, b), name in zip(parameters, activations, strict=True):
        h = TORCH[name](W @ h + b)
    flat = torch.autograd.grad((h * torch.from_numpy(upstream)).sum(), [t for pair in parameters for t in pair])
    return list(zip(flat[::2], flat[1::2], strict=True))


@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=6).flatmap(
        lambda widths: st.tuples(
            st.just(widths),
            st.lists(st.sampled_from(sorted(TORCH)), min_size=len(widths) - 1, max_size=len(widths) - 1),
        )
    ),
    st.integers(0, 99),
)
def test_backpropagation_equals_autograd(shape, seed):
    weights, x, upstream, activations = network(*shape, seed)
    passed = perceptron.forward(weights, x, activations)
    expected = autograd(weights, x, upstream, activations)
    for method in (perceptron.backpropagate, perceptron.backpropagate_outputs):
        for got, want in zip(method(weights, passed, upstream), expected, strict=True):
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w.numpy(), rtol=1e-10, atol=1e-10)


def test_layer_is_equation_1():
    weights, x, _, _ = network([3, 2], ["relu"], 0)
    (W, b), z = weights[0], np.array([sum(weights[0][0][i] * x) + weights[0][1][i] for i in range(2)])
    np.testing.assert_allclose(perceptron.layer(W, b, x), np.where(z > 0, z, 0), rtol=1e-14)
    np.testing.assert_allclose(perceptron.forward(weights, x, ["relu"]).h[1], perceptron.layer(W, b, x))


@pytest.mark.parametrize("name", sorted(TORCH))
def test_activations_and_slopes_equal_torch(name):
    z = torch.linspace(-6, 6, 241, dtype=torch.float64).requires_grad_()
    y = TORCH[name](z)
    phi, slope = perceptron.ACTIVATION[name]
    np.testing.assert_allclose(phi(z.detach().numpy()), y.detach().numpy(), rtol=1e-12, atol=1e-14)
    expected = torch.autograd.grad(y.sum(), z)[0].numpy()
    np.testing.assert_allclose(slope(z.detach().numpy()), expected, rtol=1e-12, atol=1e-14)
