"""A perceptron of L layers, and the activations with their slopes: Eq. (1) forward, Eq. (9)–(10) backward.

Section IV writes δ^l for ∂L/∂h^l but states formulas that hold for another δ. Two consistent readings exist, and both
are here (they give the same gradients):

    `backpropagate`          δ^l = ∂L/∂z^l   δ^(l−1) = (W^l)ᵀ δ^l ⊙ φ'(z^(l−1))   ∂L/∂W^l = δ^l (h^(l−1))ᵀ
    `backpropagate_outputs`  δ^l = ∂L/∂h^l   δ^(l−1) = (W^l)ᵀ (δ^l ⊙ φ'(z^l))     ∂L/∂W^l = (δ^l ⊙ φ'(z^l)) (h^(l−1))ᵀ

The first is the paper's pair Eq. (9)–(10) with the δ it needs; its recursion runs from l = L down to l = 2, because
there is no z^0. Vectors are columns here, as in the paper's Sections II and IV: h = φ(W x + b).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def sigmoid(z: Array) -> Array:
    """1/(1 + e^(−z)), written with tanh so that nothing overflows."""
    return 0.5 * (1 + np.tanh(z / 2))


def normal_distribution(z: Array) -> Array:
    """Φ(z), the distribution function of the standard normal law; erfc keeps its small values accurate."""
    return np.vectorize(lambda t: 0.5 * math.erfc(-t / math.sqrt(2)), otypes=[float])(z)


def relu(z: Array) -> Array:
    return np.maximum(z, 0.0)


def relu_slope(z: Array) -> Array:
    """φ'(z), with the customary φ'(0) = 0 at the kink."""
    return (z > 0).astype(z.dtype)


def gelu(z: Array) -> Array:
    """z Φ(z)."""
    return z * normal_distribution(z)


def gelu_slope(z: Array) -> Array:
    """Φ(z) + z Φ'(z)."""
    return normal_distribution(z) + z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def silu(z: Array) -> Array:
    """z σ(z), σ the logistic function."""
    return z * sigmoid(z)


def silu_slope(z: Array) -> Array:
    """σ + z σ(1 − σ)."""
    s = sigmoid(z)
    return s + z * s * (1 - s)


def sigmoid_slope(z: Array) -> Array:
    return sigmoid(z) * (1 - sigmoid(z))


# name → (φ, φ')
ACTIVATION: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "relu": (relu, relu_slope),
    "gelu": (gelu, gelu_slope),
    "silu": (silu, silu_slope),
    "sigmoid": (sigmoid, sigmoid_slope),
    "identity": (lambda z: z, np.ones_like),
}


def layer(W: Array, b: Array, x: Array, activation: str = "relu") -> Array:
    """h = φ(W x + b), Eq. (1)."""
    phi, _ = ACTIVATION[activation]
    return phi(W @ x + b)  # Eq. (1)


@dataclass(frozen=True)
class Pass:
    """What a forward pass leaves behind for the backward pass: z[l−1] holds z^l, h[l] holds h^l (h[0] is the input)."""

    z: list[Array]
    h: list[Array]
    activations: list[str]


def forward(weights: list[tuple[Array, Array]], x: Array, activations: list[str]) -> Pass:
    """z^l = W^l h^(l−1) + b^l and h^l = φ(z^l), l = 1 … L."""
    z, h = [], [x]
    for (W, b), activation in zip(weights, activations, strict=True):
        phi, _ = ACTIVATION[activation]
        z.append(W @ h[-1] + b)
        h.append(phi(z[-1]))
    return Pass(z, h, activations)


def backpropagate(weights: list[tuple[Array, Array]], passed: Pass, loss_slope: Array) -> list[tuple[Array, Array]]:
    """∂L/∂W^l and ∂L/∂b^l of every layer from ∂L/∂h^L, by Eq. (9)–(10) with δ^l = ∂L/∂z^l."""
    z, h = passed.z, passed.h
    slopes = [ACTIVATION[name][1] for name in passed.activations]
    L = len(weights)
    delta = loss_slope * slopes[L - 1](z[L - 1])  # δ^L
    gradients = []
    for l in range(L, 0, -1):
        gradients.append((np.outer(delta, h[l - 1]), delta))  # Eq. (10)
        if l > 1:
            W = weights[l - 1][0]
            delta = (W.T @ delta) * slopes[l - 2](z[l - 2])  # Eq. (9)
    return gradients[::-1]


def backpropagate_outputs(
    weights: list[tuple[Array, Array]], passed: Pass, loss_slope: Array
) -> list[tuple[Array, Array]]:
    """The same gradients by the other consistent pair, δ^l = ∂L/∂h^l."""
    z, h = passed.z, passed.h
    slopes = [ACTIVATION[name][1] for name in passed.activations]
    delta = loss_slope
    gradients = []
    for l in range(len(weights), 0, -1):
        at_z = delta * slopes[l - 1](z[l - 1])
        gradients.append((np.outer(at_z, h[l - 1]), at_z))
        delta = weights[l - 1][0].T @ at_z
    return gradients[::-1]
