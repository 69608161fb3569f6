"""Functions of one variable on Taylor models: third-order Taylor expansion at the centre, fourth derivative on the range.

    φ(u) = Σ_{k≤3} φ^(k)(c)/k! (u − c)^k + e,    |e| ≤ max |φ⁗| |u − c|⁴/24

`expansion(name)(c, low, high)` gives the four coefficients, bounds on their rounding, and a bound on |φ⁗| over
[low, high]; `bounds(name)(low, high)` the range of φ itself, which takes over where the expansion is worse. Library
functions are assumed within `ULPS` units in the last place, as in `formula.bounded`.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ...formula.bounded import ULPS
from .series import TINY, UP, Taylor, U

LIBRARY = ULPS * 2.0**-52
SLIP = 16 * LIBRARY  # of a derivative, relative to the sum of the sizes of its terms
SQRT_PI = math.sqrt(math.pi)

Bounds: TypeAlias = tuple[np.ndarray, np.ndarray]
Expansion: TypeAlias = tuple[list[np.ndarray], list[np.ndarray], np.ndarray]  # coefficients, sizes of terms, max |φ⁗|


def apply(name: str, u: Taylor, known: Bounds | None = None) -> Taylor:
    """φ(u); `known` are bounds on u from elsewhere."""
    u = u.flat()
    with np.errstate(all="ignore"):
        low, high = _range(u, known)
        c = u.c[0]
        expansion = EXPANSIONS[name](c, np.minimum(low, c), np.maximum(high, c))
        return _composed(u, expansion).best(*BOUNDS[name](low, high))


def power(u: Taylor, q: float, known: Bounds | None = None) -> Taylor:
    """u^q where u > 0 (for an integer q also where u < 0); nothing is known where u may be 0 and q < 0."""
    u = u.flat()
    with np.errstate(all="ignore"):
        low, high = _range(u, known)
        c = u.c[0]
        a, binomial = [], 1.0
        for k in range(4):
            a.append(binomial * np.power(c, q - k) if binomial else np.zeros_like(c))
            binomial *= (q - k) / (k + 1)
        near, far = _farthest(np.minimum(low, c), np.maximum(high, c))
        steepest = np.maximum(np.power(near, q - 4), np.power(far, q - 4))
        fourth = abs(binomial) * 24 * steepest * (1 + SLIP) if binomial else np.zeros_like(c)
        return _composed(u, (a, [np.abs(t) * (1 + abs(q)) for t in a], fourth)).best(*power_bounds(low, high, q))


def erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf as error_function  # importing it changes the warning filters: only when used

    return np.asarray(error_function(x))


def expit(x: np.ndarray) -> np.ndarray:
    from scipy.special import expit as logistic

    return np.asarray(logistic(x))


def _range(u: Taylor, known: Bounds | None) -> Bounds:
    low, high = u.range()
    return (low, high) if known is None else (np.maximum(low, known[0]), np.minimum(high, known[1]))


def _composed(u: Taylor, expansion: Expansion) -> Taylor:
    """Σ_k a_k (u − c)^k with all errors."""
    a, sizes, fourth = expansion
    swing = u.c.copy()
    swing[0] = 0.0
    away = Taylor(u.space, swing, u.r)
    reach = (np.abs(swing).sum(axis=0) + u.r) * UP
    y = away.times(a[3])
    for k in (2, 1, 0):
        y.c[0] += a[k]
        y.r = y.r + 2 * U * np.abs(y.c[0])
        y = y * away if k else y
    slips = sum(size * reach**k for k, size in enumerate(sizes)) * SLIP
    y.r = (y.r + slips + fourth * reach**4 / 24) * UP + TINY
    return y


def power_bounds(low: np.ndarray, high: np.ndarray, q: float) -> Bounds:
    """The range of u^q; unbounded where it is not defined."""
    slip = LIBRARY * (1 + abs(q))
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


def _same_branch(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Whether tan has no pole in [low, high]."""
    k = np.round((low + high) / 2 / math.pi)
    margin = 1e-12 * (1 + np.abs(low) + np.abs(high))
    inside = (low > (k - 0.5) * math.pi + margin) & (high < (k + 0.5) * math.pi - margin)
    return inside & (np.abs(low) < 1e9) & (np.abs(high) < 1e9)


def _tan_bounds(low: np.ndarray, high: np.ndarray) -> Bounds:
    return _widened(np.tan(low), np.tan(high), _same_branch(low, high))


