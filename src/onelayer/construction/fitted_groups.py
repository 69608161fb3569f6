"""What was fitted group by group, and the one layer that it makes up."""

import math
from dataclasses import dataclass
from functools import reduce

import torch

from ..formula.additive import links_of, maximal, parts_of
from ..layer.arithmetic import FLOAT32, Arithmetic
from ..layer.assemble import Layout, outputs_of
from ..layer.assemble.even import even_config
from ..layer.assemble.gates import gate_config
from ..layer.assemble.memory import memory_config
from ..layer.form import form_of
from ..layer.heads import Gates, Memory, Ridges, joined
from ..layer.layer import Layer, MemoryLayer, added, gate_layer, memory_layer
from ..layer.rounding.deployed import FormProgram
from ..model.config import LayerConfig
from ..target.group_samples import GroupSamples, base_of
from ..target.groups import groups_of
from ..target.target import Target
from .solved.values import Solution


@dataclass(frozen=True)
class FittedGroup:
    """A group of coordinates with its heads and coefficients: of 1; of x, but for most gates; of the heads' features.

    Without heads the fit is affine. Weights sum to 1, so every softmax has one feature fewer than tokens.
    """

    group: tuple[int, ...]
    heads: Gates | Memory | Ridges | None
    solution: Solution

    @property
    def units(self) -> int:
        return len(self.heads) if self.heads is not None else 0


def groups_to_fit(target: Target) -> list[tuple[int, ...]]:
    """The groups of coordinates that may be fitted one at a time; at least one."""
    whole = tuple(range(target.dimension))
    return [whole] if target.domain.within or target.leaves_points_out else groups_of(target) or [whole[:1]]


def splittings(
    target: Target, seed: int, ratios: tuple[float, ...] | None = None, detail: float = 0.0, finest: bool = False
) -> list[list[GroupSamples]]:
    """Ways to fit f group by group: overlapping groups, if a formula's terms show some; then disjoint ones.

    With `finest` groups there may be one inside another, so that every term is fitted on its own variables alone.
    """
    apart = groups_to_fit(target)
    found = [[GroupSamples(target, group, seed, None, ratios, detail) for group in apart]]
    if target.formula is None or target.domain.within or target.leaves_points_out:
        return found
    links = links_of(target.formula)
    finer = sorted({tuple(sorted(link)) for link in links if link}, key=len)  # each holds its terms before a larger one
    small = (finer if finest else maximal(links)) or apart
    if small != apart:
        parts = zip(small, parts_of(target.formula, small), strict=True)
        found.insert(0, [GroupSamples(target, group, seed, formula, ratios, detail) for group, formula in parts])
    return found


def combined(target: Target, fitted: list[FittedGroup], family: str) -> Layer:
    """One layer from the fits of all groups; their constants, and f at the centre, become the bias."""
    D, m = target.dimension, target.outputs
    bias = sum((fit.solution.coefficients[0] for fit in fitted), start=base_of(target))
    linear = torch.zeros(D, m, dtype=torch.float64)
    banks, gate_values, memories, token_values, ridges = [], [], [], [], []
    for fit in fitted:
        c = fit.solution.coefficients[1:]
        if isinstance(fit.heads, Gates):
            slots, used = torch.zeros(len(fit.heads), D + 2, m, dtype=torch.float64), fit.heads.slots(full=True)
            if len(c) == len(fit.heads):  # slopes alone
                slots[:, -1] = c
            else:
                straight = len(c) - int(used.sum())  # 0, or the coordinates of the group
                linear[list(fit.group)[:straight]] += c[:straight]
                slots[used] = c[straight:]
            banks.append(fit.heads)
            gate_values.append(slots)
            continue
        free = fit.units if isinstance(fit.heads, Ridges) else max(fit.units - 1, 0)  # weights of a softmax sum to 1
        straight = len(c) - free  # 0, or the coordinates of the group
        linear[list(fit.group)[:straight]] += c[:straight]
        if isinstance(fit.heads, Ridges):
            ridges.append((fit.heads, c[straight:]))
        elif fit.heads is not None:
            values = torch.cat([torch.zeros(1, m, dtype=torch.float64), c[straight:]])
            middle = (values.amax(dim=0) + values.amin(dim=0)) / 2  # values around 0 round less
            bias = bias + middle
            memories.append(fit.heads)
            token_values.append(values - middle)
    if family == "gates":
        return gate_layer(bias, D, (joined(banks), torch.cat(gate_values)) if banks else None, linear=linear)
    if not memories:
        return reduce(
            added, (memory_layer(0 * bias, D, ridges=r) for r in ridges), memory_layer(bias, D, linear=linear)
        )
    tokens = Memory(
        torch.cat([t.keys for t in memories]),
        torch.cat([t.biases for t in memories]),
        torch.cat([torch.full((len(t),), g) for g, t in enumerate(memories)]),
    )
    return memory_layer(bias, D, (tokens, torch.cat(token_values)), linear=linear)


def config_of(target: Target, layer: Layer, layout: Layout = "token", residual: bool = True) -> LayerConfig:
    """The shape of the Transformer that the layer will become; inner layers of composed ones have no residuals."""
    if isinstance(layer, MemoryLayer):
        keyed = layer.memory.keys.ne(0)
        sizes = [int(keyed[layer.memory.group == g].any(dim=0).sum()) for g in range(layer.memory.groups)]
        shape = (layer.dimension, layer.outputs, len(layer.memory), sizes)
        ridges, bumps, reads, hinges = (len(t) for t in (layer.ridges, layer.bumps, layer.reads, layer.hinges))
        return memory_config(*shape, ridges=ridges, bumps=bumps, reads=reads, hinges=hinges, residual=residual)
    if layer.even and layout == "token" and residual:
        return even_config(layer.units)
    return gate_config(
        layer.dimension,
        outputs_of(target),
        layout,
        units=layer.units,
        reads=len(layer.reads),
        hinges=len(layer.hinges),
        plain=layer.plain,
        anchored=not layer.spares_anchor,
        residual=residual,
    )


def single_rounding(layer: Layer, enough: float) -> float:
    """What rounding can do to the layer in float32, proved for its float64 numbers; infinite with hinges."""
    form = form_of(layer)
    if form is None:
        return math.inf
    edge = torch.full((layer.dimension,), 0.5 + 1e-6, dtype=torch.float64)
    return float(FormProgram.of_form(form, FLOAT32).rounding(-edge, edge, max(enough, 0.0)).max())


def rounding_per_value(arithmetic: Arithmetic, family: str, units: int, groups: int, dimension: int) -> float:
    """About, in float32, per unit of Σ|c|: a contribution within ±|c|/2 of n heads with T tokens is off by u|c|(n + 2T + 9)/2.

    0 in float64, where it is far below any tolerance that can be met.
    """
    if arithmetic is not FLOAT32:
        return 0.0
    heads, tokens = (groups, 1) if family == "memory" else (units * groups, dimension + 1)
    return FLOAT32.u * (heads + 2 * tokens + 9) / 2
