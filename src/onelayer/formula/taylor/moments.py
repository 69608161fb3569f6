"""Taylor coefficients of (e^u − 1)/u and sin(u)/u on intervals, of all orders, many intervals at once.

Both are integrals over [0, 1], so that with J_k(u) = ∫t^k e^(tu)dt = Σ_j u^j/(j!(k + 1 + j))

    exprel^(k)(u) = J_k(u), which increases,    sinc^(k)(u) = ∫t^k cos(tu + kπ/2)dt, at most 1/(k + 1) in size.

For u < 0 the sum has terms of one sign as well: J_k(u) = e^u·Σ_j |u|^j k!/(k + 1 + j)!.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .bounds import Bounds
from .series import TINY

TERMS, FARTHEST = 64, 8.0  # for |u| ≤ FARTHEST the terms left out are less than 1e-30
SLIP = 1e-13  # relative to the sum of the sizes of the terms: 2·TERMS roundings of a power, TERMS of the sum


@cache
def _factors(order: int, kind: str) -> np.ndarray:
    """[k, j]: the factor of u^j/j! in the sum for order k."""

    def factor(k: int, j: int) -> float:
        match kind:
            case "right":
                return 1 / (k + 1 + j)
            case "left":
                return math.factorial(k) * math.factorial(j) / math.factorial(k + 1 + j)
            case _:
                return 0.0 if (k + j) % 2 else (-1.0) ** ((k + j) // 2) / (k + 1 + j)

    return np.array([[factor(k, j) for j in range(TERMS)] for k in range(order + 1)])


def _down(values: Any, like: np.ndarray) -> np.ndarray:
    """One value for each order, along a new first axis of arrays."""
    return np.asarray(values, float).reshape(-1, *[1] * like.ndim)


def sums(order: int, u: np.ndarray, *kinds: str) -> list[np.ndarray]:
    """The sums of these kinds for orders up to this one, [k, …]; nan beyond FARTHEST."""
    powers = [np.where(np.abs(u) <= FARTHEST, 1.0, np.nan)]  # u^j/j!
    for j in range(1, TERMS):
        powers.append(powers[-1] * u / j)
    whole = np.stack(powers)
    return [np.tensordot(_factors(order, kind), whole, axes=1) for kind in kinds]


def _exprel(low: np.ndarray, high: np.ndarray, order: int) -> Bounds:
    ends = []
    for u in (low, high):
        left, right = sums(order, np.abs(u), "left", "right")
        ends.append(np.where(u < 0, np.exp(u) * left, right))
    factorials = _down([math.factorial(k) for k in range(order + 1)], low)
    return np.fmax(ends[0] * (1 - SLIP) / factorials - TINY, 0.0), ends[1] * (1 + SLIP) / factorials + TINY


def _sinc(low: np.ndarray, high: np.ndarray, order: int) -> Bounds:
    """Around the middle c, with half a width r: φ^(k)(c) ± (r|φ^(k+1)(c)| + r²/2(k + 3)); and ± 1/(k + 1)."""
    c = low / 2 + high / 2
    r = np.maximum(high - c, c - low) * (1 + SLIP) + TINY
    (at,), slip = sums(order + 1, c, "wave"), SLIP * np.exp(np.abs(c))
    k, factorials = (_down([value(k) for k in range(order + 1)], low) for value in (float, math.factorial))
    off = (slip + r * (np.abs(at[1:]) + slip) + r * r / 2 / (k + 3)) * (1 + SLIP)
    a, b = np.fmax(at[:-1] - off, -1 / (k + 1)) / factorials, np.fmin(at[:-1] + off, 1 / (k + 1)) / factorials
    return a - SLIP * np.abs(a) - TINY, b + SLIP * np.abs(b) + TINY


def _slope(name: str) -> Callable[[np.ndarray, np.ndarray, int], Bounds]:
    """Those of a derivative: (k + 1)φ_{k+1}."""

    def on(low: np.ndarray, high: np.ndarray, order: int) -> Bounds:
        a, b = (end[1:] for end in MOMENTS[name](low, high, order + 1))
        k = _down(range(1, order + 2), low)
        return a * k - SLIP * np.abs(a) * k - TINY, b * k + SLIP * np.abs(b) * k + TINY

    return on


# φ^(k)/k! on [low, high] for k = 0 … order, [k, …]; NaN where nothing is known
MOMENTS: dict[str, Callable[[np.ndarray, np.ndarray, int], Bounds]] = {
    "exprel": _exprel,
    "sinc": _sinc,
    "exprel1": _slope("exprel"),
    "sinc1": _slope("sinc"),
}
