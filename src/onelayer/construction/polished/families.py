"""Families of heads with free parameters: what polishing may change, and the derivatives it needs.

A family has units with parameters θ [unit, width] on the d coordinates of one group; its features Φ(θ, x) are combined by
linear coefficients c, so that T = Φ c. `jacobian` is ∂(Φ c)/∂θ at fixed c, for all points and units at once.

    memory  θ_j = (key k_j, bias b_j):    scores k_j·x + b_j of one softmax over all units; features 1, x and the weights, or
            1 and the weights alone, where nothing but tokens may tell functions apart (`straight` is False)
    gates   θ_j = (sharpness β_j, β_j b_j): scores β_j(b_j − x_i) of unit j's own softmax over the anchor (score 0) and the
            tokens i; features 1 and, with full values, the weights and Σ_i x_i w_i; x too, where it takes no head (`straight`)

The weights of a softmax sum to 1, so one of them is left out of the features: it would repeat the constant.
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from ...layer.heads import Gates, Memory, Ridges
from ...target.points import spread_points

NEW_SHARE = 0.3  # of the tokens there: the share of one that is inserted


def ones(x: Tensor) -> Tensor:
    return torch.ones_like(x[:, :1])


@dataclass(frozen=True)
class MemoryFamily:
    """Memory tokens of one head."""

    dimension: int
    name: str = "memory"
    graded: bool = False  # whether units may be very sharp, so that steps need care (`centring`)
    straight: bool = True  # whether x is a feature

    @property
    def affine(self) -> int:
        """Features without tokens."""
        return 1 + self.dimension * self.straight

    def count(self, units: int) -> int:
        """The number of features of this many units."""
        return units - 1 + self.affine

    def start(self, units: int, arrangement: tuple[float, float], seed: int) -> Float[Tensor, "unit width"]:
        """Normalised radial functions around spread centres C: k = κC, b = −κ|C|²/2, κ = narrowness/h²."""
        narrowness, padding = arrangement
        centres, h = spread_points(units, self.dimension, padding, seed)
        kappa = narrowness / h**2
        return torch.cat([kappa * centres, -kappa / 2 * centres.square().sum(dim=1, keepdim=True)], dim=1)

    def weights(self, theta: Tensor, x: Tensor) -> Float[Tensor, "point unit"]:
        return torch.softmax(theta[:, :-1] @ x.T + theta[:, -1:], dim=0).T  # many times as fast as along the last axis

    def features(self, x: Tensor, weights: Tensor) -> Float[Tensor, "point feature"]:
        return torch.cat([ones(x), *([x] if self.straight else []), weights[:, 1:]], dim=1)

    def values(self, c: Float[Tensor, "feature out"]) -> Float[Tensor, "unit out"]:
        """The value of every token; the first one's is 0, the constant takes its place."""
        return torch.cat([torch.zeros_like(c[:1]), c[self.affine :]])

    def _slopes(self, weights: Tensor, c: Tensor) -> Float[Tensor, "out unit point"]:
        """∂T/∂score_j = w_j(c_j − Σ_i w_i c_i)."""
        v = self.values(c).T
        return weights.T * (v[:, :, None] - (v @ weights.T)[:, None, :])

    def jacobian(self, x: Tensor, weights: Tensor, c: Tensor) -> Float[Tensor, "out point parameter"]:
        moved = torch.cat([x, ones(x)], dim=1).T.contiguous()  # ∂score/∂(k, b)
        return (self._slopes(weights, c)[:, :, None] * moved).flatten(1, 2).mT

    def importance(self, x: Tensor, weights: Tensor, c: Tensor) -> Float[Tensor, " unit"]:
        """Σ (w_j(c_j − T))²: how much the token would be missed."""
        return self._slopes(weights, c).square().sum(dim=(0, 2))

    def inserted(self, theta: Tensor, x: Tensor, errors: Float[Tensor, " point"], count: int) -> Tensor:
        """θ with tokens added at the points of the largest error: their scores are tangent planes of s = log Σ_j exp score_j.

        s is convex, so a token that touches s(x) + log NEW_SHARE at z weighs most at z, with the width that tokens have
        there. The next one goes where the error, damped by that weight, is largest.
        """
        scores = x @ theta[:, :-1].T + theta[:, -1]
        total, added = scores.logsumexp(dim=1), []
        for _ in range(count):
            z = int(errors.argmax())
            key = scores[z].softmax(dim=0) @ theta[:, :-1]
            added.append(torch.cat([key, (total[z] - key @ x[z] + math.log(NEW_SHARE)).reshape(1)]))
            errors = errors * (1 - ((x - x[z]) @ key + total[z] - total).exp()).clamp_min(0).sqrt()
        theta = torch.cat([theta, *(new[None] for new in added)])
        return theta - theta.mean(dim=0)  # no weight changes

    def heads(self, theta: Tensor, group: tuple[int, ...], dimension: int) -> Memory:
        """The memory tokens, centred: a key and a bias taken off all of them change no weight."""
        keys = torch.zeros(len(theta), dimension, dtype=theta.dtype)
        keys[:, list(group)] = theta[:, :-1] - theta[:, :-1].mean(dim=0)
        return Memory(keys, theta[:, -1] - theta[:, -1].mean(), torch.zeros(len(theta), dtype=torch.int64))


