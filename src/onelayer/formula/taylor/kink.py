"""Kinks: max(u_1, …, u_n) on Taylor models, with a symbol for what is not linear.

On a box where one argument is proved the largest, the maximum is that argument. Elsewhere, with weights λ ≥ 0, Σλ = 1,

    max(u) = Σ_i λ_i u_i + ρ,    0 ≤ ρ ≤ w,    and the symbol is κ = ρ − w/2.

For two arguments with u_1 − u_2 ∈ [l, h], λ_1 = h/(h − l) gives w = −l·h/(h − l), the best linear enclosure; for more
arguments the contenders have equal weights. If two kinks have arguments v_i − v_1 = s (u_i − u_1) + δ_i, s > 0, |δ_i| ≤ E,
then their symbols differ by little, and one can replace the other:

    |κ_v − s κ_u| ≤ 2E + s Σ_i |λ'_i − λ_i| max |u_i − u_1| + |w' − s w|/2.

That is how a max-head cancels the max of a formula.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from ...common.outward import UP_FEW, U
from .series import TINY, Space, Taylor

TIE = 1e-9  # relative: an argument this little below the largest still counts as a contender
FEW = 6  # up to this many kinks, every one is compared with every other
NEARLY = 0.9  # differences with at least this cos² of the angle between them are compared in earnest
PERMUTED = 4  # up to this many arguments are matched in any order, more in the order that seems best


@dataclass(frozen=True)
class KinkSymbol:
    """The symbol of max(u_1, …, u_n): its arguments, their weights [n, box], whether they contend, and w/2."""

    arguments: tuple[Taylor, ...]
    weights: np.ndarray
    contends: np.ndarray
    half: np.ndarray  # [box]; 0 where the maximum is decided


def maximum(arguments: list[Taylor]) -> Taylor:
    """max(u_1, …, u_n) of models of shape [box]."""
    space = arguments[0].space
    parts = [u.flat() for u in arguments]
    ranges = [u.range() for u in parts]
    low, high = np.stack([r[0] for r in ranges]), np.stack([r[1] for r in ranges])
    with np.errstate(all="ignore"):
        floor = low.max(axis=0)
        size = np.maximum(np.abs(low), np.abs(high)).max(axis=0)
        contends = high >= floor - TIE * size
    some = np.flatnonzero(contends.any(axis=1)).tolist()
    arguments, parts = [arguments[i] for i in some], [parts[i] for i in some]
    low, high, contends = low[some], high[some], contends[some]
    weights = contends / contends.sum(axis=0)
    two = contends.sum(axis=0) == 2
    for i, j in itertools.combinations(range(len(parts)), 2):
        pair = two & contends[i] & contends[j]
        if pair.any():
            l, h = (parts[i] - parts[j]).range()
            with np.errstate(all="ignore"):
                share = np.clip(np.where(np.isfinite(h - l) & (h > l), h / (h - l), 0.5), 0.0, 1.0)
            weights[i] = np.where(pair, share, weights[i])
            weights[j] = np.where(pair, 1 - weights[i], weights[j])
    linear = parts[0].times(weights[0])
    for u, weight in zip(parts[1:], weights[1:], strict=True):
        linear = linear + u.times(weight)
    with np.errstate(all="ignore"):
        above = [np.where(c, (u - linear).range()[1], 0.0) for u, c in zip(parts, contends, strict=True)]
        width = np.maximum(np.stack(above).max(axis=0), 0.0)
        linear.r = linear.r + 4e-16 * len(parts) * size  # Σλ = 1 up to rounding
        decided = weights.max(axis=0) == 1.0  # then the maximum is that argument, up to `width`
        half = np.where(decided, 0.0, width / 2) * UP_FEW
        lost = ~np.isfinite(width) | ~(linear.r + np.where(decided, width, 0.0) <= (high.max(axis=0) - floor) / 2)
        half = np.where(lost, 0.0, half)
        linear.r = linear.r + np.where(decided, width, TINY)
    if (half > 0).any():
        space.kinks.append(KinkSymbol(tuple(parts), weights, contends, half))
        linear.c[0] += half
        linear.r = linear.r + 2 * U * np.abs(linear.c[0])
        linear.a[len(space.kinks) - 1] = (half > 0).astype(float)
    top = linear.choose(lost, space.between(floor, high.max(axis=0))) if lost.any() else linear
    for u, weight in zip(arguments, weights, strict=True):
        alone = decided & (weight == 1.0) & np.isfinite(width)
        if u.a and alone.any():  # an argument with kinks of its own keeps them
            top = top.choose(alone, Taylor(space, u.c, u.r + np.where(alone, width, 0.0), u.a))
    return top


def merged(g: Taylor, first: int = 0) -> Taylor:
    """The same function with kinks that are multiples of one another joined, box by box.

    With many kinks, those after the first `first` (a model's) are joined to these (the target's), not to each other.
    """
    names = sorted(g.a)
    a = {k: g.a[k].copy() for k in names}
    r = g.r.copy()
    for k, l in itertools.combinations(names, 2):
        if len(names) > FEW and k >= first:
            continue
        factor, error = likeness(g.space, k, l)
        with np.errstate(all="ignore"):
            before = np.abs(a[k]) * g.space.kinks[k].half + np.abs(a[l]) * g.space.kinks[l].half
            joined = a[k] + factor * a[l]
            after = np.abs(joined) * g.space.kinks[k].half + np.abs(a[l]) * error
            better = after <= before * (1 + TIE)  # also if they only add up: a third one may cancel the sum
            slip = np.where(better, np.abs(a[l]) * error + 2.0**-51 * np.abs(joined) * g.space.kinks[k].half, 0.0)
            slip = slip + TINY * g.space.kinks[k].half  # a coefficient that underflows
        a[k], r = np.where(better, joined, a[k]), (r + slip) * UP_FEW
        a[l] = np.where(better, 0.0, a[l])
    return Taylor(g.space, g.c, r, a)


def likeness(space: Space, k: int, l: int) -> tuple[np.ndarray, np.ndarray]:
    """(s, e) per box with |κ_l − s κ_k| ≤ e; e = ∞ where the kinks are unlike."""
    n = max(len(space.kinks[k].arguments), len(space.kinks[l].arguments))
    one, two = (_padded(space.kinks[name], n) for name in (k, l))
    factor, error = np.zeros(space.boxes), np.full(space.boxes, np.inf)
    both = (one.half > 0) & (two.half > 0)
    if not both.any() or (n == 2 and not (both & _parallel(one, two)).any()):
        return factor, error
    orders = list(itertools.permutations(range(n))) if n <= PERMUTED else [tuple(range(n)), _order(one, two, both)]
    with np.errstate(all="ignore"):
        for order in orders:
            weights, contends = two.weights[list(order)], two.contends[list(order)]
            same = both & (contends == one.contends).all(axis=0)
            if not same.any():
                continue
            first = one.contends.argmax(axis=0)
            base_u, base_v = _picked(one.arguments, first), _picked([two.arguments[i] for i in order], first)
            du = [u - base_u for u in one.arguments]
            dv = [two.arguments[i] - base_v for i in order]
            dot = sum(np.where(c, (u.c * v.c).sum(axis=0), 0.0) for u, v, c in zip(du, dv, contends, strict=True))
            square = sum(np.where(c, (u.c * u.c).sum(axis=0), 0.0) for u, c in zip(du, contends, strict=True))
            s = np.where(same & (dot > 0) & (square > 0), dot / square, 0.0)
            off = [np.where(c, (v - u.times(s)).size(), 0.0) for u, v, c in zip(du, dv, contends, strict=True)]
            E = np.stack(off).max(axis=0)
            sizes = np.stack([np.where(c, u.size(), 0.0) for u, c in zip(du, contends, strict=True)])
            shares = (np.abs(weights - one.weights) * sizes).sum(axis=0) * s
            e = (2 * E + shares + np.abs(two.half - s * one.half)) * UP_FEW + TINY
            found = same & (s > 0) & (e < error)
            factor, error = np.where(found, s, factor), np.where(found, e, error)
    return factor, error


def _padded(kink: KinkSymbol, n: int) -> KinkSymbol:
    """The same kink with n arguments, those added without weight: they contend nowhere."""
    more = n - len(kink.arguments)
    if not more:
        return kink
    boxes = kink.weights.shape[1]
    weights = np.concatenate([kink.weights, np.zeros((more, boxes))])
    contends = np.concatenate([kink.contends, np.zeros((more, boxes), bool)])
    return KinkSymbol(kink.arguments + (kink.arguments[0],) * more, weights, contends, kink.half)


def _parallel(one: KinkSymbol, two: KinkSymbol) -> np.ndarray:
    """Boxes where the differences of two arguments each are nearly multiples of one another: a quick test, no proof."""
    du, dv = (kink.arguments[1].c - kink.arguments[0].c for kink in (one, two))
    with np.errstate(all="ignore"):
        parallel: np.ndarray = (du * dv).sum(axis=0) ** 2 >= NEARLY * (du * du).sum(axis=0) * (dv * dv).sum(axis=0)
    return parallel


def _order(one: KinkSymbol, two: KinkSymbol, both: np.ndarray) -> tuple[int, ...]:
    """The arguments of the second kink in the order of the first's: contenders by nearness, where the first is widest."""
    box = int(np.where(both, one.half, -1.0).argmax())
    (mine, others), rows = (np.flatnonzero(kink.contends[:, box]) for kink in (one, two)), list[np.ndarray]()
    for kink, which in ((one, mine), (two, others)):
        row = np.stack([kink.arguments[i].c[:, box] for i in which])
        rows.append((row - row.mean(axis=0)) / max(np.abs(row - row.mean(axis=0)).max(), TINY))
    order, left = np.full(len(one.arguments), -1), list(range(len(others)))
    for i, u in zip(mine, rows[0], strict=True):
        if left:
            order[i] = others[left.pop(int(np.abs(rows[1][left] - u).max(axis=1).argmin()))]
    order[order < 0] = np.setdiff1d(np.arange(len(order)), order)
    return tuple(order.tolist())


def _picked(arguments: "tuple[Taylor, ...] | list[Taylor]", which: np.ndarray) -> Taylor:
    """Argument which[box] on every box."""
    picked = arguments[0]
    for i, u in enumerate(arguments[1:], start=1):
        picked = picked.choose(which == i, u)
    return picked
