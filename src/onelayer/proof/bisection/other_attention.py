"""What can stand in the place of the softmax, on Taylor models: sigmoid, linear attention and sparsemax, with their rounding.

Where the weights sum to 1, Z = Σ_t α_t v_t = b + Σ_t α_t (v_t − b) for whatever b; here b is the average of the values under the
weights at the centre of the box. The weights:

    sigmoid    α_t = σ(s_t)
    linear     α_t = p_t/Σ_l p_l, p_t = φ(q)·φ(k_t). On a box where the sign of t is known φ(t) is e^t or 1 + t. Elsewhere
               φ(t) = φ(c) + φ'(c)(t − c) + e with 0 ≤ e ≤ (t − c)²/2, because 0 ≤ φ'' ≤ 1; for c ≥ 0 only t < 0 has e > 0
    sparsemax  α_t = max(e_t − δ, 0), e_t = s_t − τ_A, where A is the support at the centre and τ_A = (Σ_A s_t − 1)/|A|

*Lemma* (sparsemax). With S the support and D = Σ_{t∉A} max(e_t, 0) + Σ_{t∈A} max(−e_t, 0), 0 ≤ δ ≤ D/|S|.
The threshold τ = τ_A + δ is the largest of all (Σ_B s_t − 1)/|B|, attained at B = S (`model.attention_weights`): δ ≥ 0. And as
Σ_A e_t = 1, δ = (Σ_S e_t − 1)/|S| = (Σ_{S∖A} e_t − Σ_{A∖S} e_t)/|S| ≤ D/|S|. ∎ Where the support is A on the whole box D = 0, and
the weights are affine in the scores.

Rounding. Of scores that are off by at most d, σ is off by a factor e^d at most, and by d/4. φ has logarithmic slope at most 1, so
φ(t) with t off by d is off by a factor e^d. A threshold τ moves by at most d; computed from z_t = s_t − max s ≤ 0 its sums have
terms of one sign, each (sum − 1)/k is off by a factor 1 ± (n + 3)u, and so is their maximum, which is at least −1.
"""

import numpy as np

from ...common.outward import UP_FEW, UP_MANY, U
from ...formula.taylor.bounds import LIBRARY
from ...formula.taylor.functions import apply, power
from ...formula.taylor.series import TINY, Taylor
from ...layer.arithmetic import Arithmetic
from .activated import relu_lines
from .attention import Offs, score_rounding, scores_of

SIGMOID_UNITS = 8  # relative error of the deployed sigmoid, in units u: exp within 4, an addition, a division
SIGMOID_ASSUMED = f"sigmoid within {SIGMOID_UNITS} roundings, relative to its value"


def by_sigmoid(
    q: Taylor, k: Taylor, v: Taylor, offs: Offs, root: float, arithmetic: Arithmetic
) -> tuple[Taylor, np.ndarray]:
    """(Z, off) as in `attention.attended`."""
    q, k, v = q.flat(), k.flat(), v.flat()
    s = scores_of(q, k, root)
    d = score_rounding(s, (q, k), offs, root, arithmetic)
    alpha = apply("sigmoid", s).best(np.zeros(s.shape), np.ones(s.shape))
    with np.errstate(all="ignore"):
        high = np.clip(alpha.range()[1], 0.0, 1.0)
        moved = np.fmin(d / 4, high * np.expm1(d))
        off = (moved + SIGMOID_UNITS * arithmetic.u * (high + moved)) * UP_FEW + 2 * arithmetic.smallest
    return _mixed(alpha, off, v, offs[2], None, arithmetic)


