"""The proof that an interpolation stores its samples: |T(x_i) − y_i| ≤ residual, rounding included, in any order of sums.

All is read from the weights of the model, in whichever dtype; u is its unit roundoff, γ_p = pu/(1 − pu). For a sample x let

    z   = Σ u_jk x̂_jk, exactly, from x̂ as the model computes it (elementwise operations are the same everywhere)
    t   = z in float64, rounded to the dtype;        M = Σ |u_jk x̂_jk|
    ẑ   = what the model computes:  |ẑ − t| ≤ δ = γ_(d+n) M + γ_D(2^−53) M + |t − z in float64|     (a sum of D = dn products)
    F   = the function of the FFN with the stored weights, exactly;  L = its largest |slope| on [t − δ, t + δ]
    G   = Σ |a_i| relu(s_i (τ − k_i)), at most, for τ in [t − δ, t + δ];  K = how many of these ReLUs can be above 0

Every product passes one rounding of its ReLU, its own, at most K − 1 of the sum, and one when y_c is added. So

    |T(x) − y| ≤ |F(t) − y| + Lδ + γ_(K+2) (G + |y_c|)                           interpolation, projection, rounding

F(t) = α_p + β_p t on the piece p of t. Slopes β and intercepts α are prefix sums of a_i and −a_i k_i, in whole numbers
without any error; G is a sum of positive numbers. All of it is linear in N. Adding and multiplying by 0 and 1 is exact, and
so is attention: exp(0) = 1 and exp(−800) = 0. Underflow adds some multiples of the smallest normal number.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from ...common.outward import UP_MANY
from ...layer.arithmetic import FLOAT64, Arithmetic, arithmetic_of
from ...model.transformer import SingleLayerTransformer
from .interpolation import Interpolation, interpolation_of


@dataclass(frozen=True, eq=False)
class Residual:
    """Proved terms of |T(x_i) − y_i| for every sample, in the output where they are worst together."""

    interpolation: Float[np.ndarray, " sample"]
    projection: Float[np.ndarray, " sample"]
    rounding: Float[np.ndarray, " sample"]

    @property
    def total(self) -> Float[np.ndarray, " sample"]:
        return (self.interpolation + self.projection + self.rounding) * UP_MANY

    def worst(self) -> dict[str, float]:
        """The terms at the worst sample."""
        i = int(self.total.argmax())
        names = ("interpolation", "projection", "rounding")
        return {name: float(getattr(self, name)[i]) * UP_MANY for name in names}


def residual_of(
    model: SingleLayerTransformer, x: Float[np.ndarray, "sample coordinate"], y: Float[np.ndarray, "sample out"]
) -> Residual:
    """The terms at the samples (x, y), x being rounded to the model's dtype first; infinite for any other model."""
    f, arithmetic = interpolation_of(model), arithmetic_of(model.W_E.dtype)
    unproved = Residual(*[np.full(len(x), np.inf)] * 3)
    if f is None:
        return unproved
    t, delta, size = projections(f, x, arithmetic)
    if not (np.isfinite(t).all() and size < arithmetic.overflow / 8):
        return unproved
    order = np.argsort(f.knots, kind="stable")
    knots, signs, values = f.knots[order], f.signs[order], f.values[order]
    missed, steep = _exact(f.base, (knots, signs, values), t, y)
    low, high = np.nextafter(t - delta, -np.inf), np.nextafter(t + delta, np.inf)
    projection = delta * _largest(steep, np.searchsorted(knots, low), np.searchsorted(knots, high, "right"))
    right, left = signs > 0, signs < 0
    G_right, K_right = _amplitude(knots[right], np.abs(values[right]), high)
    G_left, K_left = _amplitude(-knots[left][::-1], np.abs(values[left][::-1]), -low)
    G, K = (G_right + G_left + np.abs(f.base)) * UP_MANY, (K_right + K_left)[:, None]
    rounding = gamma(K + 2, arithmetic.u) * G
    rounding = rounding + 2 * arithmetic.smallest * (np.abs(values).sum(axis=0) + K + 1)
    reach = np.abs(t) + delta + np.abs(knots).max(initial=0.0)  # of what enters a ReLU
    rounding = np.where((arithmetic.overflow / 8 > G) & (arithmetic.overflow / 8 > reach)[:, None], rounding, np.inf)
    at = np.arange(len(x)), (missed + rounding).argmax(axis=1)
    return Residual(missed[at], projection, rounding[at])


def projections(
    f: Interpolation, x: Float[np.ndarray, "sample coordinate"], arithmetic: Arithmetic
) -> tuple[Float[np.ndarray, " sample"], Float[np.ndarray, " sample"], float]:
    """(t, δ, size): where the samples are projected, how far from there the model can see them, the largest number met."""
    hat = f.frame(torch.tensor(x).to(arithmetic.dtype)).double().numpy()
    u, (n, d) = f.directions.ravel(), f.directions.shape
    z = hat @ u
    t = z.astype(np.float32).astype(np.float64) if arithmetic.dtype == torch.float32 else z
    M = (np.abs(hat) @ np.abs(u)) * UP_MANY
    flushed = np.abs(u) @ (np.array(f.frame.scale) + 1) + n * d + n  # numbers that may underflow
    gammas = gamma(np.array(d + n), arithmetic.u) + gamma(np.array(n * d), FLOAT64.u)
    delta = (gammas * M + np.abs(t - z) + 4 * arithmetic.smallest * flushed) * UP_MANY
    return t, delta, float(max(M.max(initial=0.0), np.abs(hat).max(initial=0.0), np.abs(u).max(initial=0.0)))


