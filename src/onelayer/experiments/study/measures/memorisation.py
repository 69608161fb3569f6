"""Memorisation: random samples stored by `memorize` with proof, or fitted by descent, and how many numbers that takes."""

import math
import time
from collections.abc import Iterator

import numpy as np
import torch

from ....construction.memorize import memorize
from ....training.material import material_of
from ....training.recipe import Loss, Recipe
from ....training.start import StartingLayer, prepare
from ....training.steps import LayerTraining
from ...matched_size import layer_size
from .registry import Point, Result, measure

VARIABLES = 2
GROWTH = 1.5  # from one size to the next in the search for the smallest
LEAST_BUDGET = 20  # parameters of the smallest layer that is tried
CHECK_EVERY = 50  # steps


@measure(
    "memorisation", samples=int, answers="values", made="trained", budget=0, tolerance=0.05, steps=1500, most=64, seed=0
)
def memorisation(point: Point) -> Result:
    """Samples that are fitted and parameters, for random points in a square with random answers.

    `answers` are "values", uniform in [−1, 1] and fitted if within `tolerance`, or "labels", 0 or 1 with equal chances and
    fitted if the score of the right one is the larger. `made` is "constructed" (`memorize`: N − 1 ReLUs, proved) or "trained".
    `budget` is the number of parameters (±10 %); with 0, the smallest layer that is trained to fit all samples is sought,
    with sizes that grow by half, up to `most` parameters a sample.
    """
    X, Y = samples_at(point)
    N, started = len(X), time.perf_counter()
    if point["made"] == "constructed":
        found = memorize(X, Y)
        right = found.answer(X) == Y if point["answers"] == "labels" else np.abs(found(X) - Y) <= point["tolerance"]
        fitted = int(np.sum(right))
        parameters, width = found.parameters, found.model.config.ffn_width
    else:
        budgets = [point["budget"]] if point["budget"] else growing(N // 2, point["most"] * N)
        fitted, parameters, width = 0, 0, 0
        for budget in budgets:
            size = size_of(point, X, Y, budget)
            if size is not None:
                fitted, parameters, width = fit(point, X, Y, size)
            if fitted == N:
                break
    return {
        "fitted": fitted,
        "share": fitted / N,
        "all": "yes" if fitted == N else "no",
        "parameters": parameters,
        "width": width,
        "per_sample": parameters / N,
        "took": time.perf_counter() - started,
    }


def samples_at(point: Point) -> tuple[np.ndarray, np.ndarray]:
    """The samples of a point: N inputs in the unit square, N answers."""
    rng, N = np.random.default_rng([point["seed"], point["samples"]]), point["samples"]
    X = rng.uniform(0.0, 1.0, (N, VARIABLES))
    if point["answers"] == "values":
        return X, rng.uniform(-1.0, 1.0, (N,))
    return X, rng.permutation(np.arange(N) % 2)


def growing(first: int, last: int) -> Iterator[int]:
    """Budgets that grow by half, from the smallest that a layer can have on."""
    budget = max(first, LEAST_BUDGET)
    while budget <= last:
        yield budget
        budget = math.ceil(GROWTH * budget)


def recipe_at(point: Point) -> Recipe:
    """All samples in every step; none is held out."""
    loss: Loss = "mse" if point["answers"] == "values" else "cross_entropy"
    return Recipe(loss=loss, steps=point["steps"], batch=point["samples"], validation=0.0, seed=point["seed"])


def size_of(point: Point, X: np.ndarray, Y: np.ndarray, budget: int) -> tuple[int, int, int] | None:
    """(heads, width, d_model) of a layer with that many parameters; None if there is none."""
    return layer_size(material_of((X, Y), None, None, recipe_at(point)), budget)


def fit(point: Point, X: np.ndarray, Y: np.ndarray, size: tuple[int, int, int]) -> tuple[int, int, int]:
    """(the most samples fitted at any check, parameters, width of the feed-forward network) of a layer that is trained."""
    recipe = recipe_at(point)
    start = StartingLayer(heads=size[0], width=size[1], d_model=size[2], dtype="float64")
    training = prepare((X, Y), None, recipe, start)
    most = 0
    for step in range(recipe.steps):
        training.step(step)
        if (step + 1) % CHECK_EVERY == 0:
            most = max(most, fitted_samples(training, point["tolerance"]))
        if most == len(X):
            break
    return most, training.model.config.parameter_count, size[1]


def fitted_samples(training: LayerTraining, tolerance: float) -> int:
    """How many samples the layer fits now, of those it is trained on."""
    with torch.no_grad():
        given = training.model.eval()(training.x).flatten(1)
    if training.material.labels:
        return int((given.argmax(dim=1) == training.y).sum())
    return int((((given - training.y) * training.spread).abs() <= tolerance).all(dim=1).sum())
