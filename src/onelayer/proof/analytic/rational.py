"""A cover of one group's box by boxes on which T − f = G/W is bounded by rational Bernstein forms, for groups with one head.

On a box G and W are interpolated, with degrees of their own in every coordinate (`degrees`), and turned into Bernstein
form: G = Σ_k γ_k B_k up to δG and W = Σ_k ω_k B_k up to δW with B_k ≥ 0, Σ_k B_k = 1. If ω_k > δW for all k,

    G/W ≤ max_k (γ_k + δG)/(ω_k ∓ δW),    − where the numerator is positive, + where it is negative,

since r ≥ 0 with γ_k + δG ≤ r(ω_k − δW) for all k gives G ≤ rW; below likewise. At the corners this is exact but for δ. A box
whose degrees would take too many nodes is halved before anything is evaluated; a box that decides the bound is halved
where G/W bends most. δ has three parts: the remainders; errors of nodal values, which perturb the polynomial, times the
product of the Lebesgue constants; and the rounding of the Bernstein coefficients, Σ(p_i + 4)u·Π‖B_i‖ times the largest value.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from ...common.budget import Budget, OutOfTime
from ...common.outward import UP, U
from .bernstein import interpolation
from .cleared import LARGEST_SPREAD, ClearedBoxes, NodalValues, OneHead
from .convolved import ProductRemainders
from .covariance import CovarianceBoxes, SlopeHead
from .degrees import Remainders
from .findings import Findings
from .subdivision import SMALLEST_SIDE
from .summand import Summand

CLOSE_ENOUGH = 0.02  # relative excess over what was seen that is not worth refining
MOST_NODES = {5: 100_000, 6: 500_000}  # of one box, by the number of coordinates; fewer coordinates never reach them
MOST_NODES_ELSE = 2_000_000
NODES_AT_ONCE = 500_000
BOXES_AT_ONCE, NUMBERS_AT_ONCE = 256, 2**23
FINEST = 1e-14  # truncation relative to the size of T and f: nothing finer is aimed at
FEW = 16  # boxes at once where f has no enclosure: if it never gets one, that is soon known
FREE_NODES = 200_000  # spent on a closer bound in any case
MORE_NODES = 1.5  # times the nodes that it took to decide may be spent in all
REFINED_SHARE = 0.2  # share of the truncation that is allowed where boxes are halved for a closer bound


@dataclass(frozen=True)
class BoundedBoxes:
    """Boxes with proved ranges low ≤ T − f ≤ high, and the side to halve next (−1: nothing is gained)."""

    lower: np.ndarray  # [box, coordinate]
    upper: np.ndarray
    low: np.ndarray  # [box, out]
    high: np.ndarray
    side: np.ndarray  # [box]
    degrees: np.ndarray  # [box]: the highest, 0 if the range is a parent's

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, which: np.ndarray | slice) -> "BoundedBoxes":
        return BoundedBoxes(*(getattr(self, f.name)[which] for f in fields(self)))

    @staticmethod
    def joined(pieces: list["BoundedBoxes"]) -> "BoundedBoxes":
        return BoundedBoxes(*(np.concatenate([getattr(p, f.name) for p in pieces]) for f in fields(BoundedBoxes)))

    def halved(self) -> "BoundedBoxes":
        """Every box cut in two across its side; the halves keep the range."""
        rows = np.arange(len(self))
        middle = self.lower[rows, self.side] / 2 + self.upper[rows, self.side] / 2
        left, right = self.upper.copy(), self.lower.copy()
        left[rows, self.side], right[rows, self.side] = middle, middle
        both = BoundedBoxes.joined([replace(self, upper=left), replace(self, lower=right)])
        return replace(both, degrees=np.zeros_like(both.degrees))


class RationalCover(Findings):
    """Boxes that cover one group's box. `wanted`: the bound that is asked for; ∞ with other groups."""

    def __init__(self, summand: Summand, head: OneHead, goal: float, wanted: float, close: float | None = None) -> None:
        self.summand, self.head, self.wanted = summand, head, wanted
        self.close, self.patient = CLOSE_ENOUGH if close is None else close, close is not None
        self.goal = max(goal, FINEST * summand.size)  # what truncation may add
        self.boxes: BoundedBoxes | None = None
        self.smallest_seen, self.largest_seen = np.full(head.outputs, np.inf), np.full(head.outputs, -np.inf)
        self.nodes, self.decided = 0, math.inf  # nodes evaluated so far, and when the question was decided
        self.enclosed = np.ones(1, dtype=bool)  # which of the boxes looked at last have an enclosure of f

    def start(self, budget: Budget, report: Callable[[float], None]) -> None:
        """Bound boxes that cover the whole, depth first; there is no cover if that takes too long, or cannot be."""
        lower, upper = self.summand.sides
        pending = self._unbounded(lower[None], upper[None])
        whole, done, found, healthy = float((upper - lower).prod()), 0.0, list[BoundedBoxes](), True
        try:
            while len(pending):
                if budget.over(sum(map(len, found)) + len(pending)):
                    return
                rows = self._rows() if healthy else FEW
                now, pending = pending[-rows:], pending[:-rows]
                now = self._bounded(now)
                good = np.isfinite(now.high).all(axis=1) & np.isfinite(now.low).all(axis=1)
                healthy = bool(self.enclosed.all())
                if (now.side[~good] < 0).any():
                    return
                found.append(now[good])
                pending = BoundedBoxes.joined([pending, now[~good].halved()])
                done += float((found[-1].upper - found[-1].lower).prod(axis=1).sum())
                report(min(done / whole, 1.0))
        except OutOfTime:
            return
        self.boxes = BoundedBoxes.joined(found)

    def refine(self, budget: Budget, alone: bool) -> bool:
        """Halve some of the boxes that decide; False when there is nothing to gain.

        Both ends of every output decide if other summands are added; if this one is `alone`, only the largest error does.
        """
        boxes = self.boxes
        if boxes is None or budget.over(len(boxes)):
            return False
        scores, seen = np.hstack([boxes.high, -boxes.low]), np.concatenate([self.largest_seen, -self.smallest_seen])
        enough = seen + self.close * np.tile(np.maximum(self.largest_seen - self.smallest_seen, 0.0), 2)
        if alone:
            scores, enough = scores.max(axis=1, keepdims=True), seen.max(keepdims=True) * (1 + self.close)
        if scores.max() <= self.wanted or seen.max() > self.wanted:
            self.decided = min(self.decided, self.nodes)
            if not self.patient and self.nodes > MORE_NODES * self.decided + FREE_NODES:
                return False
        ends = (scores.max(axis=0) > enough) & (boxes.side[scores.argmax(axis=0)] >= 0)
        excess = np.where(boxes.side[:, None] < 0, 0.0, scores - enough)[:, ends].max(axis=1, initial=0.0)
        some = np.argsort(-excess, kind="stable")[: self._rows() // 2]
        some = some[excess[some] > 0]
        if not len(some):
            return False
        kept = np.ones(len(boxes), dtype=bool)
        kept[some] = False
        try:
            self.boxes = BoundedBoxes.joined([boxes[kept], self._bounded(boxes[some].halved(), REFINED_SHARE)])
        except OutOfTime:
            return False
        return True

    def _unbounded(self, lower: np.ndarray, upper: np.ndarray) -> BoundedBoxes:
        b, m = len(lower), self.head.outputs
        ends = np.full((b, m), -np.inf), np.full((b, m), np.inf)
        return BoundedBoxes(lower, upper, *ends, np.zeros(b, dtype=np.int64), np.zeros(b, dtype=np.int64))

    def _rows(self) -> int:
        per_box = 20 * self.head.tokens * self.head.dimension * max(self.head.outputs, 1)
        return max(2, min(BOXES_AT_ONCE, NUMBERS_AT_ONCE // per_box))

    def _bounded(self, boxes: BoundedBoxes, share: float = 1.0) -> BoundedBoxes:
        """The boxes with their own ranges where these are better, and the sides to halve."""
        D = self.head.dimension
        boxes = replace(boxes, low=boxes.low.copy(), high=boxes.high.copy(), degrees=boxes.degrees.copy())
        with np.errstate(all="ignore"):
            cleared, remainders = _cleared(self.head, boxes)
            level = self._level()
            most = MOST_NODES.get(D, MOST_NODES_ELSE)
            degrees, G_error, W_error = remainders.degrees(share * self.goal, level, most)
            self.enclosed = np.isfinite(remainders.steepest).all(axis=0)
            sides = self._sides_to_halve(boxes, remainders.worst_side(level))
            sides[cleared.q_error > LARGEST_SPREAD] = -1  # scores too large for their rounding
            ready = np.flatnonzero(np.isfinite(G_error))
            keys, which = np.unique(degrees[:, ready], axis=1, return_inverse=True)
            for k in range(keys.shape[1]):
                own, key = ready[which.ravel() == k], tuple(keys[:, k].tolist())
                size = math.prod(p + 1 for p in key)
                rows = max(1, NODES_AT_ONCE // size)
                for first in range(0, len(own), rows):
                    self.summand.budget.require_time()
                    some = own[first : first + rows]
                    nodal = cleared.nodes(key, some, remainders.steepest)
                    low, high, bends = self._ranges(nodal, key, G_error[some], W_error[some])
                    boxes.low[some] = np.fmax(boxes.low[some], low)
                    boxes.high[some] = np.fmin(boxes.high[some], high)
                    boxes.degrees[some] = max(key)
                    sides[some] = np.where(sides[some] < 0, -1, bends)
                    self.nodes += len(some) * size
        return replace(boxes, side=sides)

    def _level(self) -> float:
        """The size of T − f at which errors of W count. An error above `wanted` ends all hope: coarser truncation will do."""
        seen = float(np.maximum(self.largest_seen, -self.smallest_seen).max(initial=0.0))
        if seen > self.wanted:
            self.goal = max(self.goal, self.close * seen)
        return max(seen, self.goal, self.wanted if math.isfinite(self.wanted) else 0.0)

    def _sides_to_halve(self, boxes: BoundedBoxes, side: np.ndarray) -> np.ndarray:
        """The worst side, the relatively longest where there is none; −1 where halving is hopeless: f has no enclosure on a
        small box, or rounding does not let it be halved."""
        lower, upper = self.summand.sides
        width = (boxes.upper - boxes.lower) / (upper - lower)
        side = np.where(side < 0, width.argmax(axis=1), side)
        small = width.max(axis=1) < SMALLEST_SIDE[min(self.head.dimension, 2)]
        hopeless = small & ~self.enclosed
        rows = np.arange(len(boxes))
        ends = boxes.lower[rows, side], boxes.upper[rows, side]
        middle = ends[0] / 2 + ends[1] / 2
        thin = ~((ends[0] < middle) & (middle < ends[1])) | (width.min(axis=1) < 2.0**-40)
        return np.where(hopeless | thin, -1, side)

    def _ranges(
        self, nodal: NodalValues, key: tuple[int, ...], G_error: np.ndarray, W_error: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(low, high, the side across which G/W bends most) of some boxes with the same degrees."""
        D, b, m = self.head.dimension, len(nodal.W), self.head.outputs
        product = math.prod(interpolation(p).lebesgue for p in key) * UP
        rounding = sum(p + 4 for p in key) * 1.01 * U * math.prod(interpolation(p).norm for p in key)
        axes = tuple(range(1, D + 1))
        low, high = np.empty((b, m)), np.empty((b, m))
        omega = _bernstein(nodal.W, key)
        off = W_error + product * nodal.W_error + rounding * nodal.W.max(axis=axes)
        off = (off * UP).reshape(-1, *[1] * D)
        below, above = (omega - off) * (1 - 4 * U), (omega + off) * (1 + 4 * U)
        sound = (below > 0).all(axis=axes) & np.isfinite(above).all(axis=axes)
        bends = np.zeros((D, b))
        for o in range(m):
            values = nodal.G[..., o]
            gamma = _bernstein(values, key)
            errors = G_error + product * nodal.G_error[:, o] + rounding * np.abs(values).max(axis=axes)
            errors = (errors * UP).reshape(-1, *[1] * D)
            up, down = gamma + errors, gamma - errors
            top = (up / np.where(up > 0, below, above)).max(axis=axes)
            bottom = (down / np.where(down < 0, below, above)).min(axis=axes)
            high[:, o], low[:, o] = top + 8 * U * np.abs(top), bottom - 8 * U * np.abs(bottom)
            seen = values / nodal.W
            self.largest_seen[o] = np.fmax(self.largest_seen[o], seen.max(where=np.isfinite(seen), initial=-np.inf))
            self.smallest_seen[o] = np.fmin(self.smallest_seen[o], seen.min(where=np.isfinite(seen), initial=np.inf))
            ratio = gamma / np.maximum(omega, 0.2)
            for i, p in enumerate(key):
                if p > 1:
                    second = np.abs(np.diff(ratio, 2, axis=1 + i)).max(axis=axes) * p * p / (p - 1)
                    bends[i] = np.fmax(bends[i], second)
        good = sound[:, None] & np.isfinite(low) & np.isfinite(high)
        return np.where(good, low, -np.inf), np.where(good, high, np.inf), bends.argmax(axis=0)


def _cleared(head: OneHead, boxes: BoundedBoxes) -> tuple[ClearedBoxes, Remainders]:
    """G and W on boxes, and their remainders."""
    if isinstance(head, SlopeHead):
        covariances = CovarianceBoxes(head, boxes.lower, boxes.upper)
        return covariances, ProductRemainders(covariances)
    cleared = ClearedBoxes(head, boxes.lower, boxes.upper)
    return cleared, Remainders(cleared)


def _bernstein(values: np.ndarray, key: tuple[int, ...]) -> np.ndarray:
    """Bernstein coefficients from values at the nodes, [box, nodes…]."""
    shape = values.shape
    for i, p in enumerate(key):
        before, after = math.prod(shape[: i + 1]), math.prod(shape[i + 2 :])
        matrix = interpolation(p).matrix
        rows = values.reshape(before, p + 1, after)
        values = rows[:, :, 0] @ matrix.T if after == 1 else matrix @ rows
    return values.reshape(shape)
