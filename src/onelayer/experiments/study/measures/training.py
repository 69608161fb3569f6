"""Trained layers: where gradient descent from random weights ends, with as many parameters as asked for."""

import time

import numpy as np

from ....pipeline import build
from ....target.points import fitting_points, uniform_points
from ....training.train import train as trained
from ...matched_size import layer_size
from ...peers.task import observed_error
from .construction import TARGET, facts, target_of
from .registry import Point, Result, measure


@measure(
    "train", **TARGET, budget=0, heads=4, width=64, d_model=16, optimizer="adam", loss="mse", rate=0.0, steps=2000,
    samples=0, dtype="float32", seed=0,
)  # fmt: skip
def train(point: Point) -> Result:
    """A layer trained on a target: observed error at test points with faces and corners, RMSE held out, steps, seconds.

    `budget` above 0 chooses heads, width and d_model of a layer with so many parameters (±10 %); `samples` above 0 gives so
    many samples to learn from; `rate` above 0 replaces the optimiser's own.
    """
    target = target_of(point["formula"], point["domain"], point["margin"])
    size = (point["heads"], point["width"], point["d_model"])
    if point["budget"]:
        matched = layer_size(target, point["budget"])
        if matched is None:
            raise ValueError(f"no trained layer has {point['budget']} parameters within 10 %")
        size = matched
    started = time.perf_counter()
    found = trained(
        target,
        heads=size[0],
        width=size[1],
        d_model=size[2],
        optimizer=point["optimizer"],
        loss=point["loss"],
        rate=point["rate"] or None,
        steps=point["steps"],
        samples=point["samples"] or None,
        dtype=point["dtype"],
        seed=point["seed"],
    )
    seconds = time.perf_counter() - started
    history = found.history
    return {
        "dimension": target.dimension,
        "heads": size[0],
        "width": size[1],
        "d_model": size[2],
        "parameters": found.parameters,
        "observed": observed_error(lambda x: np.asarray(found(x), dtype=np.float64), target),
        "rmse": history.moments[-1].rmse if history and history.moments else float("nan"),
        "best_step": history.best if history else 0,
        "took": seconds,
    }


@measure("sample", **TARGET, samples=int, way="constructed", spread="random", lipschitz=0.0, tolerance=1e-3,
         budget=0, steps=2000, seed=0, seconds=20.0)  # fmt: skip
def sample(point: Point) -> Result:
    """A layer that knows a target through samples alone: observed error everywhere; a bound if a constant is declared.

    `way` is "constructed" or "trained" (with a `budget` of parameters), `spread` is "random" (uniform) or "crowded" (toward the
    boundary, with faces and corners).
    """
    target = target_of(point["formula"], point["domain"], point["margin"])
    draw = {"random": uniform_points, "crowded": fitting_points}[point["spread"]]
    x = target.domain.points(draw(point["samples"], target.dimension, point["seed"]).numpy())
    y = target(x)
    started = time.perf_counter()
    if point["way"] == "trained":
        size = layer_size(target, point["budget"])
        if size is None:
            raise ValueError(f"no trained layer has {point['budget']} parameters within 10 %")
        found = trained(
            (x, y),
            heads=size[0],
            width=size[1],
            d_model=size[2],
            steps=point["steps"],
            seed=point["seed"],
            dtype="float64",
        )
    else:
        declared = {"lipschitz": point["lipschitz"]} if point["lipschitz"] else {}
        about = {"seed": point["seed"], "seconds": point["seconds"], **declared}
        found = build((x, y), target.domain, point["tolerance"], **about)
    seconds = time.perf_counter() - started
    off = observed_error(lambda x: np.asarray(found(x), dtype=np.float64), target)
    return {"dimension": target.dimension, **facts(found), "observed": off, "took": seconds}
