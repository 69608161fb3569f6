"""The analytic certificate: a proof of sup |T − f| ≤ ε for analytic targets, by Chebyshev interpolation on boxes.

On a box, g = T − f is interpolated at (p+1)^D Chebyshev points. If |g| ≤ V with one coordinate on its Bernstein ellipse of
parameter ρ and the others real, the interpolant is within (Σ_{i<D} Λ_p^i)·4Vρ^(−p)/(ρ−1) of g; and the interpolant, being
a polynomial, is bounded by its values at N^D points (Ehlich–Zeller). V of T comes from the strip bound of its heads, V of
f from one evaluation of the formula in complex balls, which also proves that f is analytic there. Boxes are as large as
the sharpest head allows; their number does not depend on ε. Where f has no complex enclosure, or the truncation is too
large, a box is halved.

If neither T nor f mixes two groups of coordinates, g is a sum over groups and its range is the sum of the ranges:
max g = Σ_g max g_g, min g = Σ_g min g_g. So an additive target costs one low-dimensional certificate per group.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ..assemble import Frame
from ..formula.bounded import ULPS
from ..groups import parts_of, terms_of
from ..plan import reach_of
from ..target import Target
from .arithmetic import FLOAT64
from .deployed import Deployment, deployed_rounding, edges
from .form import Form, joint_groups
from .part import DEGREES, Budget, Part

SHARE = 0.01  # of the tolerance, for truncation
ROUNDING = 0.01  # of the tolerance: rounding is not bounded more closely than that
UP = 1 + 1e-9


@dataclass(frozen=True)
class Proof:
    """A bound on sup |T − f|, rounding of the deployed model included, and how it was found."""

    bound: float
    evidence: dict[str, object]
    assumptions: tuple[str, ...]


def prove(
    form: Form,
    target: Target,
    frame: Frame,
    tolerance: float,
    budget: Budget | None = None,
    progress: Callable[[str, float], None] | None = None,
    how: Deployment | None = None,
) -> Proof | None:
    """The proof, or None where this method does not apply (no formula, too many coordinates in one group).

    `how` the model is deployed, if not in float64 with one summand per head and coordinate, the output just read.
    """
    if target.formula is None or not form.is_finite():
        return None
    budget, reach = budget or Budget(), reach_of(target)
    links = [tuple(i - 1 for i in term) for output in target.formula.outputs for term in terms_of(output)]
    groups = joint_groups(form, links) or [(0,)]
    if target.domain.where is not None:
        groups = [tuple(range(target.dimension))]
    if max(map(len, groups)) > max(DEGREES):
        return None
    ranges = []
    for position, (group, formula) in enumerate(zip(groups, parts_of(target.formula, groups), strict=True)):
        part = Part(form.restricted(group, with_bias=position == 0), formula, target, frame, group, reach)
        ranges.append(part.range(SHARE * tolerance / len(groups), budget, progress))
        if progress:
            progress("certifying", (position + 1) / len(groups))
    high, low = sum(r.high for r in ranges), sum(r.low for r in ranges)
    how = how or Deployment(FLOAT64, form.heads + form.dimension, 3)
    ends = (torch.tensor(t, dtype=torch.float64) for t in (target.domain.lower, target.domain.upper))
    box = edges(*ends, *(torch.tensor(t, dtype=torch.float64) for t in (frame.shift, frame.scale)))
    deployed = deployed_rounding(form, *box, how, ROUNDING * tolerance).numpy()
    adding = (
        len(ranges) * 2.0**-52 * sum(np.maximum(np.abs(r.high), np.abs(r.low)) for r in ranges)
    )  # offsets may cancel
    bound = float((np.maximum(high, -low) * UP + adding + deployed).max()) * UP
    evidence = {
        "groups": [list(group) for group in groups],
        "boxes": [r.boxes for r in ranges],
        "degrees": [r.degree for r in ranges],
        "ellipses": [r.rho for r in ranges],
        "rounding": float(deployed.max()),
    }
    assumptions = (
        *how.arithmetic.assumptions,
        f"elementary functions of NumPy and SciPy within {ULPS} units in the last place",
        "explicit softmax attention, or its factored form (other kernels add their own rounding)",
    )
    return Proof(bound if math.isfinite(bound) else math.inf, evidence, assumptions)
