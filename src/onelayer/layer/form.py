"""A layer as a sum of softmax averages: the real function that a certificate is about.

    T(x) = bias + x·linear + Σ_h Σ_t (values_ht + x·slopes_ht) w_ht(x),    w_h = softmax_t(keys_ht·x + biases_ht)

in normalised coordinates x, with exactly the floats that the assembled model stores. Gates, maxima, ridge gates, bumps and memory
tokens are all of this form; masked tokens are left out (their weight is exactly 0). Hinges are not analytic and not of this
form.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..formula.additive import home_of
from .heads import Ramps
from .layer import GateLayer, Layer, MemoryLayer


@dataclass(frozen=True)
class Block:
    """Heads with the same number of tokens. An absent token has bias −∞."""

    keys: Float[Tensor, "head token coordinate"]
    biases: Float[Tensor, "head token"]
    values: Float[Tensor, "head token out"]
    slopes: Float[Tensor, "head token coordinate out"]

    @property
    def there(self) -> Tensor:
        return self.biases > -torch.inf

    def to(self, device: str) -> "Block":
        """The same on another device."""
        return Block(*(t.to(device) for t in (self.keys, self.biases, self.values, self.slopes)))

    def part(self, heads: Tensor, coordinates: Tensor) -> "Block":
        """Some heads, which depend on no other coordinates than these."""
        keys, slopes = self.keys[heads][..., coordinates], self.slopes[heads][:, :, coordinates]
        return Block(keys, self.biases[heads], self.values[heads], slopes)

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        weights = torch.softmax(torch.einsum("bd,htd->bht", x, self.keys) + self.biases, dim=-1)
        y = torch.einsum("bht,hto->bo", weights, self.values)
        if self.slopes.any():
            y = y + torch.einsum("bht,bd,htdo->bo", weights, x, self.slopes)
        return y

    def key_ranges(self) -> tuple[Float[Tensor, "head coordinate"], Float[Tensor, "head coordinate"]]:
        """(smallest, largest) key of every head, per coordinate; absent tokens do not count."""
        hidden = ~self.there[..., None]
        low = self.keys.masked_fill(hidden, torch.inf).amin(dim=1)
        return low, self.keys.masked_fill(hidden, -torch.inf).amax(dim=1)

    def key_spreads(self) -> Float[Tensor, "head coordinate"]:
        """max_t keys_ti − min_t keys_ti of every head."""
        low, high = self.key_ranges()
        return high - low

    def touched(self) -> Tensor:
        """[head, coordinate]: which coordinates a head depends on."""
        moves = self.keys.ne(0) | self.slopes.ne(0).any(dim=-1)
        return (moves & self.there[..., None]).any(dim=1)


@dataclass(frozen=True)
class Form:
    """T as above."""

    bias: Float[Tensor, " out"]
    linear: Float[Tensor, "coordinate out"]
    blocks: tuple[Block, ...]

    @property
    def dimension(self) -> int:
        return len(self.linear)

    def to(self, device: str) -> "Form":
        """The same on another device."""
        return Form(self.bias.to(device), self.linear.to(device), tuple(block.to(device) for block in self.blocks))

    @property
    def heads(self) -> int:
        return sum(len(block.biases) for block in self.blocks)

    @property
    def terms(self) -> int:
        """The largest number of heads that contribute to one output."""
        used = torch.zeros(len(self.bias), dtype=torch.int64)
        for b in self.blocks:
            used += (b.values.ne(0) | b.slopes.ne(0).any(dim=2)).any(dim=1).sum(dim=0)
        return int(used.max()) if len(used) else 0

    @property
    def spreads(self) -> Float[Tensor, " coordinate"]:
        """The largest max_t keys_ti − min_t keys_ti over all heads, per coordinate."""
        widest = torch.zeros(self.dimension, dtype=torch.float64)
        for block in self.blocks:
            widest = torch.maximum(widest, block.key_spreads().amax(dim=0))
        return widest

    def is_finite(self) -> bool:
        """Whether every number is finite (apart from the bias −∞ of absent tokens)."""
        own = [self.bias, self.linear]
        for b in self.blocks:
            own += [b.keys, b.values, b.slopes, b.biases[b.there]]
            if b.biases.isnan().any():
                return False
        return all(bool(t.isfinite().all()) for t in own)

    @property
    def summands(self) -> int:
        """Terms in the longest sum of an evaluation by `__call__`."""
        return sum(block.biases.numel() * (1 + self.dimension) for block in self.blocks) + self.dimension + 2

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        return self.bias + x @ self.linear + sum(block(x) for block in self.blocks)

    def only(self, outputs: list[int]) -> "Form":
        """The form of these outputs; heads that do not reach them are left out."""
        blocks = []
        for b in self.blocks:
            values, slopes = b.values[..., outputs], b.slopes[..., outputs]
            used = values.ne(0).any(dim=2).any(dim=1) | slopes.ne(0).flatten(1).any(dim=1)
            if used.any():
                blocks.append(Block(b.keys[used], b.biases[used], values[used], slopes[used]))
        return Form(self.bias[outputs], self.linear[:, outputs], tuple(blocks))

    def links(self) -> list[tuple[int, ...]]:
        """Sets of coordinates that some head depends on together."""
        found = {tuple(row.nonzero().flatten().tolist()) for block in self.blocks for row in block.touched()}
        single = {(int(j),) for j in self.linear.ne(0).any(dim=1).nonzero().flatten()}
        return sorted(found | single)

    def split(self, groups: list[tuple[int, ...]]) -> list["Form"]:
        """Forms of the coordinates of each group with T = Σ: heads and linear terms go to the first group that holds them.

        The bias, and heads that depend on nothing, go to the first. Groups may overlap; every link must lie in one.
        """
        owners = [
            torch.tensor([home_of(row.nonzero().flatten().tolist(), groups) for row in block.touched()])
            for block in self.blocks
        ]
        used = self.linear.ne(0).any(dim=1).tolist()
        rows = torch.tensor([home_of((j,), groups) if use else -1 for j, use in enumerate(used)])
        found = []
        for position, group in enumerate(groups):
            pick, blocks = torch.tensor(group), []
            for block, owner in zip(self.blocks, owners, strict=True):
                mine = owner == position
                if mine.any():
                    blocks.append(block.part(mine, pick))
            linear = self.linear[pick] * (rows[pick] == position)[:, None]
            bias = self.bias if position == 0 else torch.zeros_like(self.bias)
            found.append(Form(bias, linear, tuple(blocks)))
        return found


def form_of(layer: Layer) -> Form | None:
    """The form of a layer; None if it has hinges or ramps."""
    if len(layer.hinges) or (isinstance(layer, MemoryLayer) and isinstance(layer.ridges, Ramps) and len(layer.ridges)):
        return None
    D, m = layer.dimension, layer.outputs
    blocks = []
    if isinstance(layer, GateLayer):
        g, s = layer.gates, layer.maxima
        eye = torch.eye(D, dtype=torch.float64)
        if len(g):
            keys = torch.cat([torch.zeros(len(g), 1, D, dtype=torch.float64), -g.sharpness[:, None, None] * eye], dim=1)
            biases = (g.sharpness[:, None] * g.offsets).masked_fill(~g.kept, -torch.inf)
            slopes = torch.zeros(len(g), D + 1, D, m, dtype=torch.float64)
            slopes[:, 1:] = eye[None, :, :, None] * layer.gate_values[:, -1][:, None, None, :]
            blocks.append(Block(keys, torch.nn.functional.pad(biases, (1, 0)), layer.gate_values[:, :-1], slopes))
        if len(s):
            keys = s.sharpness[:, None, None] * eye
            biases = (s.sharpness[:, None] * s.offsets).masked_fill(~s.kept, -torch.inf)
            values = s.offsets[:, :, None] * layer.max_values[:, None, :]
            slopes = eye[None, :, :, None] * layer.max_values[:, None, None, :]
            blocks.append(Block(keys.expand(len(s), D, D), biases, values, slopes))
    else:
        for group in range(layer.memory.groups):
            mine = layer.memory.group == group
            keys, n = layer.memory.keys[mine][None], int(mine.sum())
            slopes = torch.zeros(1, n, D, m, dtype=torch.float64)
            blocks.append(Block(keys, layer.memory.biases[mine][None], layer.memory_values[mine][None], slopes))
        r = layer.ridges
        if len(r):
            keys = torch.stack([torch.zeros_like(r.directions), -r.directions], dim=1)
            biases = torch.stack([torch.zeros_like(r.offsets), -r.offsets], dim=1)
            values = torch.stack([layer.ridge_values, torch.zeros_like(layer.ridge_values)], dim=1)
            blocks.append(Block(keys, biases, values, torch.zeros(len(r), 2, D, m, dtype=torch.float64)))
        b, none = layer.bumps, torch.zeros_like(layer.bump_values)
        if len(b):
            keys = torch.stack([0 * b.directions, b.directions, -b.directions], dim=1)
            biases = torch.stack([0 * b.offsets, b.offsets, -b.offsets], dim=1)
            values = torch.stack([layer.bump_values, none, none], dim=1)
            blocks.append(Block(keys, biases, values[:, :, 0], values[:, :, 1:]))
    return Form(layer.bias, layer.linear, tuple(blocks))
