"""The partition of the domain: cells, their representatives, and the mixed differences that turn cells into gates.

The unit box is cut into n_1 × … × n_D equal cells. Cell k has lower corner b_k and centre r_k, its representative, with
value y_k = f(r_k). The step function with value y_k on cell k is

    f_pc(x) = Σ_k Δ_k 1[x ≥ b_k],    Δ_k the mixed differences of y (the difference along every axis in turn),

where the first corner of each axis is −∞: such a coordinate is masked. Replacing every indicator by a gate of sharpness β
gives T(x) = Σ_k Δ_k F(β(x − b_k)), one head per cell.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from ...layer.heads import Gates


@dataclass(frozen=True)
class Lattice:
    """n_j equal cells along each axis of [−½, ½]^D, in C order (the last axis runs fastest)."""

    counts: tuple[int, ...]

    @property
    def cells(self) -> int:
        return math.prod(self.counts)

    @property
    def dimension(self) -> int:
        return len(self.counts)

    def representatives(self, start: int = 0, stop: int | None = None) -> Float[np.ndarray, "cell coordinate"]:
        """Centres of cells start … stop − 1, in the unit cube [0, 1]^D."""
        index = np.unravel_index(np.arange(start, self.cells if stop is None else stop), self.counts)
        return np.stack([(i + 0.5) / n for i, n in zip(index, self.counts, strict=True)], axis=1)

    def differences(self, values: Float[np.ndarray, "cell out"]) -> Float[np.ndarray, "cell out"]:
        """Mixed differences Δ_k: along each axis, every value minus its predecessor (the first is kept)."""
        grid = values.reshape(*self.counts, -1)
        for axis in range(self.dimension):
            grid = np.diff(grid, axis=axis, prepend=0.0)
        return grid.reshape(self.cells, -1)

    def gates(self, sharpness: float) -> Gates:
        """One gate per cell, at its lower corner; the coordinates of a first corner are masked."""
        axes = [torch.arange(n, dtype=torch.float64) / n - 0.5 for n in self.counts]
        offsets = torch.cartesian_prod(*axes).reshape(-1, self.dimension)
        kept = offsets > -0.5
        return Gates(torch.full((self.cells,), float(sharpness), dtype=torch.float64), offsets.where(kept, 0.0), kept)
