"""How large every number of a layer can be, and how far the computed answers can be from the real function.

Absolute values are carried through all steps: embedding, Eq. (5)–(8), feed-forward network, read-out. What comes out is coarse,
but it grows with the absolute value of every weight. So it holds for the layer and for every layer that is left when weights are
replaced by 0: one bound for all ablations. Layers with LayerNorm are not covered: a division by a small variance is no sum.
"""

from dataclasses import dataclass

import numpy as np

from ...common.outward import UP_MANY
from ...layer.arithmetic import arithmetic_of
from ...model.config import STEEPEST
from ...model.transformer import SingleLayerTransformer
from ..bisection.transformer import Weights

MOST_EXPONENT = 0.1  # errors of an exponent beyond this are not followed
VANISHED = 800.0  # exp of minus this is 0 in every arithmetic


@dataclass(frozen=True)
class Reach:
    """Bounds on absolute values for all inputs, and on |computed answer − real answer|."""

    tokens: np.ndarray  # [token, d_model]
    mixed: np.ndarray  # |Z| [head, d_v], the largest over rows
    hidden: np.ndarray  # |h W^1 + b^1| [unit], the largest over rows
    rounding: float  # of any output; ∞ where it cannot be bounded


def edges_of_inputs(model: SingleLayerTransformer, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The largest |x̂| [token, feature] for inputs between these ends, the rounding of x̂ included."""
    c, u = model.config, arithmetic_of(model.W_E.dtype).u
    shift, scale = (t.detach().double().numpy().reshape(-1) for t in (model.shift, model.scale))
    far = np.maximum(np.abs(lower - shift), np.abs(upper - shift)) * np.abs(scale)
    return (far * (1 + 8 * u) * UP_MANY).reshape(c.tokens, c.features_in)


def reach_of(model: SingleLayerTransformer, edge: np.ndarray, tokens: bool = False) -> Reach:
    """The bounds for |x̂| ≤ edge [token, feature]; with `tokens` inputs are unit vectors, of which one entry is not 0."""
    c, w, a = model.config, Weights(model), arithmetic_of(model.W_E.dtype)
    assert c.norm == "none"
    u, tiny = a.u, a.smallest

    def times(size: np.ndarray, off: np.ndarray, W: np.ndarray, b: np.ndarray | float = 0.0) -> tuple[np.ndarray, ...]:
        """(size, error) of a product with W, bias added, whatever the order of the sums."""
        W, terms = np.abs(W), W.shape[-2] + 3
        large = (size @ W + np.abs(b)) * UP_MANY
        return large, (off @ W + terms * u * large) * UP_MANY + terms * tiny

    with np.errstate(all="ignore"):
        if tokens:
            e = np.abs(w.W_E).max(axis=0)[None] + np.abs(w.b_E)
            e_off = 4 * u * e + tiny
        else:
            lost = a.lost(float(np.abs(w.scale).max()))
            e, e_off = times(edge, 4 * u * edge + lost, w.W_E, w.b_E)
        if c.code != "none":
            e = e + np.abs(w.P)
            e_off = e_off + 2 * u * e
        e, e_off = (np.broadcast_to(t, (c.tokens, c.d_model)) for t in (e, e_off))
        if c.special_tokens:
            e, e_off = np.concatenate([e, np.abs(w.S)]), np.concatenate([e_off, np.zeros_like(w.S)])
        asks, asks_off = e[c.read_rows], e_off[c.read_rows]
        biases = [np.abs(getattr(w, f"b_{s}"))[:, None] if c.projection_bias else 0.0 for s in "QKV"]
        q, q_off = times(asks[None], asks_off[None], w.W_Q, biases[0])
        k, k_off = times(e[None], e_off[None], w.W_K, biases[1])
        v, v_off = times(e[None], e_off[None], w.W_V, biases[2])
        root, T = np.sqrt(c.d_k), c.all_tokens
        s = q @ k.swapaxes(1, 2) / root
        s_off = (q_off @ (k + k_off).swapaxes(1, 2) + q @ k_off.swapaxes(1, 2)) / root + (c.d_k + 6) * u * s + tiny
        widest, off = s.max(axis=(1, 2)), s_off.max(axis=(1, 2))
        exponent = 2 * off + u * np.minimum(2 * widest, VANISHED) + 2 * a.exp_error
        relative = np.where(exponent < MOST_EXPONENT, 2.5 * np.expm1(exponent), np.inf) + (2 * T + 8) * u
        z = v.max(axis=1)  # an average of values
        z_off = relative[:, None] * z + v_off.max(axis=1) * (1 + relative[:, None]) + 2 * T * tiny * (1 + z)
        h, h_off = times(z.reshape(-1), z_off.reshape(-1), w.W_O, w.b_O if c.projection_bias else 0.0)
        if c.residual:
            h, h_off = h + asks.max(axis=0), h_off + asks_off.max(axis=0) + u * (h + asks.max(axis=0))
        hidden, hidden_off = times(h, h_off, w.W_1, w.b_1)
        active_off = STEEPEST[c.activation] * hidden_off + (0 if c.activation == "relu" else 16 * u * hidden) + tiny
        y, y_off = times(hidden, active_off, w.W_2, w.b_2)
        if c.residual:
            y, y_off = y + h, y_off + h_off + u * (y + h)
        if c.readout == "mean":
            y_off = y_off + (c.tokens + 2) * u * y
        out, out_off = times(y, y_off, w.W_R, w.b_R)
        large = max(float(t.max(initial=0.0)) for t in (e, q, k, v, s, h, hidden, y, out))
        fits = large < a.overflow / 64 / max(T, c.d_model, c.ffn_width)
        rounding = float(out_off.max()) * UP_MANY
    return Reach(e, z * UP_MANY, hidden * UP_MANY, rounding if fits and np.isfinite(rounding) else np.inf)
