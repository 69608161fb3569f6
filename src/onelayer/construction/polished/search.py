"""The search for the fewest units of one group: start, polish, grow until the goal is met, then prune and try smaller ones.

Errors here are observed on a pool. Error is not monotone in the number of units and depends on the start, so every size is
tried from a few fresh starts, which run in parallel for larger sizes (the best in a fixed order wins: the result does not depend
on which finishes first). Growing follows the rate seen so far; fresh starts, not split units, lead out of local minima.
"""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from threading import Lock

import torch
from torch import Tensor

from ...common.budget import Budget
from ...common.machine import one_thread
from ...common.numbers import at_least
from ...target.group_samples import GroupSamples
from .families import Family
from .fit import Fit, FitSamples, StepLimits, errors_at, polish, sharpen
from .graded import graded_starts

ARRANGEMENTS: dict[str, tuple[tuple[float, float], ...]] = {
    "memory": ((0.35, 2.0), (0.6, 2.0), (1.0, 2.0)),  # narrowness, padding
    "gates": ((1.0, 1.0), (1.5, 1.0), (3.0, 1.0)),  # β·h, padding
}
FIRST_UNITS = {"memory": (5, 10, 14, 18), "gates": (3, 6, 8, 10)}  # by the number of coordinates
POINTS_PER_FREEDOM = 2.5  # points per free number (4 from three coordinates on, where the boundary is most of the box)
ROUGH_SHARE = 0.25  # share of the range: a start with a larger error is not worth polishing
TRIED_STARTS, TRIED_STEPS = 6, 10  # starts graded toward infinite slopes, and steps of polishing before one is chosen
SHARPEN_WITHIN = 8.0  # times the goal: reweighting may still lead from there to the goal
FRESH_STARTS = 2  # of every size
PARALLEL_FROM = 150  # free numbers from which a second thread pays off
FIRST_PRUNED = 0.15  # share of the units pruned at first
FIRST_REACH, MOST_REACH = 50.0, 1e6  # largest parameters at first, and ever: large scores make the proof's boxes small
STALLED, SHARPER = 0.5, 10.0  # where growing leaves more than this share of the error, raise the reach by this factor


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
    reach: float = FIRST_REACH
    sampling: Lock = field(default_factory=Lock)  # only one thread at a time calls a user's function

    def __post_init__(self) -> None:
        d = len(self.source.group)
        points, values = self.source.sample(16_000 if d <= 2 else 30_000, 99 + self.source.seed)
        self.pool, self.pool_values = points[:, list(self.source.group)].to(self.device), values.to(self.device)
        self.spread = float((self.pool_values.amax(dim=0) - self.pool_values.amin(dim=0)).max()) or 1e-300
        one, two = (self._freedom(units, d + 1) for units in (1, 2))
        allowed = self.source.most_features(self._freedom(self.most, d + 1))  # fewer for data: as samples allow
        self.most = max(1, 1 + (allowed - one) // (two - one))
        self.faces = self.source.faces()
        self.family = replace(self.family, graded=bool(self.faces))
        self.extra: tuple[Tensor, Tensor] = (self.pool[:0], self.pool_values[:0])

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
            if self.probe and self._attempt(self.most).observed > self.goal:
                return
            self._grow()
            self._shrink()

        return self._safely(work)

    def fixed(self, units: int) -> Fit:
        """The best fit found with exactly this many units."""
        self.source.require_samples(self._freedom(units, len(self.source.group) + 1))
        self.most, self.exactly = units, True
        return self._safely(lambda: self._attempt(units, starts=2 * FRESH_STARTS))

    def pilot(self, units: int) -> Fit:
        """One fresh start with this many units."""
        with one_thread():
            return self._fresh(units, 0)

    def _safely(self, work: Callable[[], object]) -> Fit:
        """The best fit after the work; an interrupt from the keyboard ends it early."""
        try:
            with one_thread():
                work()
        except KeyboardInterrupt:
            self.budget.interrupted.set()
        if self.best is None:
            theta, samples, _ = self._start(min(self.most, FIRST_UNITS[self.family.name][0]), 0)
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
                self._grow(math.ceil(1.08 * before.units))
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
        with self.sampling:
            points, values = self.source.sample(count, 7 + self.source.seed + seed)
        points = torch.cat([points[:, list(self.source.group)].to(self.device), self.extra[0]])
        values = torch.cat([values.to(self.device), self.extra[1]])
        return FitSamples(points, values, torch.ones_like(points[:, 0]), self.pool, self.pool_values)

    def _freedom(self, units: int, width: int) -> int:
        """Free numbers of this many units: parameters and coefficients."""
        return units * width + self.family.count(units)

    def _limits(self, units: int, theta: Tensor) -> StepLimits:
        reach = max(self.reach, 2 * float(theta.abs().max()))
        enough = 0.0 if self.exactly else 0.5 * self.goal
        return StepLimits(self.cap(self.spread, units), reach, enough, self.budget.over)

    def _start(self, units: int, seed: int) -> tuple[Tensor, FitSamples, float]:
        """The arrangement with the best least-squares fit."""
        width = len(self.source.group) + 1
        samples = self.samples(units, width, seed)
        found: list[tuple[float, Tensor]] = []
        usual = (self.family.start(units, a, self.source.seed + seed) for a in ARRANGEMENTS[self.family.name])
        for theta in chain(usual, graded_starts(self.family, units, self.faces, self.source.seed + seed)):
            if found and self.budget.over():
                break
            theta = theta.to(self.device)
            found.append((polish(self.family, theta, samples, self._limits(units, theta), 0).fitted, theta))
        if self.faces:  # least squares alone prefers starts that are not sharp enough
            best = [theta for _, theta in sorted(found, key=lambda pair: pair[0])[:TRIED_STARTS]]
            fits = [polish(self.family, t, samples, self._limits(units, t), TRIED_STEPS) for t in best]
            found = [(fit.fitted, fit.theta) for fit in fits]
        error, theta = min(found, key=lambda pair: pair[0])
        return theta, samples, error

    def _fresh(self, units: int, seed: int) -> Fit:
        theta, samples, _ = self._start(units, seed)
        return self._polished(theta, samples)

    def _polished(self, theta: Tensor, samples: FitSamples | None = None) -> Fit:
        samples = samples or self.samples(len(theta), theta.shape[1], 0)
        limits = self._limits(len(theta), theta)
        fit = polish(self.family, theta, samples, limits)
        hopeless = SHARPEN_WITHIN * self.goal < fit.fitted and not self.exactly
        limits = limits if self.exactly else replace(limits, enough=self.goal)
        return self._judged(fit) if hopeless else sharpen(self.family, fit, samples, limits)[0]

    def _judged(self, fit: Fit) -> Fit:
        """The fit with its error on the pool."""
        return replace(fit, observed=float(errors_at(self.family, fit, self.pool, self.pool_values).max()))

    def _attempt(self, units: int, starts: int = FRESH_STARTS, first: int = 0) -> Fit:
        """The best of a few fresh starts with this many units."""
        tasks = [partial(self._fresh, units, seed) for seed in range(first, first + starts)]
        fits = self._all(tasks, units)
        fit = min(fits, key=lambda f: f.observed)
        self._note(fit)
        return fit

    def _all(self, tasks: Sequence[Callable[[], Fit]], units: int) -> list[Fit]:
        """The results of tasks with this many units, in parallel where that pays off."""
        small = self._freedom(units, len(self.source.group) + 1) < PARALLEL_FROM
        return [task() for task in tasks] if small else in_parallel(tasks, self.budget)

    def _note(self, fit: Fit) -> None:
        """Keep it if it is smaller and within the goal, or nearer to the goal."""
        self.tried[fit.units] = min(fit.observed, self.tried.get(fit.units, math.inf))
        self.report(f"polishing: {fit.units} units, error {at_least(fit.observed, 2)}")
        if self.best is None or self._order(fit) < self._order(self.best):
            self.best = fit

    def _order(self, fit: Fit) -> tuple[bool, float]:
        met = fit.observed <= self.goal
        return (not met, float(fit.units) if met else fit.observed)

    def _grow(self, first: int = 0) -> None:
        d = len(self.source.group)
        units = min(self.most, first or FIRST_UNITS[self.family.name][min(d, 4) - 1])
        while units < self.most and self._start(units, 0)[2] > ROUGH_SHARE * self.spread and not self.budget.over():
            units = min(self.most, math.ceil(1.5 * units))
        history: list[tuple[int, float]] = []
        while True:
            fit = self._attempt(units)
            history.append((units, fit.observed))
            if fit.observed <= self.goal or units >= self.most or self.budget.over():
                return
            if len(history) > 1 and fit.observed > STALLED * history[-2][1]:
                self.reach = min(SHARPER * self.reach, MOST_REACH)  # perhaps the heads must be sharper
            units = min(self.most, next_size(history, self.goal))

    def _shrink(self) -> None:
        """Prune the units that matter least and polish again; then try smaller sizes afresh, as long as one succeeds."""
        while self.best is not None and self.best.observed <= self.goal and self.best.units > 1:
            self._prune()
            if self.budget.over() or not self._smaller():
                return

    def _prune(self) -> None:
        """Remove the units that matter least, two numbers of them at a time; the larger one that does no harm counts."""
        assert self.best is not None
        fraction = FIRST_PRUNED
        while not self.budget.over() and self.best.units > 1:
            fit, gone = self.best, min(max(1, int(fraction * self.best.units)), self.best.units - 1)
            samples = self.samples(fit.units, fit.theta.shape[1], 0)
            weights = self.family.weights(fit.theta, samples.points)
            order = self.family.importance(samples.points, weights, fit.coefficients).argsort()
            counts = sorted({gone, max(1, gone // 2)})
            kept = [fit.theta[order[count:].sort().values] for count in counts]
            for pruned in self._all([partial(self._polished, theta) for theta in kept], fit.units):
                self._note(pruned)
            lost = fit.units - self.best.units
            if lost < counts[0]:  # not even the smaller number
                if counts[0] == 1:
                    return
                fraction = counts[0] / 2 / fit.units
            else:
                fraction = 1.5 * lost / fit.units if lost == gone else fraction / 2

    def _smaller(self) -> bool:
        """Whether fresh starts meet the goal with a tenth fewer units."""
        assert self.best is not None
        units = self.best.units - max(1, self.best.units // 10)
        if units < 1 or self.tried.get(units, math.inf) < math.inf:
            return False
        return self._attempt(units, first=FRESH_STARTS).observed <= self.goal


def next_size(history: Sequence[tuple[int, float]], goal: float) -> int:
    """The size at which the rate of the last two sizes would meet the goal, between 1.2 and 2 times the last size."""
    units, error = history[-1]
    factor = 1.5
    if len(history) > 1:
        before, larger = history[-2]
        rate = math.log(max(larger, 1e-300) / max(error, 1e-300)) / math.log(units / before)
        if rate > 0:
            factor = math.exp(min(math.log(max(error, 1e-300) / max(goal, 1e-300)) / rate, 1.0))
    return math.ceil(units * min(max(factor, 1.2), 2.0))


def in_parallel(tasks: Sequence[Callable[[], Fit]], budget: Budget) -> list[Fit]:
    """The results in order; tasks run in parallel, one thread each. After an interrupt they end with what they have."""
    cores = min(len(tasks), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if cores <= 1:
        return [task() for task in tasks]
    with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            budget.interrupted.set()
            return [future.result() for future in futures]
