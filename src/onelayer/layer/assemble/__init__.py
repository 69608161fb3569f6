"""Heads and values → the weights of an ordinary SingleLayerTransformer.

`scalar` assembles the sequence form, a token per coordinate; `vector` the one-token form. Both write into the same
Module that stock weights or training would fill, and nothing else: what the model computes is Eq. (5)–(8) and its FFN.
"""

from ...model.transformer import SingleLayerTransformer
from ..layer import ScalarLayer, VectorLayer
from .frame import Frame, Layout, Outputs, frame_of, outputs_of
from .gates import assemble_scalar
from .memory import assemble_vector

__all__ = ["Frame", "Layout", "Outputs", "assemble", "frame_of", "outputs_of"]


def assemble(
    layer: ScalarLayer | VectorLayer, frame: Frame, outputs: Outputs, layout: Layout = "token"
) -> SingleLayerTransformer:
    """The Transformer whose T is `layer` after the normalisation of `frame`."""
    if isinstance(layer, VectorLayer):
        return assemble_vector(layer, frame)
    return assemble_scalar(layer, frame, outputs, layout)
