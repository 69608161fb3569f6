"""Which points a target asks about: those of its domain, away from jumps by the target's margin."""

import numpy as np
from jaxtyping import Bool, Float

from .target import Target


def asked(target: Target, x: Float[np.ndarray, "point coordinate"]) -> Bool[np.ndarray, " point"]:
    """Points in the domain around which, within the margin, every condition of `where(…)` is proved constant."""
    inside = target.domain.contains(x)
    if not target.margin or target.formula is None:
        return inside
    from ..formula.taylor.formula import TaylorAlgebra
    from ..formula.taylor.series import Space

    reach = target.margin * (1 + 1e-12)
    ends = (np.nextafter(x + s * reach, s * np.inf) for s in (-1, 1))
    low, high = (np.clip(end, target.domain.lower, target.domain.upper) for end in ends)
    algebra = TaylorAlgebra(Space(low, high))
    target.formula.tape.run(algebra)
    return np.asarray(inside & ~algebra.undecided)
