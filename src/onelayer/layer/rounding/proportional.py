"""Heads whose values are proportional to their scores: smooth maxima, and what rounding can do to them.

If v_t = γ s_t + const (up to `uneven`), a head outputs γ Σ_t w_t s_t + const, and Σ_t w_t s_t lies between max s − W and max s,
W = W((n−1)/e). Weights computed from exponentials that are off by factors e^(η_t), |η_t| ≤ d, are the exact weights of scores
s' = s + η, so that with them Σ_t w'_t s_t lies between max s − W − 2d and max s: the two outputs differ by at most

    |γ|(W + 2d) + 2·uneven,

whatever the sharpness. (The other bound, in `deployed.py`, grows with the score errors times the spread of the values.)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP_MANY
from ..arithmetic import FLOAT64
from ..form import Block
from ..heads import shortfall


@dataclass(frozen=True)
class ProportionalFit:
    """γ of every head and output, and |v_t − v_0 − γ(s_t − s_0)| ≤ left + Σ_i slopes_i |x_i|, rounding included."""

    gamma: Float[Tensor, "head out"]
    left: Float[Tensor, "head token out"]
    slopes: Float[Tensor, "head token coordinate out"]
    short: Float[Tensor, " head"]

    def uneven(self, X: Float[Tensor, "box coordinate"]) -> Float[Tensor, "box head out"]:
        """The largest deviation for |x̂| ≤ X."""
        if self.left.shape[1] < 2:
            return torch.zeros(len(X), *self.gamma.shape, dtype=X.dtype)
        return (self.left + torch.einsum("bd,htdo->bhto", X, self.slopes)).amax(dim=2) * UP_MANY


def proportional_fit(block: Block) -> ProportionalFit:
    """The fit with the γ of least squares."""
    there = block.there
    first = there.to(torch.int64).argmax(dim=1)[:, None]

    def apart(t: Tensor) -> tuple[Tensor, Tensor]:
        """(t − t of the first token, how far that may be off); 0 for absent tokens."""
        wide = there.reshape(*there.shape, *[1] * (t.ndim - 2))
        t = t.masked_fill(~wide, 0.0)
        base = t.gather(1, first.reshape(*first.shape, *[1] * (t.ndim - 2)).expand(-1, 1, *t.shape[2:]))
        gap = (t - base).masked_fill(~wide, 0.0)
        return gap, 2 * FLOAT64.u * gap.abs()

    (b, b_off), (k, k_off), (v, v_off), (s, s_off) = map(apart, (block.biases, block.keys, block.values, block.slopes))
    square = b.square().sum(dim=1) + k.square().sum(dim=(1, 2))
    gamma = (torch.einsum("ht,hto->ho", b, v) + torch.einsum("htd,htdo->ho", k, s)) / square[:, None]
    gamma = gamma.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = gamma.abs()[:, None]
    left = (v - gamma[:, None] * b[..., None]).abs() + v_off + size * b_off[..., None]
    slopes = (s - gamma[:, None, None] * k[..., None]).abs() + s_off + size[:, None] * k_off[..., None]
    left = left + 4 * FLOAT64.u * (v.abs() + size * b.abs()[..., None])
    slopes = slopes + 4 * FLOAT64.u * (s.abs() + size[:, None] * k.abs()[..., None])
    counts = there.sum(dim=1).tolist()
    short = torch.tensor([shortfall(max(n, 1)) for n in counts], dtype=torch.float64) * UP_MANY
    return ProportionalFit(gamma, left, slopes, short)


def maximum_rounding(
    fit: ProportionalFit, X: Float[Tensor, "box coordinate"], d: Float[Tensor, "box head token"]
) -> Float[Tensor, "box head out"]:
    """How far factors e^(±d) on the exponentials can move a head for |x̂| ≤ X."""
    moved = fit.short + 2 * d.amax(dim=-1)
    return (moved[..., None] * fit.gamma.abs() + 2 * fit.uneven(X)) * UP_MANY
