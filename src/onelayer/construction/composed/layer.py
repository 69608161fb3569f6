"""A composed layer for a formula: inner functions polished one by one, a polyline for every outer function.

Every additive term h(g(x)) gets a lane with g and a share of the tolerance, part of which the polyline H takes and part the
error of the lane, times the steepest slope of H. Terms that are no compositions are added up in one more lane.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ...formula import Formula, evaluate
from ...formula.additive import additive_terms, components, gathered
from ...formula.composition import Composition, U, ways
from ...formula.tree import Node, Sum, variables
from ...layer.composed import ComposedLayer
from ...layer.layer import Layer, added
from ...target.ranges import bounds_on, range_of
from ...target.target import Target
from ..polished.candidate import AFFINE_SHARE
from ..polished.layer import polished
from ..request import FLOAT32_SHARE, Request
from .curve import Polyline, fitted_polyline, samples_of

CURVE_SHARE, LANE_SHARE = 0.55, 0.35  # of a term's tolerance: for its polyline, for the error of its lane
MOST_PIECES = 150  # of a polyline: with more of them, heads alone are smaller
MOST_TERMS = 6  # of one output
MOST_BESIDE = 2  # interacting variables in terms that are no compositions
ONE_PIECE = Polyline(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.0)
BELOW = 4.0  # times the error of a lane: how far below its values the first knot is


@dataclass(frozen=True)
class PlannedLane:
    """A lane: its term in one output, the error it may have, and the polyline of its outer function.

    The lane of a term that is no composition gets its only piece when the layer is built: it takes a while to find its ends.
    """

    output: int
    term: Composition
    tolerance: float
    curve: Polyline = ONE_PIECE

    @property
    def pieces(self) -> int:
        return len(self.curve.knots) - 1

    def within(self, target: Target) -> "PlannedLane":
        """The lane with the ends of its values."""
        if not self.term.plain:
            return self
        low, high = range_of(target.inner(self.term.inner).formula, target.domain)  # type: ignore[arg-type]
        ends = np.array([low, high if high > low else low + 1.0])
        return replace(self, curve=Polyline(ends, ends, 0.0))

    @property
    def start(self) -> float:
        """Where the first piece begins: below all values of the lane."""
        width = self.curve.knots[-1] - self.curve.knots[0]
        return float(self.curve.knots[0] - max(BELOW * self.tolerance, 1e-9 * width))

    @property
    def relus(self) -> tuple[np.ndarray, np.ndarray, float]:
        """(knots, factors, constant): the polyline is constant + Σ factor·relu(u − knot)."""
        slopes, knots = self.curve.slopes, self.curve.knots
        below = float(self.curve.values[0] + slopes[0] * (self.start - knots[0]))
        return np.r_[self.start, knots[1:-1]], np.r_[slopes[0], np.diff(slopes)], below


def composed_layer(request: Request, lanes: list[PlannedLane]) -> ComposedLayer | None:
    """The layer with these lanes, or None if one of them is not fitted in time."""
    alone = all(lane.term.interacting <= 1 for lane in lanes)
    lanes, parts = [lane.within(request.target) for lane in lanes], list[Layer]()
    for position, lane in enumerate(lanes):
        inner = replace(
            request,
            target=request.target.inner(lane.term.inner),
            tolerance=lane.tolerance,
            construction="gates" if alone else "memory",
            budget=request.budget.share(1 / (len(lanes) - position)),
            composed=True,
        )
        best = polished(inner)[0]
        if best.observed > best.goal or best.remainder.frame != request.frame:
            return None
        parts.append(placed(best.layer, position, len(lanes)))
    relus = [lane.relus for lane in lanes]
    bias = _constants(request, lanes)
    values = list[Tensor]()
    for lane, (_, factors, constant) in zip(lanes, relus, strict=True):
        bias[lane.output] += constant
        values.append(pad(torch.from_numpy(factors)[:, None], (lane.output, request.target.outputs - 1 - lane.output)))
    return ComposedLayer(
        inner=reduce(_added, parts),
        lanes=torch.cat([torch.full((len(knots),), k) for k, (knots, _, _) in enumerate(relus)]),
        knots=torch.from_numpy(np.concatenate([knots for knots, _, _ in relus])),
        values=torch.cat(values),
        bias=bias,
    )


def _constants(request: Request, lanes: list[PlannedLane]) -> Tensor:
    """What the terms without variables add to every output that has no plain lane."""
    target = request.target
    assert target.formula is not None
    bias = torch.zeros(target.outputs, dtype=torch.float64)
    for output, tree in enumerate(target.formula.outputs):
        if not any(lane.output == output and lane.term.plain for lane in lanes):
            alone = gathered(Sum, [term for term in additive_terms(tree) if not variables(term)])
            formula = Formula("", target.formula.names, (alone,))
            bias[output] = float(np.asarray(evaluate(formula, np.zeros((1, target.dimension))))[0, 0])
    return bias


def lanes_of(request: Request) -> list[PlannedLane] | None:
    """The lanes of all outputs; None where there is no composition, or where one would not help."""
    target = request.target
    if target.formula is None or target.domain.within or target.leaves_points_out or request.layout != "token":
        return None
    if request.units is not None or request.construction != "auto":
        return None
    found, composed = list[PlannedLane](), False
    for output, tree in enumerate(target.formula.outputs):
        own = _lanes_of_output(request, output, additive_terms(tree))
        if own is None:
            return None
        found += own[0]
        composed |= own[1]
    return found if composed else None


def _lanes_of_output(request: Request, output: int, terms: Sequence[Node]) -> tuple[list[PlannedLane], bool] | None:
    """The lanes of an output, and whether one of them is composed."""
    target, bounds = request.target, bounds_on(request.target)
    chosen, rest = list[Composition](), list[Node]()
    for term in terms:
        found = ways(term, bounds)
        way = found[0] if found else (Composition(term, U),)
        chosen += [one for one in way if not one.plain]
        rest += [one.inner for one in way if one.plain]
    beside = max(map(len, components([variables(term) for term in rest])), default=0)
    if len(chosen) > MOST_TERMS or (chosen and beside > MOST_BESIDE):
        return None
    whole = (1 - FLOAT32_SHARE * request.single) * request.fit_tolerance
    share = whole / max(len(chosen) + bool(beside), 1)
    lanes = list[PlannedLane]()
    for composition in chosen:
        lane = _composed_lane(target, output, composition, share)
        if lane is None:
            return None
        lanes.append(lane)
    if variables(*rest):
        tolerance = share if beside else AFFINE_SHARE * share
        lanes.append(PlannedLane(output, Composition(gathered(Sum, rest), U), tolerance))
    return lanes, bool(chosen)


def _composed_lane(target: Target, output: int, term: Composition, share: float) -> PlannedLane | None:
    """The lane of a composed term, within this share of the tolerance."""
    low, high = range_of(target.inner(term.inner).formula, target.domain)  # type: ignore[arg-type]
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        return None
    formula = Formula("", ("u",), (term.outer,))

    def outer(u: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(evaluate(formula, u[:, None]))[:, 0]

    seen = samples_of(outer, low, high, CURVE_SHARE * share)
    curve = None if seen is None else fitted_polyline(*seen, CURVE_SHARE * share, MOST_PIECES)
    if curve is None or not curve.steepest > 0:
        return None
    return PlannedLane(output, term, LANE_SHARE * share / curve.steepest, curve)


def placed(layer: Layer, column: int, columns: int) -> Layer:
    """A layer of one output as one of several outputs, the others 0."""

    def wider(name: str) -> Any:
        value = getattr(layer, name)
        return pad(value, (column, columns - 1 - column)) if isinstance(value, Tensor) else value

    return type(layer)(**{field.name: wider(field.name) for field in fields(layer)})


def _added(a: Layer, b: Layer) -> Layer:
    both: Any = added
    found: Layer = both(a, b)
    return found
