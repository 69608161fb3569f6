"""Complex enclosures of a formula on many boxes at once: rectangles symmetric about the real line.

A value is (low, high, im): Re z ∈ [low, high], |Im z| ≤ im. Formulas are real on the real line, so with symmetric arguments
every value is symmetric. Where a result is finite, two things are proved, as in `complex_balls`: the formula is analytic
around the box, and its values lie in the rectangle. One non-finite value on the way makes the result infinite: sqrt, log and
powers need Re z > 0, quotients Re z ≠ 0; abs, min, max and `where` must be decided by real parts that are apart.

Ends are rounded outward: by `SLIP` relative to the sizes of the terms, which covers some forty operations, the library's
functions with `ULPS` units in the last place among them.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from .expression import Formula
from .tape import Algebra
from .taylor.bounds import BOUNDS

SLIP = 1e-14
TINY = 1e-300  # covers underflow

Rectangle: TypeAlias = tuple[Any, Any, Any]


def _out(low: Any, high: Any, im: Any, size: Any) -> Rectangle:
    """The rectangle, widened for terms of this size."""
    return low - SLIP * size - TINY, high + SLIP * size + TINY, im * (1 + SLIP) + TINY


def _sizes(z: Rectangle) -> Any:
    """max |Re z|."""
    return np.maximum(np.abs(z[0]), np.abs(z[1]))


def _nearest(z: Rectangle) -> Any:
    """min |Re z|."""
    return np.maximum(np.maximum(z[0], -z[1]), 0.0)


def _sum(x: Rectangle, y: Rectangle) -> Rectangle:
    return _out(x[0] + y[0], x[1] + y[1], x[2] + y[2], _sizes(x) + _sizes(y))


def _negation(z: Rectangle) -> Rectangle:
    return -z[1], -z[0], z[2]


def _products(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """[a, b]·[c, d]."""
    ends = a * c, a * d, b * c, b * d
    return reduce(np.minimum, ends), reduce(np.maximum, ends)


def _product(x: Rectangle, y: Rectangle) -> Rectangle:
    """Re = Re Re − Im Im, Im = Re Im + Im Re."""
    low, high = _products(*x[:2], *y[:2])
    A, B, turned = _sizes(x), _sizes(y), x[2] * y[2]
    return _out(low - turned, high + turned, A * y[2] + B * x[2], A * B + turned)


def _square(z: Rectangle) -> Rectangle:
    near, far, turned = _nearest(z), _sizes(z), z[2] * z[2]
    return _out(near * near - turned, far * far, 2 * far * z[2], far * far + turned)


def _reciprocal(z: Rectangle) -> Rectangle:
    """Re 1/z = x/(x² + y²): at y = 0 it is 1/x, at |y| = e least at an end of x. |Im| = y/(x² + y²), at most 1/2x."""
    a, b, e = np.where(z[1] < 0, -z[1], z[0]), np.where(z[1] < 0, -z[0], z[1]), z[2]
    good = a > 0
    a = np.where(good, a, np.nan)
    high, low = 1 / a, 1 / np.maximum(a + e * (e / a), b + e * (e / b))
    low, high, im = _out(low, high, np.where(e >= a, 0.5 / a, (e / a) / (a + e * (e / a))), high)
    flip = z[1] < 0
    return np.where(flip, -high, low), np.where(flip, -low, high), im


def _turn(e: Any) -> tuple[Any, Any]:
    """(least cos y, largest |sin y|) for |y| ≤ e."""
    return np.cos(np.minimum(e, math.pi)) - 1e-15, np.where(e < 1.57, np.sin(np.minimum(e, 1.57)), 1.0)


def _exp(z: Rectangle) -> Rectangle:
    (low, high), (c, s) = BOUNDS["exp"](z[0], z[1]), _turn(z[2])
    return _out(np.where(c >= 0, low * c, high * c), high, high * s, high)


def _log(z: Rectangle) -> Rectangle:
    a, b, e = np.where(z[0] > 0, z[0], np.nan), z[1], z[2]
    low, high = np.log(a), np.log(np.hypot(b, e))
    return _out(low, high, np.arctan(e / a), 1 + np.abs(low) + np.abs(high))


def _sqrt(z: Rectangle) -> Rectangle:
    """Re √z = √((|z| + x)/2) grows with x and |y|; |Im √z| = |y|/(2 Re √z) falls with x and grows with |y|."""
    a, b, e = np.where(z[0] > 0, z[0], np.nan), z[1], z[2]
    high = np.sqrt((np.hypot(b, e) + b) / 2)
    return _out(np.sqrt(a), high, e / (2 * np.sqrt((np.hypot(a, e) + a) / 2)), high)


def _wave(name: str, other: str) -> Callable[[Rectangle], Rectangle]:
    """sin: Re = sin x cosh y, |Im| = |cos x sinh y|; cos likewise."""

    def on(z: Rectangle) -> Rectangle:
        (low, high), slope = BOUNDS[name](z[0], z[1]), BOUNDS[other](z[0], z[1])
        cosh, sinh = np.cosh(z[2]) * (1 + SLIP), np.sinh(z[2]) * (1 + SLIP)
        im = np.maximum(np.abs(slope[0]), np.abs(slope[1])) * sinh
        return _out(np.where(low < 0, low * cosh, low), np.where(high > 0, high * cosh, high), im, cosh)

    return on


def _hyperbolic(name: str, other: str) -> Callable[[Rectangle], Rectangle]:
    """sinh: Re = sinh x cos y, |Im| = |cosh x sin y|; cosh likewise."""

    def on(z: Rectangle) -> Rectangle:
        own, slope, (c, s) = BOUNDS[name](z[0], z[1]), BOUNDS[other](z[0], z[1]), _turn(z[2])
        low, high = _products(*own, c, np.ones_like(c))
        size = np.maximum(np.abs(own[0]), np.abs(own[1]))
        return _out(low, high, np.maximum(np.abs(slope[0]), np.abs(slope[1])) * s, size)

    return on


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
    near = np.minimum(_nearest(z), 300.0)
    C = np.cosh(2 * near) * (1 - SLIP)
    grows = C * c >= -1 + 1e-12
    im = np.where(grows, s / np.where(grows, C + c, 1.0), 1 / np.where(grows, 1.0, np.sinh(2 * near)))
    return _out(low, high, im * (1 + 1e-9), 1e5 * (np.abs(low) + np.abs(high)))  # C + c may cancel, by 2000 at most


def _sigmoid(z: Rectangle) -> Rectangle:
    """(1 + tanh(z/2))/2."""
    low, high, im = _tanh((z[0] / 2, z[1] / 2, z[2] / 2))
    return _out((1 + low) / 2, (1 + high) / 2, im / 2, 1 + np.abs(low) + np.abs(high))


def _atan(z: Rectangle) -> Rectangle:
    """For |y| < 1: Re atan grows with x, its size grows with |y|; |Im| = artanh(2|y|/(1 + x² + y²))/2 falls with |x|."""
    e = np.where(z[2] < 0.99, z[2], np.nan)

    def re(x: Any, y: Any) -> Any:
        return np.arctan2(2 * x, 1 - x * x - y * y) / 2

    low, high = re(z[0], np.where(z[0] < 0, e, 0.0)), re(z[1], np.where(z[1] > 0, e, 0.0))
    near = _nearest(z)
    return _out(low, high, np.arctanh(2 * e / (1 + near * near + e * e)) / 2 * (1 + 1e-9), 1e5)


def _asin(z: Rectangle) -> Rectangle:
    """With r, s = |z ± 1|: Re = asin(2x/(r + s)) grows with x, its size falls with |y|; |Im| = arcosh((r + s)/2)."""
    good = (z[0] > -1) & (z[1] < 1)
    e = np.where(good, z[2], np.nan)

    def both(x: Any, y: Any) -> Any:
        return np.hypot(1 + x, y) + np.hypot(1 - x, y)

    low = np.arcsin(np.clip(2 * z[0] / both(z[0], np.where(z[0] > 0, e, 0.0)) * (1 + SLIP), -1, 1))
    high = np.arcsin(np.clip(2 * z[1] / both(z[1], np.where(z[1] < 0, e, 0.0)) * (1 + SLIP), -1, 1))
    low, high = np.where(z[0] > 0, low * (1 - 1e-7), low), np.where(z[1] < 0, high * (1 - 1e-7), high)
    far = np.arccosh(both(_sizes(z), e) / 2 * (1 + SLIP) + SLIP)
    return _out(low - 2e-7 * (np.abs(low) > 1), high + 2e-7 * (np.abs(high) > 1), far * (1 + SLIP), 1e2)


def _acos(z: Rectangle) -> Rectangle:
    low, high, im = _asin(z)
    return _out(math.pi / 2 - high, math.pi / 2 - low, im, 4.0)


def _erf(z: Rectangle) -> Rectangle:
    """|erf(x + iy) − erf x| ≤ (2/√π)|y| e^(y² − x²): the integral of erf′ from x to x + iy."""
    low, high = BOUNDS["erf"](z[0], z[1])
    near = _nearest(z)
    off = 1.1284 * z[2] * np.exp((z[2] - near) * (z[2] + near) + SLIP * (near * near + z[2] * z[2]))
    return _out(low - off, high + off, off, 1 + off)


_MAPS: dict[str, Callable[[Rectangle], Rectangle]] = {
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "sin": _wave("sin", "cos"),
    "cos": _wave("cos", "sin"),
    "tan": lambda z: _product(_MAPS["sin"](z), _reciprocal(_MAPS["cos"](z))),
    "sinh": _hyperbolic("sinh", "cosh"),
    "cosh": _hyperbolic("cosh", "sinh"),
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "atan": _atan,
    "asin": _asin,
    "acos": _acos,
    "erf": _erf,
    "sqr": _square,
}


class RectangleAlgebra(Algebra[Rectangle, Any]):
    """Rectangles as arrays over the boxes; truth values are (true, false) masks. `lost`: where some value is not finite."""

    key: Hashable = None

    def __init__(self, box: Sequence[Rectangle]) -> None:
        self.box = box
        self.lost: Any = False

    def _kept(self, z: Rectangle) -> Rectangle:
        self.lost = self.lost | ~(np.isfinite(z[0]) & np.isfinite(z[1]) & np.isfinite(z[2]))
        return z

    def number(self, value: Fraction) -> Rectangle:
        v = np.array([float(value)])
        return (v, v, np.zeros(1)) if Fraction(float(value)) == value else _out(v, v, np.zeros(1), np.abs(v))

    def constant(self, name: str) -> Rectangle:
        v = np.array([math.pi if name == "pi" else math.e])
        return _out(v, v, np.zeros(1), v)

    def variable(self, index: int) -> Rectangle:
        return self.box[index - 1]

    def sum(self, terms: Sequence[Rectangle]) -> Rectangle:
        return self._kept(reduce(_sum, terms))

    def negation(self, operand: Rectangle) -> Rectangle:
        return _negation(operand)

    def product(self, factors: Sequence[Rectangle]) -> Rectangle:
        return self._kept(reduce(_product, factors))

    def quotient(self, dividend: Rectangle, divisor: Rectangle) -> Rectangle:
        return self._kept(_product(dividend, self._kept(_reciprocal(divisor))))

    def integer_power(self, exponent: int, base: Rectangle) -> Rectangle:
        z, n = (base, exponent) if exponent >= 0 else (self._kept(_reciprocal(base)), -exponent)
        found: Rectangle | None = None
        while n:
            if n % 2:
                found = z if found is None else _product(found, z)
            n //= 2
            z = _square(z) if n else z
        return self.number(Fraction(1)) if found is None else self._kept(found)

    def rational_power(self, exponent: Fraction, base: Rectangle) -> Rectangle:
        return self.power(base, self.number(exponent))

    def power(self, base: Rectangle, exponent: Rectangle) -> Rectangle:
        return self._kept(_exp(self._kept(_product(exponent, self._kept(_log(base))))))

    def call(self, name: str, arguments: Sequence[Rectangle]) -> Rectangle:
        if name in ("min", "max"):
            return reduce(lambda x, y: self._extreme(x, y, name == "max"), arguments)
        if name == "abs":
            return self._extreme(arguments[0], _negation(arguments[0]), True)
        if name not in _MAPS:  # no enclosure
            self.lost = True
            return arguments[0]
        return self._kept(_MAPS[name](arguments[0]))

    def _extreme(self, x: Rectangle, y: Rectangle, largest: bool) -> Rectangle:
        above, below = x[0] > y[1], x[1] < y[0]
        self.lost = self.lost | ~(above | below)
        first = above if largest else below
        return np.where(first, x[0], y[0]), np.where(first, x[1], y[1]), np.where(first, x[2], y[2])

    def where(self, condition: Any, yes: Rectangle, no: Rectangle) -> Rectangle:
        self.lost = self.lost | ~(condition[0] | condition[1])
        low, high, im = (np.where(condition[0], a, b) for a, b in zip(yes, no, strict=True))
        return low, high, im

    def comparison(self, relation: str, left: Rectangle, right: Rectangle) -> Any:
        below, above = left[1] < right[0], left[0] > right[1]
        return (below, above) if relation in ("<", "<=") else (above, below)

    def conjunction(self, parts: Sequence[Any]) -> Any:
        return reduce(np.logical_and, [p[0] for p in parts]), reduce(np.logical_or, [p[1] for p in parts])

    def disjunction(self, parts: Sequence[Any]) -> Any:
        return reduce(np.logical_or, [p[0] for p in parts]), reduce(np.logical_and, [p[1] for p in parts])

    def complement(self, part: Any) -> Any:
        return part[1], part[0]


def enclose_rectangles(formula: Formula, box: Sequence[Rectangle]) -> list[Rectangle]:
    """For every output a rectangle, as arrays over the boxes; the ends are infinite where nothing is proved."""
    algebra = RectangleAlgebra(box)
    with np.errstate(all="ignore"):
        found = formula.tape.run(algebra)
    return [
        (np.where(algebra.lost, -np.inf, a), np.where(algebra.lost, np.inf, b), np.where(algebra.lost, np.inf, e))
        for a, b, e in found
    ]
