"""How far G = H·W − N·K − (f − f(c))·W² and W² of `covariance` are from their interpolants on boxes.

Products. H, W, N and K are sums Σ_t y_t e_t, and the Taylor coefficient of order j of e_t along x_i is at most e_t |a_ti|^j/j!.
By Leibniz' rule that of a product is at most the sum over l of that of one factor of order l times that of the other of
order j − l.

Corners. With |y_t| in the place of y_t such a bound is, at every point of the box, a sum of exponentials of affine functions
with positive factors: a convex function, largest at a corner. So it is computed at the corners, where not all e_t are at their
largest at once. With x_i on an ellipse, |Re t_i| ≤ A, |e_t| is what it is at Re t_i: the same holds for the box stretched to ±A
along x_i, whose corners have e_t exp(s a_ti (A − 1)), s = ±1 the sign of the corner. In many coordinates, and for pairs of
coordinates, whose remainders are small, the largest e_t on the whole box are used together.
"""

from functools import cache
from itertools import product

import numpy as np

from ...common.outward import UP
from .covariance import CovarianceBoxes
from .degrees import REAL, Remainders

MOST_CORNERS = 64


class ProductRemainders(Remainders):
    """Bounds on ‖R_i G‖ and ‖R_i W²‖ for all degrees, and on pairs."""

    boxes: CovarianceBoxes

    def __init__(self, boxes: CovarianceBoxes) -> None:
        sizes = np.stack([np.ones_like(boxes.size), boxes.size, boxes.d_size, boxes.g_size])
        self.sizes = sizes  # of 1, h, d, g, [sum, box, token]
        self.peaks, self.signs = _corners(boxes)  # e_t at corners [box, token, corner]; corners [corner, coordinate]
        super().__init__(boxes)

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        (D, b), J = self.reach.shape[1:], self.highest + 2
        x = self.boxes.reach.swapaxes(1, 2)  # [box, coordinate, token]
        powers = np.ones((b, D, J, x.shape[2]))
        for j in range(1, J):
            np.multiply(powers[:, :, j - 1], x / j, out=powers[:, :, j])
        powers = powers.reshape(b, D * J, -1)
        w, h, d, g = (
            (powers @ (self.peaks * y[:, :, None])).reshape(b, D, J, -1).transpose(2, 1, 0, 3) for y in self.sizes
        )  # [order, coordinate, box, corner]
        own = (_convolved(h, w) + _convolved(d, g)).max(axis=3)
        return _convolved(w, w).max(axis=3) * UP, own[2:] * UP

    def _denominator_on_ellipses(self) -> np.ndarray:
        D, b = self.reach.shape[1:]
        worst = np.zeros((len(REAL), D, b))
        beyond = (REAL - 1)[:, None]
        for i in range(D):
            a, size = self.boxes.exponents[:, None, :, i], self.boxes.reach[:, None, :, i]
            for sign in np.unique(self.signs[:, i]):
                grown = np.exp((sign * a + size * 1e-12 if sign else size) * beyond)  # [box, ρ, token]
                peaks = self.peaks[:, :, self.signs[:, i] == sign]
                worst[:, i] = np.maximum(worst[:, i], (grown @ peaks).max(axis=2).T)
        return worst * worst * UP

    def _on_pairs(self, grown: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, ...]:
        w, h, d, g = (np.einsum("tb,tnb->nb", self.largest * y.T, grown) for y in self.sizes)
        G, W = (h * w + d * g + f * w * w) * UP, w * w * UP
        return tuple(np.where(np.isfinite(E), E, np.inf) for E in (G, W))

    def pair_sums(self, degrees: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_{j<i} Π_{l<j} Λ_l ‖R_j R_i ·‖ for G and W² at the degrees [coordinate, row], both on ellipses."""
        if len(degrees) == 1:
            return np.zeros(len(rows)), np.zeros(len(rows))
        before = np.cumprod(np.concatenate([np.ones((1, len(rows))), self.lebesgue[degrees[:-1]]]), axis=0)
        G, W = (np.full((len(self.first), len(rows)), np.inf) for _ in range(2))
        for places, *products in self.pairs:
            factors = self.factor[degrees, places[:, rows]]
            both = factors[self.first] * factors[self.second]
            G, W = (np.fmin(E, own[:, rows] * both) for E, own in zip((G, W), products, strict=True))
        return tuple((before[self.first] * E).sum(axis=0) * UP for E in (G, W))


@cache
def _signs(dimension: int) -> np.ndarray:
    return np.array(list(product((-1.0, 1.0), repeat=dimension)))


def _corners(boxes: CovarianceBoxes) -> tuple[np.ndarray, np.ndarray]:
    """(bounds on e_t at corners, [box, token, corner]; the corners, [corner, coordinate]), or on the whole box."""
    D = boxes.head.dimension
    if 2**D > MOST_CORNERS:
        return boxes.largest[:, :, None], np.zeros((1, D))
    signs = _signs(D)
    slack = boxes.reach.sum(axis=2) * 1e-12 + boxes.q_error[:, None] + 1e-12
    return np.exp((boxes.q + slack)[:, :, None] + boxes.exponents @ signs.T) * UP, signs


def _convolved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Coefficients of a product, all of [order, …]."""
    found = np.zeros_like(a)
    for j in range(len(a)):
        found[j:] += a[j] * b[: len(a) - j]
    return found
