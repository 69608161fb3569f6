"""The one-token form: the vector is one token, and a head attends to constant memory tokens.

Stream:   (x or a memory token's key, 1 or a memory token's bias, flags, values). The data token is the only query. The head
of group g has q = (x on g, 1) and k = (key on g, bias), so that its scores are k_j·x + b_j; tokens of other groups, the
anchor and the data token itself are masked. Ridge heads weigh the data token, score −(a·x + b), against an anchor token,
score 0. With sparsemax attention the score is a·x + b, and the data token has the value; with sigmoid attention, too, which
needs no anchor. Bumps ask with a·x + b and have two more anchors, with keys 1 and −1 where the data token's is 0.

The data token is read out, and the residual stream keeps its x beside what the heads write: the linear part stands in the
read-out W_R, and hinges see x in the stream. An inner layer of the composed form has no residual stream, so that its outputs
stand alone in the first coordinates; one more head then reads the data token.

Biases stand in the lane in which the data token has its code 1, divided by −σ, which W^K multiplies them with: the data
token's own score is then below −σ + x·x, and σ is a power of two so large that this masks it. Flags are needed only to tell
memory tokens of several groups, or of ridge heads, apart.
"""

import math
from dataclasses import dataclass
from itertools import accumulate

import torch

from ...model.config import Attention, LayerConfig
from ...model.transformer import SingleLayerTransformer
from ..heads import EDGE, MASKED
from ..layer import MemoryLayer
from .frame import Frame, blank, power_of_4, write_hinges, write_identity


def memory_config(
    dimension: int,
    outputs: int,
    tokens: int,
    groups: list[int],
    *,
    ridges: int = 0,
    bumps: int = 0,
    reads: int = 0,
    hinges: int = 0,
    residual: bool = True,
    attention: Attention = "softmax",
) -> LayerConfig:
    """The shape of the Transformer; `groups` are the sizes of the groups of coordinates, `reads` count without residuals.

    With sigmoid or sparsemax attention there are ridge heads alone.
    """
    D, m, G = dimension, outputs, len(groups)
    lanes = _lanes(D, G, ridges, bumps, attention)
    carried = D if hinges and not residual else 0  # x beside the outputs
    return LayerConfig(
        tokens=1,
        features_in=D,
        features_out=m,
        d_model=max(lanes.side.stop, lanes.out + m, m + carried),
        heads=max(G + ridges + bumps + (0 if residual else reads), 1),
        d_k=power_of_4(max([size + 1 for size in groups], default=1 + (ridges > 0 and bumps > 0))),
        d_v=max(m, carried),
        ffn_width=max(hinges, 1) if residual else 2 * m + hinges,
        code="none",
        anchor_tokens=lanes.anchors,
        memory_tokens=tokens,
        residual=residual,
        attention=attention,
    )


@dataclass(frozen=True)
class _Lanes:
    """Coordinates of the stream behind x and the code of the data token, and how many anchors there are."""

    flags: range  # of the groups of memory tokens: one group alone is not told apart from anything
    anchor: range  # of the anchor of ridge heads
    aside: range  # a flag of both anchors of bumps, beside other heads
    side: range  # 1 and −1 there
    out: int  # where values begin: the data token has 0 in all lanes from its code on, which answers may use
    anchors: int


def _lanes(dimension: int, groups: int, ridges: int, bumps: int, attention: Attention) -> _Lanes:
    flags = groups if groups > 1 or ridges or bumps else 0
    anchor = int(ridges > 0 and attention != "sigmoid")
    counts = (flags, anchor, int(bumps > 0 and (ridges > 0 or groups > 0)), int(bumps > 0))
    ends = list(accumulate(counts, initial=dimension + 1))
    out = ends[-1] if groups or ridges else ends[0]
    own = dict(zip(("flags", "anchor", "aside", "side"), map(range, ends[:-1], ends[1:]), strict=True))
    return _Lanes(**own, out=out, anchors=anchor + 2 * (bumps > 0))


