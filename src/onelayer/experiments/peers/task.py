"""What all peers share: the samples they are fitted to, the pool they are chosen by, the test set they are judged on.

All three are independent, crowd toward the boundary and hold points of faces and all corners: a third to a half of the
worst points of trained networks are corners.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ...target.points import fitting_points
from ...target.target import Target

LEAST_SAMPLES, SAMPLES_PER_PARAMETER = 4000, 4
POOL_POINTS, TEST_POINTS = 16_000, 50_000
SAMPLE_SEED, POOL_SEED, TEST_SEED = 0, 5_000_011, 7_000_003
CHUNK = 4096  # points answered at a time
CLOSE = 0.1  # parameters within ±10 % of the budget are "matched"

Function = Callable[[np.ndarray], np.ndarray]  # [point, D] in the units of x → [point, outputs]


@dataclass(frozen=True)
class Fitted:
    """A fitted function, the numbers it stores, the processor seconds it took, and what to know about it."""

    function: Function
    parameters: int
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Samples:
    """Points carried to [−1, 1]^D and values carried to [−1, 1], and the way back. The scaling is not counted as parameters."""

    target: Target
    x: Tensor
    y: Tensor
    middle: Tensor
    reach: Tensor

    def largest(self, model: Callable[[Tensor], Tensor]) -> float:
        """The largest error on the pool: what candidates are chosen by."""
        return _largest(self.function(model), self.target, POOL_POINTS, POOL_SEED)

    def function(self, model: Callable[[Tensor], Tensor]) -> Function:
        """The model as a function of points in the units of x."""
        low, high = np.array(self.target.domain.lower), np.array(self.target.domain.upper)

        def answer(points: np.ndarray) -> np.ndarray:
            x = torch.from_numpy(2 * (points - low) / (high - low) - 1)
            with torch.no_grad():
                parts = [model(part) * self.reach + self.middle for part in x.split(CHUNK)]
            return torch.cat(parts).numpy()

        return answer


def samples_of(target: Target, parameters: int) -> Samples:
    """The samples for a budget: the same for every peer."""
    count = max(LEAST_SAMPLES, SAMPLES_PER_PARAMETER * parameters)
    unit = fitting_points(count, target.dimension, SAMPLE_SEED)
    y = torch.from_numpy(target(target.domain.points(unit.numpy())))
    low, high = y.min(dim=0).values, y.max(dim=0).values
    middle, reach = (low + high) / 2, ((high - low) / 2).clamp(min=1e-300)
    return Samples(target, 2 * unit - 1, (y - middle) / reach, middle, reach)


def observed(function: Function, target: Target) -> float:
    """The largest error on one independent dense test set with faces and corners. It proves nothing."""
    return _largest(function, target, TEST_POINTS, TEST_SEED)


def _largest(function: Function, target: Target, count: int, seed: int) -> float:
    """The largest error at so many points, infinite where the function has no finite value."""
    points = target.domain.points(fitting_points(count, target.dimension, seed).numpy())
    found = float(np.abs(function(points).reshape(len(points), -1) - target(points)).max())
    return found if math.isfinite(found) else math.inf


def matched(parameters: int, budget: int) -> bool:
    """Whether so many stored numbers are within ±10 % of the budget."""
    return abs(parameters - budget) <= CLOSE * budget


@dataclass(frozen=True)
class Clock:
    """A cap on processor time, running from when it is made: on one thread, a busy machine takes nothing from a peer."""

    seconds: float = math.inf
    started: float = field(default_factory=time.process_time)

    @property
    def spent(self) -> float:
        return time.process_time() - self.started

    @property
    def share(self) -> float:
        """Part of the time that is spent, at most 1."""
        return min(1.0, self.spent / self.seconds)

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - self.spent)

    @property
    def end(self) -> str:
        """How training ended."""
        return "capped" if self.left == 0 else "stalled"
