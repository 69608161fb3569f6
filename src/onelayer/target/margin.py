"""Which points are in scope: those of the domain that are at least the margin away from the jumps of the target."""

import numpy as np
from jaxtyping import Bool, Float

from ..common.outward import UP_FEW
from .target import Target


def in_scope(target: Target, x: Float[np.ndarray, "point coordinate"]) -> Bool[np.ndarray, " point"]:
    """Points in the domain around which, within the margin, every condition of `where(…)` is proved constant."""
    inside = target.domain.contains(x)
    if not target.margin or target.formula is None:
        return inside
    from ..formula.taylor.formula import TaylorAlgebra
    from ..formula.taylor.series import Space

    reach = target.margin * UP_FEW
    ends = (np.nextafter(x + s * reach, s * np.inf) for s in (-1, 1))
    low, high = (np.clip(end, target.domain.lower, target.domain.upper) for end in ends)
    algebra = TaylorAlgebra(Space(low, high))
    target.formula.tape.run(algebra)
    return np.asarray(inside & ~algebra.undecided)
