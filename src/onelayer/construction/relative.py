"""A relative tolerance: |T − f| ≤ tolerance · m on the whole domain, m > 0 a lower bound of |f| there, for all outputs.

It implies |T − f| ≤ tolerance · |f| everywhere. From here on everything speaks of the absolute tolerance, tolerance · m
rounded down. How m is known:

    proved     a formula: enclosures and bisection (`least`)
    declared   a callable or data: values at centres of boxes, less what the declared modulus lets f fall within them
    sampled    a callable or data without a modulus: the smallest value seen; nothing is certified then anyway
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..common.errors import InputError
from ..common.table import at_least
from ..target.points import uniform_points
from ..target.smallest import least_by_modulus, least_of_formula
from ..target.target import Target, require_tolerance

if TYPE_CHECKING:
    from ..approximation import Approximation

SAMPLED = 4096  # points at which a callable of unknown modulus is asked


@dataclass(frozen=True)
class Relative:
    """The tolerance asked for as a share of |f|, the lower bound m of |f|, and how it is known."""

    share: float
    least: float
    known: Literal["proved", "declared", "sampled"]

    @property
    def tolerance(self) -> float:
        """share · m, rounded down."""
        return math.nextafter(self.share * self.least, 0.0)

    def __str__(self) -> str:
        how = {"proved": "proved", "declared": "by the declared modulus", "sampled": "sampled, not proved"}[self.known]
        return f"{self.share:g} of |f| ≥ {at_least(self.least, 6)} ({how})"

    def marked(self, approximation: "Approximation") -> "Approximation":
        """The approximation with the relative tolerance in its notes and in its certificate."""
        c, facts = approximation.certificate, approximation.facts
        record = {"share": self.share, "least": self.least, "known": self.known}
        assumed = (
            (f"|f| ≥ {at_least(self.least, 6)} on the domain, by the declared modulus",)
            if self.known == "declared"
            else ()
        )
        certificate = replace(c, evidence=c.evidence | {"relative": record}, assumptions=(*c.assumptions, *assumed))
        facts = replace(facts, notes=(f"relative tolerance: {self}", *facts.notes))
        return replace(approximation, certificate=certificate, facts=facts)


def relative_to(target: Target, share: float) -> Relative:
    """What a tolerance of `share` times |f| means for the target; refused where f may vanish."""
    require_tolerance(share)
    known: Literal["proved", "declared", "sampled"]
    if target.formula is not None:
        known = "proved"
        least, seen = least_of_formula(target.formula, target.domain)
    elif target.modulus.kind == "declared":
        known = "declared"
        least, seen = least_by_modulus(target)
    else:
        known = "sampled"
        least = seen = _sampled(target)
    if not least > 0:
        found = f"f may be 0 (the smallest |f| seen is {seen:.3g})" if seen else "f may be 0"
        raise InputError("a relative tolerance, for a function without zeros", found, "give an absolute tolerance")
    relative = Relative(share, least, known)
    require_tolerance(relative.tolerance)
    return relative


def _sampled(target: Target) -> float:
    """The smallest |f| seen, at samples or at random points."""
    if target.data is not None:
        return float(np.abs(target.data.y).min())
    return float(np.abs(target(target.domain.points(uniform_points(SAMPLED, target.dimension, 0).numpy()))).min())
