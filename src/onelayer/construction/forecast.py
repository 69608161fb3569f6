"""How many units a layer will need: an estimate from small pilot fits, before anything is built.

In each group the errors of a few small fits are extrapolated to the tolerance: for solved layers as a power of the number of
units n (analytic targets do better, so the estimate is then on the high side), for polished ones as exp(−rate·n^(1/d)), d the
coordinates of the group, which is how fits of analytic targets were observed to behave. Nothing here is proved.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ..common.budget import Budget
from ..layer.assemble import Layout, outputs_of
from ..layer.assemble.gates import gate_config
from ..layer.assemble.memory import memory_config
from ..layer.layer import GateLayer, Layer
from ..layer.magnitudes import largest_score_of
from ..model.config import LayerConfig
from ..target.group_samples import GroupSamples
from ..target.target import Target
from .fitted_groups import groups_to_fit
from .kinks.remainder import remainders_of
from .plan import Plan
from .polished.candidate import affine_group
from .polished.families import family_of
from .polished.search import FIRST_GATES, FIRST_UNITS, UnitSearch
from .request import POOL_GOAL, Request
from .solved.layer import ARRANGEMENTS, quick_fits
from .solved.values import VALUES_CAP

PILOT_SECONDS = 20.0  # at most, for one group and family
PILOT_SIZES = 3  # sizes tried

Count = Callable[[GroupSamples, str, float], int]  # group, family, goal → units


def plan_solved(target: Target, tolerance: float, layout: Layout = "token") -> Plan:
    """The family with fewer parameters, units per group estimated from pilot fits."""
    return _plan(target, tolerance, layout, "solved", _solved_units)


def plan_polished(target: Target, tolerance: float, layout: Layout = "token") -> Plan:
    """The same with polished pilots."""
    straight = Request(target, tolerance, layout=layout).straight
    return _plan(target, tolerance, layout, "polished", partial(_polished_units, straight=straight))


def _plan(target: Target, tolerance: float, layout: Layout, method: str, count: Count) -> Plan:
    remainders = remainders_of(Request(target, tolerance, layout=layout)) if method == "polished" else {}
    families = tuple(remainders) or (("memory", "gates") if layout == "token" else ("gates",))
    found = []
    for family in families:
        remainder = remainders.get(family)
        kinks, smooth = (remainder.kinks, remainder.target) if remainder else (None, target)
        groups = [] if remainder and remainder.nothing_left else groups_to_fit(smooth)
        goal = POOL_GOAL * tolerance / max(len(groups), 1)
        counts = [count(GroupSamples(smooth, group, 0), family, goal) for group in groups]
        widths = [1.5 * n ** (1 / len(group)) for n, group in zip(counts, groups, strict=True)]
        found.append(
            Plan(
                method=method,
                tolerance=tolerance,
                units=sum(counts) + (kinks.units if kinks else 0),
                sharpness=max([*widths, largest_score_of(kinks) if kinks else 0.0]),
                config=_config(target, family, counts, groups, layout, kinks),
                bound=tolerance,
                proved=False,
                modulus="not needed",
            )
        )
    return min(found, key=lambda plan: plan.parameters)


def _solved_units(source: GroupSamples, family: str, goal: float) -> int:
    d = len(source.group)
    sizes = [4, 8, 16] if d == 1 else [4 ** min(d, 4) // 2 + 8, 6**2 * d, 8**2 * d]
    each = 1 if family == "memory" else d + 2  # features per unit
    most = max(1, source.most_features(each * sizes[-1]) // each)
    sizes = [units for units in sizes if units <= most] or [most]
    pool, budget = source.sample(4000, 99), Budget(PILOT_SECONDS)
    seen: list[tuple[int, float]] = []
    for units in sizes:
        if len(seen) > 1 and budget.over():
            break
        observed = quick_fits(source, family, units, pool, ARRANGEMENTS[family])[0][1].solution.observed
        if observed <= goal:
            return units
        seen.append((units, max(observed, 1e-300)))
    return extrapolated(seen, goal, math.log)


def _polished_units(source: GroupSamples, family: str, goal: float, straight: bool) -> int:
    d = len(source.group)
    if affine_group(source, goal) is not None:
        return 0
    kind = family_of(family, d, graded=bool(source.faces()), straight=straight)
    budget = Budget(PILOT_SECONDS)
    search = UnitSearch(kind, source, goal, lambda spread, units: VALUES_CAP * spread, budget, most=10**6)
    units, seen = FIRST_UNITS.get(family, FIRST_GATES)[min(d, 4) - 1], []
    for _ in range(PILOT_SIZES):
        error = search.pilot(units).observed
        if error <= goal:
            return units
        seen.append((units, error))
        if budget.over():
            break
        units = math.ceil(1.5 * units)
    return extrapolated(seen, goal, lambda n: n ** (1 / d))


def extrapolated(seen: list[tuple[int, float]], goal: float, scale: Callable[[float], float]) -> int:
    """Units at which log error, fitted linearly in scale(units), would reach the goal; a billion at most."""
    most = 10**9
    if len(seen) < 2:
        return most
    x, y = np.array([scale(n) for n, _ in seen]), np.log([max(error, 1e-300) for _, error in seen])
    slope, start = np.polyfit(x, y, 1)
    start += min(0.0, float(np.min(y - (slope * x + start))))  # down to the best error seen: other sizes may do as well
    if slope >= 0 or slope * scale(most) + start > math.log(goal):
        return most
    low, high = seen[-1][0], most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if slope * scale(middle) + start <= math.log(goal) else (middle, high)
    return high


def _config(
    target: Target, family: str, counts: list[int], groups: list[tuple[int, ...]], layout: Layout, kinks: Layer | None
) -> LayerConfig:
    reads, hinges = (len(kinks.reads), len(kinks.hinges)) if kinks else (0, 0)
    if family == "memory":
        sizes = [len(g) for g in groups]
        return memory_config(target.dimension, target.outputs, sum(counts), sizes, hinges=hinges)
    return gate_config(
        target.dimension,
        outputs_of(target),
        layout,
        units=sum(counts) + (kinks.units if kinks else 0),
        reads=reads,
        hinges=hinges,
        plain=False,
        anchored=isinstance(kinks, GateLayer) and not kinks.spares_anchor,
    )
