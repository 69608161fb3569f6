"""Forms that change along one direction only are forms in one variable.

The slopes of abs(x1 − x2), made by a very sharp head, turn within a millionth of the box, along its diagonal: far too many
boxes in two variables, and a few dozen in the one variable z = d·x̂. Keys count up to a vector that all tokens of a head share.
What is not exactly along d costs: scores that are off by at most e move an average of values that span R by at most
(exp(2e) − 1)·R/2.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..common.outward import UP, U
from .form import Block, Form


@dataclass(frozen=True)
class OneDirection:
    """T(x̂) is within `error` of form(z) for some z in [low, high], and that for all x̂ of the box."""

    form: Form
    low: float
    high: float
    error: Float[Tensor, " out"]


def one_direction(
    form: Form, lower: Float[Tensor, " coordinate"], upper: Float[Tensor, " coordinate"]
) -> OneDirection | None:
    """The form in one variable on the box lower ≤ x̂ ≤ upper; None without heads. Judge the error before use."""
    edge = torch.maximum(lower.abs(), upper.abs())
    apart = [_apart(block) for block in form.blocks]
    widest = [
        max(zip(diff.norm(dim=2).flatten().tolist(), diff.flatten(0, 1), strict=True), key=lambda p: p[0])
        for diff, _ in apart
    ]
    if not widest or not max(w for w, _ in widest) > 0:
        return None
    d = max(widest, key=lambda p: p[0])[1]
    linear, error = _along(form.linear.T, d, 0.0, edge)  # [out]
    blocks = []
    for block, (diff, lost) in zip(form.blocks, apart, strict=True):
        hidden = ~block.there
        keys, off = _along(diff, d, lost, edge)  # [head, token]
        slopes, moved = _along(block.slopes.transpose(2, 3), d, 0.0, edge)  # [head, token, out]
        swing = (block.slopes.abs() * edge[:, None]).sum(dim=2)
        high = (block.values + swing).masked_fill(hidden[..., None], -torch.inf).amax(dim=1)
        low = (block.values - swing).masked_fill(hidden[..., None], torch.inf).amin(dim=1)
        e = off.masked_fill(hidden, 0.0).amax(dim=1)
        own = torch.expm1(2 * e * UP)[:, None] * (high - low) / 2 + moved.masked_fill(hidden[..., None], 0.0).amax(
            dim=1
        )
        error = error + own.sum(dim=0) * UP
        blocks.append(Block(keys[..., None], block.biases, block.values, slopes[:, :, None]))
    ends = torch.stack([d * lower, d * upper])
    rounding = (len(d) + 2) * U * float(ends.abs().sum()) * UP + 1e-300
    low_end, high_end = float(ends.amin(dim=0).sum()) - rounding, float(ends.amax(dim=0).sum()) + rounding
    return OneDirection(Form(form.bias, linear[None], tuple(blocks)), low_end, high_end, error * UP + 1e-300)


def _apart(block: Block) -> tuple[Float[Tensor, "head token coordinate"], Float[Tensor, "head token coordinate"]]:
    """(keys less those of the head's first token, a bound on the rounding); 0 for absent tokens."""
    first = block.keys.gather(1, block.there.long().argmax(dim=1)[:, None, None].expand(-1, 1, block.keys.shape[2]))
    there = block.there[..., None]
    return (block.keys - first) * there, U * (block.keys.abs() + first.abs()) * there * UP


def _along(t: Tensor, d: Tensor, lost: Tensor | float, edge: Tensor) -> tuple[Tensor, Tensor]:
    """(c with t ≈ c·d along the last axis, a bound on |(t ± lost − c·d)·x̂|)."""
    c = (t @ d) / (d @ d)
    rest = (t - c[..., None] * d).abs() + 4 * U * (t.abs() + c.abs()[..., None] * d.abs()) + lost
    return c, (rest * edge).sum(dim=-1) * UP + 1e-300
