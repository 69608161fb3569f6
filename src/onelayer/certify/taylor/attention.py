"""Softmax attention on Taylor models, Eq. (5)–(7).

With t₀ the token of the largest score at the centre of a box, e_t = exp(s_t − s_t₀) and S = Σ_t e_t ≥ 1,

    Z = Σ_t w_t v_t = v_t₀ + Σ_t e_t (v_t − v_t₀) / S.

Three enclosures compete, entry by entry:
    smooth   the formula above, in Taylor models
    hull     w_t ≤ min(1, e_t): Z − v_t₀ is an average of the v_t − v_t₀, and at most Σ_t min(1, e_t)|v_t − v_t₀|
    maximum  where v_t = γ s_t + const, as in a max-head: Σ_t w_t s_t lies between max s − W((n−1)/e) and max s,
             W Lambert's function, so Z = γ max(s) + const up to γW; max(s) is a kink with a symbol of its own.

(Of Σ a_t e^(−a_t)/(1 + Σ e^(−a_t)) over a_t ≥ 0, a_t = s_max − s_t: at a stationary point all a_t are equal, to a with
(a − 1)e^(a−1) = (n − 1)/e, and the value is a − 1.)
"""

import math

import numpy as np

from ..arithmetic import Arithmetic
from .functions import apply, power
from .kink import maximum
from .series import TINY, UP, Taylor

NEGLIGIBLE = -40.0  # a token so far below another (in score) does not count for the enclosure `maximum`
MOST_MAXIMA = 32  # heads per batch that get a symbol

Offs = tuple[np.ndarray, np.ndarray, np.ndarray]  # |computed − exact| of queries, keys, values


def attended(
    q: Taylor, k: Taylor, v: Taylor, offs: Offs, root: float, arithmetic: Arithmetic
) -> tuple[Taylor, np.ndarray]:
    """(Z, |computed Z − Z|), [box, head, row, width], from q [box, head, row, ·] and k, v [box, head, token, ·]."""
    q, k, v = q.flat(), k.flat(), v.flat()
    s = _scores(q, k, root)
    best = s.c[0].argmax(axis=-1)[..., None]  # t₀ [box, head, row, 1]
    reference = Taylor(s.space, np.take_along_axis(s.c, best[None], axis=-1), np.take_along_axis(s.r, best, axis=-1))
    apart = s - reference.broadcast(s.shape)
    own = np.arange(s.shape[-1]) == best
    apart.c[:, own], apart.r[own] = 0.0, 0.0
    e = apply("exp", apart)
    e.c[:, own], e.r[own] = 0.0, 0.0
    e.c[0][own] = 1.0
    total = e.sum(-1)
    n = s.shape[-1]
    inverse = power(total, -1.0, (np.ones(total.shape), np.full(total.shape, np.inf)))
    base, moved = _differences(v, best)
    low, high = moved.range()
    ceiling = np.where(own, 1.0, np.minimum(np.exp(np.minimum(apart.range()[1], 0.0)) * UP + TINY, 1.0))[..., None]
    with np.errstate(all="ignore"):
        most = np.minimum((ceiling * np.maximum(high, 0)).sum(axis=3) * UP, np.maximum(high.max(axis=3), 0))
        least = np.maximum((ceiling * np.minimum(low, 0)).sum(axis=3) * UP, np.minimum(low.min(axis=3), 0))
    z = ((e[..., None] * moved).sum(-2) * inverse[..., None]).best(least, most)
    z = base + z
    off = _rounding(s, apart, own, ceiling[..., 0], (low, high), (least, most), base, (q, k), offs, root, arithmetic)
    if n > 1:
        z = _as_maximum(z, s, apart, best, base, moved, ceiling)
    return z, off


def _scores(q: Taylor, k: Taylor, root: float) -> Taylor:
    """q·k/√d_k, [box, head, row, token]."""
    keys = k[:, None]
    if not q.c[1:].any():  # constant queries: no product of models
        product = keys.broadcast((*q.shape[:3], *k.shape[2:])).times(q.c[0][:, :, :, None], q.r[:, :, :, None])
    else:
        product = q[:, :, None] * keys
    s = product.sum(-1)
    return s.times(np.full(s.shape, 1 / root), 4e-16 / root)


def _differences(v: Taylor, best: np.ndarray) -> tuple[Taylor, Taylor]:
    """(v_t₀ [box, head, row, width], v_t − v_t₀ [box, head, row, token, width])."""
    boxes, heads, rows, _ = best.shape
    at = (np.arange(boxes)[:, None, None], np.arange(heads)[None, :, None], best[..., 0])
    base = Taylor(v.space, v.c[(slice(None), *at)], v.r[at])
    wide = v[:, None].broadcast((boxes, heads, rows, *v.shape[2:]))
    moved = wide - base[..., None, :].broadcast(wide.shape)
    own = np.arange(v.shape[2]) == best
    moved.c[:, own], moved.r[own] = 0.0, 0.0
    return base, moved


