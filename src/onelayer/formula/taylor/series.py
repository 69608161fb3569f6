"""Taylor models of third order: polynomials with a remainder, on many boxes at once.

A box is x_i = centre_i + half_i·t_i with t ∈ [−1, 1]^D. A Taylor model of a function φ on it is

    φ = Σ_k c_k t^k + Σ_j a_j κ_j + e,    |e| ≤ r,    |κ_j| ≤ half-range of the kink j

over the monomials t^k of degree at most 3. The symbols κ_j stand for what kinks (max, abs, ReLU) leave beside their linear
part, see `kink`; a sum keeps them apart, so that the same kink in two functions cancels in their difference. Every
operation adds to r what it cuts off and what floating point rounds.

Arrays have the monomial first and the box second: c is [monomial, box, …], r is [box, …].
"""

import itertools
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...common.outward import UP_FEW, U

if TYPE_CHECKING:
    from .kink import KinkSymbol

ORDER = 3
TINY = 1e-300  # covers every underflow of one operation


@dataclass(frozen=True)
class Monomials:
    """The monomials of degree at most 3 in D variables, ordered by degree, and how they multiply."""

    exponents: np.ndarray  # [monomial, D]
    pairs: tuple[tuple[int, int, int], ...]  # t^i·t^j = t^k, all of degree ≤ 3
    degrees: tuple[slice, ...]  # where each degree stands

    def __len__(self) -> int:
        return len(self.exponents)

    @cached_property
    def mixed(self) -> np.ndarray:
        """All monomials but 1, t_i and t_i²."""
        own = {0, *range(1, 1 + self.exponents.shape[1]), *self.squares.tolist()}
        return np.array([k for k in range(len(self)) if k not in own], int)

    @cached_property
    def squares(self) -> np.ndarray:
        """The places of t_1², …, t_D²."""
        D = self.exponents.shape[1]
        return np.array([int((self.exponents == 2 * np.eye(D, dtype=int)[i]).all(axis=1).argmax()) for i in range(D)])


@cache
def monomials(D: int) -> Monomials:
    """The monomials in D variables; t_i is monomial 1 + i."""
    rows: list[list[int]] = []
    degrees: list[slice] = []
    for degree in range(ORDER + 1):
        start = len(rows)
        for chosen in itertools.combinations_with_replacement(range(D), degree):
            rows.append([chosen.count(i) for i in range(D)])
        degrees.append(slice(start, len(rows)))
    place = {tuple(row): k for k, row in enumerate(rows)}
    pairs = []
    for i, a in enumerate(rows):
        for j in range(degrees[ORDER - sum(a)].stop):
            pairs.append((i, j, place[tuple(p + q for p, q in zip(a, rows[j], strict=True))]))
    return Monomials(np.array(rows), tuple(pairs), tuple(degrees))


@dataclass
class Space:
    """Boxes, and the kinks met on them so far."""

    lower: np.ndarray  # [box, D]
    upper: np.ndarray
    kinks: "list[KinkSymbol]" = field(default_factory=list)

    def __post_init__(self) -> None:
        self.centre = (self.lower + self.upper) / 2
        away = np.maximum(self.upper - self.centre, self.centre - self.lower)
        self.half = np.nextafter(away * UP_FEW, np.inf)  # covers the box and a little more

    @property
    def boxes(self) -> int:
        return len(self.lower)

    @property
    def dimension(self) -> int:
        return self.lower.shape[1]

    @cached_property
    def monomials(self) -> Monomials:
        return monomials(self.dimension)

    def variable(self, i: int) -> "Taylor":
        c = np.zeros((len(self.monomials), self.boxes))
        c[0], c[1 + i] = self.centre[:, i], self.half[:, i]
        return Taylor(self, c, np.zeros(self.boxes))

    def constant(self, value: np.ndarray, error: np.ndarray | float = 0.0) -> "Taylor":
        """The constant `value` [box, …], known up to `error`."""
        c = np.zeros((len(self.monomials), *value.shape))
        c[0] = value
        return Taylor(self, c, np.broadcast_to(error, value.shape).astype(float))

    def between(self, low: np.ndarray, high: np.ndarray) -> "Taylor":
        """Nothing but bounds."""
        with np.errstate(all="ignore"):
            middle = low + (high - low) / 2
            radius = np.maximum(np.maximum(high - middle, middle - low), 0.0) * UP_FEW + TINY
        good = np.isfinite(middle) & np.isfinite(radius)
        return self.constant(np.where(good, middle, 0.0), np.where(good, radius, np.inf))