def _gelu(u: np.ndarray) -> np.ndarray:
    return 0.5 * u * (1 + erf(u / math.sqrt(2)))


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
    "sqrt": lambda low, high: _at_least(_widened(np.sqrt(low), np.sqrt(high), low >= 0), 0.0),
    "sin": lambda low, high: _wave_bounds(low, high, 0.0),
    "cos": lambda low, high: _wave_bounds(low, high, math.pi / 2),
    "tan": _tan_bounds,
    "tanh": lambda low, high: _within(_increasing(np.tanh)(low, high), 1.0),
    "sigmoid": lambda low, high: _at_least(_within(_increasing(expit)(low, high), 1.0), 0.0),
    "erf": lambda low, high: _within(_increasing(erf)(low, high), 1.0),
    "sinh": _increasing(np.sinh),
    "cosh": _even_bounds(np.cosh),
    "atan": _increasing(np.arctan),
    "asin": lambda low, high: _widened(np.arcsin(low), np.arcsin(high), (low >= -1) & (high <= 1)),
    "acos": lambda low, high: _widened(np.arccos(high), np.arccos(low), (low >= -1) & (high <= 1)),
    "gelu": _gelu_bounds,
}


def _within(pair: Bounds, most: float) -> Bounds:
    return np.maximum(pair[0], -most), np.minimum(pair[1], most)


def _at_least(pair: Bounds, least: float) -> Bounds:
    return np.maximum(pair[0], least), pair[1]


