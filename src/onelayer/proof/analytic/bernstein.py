"""Interpolation of degree p at Chebyshev points stretched to contain ±1, and its Bernstein coefficients.

Nodes t_k = −cos((2k + 1)π/(2p + 2))/c with c = cos(π/(2p + 2)), so that t_0 = −1 and t_p = 1. With ω(t) = Π(t − t_k) =
2^(−p) c^(−p−1) T_{p+1}(ct), the interpolant I_p of a function φ on [−1, 1] is off by at most

    ‖ω‖·max |φ^(p+1)|/(p + 1)!,    ‖ω‖ ≤ 2^(−p) c^(−p−1)                                     (`node_polynomial`)
    4 V r^(−p)/(r − 1)    if φ is analytic and |φ| ≤ V on the Bernstein ellipse of parameter ρ   (`ellipse_factor`)

where r < ρ is the largest parameter whose ellipse, shrunk by 1/c, lies in that of ρ: the nodes ct_k are Chebyshev points.

The polynomial is a mean, with positive weights, of its Bernstein coefficients γ = B φ(t): these bound it, and those at the
ends are its values there. B, its norm and the Lebesgue constant are computed in balls, and rounded.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from flint import arb, arb_mat, ctx

from ...common.outward import UP

HIGHEST = {1: 20, 2: 14, 3: 10}  # degree, by the number of coordinates
HIGHEST_ELSE = 8  # with more coordinates
PRECISION = 256  # bits
GRID = 16  # points per degree, by which the Lebesgue constant is bounded
RHOS = np.array([1.5, 2.0, 2.7, 3.6, 5.0, 7.0, 10.0, 15.0, 25.0, 45.0, 90.0])  # of the ellipses that are tried


def highest_degree(dimension: int) -> int:
    return HIGHEST.get(dimension, HIGHEST_ELSE)


@dataclass(frozen=True)
class InterpolationOfDegree:
    """What interpolation of one degree needs: nodes and matrix rounded to nearest, constants rounded up."""

    nodes: np.ndarray
    matrix: np.ndarray  # B, [coefficient, node]; every entry within u of its size
    norm: float  # ≥ the largest Σ|B| of a row
    lebesgue: float  # ≥ max Σ|ℓ_k(t)|


@cache
def interpolation(p: int) -> InterpolationOfDegree:
    """Degree p ≥ 1."""
    with ctx.workprec(PRECISION):
        t = _nodes(p)
        u = [arb(0), *((x + 1) / 2 for x in t[1:-1]), arb(1)]
        rows = [[arb(math.comb(p, j)) * x**j * (1 - x) ** (p - j) for j in range(p + 1)] for x in u]
        B = arb_mat(rows).inv().tolist()
        norm = max(float(sum((abs(b) for b in row), arb(0)).upper()) for row in B)
        matrix = np.array([[float(b.mid()) for b in row] for row in B])
        return InterpolationOfDegree(np.array([float(x.mid()) for x in t]), matrix, norm * UP, _lebesgue(p, t))


def _nodes(p: int) -> list[arb]:
    c = (arb.pi() / (2 * p + 2)).cos()
    inner = [-(arb.pi() * (2 * k + 1) / (2 * p + 2)).cos() / c for k in range(1, p)]
    return [arb(-1), *inner, arb(1)]


def _lebesgue(p: int, t: list[arb]) -> float:
    """max Σ|ℓ_k|: at its largest it is a polynomial Σ ±ℓ_k of degree p, which is bounded by N of its values (Ehlich–Zeller)."""
    weights = [1 / math.prod((x - y for j, y in enumerate(t) if j != i), start=arb(1)) for i, x in enumerate(t)]
    N, largest = GRID * p + 1, arb(0)
    for k in range(N):
        y = (arb.pi() * (2 * k + 1) / (2 * N)).cos()
        gaps = [y - x for x in t]
        if any(gap.contains(0) for gap in gaps):  # a node, where the sum is 1: N is odd, and 0 may be one
            value = arb(1)
        else:
            whole = math.prod((abs(g) for g in gaps), start=arb(1))
            value = whole * sum((abs(w / g) for w, g in zip(weights, gaps, strict=True)), arb(0))
        largest = value if value > largest else largest
    return float((largest / (arb.pi() * p / (2 * N)).cos()).upper()) * UP


@cache
def lebesgue(highest: int) -> np.ndarray:
    """Λ of all degrees up to the highest; 1 for degree 0, which is not used."""
    return np.array([1.0, *(interpolation(p).lebesgue for p in range(1, highest + 1))])


@cache
def node_polynomial(highest: int) -> np.ndarray:
    """‖ω‖ of all degrees up to the highest."""
    c = [math.cos(math.pi / (2 * p + 2)) * (1 - 1e-15) for p in range(highest + 1)]
    return np.array([math.inf, *(2.0**-p * c[p] ** -(p + 1) * UP for p in range(1, highest + 1))])


@cache
def ellipse_factor(highest: int) -> np.ndarray:
    """4 r^(−p)/(r − 1), [degree, ρ]; ∞ where no ellipse fits."""
    real, across = (RHOS + 1 / RHOS) / 2, (RHOS - 1 / RHOS) / 2
    found = np.full((highest + 1, len(RHOS)), np.inf)
    for p in range(1, highest + 1):
        a, b = (math.cos(math.pi / (2 * p + 2)) * half for half in (real, across))
        r = np.minimum(a + np.sqrt(np.maximum(a * a - 1, 0.0)), b + np.sqrt(b * b + 1)) * (1 - 1e-9)
        fits = (a > 1) & (r > 1.01)
        found[p, fits] = 4 * r[fits] ** -float(p) / (r[fits] - 1) * UP
    return found
