"""Tiles: boxes with what is known about T − f around them, and what interpolation on them costs."""

from dataclasses import dataclass, fields, replace

import numpy as np

from ...common.outward import UP, U
from . import chebyshev

DEGREES = {  # the ladder of degrees, by the number of coordinates
    1: (*range(4, 24, 2), *range(24, 100, 4)),
    2: (*range(4, 24, 2), *range(24, 66, 3)),
    3: tuple(range(3, 41)),
    4: tuple(range(3, 27)),
}


@dataclass(frozen=True)
class Tiles:
    """Boxes with an ellipse parameter per side, bounds on |T| + |f| on the ellipses, and on the slopes of T − f."""

    boxes: np.ndarray  # [box, 2, coordinate]
    rho: np.ndarray  # [box, coordinate]
    sizes: np.ndarray  # V, [box, coordinate, out]
    slopes: np.ndarray  # bounds on |∂_i (T − f)| on the real box, [box, coordinate, out]
    constants: np.ndarray  # in the place of singular nodes of f (`frozen`), [box, constant]
    cost: np.ndarray  # of these constants, [box, out]

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, which: np.ndarray | slice) -> "Tiles":
        return Tiles(*(getattr(self, f.name)[which] for f in fields(self)))

    @staticmethod
    def joined(pieces: list["Tiles"]) -> "Tiles":
        return Tiles(*(np.concatenate([getattr(piece, f.name) for piece in pieces]) for f in fields(Tiles)))

    def without_constants(self) -> "Tiles":
        """For tiles whose formula is not needed any more."""
        return replace(self, constants=self.constants[:, :0])

    def degrees(self, goal: float) -> np.ndarray:
        """The least degree on the ladder whose truncation is at most the goal, or the highest one, [box]."""
        ladder = DEGREES[self.boxes.shape[2]]
        found = np.full(len(self), ladder[-1])
        for p in reversed(ladder):
            found[self.truncation(p).max(axis=1) <= goal] = p
        return found

    def truncation(self, p: int) -> np.ndarray:
        """‖g − I_p g‖ on each box, [box, out]: Σ_i Λ^(i−1)·4 V_i ρ_i^(−p)/(ρ_i − 1)."""
        per_side = 4 * self.sizes * (self.rho ** float(-p) / (self.rho - 1))[:, :, None]
        powers = chebyshev.lebesgue(p) ** np.arange(self.boxes.shape[2])
        return np.nan_to_num(np.einsum("bio,i->bo", per_side, powers) * UP, nan=np.inf, posinf=np.inf)

    def displacement(self, p: int) -> np.ndarray:
        """What the rounding of the nodes adds, [box, out].

        A node is off by at most 10u·max|x_i| in coordinate i, which moves a nodal value by that times the slope, and the
        interpolant by Λ^D times the sum.
        """
        off = 10 * U * np.abs(self.boxes).max(axis=1)
        with np.errstate(invalid="ignore"):
            moved = (self.slopes * off[:, :, None]).sum(axis=1) * (chebyshev.lebesgue(p) * 1.1) ** off.shape[1]
        return np.where(np.isnan(moved), np.inf, moved) * UP
