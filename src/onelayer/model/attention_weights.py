"""Attention weights α_ij from scores: softmax, Eq. (5), and what else can stand in its place.

sparsemax (Martins and Astudillo, 2016) is the Euclidean projection on the simplex, α_j = max(s_j − τ, 0) with Σ_j α_j = 1. For
any set A of tokens Σ_A (s_j − τ) ≤ Σ_j max(s_j − τ, 0) = 1, with equality where A is the support. Hence

    τ = max over A of (Σ_A s_j − 1)/|A| = max over k of (sum of the k largest scores − 1)/k,

which is never lower for higher scores, and moves by at most as much as the score that moves most.

Linear attention (Katharopoulos et al., 2020) has φ(q_i)·φ(k_j) in the place of the exponential of a score. All weights are
computed here, as for the others; the sums over j of φ(k_j) and φ(k_j) v_j that make it linear in n are not used.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .config import Attention


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
