"""Fast evaluation of a form: the same function, other attention.

    linear     gates that share their sharpness without an exponential per head (`tables`): exact
    softmax    everything else, averaged head by head (`averages`); so is every point outside the box that tables are for
    sparse     only the tokens that matter where the point is (`cells`): adds a proved remainder
    adaptive   likewise, and heads with one token left are not evaluated at all

`certify/deployed` bounds the rounding of the first two. On a GPU the kernels of `kernels` do the work.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.errors import InputError
from ...layer.assemble import Frame
from ...layer.form import Block, Form
from ...layer.heads import Hinges
from .averages import Averages
from .shared_keys import EDGE, Table, tables_of

CHUNK = 2**17  # numbers held at a time: they fit into a cache
ON_GPU = 2**22  # points at a time: kernels hold nothing per head


@dataclass(frozen=True)
class Plan:
    """Tables for the heads that have them, averages for the others, in one dtype."""

    bias: Tensor
    linear: Tensor
    tables: tuple[Table, ...]
    others: tuple[Averages, ...]
    kinks: tuple[Tensor, ...] = ()  # directions, offsets and values of hinges

    @classmethod
    def of(
        cls, form: Form, dtype: torch.dtype, linear: bool = True, hinges: tuple[Hinges, Tensor] | None = None
    ) -> "Plan":
        """The plan for a form; without tables unless `linear`."""
        tables: list[Table] = []
        others: list[Block] = []
        for block in form.blocks:
            found, rest = tables_of(block, dtype) if linear else ([], block)
            tables += found
            others += [rest] if rest is not None else []
        kinks: tuple[Tensor, ...] = ()
        if hinges is not None and len(hinges[0]):
            kinks = tuple(t.to(dtype) for t in (hinges[0].directions.T, hinges[0].offsets, hinges[1]))
        averages = tuple(Averages.of(block, dtype) for block in others)
        return cls(form.bias.to(dtype), form.linear.to(dtype), tuple(tables), averages, kinks)

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        y = torch.addmm(self.bias, x, self.linear)
        for part in self.parts:
            y += part(x)
        if self.kinks:
            directions, offsets, values = self.kinks
            y += torch.relu(torch.addmm(offsets, x, directions)) @ values
        return y

    def to(self, device: str | torch.device) -> "Plan":
        """The same on another device."""
        tables, others = tuple(t.to(device) for t in self.tables), tuple(a.to(device) for a in self.others)
        kinks = tuple(t.to(device) for t in self.kinks)
        return Plan(self.bias.to(device), self.linear.to(device), tables, others, kinks)

    @property
    def parts(self) -> list[Table | Averages]:
        return [*self.tables, *self.others]

    @property
    def width(self) -> int:
        """Numbers per point on the way, at most."""
        hinges = self.kinks[1].numel() if self.kinks else 0
        return max([1, hinges, *(part.width for part in self.parts)])


class Factored:
    """T, callable on points [batch, D] in float64 or float32; form and frame as `certify.reading` gives them."""

    def __init__(
        self,
        form: Form,
        frame: Frame,
        hinges: tuple[Hinges, Tensor] | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.form, self.frame = form, frame
        dtypes = (torch.float64, torch.float32)
        self.plans = {dtype: Plan.of(form, dtype, hinges=hinges).to(device) for dtype in dtypes}
        self.plain = {dtype: Plan.of(form, dtype, False, hinges).to(device) for dtype in dtypes}

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        """T(x), in chunks that bound the memory."""
        if x.dtype not in self.plans:
            raise InputError("float64 or float32 points", f"{x.dtype}", "convert them")
        parts = [self._values(self.frame(part)) for part in x.split(ON_GPU)]
        return torch.cat(parts) if parts else x.new_zeros(0, len(self.form.bias))

    def _values(self, x: Tensor) -> Tensor:
        inside = bool(len(x)) and bool(x.abs().max() <= EDGE)
        plan = (self.plans if inside else self.plain)[x.dtype]
        rows = len(x) if x.is_cuda else max(1, CHUNK // plan.width)
        return torch.cat([plan(part) for part in x.split(max(rows, 1))])
