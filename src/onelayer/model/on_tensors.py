"""The steps of a layer on tensors of torch.

Shapes: [batch, token, d_model] of data tokens and of rows that are read out, [token, d_model] of special tokens, whose keys and
values are the same for the whole batch and computed once.

Attention weights α_ij from scores: softmax, Eq. (5), and what else can stand in its place.

sparsemax (Martins and Astudillo, 2016) is the Euclidean projection on the simplex, α_j = max(s_j − τ, 0) with Σ_j α_j = 1. For
any set A of tokens Σ_A (s_j − τ) ≤ Σ_j max(s_j − τ, 0) = 1, with equality where A is the support. Hence

    τ = max over A of (Σ_A s_j − 1)/|A| = max over k of (sum of the k largest scores − 1)/k,

which is never lower for higher scores, and moves by at most as much as the score that moves most.

Linear attention (Katharopoulos et al., 2020) has φ(q_i)·φ(k_j) in the place of the exponential of a score. All weights are
computed here, as for the others; the sums over j of φ(k_j) and φ(k_j) v_j that make it linear in n are not used.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from .activations import activation_of
from .config import Attention
from .program import Steps


def attention_weights(
    scores: Float[Tensor, "batch head row token"],
    attention: Attention,
    hidden: Bool[Tensor, "#batch #row token"] | None = None,
) -> Float[Tensor, "batch head row token"]:
    """α_ij; tokens that are `hidden` from a row have weight 0. The scores of linear attention are φ(q_i)·φ(k_j).

    Softmax and sparsemax subtract the row's largest score first: no finite score overflows, and a softmax score 800 below the
    largest has weight exactly 0 (exp(−800) < 2^−1074 ≈ exp(−744.4), the smallest positive float64).
    """
    if hidden is not None:
        scores = scores.masked_fill(hidden.unsqueeze(1), 0.0 if attention == "linear" else -torch.inf)
    match attention:
        case "sigmoid":
            return torch.sigmoid(scores)
        case "linear":
            return scores / scores.sum(dim=-1, keepdim=True)
        case "sparsemax":
            return sparsemax(scores)
        case _:
            return torch.softmax(scores, dim=-1)  # Eq. (5)


def linear_features(t: Tensor) -> Tensor:
    """φ(t) = elu(t) + 1: e^t below 0, where elu(t) + 1 itself would lose all digits, and 1 + t above."""
    return torch.where(t < 0, t.clamp(max=0.0).exp(), 1 + t)


def sparsemax(scores: Float[Tensor, "*rows token"]) -> Float[Tensor, "*rows token"]:
    """max(s_j − τ, 0), τ = max over k of (sum of the k largest scores − 1)/k."""
    below = scores - scores.amax(dim=-1, keepdim=True).detach()
    sums = below.sort(dim=-1, descending=True).values.cumsum(dim=-1) - 1
    threshold = (sums / torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)).amax(-1, True)
    return (below - threshold).relu()


if TYPE_CHECKING:
    from .transformer import SingleLayerTransformer


class OnTensors(Steps[Tensor]):
    """One evaluation. Tokens that are `hidden` from a row have weight 0 there; `padding` says which positions hold no token."""

    def __init__(
        self,
        model: "SingleLayerTransformer",
        x: Float[Tensor, "batch data feature"] | None = None,
        hidden: Bool[Tensor, "#batch #row token"] | None = None,
        padding: Bool[Tensor, "batch data"] | None = None,
    ) -> None:
        self.model, self.config, self.hidden, self.padding = model, model.config, hidden, padding
        self.x = model.W_E.new_zeros(1, 0, 1) if x is None else x

    def inputs(self) -> Tensor:
        n = self.x.shape[1]
        return (self.x - self.model.shift[:n]) * self.model.scale[:n]

    def constant(self, name: str) -> Tensor:
        return self.model.S if name == "S" else self.model.P[: self.x.shape[1]]

    def linear(self, x: Tensor, name: str) -> Tensor:
        y = x @ getattr(self.model, f"W_{name}")
        return y + getattr(self.model, f"b_{name}") if name != "O" or self.config.projection_bias else y

    def project(self, x: Tensor, name: str) -> Tensor:
        return self.model._project(x, name)

    def plus(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def norm(self, x: Tensor, name: str) -> Tensor:
        gain, offset = getattr(self.model, f"gain_{name}"), getattr(self.model, f"offset_{name}")
        return F.layer_norm(x, (self.config.d_model,), gain, offset, self.config.norm_eps)

    def activate(self, u: Tensor) -> Tensor:
        return activation_of(self.config).on_tensors(u)

    def mean(self, x: Tensor) -> Tensor:
        """Over the positions that hold a token."""
        if self.padding is None:
            return x.mean(dim=1, keepdim=True)
        empty = self.padding[..., None]
        return x.masked_fill(empty, 0.0).sum(dim=1, keepdim=True) / (~empty).sum(dim=1, keepdim=True).clamp_min(1)

    def last(self, x: Tensor, count: int) -> Tensor:
        return x[-count:].unsqueeze(0)

    def concat(self, z: Tensor) -> Tensor:
        return z.transpose(1, 2).flatten(2)

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, training=self.model.training) if self.config.dropout else x

    def attend(self, queries: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> Tensor:
        if self.config.attention == "fused":
            return self._fused(queries, keys, values)
        on_data, *on_special = self.drop(self.weights(queries, keys)).split([v.shape[-2] for v in values], dim=-1)
        z = _mix(on_data, values[0])  # Eq. (6): Σ_j α_ij v_j; Eq. (7)
        for alpha, v in zip(on_special, values[1:], strict=True):
            z = z + torch.einsum("bhrs,hsw->bhrw", alpha, v)
        return z

    def weights(self, queries: Tensor, keys: Sequence[Tensor]) -> Float[Tensor, "batch head row token"]:
        """α_ij, Eq. (5) or what `attention` puts in its place, over data tokens and then special tokens."""
        linear = self.config.attention == "linear"
        q, *groups = (linear_features(t) for t in (queries, *keys)) if linear else (queries, *keys)
        parts = [_inner(q, groups[0])]
        for k in groups[1:]:
            on_special = q * k.mT if q.shape[-1] == 1 else torch.einsum("bhrw,hsw->bhrs", q, k)
            parts.append(on_special.expand(parts[0].shape[0], -1, -1, -1))
        scores = torch.cat(parts, dim=-1).contiguous()  # dropout draws in the order of memory
        scores = scores if linear else scores / math.sqrt(self.config.d_k)
        return attention_weights(scores, self.config.attention, self.hidden)

    def _fused(self, queries: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> Tensor:
        """Eq. (7) in one kernel of torch. Queries are divided by √d_k before: kernels round what they do with the scale."""
        batch = keys[0].shape[0]
        k, v = (torch.cat([t.expand(batch, -1, -1, -1) for t in groups], dim=2) for groups in (keys, values))
        p = self.config.dropout if self.model.training else 0.0
        seen = None if self.hidden is None else ~self.hidden.unsqueeze(1)
        q = (queries / math.sqrt(self.config.d_k)).expand(batch, -1, -1, -1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=p, scale=1.0)


def _inner(q: Tensor, k: Tensor) -> Tensor:
    """All inner products q_i·k_j. Width one is a plain product: no swarm of 1×1 matrix products for many narrow heads."""
    return q * k.mT if q.shape[-1] == 1 else q @ k.mT


def _mix(alpha: Tensor, v: Tensor) -> Tensor:
    """Σ_j α_ij v_j; few tokens and narrow values are summed without a matrix product per head."""
    if alpha.shape[-1] * v.shape[-1] <= 16:
        return (alpha.unsqueeze(-1) * v.unsqueeze(2)).sum(dim=3)
    return alpha @ v
