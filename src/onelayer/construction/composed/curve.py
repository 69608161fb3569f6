"""A piecewise linear function within a given distance of a function of one variable, with few knots.

The best one with n pieces on [a, b] has its knots where M(u) = ∫ √|h''| grows by equal steps, and an error of about (M/4n)².
So n ≈ M/(4√error); the values at the knots are found by linear programming, and n is raised until the error is met.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, hstack, vstack

FIRST_POINTS, DEPTH = 65, 44  # where h is looked at first; how often an interval is halved
FINE = 60  # h is sampled until the chords are off by this fraction of the error
MORE = 1.1  # factor on the number of pieces when the error is missed

Outer = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Polyline:
    """The piecewise linear function through (knots, values), its last pieces going on outside."""

    knots: np.ndarray
    values: np.ndarray
    error: float  # seen

    @property
    def slopes(self) -> np.ndarray:
        return np.diff(self.values) / np.diff(self.knots)

    @property
    def steepest(self) -> float:
        return float(np.abs(self.slopes).max())


def samples_of(h: Outer, low: float, high: float, error: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Points u with h(u), crowded where h bends: between them chords are off by less than error/FINE; None if h is not finite."""
    middle = (low + high) / 2
    u = np.linspace(_end(h, low, middle), _end(h, high, middle), FIRST_POINTS)
    y = h(u)
    done = np.zeros(len(u) - 1, dtype=bool)
    for _ in range(DEPTH):
        between = (u[:-1] + u[1:]) / 2
        at = h(between)
        off = np.abs(at - (y[:-1] + y[1:]) / 2)
        for share in (0.25, 0.75):  # beside a turning point the middle alone may look fine
            off = np.maximum(off, np.abs(h(u[:-1] + share * np.diff(u)) - y[:-1] - share * np.diff(y)))
        wide = ~done & (off > error / FINE) & (between > u[:-1]) & (between < u[1:])
        if not (np.isfinite(y).all() and np.isfinite(at).all()):
            return None
        if not wide.any():
            break
        order = np.argsort(np.concatenate([u, between[wide]]), kind="stable")
        grown, values = np.concatenate([u, between[wide]])[order], np.concatenate([y, at[wide]])[order]
        fresh = np.isin(grown[:-1], u[:-1][wide]) | np.isin(grown[:-1], between[wide])
        u, y, done = grown, values, ~fresh
        if len(u) > 50_000:
            return None
    return u, y


def _end(h: Outer, end: float, middle: float) -> float:
    """The end, or the nearest point to it on the way to the middle at which h is finite: rounding may lead beyond h's domain."""
    for step in (0.0, *(10.0**k for k in range(-16, -8))):
        u = end + step * (middle - end)
        if np.isfinite(h(np.array([u]))[0]):
            return u
    return end


def bends(u: np.ndarray, y: np.ndarray) -> np.ndarray:
    """M at the points: Σ √(|change of slope|·width)."""
    slopes, widths = np.diff(y) / np.diff(u), np.diff(u)
    turn = np.concatenate([[0.0], np.abs(np.diff(slopes)), [0.0]])
    own = np.sqrt(np.maximum((turn[:-1] + turn[1:]) / 2 * widths, 0.0))
    return np.concatenate([[0.0], np.cumsum(own)])


def fitted_polyline(u: np.ndarray, y: np.ndarray, error: float, most: int) -> Polyline | None:
    """A polyline within `error` of the samples, with at most this many pieces; None if that needs more."""
    M = bends(u, y)
    pieces = max(1, math.ceil(M[-1] / (4 * math.sqrt(error))))
    while pieces <= most:
        found = best_polyline(u, y, pieces, M)
        if found.error <= error:
            return found
        pieces = max(pieces + 1, math.ceil(MORE * pieces))
    return None


def best_polyline(u: np.ndarray, y: np.ndarray, pieces: int, M: np.ndarray | None = None) -> Polyline:
    """The values at knots of equal steps in M with the smallest largest error, by linear programming."""
    M = bends(u, y) if M is None else M
    inner = np.searchsorted(M, np.linspace(0, M[-1], pieces + 1)[1:-1])
    knots = u[np.unique(np.r_[0, inner, len(u) - 1])]  # samples, where the error is largest
    at = np.clip(np.searchsorted(knots, u, side="right") - 1, 0, len(knots) - 2)
    share = (u - knots[at]) / (knots[at + 1] - knots[at])
    rows = np.arange(len(u))
    hats = coo_matrix((np.r_[1 - share, share], (np.r_[rows, rows], np.r_[at, at + 1])), (len(u), len(knots))).tocsr()
    scale = float(np.ptp(y)) or 1.0
    ones = coo_matrix(np.ones((len(u), 1)))
    sides = vstack([hstack([hats, -ones]), hstack([-hats, -ones])]).tocsc()
    cost = np.r_[np.zeros(len(knots)), 1.0]
    middle = (y - y[0]) / scale
    solved = linprog(
        cost, sides, np.r_[middle, -middle], bounds=[(None, None)] * len(knots) + [(0, None)], method="highs"
    )
    values = solved.x[:-1] if solved.status == 0 else np.interp(knots, u, middle)
    found = y[0] + scale * values
    return Polyline(knots, found, float(np.abs(hats @ found - y).max()))
