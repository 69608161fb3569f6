"""How many bits a class of functions needs, whatever the model: a lower bound by counting.

The class: |f(x) − f(y)| ≤ Σ_j L_j |x_j − y_j|^α on a box, 0 < α ≤ 1. Cut side j into k_j equal parts that are wider than
2(2^(1−α) ε/L_j)^(1/α). For every choice of signs, one for each of the N = ∏ k_j cells, the class has a function that is ± more
than ε at the centres of the cells (docs/theory/sizes.md, 2), so no model is within ε of two of them. A family of models with P
parameters of b bits has at most 2^(Pb) members. To be within ε of every function of the class it needs

    P·b ≥ N = ∏_j (⌈(s_j/2)(L_j/(2^(1−α) ε))^(1/α)⌉ − 1),    s_j the sides.
"""

import math
from collections.abc import Sequence

from flint import arb, ctx

from ..common.checks import is_number
from ..common.errors import InputError
from ..target.target import require_tolerance

PRECISION, LARGEST = 256, 1e300


def bits_of_class(constants: Sequence[float], sides: Sequence[float], tolerance: float, exponent: float = 1.0) -> int:
    """N: bits without which no family of models is within the tolerance of every function of the class."""
    require_tolerance(tolerance)
    if not (is_number(exponent) and 0 < exponent <= 1):
        raise InputError("an exponent in (0, 1]", f"{exponent!r}", "give 1 for Lipschitz functions")
    if len(constants) != len(sides) or not all(0 <= v < math.inf for v in [*constants, *sides]):
        found = f"constants {[*constants]}, sides {[*sides]}"
        raise InputError("finite numbers ≥ 0, a constant for every side", found, "give as many of both")
    with ctx.workprec(PRECISION):
        power, given = arb(exponent), zip(constants, sides, strict=True)
        height = arb(2) ** (1 - power) * tolerance
        parts = [(arb(s) / 2 * (arb(L) / height) ** (1 / power)).lower() for L, s in given if L]
        if any(part > LARGEST for part in parts):
            raise InputError("a class that needs less than 1e300 bits", f"exponent {exponent!r}", "take a larger one")
        cells = [max(int(part.ceil().unique_fmpz() or 0) - 1, 0) for part in parts]
    return math.prod(cells) if len(cells) == len(constants) else 0
