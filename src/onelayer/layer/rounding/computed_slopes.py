"""The running error of slopes that are computed head by head, as the C export does.

For a head with weights w_t, values v_t = values_t + x̂·u_t and keys k_t the slope along x̂_i is

    Σ_t w_t [(v_t − m) k_ti + u_ti],    m = Σ_t w_t v_t,

and with K = max|k_ti|, R and R_k the ranges of values and of keys over the box, V = max|v_t|, n tokens and u the unit roundoff:

    weights   an exponential is off by ε relative (`running.exponentials`). The covariance of v and k is the average of
              (v − a)(k − b) less the product of those of v − a and k − b, a and b the middles of their ranges: with w what
              `running.moved` says of a range of 1, it moves by (3w/2 + w²)·R·R_k
    values    v_t is off by (D + 2)u·V + max|u| e_x, m by that and (n + 6)u·V: both count K times
    sums      products and the sum over tokens cost (n + 8)u of R·K + max|u|

Then the heads are added up and multiplied with the scale: (heads + 6)u per unit of their sizes. Masked tokens that the form
leaves out, and products that it rounds, are part of `Reading.slope_error`.

Underflow, where the form is stored and where it is evaluated, takes less than the smallest normal number ν from a number. From
a weight it takes ν of R·K and of max|u|; from a key or a bias, (1 + D·edge)ν of the exponent, which counts 3/2 times that,
and νR of the sum; from a value or its slope, (1 + edge)ν, twice, of K; from slopes and products ν each.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP
from ..arithmetic import Arithmetic
from ..form import Form
from . import running

INFLATION = 1.15  # products of errors, of which ε is the largest


def gradient_rounding(
    form: Form, scale: tuple[float, ...], edge: float, arithmetic: Arithmetic
) -> Float[Tensor, " slope"]:
    """How far computed slopes can be from those of the form, as output o·D + i; ∞ where scores are too large."""
    D, m, u = form.dimension, len(form.bias), arithmetic.u
    by = torch.tensor(scale, dtype=torch.float64).abs()
    e_x = 2.1 * u * edge + arithmetic.lost(float(by.max()))
    x, x_off = torch.full((D,), edge, dtype=torch.float64), torch.full((D,), e_x, dtype=torch.float64)
    total, sizes = 2 * u * form.linear.abs() + arithmetic.smallest, form.linear.abs()  # [coordinate, out]
    for block in form.blocks:
        gone, n = ~block.there[..., None], block.biases.shape[1]
        keys, biases = block.keys.masked_fill(gone, 0.0), block.biases.masked_fill(~block.there, 0.0)
        S, off = running.sums(x.numpy(), x_off.numpy(), keys.transpose(1, 2).numpy(), biases.numpy(), arithmetic)
        exponent = 1.01 * (off + 2 * u * S.max(axis=1, keepdims=True) + arithmetic.exp_error)
        weights = torch.from_numpy(running.moved(running.exponentials(exponent.max(axis=1)), 1.0))[:, None, None]
        swing = block.slopes.abs().sum(dim=2) * edge
        high = (block.values + swing).masked_fill(gone, -torch.inf).amax(dim=1)  # [head, out]
        low = (block.values - swing).masked_fill(gone, torch.inf).amin(dim=1)
        V, R = torch.maximum(high.abs(), low.abs()), high - low
        K = keys.abs().amax(dim=1)  # [head, coordinate]
        moves = block.slopes.abs().masked_fill(gone[..., None], 0.0).amax(dim=1)  # [head, coordinate, out]
        off_values = (n + D + 8) * u * V + 2 * moves.sum(dim=1) * e_x  # of v_t and of m together
        per_slope = torch.einsum("hi,ho->hio", K, off_values + (n + 8) * u * R) + (n + 8) * u * moves
        covariance = torch.einsum("hi,ho->hio", block.key_spreads(), R)
        reweighted = weights * ((1.5 + weights) * covariance + 2 * moves)  # u_ti lies within ± `moves`
        vanished = (n + D) * arithmetic.smallest * (1 + edge) * (1 + moves + torch.einsum("hi,ho->hio", 1 + K, 1 + R))
        total = total + (per_slope + reweighted + 4 * vanished).sum(dim=0)
        sizes = sizes + (torch.einsum("hi,ho->hio", K, R) + moves).sum(dim=0)
    if not float((sizes * (1 + by[:, None])).max()) < arithmetic.overflow / 64:
        return torch.full((m * D,), torch.inf, dtype=torch.float64)
    total = total + (form.heads + 6) * u * sizes
    found = (INFLATION * total * by[:, None]).T.flatten() * UP + 2 * arithmetic.smallest  # the scale may take it there
    return found.nan_to_num(nan=torch.inf)
