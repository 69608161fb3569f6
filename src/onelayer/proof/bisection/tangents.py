"""The slopes of any single-layer Transformer on Taylor models: forward differentiation of the real function (`model.dual`).

The rounding of an evaluation is left out. For another attention than softmax slopes are not derived (`has_slopes`). A ReLU has
slope 0 or 1 where the sign of its argument is proved, and anything from 0 to 1 elsewhere: nothing better holds at a kink.
"""

import numpy as np

from ...formula.taylor.series import Space, stack
from ...model import program
from ...model.config import LayerConfig
from ...model.dual import Dual
from ...model.transformer import SingleLayerTransformer
from .on_taylor import OnTaylor, Weights, reshaped
from .transformer import Value


def has_slopes(config: LayerConfig) -> bool:
    """Whether the slopes of such a layer are known here: its weights are those of a softmax, over a window or not."""
    return config.attention in ("softmax", "fused", "local")


class Slopes:
    """∂T_o/∂x_i on the boxes of a space, as output o·D + i."""

    def __init__(self, model: SingleLayerTransformer) -> None:
        assert has_slopes(model.config)
        model.config.require_one_length()
        self.w = Weights(model)

    def __call__(self, space: Space) -> Value:
        answer = program.answer(Dual(OnTaylor(self.w, space)))
        slopes = reshaped(stack([reshaped(t, -1) for t in answer.slopes]), -1)  # [box, out·D]
        return Value(slopes, np.zeros(slopes.shape))
