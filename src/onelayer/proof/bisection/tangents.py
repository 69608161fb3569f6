"""The slopes of any single-layer Transformer on Taylor models: forward differentiation of the real function.

Follows the steps of `transformer`, every quantity with its slopes along all coordinates beside it; the rounding of an
evaluation is left out. With the scores s_t, their slopes s'_t and E the average under the attention weights,

    E[v]' = E[v'] + E[v·s'] − E[v]·E[s'].

For another attention than softmax they are not derived (`has_slopes`). A ReLU has slope 0 or 1 where the sign of its argument is
proved, and anything from 0 to 1 elsewhere: where T has a kink nothing better holds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from ...formula.taylor.functions import apply, power
from ...formula.taylor.series import Space, Taylor, stack
from ...layer.arithmetic import FLOAT64
from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from .attention import attended
from .on_taylor import normalised, opposite_pairs, reshaped
from .transformer import Network, Value


@dataclass(frozen=True)
class Tangent:
    """A quantity and its slopes along x_1, …, x_D, all of the same shape."""

    value: Taylor
    slopes: tuple[Taylor, ...]

    def linear(self, W: np.ndarray, bias: np.ndarray | float = 0.0, error: float = 0.0) -> "Tangent":
        """x W + bias."""
        return Tangent(self.value.linear(W, bias, error), tuple(t.linear(W, 0.0, error) for t in self.slopes))

    def __add__(self, other: "Tangent") -> "Tangent":
        return Tangent(self.value + other.value, tuple(a + b for a, b in zip(self.slopes, other.slopes, strict=True)))

    def through(self, value: Taylor, slope: Taylor) -> "Tangent":
        """φ(x), given φ(x) and φ'(x)."""
        return Tangent(value, tuple(slope * t for t in self.slopes))


def has_slopes(config: LayerConfig) -> bool:
    """Whether the slopes of such a layer are known here: its weights are those of a softmax, over a window or not."""
    return config.attention in ("softmax", "fused", "local")


