"""What a node adds to the layer, T − T without it, on the boxes of a space: an enclosure that is as small as the effect.

A head h writes Δ = Z_h W^O_h to the rows that are read out. Without it the network sees h − Δ, so that

    T − T' = [Δ + Σ_k (φ(u_k) − φ(u_k − δ_k)) W^2_k] W^R,    u = h W^1 + b^1,  δ = Δ W^1,

the first Δ only in a residual stream. Units that come in opposite pairs pass δ on as it is, whatever u; where no other unit sees
the head, the effect is that of one head alone, and no other head is evaluated. A unit that sees a head only by the rounding of
W^O W^1, as in a layer whose basis was changed, adds at most |φ'||δ_k||W^2_k W^R|, which is added to the bound (`ignored`).

Where LayerNorm is in between, T and T' are both enclosed, and the enclosures subtracted.
"""

from dataclasses import dataclass

import numpy as np

from ...common.outward import UP_FEW, UP_MANY
from ...formula.taylor.series import Space, Taylor
from ...layer.affine_layer import opposite_pairs
from ...layer.arithmetic import arithmetic_of
from ...model.activations import activation_of
from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from ..bisection.activated import activated
from ..bisection.on_taylor import Weights, reshaped
from ..bisection.other_attention import relaxed_relu
from ..bisection.transformer import Network, Value
from .graph import Node, product, with_heads, without
from .number_sizes import NumberSizes


class Paths:
    """The products of weights that lead from heads to units and outputs, with their rounding: how much can pass at most."""

    def __init__(self, model: SingleLayerTransformer, reach: NumberSizes) -> None:
        c, w = model.config, Weights(model)
        self.config, self.reach = c, reach
        first, second = opposite_pairs(w.W_1, w.b_1, w.W_2) if c.activation == "relu" else ([], [])
        self.pairs = first
        self.bent = np.setdiff1d(np.arange(c.ffn_width), [*first, *second])  # units that are no part of a pair
        self.to_units = reach.to_units  # |δ| [head, unit]
        value, error = product(w.W_2, w.W_R)
        self.from_units = (np.abs(value) + error) * UP_MANY  # [unit, out]
        straight = reach.written.then(w.W_1[:, first], w.W_2[first], w.W_R)
        straight = straight.plus(reach.written.then(w.W_R)) if c.residual else straight
        self.to_outputs = straight.sizes().max(axis=1)  # past the bent units [head, out]

    def most(self, node: Node) -> float:
        """A coarse upper bound of the node's effect."""
        if node.kind == "unit":
            active = activation_of(self.config).largest(self.reach.hidden[node.index])
            return float((active * self.from_units[node.index]).max()) * UP_MANY
        slope, bent = activation_of(self.config).steepest, self.bent
        through = slope * self.to_units[node.index, bent] @ self.from_units[bent]
        return float((self.to_outputs[node.index] + through).max()) * UP_MANY

    def bent_by(self, head: int, ignorable: float) -> tuple[np.ndarray, float]:
        """(the units whose bend matters to the head, what all others can add to an output), the latter at most `ignorable`."""
        slope = activation_of(self.config).steepest
        adds = slope * self.to_units[head, self.bent] * self.from_units[self.bent].max(axis=1) * UP_MANY
        return self._sorted_out(self.bent, adds, ignorable)

    def heads_for(self, units: np.ndarray, besides: int | None, ignorable: float) -> tuple[np.ndarray, np.ndarray]:
        """(the heads that matter to these units, how far all others can move each unit), what comes out at most `ignorable`."""
        heads = np.array([h for h in range(self.config.heads) if h != besides], dtype=int)
        slope = activation_of(self.config).steepest
        adds = 2 * slope * self.to_units[np.ix_(heads, units)] @ self.from_units[units].max(axis=1) * UP_MANY
        kept, _ = self._sorted_out(heads, adds, ignorable)
        left = np.setdiff1d(heads, kept)
        return kept, self.to_units[np.ix_(left, units)].sum(axis=0) * UP_MANY

    @staticmethod
    def _sorted_out(items: np.ndarray, adds: np.ndarray, ignorable: float) -> tuple[np.ndarray, float]:
        order = np.argsort(adds, kind="stable")
        total = np.cumsum(adds[order]) * UP_MANY
        few = int((total <= ignorable).sum())
        return np.sort(items[order[few:]]), float(total[few - 1]) if few else 0.0


