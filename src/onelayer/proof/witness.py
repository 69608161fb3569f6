"""REFUTED: a point x where |T(x) − f(x)| > ε is proved in ball arithmetic, T being the real function of the stored weights."""

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import torch
from flint import arb, arb_mat, ctx

from ..common.budget import Budget
from ..formula import enclose, holds
from ..model.transformer import SingleLayerTransformer
from ..target.target import Target
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
        return _Evaluation(model).answer(x)
    finally:
        ctx.prec = before


class _Evaluation:
    """The model's own steps on matrices of balls."""

    def __init__(self, model: SingleLayerTransformer) -> None:
        model.config.require_one_length()
        self.model, self.config = model, model.config

    def weight(self, name: str, index: int | None = None) -> arb_mat:
        t = getattr(self.model, name).detach().double()
        t = t if index is None else t[index]
        return arb_mat([[arb(v) for v in row] for row in (t.tolist() if t.ndim == 2 else [t.tolist()])])

    def answer(self, x: Sequence[float]) -> list[list[arb]]:
        c = self.config
        rows = [list(x[i * c.features_in : (i + 1) * c.features_in]) for i in range(c.tokens)]
        shift, scale = self.model.shift.double().tolist(), self.model.scale.double().tolist()
        hat = [
            [(arb(v) - arb(s)) * arb(f) for v, s, f in zip(*group, strict=True)]
            for group in zip(rows, shift, scale, strict=True)
        ]
        data = self._plus(arb_mat(hat) * self.weight("W_E"), self.weight("b_E"))
        if c.code != "none":
            data = data + self.weight("P")
        tokens = [*data.table(), *(self.weight("S").table() if c.special_tokens else [])]
        everything = arb_mat(tokens)
        asking = arb_mat(tokens[c.read_rows])
        y = self._sublayers(asking, everything)
        if c.readout == "mean":
            n = y.nrows()
            y = arb_mat([[sum((y[i, j] for i in range(n)), arb(0)) / n for j in range(y.ncols())]])
        out: list[list[arb]] = self._plus(y * self.weight("W_R"), self.weight("b_R")).table()
        return out

    @staticmethod
    def _plus(a: arb_mat, row: arb_mat) -> arb_mat:
        return arb_mat([[a[i, j] + row[0, j] for j in range(a.ncols())] for i in range(a.nrows())])

    def _sublayers(self, asking: arb_mat, everything: arb_mat) -> arb_mat:
        pre, post = self.config.norm == "pre", self.config.norm == "post"
        a = self._attend(*(self._norm(t, "1") if pre else t for t in (asking, everything)))
        h = asking + a if self.config.residual else a
        h = self._norm(h, "1") if post else h
        f = self._feed_forward(self._norm(h, "2") if pre else h)
        y = h + f if self.config.residual else f
        return self._norm(y, "2") if post else y

    def _attend(self, asking: arb_mat, everything: arb_mat) -> arb_mat:
        c = self.config
        joined: list[list[arb]] = [[] for _ in range(asking.nrows())]
        for head in range(c.heads):
            q, k, v = (
                self._biased(source * self.weight(f"W_{name}", head), name, head)
                for source, name in ((asking, "Q"), (everything, "K"), (everything, "V"))
            )
            for row, queries in enumerate(q.table()):
                seen = c.seen_by(row)
                alpha = self._weights(queries, [k.table()[t] for t in seen])
                joined[row] += [
                    sum((p * v[t, j] for p, t in zip(alpha, seen, strict=True)), arb(0)) for j in range(v.ncols())
                ]
        a = arb_mat(joined) * self.weight("W_O")
        return self._plus(a, self.weight("b_O")) if c.projection_bias else a

    def _weights(self, q: list[arb], keys: list[list[arb]]) -> list[arb]:
        """α_ij, Eq. (5) or what `attention` puts in its place (`model.attention_weights`)."""
        if self.config.attention == "linear":
            phi_q, *phi_k = ([t.min(arb(0)).exp() + t.max(arb(0)) for t in row] for row in (q, *keys))
            return _shares([_dot(phi_q, k) for k in phi_k])
        s = [_dot(q, k) / arb(self.config.d_k).sqrt() for k in keys]
        match self.config.attention:
            case "sigmoid":
                return [1 / (1 + (-t).exp()) for t in s]
            case "sparsemax":
                return _sparsemax(s)
            case _:
                highest = max(float(t.mid()) for t in s)
                return _shares([(t - highest).exp() for t in s])

    def _biased(self, projected: arb_mat, name: str, head: int) -> arb_mat:
        return self._plus(projected, self.weight(f"b_{name}", head)) if self.config.projection_bias else projected

    def _feed_forward(self, h: arb_mat) -> arb_mat:
        u = self._plus(h * self.weight("W_1"), self.weight("b_1"))
        hidden = arb_mat([[self._activated(u[i, j]) for j in range(u.ncols())] for i in range(u.nrows())])
        return self._plus(hidden * self.weight("W_2"), self.weight("b_2"))

    def _activated(self, u: arb) -> arb:
        match self.config.activation:
            case "relu":
                return u.max(arb(0))
            case "gelu":
                return u * (1 + (u / arb(2).sqrt()).erf()) / 2
            case "silu":
                return u / (1 + (-u).exp())
        assert_never(self.config.activation)

    def _norm(self, x: arb_mat, which: str) -> arb_mat:
        gain, offset = self.weight(f"gain_{which}"), self.weight(f"offset_{which}")
        rows, m = [], x.ncols()
        for i in range(x.nrows()):
            mean = sum((x[i, j] for j in range(m)), arb(0)) / m
            centred = [x[i, j] - mean for j in range(m)]
            root = (sum((v * v for v in centred), arb(0)) / m + arb(self.config.norm_eps)).rsqrt()
            rows.append([v * root * gain[0, j] + offset[0, j] for j, v in enumerate(centred)])
        return arb_mat(rows)


def _dot(a: list[arb], b: list[arb]) -> arb:
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def _shares(parts: list[arb]) -> list[arb]:
    total = sum(parts, arb(0))
    return [part / total for part in parts]


def _sparsemax(s: list[arb]) -> list[arb]:
    """max(s_j − τ, 0). The k-th largest score lies between the k-th largest lower and the k-th largest upper end."""
    lower, upper = (sorted(ends, reverse=True) for ends in ([t.lower() for t in s], [t.upper() for t in s]))
    total, threshold = arb(-1), arb("-inf")
    for k, (low, high) in enumerate(zip(lower, upper, strict=True), start=1):
        total = total + low.union(high)
        threshold = threshold.max(total / k)
    return [(t - threshold).max(arb(0)) for t in s]
