"""The activations of hidden units: one record each, from which every reading of a layer takes what it needs of φ.

In balls, on Taylor models and as slopes φ is read off its formulas; what rounding does to it, and how large it can be, follows
from its steepest slope. Where a reading has something sharper, it keeps that beside (`proof.bisection.activated`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from .config import Activation, LayerConfig


@dataclass(frozen=True)
class ActivationFunction:
    """φ(x1) and φ'(x1) as text; |φ(u) − φ(v)| ≤ steepest·|u − v|."""

    formula: str
    slope: str
    on_tensors: Callable[[Tensor], Tensor]
    steepest: float
    at_0: float = 0.0  # |φ(0)| is at most this
    shrinks: bool = False  # whether |φ(u)| ≤ |u|

    def largest(self, size: Any) -> Any:
        """A bound on |φ(u)| for |u| ≤ size, a number or an array."""
        return size if self.shrinks else self.at_0 + self.steepest * size


ACTIVATIONS: dict[Activation, ActivationFunction] = {
    "relu": ActivationFunction("max(x1, 0)", "where(x1 > 0, 1, 0)", F.relu, steepest=1.0, shrinks=True),
    "gelu": ActivationFunction(
        "x1*(1 + erf(x1/sqrt(2)))/2",
        "(1 + erf(x1/sqrt(2)))/2 + x1*exp(-x1*x1/2)/sqrt(2*pi)",
        F.gelu,
        steepest=1.13,  # 1.1290…
        shrinks=True,
    ),
    "silu": ActivationFunction(
        "x1*sigmoid(x1)",
        "sigmoid(x1) + x1*(sigmoid(x1) - sigmoid(x1)*sigmoid(x1))",
        F.silu,
        steepest=1.1,  # 1.0999…
        shrinks=True,
    ),
}


def activation_of(config: LayerConfig) -> ActivationFunction:
    """The activation of a layer's hidden units."""
    return ACTIVATIONS[config.activation]
