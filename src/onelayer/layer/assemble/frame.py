"""What all three forms share: normalisation, output places, the blank model, the exact identity by ReLUs."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from ...target.domain import Domain
from ...target.target import Target
from ..heads import Hinges

Layout = Literal["token", "wide", "heads"]


@dataclass(frozen=True)
class Frame:
    """The normalisation x̂ = (x − shift)·scale of every coordinate."""

    shift: tuple[float, ...]
    scale: tuple[float, ...]

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch coordinate"]:
        """x̂, with exactly the operations of the model's embedding."""
        shift, scale = (torch.tensor(t, dtype=x.dtype, device=x.device) for t in (self.shift, self.scale))
        return (x - shift) * scale


def frame_of(domain: Domain) -> Frame:
    """Normalisation of the box to [−½, ½]^D."""
    ends = list(zip(domain.lower, domain.upper, strict=True))
    return Frame(tuple(a + (b - a) / 2 for a, b in ends), tuple(1 / (b - a) for a, b in ends))


@dataclass(frozen=True)
class Outputs:
    """Output vectors: how many, how wide, and at which tokens the layouts "wide" and "heads" read them."""

    places: int
    width: int
    tokens: tuple[int, ...]


def outputs_of(target: Target) -> Outputs:
    """Where the outputs go: position i of a sequence is read at its first scalar token, otherwise at token i."""
    places, width = target.places
    step = target.shape[1] if places == target.shape[0] else 1
    return Outputs(places, width, tuple(i * step for i in range(places)))


def blank(config: LayerConfig, frame: Frame) -> SingleLayerTransformer:
    """A model whose weights are all zero, except for the fixed codes and the normalisation."""
    model = SingleLayerTransformer(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for buffer, given in ((model.shift, frame.shift), (model.scale, frame.scale)):
            buffer.copy_(torch.tensor(given, dtype=torch.float64).reshape(buffer.shape))
    return model


def write_identity(model: SingleLayerTransformer, width: int, bias: Tensor) -> None:
    """FFN and read-out pass coordinates 0 … width − 1 through: z = relu(z) − relu(−z), exact in floating point."""
    pass_through = torch.eye(width, dtype=torch.float64)
    model.W_1[:width, :width], model.W_1[:width, width : 2 * width] = pass_through, -pass_through
    model.W_2[:width, :width], model.W_2[width : 2 * width, :width] = pass_through, -pass_through
    model.W_R[:width] = pass_through
    model.b_R.copy_(bias)


def write_hinges(
    model: SingleLayerTransformer, hinges: Hinges, values: Tensor, x: list[int], out: slice | list[int], first: int = 0
) -> None:
    """Hidden units `first` … with relu(a·x + b): they see x in these coordinates and write to the coordinates `out`."""
    if not len(hinges):
        return
    units = slice(first, first + len(hinges))
    model.W_1[x, units] = hinges.directions.T
    model.b_1[units] = hinges.offsets
    model.W_2[units, out] = values


def power_of_4(width: int) -> int:
    """The smallest power of 4 that is at least `width`: 1/√d_k is then exact."""
    d_k = 1
    while d_k < width:
        d_k *= 4
    return d_k
