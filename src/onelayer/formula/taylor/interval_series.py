"""Power series with intervals for coefficients, many at once: arithmetic, and functions by their differential equations.

A series is (low, high), both [order + 1, coordinate, box]; coefficients beyond its order are 0. Sums of products are
widened by `SLIP` relative to the sizes of their terms, which covers their rounding.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from .bounds import Bounds, power_bounds
from .series import TINY

SLIP = 1e-14
Series: TypeAlias = tuple[np.ndarray, np.ndarray]
# from coefficients 0 … j of y that of order j of something
Coefficients: TypeAlias = Callable[[list[Bounds], int], Bounds]


def outward(low: Any, high: Any, size: Any) -> Bounds:
    return low - SLIP * size - TINY, high + SLIP * size + TINY


def product_of_ranges(x: tuple[Any, Any], y: tuple[Any, Any]) -> Bounds:
    """The product of intervals, not yet rounded outward."""
    ends = x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1]
    return reduce(np.minimum, ends), reduce(np.maximum, ends)


def total(low: np.ndarray, high: np.ndarray) -> Bounds:
    """The sum along the first axis, outward."""
    return outward(low.sum(axis=0), high.sum(axis=0), np.maximum(np.abs(low), np.abs(high)).sum(axis=0))


def convolved(x: Series, y: Series, j: int, first: int = 0, last: int | None = None, weighted: bool = False) -> Bounds:
    """Σ_i x_i y_{j−i} over i from `first` to `last`; with a factor i if `weighted`."""
    i0 = max(first, j - len(y[0]) + 1)
    i1 = min(j if last is None else last, len(x[0]) - 1, j)
    if i1 < i0:
        zero = np.zeros(np.broadcast_shapes(x[0].shape[1:], y[0].shape[1:]))
        return zero, zero
    mine, other = slice(i0, i1 + 1), slice(j - i1, j - i0 + 1)
    low, high = product_of_ranges((x[0][mine], x[1][mine]), (y[0][other][::-1], y[1][other][::-1]))
    if weighted:
        factor = np.arange(i0, i1 + 1.0).reshape(-1, *[1] * (low.ndim - 1))
        low, high = low * factor, high * factor
    return total(low, high)


def stacked(coefficients: Sequence[Bounds]) -> Series:
    shape = np.broadcast_shapes(*(c[0].shape for c in coefficients))
    low, high = (np.stack([np.broadcast_to(c[end], shape) for c in coefficients]) for end in (0, 1))
    return low, high


def padded(coefficients: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([coefficients, np.zeros((n - len(coefficients), *coefficients.shape[1:]))])


def sum_of_two(x: Series, y: Series) -> Series:
    n = max(len(x[0]), len(y[0]))
    low, high = (padded(x[end], n) + padded(y[end], n) for end in (0, 1))
    found = outward(low, high, np.maximum(np.abs(low), np.abs(high)))
    nothing = (low == 0) & (high == 0)
    return np.where(nothing, 0.0, found[0]), np.where(nothing, 0.0, found[1])


def range_of(x: Series) -> Bounds:
    return x[0][0], x[1][0]


def product(x: Series, y: Series, order: int) -> Series:
    n = min(len(x[0]) + len(y[0]) - 2, order)
    return stacked([convolved(x, y, j) for j in range(n + 1)])


def with_range(x: Series, known: Bounds) -> Series:
    """The series with a better zeroth coefficient."""
    low, high = x[0].copy(), x[1].copy()
    low[0], high[0] = np.fmax(low[0], known[0]), np.fmin(high[0], known[1])
    return low, high


def quotient(x: Series, y: Series, order: int) -> Series:
    """q with q y = x: q_j = (x_j − Σ_{i<j} q_i y_{j−i})/y_0."""
    below = power_bounds(*range_of(y), -1.0)
    n = order if len(y[0]) > 1 else len(x[0]) - 1
    found: list[Bounds] = []
    for j in range(n + 1):
        above = (x[0][j], x[1][j]) if j < len(x[0]) else (np.zeros(1), np.zeros(1))
        if found:
            taken = convolved(stacked(found), y, j, 0, j - 1)
            low, high = above[0] - taken[1], above[1] - taken[0]
            above = outward(low, high, np.abs(low) + np.abs(high) + np.abs(taken[0]) + np.abs(taken[1]))
        low, high = product_of_ranges(above, below)
        found.append(outward(low, high, np.maximum(np.abs(low), np.abs(high))))
    return stacked(found)


def _next(u: Series, slopes: list[Bounds], j: int) -> Bounds:
    """y_j where y' = slope·u': j y_j = Σ_{i≥1} i u_i slope_{j−i}."""
    low, high = convolved(u, stacked(slopes), j, first=1, weighted=True)
    return outward(low / j, high / j, (np.abs(low) + np.abs(high)) / j)


def integrated(u: Series, start: Bounds, slope: Coefficients, order: int) -> Series:
    """y with y_0 = start and y' = slope(y)·u'."""
    y: list[Bounds] = [start]
    slopes: list[Bounds] = []
    for j in range(1, order + 1):
        slopes.append(slope(y, j - 1))
        y.append(_next(u, slopes, j))
    return stacked(y)


def square_slope(constant: float, linear: float, square: float) -> Coefficients:
    """The coefficients of constant + linear·y + square·y²."""

    def on(y: list[Bounds], j: int) -> Bounds:
        s = stacked(y)
        low, high = convolved(s, s, j)
        if j == 0:
            low, high = power_bounds(s[0][0], s[1][0], 2.0)
        low, high = (square * low, square * high) if square > 0 else (square * high, square * low)
        low, high = low + linear * s[0][j], high + linear * s[1][j]
        low, high = (low + constant, high + constant) if j == 0 else (low, high)
        return outward(low, high, 1 + np.abs(low) + np.abs(high))

    return on


def slope_of(d: Series) -> Coefficients:
    """The coefficients of a series that is there already."""
    zero = np.zeros(1)
    return lambda y, j: (d[0][j], d[1][j]) if j < len(d[0]) else (zero, zero)


def pair(u: Series, first: Bounds, second: Bounds, sign: float, order: int) -> tuple[Series, Series]:
    """(y, z) with y' = z u', z' = sign·y u': sine and cosine, or the hyperbolic ones."""
    y, z = [first], [second]
    for j in range(1, order + 1):
        own, other = _next(u, z, j), _next(u, y, j)
        y, z = [*y, own], [*z, other if sign > 0 else (-other[1], -other[0])]
    return stacked(y), stacked(z)


def power_of(u: Series, q: float, start: Bounds, order: int) -> Series:
    """y = u^q from u y' = q u' y: j u_0 y_j = Σ_{i≥1} (q i − j + i) u_i y_{j−i}, q rounded."""
    below, y = power_bounds(*range_of(u), -1.0), [start]
    for j in range(1, order + 1):
        low = high = size = np.zeros_like(start[0])
        for i in range(1, min(j, len(u[0]) - 1) + 1):
            factor = q * i - j + i
            a, b = product_of_ranges((u[0][i], u[1][i]), y[j - i])
            size = size + (abs(q) * i + j + i) * np.maximum(np.abs(a), np.abs(b))
            low, high = (low + factor * a, high + factor * b) if factor > 0 else (low + factor * b, high + factor * a)
        low, high = product_of_ranges(outward(low / j, high / j, size), below)
        y.append(outward(low, high, np.maximum(np.abs(low), np.abs(high))))
    return stacked(y)


def composed(u: Series, coefficients: Bounds, order: int) -> Series:
    """φ(u) from its own Taylor coefficients [k, …] on the range of u: Σ_k φ_k (u − u_0)^k, by Horner."""
    swing = u[0].copy(), u[1].copy()
    swing[0][0] = swing[1][0] = 0.0
    rows = [stacked([(coefficients[0][k], coefficients[1][k])]) for k in range(order + 1)]
    found = rows.pop()
    while rows:
        found = sum_of_two(product(found, swing, order), rows.pop())
    return found


def narrowed(x: Series, y: Series) -> Series:
    """The coefficients that lie in both; one of the two may be unknown."""
    return np.fmax(x[0], y[0]), np.fmin(x[1], y[1])
