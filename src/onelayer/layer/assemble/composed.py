"""The composed form: the attention of an inner layer, and a feed-forward network that reads its outputs.

The inner layer is assembled by itself, without residuals: its outputs stand in the first coordinates of the stream. Then the
network that would pass them through is replaced by u_i = relu(A_lane(i) + bias − knot_i), and the read-out adds up
values_i·u_i.
"""

from dataclasses import replace

import torch

from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from ..composed import ComposedLayer
from ..layer import MemoryLayer
from .frame import Frame, Outputs, blank
from .gates import assemble_gates
from .memory import assemble_memory

FEED_FORWARD = ("W_1", "b_1", "W_2", "b_2", "W_R", "b_R")


def composed_config(inner: LayerConfig, relus: int, outputs: int) -> LayerConfig:
    """The shape of the Transformer, from that of its inner layer."""
    return replace(inner, ffn_width=max(relus, 1), features_out=outputs, d_model=max(inner.d_model, outputs))


def assemble_composed(layer: ComposedLayer, frame: Frame) -> SingleLayerTransformer:
    inner, m = inner_model(layer, frame), layer.outputs
    model = blank(composed_config(inner.config, len(layer.knots), m), frame)
    with torch.no_grad():
        for name, weights in inner.named_parameters():
            if name not in FEED_FORWARD:
                own = getattr(model, name)
                own[tuple(slice(0, size) for size in weights.shape)] = weights
        units = torch.arange(len(layer.knots))
        model.W_1[layer.lanes, units] = 1.0
        model.b_1[units] = inner.b_R[layer.lanes] - layer.knots
        model.W_2[units, :m] = layer.values
        model.W_R[:m] = torch.eye(m, dtype=torch.float64)
        model.b_R.copy_(layer.bias)
    return model


def inner_model(layer: ComposedLayer, frame: Frame) -> SingleLayerTransformer:
    """The inner layer as a Transformer of its own."""
    inner, lanes = layer.inner, layer.inner.outputs
    if isinstance(inner, MemoryLayer):
        return assemble_memory(inner, frame, residual=False)
    return assemble_gates(inner, frame, Outputs(1, lanes, (0,)), "token", residual=False)
