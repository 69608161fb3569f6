"""How large every number of a layer can be, and how far the computed answers can be from the real function.

Tokens are affine in x̂, or one of a few vectors, so that products of weights with them are small tables: how large a number
can be is read off these, whatever the basis of the stream. Heads are then added up by size, and so are hidden units. So the
bounds hold for the layer and for every layer that is left without some heads or units: one bound for all ablations. Layers with
LayerNorm are not covered: a division by a small variance is no sum.
"""

from dataclasses import dataclass

import numpy as np

from ...common.outward import UP_MANY, U
from ...layer.arithmetic import VANISHED, arithmetic_of
from ...layer.rounding import running
from ...model.activations import activation_of
from ...model.transformer import SingleLayerTransformer
from ..bisection.on_taylor import Weights
from ..overflow import cannot_overflow
from .graph import product


@dataclass(frozen=True)
class TokenTable:
    """A linear function of the tokens: what it makes of every feature of x̂, then of the constant part of every token."""

    values: np.ndarray  # […, feature + token, column]
    errors: np.ndarray  # |values − exact ones| is at most this
    edge: np.ndarray  # the largest |x̂| [token, feature]; special tokens come after these

    def then(self, *factors: np.ndarray, bias: np.ndarray | float = 0.0) -> "TokenTable":
        """With these matrices applied, and then a bias added."""
        values, errors = product(self.values, *factors, error=self.errors)
        F, moved = self.edge.shape[1], np.zeros_like(values)
        moved[..., F:, :] = bias
        return TokenTable(values + moved, errors + U * np.abs(values + moved), self.edge)

    def plus(self, other: "TokenTable") -> "TokenTable":
        values = self.values + other.values
        return TokenTable(values, self.errors + other.errors + U * np.abs(values), self.edge)

    def sizes(self) -> np.ndarray:
        """Upper bounds of the absolute values [token, column]: Σ_f |x̂_f| |row_f| + |constant row|."""
        table, F = np.abs(self.values) + self.errors, self.edge.shape[1]
        found = table[..., F:, :].copy()
        found[..., : len(self.edge), :] += self.edge @ table[..., :F, :]
        return np.asarray(found * UP_MANY)


def embedded(model: SingleLayerTransformer, edge: np.ndarray, tokens: bool) -> TokenTable:
    """The tokens themselves. Where inputs are unit vectors, there are no features: every token at every position is a row."""
    c, w = model.config, Weights(model)
    constants = np.broadcast_to(w.b_E, (c.tokens, c.d_model)) + (w.P if c.code != "none" else 0.0)
    slopes, sizes = w.W_E, np.abs(constants)
    if tokens:  # what was rounded in a constant part stays, although the sum with W^E may be small
        sizes = (sizes[:, None] + np.abs(slopes)).reshape(-1, c.d_model)
        constants = (constants[:, None] + slopes).reshape(-1, c.d_model)
        slopes, edge = slopes[:0], np.zeros((len(constants), 0))
    special = [w.S] if c.special_tokens else []
    values, sizes = np.concatenate([slopes, constants, *special]), np.concatenate([slopes, sizes, *special])
    return TokenTable(values, 4 * U * np.abs(sizes), edge)


@dataclass(frozen=True)
class NumberSizes:
    """Bounds on absolute values for all inputs, and on |computed answer − real answer|."""

    written: TokenTable  # v W^O of every head [head, …, d_model], of which attention takes averages
    to_units: np.ndarray  # |δ| of every head [head, unit]
    hidden: np.ndarray  # |h W^1 + b^1| [unit]
    rounding: float  # of any output; ∞ where it cannot be bounded


