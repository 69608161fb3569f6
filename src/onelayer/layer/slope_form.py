"""The slopes of a form are a form: every pair of tokens of a head becomes one token.

A head's average A = Σ_t (v_t + x·u_t) w_t has, with the keys k_t and Σ_t w_t = 1,

    ∂_i A = Σ_{t,s} w_t w_s [ (v_t − v_s + x·(u_t − u_s))(k_ti − k_si)/2 + (u_ti + u_si)/2 ],

and w_t w_s is the softmax of the scores added up. So ∂_i T is a sum of softmax averages, like T itself, and whatever is proved
about forms can be proved about slopes. A pair t ≠ s counts twice: its score is raised by log 2.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..common.outward import UP, UP_FEW, U
from .form import Block, Form

SCORE_STEPS = 3  # rounded additions in a score: two biases, log 2 and its own rounding
VALUE_STEPS = 16  # units of the largest value that its rounding costs: see `_error`


@dataclass(frozen=True)
class Pairs(Block):
    """All pairs of tokens of heads, and the heads: their slopes are also covariances (`proof.analytic.covariance`)."""

    heads: Block  # in all coordinates
    scale: Float[Tensor, " variable"]

    def part(self, heads: Tensor, coordinates: Tensor) -> "Pairs":
        own, everywhere = super().part(heads, coordinates), torch.arange(len(self.scale))
        return Pairs(own.keys, own.biases, own.values, own.slopes, self.heads.part(heads, everywhere), self.scale)


def slope_form(form: Form, scale: tuple[float, ...], edge: float) -> tuple[Form, Float[Tensor, " slope"]]:
    """(∂T_o/∂x_i as output o·D + i, a bound on how far its floats are from the exact slopes); |x̂| ≤ edge, x̂ = scale·(x − shift).

    The slopes are those with respect to x, the form's coordinates stay x̂.
    """
    D, m = form.linear.shape
    by = torch.tensor(scale, dtype=torch.float64)
    blocks = tuple(_pairs(block, by) for block in form.blocks)
    bias = (form.linear.T * by).flatten()
    error = 2 * U * bias.abs()
    for block in blocks:
        error = error + _error(block, edge)
    return Form(bias, torch.zeros(D, m * D, dtype=torch.float64), blocks), error * UP + 1e-300 * (1 + edge)


def _pairs(block: Block, scale: Tensor) -> Pairs:
    """All pairs of tokens of every head."""
    a, b = torch.triu_indices(block.biases.shape[1], block.biases.shape[1])
    keys, biases, v, u = block.keys, block.biases, block.values, block.slopes
    twice = math.log(2) * (a != b).double()  # in float64: torch.where of two Python numbers is float32
    apart = (keys[:, a] - keys[:, b]) * (scale / 2)  # [head, pair, coordinate]
    values = torch.einsum("hpo,hpi->hpoi", v[:, a] - v[:, b], apart)
    values = values + ((u[:, a] + u[:, b]) * (scale / 2)[:, None]).transpose(2, 3)
    slopes = torch.zeros(*keys[:, a].shape, values.shape[2] * values.shape[3], dtype=torch.float64)
    if u.any():
        slopes = torch.einsum("hpdo,hpi->hpdoi", u[:, a] - u[:, b], apart).flatten(3)
    scores = keys[:, a] + keys[:, b], biases[:, a] + biases[:, b] + twice
    return Pairs(*scores, values.flatten(2), slopes, block, scale)


def _error(block: Block, edge: float) -> Float[Tensor, " slope"]:
    """How far the averages of a block of pairs are from those with exact scores and values.

    A value is a + b, a = (v_t − v_s)(k_t − k_s)/2 after four roundings and b = (u_t + u_s)/2 after two, and the two may cancel.
    But b is at most the largest value L, since pairs t = s have the values u_t, so |a| ≤ 2L: 8 + 2 + 1 units of L at most.
    """
    hidden = ~block.there[..., None]
    largest = (block.values.abs() + block.slopes.abs().sum(dim=2) * edge).masked_fill(hidden, 0.0).amax(dim=1)
    return moved_by(block, edge, SCORE_STEPS) + (VALUE_STEPS * U * largest).sum(dim=0) * UP


def moved_by(block: Block, edge: float, steps: int) -> Float[Tensor, " out"]:
    """How far the averages of a block are from those with exact scores, if a score is the result of that many roundings.

    Scores off by at most e change every weight by a factor between exp(−2e) and exp(2e), and an average of values that span
    R by at most (exp(2e) − 1)·R/2.
    """
    hidden = ~block.there
    size = (block.keys.abs().sum(dim=2) * edge + block.biases.abs() + 1).masked_fill(hidden, 0.0)
    off = 2 * steps * U * size.amax(dim=1) * UP_FEW
    swing = block.slopes.abs().sum(dim=2) * edge
    high = (block.values + swing).masked_fill(hidden[..., None], -torch.inf).amax(dim=1)
    low = (block.values - swing).masked_fill(hidden[..., None], torch.inf).amin(dim=1)
    return (torch.expm1(2 * off)[:, None] * (high - low) / 2).sum(dim=0) * UP
