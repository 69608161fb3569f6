"""Linear attention: the same function as a form, evaluated faster.

Heads that share their keys need no exponential each (`shared_keys`); all others are softmax averages, head by head (`averages`),
and so is every head at points outside the box |x̂| ≤ EDGE. Both are exact; `layer/rounding/deployed` bounds their rounding.
On a GPU `kernels` evaluates both.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.errors import InputError
from ...layer.assemble import Frame
from ...layer.form import Block, Form
from ...layer.heads import Hinges
from .averages import SoftmaxAverages
from .shared_keys import EDGE, SharedKeys, split_by_keys

CHUNK = 2**17  # numbers held at a time: they fit into a cache
ROWS = 2**22  # points at a time: GPU kernels hold nothing per head


@dataclass(frozen=True)
class CompiledForm:
    """A form in one dtype: heads that share their keys, and averages for the others."""

    bias: Tensor
    linear: Tensor
    shared: tuple[SharedKeys, ...]
    averages: tuple[SoftmaxAverages, ...]
    hinges: tuple[Tensor, ...] = ()  # directions, offsets and values

    @classmethod
    def of(
        cls, form: Form, dtype: torch.dtype, linear: bool = True, hinges: tuple[Hinges, Tensor] | None = None
    ) -> "CompiledForm":
        """The form, with shared keys only if `linear`."""
        shared: list[SharedKeys] = []
        others: list[Block] = []
        for block in form.blocks:
            found, other = split_by_keys(block, dtype) if linear else ([], block)
            shared += found
            others += [other] if other is not None else []
        units: tuple[Tensor, ...] = ()
        if hinges is not None and len(hinges[0]):
            units = tuple(t.to(dtype) for t in (hinges[0].directions.T, hinges[0].offsets, hinges[1]))
        averages = tuple(SoftmaxAverages.of(block, dtype) for block in others)
        return cls(form.bias.to(dtype), form.linear.to(dtype), tuple(shared), averages, units)

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        y = torch.addmm(self.bias, x, self.linear)
        for part in self.parts:
            y += part(x)
        if self.hinges:
            directions, offsets, values = self.hinges
            y += torch.relu(torch.addmm(offsets, x, directions)) @ values
        return y

    def to(self, device: str | torch.device) -> "CompiledForm":
        """The same on another device."""
        shared, averages = tuple(s.to(device) for s in self.shared), tuple(a.to(device) for a in self.averages)
        hinges = tuple(t.to(device) for t in self.hinges)
        return CompiledForm(self.bias.to(device), self.linear.to(device), shared, averages, hinges)

    @property
    def parts(self) -> list[SharedKeys | SoftmaxAverages]:
        return [*self.shared, *self.averages]

    @property
    def width(self) -> int:
        """Intermediate numbers per point, at most."""
        hinges = self.hinges[1].numel() if self.hinges else 0
        return max([1, hinges, *(part.width for part in self.parts)])


class LinearAttention:
    """T, callable on points [batch, D] in float64 or float32; form and frame are those of `layer/reading`."""

    def __init__(
        self, form: Form, frame: Frame, hinges: tuple[Hinges, Tensor] | None = None, device: str | torch.device = "cpu"
    ) -> None:
        self.form, self.frame = form, frame
        dtypes = (torch.float64, torch.float32)
        self.compiled = {dtype: CompiledForm.of(form, dtype, hinges=hinges).to(device) for dtype in dtypes}
        self.fallback = {dtype: CompiledForm.of(form, dtype, False, hinges).to(device) for dtype in dtypes}

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        """T(x), in chunks that bound the memory."""
        if x.dtype not in self.compiled:
            raise InputError("float64 or float32 points", f"{x.dtype}", "convert them")
        parts = [self._values(self.frame(part)) for part in x.split(ROWS)]
        return torch.cat(parts) if parts else x.new_zeros(0, len(self.form.bias))

    def _values(self, x: Tensor) -> Tensor:
        inside = bool(len(x)) and bool(x.abs().max() <= EDGE)
        compiled = (self.compiled if inside else self.fallback)[x.dtype]
        rows = len(x) if x.is_cuda else max(1, CHUNK // compiled.width)
        return torch.cat([compiled(part) for part in x.split(max(rows, 1))])
