"""Bins of a sum: how large Σ_i e_i can be where Σ_i g_i has a given value, from cells on which g_i and e_i are enclosed.

Let w be the width of a bin. A cell with g_i in [p, q] and e_i ≤ t is entered in the bins ⌊p/w⌋, …, ⌊q/w⌋, and top_i(k) is the
largest t entered in bin k, −∞ without any. The cells of a group cover its box, so e_i(x) ≤ top_i(k_i) for k_i = ⌊g_i(x)/w⌋.
With K = k_1 + … + k_n

    Σ_i e_i(x) ≤ C(K),  C(K) = max over k_1 + … + k_n = K of Σ_i top_i(k_i),    and    K ≤ Σ_i g_i(x)/w < K + n.

C is found by adding one group after the other: the cost is the product of two numbers of bins, not of all numbers of cells.
w is a power of two, so that quotients are exact and bins need no slack (`bin_of` sees to underflow).
"""

from dataclasses import dataclass

import numpy as np

from ...common.outward import U

UNKNOWN = 1e300  # in the place of ∞, which must not meet −∞
MOST_BINS = 2.0**40  # from 0 to any value
THINNEST, TINY = 1e-150, 1e-200  # bins are wider than the first; values below the second are moved


def width_for(ranges: list[np.ndarray], bins: int) -> float:
    """A power of two: the sums of values from all of these ranges, [cell, 2], fall into about this many bins, or fewer."""
    total, size = sum(float(np.ptp(r)) for r in ranges), max(float(np.abs(r).max()) for r in ranges)
    return float(2.0 ** np.ceil(np.log2(max(total / bins, size / MOST_BINS, THINNEST))))


def bin_of(values: np.ndarray, width: float) -> np.ndarray:
    """⌊value/width⌋, exactly. A quotient might underflow to 0, so tiny values become ±TINY, in the same bin, 0 or −1."""
    moved = np.where(np.abs(values) < TINY, np.sign(values) * TINY, values)
    return np.floor(moved / width)


@dataclass(frozen=True)
class Binned:
    """One group: the bins of its cells, and top(k) for the bins from `first` on."""

    bins: np.ndarray  # [cell, 2]: the first and the last bin of a cell
    errors: np.ndarray  # e ≤ errors on a cell, [cell]
    first: int
    top: np.ndarray

    @staticmethod
    def of(values: np.ndarray, errors: np.ndarray, width: float) -> "Binned":
        """From the ranges of g, [cell, 2], and upper bounds of e, [cell]."""
        bins = bin_of(values, width).astype(np.int64)
        first, count = int(bins[:, 0].min()), bins[:, 1] - bins[:, 0] + 1
        top = np.full(int(bins[:, 1].max()) - first + 1, -np.inf)
        starts = np.repeat(bins[:, 0] - first - np.cumsum(count) + count, count)
        errors = np.where(errors < UNKNOWN, errors, UNKNOWN)
        np.maximum.at(top, starts + np.arange(len(starts)), np.repeat(errors, count))
        return Binned(bins, errors, first, top)

    def cell(self, k: int) -> int:
        """The cell that decides in bin k, counted from `first`."""
        own = (self.bins[:, 0] <= k + self.first) & (k + self.first <= self.bins[:, 1])
        return int(np.where(own, self.errors, -np.inf).argmax())


@dataclass(frozen=True)
class Tops:
    """C, rounding included, for K from `first` on."""

    groups: tuple[Binned, ...]
    partial: tuple[np.ndarray, ...]  # C of the first groups alone, one more each time; the last is rounded upward
    first: int

    @staticmethod
    def of(groups: list[Binned]) -> "Tops":
        partial = [groups[0].top]
        for group in groups[1:]:
            partial.append(_largest_sums(partial[-1], group.top))
        known = [np.abs(g.top[np.abs(g.top) < UNKNOWN]).max(initial=0.0) for g in groups]
        partial[-1] = partial[-1] + 4 * len(groups) * U * float(sum(known))
        return Tops(tuple(groups), tuple(partial), sum(g.first for g in groups))

    @property
    def values(self) -> np.ndarray:
        return self.partial[-1]

    def cells(self, place: int) -> list[int]:
        """Cells, one of each group, whose errors add up to C at this place."""
        found = list[int]()
        for group, before in zip(reversed(self.groups[1:]), reversed(self.partial[:-1]), strict=True):
            k = np.arange(max(0, place - len(before) + 1), min(len(group.top), place + 1))
            own = int(k[(group.top[k] + before[place - k]).argmax()])
            found.append(group.cell(own))
            place -= own
        return [self.groups[0].cell(place), *reversed(found)]


def _largest_sums(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """max over i + j = k of one_i + two_j, for every k."""
    long, short = (one, two) if len(one) >= len(two) else (two, one)
    found = np.full(len(one) + len(two) - 1, -np.inf)
    for k, more in enumerate(short.tolist()):
        if more > -np.inf:
            own = found[k : k + len(long)]
            np.maximum(own, long + more, out=own)
    return found
