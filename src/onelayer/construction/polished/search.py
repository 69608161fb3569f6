"""The search for the fewest units of one group: start small, polish, insert units where the error is largest, then prune.

Errors here are observed on a pool. Each size starts from the fit of the last one: new units are placed at the worst points of
the pool, as many as the rate seen so far asks for. Once the goal is met, the units that are missed least are taken away again.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ...common.budget import Budget
from ...common.machine import one_thread
from ...common.numbers import at_least
from ...target.group_samples import GroupSamples
from .families import Family
from .first_guess import ARRANGEMENTS, best_start, pruned
from .fit import Fit, FitSamples, StepLimits, errors_at, polish, sharpen
from .growth import LEAST_GROWTH, SHARPEN_WITHIN, expected_size, next_size, stalled

FIRST_UNITS = {"memory": (5, 10, 14, 18)}  # by the number of coordinates
FIRST_GATES = (3, 6, 8, 10)  # and of all other families
POOL = (4_000, 16_000, 30_000)  # points to look for the worst error on, by the number of coordinates
POINTS_PER_FREEDOM = 2.5  # points per free number (4 from three coordinates on, where the boundary is most of the box)
MOST_PRUNED = 0.06  # share of the units pruned at a time, once a size has failed
RETRY_WITHIN = (2.5, 1.5, 1.3)  # times the goal: a size that failed by less is tried once, twice, three times more
WORST_POINTS = 2000  # of the pool, near which units are inserted
FIRST_REACH, MOST_REACH = 50.0, 1e6  # largest parameters at first, and ever: large scores make the proof's boxes small
LEAST_SHARE = 0.1  # share of the goal that the error may have, however much rounding takes
ROUNDING_COUNTS = 0.2  # share of the goal: where rounding takes more than this, …
FRESH_WITHIN = 300.0  # … and the error is at most this many times the goal, every size is started afresh, too
MOST_LOST = 16  # fits, after which rounding above the goal ends the search
SHARPER = 10.0  # where growing stalls, raise the reach by this factor


@dataclass
class UnitSearch:
    """One group of coordinates, one family; `goal` is the error to reach on the pool, `most` the largest size allowed."""

    family: Family
    source: GroupSamples
    goal: float
    cap: Callable[[float, int], float]  # Σ|c| for a range of f and a number of units
    budget: Budget
    most: int
    exactly: bool = False  # this number of units, and the best fit it allows
    probe: bool = False  # whether to try the largest size first, and stop if it fails
    report: Callable[[str], None] = lambda stage: None
    best: Fit | None = None
    tried: dict[int, float] = field(default_factory=dict)
    device: str = "cpu"
    rounding: Callable[[Fit], float] | None = None  # what arithmetic with few digits adds to the error of a fit
    reach: float = FIRST_REACH
    most_reach: float = MOST_REACH
    grown: Fit | None = None  # the last fit while growing
    history: list[tuple[int, float]] = field(default_factory=list)  # (units, error) while growing

    def __post_init__(self) -> None:
        d = len(self.source.group)
        rows, values = self.source.draw(POOL[min(d, 3) - 1], 99 + self.source.seed)
        self.pool, self.pool_values = rows.to(self.device), values.to(self.device)
        self.spread = float((self.pool_values.amax(dim=0) - self.pool_values.amin(dim=0)).max()) or 1e-300
        one, two = (self._freedom(units, d + 1) for units in (1, 2))
        allowed = self.source.most_features(self._freedom(self.most, d + 1))  # fewer for data: as samples allow
        self.most = max(1, 1 + (allowed - one) // (two - one))
        self.faces = self.source.faces()
        self.worst = torch.zeros(0, dtype=torch.int64, device=self.device)  # of the pool, at the last size
        self.extra: tuple[Tensor, Tensor] = (self.pool[:0], self.pool_values[:0])
        self.lost: list[float] = []  # to rounding, by the fits of all sizes

    @property
    def done(self) -> float:
        """Progress of the error from the range of f to the goal, on a logarithmic scale."""
        if self.best is None or not 0 < self.goal < self.spread:
            return 0.0
        reached = math.log(self.spread / max(self.best.observed, 1e-300))
        return min(max(reached / math.log(self.spread / self.goal), 0.0), 1.0)

    def run(self) -> Fit:
        """The smallest fit found within the goal, else the one with the least error; after an interrupt the best so far."""

        def work() -> None:
            if self.best is not None and self.best.observed <= self.goal:
                pass  # a pilot was enough
            elif self.probe:
                if self.goal < self._best_of([self._start(self.most)]).observed <= SHARPEN_WITHIN * self.goal:
                    self._best_of([self._start(self.most, 1)])
            else:
                self._grow()
            self._shrink()

        return self._safely(work)

    def fixed(self, units: int) -> Fit:
        """The best fit found with exactly this many units."""
        self.source.require_samples(self._freedom(units, len(self.source.group) + 1))
        self.most, self.exactly = units, True
        return self._safely(self._grow)

    def begin(self, fit: Fit | None) -> None:
        """Begin with a fit that is known, as it is or polished."""
        if fit is not None:
            with one_thread():
                known = self._judged(fit)
                polished = self._polished(fit.theta) if fit.units else known  # a line has nothing to polish
                self.best = min(known, polished, key=lambda f: f.observed)

    def expected(self) -> int:
        """How many units the rate of the first two sizes suggests; `run` goes on from there."""
        self._safely(lambda: self._grow(sizes=2))
        if self.history[-1:] and self.history[-1][1] > self.goal:
            return expected_size(self.history, self.goal, len(self.source.group))
        return self.best.units if self.best else 0

    def pilot(self, units: int) -> Fit:
        """One fresh start with this many units."""
        with one_thread():
            return self._polished(self._start(units))

    def _safely(self, work: Callable[[], object]) -> Fit:
        """The best fit after the work; an interrupt from the keyboard ends it early."""
        try:
            with one_thread():
                work()
        except KeyboardInterrupt:
            self.budget.interrupted.set()
        if self.best is None:
            theta = self._start(min(self.most, FIRST_UNITS.get(self.family.name, FIRST_GATES)[0]))
            samples = self.samples(len(theta), theta.shape[1], 0)
            self._note(self._judged(polish(self.family, theta, samples, self._limits(len(theta), theta), 0)))
        assert self.best is not None
        return self.best

    def resume(self, points: Tensor, values: Tensor, goal: float) -> Fit:
        """Search again with points added: polish the best fit so far, and grow it by a few units if that is not enough."""
        self.add_points(points, values)
        self.goal, before = goal, self.best
        assert before is not None
        self.best = self._judged(before)

        def work() -> None:
            fit = self._polished(before.theta)
            self._note(fit)
            if fit.observed > goal and not self.exactly and not self.budget.over():
                self.history, self.grown = [(fit.units, fit.observed)], fit
                self._grow()
                self._shrink()

        return self._safely(work)

    def add_points(self, points: Tensor, values: Tensor) -> None:
        """Add points, both to fit on and to judge by."""
        points, values = points.to(self.device), values.to(self.device)
        self.extra = (torch.cat([self.extra[0], points]), torch.cat([self.extra[1], values]))
        self.pool, self.pool_values = torch.cat([self.pool, points]), torch.cat([self.pool_values, values])
        self.spread = max(self.spread, float((self.pool_values.amax(dim=0) - self.pool_values.amin(dim=0)).max()))

    def samples(self, units: int, width: int, seed: int) -> FitSamples:
        """Points for this many units, and the pool."""
        d = len(self.source.group)
        count = max(500, int((POINTS_PER_FREEDOM if d <= 2 else 4.0) * self._freedom(units, width)))
        points, values = self.source.draw(count, 7 + self.source.seed + seed)
        points = torch.cat([points.to(self.device), self.extra[0]])
        values = torch.cat([values.to(self.device), self.extra[1]])
        points, values = torch.cat([points, self.pool[self.worst]]), torch.cat([values, self.pool_values[self.worst]])
        return FitSamples(points, values, torch.ones_like(points[:, 0]), self.pool, self.pool_values)

    def _freedom(self, units: int, width: int) -> int:
        """Free numbers of this many units: parameters and coefficients."""
        return units * width + self.family.count(units)

    def _limits(self, units: int, theta: Tensor) -> StepLimits:
        reach = max(self.reach, float(theta.abs().max()))
        return StepLimits(self.cap(self.spread, units), reach, 0.5 * self._enough, self.budget.over)

    @property
    def _enough(self) -> float:
        """The error that is enough on the pool: the goal, less what rounding took from the last fit."""
        if self.exactly:
            return 0.0
        return max(self.goal - self.lost[-1], LEAST_SHARE * self.goal) if self.lost else self.goal

    def _start(self, units: int, seed: int = 0) -> Tensor:
        """The arrangement with the best least-squares fit."""
        samples = self.samples(units, len(self.source.group) + 1, seed)
        return best_start(self.family, units, samples, self._limits, self.faces, self.source.seed + seed)

    def _polished(self, theta: Tensor, turn: int = 0, before: float = math.inf) -> Fit:
        samples = self.samples(len(theta), theta.shape[1], turn)
        limits = self._limits(len(theta), theta)
        fit = polish(self.family, theta, samples, limits)
        hopeless = SHARPEN_WITHIN * self.goal < min(fit.fitted, before) and not (
            self.exactly and len(theta) == self.most
        )
        if hopeless:
            return self._judged(fit)
        return self._rounded(sharpen(self.family, fit, samples, replace(limits, enough=self._enough))[0])

    def _judged(self, fit: Fit) -> Fit:
        """The fit with its error on the pool."""
        return self._rounded(
            replace(fit, observed=float(errors_at(self.family, fit, self.pool, self.pool_values).max()))
        )

    def _rounded(self, fit: Fit) -> Fit:
        """The fit with the rounding of its arithmetic added to its error."""
        if self.rounding is None:
            return fit
        self.lost.append(self.rounding(fit))
        return replace(fit, observed=fit.observed + self.lost[-1])

    def _lost_to_rounding(self) -> bool:
        """Whether rounding alone has been above the goal for many fits, and is not falling."""
        recent = self.lost[-MOST_LOST:]
        older, newer = recent[: MOST_LOST // 2], recent[MOST_LOST // 2 :]
        return len(recent) == MOST_LOST and min(recent) > self.goal and min(newer) > 0.9 * min(older)

    def _note(self, fit: Fit) -> None:
        """Keep it if it is smaller and within the goal, or nearer to the goal."""
        self.tried[fit.units] = min(fit.observed, self.tried.get(fit.units, math.inf))
        if self.best is None or self._order(fit) < self._order(self.best):
            self.best = fit
        self.report(f"polishing: {fit.units} units, error {at_least(fit.observed, 2)}")

    def _order(self, fit: Fit) -> tuple[bool, float]:
        if self.exactly:
            return (fit.units != self.most, fit.observed)
        met = fit.observed <= self.goal
        return (not met, float(fit.units) if met else fit.observed)

    def _first(self, units: int) -> int:
        return min(units, self.most, FIRST_UNITS.get(self.family.name, FIRST_GATES)[min(len(self.source.group), 4) - 1])

    def _grow(self, sizes: int = 0) -> None:
        """Polish; insert units where the error is largest; until the goal is met, no more units are allowed, or `sizes` are done.

        Gates are few, and the best place for one depends on all others: they are also started afresh at each size, as are
        units graded toward infinite slopes, and all where values must stay small: those of fits that grow do not.
        """
        while not sizes or len(self.history) < sizes:
            if self.grown is None:
                starts = [self._start(self._first(self.most))]
            else:
                fit = self.grown
                goal = 0.0 if self.exactly else self.goal
                met = fit.observed <= self.goal and not self.exactly
                if met or fit.units >= self.most or self.budget.over() or self._lost_to_rounding():
                    return
                if stalled(self.history) and float(fit.theta.abs().max()) > 0.99 * self.reach:
                    self.reach = min(SHARPER * self.reach, self.most_reach)  # perhaps the heads must be sharper
                units = min(self.most, next_size(self.history, goal, len(self.source.group)))
                starts = [*self._fresh(units), self._inserted(fit, units - fit.units)]
            self.grown = self._best_of(starts)
            self.history.append((self.grown.units, self.grown.observed))

    def _fresh(self, units: int) -> list[Tensor]:
        """Fresh starts of this size: one of gates and of graded units; where rounding counts, one of every arrangement."""
        turn = len(self.history)
        counts = bool(self.lost) and self.lost[-1] > ROUNDING_COUNTS * self.goal
        if counts and not self.faces and self.history[-1][1] <= FRESH_WITHIN * self.goal:
            seed = self.source.seed + turn
            return [self.family.start(units, a, seed).to(self.device) for a in ARRANGEMENTS[self.family.name]]
        return [self._start(units, turn)] if self.family.name != "memory" or self.faces else []

    def _best_of(self, starts: Sequence[Tensor]) -> Fit:
        """The first of the starts that meets the goal, else the one that ends nearest to it."""
        fits: list[Fit] = []
        for theta in starts:
            fits.append(self._polished(theta, len(self.history), self.history[-1][1] if self.history else math.inf))
            self._note(fits[-1])
            if fits[-1].observed <= self.goal and not self.exactly:
                break
        return min(fits, key=lambda fit: fit.observed)

    def _inserted(self, fit: Fit, count: int) -> Tensor:
        """θ with this many units added where the error on the pool is largest."""
        errors = errors_at(self.family, fit, self.pool, self.pool_values)
        worst = errors.topk(min(len(errors), WORST_POINTS)).indices
        self.worst = worst[: max(1, len(fit.theta) // 2)]
        return self.family.inserted(fit.theta, self.pool[worst], errors[worst], count)

    def _shrink(self) -> None:
        """Prune and polish again, halfway to the largest size that failed at a time; the last size is tried in other ways too.

        A fit that was grown is about as small as it can be, so only a few of its units go at a time.
        """
        grown = any(error > self.goal for error in self.tried.values())
        failed, retries = 0, 0
        while self.best is not None and self.best.observed <= self.goal and self.best.units > 1:
            fit = self.best
            most = max(1, round(MOST_PRUNED * fit.units)) if grown else fit.units
            units = fit.units - max(1, min(most, (fit.units - failed) // 2))
            near = failed > 0 and fit.units - failed <= LEAST_GROWTH * fit.units  # the rest is not worth its time
            if self.budget.over() or near or (units == failed and not self._worth_another(units, retries)):
                return
            if units > failed:
                self._note(self._polished(self._pruned(fit, units)))
                retries = 0
            else:
                retries += 1
                self._note(self._polished(self._moved(fit, units, retries), 1))
            failed = failed if self.best is not fit else units

    def _worth_another(self, units: int, retries: int) -> bool:
        """Whether a size that failed is tried once more: it came close, and gates, whose starts differ much, very close."""
        ways = 1 - (units in dict(self.history)) if self.family.name == "memory" else len(RETRY_WITHIN)
        return retries < ways and self.tried[units] <= RETRY_WITHIN[retries] * self.goal

    def _moved(self, fit: Fit, units: int, seed: int) -> Tensor:
        """Another start of this size: a fresh one of gates; one that has a token elsewhere."""
        if self.family.name != "memory" or units < 2:
            return self._start(units, seed)
        theta = self._pruned(fit, units - 1)
        samples = self.samples(len(theta), theta.shape[1], 0)
        return self._inserted(polish(self.family, theta, samples, self._limits(len(theta), theta), 0), 1)

    def _pruned(self, fit: Fit, units: int) -> Tensor:
        """θ without the units that are missed least."""
        samples = self.samples(units, fit.theta.shape[1], 0)
        return pruned(self.family, fit, units, samples, self._limits(units, fit.theta))
