"""method="solved": fixed heads, values by convex optimisation, as many units as the tolerance needs.

An additive target f = Σ_g f_g(x_g) is fitted group by group, each f_g(x_g) = f(x_g, the others at the centre) − f(centre)
with its share of the tolerance; a target that does not split is one group. In each group the number of units grows by a
third until the error observed on a pool is within the share, then the smallest size between the last two is sought.
`hinges` adds feed-forward units that see x and correct what the heads leave; with `units=0` they are all there is.

In float32 a quarter of the tolerance is kept for rounding. A head whose contribution lies in ±|c|/2 is off by about
u|c|(n + 2T + 9)/2, n heads of T tokens (`layer.rounding.deployed`), so Σ|c| is kept below ε/4 divided by u(n + 2T + 9)/2. A
family of heads counts as within the tolerance only if its observed error and proved rounding together are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ...common.budget import Budget
from ...common.errors import InputError
from ...layer.conditioning import centred
from ...layer.heads import Gates, Memory, Ridges, lattice_gates, scattered_memory
from ...layer.layer import GateLayer, Layer, gate_layer, memory_layer
from ...target.group_samples import GroupSamples, base_of
from ..fitted_groups import FittedGroup, combined, config_of, groups_to_fit, rounding_per_value, single_rounding
from ..request import FLOAT32_SHARE, POOL_GOAL, Request
from .corrected import corrected
from .values import VALUES_CAP, Problem, solve

STEPS = (1.0, 1.5, 2.0)  # β·step of lattice gates
SCATTERS = ((0.2, 2.0), (0.35, 2.0), (0.6, 2.0), (0.6, 0.5), (1.0, 0.5))  # narrowness and padding of memory tokens
MOST_FEATURES = 4000
MOST_UNITS = 1500
SOLVING_TIME = 0.8  # share of the seconds for solving; the proof has the others
LEAST_VALUES = 10  # ranges of f that Σ|c| may always reach
Arrangement = tuple[float, float]


def solved_layer(request: Request) -> Layer:
    """The layer with the fewest parameters that was observed within the tolerance; else the one with the least error."""
    target, tolerance = request.target, request.fit_tolerance
    if request.units == 0:  # the feed-forward network alone
        empty = memory_layer if request.construction == "memory" else gate_layer
        return corrected(empty(base_of(target), target.dimension), request)
    families: tuple[str, ...] = ("gates", "memory") if request.construction == "auto" else (request.construction,)
    if request.layout != "token":
        families = ("gates",)
    found: list[tuple[bool, float, Layer]] = []
    for i, family in enumerate(families):
        if found and request.budget.over():
            break
        fitted = _fit_groups(request, family, request.budget.share(SOLVING_TIME / (len(families) - i)))
        observed = sum(fit.solution.observed for fit in fitted)
        layer = combined(target, fitted, family)
        if request.hinges:
            layer = corrected(layer, request)
        if request.single:
            layer = centred(layer) if isinstance(layer, GateLayer) else layer
            observed += single_rounding(layer, tolerance - observed)
        missed = not observed <= tolerance
        found.append((missed, observed if missed else config_of(target, layer).parameter_count, layer))
    return min(found, key=lambda entry: entry[:2])[2]


def _fit_groups(request: Request, family: str, budget: Budget) -> list[FittedGroup]:
    groups = groups_to_fit(request.target)
    if request.units is not None and len(groups) > request.units:
        raise InputError(f"units={request.units}", f"{len(groups)} groups of coordinates", "ask for a unit per group")
    fitted = []
    for i, group in enumerate(groups):
        source, own = GroupSamples(request.target, group, request.seed), budget.share(1 / (len(groups) - i))
        fitted.append(_fit(source, request, family, len(groups), own))
        if request.progress:
            request.progress(f"solving ({family})", (i + 1) / len(groups))
    return fitted


def features_of(heads: Gates | Memory | Ridges | None, group: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    """1, and what the heads offer: full values for gates; weights and x itself (a read) for all others."""

    def features(x: Tensor) -> Tensor:
        one = torch.ones_like(x[:, :1])
        if isinstance(heads, Gates):
            return torch.cat([one, heads.to(x.device).features(x, full=True)], dim=1)
        own = x[:, list(group)]
        if not isinstance(heads, Memory):
            return torch.cat([one, own, *([] if heads is None else [heads.features(x)])], dim=1)
        return torch.cat([one, own, heads.to(x.device).features(x)[:, 1:]], dim=1)  # weights sum to 1: one is redundant

    return features


def cap_of(heads: Gates | Memory | Ridges | None) -> float:
    """Ranges of f that Σ|c| may reach: for the tokens of one head what counts is the span of their values, about 4/M of it."""
    return VALUES_CAP * max(1.0, len(heads) / 4) if isinstance(heads, Memory) else VALUES_CAP


ARRANGEMENTS: dict[str, tuple[Arrangement, ...]] = {"gates": tuple((step, 0.0) for step in STEPS), "memory": SCATTERS}


def quick_fits(
    source: GroupSamples,
    family: str,
    units: int,
    pool: tuple[Tensor, Tensor],
    arrangements: Sequence[Arrangement],
    most: float = math.inf,
    device: str = "cpu",
    over: Callable[[], bool] = lambda: False,
) -> list[tuple[Arrangement, FittedGroup]]:
    """One least-squares solution for each arrangement of this many units, the best first; once it is `over` no more."""
    d, D = len(source.group), source.target.dimension
    found: list[tuple[Arrangement, FittedGroup]] = []
    for first, second in arrangements:
        if found and over():
            break
        heads: Gates | Memory
        if family == "memory":
            heads = scattered_memory(units, source.group, D, first, second, source.seed)
        else:
            heads = lattice_gates(lattice_counts(units, d), list(source.group), D, first)
        problem = Problem.of(source, features_of(heads, source.group), pool)
        solution = solve(problem, cap=cap_of(heads), most=most, exchanges=0, reweightings=0, device=device, over=over)
        found.append(((first, second), FittedGroup(source.group, heads, solution)))
    return sorted(found, key=lambda pair: pair[1].solution.observed)


def _fit(source: GroupSamples, request: Request, family: str, groups: int, budget: Budget) -> FittedGroup:
    """The smallest fit whose observed error is within its share of the tolerance, or the best one found."""
    d = len(source.group)
    pool = source.sample(16_000 if d <= 2 else 30_000, 99 + source.seed)
    some = tuple(t[:: max(1, len(t) // 3000)] for t in pool)  # enough to tell arrangements apart
    each = 1 if family == "memory" else d + 2  # features per unit
    most = max(1, min(MOST_UNITS, source.most_features(MOST_FEATURES) // each))
    smallest = 2 if family == "memory" or d == 1 else 3**d
    smallest = max(1, source.most_features(each * smallest) // each)
    spread = float((pool[1].amax(dim=0) - pool[1].amin(dim=0)).max())
    single = request.single

    def rounding(units: int) -> float:
        return rounding_per_value(request.arithmetic, family, units, groups, d)

    # not below what float32 allows: aiming lower would only add heads, and rounding
    tolerance = max(request.fit_tolerance / groups, LEAST_VALUES * spread * rounding(smallest) / FLOAT32_SHARE * single)
    goal = (POOL_GOAL - FLOAT32_SHARE * single) * tolerance

    def limit(units: int) -> float:
        """Σ|c| of this group that leaves rounding its share, but enough for a useful fit."""
        return max(FLOAT32_SHARE * tolerance / rounding(units), LEAST_VALUES * spread) if single else math.inf

    def first_fit(units: int) -> FittedGroup:
        allowed, device = limit(units), request.device
        few, over = (some[0], some[1]), budget.over
        fit = quick_fits(source, family, units, few, ARRANGEMENTS[family], allowed, device, over)[0][1]
        problem, cap = Problem.of(source, features_of(fit.heads, source.group), pool), cap_of(fit.heads)
        once = solve(problem, cap=cap, most=allowed, exchanges=0, reweightings=0, device=device, over=over)
        return replace(fit, solution=once)

    def refined(fit: FittedGroup) -> FittedGroup:
        if budget.over():
            return fit
        problem = Problem.of(source, features_of(fit.heads, source.group), pool)
        better = solve(problem, cap=cap_of(fit.heads), most=limit(fit.units), device=request.device, over=budget.over)
        return replace(fit, solution=better) if better.observed < fit.solution.observed else fit

    def attempt(units: int) -> FittedGroup:
        fit = first_fit(units)
        return refined(fit) if goal < fit.solution.observed <= 3 * goal else fit

    if request.units is not None:
        source.require_samples(each * (request.units // groups) + (d if family == "memory" else 1))
        return refined(first_fit(request.units // groups))
    return refined(_grow(attempt, smallest, most, goal, budget))


def _grow(attempt: Callable[[int], FittedGroup], smallest: int, most: int, goal: float, budget: Budget) -> FittedGroup:
    """Units growing by a third until the goal is met, then the smallest success between the last two sizes."""
    best, failed, units = attempt(smallest), 0, smallest
    history, before = [best.solution.observed], 0.0
    while best.solution.observed > goal and units < most and not _stuck(history) and not budget.over():
        far = best.solution.observed > 30 * goal
        failed, units = units, min(most, math.ceil(units * (2 if far else 4 / 3)))
        if (units / failed) ** 2 * before > budget.left:
            break  # it would not be finished
        started = budget.elapsed
        tried = attempt(units)
        before = budget.elapsed - started
        history.append(tried.solution.observed)
        best = min(best, tried, key=lambda fit: fit.solution.observed)
        if tried.solution.observed <= goal:
            best = tried
            break
    while best.solution.observed <= goal and units - failed > max(1, units // 16) and not budget.over():
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


def lattice_counts(units: int, d: int) -> list[int]:
    """Nearly equal counts per axis with product at most `units`."""
    counts = [max(1, math.floor(units ** (1 / d) + 1e-9))] * d
    for axis in range(d):
        if math.prod(counts) // counts[axis] * (counts[axis] + 1) <= units:
            counts[axis] += 1
    return counts
