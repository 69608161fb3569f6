"""Depth and generalisation: stacks of one, two and four layers with equally many parameters, trained on N samples alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ....common.checks import require_choice
from .deep import Stack, descended, device_for, parameter_count, width_of
from .registry import Point, Result, measure

FRESH = 4000  # sequences on which a stack is judged
FRESH_SEED = 30_000_001


@dataclass(frozen=True)
class LearningTask:
    """Sequences of `length` numbers (vocabulary 0) or tokens, the answers at every position, and how answers are judged."""

    length: int
    vocabulary: int
    outputs: int
    answers: Callable[[Tensor], Tensor]

    def drawn(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if self.vocabulary:
            x = torch.randint(self.vocabulary, (count, self.length), generator=generator)
        else:
            x = torch.rand(count, self.length, generator=generator)
        return x, self.answers(x)

    def loss(self, found: Tensor, y: Tensor) -> Tensor:
        if self.vocabulary:
            return nn.functional.cross_entropy(found.flatten(0, 1), y.flatten())
        return (found[..., 0] - y).square().mean()

    def error(self, found: Tensor, y: Tensor) -> float:
        """The share of wrong tokens, or the root of the mean square error."""
        if self.vocabulary:
            return float((found.argmax(dim=-1) != y).double().mean())
        return float((found[..., 0] - y).double().square().mean().sqrt())


def _sorted(x: Tensor) -> Tensor:
    return x.sort(dim=1).values


def _first_followers(x: Tensor) -> Tensor:
    """What follows the first occurrence of the token here, in a ring: the first token comes after the last."""
    first = (x[:, :, None] == x[:, None, :]).int().argmax(dim=-1)
    return x.gather(1, (first + 1) % x.shape[1])


TASKS = {"sorting": LearningTask(6, 0, 1, _sorted), "induction": LearningTask(8, 6, 6, _first_followers)}


@measure(
    "generalise", task="sorting", layers=1, samples=int, budget=20_000, steps=600, batch=64, rate=3e-3, device="cpu", seed=0
)  # fmt: skip
def generalise(point: Point) -> Result:
    """A stack of layers with about `budget` parameters, trained on `samples` sequences: its error there and on fresh ones."""
    require_choice("task", point["task"], TASKS)
    task, seed, device = TASKS[point["task"]], point["seed"], device_for(point["device"])
    started = time.perf_counter()
    x, y = (t.to(device) for t in task.drawn(point["samples"], torch.Generator().manual_seed(seed)))
    shape = (task.vocabulary, task.length, task.outputs, point["layers"])
    model = Stack(*shape, width_of(point["budget"], point["layers"]), seed).to(device)
    generator = torch.Generator(device).manual_seed(seed)

    def loss() -> Tensor:
        chosen = torch.randint(len(x), (point["batch"],), generator=generator, device=device)
        return task.loss(model(x[chosen]), y[chosen])

    descended(model, point, loss)
    new_x, new_y = (t.to(device) for t in task.drawn(FRESH, torch.Generator().manual_seed(FRESH_SEED + seed)))
    with torch.no_grad():
        seen, fresh = task.error(model(x[:FRESH]), y[:FRESH]), task.error(model(new_x), new_y)
    took = time.perf_counter() - started
    return {"parameters": parameter_count(model), "seen_error": seen, "fresh_error": fresh, "took": took}
