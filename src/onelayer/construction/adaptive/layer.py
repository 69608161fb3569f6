"""Rows of bumps for a target that is a sum of functions of one coordinate each: one row for every coordinate, in linear time.

Kinks of affine functions have hinges of their own, as for memory tokens (`kinks.remainder`); rows follow what remains.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch

from ...common.budget import Budget
from ...layer.heads import Bumps
from ...layer.layer import MemoryLayer, added, memory_layer
from ...proof.certificate import Certificate
from ...proof.decision import PROOF_SECONDS
from ...target.group_samples import GroupSamples, base_of
from ..fitted_groups import groups_to_fit
from ..kinks.remainder import Remainder, remainder_of
from ..request import POOL_GOAL, SEARCH_TIME, Certify, Found, Request
from .fit import RowFit, fitted_row, forecast
from .spacing import Curve

MOST = 50_000  # bumps of one row
SEARCHED = 90  # bumps: up to about as many, the search for fewer units comes first
SPREAD_POINTS = 1025  # at which the range of a function is seen


@dataclass(frozen=True)
class Curves:
    """The functions of one coordinate that a target is the sum of, with their ranges; `expected` bumps for all of them."""

    request: Request
    remainder: Remainder
    parts: tuple[tuple[int, Curve, float, float], ...]  # (coordinate, function of x̂, end of x̂, range)

    @property
    def goal(self) -> float:
        """The error that each may have."""
        return (POOL_GOAL * self.request.fit_tolerance - self.remainder.error) / len(self.parts)

    @property
    def expected(self) -> int:
        return sum(forecast(f, -end, end, self.goal, spread, MOST) for _, f, end, spread in self.parts)

    def layer(self, over: Callable[[], bool]) -> MemoryLayer | None:
        """The rows of bumps as a layer, with the hinges; None where one of them was not found."""
        target, D = self.remainder.target, self.request.target.dimension
        layers = [memory_layer(base_of(target), D)]
        for j, f, end, spread in self.parts:
            found = fitted_row(f, -end, end, self.goal, spread, MOST, over)
            if found is None:
                return None
            layers.append(_with_row(found, j, D))
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
    parts = []
    for (j,) in groups:
        end = 0.5 if remainder.ratios is None else remainder.ratios[j] / 2
        f = _curve(GroupSamples(remainder.target, (j,), request.seed, ratios=remainder.ratios), end)
        seen = f(np.linspace(-end, end, SPREAD_POINTS))
        spread = float(np.ptp(seen, axis=0).max()) if np.isfinite(seen).all() else math.inf
        if not 0 < spread < math.inf:
            return None
        parts.append((j, f, end, spread))
    return Curves(request, remainder, tuple(parts))


def _curve(source: GroupSamples, end: float) -> Curve:
    domain, (j,) = source.target.domain, source.group

    def curve(u: np.ndarray) -> np.ndarray:
        unit = np.full((len(u), domain.dimension), 0.5)
        unit[:, j] = np.clip(u / (2 * end) + 0.5, 0.0, 1.0)
        return np.asarray(source.values(domain.points(unit)))

    return curve


def _with_row(fit: RowFit, coordinate: int, dimension: int) -> MemoryLayer:
    """(c + d·s/2) w(s) with s = β(u − m): the value c − d·β·m/2 + (d·β/2)·u."""
    beta, middle, c = (torch.from_numpy(t) for t in (fit.row.sharpness, fit.row.centres, fit.values))
    directions = torch.zeros(len(fit), dimension, dtype=torch.float64)
    values = torch.zeros(len(fit), 1 + dimension, c.shape[2], dtype=torch.float64)
    directions[:, coordinate] = beta
    values[:, 1 + coordinate] = c[:, 1] * beta[:, None] / 2
    values[:, 0] = c[:, 0] - values[:, 1 + coordinate] * middle[:, None]
    nothing = torch.zeros(c.shape[2], dtype=torch.float64)
    return memory_layer(nothing, dimension, bumps=(Bumps(directions, -beta * middle), values))


def adaptive(curves: Curves, certify: Certify) -> tuple[Found, Certificate] | None:
    """The layer of rows with its certificate; None where there is none within the time."""
    request = curves.request
    layer = curves.layer(request.budget.share(SEARCH_TIME).over)
    if layer is None:
        return None
    frame = curves.remainder.frame
    certificate = certify(request, layer, frame, Budget(min(PROOF_SECONDS, request.budget.left)))
    notes = (f"{len(layer.bumps)} bumps, as close together as f needs: a search for fewer units would take long",)
    return Found(layer, frame, certificate, notes=notes), certificate
