"""The slopes of one softmax head as covariances, cleared of their denominator: no pair of tokens is looked at.

With weights w_t = e_t/W, keys k_t, values v_t and any constants κ and ν, in the notation of `cleared`,

    ∂A/∂x_i = scale_i·(Σ_t w_t k_ti v_t − Σ_t w_t k_ti·Σ_t w_t v_t) = (P·W − N·K)/W²,
    P = Σ_t e_t d_t g_t,    N = Σ_t e_t d_t,    K = Σ_t e_t g_t,    d_t = v_t − ν,    g_t = scale_i·(k_ti − κ_i):

a covariance does not change when constants are subtracted. So the slope of T less that of f, which is called f here, is G/W² with

    G = (Σ_t e_t h_t)·W − N·K − (f − f(c))·W²,    h_t = d_t g_t + L_i − f(c),

L_i the slope of the linear part: a few sums over n tokens, where pairs of tokens would be n(n + 1)/2. κ and ν are the means
at the centre of the box: N and K vanish there, and G is about the error of the slope.

Rounding. Σ_t e_t y_t is off by r·W·max|y| for y = 1, h, d, g, with r = `spread` + (n + 2D + 16)u, which counts the rounding of d
and g too; h is off by `values_error` beside that. If W and its computed value are at most B, then products of two such sums are
off by (2r + r²)·B² times the two sizes, and f·W² likewise; the last operations add 6u. r ≤ 2·LARGEST_SPREAD, so 2r + r² ≤ 2.02r.
"""

from dataclasses import dataclass

import numpy as np

from ...common.outward import UP, U
from ...formula.float_bounds import evaluate_bounded_on_axes
from ...layer.slope_form import Pairs
from .bernstein import interpolation
from .cleared import LARGEST_SPREAD, ClearedBoxes, NodalValues, OneHead
from .summand import Summand

FEWEST_TOKENS = 16  # of a head: with fewer, its pairs are as quick
TINY = 1e-180  # what underflows in e_t y_t, at most 2^−1074 times exp(LARGEST_EXPONENT), over all tokens


@dataclass(frozen=True)
class SlopeHead(OneHead):
    """The slopes of one head, output o·D + i, and f; `values` are those of the head itself, [token, output of the head].

    `bias` are the slopes of the linear part. `keys` are those in the coordinates of the group, on which the head depends.
    """

    all_keys: np.ndarray  # in all D coordinates, [token, coordinate]
    all_scales: np.ndarray

    @staticmethod
    def of(summand: Summand) -> "SlopeHead | None":
        """The summand, if it is the slopes of one head whose values are constants."""
        form, (shift, scale) = summand.form, summand.normalisation
        if form.heads != 1 or form.linear.any() or not isinstance(form.blocks[0], Pairs):
            return None
        head, by = form.blocks[0].heads, form.blocks[0].scale.numpy()
        there = head.there[0].numpy()
        if there.sum() < FEWEST_TOKENS or head.slopes.any():
            return None
        keys, biases, values = (t[0].numpy()[there] for t in (head.keys, head.biases, head.values))
        none, linear = np.zeros((1, *form.linear.shape)), form.linear.numpy()
        own = (keys[:, list(summand.group)], biases, values, none, form.bias.numpy(), linear, shift, scale)
        return SlopeHead(*own, summand.formula, keys, by)


class CovarianceBoxes(ClearedBoxes):
    """The slopes of a head on boxes, as G/W²."""

    head: SlopeHead

    def __init__(self, head: SlopeHead, lower: np.ndarray, upper: np.ndarray) -> None:
        super().__init__(head, lower, upper)

    def _values(self, z: np.ndarray, z_error: np.ndarray, scaled: np.ndarray) -> None:
        """d, g and h of every token."""
        head, b = self.head, len(self.lower)
        weights = np.exp(self.q)
        weights = weights / weights.sum(axis=1, keepdims=True)
        self.d = head.values - (weights @ head.values)[:, None]  # [box, token, output of the head]
        self.g = (head.all_keys - (weights @ head.all_keys)[:, None]) * head.all_scales  # [box, token, coordinate]
        rest = head.bias - self.reference
        products = (self.d[:, :, :, None] * self.g[:, :, None, :]).reshape(b, head.tokens, -1)
        self.values = products + rest[:, None]  # h, [box, token, slope]
        sizes = np.abs(products).max(axis=1) + np.abs(head.bias) + np.abs(self.reference)
        self.values_error = 8 * U * sizes * UP + TINY
        self.size = (np.abs(self.values) + self.values_error[:, None]).max(axis=2) * UP  # of h, [box, token]
        self.d_size, self.g_size = (np.abs(y).max(axis=2) * UP for y in (self.d, self.g))  # [box, token]

    def nodes(self, degrees: tuple[int, ...], rows: np.ndarray, steepest: np.ndarray) -> NodalValues:
        """G and W² at the nodes of these degrees on some boxes."""
        head, D, b = self.head, self.head.dimension, len(rows)
        t = [interpolation(p).nodes for p in degrees]
        left, right = self._exponentials(t, rows)
        shape, axes = (b, *map(len, t)), tuple(range(1, D + 1))

        def sums(weights: np.ndarray) -> list[np.ndarray]:
            return [((left * y[:, None]) @ right).reshape(shape) for y in np.moveaxis(weights[rows], 2, 0)]

        W, N, K, H = (left @ right).reshape(shape), sums(self.d), sums(self.g), sums(self.values)
        f, f_error = evaluate_bounded_on_axes(head.formula, self._axes(rows, t))
        f = f - self.reference[rows].reshape(b, *[1] * D, -1)
        square, G = W * W, np.empty((*shape, head.outputs))
        for c, own in enumerate(H):
            G[..., c] = own * W - N[c // len(K)] * K[c % len(K)] - f[..., c] * square
        with np.errstate(all="ignore"):
            most = (W.max(axis=axes) * (1 + 3 * LARGEST_SPREAD)) ** 2 * UP
            h, d, g = (y[rows].max(axis=1) for y in (self.size, self.d_size, self.g_size))
            relative = 2.02 * (self.spread[rows] + (head.tokens + 2 * D + 16) * U) + 8 * U
            moved = (steepest[:, rows] * self.displacement[rows].T).sum(axis=0)
            known = f_error.max(axis=axes) + self.values_error[rows] + (moved + TINY * (1 + d + g))[:, None]
            size = (h + d * g)[:, None] + np.abs(f).max(axis=axes)
            G_error = (relative[:, None] * size + known * (1 + 3 * LARGEST_SPREAD)) * most[:, None] * UP
        return NodalValues(G, square, G_error, relative * most * UP)
