"""method="solved": fixed heads, values by convex optimisation, as many units as the tolerance needs.

An additive target f = Σ_g f_g(x_g) is fitted group by group, each f_g(x_g) = f(x_g, the rest at the centre) − f(centre)
with its share of the tolerance; a target that does not split is one group. In each group the number of units grows by a
third until the error observed on a pool is within the share, then the smallest size between the last two is sought.
`hinges` adds feed-forward units that look at x through read heads and correct what the heads cannot do well (kinks).

In float32 a quarter of the tolerance is kept for rounding. A head whose contribution lies in ±|c|/2 is off by about
u|c|(n + 2T + 9)/2, n heads of T tokens (`certify/deployed`), so Σ|c| is kept below ε/4 divided by u(n + 2T + 9)/2. A
family of heads counts as within the tolerance only if observed error and proved rounding together are.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .assemble.scalar import scalar_config
from .assemble.vector import vector_config
from .balance import balanced
from .certify.arithmetic import FLOAT32
from .certify.deployed import Deployment, deployed_rounding
from .certify.form import form_of
from .corrected import corrected
from .errors import InputError
from .groupfit import GroupFit, base_of
from .groups import groups_of
from .heads import Gates, Memory, joined, lattice_gates, scattered_memory
from .layer import ScalarLayer, VectorLayer, scalar_layer, vector_layer
from .plan import outputs_of
from .solve import Solution, solve
from .target import Target
from .wishes import Wishes

STEPS = (1.0, 1.5, 2.0)  # β·step of lattice gates
SCATTERS = ((0.2, 2.0), (0.35, 2.0), (0.6, 2.0), (0.6, 0.5), (1.0, 0.5))  # narrowness and padding of memory tokens
MOST_FEATURES = 4000
MOST_UNITS = 1500
GOAL = 0.9  # of the tolerance, on the pool
SINGLE = 0.25  # of the tolerance, for rounding in float32
LEAST = 10  # ranges of f that Σ|c| may always reach
Progress = Callable[[str, float], None]
Arrangement = tuple[float, float]


@dataclass(frozen=True)
class Part:
    """A group with fixed heads and solved coefficients (the first row is the constant)."""

    heads: Gates | Memory
    solution: Solution


def solved_layer(target: Target, wishes: Wishes, progress: Progress | None = None) -> ScalarLayer | VectorLayer:
    """The layer with the fewest parameters that was observed within the tolerance; else the one with the least error."""
    families: tuple[str, ...] = ("gates", "memory") if wishes.construction == "auto" else (wishes.construction,)
    if wishes.layout != "token":
        families = ("gates",)
    found = []
    for family in families:
        parts, groups = _fit_groups(target, wishes, family, progress)
        observed = sum(part.solution.observed for part in parts)
        layer = _combined(target, parts, groups, family)
        if wishes.hinges:
            layer = corrected(target, layer, wishes)
        if wishes.arithmetic == "float32":
            layer = balanced(layer) if isinstance(layer, ScalarLayer) else layer
            observed += single_rounding(layer, wishes.tolerance - observed)
        missed = not observed <= wishes.tolerance
        found.append((missed, observed if missed else _cost(target, layer), layer))
    return min(found, key=lambda entry: entry[:2])[2]


def single_rounding(layer: ScalarLayer | VectorLayer, enough: float) -> float:
    """What rounding can do to the layer in float32, proved for its float64 numbers; infinite with hinges."""
    form = form_of(layer)
    if form is None:
        return math.inf
    edge = torch.full((layer.dimension,), 0.5 + 1e-6, dtype=torch.float64)
    how = Deployment(FLOAT32, form.heads + layer.dimension, 1)
    return float(deployed_rounding(form, -edge, edge, how, max(enough, 0.0)).max())


def _cost(target: Target, layer: ScalarLayer | VectorLayer) -> int:
    """Numbers that the assembled model stores."""
    if isinstance(layer, VectorLayer):
        sizes = [
            int(layer.memory.keys[layer.memory.group == g].ne(0).any(dim=0).sum()) for g in range(layer.memory.groups)
        ]
        config = vector_config(
            layer.dimension, layer.outputs, len(layer.memory), sizes, reads=len(layer.reads), hinges=len(layer.hinges)
        )
    else:
        config = scalar_config(
            layer.dimension, outputs_of(target), "token",
            units=layer.units, reads=len(layer.reads), hinges=len(layer.hinges), plain=False,
        )  # fmt: skip
    return config.parameter_count


def _fit_groups(
    target: Target, wishes: Wishes, family: str, progress: Progress | None
) -> tuple[list[Part], list[tuple[int, ...]]]:
    whole = tuple(range(target.dimension))
    groups = [whole] if target.domain.where else groups_of(target) or [whole[:1]]
    if wishes.units is not None and len(groups) > wishes.units:
        raise InputError(f"units={wishes.units}", f"{len(groups)} groups of coordinates", "ask for a unit per group")
    parts = []
    for i, group in enumerate(groups):
        parts.append(_fit(GroupFit(target, group, wishes.seed), wishes, family, len(groups)))
        if progress:
            progress(f"solving ({family})", (i + 1) / len(groups))
    return parts, groups


def features_of(heads: Gates | Memory) -> Callable[[Tensor], Tensor]:
    """1, and what the heads offer: full values for gates; weights and x itself (a read) for memory tokens."""

    def features(x: Tensor) -> Tensor:
        one = torch.ones(len(x), 1, dtype=x.dtype)
        if isinstance(heads, Gates):
            return torch.cat([one, heads.features(x, full=True)], dim=1)
        used = heads.keys.ne(0).any(dim=0)
        return torch.cat([one, x[:, used], heads.features(x)[:, 1:]], dim=1)  # weights sum to 1: one is redundant

    return features


ARRANGEMENTS: dict[str, tuple[Arrangement, ...]] = {
    "gates": tuple((step, 0.0) for step in STEPS),
    "memory": SCATTERS,
}


def quick_fits(
    fit: GroupFit,
    family: str,
    units: int,
    pool: tuple[Tensor, Tensor],
    arrangements: Sequence[Arrangement],
    most: float = math.inf,
) -> list[tuple[Arrangement, Part]]:
    """One least-squares solution for each arrangement of so many units, the best first."""
    d, D = len(fit.group), fit.target.dimension
    found: list[tuple[Arrangement, Part]] = []
    for first, second in arrangements:
        heads: Gates | Memory
        if family == "memory":
            heads = scattered_memory(units, fit.group, D, first, second, fit.seed)
        else:
            heads = lattice_gates(_lattice_counts(units, d), list(fit.group), D, first)
        solution = solve(fit.problem(features_of(heads), pool), most=most, exchanges=0, reweightings=0)
        found.append(((first, second), Part(heads, solution)))
    return sorted(found, key=lambda pair: pair[1].solution.observed)


def _fit(fit: GroupFit, wishes: Wishes, family: str, groups: int) -> Part:
    """The smallest part whose observed error is within its share of the tolerance, or the best one found."""
    d = len(fit.group)
    pool = fit.sample(16_000 if d <= 2 else 30_000, 99 + fit.seed)
    some = tuple(t[:: max(1, len(t) // 3000)] for t in pool)  # enough to tell arrangements apart
    each = 1 if family == "memory" else d + 2  # features per unit
    most = max(1, min(MOST_UNITS, fit.most_features(MOST_FEATURES) // each))
    smallest = 2 if family == "memory" or d == 1 else 3**d
    smallest = max(1, fit.most_features(each * smallest) // each)
    spread = float((pool[1].amax(dim=0) - pool[1].amin(dim=0)).max())
    single = wishes.arithmetic == "float32"

    def rounding(units: int) -> float:
        """Of float32, per unit of Σ|c|, about."""
        heads, tokens = (groups, 1) if family == "memory" else (units * groups, d + 1)
        return FLOAT32.u * (heads + 2 * tokens + 9) / 2

    # what float32 can do at best: to aim lower would only add heads, and rounding
    tolerance = max(wishes.tolerance / groups, LEAST * spread * rounding(smallest) / SINGLE * single)
    goal = (GOAL - SINGLE * single) * tolerance

    def limit(units: int) -> float:
        """Σ|c| of this group that leaves rounding its share, but not so little that nothing can be made of it."""
        return max(SINGLE * tolerance / rounding(units), LEAST * spread) if single else math.inf

    def first_fit(units: int) -> Part:
        part = quick_fits(fit, family, units, (some[0], some[1]), ARRANGEMENTS[family], limit(units))[0][1]
        problem = fit.problem(features_of(part.heads), pool)
        return Part(part.heads, solve(problem, most=limit(units), exchanges=0, reweightings=0))

    def refined(part: Part) -> Part:
        better = solve(fit.problem(features_of(part.heads), pool), most=limit(len(part.heads)))
        return Part(part.heads, better) if better.observed < part.solution.observed else part

    def attempt(units: int) -> Part:
        part = first_fit(units)
        return refined(part) if goal < part.solution.observed <= 3 * goal else part

    if wishes.units is not None:
        fit.require_samples(each * (wishes.units // groups) + (d if family == "memory" else 1))
        return refined(first_fit(wishes.units // groups))
    return refined(_grow(attempt, smallest, most, goal, time.perf_counter() + wishes.seconds / groups))


def _grow(attempt: Callable[[int], Part], smallest: int, most: int, goal: float, deadline: float) -> Part:
    """Units growing by a third until the goal is met, then the smallest success between the last two sizes."""
    best, failed, units = attempt(smallest), 0, smallest
    history = [best.solution.observed]
    while best.solution.observed > goal and units < most and not _stuck(history) and time.perf_counter() < deadline:
        far = best.solution.observed > 30 * goal
        failed, units = units, min(most, math.ceil(units * (2 if far else 4 / 3)))
        tried = attempt(units)
        history.append(tried.solution.observed)
        best = min(best, tried, key=lambda part: part.solution.observed)
        if tried.solution.observed <= goal:
            best = tried
            break
    while best.solution.observed <= goal and units - failed > max(1, units // 16) and time.perf_counter() < deadline:
        middle = (units + failed) // 2
        tried = attempt(middle)
        if tried.solution.observed <= goal:
            best, units = tried, middle
        else:
            failed = middle
    return best


def _stuck(history: list[float]) -> bool:
    """Five sizes in a row brought less than a tenth: a jump, noise, or the floor of rounding."""
    return len(history) > 8 and min(history[-5:]) > 0.9 * min(history[:-5])


def _lattice_counts(units: int, d: int) -> list[int]:
    """Nearly equal counts per axis with product at most `units`."""
    counts = [max(1, math.floor(units ** (1 / d) + 1e-9))] * d
    for axis in range(d):
        if math.prod(counts) // counts[axis] * (counts[axis] + 1) <= units:
            counts[axis] += 1
    return counts


def _combined(
    target: Target, parts: list[Part], groups: list[tuple[int, ...]], family: str
) -> ScalarLayer | VectorLayer:
    """One layer from the parts of all groups; their constants, and f at the centre, become the bias."""
    D, m = target.dimension, target.outputs
    bias = sum((part.solution.coefficients[0] for part in parts), start=base_of(target))
    if family == "gates":
        banks = [part.heads for part in parts if isinstance(part.heads, Gates)]
        values = []
        for bank, part in zip(banks, parts, strict=True):
            slots = torch.zeros(len(bank), D + 2, m, dtype=torch.float64)
            slots[bank.slots(full=True)] = part.solution.coefficients[1:]
            values.append(slots)
        return scalar_layer(bias, D, (joined(banks), torch.cat(values)))
    memories = [part.heads for part in parts if isinstance(part.heads, Memory)]
    linear = torch.zeros(D, m, dtype=torch.float64)
    token_values = []
    for group, memory, part in zip(groups, memories, parts, strict=True):
        used = memory.keys.ne(0).any(dim=0)
        size = int(used.sum())
        linear[used] += part.solution.coefficients[1 : 1 + size]
        token_values.append(torch.cat([torch.zeros(1, m, dtype=torch.float64), part.solution.coefficients[1 + size :]]))
        assert size == len(group) or len(memory) == 1
    tokens = Memory(
        torch.cat([t.keys for t in memories]),
        torch.cat([t.biases for t in memories]),
        torch.cat([torch.full((len(t),), g) for g, t in enumerate(memories)]),
    )
    return vector_layer(bias, D, (tokens, torch.cat(token_values)), linear=linear)
