"""A proved lower bound of sup |T − f|: the error at one point of the domain, in ball arithmetic.

T is the real function of the stored weights: neither the rounding of the deployed model, which an upper bound includes, nor
that of the computed answers, which an observed error has, counts here. f comes from its formula by enclosure, so that the
bound rests on nothing else. A callable is within its declared `evaluation_error` of f, samples are within theirs, and between
samples f is anything that the declared Lipschitz constants allow: |T − f| is then bounded below for all of these.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flint import arb, ctx

from ..common.budget import Budget
from ..formula import holds
from ..model.transformer import SingleLayerTransformer
from ..target.margin import away_from_jumps
from ..target.target import Target
from .ascent import POLISHED
from .certificate import Certificate
from .claim import Claim
from .observation import Answer, floats_of, polished_from
from .witness import PRECISION, in_balls, target_at

POINTS_TRIED = 3
NEAR_BOUND = 1.02  # times the lower bound: a bound this close to it needs no worse point
SHAVED = 2.0**-40  # taken off the bound, so that others find it with arithmetic of their own

InBalls = Callable[[list[float]], list[arb]]  # T at a point, output by output


@dataclass(frozen=True)
class Attained:
    """|T − f| ≥ lower at the point; nothing is known with lower = 0."""

    lower: float = 0.0
    point: tuple[float, ...] | None = None


def attained(T: InBalls, target: Target, points: np.ndarray, budget: Budget | None = None) -> Attained:
    """The largest of the errors at the first points that are proved to be in scope. One is tried whatever the budget."""
    found = Attained()
    for tried, point in enumerate(points[:POINTS_TRIED]):
        if tried and budget is not None and budget.over():
            break
        if not _proved_in_scope(target, point):
            continue
        with ctx.workprec(PRECISION):
            gaps = [abs(t - f) for t, f in zip(T(point.tolist()), target_at(target, point), strict=True)]
        lower = max(map(_below, gaps))
        if lower > found.lower:
            found = Attained(lower, tuple(point.tolist()))
    return found


def real_function(model: SingleLayerTransformer, places: tuple[int, ...]) -> InBalls:
    """T of a model in balls, the rows `places` one after the other."""

    def T(x: list[float]) -> list[arb]:
        rows = in_balls(model, x)
        return [entry for place in places for entry in rows[place]]

    return T


def _below(gap: arb) -> float:
    """A float below the ball, 0 if there is none above 0."""
    if not gap.is_finite():
        return 0.0
    lower = float(gap.abs_lower())
    return max(math.nextafter(lower * (1 - SHAVED), 0.0), 0.0) if math.isfinite(lower) else 0.0


def _proved_in_scope(target: Target, point: np.ndarray) -> bool:
    """Whether the point is proved to belong to the domain, and to be away from jumps."""
    domain = target.domain
    inside = bool(((point >= np.array(domain.lower)) & (point <= np.array(domain.upper))).all())
    if not inside or (domain.within is not None and holds(domain.within, point.tolist()) is not True):
        return False
    if not target.margin or target.formula is None:
        return True
    return bool(away_from_jumps(target.formula, domain, target.margin, point[None])[0])


def attained_by(
    model: SingleLayerTransformer, claim: Claim, answer: Answer, worst: np.ndarray, best: Certificate, budget: Budget
) -> Attained:
    """A proved lower bound: at the worst point observed, and where that is not close to the bound, uphill from there.

    The boxes that decide in the proof of a composed layer are small: where it is still not close, uphill from these too.
    """
    T, target, floats = real_function(model, claim.places), claim.target, floats_of(model)
    found = attained(T, target, worst[:1], budget)
    small = best.evidence.worst_boxes if best.evidence.lanes else None
    middles = [np.mean([b.lower, b.upper], axis=0) for b in small or () if len(b.coordinates) == target.dimension]
    for points in (worst, *([target.domain.nearest(np.array(middles), floats is np.float32)] if middles else [])):
        if not best.bound <= NEAR_BOUND * found.lower:
            uphill = polished_from(answer, target, points, floats, POLISHED if points is worst else len(points))
            found = max(found, attained(T, target, uphill, budget), key=lambda a: a.lower)
    return found
