"""Keys and values of the heads of the sequence form, over the coordinates (x, codes, anchor) of its tokens."""

from dataclasses import replace

import torch
from torch import Tensor

from ..heads import EDGE, MASKED
from ..layer import GateLayer

X = 0  # the coordinate that holds x_j


def relative_to_anchor(layer: GateLayer, speck: float) -> GateLayer:
    """The same function with c_j − c_0 + u·speck on token j instead of c_j, and u·speck, which is not stored, on the anchor."""
    moved = layer.gate_values[:, 0] - speck * layer.gate_values[:, -1]
    values = layer.gate_values.clone()
    values[:, 1:-1] = (values[:, 1:-1] - moved[:, None]).where(layer.gates.kept[..., None], 0.0)
    values[:, 0] = 0.0
    return replace(layer, gate_values=values, bias=layer.bias + moved.sum(dim=0))


def keys_of(
    layer: GateLayer, reads: list[int], constant: bool, anchor_at: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Keys of all heads over (x, codes, anchor), and bounds on the largest kept score: at least `lowest`, at most `highest`.

    A key's weight on x is shared by all tokens, masked ones included: hence the |β|·EDGE in their offsets. An anchor with
    x = `anchor_at` has the score −β·anchor_at instead of 0, and all others move along.
    """
    D, g, s = layer.dimension, layer.gates, layer.maxima
    heads = layer.units + len(reads) + constant
    keys = torch.zeros(heads, D + 2, dtype=torch.float64)
    lowest, highest = torch.zeros(heads, dtype=torch.float64), torch.zeros(heads, dtype=torch.float64)

    gates = slice(0, len(g))
    keys[gates, X] = -g.sharpness
    masked = -(MASKED + g.sharpness.abs() * (EDGE + anchor_at))[:, None]  # below the anchor's score
    keys[gates, 1 : D + 1] = torch.where(g.kept, g.sharpness[:, None] * (g.offsets - anchor_at), masked)
    reach = g.offsets.where(g.kept, 0.0).abs().amax(dim=1) + EDGE if len(g) else g.sharpness
    highest[gates] = g.sharpness.abs() * reach

    maxima = slice(len(g), layer.units)
    keys[maxima, X] = s.sharpness
    low = (s.offsets * s.sharpness.sign()[:, None]).where(s.kept, -torch.inf).amax(dim=1) if len(s) else s.sharpness
    lowest[maxima] = s.sharpness.abs() * (low - EDGE)
    highest[maxima] = s.sharpness.abs() * (low + EDGE)
    masked = (lowest[maxima] - MASKED - s.sharpness.abs() * EDGE)[:, None]
    keys[maxima, 1 : D + 1] = torch.where(s.kept, s.sharpness[:, None] * s.offsets, masked)
    keys[maxima, D + 1] = masked[:, 0]

    for i, j in enumerate(reads):
        keys[layer.units + i, 1 + j] = highest[layer.units + i] = lowest[layer.units + i] = MASKED
    if constant:
        keys[-1, 1 : D + 1] = -MASKED
    return keys, lowest, highest


def values_of(layer: GateLayer, reads: list[int], d_v: int, constant: bool) -> tuple[Tensor, Tensor]:
    """(values over (x, codes, anchor) [head, D + 2, d_v], W^O [head, d_v, outputs]) of all heads.

    A plain gate is worth 1 on the anchor and its row of W^O holds the values. With full values the values stand in W^V:
    for one output W^O is 1, for several a head is as wide as the outputs and W^O is the identity.
    """
    D, m, units = layer.dimension, layer.outputs, layer.units
    heads, n = units + len(reads) + constant, len(layer.gates)
    values = torch.zeros(heads, D + 2, d_v, dtype=torch.float64)
    out = torch.zeros(heads, d_v, m, dtype=torch.float64)
    if d_v == 1 and layer.plain:
        values[:n, D + 1, 0] = 1.0
        out[:n, 0] = layer.gate_values[:, 0]
    else:
        values[:n, D + 1] = layer.gate_values[:, 0]
        values[:n, 1 : D + 1] = layer.gate_values[:, 1 : D + 1]
        values[:n, X] = layer.gate_values[:, D + 1]
        out[:n] = torch.eye(m, dtype=torch.float64)
    values[n:units, X, 0] = 1.0
    values[n:units, 1 : D + 1, 0] = layer.maxima.offsets
    out[n:units, 0] = layer.max_values
    for i, j in enumerate(reads):
        values[units + i, X, 0] = 1.0
        out[units + i, 0] = layer.linear[j]
    if constant:  # attends to the anchor alone
        values[-1, D + 1, 0] = 1.0
        out[-1, 0] = layer.bias
    return values, out


def bound_of_outputs(layer: GateLayer) -> float:
    """B ≥ |T(x)| on the domain: each head is at most its largest value, a read at most ½, a maximum at most ½ + max|b|."""
    v = layer.gate_values.abs()
    tokens = v[:, 1:-1].amax(dim=1) if layer.dimension else v[:, 0]
    gates = torch.maximum(v[:, 0], tokens + EDGE * v[:, -1]).sum(dim=0)
    reach = layer.maxima.offsets.abs().amax(dim=1, keepdim=True) + EDGE if len(layer.maxima) else layer.max_values
    maxima = (reach * layer.max_values.abs()).sum(dim=0)
    total = layer.bias.abs() + EDGE * layer.linear.abs().sum(dim=0) + gates + maxima
    return 1.01 * float(total.max()) + 1e-300
