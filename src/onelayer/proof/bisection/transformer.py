"""Any single-layer Transformer on Taylor models, trained or constructed, with the rounding of its evaluation.

`Value.model` encloses T as a real function of the stored weights (`on_taylor`); `Value.off`, carried through the same steps, says
how far the deployed arithmetic can be from what is enclosed. What is computed is not compared with T itself: a max-head, exact
or rounded, may be anywhere between max − W and max, and that much is known of both. Every step holds for whatever function the
models before it enclose. That nothing overflows is known before (`proof.overflow`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...common.outward import UP_FEW, U
from ...formula.taylor.kink import KinkSymbol
from ...formula.taylor.series import TINY, Space, Taylor
from ...layer.affine_layer import opposite_pairs
from ...layer.arithmetic import Arithmetic
from ...layer.rounding import running
from ...model import program
from ...model.activations import activation_of
from ...model.transformer import SingleLayerTransformer
from .activated import relu_lines
from .on_taylor import OnTaylor, Weights, reshaped

MOST_KINKS = 48  # undecided ReLU units per batch that keep their own symbols


@dataclass
class Value:
    """A quantity of the network: its Taylor model encloses the exact one and one within off [box, …] of the computed one."""

    model: Taylor
    off: np.ndarray


class Network:
    """T on the boxes of a space."""

    def __init__(self, model: SingleLayerTransformer, arithmetic: Arithmetic) -> None:
        model.config.require_one_length()
        self.w, self.arithmetic = Weights(model), arithmetic

    def __call__(self, space: Space) -> Value:
        """[box, place·out], in row order."""
        out = program.answer(self._on(space))
        return Value(reshaped(out.model, -1), out.off.reshape(space.boxes, -1))

    def tokens(self, space: Space) -> tuple[Value, list[Value]]:
        """(the tokens that are read out, all tokens in groups), [box, token, d_model]."""
        return program.tokens(self._on(space))

    def attend(self, asking: Value, groups: Sequence[Value]) -> Value:
        """Eq. (5)–(8)."""
        return program.attention(self._on(asking.model.space), asking, groups)

    def _on(self, space: Space) -> "Rounded":
        return Rounded(self.w, space, self.arithmetic)


class Rounded(program.ArraySteps[Value]):
    """The steps of a layer on Taylor models, and what rounding adds."""

    def __init__(self, w: Weights, space: Space, arithmetic: Arithmetic) -> None:
        self.w, self.config, self.arithmetic, self.exact = w, w.model.config, arithmetic, OnTaylor(w, space)

    def inputs(self) -> Value:
        x = self.exact.inputs()
        lost = self.arithmetic.lost(float(np.abs(self.w.scale).max()))
        return Value(x, 2.1 * self.arithmetic.u * x.size() * UP_FEW + lost)

    def constant(self, name: str) -> Value:
        x = self.exact.constant(name)
        return Value(x, np.zeros(x.shape))

    def linear(self, x: Value, name: str) -> Value:
        return self._product(x, self.w.matrix(name), self.w.bias(name))

    def _product(
        self,
        x: Value,
        W: np.ndarray,
        bias: np.ndarray | float = 0.0,
        error: float = 0.0,
        more: np.ndarray | float = 0.0,
    ) -> Value:
        """x W + bias, the products summed in any order. `more`: |x| may be this much larger than its model."""
        with np.errstate(all="ignore"):
            _, off = running.sums(x.model.size() + more, x.off, W, bias, self.arithmetic, error)
        return Value(x.model.linear(W, bias, error), off)

    def plus(self, x: Value, y: Value) -> Value:
        model = x.model + y.model
        off = (x.off + y.off) * UP_FEW
        size = x.model.size() + y.model.size() + off
        return Value(model, (off + self.arithmetic.u * size) * UP_FEW)

    def moved(self, move: Callable[..., Any], *values: Value) -> Value:
        return Value(self.exact.moved(move, *(t.model for t in values)), move(*(t.off for t in values)))

    def average(self, q: Value, k: Value, v: Value) -> Value:
        offs = q.off, k.off, v.off
        return Value(*self.exact.rounded_average(q.model, k.model, v.model, offs, self.arithmetic))

    def mean(self, x: Value) -> Value:
        def turned(t: Value) -> Value:
            return self.moved(lambda array: array.swapaxes(-1, -2), t)

        n = x.off.shape[1]
        return turned(self._product(turned(x), np.full((n, 1), 1 / n), error=U))

    def feed_forward(self, h: Value) -> Value:
        return self._hinged(self.linear(h, "1")) if self.config.activation == "relu" else super().feed_forward(h)

    def activate(self, u: Value) -> Value:
        """A smooth activation: its steepest slope times the error of its argument, and its own, 16 units of its bound by |u|."""
        phi = activation_of(self.config)
        with np.errstate(all="ignore"):
            relative = 16 * self.arithmetic.u * phi.largest(u.model.size() + u.off)
            off = (phi.steepest * u.off + relative) * UP_FEW + self.arithmetic.smallest
        return Value(self.exact.activate(u.model), off)

    def _hinged(self, u: Value) -> Value:
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
        result = self._product(Value(y, off), W_2, self.w.b_2, more=half)
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

    def norm(self, x: Value, name: str) -> Value:
        """LayerNorm: (x − μ)/√(var + eps)·gain + offset.

        Assumed of the deployed kernel: mean within (m + 2)u·mean|x|, variance within 2(m + 4)u·mean x², whatever its algorithm.
        """
        m, u = self.config.d_model, self.arithmetic.u
        centred = self.exact.centred(x.model)
        y, least = self.exact.standardised(centred)
        with np.errstate(all="ignore"):
            size, away = x.model.size() + x.off, centred.size()
            mean_off = x.off.mean(axis=-1, keepdims=True) + (m + 2) * u * size.mean(axis=-1, keepdims=True)
            apart = ((2 * away + x.off) * x.off).mean(axis=-1, keepdims=True)  # var(x + e) − var(x), about the old mean
            apart = apart + x.off.mean(axis=-1, keepdims=True) ** 2
            square = (size**2).mean(axis=-1, keepdims=True)
            variance_off = (apart + 2 * (m + 4) * u * square) * UP_FEW + (m + 2) * self.arithmetic.smallest
            relative = variance_off / (2 * least) * 1.01 + 4 * u
            inverse = 1 / np.sqrt(least)
            off = (x.off + mean_off + u * size) * inverse * (1 + relative) + away * inverse * relative
            off = off + self.arithmetic.smallest  # underflow, before `gain` may enlarge it
            off = np.where(variance_off < 0.01 * least, off, np.inf)
            gain, offset = (np.abs(getattr(self.w, f"{part}_{name}")) for part in ("gain", "offset"))
            size = (y.size() + off) * gain + offset
            off = (off * gain + 3 * u * size) * UP_FEW + TINY + self.arithmetic.smallest
        return Value(self.exact.offset(y, name), off)
