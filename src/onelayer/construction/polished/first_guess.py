"""Where a polish starts: at the best of several arrangements, or at a fit without the units that are missed least.

Starts for targets with infinite slopes: units whose sharpness grows geometrically toward the singular places.

    gates     at a point z of the place, β_j = β_0 r^j
    memory    in the distance u = g·(x − z) from a face, scores −β_j u + p·j: token j has the largest weight where β_j u is about
              p/log r, so that tokens share log u evenly; p is how sharply one takes over from the next. Faces in several
              directions, and centres along them as in the usual start, are combined by products of weights (sums of scores).

The sharpest unit is capped: sharper than the finest sample, it would change nothing there.
"""

import itertools
import math
from collections.abc import Callable
from itertools import chain

import torch
from jaxtyping import Float
from torch import Tensor

from ...target.graded_points import Faces
from ...target.points import spread_points
from .families import Family, MemoryFamily
from .fit import Fit, FitSamples, StepLimits, polish

FIRST_SHARPNESS = 3.0  # β_0
MOST_SHARPNESS = 2.0**26  # scores of this size, off by a few units of float64, still give weights to six digits or more
CAPS = tuple(8.0**-k for k in range(6))  # of 1/(finest distance): the sharpest unit
TAKEOVERS = (1.0, 2.0)  # p
CENTRES = (1, 2, 3, 5, 8)  # along a face
NARROWNESS, PADDING = 0.6, 1.0  # of the centres
PARALLEL = 0.999  # cosine from which directions are the same
SAME_FACE = 1e-6  # distance up to which parallel faces are one

Unit = tuple[Tensor, float]  # key, bias


def graded_starts(family: Family, units: int, places: list[Faces], seed: int) -> list[Float[Tensor, "unit width"]]:
    """Starts with this many units; none if there are no places, or none that this family can be graded toward."""
    if not places:
        return []
    if not isinstance(family, MemoryFamily):
        return [_gates(units, family.dimension, places, cap, seed) for cap in CAPS]
    directions = _directions(places)
    if not directions:
        return []
    starts = []
    for cap, takeover, centres in itertools.product(CAPS, TAKEOVERS, CENTRES if family.dimension > 1 else (1,)):
        levels = int((units / centres) ** (1 / len(directions)) + 1e-9)
        if levels >= 2:
            starts.append(_memory(units, family, directions, levels, centres, takeover, cap, seed))
    return starts


def _ladder(levels: int, finest: float, cap: float) -> list[float]:
    """Sharpnesses from β_0 to cap/finest."""
    top = max(math.log(min(cap / finest, MOST_SHARPNESS) / FIRST_SHARPNESS), 1.0)
    return [FIRST_SHARPNESS * math.exp(top * j / max(levels - 1, 1)) for j in range(levels)]


