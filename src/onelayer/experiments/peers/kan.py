"""KAN, by the package pykan where it is installed (`pip install pykan`): cubic splines on the edges, trained by its L-BFGS.

pykan stores more than it trains (grids, masks, symbolic branches): all of it is counted, and the note says how much is
trained.
"""

import contextlib
import importlib.util
import io
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from ...target.target import Target
from .descent import race, stored
from .task import Clock, Fitted, matched, samples_of

GRIDS = (3, 5, 8, 12, 20)  # intervals of a spline
HIDDEN = range(1, 33)
SIZES = 3  # tried per budget
STEPS, REFINED = 5, 10  # steps of L-BFGS in one call; calls that also move the grid

Size = tuple[int, int]  # hidden width, grid


def installed() -> bool:
    spec = importlib.util.find_spec("kan")
    return spec is not None and spec.origin is not None  # a folder of that name is no package


def fit(target: Target, parameters: int, seconds: float, seed: int = 0) -> Fitted | None:
    """Best of a few widths and grids with one hidden layer; None if none matches the budget."""
    clock = Clock(seconds)
    samples = samples_of(target, parameters)
    x, y = samples.x, samples.y
    data = {"train_input": x, "train_label": y, "test_input": x[:1], "test_label": y[:1]}

    def train(size: Size, cap: float) -> nn.Module:
        with undisturbed():
            model, own, calls = network(target, size, seed), Clock(cap), 0
            while calls == 0 or own.share < 1:
                model.fit(data, opt="LBFGS", steps=STEPS, update_grid=calls < REFINED)
                calls += 1
        return model

    candidates = sizes(target, parameters)
    if not candidates:
        return None
    model = race(candidates, train, samples, seconds)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    hidden: Any = model.width
    note = f"hidden {hidden[1][0]}, grid {model.grid}, {trained:,} trained; {clock.end}"
    return Fitted(samples.function(model), stored(model), clock.spent, note)


def sizes(target: Target, budget: int) -> list[Size]:
    """Sizes that match the budget, closest first, no grid twice."""
    found: dict[int, tuple[int, Size]] = {}
    with undisturbed():
        for grid in GRIDS:
            for hidden in HIDDEN:
                count = stored(network(target, (hidden, grid), 0))
                if matched(count, budget):
                    found[grid] = min(found.get(grid, (budget, (0, 0))), (abs(count - budget), (hidden, grid)))
                if count > budget:
                    break
    return [size for _, size in sorted(found.values())[:SIZES]]


def network(target: Target, size: Size, seed: int):  # type: ignore[no-untyped-def]
    """A KAN with one hidden layer, in float64; nothing is written to disk."""
    import kan

    widths = [target.dimension, size[0], target.outputs]
    return kan.KAN(width=widths, grid=size[1], k=3, seed=seed, auto_save=False).double()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """pykan reseeds global generators and prints progress: both undone."""
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    quiet = io.StringIO()
    try:
        with torch.random.fork_rng(devices=[]), contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet):
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002
