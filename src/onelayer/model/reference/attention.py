"""Self-attention, Eq. (5)–(8), written out, with its backward pass by hand.

Vectors are rows (q_i = x_i W^Q). Arrays carry leading batch axes where noted; heads are looped over, as a reader would.
"""

from dataclasses import dataclass

import numpy as np

from .losses import softmax, softmax_backward

Array = np.ndarray
Arrays = dict[str, Array]


def attention_weights(Q: Array, K: Array, hidden: Array | None = None) -> Array:
    """α_ij = exp(q_i·k_j/√d_k) / Σ_l exp(q_i·k_l/√d_k), Eq. (5), over the tokens that are not `hidden` from row i."""
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    return softmax(scores if hidden is None else np.where(hidden, -np.inf, scores))  # Eq. (5)


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
    X: Array, w: Arrays, masks: Array | None = None, hidden: Array | None = None
) -> tuple[Array, tuple[list[HeadPass], Array]]:
    """MHA(X) = Concat(Z_1, …, Z_h) W^O, Eq. (8), for X of shape [batch, token, d_model].

    `w` holds W_Q, W_K, W_V [head, d_model, width], W_O, and biases b_Q, b_K, b_V, b_O (absent: zero). `masks` are
    dropout factors for the attention weights, [batch, head, token, token]; tokens that are `hidden` from a row,
    [batch, row, token], have no weight there. The backward pass needs no more: a weight of 0 passes nothing on.
    """
    heads, Z = [], []
    for i in range(len(w["W_Q"])):
        Q, K, V = (X @ w[f"W_{s}"][i] + w.get(f"b_{s}", np.zeros(len(w["W_Q"])))[i] for s in "QKV")
        weights = attention_weights(Q, K, hidden)
        dropped = weights if masks is None else weights * masks[:, i]
        heads.append(HeadPass(Q, K, V, weights, dropped))
        Z.append(dropped @ V)  # Eq. (6), (7)
    concat = np.concatenate(Z, axis=-1)
    return concat @ w["W_O"] + w.get("b_O", 0.0), (heads, concat)  # Eq. (8)


def multi_head_backward(
    upstream: Array, X: Array, w: Arrays, passed: tuple[list[HeadPass], Array], masks: Array | None = None
) -> tuple[Array, Arrays]:
    """(∂L/∂X, gradients of the weights) from ∂L/∂MHA, by the chain rule through Eq. (8), (6), (5) in turn.

    Concat:   ∂L/∂W^O = Concatᵀ u,  ∂L/∂Z = u (W^O)ᵀ, cut into heads
    Eq. (6):  ∂L/∂V = αᵀ ∂L/∂Z,     ∂L/∂α = ∂L/∂Z Vᵀ
    Eq. (5):  ∂L/∂S by the softmax's Jacobian, then ∂L/∂Q = ∂L/∂S K/√d_k and ∂L/∂K = (∂L/∂S)ᵀ Q/√d_k
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
        dS = softmax_backward(head.weights, d_weights) / np.sqrt(head.Q.shape[-1])
        slopes = {"Q": dS @ head.K, "K": dS.swapaxes(-1, -2) @ head.Q, "V": head.dropped.swapaxes(-1, -2) @ dZ}
        for s, d in slopes.items():
            g[f"W_{s}"][i] = np.einsum("btm,btk->mk", X, d)
            if f"b_{s}" in w:
                g[f"b_{s}"][i] = d.sum(axis=(0, 1))
            dX += d @ w[f"W_{s}"][i].T
    return dX, g
