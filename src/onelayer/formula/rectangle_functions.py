"""Operations and functions on complex rectangles, symmetric about the real line, many at once.

A value is (low, high, im): Re z ∈ [low, high], |Im z| ≤ im. Ends are rounded outward: by `SLIP` relative to the sizes of the
terms, which covers some forty operations, the library's functions with `ULPS` units in the last place among them. Where a
function is not analytic, some end is not finite: sqrt and log need Re z > 0, log1p Re z > −1, cbrt and quotients Re z ≠ 0.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .taylor import interval_series as of_series
from .taylor.bounds import BOUNDS, MOMENTS, farthest, nearest
from .taylor.interval_series import SLIP, product_of_ranges
from .taylor.series import TINY

Rectangle: TypeAlias = tuple[Any, Any, Any]


def outward(low: Any, high: Any, im: Any, size: Any) -> Rectangle:
    """The rectangle, widened for terms of this size."""
    return *of_series.outward(low, high, size), im * (1 + SLIP) + TINY


def sizes(z: Sequence[Any]) -> Any:
    """max |Re z|."""
    return np.maximum(np.abs(z[0]), np.abs(z[1]))


def total(x: Rectangle, y: Rectangle) -> Rectangle:
    return outward(x[0] + y[0], x[1] + y[1], x[2] + y[2], sizes(x) + sizes(y))


def negated(z: Rectangle) -> Rectangle:
    return -z[1], -z[0], z[2]


def product(x: Rectangle, y: Rectangle) -> Rectangle:
    """Re = Re Re − Im Im, Im = Re Im + Im Re."""
    low, high = product_of_ranges(x[:2], y[:2])
    A, B, turned = sizes(x), sizes(y), x[2] * y[2]
    return outward(low - turned, high + turned, A * y[2] + B * x[2], A * B + turned)


def square(z: Rectangle) -> Rectangle:
    (near, far), turned = farthest(z[0], z[1]), z[2] * z[2]
    return outward(near * near - turned, far * far, 2 * far * z[2], far * far + turned)


def _odd(function: Callable[[Rectangle], Rectangle], z: Rectangle) -> Rectangle:
    """An odd function that is known where Re z > 0; nowhere else but where Re z < 0."""
    flip = z[1] < 0
    a, b = np.where(flip, -z[1], z[0]), np.where(flip, -z[0], z[1])
    low, high, im = function((np.where(a > 0, a, np.nan), b, z[2]))
    return np.where(flip, -high, low), np.where(flip, -low, high), im


def _reciprocal(z: Rectangle) -> Rectangle:
    """Re 1/z = x/(x² + y²): at y = 0 it is 1/x, at |y| = e least at an end of x. |Im| = y/(x² + y²), at most 1/2x."""
    a, b, e = z
    high, low = 1 / a, 1 / np.maximum(a + e * (e / a), b + e * (e / b))
    return outward(low, high, np.where(e >= a, 0.5 / a, (e / a) / (a + e * (e / a))), high)


reciprocal = partial(_odd, _reciprocal)


def _turn(e: Any) -> tuple[Any, Any, Any]:
    """(least cos y, largest cos y, largest |sin y|) for |y| ≤ e."""
    return np.cos(np.minimum(e, math.pi)) - 1e-15, 1.0, np.where(e < 1.57, np.sin(np.minimum(e, 1.57)), 1.0)


def _growth(e: Any) -> tuple[Any, Any, Any]:
    """The same of cosh y and sinh y."""
    return 1.0, np.cosh(e) * (1 + SLIP), np.sinh(e) * (1 + SLIP)


def _apart(name: str, other: str, along: Callable[[Any], tuple[Any, Any, Any]]) -> Callable[[Rectangle], Rectangle]:
    """sin: Re = sin x cosh y, |Im| = |cos x sinh y|; sinh: Re = sinh x cos y, |Im| = |cosh x sin y|; cos and cosh likewise."""

    def on(z: Rectangle) -> Rectangle:
        own, slope, (least, most, turned) = BOUNDS[name](z[0], z[1]), BOUNDS[other](z[0], z[1]), along(z[2])
        return outward(*product_of_ranges(own, (least, most)), sizes(slope) * turned, sizes(own) * most)

    return on


def exponential(z: Rectangle) -> Rectangle:
    (low, high), (c, _, s) = BOUNDS["exp"](z[0], z[1]), _turn(z[2])
    return outward(np.where(c >= 0, low * c, high * c), high, high * s, high)


def logarithm(z: Rectangle) -> Rectangle:
    a, b, e = np.where(z[0] > 0, z[0], np.nan), z[1], z[2]
    low, high = np.log(a), np.log(np.hypot(b, e))
    return outward(low, high, np.arctan(e / a), 1 + np.abs(low) + np.abs(high))


def _sqrt(z: Rectangle) -> Rectangle:
    """Re √z = √((|z| + x)/2) grows with x and |y|; |Im √z| = |y|/(2 Re √z) falls with x and grows with |y|."""
    a, b, e = np.where(z[0] > 0, z[0], np.nan), z[1], z[2]
    high = np.sqrt((np.hypot(b, e) + b) / 2)
    return outward(np.sqrt(a), high, e / (2 * np.sqrt((np.hypot(a, e) + a) / 2)), high)


def _tanh(z: Rectangle) -> Rectangle:
    """tanh(x + iy) = (sinh 2x + i sin 2y)/(cosh 2x + cos 2y).

    For x ≥ 0 the real part grows with |y| from tanh x, and with x if cos 2y ≥ 0; else it is at most 1/|sin 2y|. The
    imaginary part falls with |x|; in y it grows as long as cosh 2x cos 2y ≥ −1, and it is at most 1/sinh 2|x|.
    """
    e = np.where(z[2] < 1.5, z[2], np.nan)  # the poles are at ±iπ/2
    c, s = np.cos(2 * e), np.sin(2 * e)
    low, high = BOUNDS["tanh"](z[0], z[1])

    def outer(x: Any) -> Any:
        x = np.minimum(x, 300.0)
        return np.where(c >= 0, np.sinh(2 * x) / (np.cosh(2 * x) + np.maximum(c, 0.0)), 1 / np.where(c >= 0, 1.0, s))

    low = np.where(z[0] >= 0, low, -outer(np.maximum(-z[0], 0.0)))
    high = np.where(z[1] <= 0, high, outer(np.maximum(z[1], 0.0)))
    near = np.minimum(nearest(z[0], z[1]), 300.0)
    C = np.cosh(2 * near) * (1 - SLIP)
    grows = C * c >= -1 + 1e-12
    im = np.where(grows, s / np.where(grows, C + c, 1.0), 1 / np.where(grows, 1.0, np.sinh(2 * near)))
    return outward(low, high, im * (1 + 1e-9), 1e5 * (np.abs(low) + np.abs(high)))  # C + c may cancel, by 2000 at most


def _sigmoid(z: Rectangle) -> Rectangle:
    """(1 + tanh(z/2))/2."""
    low, high, im = _tanh((z[0] / 2, z[1] / 2, z[2] / 2))
    return outward((1 + low) / 2, (1 + high) / 2, im / 2, 1 + np.abs(low) + np.abs(high))


def _atan(z: Rectangle) -> Rectangle:
    """For |y| < 1: Re atan grows with x, its size grows with |y|; |Im| = artanh(2|y|/(1 + x² + y²))/2 falls with |x|."""
    e = np.where(z[2] < 0.99, z[2], np.nan)

    def re(x: Any, y: Any) -> Any:
        return np.arctan2(2 * x, 1 - x * x - y * y) / 2

    low, high = re(z[0], np.where(z[0] < 0, e, 0.0)), re(z[1], np.where(z[1] > 0, e, 0.0))
    near = nearest(z[0], z[1])
    return outward(low, high, np.arctanh(2 * e / (1 + near * near + e * e)) / 2 * (1 + 1e-9), 1e5)


def _asin(z: Rectangle) -> Rectangle:
    """With r, s = |z ± 1|: Re = asin(2x/(r + s)) grows with x, its size falls with |y|; |Im| = arcosh((r + s)/2)."""
    good = (z[0] > -1) & (z[1] < 1)
    e = np.where(good, z[2], np.nan)

    def both(x: Any, y: Any) -> Any:
        return np.hypot(1 + x, y) + np.hypot(1 - x, y)

    low = np.arcsin(np.clip(2 * z[0] / both(z[0], np.where(z[0] > 0, e, 0.0)) * (1 + SLIP), -1, 1))
    high = np.arcsin(np.clip(2 * z[1] / both(z[1], np.where(z[1] < 0, e, 0.0)) * (1 + SLIP), -1, 1))
    low, high = np.where(z[0] > 0, low * (1 - 1e-7), low), np.where(z[1] < 0, high * (1 - 1e-7), high)
    far = np.arccosh(both(sizes(z), e) / 2 * (1 + SLIP) + SLIP)
    return outward(low - 2e-7 * (np.abs(low) > 1), high + 2e-7 * (np.abs(high) > 1), far * (1 + SLIP), 1e2)


def _acos(z: Rectangle) -> Rectangle:
    low, high, im = _asin(z)
    return outward(math.pi / 2 - high, math.pi / 2 - low, im, 4.0)


def _erf(z: Rectangle) -> Rectangle:
    """|erf(x + iy) − erf x| ≤ (2/√π)|y| e^(y² − x²): the integral of erf′ from x to x + iy."""
    low, high = BOUNDS["erf"](z[0], z[1])
    near = nearest(z[0], z[1])
    off = 1.1284 * z[2] * np.exp((z[2] - near) * (z[2] + near) + SLIP * (near * near + z[2] * z[2]))
    return outward(low - off, high + off, off, 1 + off)


def _expm1(z: Rectangle) -> Rectangle:
    """Re = expm1 x − e^x·2 sin²(y/2) = e^x cos y − 1, |Im| = |e^x sin y|."""
    (a, b), (low, high) = BOUNDS["exp"](z[0], z[1]), BOUNDS["expm1"](z[0], z[1])
    S, s = 2 * np.sin(np.minimum(z[2], math.pi) / 2) ** 2, _turn(z[2])[2]
    bottom = np.where(S <= 1, low - a * S, high - b * S)
    return outward(bottom, high, b * s, np.abs(low) + np.abs(high) + b * S)


def _log1p(z: Rectangle) -> Rectangle:
    """Re = log1p x + log1p((y/(1 + x))²)/2 grows with x and |y|; |Im| = atan(|y|/(1 + x))."""
    low, high = BOUNDS["log1p"](z[0], z[1])
    more = np.log1p((z[2] / (1 + z[1])) ** 2) / 2
    im = np.arctan(z[2] / np.where(z[0] > -1, 1 + z[0], np.nan))
    return outward(low, high + more, im, np.abs(low) + np.abs(high) + more)


def _softplus(z: Rectangle) -> Rectangle:
    """log(1 + s e^(iy)), s = e^x; the poles of its slope are at ±iπ.

    |1 + s e^(iy)|² = 1 + s(2 cos y + s) falls with |y|; it grows with s if cos y ≥ 0 or s ≥ 1, else it is at least sin²y. The
    angle grows with s; it grows with |y| as long as cos y ≥ −s, and for s < 1 it is at most asin s.
    """
    e = np.where(z[2] < 2.5, z[2], np.nan)
    c, s, high = np.cos(e), np.sin(e), BOUNDS["softplus"](z[0], z[1])[1]
    t, u = np.exp(-np.abs(z[0])), np.exp(-np.abs(z[1]))  # e^x or e^(−x), whichever is small
    grows = (c >= 0) | (z[0] >= 0)
    low = np.where(grows, np.maximum(z[0], 0.0) + np.log1p(t * (2 * c + t)) / 2, np.log(s) - SLIP)
    turned = np.where(z[1] > 0, np.arctan2(s, u + c), np.arctan2(u * s, 1 + u * c))
    im = np.where((z[1] > 0) | (c >= -u), turned, np.arcsin(np.minimum(u, 1.0)))
    return outward(low, high, im * (1 + 10 * SLIP), high + np.abs(low))


def narrowed(x: Rectangle, y: Rectangle) -> Rectangle:
    """The values that lie in both; one of the two may be unknown."""
    return np.fmax(x[0], y[0]), np.fmin(x[1], y[1]), np.fmin(x[2], y[2])


def _sinc(z: Rectangle, n: int = 0) -> Rectangle:
    """sinc^(n), n ≤ 1, ∫t^n cos(tz + nπ/2)dt over [0, 1]; and as sin(z)/z, or (cos z − sinc z)/z.

    Re = sinc^(n)(x) + ∫t^n cos(tx + nπ/2)(cosh(ty) − 1)dt, the integral at most y²cosh(y)/(6 + 2n), as cosh(ty) − 1 ≤
    t²y²cosh(y)/2, and not negative if n = 0 and |x| ≤ π/2. |Im| ≤ |y|cosh(y)/3 if n = 1, else |xy|cosh(y)/3 and sinh|y|.
    """
    low, high = (end[1] for end in MOMENTS["sinc"](z[0], z[1], 1)) if n else BOUNDS["sinc"](z[0], z[1])
    e, C = z[2], np.cosh(z[2])
    off, im = e * e * C / (6 + 2 * n), e * C / 3
    less, above = off, total(MAPS["cos"](z), negated(_sinc(z))) if n else MAPS["sin"](z)
    if n == 0:
        far = sizes(z)
        im, less = np.minimum(far * im, np.sinh(e)), np.where(far < 1.57, 0.0, off)
    return narrowed(outward(low - less, high + off, im, 1 + off), product(above, reciprocal(z)))


def _exprel(z: Rectangle, n: int = 0) -> Rectangle:
    """exprel^(n), n ≤ 1, ∫t^n e^(tz)dt over [0, 1]; and as (e^z − 1)/z, or (e^z − exprel z)/z.

    Re = ∫t^n e^(tx)cos(ty)dt, |Im| ≤ |y|∫t^(n+1) e^(tx)dt, cos(ty) ≥ 1 − t²y²/2. With weights e^(tx) the mean of t grows with
    x, and is at most min(1/2 + x/12, 1) for x ≥ 0; for x ≤ 0 it is at most 1/2 and 1/|x|, and the mean of t² at most 1/3.
    """
    low, high = (end[1] for end in MOMENTS["exprel"](z[0], z[1], 1)) if n else BOUNDS["exprel"](z[0], z[1])
    e, right = z[2], z[1] > 0
    first: Any = 1.0
    second: Any = 1.0
    if n == 0:
        first = np.where(right, np.minimum(0.5 + z[1] / 12, 1.0), 1 / np.maximum(2.0, -z[1]))
        second = np.where(right, first, 1 / 3)
    c = np.maximum(np.cos(np.minimum(e, math.pi)) - 1e-15, 1 - e * e / 2 * second)
    around = outward(np.where(c >= 0, low * c, high * c), high, high * np.minimum(e * first, 1.0), high)
    above = total(exponential(z), negated(_exprel(z))) if n else _expm1(z)
    return narrowed(around, product(above, reciprocal(z)))


def _cbrt(z: Rectangle) -> Rectangle:
    """For x > 0, Re ∛z grows with x and |y|; |Im ∛z| falls with x and grows with |y|."""
    a, b, e = z
    high = np.cbrt(np.hypot(b, e)) * np.cos(np.arctan2(e, b) / 3)
    return outward(np.cbrt(a), high, np.cbrt(np.hypot(a, e)) * np.sin(np.arctan2(e, a) / 3), high)


MAPS: dict[str, Callable[[Rectangle], Rectangle]] = {
    "exp": exponential,
    "log": logarithm,
    "sqrt": _sqrt,
    "sin": _apart("sin", "cos", _growth),
    "cos": _apart("cos", "sin", _growth),
    "tan": lambda z: product(MAPS["sin"](z), reciprocal(MAPS["cos"](z))),
    "sinh": _apart("sinh", "cosh", _turn),
    "cosh": _apart("cosh", "sinh", _turn),
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "atan": _atan,
    "asin": _asin,
    "acos": _acos,
    "erf": _erf,
    "expm1": _expm1,
    "log1p": _log1p,
    "softplus": _softplus,
    "sinc": _sinc,
    "exprel": _exprel,
    "sinc1": partial(_sinc, n=1),
    "exprel1": partial(_exprel, n=1),
    "cbrt": partial(_odd, _cbrt),
}
