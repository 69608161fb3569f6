"""Heads against key width: the same number of parameters spent on gates, or on few heads over memory tokens.

A gate is a head of key width 1 among D + 1 tokens. A head over memory tokens scores x by keys that span `rank` directions of x,
so that with their biases it needs the key width rank + 1; with fewer directions than D its answer is constant along some line
(docs/theory/limits.md).
"""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ....construction.solved.corrected import head_features, with_values
from ....construction.solved.layer import SCATTERS
from ....construction.solved.values import Problem, Solution, solve
from ....layer.assemble import assemble, frame_of, outputs_of
from ....layer.assemble.memory import memory_config
from ....layer.heads import Memory, scattered_memory
from ....layer.layer import Layer, memory_layer
from ....target.group_samples import GroupSamples, base_of
from ....target.target import Target
from .construction import TARGET_AXES, gate_parameters, gates_and_hinges, most_within, proved, target_at
from .registry import Point, Result, measure

TRIALS = 6  # sets of directions, of which the best counts
POOL_POINTS = 8000


@measure("heads", **TARGET_AXES, way="gates", heads=1, rank=1, budget=200, seed=0, seconds=10.0)
def heads(point: Point) -> Result:
    """About `budget` parameters as gates, or as `heads` heads over memory tokens with keys along `rank` directions.

    `way` is "gates" (as many as there can be, key width 1) or "memory" (as many tokens as there can be);
    values are solved for.
    """
    target, budget = target_at(point), point["budget"]
    D, m = target.dimension, target.outputs
    if point["way"] == "gates":
        units = most_within(budget, lambda n: gate_parameters(target, n))
        _, model = gates_and_hinges(target, point, units)
    else:
        groups = [D] * point["heads"]
        tokens = most_within(budget, lambda n: memory_config(D, m, n, groups).parameter_count)
        if tokens < 2 * len(groups):
            raise ValueError(f"{budget} parameters leave no two tokens to each of {len(groups)} heads")
        layer = memory_heads(target, point["heads"], point["rank"], tokens, point["seed"])
        model = assemble(layer, frame_of(target.domain), outputs_of(target))
    c = model.config
    return {
        "dimension": D,
        "heads": c.heads,
        "rank": point["rank"] if c.memory_tokens else 0,
        "tokens": c.all_tokens,
        "parameters": c.parameter_count,
        **proved(model, target, point["seconds"]),
    }


def memory_heads(target: Target, heads: int, rank: int, tokens: int, seed: int) -> Layer:
    """The best layer found of this many heads that share the tokens evenly, each with keys along `rank` directions of x."""
    samples = GroupSamples(target, tuple(range(target.dimension)), seed)
    pool = samples.sample(POOL_POINTS, 99 + seed)
    best: tuple[Solution, Layer] | None = None
    for trial in range(TRIALS):
        directions = _directions(heads, rank, target.dimension, TRIALS * seed + trial, axes=trial == 0)
        for narrowness, padding in SCATTERS:
            spread = partial(scattered_memory, tokens // heads, tuple(range(rank)), rank, narrowness, padding)
            banks = [spread(heads * seed + head) for head in range(heads)]
            memory = Memory(
                torch.cat([bank.keys @ along for bank, along in zip(banks, directions, strict=True)]),
                torch.cat([bank.biases for bank in banks]),
                torch.arange(heads).repeat_interleave(tokens // heads),
            )
            values = torch.zeros(len(memory), target.outputs, dtype=torch.float64)
            layer = memory_layer(base_of(target), target.dimension, (memory, values))
            problem = Problem.of(samples, partial(head_features, layer), pool)
            solution = solve(problem, exchanges=0, reweightings=2)
            if best is None or solution.observed < best[0].observed:
                best = solution, layer
    assert best is not None
    solved = with_values(best[1], best[0].coefficients)
    return replace(solved, bias=solved.bias + base_of(target))


def _directions(heads: int, rank: int, dimension: int, seed: int, axes: bool) -> Tensor:
    """For each head `rank` directions of x, axes in turn or random orthogonal ones; x ∈ [−½, ½]^D stays in [−½, ½] along each."""
    if axes or rank == dimension:
        chosen = (torch.arange(heads)[:, None] + torch.arange(rank)) % dimension
        return torch.eye(dimension, dtype=torch.float64)[chosen]
    generator = torch.Generator().manual_seed(seed)
    random = torch.randn(heads, dimension, rank, generator=generator, dtype=torch.float64)
    rows = torch.linalg.qr(random).Q.mT
    return rows / rows.abs().sum(dim=2, keepdim=True)
