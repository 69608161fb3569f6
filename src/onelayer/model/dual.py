"""Forward differentiation of a layer over any arithmetic: every quantity with its slopes along all coordinates.

With the scores s_t, their slopes s'_t and E the average under the attention weights of a softmax,

    E[v]' = E[v'] + E[v·s'] − E[v]·E[s'].
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from .program import ArraySteps


@runtime_checkable
class Number(Protocol):
    """What is added and multiplied entry by entry; an axis of one entry is repeated."""

    def __add__(self, other: Any, /) -> Any: ...

    def __sub__(self, other: Any, /) -> Any: ...

    def __mul__(self, other: Any, /) -> Any: ...


N = TypeVar("N", bound=Number)


class Differentiable(ArraySteps[N]):
    """An arithmetic that knows the slope of every step that is not linear."""

    @abstractmethod
    def directions(self) -> list[N]:
        """The slopes of x̂."""

    @abstractmethod
    def zero(self, like: N) -> N: ...

    @abstractmethod
    def unbiased(self, x: N, name: str) -> N:
        """x W."""

    @abstractmethod
    def slope(self, u: N) -> N:
        """φ'(u)."""

    @abstractmethod
    def scores(self, products: N) -> N:
        """Σ/√d_k of the products of queries and keys, as a column."""

    @abstractmethod
    def centred(self, x: N) -> N:
        """x − μ."""

    @abstractmethod
    def row_mean(self, x: N) -> N:
        """μ, as a column."""

    @abstractmethod
    def spread(self, centred: N, exponent: float) -> N:
        """(var + eps)^exponent, as a column."""

    @abstractmethod
    def gained(self, y: N, name: str) -> N:
        """y·gain."""


@dataclass(frozen=True)
class Tangent(Generic[N]):
    """A quantity and its slopes along x_1, …, x_D, all of the same shape; a constant has none."""

    value: N
    slopes: list[N]


class Dual(ArraySteps[Tangent[N]]):
    """The steps of a layer with softmax attention, and of its derivative."""

    row_by_row = True  # the slopes of the scores, which values are multiplied with, differ from row to row

    def __init__(self, inner: Differentiable[N]) -> None:
        self.inner, self.config = inner, inner.config

    def inputs(self) -> Tangent[N]:
        return Tangent(self.inner.inputs(), self.inner.directions())

    def constant(self, name: str) -> Tangent[N]:
        return Tangent(self.inner.constant(name), [])

    def linear(self, x: Tangent[N], name: str) -> Tangent[N]:
        return Tangent(self.inner.linear(x.value, name), [self.inner.unbiased(t, name) for t in x.slopes])

    def plus(self, x: Tangent[N], y: Tangent[N]) -> Tangent[N]:
        return Tangent(self.inner.plus(x.value, y.value), _sums(x.slopes, y.slopes))

    def mean(self, x: Tangent[N]) -> Tangent[N]:
        return Tangent(self.inner.mean(x.value), [self.inner.mean(t) for t in x.slopes])

    def moved(self, move: Callable[..., Any], *values: Tangent[N]) -> Tangent[N]:
        D = max(len(t.slopes) for t in values)
        filled = [t.slopes or [self.inner.zero(t.value)] * D for t in values]
        slopes = [self.inner.moved(move, *parts) for parts in zip(*filled, strict=True)]
        return Tangent(self.inner.moved(move, *(t.value for t in values)), slopes)

    def activate(self, u: Tangent[N]) -> Tangent[N]:
        slope = self.inner.slope(u.value)
        return Tangent(self.inner.activate(u.value), [slope * t for t in u.slopes])

    def norm(self, x: Tangent[N], name: str) -> Tangent[N]:
        """Of y = c r with r = (mean c² + eps)^(−1/2), c = x − μ: y' = c' r − c mean(c c') r³."""
        a, c = self.inner, self.inner.centred(x.value)
        root, cube = a.spread(c, -0.5), a.spread(c, -1.5)
        moved = [a.centred(t) for t in x.slopes]
        slopes = [t * root - c * (a.row_mean(c * t) * cube) for t in moved]
        return Tangent(a.norm(x.value, name), [a.gained(t, name) for t in slopes])

    def average(self, q: Tangent[N], k: Tangent[N], v: Tangent[N]) -> Tangent[N]:
        a, D, width = self.inner, len(k.slopes), self.config.d_v
        steep = [
            a.scores(s) for s in _sums([dq * k.value for dq in q.slopes], [q.value * dk for dk in k.slopes])
        ]  # s'_t
        columns = [v.value, *v.slopes, *(v.value * s for s in steep), *steep]
        z = a.average(q.value, k.value, a.moved(lambda *t: np.concatenate(t, axis=-1), *columns))

        def part(start: int, count: int) -> N:
            return a.moved(lambda t: t[..., start : start + count], z)

        mean, *parts = (part(width * j, width) for j in range(2 * D + 1))
        scores = [part(width * (2 * D + 1) + i, 1) for i in range(D)]
        return Tangent(mean, [parts[i] + parts[D + i] - mean * scores[i] for i in range(D)])


def _sums(x: list[N], y: list[N]) -> list[N]:
    return [s + t for s, t in zip(x, y, strict=True)] if x and y else x or y
