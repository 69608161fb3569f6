"""Other norms of T − f, from both sides: the root mean square over the domain, and the supremum of |T − f|/w.

The domain is cut into tiles. On a tile, Taylor models (`bisection`) give T − f = p(t) + e with a cubic p on t ∈ [−1, 1]^D and
|e| ≤ r. The mean of p² is a quadratic form of its coefficients, since the mean of t^n is 1/(n + 1) for even n and 0 for odd n.
By the triangle inequality the root mean square of T − f on the tile is within r of that of p, and

    Σ share·low²  ≤  mean |T − f|²  ≤  Σ share·high²,        max low  ≤  sup |T − f|  ≤  max high,

where `high` is at most the supremum on the tile, and `low`, a mean, is at most that too. Tiles whose two ends are furthest
apart are halved until the whole is known well enough. Lower ends are about the real function of the weights; upper ends hold
for the computed answers as well.

A Taylor model speaks of a cube C that is larger than its tile B by rounding: with ρ = |B|/|C| the means of p² over the two
differ by at most (1 − ρ) max p².
"""

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ..common.budget import Budget
from ..common.errors import InputError
from ..common.machine import one_thread
from ..common.outward import UP, UP_FEW, U
from ..common.progress import Progress
from ..formula.taylor.formula import TaylorAlgebra
from ..formula.taylor.series import TINY, Space, Taylor, monomials
from ..target.target import Target
from .bisection.frontier import Frontier, smear
from .bisection.prove import MOST_COORDINATES, BranchAndBound
from .two_sided import Supremum

LEAST_SHARE = 2.0**-1000  # of the volume: smaller ones count as much in the upper end, and nothing in the lower one
SHARE_OF_WORST = 0.125  # tiles are halved together if their ends are at least this share of the largest gap apart


def norm_of(
    search: BranchAndBound, found: Supremum, p: float, weight: Target | None, budget: Budget, progress: Progress | None
) -> Supremum:
    """[lower, upper] around the norm, p = 2 or ∞, within the accuracy of `found` if the budget allows it."""
    _require_box(search.target)
    lower, upper = (np.array([end]) for end in (search.target.domain.lower, search.target.domain.upper))
    with one_thread(True):
        tiles = _Tiles.of(search, lower, upper, p, weight)
        boxes = 1
        while True:
            found = replace(found, lower=tiles.lower, upper=tiles.upper, boxes=boxes, method="bisect")
            apart = tiles.apart(found.accuracy)
            worst = np.flatnonzero((apart > 0) & (apart >= SHARE_OF_WORST * apart.max()) & tiles.cut.divisible)
            if found.reached or budget.over(boxes) or not len(worst):
                return found.unless_contradicted()
            if progress:
                progress("integrating" if p == 2 else "certifying", min(1.0, budget.elapsed / budget.seconds))
            worst = worst[np.argsort(-apart[worst])[: search.at_once]]
            low, high, _ = tiles.cut.pick(worst).halves()
            tiles = tiles.without(worst).with_more(_Tiles.of(search, low, high, p, weight))
            boxes += len(low)


def _require_box(target: Target) -> None:
    if target.domain.within is not None:
        raise InputError("a norm over a box", "a domain with a condition `within`", "give a box, or use `ol.supremum`")
    if target.formula is None and target.modulus.kind == "estimated":
        change = "give a formula, or `lipschitz=` or `modulus=` to Target(…)"
        raise InputError("a target that is known everywhere", f"a {target.kind} without a declared modulus", change)
    if target.dimension > MOST_COORDINATES:
        found = f"{target.dimension} variables"
        raise InputError(f"a target of at most {MOST_COORDINATES} variables", found, "use `ol.supremum`")