class Slopes:
    """∂T_o/∂x_i on the boxes of a space, as output o·D + i."""

    def __init__(self, model: SingleLayerTransformer) -> None:
        assert has_slopes(model.config)
        self.network, self.config = Network(model, FLOAT64), model.config
        self.w = self.network.w

    def __call__(self, space: Space) -> Value:
        c = self.config
        data = self._embedding(space)
        special = (
            Value(space.constant(np.broadcast_to(self.w.S, (space.boxes, *self.w.S.shape))), np.zeros(0))
            if c.special_tokens
            else None
        )
        everything = asking = data
        if special is not None:
            constants = _constant(special.model, space.dimension)
            everything = _joined(data, constants)
            asking = _each(constants, lambda t: t[-c.output_tokens :]) if c.readout == "output" else data
        y = self._sublayers(asking, everything)
        if c.readout == "mean":
            n = y.value.shape[1]
            y = _each(y, lambda t: t.sum(-2).times(np.full((space.boxes, t.shape[2]), 1 / n), 1e-15))
        out = _each(y.linear(self.w.W_R, self.w.b_R), lambda t: reshaped(t, -1))
        slopes = reshaped(stack(list(out.slopes)), -1)  # [box, out·D]
        return Value(slopes, np.zeros(slopes.shape))

    def _embedding(self, space: Space) -> Tangent:
        """x̂ W^E + b^E + p; x̂_i has the slope scale_i along x_i."""
        c, D = self.config, space.dimension
        scale = self.w.scale.reshape(-1)
        hats = reshaped(normalised(space, self.w.shift.reshape(-1), scale), c.tokens, c.features_in)
        unit = [np.broadcast_to((scale * (np.arange(D) == i)).reshape(c.tokens, -1), hats.shape) for i in range(D)]
        e = Tangent(hats, tuple(space.constant(t) for t in unit)).linear(self.w.W_E, self.w.b_E)
        if c.code == "none":
            return e
        return Tangent(e.value + space.constant(np.broadcast_to(self.w.P, e.value.shape)), e.slopes)

    def _sublayers(self, asking: Tangent, everything: Tangent) -> Tangent:
        pre, post = self.config.norm == "pre", self.config.norm == "post"
        a = self._attend(*(self._norm(t, "1") if pre else t for t in (asking, everything)))
        h = asking + a if self.config.residual else a
        h = self._norm(h, "1") if post else h
        f = self._feed_forward(self._norm(h, "2") if pre else h)
        y = h + f if self.config.residual else f
        return self._norm(y, "2") if post else y

    def _attend(self, asking: Tangent, everything: Tangent) -> Tangent:
        """Eq. (5)–(8), row by row: the slopes of the scores, which values are multiplied with, differ from row to row."""
        q, keys, values = self._project(asking, "Q"), self._project(everything, "K"), self._project(everything, "V")
        c, D, rows = self.config, len(q.slopes), list[Tangent]()
        for row in range(q.value.shape[2]):
            own = _each(q, lambda t, row=row: t[:, row : row + 1])  # type: ignore[misc]
            seen = c.seen_by(row) if c.hides_tokens else slice(None)
            k, v = (_each(t, lambda t, seen=seen: t[:, seen]) for t in (keys, values))  # type: ignore[misc]
            steep = [
                ((own.slopes[i] * k.value) + (own.value * k.slopes[i]))
                .sum(-1)
                .times(np.full(k.value.shape[:3], 1 / math.sqrt(c.d_k)), 1e-15)
                for i in range(D)
            ]  # [box, head, token]
            columns = [v.value, *v.slopes]
            columns += [v.value * s[..., None] for s in steep] + [s[..., None] for s in steep]
            wide = _concatenated([t.flat() for t in columns], -1)
            exact = tuple(np.zeros(t.shape) for t in (own.value, k.value, wide))
            z, _ = attended(own.value, k.value, wide, exact, math.sqrt(c.d_k), FLOAT64)  # type: ignore[arg-type]
            z, w = z[:, 0], c.d_v  # [box, head, columns]
            part = [z[:, w * j : w * (j + 1)] for j in range(2 * D + 1)]
            scores = [z[:, w * (2 * D + 1) + i : w * (2 * D + 1) + i + 1] for i in range(D)]
            slopes = tuple(part[1 + i] + part[1 + D + i] - part[0] * scores[i] for i in range(D))
            rows.append(_each(Tangent(part[0], slopes), lambda t: reshaped(t, c.heads * c.d_v)))
        slopes = tuple(stack([r.slopes[i] for r in rows], axis=-2) for i in range(D))
        stacked = Tangent(stack([r.value for r in rows], axis=-2), slopes)
        return stacked.linear(self.w.W_O, self.w.b_O if c.projection_bias else 0.0)

    def _project(self, x: Tangent, which: str) -> Tangent:
        """[box, head, token, width]."""
        W = getattr(self.w, f"W_{which}")
        h, m, width = W.shape
        bias = getattr(self.w, f"b_{which}").reshape(-1) if self.config.projection_bias else 0.0

        def by_head(t: Taylor) -> Taylor:
            boxes, tokens = t.shape[:2]
            c = t.c.reshape(-1, boxes, tokens, h, width).transpose(0, 1, 3, 2, 4)
            return Taylor(t.space, c, t.r.reshape(boxes, tokens, h, width).transpose(0, 2, 1, 3))

        flat = x.linear(W.transpose(1, 0, 2).reshape(m, h * width), bias)
        return _each(_each(flat, lambda t: t.flat()), by_head)

    def _feed_forward(self, h: Tangent) -> Tangent:
        u = h.linear(self.w.W_1, self.w.b_1)
        match self.config.activation:
            case "relu":
                hidden = self._hinged(u)
            case "gelu":
                bell, normal = _bell(u.value), _normal(u.value)
                hidden = u.through(apply("gelu", u.value), normal + u.value * bell)
            case "silu":
                y = apply("sigmoid", u.value)
                hidden = u.through(u.value * y, y + u.value * (y - y * y))
            case other:
                assert_never(other)
        return hidden.linear(self.w.W_2, self.w.b_2)

    def _hinged(self, u: Tangent) -> Tangent:
        first, second = opposite_pairs(self.w.W_1, self.w.b_1, self.w.W_2)
        low, high = u.value.range()
        least, most = np.where(low >= 0, 1.0, 0.0), np.where(high <= 0, 0.0, 1.0)
        for units, slope in ((first, 1.0), (second, 0.0)):
            least[..., units], most[..., units] = slope, slope
        space, shape = u.value.space, u.value.shape
        open_units = space.between(np.zeros(shape), np.maximum(high, 0.0))
        value = u.value.choose(most == 0, space.constant(np.zeros(shape))).choose(least < most, open_units)
        return u.through(value, space.between(least, most))

    def _norm(self, x: Tangent, which: str) -> Tangent:
        """LayerNorm: (x − μ)/√(var + eps)·gain + offset."""
        m, eps = self.config.d_model, self.config.norm_eps
        gain, offset = getattr(self.w, f"gain_{which}"), getattr(self.w, f"offset_{which}")
        centred = _each(x, lambda t: t.flat()).linear(np.eye(m) - 1 / m, error=2.0**-51)
        mean = np.full(centred.value.shape[:-1], 1 / m)
        variance = (centred.value * centred.value).sum(-1).times(mean, 4e-16)
        low, high = variance.range()
        shifted = Taylor(variance.space, variance.c.copy(), variance.r.copy())
        shifted.c[0] += eps
        shifted.r = shifted.r + 4e-16 * np.abs(shifted.c[0])
        known = np.maximum(low, 0.0) + eps * (1 - 1e-15), np.maximum(high, 0.0) + eps * (1 + 1e-15)
        root, cube = power(shifted, -0.5, known)[..., None], power(shifted, -1.5, known)[..., None]
        slopes = []
        for t in centred.slopes:
            half = (centred.value * t).sum(-1).times(mean, 4e-16)[..., None]  # of the variance's slope
            slopes.append(t * root - centred.value * (half * cube))
        wide = np.broadcast_to(gain, centred.value.shape)
        shift = x.value.space.constant(np.broadcast_to(offset, centred.value.shape))
        bound = math.sqrt(m)
        y = (centred.value * root).best(*(np.full(centred.value.shape, s * bound) for s in (-1, 1)))
        return Tangent(y.times(wide) + shift, tuple(t.times(wide) for t in slopes))


