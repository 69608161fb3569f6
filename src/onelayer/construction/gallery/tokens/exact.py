"""Scores without rounding: everything up to them is a whole number that the dtype holds.

Keys are whole multiples of a power of two, all else is whole, and d_k is a power of 4, so that dividing by √d_k is exact.
"""

import math

import torch
from torch import Tensor

from ....layer.arithmetic import arithmetic_of
from ....layer.assemble.frame import power_of_4
from ....model.transformer import SingleLayerTransformer


def exact_scores(model: SingleLayerTransformer) -> bool:
    """Whether embedding, queries, keys, values and scores are exact in the model's dtype, in any order of summation.

    All numbers are whole, keys are multiples of a power of two, `unit`. A sum of such numbers is exact, partial sums and
    all, if the sum of their sizes is at most unit/u.
    """
    whole = [model.W_E, model.b_E, model.W_Q, model.W_K, model.W_V, *_codes(model)]
    plain = model.shift.eq(0).all() and model.scale.eq(1).all()
    if not plain or not all(torch.equal(t, t.round()) for t in whole):
        return False
    keys = model.W_K.detach().to(torch.int64)
    keys = keys[keys != 0]
    unit = int((keys & -keys).min()) if len(keys) else 1
    largest = 1 / arithmetic_of(model.W_E.dtype).u
    stream, query, key, value = _reaches(model)
    score = float((query * key).sum(dim=-1).max())
    return (
        max(float(t.max()) for t in (stream, query, value)) <= largest
        and max(float(key.max()), score) <= largest * unit
        and power_of_4(model.config.d_k) == model.config.d_k
    )


def score_reach(model: SingleLayerTransformer) -> float:
    """A bound on the size of every score."""
    _, query, key, _ = _reaches(model)
    return float((query * key).sum(dim=-1).max()) / math.sqrt(model.config.d_k)


def _codes(model: SingleLayerTransformer) -> list[Tensor]:
    c = model.config
    return [*([model.P] if c.code != "none" else []), *([model.S] if c.special_tokens else [])]


def _reaches(model: SingleLayerTransformer) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums of sizes that bound every coordinate of stream, queries, keys and values (in float64)."""
    c = model.config
    size = {name: t.detach().double().abs() for name, t in model.state_dict().items()}
    stream = size["W_E"].amax(dim=0) + size["b_E"]
    if c.code != "none":
        stream = stream + size["P"].amax(dim=0)
    if c.special_tokens:
        stream = torch.maximum(stream, size["S"].amax(dim=0))
    query, key, value = (torch.einsum("m,hmw->hw", stream, size[name]) for name in ("W_Q", "W_K", "W_V"))
    return stream, query, key, value
