"""Softmax attention on Taylor models, Eq. (5)–(7), and what rounding does to it.

With t₀ the token of the largest score at the centre of a box, e_t = exp(s_t − s_t₀) and S = Σ_t e_t ≥ 1,

    Z = Σ_t w_t v_t = v_t₀ + Σ_t e_t (v_t − v_t₀) / S.

Three enclosures compete, entry by entry:
    smooth   the formula above, in Taylor models
    hull     w_t ≤ min(1, e_t): Z − v_t₀ is an average of the v_t − v_t₀, and at most Σ_t min(1, e_t)|v_t − v_t₀|
    maximum  where v_t = γ s_t + const, as in a max-head: Σ_t w_t s_t lies between max s − W((n−1)/e) and max s,
             W Lambert's function, so Z = γ max(s) + const up to γW; max(s) is a kink with its own symbol.

(Of Σ a_t e^(−a_t)/(1 + Σ e^(−a_t)) over a_t ≥ 0, a_t = s_max − s_t: at a stationary point all a_t are equal, to a with
(a − 1)e^(a−1) = (n − 1)/e, and the value is a − 1.)

Rounding, too, is bounded twice: by what errors of the exponentials can do to an average (`_rounding`), and for a max-head by
what errors of the scores can do to a maximum, whatever the sharpness (`_rounding_of_maximum`).
"""

from dataclasses import dataclass

import numpy as np

from ...common.outward import UP, UP_FEW, UP_MANY, U
from ...formula.taylor.functions import apply, power
from ...formula.taylor.kink import maximum
from ...formula.taylor.series import TINY, Taylor
from ...layer.arithmetic import VANISHED, Arithmetic
from ...layer.heads import shortfall
from ...layer.rounding import running

NEGLIGIBLE_SCORE = -40.0  # a token this far below another in score does not count for the enclosure `maximum`
MOST_MAXIMA = 32  # heads per batch that get a symbol

Offs = tuple[np.ndarray, np.ndarray, np.ndarray]  # |computed − exact| of queries, keys, values


def attended(
    q: Taylor, k: Taylor, v: Taylor, offs: Offs, root: float, arithmetic: Arithmetic
) -> tuple[Taylor, np.ndarray]:
    """(Z, off), [box, head, row, width], from q [box, head, row, ·] and k, v [box, head, token, ·].

    What is computed is within `off` of a function that the Taylor model Z encloses, as it does the exact one.
    """
    q, k, v = q.flat(), k.flat(), v.flat()
    s = scores_of(q, k, root)
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
    behind = _behind(s, apart)
    ceiling = np.where(own, 1.0, np.minimum(np.exp(behind) * UP_FEW + TINY, 1.0))[..., None]
    with np.errstate(all="ignore"):
        most = np.minimum((ceiling * np.maximum(high, 0)).sum(axis=3) * UP_FEW, np.maximum(high.max(axis=3), 0))
        least = np.maximum((ceiling * np.minimum(low, 0)).sum(axis=3) * UP_FEW, np.minimum(low.min(axis=3), 0))
    z = ((e[..., None] * moved).sum(-2) * inverse[..., None]).best(least, most)
    z = base + z
    size, swing = np.maximum(np.abs(low), np.abs(high)), np.maximum(np.abs(least), np.abs(most))
    scores_off = score_rounding(s, (q, k), offs, root, arithmetic)
    off = _rounding(apart, own, ceiling[..., 0], size, swing, base, scores_off, offs[2], arithmetic)
    if n > 1:
        line = _proportional_values(behind > NEGLIGIBLE_SCORE, apart, moved, ceiling)
        z, taken = _as_maximum(z, s, best, base, line)
        off = np.fmin(off, _rounding_of_maximum(line, taken, size, base, scores_off, offs[2], arithmetic))
    return z, np.where(np.isnan(off), np.inf, off)


def scores_of(q: Taylor, k: Taylor, root: float) -> Taylor:
    """q·k/√d_k, [box, head, row, token]."""
    keys = k[:, None]
    if not q.c[1:].any():  # constant queries: no product of models
        product = keys.broadcast((*q.shape[:3], *k.shape[2:])).times(q.c[0][:, :, :, None], q.r[:, :, :, None])
    else:
        product = q[:, :, None] * keys
    s = product.sum(-1)
    return s.times(np.full(s.shape, 1 / root), 4e-16 / root)


