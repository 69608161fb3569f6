"""A cover of one coordinate panel by panel, for summands with many heads (`layer.panels`): in time linear in their number.

On a panel the heads that are not active are an affine function, up to tails that are charged. The others are written again
for x̂ − c, c the middle of the panel, so that biases and values are as small as what happens there: exactly, in rationals, and
then rounded once. Moving the scores of a head by δ at most moves its average by δ/2 times the range of its values, whatever
the weights are; moving values moves it by as much. Every panel is then a summand of its own, with a few dozen heads.

Kinks of f and the bends of hinges of T end a panel. Between them it is proved which branch of f holds (`one_sided`), and which
hinges are open; panels where that is not proved are halved. Those around kinks end up tiny: whichever branch holds at a point
there, the largest error of all branches bounds it, and hinges that are open or not are small.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from ...common.budget import Budget
from ...common.outward import UP, UP_FEW, U
from ...formula.simpler_kinks import branches, one_sided
from ...layer.assemble import Frame
from ...layer.form import Block, Form
from ...layer.heads import Hinges
from ...layer.panels import FEWEST, Panels, panels_of, passed_on
from ...target.singular import has_kinks
from .cover import CLOSE_ENOUGH, Cover, cover
from .findings import Findings
from .rational import BoundedBoxes
from .summand import Summand

TINIEST = 2.0**-40  # share of a side: panels around kinks
MOST_BRANCHES = 8  # of f on one of them


@dataclass
class PanelledCover(Findings):
    """Covers of the panels; T − f is off from what they are about by at most `slips` [panel, out].

    Where it is not known which branch of f holds, on tiny panels around its kinks, all of them are covered.
    """

    summand: Summand
    parts: list[tuple[Cover, ...]]  # by panel: a cover for every branch
    slips: np.ndarray
    ended: np.ndarray  # [panel]: which cannot be refined any more

    @property
    def boxes(self) -> BoundedBoxes | None:
        found = []
        low, high = self._ends()
        for i, (part, slip) in enumerate(zip(self.parts, self.slips * UP, strict=True)):
            tiles = part[0].boxes
            if any(branch.boxes is None for branch in part) or tiles is None:
                return None
            own = BoundedBoxes(
                tiles.lower, tiles.upper, tiles.low - slip, tiles.high + slip, np.full(len(tiles), -1), tiles.degrees
            )
            if len(part) > 1:  # what holds for all of them on the whole panel
                ends = (own.lower.min(axis=0, keepdims=True), own.upper.max(axis=0, keepdims=True))
                own = BoundedBoxes(*ends, low[i : i + 1], high[i : i + 1], own.side[:1], own.degrees[:1])
            found.append(own)
        return BoundedBoxes.joined(found)

    @property
    def range(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._ends()
        return low.min(axis=0), high.max(axis=0)

    @property
    def ellipse(self) -> float:
        return min(branch.ellipse for part in self.parts for branch in part)

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """low, high [panel, out]."""
        low = np.stack([np.min([branch.range[0] for branch in part], axis=0) for part in self.parts])
        high = np.stack([np.max([branch.range[1] for branch in part], axis=0) for part in self.parts])
        return low - self.slips * UP, high + self.slips * UP

    def refine(self, budget: Budget, alone: bool) -> bool:
        """Refine the panel that decides; False when that is none, or none that can be refined. As `Cover.refine`."""
        low, high = self._ends()
        scores, every = np.hstack([high, -low]), [branch for part in self.parts for branch in part]
        smallest = np.min([branch.smallest_seen for branch in every], axis=0)
        largest = np.max([branch.largest_seen for branch in every], axis=0)
        close = CLOSE_ENOUGH if every[0].close is None else every[0].close
        enough = np.concatenate([largest, -smallest])
        if alone:
            scores, enough = scores.max(axis=1, keepdims=True), enough.max(keepdims=True) * (1 + close)
        else:
            enough = enough + close * np.tile(np.maximum(largest - smallest, 0.0), 2)
        ends = (scores.max(axis=0) > enough) & ~self.ended[scores.argmax(axis=0)]
        if not ends.any() or budget.over():
            return False
        which = int(np.where(self.ended, -np.inf, (scores - enough)[:, ends].max(axis=1)).argmax())
        self.ended[which] = sum(branch.refine(budget, alone) for branch in self.parts[which]) == 0
        return True


def panelled(
    summand: Summand, goal: float, budget: Budget, report: Callable[[float], None], close: float | None
) -> PanelledCover | None:
    """The panels, each coarsely covered; None in several coordinates, across a condition, and where panels do not pay.

    Where there are hinges they always do, and where f has kinks.
    """
    if summand.dimension != 1 or summand.target.domain.within is not None:
        return None
    (shift,), (scale,) = summand.normalisation
    (low,), (high,) = (side.tolist() for side in summand.sides)
    kinks = has_kinks(summand.formula)
    least = FEWEST if summand.hinges is None and not kinks else 0
    panels = panels_of(summand.form.blocks, (low - shift) * scale, (high - shift) * scale, least)
    if panels is None:
        return None
    cuts, tiny = panels.edges / scale + shift, TINIEST * (high - low)
    if summand.hinges is not None:
        bends = summand.hinges[0]
        at = (-bends.offsets / bends.directions[:, 0]).numpy() / scale + shift
        cuts = np.concatenate([cuts, at - tiny / 4, at + tiny / 4])
    cuts = np.unique(np.clip([low, high, *cuts[np.isfinite(cuts)]], low, high))
    pending = list(itertools.pairwise(cuts.tolist()))[::-1]
    parts, slips = list[tuple[Cover, ...]](), list[np.ndarray]()
    while pending:
        a, b = pending.pop()
        formulas = [one_sided(summand.formula, (a,), (b,))] if kinks else [summand.formula]
        if has_kinks(formulas[0]):
            middle = a + (b - a) / 2
            if b - a > tiny and a < middle < b and not budget.over(len(parts)):
                pending += [(middle, b), (a, middle)]
                continue
            formulas = branches(formulas[0], MOST_BRANCHES)
        own, slip = _on_panel(summand, panels, a, b)
        report((b - low) / (high - low))
        covers = [cover(replace(own, formula=f), goal, budget, lambda _: None, close) for f in formulas]
        parts.append(tuple(covers) or (Cover(own, goal, None, 0 * slip, 0 * slip),))
        slips.append(slip)
        if any(branch.boxes is None for branch in parts[-1]):
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
    m, everything = len(form.bias), torch.zeros(1, dtype=torch.int64)
    constants, slopes = [form.bias[None]], [form.linear]
    blocks, slip = list[Block](), torch.zeros(m, dtype=torch.float64)
    if summand.hinges is not None:
        ends = [(Fraction(end) - Fraction(shift)) * Fraction(scale) for end in (a, b)]
        units, values, off = _hinges_between(*summand.hinges, *ends)
        constants.append(units.offsets[:, None] * values)
        slopes.append(units.directions * values)
        rounded = U * (constants[-1].abs() + slopes[-1].abs() * max(abs(low), abs(high))).sum(dim=0)
        slip = slip + off + rounded
    for block, near in zip(form.blocks, panels.near(low, high), strict=True):
        value, slope, tail = passed_on(block.part(~near, everything), low, high)
        constants.append(value)
        slopes.append(slope)
        slip = slip + tail
        if near.any():
            moved, off = _recentred(block.part(near, everything), c, half)
            blocks.append(moved)
            slip = slip + off
    constant, linear = (_summed(torch.cat(parts)) for parts in (constants, slopes))
    bias = [Fraction(v) + Fraction(u) * c for v, u in zip(constant, linear, strict=True)]
    line = torch.tensor([[float(v) for v in bias], linear], dtype=torch.float64)
    size = torch.tensor([constant, linear], dtype=torch.float64).abs()
    slip = slip + 2 * U * (size[0] + size[1] * (abs(middle) + half) + line[0].abs())
    own, box = Form(line[0], line[1:], tuple(blocks)), ((a,), (b,))
    return replace(summand, form=own, frame=_framed(summand, x), box=box, hinges=None), slip.numpy() * UP


def _hinges_between(hinges: Hinges, values: Tensor, low: Fraction, high: Fraction) -> tuple[Hinges, Tensor, Tensor]:
    """(the hinges that are open on [low, high], their values, what those that may be either can do there, per output)."""
    open_, off = torch.zeros(len(hinges), dtype=torch.bool), torch.zeros(values.shape[1], dtype=torch.float64)
    for i, (direction, offset) in enumerate(
        zip(hinges.directions[:, 0].tolist(), hinges.offsets.tolist(), strict=True)
    ):
        ends = [Fraction(direction) * x + Fraction(offset) for x in (low, high)]
        if min(ends) >= 0:
            open_[i] = True
        elif max(ends) > 0:  # taken for closed
            off = off + float(max(ends)) * UP * values[i].abs()
    return Hinges(hinges.directions[open_], hinges.offsets[open_]), values[open_], off


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
