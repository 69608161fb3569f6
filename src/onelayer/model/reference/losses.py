"""Risk and losses: Eq. (2) and (3), with their gradients.

Predictions and labels are arrays whose first axis is the sample. The expectation of Eq. (2) is over a distribution
nobody has; what is computed is its average over samples.
"""

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def softmax(scores: Array) -> Array:
    """exp(s_j)/Σ_l exp(s_l) along the last axis, shifted by the largest score so that nothing overflows."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_backward(weights: Array, upstream: Array) -> Array:
    """∂L/∂s from ∂L/∂α: the Jacobian is diag(α) − ααᵀ, so ∂L/∂s_j = α_j (u_j − Σ_l α_l u_l)."""
    return weights * (upstream - (weights * upstream).sum(axis=-1, keepdims=True))


def log_softmax(scores: Array) -> Array:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def cross_entropy(labels: Array, probabilities: Array) -> Array:
    """𝓛(y, ŷ) = −Σ_c y_c log ŷ_c per sample, Eq. (3). A class with y_c = 0 contributes 0, even where ŷ_c = 0."""
    logs = np.log(np.where(labels == 0, 1.0, probabilities))
    return -(labels * logs).sum(axis=-1)  # Eq. (3)


def cross_entropy_of_scores(labels: Array, scores: Array) -> Array:
    """Eq. (3) for ŷ = softmax(scores), computed without ever forming a probability that underflows."""
    return -(labels * log_softmax(scores)).sum(axis=-1)


def cross_entropy_of_scores_slope(labels: Array, scores: Array) -> Array:
    """∂𝓛/∂scores = ŷ Σ_c y_c − y, per sample."""
    return softmax(scores) * labels.sum(axis=-1, keepdims=True) - labels


def squared_loss(labels: Array, predictions: Array) -> Array:
    """Mean over the output entries of (ŷ − y)², per sample."""
    return ((predictions - labels) ** 2).reshape(len(labels), -1).mean(axis=1)


def squared_loss_slope(labels: Array, predictions: Array) -> Array:
    return 2 * (predictions - labels) / labels[0].size


def risk(loss: Callable[[Array, Array], Array], labels: Array, predictions: Array) -> float:
    """The average of ℓ(f_θ(x), y) over the samples: the computable stand-in for Eq. (2)."""
    return float(loss(labels, predictions).mean())  # Eq. (2)


def risk_slope(slope: Callable[[Array, Array], Array], labels: Array, predictions: Array) -> Array:
    """∂risk/∂predictions."""
    return slope(labels, predictions) / len(labels)
