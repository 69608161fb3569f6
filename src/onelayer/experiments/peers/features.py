"""Random features: sigmoid ridges with random directions and positions, and values by least squares.

    T(x) = c_0 + Σ_k c_k σ(w_k·(x − p_k)),    w_k normal with one standard deviation for all, p_k uniform in the box

All of w, w·p and c are stored and counted. The standard deviation is the best of a few; then draws are repeated.
"""

import itertools

import torch
from torch import Tensor

from ...target.target import Target
from .task import Clock, FittedPeer, matches_budget, samples_of

STEEPNESS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # standard deviations of w on the box [−1, 1]^D
MAX_DRAWS = 30
SINGULAR_CUTOFF = 1e-14  # singular values below this share of the largest are dropped


def fit(target: Target, parameters: int, seconds: float, seed: int = 0) -> FittedPeer | None:
    """Best of a few draws; None if the budget is too small for one feature."""
    clock = Clock(seconds)
    samples = samples_of(target, parameters)
    D, m = target.dimension, target.outputs
    count = round((parameters - m) / (D + 1 + m))
    if count < 1 or not matches_budget(count * (D + 1 + m) + m, parameters):
        return None
    generator = torch.Generator().manual_seed(seed)
    found = list[tuple[float, int, float, tuple[Tensor, ...]]]()
    for draw in itertools.count():
        if draw and (clock.left == 0 or draw >= MAX_DRAWS):
            break
        steep = STEEPNESS[draw] if draw < len(STEEPNESS) else min(found)[2]
        w = steep * torch.randn(D, count, generator=generator, dtype=torch.float64)
        position = 2 * torch.rand(count, D, generator=generator, dtype=torch.float64) - 1
        shift = (position * w.T).sum(dim=1)
        features = ridges(samples.x, w, shift)
        values = torch.linalg.lstsq(features, samples.y, rcond=SINGULAR_CUTOFF, driver="gelsd").solution
        error = samples.pool_error(lambda x, w=w, s=shift, v=values: ridges(x, w, s) @ v)  # type: ignore[misc]
        found.append((error, draw, steep, (w, shift, values)))
    _, _, steep, (w, shift, values) = min(found)
    note = f"{count} features, steepness {steep:g}, best of {len(found)} draws"
    function = samples.function(lambda x: ridges(x, w, shift) @ values)
    return FittedPeer(function, w.numel() + shift.numel() + values.numel(), clock.spent, note)


def ridges(x: Tensor, w: Tensor, shift: Tensor) -> Tensor:
    """A column of ones, then the features."""
    return torch.cat([x.new_ones(len(x), 1), torch.sigmoid(x @ w - shift)], dim=1)
