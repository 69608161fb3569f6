"""The layer as a program: its steps, said once, on values of any kind.

`answer` walks through the layer, Eq. (5)–(8) and what stands before and behind; an arithmetic (`Steps`) says what every step is
on its values: numbers of torch, balls, Taylor models with the rounding of an evaluation, values with their slopes, sizes. What
the layer multiplies with is called by the letter of its weights: "E" stands for x W^E + b^E. Tokens come in groups, the data
tokens and the special ones: these are constant, and an arithmetic need not repeat them for every input.

Two readings of the layer stand apart on purpose and share no line with this: the NumPy reference and the checker.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from .config import LayerConfig

V = TypeVar("V")


class Steps(ABC, Generic[V]):
    """What the steps of a layer are on values V. Shapes end in [token, d_model], those of heads in [head, token, width]."""

    config: LayerConfig

    @abstractmethod
    def inputs(self) -> V:
        """x̂ = (x − shift)·scale."""

    @abstractmethod
    def constant(self, name: str) -> V:
        """P, the positional codes, or S, the special tokens."""

    @abstractmethod
    def linear(self, x: V, name: str) -> V:
        """x W + b of every token."""

    @abstractmethod
    def project(self, x: V, name: str) -> V:
        """Queries, keys or values of every head, x W + b."""

    @abstractmethod
    def attend(self, queries: V, keys: Sequence[V], values: Sequence[V]) -> V:
        """Z_1, …, Z_h, Eq. (5)–(7), keys and values in groups; every row averages over the tokens that it sees."""

    @abstractmethod
    def concat(self, z: V) -> V:
        """[head, row, width] → [row, head·width]."""

    @abstractmethod
    def plus(self, x: V, y: V) -> V: ...

    @abstractmethod
    def norm(self, x: V, name: str) -> V:
        """LayerNorm: (x − μ)/√(var + eps)·gain + offset."""

    @abstractmethod
    def activate(self, u: V) -> V:
        """φ(u), the activation of the hidden units."""

    @abstractmethod
    def mean(self, x: V) -> V:
        """The mean of all rows, as one row."""

    @abstractmethod
    def last(self, x: V, count: int) -> V:
        """The last tokens of a group."""

    def grouped(self, groups: list[V]) -> list[V]:
        """The tokens in as many groups as the arithmetic wants to keep apart."""
        return groups

    def drop(self, x: V) -> V:
        """Dropout, where a layer is trained."""
        return x

    def feed_forward(self, h: V) -> V:
        """Two layers of the form of Eq. (1), the second linear, the same for every row."""
        return self.linear(self.drop(self.activate(self.linear(h, "1"))), "2")


def answer(a: Steps[V]) -> V:
    """T(x). Only the tokens that are read out ask queries: the others cannot influence the answer."""
    return read(a, block(a, *tokens(a)))


def tokens(a: Steps[V]) -> tuple[V, list[V]]:
    """(the tokens that are read out, all tokens in groups)."""
    c, groups = a.config, [embedding(a)]
    if c.special_tokens:
        groups.append(a.constant("S"))
    asking = a.last(groups[-1], c.output_tokens) if c.readout == "output" else groups[0]
    return asking, a.grouped(groups)


def embedding(a: Steps[V]) -> V:
    """The data tokens, x̂_j W^E + b^E + p_j."""
    e = a.linear(a.inputs(), "E")
    return e if a.config.code == "none" else a.plus(e, a.constant("P"))


def block(a: Steps[V], asking: V, groups: Sequence[V]) -> V:
    """Attention and feed-forward network at the tokens `asking`, residuals and LayerNorm as configured."""
    c = a.config
    pre, post = c.norm == "pre", c.norm == "post"
    f = a.drop(attention(a, seen(a, asking), [seen(a, t) for t in groups]))
    h = a.plus(asking, f) if c.residual else f
    h = a.norm(h, "1") if post else h
    f = a.drop(a.feed_forward(a.norm(h, "2") if pre else h))
    y = a.plus(h, f) if c.residual else f
    return a.norm(y, "2") if post else y


def seen(a: Steps[V], x: V) -> V:
    """Tokens as attention sees them."""
    return a.norm(x, "1") if a.config.norm == "pre" else x


def attention(a: Steps[V], asking: V, groups: Sequence[V]) -> V:
    """MHA(X) = Concat(Z_1, …, Z_h) W^O, Eq. (8), from the tokens `asking`."""
    q, v, k = a.project(asking, "Q"), [a.project(t, "V") for t in groups], [a.project(t, "K") for t in groups]
    return a.linear(a.concat(a.attend(q, k, v)), "O")


def read(a: Steps[V], h: V) -> V:
    """The linear read-out of every row, or of their mean."""
    return a.linear(a.mean(h) if a.config.readout == "mean" else h, "R")


class ArraySteps(Steps[V]):
    """Values made of arrays: what only moves entries is said by `moved`, masks by what `average` is given."""

    row_by_row = False  # whether `average` takes one query at a time

    @abstractmethod
    def moved(self, move: Callable[..., Any], *values: V) -> V:
        """`move` of all arrays that the values are made of: it moves entries in the last axes, and computes nothing."""

    @abstractmethod
    def average(self, q: V, k: V, v: V) -> V:
        """Eq. (5)–(7): every row over all the given tokens."""

    def last(self, x: V, count: int) -> V:
        return self.moved(lambda t: t[..., -count:, :], x)

    def project(self, x: V, name: str) -> V:
        h = self.config.heads
        return self.moved(lambda t: t.reshape(*t.shape[:-1], h, -1).swapaxes(-3, -2), self.linear(x, name))

    def concat(self, z: V) -> V:
        return self.moved(lambda t: t.swapaxes(-3, -2).reshape(*t.shape[:-3], t.shape[-2], -1), z)

    def grouped(self, groups: list[V]) -> list[V]:
        return [self.joined(groups)]

    def joined(self, groups: Sequence[V]) -> V:
        """All tokens of the groups."""
        return groups[0] if len(groups) == 1 else self.moved(lambda *t: np.concatenate(t, axis=-2), *groups)

    def attend(self, queries: V, keys: Sequence[V], values: Sequence[V]) -> V:
        c, k, v = self.config, self.joined(keys), self.joined(values)
        if not (c.hides_tokens or self.row_by_row):
            return self.average(queries, k, v)
        rows = []
        for row in range(c.read_rows.stop - c.read_rows.start):
            rows.append(self.average(self._at(queries, [row]), *(self._at(t, c.seen_by(row)) for t in (k, v))))
        return self.joined(rows)

    def _at(self, x: V, places: list[int]) -> V:
        return self.moved(lambda t: t[..., places, :], x)
