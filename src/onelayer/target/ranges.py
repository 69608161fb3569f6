"""The range of a formula on a box, proved: Taylor models on boxes that are halved where they reach beyond what was seen."""

import numpy as np

from ..common.outward import U
from ..formula import Formula, enclose, evaluate, interval
from ..formula.additive import components, links_of, parts_of
from ..formula.composition import Bounds
from ..formula.taylor.formula import Enclosed, TaylorAlgebra
from ..formula.taylor.series import Space
from ..formula.tree import Node
from .domain import Domain
from .points import uniform_points
from .target import Target

SEEN_AT = 2000  # points
CLOSE = 1e-6  # share of the range seen: boxes that reach no further beyond it are not halved
ROUNDS, MOST_BOXES = 60, 6_000


def range_of(formula: Formula, domain: Domain) -> tuple[float, float]:
    """low ≤ f ≤ high everywhere on the domain's box, for a formula with one output; ±∞ where nothing is proved.

    Terms without a variable in common are taken one after the other: the range of their sum is the sum of their ranges.
    """
    groups = components(links_of(formula)) or [(0,)]
    low = high = below = above = 0.0
    for group, part in zip(groups, parts_of(formula, groups), strict=True):
        lower, upper = (np.array(ends)[list(group)] for ends in (domain.lower, domain.upper))
        own = _range(part, lower, upper)
        low, high, below, above = low + own[0], high + own[1], below + abs(own[0]), above + abs(own[1])
    off = 2 * len(groups) * U
    return (low - off * below, high + off * above) if np.isfinite(below + above) else (-np.inf, np.inf)


def _range(formula: Formula, start: np.ndarray, stop: np.ndarray) -> tuple[float, float]:
    """The same on the box from `start` to `stop`."""
    unit = uniform_points(SEEN_AT, len(start), 0).numpy()
    with np.errstate(all="ignore"):
        seen = np.asarray(evaluate(formula, start + (stop - start) * unit))[:, 0]
    seen = seen[np.isfinite(seen)]
    if not len(seen):
        return -np.inf, np.inf
    slack = CLOSE * float(np.ptp(seen))
    enough = float(seen.min()) - slack, float(seen.max()) + slack
    lower, upper = start[None], stop[None]
    low, high, examined = np.inf, -np.inf, 0
    for turn in range(ROUNDS):
        found: Enclosed = formula.tape.run(TaylorAlgebra(Space(lower, upper)))[0]
        examined += len(lower)
        open_ = (found.low < enough[0]) | (found.high > enough[1])
        if turn == ROUNDS - 1 or examined + 2 * int(open_.sum()) > MOST_BOXES:
            open_[:] = False
        low = min(low, float(found.low[~open_].min(initial=np.inf)))
        high = max(high, float(found.high[~open_].max(initial=-np.inf)))
        if not open_.any():
            break
        axis = _steepest(found, open_, (upper - lower) / (stop - start))
        lower, upper = _halved(lower[open_], upper[open_], axis)
    return low, high


def _steepest(found: Enclosed, which: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """The side along which f varies most, or the longest one where its slopes are not known."""
    slopes = np.abs(found.model.c[1 : 1 + sides.shape[1], which]).T
    known = np.isfinite(slopes).all(axis=1) & (slopes.max(axis=1) > 0)
    return np.where(known[:, None], np.where(np.isfinite(slopes), slopes, 0.0), sides[which]).argmax(axis=1)


def _halved(lower: np.ndarray, upper: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(len(lower))
    middle = (lower[rows, axis] + upper[rows, axis]) / 2
    first, second = upper.copy(), lower.copy()
    first[rows, axis] = second[rows, axis] = middle
    return np.concatenate([lower, second]), np.concatenate([first, upper])


def bounds_on(target: Target) -> Bounds:
    """Proved bounds of functions of the formula's variables on the target's box."""
    assert target.formula is not None
    names = target.formula.names
    sides = [interval(a, b) for a, b in zip(target.domain.lower, target.domain.upper, strict=True)]

    def bounds(node: Node) -> tuple[float, float]:
        formula = Formula("", names, (node,))
        ball = enclose(formula, sides)[0]
        if ball.is_finite() and (ball.lower() > 0 or ball.upper() < 0):
            return ball.lower(), ball.upper()
        return range_of(formula, target.domain)

    return bounds
