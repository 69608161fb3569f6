"""How many units a solved layer will need: an estimate from small pilot fits, before anything is built.

In each group the errors of a few small fits are continued as a power of the number of units (analytic targets do better
than a power, so the estimate is then on the high side). Nothing here is proved.
"""

import math

from .assemble import Layout
from .assemble.scalar import scalar_config
from .assemble.vector import vector_config
from .config import LayerConfig
from .groupfit import GroupFit
from .groups import groups_of
from .plan import Plan, outputs_of
from .solved import ARRANGEMENTS, GOAL, quick_fits
from .target import Target


def plan_solved(target: Target, tolerance: float, layout: Layout = "token") -> Plan:
    """Units per group and family from pilot fits; the family with fewer parameters."""
    whole = tuple(range(target.dimension))
    groups = [whole] if target.domain.where else groups_of(target) or [whole[:1]]
    goal = GOAL * tolerance / len(groups)
    best: Plan | None = None
    for family in ("gates", "memory"):
        counts = [_units(GroupFit(target, group, 0), family, goal) for group in groups]
        plan = Plan(
            method="solved",
            tolerance=tolerance,
            units=sum(counts),
            sharpness=max(1.5 * count ** (1 / len(group)) for count, group in zip(counts, groups, strict=True)),
            config=_config(target, family, counts, groups, layout),
            bound=tolerance,
            proved=False,
            modulus="not needed",
        )
        best = plan if best is None or plan.parameters < best.parameters else best
    assert best is not None
    return best


def _units(fit: GroupFit, family: str, goal: float) -> int:
    d = len(fit.group)
    sizes = [4, 8, 16] if d == 1 else [4**d // 2 + 8, 6**2 * d, 8**2 * d]
    each = 1 if family == "memory" else d + 2  # features per unit
    most = max(1, fit.most_features(each * sizes[-1]) // each)
    sizes = [units for units in sizes if units <= most] or [most]
    seen, pool = [], fit.sample(4000, 99)
    for units in sizes:
        observed = quick_fits(fit, family, units, pool, ARRANGEMENTS[family])[0][1].solution.observed
        if observed <= goal:
            return units
        seen.append((units, max(observed, 1e-300)))
    (a, first), (b, last) = seen[0], seen[-1]
    rate = max(math.log(first / last) / math.log(b / a) if a < b else 0.0, 0.25)
    return math.ceil(math.exp(min(math.log(b) + (math.log(last) - math.log(goal)) / rate, math.log(10**9))))


def _config(
    target: Target, family: str, counts: list[int], groups: list[tuple[int, ...]], layout: Layout
) -> LayerConfig:
    if family == "memory":
        return vector_config(target.dimension, target.outputs, sum(counts), [len(g) for g in groups], reads=1)
    return scalar_config(target.dimension, outputs_of(target), layout, units=sum(counts), plain=False)
