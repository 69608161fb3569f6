"""Chebyshev interpolation of degree p on [−1, 1]: nodes, coefficients, values, and the constants of its bounds.

Nodes y_k = cos θ_k, θ_k = (2k+1)π/(2p+2). The interpolant of g is Σ_j a_j T_j(y), T_j(cos φ) = cos jφ, with

    a_j = (2 − [j = 0])/(p + 1) · Σ_k g(y_k) cos jθ_k.

Angles are reduced exactly (they are rational multiples of π), so a computed cosine is off by at most 5u.
"""

import math
from functools import cache

import numpy as np

from ...common.outward import UP_FEW, U


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
def coefficients(p: int) -> np.ndarray:
    """Coefficients of the interpolant from its values at the nodes, [degree, node]; no row sums to more than 2 in size."""
    found = 2 * cosine(np.outer(np.arange(p + 1), 2 * np.arange(p + 1) + 1), 2 * (p + 1)) / (p + 1)
    found[0] /= 2
    return found


@cache
def values(q: int, N: int) -> np.ndarray:
    """Values at N Chebyshev points of the first kind from coefficients up to degree q, [point, degree]."""
    return cosine(np.outer(2 * np.arange(N) + 1, np.arange(q + 1)), 2 * N)


def along(matrix: np.ndarray, tensor: np.ndarray, dimension: int) -> np.ndarray:
    """The matrix applied along axes 1 … dimension of the tensor."""
    for axis in range(1, dimension + 1):
        tensor = np.moveaxis(np.tensordot(tensor, matrix, axes=([axis], [1])), -1, axis)
    return tensor


def lebesgue(p: int) -> float:
    """Λ_p ≤ 1 + (2/π) ln(p + 1)."""
    return (1 + 2 / math.pi * math.log(p + 1)) * UP_FEW


def enlargement(q: int, N: int, dimension: int) -> float:
    """A polynomial of degree q < N in each variable is at most this times its maximum at N^D points (Ehlich–Zeller)."""
    return (1 / math.cos(q * math.pi / (2 * N)) * UP_FEW) ** dimension


def rounding(p: int, dimension: int) -> float:
    """Relative to max |g| at the nodes: what floating point adds to the sum of some computed coefficients' sizes and of the
    values of the polynomial of the others.

    Per axis the matrix of the coefficients has row sums of at most 2, off by 14u; so after D axes a coefficient is off by
    at most 2^D·D(p + 9)u max|g|, and all (p + 1)^D of them together by (2(p + 1))^D·D(p + 9)u max|g|. Values sum them with
    factors of at most 1, off by 5u, which adds (2(p + 1))^D·D(p + 7)u max|g|. Twice the sum, since the range of the
    values is enlarged by less than 1.8 (N ≥ 3q, D ≤ 4).
    """
    return (2 * (p + 1)) ** dimension * dimension * (4 * p + 60) * U * 1.01
