"""The boxes that branch and bound has left: which one decides, and where to cut it."""

from dataclasses import dataclass

import numpy as np

from ...formula.taylor.series import Taylor


@dataclass
class Frontier:
    """Boxes that cover the part of the domain that is not dropped, with a bound on |T − f| and the axis to halve next."""

    lower: np.ndarray
    upper: np.ndarray
    bound: np.ndarray
    axis: np.ndarray

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def middle(self) -> np.ndarray:
        """Where the next cut goes."""
        rows = np.arange(len(self))
        low, high = self.lower[rows, self.axis], self.upper[rows, self.axis]
        return low + (high - low) / 2

    @property
    def divisible(self) -> np.ndarray:
        """Boxes that are wider than a single step of floats."""
        rows, middle = np.arange(len(self)), self.middle
        return (middle > self.lower[rows, self.axis]) & (middle < self.upper[rows, self.axis])

    def pick(self, rows: np.ndarray) -> "Frontier":
        return Frontier(self.lower[rows], self.upper[rows], self.bound[rows], self.axis[rows])

    def with_more(self, other: "Frontier") -> "Frontier":
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("lower", "upper", "bound", "axis"))
        return Frontier(*(np.concatenate(pair) for pair in pairs))

    def halves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(lower, upper, bound): both halves of every box along its axis, with the bound of the whole."""
        rows, middle = np.arange(len(self)), self.middle
        left, right = self.upper.copy(), self.lower.copy()
        left[rows, self.axis], right[rows, self.axis] = middle, middle
        lower, upper = np.concatenate([self.lower, right]), np.concatenate([left, self.upper])
        return lower, upper, np.concatenate([self.bound, self.bound])


def smear(g: Taylor) -> np.ndarray:
    """[D, box]: how much of g's variation is due to each coordinate, kinks included."""
    exponents = g.space.monomials.exponents
    D = g.space.dimension
    total = np.zeros((D, g.space.boxes))
    for i in range(D):
        total[i] = np.abs(g.c[exponents[:, i] > 0]).sum(axis=0)
    for k, a in g.a.items():
        kink = g.space.kinks[k]
        slopes = sum(np.abs(u.c[1 : 1 + D]) for u in kink.arguments)
        share = slopes / np.maximum(slopes.sum(axis=0), 1e-300)
        total += np.abs(a) * kink.half * share
    return total + g.r / D
