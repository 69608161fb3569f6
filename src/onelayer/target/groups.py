"""Which variables of a target interact: f = Σ_g f_g(x_g) over groups of coordinates.

A formula shows its groups, which is a proof (`formula.additive`). A callable's groups are *observed*: mixed differences at
random pairs of points that vanish up to rounding. Samples cannot be evaluated elsewhere, so they are one group.
"""

from typing import TYPE_CHECKING

import numpy as np

from ..formula.additive import components, links_of

if TYPE_CHECKING:
    from .target import Target

PAIRS = 64  # pairs of points at which mixed differences are taken
NEGLIGIBLE = 1e-10  # a mixed difference below this share of the range of f is rounding


def groups_of(target: "Target") -> list[tuple[int, ...]]:
    """Groups of coordinates (from 0), each sorted, in the order of their first member; unused coordinates are left out."""
    if target.formula is not None:
        return components(links_of(target.formula))
    if target.data is not None:
        return [tuple(range(target.dimension))]
    return components(_observed_links(target))


def _observed_links(target: "Target") -> list[tuple[int, ...]]:
    """Pairs whose mixed difference f(a) − f(a with b_i) − f(a with b_j) + f(a with b_i, b_j) is not negligible."""
    rng = np.random.default_rng(0)
    D = target.dimension
    a, b = (target.domain.points(rng.random((PAIRS, D))) for _ in range(2))
    base = target(a)
    floor = NEGLIGIBLE * float(np.ptp(base) or 1.0)

    def moved(*coordinates: int) -> np.ndarray:
        x = a.copy()
        x[:, coordinates] = b[:, coordinates]
        return target(x)

    single = [moved(i) for i in range(D)]
    links: list[tuple[int, ...]] = [(i,) for i in range(D) if np.abs(single[i] - base).max() > floor]
    for i in range(D):
        for j in range(i):
            if np.abs(base - single[i] - single[j] + moved(i, j)).max() > floor:
                links.append((j, i))
    return links
