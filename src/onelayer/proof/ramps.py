"""Layers of ramps, which sparsemax attention computes: piecewise linear, proved one group of coordinates at a time.

A head that weighs one data token with the score s = a·x̂ + b against an anchor with score 0 has the weight (1 + s)/2, cut off at
0 and 1, which is relu((1 + s)/2) − relu((s − 1)/2). So T is an affine function and hinges, whose kinks cancel those of f where
they are the same; and ramps that look at different coordinates are bounded apart, as f's terms are. T_g − f_g may be any
constants away from 0 that add up to 0: the middles of what is seen at points.

Rounding, u being the unit roundoff: s is off by d = Σ|a_i| e_x + (D + 3)u(Σ|a_i||x̂_i| + |b|). Of the two scores less the larger,
one is 0 and the other z ≤ 0 exactly; the threshold is the larger of −1 and (z − 1)/2, which is rounded three times, and the
weight is off by at most d/2 + 8u. Then come sums of at most heads + D terms. Offsets (b ± 1)/2 of hinges are rounded here.
"""

from dataclasses import replace

import numpy as np
import torch

from ..common.budget import Budget
from ..common.machine import one_thread
from ..common.outward import UP_FEW, UP_MANY, U
from ..formula import Formula
from ..formula.additive import components, links_of, parts_of
from ..layer.arithmetic import Arithmetic, arithmetic_of
from ..layer.assemble import Frame
from ..layer.assemble.memory import assemble_memory
from ..layer.form import Form
from ..layer.heads import Hinges, Ramps
from ..layer.layer import MemoryLayer, memory_layer
from ..model.transformer import SingleLayerTransformer
from ..target.domain import Domain
from ..target.target import Target
from .bisection.form import TaylorForm
from .bisection.prove import MOST_COORDINATES, BranchAndBound, assumptions_of
from .boxes import Covering, Patch
from .certificate import Box, Evidence
from .claim import Claim, Proof

SAMPLED_POINTS = 4000  # to see where T_g − f_g lies


def prove(model: SingleLayerTransformer, claim: Claim, edge: float, budget: Budget) -> Proof | None:
    """A bound on sup |T − f| for |x̂| ≤ edge; None for other layers, or where f is no formula on a whole box."""
    target, arithmetic, found = claim.target, arithmetic_of(model.W_E.dtype), ramps_of(model)
    if target.formula is None or target.margin or target.dimension > MOST_COORDINATES or found is None:
        return None
    layer, frame = found
    used = [tuple(np.flatnonzero(row).tolist()) for row in layer.ridges.directions.ne(0).numpy()]
    used += [(j,) for j in range(target.dimension) if layer.linear[j].any()]
    whole = [tuple(range(target.dimension))]
    groups = whole if target.domain.within else components([*links_of(target.formula), *used]) or whole
    parts = [target.formula] if groups == whole else parts_of(target.formula, groups)
    summands = [
        _Summand(layer, frame, _on(target, f, g), g, i == 0) for i, (f, g) in enumerate(zip(parts, groups, strict=True))
    ]
    middles = np.array([s.middle for s in summands])
    shifts = -middles
    shifts[0] += middles.sum(axis=0)  # they add up to 0
    seen = np.array([s.reach(shift) for s, shift in zip(summands, shifts, strict=True)])
    rounding = ramp_rounding(layer, max(map(abs, frame.scale)), edge, arithmetic)
    rounding += 8 * U * len(groups) * (np.abs(middles).sum(axis=0) + layer.bias.abs().numpy())  # of shifts
    total, boxes, interrupted, patches, worst = 0.0, 0, False, list[Patch](), list[Box]()
    for i, (summand, shift) in enumerate(zip(summands, shifts, strict=True)):
        share = (seen[i] / seen.sum() if seen.sum() else 1 / len(seen)) * max(
            claim.tolerance - float(rounding.max()), 0.0
        )
        search = summand.search(shift)
        with one_thread(True):
            cover, spent, stopped = search.run(share, seen[i], budget.share(1 / (len(seen) - i)), claim.progress)
        if not len(cover):
            return None
        high = np.broadcast_to(cover.bound[:, None], (len(cover), target.outputs))
        patches.append(Patch(groups[i], cover.lower, cover.upper, -high, high))
        at = int(cover.bound.argmax())
        worst.append(Box(groups[i], tuple(cover.lower[at].tolist()), tuple(cover.upper[at].tolist())))
        total, boxes, interrupted = (total + float(cover.bound.max())) * UP_FEW, boxes + spent, interrupted or stopped
    bound = (total + float(rounding.max())) * UP_FEW
    bound = bound if np.isfinite(bound) else np.inf
    evidence = Evidence(boxes=boxes, order=3, worst_boxes=tuple(worst), interrupted=interrupted or None)
    covering = Covering(tuple(patches), rounding, target.domain, bound)
    return Proof(bound, evidence, assumptions_of(model, target, arithmetic), covering)


