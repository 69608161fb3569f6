"""How large a layer can be when one coordinate is complex: |T| on the ellipses that the analytic certificate needs.

Let one coordinate x_i have imaginary part at most y and the others be real. The scores of a head then have imaginary
parts keys_ti·Im x_i, which spread over at most 2θ, θ = y (max_t keys_ti − min_t keys_ti)/2. After turning all
exponentials by the middle of that spread each makes an angle of at most θ with the real axis, so for θ < π/2

    |Σ_t e^(s_t)| ≥ cos θ Σ_t |e^(s_t)|,    hence Σ_t |w_t| ≤ 1/cos θ    and the denominator has no zero.

A head's output is a weighted average of its values, the weights summing to 1 also for complex x. With c any constant,
|Σ_t v_t w_t| ≤ |c| + max_t |v_t − c| / cos θ.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .form import Form


@dataclass(frozen=True)
class Ellipses:
    """Boxes with centre c and half-widths r, and Bernstein ellipses of parameter ρ around every side."""

    centres: Float[Tensor, "box coordinate"]
    halves: Float[Tensor, "box coordinate"]
    rho: float

    @property
    def real(self) -> Tensor:
        """Half-axes along the real line, r(ρ + 1/ρ)/2."""
        return self.halves * ((self.rho + 1 / self.rho) / 2)

    @property
    def imaginary(self) -> Tensor:
        """Half-axes across it, r(ρ − 1/ρ)/2."""
        return self.halves * ((self.rho - 1 / self.rho) / 2)


def spreads(form: Form) -> Float[Tensor, " coordinate"]:
    """The largest max_t keys_ti − min_t keys_ti over all heads, per coordinate."""
    widest = torch.zeros(form.dimension, dtype=torch.float64)
    for block in form.blocks:
        there = block.there[..., None]
        high = block.keys.masked_fill(~there, -torch.inf).amax(dim=1)
        low = block.keys.masked_fill(~there, torch.inf).amin(dim=1)
        widest = torch.maximum(widest, (high - low).amax(dim=0))
    return widest


def largest(form: Form, ellipses: Ellipses) -> Float[Tensor, "box coordinate out"]:
    """An upper bound on |T_o| with coordinate i on its ellipse and the others real in the box; ∞ where θ ≥ 1.5."""
    c, A, B = ellipses.centres, ellipses.real, ellipses.imaginary
    D = c.shape[1]
    fixed = form.bias + c @ form.linear  # what stays at its value at the centre
    sizes = form.bias.abs() + c.abs() @ form.linear.abs()  # for the rounding of `fixed`, whose terms may cancel
    total = (A @ form.linear.abs())[:, None, :].repeat(1, D, 1)
    for block in form.blocks:
        there = block.there
        at_centre = block.values + torch.einsum("bd,htdo->bhto", c, block.slopes)
        swing = torch.einsum("bd,htdo->bhto", A, block.slopes.abs())
        hidden = ~there[None, :, :, None]
        middle = (
            at_centre.masked_fill(hidden, -torch.inf).amax(dim=2) + at_centre.masked_fill(hidden, torch.inf).amin(dim=2)
        ) / 2
        reach = (
            ((at_centre - middle[:, :, None]).abs() + swing).masked_fill(hidden, 0.0).amax(dim=2)
        )  # [box, head, out]
        high = block.keys.masked_fill(~there[..., None], -torch.inf).amax(dim=1)
        low = block.keys.masked_fill(~there[..., None], torch.inf).amin(dim=1)
        theta = B[:, None, :] * (high - low)[None] / 2  # [box, head, coordinate]
        factor = torch.where(theta < 1.5, 1 / torch.cos(theta.clamp_max(1.5)), torch.inf)
        fixed = fixed + middle.sum(dim=1)
        sizes = sizes + middle.abs().sum(dim=1)
        total = total + torch.einsum("bhi,bho->bio", factor, reach)
    return ((fixed.abs() + 1e-11 * sizes)[:, None, :] + total) * (1 + 1e-9)
