"""The steps of a constructed layer on numbers that are affine in the normalised input, with what is lost at each.

For a row i that is read out, every token is affine in x̂, so that

    score_t(x̂) = q_i(x̂)·k_t(x̂)/√d_k    is affine (a token where it is quadratic must be masked),
    value_t(x̂) = e_t(x̂) W^V             is affine.

A token whose score stays at least `GAP` below another's on the box |x̂| ≤ edge has weight 0 in floating point and is left out; a
head with one token left is affine, the average of any other is a symbol. Hidden units are linear where relu(z) − relu(−z) = z
or where a sign is proved, for the real function and for what is computed; other units must be hinges relu(a·x̂ + b), whose
answers are symbols, too. What has no such form is None.

Real errors. A head whose scores are off by R at most and whose values are at most V moves by the covariance of the two along the
way, 2RV·e^(2R) at most; tokens of weight λ that are left out move it by 2λV.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..common.outward import UP, UP_FEW, U
from ..model.transformer import SingleLayerTransformer
from .affine import AffineNumbers, Sums, at_least, linear, plus
from .arithmetic import Arithmetic, arithmetic_of
from .number_range import LEAST
from .rounding.deployed import hat_errors

GAP = {torch.float64: 745.2, torch.float32: 104.0}  # exp(−gap) is below half the smallest positive number
MOST_OFF = 0.1  # of a score, by our own arithmetic: more is not read
Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class AffineLayer:
    """A layer on numbers that are affine in (1, x̂)."""

    w: Weights
    model: SingleLayerTransformer
    arithmetic: Arithmetic
    edge: float
    underflow: float  # a weight loses at most this many times the smallest normal number by underflow
    tokens: AffineNumbers  # [token, model]
    keys: AffineNumbers  # [head, token, width]
    values: AffineNumbers

    @property
    def ends(self) -> np.ndarray:
        """Bounds on the absolute values of the symbols."""
        D = self.model.config.tokens * self.model.config.features_in
        return np.array([1.0] + [self.edge] * D)


@dataclass(frozen=True)
class HeadsOfRow:
    """All heads seen from one row."""

    scores: AffineNumbers  # [head, token]
    kept: np.ndarray  # [head, token]: which tokens have a weight
    lost: np.ndarray  # [head]: at most this much real weight is on the tokens that were left out
    steepest: float  # a bound on the slopes of all scores, those of masked tokens included


def embedded(model: SingleLayerTransformer, a: Arithmetic, edge: float, underflow: float) -> AffineLayer:
    """The tokens x̂ W^E + b^E + p and the special ones, their keys and values."""
    c = model.config
    w = {name: t.detach().to(torch.float64).cpu().numpy() for name, t in model.state_dict().items()}
    D = c.tokens * c.features_in
    hat = AffineNumbers.constant(np.zeros((c.tokens, c.features_in)), 1 + D)
    share, lost = hat_errors(w["shift"].flatten(), w["scale"].flatten(), a)
    at = np.arange(D)
    hat.mid.reshape(D, 1 + D)[at, 1 + at] = 1.0
    hat.off.reshape(D, 1 + D)[at, 1 + at], hat.off[..., 0] = share, at_least(lost).reshape(c.tokens, -1)
    tokens = linear(hat, w["W_E"], w["b_E"], a)
    if c.code != "none":
        tokens = plus(tokens, AffineNumbers.constant(w["P"], 1 + D), a)
    if c.special_tokens:
        special = AffineNumbers.constant(w["S"], 1 + D)
        pairs = ((getattr(tokens, n), getattr(special, n)) for n in ("mid", "rad", "off", "moved", "own"))
        tokens = AffineNumbers(*(np.concatenate(pair) for pair in pairs))
    keys, values = (_projected(tokens, w[name], a) for name in ("W_K", "W_V"))
    return AffineLayer(w, model, a, edge, underflow, tokens, keys, values)


def _projected(x: AffineNumbers, W: np.ndarray, a: Arithmetic) -> AffineNumbers:
    """[head, token, width] from x [token, model] and W [head, model, width]."""
    h, m, width = W.shape
    y = linear(x, W.transpose(1, 0, 2).reshape(m, h * width), None, a)
    return y.each(lambda t: t.reshape(len(t), h, width, t.shape[-1]).swapaxes(0, 1))


def _scores(layer: AffineLayer, q: AffineNumbers) -> tuple[AffineNumbers, np.ndarray]:
    """(q·k_t/√d_k [head, token] from q [head, width], what may be quadratic in it on the box)."""
    a, k, e, c = layer.arithmetic, layer.keys, layer.ends, layer.model.config
    asked = q.each(lambda t: t[:, None])  # [head, 1, width]
    first = Sums(a).add(k, q.mid[:, None, :, :1])
    second = Sums(a).add(asked, k.mid[..., :1])
    fixed = (q.known | ~q.live).all(axis=-1)[:, None]  # [head, 1]: the query is a constant that is computed exactly
    stored = (k.known | ~k.live).all(axis=-1)  # [head, token]: the key is
    at, slow = k.mid[..., 0], q.mid[:, None, :, 0]
    mid = np.einsum("htws,htw->hts", k.mid, np.broadcast_to(slow, at.shape))
    mid = mid + np.einsum("htws,htw->hts", np.broadcast_to(asked.mid, k.mid.shape), at)
    mid[..., 0] -= (at * slow).sum(axis=-1)
    Q, K, dq, dk, rq, rk = (
        t @ e for t in (asked.size, k.size, asked.errors, k.errors, asked.rad, k.rad)
    )  # [head, ·, width], at the edge
    steep = [np.abs(t.mid[..., 1:]).sum(axis=-1) * layer.edge for t in (asked, k)]
    product = ((Q + rq) * (K + rk)).sum(axis=-1) * UP_FEW
    slip = (2 * c.d_k + 4) * (U * product + LEAST)
    rad, off = np.zeros_like(mid), np.zeros_like(mid)
    rad[..., 0] = (Q * rk + rq * K + rq * rk).sum(axis=-1) * UP_FEW + slip
    off[..., 0] = (Q * dk + dq * K + dq * dk).sum(axis=-1) * UP_FEW + slip
    off[..., 0] += (c.d_k + 3) * a.u * product + c.d_k * a.smallest
    general = AffineNumbers(mid, rad, off, mid[..., :0], np.zeros(at.shape[:2]))

    def chosen(name: str) -> np.ndarray:
        one, other, rest = (getattr(t, name) for t in (first.result(), second.result(), general))
        wide = (..., *[None] * (rest.ndim - 2))
        return np.where(fixed[wide], one[:, :, 0], np.where(stored[wide], other[:, :, 0], rest))

    s = AffineNumbers(*(chosen(name) for name in ("mid", "rad", "off", "moved", "own")))
    bent = np.where(fixed | stored, 0.0, (steep[0] * steep[1]).sum(axis=-1))
    root = math.sqrt(c.d_k)  # a power of two
    terms = (
        np.broadcast_to(asked.size @ e, K.shape)[..., None] * k.size
    )  # of the products, [head, token, width, symbol]
    more = s.off + a.score_roundings * a.u * terms.sum(axis=2)
    # q·k may underflow where it is divided, or every q_i, as fused programs do
    more[..., 0] += a.smallest * (root > 1) * (1 + 2 * root * (K + rk + dk).sum(axis=-1)) + LEAST
    # a key or a query that is very small might have taken an error away
    rad = s.rad + np.where(np.arange(s.rad.shape[-1]) == 0, LEAST, 0.0)
    return AffineNumbers(s.mid / root, rad / root, more / root, s.moved, s.own), bent / root


def heads_at(layer: AffineLayer, row: int) -> HeadsOfRow | None:
    """Scores of all heads for the query of one row, and the tokens that keep a weight; None where they are not known."""
    c, e = layer.model.config, layer.ends
    q = _projected(layer.tokens[row : row + 1], layer.w["W_Q"], layer.arithmetic)[:, 0]
    s, bent = _scores(layer, q)
    middle = s.mid[..., 0]
    swing = (np.abs(s.mid[..., 1:]).sum(axis=-1) * layer.edge + bent) * UP
    swing = swing + 1e-12 * (np.abs(middle) + swing)  # what float64 does here
    real, computed = s.rad @ e * UP, s.errors @ e * UP
    seen = np.isin(np.arange(c.all_tokens), c.seen_by(row))
    if not np.isfinite(middle[:, seen] + swing[:, seen] + real[:, seen] + computed[:, seen]).all():
        return None
    sure = np.where(seen, middle - swing, -np.inf).max(axis=1, keepdims=True)
    below = sure - (middle + swing)  # sure distance to the best token that is seen

    def surely(noise: np.ndarray) -> np.ndarray:
        return below - noise - np.where(seen, noise, 0.0).max(axis=1, keepdims=True)

    kept = seen & ~(surely(computed) >= GAP[layer.model.W_E.dtype])
    out = seen & ~kept
    apart = np.where(out, surely(real), 0.0)
    if (apart < 0).any():
        return None
    lost = np.where(out, np.exp(-np.minimum(apart, 700.0)) * UP, 0.0).sum(axis=1)
    many = kept.sum(axis=1) > 1
    needed = kept & (many & (layer.w["W_O"].reshape(c.heads, -1) != 0).any(axis=1))[:, None]
    if (bent[needed] > 0).any() or (real[needed] > MOST_OFF).any():
        return None
    steepest = float((2 * swing + 2 * real).max(initial=0.0)) / layer.edge * UP
    return HeadsOfRow(s, kept, lost, steepest)


@dataclass(frozen=True)
class Averages:
    """The heads that average several tokens: their averages are symbols, d_v for each head."""

    used: np.ndarray  # [used head]
    sizes: np.ndarray  # [average]: bounds on |z|
    real: np.ndarray  # [average]: how far the real average may be from that of the form
    vanished: np.ndarray  # [average]: what weights that underflow can do
    shaken: np.ndarray  # [average]: how far the values may be from the computed ones

    def reach(self, tokens: int, u: float) -> np.ndarray:
        """Bounds on the averages, the real ones, those of the form and the computed ones."""
        return (self.sizes + self.shaken) * (1 + 4 * (tokens + 10) * u) + self.real + self.vanished


def attended(layer: AffineLayer, row: int, heads: HeadsOfRow, loose: bool) -> tuple[AffineNumbers, Averages]:
    """The stream of a row after attention, [model], over the symbols (1, x̂, averages), Eq. (6)–(8)."""
    c, a, v, e = layer.model.config, layer.arithmetic, layer.values, layer.ends
    W_O = layer.w["W_O"].reshape(c.heads, c.d_v, c.d_model)
    seen = np.isin(np.arange(c.all_tokens), c.seen_by(row))
    everything = ((v.size + v.rad) @ e * UP)[:, seen].max(axis=1)  # [head, width]: values of masked tokens, too
    gone = at_least(2 * c.all_tokens * a.smallest * layer.underflow * everything)  # weights that underflow
    several = (heads.kept.sum(axis=1) > 1) & (W_O != 0).any(axis=(1, 2))
    used, alone = np.flatnonzero(several), np.flatnonzero(heads.kept.sum(axis=1) == 1)
    K, symbols = len(used) * c.d_v, len(e)
    hidden = ~heads.kept[used][..., None]
    sizes = np.where(hidden, 0.0, np.abs(v.mid[used]) @ e).max(axis=1, initial=0.0) * UP
    off_value = np.where(hidden, 0.0, v.rad[used] @ e).max(axis=1, initial=0.0)
    shaken = np.where(hidden, 0.0, v.errors[used] @ e).max(axis=1, initial=0.0) * UP
    off_score = np.where(heads.kept, heads.scores.rad @ e, 0.0).max(axis=1)[used, None]
    real = 2 * off_score * np.exp(2 * off_score) * (sizes + off_value) + off_value
    real = (real + 2 * heads.lost[used, None] * everything[used] + LEAST) * UP
    averages = Averages(used, *(t.flatten() for t in (sizes, real, gone[used], shaken)))
    z = v[alone, heads.kept[alone].argmax(axis=1)]  # [head, width]
    hides = heads.lost[alone, None] > 0
    z.rad[..., 0] += hides * (2 * heads.lost[alone, None] * everything[alone] * UP + LEAST)
    z.off[..., 0] += gone[alone] * UP
    if loose or a.u > arithmetic_of(a.dtype).u:  # a weight of 1 may be rounded
        z = replace(z, own=z.own + 8 * a.u)
    z = z.each(lambda t: t.reshape(len(alone) * c.d_v, t.shape[-1])).wider(symbols + K, K)
    sums = Sums(a).add(z, W_O[alone].reshape(-1, c.d_model))
    stream = sums.add_averages(W_O[used].reshape(-1, c.d_model), symbols + K).result()
    if c.residual:
        stream = plus(layer.tokens[row].wider(symbols + K, K), stream, a)
    return stream, averages


def passed(layer: AffineLayer, stream: AffineNumbers, averages: Averages) -> tuple[AffineNumbers, AffineNumbers] | None:
    """(outputs, hinges [hinge] as they are before the ReLU); outputs over the symbols (1, x̂, averages, hinges)."""
    c, a, w, e = layer.model.config, layer.arithmetic, layer.w, layer.ends
    symbols, K = len(e), len(averages.sizes)
    u = linear(stream, w["W_1"], w["b_1"], a)
    reach = averages.reach(c.all_tokens, a.u)
    ends = np.concatenate([e, reach])
    around = np.abs(u.mid[:, 1:symbols]).sum(axis=1) * layer.edge + u.moved @ reach + (u.rad + u.errors) @ ends
    around = around * UP + 1e-12 * np.abs(u.mid[:, 0])
    matters = (w["W_2"] != 0).any(axis=1)
    straight, silent = matters & (u.mid[:, 0] > around), matters & (u.mid[:, 0] < -around)
    open_ = np.flatnonzero(matters & ~straight & ~silent).tolist()
    first, second = opposite_pairs(w["W_1"], w["b_1"], w["W_2"], open_) if open_ else ([], [])
    alone = sorted({*open_} - {*first, *second})
    if (u.moved[alone] != 0).any() or (u.mid[alone, symbols:] != 0).any():
        return None  # a unit that averages open and close
    J = len(alone)
    hidden = u.each(lambda t: np.where((straight | np.isin(np.arange(len(t)), first))[:, None], t, 0.0))
    hidden.off[first] *= 1 + 16 * a.u  # both of a pair may be other than 0, by no more than they are off
    hidden = hidden.wider(symbols + K + J, K)
    for j, unit in enumerate(alone):
        hidden.mid[unit, symbols + K + j] = 1.0
        hidden.rad[unit, : symbols + K], hidden.off[unit, : symbols + K] = u.rad[unit], u.errors[unit]
    y = Sums(a).add(hidden, w["W_2"]).add_numbers(w["b_2"]).add_twins(w["W_2"][second]).result()
    if c.residual:
        y = plus(stream.wider(symbols + K + J, K), y, a)
    return linear(y, w["W_R"], w["b_R"], a), u[alone]


def opposite_pairs(
    W_1: np.ndarray, b_1: np.ndarray, W_2: np.ndarray, units: Sequence[int] | None = None
) -> tuple[list[int], list[int]]:
    """Units i, j with z_j = −z_i and opposite outgoing weights: together they pass z_i on, relu(z)·v − relu(−z)·v = z·v."""
    waiting: dict[bytes, list[int]] = {}
    first, second = list[int](), list[int]()
    for unit in range(len(b_1)) if units is None else units:
        own = np.concatenate([W_1[:, unit], b_1[unit : unit + 1], W_2[unit]]) + 0.0  # no −0
        partners = waiting.get((-own + 0.0).tobytes())
        if partners:
            first.append(partners.pop())
            second.append(unit)
        else:
            waiting.setdefault(own.tobytes(), []).append(unit)
    return first, second
