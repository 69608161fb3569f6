"""Trained layers: where gradient descent from random weights ends, for a given number of parameters."""

import time
from typing import Any

import numpy as np

from ....pipeline import build
from ....target.points import fitting_points, uniform_points
from ....target.target import Target
from ....training.descent import train as trained
from ...matched_size import layer_size
from ...peers.task import observed_error
from .construction import TARGET_AXES, facts_of, seconds_at, target_at
from .registry import Point, Result, measure

SIZES = ("heads", "width", "d_model")


@measure(
    "train", **TARGET_AXES, budget=0, heads=4, width=64, d_model=16, optimizer="adam", loss="mse", rate=0.0, steps=2000,
    samples=0, dtype="float32", seed=0,
)  # fmt: skip
def train(point: Point) -> Result:
    """A layer trained on a target: observed error (faces, corners and an ascent included), held-out RMSE, steps, seconds.

    `budget` above 0 chooses heads, width and d_model for this many parameters (±10 %); `samples` above 0 is the number of
    samples to learn from; `rate` above 0 replaces the optimiser's default.
    """
    target = target_at(point)
    size = _size_of(target, point["budget"]) if point["budget"] else {axis: point[axis] for axis in SIZES}
    started = time.perf_counter()
    options = {axis: point[axis] for axis in ("optimizer", "loss", "steps", "dtype", "seed")}
    found = trained(target, **size, **options, rate=point["rate"] or None, samples=point["samples"] or None)
    seconds = time.perf_counter() - started
    history = found.history
    return {
        "dimension": target.dimension,
        **size,
        "d_k": found.model.config.d_k,
        "parameters": found.parameters,
        "observed": observed_error(lambda x: np.asarray(found(x), dtype=np.float64), target),
        "rmse": history.moments[-1].rmse if history and history.moments else float("nan"),
        "best_step": history.best if history else 0,
        "took": seconds,
    }


@measure("sample", **TARGET_AXES, samples=int, way="constructed", spread="random", lipschitz=0.0, tolerance=1e-3,
         budget=0, steps=2000, seed=0, seconds=20.0)  # fmt: skip
def sample(point: Point) -> Result:
    """A layer that knows a target through samples alone: observed error everywhere; a bound if a constant is declared.

    `way` is "constructed" or "trained" (with a `budget` of parameters); `spread` is "random" (uniform) or "crowded" (toward
    the boundary, with faces and corners).
    """
    target = target_at(point)
    draw = {"random": uniform_points, "crowded": fitting_points}[point["spread"]]
    x = target.domain.points(draw(point["samples"], target.dimension, point["seed"]).numpy())
    y = target(x)
    started = time.perf_counter()
    if point["way"] == "trained":
        size = _size_of(target, point["budget"])
        found = trained((x, y), **size, steps=point["steps"], seed=point["seed"], dtype="float64")
    else:
        options = {"seed": point["seed"], "seconds": seconds_at(point), "lipschitz": point["lipschitz"] or None}
        found = build((x, y), target.domain, point["tolerance"], **options)
    seconds = time.perf_counter() - started
    off = observed_error(lambda x: np.asarray(found(x), dtype=np.float64), target)
    return {"dimension": target.dimension, **facts_of(found), "observed": off, "took": seconds}


def _size_of(target: Target, budget: int) -> dict[str, Any]:
    """Heads, width and d_model that match the budget."""
    size = layer_size(target, budget)
    if size is None:
        raise ValueError(f"no trained layer has {budget} parameters within 10 %")
    return dict(zip(SIZES, size, strict=True))
