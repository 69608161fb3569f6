"""Ranges of the functions of one variable on intervals, many at once, rounded outward.

They follow from the shape in a function's record, as in `elementary`; where a function is unbounded the bounds are infinite.
Arguments of sqrt, asin, acos and of roots are cut to the domain of the function, as in `real_balls`; where they miss it the
bounds are infinite. Library functions are assumed within `ULPS` units in the last place, as in `float_bounds`.

`MOMENTS` has the Taylor coefficients of (e^u − 1)/u and sin(u)/u of all orders. Both are integrals over [0, 1], so that with
J_k(u) = ∫t^k e^(tu)dt = Σ_j u^j/(j!(k + 1 + j))

    exprel^(k)(u) = J_k(u), which increases,    sinc^(k)(u) = ∫t^k cos(tu + kπ/2)dt, at most 1/(k + 1) in size.

For u < 0 the sum has terms of one sign as well: J_k(u) = e^u·Σ_j |u|^j k!/(k + 1 + j)!.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from ...common.outward import U
from .. import derived
from ..float_bounds import ULPS
from ..functions import FUNCTIONS
from ..numeric import called
from ..record import BetweenPoles, Even, Function, Monotone, Readings, Wave
from .series import TINY

LIBRARY = ULPS * 2 * U
Bounds: TypeAlias = tuple[np.ndarray, np.ndarray]
Bounding: TypeAlias = Callable[[np.ndarray, np.ndarray], Bounds]
erf, expit, exprel, softplus, sinc = (
    partial(called, FUNCTIONS[name], np) for name in ("erf", "sigmoid", "exprel", "softplus", "sinc")
)


def nearest(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The smallest |u| on [low, high]."""
    near: np.ndarray = np.maximum(np.maximum(low, -high), 0.0)
    return np.abs(near)  # no −0


def farthest(low: np.ndarray, high: np.ndarray) -> Bounds:
    """(smallest, largest) |u| on [low, high]."""
    return nearest(low, high), np.maximum(np.abs(low), np.abs(high))


def bounded(low: np.ndarray, high: np.ndarray, good: np.ndarray | bool = True) -> Bounds:
    """The bounds where they are good and finite, infinite ones elsewhere."""
    good = good & np.isfinite(low) & np.isfinite(high)
    return np.where(good, low, -np.inf), np.where(good, high, np.inf)


def power_bounds(low: np.ndarray, high: np.ndarray, q: float) -> Bounds:
    """The range of u^q; unbounded where it is not defined."""
    slip = LIBRARY * (1 + abs(q))
    if q > 0 and not float(q).is_integer():
        low = np.where(high >= 0, np.maximum(low, 0.0), low)
    ends = np.power(low, q), np.power(high, q)
    least, most = np.minimum(*ends), np.maximum(*ends)
    whole = float(q).is_integer()
    if whole and q >= 0:
        crosses = (low < 0) & (high > 0)
        least = np.where(crosses & (q % 2 == 0), 0.0 if q else 1.0, least)
        good = np.isfinite(low) & np.isfinite(high)
    elif whole:
        good = (low > 0) | (high < 0)
    else:
        good = low >= 0 if q > 0 else low > 0
    least, most = least - slip * np.abs(least) - TINY, most + slip * np.abs(most) + TINY
    return bounded(np.maximum(least, 0.0) if not whole or q % 2 == 0 else least, most, good)


def _widened(low: np.ndarray, high: np.ndarray, good: np.ndarray | bool = True) -> Bounds:
    return bounded(low - LIBRARY * np.abs(low) - TINY, high + LIBRARY * np.abs(high) + TINY, good)


def _wave_bounds(low: np.ndarray, high: np.ndarray, phase: float) -> Bounds:
    """The range of sin(u + phase): ±1 where a turning point may lie inside."""
    known = np.isfinite(low) & np.isfinite(high) & (np.maximum(np.abs(low), np.abs(high)) < 1e7)
    low, high = np.where(known, low, -10.0), np.where(known, high, 10.0)
    ends = np.sin(low + phase), np.sin(high + phase)
    slip = 4e-16 * (np.abs(low) + np.abs(high) + 2) + LIBRARY
    first, last = ((end + phase) / math.pi - 0.5 for end in (low - slip, high + slip))
    tops = np.floor(last / 2 + 1e-8) >= np.ceil(first / 2 - 1e-8)  # maxima at (2k + ½)π
    bottoms = np.floor((last - 1) / 2 + 1e-8) >= np.ceil((first - 1) / 2 - 1e-8)
    least = np.where(bottoms, -1.0, np.minimum(*ends) - slip)
    most = np.where(tops, 1.0, np.maximum(*ends) + slip)
    return np.maximum(least, -1.0), np.minimum(most, 1.0)


