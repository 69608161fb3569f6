"""The observed error: the largest |T − f| found at points that were looked at. It proves nothing.

A function is evaluated at fresh random points, a third of them on faces of every dimension, and at the corners; then the worst
ones are followed uphill (`ascent`). Data are known at the samples alone: their observed error is the largest one at the
held-out samples, less the declared error of their values.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from ..common.budget import Budget
from ..common.errors import InputError
from ..layer.arithmetic import FLOAT32, arithmetic_of
from ..model.transformer import SingleLayerTransformer
from ..target.declared import require_obeyed
from ..target.envelope import RANDOM_POINTS
from ..target.margin import in_scope
from ..target.points import judging_points
from ..target.samples import Data
from ..target.target import Target
from .ascent import POLISHED, ascend, polished, worst_first
from .certificate import Evidence

OBSERVED_POINTS = 20_000
WORST_KEPT = 40  # worst points that are returned
APART = 0.01  # share of the sides: how far they are from each other

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


def observe(
    answer: Answer, target: Target, seed: int = 0, dtype: type[np.floating] = np.float64, count: int = OBSERVED_POINTS
) -> Observation:
    """Errors at fresh random points of the domain, faces and corners included, then uphill from the worst ones.

    Points are numbers of `dtype`, so T gets them exactly. An `answer` whose time is up may cover the first points only.
    A callable whose values contradict what is declared is refused.
    """
    if target.data is not None:
        return _at_samples(answer, target, target.data, seed, dtype)
    unit = judging_points(count, target.dimension, 1_000_003 + seed).numpy()
    points, look = target.domain.nearest(target.domain.points(unit), dtype is np.float32), _Look(answer, target)
    errors = look(points)
    if not look.points:
        raise InputError("a domain with points in it", f"none of {count:,} samples belongs to it", "widen it")
    return look.upward(points, errors, seed, dtype)


def observe_from(answer: Answer, target: Target, points: np.ndarray) -> Observation:
    """Errors at these points of the domain, then uphill from the worst ones: what is judged at the same points is comparable."""
    look = _Look(answer, target)
    return look.upward(points, look(points), 0, np.float64)


def polished_from(
    answer: Answer, target: Target, points: np.ndarray, dtype: type[np.floating] = np.float64, count: int = POLISHED
) -> np.ndarray:
    """The first of these points of the domain moved further uphill, worst first, then the points; samples are not moved."""
    if target.data is not None or not len(points):
        return points
    found, _ = polished(_Look(answer, target), points, target.domain, dtype is np.float32, count)
    return np.concatenate([found, points])


def answer_of(model: SingleLayerTransformer, places: tuple[int, ...], budget: Budget) -> Answer:
    """T at points, in chunks that bound the memory of the attention weights; the first ones only if time is up."""
    c = model.config
    rows = max(1, 2**22 // (c.heads * c.all_tokens * (c.read_rows.stop - c.read_rows.start)))

    def answer(x: np.ndarray) -> np.ndarray:
        given = torch.from_numpy(x).to(model.W_E.dtype).reshape(len(x), c.tokens, c.features_in)
        with torch.no_grad():
            parts = []
            for part in given.split(rows):
                parts.append(model(part)[:, list(places)].flatten(1))
                if budget.over():
                    break
        return torch.cat(parts).double().numpy()

    return answer


def floats_of(model: SingleLayerTransformer) -> type[np.floating]:
    """The numbers that a model is asked about."""
    return np.float32 if arithmetic_of(model.W_E.dtype) is FLOAT32 else np.float64


@dataclass
class _Look:
    """Errors at points, which are counted."""

    answer: Answer
    target: Target
    points: int = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """|T − f|; −∞ where a point is out of scope or time was up, NaN where T is not finite."""
        target, errors = self.target, np.full(len(x), -math.inf)
        asked = np.flatnonzero(in_scope(target, x))
        if not len(asked):
            return errors
        answered = self.answer(x[asked])
        asked = asked[: len(answered)]
        values = target(x[asked])
        if target.function is not None and target.declared is not None:
            require_obeyed(target, target.declared, x[asked], values)
        found = np.abs(answered.reshape(len(asked), -1) - values).max(axis=1)
        self.points += len(asked)
        errors[asked] = np.where(np.isfinite(found), found, math.nan)
        return errors

    def upward(self, points: np.ndarray, errors: np.ndarray, seed: int, dtype: type[np.floating]) -> Observation:
        """The largest error, after an ascent from these points."""
        if not np.isnan(errors).any():
            points, errors = points[np.isfinite(errors)], errors[np.isfinite(errors)]
            climbed = ascend(self, points, errors, self.target.domain, seed, dtype is np.float32)
            points, errors = (np.concatenate(pair) for pair in zip(climbed, (points, errors), strict=True))
        if np.isnan(errors).any():
            return Observation(math.nan, self.points, points[np.isnan(errors)][:1])
        worst, errors = _apart(*worst_first(points, errors, 10 * WORST_KEPT), self.target)
        exact, _ = self.target.values_with_error(worst)  # the worst points once more, with f as exact as possible
        answered = self.answer(worst)
        exact = exact[: len(answered)]
        largest = max(float(errors[0]), float(np.abs(answered.reshape(len(exact), -1) - exact).max()))
        return Observation(largest, self.points, worst)


def _apart(points: np.ndarray, errors: np.ndarray, target: Target) -> tuple[np.ndarray, np.ndarray]:
    """The first points, and their errors, that are not close to one before."""
    kept: list[int] = []
    for i, point in enumerate(points):
        near = (np.abs(points[kept] - point) < APART * target.domain.sides).all(axis=1)
        if not near.any():
            kept.append(i)
        if len(kept) == WORST_KEPT:
            break
    return points[kept], errors[kept]


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
        unit = judging_points(RANDOM_POINTS, target.dimension, 1_000_003 + seed).numpy()
        points = target.domain.nearest(target.domain.points(unit), dtype is np.float32)
        points = points[in_scope(target, points)]
        values, radius = target.envelope(points)
        apart = np.abs(answer(points).reshape(len(points), -1) - values) + radius
        if np.isfinite(apart).all():
            possible = float(apart.max(initial=0.0))
            evidence |= Evidence(possible_error=possible, left_open=target.uncertainty)
    worst = x[np.argsort(-errors)[:WORST_KEPT]]
    return Observation(largest, len(held), worst, fitted, possible, evidence)
