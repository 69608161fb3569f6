"""Functions of one variable on Taylor models: third-order Taylor expansion at the centre, fourth derivative on the range.

    φ(u) = Σ_{k≤3} φ^(k)(c)/k! (u − c)^k + e,    |e| ≤ max |φ⁗| |u − c|⁴/24

Where the plain range of φ (`bounds`) is tighter than the remainder it takes over.
"""

from functools import partial

import numpy as np

from ...common.outward import UP_FEW, U
from .bounds import BOUNDS, Bounding, Bounds, bounded, farthest, power_bounds
from .expansions import EXPANSIONS, SLIP, Expanding, Expansion
from .series import TINY, Taylor


def apply(name: str, u: Taylor, known: Bounds | None = None) -> Taylor:
    """φ(u); `known` are bounds on u from elsewhere."""
    return applied(EXPANSIONS[name], BOUNDS[name], u, known)


def applied(expansion: Expanding, bounds: Bounding, u: Taylor, known: Bounds | None = None) -> Taylor:
    """A function of u with this expansion and these bounds; none where u has none: u may be undefined there."""
    u = u.flat()
    with np.errstate(all="ignore"):
        low, high = u.range()
        if known is not None:
            low, high = np.maximum(low, known[0]), np.minimum(high, known[1])
        found = _composed(u, expansion(u.c[0], np.minimum(low, u.c[0]), np.maximum(high, u.c[0])))
        return found.best(*bounded(*bounds(low, high), np.isfinite(low) & np.isfinite(high)))


def power(u: Taylor, q: float, known: Bounds | None = None) -> Taylor:
    """u^q where u > 0 (for an integer q also where u < 0); nothing is known where u may be 0 and q < 0."""

    def expansion(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> Expansion:
        a, binomial = [], 1.0
        for k in range(4):
            a.append(binomial * np.power(c, q - k) if binomial else np.zeros_like(c))
            binomial *= (q - k) / (k + 1)
        near, far = farthest(low, high)
        steepest = np.maximum(np.power(near, q - 4), np.power(far, q - 4))
        fourth = abs(binomial) * 24 * steepest * (1 + SLIP) if binomial else np.zeros_like(c)
        if not float(q).is_integer():
            fourth = np.where(low > 0, fourth, np.inf)
        return a, [np.abs(t) * (1 + abs(q)) for t in a], fourth

    return applied(expansion, partial(power_bounds, q=q), u, known)


def _composed(u: Taylor, expansion: Expansion) -> Taylor:
    """Σ_k a_k (u − c)^k with all errors."""
    a, sizes, fourth = expansion
    swing = u.c.copy()
    swing[0] = 0.0
    away = Taylor(u.space, swing, u.r)
    reach = (np.abs(swing).sum(axis=0) + u.r) * UP_FEW
    y = away.times(a[3])
    for k in (2, 1, 0):
        y.c[0] += a[k]
        y.r = y.r + 2 * U * np.abs(y.c[0])
        y = y * away if k else y
    slips, cut = np.zeros_like(reach), fourth + TINY
    for size in reversed(sizes):  # by Horner: a power of the reach alone may underflow
        slips, cut = slips * reach + size * SLIP + TINY, cut * reach
    y.r = (y.r + slips + cut / 24) * UP_FEW + TINY
    return y
