"""KAN, from the package pykan if installed (extra `peers`): cubic splines on the edges, trained by its L-BFGS.

pykan stores more than it trains (grids, masks, symbolic branches): all of it is counted, and the note says how many
numbers are trained.
"""

import contextlib
import importlib.util
import io
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from ...target.target import Target
from .descent import race, stored_numbers
from .task import Clock, FittedPeer, matches_budget, samples_of

GRIDS = (3, 5, 8, 12, 20)  # intervals of a spline
HIDDEN_WIDTHS = range(1, 33)
SIZES_TRIED = 3  # per budget
STEPS_PER_CALL = 5  # of L-BFGS
GRID_UPDATES = 10  # calls that also move the grid

Size = tuple[int, int]  # hidden width, grid


def installed() -> bool:
    spec = importlib.util.find_spec("kan")
    return spec is not None and spec.origin is not None  # a folder of that name is not the package


def fit(target: Target, parameters: int, seconds: float, seed: int = 0) -> FittedPeer | None:
    """Best of a few widths and grids with one hidden layer; None if none matches the budget."""
    clock = Clock(seconds)
    samples = samples_of(target, parameters)
    x, y = samples.x, samples.y
    data = {"train_input": x, "train_label": y, "test_input": x[:2], "test_label": y[:2]}

    def train(size: Size, cap: float) -> nn.Module:
        with undisturbed():
            model, trial, calls = network(target, size, seed), Clock(cap), 0
            while calls == 0 or trial.share < 1:
                model.fit(data, opt="LBFGS", steps=STEPS_PER_CALL, update_grid=calls < GRID_UPDATES)
                calls += 1
        setattr(model, "forward", undisturbed()(model.forward))  # noqa: B010
        return model

    candidates = sizes(target, parameters)
    if not candidates:
        return None
    model = race(candidates, train, samples, seconds)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    hidden: Any = model.width
    note = f"hidden {hidden[1][0]}, grid {model.grid}, {trained:,} trained; {clock.end}"
    return FittedPeer(samples.function(model), stored_numbers(model), clock.spent, note)


def sizes(target: Target, budget: int) -> list[Size]:
    """Sizes that match the budget, one per grid, closest first."""
    found: dict[int, tuple[int, Size]] = {}
    with undisturbed():
        for grid in GRIDS:
            for hidden in HIDDEN_WIDTHS:
                count = stored_numbers(network(target, (hidden, grid), 0))
                if matches_budget(count, budget):
                    found[grid] = min(found.get(grid, (budget, (0, 0))), (abs(count - budget), (hidden, grid)))
                if count > budget:
                    break
    return [size for _, size in sorted(found.values())[:SIZES_TRIED]]


def network(target: Target, size: Size, seed: int):  # type: ignore[no-untyped-def]
    """A KAN with one hidden layer, in float64; nothing is written to disk."""
    import kan

    widths = [target.dimension, size[0], target.outputs]
    return kan.KAN(width=widths, grid=size[1], k=3, seed=seed, auto_save=False).double()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Undo that pykan reseeds global generators, and hide the progress and the warnings it prints."""
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    quiet = io.StringIO()
    try:
        with (
            torch.random.fork_rng(devices=[]),
            contextlib.redirect_stderr(quiet),
            contextlib.redirect_stdout(quiet),
            warnings.catch_warnings(action="ignore"),
        ):
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002
