"""A cover of one group's box by smaller boxes with proved ranges, refined where that lowers the bound.

Every box is first bounded coarsely. Then those that decide, with the largest `high` or the smallest `low`, are bounded
finely; if they lie across the edge of the domain's condition they are halved, and halves outside are dropped. Where the bound
is asked to be closer than usual, boxes that are bounded finely and still decide are halved as well. The cover is
valid at every moment, so refinement may stop at any time: it stops when the bound is close to what was seen at nodes in the
domain, when the boxes that decide cannot be refined, or when the budget is spent.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from ...common.budget import Budget, OutOfTime
from ...common.machine import one_thread
from .enclosure import COARSE, FINE, Ranges, enclosed, fineness_for
from .findings import Findings
from .subdivision import halved, halved_for_goal, measured, tiling
from .summand import MOST_WITH_HEADS, Summand
from .tiles import Tiles

BOXES_PER_SIDE = 4  # at least, where a condition cuts the box
FREEZING_COST = 2.0  # times the truncation aimed at: what constants in the place of singular nodes may cost
FINER = 0.1  # share of the truncation aimed at, once a box decides
CLOSE_ENOUGH = 0.01  # relative excess over what was seen that is not worth refining …
CLOSE_ACROSS = 0.05  # … where a condition cuts the box: the closer, the more boxes lie across its edge
THINNEST_HALVED = 2.0**-24  # share of a side: thinner boxes are not halved
MOSTLY_SLACK = 0.25  # share of a box's excess: if that much is rounding, halves would gain next to nothing
NOTHING_KNOWN = (-np.inf, np.inf, np.inf, -np.inf, np.inf, -np.inf, np.inf)  # the fields of Ranges
REFINED_AT_ONCE = 64  # boxes
ONE_THREAD_BELOW = 500  # tokens: with fewer, one thread is quicker
NODES_AT_ONCE, WEIGHTS_AT_ONCE = 2**19, 2**28  # between two looks at the clock
PATIENCE = 3.0  # give up early on a cover that would take this many times the seconds left


@dataclass(frozen=True)
class BoundedTiles:
    """Boxes with proved ranges low ≤ g ≤ high, [box, out]."""

    tiles: Tiles
    degrees: np.ndarray  # [box]
    low: np.ndarray
    high: np.ndarray
    done: np.ndarray  # [box]: no closer bound can be found
    across: np.ndarray  # [box]: the domain's condition is undecided there
    fine: np.ndarray  # [box]: bounded finely

    @property
    def lower(self) -> np.ndarray:
        return self.tiles.boxes[:, 0]

    @property
    def upper(self) -> np.ndarray:
        return self.tiles.boxes[:, 1]

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, which: np.ndarray) -> "BoundedTiles":
        return BoundedTiles(*(getattr(self, f.name)[which] for f in fields(self)))

    def joined(self, other: "BoundedTiles") -> "BoundedTiles":
        columns = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)[1:]]
        return BoundedTiles(Tiles.joined([self.tiles, other.tiles]), *(np.concatenate(pair) for pair in columns))


@dataclass
class Cover(Findings):
    """Tiles that cover one group's box."""

    summand: Summand
    goal: float
    boxes: BoundedTiles | None
    smallest_seen: np.ndarray  # smallest and largest g seen at a node in the domain, [out]
    largest_seen: np.ndarray
    close: float | None = None  # relative excess over what was seen that is not worth refining, if asked for

    @property
    def ellipse(self) -> float:
        """The smallest parameter of an ellipse."""
        return 1.0 if self.boxes is None else float(self.boxes.tiles.rho.min())

    def refine(self, budget: Budget, alone: bool) -> bool:
        """Refine some of the boxes that decide; False when there is nothing to refine.

        Both ends of every output decide if other summands are added; if this one is `alone`, only the largest |g| does.
        """
        boxes = self.boxes
        if boxes is None or budget.over(len(boxes)):
            return False
        scores, enough = _scores(boxes, alone), self._enough(alone)
        ends = (scores.max(axis=0) > enough) & ~boxes.done[scores.argmax(axis=0)]
        excess = np.where(boxes.done[:, None], 0.0, scores - enough)[:, ends].max(axis=1, initial=0.0)
        some = np.argsort(-excess, kind="stable")[:REFINED_AT_ONCE]
        some = some[excess[some] > 0]
        if not len(some):
            return False
        try:
            with one_thread(self.summand.tokens < ONE_THREAD_BELOW):
                halve = boxes.across[some] | boxes.fine[some]
                finely = some[~halve]
                slack = self._bound_finely(boxes, finely)
                left = (_scores(boxes, alone)[finely] - self._enough(alone))[:, ends].max(axis=1)
                boxes.done[finely] = (self.close is None) | (slack >= MOSTLY_SLACK * left)
                if halve.any():
                    self._halve(boxes, some[halve])
        except OutOfTime:
            return False
        return True

    def _enough(self, alone: bool) -> np.ndarray:
        """The scores that are not worth lowering, [end]: close to what was seen."""
        seen = np.concatenate([self.largest_seen, -self.smallest_seen])
        close, more = CLOSE_ENOUGH, 0.0
        if self.close is not None:
            close = self.close
        elif self.summand.target.domain.within is not None:
            close, more = CLOSE_ACROSS, FINER * self.goal
        if alone:
            return seen.max(keepdims=True) * (1 + close) + more
        return seen + close * np.tile(np.maximum(self.largest_seen - self.smallest_seen, 0.0), 2) + more

    def _bound_finely(self, boxes: BoundedTiles, some: np.ndarray) -> np.ndarray:
        """Bound the interpolants more closely, with degrees for less truncation; how much is slack all the same, [box]."""
        fineness, slack = fineness_for(self.close, self.summand.dimension), np.zeros(len(some))
        degrees = boxes.tiles[some].degrees(FINER * self.goal)
        for p in np.unique(degrees).tolist():
            own = some[degrees == p]
            found = enclosed(self.summand, boxes.tiles[own], p, fineness)
            slack[degrees == p] = found.slack.max(axis=1)
            boxes.low[own] = np.maximum(boxes.low[own], found.low)
            boxes.high[own] = np.minimum(boxes.high[own], found.high)
            boxes.degrees[own], boxes.fine[own] = p, True
            if self.close is not None:
                self.smallest_seen = np.minimum(self.smallest_seen, found.bottom.min(axis=0))
                self.largest_seen = np.maximum(self.largest_seen, found.top.max(axis=0))
        return slack

    def _halve(self, boxes: BoundedTiles, some: np.ndarray) -> None:
        lower, upper = self.summand.sides
        widths = (boxes.tiles.boxes[some, 1] - boxes.tiles.boxes[some, 0]) / (upper - lower)
        halves = halved(boxes.tiles.boxes[some], widths.argmax(axis=1))
        parents, truths = np.concatenate([some, some]), self.summand.truths(halves)
        halves, parents, truths = halves[truths != -1], parents[truths != -1], truths[truths != -1]
        kept = np.ones(len(boxes), dtype=bool)
        kept[some] = False
        kept_boxes = boxes[kept]
        if len(halves):
            found = bounded(self.summand, measured(self.summand, halves), truths, FINER * self.goal)
            assert found is not None
            own, seen = found
            # what holds on a box holds on its halves
            low, high = np.maximum(own.low, boxes.low[parents]), np.minimum(own.high, boxes.high[parents])
            parents_fine = boxes.fine[parents]
            thin = (truths == 0) | parents_fine
            thin &= widths.max(axis=1)[np.arange(len(parents)) % len(some)] < THINNEST_HALVED
            kept_boxes = kept_boxes.joined(replace(own, low=low, high=high, done=thin))
            self.smallest_seen = np.minimum(self.smallest_seen, seen[0])
            self.largest_seen = np.maximum(self.largest_seen, seen[1])
        if len(kept_boxes):  # an empty cover would prove nothing
            self.boxes = kept_boxes
        else:
            boxes.done[:] = True


