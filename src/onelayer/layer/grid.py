"""Grids: the numbers that stored weights may be. Arithmetic is another matter; a grid's numbers are float32 numbers, too.

    float32    24 significant bits
    bfloat16   8 significant bits, the exponents of float32
    int8       q·2^e, |q| ≤ 127, one e per column of a matrix; biases and the normalisation stay float32

Every column of a matrix, of every head, has its own exponent: W_K [head, model, width] has head·width of them. The columns of
the special tokens S are the coordinates of the stream, so that all tokens share the exponent of a coordinate.

A number may be written as a sum of several numbers of a grid, its *digits*: each is what the ones before it left, rounded. Up
to three digits add up to a number of at most 23 bits, so that float32 adds them without rounding, in any order.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..model.transformer import SingleLayerTransformer

MATRICES = frozenset({"W_E", "S", "P", "W_Q", "W_K", "W_V", "W_O", "W_1", "W_2", "W_R"})
MOST_DIGITS = 3
LARGEST = 127  # of int8, on both sides of 0
DIGIT_BITS = 7  # by which the digits of int8 are apart: what rounding leaves is at most 64 of the next
TOGETHER = 23  # bits of a number in several digits: one less than float32 has
SMALLEST_EXPONENT = -100  # of a column of int8: no weight that matters is that small
TINY = 2.0**-126  # the smallest normal number of float32 and bfloat16; what is smaller becomes 0


@dataclass(frozen=True)
class Grid:
    """`bits` significant bits, or, for `fixed` ones, whole multiples of a column's power of two."""

    name: str
    bits: int
    size: int  # bytes of a number
    fixed: bool = False

    def rounded(self, name: str, t: Tensor) -> Tensor:
        """The tensor of that name on the grid, in float64."""
        if not self.fixed:
            return to_bits(t, self.bits)
        if name not in MATRICES:
            return to_bits(t, 24)
        step = torch.exp2(exponents(t))
        return (t.double() / step).round() * step

    def contains(self, model: SingleLayerTransformer) -> bool:
        """Whether every number of a model is on the grid."""
        return all(bool((self.rounded(name, t) == t).all()) for name, t in model.state_dict().items())

    def digits(self, lane: Tensor, count: int, largest: float | None = None) -> list[Tensor]:
        """Numbers of the grid, `count` for each entry, that add up to the entries of `lane`, or nearly so."""
        rest = self.in_digits(lane, count, largest)
        found: list[Tensor] = []
        for i in range(count):
            step = self.spacing(lane, 1, largest) * 2.0 ** (-DIGIT_BITS * i)
            digit = (rest / step).round() * step if self.fixed else to_bits(rest, self.bits)
            found.append(digit)
            rest = rest - digit
        return found

    def in_digits(self, lane: Tensor, count: int, largest: float | None = None) -> Tensor:
        """The entries of `lane`, which is one column, rounded to what `count` digits can say; its largest entry may be given."""
        if self.fixed:
            step = self.spacing(lane, count, largest)
            most = LARGEST * 2.0 ** (DIGIT_BITS * (count - 1))
            return (lane.double() / step).round().clamp(-most, most) * step
        lane = to_bits(lane, self.bits if count == 1 else TOGETHER)
        total, rest = torch.zeros_like(lane), lane
        for _ in range(count):
            digit = to_bits(rest, self.bits)
            total, rest = total + digit, rest - digit
        return total

    def spacing(self, lane: Tensor, count: int, largest: float | None = None) -> Tensor:
        """About how far the grid's neighbours of every entry are apart, with this many digits."""
        if self.fixed:
            column = lane.double() if largest is None else lane.new_full((1,), largest, dtype=torch.float64)
            exponent = exponents(column[:, None])[0]
            return torch.exp2(exponent - DIGIT_BITS * (count - 1)).expand(lane.shape)
        magnitude = torch.exp2(torch.frexp(lane.double().abs().clamp_min(TINY))[1].double())
        bits = self.bits if count == 1 else min((self.bits + 1) * count - 1, TOGETHER)
        return magnitude * 2.0**-bits


FLOAT32 = Grid("float32", 24, 4)
BFLOAT16 = Grid("bfloat16", 8, 2)
INT8 = Grid("int8", 8, 1, fixed=True)
GRIDS = {grid.name: grid for grid in (FLOAT32, BFLOAT16, INT8)}


def to_bits(t: Tensor, bits: int) -> Tensor:
    """The nearest numbers of this many significant bits, ties to even, in float64; what is below `TINY` becomes 0."""
    mantissa, exponent = torch.frexp(t.detach().double())
    rounded = torch.ldexp((mantissa * 2.0**bits).round(), exponent - bits)
    return rounded.where(rounded.abs() >= TINY, 0.0)


def exponents(t: Tensor) -> Tensor:
    """Per column the smallest e with |t| ≤ 127·2^e, in float64 [..., 1, column]; 0 for a column of zeros."""
    largest = t.detach().double().abs().amax(dim=-2, keepdim=True)
    mantissa, exponent = torch.frexp(largest / LARGEST)
    found = (exponent - (mantissa == 0.5).to(exponent)).double().clamp_min(SMALLEST_EXPONENT)
    return found.where(largest > 0, 0.0)