def _as_maximum(
    z: Taylor, s: Taylor, apart: Taylor, best: np.ndarray, base: Taylor, moved: Taylor, ceiling: np.ndarray
) -> Taylor:
    """z, or γ max(s) + const where that leaves less."""
    from scipy.special import lambertw

    shortfalls = lambertw(np.arange(s.shape[-1]) / math.e).real * (1 + 1e-9)  # of 1, 2, … tokens
    with np.errstate(all="ignore"):
        kept = (apart.range()[1] > NEGLIGIBLE)[..., None]
        short = shortfalls[kept.sum(axis=3) - 1]  # [box, head, row, 1]; t₀ itself is always kept
        dot = np.where(kept, (moved.c * apart.c[..., None]).sum(axis=0), 0.0).sum(axis=3)
        square = np.where(kept, (apart.c**2).sum(axis=0)[..., None], 0.0).sum(axis=3)
        gamma = np.where(square > 0, dot / square, 0.0)  # [box, head, row, width]
        gamma = np.where(np.isfinite(gamma), gamma, 0.0)
        spread = moved - apart[..., None].broadcast(moved.shape).times(
            np.broadcast_to(gamma[..., None, :], moved.shape)
        )
        uneven = np.where(kept, spread.size(), 0.0).max(axis=3)
        dropped = (np.where(kept, 0.0, ceiling) * moved.size()).sum(axis=3) + np.where(kept, 0.0, ceiling).sum(
            axis=3
        ) * np.where(kept, moved.size(), 0.0).max(axis=3)
        left = (np.abs(gamma) * short / 2 + uneven + dropped) * UP + TINY
        useful = (left < z.r) & (gamma != 0)
    heads = np.argwhere(useful.any(axis=(0, 3))).tolist()
    if not heads or len(heads) > MOST_MAXIMA:
        return z
    for head, row in heads:
        contending = np.flatnonzero(kept[:, head, row, :, 0].any(axis=0))
        top = maximum([s[head, row, int(t)] for t in contending])
        at = best[:, head, row, 0]
        reference = Taylor(s.space, s.c[:, np.arange(len(at)), head, row, at], s.r[np.arange(len(at)), head, row, at])
        over = top - reference
        for width in range(z.shape[-1]):
            g = gamma[:, head, row, width]
            y = base[head, row, width] + over.times(g)
            y.c[0] -= g * short[:, head, row, 0] / 2
            y.r = (y.r + left[:, head, row, width] + 4e-16 * np.abs(y.c[0])) * UP
            here = useful[:, head, row, width]
            at_entry = (slice(None), head, row, width)
            z.c[(slice(None), *at_entry)] = np.where(here, y.c, z.c[(slice(None), *at_entry)])
            z.r[at_entry] = np.where(here, y.r, z.r[at_entry])
            for kink, coefficient in y.a.items():
                z.a.setdefault(kink, np.zeros(z.shape))[at_entry] = np.where(here, coefficient, 0.0)
    return z


def _rounding(
    s: Taylor,
    apart: Taylor,
    own: np.ndarray,
    ceiling: np.ndarray,
    moved: tuple[np.ndarray, np.ndarray],
    swing: tuple[np.ndarray, np.ndarray],
    base: Taylor,
    factors: tuple[Taylor, Taylor],
    offs: Offs,
    root: float,
    arithmetic: Arithmetic,
) -> np.ndarray:
    """|computed Z − Z|.

    Relative to t₀ an exponential is off by ε_t = expm1(off_t + off_t₀ + u(|s_t − s_t₀| + max) + 2κu). The weights then move
    Z − v_t₀ by at most Σ_t w_t ε_t (|v_t − v_t₀| + |Z − v_t₀|); normaliser, division and the sum over n tokens cost (2n + 8)u
    of Σ_t w_t |v_t|.
    """
    u, n = arithmetic.u, s.shape[-1]
    (q, k), (q_off, k_off, v_off) = factors, offs
    with np.errstate(all="ignore"):
        q_size, k_size = q.size(), k.size()
        dot = lambda a, b: np.einsum("bhrw,bhtw->bhrt", a, b)  # noqa: E731
        exact = dot(q_size, k_size)
        off = (dot(q_size, k_off) + dot(q_off, k_size + k_off) + (q.shape[-1] + 2) * u * exact) / root * 1.01
        off = off + 2.1 * u * s.size() + arithmetic.smallest
        gaps = apart.size()
        largest = gaps.max(axis=-1, keepdims=True)
        at_best = np.where(own, off, 0.0).max(axis=-1, keepdims=True)
        reach = np.where(ceiling < 1, np.minimum(gaps, 800.0), gaps)
        exponent = off + at_best + u * (reach + np.where(ceiling < 1, 0.0, largest)) + 2 * arithmetic.exp_error
        shift = u * np.maximum(apart.range()[1].max(axis=-1, keepdims=True), 0.0)  # t₀ need not be the largest
        epsilon = np.where(exponent + shift < 0.1, np.expm1(exponent + shift) * UP, np.inf)
        epsilon = np.where(own, 0.0, epsilon)
        size = np.maximum(np.abs(moved[0]), np.abs(moved[1]))  # [box, head, row, token, width]
        away = np.maximum(np.abs(swing[0]), np.abs(swing[1]))  # [box, head, row, width]
        weighted = (ceiling * epsilon)[..., None]
        moves = (weighted * (size + away[..., None, :])).sum(axis=3)
        mass = np.abs(base.size()) + (ceiling[..., None] * size).sum(axis=3)
        values = v_off.max(axis=2)[:, :, None, :]
        total = (moves * 1.12 + (2 * n + 8) * u * mass + values * (1 + (2 * n + 8) * u)) * UP + n * arithmetic.smallest
        fits = ((exact + s.size()).max(axis=-1)[..., None] < arithmetic.overflow / 8) & (
            n * mass < arithmetic.overflow / 8
        )
        return np.where(fits, total, np.inf)
