"""Points of the unit cube [0, 1]^D: for fitting, for finding the worst error, for testing.

All are determined by their seed and leave global random state alone.
"""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

MOST_CORNERS = 4096


def fitting_points(count: int, dimension: int, seed: int) -> Float[Tensor, "point coordinate"]:
    """About `count` points that crowd toward the boundary, where polynomials and layers alike go wrong first.

    Half Sobol, half Sobol mapped by the arcsine law; a quarter of all snapped to a random face; and the corners.
    """
    engine = torch.quasirandom.SobolEngine(dimension, scramble=True, seed=int(seed))
    x = engine.draw(count, dtype=torch.float64)
    x[: count // 2] = 0.5 - 0.5 * torch.cos(math.pi * x[: count // 2])
    generator = torch.Generator().manual_seed(int(seed))
    snapped = count // 4
    face = torch.randint(0, dimension, (snapped,), generator=generator)
    side = torch.randint(0, 2, (snapped,), generator=generator).to(x.dtype)
    # any regular subset of Sobol indices lies in one corner of the cube: taking it away would leave a hole
    which = torch.randperm(count, generator=generator)[:snapped]
    x[which, face] = side
    return torch.cat([x, corners(dimension)])


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


def corners(dimension: int) -> Float[Tensor, "corner coordinate"]:
    """The corners of the cube (the first 4,096 of them in many dimensions)."""
    all_corners = itertools.islice(itertools.product((0.0, 1.0), repeat=dimension), MOST_CORNERS)
    return torch.tensor(list(all_corners), dtype=torch.float64)


def uniform_points(count: int, dimension: int, seed: int) -> Float[Tensor, "point coordinate"]:
    """Independent uniform points, and the corners: a test set unlike the fitting points."""
    generator = torch.Generator().manual_seed(int(seed))
    return torch.cat([torch.rand(count, dimension, generator=generator, dtype=torch.float64), corners(dimension)])
