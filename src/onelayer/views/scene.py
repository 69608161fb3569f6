"""Scenes: f, T and T − f on grids of points, the numbers behind the pictures.

A scene draws one or two variables; the others stay at the centre of the domain or have a slider with a few stops. Values
outside the domain, and where f is unknown, are NaN. Pictures show what was sampled and prove nothing.
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

SIDE_POINTS = {1: 801, 2: 61, 3: 41, 4: 31}  # along a drawn variable, by dimension; 4 stands for more, too
STOPS = {3: 9, 4: 5}  # of a slider, by dimension
PAIRS = ((0, 1), (2, 3))  # drawn variables, in 4 or more dimensions
MOST_SLIDERS = 2  # of a scene
MOST_OUTPUTS = 6  # drawn
MOST_NUMBERS = 60_000  # in one scene, so that pages stay small
MOST_WEIGHTS = 2e9  # attention weights computed for one scene; larger layers are drawn more coarsely
UNBOUNDED = 1e12  # half a side longer than this stands for all numbers


@dataclass(frozen=True, eq=False)
class Scene:
    """T, and f where it can be evaluated, on a grid [stops of the sliders, drawn variables, outputs]."""

    drawn: tuple[int, ...]  # variables
    axes: tuple[np.ndarray, ...]
    sliders: tuple[int, ...]  # variables
    stops: tuple[np.ndarray, ...]
    T: Float[np.ndarray, "*grid out"]
    f: Float[np.ndarray, "*grid out"] | None
    claimed: np.ndarray  # [*grid]: whether the certificate covers the point; not within the margin of a jump

    @property
    def error(self) -> Float[np.ndarray, "*grid out"] | None:
        """T − f, signed; NaN where nothing is claimed."""
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
        return (scene_of(approximation, tuple(range(D)), ()),)
    pairs = itertools.combinations(range(3), 2) if D == 3 else PAIRS
    return tuple(scene_of(approximation, p, tuple(j for j in range(D) if j not in p)[:MOST_SLIDERS]) for p in pairs)


def scene_of(approximation: Approximation, drawn: tuple[int, ...], sliders: tuple[int, ...]) -> Scene:
    """One scene; variables that are not drawn and have no slider stay at the centre of the domain."""
    domain, kind = approximation.domain, min(approximation.domain.dimension, 4)
    most = SIDE_POINTS[kind]
    counts = [most] * len(drawn) + [STOPS.get(kind, 1)] * len(sliders)
    c = approximation.model.config
    per_point = c.heads * c.all_tokens * len(approximation.facts.places)
    points = MOST_WEIGHTS / per_point if approximation.fast().attention == "softmax" else math.inf
    shown = min(MOST_OUTPUTS, math.prod(approximation.output_shape))
    share = min(points, MOST_NUMBERS / shown) / math.prod(counts)
    side = max(int(most * min(share, 1.0) ** (1 / len(drawn))) // 2 * 2 + 1, 9)
    low, high = window(domain)
    axes = tuple(np.linspace(low[j], high[j], side) for j in drawn)
    stops = tuple(np.linspace(low[j], high[j], STOPS[kind]) for j in sliders)
    grid = np.meshgrid(*stops, *axes, indexing="ij")
    x = np.tile(low + (high - low) / 2, (grid[0].size, 1))
    for j, values in zip((*sliders, *drawn), grid, strict=True):
        x[:, j] = values.ravel()
    inside = domain.contains(x)
    T = np.full((len(x), shown), np.nan)
    T[inside] = np.asarray(approximation.fast()(x[inside]), dtype=np.float64).reshape(int(inside.sum()), -1)[:, :shown]
    f = None
    if approximation.target is not None and has_values(approximation.target):
        f = np.full((len(x), shown), np.nan)
        f[inside] = approximation.target.values(x[inside])[:, :shown]
        f[~np.isfinite(f)] = np.nan
    claimed = inside if approximation.target is None else in_scope(approximation.target, x)
    shape = (*grid[0].shape, shown)
    f = None if f is None else f.reshape(shape)
    return Scene(drawn, axes, sliders, stops, T.reshape(shape), f, claimed.reshape(grid[0].shape))


def window(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """The ends to draw between: those of the domain, or [−1, 1] along a side that stands for all numbers."""
    low, high = np.array(domain.lower), np.array(domain.upper)
    wide = high / 2 - low / 2 > UNBOUNDED
    return np.where(wide, np.maximum(low, -1.0), low), np.where(wide, np.minimum(high, 1.0), high)


def has_values(target: Target) -> bool:
    """Whether f has values away from samples."""
    return target.data is None or target.envelope is not None


def output_names(approximation: Approximation) -> list[str]:
    """Names of the outputs that are drawn."""
    m = math.prod(approximation.output_shape)
    return ["T(x)"] if m == 1 else [f"output {o + 1}" for o in range(min(m, MOST_OUTPUTS))]
