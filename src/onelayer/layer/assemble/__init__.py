"""Heads and values → the weights of an ordinary SingleLayerTransformer.

`gates` assembles the sequence form, a token per coordinate; `even` is what is left of it for an even function of one number;
`memory` is the one-token form; `composed` puts a network behind either; `symmetric` is the form without positional codes;
`other_attention` is gates with attention other than softmax. All
fill the same Module that training or imported weights would fill, and nothing else: what the model computes is Eq. (5)–(8)
and its FFN.
"""

from ...model.config import Attention
from ...model.transformer import SingleLayerTransformer
from ..composed import ComposedLayer
from ..layer import Layer, MemoryLayer
from ..symmetric import SymmetricLayer
from .composed import assemble_composed
from .even import assemble_even
from .frame import Frame, Layout, Outputs, frame_of, outputs_of
from .gates import asks_itself, assemble_gates
from .memory import assemble_memory
from .other_attention import as_linear, with_window
from .symmetric import assemble_symmetric

__all__ = ["Frame", "Layout", "Outputs", "assemble", "frame_of", "head_kinds", "outputs_of"]


def assemble(
    layer: Layer | ComposedLayer | SymmetricLayer,
    frame: Frame,
    outputs: Outputs,
    layout: Layout = "token",
    attention: Attention = "softmax",
    window: int = 0,
) -> SingleLayerTransformer:
    """The Transformer whose T is `layer` after the normalisation of `frame`."""
    if isinstance(layer, SymmetricLayer):
        return assemble_symmetric(layer, frame)
    if isinstance(layer, ComposedLayer):
        return assemble_composed(layer, frame)
    if isinstance(layer, MemoryLayer):
        return assemble_memory(layer, frame, attention=attention)
    if attention == "linear":
        return as_linear(assemble_gates(layer, frame, outputs, layout, anchored=True))
    if layer.even and layout == "token" and attention == "softmax":
        return assemble_even(layer, frame)
    model = assemble_gates(layer, frame, outputs, layout)
    return with_window(model, window, layer, outputs) if attention == "local" else model


def head_kinds(
    layer: Layer | ComposedLayer | SymmetricLayer, outputs: Outputs, layout: Layout
) -> tuple[tuple[str, int], ...]:
    """The heads in the order of the model, as (kind, count)."""
    residual = not isinstance(layer, ComposedLayer)  # which carries x: no head reads it
    layer = layer.inner if isinstance(layer, ComposedLayer) else layer
    if isinstance(layer, SymmetricLayer):
        gates = int(layer.heads.anchored.sum())
        kinds = [("symmetric mean", layer.units - gates), ("symmetric gate", gates)]
    elif isinstance(layer, MemoryLayer):
        reads = 0 if residual else len(layer.reads)
        kinds = [("memory", layer.memory.groups), ("ridge", len(layer.ridges)), ("bump", len(layer.bumps))]
        kinds.append(("read", reads))
    else:
        reads = 0 if residual and asks_itself(layer.dimension, outputs, layout) else len(layer.reads)
        kinds = [("gate", len(layer.gates)), ("max", len(layer.maxima)), ("read", reads)]
        if layout == "heads":
            kinds = [*kinds, ("constant", 1)] * outputs.places
    return tuple((kind, count) for kind, count in kinds if count) or (("unused", 1),)
