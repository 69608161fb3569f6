"""The whole single-layer Transformer in NumPy: forward, and the backward pass derived by hand.

Weights are a dictionary with the model's own names (`model.state_dict()` as arrays). Every token asks a query here;
the rows that are not read out are computed and dropped.
"""

from dataclasses import dataclass, field

import numpy as np

from ..config import LayerConfig
from .attention import HeadPass, multi_head, multi_head_backward
from .sublayers import (
    FeedForwardPass,
    NormPass,
    dropout_mask,
    feed_forward,
    feed_forward_backward,
    layer_norm,
    layer_norm_backward,
)

Array = np.ndarray
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Masks:
    """Dropout factors at the four places of a block; None switches dropout off."""

    weights: Array | None = None  # on α, [batch, head, token, token]
    attended: Array | None = None  # after W^O, [batch, token, d_model]
    hidden: Array | None = None  # inside the feed-forward network, [batch, token, ffn_width]
    fed: Array | None = None  # after the feed-forward network, [batch, token, d_model]


def draw_masks(config: LayerConfig, batch: int, rng: np.random.Generator) -> Masks:
    t = config.all_tokens
    shapes = [(config.heads, t, t), (t, config.d_model), (t, config.ffn_width), (t, config.d_model)]
    return Masks(*(dropout_mask((batch, *shape), config.dropout, rng) for shape in shapes))


@dataclass
class ForwardPass:
    """Forward quantities that the backward pass needs, in the order they arise."""

    normalised: Array
    E: Array  # embedded tokens
    attention_input: Array = field(init=False)
    heads: tuple[list[HeadPass], Array] = field(init=False)
    feed: FeedForwardPass = field(init=False)
    norm_1: NormPass = field(init=False)
    norm_2: NormPass = field(init=False)
    rows: Array = field(init=False)  # what the read-out multiplies by W_R
    there: Array = field(init=False)  # 1 where a position holds a token, 0 where it is padding


def hidden_tokens(config: LayerConfig, batch: int, n: int, padding: Array | None = None) -> Array:
    """[batch, row, token]: position j holds no token, comes later than i in a causal layer, or is outside the window of i.

    But i sees itself.
    """
    hidden = np.zeros((batch, n + config.special_tokens, n + config.special_tokens), dtype=bool)
    if config.causal:
        hidden[:, :n, :n] = np.arange(n)[:, None] < np.arange(n)
    if config.attention == "local":
        hidden[:, :n, :n] |= np.abs(np.arange(n)[:, None] - np.arange(n)) > config.window
    if padding is not None:
        hidden[:, :, :n] |= padding[:, None]
    hidden[:, np.arange(n), np.arange(n)] = False
    return hidden


def forward(
    config: LayerConfig, w: Arrays, x: Array, masks: Masks | None = None, padding: Array | None = None
) -> tuple[Array, ForwardPass]:
    """T(x) for x of shape [batch, n, features_in], n ≤ tokens, and what `backward` needs."""
    c, m, n = config, masks or Masks(), x.shape[1]

    # embedding: normalise, project, add the positional code, append the special tokens
    normalised = (x - w["shift"][:n]) * w["scale"][:n]
    E = normalised @ w["W_E"] + w["b_E"] + (w["P"][:n] if "P" in w else 0.0)
    if c.special_tokens:
        E = np.concatenate([E, np.broadcast_to(w["S"], (len(x), *w["S"].shape))], axis=1)
    p = ForwardPass(normalised, E)

    # attention sublayer
    p.attention_input = E
    if c.norm == "pre":
        p.attention_input, p.norm_1 = layer_norm(E, w["gain_1"], w["offset_1"], c.norm_eps)
    A, p.heads = multi_head(p.attention_input, w, m.weights, hidden_tokens(c, len(x), n, padding), c.attention)
    H = _drop(A, m.attended) + (E if c.residual else 0.0)
    if c.norm == "post":
        H, p.norm_1 = layer_norm(H, w["gain_1"], w["offset_1"], c.norm_eps)

    # feed-forward sublayer
    G = H
    if c.norm == "pre":
        G, p.norm_2 = layer_norm(H, w["gain_2"], w["offset_2"], c.norm_eps)
    fed, p.feed = feed_forward(G, w, c.activation, m.hidden)
    Y = _drop(fed, m.fed) + (H if c.residual else 0.0)
    if c.norm == "post":
        Y, p.norm_2 = layer_norm(Y, w["gain_2"], w["offset_2"], c.norm_eps)

    # read-out
    p.there = np.ones(x.shape[:2]) if padding is None else 1.0 - padding
    p.rows = Y[:, n + c.special_tokens - c.output_tokens :] if c.readout == "output" else Y[:, :n] * p.there[..., None]
    if c.readout == "mean":
        p.rows = p.rows.sum(axis=1, keepdims=True) / np.maximum(p.there.sum(axis=1), 1)[:, None, None]
    answers = p.rows @ w["W_R"] + w["b_R"]
    return answers * p.there[..., None] if c.readout == "position" else answers, p


