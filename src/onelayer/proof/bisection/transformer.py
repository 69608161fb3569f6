"""Any single-layer Transformer on Taylor models, trained or constructed, with the rounding of its evaluation.

Follows the model's own steps: embedding, Eq. (5)–(8), feed-forward network, residuals, LayerNorm, read-out. `Value.model`
encloses T as a real function of the stored weights; `Value.off`, carried through the same steps, says how far the deployed
arithmetic can be from what is enclosed. What is computed is not compared with T itself: a max-head, exact or rounded, may be
anywhere between max − W and max, and that much is known of both. Every step holds for whatever function the models before
it enclose.
"""

import math
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from ...common.outward import UP_FEW, U
from ...formula.taylor.functions import apply, power
from ...formula.taylor.kink import KinkSymbol, relu_lines
from ...formula.taylor.series import TINY, Space, Taylor, stack
from ...layer.arithmetic import Arithmetic
from ...model.config import STEEPEST
from ...model.transformer import SingleLayerTransformer
from .attention import Offs, attended
from .other_attention import by_features, by_sigmoid, by_sparsemax

ATTENDED = {  # Eq. (5)–(7) on boxes, by the attention of the layer
    "softmax": attended,
    "fused": attended,  # the same real function; its rounding is in the arithmetic (`layer.rounding.online_softmax`)
    "local": attended,
    "sigmoid": by_sigmoid,
    "linear": by_features,
    "sparsemax": by_sparsemax,
}
MOST_KINKS = 48  # undecided ReLU units per batch that keep their own symbols


@dataclass
class Value:
    """A quantity of the network: its Taylor model encloses the exact one and one within off [box, …] of the computed one."""

    model: Taylor
    off: np.ndarray

    def __getitem__(self, index: object) -> "Value":
        at = (slice(None), *(index if isinstance(index, tuple) else (index,)))
        return Value(self.model[index], self.off[at])


@dataclass(frozen=True)
class Weights:
    """The stored numbers by name, as float64 arrays (exact also for float32 models)."""

    model: SingleLayerTransformer

    def __getattr__(self, name: str) -> np.ndarray:
        found = getattr(self.model, name).detach().cpu().double().numpy()
        object.__setattr__(self, name, found)
        return found


