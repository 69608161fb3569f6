"""Values, slopes and second derivatives that are reached: divided differences at float points, in ball arithmetic.

By the mean value theorem a divided difference of a smooth function is a value of its derivative somewhere between the points, and
properties are about divided differences anyway. So what is reached needs no derivative and holds for every layer. Points are
looked for in floats: at random, then uphill and downhill from the best ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from flint import arb, ctx

from ...common.budget import Budget
from ...formula import holds, interval
from ...formula.intervals import Interval
from ...target.domain import Domain
from ...target.points import judging_points
from ..ascent import ascend
from ..witness import PRECISION
from .real_function import RealFunction

STEPS = (0.0, 2.0**-14, 2.0**-10)  # between neighbouring points, share of a side, by order
SHORTER = (1.0, 2.0**-14)  # times the steps, in balls, which lose nothing in differences
POINTS = 4_000
TRIED = 3  # of the best points, in balls


@dataclass(frozen=True)
class Reached:
    """A divided difference at these points, proved to lie in [below, above]."""

    points: tuple[tuple[float, ...], ...]
    below: float
    above: float


@dataclass(frozen=True)
class Ends:
    """The smallest and the largest that was reached by one output; None where nothing is proved."""

    low: Reached | None
    high: Reached | None


def reached(subject: RealFunction, order: int, i: int, budget: Budget, seed: int = 0) -> list[Ends]:
    """What every output reaches of its derivative of this order along coordinate i. One point is tried whatever the budget."""
    domain = subject.domain
    start = domain.points(judging_points(POINTS, domain.dimension, seed).numpy())
    seen = _differences(subject, order, i, start)
    found = []
    for o in range(subject.outputs):
        ends = list[Reached | None]()
        for sign in (-1.0, 1.0):
            good = np.isfinite(seen[:, o])
            points, heights = start[good], sign * seen[good, o]
            if len(points) and not budget.over():
                points, heights = ascend(partial(_heights, subject, order, i, o, sign), points, heights, domain, seed)
            best = points[np.argsort(-heights, kind="stable")[:TRIED]]
            tried = [
                proved(subject, _nodes(domain, order, i, x, factor), i)[o]
                for number, x in enumerate(best)
                for factor in SHORTER[: 1 + (order > 0)]
                if not number or not budget.over()
            ]
            proofs = [p for p in tried if p is not None]
            proofs.sort(key=lambda p: p.below)
            ends.append(proofs[-1 if sign > 0 else 0] if proofs else None)
        found.append(Ends(*ends))
    return found


def proved(subject: RealFunction, nodes: np.ndarray | None, i: int) -> list[Reached | None]:
    """The divided difference at one to three points that differ in coordinate i, of every output; None where it is not proved.

    The points, and all of the segment between them, have to be proved to lie in the domain.
    """
    nothing: list[Reached | None] = [None] * subject.outputs
    if nodes is None or not _inside(subject.domain, nodes, i):
        return nothing
    with ctx.workprec(PRECISION):
        at = [arb(x) for x in nodes[:, i].tolist()]
        table = [subject.in_balls(x) for x in nodes.tolist()]
        found = []
        for o in range(subject.outputs):
            level = [row[o] for row in table]
            for gap in range(1, len(nodes)):
                level = [(b - a) / (at[j + gap] - at[j]) for j, (a, b) in enumerate(pairwise(level))]
            value = level[0] * math.factorial(len(nodes) - 1)
            found.append(_as_floats(nodes, value) if value.is_finite() else None)
    return found


def _as_floats(nodes: np.ndarray, value: arb) -> Reached | None:
    around: Interval = interval(value)
    below, above = around.lower(), around.upper()
    points = tuple(tuple(x) for x in nodes.tolist())
    return Reached(points, below, above) if math.isfinite(below) and math.isfinite(above) else None


def _inside(domain: Domain, nodes: np.ndarray, i: int) -> bool:
    """Whether the segment between the first and the last point is proved to lie in the domain."""
    if not ((nodes >= domain.lower) & (nodes <= domain.upper)).all():
        return False
    if domain.within is None:
        return True
    sides: list[Interval | float] = list(nodes[0].tolist())
    sides[i] = interval(float(nodes[0, i]), float(nodes[-1, i]))
    return holds(domain.within, sides) is True


def _nodes(domain: Domain, order: int, i: int, x: np.ndarray, factor: float) -> np.ndarray | None:
    """`order` + 1 points around x that differ in coordinate i; None where floats are too sparse."""
    found = _around(domain, order, i, x[None], factor)[0]
    return found if (np.diff(found[:, i]) > 0).all() else None


def _around(domain: Domain, order: int, i: int, x: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Points around every x, [point, node, coordinate]: at equal distances along coordinate i, inside the box."""
    found = np.repeat(x[:, None], order + 1, axis=1)
    if order:
        low, high = domain.lower[i], domain.upper[i]
        step = max(factor * STEPS[order] * (high - low), 16 * float(np.spacing(max(abs(low), abs(high)))))
        offsets = (np.arange(order + 1) - order / 2) * step
        middle = np.clip(x[:, i], low + order / 2 * step, high - order / 2 * step)
        found[:, :, i] = np.clip(middle[:, None] + offsets, low, high)
    return found


def _differences(subject: RealFunction, order: int, i: int, x: np.ndarray) -> np.ndarray:
    """The divided differences around points in floats, [point, out]; NaN outside the domain."""
    around = _around(subject.domain, order, i, x)
    flat = around.reshape(-1, x.shape[1])
    with np.errstate(all="ignore"):
        level = subject.values(flat).reshape(len(x), order + 1, -1)
        at = around[:, :, i, None]
        for gap in range(1, order + 1):
            level = np.diff(level, axis=1) / (at[:, gap:] - at[:, :-gap])
    ends = around[:, [0, -1]].reshape(-1, x.shape[1])
    inside = subject.domain.contains(ends).reshape(len(x), 2)
    return np.where(inside[:, :1] & inside[:, 1:], level[:, 0] * float(math.factorial(order)), np.nan)


def _heights(subject: RealFunction, order: int, i: int, output: int, sign: float, x: np.ndarray) -> np.ndarray:
    """What is climbed: an output's divided differences, upside down if the sign is −1; −∞ where there is none."""
    heights = sign * _differences(subject, order, i, x)[:, output]
    return np.where(np.isfinite(heights), heights, -np.inf)


def points_of(found: Sequence[Ends]) -> tuple[np.ndarray, np.ndarray]:
    """(smallest, largest) that was reached, [out]; NaN for nothing."""
    low = [math.nan if e.low is None else e.low.above for e in found]
    return np.array(low), np.array([math.nan if e.high is None else e.high.below for e in found])
