"""Teachers whose answer depends on the input alone: only such a teacher is a function that a layer can approximate.

In training mode dropout is random, and batch normalisation depends on the rest of the batch. Any other randomness shows when
the same inputs are given twice.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ...common.errors import InputError

ROUNDING = 1e-4  # share of the largest answer: above the rounding of float32 sums, below what dropout changes


def require_deterministic(teacher: object) -> None:
    """Refuse modules that are in training mode and random, or that mix the inputs of a batch."""
    modules = teacher.modules() if isinstance(teacher, nn.Module) else ()
    for module in modules:
        if _random(module):
            found = f"{type(module).__name__} in training mode"
            raise InputError("a teacher that answers the same each time", found, "call teacher.eval()")
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and (module.training or module.running_mean is None):
            found = "batch normalisation by the batch itself"
            raise InputError("a teacher that answers every input by itself", found, "call teacher.eval()")


def _random(module: nn.Module) -> bool:
    if not module.training:
        return False
    if isinstance(module, nn.RReLU):
        return module.lower < module.upper
    share = module.p if isinstance(module, nn.modules.dropout._DropoutNd) else 0.0
    if isinstance(module, nn.MultiheadAttention | nn.RNNBase):
        share = module.dropout
    return float(share) > 0


def answer(teacher: Callable[..., Any], *given: Any) -> Any:
    """What a teacher answers; whatever it raises becomes an InputError of one line."""
    try:
        return teacher(*given)
    except InputError:
        raise
    except Exception as error:
        shapes = ", ".join(str(list(getattr(x, "shape", ()))) for x in given)
        found = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        wanted = f"a teacher that answers inputs of shape {shapes}"
        raise InputError(wanted, found, "correct the teacher or the inputs") from None


def real_tensor(found: Any, count: int) -> Tensor:
    """Answers to this many inputs, one each; anything else is refused."""
    real = isinstance(found, Tensor) and not found.is_complex() and not found.is_meta
    if not (real and found.ndim and len(found) == count):
        words = f"shape {list(found.shape)} of {found.dtype}" if isinstance(found, Tensor) else type(found).__name__
        raise InputError("a tensor of real answers, one for every input", words, "wrap the teacher")
    return found


def require_same_twice(answers: Callable[[], Any]) -> None:
    """Refuse a teacher that answers differently the second time, up to rounding: sums on a GPU may come in any order."""
    first, second = (torch.as_tensor(answers()).detach().double().nan_to_num() for _ in range(2))
    if first.shape != second.shape or not bool(((first - second).abs() <= ROUNDING * first.abs().max()).all()):
        raise InputError("a teacher that answers the same each time", "two different answers", "call teacher.eval()")
