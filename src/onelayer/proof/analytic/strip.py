"""How large a layer can be when one coordinate is complex: |T| on the ellipses that the analytic certificate needs.

Let one coordinate x_i lie on its ellipse, |Im x_i| ≤ B, and the others be real. The exponentials of a head then turn by
the angles keys_ti·Im x_i. Split its tokens into kept ones K, whose angles spread over 2θ, θ = B(max_K keys_ti −
min_K keys_ti)/2 < π/2, and negligible ones N of any angle. Write S_K = Σ_K |e^(s_t)|, S_N = Σ_N |e^(s_t)|, and let
S_N ≤ η S_K on the whole ellipse. After turning all exponentials by the middle of the spread, those of K have real parts
of at least cos θ times their size, so

    |Σ_t e^(s_t)| ≥ cos θ S_K − S_N ≥ (cos θ − η) S_K,

and for η < cos θ the denominator has no zero and

    Σ_t |w_t| = (S_K + S_N)/|Σ_t e^(s_t)| ≤ (1 + η)/(cos θ − η) =: φ.

η comes from one kept token r: |e^(s_t)|/S_K ≤ e^(Re(s_t − s_r)), whose exponent is affine, so that its maximum over the
box with x_i on the ellipse (real half-axis A_i; half-widths h_j of the other sides) is

    s_t(c) − s_r(c) + |keys_ti − keys_ri| A_i + Σ_{j≠i} |keys_tj − keys_rj| h_j.

r is the token with the largest score at the centre c. Tokens are left out of K in the order of these maxima: the sets
of all and of those above each number of NEGLIGIBLE_BELOW are tried, and the smallest φ is taken.

A head's output is an average of its values, with weights that sum to 1 also for complex x: for any constant v,
|Σ_t v_t w_t| ≤ |v| + φ max_t |v_t − v|. With v in the middle of the values this is never worse than the bound 1/sin 2θ on
a single weight of a head with two tokens: |v_1 − v_2|/2 · 1/cos θ = |v_1 − v_2| · sin θ/sin 2θ.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP, UP_FEW
from ...layer.form import Block, Form

NEGLIGIBLE_BELOW = (3e-2, 1e-3, 1e-7)  # shares below which tokens are negligible; tried one after the other
LARGEST_ANGLE = 1.5  # θ from which nothing is claimed
ALL_KEPT_ANGLE = 1.0  # θ up to which all tokens are kept
SMALLEST_GAP = 0.02  # least cos θ − η for which a bound is claimed
AT_ONCE = 2**21  # numbers held at a time


@dataclass(frozen=True)
class Ellipses:
    """Boxes with centre c and half-widths h, and Bernstein ellipses around every side, a parameter ρ per box."""

    centres: Float[Tensor, "box coordinate"]
    halves: Float[Tensor, "box coordinate"]
    rho: Float[Tensor, "box 1"]

    @property
    def real(self) -> Tensor:
        """Half-axes along the real line, h(ρ + 1/ρ)/2."""
        return self.halves * ((self.rho + 1 / self.rho) / 2)

    @property
    def imaginary(self) -> Tensor:
        """Half-axes across it, h(ρ − 1/ρ)/2."""
        return self.halves * ((self.rho - 1 / self.rho) / 2)

    def __getitem__(self, which: slice | Tensor) -> "Ellipses":
        return Ellipses(self.centres[which], self.halves[which], self.rho[which])


def size_on_ellipses(form: Form, ellipses: Ellipses, closely: bool = True) -> Float[Tensor, "box coordinate out"]:
    """An upper bound on |T_o| with coordinate i on its ellipse and the others real in the box; ∞ where none is found.

    Negligible tokens are looked for only if `closely`.
    """
    c, A = ellipses.centres, ellipses.real
    D = c.shape[1]
    fixed = form.bias + c @ form.linear  # what stays at its value at the centre
    sizes = form.bias.abs() + c.abs() @ form.linear.abs()  # for the rounding of `fixed`, whose terms may cancel
    total = (A @ form.linear.abs())[:, None, :].repeat(1, D, 1)
    for block in form.blocks:
        middle, reach = _values(block, c, A)
        fixed = fixed + middle.sum(dim=1)
        sizes = sizes + middle.abs().sum(dim=1)
        if closely:
            phi = weights_sum(block, ellipses)
        else:  # heads with the same spread of keys have the same φ: their reaches add up
            widths, which = block.key_spreads().unique(dim=0, return_inverse=True)
            phi = _phi(ellipses.imaginary[:, None, :] * widths / 2)
            reach = torch.zeros(len(c), len(widths), reach.shape[2], dtype=c.dtype).index_add(1, which, reach)
        total = total + torch.einsum("bhi,bho->bio", phi, reach).nan_to_num(nan=torch.inf, posinf=torch.inf)
    return ((fixed.abs() + 1e-11 * sizes)[:, None, :] + total) * UP


def _values(block: Block, c: Tensor, A: Tensor) -> tuple[Tensor, Tensor]:
    """The middle of a head's values at the centre, and how far any value gets from it, [box, head, out]."""
    hidden = ~block.there[..., None]
    if not block.slopes.any():
        low = block.values.masked_fill(hidden, torch.inf).amin(dim=1)
        high = block.values.masked_fill(hidden, -torch.inf).amax(dim=1)
        middle = (low + high) / 2
        reach = (block.values - middle[:, None]).abs().masked_fill(hidden, 0.0).amax(dim=1)
        return middle.expand(len(c), -1, -1), reach.expand(len(c), -1, -1)
    at_centre = block.values + torch.einsum("bd,htdo->bhto", c, block.slopes)
    rounding = 1e-15 * (c.shape[1] + 2) * (block.values.abs() + block.slopes.abs().sum(dim=2))  # |c| < 1
    swing = torch.einsum("bd,htdo->bhto", A, block.slopes.abs()) + rounding
    top = at_centre.masked_fill(hidden, -torch.inf).amax(dim=2)
    middle = (top + at_centre.masked_fill(hidden, torch.inf).amin(dim=2)) / 2
    reach = ((at_centre - middle[:, :, None]).abs() + swing).masked_fill(hidden, 0.0).amax(dim=2)
    return middle, reach


