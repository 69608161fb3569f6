"""The same function with numbers that round less: for arithmetic with few digits, and for grids.

centred        the weights of a head sum to 1: a constant moves from its values to the bias, so that what the head
               contributes lies around 0
from_origin    scores change by the same affine function for all tokens of a head, which softmax does not see: those of the
               tokens that count at x̂ = 0 become small
conditioned    the origin is where rounding is least, which is asked for at points of the box, one coordinate at a time
"""

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
from .layer import GateLayer, Layer, MemoryLayer
from .reframed import frame_on, reframed
from .rounding.deployed import Boxes, FormProgram

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
    return (layer.memory.features(x) @ layer.memory_values.abs() + ridges).amax(dim=1)


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
