"""method="polished": the fewest units that are certified within the tolerance, keys and offsets optimised too.

    groups → for each group and family: search (start, polish, grow, prune) → one layer → certify
           → on a failed certificate the points of the worst boxes go back into the samples, and it is polished again

An additive target is polished group by group, the cheapest first, each with an equal share of what the others have left of
the tolerance; groups may overlap where a formula's terms do. `construction="auto"` polishes memory tokens, then looks
whether so few gates as would take fewer parameters do as well; disjoint groups are tried after overlapping ones likewise.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ...common.budget import Budget
from ...common.errors import InputError
from ...layer.assemble import outputs_of
from ...layer.assemble.gates import gate_config
from ...layer.assemble.memory import memory_config
from ...layer.centring import centred
from ...layer.layer import GateLayer, Layer
from ...proof.analytic.summand import MOST_COORDINATES
from ...target.margin import in_scope
from ...target.target import Target
from ..fitted_groups import FittedGroup, combined, config_of, rounding_per_value, splittings
from ..group_samples import GroupSamples
from ..kinks.remainder import Remainder, remainders_of
from ..request import Request
from ..solved.values import Solution
from .families import family_of
from .fit import Fit
from .search import UnitSearch

GOAL = 0.9  # of the tolerance, on the pool: the certificate needs the rest
SINGLE = 0.25  # of the tolerance, for rounding in float32
LEAST = 5  # ranges of f that the values of a head may always span
CAP = 1e3  # ranges of f that Σ|c| is kept below, about
MOST_UNITS = 400  # of one group: a step costs the cube of it
POINTS = 64  # of a box that goes back into the samples
AGAIN = 0.9  # of the goal, after a certificate failed
AFTERWARDS = 0.25  # of the time, once more, when a layer is sent back
FIRST_SHARE = 0.6  # of the time, for the first of two families
LEFT = 0.1  # of the goal that is left for the rest, at least: sharper kinks cannot be had
POOL = 16_000  # points on which a part is seen to be affine
CLEARLY = 5  # samples for every coefficient of an affine part
AFFINE = 1e-3  # of the goal: a part so close to affine needs no units


@dataclass(frozen=True)
class Box:
    """A box of some of the coordinates, in the units of x."""

    coordinates: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray


@dataclass
class Polished:
    """The searches of all groups for one family, and the layer that they have led to.

    `rest` is what is polished: the target itself, or what its kinks leave of it.
    """

    request: Request
    family: str
    rest: Remainder
    sources: list[GroupSamples]
    budget: Budget
    searches: dict[tuple[int, ...], UnitSearch] = field(default_factory=dict)
    parts: dict[tuple[int, ...], FittedGroup] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        return self.request.target

    @property
    def observed(self) -> float:
        return sum((part.solution.observed for part in self.parts.values()), start=self.rest.error)

    @property
    def goal(self) -> float:
        return (GOAL - SINGLE * (self.request.single)) * self.request.fit_tolerance

    @property
    def layer(self) -> Layer:
        layer = self.rest.completed(
            combined(self.rest.target, [self.parts[g] for g in sorted(self.parts)], self.family)
        )
        single = self.request.single and not self.rest.kinks
        return centred(layer) if single and isinstance(layer, GateLayer) and len(layer.gates) else layer

    @property
    def parameters(self) -> int:
        return config_of(self.target, self.layer).parameter_count

    def run(self, most: int = MOST_UNITS) -> "Polished":
        """All groups, the cheapest first; `most` units in all groups together."""
        sources = sorted(self.sources, key=lambda source: (len(source.group), source.group))
        goal = max(self.goal - self.rest.error, LEFT * self.goal)
        for position, source in enumerate(sources):
            left = len(sources) - position
            share = goal / left
            try:
                part = affine_part(source, share)
            except KeyboardInterrupt:
                self.budget.interrupted.set()  # from now on every search ends with its first guess
                part = None
            if part is None:
                part = self._found(self._search(source, share, max(most, 1), position), position)
            self.parts[source.group] = part
            most -= part.units
            goal -= min(part.solution.observed, share)
        return self

    def _search(self, source: GroupSamples, share: float, most: int, position: int) -> UnitSearch:
        groups, d = len(self.sources), len(source.group)
        family, budget = family_of(self.family, d), self.budget.share(1 / (groups - position))
        search = UnitSearch(family, source, share, self._cap(groups, d), budget, most, device=self.request.device)
        search.probe = groups == 1 and most < MOST_UNITS
        search.report = self._report(search, position, groups)
        return search

    def _found(self, search: UnitSearch, position: int) -> FittedGroup:
        """The part that a search leads to; if units are given, each group has its share of them."""
        group, given, groups = search.source.group, self.request.units, len(self.sources)
        self.searches[group] = search
        if given is None:
            return self._part(group, search.run())
        return self._part(group, search.fixed(given // groups + (position < given % groups)))

    def _part(self, group: tuple[int, ...], fit: Fit) -> FittedGroup:
        family = self.searches[group].family
        heads = family.heads(fit.theta.cpu(), group, self.target.dimension)
        return FittedGroup(group, heads, Solution(fit.coefficients.cpu(), fit.observed, fit.total))

    def _cap(self, groups: int, d: int) -> Callable[[float, int], float]:
        """Σ|c| that leaves rounding its share, but not so little that nothing can be made of it.

        Rounding is in proportion to what heads can contribute: for gates that is Σ|c|, for the tokens of one head the span
        of their values, which is about 4/M of their Σ|c|.
        """
        tolerance = SINGLE * self.request.fit_tolerance / groups

        def cap(spread: float, units: int) -> float:
            rounding = rounding_per_value(self.request.arithmetic, self.family, units, groups, d)
            if not rounding:
                return CAP * spread
            span = max(tolerance / rounding, LEAST * spread)
            return min(CAP * spread, span * max(1.0, units / 4) if self.family == "memory" else span)

        return cap

    def _report(self, search: UnitSearch, position: int, groups: int) -> Callable[[str], None]:
        def report(stage: str) -> None:
            if self.request.progress:
                self.request.progress(f"{stage} ({self.family})", (position + search.done) / groups)

        return report

    def renew(self) -> None:
        """Time of its own for what proofs and fresh points send back, unless the user has had enough."""
        self.budget = Budget(AFTERWARDS * self.request.seconds, interrupted=self.budget.interrupted)
        for search in self.searches.values():
            search.budget = self.budget

    def resume(self, boxes: list[Box]) -> None:
        """Once more, with points of boxes in which the error may be too large; data cannot be asked there."""
        if self.target.data is not None:
            return
        for position, source in enumerate(self.sources):
            group = source.group
            drawn = [_points_in(self.target, group, box, self.request.seed) for box in boxes]
            points = np.concatenate([p for p in drawn if p is not None] or [np.zeros((0, self.target.dimension))])
            inside = points[in_scope(self.target, points)]
            if not len(inside):
                continue
            hat, values = source.normalised(inside)[:, list(group)], source.values(inside)
            if group in self.searches:
                search = self.searches[group]
                fit = search.resume(hat, values, AGAIN * search.goal)
            else:  # it was taken for affine
                share = self.goal / len(self.sources)
                if _affine_error(self.parts[group].solution.coefficients, hat, values) <= AFFINE * share:
                    continue
                search = self.searches[group] = self._search(source, share, MOST_UNITS, position)
                search.respect(hat, values)
                fit = search.run()
            self.parts[group] = self._part(group, fit)


def _points_in(target: Target, group: tuple[int, ...], box: Box, seed: int) -> np.ndarray | None:
    """Points of a box, the coordinates outside the group at the centre of the domain; None if it does not concern it."""
    pick = [i for i, j in enumerate(box.coordinates) if j in group]
    if not pick:
        return None
    rng = np.random.default_rng(seed)
    own = box.lower + (box.upper - box.lower) * rng.random((POINTS, len(box.lower)))
    points = np.tile(target.domain.points(np.full((1, target.dimension), 0.5)), (len(own), 1))
    points[:, [box.coordinates[i] for i in pick]] = own[:, pick]
    return points


def affine_part(source: GroupSamples, goal: float) -> FittedGroup | None:
    """The part without units, if f is affine there (nearly: within a thousandth of the goal); data must tell clearly."""
    points, values = source.sample(POOL, 99 + source.seed)
    own = points[:, list(source.group)]
    if source.target.data is not None and len(own) < CLEARLY * (own.shape[1] + 1):
        return None
    c = torch.linalg.lstsq(torch.cat([torch.ones_like(own[:, :1]), own], dim=1), values).solution
    error = _affine_error(c, own, values)
    return (
        FittedGroup(source.group, None, Solution(c, error, float(c.abs().sum(dim=0).max())))
        if error <= AFFINE * goal
        else None
    )


def _affine_error(c: Tensor, x: Tensor, values: Tensor) -> float:
    return float((c[0] + x @ c[1:] - values).abs().max())


def polished(request: Request, budget: Budget | None = None) -> list[Polished]:
    """The families that were polished, the one to prefer first: within the goal with fewer parameters, else less error."""
    budget = budget or Budget(request.seconds)
    found: list[Polished] = []
    rests = remainders_of(request)
    for family, rest in rests.items():
        for sources in _ways(rest, request):
            if found and budget.over():
                break
            met = [p for p in found if p.observed <= p.goal]
            most = _affordable(request.target, family, sources, min(p.parameters for p in met)) if met else MOST_UNITS
            wide = max((len(s.group) for s in sources), default=0) > MOST_COORDINATES
            own = budget.share(FIRST_SHARE if family == "memory" and len(rests) > 1 else 1.0)
            if most and not (found and wide):
                found.append(Polished(request, family, rest, sources, own).run(most))
    return sorted(found, key=lambda p: (p.observed > p.goal, p.parameters if p.observed <= p.goal else p.observed))


def _ways(rest: Remainder, request: Request) -> list[list[GroupSamples]]:
    """The ways to split the rest into groups; those with a unit for each where units are given."""
    if rest.nothing:
        return [[]]
    ways = splittings(rest.target, request.seed, rest.ratios)
    if request.units is None:
        return ways
    found = [way for way in ways if len(way) <= request.units]
    if not found:
        raise InputError(f"units={request.units}", f"{len(ways[-1])} groups of coordinates", "ask for a unit per group")
    return found


def _affordable(target: Target, family: str, sources: list[GroupSamples], parameters: int) -> int:
    """How many units take fewer parameters than that."""

    def size(units: int) -> int:
        if family == "gates":
            return gate_config(target.dimension, outputs_of(target), "token", units=units, plain=False).parameter_count
        groups = [len(source.group) for source in sources]
        return memory_config(target.dimension, target.outputs, units, groups, reads=1).parameter_count

    one, two = size(1), size(2)
    return min(max(0, 1 + (parameters - 1 - one) // (two - one)), MOST_UNITS)
