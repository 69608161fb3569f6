"""REFUTED: a point x where |T(x) − f(x)| > ε is proved in ball arithmetic, T being the real function of the stored weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from flint import arb, arb_mat, ctx

from ..common.budget import Budget
from ..formula import UNDEFINED, enclose, holds
from ..model import program
from ..model.activations import activation_of
from ..model.transformer import SingleLayerTransformer
from ..target.target import Target
from .bisection.activated import parsed
from .claim import Claim

PRECISION = 256  # bits
POINTS_TRIED = 12  # of the worst points observed


def witness(
    model: SingleLayerTransformer, claim: Claim, points: np.ndarray, budget: Budget
) -> tuple[float, ...] | None:
    """The first point that proves the claim wrong, both for the real T and for the computed answer; else None.

    At least one point is tried, whatever the budget.
    """
    c, target = model.config, claim.target
    within = target.domain.within
    for tried, point in enumerate(points[:POINTS_TRIED]):
        if tried and budget.over():
            break
        x = point.tolist()
        if within is not None and holds(within, x) is not True:
            continue
        real = in_balls(model, x)
        with torch.no_grad():
            given = torch.tensor(x, dtype=model.W_E.dtype).reshape(1, c.tokens, c.features_in)
            answered = model(given)[0].double().tolist()
        entries = [(real[r][o], arb(answered[r][o])) for r in claim.places for o in range(c.features_out)]
        for pair, expected in zip(entries, target_at(target, point), strict=True):
            gaps = [abs(value - expected) for value in pair]
            if all(gap.is_finite() and gap > arb(claim.tolerance) for gap in gaps):
                return tuple(x)
    return None


def target_at(target: Target, point: np.ndarray) -> list[arb]:
    """f at a float point, in balls: by enclosure of a formula, by the declared error of a callable or of samples."""
    if target.formula is None:
        values, radius = target.enclosed(point[None])
        return [arb(v, r) for v, r in zip(values[0].tolist(), radius[0].tolist(), strict=True)]
    with ctx.workprec(PRECISION):
        found = enclose(target.formula, point.tolist(), PRECISION, strict=True)
        return [value.lo.union(value.hi) if value.is_finite() else arb("nan") for value in found]


def in_balls(model: SingleLayerTransformer, x: Sequence[float]) -> list[list[arb]]:
    """T(x), [place][out], at a float point, in balls."""
    before, ctx.prec = ctx.prec, PRECISION
    try:
        found: list[list[arb]] = program.answer(OnBalls(model, x)).tolist()
        return found
    finally:
        ctx.prec = before


class OnBalls(program.ArraySteps[np.ndarray]):
    """The steps of a layer at one point, on arrays of balls."""

    row_by_row = True

    def __init__(self, model: SingleLayerTransformer, x: Sequence[float]) -> None:
        model.config.require_one_length()
        self.model, self.config, self.x = model, model.config, x

    def constant(self, name: str) -> np.ndarray:
        return _balls(getattr(self.model, name).detach().cpu().double().numpy())

    def inputs(self) -> np.ndarray:
        x = _balls(np.array(self.x, dtype=float)).reshape(self.config.tokens, -1)
        return (x - self.constant("shift")) * self.constant("scale")

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        W = self.constant(f"W_{name}")
        W = W if W.ndim == 2 else np.concatenate(W, axis=-1)  # the heads side by side
        y = np.array((arb_mat(x.tolist()) * arb_mat(W.tolist())).table(), dtype=object)
        biased = name not in "QKVO" or self.config.projection_bias
        return y + self.constant(f"b_{name}").reshape(-1) if biased else y

    def plus(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x + y

    def moved(self, move: Callable[..., Any], *values: np.ndarray) -> np.ndarray:
        return np.asarray(move(*values))

    def average(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        heads = zip(q[:, 0], k, v, strict=True)
        return np.stack([(self._weights(q, k)[:, None] * v).sum(axis=0)[None] for q, k, v in heads])

    def _weights(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        """α_ij, Eq. (5) or what `attention` puts in its place (`model.attention_weights`)."""
        if self.config.attention == "linear":
            q, k = (EXP(MIN(t, arb(0))) + MAX(t, arb(0)) for t in (q, k))
            return _shares((q * k).sum(axis=-1))
        s = (q * k).sum(axis=-1) / arb(self.config.d_k).sqrt()
        match self.config.attention:
            case "sigmoid":
                return np.asarray(1 / (1 + EXP(-s)))
            case "sparsemax":
                return np.array(_sparsemax(s.tolist()), dtype=object)
            case _:
                return _shares(EXP(s - max(float(t.mid()) for t in s)))

    def activate(self, u: np.ndarray) -> np.ndarray:
        if self.config.activation == "relu":
            return np.asarray(MAX(u, arb(0)))
        formula = parsed(activation_of(self.config).formula)

        def phi(ball: arb) -> arb:
            found = enclose(formula, [ball], ctx.prec)[0] if ball.is_finite() else UNDEFINED
            return found.lo.union(found.hi) if found.is_finite() else arb("nan")

        return np.asarray(_each(phi)(u))

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - self._mean(x, -1)
        root = RSQRT(self._mean(centred * centred, -1) + arb(self.config.norm_eps))
        return np.asarray(centred * root * self.constant(f"gain_{name}") + self.constant(f"offset_{name}"))

    def mean(self, x: np.ndarray) -> np.ndarray:
        return self._mean(x, 0)

    @staticmethod
    def _mean(x: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(x.sum(axis=axis, keepdims=True) / x.shape[axis])


def _each(function: Callable[..., arb], arguments: int = 1) -> Any:
    """The function of every ball of an array."""
    return np.frompyfunc(function, arguments, 1)


_balls, EXP, RSQRT = _each(arb), _each(arb.exp), _each(arb.rsqrt)
MIN, MAX = _each(arb.min, 2), _each(arb.max, 2)


def _shares(parts: np.ndarray) -> np.ndarray:
    return np.asarray(parts / parts.sum())


def _sparsemax(s: list[arb]) -> list[arb]:
    """max(s_j − τ, 0). The k-th largest score lies between the k-th largest lower and the k-th largest upper end."""
    lower, upper = (sorted(ends, reverse=True) for ends in ([t.lower() for t in s], [t.upper() for t in s]))
    total, threshold = arb(-1), arb("-inf")
    for k, (low, high) in enumerate(zip(lower, upper, strict=True), start=1):
        total = total + low.union(high)
        threshold = threshold.max(total / k)
    return [(t - threshold).max(arb(0)) for t in s]
