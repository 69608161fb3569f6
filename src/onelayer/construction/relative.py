"""A relative tolerance: |T − f| ≤ tolerance · m on the whole domain, m > 0 a lower bound of |f| there, for all outputs.

It implies |T − f| ≤ tolerance · |f| everywhere. From here on only the absolute tolerance counts, tolerance · m rounded
down. How m is known:

    proved     a formula: enclosures and bisection (`target.smallest`)
    declared   a callable or data: values at centres of boxes, less what the declared modulus lets f fall within them
    sampled    a callable or data without a modulus: the smallest value seen; nothing is certified then anyway
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from ..common.budget import Budget
from ..common.errors import InputError
from ..common.numbers import at_least, at_most
from ..proof.certificate import Certificate, RelativeTolerance
from ..target.points import uniform_points
from ..target.smallest import smallest_by_modulus, smallest_of_formula
from ..target.target import Target, require_tolerance

SAMPLED_POINTS = 4096  # points at which a callable without a modulus is evaluated


def with_declared_minimum(certificate: Certificate) -> Certificate:
    """The certificate, with a declared lower bound of |f| among its assumptions."""
    relative = certificate.evidence.relative
    if relative is None or relative.known != "declared":
        return certificate
    assumed = f"|f| ≥ {at_least(relative.least, 6)} on the domain, by the declared modulus"
    return replace(certificate, assumptions=(*certificate.assumptions, assumed))


def relative_to(target: Target, share: float, budget: Budget | None = None) -> RelativeTolerance:
    """What a tolerance of `share` times |f| means for the target; an error where f may vanish, as far as the time tells."""
    require_tolerance(share)
    known: Literal["proved", "declared", "sampled"]
    if target.formula is not None:
        known = "proved"
        least, seen = smallest_of_formula(target.formula, target.domain, budget)
    elif target.modulus.kind == "declared":
        known = "declared"
        least, seen = smallest_by_modulus(target, budget)
    else:
        known = "sampled"
        least = seen = _sampled(target)
    if not least > 0:
        found = f"f may be 0 (the smallest |f| seen is {at_most(seen, 3)})" if seen else "f may be 0"
        late = ", or more seconds to find out" if budget is not None and budget.over() else ""
        change = f"give an absolute tolerance{late}"
        raise InputError("a relative tolerance, for a function without zeros", found, change)
    relative = RelativeTolerance(share, least, known)
    require_tolerance(relative.tolerance)
    return relative


def _sampled(target: Target) -> float:
    """The smallest |f| seen, at samples or at random points."""
    if target.data is not None:
        return float(np.abs(target.data.y).min())
    x = target.domain.points(uniform_points(SAMPLED_POINTS, target.dimension, 0).numpy())
    return float(np.abs(target(x)).min())
