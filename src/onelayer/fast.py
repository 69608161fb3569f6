"""The factored form of a layer: the same function without an exponential per head (exact linear attention).

Where every key looks at one coordinate, e^(k x_i + b) = e^(k x_i)·e^b. Gates of one sharpness share the few numbers
e^(k x_i) of a point, e^b is stored, and all denominators and numerators are products of small matrices:

    T(x) = bias + x·linear + Σ_h (X C)_h/(X G)_h,    X = (e^(k x_i), 1),  G = e^b,  C = e^b·value.

Heads that share no keys with others, that look at several coordinates at once (memory tokens) or whose exponents would
overflow are evaluated by a plain softmax; so is everything at points outside the box that the tables are made for.
`certify/deployed` bounds the rounding of both.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from .assemble import Frame
from .certify.arithmetic import arithmetic_of
from .certify.form import Block, Form
from .errors import InputError

EDGE = 0.51  # |x̂| up to which the tables serve
FEW = 4  # heads of one sharpness from which a table pays
CHUNK = 2**20  # numbers held at a time


@dataclass(frozen=True)
class Table:
    """Heads that share their keys: exponents key_u·x_(coordinate_u), denominators and numerators as matrices."""

    coordinates: Tensor  # [u]
    keys: Tensor  # [u]
    G: Tensor  # [u + 1, head]
    C: Tensor  # [u + 1, head·out]
    moving: Tensor  # [p]: rows of X that are multiplied with …
    by: Tensor  # [p]: … these coordinates,
    S: Tensor  # [p, head·out]: for values with slopes

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        X = torch.exp(x[:, self.coordinates] * self.keys)
        X = torch.cat([X, torch.ones_like(X[:, :1])], dim=1)
        total = X @ self.C
        if len(self.moving):
            total = total + (X[:, self.moving] * x[:, self.by]) @ self.S
        below = X @ self.G
        return (total.reshape(len(x), below.shape[1], -1) / below[..., None]).sum(dim=1)

    @property
    def width(self) -> int:
        return self.C.shape[1] + self.G.shape[1] + len(self.keys) + len(self.moving) + 1


@dataclass(frozen=True)
class Plan:
    """Tables for the heads that have them, blocks for the others, in one dtype."""

    bias: Tensor
    linear: Tensor
    tables: tuple[Table, ...]
    others: tuple[Block, ...]


class Factored:
    """T, callable on points [batch, D] in float64 or float32; form and frame as `certify.reading` gives them."""

    def __init__(self, form: Form, frame: Frame) -> None:
        self.form, self.frame = form, frame
        self.plans = {dtype: _plan(form, dtype) for dtype in (torch.float64, torch.float32)}
        self.plain = {dtype: replace(p, tables=(), others=_cast(form.blocks, dtype)) for dtype, p in self.plans.items()}

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        """T(x), in chunks that bound the memory."""
        if x.dtype not in self.plans:
            raise InputError("float64 or float32 points", f"{x.dtype}", "convert them")
        blocks = [b.biases.numel() * (1 + (self.form.bias.numel() if b.slopes.any() else 0)) for b in self.form.blocks]
        rows = max(1, CHUNK // max([1, *blocks, *(t.width for t in self.plans[x.dtype].tables)]))
        parts = [self._values(self.frame(part)) for part in x.split(rows)]
        return torch.cat(parts) if parts else x.new_zeros(0, len(self.form.bias))

    def _values(self, x: Tensor) -> Tensor:
        inside = bool(len(x)) and bool(x.abs().max() <= EDGE)
        plan = (self.plans if inside else self.plain)[x.dtype]
        y = plan.bias + x @ plan.linear
        for table in plan.tables:
            y = y + table(x)
        for block in plan.others:
            y = y + softmax_average(block, x)
        return y


def softmax_average(block: Block, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
    """Σ_h z_h, every head averaged for itself."""
    weights = torch.softmax(torch.einsum("bd,htd->bht", x, block.keys) + block.biases, dim=-1)
    if not block.slopes.any():
        return torch.einsum("bht,hto->bho", weights, block.values).sum(dim=1)
    values = block.values + torch.einsum("bd,htdo->bhto", x, block.slopes)
    return (weights[..., None] * values).sum(dim=2).sum(dim=1)


def _plan(form: Form, dtype: torch.dtype) -> Plan:
    """Heads sorted by the set of their non-zero keys; a table for every set that enough heads share."""
    tables, others = [], []
    for block in form.blocks:
        there = block.there
        keys = block.keys.masked_fill(~there[..., None], 0.0)
        exponent = keys.abs().sum(dim=-1) * EDGE + block.biases.masked_fill(~there, 0.0).abs()
        plain = (keys.ne(0).sum(dim=-1) <= 1).all(dim=1) & (exponent <= arithmetic_of(dtype).largest).all(dim=1)
        sets: dict[tuple[float, ...], list[int]] = {}
        for head in plain.nonzero().flatten().tolist():
            own = keys[head]
            sets.setdefault(tuple(own[own.ne(0)].unique().tolist()), []).append(head)
        left = torch.ones(len(there), dtype=torch.bool)
        for heads in sets.values():
            if len(heads) >= FEW:
                left[heads] = False
                tables.append(_table(_picked(block, torch.tensor(heads)), dtype))
        if left.any():
            others.append(_picked(block, left.nonzero().flatten()))
    return Plan(form.bias.to(dtype), form.linear.to(dtype), tuple(tables), _cast(tuple(others), dtype))


def _table(block: Block, dtype: torch.dtype) -> Table:
    there = block.there
    H, T, D = block.keys.shape
    m = block.values.shape[-1]
    keys = block.keys.masked_fill(~there[..., None], 0.0)
    at = keys.abs().argmax(dim=-1)  # the coordinate a token looks at
    key = keys.gather(-1, at[..., None])[..., 0]
    pairs = torch.stack([at.to(torch.float64), key], dim=-1)[key.ne(0)].unique(dim=0)  # [u, 2]
    u = len(pairs)
    row = torch.full((H, T), u)
    for i, (coordinate, value) in enumerate(pairs.tolist()):
        row[(at == coordinate) & (key == value)] = i
    e = torch.exp(block.biases)  # 0 for a token that is not there
    head = torch.arange(H)[:, None].expand(H, T)
    G = torch.zeros(u + 1, H, dtype=torch.float64).index_put((row, head), e, accumulate=True)
    C = torch.zeros(u + 1, H, m, dtype=torch.float64).index_put(
        (row, head), e[..., None] * block.values, accumulate=True
    )
    S = torch.zeros(u + 1, D, H, m, dtype=torch.float64)
    S = S.index_put(
        (row[..., None], torch.arange(D).expand(H, T, D), head[..., None]),
        e[..., None, None] * block.slopes,
        accumulate=True,
    )
    moving, by = S.ne(0).any(dim=3).any(dim=2).nonzero().T
    numbers = (G, C.flatten(1), S[moving, by].flatten(1))
    G, C, S = (t.to(dtype) for t in numbers)
    return Table(pairs[:, 0].to(torch.int64), pairs[:, 1].to(dtype), G, C, moving, by, S)


def _picked(block: Block, heads: Tensor) -> Block:
    return Block(block.keys[heads], block.biases[heads], block.values[heads], block.slopes[heads])


def _cast(blocks: tuple[Block, ...], dtype: torch.dtype) -> tuple[Block, ...]:
    return tuple(Block(*(t.to(dtype) for t in (b.keys, b.biases, b.values, b.slopes))) for b in blocks)