def _gates(units: int, d: int, places: list[Faces], cap: float, seed: int) -> Tensor:
    """The points of all places in turn, each with its own ladder; in several coordinates corners lie around the point."""
    points = [(z, place.finest) for place in places for z in place.points]
    points = points[:: max(1, len(points) * 3 // max(units, 1))]
    generator, rows = torch.Generator().manual_seed(seed), []
    for position, (z, finest) in enumerate(points):
        levels = len(range(position, units, len(points)))
        for j, beta in enumerate(_ladder(levels, finest, cap)):
            around = (
                (torch.rand(d, generator=generator, dtype=torch.float64) - 0.5) * 4
                if d > 1
                else torch.zeros(1, dtype=torch.float64)
            )
            facing = -beta if d > 1 and j % 2 else beta
            rows.append(torch.cat([torch.tensor([facing], dtype=torch.float64), facing * (z + around / beta)]))
    return torch.stack(rows)


def _directions(places: list[Faces]) -> list[list[tuple[Tensor, float, float]]]:
    """Faces (direction g, g·z, finest distance), those with parallel normals together."""
    found: list[list[tuple[Tensor, float, float]]] = []
    for place in places:
        for z, g in zip(place.points, place.directions, strict=True):
            if not g.any():
                continue
            height = float(g @ z)
            family = next((f for f in found if abs(float(f[0][0] @ g)) > PARALLEL), None)
            if family is None:
                found.append([(g, height, place.finest)])
            elif not any(abs(h - height) < SAME_FACE and float(k @ g) > 0 for k, h, _ in family):
                family.append((g, height, place.finest))
    return found[:2] if all(len(f) < 4 for f in found[:2]) else []


def _memory(
    units: int,
    family: MemoryFamily,
    directions: list[list[tuple[Tensor, float, float]]],
    levels: int,
    centres: int,
    takeover: float,
    cap: float,
    seed: int,
) -> Tensor:
    ladders: list[list[Unit]] = []
    for faces in directions:
        ladder: list[Unit] = []
        for position, (g, height, finest) in enumerate(faces):
            betas = _ladder(len(range(position, levels, len(faces))), finest, cap)
            ladder += [(-beta * g, beta * height + takeover * j) for j, beta in enumerate(betas)]
        ladders.append(ladder)
    around, h = spread_points(centres, family.dimension, PADDING, seed)
    kappa = NARROWNESS / h**2 if centres > 1 else 0.0
    ladders.append([(kappa * c, -kappa / 2 * float(c @ c)) for c in around])
    rows = [
        torch.cat(
            [sum((key for key, _ in row), start=torch.zeros(family.dimension)), torch.tensor([sum(b for _, b in row)])]
        )
        for row in itertools.product(*ladders)
    ]
    theta = torch.stack(rows).double()
    more = units - len(theta)
    return torch.cat([theta, family.start(more, (NARROWNESS, 2.0), seed)]) if more > 0 else theta


ARRANGEMENTS: dict[str, tuple[tuple[float, float], ...]] = {
    "memory": ((0.35, 2.0), (0.6, 2.0), (1.0, 2.0)),  # narrowness, padding
    "gates": ((1.0, 1.0), (1.5, 1.0), (3.0, 1.0)),  # β·h, padding
    "ridges": ((1.0, 1.0), (1.5, 1.0), (3.0, 1.0)),  # |a|·h, padding
    "ramps": ((0.5, 0.0), (1.0, 0.0), (2.0, 0.0)),
}
TRIED_STARTS, TRIED_STEPS = 6, 10  # starts graded toward infinite slopes, and steps of polishing before one is chosen
PRUNE_TRIALS = 8  # units of which the one that is missed least is pruned

Limits = Callable[[int, Tensor], StepLimits]  # for a number of units that starts at θ


def best_start(
    family: Family, units: int, samples: FitSamples, limits: Limits, faces: list[Faces], seed: int
) -> Tensor:
    """The arrangement with the best least-squares fit."""
    found: list[tuple[float, Tensor]] = []
    usual = (family.start(units, arrangement, seed) for arrangement in ARRANGEMENTS[family.name])
    for theta in chain(usual, graded_starts(family, units, faces, seed)):
        theta = theta.to(samples.points.device)
        own = limits(units, theta)
        if found and own.over():
            break
        found.append((polish(family, theta, samples, own, 0).fitted, theta))
    if faces:  # least squares alone prefers starts that are not sharp enough
        best = [theta for _, theta in sorted(found, key=lambda pair: pair[0])[:TRIED_STARTS]]
        fits = [polish(family, theta, samples, limits(units, theta), TRIED_STEPS) for theta in best]
        found = [(fit.fitted, fit.theta) for fit in fits]
    return min(found, key=lambda pair: pair[0])[1]


def pruned(family: Family, fit: Fit, units: int, samples: FitSamples, limits: StepLimits) -> Tensor:
    """θ without the units whose absence costs the linear fit least; of each, the few that matter least are tried."""
    theta, c = fit.theta, fit.coefficients
    while len(theta) > units:
        importance = family.importance(samples.points, family.weights(theta, samples.points), c)
        candidates = importance.argsort()[:PRUNE_TRIALS].tolist()
        rest = [torch.cat([theta[:j], theta[j + 1 :]]) for j in candidates]
        fits = [polish(family, kept, samples, limits, 0) for kept in rest]
        best = min(fits, key=lambda f: f.squares)
        theta, c = best.theta, best.coefficients
    return theta
