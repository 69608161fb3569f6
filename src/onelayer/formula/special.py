"""Functions of the language that NumPy or torch lack, or have in another form, on arrays of either library.

Each is accurate to a few units in the last place for real arguments, and has autograd's derivatives also where its own
quotient is 0/0. `library` is numpy or torch; complex arguments take principal values.
"""

from typing import Any

import numpy as np

from ..common.errors import InputError

SMALL = 0.01  # below it sinc and exprel are sums: x^8/9! and x^7/8! are far below a unit in the last place

NEAR = 0.5  # below it their slopes are sums: x^19/(21·20!) and x^16/(16!·18) are far below a unit in the last place


def sinc(library: Any, x: Any, is_complex: bool = False) -> Any:
    """sin(x)/x, and 1 at 0."""
    small, square = library.abs(x) < SMALL, x * x
    apart = library.where(small, library.ones_like(x), x)
    near = 1 - square / 6 * (1 - square / 20 * (1 - square / 42))
    return library.where(small, near, library.sin(apart) / apart)


def exprel(library: Any, x: Any, is_complex: bool = False) -> Any:
    """(e^x − 1)/x, and 1 at 0."""
    small, near = library.abs(x) < SMALL, library.ones_like(x)
    for k in (7, 6, 5, 4, 3, 2):
        near = 1 + x / k * near
    apart = library.where(small, library.ones_like(x), x)
    return library.where(small, near, library.expm1(apart) / apart)


def sinc1(library: Any, x: Any, is_complex: bool = False) -> Any:
    """sinc′(x) = (cos(x) − sinc(x))/x, and 0 at 0."""
    small = library.abs(x) < NEAR
    inside, apart = library.where(small, x, library.zeros_like(x)), library.where(small, library.ones_like(x), x)
    square, near = inside * inside, library.ones_like(x)
    for k in range(9, 0, -1):
        near = 1 - square / (2 * k * (2 * k + 3)) * near
    return library.where(small, -inside / 3 * near, (library.cos(apart) - sinc(library, apart)) / apart)


def exprel1(library: Any, x: Any, is_complex: bool = False) -> Any:
    """exprel′(x) = (e^x − exprel(x))/x = Σ x^j/(j!(j + 2)), and ½ at 0."""
    small = library.abs(x) < NEAR
    inside, apart = library.where(small, x, library.zeros_like(x)), library.where(small, library.ones_like(x), x)
    near = library.ones_like(x) / 2
    for j in range(15, 0, -1):  # the ratio of two terms
        near = near * inside * (j + 1) / (j * (j + 2)) + 0.5
    return library.where(small, near, (library.exp(apart) - exprel(library, apart)) / apart)


def softplus(library: Any, x: Any, is_complex: bool = False) -> Any:
    """log(1 + e^x), without overflow."""
    if not is_complex:
        return library.logaddexp(x, library.zeros_like(x))
    right = x.real >= 0
    return library.where(right, x, library.zeros_like(x)) + library.log1p(library.exp(library.where(right, -x, x)))


def cbrt(library: Any, x: Any, is_complex: bool = False) -> Any:
    """The cube root, of negative numbers too."""
    if is_complex:
        right = x.real >= 0
        root = library.where(right, x, -x) ** (1 / 3)
        return library.where(right, root, -root)
    return np.cbrt(x) if library is np else library.sign(x) * library.abs(x) ** (1 / 3)


def sigmoid(library: Any, x: Any, is_complex: bool = False) -> Any:
    """1/(1 + e^(−x))."""
    if is_complex:
        shrink = library.exp(library.where(x.real < 0, x, -x))
        return library.where(x.real < 0, shrink, library.ones_like(shrink)) / (1 + shrink)
    if library is not np:
        return library.sigmoid(x)
    from scipy.special import expit  # importing it changes the warning filters: only when used

    return np.where(x < -700, np.exp(x), expit(x)).astype(x.dtype)  # far left SciPy has 0


def erf(library: Any, x: Any, is_complex: bool = False) -> Any:
    if library is np:
        from scipy.special import erf as error_function

        return np.asarray(error_function(x), dtype=x.dtype)
    if is_complex:
        raise InputError("erf of a complex torch batch", "torch has no complex erf", "pass a complex NumPy batch")
    return library.erf(x)


def sqr(library: Any, x: Any, is_complex: bool = False) -> Any:
    return x * x


def atan2(library: Any, y: Any, x: Any, is_complex: bool = False) -> Any:
    """The angle of the point (x, y), π where y = 0 and x < 0; nan at (0, 0)."""
    if is_complex:
        atan = library.arctan
        above = library.where(y.real > 0, np.pi / 2 - atan(x / y), -np.pi / 2 - atan(x / y))
        left = library.where(y.real == 0, np.pi + atan(y / x), above)
        return library.where(x.real > 0, atan(y / x), left)
    found = library.arctan2(y + 0.0, x + 0.0)  # −0 counts as 0
    return library.where((x == 0) & (y == 0), found + float("nan"), found)
