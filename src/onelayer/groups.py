"""Which variables interact: f = Σ_g f_g(x_g) over groups of coordinates.

A formula shows its groups: the terms of its sums, followed through negation and constant factors, link the variables they
contain; connected components are the groups. That is a proof of additivity. A callable's groups are *observed*: mixed
differences at random pairs of points that vanish to rounding.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .formula.tree import Negation, Node, Product, Quotient, Sum, variables

if TYPE_CHECKING:
    from .target import Target

PAIRS = 64
NEGLIGIBLE = 1e-10  # of the range of f


def groups_of(target: "Target") -> list[tuple[int, ...]]:
    """Groups of coordinates (from 0), each sorted, in the order of their first member; unused coordinates are left out."""
    if target.formula is not None:
        links = [v for output in target.formula.outputs for v in terms_of(output)]
        return components([tuple(i - 1 for i in link) for link in links])
    return components(_observed_links(target))


def components(links: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Connected components of the coordinates that the links join."""
    found: list[set[int]] = []
    for link in map(set, links):
        if not link:
            continue
        touching = [c for c in found if c & link]
        found = [c for c in found if not c & link] + [link.union(*touching)]
    return sorted(tuple(sorted(c)) for c in found)


def terms_of(node: Node) -> list[tuple[int, ...]]:
    """The variables of every additive term."""
    match node:
        case Sum(parts):
            return [v for part in parts for v in terms_of(part)]
        case Negation(operand):
            return terms_of(operand)
        case Product(factors):
            varying = [factor for factor in factors if variables(factor)]
            return terms_of(varying[0]) if len(varying) == 1 else [variables(node)]
        case Quotient(dividend, divisor) if not variables(divisor):
            return terms_of(dividend)
        case _:
            return [variables(node)]


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
