"""A composed layer: attention computes inner functions, the feed-forward network outer functions of them.

    T(x) = bias + Σ_i values_i·relu(A_lane(i)(x) − knot_i),    A(x) the outputs of an inner layer, one per lane

The ReLUs of one lane make up a piecewise linear function of A. Nothing passes the network but through them: a lane that is
added as it is has one knot below all of its values.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .layer import Layer


@dataclass(frozen=True)
class ComposedLayer:
    """The inner layer, and the ReLUs: lane, knot and values of each."""

    inner: Layer
    lanes: Int[Tensor, " relu"]
    knots: Float[Tensor, " relu"]
    values: Float[Tensor, "relu out"]
    bias: Float[Tensor, " out"]

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def outputs(self) -> int:
        return self.values.shape[1]

    @property
    def units(self) -> int:
        """Heads and tokens of attention, and ReLUs."""
        return self.inner.units + len(self.knots)

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        return self.bias + torch.relu(self.inner(x)[:, self.lanes] - self.knots) @ self.values
