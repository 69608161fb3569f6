"""Cells: of every head only the tokens that matter near a point, and only the heads that are undecided there.

The box |x̂| ≤ edge is cut into equal cells. On a cell with centre c and half-widths r Jensen's inequality bounds every
weight of a head (`certify/deployed`): with k̄ = Σ_t w_t(c) keys_t,

    w_t(x) ≤ W_t = w_t(c) e^(Σ_i |keys_ti − k̄_i| r_i).

Leaving out tokens of total weight m moves a head's average by m |its average over them − its average over the rest|, at most
Σ_dropped W_t · span, where span is the range of the head's values on the cell. In every cell tokens go, the cheapest first,
as long as all of this stays within half of the `remainder`; the heaviest token of a head stays. A head with one token left is
affine and joins the cell's affine part: saturated gates cost nothing (adaptive computation), and a head of ten thousand
memory tokens is left with the few hundred that it can see (sparse attention).

Rounding of what is left is bounded by `box_rounding`; a cell where that exceeds the other half keeps all its tokens. Cells are
made when first visited. Points outside the box are evaluated in full.
"""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ...formula.additive import maximal
from ...layer.arithmetic import FLOAT64
from ...layer.form import Block, Form
from ...layer.heads import Hinges
from ...layer.rounding.deployed import Boxes, Deployment, box_rounding, deployed_rounding
from .averages import Averages
from .linear import CHUNK, Plan

EDGE = 0.51  # |x̂| up to which cells reach
UP = 1 + 1e-6
MOST = 2**20  # cells at most
TRIES = 6  # cells that are looked at to choose how fine they are
CALL = 2e4  # evaluating one cell costs as much as so many tokens at one point
BATCH = 2**17  # points that are thought to come at a time
SLACK = 1e-6  # cells overlap by so much: rounding may take a point to its neighbour


@dataclass(frozen=True)
class Cell:
    """What is left of a form on one cell, in one dtype."""

    bias: Float[Tensor, " out"]
    linear: Float[Tensor, "coordinate out"]
    heads: tuple[Averages, ...]
    tokens: int

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        y = torch.addmm(self.bias, x, self.linear)
        for part in self.heads:
            y += part(x)
        return y