@dataclass(frozen=True)
class GateFamily:
    """Gates with full values."""

    dimension: int
    name: str = "gates"
    graded: bool = False
    straight: bool = False  # whether x is a feature

    @property
    def affine(self) -> int:
        """Features without gates."""
        return 1 + self.dimension * self.straight

    def count(self, units: int) -> int:
        return self.affine + units * (self.dimension + 1)

    def start(self, units: int, arrangement: tuple[float, float], seed: int) -> Float[Tensor, "unit width"]:
        """Gates at spread corners, β·h as given, every second one facing the other way (β < 0)."""
        step, padding = arrangement
        corners, h = spread_points(units, self.dimension, padding, seed)
        beta = torch.full((units, 1), step / h, dtype=torch.float64)
        if self.dimension > 1:
            beta[1::2] *= -1
        return torch.cat([beta, beta * corners], dim=1)

    def weights(self, theta: Tensor, x: Tensor) -> Float[Tensor, "point unit slot"]:
        scores = theta.T[1:, :, None] - theta[:, :1] * x.T[:, None, :]
        return torch.softmax(torch.cat([torch.zeros_like(scores[:1]), scores]), dim=0).permute(2, 1, 0)

    def features(self, x: Tensor, weights: Tensor) -> Float[Tensor, "point feature"]:
        slope = (weights[..., 1:] * x[:, None, :]).sum(dim=-1, keepdim=True)
        own = torch.cat([weights[..., :1], weights[..., 2:], slope], dim=-1)
        return torch.cat([ones(x), *([x] if self.straight else []), own.flatten(1)], dim=1)

    def values(self, c: Float[Tensor, "feature out"]) -> Float[Tensor, "unit slot out"]:
        """Values on (anchor, tokens, slope); the first token's is 0, the constant takes its place."""
        own = c[self.affine :].unflatten(0, (-1, self.dimension + 1))
        return torch.cat([own[:, :1], torch.zeros_like(own[:, :1]), own[:, 1:]], dim=1)

    def _slopes(self, x: Tensor, weights: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """(∂T/∂score of token i of unit j = w_ji(v_ji − T_j), T_j less its value on the first token): [out, (i,) j, point]."""
        v, w = self.values(c).permute(2, 1, 0)[..., None], weights.permute(2, 1, 0)
        tokens = v[:, 1:-1] + v[:, -1:] * x.T[:, None, :]
        own = v[:, 0] * w[0] + (tokens * w[1:]).sum(dim=1)
        return w[1:] * (tokens - own[:, None]), own

    def jacobian(self, x: Tensor, weights: Tensor, c: Tensor) -> Float[Tensor, "out point parameter"]:
        slopes, _ = self._slopes(x, weights, c)
        sharpness = -(slopes * x.T[:, None, :]).sum(dim=1, keepdim=True)
        return torch.cat([sharpness, slopes], dim=1).transpose(1, 2).flatten(1, 2).mT

    def importance(self, x: Tensor, weights: Tensor, c: Tensor) -> Float[Tensor, " unit"]:
        """How much a unit's contribution varies over the points."""
        own = self._slopes(x, weights, c)[1]
        return (own - own.mean(dim=-1, keepdim=True)).square().sum(dim=(0, 2))

    def inserted(self, theta: Tensor, x: Tensor, errors: Float[Tensor, " point"], count: int) -> Tensor:
        """θ with gates added whose corners are the points of the largest error, as sharp as the others, facing either way."""
        beta, added = float(theta[:, 0].abs().median()), []
        for number in range(count):
            z = int(errors.argmax())
            facing = -beta if self.dimension > 1 and (len(theta) + number) % 2 else beta
            added.append(facing * torch.cat([x.new_ones(1), x[z]]))
            errors = errors * (1 - (-beta * (x - x[z]).norm(dim=1)).exp())
        return torch.cat([theta, *(new[None] for new in added)])

    def heads(self, theta: Tensor, group: tuple[int, ...], dimension: int) -> Gates:
        pick = list(group)
        offsets = torch.zeros(len(theta), dimension, dtype=theta.dtype)
        kept = torch.zeros(len(theta), dimension, dtype=torch.bool)
        offsets[:, pick], kept[:, pick] = theta[:, 1:] / theta[:, :1], True
        return Gates(theta[:, 0].clone(), offsets, kept)


PlainFamily = MemoryFamily | GateFamily


@runtime_checkable
class Family(Protocol):
    """What a fit needs to know of a family; x are its points, or rows of values and slopes (`slope_rows`)."""

    @property
    def name(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def graded(self) -> bool: ...
    def count(self, units: int) -> int: ...
    def start(self, units: int, arrangement: tuple[float, float], seed: int) -> Tensor: ...
    def weights(self, theta: Tensor, x: Tensor) -> Tensor: ...
    def features(self, x: Tensor, weights: Tensor) -> Tensor: ...
    def jacobian(self, x: Tensor, weights: Tensor, c: Tensor) -> Tensor: ...
    def importance(self, x: Tensor, weights: Tensor, c: Tensor) -> Tensor: ...
    def inserted(self, theta: Tensor, x: Tensor, errors: Tensor, count: int) -> Tensor: ...
    def heads(self, theta: Tensor, group: tuple[int, ...], dimension: int) -> Memory | Gates | Ridges: ...


def family_of(name: str, dimension: int, graded: bool = False, straight: bool = False) -> PlainFamily:
    """The family of that name; x is a feature of all others, and of gates if they are `straight`."""
    from .ridges import RampFamily, RidgeFamily

    if name != "gates":
        return {"memory": MemoryFamily, "ridges": RidgeFamily, "ramps": RampFamily}[name](dimension, graded=graded)
    return GateFamily(dimension, graded=graded, straight=straight)


def centring(family: Family, jacobian: Float[Tensor, "out point parameter"]) -> Float[Tensor, "unit own own"]:
    """For every unit a matrix A such that the columns J A of its slopes are orthogonal to those of its biases.

    A very sharp unit only changes very close to some z, so that its columns for the slope, s·x, and for the bias, s, are
    nearly parallel: the same unit in the coordinates x − z has columns s·(x − z) and s.
    """
    d = family.dimension
    slopes, biases = (
        (slice(0, d), slice(d, d + 1)) if isinstance(family, MemoryFamily) else (slice(0, 1), slice(1, d + 1))
    )
    own = jacobian.unflatten(2, (-1, d + 1)).flatten(0, 1)  # [row, unit, parameter]
    k, b = own[..., slopes], own[..., biases]
    share = torch.einsum("nur,nup->upr", k, b) / b.square().sum(dim=0)[..., None].clamp_min(1e-300)
    A = torch.eye(d + 1, dtype=jacobian.dtype, device=jacobian.device).repeat(own.shape[1], 1, 1)
    A[:, biases, slopes] = -share
    return A
