"""Training by gradient descent under a cap on time: Adam with warm-up and cosine, L-BFGS, and a race of candidates."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import nn

from .task import Clock, PeerSamples

BATCH = 256
WARM_UP_SHARE = 0.05  # of the time, in which the rate rises
TRIAL_SHARE = 0.1  # of the time, for every candidate of a race

Candidate = TypeVar("Candidate")


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A module in float64 initialised by PyTorch's defaults from a seed; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().double()


def stored_numbers(model: nn.Module) -> int:
    """How many numbers the module stores, in all its tensors."""
    return sum(tensor.numel() for tensor in model.state_dict().values())


def adam(model: nn.Module, samples: PeerSamples, seconds: float, rate: float, seed: int) -> None:
    """Minimise mean squares by Adam on random batches; the rate rises linearly, then falls as a cosine of the time spent."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(seed)
    clock, share = Clock(seconds), 0.0
    while share < 1:
        for batch in torch.randperm(len(samples.x), generator=generator).split(BATCH):
            share = clock.share
            now = rate * min(1.0, (share + 1e-3) / WARM_UP_SHARE) * (1 + math.cos(math.pi * share)) / 2
            for group in optimiser.param_groups:
                group["lr"] = now
            optimiser.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(samples.x[batch]), samples.y[batch])
            loss.backward()
            optimiser.step()
            if share >= 1:
                break


def lbfgs(model: nn.Module, samples: PeerSamples, seconds: float) -> None:
    """Minimise mean squares on all samples by L-BFGS with a strong Wolfe line search, until time is up or nothing moves."""
    options = {"max_iter": 10, "history_size": 100, "tolerance_grad": 0.0, "tolerance_change": 0.0}
    optimiser = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe", **options)  # type: ignore[arg-type]

    def closure() -> torch.Tensor:
        optimiser.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(samples.x), samples.y)
        loss.backward()
        return loss

    clock, previous = Clock(seconds), math.inf
    while clock.share < 1:
        loss = float(optimiser.step(closure).detach())  # the loss at the start of these ten iterations
        if not math.isfinite(loss) or loss == previous:
            break
        previous = loss


def race(
    candidates: Sequence[Candidate], fit: Callable[[Candidate, float], nn.Module], samples: PeerSamples, seconds: float
) -> nn.Module:
    """The best of all fits: a short trial for every candidate, then the remaining time for the best of them.

    The best has the smallest maximum error on the pool; the test set chooses nothing.
    """
    clock = Clock(seconds)
    best = candidates[0]
    found: list[nn.Module] = []
    if len(candidates) > 1:
        found = [fit(candidate, TRIAL_SHARE * seconds) for candidate in candidates]
        best = min(zip(candidates, found, strict=True), key=lambda pair: samples.pool_error(pair[1]))[0]
    found.append(fit(best, max(clock.left, TRIAL_SHARE * seconds)))
    return min(found, key=samples.pool_error)
