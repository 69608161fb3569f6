"""A layer of one family: a search for each group, the cheapest group first, with an equal share of what the others left."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ...common.budget import Budget
from ...layer.conditioning import cancelling, centred, conditioned, rounding_at
from ...layer.layer import Layer
from ...proof.certificate import Box
from ...target.group_samples import GroupSamples
from ...target.margin import in_scope
from ...target.target import Target
from ..fitted_groups import FittedGroup, combined, config_of, rounding_per_value
from ..kinks.remainder import Remainder
from ..request import FLOAT32_SHARE, POOL_GOAL, Request
from ..solved.values import VALUES_CAP, Solution
from .even import MOST_EVEN, EvenFamily, is_even
from .families import Family, PlainFamily, family_of
from .fit import Fit
from .layer_size import MOST_UNITS, Size, most_even_units, parameters_of
from .polyline import polyline_fit
from .search import UnitSearch
from .slope_rows import SlopedFamily, SlopedSamples

LEAST_SPAN = 5  # ranges of f that the values of a head may always span
POINTS_PER_BOX = 64  # added to the samples
LOWERED_GOAL = 0.9  # factor on the goal after a certificate failed
RESUME_TIME = 0.125  # share of the seconds for polishing a layer again
LEAST_GOAL = 0.1  # share of the goal kept for the remainder, however much the kinks take
ROUNDING_POINTS = 400  # at which a fit is asked what rounding can do to it
AFFINE_POOL = 16_000  # points on which a group is checked for being affine
SAMPLES_PER_COEFFICIENT = 5  # at least, to call data affine
AFFINE_SHARE = 1e-3  # share of the goal: a group this close to affine needs no units


@dataclass
class Candidate:
    """A layer of one family: the searches of all groups, and what they have found.

    `remainder` is what is polished: the target itself, or the target without its kinks.
    """

    request: Request
    family: str
    remainder: Remainder
    sources: list[GroupSamples]
    budget: Budget
    searches: dict[tuple[int, ...], UnitSearch] = field(default_factory=dict)
    fitted: dict[tuple[int, ...], FittedGroup] = field(default_factory=dict)
    piloted: dict[tuple[int, ...], UnitSearch] = field(default_factory=dict)
    forecast: int = 0  # parameters that the widest group alone is expected to take; 0 if not known
    limited: bool = False  # whether another candidate sets a limit: more units than it allows are of no use

    @property
    def target(self) -> Target:
        return self.request.target

    @property
    def observed(self) -> float:
        return sum((fit.solution.observed for fit in self.fitted.values()), start=self.remainder.error)

    @property
    def goal(self) -> float:
        return POOL_GOAL * self.request.fit_tolerance

    @property
    def layer(self) -> Layer:
        fitted = [self.fitted[group] for group in sorted(self.fitted)]
        layer = self.remainder.completed(combined(self.remainder.target, fitted, self.family))
        return centred(layer) if self.request.single and not self.remainder.kinks else layer

    @property
    def size(self) -> Size:
        layer = self.layer
        return Size(layer.units, config_of(self.target, layer).parameter_count)

    def run(self, most: int = MOST_UNITS, limited: bool = False) -> "Candidate":
        """Fit all groups, the cheapest first, with at most `most` units in all groups together.

        `limited` says that another candidate sets that limit.
        """
        self.limited = limited
        sources = sorted(self.sources, key=lambda source: (len(source.group), source.group))
        goal = max(self.goal - self.remainder.error, LEAST_GOAL * self.goal)
        for position, source in enumerate(sources):
            share = goal / (len(sources) - position)
            try:
                found = self.without_units(source, share)
            except KeyboardInterrupt:
                self.budget.interrupted.set()  # from now on every search ends with its first guess
                found = None
            if found is None:
                found = self._run_search(self._search(source, share, max(most, 1), position), position)
            self.fitted[source.group] = found
            most -= found.units
            goal -= min(found.solution.observed, share)
        return self

    def without_units(self, source: GroupSamples, share: float) -> FittedGroup | None:
        """The fit of a group on which f is affine; None if it is not, or if a linear part cannot stand beside the units."""
        sloped = self.request.slope_tolerance is not None
        return affine_group(self._sloped(source, share) if sloped else source, share)

    def family_for(self, source: GroupSamples) -> PlainFamily:
        """The heads that are searched for in a group."""
        return family_of(self.family, len(source.group), graded=bool(source.faces()), straight=self.request.straight)

    def expected(self) -> int:
        """The forecast, from two small fits."""
        widest = max(self.sources, key=lambda source: len(source.group))
        search = self._search(widest, self.goal / len(self.sources), MOST_UNITS, 0)
        self.piloted[widest.group] = search
        return parameters_of(self.target, self.family, [widest], search.expected())

    def _search(self, source: GroupSamples, share: float, most: int, position: int) -> UnitSearch:
        groups, d = len(self.sources), len(source.group)
        plain = self.family_for(source)
        family: Family = plain
        budget = self.budget.share(1 / (groups - position))
        search = self.piloted.pop(source.group, None)
        if self.request.slope_tolerance is not None:
            source = self._sloped(source, share)
            family, search = SlopedFamily(plain, source.weights), None
        if search is None:
            search = UnitSearch(family, source, share, self._cap(groups, d), budget, most, device=self.request.device)
            if self.request.single:
                search.rounding = lambda fit: self._rounding(search.source.group, plain, fit, search.pool)
            if self.request.attention == "linear":  # e^score is not divided by the largest
                search.most_reach = self.request.arithmetic.largest / 2
        else:
            search.goal, search.budget, search.most = share, budget, min(search.most, most)
        search.probe = position == groups - 1 and most < MOST_UNITS and self.limited
        search.report = self._report(search, position, groups)
        return search

    def _sloped(self, source: GroupSamples, share: float) -> SlopedSamples:
        """The samples of a group with slopes beside values: an error of the share counts as much as one of a slope's share."""
        assert self.request.slope_tolerance is not None
        holders = max(sum(j in other.group for other in self.sources) for j in source.group)
        return SlopedSamples.of(source, share / (POOL_GOAL * self.request.slope_tolerance / holders))

    def _run_search(self, search: UnitSearch, position: int) -> FittedGroup:
        """What a search finds for its group; if units are given, each group has its share of them."""
        group, given, groups = search.source.group, self.request.units, len(self.sources)
        self.searches[group] = search
        count = None if given is None else given // groups + (position < given % groups)
        if self.family == "ramps":
            search.begin(polyline_fit(search.source, search.goal, search.most, count))
        fit = search.run() if count is None else search.fixed(count)
        even = self._even_search(search, fit, count)
        if even is not None:
            other = even.run() if count is None else even.fixed(count)
            if other.observed <= (search.goal if count is None else fit.observed):  # it stores fewer numbers
                self.searches[group], fit = even, other
        return self._fitted_group(group, fit)

    def _even_search(self, search: UnitSearch, fit: Fit, count: int | None) -> UnitSearch | None:
        """For an even function of one number, a search for gates at its centre that store fewer numbers than the fit's."""
        plain = not self.request.single and self.request.slope_tolerance is None and self.remainder.kinks is None
        plain = plain and self.request.attention == "softmax"  # others have no smaller form of it
        if not (plain and self.family == "gates" and self.request.straight and is_even(search.source, search.goal)):
            return None
        found = Size(fit.units, parameters_of(self.target, self.family, self.sources, fit.units))
        most = min(most_even_units(found), MOST_EVEN)
        if count is None and (most < 1 or fit.observed > search.goal):
            return None
        budget = self.budget.share(0.5)
        even = UnitSearch(EvenFamily(1), search.source, search.goal, search.cap, budget, most, report=search.report)
        even.probe = count is None
        return even

    def _fitted_group(self, group: tuple[int, ...], fit: Fit) -> FittedGroup:
        return self._with_heads(group, self.searches[group].family, fit)

    def _with_heads(self, group: tuple[int, ...], family: Family, fit: Fit) -> FittedGroup:
        heads = family.heads(fit.theta.cpu(), group, self.target.dimension)
        return FittedGroup(group, heads, Solution(fit.coefficients.cpu(), fit.observed, fit.total))

    def _rounding(self, group: tuple[int, ...], family: PlainFamily, fit: Fit, pool: Tensor) -> float:
        """What rounding can do to the heads of a group: in their best frame, or at points of the pool where they cancel most."""
        layer = centred(combined(self.remainder.target, [self._with_heads(group, family, fit)], self.family))
        grid = self.request.weight_grid
        if grid is not None and len(group) == self.target.dimension:
            return conditioned(layer, self.request.frame, grid, self.target.domain)[0]
        x = torch.zeros(len(pool), self.target.dimension, dtype=torch.float64)
        x[:, list(group)] = pool[:, : len(group)].cpu()  # rows of slopes have another column
        return rounding_at(layer, x[cancelling(layer, x).topk(min(ROUNDING_POINTS, len(x))).indices], len(self.sources))

    def _cap(self, groups: int, d: int) -> Callable[[float, int], float]:
        """Σ|c| that leaves rounding its share, but enough for a useful fit.

        Rounding is in proportion to what heads can contribute: for gates that is Σ|c|, for the tokens of one head the span
        of their values, which is about 4/M of their Σ|c|.
        """
        tolerance = FLOAT32_SHARE * self.request.fit_tolerance / groups

        def cap(spread: float, units: int) -> float:
            rounding = rounding_per_value(self.request.arithmetic, self.family, units, groups, d)
            if not rounding:
                return VALUES_CAP * spread
            span = max(tolerance / rounding, LEAST_SPAN * spread)
            return min(VALUES_CAP * spread, span * max(1.0, units / 4) if self.family == "memory" else span)

        return cap

    def _report(self, search: UnitSearch, position: int, groups: int) -> Callable[[str], None]:
        def report(stage: str) -> None:
            if self.request.progress:
                self.request.progress(f"{stage} ({self.family})", (position + search.done) / groups)

        return report

    def renew(self) -> None:
        """Start a new budget for polishing again after failed proofs or bad fresh points; an interrupt stays in force."""
        whole = self.request.budget
        self.budget = Budget(min(RESUME_TIME * whole.seconds, whole.left), interrupted=self.budget.interrupted)
        for search in self.searches.values():
            search.budget = self.budget

    def resume(self, boxes: list[Box]) -> None:
        """Polish again, with points of boxes in which the error may be too large; data have no values there."""
        if self.target.data is not None:
            return
        for position, source in enumerate(self.sources):
            group = source.group
            drawn = [_points_in(self.target, group, box, self.request.seed) for box in boxes]
            points = np.concatenate([p for p in drawn if p is not None] or [np.zeros((0, self.target.dimension))])
            inside = points[in_scope(self.target, points)]
            if not len(inside):
                continue
            if group in self.searches:
                search = self.searches[group]
                fit = search.resume(*search.source.rows(inside), LOWERED_GOAL * search.goal)
            else:  # it was fitted without units
                share = self.goal / len(self.sources)
                rows, values = source.rows(inside)
                if (
                    _affine_error(source, self.fitted[group].solution.coefficients, rows, values)
                    <= AFFINE_SHARE * share
                ):
                    continue
                search = self.searches[group] = self._search(source, share, MOST_UNITS, position)
                search.add_points(*search.source.rows(inside))
                fit = search.run()
            self.fitted[group] = self._fitted_group(group, fit)