@dataclass
class Removed:
    """T − T' for one node of a layer without LayerNorm; `ignorable` is how much of it may be bounded instead of enclosed."""

    model: SingleLayerTransformer
    node: Node
    paths: Paths
    ignorable: float

    def __post_init__(self) -> None:
        c, arithmetic = self.model.config, arithmetic_of(self.model.W_E.dtype)
        self.w, head = Weights(self.model), self.node.index if self.node.kind == "head" else None
        if head is None:
            self.units, self.ignored = np.array([self.node.index]), 0.0
        else:
            self.units, self.ignored = self.paths.bent_by(head, self.ignorable / 2)
        others, self.moved = self.paths.heads_for(self.units, head, self.ignorable / 4)
        self.whole = Network(self.model, arithmetic)
        self.own = None if head is None else Network(with_heads(self.model, [head]), arithmetic)
        self.others = Network(with_heads(self.model, others.tolist()), arithmetic) if len(others) else None
        evaluated = len(others) + (head is not None)
        rows = c.read_rows.stop - c.read_rows.start
        self.numbers = (
            max(c.d_k, c.d_v) * c.all_tokens * evaluated * rows + c.all_tokens * c.d_model + 4 * len(self.units)
        )

    def __call__(self, space: Space) -> Value:
        """[box, place·out]; what is computed is within the rounding of both layers of it."""
        asking, groups = self.whole.tokens(space)
        b_O = self.w.b_O if self.model.config.projection_bias else 0.0
        delta = None if self.own is None else _less(self.own.attend(asking, groups).model, b_O)
        written = None
        if delta is not None:
            written = delta if self.model.config.residual else None
            passed = delta.linear(self.w.W_1[:, self.paths.pairs]).linear(self.w.W_2[self.paths.pairs])
            written = passed if written is None else written + passed
        if len(self.units):
            bent = self._bent(space, asking.model, groups, delta, b_O).linear(self.w.W_2[self.units])
            written = bent if written is None else written + bent
        assert written is not None
        y = written.linear(self.w.W_R)
        if self.model.config.readout == "mean":
            n = y.shape[1]
            y = y.sum(-2).times(np.full((space.boxes, y.shape[-1]), 1 / n), 2.0**-52)
        answer = reshaped(y, -1)
        off = (2 * self.paths.reach.rounding + self.ignored) * UP_FEW
        return Value(answer, np.full(answer.shape, off))

    def _bent(
        self, space: Space, asking: Taylor, groups: list[Value], delta: Taylor | None, b_O: np.ndarray | float
    ) -> Taylor:
        """φ(u) of a unit that is removed, or φ(u' + δ) − φ(u') of units whose head is, [box, row, unit]."""
        W, b, c = self.w.W_1[:, self.units], self.w.b_1[self.units], self.model.config
        h = space.constant(np.zeros(asking.shape))
        if self.model.config.residual:
            h = h + asking
        if self.others is not None:
            h = h + self.others.attend(Value(asking, np.zeros(asking.shape)), groups).model
        elif self.model.config.projection_bias:
            h = _less(h, -np.asarray(b_O))
        rest = h.linear(W, b)
        rest.r = rest.r + self.moved
        if delta is None:
            return _activated(rest, c)
        return _difference(rest, delta.linear(W), c)


def _less(t: Taylor, row: np.ndarray | float) -> Taylor:
    """t − row, the same at every box and token."""
    if not np.any(row):
        return t
    return t - t.space.constant(np.broadcast_to(row, t.shape).copy())


def _activated(u: Taylor, config: LayerConfig) -> Taylor:
    """φ(u)."""
    u = u.flat()
    if config.activation != "relu":
        return activated(activation_of(config), u)
    low, high = u.range()
    return relaxed_relu(u).best(np.maximum(low, 0.0), np.maximum(high, 0.0))


def _difference(rest: Taylor, delta: Taylor, config: LayerConfig) -> Taylor:
    """φ(rest + δ) − φ(rest): δ or 0 where a ReLU does not bend; everywhere between −s|δ| and s|δ|, s the steepest slope."""
    delta, rest = delta.flat(), rest.flat()
    both = rest + delta
    g = _activated(both, config) - _activated(rest, config)
    low, high = delta.range()
    if config.activation == "relu":
        g = g.best(np.minimum(low, 0.0), np.maximum(high, 0.0))
        lows, highs = np.minimum(both.range()[0], rest.range()[0]), np.maximum(both.range()[1], rest.range()[1])
        return g.choose(lows >= 0, delta).choose(highs <= 0, delta.times(np.zeros(delta.shape)))
    most = activation_of(config).steepest * np.maximum(np.abs(low), np.abs(high)) * UP_FEW
    return g.best(-most, most)


@dataclass
class Subtracted:
    """T − T' as two enclosures, for layers with LayerNorm, or where rounding is bounded box by box alone."""

    model: SingleLayerTransformer
    node: Node

    def __post_init__(self) -> None:
        c, arithmetic = self.model.config, arithmetic_of(self.model.W_E.dtype)
        self.both = [Network(m, arithmetic) for m in (self.model, without(self.model, self.node))]
        rows = c.read_rows.stop - c.read_rows.start
        widest = max(c.d_k, c.d_v) * c.all_tokens * c.heads * rows
        self.numbers = 2 * (widest + c.all_tokens * (c.d_model + c.ffn_width))

    def __call__(self, space: Space) -> Value:
        one, two = (network(space) for network in self.both)
        return Value(one.model - two.model, (one.off + two.off) * UP_FEW)
