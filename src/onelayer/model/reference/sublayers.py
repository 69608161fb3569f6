"""Feed-forward network, LayerNorm and dropout, each with its backward pass by hand. Rows are vectors."""

from dataclasses import dataclass

import numpy as np

from .perceptron import ACTIVATION

Array = np.ndarray
Arrays = dict[str, Array]


@dataclass(frozen=True)
class FeedForwardPass:
    X: Array
    Z: Array
    hidden: Array


def feed_forward(X: Array, w: Arrays, activation: str, mask: Array | None = None) -> tuple[Array, FeedForwardPass]:
    """φ(X W_1 + b_1) W_2 + b_2 at every position: Eq. (1) twice, the second time linear."""
    phi, _ = ACTIVATION[activation]
    Z = X @ w["W_1"] + w["b_1"]
    hidden = phi(Z) if mask is None else phi(Z) * mask
    return hidden @ w["W_2"] + w["b_2"], FeedForwardPass(X, Z, hidden)


def feed_forward_backward(
    upstream: Array, w: Arrays, activation: str, passed: FeedForwardPass, mask: Array | None = None
) -> tuple[Array, Arrays]:
    _, slope = ACTIVATION[activation]
    d_hidden = upstream @ w["W_2"].T
    dZ = (d_hidden if mask is None else d_hidden * mask) * slope(passed.Z)
    gradients = {
        "W_1": np.einsum("btm,btf->mf", passed.X, dZ),
        "b_1": dZ.sum(axis=(0, 1)),
        "W_2": np.einsum("btf,btm->fm", passed.hidden, upstream),
        "b_2": upstream.sum(axis=(0, 1)),
    }
    return dZ @ w["W_1"].T, gradients


@dataclass(frozen=True)
class NormPass:
    normalised: Array
    deviation: Array


def layer_norm(X: Array, gain: Array, offset: Array, eps: float) -> tuple[Array, NormPass]:
    """gain ⊙ (x − mean)/√(var + eps) + offset, mean and (biased) variance over the features of each vector."""
    centred = X - X.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    normalised = centred / deviation
    return gain * normalised + offset, NormPass(normalised, deviation)


def layer_norm_backward(upstream: Array, gain: Array, passed: NormPass) -> tuple[Array, Array, Array]:
    """(∂L/∂X, ∂L/∂gain, ∂L/∂offset). With n the normalised vector and u = gain ⊙ upstream:

    ∂L/∂x = (u − mean(u) − n mean(u ⊙ n)) / deviation. For eps = 0 the bracket is u without its components along 1 and n.
    """
    n, u = passed.normalised, gain * upstream
    dX = (u - u.mean(axis=-1, keepdims=True) - n * (u * n).mean(axis=-1, keepdims=True)) / passed.deviation
    axes = tuple(range(upstream.ndim - 1))
    return dX, (upstream * n).sum(axis=axes), upstream.sum(axis=axes)


def dropout_mask(shape: tuple[int, ...], rate: float, rng: np.random.Generator) -> Array:
    """0 with probability `rate`, else 1/(1 − rate): multiplying by it keeps the expectation."""
    return (rng.random(shape) >= rate) / (1 - rate)
