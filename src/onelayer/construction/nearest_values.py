"""Values on a grid by linear algebra: solved for, then rounded one after another, each time with the others solved for again.

With √W Φ = QR

    Σ_i w_i |Φ(x_i) c − y_i|² = |R c − Qᵀ√W y|² + const,

and rounding c_K, then c_(K−1) with c_K as it is now, and so on, is back substitution with a rounding after each step (Babai's
nearest plane). What is left at the end is Σ_k (R_kk δ_k)², δ_k the rounding of c_k. The features overlap so much that most R_kk
are small; columns are ordered so that R_kk times the spacing of the grid is as even as possible. The weights w are Lawson's, from
the solution off the grid. Steps of single numbers to a neighbour on the grid then lower the maximum itself.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..layer.grid import Grid

REWEIGHTINGS = 8
RIDGES = (1e-24, 1e-18, 1e-12)  # per point and squared norm of a column: how much a value is held where it was
DEAD = 1e-6  # share of the largest column: one that is smaller is held as if it were this large
ROUNDING = 2.0**-22  # about, in float32: a few units of rounding
MOST_STEPS = 100  # of single numbers


@dataclass(frozen=True)
class GridColumns:
    """How the numbers of a solution are rounded, column by column: grid, digits, largest number, and which ones they are."""

    parts: list[tuple[Grid, int, float, Tensor]]

    def rounded(self, c: Tensor) -> Tensor:
        found = torch.empty_like(c)
        for grid, digits, largest, at in self.parts:
            found[at] = grid.in_digits(c[at], digits, largest)
        return found

    def spacing(self, c: Tensor) -> Tensor:
        found = torch.empty_like(c)
        for grid, digits, largest, at in self.parts:
            found[at] = grid.spacing(c[at], digits, largest)
        return found

    def one(self, k: int) -> tuple[Grid, int, float]:
        """How number k is rounded."""
        return next((grid, digits, largest) for grid, digits, largest, at in self.parts if k in at)


def nearest_values(
    phi: Float[Tensor, "point value"],
    y: Float[Tensor, " point"],
    off_grid: tuple[Tensor, Tensor],
    columns: GridColumns,
    start: Tensor,
) -> Float[Tensor, " value"]:
    """Values on the grid with about the smallest maximum of |Φ c − y|; `off_grid` are the values and weights of `reweighted`."""
    c, weights = off_grid
    found = [_nearest(phi, y, w, ridge, c, columns) for w in (weights, torch.ones_like(weights)) for ridge in RIDGES]
    found = [t for t in (*found, columns.rounded(start)) if bool(t.isfinite().all())]
    return _stepped(phi, y, min(found, key=lambda t: _judged(phi, y, t)), columns)


def reweighted(phi: Tensor, y: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """(values off the grid, weights): of Lawson's reweighting, those with the smallest maximum."""
    weights = torch.ones_like(y)
    best, found = math.inf, (start, weights)
    for _ in range(REWEIGHTINGS):
        Q, R, b = _factored(phi, y, weights, RIDGES[1], start)
        c = torch.linalg.solve_triangular(R, (Q.T @ b)[:, None], upper=True)[:, 0] + start
        residual = (y - phi @ c).abs()
        if float(residual.max()) < best:
            best, found = float(residual.max()), (c, weights)
        weights = weights * residual / residual.mean().clamp_min(1e-300) + 1e-6
        weights = weights / weights.mean()
    return found


def _factored(phi: Tensor, y: Tensor, weights: Tensor, ridge: float, start: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(Q, R, b) of the weighted problem for c − start, its ridge included."""
    root = weights.sqrt()
    A = phi * root[:, None]
    norms = A.norm(dim=0)
    held = torch.diag(norms.clamp_min(DEAD * float(norms.max()) + 1e-300) * math.sqrt(ridge * len(A)))
    Q, R = torch.linalg.qr(torch.cat([A, held]))
    return Q, R, torch.cat([(y - phi @ start) * root, y.new_zeros(len(held))])


def _nearest(phi: Tensor, y: Tensor, weights: Tensor, ridge: float, start: Tensor, columns: GridColumns) -> Tensor:
    """Values on the grid: back substitution in which every number is rounded before the next one is solved for."""
    order = _even_order(phi * weights.sqrt()[:, None] * columns.spacing(start))
    Q, R, b = _factored(phi[:, order], y, weights, ridge, start[order])
    z, c = Q.T @ b, start.clone()
    moved = torch.zeros_like(start)  # c − start, in the order of the factor
    kinds = [columns.one(int(k)) for k in order]
    for i in range(len(order) - 1, -1, -1):
        k = order[i]
        value = start[k] + (z[i] - R[i, i + 1 :] @ moved[i + 1 :]) / R[i, i]
        grid, digits, largest = kinds[i]
        c[k] = grid.in_digits(value[None], digits, largest)[0]
        moved[i] = c[k] - start[k]
    return c


def _even_order(A: Tensor) -> Tensor:
    """The order of columns in which |R_kk| of A = QR is about even: each time the column with the least that is new."""
    gram = A.T @ A
    left, order = gram.diagonal().clone(), []
    rows = torch.zeros_like(gram)
    for i in range(len(gram)):
        k = int(left.argmin())
        order.append(k)
        rows[i] = (gram[k] - rows[:i, k] @ rows[:i]) / left[k].clamp_min(1e-300).sqrt()
        left = left - rows[i].square()
        left = left.clamp_min(1e-14 * gram.diagonal())
        left[order] = math.inf
    return torch.tensor(order)


def _stepped(phi: Tensor, y: Tensor, c: Tensor, columns: GridColumns) -> Tensor:
    """Single numbers moved to neighbours on the grid as long as that lowers the largest error."""
    residual = y - phi @ c
    worst = float(residual.abs().max())
    for _ in range(MOST_STEPS):
        step = columns.spacing(c)
        down, up = ((residual[:, None] + s * phi * step).abs().amax(dim=0) for s in (1.0, -1.0))
        k = int(torch.minimum(down, up).argmin())
        moved = c.clone()
        moved[k] += step[k] if up[k] <= down[k] else -step[k]
        moved = columns.rounded(moved)
        after = y - phi @ moved
        if not float(after.abs().max()) < worst:
            break
        c, residual, worst = moved, after, float(after.abs().max())
    return c


def _judged(phi: Tensor, y: Tensor, c: Tensor) -> float:
    """The largest error, and about what float32 arithmetic adds to it: it is in proportion to what the values can contribute."""
    return float((y - phi @ c).abs().max() + ROUNDING * (phi.abs().amax(dim=0) @ c.abs()))
