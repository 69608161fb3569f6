"""Samples of the summand of f that one group of coordinates makes up."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..common.errors import InputError
from ..formula import Formula
from ..formula.float_bounds import evaluate_defined
from .graded_points import Faces, Grading, graded, gradings_of
from .margin import in_scope
from .points import fitting_points
from .samples import Data
from .target import Target

SAMPLES_PER_FEATURE = 3  # at least, where the tolerance decides how many features are fitted to data


def base_of(target: Target) -> Float[Tensor, " out"]:
    """What the values of samples are relative to: f at the centre of the box, or 0 where f may not be known there."""
    if target.domain.within or target.data is not None:
        return torch.zeros(target.outputs, dtype=torch.float64)
    return torch.from_numpy(target(target.domain.points(np.full((1, target.dimension), 0.5))))[0]


@dataclass(frozen=True)
class GroupSamples:
    """Samples of one group's function f_g, in normalised coordinates of the whole box."""

    target: Target
    group: tuple[int, ...]
    seed: int
    formula: Formula | None = None  # f_g as a formula of the group's coordinates, where groups overlap
    ratios: tuple[float, ...] | None = None  # how many times as wide x̂ is along each coordinate, where not 1
    detail: float = 0.0  # changes of f below this do not matter near infinite slopes

    @cached_property
    def base(self) -> Float[Tensor, " out"]:
        return base_of(self.target)

    @cached_property
    def gradings(self) -> list[Grading]:
        """The places of infinite slope toward which half of the points are graded."""
        formula, domain = self.target.formula, self.target.domain
        return [] if formula is None else gradings_of(formula, domain, self.group, self.detail)

    def faces(self) -> list[Faces]:
        """The same places in the coordinates that are fitted."""
        ratios = np.array([1.0 if self.ratios is None else self.ratios[j] for j in self.group])
        return [grading.faces(self.group, ratios) for grading in self.gradings]

    def sample(self, count: int, seed: int) -> tuple[Tensor, Tensor]:
        """(points x̂ [n, D], the other coordinates at 0, values of f_g). x̂ lies in [−½, ½]^D, unless there are `ratios`.

        Data have no points but those given: at most `count` of the fitted samples, never one that is held out.
        """
        if self.target.data is not None:
            return self._drawn(self.target.data, count, seed)
        unit = torch.full((0, self.target.dimension), 0.5, dtype=torch.float64)
        while len(unit) < count:
            drawn = fitting_points(count, len(self.group), seed + len(unit))
            more = torch.full((len(drawn), self.target.dimension), 0.5, dtype=torch.float64)
            more[:, self.group] = drawn
            more = graded(more, self.gradings, seed + len(unit))
            inside = torch.from_numpy(in_scope(self.target, self.target.domain.points(more.numpy())))
            if inside.float().mean() < 0.01:
                found = "fewer than 1% of samples belong to it"
                raise InputError("a domain with points in it", found, "tighten the box")
            unit = torch.cat([unit, more[inside]])
        return self._stretched(unit - 0.5), self.values(self.target.domain.points(unit.numpy()))

    def draw(self, count: int, seed: int) -> tuple[Tensor, Tensor]:
        """What is fitted: rows in the group's own coordinates, and values. Here a row is a point of `sample`."""
        points, values = self.sample(count, seed)
        return points[:, list(self.group)], values

    def rows(self, x: Float[np.ndarray, "point coordinate"]) -> tuple[Tensor, Tensor]:
        """What is fitted at points of the domain, as `draw` writes it."""
        return self.normalised(x)[:, list(self.group)], self.values(x)

    def affine(self, c: Float[Tensor, "coefficient out"], rows: Tensor) -> Float[Tensor, "row out"]:
        """What c_0 + c·x̂ has in the place of the values of the rows."""
        return c[0] + rows @ c[1:]

    def normalised(self, x: Float[np.ndarray, "point coordinate"]) -> Float[Tensor, "point coordinate"]:
        """x̂ of points of the domain."""
        return self._stretched(torch.from_numpy(self.target.domain.unit(x)) - 0.5)

    def _stretched(self, x: Tensor) -> Tensor:
        return x if self.ratios is None else x * torch.tensor(self.ratios, dtype=x.dtype)

    def values(self, x: Float[np.ndarray, "point coordinate"]) -> Float[Tensor, "point out"]:
        """f_g at points of the domain, less its value at the centre (but see `base_of`)."""
        if self.formula is None:
            return torch.from_numpy(self.target(x)) - self.base
        pick, centre = list(self.group), self.target.domain.points(np.full((1, self.target.dimension), 0.5))
        own, base = (evaluate_defined(self.formula, t[:, pick]) for t in (x, centre))
        return torch.from_numpy(own - base)

    def most_features(self, most: int) -> int:
        """How many features may be fitted: at most `most`, and for data no more than the samples can safely tell apart."""
        data = self.target.data
        return most if data is None else min(most, len(data.fitted) // SAMPLES_PER_FEATURE)

    def require_samples(self, features: int) -> None:
        """Refuse data with no more fitted samples than features."""
        data = self.target.data
        if data is not None and features >= len(data.fitted):
            found, change = f"{len(data.fitted)} fitted samples", "fewer units, memory tokens, or more data"
            raise InputError(f"more samples than the {features} features", found, change)

    def _drawn(self, data: Data, count: int, seed: int) -> tuple[Tensor, Tensor]:
        rows = data.draw(count, seed)
        return torch.from_numpy(self.target.domain.unit(data.x[rows])) - 0.5, torch.from_numpy(data.y[rows])
