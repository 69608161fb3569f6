"""Softmax averages, laid out for speed: tokens first, so that sums over the few tokens of a head run along rows.

    Σ_h Σ_t w_ht (values_ht + x·slopes_ht),    w_h = softmax_t(keys_ht·x + biases_ht)

with the largest score subtracted first, as in the model.
"""

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ...layer.form import Block
from . import kernels

PRODUCT_TOKENS = 16  # heads with at least this many tokens are averaged by matrix products


@dataclass(frozen=True)
class SoftmaxAverages:
    """Heads with the same number of tokens, in one dtype."""

    keys: Float[Tensor, "token coordinate head"]
    biases: Float[Tensor, "token head"]
    values: Float[Tensor, "token head out"]
    slopes: Float[Tensor, "token coordinate head out"] | None

    @classmethod
    def of(cls, block: Block, dtype: torch.dtype) -> "SoftmaxAverages":
        """The block's heads; tokens that no head attends to are left out."""
        used = block.there.any(dim=0)
        slopes = block.slopes[:, used].permute(1, 2, 0, 3).to(dtype).contiguous() if block.slopes.any() else None
        keys, biases, values = block.keys[:, used], block.biases[:, used], block.values[:, used]
        return cls(
            keys.permute(1, 2, 0).to(dtype).contiguous(),
            biases.T.to(dtype).contiguous(),
            values.transpose(0, 1).to(dtype).contiguous(),
            slopes,
        )

    def __call__(self, x: Float[Tensor, "batch coordinate"]) -> Float[Tensor, "batch out"]:
        if kernels.serve(x):
            return kernels.averages(x, self.keys, self.biases, self.values, self.slopes)
        if len(self.biases) >= PRODUCT_TOKENS and self.slopes is None:
            return self._by_products(x)
        scores = torch.stack([torch.addmm(b, x, k) for b, k in zip(self.biases, self.keys, strict=True)])
        weights = torch.softmax(scores, dim=0)  # [token, batch, head]
        found = []
        for o in range(self.values.shape[-1]):
            z = torch.zeros_like(weights[0])
            for t, w in enumerate(weights):
                v = self.values[t, :, o]
                z.addcmul_(w, v if self.slopes is None else torch.addmm(v, x, self.slopes[t, :, :, o]))
            found.append(z.sum(dim=1))  # each head is averaged separately before they are added up
        return torch.stack(found, dim=1)

    def _by_products(self, x: Tensor) -> Tensor:
        """Few heads of many tokens: per head one matrix of scores and one product with the values."""
        total = x.new_zeros(len(x), self.values.shape[-1])
        for h in range(self.biases.shape[1]):
            scores = torch.addmm(self.biases[:, h], x, self.keys[:, :, h].T)
            weights = scores.sub_(scores.amax(dim=1, keepdim=True)).exp_()
            total += (weights @ self.values[:, h]) / weights.sum(dim=1, keepdim=True)
        return total

    def to(self, device: str | torch.device) -> "SoftmaxAverages":
        """The same on another device."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{name: t.to(device) for name, t in own.items() if t is not None})

    @property
    def width(self) -> int:
        """Intermediate numbers per point."""
        return self.biases.numel()
