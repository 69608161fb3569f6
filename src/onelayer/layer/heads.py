"""What heads compute, as functions of the normalised input x ∈ [−½, ½]^D.

Scalar tokens (construction "gates"): token j holds x_j, an anchor token holds nothing.

    gate    score β(b_j − x_j) on token j, 0 on the anchor: the anchor's weight is F(β(x − b)) = 1/(1 + Σ_j e^(−β(x_j−b_j))),
            a soft indicator of the orthant x ≥ b. With full values the head outputs c_0 w_0 + Σ_j (c_j + u x_j) w_j.
    max     score β(x_j + b_j), value x_j + b_j: a smooth maximum.
    read    all weight on token j, value x_j.

Vector token (construction "memory"): one token holds the whole x.

    memory  softmax over constant tokens with scores k_j·x + b_j, one head per group of coordinates.
    ridge   score −(a·x + b) on the data token, 0 on the anchor: the anchor's weight is σ(a·x + b). Sigmoid attention has
            this weight on the data token itself, for the score a·x + b.
    ramp    the same with sparsemax attention: score s = a·x + b, weight (1 + s)/2, cut off at 0 and 1.
    bump    score 0 on the data token, ±(a·x + b) on two anchors: the data token has the weight 1/(1 + 2cosh(a·x + b)), most
            where a·x = −b, next to nothing far away. Its value v + u·x counts there alone.

`Hinges` are not heads: they are units relu(a·x + b) of the feed-forward network, which sees x in the residual stream or through
read heads. Every class gives `features`, whose linear combinations are what values can make of it. That these formulas are what
the assembled Transformer computes is up to `assemble` and its tests.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..target.points import spread_points

EDGE = 0.5 + 1e-9  # |x̂_j| on the domain, rounding of the normalisation included
MASKED = 800.0  # a score this far below the largest has weight exactly 0: exp(−800) underflows in float64


@dataclass(frozen=True)
class Gates:
    """Gates with sharpness β (either sign), offsets b, and the coordinates each one looks at."""

    sharpness: Float[Tensor, " gate"]
    offsets: Float[Tensor, "gate coordinate"]
    kept: Bool[Tensor, "gate coordinate"]

    def __len__(self) -> int:
        return len(self.sharpness)

    def to(self, device: str | torch.device) -> "Gates":
        """The same on another device."""
        return Gates(self.sharpness.to(device), self.offsets.to(device), self.kept.to(device))

    def weights(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch gate slot"]:
        """Attention weights: slot 0 is the anchor, slot 1 + j is token j. Masked tokens have weight 0."""
        scores = self.sharpness[:, None] * (self.offsets - x[:, None, :])
        scores = scores.masked_fill(~self.kept, -torch.inf)
        return torch.softmax(torch.nn.functional.pad(scores, (1, 0)), dim=-1)

    def weights_and_slope(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch gate slot"]:
        """The attention weights, and Σ_j x_j w_j as the last slot: what the values of a layer are multiplied with."""
        w = self.weights(x)
        return torch.cat([w, (w[..., 1:] * x[:, None, :]).sum(dim=-1, keepdim=True)], dim=-1)

    def slots(self, full: bool) -> Bool[Tensor, "gate slot"]:
        """Which of (anchor, tokens, slope) carry a separate value. The weights sum to 1, so one token is left out."""
        slots = self.kept.new_zeros(len(self), self.kept.shape[1] + 2)
        slots[:, 0] = True
        if full:
            slots[:, 1:-1] = self.kept & (self.kept.cumsum(dim=1) > 1)
            slots[:, -1] = self.kept.any(dim=1)
        return slots

    def features(self, x: Float[Tensor, "batch coordinate"], full: bool) -> Float[Tensor, "batch feature"]:
        """F alone, or with full values also w_j and Σ_j x_j w_j; columns in the order of `slots`."""
        return self.weights_and_slope(x)[:, self.slots(full)] if full else self.weights(x)[..., 0]


@dataclass(frozen=True)
class Maxima:
    """Smooth maxima over the kept coordinates; short of the true maximum by at most `shortfall`/β."""

    sharpness: Float[Tensor, " head"]
    offsets: Float[Tensor, "head coordinate"]
    kept: Bool[Tensor, "head coordinate"]

    def __len__(self) -> int:
        return len(self.sharpness)

    def features(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch head"]:
        values = x[:, None, :] + self.offsets
        scores = (self.sharpness[:, None] * values).masked_fill(~self.kept, -torch.inf)
        return (torch.softmax(scores, dim=-1) * values).sum(dim=-1)


def shortfall(tokens: int) -> float:
    """W((n−1)/e), Lambert's W: how far, at most, a softmax average of n scores is below the largest of them."""
    from scipy.special import lambertw  # importing it changes the warning filters: only when used

    return float(lambertw((tokens - 1) / math.e).real)