@dataclass(frozen=True)
class _Tiles:
    """Tiles of the domain: where to cut them, their share of its volume, and the two ends of the norm on each."""

    p: float
    cut: Frontier  # its `bound` is the upper end
    low: np.ndarray
    share: np.ndarray  # at least LEAST_SHARE

    @classmethod
    def of(
        cls, search: BranchAndBound, lower: np.ndarray, upper: np.ndarray, p: float, weight: Target | None
    ) -> "_Tiles":
        space = Space(lower, upper)
        behind, lows, highs = np.zeros((space.dimension, space.boxes)), [], []
        for g, size, off in search.differences(space):
            low, high = root_mean_square(g)
            lows.append(low)
            highs.append(np.fmin(high + off, size) * UP_FEW if p == 2 else size)
            behind = np.maximum(behind, smear(g))
        least, most = _bounds(weight, space)
        mean = _root_mean if p == 2 else lambda t: np.max(t, axis=0)
        with np.errstate(all="ignore"):
            low, high = mean(lows) / most / UP, mean(highs) / least * UP
        share = np.maximum(np.prod((upper - lower) / search.target.domain.sides, axis=1), LEAST_SHARE)
        high = np.where(np.isnan(high), np.inf, high)
        cut = Frontier(lower, upper, high, search.cut_axis(space, behind))
        return cls(p, cut, np.minimum(np.nan_to_num(low, posinf=0.0), high), share)

    @property
    def lower(self) -> float:
        return self._whole(np.where(self.share > LEAST_SHARE, self.low, 0.0) if self.p == 2 else self.low) / UP

    @property
    def upper(self) -> float:
        return self._whole(self.cut.bound) * UP

    def _whole(self, ends: np.ndarray) -> float:
        most = float(ends.max())
        if self.p != 2 or not 0.0 < most < math.inf:
            return most
        return most * math.sqrt(float(self.share @ np.square(ends / most)))  # squares of numbers up to 1 may vanish

    def apart(self, accuracy: float) -> np.ndarray:
        """What each tile adds to the distance of the two ends."""
        high = self.cut.bound
        if self.p != 2:
            return np.where(high / (1 + accuracy) > self.low.max(), high, 0.0)
        with np.errstate(all="ignore"):
            most = high.max()
            return self.share * np.where(np.isfinite(high), (high / most) ** 2 - (self.low / most) ** 2, np.inf)

    def without(self, rows: np.ndarray) -> "_Tiles":
        kept = np.delete(np.arange(len(self.low)), rows)
        return _Tiles(self.p, self.cut.pick(kept), self.low[kept], self.share[kept])

    def with_more(self, other: "_Tiles") -> "_Tiles":
        low, share = (np.concatenate([getattr(t, name) for t in (self, other)]) for name in ("low", "share"))
        return _Tiles(self.p, self.cut.with_more(other.cut), low, share)


def _root_mean(sizes: list[np.ndarray]) -> np.ndarray:
    """The root mean square over the outputs, relative to the largest, whose square cannot vanish."""
    most = np.max(sizes, axis=0)
    unit = np.where((most > 0) & np.isfinite(most), most, 1.0)
    return np.asarray(unit * np.sqrt(np.mean(np.square(sizes / unit), axis=0)))


def root_mean_square(g: Taylor) -> tuple[np.ndarray, np.ndarray]:
    """[box]: both ends of the root mean square of g over every box; 0 and ∞ where nothing is known."""
    flat, space = g.flat(), g.space
    c, K = flat.c, len(flat.c)
    with np.errstate(all="ignore"):
        whole = np.abs(c).sum(axis=0)
        unit = np.where((whole > 0) & np.isfinite(whole), np.exp2(np.frexp(whole)[1] - 1.0), 1.0)
        c, size = c / unit, whole / unit  # at most 2: what vanishes in a square is below TINY
        square = np.einsum("kb,kl,lb->b", c, _moments(space.dimension), c)
        filled = np.prod((space.upper - space.lower) / (2 * space.half), axis=1) / UP_FEW  # ρ, from below
        off = ((1 - filled) + 2 * (K * K + 4) * U) * size**2 * UP_FEW + TINY
        low = np.sqrt(np.maximum(square - off, 0.0)) * unit / UP_FEW - flat.r * UP_FEW - TINY
        high = np.sqrt(np.maximum(square, 0.0) + off) * unit * UP_FEW + flat.r * UP_FEW + TINY
    good = np.isfinite(low) & np.isfinite(high)
    return np.where(good, np.maximum(low, 0.0), 0.0), np.where(good, high, np.inf)


@cache
def _moments(D: int) -> np.ndarray:
    """[monomial, monomial]: the mean of t^k t^l over [−1, 1]^D, for the monomials of Taylor models."""
    exponents = monomials(D).exponents
    sums = exponents[:, None] + exponents[None]
    return np.where((sums % 2 == 0).all(axis=2), 1 / np.prod(sums + 1, axis=2), 0.0)


def _bounds(weight: Target | None, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """w on every box from below (0 where it is not proved to be positive), and |w| from above."""
    if weight is None:
        return np.ones(space.boxes), np.ones(space.boxes)
    assert weight.formula is not None
    w = weight.formula.tape.run(TaylorAlgebra(space))[0]
    low, high = w.model.range()
    least, most = np.fmax(low, w.low), np.fmin(high, w.high)
    if len(bad := np.flatnonzero(most < 0)):
        near = ", ".join(f"{c:.6g}" for c in (space.lower[bad[0]] + space.upper[bad[0]]) / 2)
        change = "give a weight above 0 on the whole box, such as 1 + abs(x1)"
        raise InputError("a weight that is positive on the box", f"{weight.text} below 0 near ({near})", change)
    size = np.maximum(np.abs(least), np.abs(most))  # NaN where either is
    return np.maximum(np.nan_to_num(least, nan=0.0), 0.0), np.where(np.isnan(size), np.inf, size)
