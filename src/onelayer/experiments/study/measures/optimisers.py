"""Polishing as a training method (Section VII): the same units from the same start, moved by four methods."""

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from ....construction.polished.families import Family, family_of
from ....construction.polished.fit import FitSamples, StepLimits, polish, sharpen
from ....target.points import fitting_points
from ...peers.descent import adam, lbfgs
from ...peers.marquardt import STALL_GAIN, Marquardt
from ...peers.task import Clock, PeerSamples, samples_of
from .construction import TARGET_AXES, target_at
from .registry import Point, Result, measure

ARRANGEMENT = {"memory": (0.6, 2.0), "gates": (1.5, 1.0)}  # spread centres, as a search starts from
JITTER = 0.3  # relative, so that seeds start at different places
CAP, REACH = 1e4, 50.0  # Σ|c| for values in [−1, 1], and the largest parameter, of polishing
POOL, POOL_SEED = 4000, 99  # where polishing looks for its worst points; errors are observed elsewhere
STEPS_SHARE = 0.7  # of the time for steps of polishing, at most; the rest is for the maximum
WARM_UP = 0.05  # seconds
RATE = 0.1  # of Adam: the best of 0.003, 0.01, 0.03 and 0.1 on both targets of the study


@measure("optimise", **TARGET_AXES, family="memory", units=8, optimiser="polishing", seconds=float, seed=0)
def optimise(point: Point) -> Result:
    """Units of one layer from a random start: observed error and RMSE after so many processor seconds of one optimiser.

    `optimiser` is "polishing", or "marquardt" (Levenberg–Marquardt), "lbfgs" or "adam" on keys and values together. All begin
    with the values that fit best at the start, and see the same samples.
    """
    target = target_at(point)
    family = family_of(point["family"], target.dimension)
    theta = family.start(point["units"], ARRANGEMENT[family.name], point["seed"])
    noise = torch.randn(theta.shape, generator=torch.Generator().manual_seed(point["seed"]), dtype=theta.dtype)
    theta = theta * (1 + JITTER * noise)
    samples = samples_of(target, theta.numel())
    start = polish(family, theta, _fit_samples(samples), StepLimits(CAP, REACH, 0.0), 0)
    units = _Units(family, theta, start.coefficients)
    if point["optimiser"] == "marquardt":  # the first Jacobian of a process takes a second, which is not its fault
        Marquardt(_Units(family, theta, start.coefficients)).run(samples.x[:8], samples.y[:8], WARM_UP)
    clock, first = Clock(point["seconds"]), samples.pool_error(units)
    steps = {"polishing": _polish, "marquardt": _marquardt, "lbfgs": _lbfgs, "adam": _adam}[point["optimiser"]]
    steps(units, samples, point)
    spent = clock.spent
    with torch.no_grad():
        rmse = float((units(samples.x) - samples.y).square().mean().sqrt() * samples.reach.max())
    found = {"start": first, "observed": samples.pool_error(units), "rmse": rmse, "spent": spent}
    return {"parameters": theta.numel() + start.coefficients.numel(), **found}


class _Units(nn.Module):
    """T = Φ(θ, x) c, with θ and c free."""

    def __init__(self, family: Family, theta: Tensor, c: Tensor) -> None:
        super().__init__()
        self.family, self.theta, self.c = family, nn.Parameter(theta.clone()), nn.Parameter(c.clone())

    def forward(self, x: Tensor) -> Tensor:
        rows = x if x.ndim == 2 else x[None]
        y = self.family.features(rows, self.family.weights(self.theta, rows)) @ self.c
        return y if x.ndim == 2 else y[0]


def _fit_samples(samples: PeerSamples) -> FitSamples:
    unit = fitting_points(POOL, samples.target.dimension, POOL_SEED)
    values = torch.from_numpy(samples.target(samples.target.domain.points(unit.numpy())))
    values = (values - samples.middle) / samples.reach
    return FitSamples(samples.x, samples.y, torch.ones_like(samples.x[:, 0]), 2 * unit - 1, values)


def _polish(units: _Units, samples: PeerSamples, point: Point) -> None:
    """Steps until they stall, as the other methods do, then toward the smallest maximum; a search would stop earlier."""
    clock = Clock(point["seconds"])
    given, theta = _fit_samples(samples), units.theta.detach()
    limits = StepLimits(CAP, max(REACH, float(theta.abs().max())), 0.0, lambda: clock.left == 0)
    early = replace(limits, over=lambda: clock.share > STEPS_SHARE)
    fit, before = polish(units.family, theta, given, early), math.inf
    while clock.share < STEPS_SHARE and fit.squares < (1 - STALL_GAIN) * before:
        before, fit = fit.squares, polish(units.family, fit.theta, given, early)
    fit, _ = sharpen(units.family, fit, given, limits)
    with torch.no_grad():
        units.theta.copy_(fit.theta)
        units.c.copy_(fit.coefficients)


def _marquardt(units: _Units, samples: PeerSamples, point: Point) -> None:
    Marquardt(units).run(samples.x, samples.y, point["seconds"])


def _lbfgs(units: _Units, samples: PeerSamples, point: Point) -> None:
    lbfgs(units, samples, point["seconds"])


def _adam(units: _Units, samples: PeerSamples, point: Point) -> None:
    adam(units, samples, point["seconds"], RATE, point["seed"])