def by_features(
    q: Taylor, k: Taylor, v: Taylor, offs: Offs, root: float, arithmetic: Arithmetic
) -> tuple[Taylor, np.ndarray]:
    """(Z, off) of linear attention, as in `attention.attended`; it has no factor 1/√d_k."""
    f, g, v = features(q.flat()), features(k.flat()), v.flat()
    p = scores_of(f, g, 1.0)
    low, high = (np.maximum(t, 0.0) for t in p.range())
    f_ends, g_ends = ([np.maximum(t, 0.0) for t in u.range()] for u in (f, g))
    with np.errstate(all="ignore"):
        low = np.fmax(low, np.einsum("bhrw,bhtw->bhrt", f_ends[0], g_ends[0]) / UP_MANY)
        total = p.sum(-1)
        least = low.sum(axis=-1) / UP_MANY
        inverse = power(total, -1.0, (least, np.full(least.shape, np.inf)))
        ceiling = high / (high + np.maximum(least[..., None] - low, 0.0)) * UP_MANY
        ceiling = np.where(np.isnan(ceiling), 1.0, np.clip(ceiling, 0.0, 1.0))
        alpha = (p * inverse[..., None]).best(np.zeros(p.shape), ceiling)
        # a product is off by a factor 1 ± ε, and by ν for what underflows
        widths, n = f.shape[-1], p.shape[-1]
        exponent = offs[0].max(axis=-1)[..., None] + offs[1].max(axis=-1)[:, :, None, :]
        exponent = exponent + 2 * arithmetic.exp_error + (widths + 6) * arithmetic.u
        epsilon = np.where(exponent < 0.01, np.expm1(exponent) * UP_FEW, np.inf)
        sizes = f_ends[1].max(axis=-1)[..., None] + g_ends[1].max(axis=-1)[:, :, None, :] + 2
        nu = 2 * widths * arithmetic.smallest * sizes / least[..., None] * UP_MANY
        off = ceiling * (epsilon + epsilon.max(axis=-1, keepdims=True) + nu.sum(axis=-1, keepdims=True)) + nu
        off = off * 1.05 + (n + 3) * arithmetic.u * ceiling * 1.05 + arithmetic.smallest
        known = (epsilon.max(axis=-1) + nu.sum(axis=-1) < 0.02) & (least > arithmetic.smallest)
    return _mixed(alpha, np.where(known[..., None], off, np.inf), v, offs[2], _centre(p), arithmetic)


def features(u: Taylor) -> Taylor:
    """φ(u), φ(t) = e^t for t < 0 and 1 + t for t ≥ 0."""
    low, high = u.range()
    c = u.c[0]
    with np.errstate(all="ignore"):
        line = Taylor(u.space, u.c.copy(), u.r)
        line.c[0] += 1
        line.r = line.r + 2 * U * np.abs(line.c[0])
        below = np.exp(np.minimum(c, 0.0))  # φ'(c)
        value = np.where(c < 0, below, 1 + c)
        reach = np.where(c < 0, np.maximum(high - c, c - low), -low)
        bend = reach * reach / 4 * UP_FEW + TINY  # half of what is above the tangent, at most
        bent = Taylor(u.space, u.c.copy(), u.r.copy())
        bent.c[0] = 0.0
        bent = bent.times(below, LIBRARY * below)
        bent.c[0] = value + bend
        bent.r = (bent.r + bend + (LIBRARY + 4 * U) * np.abs(bent.c[0])) * UP_FEW
        ends = [np.where(t < 0, np.exp(np.minimum(t, 0.0)), 1 + t) for t in (low, high)]
        ends = [ends[0] * (1 - 2 * LIBRARY) - TINY, ends[1] * (1 + 2 * LIBRARY) + TINY]
    known = np.isfinite(ends[1])
    y = apply("exp", u).choose(low >= 0, line).choose((low < 0) & (high > 0), bent)
    return y.best(np.where(known, np.maximum(ends[0], 0.0), -np.inf), np.where(known, ends[1], np.inf))


