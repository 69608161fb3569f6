"""How many Chebyshev coefficients reach a given error: as a full tensor, by total degree, and by keeping the largest.

A sum over groups of variables, f = Σ_g f_g(x_g), has a series for every group, and the range of what is left out of f is
the sum of the groups' ranges; so eight variables cost no more than their groups.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onelayer.experiments.peers.chebyshev import grid
from onelayer.proof.analytic.chebyshev import along, coefficients, cosine, nodes
from onelayer.target.domain import End
from onelayer.target.groups import groups_of
from onelayer.target.target import Target, target_of

MAX_VALUES = 2**20  # of f, at the nodes of one group
MAX_DEGREE = 2**10  # along an axis
REFERENCE_ERROR = 0.1  # error of the reference series, as a share of the error in question
ROUNDING = 1e-13  # no series is trusted to be closer than this, relative to the size of f

Sides = Sequence[tuple[End, End]] | Mapping[str, tuple[End, End]]


class Counts(NamedTuple):
    """Numbers of coefficients; None where no degree that fits in memory reaches the error."""

    tensor: int | None  # degrees below n in each of D variables: n^D
    total_degree: int | None  # degrees with a sum of at most d: (d + D choose D)
    best_n: int | None  # the largest coefficients


class GroupSeries(NamedTuple):
    """The summand of one group: its values on a grid that holds faces and corners, and the coefficients of its series."""

    values: np.ndarray
    series: np.ndarray

    def left_out(self, kept: np.ndarray | float) -> tuple[float, float]:
        """(smallest, largest) value on the grid of the summand minus its series with only the coefficients kept."""
        points, degrees = len(self.values), len(self.series)
        cosines = cosine(np.outer(np.arange(points), np.arange(degrees)), points - 1)
        rest = self.values - along(cosines, (self.series * kept)[None], self.series.ndim)[0]
        return float(rest.min()), float(rest.max())


def chebyshev_counts(f: "str | Callable[[Any], Any] | Target", domain: Sides | None, error: float) -> Counts:
    """How many coefficients a Chebyshev series of f needs for a sup error, observed on dense grids; outputs add up.

    Sizes are found by bisection, which assumes that errors do not rise with size.
    """
    target = target_of(f, domain)
    found = [_counts(_summands(target, output, error), target.dimension, error) for output in range(target.outputs)]
    return Counts(*(None if None in entry else sum(entry) for entry in zip(*found, strict=True)))


def _summands(target: Target, output: int, error: float) -> list[GroupSeries]:
    """The summands, with degrees high enough for this error, or as high as memory allows."""
    groups = groups_of(target) or [(0,)]
    parts: list[GroupSeries] = []
    for group in groups:
        # f = Σ_g f(x_g, centre elsewhere) − (groups − 1) f(centre)
        less = float(target.centre[output]) if parts else 0.0

        def values(axis: np.ndarray, group: tuple[int, ...] = group, less: float = less) -> np.ndarray:
            unit = np.full((len(axis) ** len(group), target.dimension), 0.5)
            unit[:, group] = grid([(axis + 1) / 2] * len(group))
            return (target(target.domain.points(unit))[:, output] - less).reshape((len(axis),) * len(group))

        D = len(group)
        most = min(MAX_DEGREE, math.floor(MAX_VALUES ** (1 / D) + 1e-9))
        n = min(8, most)
        while True:
            at_nodes = values(nodes(n - 1))
            fine = max(2, min(2 * n + 1, math.floor((2 * MAX_VALUES) ** (1 / D))))
            on_grid = values(cosine(np.arange(fine), fine - 1))
            part = GroupSeries(on_grid, along(coefficients(n - 1), at_nodes[None], D)[0])
            goal = max(REFERENCE_ERROR * error / len(groups), ROUNDING * float(np.abs(at_nodes).max()))
            if n == most or max(map(abs, part.left_out(1.0))) <= goal:
                break
            n = min(n + n // 2, most)
        parts.append(part)
    first = (0,)
    for part in parts[1:]:  # one constant for all
        shift = part.series[first * part.series.ndim]
        parts[0].series[first * parts[0].series.ndim] += shift
        parts[0].values[...] += shift
        part.values[...] -= shift
        part.series[first * part.series.ndim] = 0.0
    return parts


def _counts(parts: list[GroupSeries], dimension: int, error: float) -> Counts:
    indices = [np.indices(part.series.shape) for part in parts]
    sizes = np.concatenate([np.abs(part.series).ravel() for part in parts])
    rank = np.empty(len(sizes), dtype=int)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    ends = np.cumsum([part.series.size for part in parts])[:-1]
    ranks = [r.reshape(part.series.shape) for r, part in zip(np.split(rank, ends), parts, strict=True)]
    highest = max(len(part.series) for part in parts)

    def reached(kept: list[np.ndarray]) -> bool:
        ranges = [part.left_out(keep) for part, keep in zip(parts, kept, strict=True)]
        return max(-sum(low for low, _ in ranges), sum(high for _, high in ranges)) <= error

    def below(n: int) -> bool:
        return reached([np.asarray((index < n).all(axis=0)) for index in indices])

    def up_to(d: int) -> bool:
        return reached([index.sum(axis=0) <= d for index in indices])

    def largest(n: int) -> bool:
        return reached([r < n for r in ranks])

    n = _smallest(1, highest, below)
    if n is None:  # all coefficients together do not reach the error
        return Counts(None, None, None)
    d = _smallest(0, max(sum(part.series.shape) for part in parts), up_to)
    best = _smallest(1, len(sizes), largest)
    return Counts(n**dimension, None if d is None else math.comb(d + dimension, dimension), best)


def _smallest(low: int, high: int, passes: Callable[[int], bool]) -> int | None:
    """The smallest number from low to high that passes, if larger ones pass whenever smaller ones do."""
    if not passes(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle + 1, high)
    return low
