"""Taylor coefficients of the functions of one variable: at a centre c, with the fourth derivative on [low, high].

Every function gives four coefficients, the sizes of the terms that they are made of (which bound their rounding, `SLIP`
relative), and a bound on |φ⁗|; infinite where φ is not smooth on the whole interval. Powers are taken of reciprocals: a power
of a small number may underflow, and nothing is divided by what is left of it.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from ...common.outward import UP
from .. import derived
from ..record import Function, Readings, name_of
from .bounds import LIBRARY, erf, expit, exprel, farthest, same_branch, softplus, sums
from .series import TINY

SLIP = 16 * LIBRARY  # of a coefficient, relative to the sum of the sizes of its terms
SERIES = 1.5  # nearer to 0 derivatives of sin(u)/u and (e^u − 1)/u are summed
SQRT_PI = math.sqrt(math.pi)
Expansion: TypeAlias = tuple[list[np.ndarray], list[np.ndarray], np.ndarray]  # coefficients, sizes of terms, max |φ⁗|
Expanding: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], Expansion]  # of c, low and high


def _checked(fourth: np.ndarray, good: np.ndarray | bool) -> np.ndarray:
    return np.where(good, fourth * UP + TINY, np.inf)


def _exp(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    e = np.exp(c)
    a = [e, e, e / 2, e / 6]
    return a, a, np.exp(high) * (1 + SLIP)


def _log(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    r = 1 / c
    a = [np.log(c), r, -(r**2) / 2, r**3 / 3]
    return a, [np.abs(t) for t in a], _checked(6 * (1 / low) ** 4, low > 0)


def _beside(value: np.ndarray, other: Expansion, sign: float = 1.0) -> Expansion:
    """Of a function that differs from another one, or minus that, by a constant."""
    a = [value, *(sign * t for t in other[0][1:])]
    return a, [np.abs(t) for t in a], other[2]


def _softplus(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """softplus′ = σ, softplus⁗ = σ′(1 − 6σ′), σ′ = e^(−|u|)/(1 + e^(−|u|))²."""
    a, sizes, _ = _sigmoid(c, low, high)
    high_slope, low_slope = (e / (1 + e) ** 2 for e in (np.exp(-v) for v in farthest(low, high)))
    factor = np.maximum(np.abs(1 - 6 * high_slope), np.abs(1 - 6 * low_slope)) + 8 * LIBRARY
    terms, sizes = ([softplus(c), t[0], t[1] / 2, t[2] / 3] for t in (a, sizes))
    return terms, sizes, _checked(high_slope * (1 + SLIP) * factor, True)


def _over_argument(
    c: np.ndarray, phases: list[np.ndarray], start: np.ndarray, kind: str
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Derivatives J_n of φ(u)/u from u·J_n + n·J_(n−1) = φ^(n)(u), near 0 as sums: the last four, as many as phases."""
    a, sizes = [start], [np.abs(start)]
    for n in range(1, len(phases)):
        a.append((phases[n] - n * a[-1]) / c)
        sizes.append((np.abs(phases[n]) + n * sizes[-1]) / np.abs(c))
    small, (near,), factorials = np.abs(c) < SERIES, sums(len(phases) - 1, c, kind), (1.0, 1.0, 2.0, 6.0)
    a = [np.where(small, s, t) / k for s, t, k in zip(near[-4:], a[-4:], factorials, strict=True)]
    return a, [np.where(small, 1.0 + SERIES, t) / k for t, k in zip(sizes[-4:], factorials, strict=True)]


def _sinc(c: np.ndarray, low: np.ndarray, high: np.ndarray, first: int = 0) -> Expansion:
    """sinc^(n)(u) = ∫t^n cos(tu + nπ/2)dt over [0, 1], so |sinc^(n)| ≤ 1/(n + 1), and ≤ (1 + n·max|sinc^(n−1)|)/|u|."""
    s, k = np.sin(c), np.cos(c)
    terms = _over_argument(c, [s, k, -s, -k, s][: 4 + first], s / c, "wave")
    near, largest = farthest(low, high)[0], np.ones_like(c)
    for n in range(1, 5 + first):
        largest = np.minimum((1 + n * largest) / near, 1 / (n + 1))
    return *terms, _checked(largest, True)


def _exprel(c: np.ndarray, low: np.ndarray, high: np.ndarray, first: int = 0) -> Expansion:
    """exprel^(n)(u) = ∫t^n e^(tu)dt over [0, 1] increases: ≤ e^u·min(1/(n + 1), 1/u), and ≤ exprel(u)/(n + 1) for u < 0."""
    terms = _over_argument(c, [np.exp(c)] * (4 + first), exprel(c), "right")
    most = 5.0 + first
    fourth = np.where(high > 0, np.exp(high) / np.maximum(most, high), exprel(np.minimum(high, 0.0)) / most)
    return *terms, _checked(fourth * (1 + SLIP), True)