@dataclass(frozen=True)
class Memory:
    """Memory tokens: keys k, biases b, and the group of coordinates that each belongs to (a head per group).

    A key is 0 outside the coordinates of its group.
    """

    keys: Float[Tensor, "token coordinate"]
    biases: Float[Tensor, " token"]
    group: Int[Tensor, " token"]

    def __len__(self) -> int:
        return len(self.biases)

    def to(self, device: str | torch.device) -> "Memory":
        """The same on another device."""
        return Memory(self.keys.to(device), self.biases.to(device), self.group.to(device))

    @property
    def groups(self) -> int:
        return int(self.group.max()) + 1 if len(self) else 0

    def features(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch token"]:
        """The attention weight of every token within its own group's head."""
        scores = x @ self.keys.T + self.biases
        weights = torch.empty_like(scores)
        for g in range(self.groups):
            weights[:, self.group == g] = torch.softmax(scores[:, self.group == g], dim=-1)
        return weights


@dataclass(frozen=True)
class Ridges:
    """Ridge gates σ(a·x + b)."""

    directions: Float[Tensor, "head coordinate"]
    offsets: Float[Tensor, " head"]

    def __len__(self) -> int:
        return len(self.offsets)

    def features(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch head"]:
        return torch.sigmoid(x @ self.directions.T + self.offsets)


@dataclass(frozen=True)
class Ramps(Ridges):
    """Ridge gates of sparsemax attention: (1 + a·x + b)/2 between 0 and 1."""

    def features(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch head"]:
        return ((1 + x @ self.directions.T + self.offsets) / 2).clamp(0.0, 1.0)


@dataclass(frozen=True)
class Bumps:
    """Bumps 1/(1 + 2cosh(a·x + b)), times an affine function of x."""

    directions: Float[Tensor, "head coordinate"]
    offsets: Float[Tensor, " head"]

    def __len__(self) -> int:
        return len(self.offsets)

    def features(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch head"]:
        fallen = (-(x @ self.directions.T + self.offsets).abs()).exp()
        return fallen / (1 + fallen + fallen.square())

    def local(self, values: Float[Tensor, "head affine out"]) -> Float[Tensor, "head 2 out"]:
        """Affine values where the bumps are highest (nearest to 0), and how much they change for a unit of the score."""
        step = self.directions / self.directions.square().sum(dim=1, keepdim=True)
        slopes = torch.einsum("hd,hdo->ho", step, values[:, 1:])
        return torch.stack([values[:, 0] - self.offsets[:, None] * slopes, slopes], dim=1)


@dataclass(frozen=True)
class Hinges:
    """Feed-forward units relu(a·x + b)."""

    directions: Float[Tensor, "unit coordinate"]
    offsets: Float[Tensor, " unit"]

    def __len__(self) -> int:
        return len(self.offsets)

    def features(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch unit"]:
        return torch.relu(x @ self.directions.T + self.offsets)


def lattice_gates(counts: list[int], coordinates: list[int], dimension: int, sharpness_times_step: float) -> Gates:
    """Gates on a lattice over the given coordinates, one step beyond the box on either side, β·step as given.

    Steps differ between coordinates when counts do; the sharpness is shared (a head has one x-weight) and set by the
    geometric mean of the steps.
    """
    steps = [1 / (n - 3) if n > 3 else 1 / max(n - 1, 1) for n in counts]
    axes = [(torch.arange(n, dtype=torch.float64) - (n - 1) / 2) * h for n, h in zip(counts, steps, strict=True)]
    corners = torch.cartesian_prod(*axes).reshape(-1, len(coordinates))
    offsets = torch.zeros(len(corners), dimension, dtype=torch.float64)
    kept = torch.zeros(len(corners), dimension, dtype=torch.bool)
    offsets[:, coordinates], kept[:, coordinates] = corners, True
    step = math.exp(sum(map(math.log, steps)) / len(steps))
    return Gates(torch.full((len(corners),), sharpness_times_step / step, dtype=torch.float64), offsets, kept)


def joined(banks: list[Gates]) -> Gates:
    """Several banks of gates as one."""
    return Gates(*(torch.cat([getattr(b, field) for b in banks]) for field in ("sharpness", "offsets", "kept")))


def scattered_memory(
    count: int, coordinates: tuple[int, ...], dimension: int, narrowness: float, padding: float, seed: int
) -> Memory:
    """Memory tokens at Sobol points of the padded box: k = κC, b = −κ|C|²/2, κ = narrowness/h².

    Equispaced in one coordinate. h = count^(−1/d) is the typical distance between neighbours; the box is padded on every side
    by `padding`·min(h, ¼).
    """
    centres = torch.zeros(count, dimension, dtype=torch.float64)
    centres[:, coordinates], h = spread_points(count, len(coordinates), padding, seed)
    kappa = narrowness / h**2
    return Memory(kappa * centres, -kappa * centres.square().sum(dim=1) / 2, torch.zeros(count, dtype=torch.int64))
