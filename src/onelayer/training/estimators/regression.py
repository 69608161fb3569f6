"""Regression: noisy samples → a layer of ridge gates and a linear part, solved; held-out error chooses its size and shrinkage.

    T(x) = bias + z·linear + Σ_r c_r σ(a_r·z + b_r),        z = (x − mean)/spread

The gates are random: directions a are normal, and each gate is centred at a sample. The values (linear, c) minimise
Σ w |y − T(x)|² + α(|linear|² + |c|²), where a gate counts by its slope at its centre. One singular value decomposition gives the
held-out error of every sample for every α in closed form (leave-one-out: the residual divided by 1 − its leverage). The linear
model is always among the candidates, and a layer with gates is preferred only if its advantage exceeds its standard error.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from ...layer.assemble import frame_of
from ...layer.heads import Ridges
from ...layer.layer import MemoryLayer, memory_layer
from .rows import Rows, carried

SHRINKAGES = np.logspace(3, -7, 41)  # α per unit of weight, the strongest first: from a constant fit to almost none
SHARPNESS = (0.5, 1.0, 2.0, 4.0)  # of a typical gate across one spread of the samples: almost linear to almost a step
SIZES = (4, 16, 64, 256)  # numbers of gates to choose from
SLOPE = 0.25  # slope of σ at 0
SMALLEST_REMAINDER = 1e-10  # 1 − leverage counts as at least this


@dataclass(frozen=True, eq=False)
class Gating:
    """Ridge gates in units of the samples' spread; `sharpness` is that of a typical gate."""

    directions: Float[np.ndarray, "gate coordinate"]
    offsets: Float[np.ndarray, " gate"]
    sharpness: float

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def factor(self) -> float:
        """Gives a typical gate slope one, like a coordinate."""
        return 1 / (SLOPE * self.sharpness)

    def features(self, z: Float[np.ndarray, "sample coordinate"]) -> Float[np.ndarray, "sample feature"]:
        """The coordinates, then the gates."""
        from scipy.special import expit  # importing it changes the warning filters: only when used

        return np.concatenate([z, self.factor * expit(z @ self.directions.T + self.offsets)], axis=1)


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Gates with values, the α they were solved with, and the error of every sample when it is held out."""

    gating: Gating
    alpha: float
    bias: Float[np.ndarray, " out"]
    values: Float[np.ndarray, "feature out"]
    held_out: Float[np.ndarray, "sample out"]  # in units of the answers' spread

    def errors(self, rows: Rows) -> Float[np.ndarray, " sample"]:
        """Weighted squared held-out error of every sample."""
        return rows.weights * (self.held_out**2).sum(axis=1)


def standardised(rows: Rows) -> tuple[Float[np.ndarray, "sample coordinate"], Float[np.ndarray, "sample out"]]:
    """(z, answers) with mean 0 and spread 1."""
    middle, per_spread = rows.units
    mean, spread = rows.answer_units
    return (rows.x - middle) * per_spread, (rows.y - mean) / spread


def random_gates(rows: Rows, count: int, sharpness: float, seed: int) -> Gating:
    """Random gates, centred at samples; fewer gates are the first of more."""
    rng = np.random.default_rng(seed)
    z, _ = standardised(rows)
    D = z.shape[1]
    choice = rng.random(count)  # drawn by share of the weight
    centres = z[np.minimum(np.searchsorted(np.cumsum(rows.weights), choice * rows.total), len(z) - 1)]
    directions = sharpness / math.sqrt(D) * rng.standard_normal((count, D)) * (rows.units[1] > 0)
    return Gating(directions, -(directions * centres).sum(axis=1), sharpness)


def solve_values(rows: Rows, gating: Gating, alphas: Float[np.ndarray, " alpha"]) -> RidgeFit:
    """The values for the α with the smallest leave-one-out error. A constant is fitted too, and not shrunk."""
    from scipy.linalg import svd

    z, y = standardised(rows)
    features = gating.features(z)
    root, share = np.sqrt(rows.weights)[:, None], rows.weights / rows.total
    mean_f, mean_y = share @ features, share @ y
    A, B = root * (features - mean_f), root * (y - mean_y)
    U, S, Vt = svd(A, full_matrices=False, lapack_driver="gesvd")
    UB = U.T @ B
    best: tuple[float, float, np.ndarray] | None = None
    for alpha in alphas:
        kept = S**2 / (S**2 + alpha)
        leverage = (U**2) @ kept + share
        held = (B - U @ (kept[:, None] * UB)) / np.maximum(1 - leverage, SMALLEST_REMAINDER)[:, None]
        error = float((held**2).sum())
        if best is None or error < best[0]:
            best = error, float(alpha), held / root
    assert best is not None
    _, alpha, held_out = best
    values = Vt.T @ ((S / (S**2 + alpha))[:, None] * UB)
    return RidgeFit(gating, alpha, mean_y - mean_f @ values, values, held_out)


def solved_fit(rows: Rows, units: int | None, alpha: float | None, seed: int) -> RidgeFit:
    """The candidate with the smallest held-out error, with `units` gates and this α where they are given."""
    alphas = rows.total * SHRINKAGES if alpha is None else np.array([float(alpha)])
    most = max(SIZES) if units is None else units
    sizes = [size for size in SIZES if size <= min(most, len(rows) // 2)] if units is None else [units]
    linear = best = solve_values(rows, random_gates(rows, 0, 1.0, seed), alphas)
    if units == 0:
        return linear
    gates = [random_gates(rows, size, sharpness, seed) for size in sizes for sharpness in SHARPNESS]
    candidates = [solve_values(rows, gating, alphas) for gating in gates]
    if units is not None:
        return min(candidates, key=lambda c: float(c.errors(rows).sum()))
    for candidate in candidates:
        errors = candidate.errors(rows)
        if errors.sum() < best.errors(rows).sum() and clearly_less(errors, linear.errors(rows)):
            best = candidate
    return best


def clearly_less(errors: Float[np.ndarray, " sample"], others: Float[np.ndarray, " sample"]) -> bool:
    """Whether the mean is smaller by more than the standard error of the differences, sample by sample."""
    difference = others - errors
    return bool(difference.sum() > math.sqrt(len(difference)) * difference.std())


def layer_of(fitted: RidgeFit, rows: Rows) -> MemoryLayer:
    """The layer in normalised coordinates of the samples' box, and in units of the answers."""
    frame = frame_of(rows.hull)
    mean, spread = rows.answer_units
    D = rows.x.shape[1]
    linear, constant = carried(fitted.values[:D].T, rows, frame)
    directions, offsets = carried(fitted.gating.directions, rows, frame)
    bias = mean + spread * (fitted.bias + constant)
    values = spread * fitted.gating.factor * fitted.values[D:]
    ridges = Ridges(torch.from_numpy(directions), torch.from_numpy(fitted.gating.offsets + offsets))
    gates = (ridges, torch.from_numpy(values)) if len(ridges) else None
    linear = np.ascontiguousarray((linear * spread[:, None]).T)
    return memory_layer(torch.from_numpy(bias), D, ridges=gates, linear=torch.from_numpy(linear))
