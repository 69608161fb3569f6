"""The observed error: the largest |T − f| found at sampled points. It proves nothing.

A function is evaluated at fresh random points. Data are known at the samples alone: their observed error is the largest one
at the held-out samples, less the declared error of their values.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..common.errors import InputError
from ..target.declared import require_obeyed
from ..target.envelope import RANDOM_POINTS
from ..target.margin import in_scope
from ..target.points import uniform_points
from ..target.samples import Data
from ..target.target import Target
from .certificate import Evidence

OBSERVED_POINTS = 20_000
WORST_KEPT = 40  # worst points around which the search continues

Answer = Callable[[np.ndarray], np.ndarray]  # [point, D] → [point, outputs]


@dataclass(frozen=True)
class Observation:
    """The largest error seen (NaN if T is not finite), at how many points, and the worst points, worst first.

    For data the worst points are those of all samples. `fitted` is the largest error at fitted samples, `possible` the largest
    one found that some function allowed by the samples and the declared constants would have.
    """

    largest: float
    points: int
    worst: np.ndarray
    fitted: float = 0.0
    possible: float = 0.0
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def limit(self) -> float:
        """No bound below this can be proved."""
        return max(self.largest, self.fitted, self.possible)


def observe(answer: Answer, target: Target, seed: int = 0, dtype: type[np.floating] = np.float64) -> Observation:
    """Errors at fresh random points of the domain, corners included, then closer and closer around the worst ones.

    Points are numbers of `dtype`, so T gets them exactly. An `answer` whose time is up may cover the first points only.
    A callable whose values contradict what is declared is refused.
    """
    if target.data is not None:
        return _at_samples(answer, target, target.data, seed, dtype)
    unit = uniform_points(OBSERVED_POINTS, target.dimension, 1_000_003 + seed).numpy()
    points = _placed(target.domain.points(unit), target, dtype)
    if not len(points):
        raise InputError("a domain with points in it", f"none of {OBSERVED_POINTS:,} samples belongs to it", "widen it")
    rng = np.random.default_rng(seed)
    largest, count, reach = 0.0, 0, 0.05
    worst = points[:0]
    for _ in range(4):
        answered = answer(points)
        points = points[: len(answered)]
        values = target(points)
        if target.function is not None and target.declared is not None:
            require_obeyed(target, target.declared, points, values)
        errors = np.abs(answered.reshape(len(points), -1) - values).max(axis=1)
        count += len(points)
        if not np.isfinite(errors).all():
            return Observation(math.nan, count, points[~np.isfinite(errors)][:1])
        largest = max(largest, float(errors.max()))
        worst = points[np.argsort(-errors)[:WORST_KEPT]]
        steps = rng.normal(size=(25 * len(worst), target.dimension))
        around = np.repeat(worst, 25, axis=0) + reach * target.domain.sides * steps
        around = np.clip(around, target.domain.lower, target.domain.upper)
        points = np.concatenate([worst, _placed(around, target, dtype)])
        reach /= 5
    exact, _ = target.values_with_error(worst)  # the worst points once more, with f as exact as possible
    answered = answer(worst)
    exact = exact[: len(answered)]
    largest = max(largest, float(np.abs(answered.reshape(len(exact), -1) - exact).max()))
    return Observation(largest, count, worst)


def _at_samples(answer: Answer, target: Target, data: Data, seed: int, dtype: type[np.floating]) -> Observation:
    """Errors at the samples, held out and fitted, as numbers of `dtype`; then how large they can be at random points."""
    x = data.x.astype(dtype).astype(np.float64)
    values, radius = (data.y, data.radius) if target.envelope is None else target.envelope(x)
    errors = np.maximum(np.abs(answer(x).reshape(len(x), -1) - values) - radius, 0.0).max(axis=1)
    held = data.held_out
    if not np.isfinite(errors).all():
        return Observation(math.nan, len(held), x[~np.isfinite(errors)][:1])
    errors = np.where(target.domain.contains(x), errors, 0.0)  # rounding may have moved a sample out
    largest, fitted = float(errors[held].max()), float(errors[data.fitted].max())
    evidence = Evidence(samples=len(data), held_out=len(held), fitted_error=fitted)
    possible = 0.0
    if target.envelope is not None:
        unit = uniform_points(RANDOM_POINTS, target.dimension, 1_000_003 + seed).numpy()
        points = _placed(target.domain.points(unit), target, dtype)
        values, radius = target.envelope(points)
        apart = np.abs(answer(points).reshape(len(points), -1) - values) + radius
        if np.isfinite(apart).all():
            possible = float(apart.max(initial=0.0))
            evidence |= Evidence(possible_error=possible, left_open=target.uncertainty)
    worst = x[np.argsort(-errors)[:WORST_KEPT]]
    return Observation(largest, len(held), worst, fitted, possible, evidence)


def _placed(points: np.ndarray, target: Target, dtype: type[np.floating]) -> np.ndarray:
    """The points that are in scope, as numbers of `dtype`."""
    rounded = points.astype(dtype).astype(np.float64)
    return rounded[in_scope(target, rounded)]
