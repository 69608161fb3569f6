"""Ranges of the functions of one variable on intervals, many at once, rounded outward.

Monotone functions are evaluated at both ends; sin and cos look for their turning points; where a function is unbounded
the bounds are infinite. Arguments of sqrt, asin, acos and of roots are cut to the domain of the function, as in
`real_balls`; where they miss it the bounds are infinite. Library functions are assumed within `ULPS` units in the last
place, as in `float_bounds`.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ...common.outward import U
from .. import derived, special
from ..float_bounds import ULPS
from ..functions import FUNCTIONS
from .series import TINY

LIBRARY = ULPS * 2 * U
Bounds: TypeAlias = tuple[np.ndarray, np.ndarray]


def erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf as error_function  # importing it changes the warning filters: only when used

    return np.asarray(error_function(x))


def sinc(x: np.ndarray) -> np.ndarray:
    return np.asarray(special.sinc(np, x))


def exprel(x: np.ndarray) -> np.ndarray:
    return np.asarray(special.exprel(np, x))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.asarray(special.softplus(np, x))


def expit(x: np.ndarray) -> np.ndarray:
    from scipy.special import expit as logistic

    return np.asarray(logistic(x))


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
    if not whole or q % 2 == 0:
        least = np.maximum(least, 0.0)
    good = good & np.isfinite(least) & np.isfinite(most)
    return np.where(good, least, -np.inf), np.where(good, most, np.inf)


def _widened(low: np.ndarray, high: np.ndarray, good: np.ndarray | bool = True) -> Bounds:
    low, high = low - LIBRARY * np.abs(low) - TINY, high + LIBRARY * np.abs(high) + TINY
    good = good & np.isfinite(low) & np.isfinite(high)
    return np.where(good, low, -np.inf), np.where(good, high, np.inf)


def _increasing(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray, np.ndarray], Bounds]:
    return lambda low, high: _widened(function(low), function(high))


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


def _even_bounds(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray, np.ndarray], Bounds]:
    """Functions of |u| that increase with it."""

    def on(low: np.ndarray, high: np.ndarray) -> Bounds:
        far = np.maximum(np.abs(low), np.abs(high))
        near = np.where((low > 0) | (high < 0), np.minimum(np.abs(low), np.abs(high)), 0.0)
        return _widened(function(near), function(far))

    return on


def same_branch(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Whether tan has no pole in [low, high]."""
    k = np.round((low + high) / 2 / math.pi)
    margin = 1e-12 * (1 + np.abs(low) + np.abs(high))
    inside = (low > (k - 0.5) * math.pi + margin) & (high < (k + 0.5) * math.pi - margin)
    return inside & (np.abs(low) < 1e9) & (np.abs(high) < 1e9)


def _tan_bounds(low: np.ndarray, high: np.ndarray) -> Bounds:
    return _widened(np.tan(low), np.tan(high), same_branch(low, high))


def _sinc_bounds(low: np.ndarray, high: np.ndarray) -> Bounds:
    """Even, decreasing up to 4.4934…, where it is −0.21723…; sin(u)/u beyond."""
    near = np.where((low > 0) | (high < 0), np.minimum(np.abs(low), np.abs(high)), 0.0)
    far = np.maximum(np.abs(low), np.abs(high))
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


def _arc_bounds(function: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> Bounds:
    """asin and acos, on the part of [low, high] that lies in [−1, 1]."""
    ends = function(np.clip(low, -1.0, 1.0)), function(np.clip(high, -1.0, 1.0))
    return _widened(np.minimum(*ends), np.maximum(*ends), (low <= 1) & (high >= -1))


def _gelu(u: np.ndarray) -> np.ndarray:
    return 0.5 * u * (1 + erf(u / math.sqrt(2)))


TURN, SINC_LOWEST = 4.49, -0.21724
GELU_LOWEST = -0.16997121  # its minimum, at −0.7518, rounded down


def _gelu_bounds(low: np.ndarray, high: np.ndarray) -> Bounds:
    """Decreasing up to −0.7517…, increasing from −0.7518…."""
    ends = _gelu(low), _gelu(high)
    slip = 4 * LIBRARY * (np.abs(low) + np.abs(high)) + TINY
    least = np.where((low < -0.7517) & (high > -0.7519), GELU_LOWEST, np.minimum(*ends) - slip)
    most = np.maximum(*ends) + slip
    good = np.isfinite(low) & np.isfinite(high)
    return np.where(good, least, -np.inf), np.where(good, most, np.inf)


BOUNDS: dict[str, Callable[[np.ndarray, np.ndarray], Bounds]] = {
    "exp": lambda low, high: _at_least(_increasing(np.exp)(low, high), 0.0),
    "log": lambda low, high: _widened(np.log(low), np.log(high), low > 0),
    "sqrt": lambda low, high: _at_least(_widened(np.sqrt(np.maximum(low, 0.0)), np.sqrt(high), high >= 0), 0.0),
    "sin": lambda low, high: _wave_bounds(low, high, 0.0),
    "cos": lambda low, high: _wave_bounds(low, high, math.pi / 2),
    "tan": _tan_bounds,
    "tanh": lambda low, high: _within(_increasing(np.tanh)(low, high), 1.0),
    "sigmoid": lambda low, high: _at_least(_within(_increasing(expit)(low, high), 1.0), 0.0),
    "erf": lambda low, high: _within(_increasing(erf)(low, high), 1.0),
    "sinh": _increasing(np.sinh),
    "cosh": _even_bounds(np.cosh),
    "atan": _increasing(np.arctan),
    "asin": lambda low, high: _arc_bounds(np.arcsin, low, high),
    "acos": lambda low, high: _arc_bounds(np.arccos, low, high),
    "expm1": lambda low, high: _at_least(_increasing(np.expm1)(low, high), -1.0),
    "log1p": lambda low, high: _widened(np.log1p(low), np.log1p(high), low > -1),
    "softplus": lambda low, high: _at_least(_increasing(softplus)(low, high), 0.0),
    "sinc": _sinc_bounds,
    "exprel": lambda low, high: _at_least(_increasing(exprel)(low, high), 0.0),
    "cbrt": _increasing(np.cbrt),
    "gelu": _gelu_bounds,
}


def bounds_of(name: str, low: np.ndarray, high: np.ndarray) -> Bounds:
    """The range of a function; from its record where nothing quicker is written above."""
    return BOUNDS[name](low, high) if name in BOUNDS else derived.bounds(FUNCTIONS[name], low, high)


def _within(pair: Bounds, most: float) -> Bounds:
    return np.maximum(pair[0], -most), np.minimum(pair[1], most)


def _at_least(pair: Bounds, least: float) -> Bounds:
    return np.maximum(pair[0], least), pair[1]
