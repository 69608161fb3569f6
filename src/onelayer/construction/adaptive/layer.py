"""Rows of bumps for a target that is a sum of functions of one coordinate each: one row for every coordinate, in linear time.

Kinks of affine functions have hinges of their own, as for memory tokens (`kinks.remainder`), and so have those of other
functions of one coordinate (`bends`); rows follow what remains.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from jaxtyping import Float

from ...common.budget import Budget
from ...layer.heads import Bumps, Hinges
from ...layer.layer import MemoryLayer, added, memory_layer
from ...proof.decision import PROOF_SECONDS
from ...target.group_samples import GroupSamples, base_of
from ..fitted_groups import groups_to_fit
from ..kinks.remainder import Remainder, remainder_of
from ..request import POOL_GOAL, SEARCH_TIME, Certify, Found, Request
from .bends import SAMPLES, bends, kinks_of, without_bends
from .fit import RowFit, fitted_row, forecast
from .spacing import Curve

MOST = 50_000  # bumps of one row
SEARCHED = 90  # bumps: up to about as many, the search for fewer units comes first
SAME = 1e-12  # share of a side: places closer than this are one
SPREAD_POINTS = 1025  # at which the range of a function is seen


@dataclass(frozen=True)
class OneCurve:
    """A function of one coordinate x̂: its ends and, between them, where it is not smooth; what is left once hinges are gone."""

    coordinate: int
    places: Float[np.ndarray, " place"]
    bends: Float[np.ndarray, "inner out"]
    smooth: Curve
    spread: float

    def hinges(self, dimension: int) -> tuple[Hinges, torch.Tensor]:
        used = self.bends.any(axis=1)
        directions = torch.zeros(int(used.sum()), dimension, dtype=torch.float64)
        directions[:, self.coordinate] = 1.0
        return Hinges(directions, torch.from_numpy(-self.places[1:-1][used])), torch.from_numpy(self.bends[used])


@dataclass(frozen=True)
class Curves:
    """The functions of one coordinate that a target is the sum of."""

    request: Request
    remainder: Remainder
    parts: tuple[OneCurve, ...]

    @property
    def goal(self) -> float:
        """The error that each may have."""
        return (POOL_GOAL * self.request.fit_tolerance - self.remainder.error) / len(self.parts)

    @property
    def expected(self) -> int:
        """About how many bumps they take."""
        return sum(forecast(p.smooth, p.places, self.goal, p.spread, MOST) for p in self.parts)

    def layer(self, over: Callable[[], bool]) -> MemoryLayer | None:
        """The rows of bumps as a layer, with all hinges; None where one of them was not found."""
        target, D = self.remainder.target, self.request.target.dimension
        layers = [memory_layer(base_of(target), D)]
        for part in self.parts:
            found = fitted_row(part.smooth, part.places, self.goal, part.spread, MOST, over)
            if found is None:
                return None
            layers.append(_with_row(found, part.coordinate, D, part.hinges(D)))
        whole = self.remainder.completed(reduce(added, layers))
        assert isinstance(whole, MemoryLayer)
        return whole


def curves_of(request: Request) -> Curves | None:
    """The target as a sum of functions of one coordinate; None where it is not, or rows of bumps cannot do what is asked."""
    target = request.target
    plain = request.attention == "softmax" and request.layout == "token" and request.grid is None and not request.single
    free = request.units is None and request.construction != "gates" and request.slope_tolerance is None
    if not (plain and free) or target.data is not None or target.domain.within or target.leaves_points_out:
        return None
    remainder = remainder_of(request, "memory")
    groups = groups_to_fit(remainder.target)
    if remainder.nothing_left or any(len(group) > 1 for group in groups):
        return None
    sources = [GroupSamples(remainder.target, group, request.seed, ratios=remainder.ratios) for group in groups]
    if any(source.gradings for source in sources):  # heads that are graded toward infinite slopes are proved better
        return None
    parts = [_part(source) for source in sources]
    if any(part is None for part in parts):
        return None
    return Curves(request, remainder, tuple(part for part in parts if part is not None))


def _part(source: GroupSamples) -> OneCurve | None:
    """What is to be followed in a group of one coordinate; None where it has no value somewhere, or no change."""
    (j,), domain = source.group, source.target.domain
    end = 0.5 if source.ratios is None else source.ratios[j] / 2

    def curve(u: np.ndarray) -> np.ndarray:
        unit = np.full((len(u), domain.dimension), 0.5)
        unit[:, j] = np.clip(u / (2 * end) + 0.5, 0.0, 1.0)
        return np.asarray(source.values(domain.points(unit)))

    line = np.full((SAMPLES, domain.dimension), 0.5)
    line[:, j] = np.linspace(0.0, 1.0, SAMPLES)
    formula, unit = source.target.formula, set[float]()
    if formula is not None:
        x = np.array(kinks_of(formula, j, domain.points(line)))
        unit |= set(((x - domain.lower[j]) / (domain.upper[j] - domain.lower[j])).tolist())
    inner = np.array(sorted(p for p in unit if 0 < p < 1))
    inner = inner[np.insert(np.diff(inner) > SAME, 0, True)] if len(inner) else inner
    places = np.concatenate([[-end], 2 * end * (inner - 0.5), [end]])
    J = bends(curve, places)
    smooth = without_bends(curve, places, J)
    seen = smooth(np.linspace(-end, end, SPREAD_POINTS))
    spread = float(np.ptp(seen, axis=0).max()) if np.isfinite(seen).all() else math.inf
    return OneCurve(j, places, J, smooth, spread) if 0 < spread < math.inf else None


def _with_row(fit: RowFit, coordinate: int, dimension: int, hinges: tuple[Hinges, torch.Tensor]) -> MemoryLayer:
    """(c + d·s/2) w(s) with s = β(u − m): the value c − d·β·m/2 + (d·β/2)·u."""
    beta, middle, c = (torch.from_numpy(t) for t in (fit.row.sharpness, fit.row.centres, fit.values))
    directions = torch.zeros(len(fit), dimension, dtype=torch.float64)
    values = torch.zeros(len(fit), 1 + dimension, c.shape[2], dtype=torch.float64)
    directions[:, coordinate] = beta
    values[:, 1 + coordinate] = c[:, 1] * beta[:, None] / 2
    values[:, 0] = c[:, 0] - values[:, 1 + coordinate] * middle[:, None]
    nothing = torch.zeros(c.shape[2], dtype=torch.float64)
    return memory_layer(nothing, dimension, hinges=hinges, bumps=(Bumps(directions, -beta * middle), values))


def adaptive(curves: Curves, certify: Certify) -> Found | None:
    """The layer of rows with its certificate; None where there is none within the time."""
    request = curves.request
    layer = curves.layer(request.budget.share(SEARCH_TIME).over)
    if layer is None:
        return None
    frame = curves.remainder.frame
    certificate = certify(request, layer, frame, Budget(min(PROOF_SECONDS, request.budget.left)))
    notes = (f"{len(layer.bumps)} bumps, as close together as f needs: a search for fewer units would take long",)
    return Found(layer, frame, certificate, notes=notes)