def _root(root: np.ufunc, q: float, c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """Of u^q: a coefficient is (q − k)/((k + 1)u) times the one before it."""
    a, near = [root(c)], farthest(low, high)[0]
    fourth = root(near)
    for k in range(4):
        a.append(a[-1] * ((q - k) / (k + 1)) / c)
        fourth = fourth * abs(q - k) / near
    return a[:4], [np.abs(t) for t in a[:4]], _checked(fourth, near > 0)


def _wave(s: np.ndarray, k: np.ndarray) -> Expansion:
    one = np.ones_like(s)
    return [s, k, -s / 2, -k / 6], [np.abs(s), np.abs(k), one, one], one


def _square_slope(
    t: np.ndarray, near: np.ndarray, far: np.ndarray, sign: int, good: np.ndarray | bool = True
) -> Expansion:
    """tan′ = 1 + tan², tanh′ = 1 − tanh²; t⁗ = 8t(2 ± 3t²)(1 ± t²) where t is nearest to 0 and farthest from it."""
    square = t * t
    q, size, slip = 1 + sign * square, 1 + square, 4 * LIBRARY * (sign < 0)
    a = [t, q, sign * t * q, q * (3 * square + sign) / 3]
    factor = np.maximum(np.abs(2 + 3 * sign * near**2), np.abs(2 + 3 * sign * far**2)) + slip
    fourth = 8 * far * factor * (1 + sign * near**2 + slip)
    return a, [np.abs(t), size, np.abs(t) * size, size * (3 * square + 1) / 3], _checked(fourth, good)


def _tan(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    far = np.maximum(np.abs(np.tan(low)), np.abs(np.tan(high)))
    return _square_slope(np.tan(c), far, far, 1, same_branch(low, high))


def _tanh(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    near, far = farthest(low, high)
    return _square_slope(np.tanh(c), np.tanh(near), np.tanh(far), -1)


def _sigmoid(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """σ(u) = (1 + tanh(u/2))/2."""
    a, sizes, fourth = _tanh(c / 2, low / 2, high / 2)
    terms, sizes = ([expit(c), t[1] / 4, t[2] / 8, t[3] / 16] for t in (a, sizes))
    return terms, sizes, fourth / 32


def _atan(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """atan⁗ = 24u(1 − u²)/(1 + u²)⁴."""
    q = 1 / (1 + c * c)
    near, far = farthest(low, high)
    a = [np.arctan(c), q, -c * q**2, (3 * c * c - 1) * q**3 / 3]
    fourth = 24 * far * np.maximum(np.abs(1 - near**2), np.abs(1 - far**2)) / (1 + near**2) ** 4
    return a, [np.abs(a[0]), q, np.abs(a[2]), (3 * c * c + 1) * q**3 / 3], _checked(np.minimum(fourth, 5.0), True)


def _asin(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """asin⁗ = (9u + 6u³)(1 − u²)^(−7/2)."""
    q = (1 - c) * (1 + c)
    a = [np.arcsin(c), q**-0.5, c * q**-1.5 / 2, (1 + 2 * c * c) * q**-2.5 / 6]
    far = farthest(low, high)[1]
    fourth = _checked((9 * far + 6 * far**3) * ((1 - far) * (1 + far)) ** -3.5, far < 1)
    return a, [np.abs(t) for t in a], fourth


def _erf(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    """erf' = 2/√π e^(−u²), erf⁗ = (12u − 8u³) erf'."""
    d = 2 / SQRT_PI * np.exp(-c * c)
    near, far = farthest(low, high)
    a = [erf(c), d, -c * d, (2 * c * c - 1) * d / 3]
    steep = 2 / SQRT_PI * np.exp(-near * near)
    fourth = steep * far * np.maximum(np.abs(12 - 8 * near**2), np.abs(12 - 8 * far**2))
    spread = d * (1 + c * c)  # the exponent is rounded too
    sizes = [np.abs(a[0]), spread, np.abs(c) * spread, (2 * c * c + 1) * spread / 3]
    return a, sizes, _checked(np.fmin(fourth, 20.0), True)


def _floor(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
    zero = np.zeros_like(c)
    a = [np.floor(c), zero, zero, zero]
    return a, [zero] * 4, np.where(np.floor(low) == np.floor(high), 0.0, np.inf)


def _by_series(name: str) -> Expanding:
    """By interval arithmetic on the function's power series: at c and on [low, high]."""

    def on(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
        from .axes import series_of

        at, around = series_of(name, c, c, 3), series_of(name, low, high, 4)
        a = [(at[0][k] + at[1][k]) / 2 for k in range(4)]
        off = [(at[1][k] - at[0][k]) / 2 + LIBRARY * np.abs(a[k]) for k in range(4)]
        sizes = [np.maximum(np.abs(a[k]), off[k] / SLIP * UP) for k in range(4)]
        fourth = 24 * np.maximum(np.abs(around[0][4]), np.abs(around[1][4]))
        return a, sizes, _checked(np.fmin(fourth, np.inf), True)

    return on


def _made(f: Function) -> Expanding:
    """By series where arrays have all that is in them, else through balls."""
    from .axes import has_series

    return _by_series(name_of(f)) if has_series(f) else partial(derived.expansion, f)


EXPANSIONS = Readings(
    _made,
    exp=_exp,
    log=_log,
    sqrt=partial(_root, np.sqrt, 0.5),
    sin=lambda c, low, high: _wave(np.sin(c), np.cos(c)),
    cos=lambda c, low, high: _wave(np.cos(c), -np.sin(c)),
    tan=_tan,
    tanh=_tanh,
    sigmoid=_sigmoid,
    erf=_erf,
    atan=_atan,
    asin=_asin,
    acos=lambda c, low, high: _beside(np.arccos(c), _asin(c, low, high), -1.0),
    expm1=lambda c, low, high: _beside(np.expm1(c), _exp(c, low, high)),
    log1p=lambda c, low, high: _beside(np.log1p(c), _log(1 + c, 1 + low, 1 + high)),
    softplus=_softplus,
    sinc=_sinc,
    exprel=_exprel,
    sinc1=lambda c, low, high: _sinc(c, low, high, first=1),
    exprel1=lambda c, low, high: _exprel(c, low, high, first=1),
    cbrt=partial(_root, np.cbrt, 1 / 3),
    floor=_floor,
)
