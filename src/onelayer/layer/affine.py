"""Numbers of a layer that are affine in some symbols, with what is lost on the way: the one lemma about computed sums.

The symbols are 1, the normalised inputs x̂_i, and further functions (averages of heads, ReLUs). Each of the `AffineNumbers` has a
reference M with coefficients `mid`, and two bounds, each a combination of the absolute values of the symbols:

    |real − M| ≤ rad·|symbols|                            the real function of the stored weights
    |computed − M| ≤ off·|symbols| + own·|M| + moved·Δ    what the program computes, Δ_k the error of its k-th average

**Lemma (sums).** A program adds up k terms that can be other than 0, products or single numbers, in any order, with or without
fused operations. Its result is off by at most

    u(1 + 2(k + 2)u)·[ Σ'|terms| + (k − 2)⁺ Σ|terms| + [k ≥ 2]·|result| ] + (products that can underflow)·smallest,

Σ' over the products that are rounded. Proof: a product that is not exact is off by u of itself, or by `smallest` where it
underflows; adding 0 is exact, so k − 1 additions are left; each is off by u of its result, which is at most Σ(1 + ku), and the
result of the last one is what is returned. A fused operation leaves out a rounding. ∎

A product is exact if one factor is ± a power of two and nothing underflows, which cannot be if that factor is at least 1.
Where all terms are constants that are known there is more: if they are multiples of g, a power of two that is a normal number,
and their absolute values add up to at most g/u, then every partial sum is a multiple of g up to g/u, hence a float: all is exact.

With u = 2^−53 the same lemma bounds what our own arithmetic loses in `mid`: no coefficient counts as exact because of where it
comes from. Errors that are charged are at least LEAST, so that none of them underflows later (`number_range`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.outward import UP
from .arithmetic import FLOAT64, Arithmetic, arithmetic_of
from .number_range import LEAST


@dataclass(frozen=True)
class AffineNumbers:
    """Entries [..., entry] with coefficients [..., entry, symbol]."""

    mid: np.ndarray
    rad: np.ndarray
    off: np.ndarray
    moved: np.ndarray  # [..., entry, average]
    own: np.ndarray  # [..., entry]

    @staticmethod
    def constant(numbers: np.ndarray, symbols: int) -> "AffineNumbers":
        """Stored numbers."""
        mid = np.zeros((*numbers.shape, symbols))
        mid[..., 0] = numbers
        return AffineNumbers(mid, np.zeros_like(mid), np.zeros_like(mid), mid[..., :0], np.zeros(numbers.shape))

    def each(self, move: Callable[[np.ndarray], np.ndarray]) -> "AffineNumbers":
        """The same entries in other places: `move` leaves the last axis, that of the symbols, alone."""
        mid, rad, off, moved, own = map(move, (self.mid, self.rad, self.off, self.moved, self.own[..., None]))
        return AffineNumbers(mid, rad, off, moved, own[..., 0])

    def __getitem__(self, index: Any) -> "AffineNumbers":
        return self.each(lambda t: t[index])

    def wider(self, symbols: int, averages: int) -> "AffineNumbers":
        """With more symbols and averages, which nothing depends on yet."""

        def padded(t: np.ndarray, columns: int) -> np.ndarray:
            return np.pad(t, [(0, 0)] * (t.ndim - 1) + [(0, columns - t.shape[-1])])

        return AffineNumbers(
            padded(self.mid, symbols),
            padded(self.rad, symbols),
            padded(self.off, symbols),
            padded(self.moved, averages),
            self.own,
        )

    @property
    def errors(self) -> np.ndarray:
        """`off`, and `own`·|M| in coefficients."""
        return self.off + self.own[..., None] * np.abs(self.mid)

    @property
    def size(self) -> np.ndarray:
        """Coefficients of a bound on |computed|, except for what is `moved`."""
        return np.abs(self.mid) + self.errors

    @property
    def live(self) -> np.ndarray:
        """Which entries can be other than 0."""
        return np.asarray((self.size != 0).any(axis=-1) | (self.moved != 0).any(axis=-1))

    @property
    def known(self) -> np.ndarray:
        """Which entries are constants that are computed exactly."""
        sure = (self.mid[..., 1:] == 0).all(axis=-1) & (self.rad == 0).all(axis=-1) & (self.off == 0).all(axis=-1)
        return np.asarray(sure & (self.moved == 0).all(axis=-1) & (self.own == 0))


def power_of_two(a: np.ndarray) -> np.ndarray:
    """Which numbers are ± a power of two."""
    return np.asarray(np.abs(np.frexp(a)[0]) == 0.5)


def at_least(errors: np.ndarray) -> np.ndarray:
    """Errors, none of which is so small that it might underflow on its way; where there is none, none is made."""
    return np.where(errors > 0, np.maximum(errors, LEAST), errors)


def lowest_bit(a: np.ndarray) -> np.ndarray:
    """The largest power of two that every float is a multiple of; ∞ for 0."""
    mantissa, exponent = np.frexp(a)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    return np.where(a == 0, np.inf, np.ldexp((whole & -whole).astype(np.float64), exponent - 53))


class Sums:
    """Sums that a program computes in any order, by the lemma above: filled by `add`, then asked for the `result`.

    A program whose products are coarser than its floats (`Backend.coarseness`) has no exact ones.
    """

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic
        self.coarse = arithmetic.u > arithmetic_of(arithmetic.dtype).u
        self._sums: dict[str, np.ndarray] = {}
        self._finest: np.ndarray = np.array(np.inf)  # all constants are multiples of this

    def add(self, x: AffineNumbers, W: np.ndarray) -> "Sums":
        """Σ_i x_i W_ij, x [..., i] and W [..., i, j]: axes before these are broadcast."""
        a, far, power, size = self.arithmetic, np.abs(W), power_of_two(W), x.size
        live, known, there = x.live, x.known, (W != 0).astype(np.float64)
        bits = lowest_bit(x.mid[..., 0])[..., None] * lowest_bit(W)  # [..., i, j]; ∞ where the product is 0
        products = np.abs(x.mid[..., 0])[..., None] * far
        exact = known[..., None] & (bits >= a.smallest) & (products <= bits / a.u)
        rough, low = far * ~power, there * (~power | (far < 1))
        exact, rough, low = (exact & False, far, there) if self.coarse else (exact, rough, low)
        rounded = _through(np.where(known[..., None], 0.0, size), rough)
        rounded[..., 0] += np.where(known[..., None] & ~exact, products, 0.0).sum(axis=-2)
        sizes = np.abs(x.mid)
        straight = {"rad": x.rad, "off": x.off, "moved": x.moved, "passed": x.own[..., None] * sizes}
        straight |= {"total": size, "sizes": sizes}
        counts = np.stack([x.own, live, live & ~known], axis=-1)
        own, terms, unknown = np.moveaxis(_through(counts, there), -1, 0)
        self._add(
            mid=_through(x.mid, W),
            **_beside(straight, far),
            own=own,
            rounded=rounded,
            terms=terms,
            unknown=unknown,
            underflows=_summed(live & ~known, low) + (known[..., None] & ~exact & (bits < np.inf)).sum(axis=-2),
            counted=_through(x.mid != 0, there),
            inexact=_through((x.mid != 0) & ~power_of_two(x.mid), (W != 0) & ~power),  # products that float64 may round
        )
        self._finest = np.minimum(self._finest, bits.min(axis=-2, initial=np.inf))
        return self

    def add_averages(self, W: np.ndarray, symbols: int) -> "Sums":
        """Σ_k z_k W_kj with the averages z_k, the last of this many symbols, W [k, j]: added to other numbers."""
        K, far, power = len(W), np.abs(W), power_of_two(W)
        wide = lambda t: np.concatenate([np.zeros((W.shape[1], symbols - K)), t.T], axis=1)  # noqa: E731
        there = (W != 0).astype(np.float64)
        rough, low = (far, there) if self.coarse else (far * ~power, there * (~power | (far < 1)))
        terms, sizes = there.sum(axis=0), wide(far)
        self._add(mid=wide(W), moved=far.T, total=sizes, sizes=sizes, rounded=wide(rough), counted=wide(there))
        self._add(terms=terms, unknown=terms, underflows=low.sum(axis=0))
        return self

    def add_numbers(self, b: np.ndarray) -> "Sums":
        """Stored numbers [j]."""
        numbers = AffineNumbers.constant(b, self._sums["mid"].shape[-1])
        there = b != 0
        far = np.abs(numbers.mid)
        self._add(mid=numbers.mid, total=far, sizes=far, counted=(numbers.mid != 0), terms=there)
        self._finest = np.minimum(self._finest, lowest_bit(b))
        return self

    def add_twins(self, W: np.ndarray) -> "Sums":
        """Numbers that are 0 but for rounding, times W [i, j]: an addition more, where there are others to be added to."""
        there = W != 0
        self._add(twins=there.sum(axis=0), underflows=(there & ~(power_of_two(W) & (np.abs(W) >= 1))).sum(axis=0))
        return self

    def _add(self, **parts: np.ndarray) -> None:
        for name, part in parts.items():
            self._sums[name] = self._sums[name] + part if name in self._sums else part

    def result(self) -> AffineNumbers:
        a, s, k = self.arithmetic, self._sums, self._sums["terms"]
        k = k + np.where(k >= 2, s.get("twins", 0), 0)
        constants = s["sizes"][..., 0] * UP
        fine = (constants <= self._finest / a.u) & (self._finest >= a.smallest) & (s["unknown"] == 0)
        fine = (k == 0) | (fine & (not self.coarse))
        grow, several = 1 + 2 * (k + 2) * a.u, k >= 2
        charge = a.u * grow[..., None] * (s["rounded"] + np.maximum(k - 2, 0)[..., None] * s["total"])
        charge[..., 0] += s["underflows"] * a.smallest
        charge = at_least(charge)
        off = s["off"] + np.where(several[..., None], s["passed"], 0.0) + np.where(fine[..., None], 0.0, charge)
        own = np.where(fine, 0.0, np.where(several, a.u * grow, s["own"]))
        slip = self._slip()
        larger = (1 + 4 * (k + 2) * a.u)[..., None] * UP  # the last result is that of the program, not M
        return AffineNumbers(s["mid"], (s["rad"] + slip) * UP, off * larger + 2 * slip, s["moved"] * larger, own)

    def _slip(self) -> np.ndarray:
        """What float64 can do to `mid`."""
        s, u, least = self._sums, FLOAT64.u, FLOAT64.smallest
        exact = (s["counted"] <= 1) & (s["inexact"] == 0) & ((s["counted"] == 0) | (np.abs(s["mid"]) >= least))
        constants = s["sizes"][..., 0] * UP
        exact[..., 0] |= (constants <= self._finest / u) & (self._finest >= least)
        return at_least(np.where(exact, 0.0, (s["counted"] + 1) * (u * s["sizes"] * UP + least)))


def linear(x: AffineNumbers, W: np.ndarray, b: np.ndarray | None, arithmetic: Arithmetic) -> AffineNumbers:
    """x W + b."""
    sums = Sums(arithmetic).add(x, W)
    return (sums if b is None else sums.add_numbers(b)).result()


def plus(x: AffineNumbers, y: AffineNumbers, arithmetic: Arithmetic) -> AffineNumbers:
    """x + y, entry by entry."""
    one = np.ones((1, 1))
    each = [t.each(lambda t: t[..., None, :]) for t in (x, y)]
    return Sums(arithmetic).add(each[0], one).add(each[1], one).result().each(lambda t: t[..., 0, :])


def _through(t: np.ndarray, M: np.ndarray) -> np.ndarray:
    """[..., i, symbol] and [..., i, j] → [..., j, symbol]."""
    t, M = t.astype(np.float64, copy=False), M.astype(np.float64, copy=False)
    return np.asarray(np.swapaxes(M, -1, -2) @ t)


def _beside(parts: dict[str, np.ndarray], M: np.ndarray) -> dict[str, np.ndarray]:
    """`_through` for several at once."""
    ends = np.cumsum([t.shape[-1] for t in parts.values()])[:-1]
    return dict(
        zip(parts, np.split(_through(np.concatenate(list(parts.values()), axis=-1), M), ends, axis=-1), strict=True)
    )


def _summed(t: np.ndarray, M: np.ndarray) -> np.ndarray:
    """[..., i] and [..., i, j] → [..., j]."""
    return np.asarray((t[..., None, :].astype(np.float64) @ M)[..., 0, :])
