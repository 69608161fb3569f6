"""Heads that share their keys, evaluated without an exponential per head (exact linear attention).

Where every key reads one coordinate, e^(k x_i + b) = e^(k x_i)·e^b. Gates of one sharpness share the few numbers
e^(k x_i) of a point, e^b is stored, and all denominators and numerators are products of small matrices:

    Σ_h z_h = Σ_h (X C)_h/(X G)_h,    X = (e^(k x_i), 1),  G = e^b,  C = e^b·value.

A gate whose only value is on its anchor has a constant numerator: then Σ_h z_h = (1/(X G))·C, one matrix product less.

Underflow. The columns of a head are multiplied with a power of two that makes its denominators at least 1 on the box. Exponents
are limited so that no product of exponentials, stored numbers and values leaves the normal numbers. Only x̂ itself may be as small
as it likes: what a product with it loses, at most u times the smallest normal number, is multiplied by S, so S is limited, too.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ...layer.arithmetic import FLOAT64, arithmetic_of
from ...layer.form import Block
from . import kernels

EDGE = 0.51  # |x̂| up to which shared keys and cells are used
FEWEST_HEADS = 4  # heads of one sharpness from which sharing pays off


@dataclass(frozen=True)
class SharedKeys:
    """Heads that share their keys: exponents key_u·x_(coordinate_u), denominators and numerators as matrices."""

    coordinates: Tensor  # [u]
    keys: Tensor  # [u]
    G: Tensor  # [u + 1, head], the row of the 1 last
    C: Tensor  # [u + 1, head·out]
    slope_rows: Tensor  # [p]: rows of X that are multiplied by …
    slope_coordinates: Tensor  # [p]: … these coordinates,
    S: Tensor  # [p, head·out]: for values with slopes
    constant: bool  # whether all numerators are constant
    paired: bool  # whether the product of two denominators cannot overflow, and is at least 1

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        E = torch.exp(x[:, self.coordinates] * self.keys)
        if kernels.serve(x):
            return kernels.quotients(E, *self.factors(x, E), self.paired)
        below = torch.addmm(self.G[-1], E, self.G[:-1])
        if self.constant:
            return below.reciprocal_() @ self.C[-1].reshape(below.shape[1], -1)
        total = torch.addmm(self.C[-1], E, self.C[:-1])
        if len(self.slope_rows):
            total.addmm_(self.slope_products(x, E), self.S)
        return (total.reshape(len(x), below.shape[1], -1) / below[..., None]).sum(dim=1)

    def slope_products(self, x: Tensor, E: Tensor) -> Float[Tensor, "batch p"]:
        """The products of exponentials (or 1) and coordinates that slopes are multiplied by."""
        return torch.nn.functional.pad(E, (0, 1), value=1.0)[:, self.slope_rows] * x[:, self.slope_coordinates]

    def factors(self, x: Tensor, E: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(denominators' matrix, columns of the numerators, their matrix), the constant row last in both."""
        if self.constant:
            return self.G, E[:, :0], self.C[-1:]
        return self.G, torch.cat([E, self.slope_products(x, E)], dim=1), torch.cat([self.C[:-1], self.S, self.C[-1:]])

    def to(self, device: str | torch.device) -> "SharedKeys":
        """The same on another device."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        moved: dict[str, Any] = {name: t.to(device) for name, t in own.items() if isinstance(t, Tensor)}
        return replace(self, **moved)

    @property
    def width(self) -> int:
        """Intermediate numbers per point."""
        return self.G.shape[1] + (0 if self.constant else self.C.shape[1])


def split_by_keys(block: Block, dtype: torch.dtype) -> tuple[list[SharedKeys], Block | None]:
    """(the heads of every set of keys that enough of them share, the block of the other heads or None)."""
    there, a = block.there, arithmetic_of(dtype)
    keys = block.keys.masked_fill(~there[..., None], 0.0)
    reach, biases = keys.abs().sum(dim=-1) * EDGE, block.biases.masked_fill(~there, 0.0)
    powers = _powers(block)
    scaled = (biases - powers[:, None] * math.log(2)).masked_fill(~there, 0.0)
    exponent = reach + scaled.abs() + 1 + _orders(block)  # the 1 is more than rounding changes here
    plain = (keys.ne(0).sum(dim=-1) <= 1).all(dim=1) & (exponent <= a.largest).all(dim=1)
    plain &= (biases.abs() <= FLOAT64.largest).all(dim=1) & (powers.abs() <= 1000)  # exact in float64
    steep = block.slopes.abs().sum(dim=2).amax(dim=2) * there * scaled.exp()  # S of every token
    plain &= (steep <= 0.5 / a.u).all(dim=1)
    sets: dict[tuple[float, ...], list[int]] = {}
    for head in plain.nonzero().flatten().tolist():
        own = keys[head]
        sets.setdefault(tuple(own[own.ne(0)].unique().tolist()), []).append(head)
    left = torch.ones(len(there), dtype=torch.bool)
    found = []
    for heads in sets.values():
        if len(heads) >= FEWEST_HEADS:
            left[heads] = False
            found.append(shared_keys_of(picked(block, torch.tensor(heads)), dtype))
    return found, picked(block, left.nonzero().flatten()) if left.any() else None


def _powers(block: Block) -> Float[Tensor, " head"]:
    """For every head a whole n with 2^n at most its denominator on the box."""
    least = torch.logsumexp(block.biases - block.keys.abs().sum(dim=-1) * EDGE, dim=1) - 1e-6  # more than its rounding
    return (least / math.log(2)).floor()


def _orders(block: Block) -> Float[Tensor, "head token"]:
    """What values, slopes and sums over them add to the exponents: numerators must neither overflow nor vanish."""
    _, T, D = block.keys.shape
    numbers = torch.cat([block.values, block.slopes.flatten(2)], dim=2).abs()
    orders = torch.where(numbers > 0, numbers, 1.0).log().abs().amax(dim=2) + math.log(T * (D + 1))
    return orders.masked_fill(~block.there, 0.0)


def shared_keys_of(block: Block, dtype: torch.dtype) -> SharedKeys:
    """Heads that all share their keys, as matrices."""
    there = block.there
    H, T, D = block.keys.shape
    m = block.values.shape[-1]
    keys = block.keys.masked_fill(~there[..., None], 0.0)
    at = keys.abs().argmax(dim=-1)  # the coordinate that a token's key reads
    key = keys.gather(-1, at[..., None])[..., 0]
    pairs = torch.stack([at.to(torch.float64), key], dim=-1)[key.ne(0)].unique(dim=0)  # [u, 2]
    u = len(pairs)
    row = torch.full((H, T), u)
    for i, (coordinate, value) in enumerate(pairs.tolist()):
        row[(at == coordinate) & (key == value)] = i
    e = torch.ldexp(torch.exp(block.biases), -_powers(block)[:, None])  # 0 for a token that is not there
    head = torch.arange(H)[:, None].expand(H, T)
    G = torch.zeros(u + 1, H, dtype=torch.float64).index_put((row, head), e, accumulate=True)
    C = torch.zeros(u + 1, H, m, dtype=torch.float64)
    C = C.index_put((row, head), e[..., None] * block.values, accumulate=True)
    places = (row[..., None], torch.arange(D).expand(H, T, D), head[..., None])
    S = torch.zeros(u + 1, D, H, m, dtype=torch.float64)
    S = S.index_put(places, e[..., None, None] * block.slopes, accumulate=True)
    rows, coordinates = S.ne(0).any(dim=3).any(dim=2).nonzero().T
    constant = not len(rows) and not C[:-1].any()
    far = torch.exp(pairs[:, 1].abs() * EDGE)
    high, low = far @ G[:-1] + G[-1], G[:-1].T @ (1 / far) + G[-1]  # of each head's denominator
    above = high * far.max() * max(float(C.abs().max()), float(S.abs().max()), 1.0) if len(far) else high
    safe = math.sqrt(arithmetic_of(dtype).overflow) / 16
    paired = bool((above < safe).all() and (low >= 1).all())  # intermediate results that underflow stay that small
    G, C, S = (t.to(dtype) for t in (G, C.flatten(1), S[rows, coordinates].flatten(1)))
    return SharedKeys(pairs[:, 0].to(torch.int64), pairs[:, 1].to(dtype), G, C, rows, coordinates, S, constant, paired)


def picked(block: Block, heads: Tensor) -> Block:
    """Some of the heads."""
    return Block(block.keys[heads], block.biases[heads], block.values[heads], block.slopes[heads])
