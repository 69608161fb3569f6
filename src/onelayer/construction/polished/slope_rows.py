"""Values and slopes fitted together: a sample is a value of f at a point, or a slope of f there along one coordinate.

Every row of samples has one column more than coordinates: 0 for a value, i for the slope along the i-th coordinate of the
group. A slope is a central difference, of f and of the features alike, times a weight that makes an error of the slope
tolerance count as much as an error of the tolerance. So the least squares, the pool and the reweighting of `fit` and
`search` see rows with values, and need not know what a row is.
"""

from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...layer.heads import Gates, Memory, Ridges
from ...target.group_samples import GroupSamples
from .families import PlainFamily

STEP = 2.0**-17  # of a central difference, in normalised coordinates: rounding and truncation are both some 1e-10


@dataclass(frozen=True)
class SlopedSamples(GroupSamples):
    """Samples of one group's function and of its slopes; `weights` as above, one for every coordinate of the group."""

    weights: tuple[float, ...] = ()

    @staticmethod
    def of(source: GroupSamples, weight: float) -> "SlopedSamples":
        """The samples of a source, an error of a slope counting `weight` times as much as one of a value."""
        given = {f.name: getattr(source, f.name) for f in fields(source)}
        ratios = source.ratios or (1.0,) * source.target.dimension
        steps = [STEP * float(source.target.domain.sides[j]) / ratios[j] for j in source.group]
        return SlopedSamples(**given, weights=tuple(weight / (2 * step) for step in steps))

    def draw(self, count: int, seed: int) -> tuple[Tensor, Tensor]:
        points, _ = self.sample(count // len(self.group), seed)
        unit = points if self.ratios is None else points / torch.tensor(self.ratios, dtype=points.dtype)
        return self.rows(self.target.domain.points((unit + 0.5).numpy()))

    def affine(self, c: Float[Tensor, "coefficient out"], rows: Tensor) -> Float[Tensor, "row out"]:
        kind = rows[:, -1].long()
        slopes = 2 * STEP * torch.tensor(self.weights, dtype=c.dtype)[:, None] * c[1:]
        return torch.where((kind == 0)[:, None], super().affine(c, rows[:, :-1]), slopes[(kind - 1).clamp_min(0)])

    def rows(self, x: Float[np.ndarray, "point coordinate"]) -> tuple[Tensor, Tensor]:
        """A row for the value at every point, and one for each slope: (points and kind, values)."""
        own, values = super().rows(x)
        rows, found = [_kind(own, 0)], [values]
        domain, ratios = self.target.domain, self.ratios or (1.0,) * self.target.dimension
        for i, j in enumerate(self.group):
            step = STEP * float(domain.sides[j]) / ratios[j]
            inner = x.copy()
            inner[:, j] = np.clip(x[:, j], domain.lower[j] + step, domain.upper[j] - step)
            ahead, behind = inner.copy(), inner.copy()
            ahead[:, j] = np.minimum(inner[:, j] + step, domain.upper[j])
            behind[:, j] = np.maximum(inner[:, j] - step, domain.lower[j])
            found.append((self.values(ahead) - self.values(behind)) * self.weights[i])
            rows.append(_kind(self.normalised(inner)[:, list(self.group)], i + 1))
        return torch.cat(rows), torch.cat(found)


def _kind(points: Tensor, kind: int) -> Tensor:
    return torch.cat([points, torch.full_like(points[:, :1], kind)], dim=1)


@dataclass(frozen=True)
class SlopedFamily:
    """A family of heads whose features are also taken along coordinates."""

    plain: PlainFamily
    factors: tuple[float, ...]  # what a difference of features is multiplied with, for every coordinate
    graded: bool = False

    @property
    def name(self) -> str:
        return self.plain.name

    @property
    def dimension(self) -> int:
        return self.plain.dimension

    def count(self, units: int) -> int:
        return self.plain.count(units)

    def start(self, units: int, arrangement: tuple[float, float], seed: int) -> Tensor:
        return self.plain.start(units, arrangement, seed)

    def weights(self, theta: Tensor, rows: Tensor) -> Float[Tensor, "two row ..."]:
        """Attention weights at both ends of every difference; a value has one end, twice."""
        return torch.stack([self.plain.weights(theta, x) for x in self._ends(rows)])

    def features(self, rows: Tensor, weights: Tensor) -> Float[Tensor, "row feature"]:
        (ahead, behind), (a, b) = self._ends(rows), self._factors(rows)
        return a * self.plain.features(ahead, weights[0]) - b * self.plain.features(behind, weights[1])

    def jacobian(self, rows: Tensor, weights: Tensor, c: Tensor) -> Float[Tensor, "out row parameter"]:
        (ahead, behind), (a, b) = self._ends(rows), self._factors(rows)
        return a * self.plain.jacobian(ahead, weights[0], c) - b * self.plain.jacobian(behind, weights[1], c)

    def importance(self, rows: Tensor, weights: Tensor, c: Tensor) -> Float[Tensor, " unit"]:
        return self.plain.importance(self._ends(rows)[0], weights[0], c)

    def inserted(self, theta: Tensor, rows: Tensor, errors: Float[Tensor, " row"], count: int) -> Tensor:
        return self.plain.inserted(theta, rows[:, :-1], errors, count)

    def heads(self, theta: Tensor, group: tuple[int, ...], dimension: int) -> Memory | Gates | Ridges:
        return self.plain.heads(theta, group, dimension)

    def _ends(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        x, kind = rows[:, :-1], rows[:, -1:]
        off = STEP * (kind == torch.arange(1, x.shape[1] + 1, device=rows.device)).to(x)
        return x + off, x - off

    def _factors(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """What the features ahead and behind count, [row, 1]."""
        ahead = torch.tensor((1.0, *self.factors), dtype=rows.dtype, device=rows.device)
        behind = torch.tensor((0.0, *self.factors), dtype=rows.dtype, device=rows.device)
        kind = rows[:, -1].long()
        return ahead[kind][:, None], behind[kind][:, None]