def backward(
    config: LayerConfig, w: Arrays, p: ForwardPass, upstream: Array, masks: Masks | None = None
) -> tuple[Array, Arrays]:
    """(∂L/∂x, ∂L/∂weights by name) from upstream = ∂L/∂T(x): the forward pass read from its last line to its first."""
    c, m, n = config, masks or Masks(), p.normalised.shape[1]
    g: Arrays = {}

    # read-out
    if c.readout == "position":
        upstream = upstream * p.there[..., None]
    g["W_R"] = np.einsum("bpm,bpo->mo", p.rows, upstream)
    g["b_R"] = upstream.sum(axis=(0, 1))
    d_rows = upstream @ w["W_R"].T
    if c.readout == "mean":
        d_rows = d_rows * (p.there / np.maximum(p.there.sum(axis=1, keepdims=True), 1))[..., None]
    dY = np.zeros_like(p.E)
    dY[:, slice(-c.output_tokens, None) if c.readout == "output" else slice(0, n)] = d_rows

    # feed-forward sublayer
    if c.norm == "post":
        dY, g["gain_2"], g["offset_2"] = layer_norm_backward(dY, w["gain_2"], p.norm_2)
    dG, feed_gradients = feed_forward_backward(_drop(dY, m.fed), w, c.activation, p.feed, m.hidden)
    g |= feed_gradients
    if c.norm == "pre":
        dG, g["gain_2"], g["offset_2"] = layer_norm_backward(dG, w["gain_2"], p.norm_2)
    dH = dG + (dY if c.residual else 0.0)

    # attention sublayer
    if c.norm == "post":
        dH, g["gain_1"], g["offset_1"] = layer_norm_backward(dH, w["gain_1"], p.norm_1)
    d_attended = _drop(dH, m.attended)
    dE, head_gradients = multi_head_backward(d_attended, p.attention_input, w, p.heads, m.weights, c.attention)
    g |= head_gradients
    if c.norm == "pre":
        dE, g["gain_1"], g["offset_1"] = layer_norm_backward(dE, w["gain_1"], p.norm_1)
    dE = dE + (dH if c.residual else 0.0)

    # embedding
    if c.special_tokens:
        g["S"] = dE[:, n:].sum(axis=0)
    d_data = dE[:, :n]
    if c.code == "learned":
        g["P"] = np.concatenate([d_data.sum(axis=0), np.zeros((c.tokens - n, c.d_model))])
    g["W_E"] = np.einsum("btf,btm->fm", p.normalised, d_data)
    g["b_E"] = d_data.sum(axis=(0, 1))
    return d_data @ w["W_E"].T * w["scale"][:n], g


def _drop(x: Array, mask: Array | None) -> Array:
    return x if mask is None else x * mask
