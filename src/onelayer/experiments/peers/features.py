"""Random features: sigmoid ridges with random directions and places, their values by least squares.

    T(x) = c_0 + Σ_k c_k σ(w_k·(x − p_k)),    w_k normal with one standard deviation for all, p_k uniform in the box

All of w, w·p and c are stored and counted. The standard deviation is chosen from a few, then draws are repeated.
"""

import itertools

import torch
from torch import Tensor

from ...target.target import Target
from .task import Clock, Fitted, matched, samples_of

STEEPNESS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # standard deviations of w on the box [−1, 1]^D
DRAWS = 30  # at most
NEGLIGIBLE = 1e-14  # singular values below this part of the largest are dropped


def fit(target: Target, parameters: int, seconds: float, seed: int = 0) -> Fitted | None:
    """Best of a few draws; None if the budget is too small for one feature."""
    clock = Clock(seconds)
    samples = samples_of(target, parameters)
    D, m = target.dimension, target.outputs
    count = round((parameters - m) / (D + 1 + m))
    if count < 1 or not matched(count * (D + 1 + m) + m, parameters):
        return None
    generator = torch.Generator().manual_seed(seed)
    found = list[tuple[float, int, float, tuple[Tensor, ...]]]()
    for draw in itertools.count():
        if draw and (clock.left == 0 or draw >= DRAWS):
            break
        steep = STEEPNESS[draw] if draw < len(STEEPNESS) else min(found)[2]
        w = steep * torch.randn(D, count, generator=generator, dtype=torch.float64)
        place = 2 * torch.rand(count, D, generator=generator, dtype=torch.float64) - 1
        shift = (place * w.T).sum(dim=1)
        values = torch.linalg.lstsq(ridges(samples.x, w, shift), samples.y, rcond=NEGLIGIBLE, driver="gelsd").solution
        error = samples.largest(lambda x, w=w, s=shift, v=values: ridges(x, w, s) @ v)  # type: ignore[misc]
        found.append((error, draw, steep, (w, shift, values)))
    _, _, steep, (w, shift, values) = min(found)
    note = f"{count} features, steepness {steep:g}, best of {len(found)} draws"
    function = samples.function(lambda x: ridges(x, w, shift) @ values)
    return Fitted(function, w.numel() + shift.numel() + values.numel(), clock.spent, note)


def ridges(x: Tensor, w: Tensor, shift: Tensor) -> Tensor:
    """One column of ones, then the features."""
    return torch.cat([x.new_ones(len(x), 1), torch.sigmoid(x @ w - shift)], dim=1)
