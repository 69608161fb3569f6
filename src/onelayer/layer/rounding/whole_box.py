"""How far rounding can take the gates of the theorem: one bound for the whole box.

Write u = 2^−53 for float64. The model computes, for a gate of sharpness β with normalised coordinates in [−½, ½]:

    x̂ = fl(fl(x − shift)·scale)        off by at most e_x (below) from the exact normalisation of the box
    s_j = fl(fl(β b_j) − fl(β x̂_j))     three roundings of numbers of size at most β/2, β/2, β, and b_j itself rounded
    α = softmax(0, s_1, …, s_D)         the largest score is subtracted first, each exp is off by at most κu relative

Let δ_j be the relative error of the j-th exponential. Since ∂F/∂(log e_j) = F(1[j=0] − p_j),

    |ΔF| ≤ F(1−F)|δ_0| + F Σ_j p_j |δ_j|.

Scores: s_0 = 0 is exact, so Δs enters with F Σ_j p_j ≤ F(1−F) ≤ ¼. The subtraction of the largest score costs u·a_j with
a_j = s_max − s_j, and p_j a_j ≤ a_j e^(−a_j) ≤ 1/e: at most u(D+1)/e. The exponentials cost 2κu·F(1−F) ≤ κu/2. The sum of
D + 1 terms costs D·u and the division at most 2u (a reciprocal and a product). Altogether

    |ΔF| ≤ ¼|β|(e_x + 2.75u) + u(0.37(D+1) + κ/2 + D + 2),

with 1% added for the products of small terms. Masked tokens have weight exactly 0 on both sides. The sum over M heads is
a dot product: it adds Mu/(1−Mu) per unit of Σ|c|. The residual stream adds 0, and the read-out one rounding of T.
"""

import math
from dataclasses import dataclass

from ...common.outward import U
from ..arithmetic import FLOAT64

EXP_ULPS = FLOAT64.exp_error / U  # κ: exp is assumed within κ·u relative; near 1.1 was measured for torch and NumPy
INFLATION = 1.01


@dataclass(frozen=True)
class GateRounding:
    """Bounds for float64 gates on a box whose ends are at most `reach` sides away from 0."""

    dimension: int
    reach: float  # max over coordinates of max(|low|, |high|)/side

    @property
    def normalisation(self) -> float:
        """e_x: shift is within u·|centre| of the centre, scale within 3u of 1/side, then two roundings."""
        return U * (3 + 2 * self.reach) * INFLATION

    def gate(self, sharpness: float) -> float:
        """|ΔF| of one gate; infinite where the products of errors are not negligible."""
        score = abs(sharpness) * (self.normalisation + 2.75 * U)
        if score > 1e-3:
            return math.inf
        D = self.dimension
        return INFLATION * (score / 4 + U * (0.37 * (D + 1) + EXP_ULPS / 2 + D + 2))

    def layer(self, sharpness: float, total: float, heads: int, largest: float) -> float:
        """|ΔT| of Σ_k c_k F_k with Σ|c_k| = total, |T| ≤ largest."""
        dot = heads * U / (1 - heads * U)
        return INFLATION * total * (self.gate(sharpness) + dot) + 2 * U * largest