def assemble_memory(
    layer: MemoryLayer, frame: Frame, residual: bool = True, attention: Attention = "softmax"
) -> SingleLayerTransformer:
    """The model; without residuals its outputs stand in the first coordinates of the stream."""
    D, m, G = layer.dimension, layer.outputs, layer.memory.groups
    M, R, B = len(layer.memory), len(layer.ridges), len(layer.bumps)
    members = [layer.memory.keys[layer.memory.group == g].ne(0).any(dim=0).nonzero().flatten() for g in range(G)]
    counts = {"ridges": R, "bumps": B, "reads": len(layer.reads), "hinges": len(layer.hinges)}
    config = memory_config(D, m, M, [len(c) for c in members], **counts, residual=residual, attention=attention)
    d_k, d_v, data = config.d_k, config.d_v, D
    lanes = _lanes(D, G, R, B, attention)
    out = slice(lanes.out, lanes.out + m) if residual else slice(0, m)
    model = blank(config, frame)
    scale = math.sqrt(d_k)  # a power of 2: undoes 1/√d_k exactly
    with torch.no_grad():
        model.W_E[:, :D] = torch.eye(D, dtype=torch.float64)
        model.b_E[data] = 1.0
        tokens = model.S[lanes.anchors :] if M or lanes.anchors else torch.zeros(0, config.d_model)
        sigma = _sigma(layer) if M else 1.0
        if M:
            tokens[:, :D], tokens[:, data] = layer.memory.keys, layer.memory.biases / -sigma
            if lanes.flags:
                tokens[torch.arange(M), lanes.flags.start + layer.memory.group] = 1.0
            tokens[:, lanes.out : lanes.out + m] = layer.memory_values
        if lanes.anchor:
            model.S[0, lanes.anchor] = 1.0
        if B:
            sides = model.S[lanes.anchors - 2 : lanes.anchors]
            sides[:, lanes.side] = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
            sides[:, lanes.aside] = 1.0

        for g, coordinates in enumerate(members):
            size = len(coordinates)
            for i, j in enumerate(coordinates.tolist()):
                model.W_Q[g, j, i] = 1.0
                model.W_K[g, j, i] = scale
            model.W_Q[g, data, size] = 1.0
            model.W_K[g, data, size] = -scale * sigma
            others = max(float(layer.memory.biases.max()), 0.0)
            low = -scale * (MASKED + others - _surely(layer, g))  # ≥ 800 below the largest score that is kept
            for masked in [*lanes.anchor, *lanes.aside, *(flag for o, flag in enumerate(lanes.flags) if o != g)]:
                model.W_K[g, masked, size] = low
            model.W_V[g, lanes.out : lanes.out + m, :m] = torch.eye(m, dtype=torch.float64)
            model.W_O[g * d_v : g * d_v + m, out] = torch.eye(m, dtype=torch.float64)

        for r in range(R):
            head = G + r
            a, b = layer.ridges.directions[r], layer.ridges.offsets[r]
            model.W_Q[head, data, 0] = 1.0
            facing, valued = (-scale, lanes.anchor) if attention == "softmax" else (scale, data)
            model.W_K[head, :D, 0], model.W_K[head, data, 0] = facing * a, facing * b
            if M:
                low = MASKED + float((layer.memory.keys @ a).abs().max()) + abs(float(b))
                model.W_K[head, lanes.flags, 0] = -scale * low
            model.W_K[head, lanes.aside, 0] = -scale * MASKED
            model.W_V[head, valued, 0] = 1.0
            model.W_O[head * d_v, out] = layer.ridge_values[r]

        if B:
            first = G + R
            heads = slice(first, first + B)
            model.W_Q[heads, :D, 0], model.W_Q[heads, data, 0] = layer.bumps.directions, layer.bumps.offsets
            model.W_K[heads, lanes.side, 0] = scale
            if lanes.aside:
                model.W_Q[heads, data, 1] = 1.0
                model.W_K[heads, lanes.flags, 1] = model.W_K[heads, lanes.anchor, 1] = -scale * MASKED
            model.W_V[heads, :D, :m], model.W_V[heads, data, :m] = layer.bump_values[:, 1:], layer.bump_values[:, 0]
            model.W_O[first * d_v : (first + B) * d_v, out].unflatten(0, (B, d_v))[:, :m] = torch.eye(
                m, dtype=torch.float64
            )

        if residual:
            model.W_R[:D] = layer.linear
            model.W_R[out] = torch.eye(m, dtype=torch.float64)
            model.b_R.copy_(layer.bias)
            write_hinges(model, layer.hinges, layer.hinge_values, list(range(D)), out)
            return model
        if layer.reads:
            _write_read(model, layer, G + R + B, scale)
        write_identity(model, m, layer.bias)
        write_hinges(model, layer.hinges, layer.hinge_values, list(range(m, m + D)), out, 2 * m)
    return model


def _write_read(model: SingleLayerTransformer, layer: MemoryLayer, head: int, scale: float) -> None:
    """The head that reads the data token: the linear part, and x itself behind the outputs where hinges see it."""
    D, m, d_v = layer.dimension, layer.outputs, model.config.d_v
    rows = head * d_v
    model.W_Q[head, D, 0] = 1.0
    model.W_K[head, D, 0] = scale * 2 * MASKED  # biases are at most half of the data token's 1
    if len(layer.hinges):
        model.W_V[head, :D, :D] = torch.eye(D, dtype=torch.float64)
        model.W_O[rows : rows + D, :m] = layer.linear
        model.W_O[rows : rows + D, m : m + D] = torch.eye(D, dtype=torch.float64)
    else:
        model.W_V[head, :D, :m] = layer.linear
        model.W_O[rows : rows + m, :m] = torch.eye(m, dtype=torch.float64)


def _surely(layer: MemoryLayer, group: int) -> float:
    """A score that some token of the group has at least, everywhere on the box."""
    mine = layer.memory.group == group
    return float((layer.memory.biases[mine] - EDGE * layer.memory.keys[mine].abs().sum(dim=1)).max())


def _sigma(layer: MemoryLayer) -> float:
    """A power of two that masks the data token in every group, and is at least twice every bias."""
    lowest = min(_surely(layer, g) for g in range(layer.memory.groups))
    least = max(MASKED + layer.dimension * EDGE**2 - lowest, 2 * float(layer.memory.biases.abs().max()))
    return 2.0 ** math.ceil(math.log2(least)) if math.isfinite(least) else least
