"""Fused GPU kernels (Triton): heads are evaluated in registers, and nothing per head is written to memory.

    quotients   Σ_h (N C)_h/(E G)_h: gates that share their keys (`shared_keys`), one reciprocal per head or, where products
                of two denominators cannot overflow, per two heads: a/p + b/q = (aq + bp)/(pq)
    averages    Σ_h Σ_t w_ht v_ht, w_h = softmax_t: gates with any keys (`averages`), and memory tokens, an eighth of which is
                looked at for a score near the largest

A program holds a tile of points × heads (or tokens); a layer with few points is split over several programs whose sums are
added in a fixed order, so that every run gives the same answers. `EXTRA` roundings per head cover what this adds to the bounds of
`layer/rounding/deployed`. Exponentials are the card's own 2^x in float32 (within 2 units in the last place, as reciprocals are
within 1), a polynomial in float64; `card` says what they are off by.

Without Triton, or off the GPU, torch evaluates the same expressions (`serve` says which). With TRITON_INTERPRET=1 in the
environment the kernels run on CPU tensors, slowly: the tests do that.
"""

import os
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ...layer.arithmetic import Arithmetic
from ...layer.rounding.online_softmax import Backend

EXTRA = 8  # roundings of the size of z_h that a kernel may add to every head
HELD_TOKENS = 16  # heads with at most this many tokens are held whole
TILES = {torch.float32: (128, 64), torch.float64: (64, 8)}  # points × heads: the fastest of some thirty on an H200
# points × tokens, tokens while looking for the largest, tiles in a row without a jump, warps: likewise
MEMORY_TILES = {torch.float32: (16, 32, 64, 4, 1), torch.float64: (32, 8, 64, 8, 1)}
MOST_SAMPLED = 2**19  # tokens; of more than these all are looked at
SAMPLED = 8  # one token of so many is looked at for the largest score
BUSY_PROGRAMS = 512  # programs at a time that keep a card busy


@cache
def _triton() -> Any:
    """The module with the kernels; None where Triton is absent."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return None
    from . import triton as triton_kernels

    return triton_kernels


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, on the CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def serve(x: Tensor) -> bool:
    """Whether the kernels can evaluate these points: on a GPU, without gradients, where Triton is installed."""
    return x.is_cuda and not (torch.is_grad_enabled() and x.requires_grad) and _triton() is not None


def quotients(E: Tensor, G: Tensor, N: Tensor, C: Tensor, paired: bool) -> Tensor:
    """Σ_h (N C)_h/(E G)_h [batch, out] for E [batch, u], G [u + 1, head], N [batch, v], C [v + 1, head·out].

    The last rows of G and C belong to a column of ones that E and N do not store.
    """
    H = G.shape[1]
    return _triton().quotients(E, G, N, C.reshape(len(C), H, -1), paired, _splits(E, H))


def averages(x: Tensor, keys: Tensor, biases: Tensor, values: Tensor, slopes: Tensor | None) -> Tensor:
    """Σ_h of softmax averages [batch, out]; shapes as in `averages.SoftmaxAverages`."""
    T, H = biases.shape
    if T <= HELD_TOKENS:
        return _triton().gates(x, keys, biases, values, slopes, _splits(x, H))
    parts = [
        _triton().memory(x, keys[:, :, h], biases[:, h], values[:, h], None if slopes is None else slopes[:, :, h])
        for h in range(H)
    ]
    return torch.stack(parts).sum(dim=0)


def summands(heads: int, dtype: torch.dtype) -> int:
    """How often, at most, a term of the sum over this many heads is rounded on a GPU: a tile adds up its columns one by one.

    Each column of a tile sums heads/H of them, the H columns are summed, and at most heads/(4H) programs share a point.
    """
    if _triton() is None:
        return heads
    H = TILES[dtype][1]
    return min(heads, -(-heads // H) + H + max(1, heads // (4 * H))) + EXTRA


KERNELS = Backend("our kernels on an NVIDIA card", {"float64": 10.0, "float32": 10.0}, shift_roundings=1.3)


def card(arithmetic: Arithmetic) -> Arithmetic:
    """The arithmetic of the kernels on a GPU: the lemma of `layer/rounding/online_softmax`, with one shift for all tokens.

    With t = score − shift, exponents are off by 1.3u|t| at most: one rounding of t log2 e, and log2 e itself, within 0.23u.
    |t| is at most 11.2 more than with the largest score as shift: e^t is below `LATE` and a sum of ones, for `MOST_SAMPLED`
    tokens. 2^x is within 4u in float32; in float64 within 2.9u for the polynomial and 2.2u for its rounding: 1.3·11.2 + 5.1 < 20.
    """
    return KERNELS.arithmetic(arithmetic, tokens=0)  # nothing is rescaled, whatever their number


def _splits(x: Tensor, heads: int) -> int:
    """Programs that share the heads of one tile of points."""
    P, H = TILES[x.dtype]
    return max(1, min(BUSY_PROGRAMS // -(-max(len(x), 1) // P), heads // (4 * H)))