@dataclass
class Taylor:
    """A Taylor model on every box of a space. `a` maps kinks to their coefficients [box, …]."""

    space: Space
    c: np.ndarray
    r: np.ndarray
    a: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.r.shape

    def __getitem__(self, index: object) -> "Taylor":
        """Part of the axes behind the box axis."""
        at = (slice(None), *(index if isinstance(index, tuple) else (index,)))
        return Taylor(self.space, self.c[(slice(None), *at)], self.r[at], {k: v[at] for k, v in self.a.items()})

    def flat(self) -> "Taylor":
        """The kinks counted as remainder."""
        if not self.a:
            return self
        return Taylor(self.space, self.c, self.r + self._kinked() * UP_FEW)

    def _kinked(self) -> np.ndarray | float:
        """How far the kinks go."""
        return sum((np.abs(v) * self._wide(self.space.kinks[k].half) for k, v in self.a.items()), 0.0)

    def _wide(self, per_box: np.ndarray) -> np.ndarray:
        return per_box.reshape(-1, *[1] * (len(self.shape) - 1))

    def norms(self) -> list[np.ndarray]:
        """Σ|c_k| per degree."""
        return [np.abs(self.c[d]).sum(axis=0) for d in self.space.monomials.degrees]

    def size(self) -> np.ndarray:
        """An upper bound on |φ|."""
        low, high = self.range()
        return np.maximum(np.abs(low), np.abs(high))

    def range(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds: a t + b t² exactly per variable, all other monomials by their size; ±∞ if not finite.

        max over t ∈ [−1, 1] of a t + b t² is |a| + b, or −a²/(4b) where |a| < −2b.
        """
        flat, m = self.flat(), self.space.monomials
        c, D = flat.c, self.space.dimension
        with np.errstate(all="ignore"):
            a, b = np.abs(c[1 : 1 + D]), c[m.squares]
            top = np.where(a < -2 * b, a / -4 * (a / np.where(b < 0, b, -1.0)), a + b).sum(axis=0)  # |a/b| < 2
            bottom = np.where(a < 2 * b, a / -4 * (a / np.where(b > 0, b, 1.0)), b - a).sum(axis=0)
            rest = np.abs(c[m.mixed]).sum(axis=0) + flat.r
            sizes = np.abs(c).sum(axis=0)
            slack = rest * UP_FEW + (len(m) + 8) * U * sizes + TINY
            low, high = c[0] + bottom - slack, c[0] + top + slack
        good = np.isfinite(low) & np.isfinite(high)
        return np.where(good, low, -np.inf), np.where(good, high, np.inf)

    def __neg__(self) -> "Taylor":
        return Taylor(self.space, -self.c, self.r, {k: -v for k, v in self.a.items()})

    def __add__(self, other: "Taylor") -> "Taylor":
        with np.errstate(all="ignore"):
            c = self.c + other.c
            r = (self.r + other.r + 2 * U * np.abs(c).sum(axis=0)) * UP_FEW
        a = dict(self.a)
        for k, v in other.a.items():
            a[k] = a[k] + v if k in a else v
            r = r + 2 * U * np.abs(a[k]) * self._wide(self.space.kinks[k].half)
        return Taylor(self.space, c, r, a)

    def __sub__(self, other: "Taylor") -> "Taylor":
        return self + (-other)

    def times(self, factor: np.ndarray, error: np.ndarray | float = 0.0) -> "Taylor":
        """The product with constants [box, …] known up to `error`."""
        with np.errstate(all="ignore"):
            size, most = np.abs(self.c).sum(axis=0) + self._kinked(), np.abs(factor)
            c, a = self.c * factor, {k: v * factor for k, v in self.a.items()}
            r = (self.r * (most + error) + size * (2 * U * most + error)) * UP_FEW
            r = r + TINY * (1 + self._symbols())
        return Taylor(self.space, c, r, a)

    def __mul__(self, other: "Taylor") -> "Taylor":
        one, two = self.flat(), other.flat()
        shape = np.broadcast_shapes(one.shape, two.shape)
        m = self.space.monomials
        c = np.zeros((len(m), *shape))
        with np.errstate(all="ignore"):
            for i, j, k in m.pairs:
                c[k] += one.c[i] * two.c[j]
            A, B = one.norms(), two.norms()
            cut = sum(A[i] * B[j] for i in range(ORDER + 1) for j in range(ORDER + 1) if i + j > ORDER)
            a, b = sum(A), sum(B)
            r = (cut + a * two.r + b * one.r + one.r * two.r + (len(m) + 4) * U * a * b) * UP_FEW + TINY
        return Taylor(self.space, c, np.where(np.isnan(r), np.inf, r))

    def linear(self, W: np.ndarray, bias: np.ndarray | float = 0.0, error: float = 0.0) -> "Taylor":
        """φ @ W + bias along the last axis; W known up to the relative `error`."""
        W = np.asarray(W, float)
        with np.errstate(all="ignore"):
            c = self.c @ W
            c[0] += bias
            relative = (len(W) + 4) * U + error
            r = (self.r + relative * (np.abs(self.c).sum(axis=0) + self._kinked() + self.r)) @ np.abs(W)
            r = (r + 2 * U * np.abs(c[0])) * UP_FEW
            r = r + TINY * len(W) * (1 + self._symbols())
        return Taylor(self.space, c, r, {k: v @ W for k, v in self.a.items()})

    def _symbols(self) -> np.ndarray | float:
        """[box, 1, …]: how far all symbols of kinks go; a coefficient that underflows loses up to TINY times its symbol."""
        return sum((self._wide(self.space.kinks[k].half) for k in self.a), 0.0)

    def sum(self, axis: int) -> "Taylor":
        """The sum along an axis behind the box axis (counted from the end: −1, −2, …)."""
        n = self.shape[axis]
        with np.errstate(all="ignore"):
            c, size = self.c.sum(axis=axis), np.abs(self.c).sum(axis=0).sum(axis=axis)
            r = (self.r.sum(axis=axis) + (n + 2) * U * size) * UP_FEW
            a = {k: v.sum(axis=axis) for k, v in self.a.items()}
            for k, v in self.a.items():
                lost = (n + 2) * U * np.abs(v).sum(axis=axis)
                r = r + lost * self.space.kinks[k].half.reshape(-1, *[1] * (r.ndim - 1))
        return Taylor(self.space, c, r, a)

    def best(self, low: np.ndarray, high: np.ndarray) -> "Taylor":
        """Replaced by the bounds alone wherever these are tighter than its remainder."""
        with np.errstate(all="ignore"):
            worse = ~(self.flat().r <= (high - low) / 2) | ~np.isfinite(np.abs(self.c).sum(axis=0))
        return self.choose(worse, self.space.between(low, high)) if worse.any() else self

    def choose(self, where: np.ndarray, other: "Taylor") -> "Taylor":
        """`other` where the condition [box, …] holds, else this."""
        a = {k: np.where(where, 0.0, v) for k, v in self.a.items()}
        for k, v in other.a.items():
            a[k] = a.get(k, 0.0) + np.where(where, v, 0.0)
        return Taylor(self.space, np.where(where, other.c, self.c), np.where(where, other.r, self.r), a)

    def broadcast(self, shape: tuple[int, ...]) -> "Taylor":
        c, r = np.broadcast_to(self.c, (len(self.c), *shape)), np.broadcast_to(self.r, shape)
        return Taylor(self.space, c, r, {k: np.broadcast_to(v, shape) for k, v in self.a.items()})


def stack(parts: list[Taylor], axis: int = -1) -> Taylor:
    """Models joined along a new axis behind the box axis."""
    space = parts[0].space
    c, r = np.stack([p.c for p in parts], axis=axis), np.stack([p.r for p in parts], axis=axis)
    names = sorted({k for p in parts for k in p.a})
    zero = np.zeros(parts[0].shape)
    return Taylor(space, c, r, {k: np.stack([p.a.get(k, zero) for p in parts], axis=axis) for k in names})
