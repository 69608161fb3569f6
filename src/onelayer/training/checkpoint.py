"""Checkpoint: the state of a training in one file of tensors and numbers, from which it resumes as if it had never stopped.

The file is written beside its destination and renamed, so that an interrupt leaves the old one or the new one. It holds no
code: it is read with `weights_only=True`. A digest says which training it belongs to (recipe, shapes, samples); no other
training can resume from it.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..common.checks import require_seconds
from ..common.errors import InputError
from ..model.history import Moment


@dataclass
class TrainingState:
    """After `step` steps: weights, optimiser, the best weights so far, losses since the last validation, all validations."""

    step: int
    weights: dict[str, Any]
    optimizer: dict[str, Any]
    best_weights: dict[str, Any]
    best_step: int
    best_error: float  # the validated error of the best weights
    idle: int  # validations since then
    losses: list[float]
    moments: list[Moment]
    seconds: float


def save_state(state: TrainingState, digest: str, path: Path) -> None:
    record = vars(state) | {"moments": [list(vars(m).values()) for m in state.moments], "digest": digest}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        torch.save(record, fresh)
        os.replace(fresh, path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise


def load_state(path: Path, digest: str) -> TrainingState | None:
    """The state in a file; None if there is no file. The state of another training is refused."""
    if not path.exists():
        return None
    try:
        record = torch.load(path, weights_only=True, map_location="cpu")
        moments = [Moment(*row) for row in record.pop("moments")]
        found = record.pop("digest")
        state = TrainingState(moments=moments, **record)
    except Exception as error:  # whatever torch says of a file that is no checkpoint
        raise InputError(f"a checkpoint in {path.name}", type(error).__name__, "name another file") from None
    if found != digest:
        raise InputError(f"{path.name} of this very training", "another recipe, layer or samples", "name another file")
    return state


def require_limits(seconds: object, checkpoint: object) -> None:
    """A time above 0, or None, and the name of a file, or None."""
    if seconds is not None:
        require_seconds(seconds, "training")
    if checkpoint is not None and (not isinstance(checkpoint, str | Path) or not Path(checkpoint).name):
        raise InputError("checkpoint, the name of a file", f"{checkpoint!r}", "name a file")
