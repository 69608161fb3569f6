"""The feed-forward network as corrector: hidden units relu(a·x + b) that see x, in the residual stream or through read heads.

Heads are smooth; hinges are not, so that kinks are theirs, and what few heads leave of a smooth target is a polygon's to
follow. Hinges are chosen from many, one at a time, each the one that lowers the squared error most once all values are
solved for anew (orthogonal least squares). In one variable knots are also spread by curvature: N of them that share
∫ √|r″| evenly balance the error of a polygon through r, which is what heads leave of f. Values of heads and hinges are
solved for together, and kept if that lowers the error observed on a pool.
"""

import itertools
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...layer.heads import Hinges, Memory
from ...layer.layer import GateLayer, Layer
from ...target.group_samples import GroupSamples, base_of
from ..request import Request
from .values import Problem, Solution, solve

CANDIDATES = 400  # hinges to choose from, and this many times those that are wanted if that is more …
CANDIDATES_EACH = 4
GRID = 512  # steps of the grid on which curvature is measured
CURVATURE_ROUNDS = 3  # after each the values of the heads are others, and so is what they leave
DEPENDENT = 1e-6  # share of its norm that a candidate must have beside the features that are there


def corrected(layer: Layer, request: Request) -> Layer:
    """The layer with hinges, all values solved anew together, if that lowers the error observed on a pool."""
    target, D, count = request.target, request.target.dimension, request.hinges
    fit, base = GroupSamples(target, tuple(range(D)), request.seed), base_of(target)
    pool, pool_values = fit.sample(16_000, 99 + request.seed)
    K = head_features(layer, pool[:1]).shape[1]
    fit.require_samples(K + count)
    points, values = fit.sample(max(2000, int(2.5 * (K + count))), 7 + request.seed)
    over = request.budget.share(0.5).over

    def solved_with(hinges: Hinges) -> Solution:
        def features(x: Tensor) -> Tensor:
            return torch.cat([head_features(layer, x), hinges.features(x)], dim=1)

        return solve(Problem(features, points, values + base, pool, pool_values + base), over=over)

    heads = head_features(layer, points)
    hinges = chosen_hinges(count, points, values, heads, request.seed)
    found = [(solved_with(hinges), hinges)]
    left = values + base - layer(points)
    for _ in range(CURVATURE_ROUNDS if D == 1 else 0):
        hinges = hinges_by_curvature(count, points[:, 0], left)
        found.append((solved_with(hinges), hinges))
        left = values + base - heads @ found[-1][0].coefficients[:K]
    solution, hinges = min(found, key=lambda pair: pair[0].observed)
    before = float((pool_values + base - layer(pool)).abs().max())
    if solution.observed >= before:
        return layer
    c = solution.coefficients
    return replace(with_values(layer, c[:K]), hinges=hinges, hinge_values=c[K:])


def head_features(layer: Layer, x: Tensor) -> Float[Tensor, "point feature"]:
    """1, x, and what the layer's heads offer; one weight of each memory head is redundant (they sum to 1) and left out."""
    if isinstance(layer, GateLayer):
        heads = layer.gates.features(x, full=True)
    else:
        heads = layer.memory.features(x)[:, ~_first_of_group(layer.memory)]
    return torch.cat([torch.ones_like(x[:, :1]), x, heads], dim=1)


def with_values(layer: Layer, c: Float[Tensor, "feature out"]) -> Layer:
    """The layer with new values, in the order of `head_features`."""
    bias, linear, own = c[0], c[1 : 1 + layer.dimension], c[1 + layer.dimension :]
    if isinstance(layer, GateLayer):
        slots = torch.zeros_like(layer.gate_values)
        slots[layer.gates.slots(full=True)] = own
        return replace(layer, gate_values=slots, bias=bias, linear=linear)
    values = torch.zeros_like(layer.memory_values)
    values[~_first_of_group(layer.memory)] = own
    return replace(layer, memory_values=values, bias=bias, linear=linear)


def _first_of_group(memory: Memory) -> Tensor:
    earlier = torch.cat([torch.tensor([-1]), memory.group[:-1]])
    return memory.group.ne(earlier)


def chosen_hinges(
    count: int,
    points: Float[Tensor, "point coordinate"],
    values: Float[Tensor, "point out"],
    heads: Float[Tensor, "point feature"],
    seed: int,
) -> Hinges:
    """The hinges, out of `spread_hinges`, that best follow what the features of the heads leave of the values."""
    many = spread_hinges(max(CANDIDATES, CANDIDATES_EACH * count), points.shape[1], seed)
    offered = many.features(points)
    Q, _ = torch.linalg.qr(heads)
    beside, left = (t - Q @ (Q.T @ t) for t in (offered, values))
    least, chosen = DEPENDENT * offered.norm(dim=0), list[int]()
    for _ in range(count):
        norms = beside.norm(dim=0)
        gains = (beside.T @ left).norm(dim=1) / norms.clamp_min(1e-300)
        gains[(norms <= least).index_fill(0, torch.tensor(chosen, dtype=torch.int64), True)] = -1.0
        chosen.append(int(gains.argmax()))
        q = beside[:, chosen[-1:]] / norms[chosen[-1]].clamp_min(1e-300)
        beside, left = (t - q @ (q.T @ t) for t in (beside, left))
    return Hinges(many.directions[chosen], many.offsets[chosen])


def hinges_by_curvature(count: int, x: Float[Tensor, " point"], left: Float[Tensor, "point out"]) -> Hinges:
    """Hinges in one coordinate whose knots share ∫ √|r″| evenly, r given at points."""
    order = x.argsort()
    grid = np.linspace(-0.5, 0.5, GRID + 1)
    columns = [np.interp(grid, x[order].numpy(), column.numpy()) for column in left[order].T]
    density = np.sqrt(np.abs(np.diff(columns, 2)).sum(axis=0)) + 1e-300
    shares = np.concatenate([[0.0], np.cumsum(density)]) / density.sum()
    knots = np.interp((np.arange(count) + 1) / (count + 1), shares, grid[:-1] + 0.5 / GRID)
    return Hinges(torch.ones(count, 1, dtype=torch.float64), -torch.from_numpy(knots))


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
