"""The rounding of slopes that are computed head by head, as the C export does.

For a head with weights w_t, values v_t = values_t + x̂·u_t and keys k_t the slope along x̂_i is

    Σ_t w_t [(v_t − m) k_ti + u_ti],    m = Σ_t w_t v_t,

and with K = max|k_ti|, R and R_k the ranges of values and of keys over the box, V = max|v_t|, n tokens and u the unit roundoff:

    weights   an exponential is off by η relative: scores by d_s = Σ_i|k_ti| e_x + (D + 3)u·S, their distance from the
              largest by 2u·S, exp by κu. All weights then move by at most 2η relative, means of what spans R by 2η·R, and
              the covariance of v and k by at most 2η·R·R_k, and Σ w u by 2η·max|u|
    values    v_t is off by (D + 2)u·V + max|u| e_x, m by that and (n + 6)u·V: both count K times
    sums      products and the sum over tokens cost (n + 8)u of R·K + max|u|

Then the heads are added up and multiplied with the scale: (heads + 6)u per unit of their sizes. Masked tokens that the form
leaves out, and products that it rounds, are part of `Reading.slope_error`. A weight that underflows is off by less than the
smallest normal number, and so is a product with the scale.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP
from ..arithmetic import Arithmetic
from ..form import Form

LARGEST_LOSS = 1e-3  # η beyond which nothing is claimed
INFLATION = 1.02


def gradient_rounding(
    form: Form, scale: tuple[float, ...], edge: float, arithmetic: Arithmetic
) -> Float[Tensor, " slope"]:
    """How far computed slopes can be from those of the form, as output o·D + i; ∞ where scores are too large."""
    D, m, u = form.dimension, len(form.bias), arithmetic.u
    by = torch.tensor(scale, dtype=torch.float64).abs()
    e_x = 2.1 * u * edge + arithmetic.lost(float(by.max()))
    total, sizes = 2 * u * form.linear.abs(), form.linear.abs()  # [coordinate, out]
    for block in form.blocks:
        hidden, n = ~block.there, block.biases.shape[1]
        spread = block.keys.abs().sum(dim=2)
        S = (spread * edge + block.biases.abs()).masked_fill(hidden, 0.0).amax(dim=1)  # [head]
        d_s = spread.masked_fill(hidden, 0.0).amax(dim=1) * e_x + (D + 3) * u * S
        eta = (d_s + 2 * u * S + 2 * arithmetic.exp_error) * 1.01
        if not float(eta.max()) <= LARGEST_LOSS:
            return torch.full((m * D,), torch.inf, dtype=torch.float64)
        gone = hidden[..., None]
        swing = block.slopes.abs().sum(dim=2) * edge
        high = (block.values + swing).masked_fill(gone, -torch.inf).amax(dim=1)  # [head, out]
        low = (block.values - swing).masked_fill(gone, torch.inf).amin(dim=1)
        V, R = torch.maximum(high.abs(), low.abs()), high - low
        K = block.keys.abs().masked_fill(gone, 0.0).amax(dim=1)  # [head, coordinate]
        moves = block.slopes.abs().masked_fill(gone[..., None], 0.0).amax(dim=1)  # [head, coordinate, out]
        off = (n + D + 8) * u * V + 2 * moves.sum(dim=1) * e_x  # of v_t and of m together
        per_slope = torch.einsum("hi,ho->hio", K, off + (n + 8) * u * R) + (n + 8) * u * moves
        covariance = torch.einsum("hi,ho->hio", block.key_spreads(), R) + moves
        vanished = n * arithmetic.smallest * (1 + torch.einsum("hi,ho->hio", K, R) + moves)
        total = total + (per_slope + 2.1 * eta[:, None, None] * covariance + vanished).sum(dim=0)
        sizes = sizes + (torch.einsum("hi,ho->hio", K, R) + moves).sum(dim=0)
    if not float((sizes * (1 + by[:, None])).max()) < arithmetic.overflow / 64:
        return torch.full((m * D,), torch.inf, dtype=torch.float64)
    total = total + (form.heads + 6) * u * sizes
    return (INFLATION * total * by[:, None]).T.flatten() * UP + 2 * arithmetic.smallest  # the scale may take it there
