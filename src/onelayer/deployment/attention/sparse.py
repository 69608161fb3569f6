"""Sparse and adaptive attention: of every head only the tokens that matter near a point, cell by cell.

The box |x̂| ≤ edge is cut into equal cells. On a cell with centre c and half-widths r Jensen's inequality bounds every
weight of a head (`layer/rounding/deployed`): with k̄ = Σ_t w_t(c) keys_t,

    w_t(x) ≤ W_t = w_t(c) e^(Σ_i |keys_ti − k̄_i| r_i).

Dropping tokens of total weight m moves a head's average by m |its average over them − its average over the others|, at most
Σ_dropped W_t · span, where span is the range of the head's values on the cell. In each cell tokens are dropped, the cheapest
first, as long as the sum of all this stays within half of the `remainder`; the heaviest token of a head stays. A head with one
token left is affine and joins the cell's affine part: saturated gates cost nothing (adaptive computation), and a head of ten
thousand memory tokens keeps only the few hundred near the point (sparse attention).

`box_rounding` bounds the rounding of the reduced form; a cell where that exceeds the other half keeps all its tokens. Cells are
made when first visited. `evaluator` leaves points outside the box to the model.
"""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP_MANY
from ...formula.additive import maximal
from ...layer.arithmetic import FLOAT64
from ...layer.form import Block, Form
from ...layer.heads import Hinges
from ...layer.rounding.deployed import Boxes, FormProgram
from .averages import SoftmaxAverages
from .linear import CHUNK, CompiledForm
from .shared_keys import EDGE

MOST_CELLS = 2**20
TRIED_CELLS = 6  # sample by which the number of cells per side is chosen
CALL_COST = 2e4  # evaluating one cell costs as much as this many tokens at one point
EXPECTED_BATCH = 2**17  # points per call, for which the number of cells is chosen
OVERLAP = 1e-6  # of neighbouring cells: rounding may move a point into the next one


@dataclass(frozen=True)
class Cell:
    """The reduced form of one cell, in one dtype."""

    bias: Float[Tensor, " out"]
    linear: Float[Tensor, "coordinate out"]
    heads: tuple[SoftmaxAverages, ...]
    tokens: int

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        y = torch.addmm(self.bias, x, self.linear)
        for part in self.heads:
            y += part(x)
        return y


