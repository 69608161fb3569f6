"""The layer of a request as a model on the grid that was asked for: its frame, its digits and its values."""

import math

import torch
from torch import Tensor

from ..common.machine import one_thread
from ..common.numbers import counted
from ..layer.assemble import Frame, assemble
from ..layer.conditioning import ROUNDING_POINTS, cancelling, conditioned, rounding_at
from ..layer.grid import Grid
from ..layer.layer import Layer
from ..layer.value_entries import value_entries
from ..target.margin import in_scope
from ..target.points import fitting_points
from .on_grid import OnGrid, on_grid
from .request import Request

POINTS = (2_000, 6_000, 12_000)  # by the number of coordinates, at least …
POINTS_PER_VALUE = 12  # … and by the number of values
GRID_GOAL = 0.95  # share of the tolerance for the error at the points and rounding: digits are added until they fit
MORE_ROUNDING = 1.1  # times that of the layer off the grid, since digits are added up
GRID_LOSS = 0.02  # share of the tolerance by which the grid may always make the error larger


def model_on(grid: Grid, request: Request, layer: Layer, frame: Frame) -> OnGrid:
    """The model of a layer with all numbers on the grid; it is made once for each layer."""
    known = request.on_grid.get(id(layer))
    if known is None:  # the layer is kept, too: no other has its id
        known = request.on_grid[id(layer)] = (layer, _model_on(grid, request, layer, frame))
    found: OnGrid = known[1]
    return found


def _model_on(grid: Grid, request: Request, layer: Layer, frame: Frame) -> OnGrid:
    _, layer, new = conditioned(layer, frame, grid, request.target.domain)
    model = assemble(layer, new, request.outputs, request.layout)
    values = sum(len(e.at) for e in value_entries(model) or [])
    x, y = _samples(request, values)
    with one_thread():
        return on_grid(model, grid, x, y, _goal(request, layer, new(x), y))


def _goal(request: Request, layer: Layer, x: Tensor, y: Tensor) -> float:
    """The error that is enough on the grid: what rounding leaves of the tolerance, or a little more than off the grid."""
    tolerance, own = request.fit_tolerance, float((layer(x) - y).abs().max())
    rounding = rounding_at(layer, x[cancelling(layer, x).topk(min(ROUNDING_POINTS, len(x))).indices])
    left = GRID_GOAL * tolerance - MORE_ROUNDING * rounding if math.isfinite(rounding) else 0.0
    return max(left, own + GRID_LOSS * tolerance)


def _samples(request: Request, values: int) -> tuple[Tensor, Tensor]:
    """Points of the domain and f there; of data, the samples that are fitted."""
    target = request.target
    if target.data is not None:
        rows = target.data.draw(10**9, request.seed)
        return torch.from_numpy(target.data.x[rows]), torch.from_numpy(target.data.y[rows])
    count = max(POINTS[min(target.dimension, 3) - 1], POINTS_PER_VALUE * values)
    x = target.domain.points(fitting_points(count, target.dimension, 11 + request.seed).numpy())
    x = x[in_scope(target, x)]
    return torch.from_numpy(x), torch.from_numpy(target(x))


def said_of(grid: Grid, found: OnGrid) -> str:
    """How the numbers of a model are written, for its facts."""
    keys, values = found.digits
    several = (
        f": keys in {counted(keys, 'digit')}, values in {counted(values, 'digit')}" if max(found.digits) > 1 else ""
    )
    return f"{grid.name} weights{several}"