def gamma(p: np.ndarray, u: float) -> np.ndarray:
    """γ_p = pu/(1 − pu): a product of p factors within 1 ± u is within 1 ± γ_p; infinite from pu = ½ on."""
    return np.where(p * u < 0.5, p * u / (1 - np.minimum(p * u, 0.5)), np.inf)


def _exact(
    base: np.ndarray, units: tuple[np.ndarray, np.ndarray, np.ndarray], t: np.ndarray, y: np.ndarray
) -> tuple[Float[np.ndarray, "sample out"], Float[np.ndarray, " piece"]]:
    """(|F(t_i) − y_i|, the largest |slope| over the outputs on every piece), rounded up from whole numbers."""
    knots, signs, values = units
    a, a_grid = _integers(values)
    kt, t_grid = _integers(np.concatenate([knots, t])[:, None])
    yb, y_grid = _integers(np.concatenate([y, base[None]]))
    k, t_int = kt[: len(knots)], kt[len(knots) :]
    grid = min(a_grid + t_grid, y_grid)
    bend, shift = a * k, y_grid - grid
    left = (signs < 0)[:, None]
    first_slope, first_intercept = -np.where(left, a, 0).sum(axis=0), np.where(left, bend, 0).sum(axis=0)
    slope = np.concatenate([first_slope[None], first_slope + np.cumsum(a, axis=0)])
    intercept = np.concatenate([first_intercept[None], first_intercept - np.cumsum(bend, axis=0)])
    piece = np.searchsorted(knots, t)
    F = (slope[piece] * t_int + intercept[piece]) * (1 << (a_grid + t_grid - grid))
    missed = np.abs(F + (yb[-1] - yb[:-1]) * (1 << shift))
    return _upward(missed, grid), _upward(np.abs(slope).max(axis=1), a_grid)


def _largest(
    of: Float[np.ndarray, " piece"], first: Int[np.ndarray, " sample"], last: Int[np.ndarray, " sample"]
) -> Float[np.ndarray, " sample"]:
    """The largest entry from `first` to `last`, both included, for every pair."""
    ends = np.stack([first, last + 1], axis=1).ravel()
    return np.maximum.reduceat(np.append(of, 0.0), ends)[::2]


def _amplitude(
    knots: Float[np.ndarray, " unit"], sizes: Float[np.ndarray, "unit out"], at: Float[np.ndarray, " sample"]
) -> tuple[Float[np.ndarray, "sample out"], Int[np.ndarray, " sample"]]:
    """(Σ sizes·relu(at − knot), how many of these ReLUs are above 0), up to UP_MANY, for sorted knots."""
    active = np.searchsorted(knots, at)
    if not len(knots):
        return np.zeros((len(at), sizes.shape[1])), active
    slope = np.concatenate([np.zeros_like(sizes[:1]), np.cumsum(sizes, axis=0)])
    height = np.concatenate([np.zeros_like(sizes[:1]), np.cumsum(slope[1:-1] * np.diff(knots)[:, None], axis=0)])
    before = np.maximum(active - 1, 0)
    return height[before] + slope[active] * np.maximum(at - knots[before], 0.0)[:, None], active


def _integers(x: Float[np.ndarray, "row column"]) -> tuple[np.ndarray, int]:
    """(whole numbers, grid) with x = whole number · 2^grid, exactly."""
    mantissa, exponent = np.frexp(x)
    whole, power = np.ldexp(mantissa, 53).astype(np.int64), exponent.astype(np.int64) - 53
    grid = int(power[whole != 0].min(initial=0)) if whole.any() else 0
    lifted = [w << (p - grid) if w else 0 for w, p in zip(whole.ravel().tolist(), power.ravel().tolist(), strict=True)]
    found = np.empty(x.size, dtype=object)
    found[:] = lifted
    return found.reshape(x.shape), grid


def _upward(whole: np.ndarray, grid: int) -> np.ndarray:
    """Whole numbers · 2^grid as float64, never less than they are."""
    lost = [max(int(w).bit_length() - 53, 0) for w in whole.ravel()]
    top = [(w >> s) + (s > 0) for w, s in zip(whole.ravel().tolist(), lost, strict=True)]
    with np.errstate(over="ignore", under="ignore"):
        found = np.ldexp(np.array(top, dtype=np.float64), np.array(lost, dtype=np.int64) + grid)
    return np.where(np.array(top) > 0, np.maximum(found, FLOAT64.smallest), 0.0).reshape(whole.shape)
