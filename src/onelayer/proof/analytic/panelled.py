"""A cover of one coordinate panel by panel, for summands with many heads (`layer.panels`): in time linear in their number.

On a panel the heads that are not active are an affine function, up to tails that are charged. The others are written again
for x̂ − c, c the middle of the panel, so that biases and values are as small as what happens there: exactly, in rationals, and
then rounded once. Moving the scores of a head by δ at most moves its average by δ/2 times the range of its values, whatever
the weights are; moving values moves it by as much. Every panel is then a summand of its own, with a few dozen heads.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from ...common.budget import Budget
from ...common.outward import UP, UP_FEW, U
from ...layer.assemble import Frame
from ...layer.form import Block, Form
from ...layer.panels import Panels, panels_of, passed_on
from .cover import CLOSE_ENOUGH, Cover, cover
from .findings import Findings
from .rational import BoundedBoxes
from .summand import Summand


@dataclass
class PanelledCover(Findings):
    """Covers of the panels; T − f is off from what they are about by at most `slips` [panel, out]."""

    summand: Summand
    parts: list[Cover]
    slips: np.ndarray
    ended: np.ndarray  # [panel]: which cannot be refined any more

    @property
    def boxes(self) -> BoundedBoxes | None:
        pieces = [(part.boxes, slip) for part, slip in zip(self.parts, self.slips * UP, strict=True)]
        found = []
        for tiles, slip in pieces:
            if tiles is None:
                return None
            sides = np.full(len(tiles), -1)
            found.append(
                BoundedBoxes(tiles.lower, tiles.upper, tiles.low - slip, tiles.high + slip, sides, tiles.degrees)
            )
        return BoundedBoxes.joined(found)

    @property
    def range(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._ends()
        return low.min(axis=0), high.max(axis=0)

    @property
    def ellipse(self) -> float:
        return min(part.ellipse for part in self.parts)

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """low, high [panel, out]."""
        low, high = (np.stack([part.range[end] for part in self.parts]) for end in (0, 1))
        return low - self.slips * UP, high + self.slips * UP

    def refine(self, budget: Budget, alone: bool) -> bool:
        """Refine the panel that decides; False when that is none, or none that can be refined. As `Cover.refine`."""
        low, high = self._ends()
        scores = np.hstack([high, -low])
        smallest = np.min([part.smallest_seen for part in self.parts], axis=0)
        largest = np.max([part.largest_seen for part in self.parts], axis=0)
        close = CLOSE_ENOUGH if self.parts[0].close is None else self.parts[0].close
        enough = np.concatenate([largest, -smallest])
        if alone:
            scores, enough = scores.max(axis=1, keepdims=True), enough.max(keepdims=True) * (1 + close)
        else:
            enough = enough + close * np.tile(np.maximum(largest - smallest, 0.0), 2)
        ends = (scores.max(axis=0) > enough) & ~self.ended[scores.argmax(axis=0)]
        if not ends.any() or budget.over():
            return False
        which = int(np.where(self.ended, -np.inf, (scores - enough)[:, ends].max(axis=1)).argmax())
        self.ended[which] = not self.parts[which].refine(budget, alone)
        return True


def panelled(
    summand: Summand, goal: float, budget: Budget, report: Callable[[float], None], close: float | None
) -> PanelledCover | None:
    """The panels, each coarsely covered; None where panels do not pay."""
    if summand.dimension != 1 or summand.target.domain.within is not None:
        return None
    (shift,), (scale,) = summand.normalisation
    (low,), (high,) = summand.sides
    panels = panels_of(summand.form.blocks, (low - shift) * scale, (high - shift) * scale)
    if panels is None:
        return None
    cuts = np.unique(np.clip(panels.edges / scale + shift, low, high))
    cuts[0], cuts[-1] = low, high
    parts, slips = list[Cover](), list[np.ndarray]()
    for i, (a, b) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)):
        own, slip = _on_panel(summand, panels, a, b)
        parts.append(cover(own, goal, budget, lambda share, i=i: report((i + share) / (len(cuts) - 1)), close))  # type: ignore[misc]
        slips.append(slip)
        if parts[-1].boxes is None:
            break  # nothing is proved then: the rest would be in vain
    return PanelledCover(summand, parts, np.stack(slips), np.zeros(len(parts), dtype=bool))


def _on_panel(summand: Summand, panels: Panels, a: float, b: float) -> tuple[Summand, np.ndarray]:
    """(T and f on the panel a ≤ x ≤ b, how far the T of that is from T per output)."""
    (shift,), (scale,) = (t.tolist() for t in summand.normalisation)
    x = a + (b - a) / 2
    c = (Fraction(x) - Fraction(shift)) * Fraction(scale)
    half = max(b - x, x - a) * scale * UP_FEW + 1e-300
    middle, form = float(c), summand.form
    low, high = middle - half - 4 * U * abs(middle), middle + half + 4 * U * abs(middle)
    m = len(form.bias)
    constants, slopes = [form.bias[None]], [form.linear]
    blocks, slip = list[Block](), torch.zeros(m, dtype=torch.float64)
    for block, (start, end) in zip(form.blocks, panels.active, strict=True):
        near = ~((end < low) | (start > high))
        everything = torch.zeros(1, dtype=torch.int64)
        values, slope, tail = passed_on(block.part(~near, everything), low, high)
        constants.append(values)
        slopes.append(slope)
        slip = slip + tail
        if near.any():
            moved, off = _recentred(block.part(near, everything), c, half)
            blocks.append(moved)
            slip = slip + off
    constant, linear = (_summed(torch.cat(parts)) for parts in (constants, slopes))
    bias = [Fraction(v) + Fraction(u) * c for v, u in zip(constant, linear, strict=True)]
    rounded = torch.tensor([[float(v) for v in bias], linear], dtype=torch.float64)
    size = torch.tensor([constant, linear], dtype=torch.float64).abs()
    slip = slip + 2 * U * (size[0] + size[1] * (abs(middle) + half) + rounded[0].abs())
    own = Form(rounded[0], rounded[1:], tuple(blocks))
    box = ((a,), (b,))
    return replace(summand, form=own, frame=_framed(summand, x), box=box), slip.numpy() * UP


def _framed(summand: Summand, x: float) -> Frame:
    """The frame with x in the place of the shift of the summand's coordinate."""
    (i,) = summand.group
    shift = summand.frame.shift
    return Frame((*shift[:i], x, *shift[i + 1 :]), summand.frame.scale)


