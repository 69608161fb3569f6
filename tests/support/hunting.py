"""The hunt for a bound below the truth: an engine's bounds against errors that are proved at the worst points found.

`hunt(engine, cases)` asks an engine for a bound on sup |T − f| of every case (`hostile`) and compares it, without any slack,
with errors that are proved: T is evaluated both as the deployed model (a float, taken as it is) and as the real function
of the stored weights (balls of 256 bits), f as a ball.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from flint import arb, ctx

from hostile import Case, case, fused, network, one_head, special
from onelayer.common.budget import Budget
from onelayer.common.machine import one_thread
from onelayer.construction.on_grid import DIGITS, on_grid
from onelayer.formula import enclose, holds
from onelayer.layer.assemble import Frame
from onelayer.layer.form import Form
from onelayer.layer.grid import GRIDS
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.proof.certificate import Method
from onelayer.proof.claim import Claim
from onelayer.proof.decision import prove_by
from onelayer.proof.witness import in_balls
from onelayer.target.target import Target

__all__ = [
    "Case",
    "Engine",
    "Find",
    "case",
    "deployed",
    "engine",
    "fused",
    "hunt",
    "network",
    "observed",
    "on_a_grid",
    "one_head",
    "proved_error",
    "real_value",
    "special",
]


@dataclass(frozen=True)
class Find:
    """What an engine claimed about a case and what was seen: a violation if the bound is below an error that is proved."""

    case: Case
    bound: float
    observed: float

    @property
    def violated(self) -> bool:
        if self.case.poisoned:
            return self.bound != math.inf
        return not self.observed <= self.bound  # also if the bound is NaN

    @property
    def ratio(self) -> float:
        """bound/observed."""
        return self.bound / self.observed if self.observed > 0 else math.inf

    @property
    def telling(self) -> bool:
        """Whether the ratio says something about the engine: an error that is larger than the accuracy asked for."""
        return math.isfinite(self.bound) and self.observed >= self.case.tolerance


Engine = Callable[[Case], float]


def hunt(
    engine: Engine,
    cases: Iterable[Case],
    dtype: torch.dtype = torch.float64,
    seen: Callable[[Case, torch.dtype], float] | None = None,
) -> Iterator[Find]:
    """Every case with the engine's bound and the largest proved error found (0 where there is nothing to contradict)."""
    for one in cases:
        bound = engine(one)
        claimed = bound != math.inf and not one.poisoned
        yield Find(one, bound, (seen or observed)(one, dtype) if claimed else 0.0)


def engine(method: Method, seconds: float = 1.0, dtype: torch.dtype = torch.float64, boxes: int = 20_000) -> Engine:
    """One of the library's engines with a small budget, on the models cast to `dtype`."""

    def bound(one: Case) -> float:
        budget = Budget(seconds, boxes)
        with one_thread():  # other jobs of this machine must not use up its time
            proof = prove_by(method, one.model.to(dtype), Claim(one.target, one.tolerance), one.tolerance, budget)
        return math.inf if proof is None else proof.bound

    return bound


def on_a_grid(one: Case, name: str) -> Case:
    """The case with its model on the grid of that name, in digits that its seed chooses; one that has no such model as it is."""
    if one.poisoned:
        return one
    rng, grid = np.random.default_rng(one.seed), GRIDS[name]
    x = one.target.domain.points(rng.random((400, one.target.dimension)))
    with np.errstate(all="ignore"):
        y = np.asarray(one.target(x)).reshape(len(x), -1)
    fine = np.isfinite(y).all(axis=1) & one.target.domain.contains(x)
    if fine.sum() < 10 or len(range(*one.model.config.read_rows.indices(one.model.config.all_tokens))) != 1:
        return one
    digits = DIGITS[int(rng.integers(len(DIGITS)))]
    with one_thread():
        found = on_grid(one.model, grid, torch.from_numpy(x[fine]), torch.from_numpy(y[fine]), digits=digits)
    return replace(one, network=found.model)