@dataclass
class Cells:
    """One group's form, cell by cell; answers of reduced cells are within `remainder` of the real function, rounding included."""

    form: Form
    remainder: float
    dtype: torch.dtype
    how: FormProgram  # of the whole form
    per_side: int = 0  # cells along each side
    made: dict[int, Cell] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.per_side = self.per_side or self._fineness()

    @property
    def dimension(self) -> int:
        return self.form.dimension

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        """Values at points of the box, evaluated cell by cell."""
        at = ((x.double() + EDGE) * (self.per_side / (2 * EDGE))).long().clamp_(0, self.per_side - 1)
        number = (at * self.per_side ** torch.arange(self.dimension)).sum(dim=1)
        number, order = number.sort(stable=True)
        cells, sizes = number.unique_consecutive(return_counts=True)
        given = x[order].split(sizes.tolist())
        y = torch.cat([self.cell(int(n))(part) for n, part in zip(cells, given, strict=True)])
        return torch.empty_like(y).index_copy_(0, order, y)

    def cell(self, number: int) -> Cell:
        """The cell with this number, made at the first visit."""
        if number not in self.made:
            self.made[number] = self._cell(self._box(number, self.per_side))
        return self.made[number]

    def _box(self, number: int, per_side: int) -> Boxes:
        """[1, coordinate]: the cell with this number."""
        at = (number // per_side ** torch.arange(self.dimension)) % per_side
        half = EDGE / per_side
        centre = -EDGE + (2 * at.double() + 1) * half
        return Boxes(centre[None], torch.full((1, self.dimension), half * UP_MANY + OVERLAP, dtype=torch.float64))

    def _cell(self, box: Boxes) -> Cell:
        reduced, folded = self._reduced(box)
        rounding = float(self.how.of(reduced).on_boxes(box).max()) + self._folding(reduced, folded)
        form = reduced if rounding <= self.remainder / 2 else self.form
        heads = tuple(SoftmaxAverages.of(block, self.dtype) for block in form.blocks)
        tokens = sum(block.biases.numel() for block in form.blocks)
        return Cell(form.bias.to(self.dtype), form.linear.to(self.dtype), heads, tokens)

    def _folding(self, form: Form, folded: float) -> float:
        """Rounding of the affine part: its terms are added up in float64 and then rounded to the dtype."""
        size = float((form.bias.abs() + EDGE * form.linear.abs().sum(dim=0)).max())
        return 2 * self.how.arithmetic.u * size + (self.form.heads + 2) * FLOAT64.u * (size + folded)

    def _reduced(self, box: Boxes) -> tuple[Form, float]:
        """(the form without the tokens that do not matter on the box, the sizes of the heads that became affine)."""
        bias, linear, blocks, folded = self.form.bias.clone(), self.form.linear.clone(), [], 0.0
        for block, keep in zip(self.form.blocks, self._kept(box), strict=True):
            count = keep.sum(dim=1)
            alone = (keep & (count == 1)[:, None]).nonzero(as_tuple=True)
            values, slopes = block.values[alone], block.slopes[alone]
            bias, linear = bias + values.sum(dim=0), linear + slopes.sum(dim=0)
            folded += float((values.abs().sum(dim=0) + EDGE * slopes.abs().sum(dim=(0, 1))).max())
            for size in count[count > 1].unique().tolist():
                rows = (count == size).nonzero().flatten()
                pick = (rows[:, None], keep[rows].nonzero()[:, 1].reshape(len(rows), size))
                blocks.append(Block(block.keys[pick], block.biases[pick], block.values[pick], block.slopes[pick]))
        return Form(bias, linear, tuple(blocks)), folded

    def _kept(self, box: Boxes) -> list[Tensor]:
        """[head, token] for every block: the tokens that are kept."""
        costs, masks = [], []
        for block in self.form.blocks:
            weights, span = _weights(block, box)
            costs.append((weights * span[:, None]).masked_fill(~block.there, 0.0).flatten())
            heaviest = torch.zeros_like(block.there)
            heaviest[torch.arange(len(heaviest)), weights.masked_fill(~block.there, -1.0).argmax(dim=1)] = True
            masks.append((heaviest.flatten(), block.there.flatten()))
        if not costs:
            return []
        every = torch.cat(costs).masked_fill(torch.cat([mask for mask, _ in masks]), torch.inf)
        order = every.argsort()
        dropped = torch.zeros_like(every, dtype=torch.bool)
        dropped[order] = every[order].cumsum(dim=0) * UP_MANY <= self.remainder / 2
        sizes = [len(c) for c in costs]
        return [
            (there & ~out).reshape(block.biases.shape)
            for block, out, (_, there) in zip(self.form.blocks, dropped.split(sizes), masks, strict=True)
        ]

    def _fineness(self) -> int:
        """Cells along each side: doubled until a point gets no cheaper, judged by a few random cells."""
        tokens = sum(block.biases.numel() for block in self.form.blocks)
        best, per_side = (float(tokens), 1), 2
        generator = torch.Generator().manual_seed(0)
        while (cells := per_side**self.dimension) <= MOST_CELLS:
            numbers = torch.randint(cells, (TRIED_CELLS,), generator=generator).tolist()
            kept = [sum(int(k.sum()) for k in self._kept(self._box(n, per_side))) for n in numbers]
            cost = sum(kept) / len(kept) + CALL_COST * cells / EXPECTED_BATCH
            if cost < best[0]:
                best = (cost, per_side)
            elif per_side > 8 * best[1]:
                break
            per_side *= 2
        return best[1]


class SparseAttention:
    """A form whose heads of at least `many` tokens are evaluated cell by cell; x is normalised, |x̂| ≤ EDGE.

    Each answer is within `remainder` of the real function, rounding of reduced cells included; the other heads, and cells that
    could not be reduced, add their usual rounding (`rounding`).
    """

    def __init__(
        self, form: Form, hinges: tuple[Hinges, Tensor], how: FormProgram, remainder: float, many: int
    ) -> None:
        local = tuple(block for block in form.blocks if block.biases.shape[1] >= many)
        others = tuple(block for block in form.blocks if block.biases.shape[1] < many)
        self.others = Form(form.bias, form.linear, others)
        self.local = Form(torch.zeros_like(form.bias), torch.zeros_like(form.linear), local)
        groups = (maximal(self.local.links()) or [(0,)]) if local else []
        self.how = replace(how, terms=how.terms + len(groups) + 2)  # the groups are summed too
        dtype = how.arithmetic.dtype
        self.compiled = CompiledForm.of(self.others, dtype, hinges=hinges)
        split = zip(groups, self.local.split(groups), strict=True) if groups else ()
        self.cells = [
            (list(group), Cells(part, remainder / len(groups), dtype, self.how.within(group))) for group, part in split
        ]

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        rows = max(1, CHUNK // self.compiled.width)
        y = torch.cat([self.compiled(part) for part in x.split(rows)])
        for group, cells in self.cells:
            y += cells(x[:, group])
        return y

    def rounding(self, lower: Tensor, upper: Tensor, enough: float = 0.0) -> float:
        """A bound on the rounding of heads that are evaluated in full; not refined once it is at most `enough`."""
        forms = (self.others, self.local)
        others, local = (self.how.of(form).rounding(lower, upper, enough / 2) for form in forms)
        return float((others + local).max())


def _weights(block: Block, box: Boxes) -> tuple[Float[Tensor, "head token"], Float[Tensor, " head"]]:
    """(bounds on every weight, bounds on the range of each head's values) on one box."""
    c, r = box.centres[0], box.halves[0]
    there = block.there
    keys = block.keys.masked_fill(~there[..., None], 0.0)
    biases = block.biases.masked_fill(~there, 0.0)
    score = (keys @ c + biases).masked_fill(~there, -torch.inf)
    log_w = torch.log_softmax(score, dim=1)
    mean = torch.einsum("ht,htd->hd", log_w.exp(), keys)
    grow = (keys - mean[:, None]).abs() @ r
    # rounding of scores, and with them of k̄, a sum over the tokens, in float64
    size = (keys.abs() @ (c.abs() + r) + biases.abs()).amax(dim=1, keepdim=True)
    own = (len(c) + keys.shape[1] + 8) * FLOAT64.u * (1 + size)
    grow = grow * UP_MANY + 4 * own * (1 + grow.amax(dim=1, keepdim=True))
    weights = ((log_w + grow).clamp_max(0.0).exp() * UP_MANY).masked_fill(~there, 0.0)
    swing = torch.einsum("htdo,d->hto", block.slopes.abs(), r)
    value = block.values + torch.einsum("htdo,d->hto", block.slopes, c)
    high = (value + swing).masked_fill(~there[..., None], -torch.inf).amax(dim=1)
    low = (value - swing).masked_fill(~there[..., None], torch.inf).amin(dim=1)
    span = (high - low).amax(dim=1) * UP_MANY + 1e-14 * torch.maximum(high.abs(), low.abs()).amax(dim=1)
    return torch.where(own.flatten() < 1e-3, weights.T, 1.0).T.masked_fill(~there, 0.0), span
