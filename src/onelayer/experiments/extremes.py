"""Extremes by observation: how large a function gets on a box, as far as a search can tell. It proves nothing.

Values on a grid that includes every face, edge and corner, and at points that crowd toward the boundary; then an ascent from
the best of them, coordinate by coordinate, with steps that halve when none of them helps.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from ..target.points import corners, fitting_points
from ..target.target import Target

POINTS = 20_000  # on the grid, and as many beside it
STARTS = 24  # best points, from which the ascent begins
FIRST_STEP, LAST_STEP = 2.0**-3, 2.0**-30  # as shares of a side
MOST_STEPS = 1000  # along a narrow ridge, coordinates creep

Unit = Float[np.ndarray, "point coordinate"]  # points of the unit cube


def observed_range(target: Target) -> tuple[float, float]:
    """(smallest, largest) value of f that was seen on the domain, of the output with the widest range."""
    ends = []
    for output in range(target.outputs):
        high = largest(lambda x, o=output: target.values(x)[:, o], target)  # type: ignore[misc]
        low = -largest(lambda x, o=output: -target.values(x)[:, o], target)  # type: ignore[misc]
        ends.append((low, high))
    return max(ends, key=lambda pair: pair[1] - pair[0])


def largest(function: Callable[[np.ndarray], np.ndarray], target: Target, seed: int = 0) -> float:
    """The largest value of a function of points of the target's domain that was seen; values that are not finite are skipped."""
    D = target.dimension

    def values(unit: Unit) -> np.ndarray:
        x = target.domain.points(unit)
        y = np.full(len(x), -np.inf)
        inside = target.domain.contains(x)
        y[inside] = function(x[inside])
        return np.where(np.isfinite(y), y, -np.inf)

    unit = np.concatenate([_grid(D), fitting_points(POINTS, D, seed).numpy()])
    seen = values(unit)
    first = np.argsort(-seen)[:STARTS]
    best, value, step = unit[first], seen[first], FIRST_STEP
    moves, rows = np.concatenate([np.eye(D), -np.eye(D)]), np.arange(len(best))
    for _ in range(MOST_STEPS):
        trials = np.clip(best[:, None] + step * moves, 0, 1)
        reached = values(trials.reshape(-1, D)).reshape(len(best), -1)
        chosen = reached.argmax(axis=1)
        better = reached[rows, chosen] > value
        best[better], value[better] = trials[rows, chosen][better], reached[rows, chosen][better]
        step = step if better.any() else step / 2
        if step < LAST_STEP:
            break
    return float(value.max())


def _grid(dimension: int) -> Unit:
    """A grid with both ends of every side; the corners alone where three points a side are too many."""
    count = int(POINTS ** (1 / dimension) + 1e-9)
    if count < 3:
        return corners(dimension).numpy()
    axes = np.meshgrid(*[np.linspace(0, 1, count)] * dimension, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)
