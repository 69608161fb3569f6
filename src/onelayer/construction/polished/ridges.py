"""Ridge gates with free directions: the families of sigmoid and of sparsemax attention.

ridges  θ_j = (direction a_j, offset b_j): features 1, x and σ(a_j·x + b_j), each unit by itself
ramps   the same with (1 + a_j·x + b_j)/2, cut off at 0 and 1, in the place of σ: piecewise linear
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...layer.heads import Ramps, Ridges
from ...target.points import spread_points
from .families import MemoryFamily, ones


@dataclass(frozen=True)
class RidgeFamily(MemoryFamily):
    """Ridge gates. The parameters are those of memory tokens, key and bias, and so is what follows from ∂T/∂score."""

    name: str = "ridges"

    def count(self, units: int) -> int:
        return 1 + self.dimension + units

    def start(self, units: int, arrangement: tuple[float, float], seed: int) -> Float[Tensor, "unit width"]:
        """Gates that are half open at spread points, |a|·h as given, in random directions."""
        step, padding = arrangement
        centres, h = spread_points(units, self.dimension, padding, seed)
        return _through(centres, step / h, torch.Generator().manual_seed(int(seed)))

    def weights(self, theta: Tensor, x: Tensor) -> Float[Tensor, "point unit"]:
        return torch.sigmoid(x @ theta[:, :-1].T + theta[:, -1])

    def features(self, x: Tensor, weights: Tensor) -> Float[Tensor, "point feature"]:
        return torch.cat([ones(x), x, weights], dim=1)

    def values(self, c: Float[Tensor, "feature out"]) -> Float[Tensor, "unit out"]:
        return c[1 + self.dimension :]

    def _slopes(self, weights: Tensor, c: Tensor) -> Float[Tensor, "out unit point"]:
        """∂T/∂score_j = w_j(1 − w_j)c_j."""
        return (weights * (1 - weights)).T * self.values(c).T[:, :, None]

    def importance(self, x: Tensor, weights: Tensor, c: Tensor) -> Float[Tensor, " unit"]:
        """How much a unit's contribution varies over the points."""
        own = weights[:, :, None] * self.values(c)
        return (own - own.mean(dim=0)).square().sum(dim=(0, 2))

    def inserted(self, theta: Tensor, x: Tensor, errors: Float[Tensor, " point"], count: int) -> Tensor:
        """θ with gates added that are half open at the points of the largest error, as steep as the others."""
        steep, places = float(theta[:, :-1].norm(dim=1).median()), list[Tensor]()
        for _ in range(count):
            places.append(x[int(errors.argmax())])
            errors = errors * (1 - (-steep * (x - places[-1]).norm(dim=1)).exp())
        generator = torch.Generator().manual_seed(len(theta))
        return torch.cat([theta, _through(torch.stack(places).cpu(), steep, generator).to(theta)])

    def heads(self, theta: Tensor, group: tuple[int, ...], dimension: int) -> Ridges:  # type: ignore[override]
        directions = torch.zeros(len(theta), dimension, dtype=theta.dtype)
        directions[:, list(group)] = theta[:, :-1]
        return self._kind(directions, theta[:, -1].clone())

    @property
    def _kind(self) -> type[Ridges]:
        return Ridges


@dataclass(frozen=True)
class RampFamily(RidgeFamily):
    """Ridge gates of sparsemax attention."""

    name: str = "ramps"

    def weights(self, theta: Tensor, x: Tensor) -> Float[Tensor, "point unit"]:
        return ((1 + x @ theta[:, :-1].T + theta[:, -1]) / 2).clamp(0.0, 1.0)

    def _slopes(self, weights: Tensor, c: Tensor) -> Float[Tensor, "out unit point"]:
        """∂T/∂score_j = c_j/2 between the kinks."""
        return ((weights > 0) & (weights < 1)).T / 2 * self.values(c).T[:, :, None]

    @property
    def _kind(self) -> type[Ridges]:
        return Ramps


def _through(centres: Tensor, steep: float, generator: torch.Generator) -> Float[Tensor, "unit width"]:
    """Gates whose score is 0 at the centres, |a| = steep; in one coordinate all rise."""
    directions = torch.randn(centres.shape, generator=generator, dtype=torch.float64)
    directions = (
        torch.ones_like(centres) if centres.shape[1] == 1 else directions / directions.norm(dim=1, keepdim=True)
    )
    return steep * torch.cat([directions, -(directions * centres).sum(dim=1, keepdim=True)], dim=1)