class Network:
    """T on the boxes of a space."""

    def __init__(self, model: SingleLayerTransformer, arithmetic: Arithmetic) -> None:
        model.config.require_one_length()
        self.config, self.w, self.arithmetic = model.config, Weights(model), arithmetic

    def __call__(self, space: Space) -> Value:
        """[box, place·out], in row order."""
        c = self.config
        y = self._sublayers(*self.tokens(space))
        if c.readout == "mean":
            n = y.model.shape[1]
            total = self.linear(Value(_swapped(y.model), np.swapaxes(y.off, 1, 2)), np.full((n, 1), 1 / n), error=U)
            y = Value(_swapped(total.model), np.swapaxes(total.off, 1, 2))
        out = self.linear(y, self.w.W_R, self.w.b_R)
        return Value(reshaped(out.model, -1), out.off.reshape(space.boxes, -1))

    def tokens(self, space: Space) -> tuple[Value, Value]:
        """(the tokens that are read out, all tokens), [box, token, d_model]."""
        c, data, special = self.config, self._embedding(space), self._constants(space)
        asking = special[-c.output_tokens :] if special is not None and c.readout == "output" else data
        return asking, data if special is None else self._joined(data, special)

    def linear(
        self,
        x: Value,
        W: np.ndarray,
        bias: np.ndarray | float = 0.0,
        error: float = 0.0,
        more: np.ndarray | float = 0.0,
    ) -> Value:
        """x W + bias, the products summed in any order. `more`: |x| may be this much larger than its model."""
        u, terms = self.arithmetic.u, np.count_nonzero(W, axis=0) + 2  # a weight of 0 adds exactly nothing
        with np.errstate(all="ignore"):
            size = (x.model.size() + more + x.off) @ np.abs(W) + np.abs(bias)
            off = (x.off @ np.abs(W) + (terms * u * 1.01 + error) * size) * UP_FEW + self.arithmetic.smallest * terms
        return Value(x.model.linear(W, bias, error), self._without_overflow(size, off))

    def _without_overflow(self, size: np.ndarray, off: np.ndarray) -> np.ndarray:
        """`off`, or ∞ where a number of this size, or a sum of such, might overflow."""
        return np.where(size < self.arithmetic.overflow / 8, off, np.inf)

    def plus(self, x: Value, y: Value) -> Value:
        model = x.model + y.model
        off = (x.off + y.off) * UP_FEW
        size = x.model.size() + y.model.size() + off
        return Value(model, self._without_overflow(size, (off + self.arithmetic.u * size) * UP_FEW))

    def _embedding(self, space: Space) -> Value:
        """[box, token, d_model]: x̂ = (x − shift)·scale, x̂ W^E + b^E + p."""
        c, u = self.config, self.arithmetic.u
        hats = normalised(space, self.w.shift.reshape(-1), self.w.scale.reshape(-1))
        x = reshaped(hats, c.tokens, c.features_in)
        lost = self.arithmetic.lost(float(np.abs(self.w.scale).max()))
        hat = Value(x, 2.1 * u * x.size() * UP_FEW + lost)
        e = self.linear(hat, self.w.W_E, self.w.b_E)
        if c.code == "none":
            return e
        code = np.broadcast_to(self.w.P, (space.boxes, *self.w.P.shape))
        return self.plus(e, Value(space.constant(code), np.zeros(code.shape)))

    def _constants(self, space: Space) -> Value | None:
        """The special tokens."""
        if not self.config.special_tokens:
            return None
        s = np.broadcast_to(self.w.S, (space.boxes, *self.w.S.shape))
        return Value(space.constant(s), np.zeros(s.shape))

    @staticmethod
    def _joined(a: Value, b: Value) -> Value:
        model = Taylor(
            a.model.space,
            np.concatenate([a.model.c, b.model.c], axis=2),
            np.concatenate([a.model.r, b.model.r], axis=1),
        )
        return Value(model, np.concatenate([a.off, b.off], axis=1))

    def _sublayers(self, asking: Value, everything: Value) -> Value:
        pre, post = self.config.norm == "pre", self.config.norm == "post"
        a = self.attend(*(self._norm(t, "1") if pre else t for t in (asking, everything)))
        h = self.plus(asking, a) if self.config.residual else a
        h = self._norm(h, "1") if post else h
        f = self._feed_forward(self._norm(h, "2") if pre else h)
        y = self.plus(h, f) if self.config.residual else f
        return self._norm(y, "2") if post else y

    def attend(self, asking: Value, everything: Value) -> Value:
        """Eq. (5)–(8)."""
        c = self.config
        q, k, v = self._project(asking, "Q"), self._project(everything, "K"), self._project(everything, "V")
        if c.hides_tokens:
            model, off = self._row_by_row(q, k, v)
        else:
            model, off = self._attended(q.model, k.model, v.model, (q.off, k.off, v.off))
        # [box, head, row, d_v] → [box, row, head·d_v]
        rows = model.shape[2]
        order = (0, 1, 3, 2, 4)
        joined = Taylor(
            model.space,
            model.c.transpose(order).reshape(len(model.c), -1, rows, c.heads * c.d_v),
            model.r.transpose(0, 2, 1, 3).reshape(-1, rows, c.heads * c.d_v),
            {k: a.transpose(0, 2, 1, 3).reshape(-1, rows, c.heads * c.d_v) for k, a in model.a.items()},
        )
        concat = Value(joined, off.transpose(0, 2, 1, 3).reshape(-1, rows, c.heads * c.d_v))
        return self.linear(concat, self.w.W_O, self.w.b_O if c.projection_bias else 0.0)

    def _attended(self, q: Taylor, k: Taylor, v: Taylor, offs: Offs) -> tuple[Taylor, np.ndarray]:
        by = ATTENDED[self.config.attention]
        return by(q, k, v, offs, math.sqrt(self.config.d_k), self.arithmetic)

    def _row_by_row(self, q: Value, k: Value, v: Value) -> tuple[Taylor, np.ndarray]:
        """Every row over the tokens that it sees.

        Hidden ones have weight 0, and adding 0 rounds nothing, unless a value overflows: every token sees itself, so that
        some row knows, and then nothing is known of any.
        """
        models, offs = [], []
        for row in range(q.off.shape[2]):
            own, seen = slice(row, row + 1), self.config.seen_by(row)
            errors = q.off[:, :, own], k.off[:, :, seen], v.off[:, :, seen]
            z, off = self._attended(q.model[:, own], k.model[:, seen], v.model[:, seen], errors)
            models.append(z[:, 0])
            offs.append(off)
        off = np.concatenate(offs, axis=2)
        known = np.isfinite(off).all(axis=(2, 3), keepdims=True)
        return stack(models, axis=-2), np.where(known, off, np.inf)

    def _project(self, x: Value, which: str) -> Value:
        """[box, head, token, width]."""
        W = getattr(self.w, f"W_{which}")  # [head, d_model, width]
        h, m, width = W.shape
        bias = getattr(self.w, f"b_{which}").reshape(-1) if self.config.projection_bias else 0.0
        y = self.linear(x, W.transpose(1, 0, 2).reshape(m, h * width), bias)
        boxes, tokens = y.off.shape[:2]
        c = y.model.c.reshape(-1, boxes, tokens, h, width).transpose(0, 1, 3, 2, 4)
        r, off = (t.reshape(boxes, tokens, h, width).transpose(0, 2, 1, 3) for t in (y.model.r, y.off))
        return Value(Taylor(y.model.space, c, r), off)

    def _feed_forward(self, h: Value) -> Value:
        u = self.linear(h, self.w.W_1, self.w.b_1)
        match self.config.activation:
            case "relu":
                return self._hinged(h, u)
            case "gelu":
                answers = apply("gelu", u.model)
            case "silu":
                answers = u.model * apply("sigmoid", u.model)
            case other:
                assert_never(other)
        hidden = Value(answers, self._through(u, STEEPEST[self.config.activation]))
        return self.linear(hidden, self.w.W_2, self.w.b_2)

    def _through(self, u: Value, slope: float) -> np.ndarray:
        """A smooth activation: its steepest slope times the error of its argument, and its own (16 units of |u|)."""
        with np.errstate(all="ignore"):
            relative = 16 * self.arithmetic.u * (u.model.size() + u.off)
            return (slope * u.off + relative) * UP_FEW + self.arithmetic.smallest

    def _hinged(self, h: Value, u: Value) -> Value:
        """W^2 relu(u) + b^2. Pairs relu(z) w − relu(−z) w are z w exactly; undecided units keep symbols."""
        space, W_1, b_1, W_2 = u.model.space, self.w.W_1, self.w.b_1, self.w.W_2
        first, second = opposite_pairs(W_1, b_1, W_2)
        flat = u.model.flat()
        low, high = flat.range()
        share, width = relu_lines(low, high)
        share[..., first], width[..., first] = 1.0, 0.0
        share[..., second], width[..., second] = 0.0, 0.0
        half = width / 2 * UP_FEW
        y = u.model.times(share)
        y.c[0] += np.where(np.isfinite(half), half, 0.0)
        y.r = y.r + 4e-16 * np.abs(y.c[0])
        undecided = [] if self.config.norm == "post" else np.argwhere((half > 0).any(axis=0)).tolist()
        own = undecided if len(undecided) <= MOST_KINKS else []
        symbols = half.copy()
        for row, unit in own:
            symbols[:, row, unit] = np.where(np.isfinite(half[:, row, unit]), 0.0, np.inf)
        y.r = y.r + symbols
        off = u.off.copy()
        off[..., second] = 0.0
        result = self.linear(Value(y, off), W_2, self.w.b_2, more=half)
        for row, unit in own:
            here = half[:, row, unit]
            here = np.where(np.isfinite(here), here, 0.0)
            zero, argument = space.constant(np.zeros(space.boxes)), flat[row, unit]
            shares = np.stack([1 - share[:, row, unit], share[:, row, unit]])
            both = np.broadcast_to((here > 0)[None], (2, space.boxes))
            space.kinks.append(KinkSymbol((zero, argument), shares, both, here))
            coefficient = np.zeros(result.model.shape)
            coefficient[:, row] = np.where(here[:, None] > 0, W_2[unit], 0.0)
            result.model.a[len(space.kinks) - 1] = coefficient
        return result

    def _norm(self, x: Value, which: str) -> Value:
        """LayerNorm: (x − μ)/√(var + eps)·gain + offset.

        Assumed of the deployed kernel: mean within (m + 2)u·mean|x|, variance within 2(m + 4)u·mean x², whatever its algorithm.
        """
        m, u, eps = self.config.d_model, self.arithmetic.u, self.config.norm_eps
        gain, offset = getattr(self.w, f"gain_{which}"), getattr(self.w, f"offset_{which}")
        flat = x.model.flat()
        centred = flat.linear(np.eye(m) - 1 / m, error=2.0**-51)
        variance = (centred * centred).sum(-1).times(np.full(x.off.shape[:-1], 1 / m), 2 * U)
        low, high = variance.range()
        shifted = Taylor(variance.space, variance.c.copy(), variance.r.copy())
        shifted.c[0] += eps
        shifted.r = shifted.r + 4e-16 * np.abs(shifted.c[0])
        least = np.maximum(low, 0.0) + eps * (1 - 1e-15)
        root = power(shifted, -0.5, (least, np.maximum(high, 0.0) + eps * (1 + 1e-15)))
        y = centred * root[..., None]
        with np.errstate(all="ignore"):
            size, away = flat.size() + x.off, centred.size()
            mean_off = x.off.mean(axis=-1, keepdims=True) + (m + 2) * u * size.mean(axis=-1, keepdims=True)
            apart = ((2 * away + x.off) * x.off).mean(axis=-1, keepdims=True)  # var(x + e) − var(x), about the old mean
            apart = apart + x.off.mean(axis=-1, keepdims=True) ** 2
            square = (size**2).mean(axis=-1, keepdims=True)
            variance_off = (apart + 2 * (m + 4) * u * square) * UP_FEW + (m + 2) * self.arithmetic.smallest
            relative = variance_off / (2 * least[..., None]) * 1.01 + 4 * u
            inverse = 1 / np.sqrt(least)[..., None]
            off = (x.off + mean_off + u * size) * inverse * (1 + relative) + away * inverse * relative
            off = off + self.arithmetic.smallest  # underflow, before `gain` may enlarge it
            off = np.where(variance_off < 0.01 * least[..., None], self._without_overflow(m * square, off), np.inf)
        bound = math.sqrt(m)  # |x − μ| ≤ √(m·var)
        return self.linear_diagonal(Value(y.best(*(np.full(y.shape, s * bound) for s in (-1, 1))), off), gain, offset)

    def linear_diagonal(self, x: Value, gain: np.ndarray, offset: np.ndarray) -> Value:
        """x·gain + offset, entry by entry."""
        u, space = self.arithmetic.u, x.model.space
        wide = np.broadcast_to(gain, x.off.shape)
        shift = space.constant(np.broadcast_to(offset, x.off.shape))
        with np.errstate(all="ignore"):
            size = (x.model.size() + x.off) * np.abs(gain) + np.abs(offset)
            off = (x.off * np.abs(gain) + 3 * u * size) * UP_FEW + TINY + self.arithmetic.smallest
        return Value(x.model.times(wide) + shift, off)


