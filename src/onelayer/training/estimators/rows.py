"""Rows: noisy, weighted samples in a canonical order, and the units that standardise their coordinates.

Noise is allowed: the same x may come with several y. Equal samples are merged and their weights added, samples of weight 0 are
dropped, and the others are sorted. So a sample of weight 3 is, to the last bit, the same as three samples, the order in which
samples are given does not matter, and no copy of a held-out sample is ever fitted.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from ...layer.assemble.frame import Frame
from ...target.domain import Domain
from ...target.samples import read_samples, read_weights
from ..material import CONSTANT_SPREAD, box_around


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct samples (x, y) in lexicographic order with weights above 0."""

    x: Float[np.ndarray, "sample coordinate"]
    y: Float[np.ndarray, "sample out"]
    weights: Float[np.ndarray, " sample"]

    def __len__(self) -> int:
        return len(self.x)

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def units(self) -> tuple[Float[np.ndarray, " coordinate"], Float[np.ndarray, " coordinate"]]:
        """(middle, 1/spread) of the coordinates; 1/spread is 0 where they are constant."""
        middle, spread = self._moments(self.x)
        return middle, np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)

    @cached_property
    def answer_units(self) -> tuple[Float[np.ndarray, " out"], Float[np.ndarray, " out"]]:
        """(middle, spread) of the answers; a spread of 0 is replaced by 1."""
        middle, spread = self._moments(self.y)
        return middle, np.where(spread > 0, spread, 1.0)

    def _moments(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        share = self.weights / self.total
        middle = share @ a
        spread = np.sqrt(share @ (a - middle) ** 2)
        return middle, np.where(spread > CONSTANT_SPREAD * np.abs(a).max(axis=0), spread, 0.0)

    @cached_property
    def hull(self) -> Domain:
        """The box around the samples, slightly wider where they do not vary."""
        return box_around(self.x, self.units[1] == 0)

    def picked(self, which: Int[np.ndarray, " picked"]) -> "Rows":
        """Some of the samples."""
        return Rows(self.x[which], self.y[which], self.weights[which])


def rows_of(
    x: Float[np.ndarray, "sample coordinate"],
    y: Float[np.ndarray, "sample out"],
    weights: Float[np.ndarray, " sample"] | None,
) -> Rows:
    """The distinct samples; weights are 1 if None."""
    x, y = read_samples(x, y)
    w = np.ones(len(x)) if weights is None else read_weights(weights, len(x))
    kept = w > 0
    both = np.concatenate([x, y], axis=1)[kept]
    distinct, which = np.unique(both, axis=0, return_inverse=True)
    order = np.argsort(w[kept], kind="stable")  # sums in an order that depends on the samples alone
    total = np.zeros(len(distinct))
    np.add.at(total, which.reshape(-1)[order], w[kept][order])
    D = x.shape[1]
    return Rows(np.ascontiguousarray(distinct[:, :D]), np.ascontiguousarray(distinct[:, D:]), total)


def carried(
    directions: Float[np.ndarray, "unit coordinate"], rows: Rows, frame: Frame
) -> tuple[Float[np.ndarray, "unit coordinate"], Float[np.ndarray, " unit"]]:
    """(a', b') with a'·x̂ + b' = a·z: from z = (x − middle)/spread to the coordinates x̂ of a frame."""
    middle, per_spread = rows.units
    shift, scale = np.array(frame.shift), np.array(frame.scale)
    return directions * (per_spread / scale), directions @ ((shift - middle) * per_spread)
