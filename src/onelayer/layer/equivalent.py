"""Layers of other attention that are layers of softmax attention: the same real function, and no more rounding than its bound.

    sigmoid   σ(s) = e^s/(e^s + e^0): one token with sigmoid attention is one token and a token 0 with softmax attention.
              With T = 2 tokens the softmax's bound has 2T + 9 roundings relative to σ beside those of the score and of
              exponentials (`rounding.deployed`): more than the 8 that are assumed of a computed sigmoid
    fused     softmax itself; partial sums may be rescaled, which the arithmetic allows for (`rounding.online_softmax`). A weight
              that vanishes is a product of exponentials: the one that underflows is off by up to 2ν, the others are about 1
    linear    φ(q)φ(k_j)/Σ_l φ(q)φ(k_l) with a query that is 1 and keys that are at most 0 for |x̂| ≤ edge, as computed: then
              φ(k) = e^k, and φ(q) = 2 cancels without rounding

No largest score is subtracted before linear attention's exponentials are taken. They lie between 0 and 1, so none overflows;
one that underflows is off by less than the smallest normal number ν. If some key of every head is at least −L for |x̂| ≤ edge,
the sum of a row is at least e^(−L), and a weight is off by at most 2ν e^L for every token that underflows. `underflow` is
4e^L, and there is no equivalent if ν e^L is not far below the unit roundoff.
"""

import math
from dataclasses import dataclass, replace

import torch

from ..model.transformer import SingleLayerTransformer
from .arithmetic import arithmetic_of

SAFE_SHARE = 2.0**-20  # of the unit roundoff: what underflow may do to a weight


@dataclass(frozen=True)
class Equivalent:
    """The layer with softmax attention, and how many times ν a weight may lose by underflow."""

    model: SingleLayerTransformer
    underflow: float = 1.0


def softmax_equivalent(model: SingleLayerTransformer, places: tuple[int, ...], edge: float) -> Equivalent | None:
    """The layer with softmax attention that is the same function for |x̂| ≤ edge; None if there is none, or none is known."""
    plain = model.config.attention in ("softmax", "local")  # what a window hides is seen from the configuration
    return Equivalent(model) if plain else _of_other_attention(model, places, edge)


def _of_other_attention(model: SingleLayerTransformer, places: tuple[int, ...], edge: float) -> Equivalent | None:
    c = model.config
    if c.attention == "fused":
        return Equivalent(_with(model), 4.0)
    if c.attention == "sigmoid" and c.all_tokens == 1:
        return Equivalent(_with(model, anchor_tokens=1), 4.0)
    if c.attention != "linear" or c.d_k != 1 or c.projection_bias or c.norm != "none":
        return None
    depth = _depth(model, places, edge)
    arithmetic = arithmetic_of(model.W_E.dtype)
    if depth is None or arithmetic.smallest * math.exp(min(depth, 709.0)) > SAFE_SHARE * arithmetic.u:
        return None
    return Equivalent(_with(model), 4 * math.exp(depth))


def _with(model: SingleLayerTransformer, anchor_tokens: int | None = None) -> SingleLayerTransformer:
    """The same weights with softmax attention; special tokens that are added are 0."""
    c = model.config
    found = SingleLayerTransformer(
        replace(c, attention="softmax", anchor_tokens=c.anchor_tokens if anchor_tokens is None else anchor_tokens),
        dtype=model.W_E.dtype,
    )
    state = dict(model.state_dict())
    if anchor_tokens is not None:
        state["S"] = torch.zeros_like(found.S)
    found.load_state_dict(state)
    return found


def _depth(model: SingleLayerTransformer, places: tuple[int, ...], edge: float) -> float | None:
    """L as above; None if a query is not 1 or a key may be above 0."""
    c, w = model.config, {name: t.detach().double() for name, t in model.state_dict().items()}
    data = w["b_E"] + (w["P"] if c.code != "none" else torch.zeros(c.tokens, c.d_model, dtype=torch.float64))
    tokens = torch.cat([data, w["S"]]) if c.special_tokens else data
    of_data = (torch.arange(c.all_tokens) < c.tokens).double()
    rows = [c.read_rows.start + place for place in places]
    q0, q1 = (torch.einsum("tm,hm->ht", t, w["W_Q"][..., 0]) for t in (tokens[rows], w["W_E"]))
    asks_x = any(row < c.tokens for row in rows) and bool(q1.any())
    once = (tokens[rows].ne(0)[:, None] & w["W_Q"][..., 0].ne(0)).sum(dim=-1) == 1  # a sum of one product is exact
    if asks_x or not bool((q0 == 1).all() and once.all()):
        return None
    keys = w["W_K"][..., 0]
    middle = torch.einsum("tm,hm->ht", tokens, keys)
    swing = edge * torch.einsum("fm,hm->hf", w["W_E"], keys).abs().sum(dim=1, keepdim=True) * of_data
    size = torch.einsum("tm,hm->ht", tokens.abs(), keys.abs())
    size = size + edge * torch.einsum("fm,hm->hf", w["W_E"].abs(), keys.abs()).sum(dim=1, keepdim=True) * of_data
    off = (
        4 * (c.d_model + c.features_in + 4) * arithmetic_of(model.W_E.dtype).u * size
    )  # of a computed key, and of these
    if bool((middle + swing + off > 0).any()):
        return None
    return float((off + swing - middle).amin(dim=1).max())
