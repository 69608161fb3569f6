"""What a function, its slopes or its second derivatives span: an interval that is proved to hold all of them, output by output.

A layer that is a sum of smooth softmax heads has slopes and second derivatives of the same kind (`layer.slope_form`,
`layer.curvature_form`), so the engine that proves values close bounds them as well: by interpolation against the formula 0, both
ends refined. Any other layer is bounded by bisection, for its values and slopes alone: |T − c| ≤ B with c in the middle of what
was seen gives c − B ≤ T ≤ c + B. Everything is about the real function of the stored weights.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...common.budget import Budget
from ...common.machine import one_thread
from ...common.numbers import at_least, at_most
from ...common.outward import UP_FEW
from ..analytic.prove import range_of
from ..bisection.prove import CLOSE_FACTOR, MOST_COORDINATES
from .real_function import Derivative, RealFunction

CLOSE = 0.02  # share of the width of what was seen: ends this close to what is reached are not refined
TRUNCATION = 0.01  # share of that width that interpolation may add
ROOM = 0.5  # share of the room between what was seen and a limit: how close the ends then have to be
LEAST_CLOSE, LEAST_TRUNCATION = 1e-5, 1e-13  # of the width; of the size
BISECTED_CLOSE = 0.05  # share of half the width
FIRST_TIME = 0.5  # share of the seconds for the first of two engines
SHARP = 500.0  # spread of a head's keys from which on bisection comes first in two variables and more: it knows smooth maxima

Settled = Callable[[np.ndarray, np.ndarray], bool]


@dataclass(frozen=True)
class Enclosure:
    """Proved: everything lies in [low, high], and `reached_low` and `reached_high`, or beyond them, are reached.

    low and high are infinite, the others NaN, where nothing is proved.
    """

    low: float
    high: float
    reached_low: float = math.nan
    reached_high: float = math.nan

    def __str__(self) -> str:
        low = at_least(self.low) if math.isfinite(self.low) else "-∞"
        high = at_most(self.high) if math.isfinite(self.high) else "∞"
        bound = f"[{low}, {high}]" if math.isfinite(self.low) or math.isfinite(self.high) else "none proved"
        if math.isnan(self.reached_low) or math.isnan(self.reached_high):
            return bound
        return f"{bound}, reached: {at_most(self.reached_low)} to {at_least(self.reached_high)}"


@dataclass(frozen=True)
class Span:
    """low ≤ everything ≤ high, [out], and why nothing is proved where that is so."""

    low: np.ndarray
    high: np.ndarray
    reason: str = ""

    @staticmethod
    def nothing(outputs: int, reason: str) -> "Span":
        return Span(np.full(outputs, -np.inf), np.full(outputs, np.inf), reason)


def span(
    subject: RealFunction,
    order: int,
    i: int,
    seen: tuple[np.ndarray, np.ndarray],
    budget: Budget,
    room: np.ndarray | None = None,
    settled: Settled = lambda low, high: False,
) -> Span:
    """The span of the derivative of this order along coordinate i; `seen` is what was reached, [out].

    It stops early where `settled(low, high)` holds. `room` is how far from what was seen the ends may be, by default a few
    per cent of its width.
    """
    outputs = subject.outputs
    size = np.maximum(np.abs(seen[0]), np.abs(seen[1]))
    if not np.isfinite(size).all():
        return Span.nothing(outputs, "no finite value was found at points of the domain")
    width = np.maximum(seen[1] - seen[0], LEAST_TRUNCATION * size) + 1e-300
    close = CLOSE if room is None else float(np.clip((ROOM * room / width).min(), LEAST_CLOSE, ROOM))
    allowed = width if room is None else np.minimum(width, room)
    goal = max(TRUNCATION * float(allowed.min()), LEAST_TRUNCATION * float(size.max()))
    part = subject.derivative(order, i)
    if isinstance(part, str):
        return _bisected(subject, order, i, seen, budget, room)
    sharp = order == 0 and part.form.dimension > 1 and float(part.form.spreads.max()) > SHARP
    first = budget.share(FIRST_TIME)
    best = (
        _bisected(subject, order, i, seen, first, room) if sharp else _interpolated(part, goal, close, first, settled)
    )
    excess = np.maximum(seen[0] - best.low, best.high - seen[1])
    done = settled(best.low, best.high) or (excess <= 2 * CLOSE * width).all()
    if done or budget.over() or (order and np.isfinite(excess).all()):  # bisection would not come closer to slopes
        return best
    other = (
        _interpolated(part, goal, close, budget, settled) if sharp else _bisected(subject, order, i, seen, budget, room)
    )
    low, high = np.maximum(best.low, other.low), np.minimum(best.high, other.high)
    return Span(low, high, "" if np.isfinite(low).all() else best.reason or other.reason)


def _interpolated(part: Derivative, goal: float, close: float, budget: Budget, settled: Settled) -> Span:
    """The range of form − formula by interpolation on boxes."""
    error = part.error * UP_FEW

    def wide(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.nextafter(low - error, -np.inf), np.nextafter(high + error, np.inf)

    with one_thread(True):
        ends = range_of(
            part.form, part.frame, part.target, goal, close, budget, lambda low, high: settled(*wide(low, high))
        )
    if ends is None or not np.isfinite(ends).all():
        return Span.nothing(len(error), "interpolation gave no bound in the time and with the variables given")
    return Span(*wide(*ends))


def _bisected(
    subject: RealFunction,
    order: int,
    i: int,
    seen: tuple[np.ndarray, np.ndarray],
    budget: Budget,
    room: np.ndarray | None,
) -> Span:
    """The range of values or slopes by bisection, one output after the other."""
    if subject.domain.dimension > MOST_COORDINATES:
        return Span.nothing(subject.outputs, f"bisection takes at most {MOST_COORDINATES} variables")
    low, high = np.full(subject.outputs, -np.inf), np.full(subject.outputs, np.inf)
    for o, (a, b) in enumerate(zip(*seen, strict=True)):
        middle = float(a / 2 + b / 2)
        half = max(float(b - middle), float(middle - a), 1e-13 * max(abs(a), abs(b)), 1e-290)
        more = BISECTED_CLOSE * half if room is None else min(ROOM * float(room[o]), half)
        wanted = half + more
        search = subject.search(order, i, o, middle)
        if isinstance(search, str):
            return Span.nothing(subject.outputs, search)
        with one_thread(True):
            cover, _, _ = search.run(wanted, wanted / CLOSE_FACTOR, budget.share(1 / (subject.outputs - o)), None)
        bound = float(cover.bound.max(initial=-math.inf)) * UP_FEW
        if math.isfinite(bound) and bound >= 0:
            low[o], high[o] = math.nextafter(middle - bound, -math.inf), math.nextafter(middle + bound, math.inf)
    reason = "" if np.isfinite(low).all() else "bisection gave no finite bound in the time given"
    return Span(low, high, reason)
