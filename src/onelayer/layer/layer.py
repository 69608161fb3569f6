"""Heads with their values: the function a layer computes, before it becomes the weights of a Transformer.

    T(x) = bias + x·linear + Σ heads' contributions + hinges·values,    x normalised

`GateLayer` is the sequence form (construction "gates"), `MemoryLayer` the one-token form (construction "memory").
"""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from .heads import Bumps, Gates, Hinges, Maxima, Memory, Ridges


@dataclass(frozen=True, kw_only=True)
class _Common:
    """What both forms have: a bias, a linear part (in the read-out, or carried by read heads), hinges."""

    linear: Float[Tensor, "coordinate out"]
    hinges: Hinges
    hinge_values: Float[Tensor, "hinge out"]
    bias: Float[Tensor, " out"]

    @property
    def dimension(self) -> int:
        return self.linear.shape[0]

    @property
    def outputs(self) -> int:
        return self.linear.shape[1]

    def _beside_heads(self, x: Tensor) -> Tensor:
        return self.bias + x @ self.linear + self.hinges.features(x) @ self.hinge_values


@dataclass(frozen=True, kw_only=True)
class GateLayer(_Common):
    """Gates with values (anchor, token 1 … D, slope) and maxima."""

    gates: Gates
    gate_values: Float[Tensor, "gate slot out"]
    maxima: Maxima
    max_values: Float[Tensor, "max out"]

    @property
    def units(self) -> int:
        return len(self.gates) + len(self.maxima)

    @property
    def reads(self) -> list[int]:
        """The coordinates that need a read head, if x is not in the stream: all for hinges, else those of the linear part."""
        used = self.linear.ne(0).any(dim=1)
        return list(range(self.dimension)) if len(self.hinges) else used.nonzero().flatten().tolist()

    @property
    def plain(self) -> bool:
        """Whether every gate has a value on its anchor only."""
        return not bool(self.gate_values[:, 1:].any())

    @property
    def spares_anchor(self) -> bool:
        """Whether the anchor needs no lane of its own: gates alone, whose values are relative to one of their tokens.

        Plain gates keep their one value on the anchor, and centred gates all of them, which round less. Reads need no anchor.
        """
        relative = (self.gate_values[:, 1:-1].eq(0).all(dim=-1) & self.gates.kept).any(dim=1)
        return not len(self.maxima) and (not len(self.gates) or (not self.plain and bool(relative.all())))

    @property
    def even(self) -> bool:
        """Whether this is an even function of one number, and maybe a linear one, by gates at 0 with no values but slopes."""
        alone = self.dimension == self.outputs == 1 and len(self.gates) > 0 and bool(self.gates.kept.all())
        beside = len(self.maxima) or len(self.hinges) or self.linear.any()
        return alone and not beside and not self.gates.offsets.any() and not self.gate_values[:, :-1].any()

    def restricted(self, columns: slice) -> "GateLayer":
        """The same heads, some of the outputs."""
        return replace(
            self,
            gate_values=self.gate_values[..., columns],
            max_values=self.max_values[:, columns],
            linear=self.linear[:, columns],
            hinge_values=self.hinge_values[:, columns],
            bias=self.bias[columns],
        )

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        gates = torch.einsum("bgs,gso->bo", self.gates.weights_and_slope(x), self.gate_values)
        return self._beside_heads(x) + gates + self.maxima.features(x) @ self.max_values


