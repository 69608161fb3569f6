"""Sums of smooth maxima: what a layer of max-heads is short of, and what rounding does to it.

A max-head over a set S of scalar tokens outputs s_S(x) = Σ_j w_j x_j, w = softmax(βx_j, j ∈ S). For f = Σ_S c_S max_S two
bounds on |Σ_S c_S s_S − f| are known, with W Lambert's function:

    any f         Σ_S |c_S| W((|S|−1)/e)/β, since max_S − W((|S|−1)/e)/β ≤ s_S ≤ max_S
    a rank        R_n/β, if Σ_S c_S max_S is the k-th smallest of n numbers by the maximum–minimums identity,
                  c_S = (−1)^(|S|−k) C(|S|−1, k−1), S running through all sets of at least k tokens.

Proof of the second. Let G_j be independent Gumbel variables and u_j = βx_j + G_j. Softmax over S is the law of the index of
the largest u_j, j ∈ S, so that by the identity, applied to the order of the u_j, Σ_S c_S s_S = E[x_J], J being the index of
the k-th smallest u. The k-th smallest of the u_j lies between k-th smallest βx_j + min G and that + max G, and so does
u_J = βx_J + G_J: hence |βx_J − βx_(k)| ≤ max G − min G, whose expectation is

    R_n = ln n − Σ_m (−1)^(m−1) C(n, m) ln m.                 (E max of m Gumbel variables is ln m + Euler's constant)

Rounding. β is a power of two, so the scores βx_j are exact. The softmax subtracts the largest, d_j = fl(βx_j − max), and the
exponentials are off by factors e^(η_j), |η_j| ≤ H: H = a·u + log(1 + κu), where a is the distance from which on exp is 0. With
the values written as x_j = max_S + d_j/β the weights' errors count for little,

    |Σ_j (w'_j − w_j) d_j|/β ≤ (e^(2H) − 1) W((|S|−1)/e)/β.

What is left is relative: the normaliser, the division, products and sum of |S| tokens, (2|S| + 8)u max|x|, then the sum over
all heads in any order. Nothing grows with β.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from flint import arb, ctx

from ...common.outward import UP_MANY
from ...layer.affine_layer import GAP
from ...layer.arithmetic import Arithmetic, arithmetic_of
from ...layer.heads import shortfall
from ...layer.reading import Reading, form_of_model
from ...model.transformer import SingleLayerTransformer
from ..lemma import ROOM, Lemma

BITS = 400  # of the alternating sum R_n, whose terms grow like 2^n


@dataclass(frozen=True)
class Combination:
    """f_o(x) = Σ_S factors_So max_S(x) (min_S if `lowest`) over sets S of coordinates; a set of one is that coordinate.

    `short` bounds, per output and in units of 1/β, how far smooth maxima are off; `lipschitz` is f's in the max-norm.
    """

    sets: np.ndarray  # [set, coordinate], bool
    factors: np.ndarray  # [set, out]
    short: np.ndarray  # [out]
    lipschitz: np.ndarray  # [out]
    lowest: bool = False


def expected_range(n: int) -> float:
    """R_n, rounded up: the expected range of n independent Gumbel variables."""
    before, ctx.prec = ctx.prec, BITS + 2 * n
    try:
        total = arb(n).log()
        for m in range(1, n + 1):
            total -= (-1) ** (m - 1) * math.comb(n, m) * arb(m).log()
        return math.nextafter(float(total.upper()), math.inf)
    finally:
        ctx.prec = before


def any_shortfall(sets: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Σ_S |c_S| W((|S|−1)/e), per output: the bound for any combination."""
    short = np.array([shortfall(int(size)) for size in sets.sum(axis=1)])
    return np.asarray(np.abs(factors).T @ short * UP_MANY)


