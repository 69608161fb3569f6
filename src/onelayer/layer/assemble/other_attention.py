"""Gates with attention other than softmax: the same weights where that is enough, and keys moved below 0 where it is not.

Linear attention weighs token j by φ(k_j)/Σ_l φ(k_l) if the query does not depend on x, and φ(t) = e^t for t ≤ 0. A constant
that is subtracted from all keys of a head changes no softmax weight; with one that takes every key on the box below 0, both
attentions have the same weights. Every token has exactly one of the codes and the anchor's lane, so the constant is subtracted
there. Nothing is divided by the largest exponential: `equivalent` knows how far apart scores may be.

A window leaves the weights as they are. What a row does not see must not matter to the outputs that are read there.
"""

from dataclasses import replace

import torch

from ...common.errors import InputError
from ...model.transformer import SingleLayerTransformer
from ..heads import EDGE
from ..layer import GateLayer
from .frame import Outputs

CLEARANCE = 2.0**-10  # how far below 0 the largest key stays, absolutely and as a share of it: more than rounding takes


def as_linear(model: SingleLayerTransformer) -> SingleLayerTransformer:
    """The model of gates, whose anchor has a lane, with linear attention."""
    c = model.config
    lanes = slice(c.features_in, c.features_in + c.tokens + 1)  # codes, then the anchor's
    found = SingleLayerTransformer(replace(c, attention="linear"))
    found.load_state_dict(model.state_dict())
    with torch.no_grad():
        codes = found.b_E + (found.P if c.code != "none" else torch.zeros(c.tokens, c.d_model, dtype=torch.float64))
        data = torch.einsum("tm,hm->ht", codes, found.W_K[..., 0])
        swing = EDGE * torch.einsum("fm,hm->hf", found.W_E, found.W_K[..., 0]).abs().sum(dim=1, keepdim=True)
        constant = torch.einsum("tm,hm->ht", found.S, found.W_K[..., 0])
        top = torch.cat([data + swing, constant], dim=1).amax(dim=1)
        found.W_K[:, lanes, 0] -= (top + CLEARANCE * (1 + top.abs()))[:, None]
    return found


def with_window(
    model: SingleLayerTransformer, window: int, layer: GateLayer, outputs: Outputs
) -> SingleLayerTransformer:
    """The model with local attention, if what every row is read out for lies within its window."""
    if model.config.readout != "output":  # an output token sees everything
        needed = max(_reach(layer, outputs, place) for place in range(outputs.places))
        if needed > window:
            change = f"give a window of {needed}, or layout='token': an output token sees everything"
            raise InputError(f"outputs that depend on no token more than {window} away", f"{needed} away", change)
    found = SingleLayerTransformer(replace(model.config, attention="local", window=window))
    found.load_state_dict(model.state_dict())
    return found


def _reach(layer: GateLayer, outputs: Outputs, place: int) -> int:
    """How far from its own token an output looks."""
    own = layer.restricted(slice(place * outputs.width, (place + 1) * outputs.width))
    gates, maxima = own.gate_values.ne(0).any(dim=2).any(dim=1), own.max_values.ne(0).any(dim=1)
    seen = own.gates.kept[gates].any(dim=0) | own.maxima.kept[maxima].any(dim=0) | own.linear.ne(0).any(dim=1)
    far = (seen.nonzero().flatten() - outputs.tokens[place]).abs()
    return int(far.max()) if len(far) else 0
