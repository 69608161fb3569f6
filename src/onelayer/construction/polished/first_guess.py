"""Where a polish starts: at the best of several arrangements, or at a fit without the units that are missed least."""

from collections.abc import Callable
from itertools import chain

import torch
from torch import Tensor

from ...target.graded_points import Faces
from .families import Family
from .fit import Fit, FitSamples, StepLimits, polish
from .graded import graded_starts

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
