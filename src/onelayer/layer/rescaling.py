"""The same layer in another frame: x̂ multiplied by a factor per coordinate, keys and slopes divided by it.

In x̂ = fl(fl(x − shift)·scale) the product is exact if the scale is a power of two: one rounding less in every score. The scale
of a box, one over its side, is lowered to the next power of two, so that |x̂| ≤ ½ still holds.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from .assemble import Frame
from .layer import GateLayer, Layer


def with_exact_scale(layer: Layer, frame: Frame) -> tuple[Layer, Frame]:
    """The layer in a frame whose scales are powers of two; gates, which share a sharpness, where all scales change alike."""
    lower = tuple(2.0 ** math.floor(math.log2(s)) for s in frame.scale)
    factors = torch.tensor([a / b for a, b in zip(lower, frame.scale, strict=True)], dtype=torch.float64)
    if isinstance(layer, GateLayer) and not bool((factors == factors[:1]).all()):
        return layer, frame
    return rescaled(layer, factors), replace(frame, scale=lower)


def rescaled(layer: Layer, factors: Tensor) -> Layer:
    """The layer that computes from x̂·factors what this one computes from x̂; for gates all factors are the same."""
    hinges = replace(layer.hinges, directions=layer.hinges.directions / factors)
    layer = replace(layer, linear=layer.linear / factors[:, None], hinges=hinges)
    if isinstance(layer, GateLayer):
        by, values = factors[0], layer.gate_values.clone()
        values[:, -1] /= by
        banks = {
            name: replace(bank, sharpness=bank.sharpness / by, offsets=bank.offsets * by)
            for name, bank in (("gates", layer.gates), ("maxima", layer.maxima))
        }
        return replace(layer, gate_values=values, max_values=layer.max_values / by, **banks)
    memory = replace(layer.memory, keys=layer.memory.keys / factors)
    ridges = replace(layer.ridges, directions=layer.ridges.directions / factors)
    return replace(layer, memory=memory, ridges=ridges)
