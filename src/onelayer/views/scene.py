"""Scenes: f, T and T − f on grids of points, the numbers behind the pictures.

A scene draws one or two variables; the others stand still at the centre of the domain or have a few stops each, for sliders.
What is outside the domain, or where f is unknown, is NaN. Pictures show what was sampled and prove nothing.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..approximation import Approximation
from ..target.domain import Domain
from ..target.margin import in_scope
from ..target.target import Target

LINE, SQUARE = 801, 61  # points along a drawn variable
SIDE, STOPS = (
    {3: 41, 4: 31},
    {3: 9, 4: 5},
)  # along drawn variables, and stops of the others, in 3 and in 4 or more dimensions
MOVED, PAIRS = 2, 2  # sliders, and pairs of drawn variables, in 4 or more dimensions
OUTPUTS = 6  # outputs that are drawn
NUMBERS = 60_000  # numbers of one scene, so that pages stay small
ENDLESS = 1e12
WORK = 2e9  # attention weights for one scene; larger layers are drawn more coarsely


@dataclass(frozen=True, eq=False)
class Scene:
    """T, and f where it can be asked, on a grid: axes are the stops of the moved variables, the drawn variables, the outputs."""

    drawn: tuple[int, ...]
    axes: tuple[np.ndarray, ...]
    moved: tuple[int, ...]
    stops: tuple[np.ndarray, ...]
    T: Float[np.ndarray, "*grid out"]
    f: Float[np.ndarray, "*grid out"] | None

    claimed: (
        np.ndarray
    )  # on the grid: whether the certificate speaks of the point; within the margin of a jump it does not

    @property
    def error(self) -> Float[np.ndarray, "*grid out"] | None:
        """T − f, signed; NaN where the target does not ask for it."""
        return None if self.f is None else np.where(self.claimed[..., None], self.T - self.f, np.nan)

    @property
    def middle(self) -> tuple[int, ...]:
        """The stops nearest to the centre."""
        return tuple(len(stops) // 2 for stops in self.stops)


def scenes(approximation: Approximation) -> tuple[Scene, ...]:
    """All scenes of an approximation; none if its inputs are token numbers."""
    if approximation.vocabulary is not None:
        return ()
    D = approximation.domain.dimension
    if D <= 2:
        return (scene(approximation, tuple(range(D)), ()),)
    pairs = list(itertools.combinations(range(D), 2)) if D == 3 else [(j, j + 1) for j in range(0, D - 1, 2)][:PAIRS]
    return tuple(scene(approximation, pair, tuple(j for j in range(D) if j not in pair)[:MOVED]) for pair in pairs)


def scene(approximation: Approximation, drawn: tuple[int, ...], moved: tuple[int, ...]) -> Scene:
    """One scene; variables that are neither drawn nor moved stand at the centre of the domain."""
    domain, D = approximation.domain, approximation.domain.dimension
    kind = min(D, 4)
    many = LINE if D == 1 else SIDE.get(kind, SQUARE)
    counts = [many] * len(drawn) + [STOPS.get(kind, 1)] * len(moved)
    c = approximation.model.config
    per_point = c.heads * c.all_tokens * len(approximation.facts.places)
    work = WORK / per_point if approximation.fast().attention == "softmax" else math.inf
    shown = min(OUTPUTS, math.prod(approximation.output_shape))
    room = min(work, NUMBERS / shown) / math.prod(counts)
    side = max(int(many * min(room, 1.0) ** (1 / len(drawn))) // 2 * 2 + 1, 9)
    low, high = window(domain)
    axes = tuple(np.linspace(low[j], high[j], side) for j in drawn)
    stops = tuple(np.linspace(low[j], high[j], STOPS[kind]) for j in moved)
    grid = np.meshgrid(*stops, *axes, indexing="ij")
    x = np.tile(low + (high - low) / 2, (grid[0].size, 1))
    for j, values in zip((*moved, *drawn), grid, strict=True):
        x[:, j] = values.ravel()
    inside = domain.contains(x)
    T = np.full((len(x), shown), np.nan)
    T[inside] = np.asarray(approximation.fast()(x[inside]), dtype=np.float64).reshape(int(inside.sum()), -1)[:, :shown]
    f = None
    if approximation.target is not None and can_be_asked(approximation.target):
        f = np.full((len(x), shown), np.nan)
        f[inside] = approximation.target.values(x[inside])[:, :shown]
        f[~np.isfinite(f)] = np.nan
    claimed = inside if approximation.target is None else in_scope(approximation.target, x)
    shape = (*grid[0].shape, shown)
    f = None if f is None else f.reshape(shape)
    return Scene(drawn, axes, moved, stops, T.reshape(shape), f, claimed.reshape(grid[0].shape))


def window(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """The ends to draw between: those of the domain, or [−1, 1] along a side that stands for all numbers."""
    low, high = np.array(domain.lower), np.array(domain.upper)
    wide = high / 2 - low / 2 > ENDLESS
    return np.where(wide, np.maximum(low, -1.0), low), np.where(wide, np.minimum(high, 1.0), high)


def can_be_asked(target: Target) -> bool:
    """Whether f has a value away from samples."""
    return target.data is None or target.envelope is not None


def output_names(approximation: Approximation) -> list[str]:
    """Names of the outputs that are drawn."""
    m = math.prod(approximation.output_shape)
    return ["T(x)"] if m == 1 else [f"output {o + 1}" for o in range(min(m, OUTPUTS))]