def _farthest(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(least, largest) |u| on [low, high]."""
    near = np.where((low > 0) | (high < 0), np.minimum(np.abs(low), np.abs(high)), 0.0)
    return near, np.maximum(np.abs(low), np.abs(high))


def _checked(fourth: np.ndarray, good: np.ndarray | bool) -> np.ndarray:
    return np.where(good, fourth * (1 + 1e-9) + TINY, np.inf)


def _exp(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    e = np.exp(c)
    a = [e, e, e / 2, e / 6]
    return a, a, np.exp(high) * (1 + SLIP)


def _log(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    a = [np.log(c), 1 / c, -1 / (2 * c**2), 1 / (3 * c**3)]
    return a, [np.abs(t) for t in a], _checked(6 / low**4, low > 0)


def _sqrt(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    s = np.sqrt(c)
    a = [s, 1 / (2 * s), -1 / (8 * s**3), 1 / (16 * s**5)]
    return a, [np.abs(t) for t in a], _checked(15 / 16 / np.sqrt(low) ** 7, low > 0)


def _wave(c: np.ndarray, low: np.ndarray, high: np.ndarray, cosine: bool) -> Expansion:
    s, k = (np.cos(c), -np.sin(c)) if cosine else (np.sin(c), np.cos(c))
    one = np.ones_like(c)
    return [s, k, -s / 2, -k / 6], [np.abs(s), np.abs(k), one, one], one


def _tan(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    t = np.tan(c)
    q = 1 + t * t
    a = [t, q, t * q, q * (1 + 3 * t * t) / 3]
    far = np.maximum(np.abs(np.tan(low)), np.abs(np.tan(high)))
    fourth = 8 * far * (1 + far**2) * (2 + 3 * far**2)
    return a, [np.abs(v) for v in a], _checked(fourth, _same_branch(low, high))


def _tanh(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """tanh⁗ = 8t(2 − 3t²)(1 − t²), t = tanh u."""
    t, near, far = np.tanh(c), *(np.tanh(v) for v in _farthest(low, high))
    q = 1 - t * t
    a = [t, q, -t * q, q * (3 * t * t - 1) / 3]
    slip = 4 * LIBRARY
    factor = np.maximum(np.abs(2 - 3 * near**2), np.abs(2 - 3 * far**2)) + slip
    fourth = 8 * far * factor * (1 - near**2 + slip)
    return a, [np.abs(t), 1 + t * t, np.abs(t) * (1 + t * t), (1 + t * t) * (3 * t * t + 1) / 3], _checked(fourth, True)


def _sigmoid(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """σ(u) = (1 + tanh(u/2))/2."""
    a, sizes, fourth = _tanh(c / 2, low / 2, high / 2)
    return (
        [expit(c), a[1] / 4, a[2] / 8, a[3] / 16],
        [expit(c), sizes[1] / 4, sizes[2] / 8, sizes[3] / 16],
        fourth / 32,
    )


def _hyperbolic(c: np.ndarray, low: np.ndarray, high: np.ndarray, even: bool) -> Expansion:
    s, k = (np.cosh(c), np.sinh(c)) if even else (np.sinh(c), np.cosh(c))
    a = [s, k, s / 2, k / 6]
    size = np.cosh(c)
    return a, [size] * 4, np.cosh(_farthest(low, high)[1]) * (1 + SLIP)


def _atan(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """atan⁗ = 24u(1 − u²)/(1 + u²)⁴."""
    q = 1 / (1 + c * c)
    near, far = _farthest(low, high)
    a = [np.arctan(c), q, -c * q**2, (3 * c * c - 1) * q**3 / 3]
    fourth = 24 * far * np.maximum(np.abs(1 - near**2), np.abs(1 - far**2)) / (1 + near**2) ** 4
    return a, [np.abs(a[0]), q, np.abs(a[2]), (3 * c * c + 1) * q**3 / 3], _checked(np.minimum(fourth, 5.0), True)


def _asin(c: np.ndarray, low: np.ndarray, high: np.ndarray, sign: float) -> Expansion:
    """asin⁗ = (9u + 6u³)(1 − u²)^(−7/2); acos = π/2 − asin."""
    q = (1 - c) * (1 + c)
    a = [np.arcsin(c), q**-0.5, c * q**-1.5 / 2, (1 + 2 * c * c) * q**-2.5 / 6]
    far = _farthest(low, high)[1]
    fourth = _checked((9 * far + 6 * far**3) * ((1 - far) * (1 + far)) ** -3.5, far < 1)
    a = [sign * t for t in a]
    if sign < 0:
        a[0] = np.arccos(c)
    return a, [np.abs(t) for t in a], fourth


def _erf(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """erf' = 2/√π e^(−u²), erf⁗ = (12u − 8u³) erf'."""
    d = 2 / SQRT_PI * np.exp(-c * c)
    near, far = _farthest(low, high)
    a = [erf(c), d, -c * d, (2 * c * c - 1) * d / 3]
    steep = 2 / SQRT_PI * np.exp(-near * near)
    fourth = steep * far * np.maximum(np.abs(12 - 8 * near**2), np.abs(12 - 8 * far**2))
    spread = d * (1 + c * c)  # the exponent is rounded too
    return (
        a,
        [np.abs(a[0]), spread, np.abs(c) * spread, (2 * c * c + 1) * spread / 3],
        _checked(_at_most(fourth, 20.0), True),
    )


def _at_most(value: np.ndarray, most: float) -> np.ndarray:
    return np.minimum(np.where(np.isnan(value), np.inf, value), most)


def _gelu_expansion(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """uΦ(u): Φ + uφ, φ(2 − u²), φ(u³ − 4u), φ(−u⁴ + 7u² − 4); the last quartic has an extremum 8.25 at u² = 3.5."""
    cumulative, density = (1 + erf(c / math.sqrt(2))) / 2, np.exp(-c * c / 2) / math.sqrt(2 * math.pi)
    near, far = _farthest(low, high)
    a = [c * cumulative, cumulative + c * density, density * (2 - c * c) / 2, density * (c**3 - 4 * c) / 6]
    quartic = [np.abs(v**4 - 7 * v**2 + 4) for v in (near, far)]
    largest = np.maximum(np.maximum(*quartic), np.where((near**2 < 3.51) & (far**2 > 3.49), 8.26, 0.0))
    fourth = np.exp(-near * near / 2) / math.sqrt(2 * math.pi) * largest
    spread = density * (1 + c * c)
    sizes = [np.abs(c), 1 + np.abs(c) * spread, spread * (2 + c * c) / 2, spread * (np.abs(c) ** 3 + 4 * np.abs(c)) / 6]
    return a, sizes, _checked(_at_most(fourth, 2.0), True)


EXPANSIONS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Expansion]] = {
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "sin": lambda c, low, high: _wave(c, low, high, cosine=False),
    "cos": lambda c, low, high: _wave(c, low, high, cosine=True),
    "tan": _tan,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    "sinh": lambda c, low, high: _hyperbolic(c, low, high, even=False),
    "cosh": lambda c, low, high: _hyperbolic(c, low, high, even=True),
    "atan": _atan,
    "asin": lambda c, low, high: _asin(c, low, high, 1.0),
    "acos": lambda c, low, high: _asin(c, low, high, -1.0),
    "gelu": _gelu_expansion,
}
