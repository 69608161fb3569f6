"""Points of the unit cube [0, 1]^D: for fitting, for finding the worst error, for testing.

All are determined by their seed and leave global random state alone.
"""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

MOST_CORNERS = 4096
FACE_SHARE = 1 / 3  # of the points
FEW_FACES_SHARE = 1 / 4  # in one and two coordinates, where the faces are ends and edges


def fitting_points(count: int, dimension: int, seed: int) -> Float[Tensor, "point coordinate"]:
    """About `count` points that crowd toward the boundary, where polynomials and layers alike go wrong first.

    Half Sobol, half Sobol mapped by the arcsine law; a third of all snapped to faces of every dimension; and the corners.
    """
    engine = torch.quasirandom.SobolEngine(dimension, scramble=True, seed=int(seed))
    x = engine.draw(count, dtype=torch.float64)
    x[: count // 2] = 0.5 - 0.5 * torch.cos(math.pi * x[: count // 2])
    return torch.cat([_snapped(x, torch.Generator().manual_seed(int(seed))), corners(dimension, seed)])


def judging_points(count: int, dimension: int, seed: int) -> Float[Tensor, "point coordinate"]:
    """Independent uniform points, a third of them snapped to faces of every dimension, and the corners: a test set."""
    generator = torch.Generator().manual_seed(int(seed))
    x = torch.rand(count, dimension, generator=generator, dtype=torch.float64)
    return torch.cat([_snapped(x, generator) if dimension > 1 else x, corners(dimension, seed)])


def _snapped(x: Tensor, generator: torch.Generator) -> Tensor:
    """The points, a share of them moved to random faces: 1 to D − 1 of their coordinates become 0 or 1."""
    count, dimension = x.shape
    snapped = int(count * (FACE_SHARE if dimension > 2 else FEW_FACES_SHARE))
    face = torch.randint(0, dimension, (snapped,), generator=generator)
    side = torch.randint(0, 2, (snapped,), generator=generator).to(x.dtype)
    # any regular subset of Sobol indices lies in one corner of the cube: taking it away would leave a hole
    which = torch.randperm(count, generator=generator)[:snapped]
    x[which, face] = side
    if dimension > 2:  # more coordinates than this one: those that are first in a random order which it leads
        order = torch.rand(snapped, dimension, generator=generator).scatter_(1, face[:, None], -1.0)
        moved = torch.randint(1, dimension, (snapped, 1), generator=generator)
        sides = torch.randint(0, 2, (snapped, dimension), generator=generator).to(x.dtype)
        x[which] = torch.where(order.argsort(dim=1).argsort(dim=1) < moved, sides, x[which])
    return x


def spread_points(
    count: int, dimension: int, padding: float, seed: int
) -> tuple[Float[Tensor, "point coordinate"], float]:
    """(points of [−½, ½]^D padded on every side by padding·min(h, ¼), h = count^(−1/D)): Sobol, equispaced in one coordinate."""
    h = count ** (-1 / dimension)
    if dimension == 1:
        unit = (torch.arange(count, dtype=torch.float64).unsqueeze(1) + 0.5) / count
    else:
        unit = torch.quasirandom.SobolEngine(dimension, scramble=True, seed=int(seed)).draw(count, dtype=torch.float64)
    return (unit - 0.5) * (1 + 2 * padding * min(h, 0.25)), h


def corners(dimension: int, seed: int = 0) -> Float[Tensor, "corner coordinate"]:
    """The corners of the cube; in more than 12 coordinates 4,096 random ones."""
    if 2**dimension > MOST_CORNERS:
        generator = torch.Generator().manual_seed(int(seed))
        return torch.randint(0, 2, (MOST_CORNERS, dimension), generator=generator).to(torch.float64)
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=dimension)), dtype=torch.float64)


def uniform_points(count: int, dimension: int, seed: int) -> Float[Tensor, "point coordinate"]:
    """Independent uniform points, and the corners."""
    generator = torch.Generator().manual_seed(int(seed))
    x = torch.rand(count, dimension, generator=generator, dtype=torch.float64)
    return torch.cat([x, corners(dimension, seed)])
