"""Arithmetic: what is assumed of the floating point that a model runs in."""

from dataclasses import dataclass
from typing import Any

import torch

from ..common.errors import InputError

VANISHED = 800.0  # exp of minus this is 0 in every arithmetic


@dataclass(frozen=True)
class Arithmetic:
    """Round to nearest with unit roundoff u; exp within `exp_ulps` units in the last place, or within `smallest`.

    Underflow is gradual, as IEEE 754 has it: sums are exact there, and a product loses at most u·`smallest`. Charging
    `smallest` instead is more than enough, except on a machine that is told to flush subnormal numbers to 0: there a weight
    that is subnormal, or a sum of many products, can lose more. Certificates assume that this is not so.
    """

    name: str
    dtype: torch.dtype
    u: float
    smallest: float  # the smallest normal number: below it errors are absolute
    largest: float  # exponents beyond ± this overflow or vanish
    overflow: float  # no number may come near this
    exp_ulps: float = 2.0  # twice what SLEEF, which torch uses, documents; measured near 0.6
    shift_roundings: float = 1.0  # of a score from which the largest one, or one near it, is subtracted
    score_roundings: float = 0.0  # of a term of a score, beyond products and sums: scores that are scaled once more
    rescalings: int = 0  # how often the partial sums of a softmax are multiplied by another factor, at most

    @property
    def exp_error(self) -> float:
        """Relative error of exp: a unit in the last place is at most 2u."""
        return 2 * self.exp_ulps * self.u

    def lost(self, scale: float) -> float:
        """What underflow can take from x̂ = fl(fl(x − shift)·scale): less than `smallest` in the product.

        Flushing included: x and shift may both be subnormal, or their difference, at most 2·`smallest` times the scale.
        """
        return self.smallest * (1 + 2 * abs(scale))

    def loses(self, numbers: torch.Tensor) -> torch.Tensor:
        """How far float64 numbers are from those that are stored for them; 0 for masked ones, which are infinite."""
        return (numbers.to(self.dtype).to(numbers.dtype) - numbers).abs().nan_to_num(nan=0.0)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a certificate about this arithmetic assumes."""
        exact = f"IEEE 754 {self.name} arithmetic (subnormal numbers kept), exp within {self.exp_ulps:g} units in the last place"
        if self.rescalings:
            exact += f", partial sums rescaled at most {self.rescalings} times"
        if self.name == "float32":
            return (f"{exact}, no TF32 or other shortened products", "inputs are float32 numbers of the domain")
        return (exact,)


FLOAT64 = Arithmetic("float64", torch.float64, 2.0**-53, 2.0**-1022, 700.0, 2.0**1023)
FLOAT32 = Arithmetic("float32", torch.float32, 2.0**-24, 2.0**-126, 85.0, 2.0**127)
ARITHMETICS = {a.name: a for a in (FLOAT64, FLOAT32)}


def arithmetic_of(dtype: Any) -> Arithmetic:
    """The arithmetic of a dtype of torch or NumPy, or of its name."""
    for a in ARITHMETICS.values():
        if dtype in (a.name, a.dtype) or getattr(dtype, "__name__", None) == a.name:
            return a
    raise InputError("dtype, float64 or float32", f"{dtype!r}", "choose one of the two")
