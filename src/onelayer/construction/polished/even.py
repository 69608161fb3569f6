"""Even functions of one number: gates that all switch at the centre, with a slope each and no other value.

x·σ(−βx) is half of x less half of x·tanh(βx/2), so that such gates make up even functions; and one of them stores four numbers
where another gate stores eight (`layer.assemble.even`). Not every even function is made of few of them: a search for usual
gates decides which layer is smaller.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...layer.assemble.even import even_config
from ...target.group_samples import GroupSamples
from .families import GateFamily

EVEN_SHARE = 1e-2  # share of the goal: a function that differs from its mirror image by less is even
MIRRORED = 2_000  # points that are compared with their mirror images
LOW, TOP = 0.8, 20.0  # sharpness of the first and the last gate of a start, the latter times β·h of the arrangement
SPREAD = 0.2  # of the logarithms of the sharpness, from one start to another
MOST_EVEN = 16  # gates: more of them would cancel too much
SHARPER = 1.6  # times the sharpest gate: one more


@dataclass(frozen=True)
class EvenFamily(GateFamily):
    """Gates at 0 with slopes alone. θ has the offsets, too, which stay 0."""

    def count(self, units: int) -> int:
        return 1 + units

    def start(self, units: int, arrangement: tuple[float, float], seed: int) -> Float[Tensor, "unit width"]:
        """Sharpness in geometric progression, more or less the same in every start. All gates face the same way."""
        top = math.log(TOP * arrangement[0] / LOW)
        noise = torch.randn(units, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * SPREAD
        beta = LOW * (torch.linspace(0.0, top, units, dtype=torch.float64) + noise * (seed > 0)).exp()
        return torch.stack([beta, torch.zeros_like(beta)], dim=1)

    def features(self, x: Tensor, weights: Tensor) -> Float[Tensor, "point feature"]:
        return torch.cat([torch.ones_like(x), weights[..., 1] * x], dim=1)

    def values(self, c: Float[Tensor, "feature out"]) -> Float[Tensor, "unit slot out"]:
        slopes = c[1:, None]
        return torch.cat([torch.zeros_like(slopes), torch.zeros_like(slopes), slopes], dim=1)

    def jacobian(self, x: Tensor, weights: Tensor, c: Tensor) -> Float[Tensor, "out point parameter"]:
        found = super().jacobian(x, weights, c)
        found[..., 1::2] = 0.0  # offsets do not move
        return found

    def inserted(self, theta: Tensor, x: Tensor, errors: Float[Tensor, " point"], count: int) -> Tensor:
        """θ with gates added where the sharpness of neighbours differs most, and beyond the sharpest one."""
        for _ in range(count):
            logs = theta[:, 0].abs().clamp_min(1e-3).log().sort().values
            ends = torch.cat([logs, logs[-1:] + 2 * math.log(SHARPER)])
            widest = int((ends[1:] - ends[:-1]).argmax())
            beta = ((ends[widest] + ends[widest + 1]) / 2).exp()
            theta = torch.cat([theta, torch.stack([beta, torch.zeros_like(beta)])[None]])
        return theta


def is_even(source: GroupSamples, goal: float) -> bool:
    """Whether f is, as far as points show, the same on both sides of the centre of its one coordinate."""
    target = source.target
    if target.data is not None or target.domain.within or target.leaves_points_out or source.gradings:
        return False
    unit = np.linspace(0.5, 1.0, MIRRORED)[:, None]
    ahead, behind = (source.rows(target.domain.points(side))[1] for side in (unit, 1 - unit))
    return bool((ahead - behind).abs().max() <= EVEN_SHARE * goal)


def even_size(units: int) -> int:
    """The parameters of an even layer."""
    return even_config(units).parameter_count
