"""Checkpoint: where a training stands, in one file of tensors and numbers, so that it can go on as if nothing had happened.

The file is written beside its destination and renamed, so that an interrupt leaves the old one or the new one. It holds no
code: it is read with `weights_only=True`. What it was made for (recipe, shapes, samples) is kept as a digest: going on with
anything else is refused.
"""

import hashlib
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ..common.errors import InputError
from ..model.config import LayerConfig
from ..model.history import Moment
from .material import Material
from .recipe import Recipe


@dataclass
class Standing:
    """After `step` steps: weights, optimiser, the best weights so far, losses since the last validation, and the past."""

    step: int
    weights: dict[str, Any]
    optimizer: dict[str, Any]
    best_weights: dict[str, Any]
    best: int
    least: float  # the validated error of the best weights
    idle: int  # validations since then
    losses: list[float]
    moments: list[Moment]
    seconds: float


def purpose(recipe: Recipe, config: LayerConfig, material: Material, start: str) -> str:
    """What a training is for, as a digest: recipe, shape of the layer, all samples, the weights it starts from."""
    digest = hashlib.sha256(f"{asdict(recipe)} {asdict(config)} {start}".encode())
    for t in (material.x, material.y, material.held_x, material.held_y, material.weights, material.held_weights):
        digest.update(b"none" if t is None else t.contiguous().numpy().tobytes())
    return digest.hexdigest()


def save_standing(standing: Standing, made_for: str, path: Path) -> None:
    record = vars(standing) | {"moments": [list(vars(m).values()) for m in standing.moments], "made for": made_for}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        torch.save(record, fresh)
        os.replace(fresh, path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise


def load_standing(path: Path, made_for: str) -> Standing | None:
    """The standing of a file; None if there is no file. One of another training is refused."""
    if not path.exists():
        return None
    try:
        record = torch.load(path, weights_only=True, map_location="cpu")
        moments = [Moment(*row) for row in record.pop("moments")]
        known = record.pop("made for")
        standing = Standing(moments=moments, **record)
    except Exception as error:  # whatever torch says of a file that is no checkpoint
        raise InputError(f"a checkpoint in {path.name}", type(error).__name__, "name another file") from None
    if known != made_for:
        raise InputError(
            f"{path.name} of this very training", "another recipe, layer or other samples", "name another file"
        )
    return standing
