"""The same layer after another normalisation: x̂ = (x − shift)·scale with numbers of a grid.

In x̂ = fl(fl(x − shift)·scale) the product is exact if the scale is a power of two: one rounding less in every score, and a number
of every grid. Gates share one sharpness, so that their scales may only change alike; where they cannot, they stay as they are.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from ..target.domain import Domain
from .assemble.frame import Frame
from .grid import Grid
from .heads import Gates, Hinges, Memory
from .layer import GateLayer, Layer, MemoryLayer


def frame_on(grid: Grid, layer: Layer, frame: Frame, domain: Domain, origin: tuple[float, ...] | None = None) -> Frame:
    """A frame for the layer with shift and scale on the grid: x̂ = 0 at the origin, and |x̂| ≤ ½ on the domain."""
    origin = origin or frame.shift
    exact = isinstance(layer, MemoryLayer) or len(set(frame.scale)) == 1
    pairs = [_on(grid, exact, *given) for given in zip(origin, domain.lower, domain.upper, strict=True)]
    scale = [min(s for _, s in pairs)] * len(pairs) if len(set(frame.scale)) == 1 else [s for _, s in pairs]
    return Frame(tuple(shift for shift, _ in pairs), tuple(scale))


def _on(grid: Grid, exact: bool, shift: float, lower: float, upper: float) -> tuple[float, float]:
    """Shift and scale of one coordinate: the nearest shift, and the largest scale with |x̂| ≤ ½."""
    shift = float(grid.rounded("shift", torch.tensor([shift], dtype=torch.float64)))
    most = 0.5 / max(abs(lower - shift), abs(upper - shift))
    if exact:
        return shift, 2.0 ** math.floor(math.log2(most))
    scale = float(grid.rounded("scale", torch.tensor([most], dtype=torch.float64)))
    if scale > most:  # the neighbour below
        below = scale * (1 - 2.0 ** -(24 if grid.fixed else grid.bits))
        scale = float(grid.rounded("scale", torch.tensor([below], dtype=torch.float64)))
    return shift, scale


def reframed(layer: Layer, old: Frame, new: Frame) -> Layer:
    """The layer for x̂ of the new frame. A gate has one sharpness for all its coordinates: there it is nearly the same layer."""
    shift, scale, new_shift, new_scale = (
        torch.tensor(t, dtype=torch.float64) for t in (old.shift, old.scale, new.shift, new.scale)
    )
    a, b = scale / new_scale, (new_shift - shift) * scale  # the old x̂ is a·x̂ + b
    bias, linear = layer.bias + b @ layer.linear, a[:, None] * layer.linear
    hinges = Hinges(layer.hinges.directions * a, layer.hinges.offsets + layer.hinges.directions @ b)
    if isinstance(layer, MemoryLayer):
        memory = Memory(layer.memory.keys * a, layer.memory.biases + layer.memory.keys @ b, layer.memory.group)
        r = layer.ridges
        ridges = replace(r, directions=r.directions * a, offsets=r.offsets + r.directions @ b)
        return replace(layer, bias=bias, linear=linear, hinges=hinges, memory=memory, ridges=ridges)
    gates, values, moved = _gates(layer, a, b)
    m = layer.maxima
    maxima = replace(m, sharpness=m.sharpness * a.mean(), offsets=(m.offsets + b) / a)
    return replace(
        layer, bias=bias + moved, linear=linear, hinges=hinges, gates=gates, gate_values=values, maxima=maxima,
        max_values=layer.max_values * a.mean(),
    )  # fmt: skip


def _gates(layer: GateLayer, a: Tensor, b: Tensor) -> tuple[Gates, Tensor, Tensor]:
    """(gates, values, what is to be added to the bias): scores β(b_j − a_j x̂_j − …), with the mean a_j for all j.

    A slope u is on a_j x̂_j + b_j. A gate whose values were relative to one of its tokens has them so again.
    """
    g, values = layer.gates, layer.gate_values.clone()
    mean, kept = a.mean(), g.kept[..., None]
    values[:, 1:-1] += b[None, :, None] * values[:, -1:] * kept
    values[:, -1] *= mean
    relative = ((layer.gate_values[:, 1:-1] == 0).all(dim=2) & g.kept).to(torch.int8)
    token = relative.argmax(dim=1)  # the first one of value 0
    moved = values[torch.arange(len(g)), 1 + token] * relative.amax(dim=1)[:, None]
    values[:, 0] -= moved
    values[:, 1:-1] -= moved[:, None] * kept
    return Gates(g.sharpness * mean, (g.offsets - b) / mean, g.kept), values, moved.sum(dim=0)
