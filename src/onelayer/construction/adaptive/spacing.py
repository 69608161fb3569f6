"""How close together bumps must be to follow f: by trial on a reference window, one for all places and all widths.

At a place a window of cells of width h is fitted by least squares; what is left over in its middle tells whether h is fine
enough there. The matrix of the window is the same everywhere, so that a trial costs one product. Widths are tried in octaves:
those of a first mesh everywhere, coarser ones everywhere, finer ones only where the last one was too coarse, so that spikes are
found as soon as one sample of the first mesh sees them. Between octaves the logarithm of the error is interpolated. A width
counts only if the finer ones that were tried are good as well.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from .bumps import VALUES, Row

Curve = Callable[[Float[np.ndarray, " point"]], Float[np.ndarray, "point out"]]

POINTS = 3 * VALUES + 3  # of a cell
HALF = 6  # cells of the window on either side of the middle one
LEAST_LEVEL, MOST_LEVEL = 4, 60  # 2^level cells
FALLEN = 40.0  # scores from which a bump is nothing
GRADE = 0.25  # how much wider cells may become per unit of length
CELLS_AT_ONCE = 2**14


def chebyshev_points(count: int = POINTS) -> np.ndarray:
    """Points of a cell [0, 1], closer together near its ends."""
    return np.asarray((1 - np.cos(np.pi * (np.arange(count) + 0.5) / count)) / 2)


@dataclass(frozen=True)
class Probe:
    """What least squares leave over on a window of cells."""

    left_over: Float[np.ndarray, "cell point other sample"]  # the projection, on the rows of the middle cells

    @staticmethod
    def of(overlap: float, ridge: float) -> "Probe":
        cells = 2 * HALF + 1
        row = Row.on(np.arange(cells + 1.0), overlap)
        A = row.features(np.arange(cells)[:, None] + chebyshev_points(), slice(None))
        Q, _ = np.linalg.qr(np.concatenate([A, ridge * np.eye(A.shape[1])]))
        Q = Q[: len(A)]
        P = (np.eye(len(A)) - Q @ Q.T).reshape(cells, POINTS, cells, POINTS)
        return Probe(P)

    def errors(self, y: Float[np.ndarray, "window cell point out"], middle: np.ndarray) -> Float[np.ndarray, " window"]:
        """The largest error in the cell `middle` of every window and in its neighbours."""
        cells = self.left_over.shape[0]
        left = np.einsum("cpkq,wkqo->wcpo", self.left_over, y, optimize=True)
        near = np.abs(np.arange(cells) - middle[:, None]) <= 1
        return np.where(near[:, :, None, None], np.abs(left), 0.0).max(axis=(1, 2, 3))


@dataclass
class _Cells:
    """Cells of one level with what is known of the widths around them."""

    index: Int[np.ndarray, " cell"]
    error: Float[np.ndarray, " cell"]  # at this level
    widest: Int[np.ndarray, " cell"]  # the level from which on all are good; one more than this one if it is not
    good: Float[np.ndarray, " cell"]  # the error there,
    bad: Float[np.ndarray, " cell"]  # and at the level before

    def pick(self, which: np.ndarray) -> "_Cells":
        return _Cells(self.index[which], self.error[which], self.widest[which], self.good[which], self.bad[which])

    def finer(self, level: int, errors: np.ndarray, goal: float) -> "_Cells":
        """Both halves of every cell, which have these errors at `level`."""
        old = self.pick(np.repeat(np.arange(len(self.index)), 2))
        index = 2 * old.index + np.arange(len(old.index)) % 2
        fine, began = errors <= goal, old.widest == level
        widest = np.where(fine, old.widest, level + 1)
        good, bad = np.where(fine & began, errors, old.good), np.where(began, old.error, old.bad)
        return _Cells(index, errors, widest, good, bad)

    def wanted(self, goal: float) -> Float[np.ndarray, " cell"]:
        """The width that is wanted, in halvings of the whole."""
        with np.errstate(divide="ignore", invalid="ignore"):
            good, bad = np.log(np.maximum(self.good, 1e-300)), np.log(self.bad)
            share = np.clip((math.log(goal) - good) / (bad - good), 0.0, 1.0)
        return np.asarray(self.widest - np.where(self.widest > LEAST_LEVEL, np.nan_to_num(share), 0.0))


def spacing(f: Curve, lo: float, hi: float, goal: float, probe: Probe, most: int, first: int) -> np.ndarray | None:
    """The edges of a mesh on [lo, hi] whose cells are as wide as an error of `goal` allows; None if that takes too many.

    The first mesh has 2^first cells.
    """

    def errors(index: np.ndarray, level: int) -> np.ndarray:
        """The error of a window around every cell of a level."""
        count, window = 2**level, 2 * HALF + 1
        start = np.clip(index - HALF, 0, count - window)
        places, which = np.unique(start[:, None] + np.arange(window), return_inverse=True)
        u = lo + (hi - lo) / count * (places[:, None] + chebyshev_points())
        y = f(np.clip(u, lo, hi).ravel()).reshape(len(places), POINTS, -1)
        which = which.reshape(len(index), window)
        rows = range(0, len(index), CELLS_AT_ONCE)
        parts = [probe.errors(y[which[i : i + CELLS_AT_ONCE]], (index - start)[i : i + CELLS_AT_ONCE]) for i in rows]
        return np.nan_to_num(np.concatenate(parts), nan=np.inf)

    index = np.arange(2**LEAST_LEVEL)
    left = errors(index, LEAST_LEVEL)
    cells = _Cells(index, left, np.where(left <= goal, LEAST_LEVEL, LEAST_LEVEL + 1), left, left)
    leaves = list[tuple[np.ndarray, np.ndarray]]()
    for level in range(LEAST_LEVEL + 1, MOST_LEVEL):
        cells = cells.finer(
            level, errors(np.repeat(2 * cells.index, 2) + np.tile([0, 1], len(cells.index)), level), goal
        )
        if level < first:
            continue
        fine = cells.error <= goal
        done = cells.pick(fine)
        leaves.append((done.index / 2**level, 0.5 ** done.wanted(goal)))
        cells = cells.pick(~fine)
        if not len(cells.index):
            break
        if len(cells.index) > most:
            return None
    if len(cells.index):  # a jump, or a slope without end: these cells stay as fine as they are
        leaves.append((cells.index / 2**level, np.full(len(cells.index), 0.5**level)))
    left, wanted = (np.concatenate([leaf[i] for leaf in leaves]) for i in range(2))
    order = np.argsort(left)
    return meshed(lo + (hi - lo) * np.append(left[order], 1.0), (hi - lo) * wanted[order])


def meshed(edges: np.ndarray, wanted: Float[np.ndarray, " cell"]) -> np.ndarray:
    """A mesh between the same ends with cells as wide as is wanted at their places, and not much wider than their neighbours."""
    middle, slope = (edges[:-1] + edges[1:]) / 2, GRADE * (edges[:-1] + edges[1:]) / 2
    wanted = np.minimum.accumulate(wanted - slope) + slope  # from the left: h(x) ≤ h(x') + GRADE·|x − x'|
    wanted = np.minimum.accumulate((wanted + slope)[::-1])[::-1] - slope
    wanted = np.maximum(wanted, np.diff(edges)[np.argmin(np.diff(edges))] * 2.0**-8 + 0 * middle)
    total = np.concatenate([[0.0], np.cumsum(np.diff(edges) / wanted)])
    count = max(4, math.ceil(total[-1]))
    found = np.interp(np.linspace(0.0, total[-1], count + 1), total, edges)
    found[0], found[-1] = edges[0], edges[-1]
    return np.asarray(found)
