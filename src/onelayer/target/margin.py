"""Which points are in scope: those of the domain that are at least the margin away from the jumps of the target."""

import numpy as np
from jaxtyping import Bool, Float

from ..common.outward import UP_FEW
from ..formula import Formula
from .domain import Domain
from .target import Target


def in_scope(target: Target, x: Float[np.ndarray, "point coordinate"]) -> Bool[np.ndarray, " point"]:
    """Points in the domain, as floats evaluate its condition, that are proved to be away from jumps."""
    inside = target.domain.contains(x)
    if not target.margin or target.formula is None:
        return inside
    return inside & away_from_jumps(target.formula, target.domain, target.margin, x)


def away_from_jumps(
    formula: Formula, domain: Domain, margin: float, x: Float[np.ndarray, "point coordinate"]
) -> Bool[np.ndarray, " point"]:
    """Points around which, within the margin, every condition of `where(…)` is proved constant."""
    from ..formula.taylor.formula import TaylorAlgebra
    from ..formula.taylor.series import Space

    reach = margin * UP_FEW
    ends = (np.nextafter(x + s * reach, s * np.inf) for s in (-1, 1))
    low, high = (np.clip(end, domain.lower, domain.upper) for end in ends)
    algebra = TaylorAlgebra(Space(low, high), strict=True, formula=formula)
    formula.tape.run(algebra)
    return ~algebra.undecided
