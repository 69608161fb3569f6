"""The boxes behind a proof: which of them contain a point, and what is proved there.

A proof writes g = T − f as a sum of functions g_k of some coordinates, and covers the domain of each with boxes on which
low ≤ g_k ≤ high is proved: one g_k of all coordinates (`bisection`), or one for every group of them (`analytic`). A point x
lies in one box for every g_k, so |T − f| ≤ max |Σ g_k| + extra at every point of the domain in the same boxes. That is often
far less than the bound of the certificate, which has to hold in the worst boxes as well.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ..common.errors import InputError
from ..common.outward import UP, U
from ..formula import holds
from ..target.domain import Domain

ENDS = ("lower", "upper", "low", "high")


@dataclass(frozen=True)
class Patch:
    """Boxes in some coordinates (from 0), in the units of x: low ≤ g ≤ high is proved on each for one summand g of T − f."""

    coordinates: tuple[int, ...]
    lower: Float[np.ndarray, "box coordinate"]
    upper: Float[np.ndarray, "box coordinate"]
    low: Float[np.ndarray, "box out"]
    high: Float[np.ndarray, "box out"]

    def __len__(self) -> int:
        return len(self.lower)

    def box_at(self, x: Float[np.ndarray, " variable"]) -> int | None:
        """The box that contains x, the one with the smallest bound where several touch; None if there is none."""
        own = x[list(self.coordinates)]
        around = np.flatnonzero(((self.lower <= own) & (own <= self.upper)).all(axis=1))
        if not len(around):
            return None
        sizes = np.maximum(self.high[around], -self.low[around]).max(axis=1)
        return int(around[sizes.argmin()])


@dataclass(frozen=True)
class Covering:
    """Patches whose functions add up to T − f, and what is added to every output everywhere in the domain."""

    patches: tuple[Patch, ...]
    extra: Float[np.ndarray, " out"]  # rounding of the deployed model; kinks proved apart
    domain: Domain
    everywhere: float  # the bound of the proof

    def __len__(self) -> int:
        """The number of boxes."""
        return sum(map(len, self.patches))

    def bound(self, x: Any) -> float:
        """Proved: |T − f| is at most this wherever the boxes that contain x meet the domain; ∞ where there are none.

        The norm is the maximum over the outputs.
        """
        boxes = self._boxes_at(x)
        if boxes is None:
            return math.inf
        ranges = [(p.low[b], p.high[b]) for p, b in zip(self.patches, boxes, strict=True)]
        return min(bound_of_sum(ranges, self.extra), self.everywhere)

    def at(self, x: Any) -> list[dict[str, Any]]:
        """The boxes that contain x, one of every patch, with what is proved there; none where nothing is proved about x."""
        boxes = self._boxes_at(x)
        if boxes is None:
            return []
        return [
            {"coordinates": list(p.coordinates)} | {end: getattr(p, end)[b].tolist() for end in ENDS}
            for p, b in zip(self.patches, boxes, strict=True)
        ]

    def record(self, most: int) -> dict[str, Any] | None:
        """Everything as lists, for JSON, None in place of ∞; None if there are more than `most` boxes."""
        if len(self) > most:
            return None
        return {
            "everywhere": self.everywhere if math.isfinite(self.everywhere) else None,
            "extra": _listed(self.extra),
            "patches": [
                {"coordinates": list(p.coordinates)} | {end: _listed(getattr(p, end)) for end in ENDS}
                for p in self.patches
            ],
        }

    def _boxes_at(self, x: Any) -> list[int] | None:
        """One box of every patch that contains x; None if x is outside the domain, or in no box of some patch."""
        point, within = self._point(x), self.domain.within
        if not ((self.domain.lower <= point) & (point <= self.domain.upper)).all():
            return None
        if within is not None and holds(within, point.tolist()) is False:
            return None
        boxes: list[int] = []
        for patch in self.patches:
            found = patch.box_at(point)
            if found is None:
                return None
            boxes.append(found)
        return boxes

    def _point(self, x: Any) -> Float[np.ndarray, " variable"]:
        asked, change = f"a point of {self.domain.dimension} numbers", "pass one point, all variables in row order"
        try:
            point = np.array(x, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise InputError(asked, type(x).__name__, change) from None
        if len(point) != self.domain.dimension:
            raise InputError(asked, f"{len(point)}", change)
        return point


def bound_of_sum(ranges: Sequence[tuple[np.ndarray, np.ndarray]], extra: np.ndarray) -> float:
    """max |Σ g| over the outputs from the ranges (low, high) of the summands g, and `extra`; ∞ unless it is a number."""
    low, high = sum(r[0] for r in ranges), sum(r[1] for r in ranges)
    bound = float((np.maximum(high, -low) * UP + _adding(ranges) + extra).max()) * UP
    return bound if math.isfinite(bound) else math.inf


def range_of_sum(ranges: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of Σ g from the ranges of the summands g, rounded outward; infinite where that is no number."""
    low, high = (np.sum([r[end] for r in ranges], axis=0) for end in (0, 1))
    with np.errstate(invalid="ignore"):
        off = _adding(ranges) * UP
        low, high = np.nextafter(low - off, -np.inf), np.nextafter(high + off, np.inf)
    good = np.isfinite(low) & np.isfinite(high)
    return np.where(good, low, -np.inf), np.where(good, high, np.inf)


def _adding(ranges: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """What the rounding of a sum of ranges can cost: offsets may cancel."""
    return np.asarray(len(ranges) * 2 * U * sum(np.maximum(np.abs(a), np.abs(b)) for a, b in ranges))


def _listed(numbers: np.ndarray) -> Any:
    """As lists, None in place of what is not finite."""
    found = numbers.astype(object)
    found[~np.isfinite(numbers)] = None
    return found.tolist()