def observed(one: Case, dtype: torch.dtype = torch.float64, points: int = 1500, rounds: int = 4) -> float:
    """A lower bound on sup |T − f|, proved at the worst points that sampling and closing in on them found; else 0."""
    target = one.target
    model = one.model.to(dtype)
    rng = np.random.default_rng(one.seed)
    D = target.dimension
    unit = np.concatenate([rng.random((points, D)), rng.integers(0, 2, size=(4 * D, D)).astype(float)])
    edge = rng.random((points // 4, D))
    edge[np.arange(len(edge)), rng.integers(0, D, len(edge))] = rng.integers(0, 2, len(edge))
    unit, step, best = np.concatenate([unit, edge]), 0.1, np.zeros((0, D))
    for _ in range(rounds):
        x = torch.from_numpy(target.domain.points(np.clip(unit, 0, 1))).to(dtype).double().numpy()
        x = np.concatenate([x[target.domain.contains(x)], best])
        if not len(x):
            return 0.0
        best = x[np.argsort(-_gaps(deployed(model, x), np.asarray(target(x)).reshape(len(x), -1)))[:12]]
        low, side = np.array(target.domain.lower), target.domain.sides
        unit = np.repeat((best - low) / side, 40, axis=0) + step * rng.normal(size=(40 * len(best), D))
        step /= 6
    where = target.domain.within
    best = best[[where is None or holds(where, x) is True for x in best.tolist()]][:5]
    answers = deployed(model, best).tolist() if len(best) else []
    return max((proved_error(target, model, a, x) for a, x in zip(answers, best.tolist(), strict=True)), default=0.0)


def _gaps(T: np.ndarray, f: np.ndarray) -> np.ndarray:
    """max |T − f| per point, where f is finite: ∞ if T is not."""
    with np.errstate(invalid="ignore"):
        gaps = np.where(np.isfinite(T), np.abs(T - f), np.inf)
    return np.where(np.isfinite(f), gaps, -1.0).max(axis=1)


def deployed(model: SingleLayerTransformer, x: np.ndarray) -> np.ndarray:
    """What the assembled model answers, [point, out]."""
    with torch.no_grad():
        given = torch.from_numpy(x).to(model.W_E.dtype)
        return model(given.reshape(len(x), model.config.tokens, -1)).flatten(1).double().numpy()


def proved_error(target: Target, model: SingleLayerTransformer, answer: list[float], x: list[float]) -> float:
    """max |T(x) − f(x)| from below: T as the deployed model's answer and as the real function of the stored weights."""
    assert target.formula is not None
    worst = 0.0
    real = [value for place in in_balls(model, x) for value in place]
    with ctx.workprec(200):
        f = enclose(target.formula, x, prec=200)
        for T in ([arb(v) for v in answer], real):
            for value, truth in zip(T, f, strict=True):
                gap = abs(value - truth.ball()).lower() if truth.is_finite() else arb(0)
                worst = max(worst, _below(gap) if gap.is_finite() else math.inf)
    return worst


def _below(value: arb) -> float:
    nearest = float(value)
    return math.nextafter(nearest, -math.inf) if arb(nearest) > value else nearest


def real_value(form: Form, frame: Frame, x: list[float]) -> list[arb]:
    """T(x) for the stored weights, in balls at the current precision."""
    z = [(arb(a) - arb(s)) * arb(k) for a, s, k in zip(x, frame.shift, frame.scale, strict=True)]
    total = [arb(b) for b in form.bias.tolist()]
    for zi, row in zip(z, form.linear.tolist(), strict=True):
        total = [t + zi * arb(v) for t, v in zip(total, row, strict=True)]
    for block in form.blocks:
        for keys, biases, values, slopes in zip(
            block.keys.tolist(), block.biases.tolist(), block.values.tolist(), block.slopes.tolist(), strict=True
        ):
            there = [t for t, b in enumerate(biases) if b > -math.inf]
            scores = [sum((arb(k) * zi for k, zi in zip(keys[t], z, strict=True)), arb(biases[t])) for t in there]
            top = max(scores, key=float)
            powers = [(s - top).exp() for s in scores]
            whole = sum(powers, arb(0))
            for t, power in zip(there, powers, strict=True):
                for o in range(len(total)):
                    value = sum((zi * arb(s[o]) for zi, s in zip(z, slopes[t], strict=True)), arb(values[t][o]))
                    total[o] = total[o] + power / whole * value
    return total
