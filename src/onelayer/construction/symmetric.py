"""Symmetric targets without positional codes: heads that see sums over all tokens, their values solved for."""

import itertools
import math

import numpy as np
import torch
from torch import Tensor

from ..common.errors import InputError
from ..common.numbers import at_least
from ..layer.symmetric import SymmetricHeads, SymmetricLayer
from ..target.points import fitting_points
from ..target.samples import require_function
from ..target.target import Target
from .request import POOL_GOAL, SEARCH_TIME, Certify, Found, Request
from .solved.values import Problem, Solution, solve

NOTE = "no positional codes: permuting the inputs does not change T"


def symmetric_heads(tokens: int, size: int, tolerance: float, spread: float, sharp: bool = True) -> SymmetricHeads:
    """The mean, `size` means and gates of moderate sharpness, and one `sharp` maximum and minimum."""
    most = max(40 * math.log(max(tokens, 2)) * spread / tolerance, 1.0)  # a smooth maximum falls short by < ln(n)/β
    mild = [s * 2.0**k for k in range(-1, size - 1) for s in (-1.0, 1.0)]
    means = [0.0, *((most, -most) if sharp else ()), *mild]
    gates = [(b, o) for b in mild for o in (-0.6, -0.2, 0.2, 0.6)]
    sharpness = torch.tensor([*means, *(b for b, _ in gates)], dtype=torch.float64)
    offsets = torch.tensor([0.0] * len(means) + [o for _, o in gates], dtype=torch.float64)
    anchored = torch.tensor([False] * len(means) + [True] * len(gates))
    return SymmetricHeads(sharpness, offsets, anchored)


def symmetric_layer(request: Request, certify: Certify | None = None) -> Found:
    """A layer without positional codes for a symmetric target, values solved; useless heads are dropped."""
    target, seed, tolerance = request.target, request.seed, request.tolerance
    require_function(target.data, "symmetric=True")
    require_symmetric(target)
    D = target.dimension

    def sample(count: int, draw_seed: int) -> tuple[Tensor, Tensor]:
        unit = fitting_points(count, D, draw_seed)
        ends = ((unit == 0) | (unit == 1)).sum(dim=1)
        unit = unit[(ends <= 1) | (ends == D)]  # few heads, many symmetries: more edges would weigh too much
        return unit - 0.5, torch.from_numpy(target(target.domain.points(unit.numpy())))

    pool = sample(16_000, 99 + seed)
    spread = float(pool[1].max() - pool[1].min()) or 1.0
    best: tuple[SymmetricHeads, Solution] | None = None
    budget = request.budget.share(SEARCH_TIME)
    for size, sharp in itertools.product(range(1, 7), (False, True)):  # sharp heads make proofs expensive
        every = symmetric_heads(D, size, tolerance, spread, sharp)
        heads = _useful(every, sample(4000, 7 + seed), request.units, tolerance / 10)
        solution = solve(
            Problem(heads.features, *sample(max(1000, 12 * len(heads)), 7 + seed), *pool), over=budget.over
        )
        if best is None or solution.observed < best[1].observed:
            best = heads, solution
        if best[1].observed <= POOL_GOAL * tolerance or budget.over():
            break
    assert best is not None
    return Found(SymmetricLayer(best[0], best[1].coefficients, D), request.frame, notes=(NOTE,))


def _useful(heads: SymmetricHeads, sample: tuple[Tensor, Tensor], units: int | None, enough: float) -> SymmetricHeads:
    """The heads that orthogonal matching picks one after another, until the fit is good `enough` or `units` are used."""
    x, y = sample
    features = heads.features(x)[:, 1:].contiguous()
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


def require_symmetric(target: Target) -> None:
    """Refuse a target without one interval for all tokens, with several features or a condition, or that permutations change."""
    d = target.domain
    if target.shape[1] != 1 or d.within or len(set(zip(d.lower, d.upper, strict=True))) != 1:
        change = "use one interval for every token, one feature, no `within`"
        raise InputError("a symmetric target", f"domain {d}", change)
    rng = np.random.default_rng(0)
    x = d.points(rng.random((200, d.dimension)))
    y = target(x)
    moved = np.stack([row[rng.permutation(d.dimension)] for row in x])
    gap = float(np.abs(target(moved) - y).max())
    if gap > 1e-9 * (float(np.ptp(y)) or 1.0):
        found = f"values differ by {at_least(gap, 3)} under a permutation"
        raise InputError("a symmetric target", found, "give a function that no permutation changes")