def by_sparsemax(
    q: Taylor, k: Taylor, v: Taylor, offs: Offs, root: float, arithmetic: Arithmetic
) -> tuple[Taylor, np.ndarray]:
    """(Z, off) as in `attention.attended`."""
    q, k, v = q.flat(), k.flat(), v.flat()
    s = scores_of(q, k, root)
    d = score_rounding(s, (q, k), offs, root, arithmetic)
    support = _support(s.c[0])
    share = support / support.sum(axis=-1, keepdims=True)
    mean = s.times(share, 2 * U * share).sum(-1)
    above = s - mean[..., None].broadcast(s.shape)
    above.c[0] += share.max(axis=-1, keepdims=True)
    above.r = above.r + 4 * U * (np.abs(above.c[0]) + 1)  # e_t = s_t − τ_A
    low, high = above.range()
    n = s.shape[-1]
    with np.errstate(all="ignore"):
        apart = np.where(support, np.maximum(-low, 0.0), np.maximum(high, 0.0)).sum(axis=-1, keepdims=True) * UP_MANY
        surely = (low > apart).sum(axis=-1, keepdims=True)  # tokens in every support
        delta = np.where(np.isfinite(apart), apart / np.maximum(surely, 1) * UP_FEW, np.inf)
        alpha = relaxed_relu(above - s.space.between(np.zeros(delta.shape), delta).broadcast(s.shape))
        alpha = alpha.best(np.clip(low - delta - 4 * U, 0.0, 1.0), np.clip(high, 0.0, 1.0))
        slack = (n + 8) * 1.1 * arithmetic.u
        contends = ~(high < -(2.1 * d.max(axis=-1, keepdims=True) + 2 * slack))
        off = d + np.where(contends, d, 0.0).max(axis=-1, keepdims=True) + slack
        off = np.where(contends, off * UP_FEW, 0.0)
    return _mixed(alpha, off, v, offs[2], share, arithmetic)


def relaxed_relu(u: Taylor) -> Taylor:
    """max(u, 0) between two parallel lines where the sign of u is not known."""
    share, width = relu_lines(*u.range())
    y = u.times(share)
    y.c[0] += width / 2
    y.r = y.r + width / 2 * UP_FEW + 4e-16 * np.abs(y.c[0])
    return y


def _support(scores: np.ndarray) -> np.ndarray:
    """The support of sparsemax, about: any set of tokens is as good in the lemma, this one makes D small."""
    with np.errstate(all="ignore"):
        below = np.nan_to_num(scores - scores.max(axis=-1, keepdims=True), nan=0.0, neginf=-1e300)
        sums = np.cumsum(-np.sort(-below, axis=-1), axis=-1) - 1
        support: np.ndarray = below >= (sums / np.arange(1, scores.shape[-1] + 1)).max(axis=-1, keepdims=True)
    return support


def _centre(parts: Taylor) -> np.ndarray:
    """Shares of positive parts at the centre of the box."""
    c = np.maximum(np.nan_to_num(parts.c[0], nan=0.0, posinf=1e300), 1e-300)
    shares: np.ndarray = c / c.max(axis=-1, keepdims=True)
    return shares / shares.sum(axis=-1, keepdims=True)


def _mixed(
    alpha: Taylor, off: np.ndarray, v: Taylor, v_off: np.ndarray, shares: np.ndarray | None, arithmetic: Arithmetic
) -> tuple[Taylor, np.ndarray]:
    """Σ_t α_t v_t, Eq. (6), from weights known up to `off`, all [box, head, row, token], and how far the computed sum is off.

    `shares` say that the weights sum to 1, and what average of the values to take as b.
    """
    n, wide = alpha.shape[-1], (*alpha.shape, v.shape[-1])
    values = v[:, None].broadcast(wide)
    if shares is None:
        moved = values
    else:
        each = np.broadcast_to(shares[..., None], wide)
        base = values.times(each).sum(-2)
        moved = values - base[..., None, :].broadcast(wide)
    (a_low, a_high), (low, high) = (np.clip(t, 0.0, 1.0)[..., None] for t in alpha.range()), moved.range()
    with np.errstate(all="ignore"):
        slack = (n + 4) * U * (a_high * np.maximum(np.abs(low), np.abs(high))).sum(axis=3) + TINY
        least = np.where(low < 0, a_high * low, a_low * low).sum(axis=3) - slack
        most = np.where(high < 0, a_low * high, a_high * high).sum(axis=3) + slack
        if shares is not None:
            least, most = np.fmax(least, low.min(axis=3)), np.fmin(most, high.max(axis=3))
        z = (alpha[..., None] * moved).sum(-2).best(least, most)
        size, v_off, off = v.size()[:, :, None] + v_off[:, :, None], v_off[:, :, None], off[..., None]
        mass = ((a_high + off) * size).sum(axis=3)
        lost = (off * size + a_high * v_off).sum(axis=3) + (n + 3) * arithmetic.u * 1.01 * mass
        lost = lost * UP_MANY + 2 * n * arithmetic.smallest
    return z if shares is None else base + z, np.where(np.isnan(lost), np.inf, lost)
