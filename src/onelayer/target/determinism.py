"""Modules whose answer depends on the input alone: only such a module is a function that a layer can approximate.

In training mode dropout is random, and batch normalisation depends on the rest of the batch. Any other randomness shows when
the same inputs are given twice.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..common.errors import InputError

ROUNDING = 1e-4  # share of the largest answer: above the rounding of float32 sums, below what dropout changes


def require_deterministic(module: object) -> None:
    """Refuse modules that are in training mode and random, or that mix the inputs of a batch."""
    parts = module.modules() if isinstance(module, nn.Module) else ()
    for part in parts:
        if _random(part):
            found = f"{type(part).__name__} in training mode"
            raise InputError("a module that answers the same each time", found, "call its .eval()")
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and (part.training or part.running_mean is None):
            found = "batch normalisation by the batch itself"
            raise InputError("a module that answers every input by itself", found, "call its .eval()")


def _random(module: nn.Module) -> bool:
    if not module.training:
        return False
    if isinstance(module, nn.RReLU):
        return module.lower < module.upper
    share = module.p if isinstance(module, nn.modules.dropout._DropoutNd) else 0.0
    if isinstance(module, nn.MultiheadAttention | nn.RNNBase):
        share = module.dropout
    return float(share) > 0


def require_same_twice(answers: Callable[[], Any]) -> None:
    """Refuse a function that answers differently the second time, up to rounding: sums on a GPU may come in any order."""
    first, second = (torch.as_tensor(answers()).detach().double().nan_to_num() for _ in range(2))
    if first.shape != second.shape or not bool(((first - second).abs() <= ROUNDING * first.abs().max()).all()):
        change = "take the randomness out, or call the module's .eval()"
        raise InputError("a function that answers the same each time", "two different answers", change)
