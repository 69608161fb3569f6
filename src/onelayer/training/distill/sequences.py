"""Inputs of a teacher of sequences: token numbers, with a mask where lengths differ, or texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...common.checks import is_number
from ...common.errors import InputError


def are_tokens(inputs: Any) -> bool:
    """Whether inputs are token numbers or texts."""
    if isinstance(inputs, Tensor):
        return not inputs.is_floating_point()
    if isinstance(inputs, np.ndarray):
        return inputs.dtype.kind in "iuU"
    return isinstance(inputs, Sequence) and bool(len(inputs)) and isinstance(inputs[0], str)


def tokens_of(inputs: Any, mask: Any) -> tuple[Tensor, Tensor]:
    """Token numbers [N, n] and their mask [N, n], false for padding."""
    try:
        given = _array(inputs)
        marks = np.ones(given.shape, dtype=bool) if mask is None else _array(mask)
    except (TypeError, ValueError) as error:
        raise InputError("token numbers [N, n]", f"{error}", "pass an array of whole numbers") from None
    if given.dtype.kind not in "iu":
        raise InputError("token numbers, whole ones", f"an array of {given.dtype}", "pass an array of whole numbers")
    if marks.dtype.kind not in "biuf" or not np.isin(marks, (0, 1)).all():
        raise InputError("a mask of true and false, or of 1 and 0", "other values", "correct the mask")
    tokens, present = torch.from_numpy(given.astype(np.int64)), torch.from_numpy(marks.astype(bool))
    if tokens.ndim != 2 or len(tokens) < 2 or present.shape != tokens.shape:
        found = f"tokens {list(tokens.shape)}, mask {list(present.shape)}"
        raise InputError("at least two sequences of tokens [N, n], and a mask of that shape", found, "reshape them")
    if (tokens < 0).any() or not present.any(dim=1).all():
        raise InputError("token numbers ≥ 0 and no empty sequence", "others", "correct the inputs")
    return tokens, present


def _array(given: Any) -> np.ndarray:
    return np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)


def unseen(held: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """Which of the held-out inputs [N, …] are not among the fitted ones."""
    seen = {row.tobytes() for row in np.ascontiguousarray(fitted)}
    found = np.array([row.tobytes() not in seen for row in np.ascontiguousarray(held)], dtype=bool)
    if not found.any():
        raise InputError("held-out inputs that are not fitted too", "copies of fitted ones", "give more other inputs")
    return found


def split(count: int, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """(fitted, held out): the numbers of the inputs to learn from, and of those that only judge."""
    if not (is_number(share) and 0 < share < 1):
        raise InputError("held_out, a share between 0 and 1", f"{share!r}", "give for instance 0.1")
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    held = min(max(1, round(share * count)), count - 1)
    return order[held:], order[:held]
