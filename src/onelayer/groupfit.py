"""GroupFit: samples of the part of f that one group of coordinates makes up."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .errors import InputError
from .jumps import asked
from .sample import fitting_points
from .solve import Features, Problem
from .target import Target


@dataclass(frozen=True)
class GroupFit:
    """Samples of one group's function f_g, in normalised coordinates of the whole box."""

    target: Target
    group: tuple[int, ...]
    seed: int

    def sample(self, count: int, seed: int) -> tuple[Tensor, Tensor]:
        """(points [n, D] in [−½, ½]^D with the other coordinates at 0, values of f_g)."""
        unit = torch.full((0, self.target.dimension), 0.5, dtype=torch.float64)
        while len(unit) < count:
            drawn = fitting_points(count, len(self.group), seed + len(unit))
            more = torch.full((len(drawn), self.target.dimension), 0.5, dtype=torch.float64)
            more[:, self.group] = drawn
            inside = torch.from_numpy(asked(self.target, self.target.domain.points(more.numpy())))
            if inside.float().mean() < 0.01:
                raise InputError(
                    "a domain with points in it", "fewer than 1% of samples belong to it", "tighten the box"
                )
            unit = torch.cat([unit, more[inside]])
        return unit - 0.5, self.values(self.target.domain.points(unit.numpy()))

    def values(self, x: Float[np.ndarray, "point coordinate"]) -> Float[Tensor, "point out"]:
        """f_g at points of the domain: less f at the centre, unless the domain has a condition (the centre may be outside)."""
        values = torch.from_numpy(self.target(x))
        if self.target.domain.where:
            return values
        centre = self.target.domain.points(np.full((1, self.target.dimension), 0.5))
        return values - torch.from_numpy(self.target(centre))

    def problem(self, features: Features, pool: tuple[Tensor, Tensor]) -> Problem:
        """Features to fit on 2.5 points each, with a pool to look for the worst error on."""
        K = features(pool[0][:1]).shape[1]
        points, values = self.sample(max(500, int(2.5 * K)), 7 + self.seed)
        return Problem(features, points, values, *pool)
