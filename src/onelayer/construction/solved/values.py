"""Values by convex optimisation: fixed heads, least squares, then toward the smallest maximum.

The features of fixed heads are Φ(x); values c minimise the weighted ridge problem

    Σ_i w_i |Φ(x_i) c − y_i|² + μ N Σ_k |s_k c_k|²,    s_k the norm of column k,

solved by QR (Cholesky on the Gram matrix with refinement when there are many features). Two loops lower the maximum:
Lawson's reweighting w_i ← w_i |r_i|, and the exchange, which adds the worst points of a large pool to the sample. μ is
raised until Σ|c| is bounded. Errors found here are *observed* on points; they prove nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.machine import one_thread
from ...target.group_samples import GroupSamples

Features = Callable[[Tensor], Tensor]
VALUES_CAP = 1e3  # ranges of f that Σ|c| may reach, about
GRAM_FROM = 1500  # features from which the Gram matrix is cheaper than QR
ENTRIES_AT_ONCE = 2**27  # of features, beside those that are kept: a gigabyte
POOL_ENTRIES_AT_ONCE = 2**22  # of features on the pool
ONE_THREAD_BELOW = 10**6  # entries of the least-squares matrix: with fewer, one thread is quicker
KEPT_POOL_ENTRIES = 5 * 10**7  # of features on the pool, at most, to be kept between steps


@dataclass(frozen=True)
class Problem:
    """Features to combine, points to fit on and a larger pool to look for the worst error on, with the target's values."""

    features: Features
    points: Float[Tensor, "point coordinate"]
    values: Float[Tensor, "point out"]
    pool: Float[Tensor, "pool coordinate"]
    pool_values: Float[Tensor, "pool out"]

    @staticmethod
    def of(samples: GroupSamples, features: Features, pool: tuple[Tensor, Tensor]) -> "Problem":
        """Features to fit on 2.5 points each, with a pool that was drawn before."""
        K = features(pool[0][:1]).shape[1]
        points, values = samples.sample(max(500, int(2.5 * K)), 7 + samples.seed)
        return Problem(features, points, values, *pool)

    def to(self, device: str) -> "Problem":
        """The same on another device; the features follow the points they are given."""
        moved = (t.to(device) for t in (self.points, self.values, self.pool, self.pool_values))
        return Problem(self.features, *moved)


@dataclass(frozen=True)
class Solution:
    """Coefficients with the maximum absolute error observed on the pool, and Σ|c| (its largest over the outputs)."""

    coefficients: Float[Tensor, "feature out"]
    observed: float
    total: float


def solve(
    problem: Problem,
    *,
    cap: float = VALUES_CAP,
    most: float = math.inf,
    exchanges: int = 2,
    reweightings: int = 6,
    device: str = "cpu",
    over: Callable[[], bool] = lambda: False,
) -> Solution:
    """The best coefficients found: least squares, Lawson steps and exchanges; Σ|c| ≤ cap·range, ≤ most where possible.

    Once it is `over` the best ones so far are taken.
    Everything is computed on the device; the coefficients come back to the CPU.
    """
    problem = problem.to(device)
    width = problem.features(problem.points[:1]).shape[1]
    spread = float(problem.values.max() - problem.values.min()) or 1.0
    with one_thread(len(problem.points) * width < ONE_THREAD_BELOW):
        found = _solve(problem, min(cap * spread, most), exchanges, reweightings, over)
    return Solution(found.coefficients.cpu(), found.observed, found.total)


