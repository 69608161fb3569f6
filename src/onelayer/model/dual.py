"""Forward differentiation of a layer over any arithmetic: every quantity with its slopes along all coordinates.

With the scores s_t, their slopes s'_t and E the average under the attention weights of a softmax,

    E[v]' = E[v'] + E[v·s'] − E[v]·E[s'].
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic

import numpy as np

from .program import ArraySteps, V


class Differentiable(ArraySteps[V]):
    """An arithmetic whose values have +, − and * entry by entry, and that knows the slope of every step that is not linear."""

    @abstractmethod
    def directions(self) -> list[V]:
        """The slopes of x̂."""

    @abstractmethod
    def unbiased(self, x: V, name: str) -> V:
        """x W."""

    @abstractmethod
    def slope(self, u: V) -> V:
        """φ'(u)."""

    @abstractmethod
    def norm_slopes(self, x: V, slopes: list[V], name: str) -> list[V]:
        """The slopes of LayerNorm, from x and its slopes."""

    @abstractmethod
    def scores(self, products: V) -> V:
        """Σ/√d_k of the products of queries and keys, as a column."""


@dataclass(frozen=True)
class Tangent(Generic[V]):
    """A quantity and its slopes along x_1, …, x_D, all of the same shape; a constant has none."""

    value: V
    slopes: list[V]


class Dual(ArraySteps[Tangent[Any]]):
    """The steps of a layer with softmax attention, and of its derivative."""

    row_by_row = True  # the slopes of the scores, which values are multiplied with, differ from row to row

    def __init__(self, inner: Differentiable[Any]) -> None:
        self.inner, self.config = inner, inner.config

    def inputs(self) -> Tangent[Any]:
        return Tangent(self.inner.inputs(), self.inner.directions())

    def constant(self, name: str) -> Tangent[Any]:
        return Tangent(self.inner.constant(name), [])

    def linear(self, x: Tangent[Any], name: str) -> Tangent[Any]:
        return Tangent(self.inner.linear(x.value, name), [self.inner.unbiased(t, name) for t in x.slopes])

    def plus(self, x: Tangent[Any], y: Tangent[Any]) -> Tangent[Any]:
        return Tangent(x.value + y.value, _sums(x.slopes, y.slopes))

    def mean(self, x: Tangent[Any]) -> Tangent[Any]:
        return Tangent(self.inner.mean(x.value), [self.inner.mean(t) for t in x.slopes])

    def moved(self, move: Callable[..., Any], *values: Tangent[Any]) -> Tangent[Any]:
        D = max(len(t.slopes) for t in values)
        filled = [t.slopes or [self.inner.moved(np.zeros_like, t.value)] * D for t in values]
        slopes = [self.inner.moved(move, *parts) for parts in zip(*filled, strict=True)]
        return Tangent(self.inner.moved(move, *(t.value for t in values)), slopes)

    def activate(self, u: Tangent[Any]) -> Tangent[Any]:
        slope = self.inner.slope(u.value)
        return Tangent(self.inner.activate(u.value), [slope * t for t in u.slopes])

    def norm(self, x: Tangent[Any], name: str) -> Tangent[Any]:
        return Tangent(self.inner.norm(x.value, name), self.inner.norm_slopes(x.value, x.slopes, name))

    def average(self, q: Tangent[Any], k: Tangent[Any], v: Tangent[Any]) -> Tangent[Any]:
        a, D, width = self.inner, len(k.slopes), self.config.d_v
        products = _sums([dq * k.value for dq in q.slopes], [q.value * dk for dk in k.slopes])
        steep = [a.scores(p) for p in products]  # s'_t
        columns = [v.value, *v.slopes, *(v.value * s for s in steep), *steep]
        z = a.average(q.value, k.value, a.moved(lambda *t: np.concatenate(t, axis=-1), *columns))
        ends = np.cumsum([0] + [width] * (2 * D + 1) + [1] * D).tolist()

        def part(start: int, stop: int) -> Any:
            return a.moved(lambda t: t[..., start:stop], z)

        mean, *parts = (part(*pair) for pair in pairwise(ends))
        return Tangent(mean, [parts[i] + parts[D + i] - mean * parts[2 * D + i] for i in range(D)])


def _sums(x: list[Any], y: list[Any]) -> list[Any]:
    return [s + t for s, t in zip(x, y, strict=True)] if x and y else x or y
