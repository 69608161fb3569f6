"""The one-token form: the vector is one token, and a head attends to constant memory tokens.

Stream:   (x or a memory token's key, code of the data token, a memory token's bias, flags, values). The data token is the
only query. The head of group g has q = (x on g, 1) and k = (key on g, bias), so that its scores are k_j·x + b_j; tokens
of other groups, the anchor and the data token itself are masked. One more head reads the data token: the linear part.
Ridge heads weigh the data token, score −(a·x + b), against an anchor token, score 0.
"""

import math

import torch

from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from ..heads import EDGE, MASKED
from ..layer import MemoryLayer
from .frame import Frame, blank, power_of_4, write_hinges, write_identity


def memory_config(
    dimension: int, outputs: int, tokens: int, groups: list[int], *, ridges: int = 0, reads: int = 0, hinges: int = 0
) -> LayerConfig:
    """The shape of the Transformer; `groups` are the sizes of the groups of coordinates."""
    D, m, G = dimension, outputs, len(groups)
    value = D + 2 + G + bool(ridges)  # x or key; code; bias; group flags; anchor flag
    return LayerConfig(
        tokens=1,
        features_in=D,
        features_out=m,
        d_model=max(value + m, m + D * bool(hinges)),
        heads=max(G + ridges + reads, 1),
        d_k=power_of_4(max([size + 1 for size in groups], default=1)),
        d_v=max(m, D) if hinges else m,
        ffn_width=2 * m + hinges,
        anchor_tokens=1 if ridges else 0,
        memory_tokens=tokens,
        residual=False,
    )


def assemble_memory(layer: MemoryLayer, frame: Frame) -> SingleLayerTransformer:
    D, m, G = layer.dimension, layer.outputs, layer.memory.groups
    M, R, H = len(layer.memory), len(layer.ridges), len(layer.hinges)
    members = [layer.memory.keys[layer.memory.group == g].ne(0).any(dim=0).nonzero().flatten() for g in range(G)]
    config = memory_config(D, m, M, [len(c) for c in members], ridges=R, reads=len(layer.reads), hinges=H)
    d_k, d_v = config.d_k, config.d_v
    data, bias, flag = D, D + 1, D + 2
    anchor, value = flag + G, flag + G + bool(R)
    model = blank(config, frame)
    scale = math.sqrt(d_k)  # a power of 2: undoes 1/√d_k exactly
    with torch.no_grad():
        model.W_E[:, :D] = torch.eye(D, dtype=torch.float64)
        tokens = model.S[bool(R) :] if M or R else torch.zeros(0, config.d_model)
        if M:
            tokens[:, :D], tokens[:, bias] = layer.memory.keys, layer.memory.biases
            tokens[torch.arange(M), flag + layer.memory.group] = 1.0
            tokens[:, value : value + m] = layer.memory_values
        if R:
            model.S[0, anchor] = 1.0

        for g, coordinates in enumerate(members):
            size = len(coordinates)
            for i, j in enumerate(coordinates.tolist()):
                model.W_Q[g, j, i] = 1.0
                model.W_K[g, j, i] = scale
            model.W_Q[g, data, size] = 1.0
            model.W_K[g, bias, size] = scale
            mine = layer.memory.group == g
            surely = layer.memory.biases[mine] - EDGE * layer.memory.keys[mine].abs().sum(dim=1)
            others = max(float(layer.memory.biases.max()), D * EDGE**2, 0.0)
            low = -scale * (MASKED + others - float(surely.max()))  # ≥ 800 below the largest score that is kept
            for masked in [data, *([anchor] if R else []), *(flag + o for o in range(G) if o != g)]:
                model.W_K[g, masked, size] = low
            model.W_V[g, value : value + m, :m] = torch.eye(m, dtype=torch.float64)
            model.W_O[g * d_v : g * d_v + m, :m] = torch.eye(m, dtype=torch.float64)

        for r in range(R):
            head = G + r
            a, b = layer.ridges.directions[r], layer.ridges.offsets[r]
            model.W_Q[head, data, 0] = 1.0
            model.W_K[head, :D, 0], model.W_K[head, data, 0] = -scale * a, -scale * b
            if M:
                low = MASKED + float((layer.memory.keys @ a).abs().max())
                model.W_K[head, flag : flag + G, 0] = -scale * low
            model.W_V[head, anchor, 0] = 1.0
            model.W_O[head * d_v, :m] = layer.ridge_values[r]

        if layer.reads:
            head = G + R
            model.W_Q[head, data, 0] = 1.0
            model.W_K[head, data, 0] = scale * MASKED
            if H:  # the FFN sees x in coordinates m …, so the head carries x itself
                model.W_V[head, :D, :D] = torch.eye(D, dtype=torch.float64)
                model.W_O[head * d_v : head * d_v + D, :m] = layer.linear
                model.W_O[head * d_v : head * d_v + D, m : m + D] = torch.eye(D, dtype=torch.float64)
            else:
                model.W_V[head, :D, :m] = layer.linear
                model.W_O[head * d_v : head * d_v + m, :m] = torch.eye(m, dtype=torch.float64)

        write_identity(model, m, layer.bias)
        if H:
            write_hinges(model, layer.hinges, layer.hinge_values, m, m)
    return model
