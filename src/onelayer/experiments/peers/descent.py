"""Training by gradient descent under a cap on time: Adam with warm-up and cosine, L-BFGS, and a race of candidates."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import nn

from .task import Clock, Samples

BATCH = 256
WARM_UP = 0.05  # of the time
TRIAL = 0.1  # of the time, for every candidate of a race

Candidate = TypeVar("Candidate")


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A module in float64 initialised by PyTorch's defaults from a seed, the global random state left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().double()


def stored(model: nn.Module) -> int:
    """Numbers in all tensors that the module stores."""
    return sum(tensor.numel() for tensor in model.state_dict().values())


def adam(model: nn.Module, samples: Samples, seconds: float, rate: float, seed: int) -> int:
    """Mean squares by Adam on random batches; the rate rises linearly, then falls as a cosine of the time spent. Steps made."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(seed)
    clock, steps = Clock(seconds), 0
    while steps == 0 or clock.share < 1:
        for batch in torch.randperm(len(samples.x), generator=generator).split(BATCH):
            share = clock.share
            now = rate * min(1.0, (share + 1e-3) / WARM_UP) * (1 + math.cos(math.pi * share)) / 2
            for group in optimiser.param_groups:
                group["lr"] = now
            optimiser.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(samples.x[batch]), samples.y[batch])
            loss.backward()
            optimiser.step()
            steps += 1
            if share >= 1:
                break
    return steps


def lbfgs(model: nn.Module, samples: Samples, seconds: float) -> int:
    """Mean squares on all samples by L-BFGS with a strong Wolfe line search, until the time is up or nothing moves. Steps."""
    options = {"max_iter": 10, "history_size": 100, "tolerance_grad": 0.0, "tolerance_change": 0.0}
    optimiser = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe", **options)  # type: ignore[arg-type]

    def closure() -> torch.Tensor:
        optimiser.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(samples.x), samples.y)
        loss.backward()
        return loss

    clock, steps, previous = Clock(seconds), 0, math.inf
    while clock.share < 1:
        loss = float(optimiser.step(closure).detach())  # the loss at the start of these ten iterations
        if not math.isfinite(loss) or loss == previous:
            break
        previous, steps = loss, steps + 10
    return steps


def race(
    candidates: Sequence[Candidate],
    fit: Callable[[Candidate, float], nn.Module],
    samples: Samples,
    seconds: float,
) -> nn.Module:
    """A short trial for every candidate, then what is left of the time for the best; the best of all fits.

    Best means the smallest of the largest errors on the pool: nobody chooses by the test set.
    """
    clock = Clock(seconds)
    best = candidates[0]
    found: list[nn.Module] = []
    if len(candidates) > 1:
        found = [fit(candidate, TRIAL * seconds) for candidate in candidates]
        best = min(zip(candidates, found, strict=True), key=lambda pair: samples.largest(pair[1]))[0]
    found.append(fit(best, max(clock.left, TRIAL * seconds)))
    return min(found, key=samples.largest)