def same_branch(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Whether tan has no pole in [low, high]."""
    k = np.round((low + high) / 2 / math.pi)
    margin = 1e-12 * (1 + np.abs(low) + np.abs(high))
    inside = (low > (k - 0.5) * math.pi + margin) & (high < (k + 0.5) * math.pi - margin)
    return inside & (np.abs(low) < 1e9) & (np.abs(high) < 1e9)


def _sinc_bounds(low: np.ndarray, high: np.ndarray) -> Bounds:
    """Even, decreasing up to 4.4934…, where it is −0.21723…; sin(u)/u beyond."""
    near, far = farthest(low, high)
    first = near < TURN
    apart = np.maximum(near, TURN)
    waves = _wave_bounds(apart, np.maximum(far, apart), 0.0)
    least = np.minimum(waves[0] / apart, waves[0] / np.maximum(far, apart))
    most = np.maximum(waves[1] / apart, waves[1] / np.maximum(far, apart))
    both = first & (far > TURN)  # it falls, turns, and may rise above where it began
    begun = np.maximum(sinc(near), np.where(both, most, -np.inf))
    least, most = _widened(np.where(first, sinc(far), least), np.where(first, begun, most))
    least = np.where(both, SINC_LOWEST, least)
    return np.maximum(least, SINC_LOWEST), np.minimum(most, 1.0)


def _sinc1_bounds(low: np.ndarray, high: np.ndarray) -> Bounds:
    """sinc′: by its series near 0; everywhere |sinc′(u)| ≤ 0.43619 and (1 + 1/|u|)/|u|."""
    near = farthest(low, high)[0]
    most = np.fmin((1 + 1 / near) / near * (1 + LIBRARY), 0.43619)
    least, largest = (end[0] for end in MOMENTS["sinc1"](low, high, 0))
    return np.fmax(least, -most), np.fmin(largest, most)


TURN, SINC_LOWEST = 4.49, -0.21724


def _by_shape(f: Function) -> Bounding:
    """The range of a function of arrays, from its shape."""
    shape, phi = f.shape, partial(called, f, np)
    lo, hi = (f.domain.lo, f.domain.hi) if f.domain else (-math.inf, math.inf)
    least, most, rises = (
        getattr(shape, fact, other) for fact, other in (("least", None), ("most", None), ("rises", True))
    )

    def monotone(low: np.ndarray, high: np.ndarray) -> Bounds:
        good: np.ndarray | bool = same_branch(low, high) if isinstance(shape, BetweenPoles) else True
        if isinstance(shape, Even):
            low, high = farthest(low, high)
        elif f.natural:
            good = (low <= hi) & (high >= lo)
            low, high = np.clip(low, lo, hi), np.clip(high, lo, hi)
        elif f.domain:
            good = (low > lo) & (high < hi)
        low, high = _widened(*((phi(low), phi(high)) if rises else (phi(high), phi(low))), good)
        return low if least is None else np.maximum(low, least), high if most is None else np.minimum(high, most)

    match shape:
        case Monotone() | Even() | BetweenPoles():
            return monotone
        case Wave(phase):
            return partial(_wave_bounds, phase=phase * math.pi)
        case _:
            return partial(derived.bounds, f)


BOUNDS = Readings(
    lambda f: _by_shape(f) if f.array else partial(derived.bounds, f),
    sinc=_sinc_bounds,
    sinc1=_sinc1_bounds,
    exprel1=partial(derived.bounds, FUNCTIONS["exprel1"]),  # arrays have it less accurately
)

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


def _exprel_moments(low: np.ndarray, high: np.ndarray, order: int) -> Bounds:
    ends = []
    for u in (low, high):
        left, right = sums(order, np.abs(u), "left", "right")
        ends.append(np.where(u < 0, np.exp(u) * left, right))
    factorials = _down([math.factorial(k) for k in range(order + 1)], low)
    return np.fmax(ends[0] * (1 - SLIP) / factorials - TINY, 0.0), ends[1] * (1 + SLIP) / factorials + TINY


def _sinc_moments(low: np.ndarray, high: np.ndarray, order: int) -> Bounds:
    """Around the middle c, with half a width r: φ^(k)(c) ± (r|φ^(k+1)(c)| + r²/2(k + 3)); and ± 1/(k + 1)."""
    c = low / 2 + high / 2
    r = np.maximum(high - c, c - low) * (1 + SLIP) + TINY
    (at,), slip = sums(order + 1, c, "wave"), SLIP * np.exp(np.abs(c))
    k, factorials = (_down([value(k) for k in range(order + 1)], low) for value in (float, math.factorial))
    off = (slip + r * (np.abs(at[1:]) + slip) + r * r / 2 / (k + 3)) * (1 + SLIP)
    a, b = np.fmax(at[:-1] - off, -1 / (k + 1)) / factorials, np.fmin(at[:-1] + off, 1 / (k + 1)) / factorials
    return a - SLIP * np.abs(a) - TINY, b + SLIP * np.abs(b) + TINY


def _slope_moments(name: str) -> Callable[[np.ndarray, np.ndarray, int], Bounds]:
    """Those of a derivative: (k + 1)φ_{k+1}."""

    def on(low: np.ndarray, high: np.ndarray, order: int) -> Bounds:
        a, b = (end[1:] for end in MOMENTS[name](low, high, order + 1))
        k = _down(range(1, order + 2), low)
        return a * k - SLIP * np.abs(a) * k - TINY, b * k + SLIP * np.abs(b) * k + TINY

    return on


# φ^(k)/k! on [low, high] for k = 0 … order, [k, …]; NaN where nothing is known
MOMENTS: dict[str, Callable[[np.ndarray, np.ndarray, int], Bounds]] = {
    "exprel": _exprel_moments,
    "sinc": _sinc_moments,
    "exprel1": _slope_moments("exprel"),
    "sinc1": _slope_moments("sinc"),
}
