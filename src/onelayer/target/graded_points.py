"""Points graded toward the places where a formula has infinite slopes: log-uniform in the distance from them.

A layer that follows √u must be right at u = 10⁻⁸ too; among uniform points there are none that close. Toward an isolated point z
a point x moves to z + s(x − z). Toward a line or a face it moves, by Newton's method along the slope of the distance, to where
|u − singular value| is s times as large. s is log-uniform, down to where f no longer changes by as much as matters.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..formula import Formula, evaluate
from .domain import Domain
from .singular import Place, arguments_of, places_of, singular_values

ISOLATED = 3  # points: a place with more is a line or a face
PROBES = 32  # points whose way to the place is followed to see where f stops changing
MOST_HALVINGS = 46  # of the distance
NEWTON_STEPS = 30
DIFFERENCE = 1e-7  # share of a side: step of difference quotients


@dataclass(frozen=True)
class Faces:
    """Points of a place, unit directions away from it (0 where it is not left to one side only), the least distance."""

    points: Float[Tensor, "point coordinate"]
    directions: Float[Tensor, "point coordinate"]
    finest: float


@dataclass(frozen=True)
class Grading:
    """One place, in the unit cube; `finest` is the least s that matters."""

    domain: Domain
    node: Formula  # the singular node alone
    arguments: Formula
    values: tuple[float, ...]
    coordinates: tuple[int, ...]
    points: Float[np.ndarray, "point coordinate"]  # of the place, in its own coordinates
    finest: float

    @property
    def isolated(self) -> bool:
        return len(self.points) <= ISOLATED

    def toward(self, unit: np.ndarray, s: Float[np.ndarray, " row"], which: Int[np.ndarray, " row"]) -> np.ndarray:
        """The points, each moved toward the place (`which` of its points, if they are isolated) to s times its distance."""
        moved, pick = unit.copy(), list(self.coordinates)
        if self.isolated:
            z = self.points[which % len(self.points)]
            moved[:, pick] = z + s[:, None] * (unit[:, pick] - z)
            return moved
        goal = s * self.distance(unit)
        for _ in range(NEWTON_STEPS):
            here, slope = self.distance(moved), self.slope(moved)[:, pick]
            with np.errstate(all="ignore"):
                step = ((here - goal) / np.square(slope).sum(axis=1))[:, None] * slope
            moved[:, pick] = np.clip(moved[:, pick] - np.nan_to_num(step, posinf=0.0, neginf=0.0), 0.0, 1.0)
        return moved

    def distance(self, unit: np.ndarray) -> Float[np.ndarray, " row"]:
        """How far the arguments are from the singular value."""
        with np.errstate(all="ignore"):
            at = np.asarray(evaluate(self.arguments, self.domain.points(unit)), dtype=float)
        return np.min([np.sqrt(np.square(at - v).sum(axis=1)) for v in self.values], axis=0)

    def faces(self, group: tuple[int, ...], ratios: np.ndarray) -> "Faces":
        """The points of the place and the directions away from it, in the group's normalised coordinates."""
        full = np.full((len(self.points), len(self.domain.lower)), 0.5)
        full[:, list(self.coordinates)] = self.points
        slope = self.slope(full)[:, list(group)] / ratios
        back = full - DIFFERENCE * np.sign(self.slope(full))  # on the other side of the place, if there is one
        inside = ((back >= 0) & (back <= 1)).all(axis=1) & (self.distance(back) > self.distance(full))
        size = np.sqrt(np.square(slope).sum(axis=1))
        slope = (
            np.where((size > 1e-3 * size.max(initial=1e-300)) & ~inside, 1 / np.maximum(size, 1e-300), 0.0)[:, None]
            * slope
        )
        points = (full[:, list(group)] - 0.5) * ratios
        return Faces(torch.from_numpy(points), torch.from_numpy(slope), self.finest)

    def slope(self, unit: np.ndarray) -> np.ndarray:
        """The gradient of the distance, by differences that stay inside."""
        here, found = self.distance(unit), np.zeros_like(unit)
        for i in self.coordinates:
            step = np.where(unit[:, i] < 0.5, DIFFERENCE, -DIFFERENCE)
            there = unit.copy()
            there[:, i] += step
            found[:, i] = np.nan_to_num((self.distance(there) - here) / step)
        return found


def gradings_of(formula: Formula, domain: Domain, group: tuple[int, ...], detail: float) -> list[Grading]:
    """The places whose coordinates are in the group; changes of f by less than `detail` do not matter."""
    found = []
    for place in places_of(formula, domain.lower, domain.upper):
        if set(place.coordinates) <= set(group):
            grading = _grading(formula, domain, place)
            found.append(replace(grading, finest=_finest(grading, formula, detail)))
    return found


def _grading(formula: Formula, domain: Domain, place: Place) -> Grading:
    pick, middle = list(place.coordinates), (np.array(domain.lower) + np.array(domain.upper)) / 2
    x = np.tile(middle, (len(place.points), 1))
    x[:, pick] = place.points
    arguments = replace(formula, outputs=arguments_of(place.node))
    values = singular_values(place.node)[0]
    node = replace(formula, outputs=(place.node,))
    return Grading(domain, node, arguments, values, place.coordinates, domain.unit(x)[:, pick], 2.0**-MOST_HALVINGS)


def _finest(grading: Grading, formula: Formula, detail: float) -> float:
    """The largest s = 2^−k after which f changes by less than `detail` on the way to the place."""
    start, levels = np.random.default_rng(0).random((PROBES, len(grading.domain.lower))), np.arange(1, MOST_HALVINGS)
    starts, which = np.tile(start, (len(levels), 1)), np.tile(np.arange(PROBES), len(levels))
    ways = grading.toward(starts, 2.0 ** -np.repeat(levels, PROBES), which)
    with np.errstate(all="ignore"):
        values = np.asarray(evaluate(formula, grading.domain.points(ways)), dtype=float).reshape(len(levels), -1)
        change = np.nan_to_num(np.abs(values - values[-1])).max(axis=1)
    return 2.0 ** -(1 + int((change > detail).sum()))


def graded(
    unit: Float[Tensor, "point coordinate"], gradings: list[Grading], seed: int
) -> Float[Tensor, "point coordinate"]:
    """The points, half of them moved toward the places."""
    if not gradings:
        return unit
    rng, moved = np.random.default_rng(seed), unit.numpy().copy()
    which = rng.integers(0, 2 * len(gradings), len(moved))
    for position, grading in enumerate(gradings):
        rows = np.flatnonzero(which == position)
        s = grading.finest ** rng.random(len(rows))
        there = grading.toward(moved[rows], s, rng.integers(0, len(grading.points), len(rows)))
        with np.errstate(all="ignore"):  # rounding may leave a node without a value so close to the place
            good = np.isfinite(np.asarray(evaluate(grading.node, grading.domain.points(there)), dtype=float)).all(
                axis=1
            )
        moved[rows[good]] = there[good]
    return torch.from_numpy(moved)
