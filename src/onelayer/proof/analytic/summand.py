"""One summand of g = T − f: the heads, the terms of the formula and the sides of the domain in one group of coordinates."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...common.budget import Budget
from ...common.outward import UP, UP_FEW
from ...formula import Formula, holds, interval
from ...formula.additive import additive_terms
from ...formula.numeric import evaluate
from ...layer.assemble import Frame
from ...layer.form import Form
from ...layer.heads import Hinges
from ...layer.rounding.deployed import TRUSTED, Boxes, on_boxes
from ...target.target import Target

MOST_WITH_HEADS = 4  # coordinates of a group with several heads
MOST_COORDINATES = 10  # of a group with one head
PROBES = 200  # points at which f is evaluated to see its size


@dataclass(frozen=True)
class Summand:
    """T and f restricted to the coordinates of one group."""

    form: Form
    formula: Formula
    target: Target
    frame: Frame
    group: tuple[int, ...]
    device: str = "cpu"  # where T is evaluated on grids
    budget: Budget = field(default_factory=lambda: Budget(math.inf))  # steps that take longer end with OutOfTime
    constants: int = 0  # variables of the formula after the coordinates
    box: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # (lower, upper) ends, if not those of the domain
    hinges: tuple[Hinges, Tensor] | None = None  # with their values; only panels know what to do with them

    def frozen(self, formula: Formula, constants: int) -> "Summand":
        """With a formula of that many constants beside the coordinates in the place of the formula."""
        return replace(self, formula=formula, constants=constants)

    @property
    def dimension(self) -> int:
        return len(self.group)

    @property
    def tokens(self) -> int:
        return sum(block.biases.numel() for block in self.form.blocks)

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) ends of the box."""
        if self.box is not None:
            return np.array(self.box[0]), np.array(self.box[1])
        pick = list(self.group)
        return np.array(self.target.domain.lower)[pick], np.array(self.target.domain.upper)[pick]

    @property
    def normalisation(self) -> tuple[np.ndarray, np.ndarray]:
        """(shift, scale) of every coordinate."""
        shift, scale = (np.array([t[j] for j in self.group]) for t in (self.frame.shift, self.frame.scale))
        return shift, scale

    @cached_property
    def edge(self) -> float:
        """max |x̂_i| on the box."""
        shift, scale = self.normalisation
        return float(np.abs((np.stack(self.sides) - shift) * scale).max()) * UP + 1e-300

    @cached_property
    def reach(self) -> float:
        """max |x_i|·scale_i: the size that the rounding of x is relative to, in normalised coordinates."""
        return float((np.abs(np.stack(self.sides)) * self.normalisation[1]).max()) * UP

    @cached_property
    def phases(self) -> Float[np.ndarray, " coordinate"]:
        """How far the keys of the sharpest head spread along every side."""
        lower, upper = self.sides
        return self.form.spreads.numpy() * (upper - lower) * self.normalisation[1]

    @cached_property
    def size(self) -> float:
        """About max |T| + max |f|, by which boxes are chosen; not used in proofs."""
        total = float(self.form.bias.abs().max() + self.form.linear.abs().sum())
        for block in self.form.blocks:
            reach = (block.values.abs() + block.slopes.abs().sum(dim=2)).masked_fill(~block.there[..., None], 0.0)
            total += float(reach.amax(dim=1).sum(dim=0).max())
        lower, upper = self.sides
        some = lower + (upper - lower) * np.random.default_rng(0).random((PROBES, self.dimension))
        some = np.pad(some, ((0, 0), (0, self.constants)))
        trees = self.formula.outputs  # without heads f is all there is, and its terms may cancel, as in p − q
        trees = trees if self.form.blocks else tuple(t for output in trees for t in additive_terms(output))
        with np.errstate(all="ignore"):
            seen = np.abs(np.asarray(evaluate(replace(self.formula, outputs=trees), some), dtype=np.float64))
        return max(total + float(np.nanmax(np.where(np.isfinite(seen), seen, 0.0))), 1e-300)

    @cached_property
    def slopes(self) -> Float[np.ndarray, "coordinate out"]:
        """Bounds on |∂T/∂x_i| on the real box.

        A head's slope is the average of its values' slopes plus the covariance, under its weights, of values and keys, and
        a covariance is at most a quarter of the product of the two ranges.
        """
        total = self.form.linear.abs()
        for block in self.form.blocks:
            hidden = ~block.there[..., None]
            swing = block.slopes.abs().sum(dim=2) * self.edge
            high = (block.values + swing).masked_fill(hidden, -torch.inf).amax(dim=1)
            low = (block.values - swing).masked_fill(hidden, torch.inf).amin(dim=1)
            own = block.slopes.abs().masked_fill(hidden[..., None], 0.0).amax(dim=1)
            total = total + own.sum(dim=0) + torch.einsum("hi,ho->io", block.key_spreads(), high - low) / 4
        return total.numpy() * self.normalisation[1][:, None] * UP

    def slopes_on(self, boxes: Float[np.ndarray, "box two coordinate"]) -> Float[np.ndarray, "box coordinate out"]:
        """Bounds on |∂T/∂x_i| on boxes: on panels from the weights there, else those for the whole box."""
        if self.box is None:
            return np.broadcast_to(self.slopes, (len(boxes), *self.slopes.shape))
        shift, scale = self.normalisation
        centres, halves = (
            (boxes.mean(axis=1) - shift) * scale,
            (boxes[:, 1] - boxes[:, 0]) / 2 * scale * UP_FEW + 1e-300,
        )
        some = Boxes(torch.from_numpy(centres), torch.from_numpy(halves))
        total = self.form.linear.abs().expand(len(boxes), -1, -1)
        for block in self.form.blocks:
            on = on_boxes(block, some)
            moved = torch.where(on.own < TRUSTED, on.moved, torch.inf)
            total = total + (moved.sum(dim=1) / some.halves)[:, None]
        return np.fmin(total.numpy() * scale[:, None] * UP, self.slopes)

    def truths(self, boxes: Float[np.ndarray, "box two coordinate"]) -> Int[np.ndarray, " box"]:
        """The domain's condition on every box: 1 proved, −1 refuted, 0 undecided."""
        within = self.target.domain.within
        if within is None:
            return np.ones(len(boxes), dtype=np.int64)
        found = [holds(within, [interval(a, b) for a, b in box.T.tolist()]) for box in boxes]
        return np.array([0 if truth is None else 1 if truth else -1 for truth in found], dtype=np.int64)
