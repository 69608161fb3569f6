"""The hunt for a bound on slopes below the truth.

The truth needs no derivative: by the mean value theorem a secant of T − f, its ends evaluated in balls of 256 bits, is a slope
of T − f somewhere between them, so that no bound on all slopes may be smaller.
"""

import math

import numpy as np
import torch
from flint import arb, ctx

from hostile import Case
from hunting import Engine
from onelayer.common.budget import Budget
from onelayer.common.machine import one_thread
from onelayer.formula import enclose, holds, interval
from onelayer.proof.claim import Claim
from onelayer.proof.decision import edge_of
from onelayer.proof.slopes import prove_slopes, slopes_at
from onelayer.proof.witness import in_balls

WIDTH = 2.0**-24  # of a secant, as a share of the side
WORST = 6  # points at which secants are taken


def slope_engine(seconds: float = 1.0, dtype: torch.dtype = torch.float64, boxes: int = 20_000) -> Engine:
    """The library's proof of slopes with a small budget, on the models cast to `dtype`."""

    def bound(one: Case) -> float:
        model, claim = one.model.to(dtype), Claim(one.target, one.tolerance, slope_tolerance=one.tolerance)
        with one_thread():
            edge = edge_of(model, one.target)
            return prove_slopes(model, claim, edge, Budget(seconds, boxes), observed=False).found.bound

    return bound


def observed_slopes(one: Case, dtype: torch.dtype = torch.float64, points: int = 600) -> float:
    """A lower bound on sup |∂_i(T − f)|, proved by secants at the worst points of a sample; else 0."""
    target, model = one.target, one.model.to(dtype)
    assert target.formula is not None
    rng, D = np.random.default_rng(one.seed), target.dimension
    unit = rng.random((points, D))
    unit[: points // 3] = np.round(unit[: points // 3])
    x = target.domain.points(unit)
    x = x[target.domain.contains(x)]
    if not len(x):
        return 0.0
    low, high, sides = np.array(target.domain.lower), np.array(target.domain.upper), target.domain.sides
    T = slopes_at(model, tuple(range(model.config.places)))(x).reshape(len(x), -1, D)
    worst = 0.0
    for i in range(D):
        near, far = x.copy(), x.copy()
        near[:, i] = np.clip(x[:, i] - WIDTH * sides[i], low[i], high[i])
        far[:, i] = np.clip(x[:, i] + WIDTH * sides[i], low[i], high[i])
        with np.errstate(all="ignore"):
            f = (target.values(far) - target.values(near)) / (far[:, i] - near[:, i])[:, None]
            gaps = np.nan_to_num(np.abs(T[:, :, i] - f).max(axis=1), nan=-1.0, posinf=-1.0)
        for at in np.argsort(-gaps)[:WORST].tolist():
            worst = max(worst, _secant(one, model, near[at].tolist(), far[at].tolist(), i))
    return worst


def _secant(one: Case, model: torch.nn.Module, a: list[float], b: list[float], i: int) -> float:
    """|slope of T − f between two points that differ in coordinate i|, from below; 0 where it is not known."""
    where, formula = one.target.domain.within, one.target.formula
    sides = [interval(p, q) for p, q in zip(a, b, strict=True)]
    if a[i] >= b[i] or (where is not None and holds(where, sides) is not True):
        return 0.0
    T = [[v for place in in_balls(model, x) for v in place] for x in (a, b)]
    with ctx.workprec(256):
        f = [enclose(formula, x, prec=256) for x in (a, b)]
        whole = enclose(formula, sides, prec=256)  # f may be undefined between the ends
        worst = 0.0
        for o, value in enumerate(whole):
            if value.is_finite() and all(end[o].is_finite() for end in f):
                rise = (T[1][o] - f[1][o].ball()) - (T[0][o] - f[0][o].ball())
                slope = abs(rise / (arb(b[i]) - arb(a[i]))).lower()
                worst = max(worst, math.nextafter(float(slope), 0.0) if slope.is_finite() else 0.0)
    return worst