def _points_in(target: Target, group: tuple[int, ...], box: Box, seed: int) -> np.ndarray | None:
    """Points of a box, the coordinates outside the group at the centre of the domain; None if the two share none."""
    pick = [i for i, j in enumerate(box.coordinates) if j in group]
    if not pick:
        return None
    rng = np.random.default_rng(seed)
    lower, upper = np.array(box.lower), np.array(box.upper)
    unit = np.clip(1.5 * rng.random((POINTS_PER_BOX, len(lower))) - 0.25, 0.0, 1.0)  # a third of the numbers at ends
    own = lower + (upper - lower) * unit
    points = np.tile(target.domain.points(np.full((1, target.dimension), 0.5)), (len(own), 1))
    points[:, [box.coordinates[i] for i in pick]] = own[:, pick]
    return points


def affine_group(source: GroupSamples, goal: float) -> FittedGroup | None:
    """The group without units, if f is affine there (within a thousandth of the goal); data must have enough samples."""
    points, values = source.sample(AFFINE_POOL, 99 + source.seed)
    own = points[:, list(source.group)]
    if source.target.data is not None and len(own) < SAMPLES_PER_COEFFICIENT * (own.shape[1] + 1):
        return None
    c = torch.linalg.lstsq(torch.cat([torch.ones_like(own[:, :1]), own], dim=1), values).solution
    error = _affine_error(source, c, *source.draw(AFFINE_POOL, 99 + source.seed))
    if not error <= AFFINE_SHARE * goal:
        return None
    return FittedGroup(source.group, None, Solution(c, error, float(c.abs().sum(dim=0).max())))


def _affine_error(source: GroupSamples, c: Tensor, rows: Tensor, values: Tensor) -> float:
    return float((source.affine(c, rows) - values).abs().max())
