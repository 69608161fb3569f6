"""The same function with numbers that round less: for arithmetic with few digits, and for grids.

centred        the weights of a head sum to 1: a constant moves from its values to the bias, so that what the head
               contributes lies around 0
from_origin    scores change by the same affine function for all tokens of a head, which softmax does not see: those of the
               tokens that count at x̂ = 0 become small
conditioned    the origin is where rounding is least, which is asked for at points of the box, one coordinate at a time

The same layer after another normalisation: x̂ = (x − shift)·scale with numbers of a grid.

In x̂ = fl(fl(x − shift)·scale) the product is exact if the scale is a power of two: one rounding less in every score, and a number
of every grid. Gates share one sharpness, so that their scales may only change alike; where they cannot, they stay as they are.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from ..target.domain import Domain
from ..target.points import fitting_points
from .arithmetic import FLOAT32
from .assemble.frame import Frame
from .form import form_of
from .grid import Grid
from .heads import Gates, Hinges, Memory
from .layer import GateLayer, Layer, MemoryLayer
from .rounding.deployed import Boxes, FormProgram


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
        r, p = layer.ridges, layer.bumps
        ridges = replace(r, directions=r.directions * a, offsets=r.offsets + r.directions @ b)
        bumps = replace(p, directions=p.directions * a, offsets=p.offsets + p.directions @ b)
        affine = layer.bump_values * torch.cat([a.new_ones(1), a])[:, None]
        affine[:, 0] += torch.einsum("d,hdo->ho", b, layer.bump_values[:, 1:])
        return replace(
            layer, bias=bias, linear=linear, hinges=hinges, memory=memory, ridges=ridges, bumps=bumps, bump_values=affine
        )  # fmt: skip
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


POINTS = 1000  # to centre by
CANDIDATES = 4000  # points, of which …
ROUNDING_POINTS = 200  # … so many, and so many where heads cancel most, are asked for their rounding
STEPS = (
    0.2,
    0.1,
    0.1,
    0.05,
)  # sides of the domain by which the origin moves, per coordinate, in one turn after another


def conditioned(layer: Layer, frame: Frame, grid: Grid, domain: Domain) -> tuple[float, Layer, Frame]:
    """(rounding, layer, frame): the layer in the frame of the grid in which it rounds least, as far as points tell."""
    sides = [high - low for low, high in zip(domain.lower, domain.upper, strict=True)]
    x = torch.from_numpy(domain.points(fitting_points(CANDIDATES, len(sides), 1).numpy()))
    x = torch.cat([x[:ROUNDING_POINTS], x[cancelling(layer, frame(x)).topk(ROUNDING_POINTS).indices]])

    def at(origin: tuple[float, ...]) -> tuple[float, Layer, Frame]:
        new = frame_on(grid, layer, frame, domain, origin)
        same = reframed(layer, frame, new)
        ways = [(rounding_at(other, new(x)), other, new) for other in (same, from_origin(same))]
        return min(ways, key=lambda way: way[0])

    best, origin = at(frame.shift), frame.shift
    if isinstance(layer, GateLayer):  # whose anchor has the score 0 everywhere
        return best
    for step in STEPS:
        for i, side in enumerate(sides):
            for way in (-step, step):
                moved = (*origin[:i], origin[i] + way * side, *origin[i + 1 :])
                found = at(moved) if domain.lower[i] <= moved[i] <= domain.upper[i] else best
                if found[0] < best[0]:
                    best, origin = found, moved
    return best


def rounding_at(layer: Layer, x: Tensor, groups: int = 1) -> float:
    """What rounding in float32 can do to a layer at points x̂, if it is one of so many groups; infinite with hinges."""
    form = form_of(layer)
    if form is None:
        return torch.inf
    terms = form.heads * groups + 2 * layer.dimension + len(form.blocks) + 3
    frame = Frame((1.0,) * layer.dimension, (1.0,) * layer.dimension)  # scales are powers of two
    return float(FormProgram.of_form(form, FLOAT32, frame, terms).on_boxes(Boxes(x, torch.zeros_like(x))).max())


def cancelling(layer: Layer, x: Float[Tensor, "point coordinate"]) -> Float[Tensor, " point"]:
    """How much the heads add up in absolute value at points: about what rounding is in proportion to."""
    if isinstance(layer, GateLayer):
        gates = torch.einsum("bgs,gso->bo", layer.gates.weights_and_slope(x).abs(), layer.gate_values.abs())
        return (gates + layer.maxima.features(x).abs() @ layer.max_values.abs()).amax(dim=1)
    ridges = layer.ridges.features(x) @ layer.ridge_values.abs()
    values = layer.bump_values[:, 0] + torch.einsum("bd,hdo->bho", x, layer.bump_values[:, 1:])
    bumps = torch.einsum("bh,bho->bo", layer.bumps.features(x), values.abs())
    return (layer.memory.features(x) @ layer.memory_values.abs() + ridges + bumps).amax(dim=1)


def from_origin(layer: Layer) -> Layer:
    """Keys and biases of every head relative to their mean at x̂ = 0."""
    if not isinstance(layer, MemoryLayer) or not len(layer.memory):
        return layer
    m = layer.memory
    keys, biases = m.keys.clone(), m.biases.clone()
    for g in range(m.groups):
        mine = m.group == g
        if int(mine.sum()) < 2:
            continue
        keys[mine] -= biases[mine].softmax(dim=0) @ keys[mine]
        biases[mine] -= biases[mine].max()
    return replace(layer, memory=replace(m, keys=keys, biases=biases))


def centred(layer: Layer) -> Layer:
    """The layer with the contribution of every head centred, judged by points of the box."""
    x = fitting_points(POINTS, layer.dimension, 0)[: 2 * POINTS] - 0.5
    if isinstance(layer, GateLayer):
        if not len(layer.gates):
            return layer
        middle = _middle(torch.einsum("bgs,gso->bgo", layer.gates.weights_and_slope(x), layer.gate_values))
        values = layer.gate_values.clone()
        values[:, :-1] -= middle[:, None]
        values[:, 1:-1][~layer.gates.kept] = 0.0
        return replace(layer, gate_values=values, bias=layer.bias + middle.sum(dim=0))
    if not len(layer.memory):
        return layer
    weights, group = layer.memory.features(x), layer.memory.group
    parts = [weights[:, group == g] @ layer.memory_values[group == g] for g in range(layer.memory.groups)]
    middle = _middle(torch.stack(parts, dim=1))
    return replace(layer, memory_values=layer.memory_values - middle[group], bias=layer.bias + middle.sum(dim=0))


def _middle(z: Tensor) -> Tensor:
    """The middle of the contributions [point, head, out] of every head."""
    return (z.amax(dim=0) + z.amin(dim=0)) / 2