def normalised(space: Space, shift: np.ndarray, scale: np.ndarray) -> Taylor:
    """x̂ = (x − shift)·scale, [box, coordinate]."""
    columns = []
    for i in range(space.dimension):
        moved = space.variable(i) + space.constant(np.full(space.boxes, -shift[i]))
        columns.append(moved.times(np.full(space.boxes, scale[i])))
    return stack(columns)


def reshaped(t: Taylor, *shape: int) -> Taylor:
    """The same entries of every box in another shape."""
    kinks = {k: a.reshape(len(a), *shape) for k, a in t.a.items()}
    return Taylor(t.space, t.c.reshape(*t.c.shape[:2], *shape), t.r.reshape(len(t.r), *shape), kinks)


def _swapped(t: Taylor) -> Taylor:
    kinks = {k: np.swapaxes(a, 1, 2) for k, a in t.a.items()}
    return Taylor(t.space, np.swapaxes(t.c, 2, 3), np.swapaxes(t.r, 1, 2), kinks)


def opposite_pairs(W_1: np.ndarray, b_1: np.ndarray, W_2: np.ndarray) -> tuple[list[int], list[int]]:
    """Units i, j with z_j = −z_i and opposite outgoing weights: together they pass z_i on unchanged."""
    rows: dict[bytes, list[int]] = {}
    first, second = [], []
    for unit in range(len(b_1)):
        mine = np.concatenate([W_1[:, unit], b_1[unit : unit + 1], W_2[unit]]) + 0.0  # no −0
        partners = rows.get((-mine + 0.0).tobytes(), [])
        if partners:
            first.append(partners.pop())
            second.append(unit)
        else:
            rows.setdefault(mine.tobytes(), []).append(unit)
    return first, second
