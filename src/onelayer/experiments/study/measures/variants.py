"""Layers whose attention is another than softmax, constructed with a proof or trained, beside what their class cannot reach."""

import time

import numpy as np

from ....common.errors import InputError
from ....model.config import Attention
from ....pipeline import build
from ....target.target import Target
from ....training.descent import train
from ...matched_size import layer_size
from ...peers.task import observed_error
from .construction import TARGET_AXES, facts_of, seconds_at, target_at
from .registry import Point, Result, measure

GRID = 33  # points along each side for lower bounds
ROUNDED = 1e-12  # taken off a lower bound: more than rounding adds to values near 1


@measure("variant", **TARGET_AXES, attention=str, way="constructed", layout="token", tolerance=0.0, budget=0, steps=500, seed=0,
         seconds=20.0)  # fmt: skip
def variant(point: Point) -> Result:
    """A layer with another attention, constructed and proved, or trained: units, parameters, bound, observed error, floor.

    Local attention has window 0: a token sees itself and special tokens. The `floor` is proved: no layer of local attention
    has a smaller error, if it reads its answer at the first token ("wide"), or adds up its tokens' answers (trained).
    """
    target, attention = target_at(point), point["attention"]
    local, trained = attention == "local", point["way"] == "trained"
    started = time.perf_counter()
    floor = 0.0
    if local and (trained or point["layout"] == "wide"):
        floor = additive_floor(target) if trained else window_floor(target)
    if trained:
        found = _trained(target, attention, point)
    else:
        try:
            built = build(
                target, tolerance=point["tolerance"], attention=attention, window=0 if local else None,
                layout=point["layout"], seed=point["seed"], seconds=seconds_at(point),
            )  # fmt: skip
            found = facts_of(built)
        except InputError as refusal:
            found = {"verdict": "REFUSED", "reason": str(refusal)}
    return {"dimension": target.dimension, **found, "floor": floor, "took": time.perf_counter() - started}


def _trained(target: Target, attention: Attention, point: Point) -> Result:
    size = layer_size(target, point["budget"])
    if size is None:
        raise ValueError(f"no trained layer has {point['budget']} parameters within 10 %")
    heads, width, d_model = size
    found = train(
        target, heads=heads, width=width, d_model=d_model, attention=attention, steps=point["steps"], seed=point["seed"],
        dtype="float64",
    )  # fmt: skip
    off = observed_error(lambda x: np.asarray(found(x), dtype=np.float64), target)
    return {"parameters": found.parameters, "observed": off}


def additive_floor(target: Target) -> float:
    """max |f(a, c) − f(a, d) − f(b, c) + f(b, d)|/4: no g(x1) + h(x2) is closer to f, whose difference is 0. From the grid."""
    f = _on_grid(target)
    difference = f[:, None, :] - f[None]  # [a, b, c]: f(a, c) − f(b, c)
    return max(float((difference.max(axis=-1) - difference.min(axis=-1)).max()) / 4 - ROUNDED, 0.0)


def window_floor(target: Target) -> float:
    """max over x1 of half the oscillation of f over x2, which is not seen: no g(x1) is closer to f. From the grid."""
    f = _on_grid(target)
    return max(float((f.max(axis=1) - f.min(axis=1)).max()) / 2 - ROUNDED, 0.0)


def _on_grid(target: Target) -> np.ndarray:
    """f on a grid of the first two coordinates, the others at their centre; one column if there is one coordinate."""
    side = np.linspace(0.0, 1.0, GRID)
    unit = np.full((GRID, GRID if target.dimension > 1 else 1, target.dimension), 0.5)
    unit[..., 0] = side[:, None]
    if target.dimension > 1:
        unit[..., 1] = side
    values: np.ndarray = target(target.domain.points(unit.reshape(-1, target.dimension)))[:, 0]
    return values.reshape(unit.shape[:2])
