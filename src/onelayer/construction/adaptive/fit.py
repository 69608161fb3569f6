"""Bumps for a function of one coordinate: their mesh by trial, their values by least squares, then the mesh corrected.

Where the error of the whole fit is above its share the cells become narrower, where it is far below they become wider, and all is
solved again, until the goal is met by as few bumps as that brings.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from .bumps import Row
from .spacing import FALLEN, ORDER, POINTS, Curve, Probe, chebyshev_points, mesh, meshed

OVERLAP = (
    0.62  # times 2π²/(log(1/share) + 3), at which what bumps alias is about the share of the range that is asked for
)
RIDGE = 1e-2  # times that share
NEGLIGIBLE = 12.0  # scores beyond log(1/share) + this leave nothing in least squares
PROBED = 0.6  # share of the goal, for a window
FIRST_LEVEL, FORECAST_LEVEL = 11, 8  # of the meshes on which a function is first looked at
ROUNDS, LAST_WIDER = 16, 4
WIDER_BELOW, NARROWER_ABOVE, AIMED_AT = 0.8, 0.85, 0.75  # shares of the goal
STRICTER = 0.85
NEIGHBOURS = 4  # cells on either side whose error counts
ROUGH_ORDER = 0.5  # in the place of ORDER where f is not smooth


@dataclass(frozen=True)
class RowFit:
    """A row of bumps with values, and the largest error seen."""

    row: Row
    values: Float[np.ndarray, "bump value out"]
    observed: float

    def __len__(self) -> int:
        return len(self.row)


def _shape(share: float) -> tuple[float, float, float]:
    """(overlap, ridge, scores that leave nothing) for an error of this share of the range."""
    digits = math.log(1 / min(share, 0.1))
    return OVERLAP * 2 * math.pi**2 / (digits + 3), RIDGE * math.exp(-digits), NEGLIGIBLE + digits


def forecast(f: Curve, places: np.ndarray, goal: float, spread: float, most: int) -> int:
    """About how many bumps it takes, or more than `most`."""
    overlap, ridge, _ = _shape(goal / spread)
    edges = mesh(f, places, PROBED * goal, Probe.of(overlap, ridge), most, FORECAST_LEVEL)
    return 2 * most if edges is None else len(edges) - 1


def fitted_row(
    f: Curve, places: np.ndarray, goal: float, spread: float, most: int, over: Callable[[], bool]
) -> RowFit | None:
    """Bumps with which an error of `goal` was met at all points that were looked at; None if that takes more than `most`."""
    overlap, ridge, fallen = _shape(goal / spread)
    edges = mesh(f, places, PROBED * goal, Probe.of(overlap, ridge), most, FIRST_LEVEL)
    best: RowFit | None = None
    inner, between = chebyshev_points(), chebyshev_points(2 * POINTS)[::2]
    for turn in range(ROUNDS):
        if edges is None or len(edges) > most or (over() and turn):
            break
        row, h = Row.on(edges, overlap), np.diff(edges)[:, None]
        u = edges[:-1, None] + h * inner
        y = f(u.ravel()).reshape(*u.shape, -1)
        c = row.solved(u, y, fallen, ridge)
        error = np.abs(row.at(c, u, fallen) - y).max(axis=(1, 2))
        if error.max() <= goal:
            u = edges[:-1, None] + h * between
            apart = np.abs(row.at(c, u, FALLEN) - f(u.ravel()).reshape(*u.shape, -1))
            error = np.maximum(error, apart.max(axis=(1, 2)))
        error = error / goal
        if error.max() <= 1 and (best is None or len(row) < len(best)):
            best = RowFit(row, c, float(error.max()) * goal)
        if best is not None and turn > LAST_WIDER:
            break
        near = np.maximum(_around(error), 1e-9)
        wider = np.clip(-np.log(near / WIDER_BELOW) / (2 * ORDER), 0.0, 0.1) * 0.7**turn if turn < LAST_WIDER else 0.0
        lower = STRICTER ** max(turn - LAST_WIDER, 0)  # or cells that were fine are not, one after the other
        rough = np.isin(edges, places[1:-1])
        rough = _around(rough[:-1] | rough[1:])
        order, farthest = np.where(rough, ROUGH_ORDER, ORDER), np.where(rough, 1.5, 0.4)
        narrower = np.maximum(-np.log(near / (AIMED_AT * lower)) / order - 0.02, -farthest)
        step = np.where(near > NARROWER_ABOVE * lower, narrower, wider)
        edges = meshed(edges, h[:, 0] * np.exp(step), places)
    return best


def _around(cells: Shaped[np.ndarray, " cell"]) -> Shaped[np.ndarray, " cell"]:
    """The largest value of every cell and its neighbours."""
    padded = np.pad(cells, NEIGHBOURS, mode="edge")
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1).max(axis=1))