def ramps_of(model: SingleLayerTransformer) -> tuple[MemoryLayer, Frame] | None:
    """The layer of ramps that the model was assembled from: assembled again it has the very same weights. None for others."""
    c = model.config
    if c.attention != "sparsemax" or (c.tokens, c.special_tokens, c.anchor_tokens, c.d_k) != (1, 1, 1, 1):
        return None
    w = {name: t.detach().double() for name, t in model.state_dict().items()}
    D, m = c.features_in, c.features_out
    if c.d_model < D + 2 + m or c.d_v != m or not (w["scale"] > 0).all():
        return None
    keys, values = w["W_K"][..., 0], w["W_O"].reshape(c.heads, c.d_v, c.d_model)[:, 0, D + 2 : D + 2 + m]
    layer = memory_layer(w["b_R"], D, ridges=(Ramps(keys[:, :D], keys[:, D]), values), linear=w["W_R"][:D])
    frame = Frame(tuple(w["shift"].flatten().tolist()), tuple(w["scale"].flatten().tolist()))
    again = assemble_memory(layer, frame, attention="sparsemax")
    same = again.config == c and all(torch.equal(t, w[name]) for name, t in again.state_dict().items())
    return (layer, frame) if same and all(bool(t.isfinite().all()) for t in w.values()) else None


def ramp_rounding(layer: MemoryLayer, scale: float, edge: float, a: Arithmetic) -> np.ndarray:
    """|computed − T| for |x̂| ≤ edge per output, as above, the rounding of hinges' offsets included."""
    ramps, D, u = layer.ridges, layer.dimension, a.u
    steep, e_x = ramps.directions.abs().sum(dim=1), 2.1 * u * edge + a.lost(scale)
    d = steep * e_x + (D + 3) * u * (steep * edge + ramps.offsets.abs())
    values, straight = layer.ridge_values.abs(), layer.linear.abs().sum(dim=0)
    heads = ((d + 8 * u + 2 * u * (1 + ramps.offsets.abs()))[:, None] * values).sum(dim=0)
    terms = (len(ramps) + D + 12) * u
    sizes = values.sum(dim=0) + straight * edge + layer.bias.abs()
    flushed = (len(ramps) + D + 12) * a.smallest * (1 + values.sum(dim=0) + straight)
    return ((heads + terms * sizes + straight * e_x + flushed) * UP_MANY * 1.01).numpy()


def _on(target: Target, formula: Formula, group: tuple[int, ...]) -> Target:
    """A part of the target as a function of its group's coordinates."""
    d, other = target.domain, target.part(formula)
    if len(group) == target.dimension:
        return other
    lower, upper = (tuple(t[j] for j in group) for t in (d.lower, d.upper))
    other.domain = Domain(tuple(d.names[j] for j in group), lower, upper, tuple(d.ends[j] for j in group))
    other.dimension = len(group)
    return other


class _Summand:
    """T_g − f_g: the ramps and the linear part on a group of coordinates; the first has the bias too."""

    def __init__(self, layer: MemoryLayer, frame: Frame, target: Target, group: tuple[int, ...], first: bool) -> None:
        pick, ramps = list(group), layer.ridges
        mine = ramps.directions[:, pick].ne(0).any(dim=1) | (~ramps.directions.ne(0).any(dim=1) & first)
        a, b, c = ramps.directions[mine][:, pick] / 2, ramps.offsets[mine], layer.ridge_values[mine]
        self.target = target
        self.frame = Frame(tuple(frame.shift[j] for j in group), tuple(frame.scale[j] for j in group))
        self.form = Form(layer.bias * first, layer.linear[pick], ())
        self.hinges = Hinges(torch.cat([a, a]), torch.cat([(b + 1) / 2, (b - 1) / 2]))
        self.values = torch.cat([c, -c])
        x = target.domain.points(np.random.default_rng(0).random((SAMPLED_POINTS, len(group))))
        hat = self.frame(torch.from_numpy(x))
        self.gaps = (self.form(hat) + self.hinges.features(hat) @ self.values).numpy() - target.values(x)

    @property
    def middle(self) -> np.ndarray:
        """Of what is seen, per output."""
        low, high = self.gaps.min(axis=0), self.gaps.max(axis=0)
        return np.where(np.isfinite(high - low), (low + high) / 2, 0.0)

    def reach(self, shift: np.ndarray) -> float:
        """The largest |T_g − f_g + shift| seen."""
        return float(np.nan_to_num(np.abs(self.gaps + shift), nan=0.0, posinf=0.0).max())

    def search(self, shift: np.ndarray) -> BranchAndBound:
        form = replace(self.form, bias=self.form.bias + torch.from_numpy(shift))
        T = TaylorForm(form, self.frame, self.hinges, self.values)
        return BranchAndBound(T, self.target, range(len(form.bias)), T.numbers)
