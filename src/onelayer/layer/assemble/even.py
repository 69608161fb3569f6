"""The form of an even function of one number: a stream of one coordinate.

T(x) = bias + Σ_h u_h·x·σ(−β_h x): gates that all switch at 0 and have no values but slopes. A code would only be multiplied
with zeros, so the stream is x̂ alone. The output token holds SPECK, which its query multiplies to 1: scores are −β x̂ on the
data token and −β·SPECK on the output token, values u·x̂ and u·SPECK. So gates switch at SPECK instead of 0, which is less than
rounding does to x̂.
"""

import torch

from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from ..layer import GateLayer
from .frame import Frame, blank

SPECK = 2.0**-54


def even_config(units: int) -> LayerConfig:
    """The shape of the Transformer for this many gates."""
    return LayerConfig(
        tokens=1,
        features_in=1,
        features_out=1,
        d_model=1,
        heads=units,
        d_k=1,
        d_v=1,
        ffn_width=1,
        code="none",
        output_tokens=1,
        residual=True,
        readout="output",
    )


def assemble_even(layer: GateLayer, frame: Frame) -> SingleLayerTransformer:
    """The model of a layer that is `even`."""
    model = blank(even_config(len(layer.gates)), frame)
    with torch.no_grad():
        model.W_E.fill_(1.0)
        model.S.fill_(SPECK)
        model.W_Q.fill_(1 / SPECK)
        model.W_K[:, 0, 0] = -layer.gates.sharpness
        model.W_V[:, 0, 0] = layer.gate_values[:, -1, 0]
        model.W_O.fill_(1.0)
        model.W_R.fill_(1.0)
        model.b_R.copy_(layer.bias - SPECK)
    return model