@dataclass(frozen=True, kw_only=True)
class MemoryLayer(_Common):
    """Memory tokens, ridge gates and bumps with values; those of bumps are affine: of 1 and of every coordinate."""

    memory: Memory
    memory_values: Float[Tensor, "token out"]
    ridges: Ridges
    ridge_values: Float[Tensor, "ridge out"]
    bumps: Bumps
    bump_values: Float[Tensor, "bump affine out"]

    @property
    def units(self) -> int:
        return len(self.memory) + len(self.ridges) + len(self.bumps)

    @property
    def reads(self) -> list[int]:
        """Without a residual stream one head reads the whole vector: [0] if it is needed."""
        return [0] if len(self.hinges) or self.linear.ne(0).any() else []

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        heads = self.memory.features(x) @ self.memory_values + self.ridges.features(x) @ self.ridge_values
        weights = self.bumps.features(x)
        bumps = weights @ self.bump_values[:, 0]
        for i in range(self.dimension):
            bumps = bumps + x[:, i, None] * (weights @ self.bump_values[:, 1 + i])
        return self._beside_heads(x) + heads + bumps


def gate_layer(
    bias: Float[Tensor, " out"],
    dimension: int,
    gates: tuple[Gates, Tensor] | None = None,
    maxima: tuple[Maxima, Tensor] | None = None,
    linear: Tensor | None = None,
    hinges: tuple[Hinges, Tensor] | None = None,
) -> GateLayer:
    """A GateLayer from the parts that are given; the others are empty."""
    D, m = dimension, len(bias)
    none_kept = torch.zeros(0, D, dtype=torch.bool)
    g, gv = gates or (Gates(_empty(), _empty(0, D), none_kept), _empty(0, D + 2, m))
    s, sv = maxima or (Maxima(_empty(), _empty(0, D), none_kept), _empty(0, m))
    return GateLayer(gates=g, gate_values=gv, maxima=s, max_values=sv, **_common(bias, D, linear, hinges))


def memory_layer(
    bias: Float[Tensor, " out"],
    dimension: int,
    memory: tuple[Memory, Tensor] | None = None,
    ridges: tuple[Ridges, Tensor] | None = None,
    linear: Tensor | None = None,
    hinges: tuple[Hinges, Tensor] | None = None,
    bumps: tuple[Bumps, Tensor] | None = None,
) -> MemoryLayer:
    """A MemoryLayer from the parts that are given; the others are empty."""
    D, m = dimension, len(bias)
    nothing = Memory(_empty(0, D), _empty(), torch.zeros(0, dtype=torch.int64))
    t, tv = memory or (nothing, _empty(0, m))
    r, rv = ridges or (Ridges(_empty(0, D), _empty()), _empty(0, m))
    b, bv = bumps or (Bumps(_empty(0, D), _empty()), _empty(0, 1 + D, m))
    return MemoryLayer(
        memory=t,
        memory_values=tv,
        ridges=r,
        ridge_values=rv,
        bumps=b,
        bump_values=bv,
        **_common(bias, D, linear, hinges),
    )


Layer = GateLayer | MemoryLayer
_Layer = TypeVar("_Layer", GateLayer, MemoryLayer)


def added(a: _Layer, b: _Layer) -> _Layer:
    """The sum of two layers of the same form: all heads and hinges of both; linear parts and biases are added up."""

    def both(name: str) -> Any:
        one, two = getattr(a, name), getattr(b, name)
        if name in ("linear", "bias"):
            return one + two
        if isinstance(one, Tensor):
            return torch.cat([one, two])
        if isinstance(one, Memory):  # tokens of b keep their own heads
            two = replace(two, group=two.group + one.groups)
        kind = type(one) if len(one) else type(two)  # no ridges at all may stand for no ramps
        return kind(*(torch.cat([getattr(one, f.name), getattr(two, f.name)]) for f in fields(one)))

    return type(a)(**{f.name: both(f.name) for f in fields(a)})


def _common(
    bias: Tensor, dimension: int, linear: Tensor | None, hinges: tuple[Hinges, Tensor] | None
) -> dict[str, Any]:
    m = len(bias)
    h, hv = hinges or (Hinges(_empty(0, dimension), _empty()), _empty(0, m))
    slope = _empty(dimension, m) if linear is None else linear
    return {"bias": bias, "linear": slope, "hinges": h, "hinge_values": hv}


def _empty(*shape: int) -> Tensor:
    return torch.zeros(shape or (0,), dtype=torch.float64)
