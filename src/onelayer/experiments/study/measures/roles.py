"""What attention and the feed-forward network each do: one of them alone, or both, with about as many parameters.

Constructed, attention alone is gates, the network alone is ReLU units that see all of x through read heads, which copy it, and
both together have half of the parameters each. Trained, the part that is left out is set to 0 and not counted; the network
alone then sees x as one token, in the residual stream.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from ....common.budget import Budget
from ....construction.solved.layer import lattice_counts
from ....model.config import LayerConfig
from ....target.target import Target
from ....training.recipe import Recipe
from ....training.start import StartingLayer, prepare
from ...matched_size import layer_size
from ...peers.task import matches_budget, observed_error
from .construction import TARGET_AXES, gate_parameters, gates_and_hinges, most_within, proved, target_at
from .registry import Point, Result, measure

ATTENTION = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")
NETWORK = ("W_1", "b_1", "W_2", "b_2")
LEFT_OUT = {"attention": NETWORK, "network": ATTENTION, "both": ()}
WIDEST = 48  # d_model of trained attention


@measure("corrected", **TARGET_AXES, units=int, hinges=0, seed=0, seconds=10.0)
def corrected(point: Point) -> Result:
    """Solved gates and ReLU units that correct what they leave: parameters and the proved error."""
    return _proved(point, point["units"], point["hinges"])


@measure("roles", **TARGET_AXES, way="both", made="constructed", budget=200, steps=1000, seed=0, seconds=10.0)
def roles(point: Point) -> Result:
    """Attention alone, the feed-forward network alone or both, constructed (error proved) or trained (error observed).

    `way` is "attention", "network" or "both", `made` is "constructed" or "trained".
    """
    return _trained(point) if point["made"] == "trained" else _constructed(point)


def _constructed(point: Point) -> Result:
    target, budget, way = target_at(point), point["budget"], point["way"]
    share = {"attention": budget, "both": budget // 2, "network": 0}[way]
    units = most_within(share, lambda n: gate_parameters(target, n)) if share else 0
    units = math.prod(lattice_counts(units, target.dimension)) if units else 0  # what a lattice makes of it
    hinges = 0 if way == "attention" else most_within(budget, lambda n: gate_parameters(target, units, n))
    return _proved(point, units, hinges)


def _proved(point: Point, units: int, hinges: int) -> Result:
    target = target_at(point)
    layer, model = gates_and_hinges(target, point, units, hinges)
    sizes = {"gates": layer.units, "relus": len(layer.hinges), "parameters": model.config.parameter_count}
    return {"dimension": target.dimension, **sizes, **proved(model, target, point["seconds"])}


@dataclass(frozen=True)
class Shape:
    """The sizes of a trained layer and how many numbers its part stores."""

    heads: int
    width: int
    d_model: int
    parameters: int


def trained_shape(target: Target, way: str, budget: int) -> Shape:
    """Sizes whose numbers, without those of the part that is left out, are within 10 % of the budget."""
    D = target.dimension
    if way == "both":
        found = layer_size(target, budget)
        sizes = [found] if found else []
    elif way == "network":
        m = D + 2  # x, an output and one to spare
        sizes = [(1, width, m) for width in range(1, 1 + budget)]
    else:
        sizes = [(heads, 1, m) for m in range(2, WIDEST) for heads in (4, 2, 1) if m % heads == 0]
    shapes = [Shape(*size, _numbers(target, way, *size)) for size in sizes]
    fitting = [shape for shape in shapes if matches_budget(shape.parameters, budget)]
    if not fitting:
        raise ValueError(f"no trained layer ({way}) has {budget} parameters within 10 %")
    return min(fitting, key=lambda shape: abs(shape.parameters - budget))


def _numbers(target: Target, way: str, heads: int, width: int, m: int) -> int:
    D, per_head = target.dimension, -(-m // heads)
    config = LayerConfig(
        tokens=1 if way == "network" else D, features_in=D if way == "network" else 1, features_out=target.outputs,
        d_model=m, heads=heads, d_k=per_head, d_v=per_head, ffn_width=width, code="learned", readout="mean",
        projection_bias=True,
    )  # fmt: skip
    attention = heads * per_head * (4 * m + 3) + m
    network = 2 * m * width + width + m
    return config.parameter_count - {"attention": network, "network": attention, "both": 0}[way]


def _trained(point: Point) -> Result:
    target, way = target_at(point), point["way"]
    shape = trained_shape(target, way, point["budget"])
    start = StartingLayer(
        heads=shape.heads, width=shape.width, d_model=shape.d_model, activation="relu", dtype="float64"
    )
    tokens = (1, target.dimension) if way == "network" else (target.dimension, 1)
    recipe = Recipe(steps=point["steps"], seed=point["seed"])
    training = prepare(Target(target.text, target.domain, shape=tokens), None, recipe, start)
    numbers = sum(p.numel() for p in training.model.parameters()) + training.model.shift.numel() * 2
    with torch.no_grad():
        for name in LEFT_OUT[way]:
            p = getattr(training.model, name).requires_grad_(False).zero_()
            numbers -= p.numel()
    training.train(None, Budget(math.inf), None)

    def answer(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return training.model(torch.from_numpy(x).reshape(-1, *tokens)).flatten(1).numpy()

    sizes = {"heads": shape.heads, "relus": shape.width, "parameters": numbers}
    return {"dimension": target.dimension, **sizes, "observed": observed_error(answer, target)}
