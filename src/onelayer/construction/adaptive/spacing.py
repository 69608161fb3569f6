"""How close together bumps must be to follow f: by trial on a reference window, one for all places and all widths.

At a place a window of cells of width h is fitted by least squares; what is left over in its middle tells whether h is fine
enough there. The matrix of the window is the same everywhere, so that a trial costs one product. Widths are tried in octaves:
those of a first mesh everywhere, coarser ones everywhere, finer ones only where the last one was too coarse, so that spikes are
found as soon as one sample of the first mesh sees them. Between octaves the logarithm of the error is interpolated. A width
counts only if the finer ones that were tried are good as well.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from .bumps import VALUES, Row

Curve = Callable[[Float[np.ndarray, " point"]], Float[np.ndarray, "point out"]]

POINTS = 3 * VALUES + 3  # of a cell
HALF = 6  # cells of the window on either side of the middle one
LEAST_LEVEL, MOST_LEVEL = 4, 100  # 2^level cells
FALLEN = 40.0  # scores from which a bump is nothing
GRADE = 0.25  # how much wider cells may become per unit of length
CELLS_AT_ONCE = 2**14
ORDER = 6  # errors go at least like this power of the width
MOST_WIDER = 2.0  # octaves beyond the coarsest level


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
            share = np.nan_to_num(np.clip((math.log(goal) - good) / (bad - good), 0.0, 1.0))
            wider = np.clip((math.log(goal) - good) / (ORDER * math.log(2)), 0.0, MOST_WIDER)
        return np.asarray(self.widest - np.where(self.widest > LEAST_LEVEL, share, wider))


def mesh(
    f: Curve, places: Float[np.ndarray, " place"], goal: float, probe: Probe, most: int, first: int
) -> Float[np.ndarray, " edge"] | None:
    """The edges of a mesh whose cells are as wide as an error of `goal` allows; None if that takes too many.

    It reaches from the first place to the last; between them are places where f may not be smooth: no cell has one inside, and
    cells become as narrow toward them as the numbers allow. The first meshes have 2^first cells together.
    """
    level = max(LEAST_LEVEL + 1, first - math.ceil(math.log2(len(places) - 1)))
    edges, wanted = [places[:1]], list[np.ndarray]()
    for i, (a, b) in enumerate(itertools.pairwise(places)):
        inner, outer = i > 0, i < len(places) - 2
        ways = [(a, (a + b) / 2), (b, (a + b) / 2)] if inner and outer else [(b, a)] if outer else [(a, b)]
        for anchor, end in ways:
            found = _spaced(f, anchor, end, goal, probe, most, level)
            if found is None:
                return None
            near, h = found
            edges.append(near[1:] if end > anchor else near[::-1][1:])
            wanted.append(h if end > anchor else h[::-1])
    return meshed(np.concatenate(edges), np.concatenate(wanted), places)


def _spaced(
    f: Curve, anchor: float, end: float, goal: float, probe: Probe, most: int, first: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """(edges from the anchor to the end, the widths that are wanted between them)."""
    lo, hi = min(anchor, end), max(anchor, end)

    def errors(index: np.ndarray, level: int) -> np.ndarray:
        """The error of a window around every cell of a level."""
        count, window = 2**level, 2 * HALF + 1
        start = np.clip(index - HALF, 0, count - window)
        cells, which = np.unique(start[:, None] + np.arange(window), return_inverse=True)
        u = anchor + (end - anchor) / count * (cells[:, None] + chebyshev_points())
        y = f(np.clip(u, lo, hi).ravel()).reshape(len(cells), POINTS, -1)
        which = which.reshape(len(index), window)
        rows = range(0, len(index), CELLS_AT_ONCE)
        parts = [probe.errors(y[which[i : i + CELLS_AT_ONCE]], (index - start)[i : i + CELLS_AT_ONCE]) for i in rows]
        return np.nan_to_num(np.concatenate(parts), nan=np.inf)

    finest = (hi - lo) / max(
        8 * np.spacing(abs(anchor)), (hi - lo) * 2.0**-MOST_LEVEL
    )  # cells that floats can tell apart
    index = np.arange(2**LEAST_LEVEL)
    coarse = errors(index, LEAST_LEVEL)
    cells = _Cells(index, coarse, np.where(coarse <= goal, LEAST_LEVEL, LEAST_LEVEL + 1), coarse, coarse)
    leaves = list[tuple[np.ndarray, np.ndarray]]()
    for level in range(LEAST_LEVEL + 1, max(int(math.log2(finest)), first) + 1):
        halves = np.repeat(2 * cells.index, 2) + np.tile([0, 1], len(cells.index))
        cells = cells.finer(level, errors(halves, level), goal)
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
    edges = anchor + (end - anchor) * np.append(left[order], 1.0)
    edges[-1] = end
    return edges, (hi - lo) * wanted[order]


def meshed(
    edges: Float[np.ndarray, " edge"], wanted: Float[np.ndarray, " cell"], places: Float[np.ndarray, " place"]
) -> Float[np.ndarray, " other"]:
    """A mesh with cells as wide as is wanted where they are, not much wider than their neighbours, and edges at the places."""
    middle = (edges[:-1] + edges[1:]) / 2
    slope = GRADE * middle
    wanted = np.minimum(wanted, np.minimum.accumulate(wanted - slope) + slope)  # h(x) ≤ h(x') + GRADE·|x − x'|
    wanted = np.minimum(wanted, np.minimum.accumulate((wanted + slope)[::-1])[::-1] - slope)
    wanted = np.maximum(wanted, 2.0**-8 * np.diff(edges))
    total = np.concatenate([[0.0], np.cumsum(np.diff(edges) / wanted)])
    ends, parts = np.interp(places, edges, total), [places[:1]]
    for (a, b), last in zip(itertools.pairwise(ends), places[1:], strict=True):
        count = max(math.ceil((b - a) * (1 - 1e-9)), 4 if len(places) == 2 else 1)
        parts.append(np.append(np.interp(np.linspace(a, b, count + 1)[1:-1], total, edges), last))
    return np.concatenate(parts)
