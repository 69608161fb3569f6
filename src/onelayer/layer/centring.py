"""Centred heads: the same function with smaller contributions, for arithmetic with few digits.

The attention weights of a head sum to 1, so moving a constant from all its values to the bias changes nothing but the
rounding: contributions that lie around 0 instead of between 0 and c are half as large, and so is their rounding.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ..target.points import fitting_points
from .layer import GateLayer, Layer

POINTS = 1000


def centred(layer: Layer) -> Layer:
    """The layer with the contribution of every head centred, judged by points of the box."""
    x = fitting_points(POINTS, layer.dimension, 0)[: 2 * POINTS] - 0.5
    if isinstance(layer, GateLayer):
        if not len(layer.gates):
            return layer
        z = torch.einsum("bgs,gso->bgo", layer.gates.weights_and_slope(x), layer.gate_values)
        middle = _middle(z)
        values = layer.gate_values.clone()
        values[:, :-1] -= middle[:, None]
        values[:, 1:-1][~layer.gates.kept] = 0.0
        return replace(layer, gate_values=values, bias=layer.bias + middle.sum(dim=0))
    if not len(layer.memory):
        return layer
    weights, group = layer.memory.features(x), layer.memory.group
    parts = [weights[:, group == g] @ layer.memory_values[group == g] for g in range(layer.memory.groups)]
    middle = _middle(torch.stack(parts, dim=1))
    return replace(layer, memory_values=layer.memory_values - middle[group], bias=layer.bias + middle.sum(dim=0))


def _middle(z: Tensor) -> Tensor:
    """The middle of the contributions [point, head, out] of every head."""
    return (z.amax(dim=0) + z.amin(dim=0)) / 2