@dataclass
class Cells:
    """One group's form, cell by cell; each answer is within `remainder` of the real function, rounding included."""

    form: Form
    remainder: float
    dtype: torch.dtype
    how: Deployment
    counts: int = 0  # cells along every side
    made: dict[int, Cell] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts = self.counts or self._fineness()

    @property
    def dimension(self) -> int:
        return self.form.dimension

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        """Values at points of the box, sorted by cell on the way."""
        at = ((x.double() + EDGE) * (self.counts / (2 * EDGE))).long().clamp_(0, self.counts - 1)
        number = (at * self.counts ** torch.arange(self.dimension)).sum(dim=1)
        number, order = number.sort(stable=True)
        cells, sizes = number.unique_consecutive(return_counts=True)
        given = x[order].split(sizes.tolist())
        y = torch.cat([self.cell(int(n))(part) for n, part in zip(cells, given, strict=True)])
        return torch.empty_like(y).index_copy_(0, order, y)

    def cell(self, number: int) -> Cell:
        """The cell of that number, made if it was not visited before."""
        if number not in self.made:
            self.made[number] = self._cell(self._box(number, self.counts))
        return self.made[number]

    def _box(self, number: int, counts: int) -> Boxes:
        """[1, coordinate]: the cell of that number."""
        at = (number // counts ** torch.arange(self.dimension)) % counts
        half = EDGE / counts
        centre = -EDGE + (2 * at.double() + 1) * half
        return Boxes(centre[None], torch.full((1, self.dimension), half * UP + SLACK, dtype=torch.float64))

    def _cell(self, box: Boxes) -> Cell:
        reduced, folded = self._reduced(box)
        rounding = float(box_rounding(reduced, box, self.how).max()) + self._folding(reduced, folded)
        form = reduced if rounding <= self.remainder / 2 else self.form
        heads = tuple(Averages.of(block, self.dtype) for block in form.blocks)
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
        """[head, token] for every block: what stays."""
        costs, stay = [], []
        for block in self.form.blocks:
            weights, span = _weights(block, box)
            costs.append((weights * span[:, None]).masked_fill(~block.there, 0.0).flatten())
            best = torch.zeros_like(block.there)
            best[torch.arange(len(best)), weights.masked_fill(~block.there, -1.0).argmax(dim=1)] = True
            stay.append((best.flatten(), block.there.flatten()))
        if not costs:
            return []
        every = torch.cat(costs).masked_fill(torch.cat([s[0] for s in stay]), torch.inf)
        order = every.argsort()
        gone = torch.zeros_like(every, dtype=torch.bool)
        gone[order] = every[order].cumsum(dim=0) * UP <= self.remainder / 2
        sizes = [len(c) for c in costs]
        return [
            (there & ~out).reshape(block.biases.shape)
            for block, out, (_, there) in zip(self.form.blocks, gone.split(sizes), stay, strict=True)
        ]

    def _fineness(self) -> int:
        """Cells along a side: halved until a point is no longer cheaper, tried on a few cells."""
        tokens = sum(block.biases.numel() for block in self.form.blocks)
        best, counts = (float(tokens), 1), 2
        generator = torch.Generator().manual_seed(0)
        while counts**self.dimension <= MOST:
            numbers = torch.randint(counts**self.dimension, (TRIES,), generator=generator).tolist()
            left = [sum(int(k.sum()) for k in self._kept(self._box(n, counts))) for n in numbers]
            cost = sum(left) / len(left) + CALL * counts**self.dimension / BATCH
            if cost < best[0]:
                best = (cost, counts)
            elif counts > 8 * best[1]:
                break
            counts *= 2
        return best[1]


class Sparse:
    """A form whose heads of at least `many` tokens are evaluated cell by cell; x is normalised, |x̂| ≤ EDGE.

    Each answer is within `remainder` of the real function, rounding of cells included; the other heads, and cells that
    could not be made smaller, round as they do anyway (`rounding`).
    """

    def __init__(self, form: Form, hinges: tuple[Hinges, Tensor], how: Deployment, remainder: float, many: int) -> None:
        local = tuple(block for block in form.blocks if block.biases.shape[1] >= many)
        others = tuple(block for block in form.blocks if block.biases.shape[1] < many)
        self.rest = Form(form.bias, form.linear, others)
        self.local = Form(torch.zeros_like(form.bias), torch.zeros_like(form.linear), local)
        groups = maximal(self.local.links()) if local else []
        self.how = replace(how, summands=how.summands + len(groups) + 2)  # the groups are added up, too
        dtype = how.arithmetic.dtype
        self.plan = Plan.of(self.rest, dtype, hinges=hinges)
        split = zip(groups, self.local.split(groups), strict=True) if groups else ()
        self.parts = [(list(group), Cells(part, remainder / len(groups), dtype, self.how)) for group, part in split]

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        rows = max(1, CHUNK // self.plan.width)
        y = torch.cat([self.plan(part) for part in x.split(rows)])
        for group, part in self.parts:
            y += part(x[:, group])
        return y

    def rounding(self, lower: Tensor, upper: Tensor, enough: float = 0.0) -> float:
        """Of the heads that are evaluated in full, at most; not looked at more closely once it is `enough`."""
        forms = (self.rest, self.local)
        rest, local = (deployed_rounding(form, lower, upper, self.how, enough / 2) for form in forms)
        return float((rest + local).max())


def _weights(block: Block, box: Boxes) -> tuple[Float[Tensor, "head token"], Float[Tensor, " head"]]:
    """(bounds on every weight, on the range of the values of every head) on one box."""
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
    grow = grow * UP + 4 * own * (1 + grow.amax(dim=1, keepdim=True))
    weights = ((log_w + grow).clamp_max(0.0).exp() * UP).masked_fill(~there, 0.0)
    swing = torch.einsum("htdo,d->hto", block.slopes.abs(), r)
    value = block.values + torch.einsum("htdo,d->hto", block.slopes, c)
    high = (value + swing).masked_fill(~there[..., None], -torch.inf).amax(dim=1)
    low = (value - swing).masked_fill(~there[..., None], torch.inf).amin(dim=1)
    span = (high - low).amax(dim=1) * UP + 1e-14 * torch.maximum(high.abs(), low.abs()).amax(dim=1)
    return torch.where(own.flatten() < 1e-3, weights.T, 1.0).T.masked_fill(~there, 0.0), span