def weights_sum(block: Block, ellipses: Ellipses) -> Float[Tensor, "box head coordinate"]:
    """φ ≥ Σ_t |w_t| for every head with coordinate i on its ellipse; ∞ where none is found."""
    theta = ellipses.imaginary[:, None, :] * block.key_spreads() / 2
    found = _phi(theta)
    wide = (theta > ALL_KEPT_ANGLE).flatten(1).any(dim=1).nonzero().flatten()
    rows = max(1, AT_ONCE // max(1, block.keys.numel()))
    for some in wide.split(rows):
        found[some] = torch.minimum(found[some], _with_negligible(block, ellipses[some]))
    return found


def _phi(theta: Tensor, eta: Tensor | float = 0.0) -> Tensor:
    """(1 + η)/(cos θ − η), or ∞."""
    gap = torch.cos((theta * UP_FEW).clamp_max(LARGEST_ANGLE)) - eta * UP
    return torch.where((theta < LARGEST_ANGLE) & (gap > SMALLEST_GAP), (1 + eta) / gap, torch.inf) * UP_FEW


def _with_negligible(block: Block, ellipses: Ellipses) -> Float[Tensor, "box head coordinate"]:
    """The smallest φ over the thresholds NEGLIGIBLE_BELOW."""
    c, h, A = ellipses.centres, ellipses.halves, ellipses.real
    there = block.there
    scores = torch.einsum("bd,htd->bht", c, block.keys) + block.biases
    best, place = scores.max(dim=2)
    heads = torch.arange(len(block.biases)).expand(len(c), -1)
    apart = (block.keys[None] - block.keys[heads, place][:, :, None]).abs()  # [box, head, token, coordinate]
    edge = c.abs() + A
    size = torch.einsum("bd,htd->bht", edge, block.keys.abs()) + block.biases.abs().masked_fill(~there, 0.0)
    slack = 2e-15 * (c.shape[1] + 6) * size.amax(dim=2)[:, :, None]
    common = scores - best[:, :, None] + torch.einsum("bhtd,bd->bht", apart, h) * UP_FEW + slack
    exponent = common[..., None] + apart * (A - h)[:, None, None, :] * UP_FEW
    ratio = exponent.clamp_max(600.0).exp() * UP
    across, keys = ellipses.imaginary[:, None, :], block.keys.expand_as(ratio)
    found = torch.full_like(ratio[:, :, 0], torch.inf)
    alive = torch.arange(len(c))  # with fewer tokens kept the phases are smallest: if that fails, all fail
    for threshold in NEGLIGIBLE_BELOW:
        kept = (ratio[alive] > threshold) & there[None, :, :, None]
        top = keys[alive].masked_fill(~kept, -torch.inf).amax(dim=2)
        bottom = keys[alive].masked_fill(~kept, torch.inf).amin(dim=2)
        theta = across[alive] * (top - bottom) / 2
        eta = ratio[alive].masked_fill(kept, 0.0).sum(dim=2)
        found[alive] = torch.minimum(found[alive], _phi(theta, eta))
        alive = alive[(theta < LARGEST_ANGLE).flatten(1).all(dim=1)]
    return found
