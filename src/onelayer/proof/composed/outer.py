"""Outer functions: how far a polyline H, read from the network, is from a function h of one variable.

For u in an interval and a − u in another (`spread`): H(a) − h(u) lies in the range of H − h, by Taylor models on pieces of H,
plus that of H(a) − H(u) (`_moves`). Intervals are halved where that is much more than what is seen at their middles.
"""

from dataclasses import dataclass

import numpy as np

from ...common.outward import UP, UP_FEW, U
from ...formula import Formula, evaluate
from ...formula.taylor.formula import Enclosed, TaylorAlgebra
from ...formula.taylor.series import Space
from ...formula.tree import Node
from ...layer.composed_reading import OuterNetwork
from .lanes import Lane
from .spread import Spread, largest_between

ROUNDS, MOST_INTERVALS = 60, 200_000
CLOSE = 0.005  # relative excess over what was seen that is not worth halving for


@dataclass(frozen=True)
class Curve:
    """H(u) = Σ_i values_i·relu(u − knots_i), knots in increasing order; `off` is what their rounding changes at most."""

    knots: np.ndarray
    values: np.ndarray
    off: float = 0.0

    @staticmethod
    def of(network: OuterNetwork, lane: Lane) -> "Curve":
        own = (network.lanes == lane.index) & (network.values[:, lane.output] != 0)
        knots, values = lane.shift - network.offsets[own], network.values[own, lane.output]
        order = np.argsort(knots, kind="stable")
        return Curve(knots[order], values[order], float((np.abs(values) * np.abs(knots)).sum()) * U * UP_FEW)

    def line(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(value at u, slope, and bounds on the rounding of both) of the piece to the right of u."""
        count = np.searchsorted(self.knots, u, side="right")
        running = np.concatenate([[0.0], np.cumsum(self.values)])
        sizes = np.concatenate([[0.0], np.cumsum(np.abs(self.values))]) * UP
        off = (len(self.knots) + 4) * U
        value, size = np.zeros_like(u), np.zeros_like(u)
        for start in range(0, len(u), 4096):
            some = slice(start, start + 4096)
            reach = np.maximum(u[some, None] - self.knots, 0.0)
            value[some], size[some] = reach @ self.values, reach @ np.abs(self.values)
        return value, running[count], off * size * UP, off * sizes[count]

    def slopes(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(smallest, largest) slope on [low, high]."""
        slopes = np.concatenate([[0.0], np.cumsum(self.values)])
        off = (len(self.knots) + 4) * U * np.concatenate([[0.0], np.cumsum(np.abs(self.values))]) * UP_FEW
        first = np.searchsorted(self.knots, low, side="left")
        last = np.searchsorted(self.knots, high, side="right")
        return -largest_between(off - slopes, first, last), largest_between(slopes + off, first, last)

    def range(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(smallest, largest) value on [low, high]: at an end or at a knot between. Sums up to `high` round the most."""
        ends, off = [self.line(low)[0], self.line(high)[0]], self.line(high)[2]
        least, most = np.minimum(*ends), np.maximum(*ends)
        first, last = np.searchsorted(self.knots, low, side="left"), np.searchsorted(self.knots, high, side="right") - 1
        some = first <= last
        if some.any():
            values = self.line(self.knots)[0]
            least[some] = np.minimum(least[some], -largest_between(-values, first[some], last[some]))
            most[some] = np.maximum(most[some], largest_between(values, first[some], last[some]))
        return least - off, most + off


@dataclass(frozen=True)
class Reach:
    """low ≤ H(a) − h(u) ≤ high, and the intervals of u that decide."""

    low: float
    high: float
    lowest: tuple[float, float]
    highest: tuple[float, float]


def outer_range(curve: Curve, outer: Node, span: tuple[float, float], spread: Spread, close: float = CLOSE) -> Reach:
    """Bounds on H(a) − h(u) for u in the span and a − u as far as it spreads there."""
    formula = Formula("", ("u",), (outer,))
    inside = curve.knots[(curve.knots > span[0]) & (curve.knots < span[1])]
    cuts = np.unique(np.concatenate([[span[0]], inside, [span[1]]]))
    lower, upper = cuts[:-1], cuts[1:]
    if not len(lower):
        lower = upper = np.array([span[0]])
    low, high, examined, lowest, highest = np.inf, -np.inf, 0, span, span
    for turn in range(ROUNDS):
        bottom, top, seen = _ranges(curve, formula, lower, upper, spread)
        examined += len(lower)
        least, most = min(low, float(seen.min())), max(high, float(seen.max()))
        slack = close * max(most - least, 0.0)
        wide = (bottom < least - slack) | (top > most + slack)
        wide &= (upper - lower) > 4 * np.spacing(np.maximum(np.abs(lower), np.abs(upper)))
        if turn == ROUNDS - 1 or examined + 2 * int(wide.sum()) > MOST_INTERVALS:
            wide[:] = False
        down, up = (int(np.where(wide, np.inf, end).argmin()) for end in (bottom, -top))
        if not wide[down] and bottom[down] < low:
            low, lowest = float(bottom[down]), (float(lower[down]), float(upper[down]))
        if not wide[up] and top[up] > high:
            high, highest = float(top[up]), (float(lower[up]), float(upper[up]))
        if not wide.any():
            break
        middle = (lower[wide] + upper[wide]) / 2
        lower, upper = np.concatenate([lower[wide], middle]), np.concatenate([middle, upper[wide]])
    off = 2 * curve.off * UP_FEW
    return Reach(low - off - U * abs(low), high + off + U * abs(high), lowest, highest)


def _ranges(
    curve: Curve, formula: Formula, lower: np.ndarray, upper: np.ndarray, spread: Spread
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(low, high) of H(a) − h(u) on intervals of u within one piece of H, and the same as seen at their middles."""
    space = Space(lower[:, None], upper[:, None])
    h: Enclosed = formula.tape.run(TaylorAlgebra(space))[0]
    value, slope, value_off, slope_off = curve.line(lower)
    line = space.variable(0) - space.constant(lower)
    H = line.times(slope, slope_off) + space.constant(value, value_off)
    bottom, top = (H - h.model).range()
    H_low, H_high = H.range()
    with np.errstate(all="ignore"):
        bottom = np.fmax(bottom, H_low - h.high - 2 * U * (np.abs(H_low) + np.abs(h.high)))
        top = np.fmin(top, H_high - h.low + 2 * U * (np.abs(H_high) + np.abs(h.low)))
        middle = (lower + upper) / 2
        (down, up), (less, more) = _moves(curve, spread, lower, upper), _moves(curve, spread, middle, middle)
        at = H.c[0] - np.asarray(evaluate(formula, middle[:, None]))[:, 0]
        at = np.where(np.isfinite(at), at, 0.0)
        bottom, top = bottom + down - 2 * U * np.abs(bottom), top + up + 2 * U * np.abs(top)
    bottom, top = np.where(np.isnan(bottom), -np.inf, bottom), np.where(np.isnan(top), np.inf, top)
    return bottom, top, np.concatenate([at + less, at + more])


def _moves(curve: Curve, spread: Spread, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of H(a) − H(u) for u in these intervals, each within one piece of H, from both of

    H(u + e) − H(u) = e·(slopes of H between a and u)
    H(u + e) − H(u) = H(lower + e) − H(lower) + (u − lower)·(slopes of H nearby − slope of the piece),

    of which the second is exact in the limit of short intervals, also next to a knot.
    """
    ends = spread.on(lower, upper)
    left = np.nextafter(lower + np.minimum(ends[0] * UP_FEW, 0.0), -np.inf)
    right = np.nextafter(upper + np.maximum(ends[1] * UP_FEW, 0.0), np.inf)
    flattest, steepest = curve.slopes(left, right)
    moves = np.stack([end * slope for end in ends for slope in (flattest, steepest)])
    down, up = (moves - 1e-12 * np.abs(moves)).min(axis=0), (moves + 1e-12 * np.abs(moves)).max(axis=0)
    lowest, highest = curve.range(
        np.nextafter(lower + ends[0] - U * np.abs(ends[0]), -np.inf),
        np.nextafter(lower + ends[1] + U * np.abs(ends[1]), np.inf),
    )
    at, slope, at_off, slope_off = curve.line(lower)
    width = (upper - lower) * UP_FEW
    falls, rises = (
        width * np.maximum(t, 0.0) * UP_FEW for t in (slope + slope_off - flattest, steepest - slope + slope_off)
    )
    off = at_off + 4 * U * (np.abs(lowest) + np.abs(highest) + np.abs(at))
    return np.maximum(down, lowest - at - off - falls), np.minimum(up, highest - at + off + rises)
