"""Layers without positional codes: every data token is treated alike, so T does not change under permutation.

A head's score on token j is β(b − x_j), with one b for all tokens. Two kinds:

    symmetric gate   the anchor competes with score 0; outputs c w_0 + u Σ_j x_j w_j, w_0 = 1/(1 + e^(βb) Σ_j e^(−βx_j))
    symmetric mean   the anchor is masked; outputs Σ_j x_j w_j: the mean for β = 0, a smooth maximum or minimum for large |β|

Sums and power sums are limits of such heads and the maximum is one sharp head; it is not claimed that every symmetric
function can be reached this way. In floating point, permuted inputs agree up to the order of sums.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True)
class SymmetricHeads:
    """Heads of both kinds, means before gates; `anchored` tells gates from means."""

    sharpness: Float[Tensor, " head"]
    offsets: Float[Tensor, " head"]
    anchored: Bool[Tensor, " head"]

    def __len__(self) -> int:
        return len(self.sharpness)

    def features(self, x: Float[Tensor, "batch token"]) -> Float[Tensor, "batch feature"]:
        """1, Σ_j x_j w_j of every head, and w_0 of the gates."""
        scores = self.sharpness[:, None] * (self.offsets[:, None] - x[:, None, :])
        anchor = torch.where(self.anchored, 0.0, -torch.inf)[None, :, None].expand(len(x), -1, 1)
        w = torch.softmax(torch.cat([anchor, scores], dim=-1), dim=-1)
        slopes = (w[..., 1:] * x[:, None, :]).sum(dim=-1)
        return torch.cat([torch.ones_like(x[:, :1]), slopes, w[:, self.anchored, 0]], dim=1)


@dataclass(frozen=True)
class SymmetricLayer:
    """Symmetric heads with a coefficient for each of their features."""

    heads: SymmetricHeads
    coefficients: Float[Tensor, "feature out"]
    dimension: int

    @property
    def units(self) -> int:
        return len(self.heads)

    @property
    def outputs(self) -> int:
        return self.coefficients.shape[1]
