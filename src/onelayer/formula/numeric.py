"""Numbers: a formula at a batch of points, in NumPy or torch.

Rows of x are points; column j − 1 is Variable(j). The result has x's kind, dtype and device. Where a formula has no
value the result is nan or ±inf, without warnings. On torch the result is differentiable by autograd; through the branch
of `where` that was not taken an infinite slope still turns gradients into nan, as everywhere in torch.

Complex batches (NumPy and torch) follow `complex_rectangles`: abs, min, max and comparisons look at real parts, powers and
inverse functions take principal branches. Not guaranteed: any accuracy; floating point rounds as it does.
"""

import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from ..common.errors import InputError
from . import special
from .expression import Condition, Formula
from .functions import FUNCTIONS
from .record import Function
from .tape import Operators, Tape

Batch = TypeVar("Batch")  # numpy.ndarray or torch.Tensor

_RELATIONS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


def called(f: Function, library: Any, x: Any, is_complex: bool = False) -> Any:
    """φ of an array; number by number where no library has it to the last place. torch has its slope as well."""
    if f.array == "special":
        return getattr(special, f.name)(library, x, is_complex)
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
            return special.atan2(self.library, x, arguments[1], self.complex)
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
