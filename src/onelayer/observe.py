"""The observed error: the largest |T − f| found at sampled points. It proves nothing."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .errors import InputError
from .jumps import asked
from .sample import uniform_points
from .target import Target

OBSERVED_POINTS = 20_000
WORST = 40  # points kept for closing in

Answer = Callable[[np.ndarray], np.ndarray]  # [point, D] → [point, outputs]


@dataclass(frozen=True)
class Observation:
    """The largest error seen (NaN if T is not finite), at how many points, and the worst points, worst first."""

    largest: float
    points: int
    worst: np.ndarray


def observe(answer: Answer, target: Target, seed: int = 0, dtype: type[np.floating] = np.float64) -> Observation:
    """Fresh random points of the domain, corners included, then closer and closer around the worst ones.

    Points are numbers of `dtype`, which T sees exactly.
    """
    unit = uniform_points(OBSERVED_POINTS, target.dimension, 1_000_003 + seed).numpy()
    points = _placed(target.domain.points(unit), target, dtype)
    if not len(points):
        raise InputError("a domain with points in it", f"none of {OBSERVED_POINTS:,} samples belongs to it", "widen it")
    rng = np.random.default_rng(seed)
    largest, count, reach = 0.0, 0, 0.05
    worst = points[:0]
    for _ in range(4):
        errors = np.abs(answer(points).reshape(len(points), -1) - target(points)).max(axis=1)
        count += len(points)
        if not np.isfinite(errors).all():
            return Observation(math.nan, count, points[~np.isfinite(errors)][:1])
        largest = max(largest, float(errors.max()))
        worst = points[np.argsort(-errors)[:WORST]]
        around = np.repeat(worst, 25, axis=0) + reach * target.domain.sides * rng.normal(
            size=(25 * len(worst), target.dimension)
        )
        around = np.clip(around, target.domain.lower, target.domain.upper)
        points = np.concatenate([worst, _placed(around, target, dtype)])
        reach /= 5
    exact, _ = target.nearest(worst)  # the worst points once more, with f as exactly as it can be had
    largest = max(largest, float(np.abs(answer(worst).reshape(len(worst), -1) - exact).max()))
    return Observation(largest, count, worst)


def _placed(points: np.ndarray, target: Target, dtype: type[np.floating]) -> np.ndarray:
    """The points as numbers of `dtype`, those that the target asks about."""
    rounded = points.astype(dtype).astype(np.float64)
    return rounded[asked(target, rounded)]
