"""Panels of one coordinate: on each only a few heads do anything but pass one token's value on.

The score of a token is a line, key·x + bias. To the right of some b_h the token with the largest key stands `FAR` above all
others of head h, to the left of some a_h the one with the smallest key does: outside of [a_h, b_h] the head is that token's
value, affine, up to weights e^(−FAR). What is done panel by panel costs as much as there are heads near, not heads times boxes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .form import Block

FAR = 40.0  # a score this far above all others: the weights of these are below 5e-18
HEADS = 32  # of a panel: that many begin to be active there
FEWEST = 2 * HEADS  # heads, with which panels begin to pay


@dataclass(frozen=True)
class Panels:
    """Consecutive panels between `edges`, and where the heads of each block are active."""

    edges: Float[np.ndarray, " edge"]
    active: tuple[tuple[Float[Tensor, " head"], Float[Tensor, " head"]], ...]

    def __len__(self) -> int:
        return len(self.edges) - 1

    def near(self, low: float, high: float) -> list[Bool[Tensor, " head"]]:
        """Which heads of each block may be active between two ends."""
        return [~((end < low) | (start > high)) for start, end in self.active]


def panels_of(blocks: Sequence[Block], low: float, high: float, least: int = FEWEST) -> Panels | None:
    """Panels of the interval, for heads of one coordinate; None where there are too few heads, or all are active everywhere."""
    if sum(len(block.biases) for block in blocks) < least or any(block.keys.shape[2] != 1 for block in blocks):
        return None
    active = tuple(_active(block) for block in blocks)
    nothing = torch.zeros(0, dtype=torch.float64)
    middles = torch.cat([nothing, *((start.clamp(low, high) + end.clamp(low, high)) / 2 for start, end in active)])
    inside = np.sort(middles[(middles > low) & (middles < high)].numpy())
    cuts = np.unique(inside[HEADS // 2 :: HEADS])
    edges = np.concatenate([[low], cuts[(cuts > low) & (cuts < high)], [high]])
    return Panels(edges, active) if len(edges) > 2 or not least else None


def _active(block: Block) -> tuple[Tensor, Tensor]:
    """[a_h, b_h] for every head, rounded outward; infinite where tokens with equal keys stay close."""
    ends = []
    for side in (-1.0, 1.0):
        keys = side * block.keys[:, :, 0]
        at = _outermost(block, side)
        steeper = keys.gather(1, at) - keys
        ahead = block.biases.gather(1, at) - block.biases
        others = block.there & (torch.arange(keys.shape[1]) != at)
        with np.errstate(all="ignore"):
            reached = torch.where(
                steeper > 0, (FAR - ahead) / steeper, torch.where(ahead >= FAR, -torch.inf, torch.inf)
            )
        size = (block.biases.abs().masked_fill(~block.there, 0.0).amax(dim=1, keepdim=True) + FAR) / steeper.clamp_min(
            1e-300
        )
        reached = torch.where(reached.isfinite(), reached + 1e-14 * size, reached)
        ends.append(side * reached.masked_fill(~others, -torch.inf).amax(dim=1))
    return ends[0], ends[1]


def _outermost(block: Block, side: float) -> Int[Tensor, "head 1"]:
    """The token that wins far to one side: with the outermost key, and the largest bias among those."""
    keys = (side * block.keys[:, :, 0]).masked_fill(~block.there, -torch.inf)
    most = keys.amax(dim=1, keepdim=True)
    return block.biases.masked_fill(keys < most, -torch.inf).argmax(dim=1, keepdim=True)


def passed_on(
    block: Block, low: float, high: float
) -> tuple[Float[Tensor, "head out"], Float[Tensor, "head out"], Float[Tensor, " out"]]:
    """(values, slopes) of the token that every head passes on in [low, high], and what all other tokens together add to that.

    For heads that are not active there. What rounding does to the winner's value counts in full, for all tokens.
    """
    middle, half = (low + high) / 2, (high - low) / 2
    keys, bias = block.keys[:, :, 0], block.biases
    score = (keys * middle + bias).masked_fill(~block.there, -torch.inf)
    at = score.argmax(dim=1, keepdim=True)
    apart = score.gather(1, at) - score - (keys.gather(1, at) - keys).abs() * half
    size = keys.abs() * max(abs(low), abs(high)) + bias.abs().masked_fill(~block.there, 0.0)
    apart = apart - 1e-15 * (size + size.gather(1, at))
    wide = at[..., None].expand(-1, 1, block.values.shape[2])
    value, slope = block.values.gather(1, wide)[:, 0], block.slopes[:, :, 0].gather(1, wide)[:, 0]
    gap = (block.values + middle * block.slopes[:, :, 0]) - (value + middle * slope)[:, None]
    gap = gap.abs() * (1 + 1e-12) + half * (block.slopes[:, :, 0] - slope[:, None]).abs() * (1 + 1e-12)
    gap = gap + 1e-15 * (block.values.abs() + abs(middle) * block.slopes[:, :, 0].abs())
    tail = torch.einsum("ht,hto->o", (-apart).exp().masked_fill(~block.there, 0.0), gap) * (1 + 1e-9)
    return value, slope, tail.nan_to_num(nan=math.inf, posinf=math.inf)
