"""A form, a sum of softmax averages, on Taylor models: the real function, rounding left out.

Heads are enclosed like those of any Transformer (`attention`), so smooth maxima become kinks; hinges are kinks.
"""

import numpy as np
import torch

from ...formula.taylor.kink import maximum
from ...formula.taylor.series import Space
from ...layer.arithmetic import FLOAT64
from ...layer.assemble import Frame
from ...layer.form import Form
from ...layer.heads import Hinges
from .attention import attended
from .on_taylor import normalised, reshaped
from .other_attention import relaxed_relu
from .transformer import Value

MOST_SYMBOLS = 24  # hinges that keep symbols of their own; of more, each is enclosed by itself


class TaylorForm:
    """T = form + hinges·values on the boxes of a space."""

    def __init__(self, form: Form, frame: Frame, hinges: Hinges, values: torch.Tensor) -> None:
        self.form, self.hinges, self.values = form, hinges, values.numpy()
        self.shift, self.scale = np.array(frame.shift), np.array(frame.scale)

    @property
    def numbers(self) -> int:
        """About how many intermediate results there are."""
        tokens = sum(block.biases.numel() for block in self.form.blocks)
        return (tokens + len(self.hinges)) * (len(self.form.bias) + 1) + self.form.dimension + 1

    def __call__(self, space: Space) -> Value:
        """[box, out]."""
        x = normalised(space, self.shift, self.scale)
        y = x.linear(self.form.linear.numpy(), self.form.bias.numpy())
        for block in self.form.blocks:
            H, T, D = block.keys.shape
            m = block.values.shape[-1]
            keys, slopes = block.keys.permute(2, 0, 1), block.slopes.permute(2, 0, 1, 3)
            scores = x.linear(keys.reshape(D, H * T).numpy(), block.biases.reshape(-1).numpy())
            values = x.linear(slopes.reshape(D, H * T * m).numpy(), block.values.reshape(-1).numpy())
            ones = space.constant(np.ones((space.boxes, H, 1, 1)))
            k, v = reshaped(scores, H, T, 1), reshaped(values, H, T, m)
            exact = (np.zeros(ones.shape), np.zeros(k.shape), np.zeros(v.shape))
            averages, _ = attended(ones, k, v, exact, 1.0, FLOAT64)  # [box, head, 1, out]
            y = y + averages[:, 0].sum(-2)
        u = x.linear(self.hinges.directions.T.numpy(), self.hinges.offsets.numpy())
        if len(self.hinges) > MOST_SYMBOLS:
            y = y + relaxed_relu(u).linear(self.values)
            return Value(y, np.zeros(y.shape))
        nothing = space.constant(np.zeros(space.boxes))
        for unit, row in enumerate(self.values):
            bent = maximum([nothing, u[unit]])[..., None].broadcast((space.boxes, len(row)))
            y = y + bent.times(np.broadcast_to(row, (space.boxes, len(row))))
        return Value(y, np.zeros(y.shape))
