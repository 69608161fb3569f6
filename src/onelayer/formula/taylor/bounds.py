"""Ranges of the functions of one variable on intervals, many at once, rounded outward.

They follow from the shape in a function's record, as in `elementary`; where a function is unbounded the bounds are infinite.
Arguments of sqrt, asin, acos and of roots are cut to the domain of the function, as in `real_balls`; where they miss it the
bounds are infinite. Library functions are assumed within `ULPS` units in the last place, as in `float_bounds`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from ...common.outward import U
from .. import derived
from ..float_bounds import ULPS
from ..functions import FUNCTIONS
from ..numeric import called
from ..record import BetweenPoles, Even, Function, Monotone, Readings, Staircase, Wave
from .series import TINY

LIBRARY = ULPS * 2 * U
Bounds: TypeAlias = tuple[np.ndarray, np.ndarray]
erf, expit, exprel, softplus, sinc = (
    partial(called, FUNCTIONS[name], np) for name in ("erf", "sigmoid", "exprel", "softplus", "sinc")
)


def farthest(low: np.ndarray, high: np.ndarray) -> Bounds:
    """(smallest, largest) |u| on [low, high]."""
    return np.abs(np.maximum(np.maximum(low, -high), 0.0)), np.maximum(np.abs(low), np.abs(high))


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
    from .moments import MOMENTS

    near = farthest(low, high)[0]
    most = np.fmin((1 + 1 / near) / near * (1 + LIBRARY), 0.43619)
    least, largest = (end[0] for end in MOMENTS["sinc1"](low, high, 0))
    return np.fmax(least, -most), np.fmin(largest, most)


TURN, SINC_LOWEST = 4.49, -0.21724


def _by_shape(f: Function) -> Callable[[np.ndarray, np.ndarray], Bounds]:
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
        case Monotone() | Even() | Staircase() | BetweenPoles():
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
