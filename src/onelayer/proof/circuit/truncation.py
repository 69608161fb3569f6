"""Heads of smaller rank (Section II.A), and a proved bound on what that changes.

The circuits of a head are P = L R, with L = W^Q or W^V (its bias as one more row) and R = (W^K)ᵀ or W^O. Truncated to rank r
they are P' = U_r S_r V_rᵀ, and ‖P − P'‖ is the next singular value σ_(r+1), up to rounding. With ‖e‖ ≤ E for all tokens, e_i
the token that asks, and ẽ = (e, 1) where there are biases:

    OV   the weights α stay and Σ_j α_j ẽ_j is a mean of tokens:  |Δa| ≤ Σ_h Ẽ σ_(r+1)
    QK   scores move by at most δ = ‖ẽ_i‖ E σ_(r+1)/√d_k, so the weights by at most tanh(δ/2) in total variation (lemma):
         |Δa| ≤ Σ_h tanh(δ/2) 2Ẽ ‖L R‖ of the OV circuit

and |ΔT| ≤ |Δa| (1 + s‖W^1‖ ‖W^2‖) ‖W^R column‖, s the steepest slope of the activation. All norms are bounded in balls from the
stored weights of both layers, so that nothing rests on how the singular values were computed.

Lemma. Let a set of tokens have weight p. If no score moves by more than δ, its odds grow by e^(2δ) at most, and p' − p is
largest for p = 1/(1 + e^δ), where it is tanh(δ/2).
"""

import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from flint import arb, arb_mat, ctx

from ...common.checks import require_choice, require_whole
from ...common.errors import InputError
from ...model.activations import activation_of
from ...model.transformer import SingleLayerTransformer
from ...target.domain import Domain
from ..witness import PRECISION

SQUARINGS = 6  # of PᵀP: its norm is then known within a factor of n^(1/2^7)

Circuit = Literal["QK", "OV"]


@dataclass(frozen=True)
class Truncation:
    """The layer with truncated heads, the largest singular value that was cut off, and a bound on |T' − T|."""

    model: SingleLayerTransformer
    cut_off: float
    bound: float


def truncated(model: SingleLayerTransformer, domain: Domain, circuit: Circuit, rank: int) -> Truncation:
    """Every head's QK or OV circuit cut down to a rank; the bound is about the real functions of both on the domain."""
    c = model.config
    require_choice("circuit", circuit, ("QK", "OV"))
    require_whole("rank", rank, 0, c.d_k if circuit == "QK" else c.d_v)
    if c.norm != "none":
        raise InputError("a layer without LayerNorm", f"norm={c.norm!r}", "choose a layer with norm='none'")
    c.require_one_length()
    if c.attention != "local":  # a window leaves a softmax; other weights are no mean, or no function of scores
        c.require_softmax("a bound on truncated heads")
    fewer, cut = _with_rank(model, circuit, rank)
    with ctx.workprec(PRECISION):
        own, new = (_Norms(m) for m in (model, fewer))
        tokens = own.tokens(domain)
        e, asking = _largest(tokens), _largest(tokens[c.read_rows])
        wide, asking = (own.with_bias(t) for t in (e, asking))
        apart = [_norm(P - Q) for P, Q in zip(own.circuits(circuit), new.circuits(circuit), strict=True)]
        if circuit == "OV":
            moved = sum((wide * n for n in apart), arb(0))
        else:
            shifts = [asking * e * n / arb(c.d_k).sqrt() / 2 for n in apart]
            written = [2 * wide * _norm(P) for P in own.circuits("OV")]
            moved = sum((s.tanh() * v for s, v in zip(shifts, written, strict=True)), arb(0))
        bound = moved * own.behind()
        return Truncation(fewer, cut, float(bound.upper()) * (1 + 2.0**-50))


def _factors(model: SingleLayerTransformer, circuit: Circuit) -> tuple[torch.Tensor, torch.Tensor]:
    """(L, R) of all heads, a bias as the last row of L."""
    c, left = model.config, circuit[0]
    name = {"Q": "Q", "O": "V"}[left]
    L = getattr(model, f"W_{name}").detach().double()
    if c.projection_bias:
        L = torch.cat([L, getattr(model, f"b_{name}").detach().double().unsqueeze(1)], dim=1)
    R = model.W_K.mT if circuit == "QK" else model.W_O.reshape(c.heads, c.d_v, c.d_model)
    return L, R.detach().double()


