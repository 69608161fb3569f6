"""What all peers share: the samples they are fitted to, the pool that selects among them, the test set that judges them.

All three are independent, crowd toward the boundary and include points on faces of every dimension and corners: a third to a
half of the worst points of trained networks are corners. From its own worst points of the test set each one is followed uphill.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ...proof.observation import observe_from
from ...target.margin import in_scope
from ...target.points import fitting_points
from ...target.target import Target

MIN_SAMPLES, SAMPLES_PER_PARAMETER = 4000, 4
POOL_POINTS, TEST_POINTS = 16_000, 50_000
SAMPLE_SEED, POOL_SEED, TEST_SEED = 0, 5_000_011, 7_000_003
CHUNK = 4096  # points evaluated at a time
BUDGET_MARGIN = 0.1  # how far the parameters may be from the budget, as a share of it

Function = Callable[[np.ndarray], np.ndarray]  # [point, D] in the units of x → [point, outputs]


@dataclass(frozen=True)
class FittedPeer:
    """A fitted function, how many numbers it stores, the processor seconds it took, and a note."""

    function: Function
    parameters: int
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class PeerSamples:
    """Points scaled to [−1, 1]^D, values scaled to [−1, 1], and the inverse. The scaling does not count as parameters."""

    target: Target
    x: Tensor
    y: Tensor
    middle: Tensor
    reach: Tensor

    def pool_error(self, model: Callable[[Tensor], Tensor]) -> float:
        """The largest error on the pool, by which candidates are chosen."""
        points = _points(self.target, POOL_POINTS, POOL_SEED)
        found = float(np.abs(self.function(model)(points) - self.target(points)).max())
        return found if math.isfinite(found) else math.inf

    def function(self, model: Callable[[Tensor], Tensor]) -> Function:
        """The model as a function of points in the units of x."""
        low, high = np.array(self.target.domain.lower), np.array(self.target.domain.upper)

        def answer(points: np.ndarray) -> np.ndarray:
            x = torch.from_numpy(2 * (points - low) / (high - low) - 1)
            with torch.no_grad():
                parts = [model(part) * self.reach + self.middle for part in x.split(CHUNK)]
            return torch.cat(parts).numpy()

        return answer


def samples_of(target: Target, parameters: int) -> PeerSamples:
    """The samples for a budget, the same for every peer."""
    count = max(MIN_SAMPLES, SAMPLES_PER_PARAMETER * parameters)
    unit = fitting_points(count, target.dimension, SAMPLE_SEED)
    y = torch.from_numpy(target(target.domain.points(unit.numpy())))
    low, high = y.min(dim=0).values, y.max(dim=0).values
    middle, reach = (low + high) / 2, ((high - low) / 2).clamp(min=1e-300)
    return PeerSamples(target, 2 * unit - 1, (y - middle) / reach, middle, reach)


def observed_error(function: Function, target: Target) -> float:
    """The largest error at the test points and uphill from the worst of them, infinite if there is no finite value at one.

    It proves nothing.
    """

    def answer(x: np.ndarray) -> np.ndarray:
        return np.asarray(function(x), dtype=np.float64).reshape(len(x), -1)

    found = observe_from(answer, target, held_out_points(target)).largest
    return found if math.isfinite(found) else math.inf


def held_out_points(target: Target) -> np.ndarray:
    """One independent dense test set with faces and corners, the points in scope."""
    return _points(target, TEST_POINTS, TEST_SEED)


def _points(target: Target, count: int, seed: int) -> np.ndarray:
    points = target.domain.points(fitting_points(count, target.dimension, seed).numpy())
    return points[in_scope(target, points)]


def matches_budget(parameters: int, budget: int) -> bool:
    """Whether this many stored numbers are within ±10 % of the budget."""
    return abs(parameters - budget) <= BUDGET_MARGIN * budget


@dataclass(frozen=True)
class Clock:
    """A cap on processor time, running from when it is made: on one thread, a busy machine costs a peer nothing."""

    seconds: float = math.inf
    started: float = field(default_factory=time.process_time)

    @property
    def spent(self) -> float:
        return time.process_time() - self.started

    @property
    def share(self) -> float:
        """The share of the time that is spent, at most 1."""
        return min(1.0, self.spent / self.seconds)

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - self.spent)

    @property
    def end(self) -> str:
        """How training ended."""
        return "capped" if self.left == 0 else "stalled"
