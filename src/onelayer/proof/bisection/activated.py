"""Activations on Taylor models: smooth ones read off their formulas, GELU by its own derivatives, ReLU between two lines."""

import math
from functools import cache

import numpy as np

from ...common.outward import UP
from ...formula import parse
from ...formula.taylor.bounds import LIBRARY, Bounds, bounded, erf, farthest
from ...formula.taylor.expansions import Expansion
from ...formula.taylor.formula import Enclosed, TaylorAlgebra
from ...formula.taylor.functions import applied
from ...formula.taylor.series import TINY, Taylor
from ...model.activations import ActivationFunction

GELU = "x1*(1 + erf(x1/sqrt(2)))/2"  # it has an expansion of its own, which is tighter
GELU_LOWEST = -0.16997121  # its minimum, at −0.7518, rounded down


def activated(phi: ActivationFunction, u: Taylor) -> Taylor:
    """φ(u)."""
    return applied(_gelu_expansion, _gelu_bounds, u) if phi.formula == GELU else _along(phi.formula, u)


def slope_at(phi: ActivationFunction, u: Taylor) -> Taylor:
    """φ'(u)."""
    return _along(phi.slope, u)


parsed = cache(parse)


class _Along(TaylorAlgebra):
    """A formula of one variable, at every entry of a Taylor model."""

    def __init__(self, u: Taylor) -> None:
        super().__init__(u.space)
        self.u, self.shape = u, u.shape

    def variable(self, index: int) -> Enclosed:
        return Enclosed(self.u, *self.u.range())


def _along(text: str, u: Taylor) -> Taylor:
    found: Enclosed = parsed(text).tape.run(_Along(u.flat()))[0]
    return found.model


def _gelu_bounds(low: np.ndarray, high: np.ndarray) -> Bounds:
    """Decreasing up to −0.7517…, increasing from −0.7518…."""
    ends = [0.5 * u * (1 + erf(u / math.sqrt(2))) for u in (low, high)]
    slip = 4 * LIBRARY * (np.abs(low) + np.abs(high)) + TINY
    least = np.where((low < -0.7517) & (high > -0.7519), GELU_LOWEST, np.minimum(*ends) - slip)
    return bounded(least, np.maximum(*ends) + slip, np.isfinite(low) & np.isfinite(high))


def _gelu_expansion(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """uΦ(u): Φ + uφ, φ(2 − u²), φ(u³ − 4u), φ(−u⁴ + 7u² − 4); the last quartic has an extremum 8.25 at u² = 3.5."""
    cumulative, density = (1 + erf(c / math.sqrt(2))) / 2, np.exp(-c * c / 2) / math.sqrt(2 * math.pi)
    near, far = farthest(low, high)
    a = [c * cumulative, cumulative + c * density, density * (2 - c * c) / 2, density * (c**3 - 4 * c) / 6]
    quartic = [np.abs(v**4 - 7 * v**2 + 4) for v in (near, far)]
    largest = np.maximum(np.maximum(*quartic), np.where((near**2 < 3.51) & (far**2 > 3.49), 8.26, 0.0))
    fourth = np.exp(-near * near / 2) / math.sqrt(2 * math.pi) * largest
    spread = density * (1 + c * c)
    sizes = [np.abs(c), 1 + np.abs(c) * spread, spread * (2 + c * c) / 2, spread * (np.abs(c) ** 3 + 4 * np.abs(c)) / 6]
    return a, sizes, np.fmin(fourth, 2.0) * UP + TINY


def relu_lines(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(λ, w) with λ u ≤ max(u, 0) ≤ λ u + w for u in [low, high]: λ = h/(h − l) and w = −λ l where the sign is not known."""
    with np.errstate(all="ignore"):
        share = np.where(high <= 0, 0.0, np.where(low >= 0, 1.0, high / (high - low)))
        width = np.where((low < 0) & (high > 0), -low * (high / (high - low)) + TINY, 0.0)
        known = np.isfinite(width) & np.isfinite(high - low)
    return np.where(known, share, 0.0), np.where(known, width, np.inf)
