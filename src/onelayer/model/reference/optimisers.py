"""Gradient descent, Eq. (4), and what Section II.C builds on it: mini-batches, momentum, Adam.

Parameters and gradients are dictionaries of arrays with the same names. An optimiser is a small state and one method,
`step(parameters, gradients) -> new parameters`; nothing is changed in place.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
Arrays = dict[str, Array]


def _zeros(gradients: Arrays) -> Arrays:
    return {name: np.zeros_like(g) for name, g in gradients.items()}


@dataclass
class GradientDescent:
    """θ ← θ − η ∇L(θ), Eq. (4). With the gradient of a mini-batch this is SGD."""

    rate: float

    def step(self, parameters: Arrays, gradients: Arrays) -> Arrays:
        return {name: p - self.rate * gradients[name] for name, p in parameters.items()}  # Eq. (4)


@dataclass
class Momentum:
    """v ← μ v + ∇L, θ ← θ − η v: a running sum of past gradients."""

    rate: float
    momentum: float = 0.9
    velocity: Arrays = field(default_factory=dict)

    def step(self, parameters: Arrays, gradients: Arrays) -> Arrays:
        self.velocity = self.velocity or _zeros(gradients)
        self.velocity = {name: self.momentum * v + gradients[name] for name, v in self.velocity.items()}
        return {name: p - self.rate * self.velocity[name] for name, p in parameters.items()}


@dataclass
class Adam:
    """Kingma & Ba (2015): running means of the gradient and of its square, each corrected for its start at zero.

    m ← β₁ m + (1−β₁) g,  v ← β₂ v + (1−β₂) g²,  θ ← θ − η (m/(1−β₁^t)) / (√(v/(1−β₂^t)) + ε).
    """

    rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    eps: float = 1e-8
    steps: int = 0
    mean: Arrays = field(default_factory=dict)
    square: Arrays = field(default_factory=dict)

    def step(self, parameters: Arrays, gradients: Arrays) -> Arrays:
        self.mean, self.square = self.mean or _zeros(gradients), self.square or _zeros(gradients)
        self.steps += 1
        self.mean = {n: self.beta_1 * m + (1 - self.beta_1) * gradients[n] for n, m in self.mean.items()}
        self.square = {n: self.beta_2 * v + (1 - self.beta_2) * gradients[n] ** 2 for n, v in self.square.items()}
        correct_1, correct_2 = 1 - self.beta_1**self.steps, 1 - self.beta_2**self.steps
        return {
            n: p - self.rate * (self.mean[n] / correct_1) / (np.sqrt(self.square[n] / correct_2) + self.eps)
            for n, p in parameters.items()
        }


def mini_batches(samples: int, size: int, rng: np.random.Generator) -> Iterator[Array]:
    """One epoch: the sample indices in random order, cut into batches of `size` (the last may be smaller)."""
    if size < 1:
        raise ValueError(f"a batch has at least 1 sample, not {size}")
    order = rng.permutation(samples)
    for start in range(0, samples, size):
        yield order[start : start + size]