def _with_rank(model: SingleLayerTransformer, circuit: Circuit, rank: int) -> tuple[SingleLayerTransformer, float]:
    """The layer whose circuits have this rank, and the largest singular value that it lacks."""
    c, fewer = model.config, copy.deepcopy(model)
    L, R = _factors(model, circuit)
    U, S, V = torch.linalg.svd(L @ R, full_matrices=False)
    root = S[:, None, :rank].sqrt()
    left, right = torch.zeros_like(L), torch.zeros_like(R)
    left[:, :, :rank], right[:, :rank] = U[:, :, :rank] * root, root.mT * V[:, :rank]
    name = "Q" if circuit == "QK" else "V"
    with torch.no_grad():
        getattr(fewer, f"W_{name}").copy_(left[:, : c.d_model])
        if c.projection_bias:
            getattr(fewer, f"b_{name}").copy_(left[:, -1])
        if circuit == "OV":
            fewer.W_O.copy_(right.reshape(-1, c.d_model))
        else:
            fewer.W_K.copy_(right.mT)
            if c.projection_bias:
                fewer.b_K.zero_()  # adds the same to all scores of a row
    return fewer, float(S[:, rank].max()) if rank < S.shape[1] else 0.0


class _Norms:
    """Norms of what a layer stores, in balls."""

    def __init__(self, model: SingleLayerTransformer) -> None:
        self.model, self.config = model, model.config

    def circuits(self, circuit: Circuit) -> list[arb_mat]:
        """P = L R of every head."""
        return [_matrix(L) * _matrix(R) for L, R in zip(*_factors(self.model, circuit), strict=True)]

    def tokens(self, domain: Domain) -> list[arb]:
        """‖e‖ at most, over the whole domain, for every token."""
        m, c = self.model, self.config
        W, sizes = _matrix(m.W_E), []
        lower, upper = (np.array(t).reshape(c.tokens, c.features_in).tolist() for t in (domain.lower, domain.upper))
        for j in range(c.tokens):
            ends = [
                [
                    (arb(x) - arb(s)) * arb(f)
                    for x, s, f in zip(t[j], m.shift[j].tolist(), m.scale[j].tolist(), strict=True)
                ]
                for t in (lower, upper)
            ]
            middle = arb_mat([[(a + b) / 2 for a, b in zip(*ends, strict=True)]]) * W + _matrix(m.b_E)
            middle = middle + _matrix(m.P[j]) if c.code != "none" else middle
            reach = [
                abs(b - a) / 2 * _length(W[f, k] for k in range(c.d_model))
                for f, (a, b) in enumerate(zip(*ends, strict=True))
            ]
            sizes.append(_length(middle.entries()) + sum(reach, arb(0)))
        sizes += [_length(_matrix(token).entries()) for token in (m.S if c.special_tokens else ())]
        return sizes

    def with_bias(self, e: arb) -> arb:
        """‖ẽ‖ from ‖e‖."""
        return (e * e + 1).sqrt() if self.config.projection_bias else e

    def behind(self) -> arb:
        """How much larger a change of the attention's output can become in an output."""
        m, c = self.model, self.config
        steep = arb(activation_of(c).steepest) * _norm(_matrix(m.W_1)) * _norm(_matrix(m.W_2))
        columns = [_length(map(arb, column)) for column in m.W_R.detach().double().T.tolist()]
        return (steep + (1 if c.residual else 0)) * _largest(columns)


def _matrix(t: torch.Tensor) -> arb_mat:
    rows = t.detach().double()
    return arb_mat([[arb(v) for v in row] for row in (rows.tolist() if rows.ndim == 2 else [rows.tolist()])])


def _length(entries: object) -> arb:
    return sum((v * v for v in entries), arb(0)).sqrt()  # type: ignore[attr-defined]


def _largest(values: list[arb]) -> arb:
    return max((v.abs_upper() for v in values), default=arb(0))


def _norm(P: arb_mat) -> arb:
    """An upper bound of the spectral norm: ‖P‖^(2^(k + 1)) = ‖(PᵀP)^(2^k)‖ ≤ its Frobenius norm."""
    G = P.transpose() * P if P.nrows() >= P.ncols() else P * P.transpose()
    for _ in range(SQUARINGS):
        G = G * G
    size = _length(G.entries()).abs_upper()
    return size.root(2 ** (SQUARINGS + 1)).abs_upper() if size > 0 else arb(0)
