"""One group of coordinates: the range of g = T − f on its share of the domain, box by box, with proof.

`analytic` says how the parts make a certificate and why each step holds.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from flint import acb, arb

from ..assemble import Frame
from ..formula import Formula, enclose_complex, holds, interval
from ..formula.bounded import evaluate_bounded
from ..target import Target
from ..threads import one_thread
from . import chebyshev
from .form import Form
from .rounding import form_rounding
from .strip import Ellipses, largest, spreads

DEGREES = {1: (16, 24, 32, 48), 2: (12, 16, 20, 26), 3: (8, 10, 12, 16), 4: (6, 8, 10, 12)}
PHASE = 1.1  # largest θ of a head
FINE = 8  # N = FINE·p points per axis, on boxes that matter
COARSE = 3
ALONG_EDGES = 32  # boxes per side, at least, where a condition cuts the box
RATE = 3e7  # attention weights evaluated per second, about
SMALLEST = {1: 2.0**-12, 2: 2.0**-7}  # of a side: smaller boxes are not tried
AT_ONCE = 2**22  # numbers held at a time
UP = 1 + 1e-9


@dataclass
class Budget:
    """Boxes and seconds to spend."""

    boxes: int = 200_000
    seconds: float = 60.0
    started: float = field(default_factory=time.perf_counter)

    def spent(self, boxes: int) -> bool:
        return boxes > self.boxes or time.perf_counter() - self.started > self.seconds


@dataclass(frozen=True)
class Range:
    """Proved: low ≤ g ≤ high on the whole part, per output, with how many boxes and what degree; ±∞ if nothing is proved."""

    low: np.ndarray
    high: np.ndarray
    boxes: int
    degree: int
    rho: float


@dataclass(frozen=True)
class Part:
    """One group of coordinates: its share of the layer and of the formula."""

    form: Form
    formula: Formula
    target: Target
    frame: Frame
    group: tuple[int, ...]
    reach: float

    @property
    def dimension(self) -> int:
        return len(self.group)

    @property
    def edge(self) -> float:
        """max |x̂_i| on the part."""
        shift, scale = (np.array([t[j] for j in self.group]) for t in (self.frame.shift, self.frame.scale))
        return float(np.abs((np.stack(self._sides()) - shift) * scale).max()) * UP

    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        pick = list(self.group)
        return np.array(self.target.domain.lower)[pick], np.array(self.target.domain.upper)[pick]

    def range(self, tail: float, budget: Budget, progress: Callable[[str, float], None] | None) -> Range:
        """Enclose g on every box of a tiling, splitting where needed; first coarsely, then finely where it matters."""
        with one_thread(sum(b.biases.numel() for b in self.form.blocks) < 500):
            return self._range(tail, budget, progress)

    def _range(self, tail: float, budget: Budget, progress: Callable[[str, float], None] | None) -> Range:
        p, rho, counts = self._design(tail)
        if self.target.domain.where is not None:  # boxes across the edge of the domain count in full: keep them small
            counts = [max(count, ALONG_EDGES) for count in counts]
        finished: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # boxes [.., 2, D], low, high
        m = len(self.form.bias)
        done = 0
        infinite = Range(np.full(m, -np.inf), np.full(m, np.inf), 0, p, rho)
        weights = math.prod(counts) * float(p + 1) ** self.dimension * sum(b.biases.numel() for b in self.form.blocks)
        if weights / RATE > budget.seconds or math.prod(counts) > budget.boxes:
            return infinite  # hopeless from the start
        pending = self._tiling(counts)
        while len(pending):
            if budget.spent(done + len(pending)):
                return infinite
            take = max(1, AT_ONCE // ((COARSE * p) ** self.dimension * m))
            chunk, pending = pending[:take], pending[take:]
            chunk = self._relevant(chunk)
            if not len(chunk):
                continue
            tails = self._truncation(chunk, p, rho)
            good = (tails <= tail).all(axis=1)
            if not good.all():
                if self._too_small(chunk[~good]):
                    return infinite
                pending = np.concatenate([_halved(chunk[~good]), pending])
            if good.any():
                finished.append((chunk[good], *self._enclosure(chunk[good], tails[good], p, COARSE * p)))
                done += int(good.sum())
            if progress:
                progress("certifying", done / (done + len(pending)))
        if not finished:
            return infinite  # every box was proved outside the condition: nothing is claimed about nothing
        boxes, low, high = (np.concatenate(column) for column in zip(*finished, strict=True))
        return self._refined(boxes, low, high, p, rho)

    def _too_small(self, boxes: np.ndarray) -> bool:
        """Whether a box that failed is so small that splitting it further is hopeless (a kink, a jump, a singularity)."""
        lower, upper = self._sides()
        widest = ((boxes[:, 1] - boxes[:, 0]) / (upper - lower)).max(axis=1)
        return bool((widest < SMALLEST[min(self.dimension, 2)]).any())

    def _refined(self, boxes: np.ndarray, low: np.ndarray, high: np.ndarray, p: int, rho: float) -> Range:
        """The boxes with the widest ranges on a finer grid, until no other box can matter."""
        low, high = low.copy(), high.copy()
        fine = np.zeros(len(boxes), dtype=bool)
        take = max(1, AT_ONCE // ((FINE * p) ** self.dimension * low.shape[1]))
        while True:
            worst = np.unique(np.concatenate([high.argmax(axis=0), low.argmin(axis=0)]))
            if fine[worst].all():
                return Range(low.min(axis=0), high.max(axis=0), len(boxes), p, rho)
            size = np.maximum(high, -low).max(axis=1)
            todo = np.unique(np.concatenate([worst, np.argsort(-np.where(fine, -np.inf, size))[:take]]))
            todo = todo[~fine[todo]][:take]
            tails = self._truncation(boxes[todo], p, rho)
            found = self._enclosure(boxes[todo], tails, p, FINE * p)
            low[todo], high[todo] = np.maximum(low[todo], found[0]), np.minimum(high[todo], found[1])
            fine[todo] = True

    def _design(self, tail: float) -> tuple[int, float, list[int]]:
        """Degree, ellipse and boxes per axis with the least work."""
        D = self.dimension
        scale = np.array([self.frame.scale[j] for j in self.group])
        lower, upper = self._sides()
        sides = (upper - lower) * scale
        keys = spreads(self.form).numpy()
        best: tuple[float, int, float, list[int]] | None = None
        size = float(form_size(self.form)) + 1.0
        for p in DEGREES[D]:
            rho = 2.0
            for _ in range(20):  # truncation ≤ tail for V = 16 · size
                rho = max(1.15, (64 * size * D * chebyshev.lebesgue(p) ** (D - 1) / (tail * (rho - 1))) ** (1 / p))
            across = (rho - 1 / rho) / 2
            counts = [max(1, math.ceil(s * k * across / (4 * PHASE))) for s, k in zip(sides, keys, strict=True)]
            work = math.prod(counts) * float(p + 1) ** D
            if best is None or work < best[0]:
                best = work, p, rho, counts
        assert best is not None
        return best[1], best[2], best[3]

    def _tiling(self, counts: list[int]) -> np.ndarray:
        """Boxes [box, 2, D] that cover the domain with shared float faces."""
        lower, upper = self._sides()
        axes = []
        for a, b, n in zip(lower, upper, counts, strict=True):
            cuts = np.clip(np.concatenate([[a], a + (b - a) * np.arange(1, n) / n, [b]]), a, b)
            axes.append(np.stack([cuts[:-1], cuts[1:]], axis=1))
        index = np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), axis=-1).reshape(-1, len(counts))
        return np.stack([axes[j][index[:, j]] for j in range(len(counts))], axis=2)

    def _relevant(self, boxes: np.ndarray) -> np.ndarray:
        """Without the boxes that are proved to lie outside the domain's condition."""
        where = self.target.domain.where
        if where is None:
            return boxes
        keep = [holds(where, [interval(a, b) for a, b in box.T.tolist()]) is not False for box in boxes]
        return boxes[np.array(keep, dtype=bool)]

    def _ellipses(self, boxes: np.ndarray, rho: float) -> Ellipses:
        """The boxes in normalised coordinates, a trifle enlarged for the rounding of the normalisation."""
        shift, scale = (np.array([t[j] for j in self.group]) for t in (self.frame.shift, self.frame.scale))
        centres = (boxes.mean(axis=1) - shift) * scale
        slack = 1e-14 * (1 + self.reach)
        halves = (boxes[:, 1] - boxes[:, 0]) / 2 * scale * (1 + 1e-12) + slack
        return Ellipses(torch.from_numpy(centres), torch.from_numpy(halves), rho)

    def _truncation(self, boxes: np.ndarray, p: int, rho: float) -> np.ndarray:
        """[box, out]: truncation error, and what rounded nodes add; ∞ where V is."""
        V = (largest(self.form, self._ellipses(boxes, rho)).numpy() + self._formula_size(boxes, rho)).max(axis=1)
        half = (boxes[:, 1] - boxes[:, 0]) / 2
        with np.errstate(divide="ignore"):
            nodes_off = 10 * 2.0**-53 * np.abs(boxes).max(axis=1) / (half * ((rho + 1 / rho) / 2 - 1))
        factor = chebyshev.truncation(p, rho, self.dimension)
        amplified = (chebyshev.lebesgue(p) * 1.1) ** self.dimension
        with np.errstate(invalid="ignore"):
            found = V * (factor + nodes_off.sum(axis=1, keepdims=True) * amplified) * UP
        return np.where(np.isnan(found), np.inf, found)

    def _formula_size(self, boxes: np.ndarray, rho: float) -> np.ndarray:
        """[box, coordinate, out]: |f| on the rectangle around each ellipse, by complex balls; ∞ where not proved analytic."""
        D, m = self.dimension, len(self.formula.outputs)
        found = np.empty((len(boxes), D, m))
        real, across = (rho + 1 / rho) / 2 * UP, (rho - 1 / rho) / 2 * UP
        for b, box in enumerate(boxes):
            middle, half = (box[0] + box[1]) / 2, (box[1] - box[0]) / 2 * UP + 1e-15 * np.abs(box).max()
            balls = [acb(arb(c, h)) for c, h in zip(middle.tolist(), half.tolist(), strict=True)]
            for i in range(D):
                own = acb(arb(float(middle[i]), float(half[i] * real)), arb(0, float(half[i] * across)))
                for o, value in enumerate(enclose_complex(self.formula, [*balls[:i], own, *balls[i + 1 :]])):
                    size = float(value.abs_upper()) if value.is_finite() else math.inf
                    found[b, i, o] = size * UP if math.isfinite(size) else math.inf
        return found

    def _enclosure(self, boxes: np.ndarray, tails: np.ndarray, p: int, N: int) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of g on every box, [box, out]: range of the interpolant, enlarged, and all errors."""
        D, m = self.dimension, len(self.form.bias)
        x = self._nodes(boxes, p)
        f, f_error = evaluate_bounded(self.formula, x)
        own = [[t[j] for j in self.group] for t in (self.frame.shift, self.frame.scale)]
        shift, scale = torch.tensor(own, dtype=torch.float64)
        rows = max(1, AT_ONCE // max(1, sum(b.biases.numel() for b in self.form.blocks)))
        pieces = [self.form((part - shift) * scale) for part in torch.from_numpy(x).split(rows)]
        T = torch.cat(pieces).numpy()
        g = (T - f).reshape(len(boxes), *(p + 1,) * D, m)
        rounding = form_rounding(self.form, self.edge, self.form.summands).numpy()
        nodal = f_error.reshape(len(boxes), -1, m).max(axis=1) + rounding
        nodal = nodal + 2.0**-52 * np.abs(g).reshape(len(boxes), -1, m).max(axis=1)
        B = chebyshev.matrix(p, N)
        q = g
        for axis in range(D):
            q = np.moveaxis(np.tensordot(q, B, axes=([axis + 1], [1])), -1, axis + 1)
        q = q.reshape(len(boxes), -1, m)
        top, bottom = q.max(axis=1), q.min(axis=1)
        middle, radius = (top + bottom) / 2, (top - bottom) / 2 * UP
        size = np.abs(g).reshape(len(boxes), -1, m).max(axis=1)
        grow = chebyshev.enlargement(p, N, D)
        amplified = (chebyshev.lebesgue(p) * UP) ** D
        slack = (
            nodal * amplified + chebyshev.product_rounding(p, N, D) * size * grow * 2 + tails + 4e-16 * np.abs(middle)
        )
        good = np.isfinite(q).all(axis=1) & np.isfinite(slack)
        reach = np.where(good, radius * grow + slack * UP, np.inf)
        return np.where(good, middle - reach, -np.inf), np.where(good, middle + reach, np.inf)

    def _nodes(self, boxes: np.ndarray, p: int) -> np.ndarray:
        """Chebyshev points of every box as float points of the domain, [box·(p+1)^D, D]."""
        D = self.dimension
        t = chebyshev.nodes(p)
        middle, half = (boxes[:, 0] + boxes[:, 1]) / 2, (boxes[:, 1] - boxes[:, 0]) / 2
        along = np.clip(middle[:, :, None] + half[:, :, None] * t, boxes[:, 0, :, None], boxes[:, 1, :, None])
        grids = np.meshgrid(*([np.arange(p + 1)] * D), indexing="ij")
        columns = [along[:, j, grids[j].reshape(-1)] for j in range(D)]
        return np.stack(columns, axis=-1).reshape(-1, D)


def form_size(form: Form) -> torch.Tensor:
    """|T| is at most about this on the box: for choosing a degree, not for proofs."""
    total = form.bias.abs().max() + form.linear.abs().sum()
    for block in form.blocks:
        there = block.there[..., None]
        total = total + (block.values.abs() + block.slopes.abs().sum(dim=2)).masked_fill(~there, 0.0).amax(dim=1).sum()
    return total


def _halved(boxes: np.ndarray) -> np.ndarray:
    """Every box cut in two along its longest side."""
    axis = (boxes[:, 1] - boxes[:, 0]).argmax(axis=1)
    rows = np.arange(len(boxes))
    middle = boxes[rows, :, axis].mean(axis=1)
    left, right = boxes.copy(), boxes.copy()
    left[rows, 1, axis] = middle
    right[rows, 0, axis] = middle
    return np.concatenate([left, right])
