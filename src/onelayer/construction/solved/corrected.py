"""The feed-forward network as corrector: hidden units relu(a·x + b) that see x, in the residual stream or through read heads.

Heads are smooth; hinges are not. Values of heads and hinges are solved for together, and kept if that lowers the error
observed on a pool.
"""

import itertools
from dataclasses import replace

import torch
from torch import Tensor

from ...layer.heads import Hinges, Memory
from ...layer.layer import GateLayer, Layer
from ...target.group_samples import GroupSamples, base_of
from ..request import Request
from .values import Problem, solve


def corrected(layer: Layer, request: Request) -> Layer:
    """The layer with hinges, all values solved anew together, if that lowers the error observed on a pool."""
    target, D = request.target, request.target.dimension
    fit = GroupSamples(target, tuple(range(D)), request.seed)
    hinges = spread_hinges(request.hinges, D, request.seed)
    base = base_of(target)
    pool, pool_values = fit.sample(16_000, 99 + request.seed)

    def features(x: Tensor) -> Tensor:
        one = torch.ones(len(x), 1, dtype=x.dtype)
        return torch.cat([one, hinges.features(x), _old_features(layer, x)], dim=1)

    K = features(pool[:1]).shape[1]
    fit.require_samples(K)
    points, values = fit.sample(max(2000, int(2.5 * K)), 7 + request.seed)
    solution = solve(
        Problem(features, points, values + base, pool, pool_values + base), over=request.budget.share(0.5).over
    )
    before = float((pool_values + base - layer(pool)).abs().max())
    if solution.observed >= before:
        return layer
    bias, hinge_values, old = solution.coefficients.split([1, len(hinges), K - 1 - len(hinges)])
    return replace(_with_values(layer, old), hinges=hinges, hinge_values=hinge_values, bias=bias[0])


def _old_features(layer: Layer, x: Tensor) -> Tensor:
    """What the layer's heads offer; one weight of each memory head is redundant (they sum to 1) and left out."""
    if isinstance(layer, GateLayer):
        return layer.gates.features(x, full=True)
    return torch.cat([x, layer.memory.features(x)[:, ~_first_of_group(layer.memory)]], dim=1)


def _with_values(layer: Layer, c: Tensor) -> Layer:
    """The layer with new values, in the order of `_old_features`."""
    if isinstance(layer, GateLayer):
        slots = torch.zeros_like(layer.gate_values)
        slots[layer.gates.slots(full=True)] = c
        return replace(layer, gate_values=slots)
    values = torch.zeros_like(layer.memory_values)
    values[~_first_of_group(layer.memory)] = c[layer.dimension :]
    return replace(layer, linear=c[: layer.dimension], memory_values=values)


def _first_of_group(memory: Memory) -> Tensor:
    earlier = torch.cat([torch.tensor([-1]), memory.group[:-1]])
    return memory.group.ne(earlier)


def spread_hinges(count: int, dimension: int, seed: int) -> Hinges:
    """Hinges both ways along differences of two axes, axes, and sums, kink through the centre; then random ones."""
    generator = torch.Generator().manual_seed(seed)
    eye = torch.eye(dimension, dtype=torch.float64)
    pairs = list(itertools.combinations(range(dimension), 2))
    named = [eye[i] - eye[j] for i, j in pairs] + list(eye) + [eye[i] + eye[j] for i, j in pairs]
    both_ways = torch.stack([s * v for v in named for s in (1.0, -1.0)])[:count]
    random = torch.randn(count - len(both_ways), dimension, generator=generator, dtype=torch.float64)
    directions = torch.cat([both_ways, torch.nn.functional.normalize(random, dim=1)])
    spread = directions.abs().sum(dim=1) / 2
    offsets = (2 * torch.rand(count, generator=generator, dtype=torch.float64) - 1) * spread
    offsets[: len(both_ways)] = 0.0
    return Hinges(directions, offsets)