def _each(t: Tangent, change: Callable[[Taylor], Taylor]) -> Tangent:
    """The value and all slopes, changed in the same linear way."""
    return Tangent(change(t.value), tuple(change(slope) for slope in t.slopes))


def _constant(value: Taylor, dimension: int) -> Tangent:
    return Tangent(value, (value.space.constant(np.zeros(value.shape)),) * dimension)


def _joined(a: Tangent, b: Tangent) -> Tangent:
    """The tokens of both, [box, token, model]."""
    pairs = zip((a.value, *a.slopes), (b.value, *b.slopes), strict=True)
    value, *slopes = (_concatenated([x.flat(), y.flat()], -2) for x, y in pairs)
    return Tangent(value, tuple(slopes))


def _concatenated(parts: list[Taylor], axis: int) -> Taylor:
    c, r = (np.concatenate([getattr(p, name) for p in parts], axis=axis) for name in "cr")
    return Taylor(parts[0].space, c, r)


def _bell(u: Taylor) -> Taylor:
    """exp(−u²/2)/√(2π)."""
    half = np.full(u.shape, -0.5)
    return apply("exp", (u * u).times(half)).times(np.full(u.shape, 1 / math.sqrt(2 * math.pi)), 1e-15)


def _normal(u: Taylor) -> Taylor:
    """(1 + erf(u/√2))/2."""
    y = apply("erf", u.times(np.full(u.shape, math.sqrt(0.5)), 1e-15)).times(np.full(u.shape, 0.5))
    return y + u.space.constant(np.full(u.shape, 0.5))