def _recentred(block: Block, c: Fraction, half: float) -> tuple[Block, Tensor]:
    """(the heads as functions of x̂ − c, how far these are from them for |x̂ − c| ≤ half, per output)."""
    off = torch.zeros(block.values.shape[2], dtype=torch.float64)
    biases, values = block.biases.clone(), block.values.clone()
    for h, there in enumerate(block.there.tolist()):
        tokens = [t for t, present in enumerate(there) if present]
        scores = [Fraction(float(block.biases[h, t])) + Fraction(float(block.keys[h, t, 0])) * c for t in tokens]
        best = max(scores)
        for t, score in zip(tokens, scores, strict=True):
            biases[h, t] = float(score - best)
            for o in range(values.shape[2]):
                v, u = float(block.values[h, t, o]), float(block.slopes[h, t, 0, o])
                if u:
                    values[h, t, o] = float(Fraction(v) + Fraction(u) * c)
    hidden = ~block.there[..., None]
    swing = block.slopes[:, :, 0].abs() * half
    top = (values + swing).masked_fill(hidden, -math.inf).amax(dim=1)
    bottom = (values - swing).masked_fill(hidden, math.inf).amin(dim=1)
    moved = U * biases.abs().masked_fill(~block.there, 0.0).amax(dim=1)
    off = (moved[:, None] * (top - bottom) / 2 * UP + U * values.abs().masked_fill(hidden, 0.0).amax(dim=1)).sum(dim=0)
    return Block(block.keys, biases, values, block.slopes), off * UP + 1e-300


def _summed(numbers: Tensor) -> list[float]:
    """The column sums, each rounded once."""
    return [math.fsum(column) for column in numbers.T.tolist()]