def _scores(boxes: BoundedTiles, alone: bool) -> np.ndarray:
    """How far g may reach on every box, [box, end]: up and down for every output, or the largest |g| if that is what counts."""
    scores = np.hstack([boxes.high, -boxes.low])
    return scores.max(axis=1, keepdims=True) if alone else scores


def bounded(
    summand: Summand, tiles: Tiles, truths: np.ndarray, goal: float, progress: Callable[[float], bool] | None = None
) -> tuple[BoundedTiles, tuple[np.ndarray, np.ndarray]] | None:
    """The tiles, coarsely bounded, and the smallest and largest g seen; None if `progress(fraction)` returns True."""
    degrees = tiles.degrees(goal)
    m = len(summand.form.bias)
    ranges = Ranges(*(np.full((len(tiles), m), end) for end in NOTHING_KNOWN))
    work, total = 0.0, float(((degrees + 1.0) ** summand.dimension).sum())
    for p in np.unique(degrees).tolist():
        own = np.flatnonzero(degrees == p)
        rows = max(1, min(NODES_AT_ONCE, WEIGHTS_AT_ONCE // max(summand.tokens, 1)) // (p + 1) ** summand.dimension)
        for some in np.array_split(own, -(-len(own) // rows)):
            found = enclosed(summand, tiles[some], p, COARSE)
            for f in fields(Ranges):
                getattr(ranges, f.name)[some] = getattr(found, f.name)
            work += len(some) * (p + 1.0) ** summand.dimension
            if progress and progress(work / total):
                return None
    done = np.zeros(len(tiles), dtype=bool)
    seen = ranges.smallest_seen.min(axis=0, initial=np.inf), ranges.largest_seen.max(axis=0, initial=-np.inf)
    return BoundedTiles(tiles, degrees, ranges.low, ranges.high, done, truths == 0, np.zeros_like(done)), seen


def cover(
    summand: Summand, goal: float, budget: Budget, report: Callable[[float], None], close: float | None = None
) -> Cover:
    """A tiling, every box coarsely bounded."""
    m = len(summand.form.bias)
    nothing = Cover(summand, goal, None, np.zeros(m), np.zeros(m))

    def stop(fraction: float) -> bool:
        report(fraction)
        used = budget.elapsed - before
        return budget.over(0) or (used > 2.0 and used / fraction - used > PATIENCE * (budget.seconds - budget.elapsed))

    if summand.dimension > MOST_WITH_HEADS:
        return nothing
    try:
        with one_thread(summand.tokens < ONE_THREAD_BELOW):
            per_side = 1 if summand.target.domain.within is None else BOXES_PER_SIDE
            layout = tiling(summand, budget.over, per_side, FREEZING_COST * goal)
            if layout is None:
                return nothing
            tiles, before = halved_for_goal(summand, layout.analytic, goal, budget.over), budget.elapsed
            found = bounded(summand, tiles, summand.truths(tiles.boxes), goal, stop)
            frozen = [_bounded_frozen(own, part, goal) for own, part in layout.frozen]
    except OutOfTime:
        return nothing
    if found is None:
        return nothing
    boxes, (smallest, largest) = found
    for more, seen in frozen:
        boxes = boxes.joined(more)
        smallest, largest = np.minimum(smallest, seen[0]), np.maximum(largest, seen[1])
    return Cover(summand, goal, boxes, smallest, largest, close)


def _bounded_frozen(summand: Summand, tiles: Tiles, goal: float) -> tuple[BoundedTiles, tuple[np.ndarray, np.ndarray]]:
    """Frozen tiles, finely bounded at once: they are few, small, and not refined any more. Nothing counts as seen of f."""
    degrees, m = tiles.degrees(FINER * goal), len(summand.form.bias)
    low, high = np.full((len(tiles), m), -np.inf), np.full((len(tiles), m), np.inf)
    for p in np.unique(degrees).tolist():
        own = np.flatnonzero(degrees == p)
        found = enclosed(summand, tiles[own], p, FINE)
        low[own], high[own] = found.low, found.high
    all_done = np.ones(len(tiles), dtype=bool)
    across = summand.truths(tiles.boxes) == 0
    boxes = BoundedTiles(tiles.without_constants(), degrees, low, high, all_done, across, all_done.copy())
    return boxes, (np.full(m, np.inf), np.full(m, -np.inf))
