"""Eq. (4) and its descendants, fed identical gradients, equal torch.optim over 50 steps."""

import numpy as np
import pytest
import torch

from onelayer.model.reference.optimisers import Adam, GradientDescent, Momentum, mini_batches

PAIRS = {
    "sgd": (lambda: GradientDescent(0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    "momentum": (lambda: Momentum(0.05, 0.8), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8)),
    "adam": (lambda: Adam(0.02, 0.85, 0.99), lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.85, 0.99))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_equal_to_torch_optim(name):
    rng = np.random.default_rng(0)
    parameters = {"W": rng.normal(size=(3, 4)), "b": rng.normal(size=4)}
    twins = {n: torch.from_numpy(p.copy()).requires_grad_() for n, p in parameters.items()}
    ours, theirs = PAIRS[name][0](), PAIRS[name][1](list(twins.values()))
    for _ in range(50):
        gradients = {n: rng.normal(size=p.shape) * 10.0 ** rng.integers(-3, 3) for n, p in parameters.items()}
        parameters = ours.step(parameters, gradients)
        for n, twin in twins.items():
            twin.grad = torch.from_numpy(gradients[n].copy())
        theirs.step()
        for n, twin in twins.items():
            np.testing.assert_allclose(parameters[n], twin.detach().numpy(), rtol=0, atol=1e-12)


def test_gradient_descent_is_equation_4():
    theta, gradient = {"t": np.array([1.0, 2.0])}, {"t": np.array([10.0, -10.0])}
    np.testing.assert_array_equal(GradientDescent(0.1).step(theta, gradient)["t"], [0.0, 3.0])
    np.testing.assert_array_equal(theta["t"], [1.0, 2.0])  # nothing is changed in place


def test_mini_batches_are_a_partition():
    batches = list(mini_batches(10, 4, np.random.default_rng(0)))
    assert [len(b) for b in batches] == [4, 4, 2]
    assert sorted(np.concatenate(batches)) == list(range(10))


def test_a_batch_has_a_size():
    with pytest.raises(ValueError, match="at least 1"):
        next(mini_batches(10, -4, np.random.default_rng(0)))


def test_sgd_descends_on_the_reference_layer():
    """The reference can train: mini-batch SGD on a perceptron-free linear fit reaches the least-squares answer."""
    rng = np.random.default_rng(0)
    X, true = rng.normal(size=(64, 3)), np.array([1.0, -2.0, 0.5])
    theta = {"w": np.zeros(3)}
    descent = GradientDescent(0.05)
    for _ in range(60):
        for rows in mini_batches(64, 16, rng):
            residual = X[rows] @ theta["w"] - X[rows] @ true
            theta = descent.step(theta, {"w": 2 * X[rows].T @ residual / len(rows)})
    np.testing.assert_allclose(theta["w"], true, atol=1e-6)
