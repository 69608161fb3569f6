"""Numbers: a formula at a batch of points, in NumPy or torch.

Rows of x are points; column j − 1 is Variable(j). The result has x's kind, dtype and device. Where a formula has no
value the result is nan or ±inf, without warnings. On torch the result is differentiable by autograd; through the branch
of `where` that was not taken an infinite slope still turns gradients into nan, as everywhere in torch.

Complex batches (NumPy and torch) follow `complex_rectangles`: abs, min, max and comparisons look at real parts, powers and
inverse functions take principal branches. Not guaranteed: any accuracy; floating point rounds as it does.

Functions that NumPy or torch lack, or have in another form (`SPECIAL`), are accurate to a few units in the last place for real
arguments, and have autograd's derivatives also where their own quotient is 0/0. `library` is numpy or torch.
"""

import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from ..common.errors import InputError
from .expression import Condition, Formula, Operators, Tape
from .functions import FUNCTIONS
from .record import Function

Batch = TypeVar("Batch")  # numpy.ndarray or torch.Tensor

_RELATIONS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
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


def atan2(library: Any, y: Any, x: Any, is_complex: bool = False) -> Any:
    """The angle of the point (x, y), π where y = 0 and x < 0; nan at (0, 0)."""
    if is_complex:
        atan = library.arctan
        above = library.where(y.real > 0, np.pi / 2 - atan(x / y), -np.pi / 2 - atan(x / y))
        left = library.where(y.real == 0, np.pi + atan(y / x), above)
        return library.where(x.real > 0, atan(y / x), left)
    found = library.arctan2(y + 0.0, x + 0.0)  # −0 counts as 0
    return library.where((x == 0) & (y == 0), found + float("nan"), found)


SPECIAL = {f.__name__: f for f in (sinc, exprel, sinc1, exprel1, softplus, cbrt, sigmoid, erf)}


def called(f: Function, library: Any, x: Any, is_complex: bool = False) -> Any:
    """φ of an array; number by number where no library has it to the last place. torch has its slope as well."""
    if f.array == "special":
        return SPECIAL[f.name](library, x, is_complex)
    if f.name == "abs" and is_complex:
        return library.where(x.real >= 0, x, -x)
    if f.array:
        return getattr(library, f.numpy or f.array if library is np else f.array)(x)
    if is_complex:
        raise InputError("real arguments", f"{f.name} of a complex batch", "use functions of the libraries")
    from .derived import on_torch, values

    return values(f, np.asarray(x)).astype(x.dtype) if library is np else on_torch(f, x)


class ArrayAlgebra(Operators[Any, Any]):
    """Arrays of one library: `library` is numpy or torch; the batch gives dtype and device."""

    def __init__(self, library: Any, x: Any) -> None:
        self.library, self.x = library, x
        self.numpy = library is np
        self.complex = bool(np.iscomplexobj(x)) if self.numpy else bool(x.is_complex())

    def number(self, value: Fraction) -> Any:
        return self.x.dtype.type(float(value)) if self.numpy else self.x.new_tensor(float(value))

    def constant(self, name: str) -> Any:
        return self.number(Fraction(np.pi if name == "pi" else np.e))

    def variable(self, index: int) -> Any:
        return self.x[:, index - 1]

    def rational_power(self, exponent: Fraction, base: Any) -> Any:
        return base ** float(exponent)

    def power(self, base: Any, exponent: Any) -> Any:
        return base**exponent

    def call(self, name: str, arguments: Sequence[Any]) -> Any:
        x = arguments[0]
        if name in ("min", "max"):
            return reduce(lambda a, b: self.extreme(a, b, largest=name == "max"), arguments)
        if name == "atan2":
            return atan2(self.library, x, arguments[1], self.complex)
        return called(FUNCTIONS[name], self.library, x, self.complex)

    def extreme(self, a: Any, b: Any, largest: bool) -> Any:
        if self.complex:
            return self.library.where(a.real >= b.real if largest else a.real <= b.real, a, b)
        return (self.library.maximum if largest else self.library.minimum)(a, b)

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return self.library.where(condition, yes, no)

    def comparison(self, relation: str, left: Any, right: Any) -> Any:
        if self.complex:
            left, right = left.real, right.real
        return getattr(self.library, _RELATIONS[relation])(left, right)

    def conjunction(self, parts: Sequence[Any]) -> Any:
        return reduce(self.library.logical_and, parts)

    def complement(self, part: Any) -> Any:
        return self.library.logical_not(part)


def evaluate(formula: Formula, x: Batch) -> Batch:
    """f at every row of x [batch, D], as [batch, outputs] of the same kind and dtype."""
    return _columns(formula.tape, formula.dimension, x)


def satisfies(condition: Condition, x: Batch) -> Batch:
    """Whether the condition holds at every row of x [batch, D], as [batch] of booleans; false at nan."""
    return _columns(condition.tape, condition.dimension, x)[:, 0]


def _columns(tape: Tape, dimension: int, x: Any) -> Any:
    """Values of the tape's roots at every row, as columns."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        library, good = torch, x.is_floating_point() or x.is_complex()
    else:
        library, good = np, isinstance(x, np.ndarray) and np.issubdtype(x.dtype, np.inexact)
    if not good or x.ndim != 2 or x.shape[1] < dimension:
        asked = f"a floating-point array or tensor [batch, {dimension} or more]"
        found = f"{type(x).__name__} {getattr(x, 'dtype', '')} {list(getattr(x, 'shape', []))}"
        raise InputError(asked, found, "pass points as rows of floats")
    with np.errstate(all="ignore"):
        columns = [library.broadcast_to(value, (x.shape[0],)) for value in tape.run(ArrayAlgebra(library, x))]
    return library.stack(columns, 1)