def prove_maxima(
    model: SingleLayerTransformer, places: tuple[int, ...], f: Combination, ends: tuple[float, float]
) -> Lemma | None:
    """|T − f| for all x_j between the ends, from the weights; None if they are not those of the combination.

    x̂ = (x − shift)·scale must be the same at every token, with a power of two as scale.
    """
    low, high = ends
    middle, scale = float(model.shift.flatten()[0]), float(model.scale.flatten()[0])
    arithmetic = arithmetic_of(model.W_E.dtype)
    edge = max(abs(low - middle), abs(high - middle)) * scale * (1 + 2 * arithmetic.u + 1e-12)
    reading = form_of_model(model, places, edge)
    if reading is None or math.frexp(scale)[0] != 0.5:
        return None
    if len(set(reading.frame.shift)) > 1 or len(set(reading.frame.scale)) > 1 or len(reading.hinges):
        return None
    span, shift = 1 / reading.frame.scale[0], reading.frame.shift[0]
    found = _combination(reading)
    if found is None:
        return None
    beta, own = found
    wanted = {mask.tobytes(): row * span for mask, row in zip(f.sets, f.factors, strict=True) if row.any()}
    same = own.keys() == wanted.keys() and all(np.array_equal(own[key], row) for key, row in wanted.items())
    constant = np.array([math.fsum(column) for column in f.factors.T]) * shift
    exact = np.array_equal(reading.form.bias.numpy(), constant) and set(constant.tolist()) <= {0.0, shift}
    turned = math.isfinite(beta) and (beta < 0) != f.lowest  # one number is its own maximum and minimum
    if not (same and exact) or turned:
        return None
    rounding = _rounding(reading, f, span, abs(beta), arithmetic)
    short = float((f.short * span / abs(beta)).max()) * UP_MANY
    return Lemma(
        "smooth maxima of one sharpness: short of the exact ones as the Plackett–Luce law of the order says, or each by"
        " W((|S|−1)/e)/β; scores are exact (the sharpness is a power of two), the rest of the rounding is relative",
        {"smooth maxima": short, "rounding": float(rounding.max())},
    )


def _combination(reading: Reading) -> tuple[float, dict[bytes, np.ndarray]] | None:
    """(β, set → its factors) of the layer's heads; None if one is no max-head, or sharpnesses differ."""
    n, sharpness, own = reading.form.dimension, set[float](), dict[bytes, np.ndarray]()
    for j, row in enumerate(reading.form.linear.numpy()):
        if row.any():
            own[(np.arange(n) == j).tobytes()] = row
    for block in reading.form.blocks:
        keys, slopes = block.keys.numpy(), block.slopes.numpy()
        if block.biases.any() or block.values.any() or not ((keys != 0).sum(axis=2) == 1).all():
            return None
        at = (keys != 0).argmax(axis=2)  # [head, token]: the coordinate of the token
        sharpness |= set(np.take_along_axis(keys, at[..., None], axis=2).flatten().tolist())
        for head in range(len(keys)):
            mask = np.zeros(n, dtype=bool)
            mask[at[head]] = True
            rows = slopes[head, np.arange(len(at[head])), at[head]]  # [token, out]
            alone = np.abs(slopes[head]).sum(axis=(0, 1)) == np.abs(rows).sum(axis=0)
            if mask.sum() < len(at[head]) or not (rows == rows[0]).all() or not alone.all() or mask.tobytes() in own:
                return None
            own[mask.tobytes()] = rows[0]
    if len(sharpness) > 1 or any(math.frexp(abs(beta))[0] != 0.5 for beta in sharpness):
        return None
    return (sharpness.pop() if sharpness else math.inf), own


def _rounding(reading: Reading, f: Combination, span: float, beta: float, a: Arithmetic) -> np.ndarray:
    """|computed − T| per output, that of x̂ included."""
    u, gap = a.u, GAP[a.dtype]
    H = gap * u + 2 * a.exp_error
    total = np.abs(f.factors).sum(axis=0) * span * reading.edge + np.abs(reading.form.bias.numpy())
    moved = 2 * u * reading.edge * span * f.lipschitz  # x̂ is off by u|x − shift|, scaling is exact
    reach = torch.full((reading.form.dimension,), reading.edge, dtype=torch.float64)
    found = reading.program.beside(reach).numpy() + moved
    for head in reading.program.heads:  # each has one value, x̂
        size = head.own.shape[1]
        off = (2 * size + 8) * u * reading.edge + math.expm1(2 * H) * shortfall(size) / beta
        found = found + (head.sizes * reading.edge + head.moved * off).sum(dim=(0, 1)).numpy()
    found = found * ROOM
    return np.asarray(found if (total < a.overflow / 8).all() else np.full_like(found, np.inf))