def _behind(s: Taylor, apart: Taylor) -> np.ndarray:
    """An upper bound on s_t − max s, at most 0: from s_t − s_t₀, and from the ranges of all scores."""
    low, high = s.range()
    floor = low.max(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        lag = high - floor + 4 * U * (np.abs(high) + np.abs(floor))
        lag = np.where(np.isnan(lag), np.inf, lag)
        return np.minimum(np.minimum(apart.range()[1], lag), 0.0)


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


@dataclass(frozen=True)
class ProportionalValues:
    """v_t − v_t₀ = γ(s_t − s_t₀) up to `uneven` for the tokens that count, and what the others can add."""

    gamma: np.ndarray  # [box, head, row, width]
    uneven: np.ndarray  # the same
    kept: np.ndarray  # [box, head, row, token]: the tokens that count
    dropped: np.ndarray  # as γ: how far the weights of the others move Z
    short: np.ndarray  # [box, head, row, 1]: W((n−1)/e) of the n tokens that count


def _proportional_values(counts: np.ndarray, apart: Taylor, moved: Taylor, ceiling: np.ndarray) -> ProportionalValues:
    """The best γ of every head and column of values, in the sense of least squares."""
    shortfalls = np.array([shortfall(n + 1) for n in range(counts.shape[-1])]) * UP
    kept = counts[..., None]
    with np.errstate(all="ignore"):
        short = shortfalls[kept.sum(axis=3) - 1]  # t₀ itself is always kept
        dot = np.where(kept, (moved.c * apart.c[..., None]).sum(axis=0), 0.0).sum(axis=3)
        square = np.where(kept, (apart.c**2).sum(axis=0)[..., None], 0.0).sum(axis=3)
        gamma = np.where(square > 0, dot / square, 0.0)
        gamma = np.where(np.isfinite(gamma), gamma, 0.0)
        slope, sizes = np.broadcast_to(gamma[..., None, :], moved.shape), moved.size()
        uneven_sizes = (moved - apart[..., None].broadcast(moved.shape).times(slope)).size()
        uneven = np.where(kept, uneven_sizes, 0.0).max(axis=3)
        others = np.where(kept, 0.0, ceiling)
        dropped = (others * sizes).sum(axis=3) + others.sum(axis=3) * np.where(kept, sizes, 0.0).max(axis=3)
    return ProportionalValues(gamma, uneven, kept[..., 0], dropped, short)


def _as_maximum(
    z: Taylor, s: Taylor, best: np.ndarray, base: Taylor, line: ProportionalValues
) -> tuple[Taylor, np.ndarray]:
    """z, or γ max(s) + const where that leaves less; and where it does."""
    gamma, short, kept = line.gamma, line.short, line.kept
    with np.errstate(all="ignore"):
        left = (np.abs(gamma) * short / 2 + line.uneven + line.dropped) * UP_FEW + TINY
        useful = (left < z.r) & (gamma != 0)
    heads = np.argwhere(useful.any(axis=(0, 3))).tolist()
    if not heads or len(heads) > MOST_MAXIMA:
        return z, np.zeros_like(useful)
    for head, row in heads:
        contending = np.flatnonzero(kept[:, head, row].any(axis=0))
        top = maximum([s[head, row, int(t)] for t in contending])
        at = best[:, head, row, 0]
        reference = Taylor(s.space, s.c[:, np.arange(len(at)), head, row, at], s.r[np.arange(len(at)), head, row, at])
        over = top - reference
        for width in range(z.shape[-1]):
            g = gamma[:, head, row, width]
            y = base[head, row, width] + over.times(g)
            y.c[0] -= g * short[:, head, row, 0] / 2
            y.r = (y.r + left[:, head, row, width] + 4e-16 * np.abs(y.c[0])) * UP_FEW
            here = useful[:, head, row, width]
            at_entry = (slice(None), head, row, width)
            z.c[(slice(None), *at_entry)] = np.where(here, y.c, z.c[(slice(None), *at_entry)])
            z.r[at_entry] = np.where(here, y.r, z.r[at_entry])
            for kink, coefficient in y.a.items():
                z.a.setdefault(kink, np.zeros(z.shape))[at_entry] = np.where(here, coefficient, 0.0)
    return z, useful


def score_rounding(
    s: Taylor, factors: tuple[Taylor, Taylor], offs: Offs, root: float, arithmetic: Arithmetic
) -> np.ndarray:
    """|computed s − s| [box, head, row, token]."""
    _, off = running.scores((factors[0].size(), factors[1].size()), (offs[0], offs[1]), root, arithmetic)
    with np.errstate(all="ignore"):
        return np.asarray(off + 2.1 * arithmetic.u * s.size())


def _rounding(
    apart: Taylor,
    own: np.ndarray,
    ceiling: np.ndarray,
    size: np.ndarray,
    away: np.ndarray,
    base: Taylor,
    off: np.ndarray,
    v_off: np.ndarray,
    arithmetic: Arithmetic,
) -> np.ndarray:
    """|computed Z − Z|, from |v_t − v_t₀| ≤ size [box, head, row, token, width] and |Z − v_t₀| ≤ away [box, head, row, width].

    Relative to t₀ an exponential is off by ε_t = expm1(off_t + off_t₀ + u(|s_t − s_t₀| + max) + 2(1 + R)κu), R the number of
    rescalings (`layer.rounding.online_softmax`); below t₀, u(|s_t − s_t₀| + 2(max s − s_t₀)), as the largest is subtracted from
    both. The weights then move Z − v_t₀ by at most Σ_t w_t ε_t (|v_t − v_t₀| +
    |Z − v_t₀|); normaliser, division and the sum over n tokens cost (2(n + R) + 8)u of Σ_t w_t |v_t|.
    """
    u, n = arithmetic.u, ceiling.shape[-1]
    with np.errstate(all="ignore"):
        gaps = apart.size()
        largest = gaps.max(axis=-1, keepdims=True)
        at_best = np.where(own, off, 0.0).max(axis=-1, keepdims=True)
        over = apart.range()[1]
        below = over < -1e-9  # always below t₀
        reach = np.where(below, np.minimum(gaps, VANISHED), gaps)
        exponent = off + at_best + u * (reach + np.where(below, 0.0, largest))
        exponent = exponent + 2 * (1 + arithmetic.rescalings) * arithmetic.exp_error
        shift = 2 * u * np.maximum(over.max(axis=-1, keepdims=True), 0.0)  # t₀ need not be the largest
        epsilon = np.where(own, 0.0, running.exponentials(exponent + shift))
        weighted = (ceiling * epsilon)[..., None]
        moves = (weighted * (size + away[..., None, :])).sum(axis=3)
        mass = np.abs(base.size()) + (ceiling[..., None] * size).sum(axis=3)
        most = base.size() + size.max(axis=3)
        return moves * 1.12 * UP_FEW + running.averages(n, mass, most, _largest(v_off), arithmetic)


def _rounding_of_maximum(
    line: ProportionalValues,
    taken: np.ndarray,
    size: np.ndarray,
    base: Taylor,
    off: np.ndarray,
    v_off: np.ndarray,
    arithmetic: Arithmetic,
) -> np.ndarray:
    """`off` where values are proportional to scores, v_t = γ s_t + const up to `uneven`, whatever the sharpness.

    A computed exponential is the exact one of a score s'_t, |s'_t − s_t| ≤ d = off_t + 800u + κu (what is subtracted is the
    largest computed score, and beyond 800 exp has vanished). Averages of s' lie between max s' − W and max s', so those of s
    with the same weights between max s − W − 2d and max s. Weights of the tokens that do not count are at most e^(2d) times
    what they should be. Where the enclosure `maximum` is taken (`taken`), it has max s − W … max s already; elsewhere the
    exact average, too, is somewhere between these, and the two differ by up to W + 2d.
    """
    n = size.shape[3]
    with np.errstate(all="ignore"):
        d = off + VANISHED * arithmetic.u + 1.01 * (1 + arithmetic.rescalings) * arithmetic.exp_error
        counts = np.where(line.kept, d, 0.0).max(axis=-1)[..., None]
        grown = np.exp(2 * d.max(axis=-1))[..., None] * UP_MANY
        moves = np.abs(line.gamma) * 2 * counts + line.dropped * grown
        moves = moves + np.where(taken, 0.0, np.abs(line.gamma) * line.short + 2 * line.uneven + line.dropped)
        most = base.size() + size.max(axis=3)
        return moves * UP_FEW + running.averages(n, most, most, _largest(v_off), arithmetic)


def _largest(v_off: np.ndarray) -> np.ndarray:
    """The largest error of a value, [box, head, row, width]."""
    return np.asarray(v_off.max(axis=2)[:, :, None, :])
