"""The second derivatives of a form along one coordinate are a form: every three tokens of a head become one token.

A head's average A = Σ_t a_t w_t of values a_t = v_t + x·u_t has, with the keys k_t along that coordinate and covariance and third
cumulant under the weights w,

    ∂A = mean(u) + cov(a, k),    ∂∂A = 2·cov(u, k) + κ₃(a, k, k),

u_t the values' slopes along it. If t, s, r are three tokens drawn by the weights, and ā, ū, k̄ the means over these three,

    cov(u, k) is the mean of Σ_j (u_j − ū)(k_j − k̄)/2,    κ₃(a, k, k) the mean of (3/2)·Σ_j (a_j − ā)(k_j − k̄)²,

the sums over j = t, s, r (both are the unbiased estimates from three samples). w_t w_s w_r is the softmax of the scores added
up, so ∂∂T is a sum of softmax averages like T itself. Three tokens in any order are one token here: its score is raised by
log 3 if two of them are the same, by log 6 if none are.

Rounding. u_j − ū is computed as ((u_j − u_s) + (u_j − u_r))/3, so that what is lost is relative to these differences and not to
u; three operations. All in all a value is off by at most VALUE_STEPS·u times the same sum with the sizes of the differences.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ..common.outward import UP, U
from .form import Block, Form
from .slope_form import moved_by

SCORE_STEPS = 5  # rounded operations in a score: three biases, the logarithm and its own rounding, three keys
VALUE_STEPS = 32  # rounded operations in a value, at most 20
MOST_TOKENS = 40_000  # of all heads together: some hundred numbers are held for each


def curvature_form(
    form: Form, scale: tuple[float, ...], edge: float, coordinate: int
) -> tuple[Form, Float[Tensor, " out"]] | None:
    """(∂∂T_o/∂x_i² for that coordinate i, a bound on how far its floats are from the exact ones); None beyond MOST_TOKENS.

    |x̂| ≤ edge, x̂ = scale·(x − shift). Derivatives are those with respect to x, the form's coordinates stay x̂.
    """
    if sum(len(b.biases) * math.comb(b.biases.shape[1] + 2, 3) for b in form.blocks) > MOST_TOKENS:
        return None
    D, m = form.linear.shape
    by, blocks = scale[coordinate] * scale[coordinate], []
    error = torch.zeros(m, dtype=torch.float64)
    for block in form.blocks:
        moving = block.touched()[:, coordinate]
        if moving.any():
            own = Block(block.keys[moving], block.biases[moving], block.values[moving], block.slopes[moving])
            triples, off = _triples(own, by, coordinate, edge)
            blocks.append(triples)
            error = error + (moved_by(triples, edge, SCORE_STEPS) + off) * UP
    zero = torch.zeros(m, dtype=torch.float64), torch.zeros(D, m, dtype=torch.float64)
    return Form(*zero, tuple(blocks)), error * UP + 1e-300


def _triples(block: Block, by: float, i: int, edge: float) -> tuple[Block, Float[Tensor, " out"]]:
    """All triples of tokens of every head, and what their rounded values can cost; `by` is scale²."""
    n = block.biases.shape[1]
    some = torch.combinations(torch.arange(n), 3, with_replacement=True)  # [triple, three]
    same = (some[:, 0] == some[:, 1]).long() + (some[:, 1] == some[:, 2]).long()
    orders = torch.tensor([math.log(6), math.log(3), 0.0], dtype=torch.float64)[same]
    k, k_size = _centred(block.keys[..., i], some)  # [head, triple, three]
    v, v_size = _centred(block.values, some)  # [head, triple, three, out]
    u, u_size = _centred(block.slopes, some)  # [head, triple, three, coordinate, out]
    third, third_size = 1.5 * by * (k * k), 1.5 * by * k_size.square()
    values = (v * third[..., None]).sum(dim=2) + by * (u[:, :, :, i] * k[..., None]).sum(dim=2)
    slopes = (u * third[..., None, None]).sum(dim=2)
    size = (v_size * third_size[..., None]).sum(dim=2) + by * (u_size[:, :, :, i] * k_size[..., None]).sum(dim=2)
    size = size + edge * (u_size * third_size[..., None, None]).sum(dim=2).sum(dim=2)
    there = block.there[:, some].all(dim=2)
    lost = (VALUE_STEPS * U * size).masked_fill(~there[..., None], 0.0).amax(dim=1).sum(dim=0)
    # what underflows: some 1e-320, times factors that it may still meet
    largest = 1 + float(v_size.amax()) + edge * float(u_size.amax())
    tiny = 1e-300 * (1 + by) * (1 + edge) * (1 + float(k_size.amax())) ** 2 * largest * len(block.biases)
    keys, biases = block.keys[:, some].sum(dim=2), block.biases[:, some].sum(dim=2) + orders
    return Block(keys, biases, values, slopes), lost * UP + tiny


def _centred(t: Tensor, some: Tensor) -> tuple[Tensor, Tensor]:
    """(differences from the mean over each triple, a bound on the sizes of what they were computed from)."""
    a, b, c = (t[:, some[:, j]] for j in range(3))
    ab, ac, bc = a - b, a - c, b - c
    apart = torch.stack([ab + ac, bc - ab, -ac - bc], dim=2) / 3
    return apart, torch.stack([ab.abs() + ac.abs(), bc.abs() + ab.abs(), ac.abs() + bc.abs()], dim=2) / 3 * UP