def _solve(problem: Problem, cap: float, exchanges: int, reweightings: int, over: Callable[[], bool]) -> Solution:
    points, values = problem.points, problem.values
    on_pool = _pool_errors(problem, kept=bool(exchanges or reweightings))
    best: Solution | None = None
    for exchange in range(exchanges + 1):
        phi = _all_features(problem.features, points)
        weights = torch.ones_like(phi[:, 0])
        c, ridge = _smallest_ridge(phi, values, cap, over)
        for step in range(reweightings + 1):
            c = least_squares(phi, values, weights, ridge) if step else c
            residual = (phi @ c - values).abs().amax(dim=1)
            found = on_pool(c)
            candidate = Solution(c, float(found.max()), float(c.abs().sum(dim=0).max()))
            if best is None or candidate.observed < best.observed:
                best = candidate
            if over():
                return best
            weights = weights * residual / residual.mean().clamp_min(1e-300) + 1e-6
            weights = weights / weights.mean()
        if exchange == exchanges or float(found.max()) <= 1.15 * float(residual.max()):
            break
        worst = found.topk(min(max(len(points) // 12, 8), len(found))).indices
        points = torch.cat([points, problem.pool[worst]])
        values = torch.cat([values, problem.pool_values[worst]])
    assert best is not None
    return best


def least_squares(
    phi: Float[Tensor, "point feature"], y: Float[Tensor, "point out"], weights: Float[Tensor, " point"], ridge: float
) -> Float[Tensor, "feature out"]:
    """argmin_c Σ w_i |φ_i c − y_i|² + ridge·N Σ |s_k c_k|², column norms s_k."""
    K = phi.shape[1]
    if K > GRAM_FROM:
        return Gram.of(phi, y, weights).solved(ridge)
    root = weights.sqrt()[:, None]
    A, b = phi * root, y * root
    scale = A.norm(dim=0).clamp_min(1e-300)
    A = A / scale
    stacked = torch.cat([A, math.sqrt(ridge * len(A)) * torch.eye(K, dtype=A.dtype, device=A.device)])
    right = torch.cat([b, b.new_zeros(K, b.shape[1])])
    Q, R = torch.linalg.qr(stacked)
    return torch.linalg.solve_triangular(R, Q.T @ right, upper=True) / scale[:, None]


@dataclass(frozen=True)
class Gram:
    """ΦᵀWΦ with columns of norm 1, added up piece by piece, so that nothing as large as Φ is held beside it."""

    phi: Float[Tensor, "point feature"]
    y: Float[Tensor, "point out"]
    weights: Float[Tensor, " point"]
    gram: Float[Tensor, "feature feature"]
    scale: Float[Tensor, " feature"]

    @classmethod
    def of(cls, phi: Tensor, y: Tensor, weights: Tensor) -> "Gram":
        gram, root = phi.new_zeros(phi.shape[1], phi.shape[1]), weights.sqrt()[:, None]
        rows = max(1, ENTRIES_AT_ONCE // phi.shape[1])
        for part, by in zip(phi.split(rows), root.split(rows), strict=True):
            some = part * by
            gram.addmm_(some.T, some)
        scale = gram.diagonal().sqrt().clamp_min(1e-300)
        return cls(phi, y, weights, gram.div_(scale).div_(scale[:, None]), scale)

    def solved(self, ridge: float) -> Float[Tensor, "feature out"]:
        """The coefficients: Cholesky, three steps of iterative refinement on the residual."""
        penalty = ridge * len(self.phi)
        floor = max(penalty, 1e-14 * float(self.gram.diagonal().sum()))
        self.gram.diagonal().add_(floor)
        factor = torch.linalg.cholesky(self.gram)
        self.gram.diagonal().sub_(floor)
        c = torch.cholesky_solve(self._onto(self.y), factor)
        for _ in range(3):
            left = self.y - self.phi @ (c / self.scale[:, None])
            c = c + torch.cholesky_solve(self._onto(left) - penalty * c, factor)
        return c / self.scale[:, None]

    def _onto(self, values: Tensor) -> Tensor:
        return self.phi.T @ (values * self.weights[:, None]) / self.scale[:, None]


def _smallest_ridge(phi: Tensor, y: Tensor, cap: float, over: Callable[[], bool]) -> tuple[Tensor, float]:
    """Coefficients and the smallest ridge, up to a factor of 10, that keeps Σ|c| below the cap (1e-4 if none does)."""
    even = torch.ones_like(phi[:, 0])
    gram = Gram.of(phi, y, even) if phi.shape[1] > GRAM_FROM else None

    def fits(exponent: int) -> tuple[Tensor, bool]:
        ridge = 10.0**exponent
        c = least_squares(phi, y, even, ridge) if gram is None else gram.solved(ridge)
        return c, float(c.abs().sum(dim=0).max()) <= cap

    for coarse in range(-16, -3, 3):
        best, good = fits(coarse)
        if good or coarse == -4 or over():
            break
    if coarse == -16 or over():
        return best, 10.0**coarse
    for finer in (coarse - 2, coarse - 1):
        c, good = fits(finer)
        if good:
            return c, 10.0**finer
    return best, 10.0**coarse


def _all_features(features: Features, points: Tensor) -> Float[Tensor, "point feature"]:
    """Φ, filled piece by piece."""
    width = features(points[:1]).shape[1]
    rows = max(1, ENTRIES_AT_ONCE // width)
    if len(points) <= rows:
        return features(points)
    phi = points.new_empty(len(points), width)
    for first in range(0, len(points), rows):
        phi[first : first + rows] = features(points[first : first + rows])
    return phi


def _pool_errors(problem: Problem, kept: bool) -> Callable[[Tensor], Float[Tensor, " pool"]]:
    """c ↦ |Φ c − f| on the pool, the largest over the outputs; a NaN counts as infinite. Φ is kept if it is used again."""
    width = problem.features(problem.pool[:1]).shape[1]
    rows = max(1, POOL_ENTRIES_AT_ONCE // width)
    pieces = list(zip(problem.pool.split(rows), problem.pool_values.split(rows), strict=True))
    kept = kept and len(problem.pool) * width <= KEPT_POOL_ENTRIES
    stored = [problem.features(x) for x, _ in pieces] if kept else None

    def errors(c: Tensor) -> Tensor:
        parts = [
            ((stored[i] if stored else problem.features(x)) @ c - y).abs().amax(dim=1)
            for i, (x, y) in enumerate(pieces)
        ]
        return torch.cat(parts).nan_to_num(nan=torch.inf)

    return errors
