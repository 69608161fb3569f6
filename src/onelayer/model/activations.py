"""The activations of hidden units: one record each, from which every reading of a layer takes what it needs of φ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from .config import Activation, LayerConfig


@dataclass(frozen=True)
class ActivationFunction:
    """φ, for which |φ(u) − φ(v)| ≤ steepest·|u − v|."""

    on_tensors: Callable[[Tensor], Tensor]
    steepest: float
    at_0: float = 0.0  # |φ(0)| is at most this
    shrinks: bool = False  # whether |φ(u)| ≤ |u|

    def largest(self, size: Any) -> Any:
        """A bound on |φ(u)| for |u| ≤ size, a number or an array."""
        return size if self.shrinks else self.at_0 + self.steepest * size


ACTIVATIONS: dict[Activation, ActivationFunction] = {
    "relu": ActivationFunction(F.relu, steepest=1.0, shrinks=True),
    "gelu": ActivationFunction(F.gelu, steepest=1.13, shrinks=True),  # 1.1290…
    "silu": ActivationFunction(F.silu, steepest=1.1, shrinks=True),  # 1.0999…
}


def activation_of(config: LayerConfig) -> ActivationFunction:
    """The activation of a layer's hidden units."""
    return ACTIVATIONS[config.activation]
