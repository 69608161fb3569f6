"""One softmax head cleared of its denominator: T − f = G/W on a box, with G and W free of poles.

For a group with one head, any constants κ and M, and a box with centre c (in normalised coordinates),

    W = Σ_t e_t,    G = Σ_t (v_t + u_t·x̂ + L(x̂) − f) e_t,    e_t = exp(s_t(x̂) − M − κ·(x̂ − c)),    T − f = G/W,

s_t the scores, v_t + u_t·x̂ the values, L the linear part. κ and M are those of the tangent of log Σ e^(s_t) at the centre: then
W ≥ 1, since log Σ e^(s_t) is convex. With x̂ = c + half·t, t ∈ [−1, 1]^D, e_t = e^(q_t) Π_i e^(a_ti t_i), so that G and W on a
product grid are matrix products over the tokens.

Rounding. q_t is off by `q_error`, an exponent a_ti t_i by 10u|a_ti|, an exponential by FUNCTION: e_t is off by `spread`
relative. G at a node adds n tokens, the linear part and f − f(c): relative to the sizes of the three times W, these are off
by `spread` + (n + 2D + 12)u; what is known only up to an absolute error (f at a node, v_t, where a node lies) counts beside that.
Exponents Σ_i |a_ti| are at most LARGEST_EXPONENT, so that what underflows is far below u·W.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...common.outward import UP, U
from ...formula import Formula
from ...formula.float_bounds import FUNCTION, evaluate_bounded_on_axes
from ...formula.numeric import evaluate
from .bernstein import interpolation
from .summand import Summand

LARGEST_SPREAD = 1e-3  # beyond which nothing is claimed
LARGEST_EXPONENT = 300.0  # likewise


@dataclass(frozen=True)
class OneHead:
    """T and f in one group of coordinates, T with one head at most."""

    keys: np.ndarray  # [token, coordinate]
    biases: np.ndarray  # [token]
    values: np.ndarray  # [token, out]
    slopes: np.ndarray  # [token, coordinate, out], [1, …] if all are 0
    bias: np.ndarray  # [out]
    linear: np.ndarray  # [coordinate, out]
    shift: np.ndarray
    scale: np.ndarray
    formula: Formula

    @staticmethod
    def of(summand: Summand) -> "OneHead | None":
        """The summand, if it has one head at most, and that head a token."""
        form, (shift, scale) = summand.form, summand.normalisation
        D, m = form.linear.shape
        if form.heads > 1:
            return None
        block = (np.zeros((1, D)), np.zeros(1), np.zeros((1, m)), np.zeros((1, D, m)))
        for b in form.blocks:
            there = b.there[0].numpy()
            if not there.any():
                return None
            keys, biases, values, slopes = (t[0].numpy()[there] for t in (b.keys, b.biases, b.values, b.slopes))
            block = (keys, biases, values, slopes if slopes.any() else slopes[:1])
        return OneHead(*block, form.bias.numpy(), form.linear.numpy(), shift, scale, summand.formula)

    @property
    def tokens(self) -> int:
        return len(self.biases)

    @property
    def dimension(self) -> int:
        return len(self.linear)

    @property
    def outputs(self) -> int:
        return len(self.bias)


class ClearedBoxes:
    """The head on boxes lower ≤ x ≤ upper, [box, coordinate]: what is needed at nodes and for remainders."""

    def __init__(self, head: OneHead, lower: np.ndarray, upper: np.ndarray) -> None:
        self.head, self.lower, self.upper = head, lower, upper
        K, b, D = head.keys, head.biases, head.dimension
        self.centre = lower / 2 + upper / 2
        self.half = (upper / 2 - lower / 2) * (1 + 4 * U)  # at least half a side
        z = (self.centre - head.shift) * head.scale
        z_error = 4 * U * (np.abs(self.centre) + np.abs(head.shift)) * head.scale
        scores = z @ K.T + b
        top = scores.max(axis=1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(axis=1, keepdims=True)
        M = top + np.log(total)
        self.q = scores - M
        sizes = (np.abs(z) @ np.abs(K).T + np.abs(b)).max(axis=1) + np.abs(M[:, 0])
        self.q_error = ((D + 4) * U * sizes + z_error @ np.abs(K).max(axis=0)) * UP
        self.slope = K - ((weights / total) @ K)[:, None, :]  # keys − κ, [box, token, coordinate]
        scaled = self.half * head.scale
        self.exponents = self.slope * scaled[:, None, :]  # a
        self.reach = np.abs(self.exponents) * (1 + 1e-14)  # ≥ |a|
        across = self.reach.sum(axis=2)
        self.largest = (
            np.exp(self.q + across * UP + self.q_error[:, None] + 1e-12) * UP
        )  # ≥ e_t on the box, [box, token]
        spread = self.q_error + 10 * U * across.max(axis=1) + (D + 1) * (FUNCTION + U)
        good = (spread <= LARGEST_SPREAD) & (across.max(axis=1) <= LARGEST_EXPONENT)
        self.spread = np.where(good, spread * 1.01, np.inf)
        with np.errstate(all="ignore"):
            at = np.asarray(evaluate(head.formula, self.centre), dtype=np.float64)
        self.reference = np.where(np.isfinite(at), at, 0.0)  # any constants
        self._values(z, z_error, scaled)

    def _values(self, z: np.ndarray, z_error: np.ndarray, scaled: np.ndarray) -> None:
        """Values relative to f at the centre, and how the linear parts move."""
        head, D = self.head, self.head.dimension
        common = head.bias + z @ head.linear - self.reference
        self.values = head.values + common[:, None] + np.einsum("bd,tdo->bto", z, head.slopes)
        swing = np.abs(head.slopes).max(axis=0)
        sizes = np.abs(head.values).max(axis=0) + np.abs(head.bias) + np.abs(self.reference)
        sizes = sizes + np.abs(z) @ (np.abs(head.linear) + swing)
        self.values_error = ((D + 6) * U * sizes + z_error @ (np.abs(head.linear) + swing)) * UP
        self.tilt = (head.linear + head.slopes) * scaled[:, None, :, None]  # [box, token or 1, coordinate, out]
        tilt = np.abs(self.tilt) * UP
        self.tilt_size = tilt.max(axis=3)  # [box, token or 1, coordinate]
        self.size = (np.abs(self.values) + self.values_error[:, None] + tilt.sum(axis=2)).max(
            axis=2
        ) * UP  # [box, token]

    def __len__(self) -> int:
        return len(self.lower)

    @cached_property
    def displacement(self) -> np.ndarray:
        """How far a rounded node is from where it should be, in units of t, [box, coordinate]."""
        far = np.maximum(np.abs(self.lower), np.abs(self.upper))
        with np.errstate(divide="ignore", invalid="ignore"):
            return 10 * U * far / self.half * UP

    def nodes(self, degrees: tuple[int, ...], rows: np.ndarray, steepest: np.ndarray) -> "NodalValues":
        """G and W at the nodes of these degrees on some boxes; `steepest` [coordinate, box] bounds |∂f/∂t_i| of every output."""
        head, D, b = self.head, self.head.dimension, len(rows)
        t = [interpolation(p).nodes for p in degrees]
        left, right = self._exponentials(t, rows)
        shape = (b, *map(len, t))
        W = (left @ right).reshape(shape)
        f, f_error = evaluate_bounded_on_axes(head.formula, self._axes(rows, t))
        tilted = head.slopes.shape[0] > 1
        G = np.empty((*shape, head.outputs))
        for o in range(head.outputs):
            own = (left * self.values[rows, None, :, o]) @ right
            G[..., o] = own.reshape(shape)
            line = self.reference[rows, o].reshape(-1, *[1] * D) - f[..., o]
            for i in range(D):
                along = t[i].reshape(-1, *[1] * (D - 1 - i))
                if tilted:
                    moved = (left * self.tilt[rows, None, :, i, o]) @ right
                    G[..., o] += moved.reshape(shape) * along
                else:
                    line = line + self.tilt[rows, 0, i, o].reshape(-1, *[1] * D) * along
            G[..., o] += line * W
        axes = tuple(range(1, D + 1))
        with np.errstate(all="ignore"):
            most = W.max(axis=axes) * (1 + LARGEST_SPREAD) * UP
            away = np.abs(f - self.reference[rows].reshape(b, *[1] * D, -1)).max(axis=axes)
            relative = self.spread[rows] + (head.tokens + 2 * D + 12) * U
            moved = (steepest[:, rows] * self.displacement[rows].T).sum(axis=0)
            known = f_error.max(axis=axes) + self.values_error[rows] + moved[:, None]
            G_error = (relative[:, None] * (self.size[rows].max(axis=1)[:, None] + away) + known) * most[:, None] * UP
        return NodalValues(G, W, G_error, relative * most * UP)

    def _exponentials(self, t: list[np.ndarray], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(left [box, first nodes, token], right [box, token, last nodes]) with e_t at a node their product."""
        sizes, D = [len(points) for points in t], len(t)
        factors = [
            np.exp(self.exponents[rows, :, i, None] * t[i]).swapaxes(1, 2) for i in range(D)
        ]  # [box, node, token]
        cut = min(range(1, D + 1), key=lambda k: abs(math.log(math.prod(sizes[:k]) / math.prod(sizes[k:]))))
        ones = np.ones((len(rows), 1, self.head.tokens))
        left, right = _rows(factors[:cut], np.exp(self.q[rows])[:, None, :]), _rows(factors[cut:], ones)
        return left, right.swapaxes(1, 2)

    def _axes(self, rows: np.ndarray, t: list[np.ndarray]) -> list[np.ndarray]:
        """The nodes along every coordinate, in the units of x, [box, node]."""
        ends = self.lower[rows], self.upper[rows]
        centre, half = self.centre[rows], self.half[rows]
        return [
            np.clip(centre[:, i, None] + half[:, i, None] * points, ends[0][:, i, None], ends[1][:, i, None])
            for i, points in enumerate(t)
        ]


@dataclass(frozen=True)
class NodalValues:
    """G [box, nodes…, out] and W [box, nodes…] with bounds on their errors, [box, out] and [box]."""

    G: np.ndarray
    W: np.ndarray
    G_error: np.ndarray
    W_error: np.ndarray


def _rows(factors: list[np.ndarray], start: np.ndarray) -> np.ndarray:
    """The products of one factor per axis, [box, nodes of all axes, token]."""
    for factor in factors:
        start = (start[:, :, None, :] * factor[:, None, :, :]).reshape(len(factor), -1, factor.shape[2])
    return start
