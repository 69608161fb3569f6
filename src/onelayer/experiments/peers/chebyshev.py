"""Chebyshev tensor interpolation at a matched number of coefficients: the yardstick of approximation theory.

It stores only coefficients, no network; on additive analytic targets nothing beats it at large sizes. It chooses its
points itself: the Chebyshev nodes.
"""

import math

import numpy as np

from ...proof.analytic.chebyshev import coefficients, nodes
from ...target.target import Target
from .task import CHUNK, Clock, FittedPeer, Function, matches_budget

LINES = 32  # along every axis, to see which degrees it needs
MAX_NODES = 256  # along an axis


def fit(target: Target, parameters: int, seconds: float, seed: int = 0) -> FittedPeer | None:
    """Interpolation in a tensor of Chebyshev nodes, more along axes that need more; None if no tensor matches the budget."""
    clock = Clock(seconds)
    counts = shape(target, parameters)
    if not matches_budget(math.prod(counts) * target.outputs, parameters):
        return None
    values = target(target.domain.points(grid([(nodes(n - 1) + 1) / 2 for n in counts])))
    series = np.moveaxis(values.reshape(*counts, -1), -1, 0)
    for axis, n in enumerate(counts, start=1):
        series = np.moveaxis(np.tensordot(series, coefficients(n - 1), axes=([axis], [1])), -1, axis)
    note = "×".join(map(str, counts)) + " nodes" + (f", {target.outputs} outputs" if target.outputs > 1 else "")
    return FittedPeer(evaluator(target, series), series.size, clock.spent, note)


def grid(axes: list[np.ndarray]) -> np.ndarray:
    """All combinations of one coordinate from every axis, [point, axis]."""
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


def shape(target: Target, parameters: int) -> tuple[int, ...]:
    """Nodes along every axis: starting from one each, the axis with the largest tail grows while the budget allows it."""
    tails = [_tail(target, axis) for axis in range(target.dimension)]
    counts = [1] * target.dimension
    while True:
        fitting = []
        for axis, tail in enumerate(tails):
            larger = math.prod(counts) // counts[axis] * (counts[axis] + 1) * target.outputs
            if (larger <= parameters or matches_budget(larger, parameters)) and counts[axis] < MAX_NODES:
                fitting.append((tail[counts[axis]], -counts[axis], axis))
        if not fitting:
            return tuple(counts)
        counts[max(fitting)[2]] += 1


def _tail(target: Target, axis: int) -> np.ndarray:
    """[degree]: the sum of the absolute coefficients from that degree on, the largest over lines along the axis."""
    rng = np.random.default_rng(axis)
    unit = np.repeat(rng.random((LINES, 1, target.dimension)), MAX_NODES, axis=1)
    unit[:, :, axis] = (nodes(MAX_NODES - 1) + 1) / 2
    values = target(target.domain.points(unit.reshape(-1, target.dimension))).reshape(LINES, MAX_NODES, -1)
    series = np.abs(np.tensordot(coefficients(MAX_NODES - 1), values, axes=([1], [1])))  # [degree, line, output]
    return series[::-1].cumsum(axis=0)[::-1].max(axis=(1, 2))


def evaluator(target: Target, series: np.ndarray) -> Function:
    """Σ_k a_k Π_i T_{k_i}(x_i) as a function of points in the units of x; series is [output, degree, …]."""
    low, high = np.array(target.domain.lower), np.array(target.domain.upper)

    def answer(points: np.ndarray) -> np.ndarray:
        found = np.empty((len(points), len(series)))
        for start in range(0, len(points), CHUNK):
            part = slice(start, start + CHUNK)
            angles = np.arccos(np.clip(2 * (points[part] - low) / (high - low) - 1, -1, 1))
            columns = [np.cos(np.outer(angles[:, i], np.arange(n))) for i, n in enumerate(series.shape[1:])]
            partial = np.tensordot(columns[0], series, axes=([1], [1]))  # [point, output, degree, …]
            for column in columns[1:]:
                partial = np.einsum("pod...,pd->po...", partial, column)
            found[part] = partial
        return found

    return answer
