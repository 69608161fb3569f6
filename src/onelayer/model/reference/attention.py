"""Self-attention, Eq. (5)–(8), written out, with its backward pass by hand.

Vectors are rows (q_i = x_i W^Q). Arrays carry leading batch axes where noted; heads are looped over, as a reader would.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .losses import softmax, softmax_backward
from .perceptron import sigmoid

Array = np.ndarray
Arrays = dict[str, Array]


def attention_weights(Q: Array, K: Array, hidden: Array | None = None, attention: str = "softmax") -> Array:
    """α_ij over the tokens that are not `hidden` from row i: exp(q_i·k_j/√d_k) / Σ_l exp(q_i·k_l/√d_k), Eq. (5).

    With another `attention` than softmax, what stands in its place; a window ("local") is in what is hidden.
    """
    if attention == "linear":
        products = linear_features(Q) @ linear_features(K).swapaxes(-1, -2)
        products = products if hidden is None else np.where(hidden, 0.0, products)
        return products / products.sum(axis=-1, keepdims=True)
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    return WEIGHTS[attention][0](scores if hidden is None else np.where(hidden, -np.inf, scores))  # Eq. (5)


def sigmoid_backward(weights: Array, upstream: Array) -> Array:
    """∂L/∂s_j = α_j (1 − α_j) u_j: every weight depends on its own score alone."""
    return weights * (1 - weights) * upstream


def sparsemax(scores: Array) -> Array:
    """max(s_j − τ, 0), Σ_j = 1: the support is the k largest scores, for the largest k with 1 + k s_k > s_1 + … + s_k."""
    ordered = -np.sort(-scores, axis=-1)
    below, k = ordered - ordered[..., :1], np.arange(1, scores.shape[-1] + 1)
    sums = np.cumsum(below, axis=-1)
    size = (1 + k * below > sums).sum(axis=-1, keepdims=True)
    threshold = (np.take_along_axis(sums, size - 1, axis=-1) - 1) / size
    return np.maximum(scores - ordered[..., :1] - threshold, 0.0)


def sparsemax_backward(weights: Array, upstream: Array) -> Array:
    """∂L/∂s from ∂L/∂α: with 1 where α_j > 0 in s, the Jacobian is diag(s) − ssᵀ/|S|, u less its mean on the support S."""
    support = weights > 0
    mean = (support * upstream).sum(axis=-1, keepdims=True) / support.sum(axis=-1, keepdims=True)
    return support * (upstream - mean)


# attention → (weights from scores, ∂L/∂s from them and ∂L/∂α); linear attention has no scores
WEIGHTS: dict[str, tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]] = {
    "softmax": (softmax, softmax_backward),
    "fused": (softmax, softmax_backward),
    "local": (softmax, softmax_backward),
    "sigmoid": (sigmoid, sigmoid_backward),
    "sparsemax": (sparsemax, sparsemax_backward),
}


def linear_features(t: Array) -> Array:
    """φ(t) = elu(t) + 1: e^t below 0, 1 + t above."""
    return np.where(t < 0, np.exp(np.minimum(t, 0.0)), 1 + t)


def linear_backward(Q: Array, K: Array, weights: Array, upstream: Array) -> tuple[Array, Array]:
    """(∂L/∂Q, ∂L/∂K) of α_ij = a_ij/Σ_l a_il, a_ij = φ(q_i)·φ(k_j), from ∂L/∂α.

    ∂L/∂a_ij = (u_ij − Σ_l α_il u_il)/Σ_l a_il where j is seen; φ'(t) = min(φ(t), 1).
    """
    q, k = linear_features(Q), linear_features(K)
    products = np.where(weights > 0, q @ k.swapaxes(-1, -2), 0.0)
    slopes = (upstream - (weights * upstream).sum(axis=-1, keepdims=True)) / products.sum(axis=-1, keepdims=True)
    slopes = np.where(weights > 0, slopes, 0.0)
    return np.minimum(q, 1) * (slopes @ k), np.minimum(k, 1) * (slopes.swapaxes(-1, -2) @ q)


def attend(Q: Array, K: Array, V: Array) -> Array:
    """Z = softmax(Q Kᵀ/√d_k) V, Eq. (7); row i is z_i = Σ_j α_ij v_j, Eq. (6)."""
    return attention_weights(Q, K) @ V  # Eq. (6), (7)


def sinusoidal_code(tokens: int, d_model: int) -> Array:
    """p_(j,2i) = sin(j/10000^(2i/d_model)), p_(j,2i+1) = cos(j/10000^(2i/d_model))."""
    code = np.zeros((tokens, d_model))
    for j in range(tokens):
        for m in range(d_model):
            angle = j / 10000 ** ((m - m % 2) / d_model)
            code[j, m] = np.sin(angle) if m % 2 == 0 else np.cos(angle)
    return code


def one_hot_code(tokens: int, d_model: int, offset: int) -> Array:
    """Token j carries a 1 in coordinate offset + j: the coordinates behind the features."""
    code = np.zeros((tokens, d_model))
    code[np.arange(tokens), offset + np.arange(tokens)] = 1.0
    return code


@dataclass(frozen=True)
class HeadPass:
    """Forward quantities of one head; `dropped` are the weights after dropout (the weights themselves without)."""

    Q: Array
    K: Array
    V: Array
    weights: Array
    dropped: Array


def multi_head(
    X: Array, w: Arrays, masks: Array | None = None, hidden: Array | None = None, attention: str = "softmax"
) -> tuple[Array, tuple[list[HeadPass], Array]]:
    """MHA(X) = Concat(Z_1, …, Z_h) W^O, Eq. (8), for X of shape [batch, token, d_model].

    `w` holds W_Q, W_K, W_V [head, d_model, width], W_O, and biases b_Q, b_K, b_V, b_O (absent: zero). `masks` are
    dropout factors for the attention weights, [batch, head, token, token]; tokens that are `hidden` from a row,
    [batch, row, token], have no weight there. The backward pass needs no more: a weight of 0 passes nothing on.
    """
    heads, Z = [], []
    for i in range(len(w["W_Q"])):
        Q, K, V = (X @ w[f"W_{s}"][i] + w.get(f"b_{s}", np.zeros(len(w["W_Q"])))[i] for s in "QKV")
        weights = attention_weights(Q, K, hidden, attention)
        dropped = weights if masks is None else weights * masks[:, i]
        heads.append(HeadPass(Q, K, V, weights, dropped))
        Z.append(dropped @ V)  # Eq. (6), (7)
    concat = np.concatenate(Z, axis=-1)
    return concat @ w["W_O"] + w.get("b_O", 0.0), (heads, concat)  # Eq. (8)


def multi_head_backward(
    upstream: Array,
    X: Array,
    w: Arrays,
    passed: tuple[list[HeadPass], Array],
    masks: Array | None = None,
    attention: str = "softmax",
) -> tuple[Array, Arrays]:
    """(∂L/∂X, gradients of the weights) from ∂L/∂MHA, by the chain rule through Eq. (8), (6), (5) in turn.

    Concat:   ∂L/∂W^O = Concatᵀ u,  ∂L/∂Z = u (W^O)ᵀ, cut into heads
    Eq. (6):  ∂L/∂V = αᵀ ∂L/∂Z,     ∂L/∂α = ∂L/∂Z Vᵀ
    Eq. (5):  ∂L/∂S by the Jacobian of the weights, then ∂L/∂Q = ∂L/∂S K/√d_k and ∂L/∂K = (∂L/∂S)ᵀ Q/√d_k
    """
    heads, concat = passed
    g: Arrays = {name: np.zeros_like(value) for name, value in w.items() if name[2:] in ("Q", "K", "V")}
    g["W_O"] = np.einsum("btc,btm->cm", concat, upstream)
    if "b_O" in w:
        g["b_O"] = upstream.sum(axis=(0, 1))
    dX = np.zeros_like(X)
    d_concat = upstream @ w["W_O"].T
    d_v = w["W_V"].shape[-1]
    for i, head in enumerate(heads):
        dZ = d_concat[..., i * d_v : (i + 1) * d_v]
        d_weights = dZ @ head.V.swapaxes(-1, -2)
        if masks is not None:
            d_weights = d_weights * masks[:, i]
        if attention == "linear":
            dQ, dK = linear_backward(head.Q, head.K, head.weights, d_weights)
        else:
            dS = WEIGHTS[attention][1](head.weights, d_weights) / np.sqrt(head.Q.shape[-1])
            dQ, dK = dS @ head.K, dS.swapaxes(-1, -2) @ head.Q
        slopes = {"Q": dQ, "K": dK, "V": head.dropped.swapaxes(-1, -2) @ dZ}
        for s, d in slopes.items():
            g[f"W_{s}"][i] = np.einsum("btm,btk->mk", X, d)
            if f"b_{s}" in w:
                g[f"b_{s}"][i] = d.sum(axis=(0, 1))
            dX += d @ w[f"W_{s}"][i].T
    return dX, g
