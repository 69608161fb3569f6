"""Symmetric targets without positional codes: every data token is treated alike, so T does not change under permutation.

Stream of a data token: (x_j, 1, 0, 0); anchor token (0, 0, 1, 0); output token (0, 0, 0, 1). A head's score on token j is
β(b − x_j), with one b for all tokens. Two kinds:

    symmetric gate   the anchor competes with score 0; outputs c w_0 + u Σ_j x_j w_j, w_0 = 1/(1 + e^(βb) Σ_j e^(−βx_j))
    symmetric mean   the anchor is masked; outputs Σ_j x_j w_j: the mean for β = 0, a smooth maximum or minimum for large |β|

Their values are solved for. Sums and power sums are limits of such heads and the maximum is one sharp head; it is not
claimed that every symmetric function can be reached this way. In floating point permuted inputs agree up to the order of
sums.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..approximation import Approximation, Facts
from ..common.errors import InputError
from ..layer.assemble.frame import Frame, blank, write_identity
from ..layer.heads import MASKED
from ..model.config import LayerConfig
from ..model.transformer import SingleLayerTransformer
from ..proof.decision import decide
from ..target.points import fitting_points
from ..target.samples import require_function
from ..target.target import Target
from .solved.values import Problem, Solution, solve

X, DATA, ANCHOR, OUTPUT = range(4)  # coordinates of the stream
NOTE = "no positional codes: permuting the inputs does not change T"


@dataclass(frozen=True)
class SymmetricHeads:
    """Heads of both kinds; `anchored` tells gates from means."""

    sharpness: Float[Tensor, " head"]
    offsets: Float[Tensor, " head"]
    anchored: Bool[Tensor, " head"]

    def __len__(self) -> int:
        return len(self.sharpness)

    def features(self, x: Float[Tensor, "batch token"]) -> Float[Tensor, "batch feature"]:
        """Σ_j x_j w_j of every head, and w_0 of the gates."""
        scores = self.sharpness[:, None] * (self.offsets[:, None] - x[:, None, :])
        anchor = torch.where(self.anchored, 0.0, -torch.inf)[None, :, None].expand(len(x), -1, 1)
        w = torch.softmax(torch.cat([anchor, scores], dim=-1), dim=-1)
        slopes = (w[..., 1:] * x[:, None, :]).sum(dim=-1)
        return torch.cat([slopes, w[:, self.anchored, 0]], dim=1)

    def columns(self, x: Float[Tensor, "batch token"]) -> Float[Tensor, "batch column"]:
        """The columns of the linear problem: 1, then the features."""
        return torch.cat([torch.ones(len(x), 1, dtype=x.dtype), self.features(x)], dim=1)


def symmetric_heads(tokens: int, size: int, tolerance: float, spread: float) -> SymmetricHeads:
    """The mean, one sharp maximum and minimum, and `size` means and gates of moderate sharpness."""
    sharp = max(40 * math.log(max(tokens, 2)) * spread / tolerance, 1.0)  # a smooth maximum falls short by < ln(n)/β
    mild = [s * 2.0**k for k in range(-1, size - 1) for s in (-1.0, 1.0)]
    means = [0.0, sharp, -sharp, *mild]
    gates = [(b, o) for b in mild for o in (-0.6, -0.2, 0.2, 0.6)]
    sharpness = torch.tensor([*means, *(b for b, _ in gates)], dtype=torch.float64)
    offsets = torch.tensor([0.0] * len(means) + [o for _, o in gates], dtype=torch.float64)
    anchored = torch.tensor([False] * len(means) + [True] * len(gates))
    return SymmetricHeads(sharpness, offsets, anchored)


def symmetric_approximation(
    target: Target,
    tolerance: float,
    *,
    units: int | None = None,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> Approximation:
    """A layer without positional codes for a symmetric target, values solved; useless heads are dropped."""
    started = time.perf_counter()
    require_function(target.data, "symmetric=True")
    require_symmetric(target)
    D = target.dimension

    def sample(count: int, draw_seed: int) -> tuple[Tensor, Tensor]:
        unit = fitting_points(count, D, draw_seed)
        return unit - 0.5, torch.from_numpy(target(target.domain.points(unit.numpy())))

    pool = sample(16_000, 99 + seed)
    spread = float(pool[1].max() - pool[1].min()) or 1.0
    best: tuple[SymmetricHeads, Solution] | None = None
    for size in range(1, 7):
        heads = _useful(symmetric_heads(D, size, tolerance, spread), sample(4000, 7 + seed), units, tolerance / 10)
        solution = solve(Problem(heads.columns, *sample(max(1000, 12 * len(heads)), 7 + seed), *pool))
        if best is None or solution.observed < best[1].observed:
            best = heads, solution
        if best[1].observed <= 0.9 * tolerance:
            break
    assert best is not None
    heads, solution = best
    model = assemble_symmetric(heads, solution.coefficients, target)
    facts = Facts(
        method="solved",
        construction="symmetric",
        layout="token",
        heads=_kinds(heads),
        units=len(heads),
        total=solution.total,
        seed=seed,
        notes=(NOTE,),
    )
    certificate = decide(model, target, tolerance, facts.places, seed=seed, progress=progress)
    facts = replace(facts, seconds=time.perf_counter() - started)
    return Approximation(model, target, certificate, facts, target.domain, target.shape, target.output_shape)


def assemble_symmetric(
    heads: SymmetricHeads, coefficients: Float[Tensor, "feature out"], target: Target
) -> SingleLayerTransformer:
    """The weights: no codes, the same embedding at every position."""
    m, H = coefficients.shape[1], len(heads)
    config = LayerConfig(
        tokens=target.dimension,
        features_in=1,
        features_out=m,
        d_model=max(4, m),
        heads=H,
        d_k=1,
        d_v=m,
        ffn_width=2 * m,
        code="none",
        anchor_tokens=1,
        output_tokens=1,
        residual=False,
        readout="output",
    )
    low, high = target.domain.lower[0], target.domain.upper[0]
    frame = Frame((low + (high - low) / 2,) * target.dimension, (1 / (high - low),) * target.dimension)
    model = blank(config, frame)
    gates = heads.anchored
    with torch.no_grad():
        model.W_E[0, X] = model.b_E[DATA] = 1.0
        model.S[0, ANCHOR] = model.S[1, OUTPUT] = 1.0
        model.W_Q[:, [DATA, ANCHOR, OUTPUT], 0] = 1.0
        model.W_K[:, X, 0] = -heads.sharpness
        model.W_K[:, DATA, 0] = heads.sharpness * heads.offsets
        lowest = -heads.sharpness.abs() * (heads.offsets.abs() + 0.51)  # at most the score of any data token
        model.W_K[:, ANCHOR, 0] = torch.where(gates, 0.0, lowest - MASKED)
        model.W_K[:, OUTPUT, 0] = torch.where(gates, -MASKED, lowest - MASKED)
        model.W_V[:, X] = coefficients[1 : 1 + H]
        model.W_V[gates, ANCHOR] = coefficients[1 + H :]
        model.W_O[:, :m] = torch.eye(m, dtype=torch.float64).repeat(H, 1)
        write_identity(model, m, coefficients[0])
    return model


def _useful(heads: SymmetricHeads, sample: tuple[Tensor, Tensor], units: int | None, enough: float) -> SymmetricHeads:
    """The heads that orthogonal matching picks one after another, until the fit is good `enough` or `units` are used."""
    x, y = sample
    features = heads.features(x)
    H = len(heads)
    columns = [[k] for k in range(H)]
    for i, k in enumerate(heads.anchored.nonzero().flatten().tolist()):
        columns[k].append(H + i)
    basis = torch.ones(len(x), 1, dtype=x.dtype) / math.sqrt(len(x))
    residual = y - basis @ (basis.T @ y)
    scale = float(residual.abs().max()) or 1.0
    chosen: list[int] = []
    while len(chosen) < min(units or H, H) and float(residual.abs().max()) > enough:
        fresh = features - basis @ (basis.T @ features)
        norms = fresh.norm(dim=0)
        usable = norms > 1e-9 * features.norm(dim=0)
        gain = ((fresh / norms.clamp_min(1e-300)).T @ residual).square().sum(dim=1) * usable
        per_head = torch.tensor([float(gain[c].mean()) for c in columns])
        per_head[chosen] = 0.0
        k = int(per_head.argmax())
        if float(per_head[k]) <= 1e-26 * scale**2 * len(x):
            break
        chosen.append(k)
        added = fresh[:, [c for c in columns[k] if usable[c]]]
        Q, _ = torch.linalg.qr(added)
        Q = Q - basis @ (basis.T @ Q)
        basis = torch.cat([basis, torch.nn.functional.normalize(Q, dim=0)], dim=1)
        residual = residual - basis @ (basis.T @ residual)
    kept = sorted(chosen) or [0]
    return SymmetricHeads(heads.sharpness[kept], heads.offsets[kept], heads.anchored[kept])


def _kinds(heads: SymmetricHeads) -> tuple[tuple[str, int], ...]:
    """(kind, count) in head order: means come before gates."""
    gates = int(heads.anchored.sum())
    return tuple((k, n) for k, n in (("symmetric mean", len(heads) - gates), ("symmetric gate", gates)) if n)


def require_symmetric(target: Target) -> None:
    """One interval for all tokens of one feature, no condition, and equal values at permuted points."""
    d = target.domain
    if target.shape[1] != 1 or d.where or len(set(zip(d.lower, d.upper, strict=True))) != 1:
        raise InputError(
            "a symmetric target", f"domain {d}", "use one interval for every token, one feature, no `where`"
        )
    rng = np.random.default_rng(0)
    x = d.points(rng.random((200, d.dimension)))
    y = target(x)
    moved = np.stack([row[rng.permutation(d.dimension)] for row in x])
    gap = float(np.abs(target(moved) - y).max())
    if gap > 1e-9 * (float(np.ptp(y)) or 1.0):
        raise InputError(
            "a symmetric target",
            f"values differ by {gap:.3g} under a permutation",
            "give a function that no permutation changes",
        )