def edges_of_inputs(model: SingleLayerTransformer, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The largest |x̂| [token, feature] for inputs between these ends, the rounding of x̂ included."""
    c, u = model.config, arithmetic_of(model.W_E.dtype).u
    shift, scale = (t.detach().double().numpy().reshape(-1) for t in (model.shift, model.scale))
    far = np.maximum(np.abs(lower - shift), np.abs(upper - shift)) * np.abs(scale)
    return (far * (1 + 8 * u) * UP_MANY).reshape(c.tokens, c.features_in)


@dataclass(frozen=True)
class AttentionSizes:
    """Sizes and errors up to the averages of Eq. (6): those of the tokens, and of what every head writes."""

    rows: TokenTable
    asking: slice  # the tokens that are read out
    e: np.ndarray  # tokens [token, d_model]
    e_off: np.ndarray
    z: np.ndarray  # averages of values [head, d_v]
    z_off: np.ndarray
    written: TokenTable  # v W^O [head, …, d_model]


def attention_sizes(model: SingleLayerTransformer, edge: np.ndarray, tokens: bool) -> AttentionSizes:
    """Embedding, scores and averages, Eq. (5) and (6), for |x̂| ≤ edge; infinite errors where scores are too uncertain."""
    c, w, a = model.config, Weights(model), arithmetic_of(model.W_E.dtype)
    u, tiny, F, T = a.u, a.smallest, c.features_in, c.all_tokens
    rows = embedded(model, edge, tokens)
    asking = slice(-c.output_tokens, None) if c.readout == "output" else slice(0, len(rows.edge))
    e = rows.sizes()
    # one entry of a unit vector is not 0
    moving = np.abs(w.W_E).max(axis=0) if tokens else edge.max(axis=0) @ np.abs(w.W_E)
    terms = moving + np.abs(w.b_E) + (np.abs(w.P).max(axis=0) if c.code != "none" else 0.0)
    lost = 0.0 if tokens else a.lost(float(np.abs(w.scale).max())) * np.abs(w.W_E).sum(axis=0)
    e_off = np.zeros_like(e)
    e_off[: len(rows.edge)] = ((6 if tokens else F + 8) * u * terms + lost) * UP_MANY + (F + 4) * tiny
    table = TokenTable(rows.values[None], rows.errors[None], rows.edge)
    biases = {s: getattr(w, f"b_{s}")[:, None] if c.projection_bias else 0.0 for s in "QKV"}
    q, k, v = (table.then(getattr(w, f"W_{s}"), bias=biases[s]) for s in "QKV")
    q_off, k_off, v_off = (running.sums(e, e_off, getattr(w, f"W_{s}"), biases[s], a)[1] for s in "QKV")
    q_size, k_size, v_size = (t.sizes() for t in (q, k, v))
    q_size, q_off = q_size[:, asking], q_off[:, asking]
    s, s_off = running.scores((q_size, k_size), (q_off, k_off), np.sqrt(c.d_k), a)
    s, s_off = (t.max(axis=(1, 2))[:, None] for t in (s / np.sqrt(c.d_k), s_off))
    exponent = 1.01 * (s_off + 2.1 * u * s + u * np.minimum(2 * s, VANISHED) + a.exp_error + tiny)
    z = v_size.max(axis=1)
    z_off = running.moved(running.exponentials(exponent), 2 * z) + running.averages(T, z, z, v_off.max(axis=1), a)
    return AttentionSizes(rows, asking, e, e_off, z, z_off, v.then(w.W_O.reshape(c.heads, c.d_v, c.d_model)))


def number_sizes(model: SingleLayerTransformer, edge: np.ndarray, tokens: bool = False) -> NumberSizes:
    """The bounds for |x̂| ≤ edge [token, feature]; with `tokens` inputs are unit vectors."""
    c, w, a = model.config, Weights(model), arithmetic_of(model.W_E.dtype)
    assert c.norm == "none"
    u = a.u
    with np.errstate(all="ignore"):
        t = attention_sizes(model, edge, tokens)
        b_O = w.b_O if c.projection_bias else np.zeros(c.d_model)
        h = t.written.sizes().max(axis=1).sum(axis=0) + np.abs(b_O)
        h_off = running.sums(t.z.reshape(-1), t.z_off.reshape(-1), w.W_O, b_O, a)[1]
        to_units = t.written.then(w.W_1).sizes().max(axis=1)
        hidden = to_units.sum(axis=0) + np.abs(b_O) @ np.abs(w.W_1) + np.abs(w.b_1)
        if c.residual:
            h = h + t.e[t.asking].max(axis=0)
            h_off = h_off + t.e_off[t.asking].max(axis=0) + u * h
            hidden = hidden + t.rows.then(w.W_1).sizes()[t.asking].max(axis=0)
        hidden = hidden * UP_MANY
        hidden_off = running.sums(h, h_off, w.W_1, w.b_1, a)[1]
        phi = activation_of(c)
        active, own = phi.largest(hidden), 0 if c.activation == "relu" else 16 * u
        active_off = phi.steepest * hidden_off + own * phi.largest(hidden + hidden_off) + a.smallest
        y_off = running.sums(active, active_off, w.W_2, w.b_2, a)[1]
        y = active @ np.abs(w.W_2) + np.abs(w.b_2) + (h if c.residual else 0.0)
        if c.residual:
            y_off = y_off + h_off + u * y
        if c.readout == "mean":
            y_off = y_off + (c.tokens + 2) * u * y
        out_off = running.sums(y, y_off, w.W_R, w.b_R, a)[1]
        fits = cannot_overflow(model, float(edge.max()), a)
        rounding = float(out_off.max()) * UP_MANY
    return NumberSizes(t.written, to_units, hidden, rounding if fits and np.isfinite(rounding) else np.inf)
