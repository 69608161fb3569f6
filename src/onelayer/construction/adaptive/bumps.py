"""A row of bumps on a graded mesh, with affine values: T(u) = Σ_k (c_k + d_k s_k(u)/2) w(s_k(u)), s_k(u) = β_k(u − m_k).

w(s) = 1/(1 + 2cosh s). Every cell of the mesh has one bump in its middle, whose width follows those of the cells around it. A
few more of them stand outside of either end. Far from its cell a bump is next to nothing, so that least squares are banded: they
are solved by QR decompositions of blocks, one after the other. (The normal equations would square a condition number that is
large on purpose: wide bumps need large coefficients of opposite signs, and follow f the better for it.)
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import qr, solve_triangular

OUTSIDE = 4  # bumps beyond either end
VALUES = 2  # free numbers of a bump
BLOCK = 24  # cells that are eliminated at a time


def weight(s: np.ndarray) -> np.ndarray:
    fallen = np.exp(-np.abs(s))
    return np.asarray(fallen / (1 + fallen + fallen * fallen))


@dataclass(frozen=True)
class Row:
    """Bumps with increasing centres; bump k + OUTSIDE is the one of cell k."""

    edges: Float[np.ndarray, " edge"]  # of the cells
    centres: Float[np.ndarray, " bump"]
    sharpness: Float[np.ndarray, " bump"]

    @staticmethod
    def on(edges: np.ndarray, overlap: float) -> "Row":
        """The bumps of a mesh; the sharpness is `overlap` divided by the width of the cells around."""
        h, ends = np.diff(edges), np.arange(1, OUTSIDE + 1)
        before, after = edges[0] - h[0] * (ends[::-1] - 0.5), edges[-1] + h[-1] * (ends - 0.5)
        log = np.pad(np.log(h), OUTSIDE + 1, mode="edge")
        around = (log[:-2] + 2 * log[1:-1] + log[2:]) / 4
        return Row(edges, np.concatenate([before, (edges[:-1] + edges[1:]) / 2, after]), overlap / np.exp(around))

    def __len__(self) -> int:
        return len(self.centres)

    @property
    def cells(self) -> int:
        return len(self.edges) - 1

    def windows(self, fallen: float) -> Iterator[tuple[slice, slice]]:
        """(cells, bumps): blocks of cells, and all bumps that any cell from there on shares with one up to there.

        Bumps whose scores are above `fallen` in a cell do not matter there.
        """
        radius, far = fallen / self.sharpness, np.full(OUTSIDE, np.inf)
        right, left = np.append(self.edges[1:], far), np.insert(self.edges[:-1], 0, -far)
        last = np.searchsorted(left, self.centres + radius, side="right") - 1 - OUTSIDE  # cell that a bump reaches
        first = np.searchsorted(right, self.centres - radius)
        last, first = np.maximum.accumulate(last), np.minimum.accumulate(first[::-1])[::-1]
        for a in range(0, self.cells, BLOCK):
            b = min(a + BLOCK, self.cells)
            yield (slice(a, b), slice(int(np.searchsorted(last, a)), int(np.searchsorted(first, b - 1, side="right"))))

    def features(self, u: Float[np.ndarray, "cell point"], bumps: slice) -> Float[np.ndarray, "row column"]:
        """w(s) and w(s)·s/2 of these bumps."""
        s = self.sharpness[bumps] * (u.reshape(-1, 1) - self.centres[bumps])
        w = weight(s)
        return np.stack([w, w * s / 2], axis=-1).reshape(len(s), -1)

    def at(
        self, c: Float[np.ndarray, "bump value out"], u: Float[np.ndarray, "cell point"], fallen: float
    ) -> Float[np.ndarray, "cell point out"]:
        """T at points of every cell."""
        parts = [self.features(u[a], b) @ c[b].reshape(-1, c.shape[2]) for a, b in self.windows(fallen)]
        return np.concatenate(parts).reshape(*u.shape, c.shape[2])

    def solved(
        self, u: Float[np.ndarray, "cell point"], y: Float[np.ndarray, "cell point out"], fallen: float, ridge: float
    ) -> Float[np.ndarray, "bump value out"]:
        """Coefficients with the least Σ|T(u) − y|² + ridge²·Σ|c|²."""
        windows, n, m = list(self.windows(fallen)), len(self) * VALUES, y.shape[2]
        ends = [(b.start * VALUES, b.stop * VALUES) for _, b in windows]
        carry, had, kept = np.zeros((0, m)), ends[0][0], list[np.ndarray]()
        for i, (cells, bumps) in enumerate(windows):
            start, stop = ends[i]
            done = ends[i + 1][0] if i + 1 < len(ends) else n  # columns up to here occur nowhere else
            new, width = stop - had, stop - start
            A = np.zeros((len(carry) + new, width + m))
            A[: len(carry), : had - start], A[: len(carry), width:] = carry[:, : had - start], carry[:, had - start :]
            A[len(carry) :, had - start : width] = ridge * np.eye(new)
            own = np.concatenate([self.features(u[cells], bumps), y[cells].reshape(-1, m)], axis=1)
            (R,) = qr(np.concatenate([A, own]), mode="r", overwrite_a=True, check_finite=False)
            kept.append(R[: done - start])
            carry, had = R[done - start : width, done - start :], stop
        c = np.zeros((n, m))
        for (start, stop), R in zip(reversed(ends), reversed(kept), strict=True):
            done = len(R)
            rest = R[:, stop - start :] - R[:, done : stop - start] @ c[start + done : stop]
            c[start : start + done] = solve_triangular(R[:, :done], rest, check_finite=False)
        return c.reshape(len(self), VALUES, m)
