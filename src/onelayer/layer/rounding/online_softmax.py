"""Attention in any order and any blocking: one lemma, and the programs that it covers.

Most programs do not compute exp(s_t − max s) for all tokens and then add up. They go through the tokens in blocks, with the
largest score so far: when a block brings a larger one, the two partial sums are rescaled (*online softmax*).

    m' = max(m, scores of the block),  α = exp(m − m'),  l ← α l + Σ_t e_t,  o ← α o + Σ_t e_t v_t,  e_t = exp(s_t − m'),

and z = o/l at the end. Blocks may also be merged as a tree. Let at most R rescalings lie between a block and the end; u, κ,
d_t and a_t as in `deployed.py`, and every operation rounded.

**Lemma.** Whatever the blocks, their order, the order of the sums inside them, and whether multiplications and additions are
fused, the computed average is the exact one of exponentials that are off by factors 1 + η_t, |η_t| ≤ E_t,

    E_t = e^(d_t + u·a_t)(1 + κu)^(1 + R) − 1,

up to what sums and the division cost there, R·u(|z| + Σ_t w_t |v_t|), and 4T(1 + R) times the smallest normal number.

Proof. The *same computed* factor α multiplies l and o (torch's flash and memory-efficient kernels read it from one variable), so
apart from the rounding of these products o and l are sums of ê_t v_t and ê_t with one and the same ê_t: the computed e_t times
the computed factors that come after it. What is computed for exp(s_t − m) has the exponent (s_t − m)(1 + δ), |δ| ≤ u, and a
relative error of κu; likewise every α. The differences s_t − m_1, m_1 − m_2, … all are at most 0, and add up to −a_t: so do their
errors, to at most u·a_t, however many there are. Each of the 1 + R exponentials adds its κu. A factor that all tokens share, such
as an error of the largest score, cancels in o/l. Rounding is relative, so a partial sum may be taken with all the factors that
come after it: then the additions are those of the sums Σ ê_t and Σ ê_t v_t in some order, which `deployed.any_order` bounds, and
each product with α costs u times a partial sum. A quotient is two operations at most, a reciprocal and a product. An exponential
below the smallest normal number ν may be off by ν instead, and so may a product with it; the sums are at most T and T·max |v|. ∎

`Arithmetic` holds R as `rescalings`, and κ as `exp_ulps`; R = 0 is softmax in one piece. A program that scales scores once more,
by log2 e say, rounds each of them once more: `score_roundings`.

What is assumed of a program is κ, the smallest block, and IEEE arithmetic; `benchmarks/measure/backends.py` measures κ and hunts
for violations. Where a program's own source names the error of its exponential, that is assumed, otherwise 2 units.
"""

from dataclasses import dataclass, replace

import torch

from ...model.config import Attention
from ...model.transformer import SingleLayerTransformer
from ..arithmetic import Arithmetic, arithmetic_of


@dataclass(frozen=True)
class Backend:
    """A program that evaluates attention, and what is assumed of it."""

    name: str
    exp_ulps: dict[str, float]  # by what it computes in: error of its exponential, in units in the last place
    block: int = 0  # tokens of a block, at least; 0: no sum is ever rescaled
    shift_roundings: float = 1.0
    score_roundings: float = 0.0  # in units of u·`coarseness`, as everything but `exp_ulps`
    coarseness: float = 1.0  # products and sums are within this many u, instead of one
    vanishing: float = 1.0  # what is below this many times the smallest normal number may become 0

    def arithmetic(self, own: Arithmetic, tokens: int) -> Arithmetic:
        """The arithmetic of a layer of this many tokens, masked ones included, that this program evaluates."""
        return replace(
            own,
            u=own.u * self.coarseness,
            smallest=own.smallest * self.vanishing,
            exp_ulps=self.exp_ulps["float64" if own.dtype == torch.float64 else "float32"] / self.coarseness,
            shift_roundings=self.shift_roundings,
            score_roundings=self.score_roundings,
            rescalings=-(-tokens // self.block) - 1 if self.block else 0,
        )


# torch's flash attention on a CPU takes blocks of 512 keys. Its float32 exponential is called exp_u20, for 20 units; it flushes
# what is below √2 times the smallest normal number. Its other form, `math`, is softmax in one piece.
FUSED = Backend("torch's fused kernels on a CPU", {"float64": 2.0, "float32": 20.0}, block=64, vanishing=2.0)
# ONNX Runtime: MLAS's exponential in float32, Eigen's in float64. Softmax is one operator.
ONNX_RUNTIME = Backend("ONNX Runtime on a CPU", {"float64": 2.0, "float32": 2.0})
# torch on an NVIDIA card, explicit softmax or `math`: CUDA documents expf within 2 units, exp within 1.
CUDA = Backend("torch on an NVIDIA card", {"float64": 2.0, "float32": 2.0})
# Memory-efficient attention there, float32 alone: a product is three of TF32, which leaves out 2^-20 of it; scores are multiplied
# by log2 e; blocks have 64 or 128 keys; CUDA documents exp2f within 2 units.
MEMORY_EFFICIENT = Backend(
    "torch, memory-efficient, on an NVIDIA card",
    {"float32": 2.0},
    block=64,
    score_roundings=2.0,
    coarseness=16.0,
    vanishing=2.0,
)


def arithmetic_of_model(model: SingleLayerTransformer) -> Arithmetic:
    """The arithmetic in which the model itself runs on a CPU: that of its dtype, or of torch's fused kernels in it."""
    own, c = arithmetic_of(model.W_E.dtype), model.config
    return FUSED.arithmetic(own, c.all_tokens) if c.attention == "fused" else own


def attention_assumed(attention: Attention) -> str:
    """What a certificate assumes of the attention that is evaluated."""
    if attention == "fused":
        return f"attention by {FUSED.name}, flash or math, in blocks of at least {FUSED.block} tokens"
    return f"explicit {attention} attention"
