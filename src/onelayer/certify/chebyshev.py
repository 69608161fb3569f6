"""Chebyshev interpolation of degree p on [−1, 1]: nodes, the matrix to a finer grid, and the constants of its bounds.

Nodes cos θ_k, θ_k = (2k+1)π/(2p+2). At y = cos φ the interpolant is Σ_k B_k(φ) g_k with

    B_k(φ) = (1 + 2 Σ_{j=1}^p cos jφ cos jθ_k)/(p + 1).

Angles are reduced exactly (they are rational multiples of π), so a cosine is off by at most 5u and an entry of B by at
most (2p + 30)u.
"""

import math
from functools import cache

import numpy as np

U = 2.0**-53


def cosine(numerator: np.ndarray, denominator: int) -> np.ndarray:
    """cos(π·numerator/denominator) for integers, the angle first reduced to [0, π/2]."""
    a = np.mod(numerator, 2 * denominator)
    a = np.where(a > denominator, 2 * denominator - a, a)  # cos(2π − t) = cos t
    flip = 2 * a > denominator
    a = np.where(flip, denominator - a, a)  # cos(π − t) = −cos t
    return np.where(flip, -1.0, 1.0) * np.cos(math.pi * a / denominator)


@cache
def nodes(p: int) -> np.ndarray:
    """The p + 1 Chebyshev points of the first kind."""
    return cosine(2 * np.arange(p + 1) + 1, 2 * (p + 1))


@cache
def matrix(p: int, N: int) -> np.ndarray:
    """Values of the interpolant at N Chebyshev points of the first kind, from its p + 1 nodal values."""
    j = np.arange(1, p + 1)
    at_fine = cosine(np.outer(2 * np.arange(N) + 1, j), 2 * N)
    at_nodes = cosine(np.outer(2 * np.arange(p + 1) + 1, j), 2 * (p + 1))
    return (1 + 2 * at_fine @ at_nodes.T) / (p + 1)


def lebesgue(p: int) -> float:
    """Λ_p ≤ 1 + (2/π) ln(p + 1)."""
    return (1 + 2 / math.pi * math.log(p + 1)) * (1 + 1e-12)


def truncation(p: int, rho: float, dimension: int) -> float:
    """‖g − I_p g‖ ≤ this · V, if |g| ≤ V with one coordinate on its ellipse and the others real."""
    return sum(lebesgue(p) ** i for i in range(dimension)) * 4 * rho**-p / (rho - 1) * (1 + 1e-9)


def enlargement(p: int, N: int, dimension: int) -> float:
    """A polynomial of degree p < N in each variable is at most this times its maximum at N^D points (Ehlich–Zeller)."""
    return (1 / math.cos(p * math.pi / (2 * N)) * (1 + 1e-12)) ** dimension


def product_rounding(p: int, N: int, dimension: int) -> float:
    """Relative to max |g|: what floating point adds to the interpolant's values at the fine grid."""
    row = float(np.abs(matrix(p, N)).sum(axis=1).max()) * (1 + 1e-9)
    per_axis = (p + 1) * (2 * p + 30) * U + (p + 3) * U * row
    return dimension * per_axis * (row + 1e-6) ** (dimension - 1) * 1.01
