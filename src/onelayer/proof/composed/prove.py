"""A composed layer against a composed formula: T = Σ H(A(x)), f = Σ h(g(x)), one lane for every term.

    |A − g| ≤ δ on the domain           by interpolation, as for any layer, rounding included
    g(x) ∈ [low, high]                   by Taylor models
    H(a) − h(u) for |a − u| ≤ δ          on intervals of u: H(u) − h(u) by Taylor models, |H(a) − H(u)| ≤ δ·(slope of H)

Where the bound is to be close, δ depends on the value of g (`spread`); the checker knows one δ per lane, and so do certificates.
The sum of the ranges of the lanes holds T − f, up to what the network rounds. Which lane belongs to which term is found by
comparing A with inner functions of f at points; a wrong guess gives a large bound, never a false one.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ...common.budget import Budget
from ...common.outward import UP, UP_FEW, U
from ...formula import Formula, enclose, to_text
from ...layer.composed_reading import OuterNetwork
from ...layer.form import Block, Form
from ...layer.reading import Reading
from ...layer.rounding.deployed import Deployment
from ...target.ranges import range_of
from ..analytic import prove as analytic
from ..certificate import Evidence
from ..claim import Claim, Proof
from .lanes import Lane, matched
from .outer import Curve, outer_range
from .spread import Spread, spread_of

NEGLIGIBLE = 0.01  # share of the tolerance: an error of a lane that costs no more need not be known closely


def prove(reading: Reading, network: OuterNetwork, claim: Claim, budget: Budget, how: Deployment) -> Proof | None:
    """The proof, or None if the lanes of the model are not inner functions of the formula."""
    target = claim.target
    lanes = matched(reading, network, target)
    if lanes is None or target.formula is None or len(reading.hinges):
        return None
    inner, constants = list[Proof](), [lane for lane in lanes if lane.index < 0]
    lanes = [lane for lane in lanes if lane.index >= 0]
    for lane in lanes:
        matters = (
            NEGLIGIBLE * claim.tolerance / max(float(np.abs(np.cumsum(Curve.of(network, lane).values)).max()), 1e-290)
        )
        own = replace(claim, tolerance=max(lane.apart, matters), progress=None).about(target.inner(lane.term.inner))
        proof = analytic.prove(_lane_form(reading.form, lane), reading.frame, own, budget, how=how)
        if proof is None or not np.isfinite(proof.bound):
            return None
        inner.append(proof)
    ends = np.tile(network.bias[:, None], (1, 2))
    sizes, rounding = np.abs(network.bias), np.zeros(target.outputs)
    for lane, proof in zip(lanes, inner, strict=True):
        delta = proof.bound
        span = range_of(target.inner(lane.term.inner).formula, target.domain)  # type: ignore[arg-type]
        if not np.isfinite(span).all():
            return None
        curve = Curve.of(network, lane)
        spread = Spread.everywhere(delta)
        if claim.close is not None:
            own_target = target.inner(lane.term.inner)
            spread = spread_of(_lane_form(reading.form, lane), reading.frame, own_target, proof, budget)
        found = outer_range(curve, lane.term.outer, span, spread)
        ends[lane.output] += found
        sizes[lane.output] += max(map(abs, found))
        top = np.nextafter(span[1] + delta * UP - lane.shift, np.inf)
        rounding[lane.output] += network.rounding(lane.index, lane.output, float(top), how.arithmetic)
    for lane in constants:  # terms without variables
        ball = enclose(Formula("", target.formula.names, (lane.term.inner,)), [0.0] * target.dimension)[0]
        ends[lane.output] -= (ball.upper(), ball.lower())
        sizes[lane.output] += ball.magnitude()
    adding = 2 * (len(lanes) + 2) * U * sizes  # what rounding does to these sums here
    bound = float((np.abs(ends).max(axis=1) + rounding + adding).max()) * UP_FEW
    told = tuple(_told(lane, proof.bound, target.formula.names) for lane, proof in zip(lanes, inner, strict=True))
    return Proof(bound, _evidence(inner, float(rounding.max())) | Evidence(lanes=told), inner[0].assumptions)


def _told(lane: Lane, bound: float, names: tuple[str, ...]) -> dict[str, Any]:
    """A lane for the certificate: the stream holds inner − shift within the bound, and the output adds outer(inner)."""
    inner, outer = to_text(lane.term.inner, names), to_text(lane.term.outer, ("u",))
    return {"output": lane.output, "inner": inner, "outer": outer, "shift": lane.shift, "bound": bound}


def _evidence(proofs: list[Proof], rounding: float) -> Evidence:
    """What the proofs of the lanes leave behind, one after the other."""

    def joined(name: str) -> Any:
        return tuple(entry for proof in proofs for entry in getattr(proof.evidence, name) or ())

    names = ("groups", "boxes", "degrees", "ellipses", "worst_boxes")
    together = rounding + sum(proof.evidence.rounding or 0.0 for proof in proofs)
    cut = sum(proof.evidence.truncation or 0.0 for proof in proofs)
    interrupted = True if any(proof.evidence.interrupted for proof in proofs) else None
    own: dict[str, Any] = {name: joined(name) for name in names}
    return Evidence(**own, truncation=cut, rounding=together, interrupted=interrupted)


def _lane_form(form: Form, lane: Lane) -> Form:
    """A as a form: one output, shifted, with the heads that contribute to it."""
    blocks, at = list[Block](), slice(lane.index, lane.index + 1)
    for b in form.blocks:
        used = (b.values[..., at] != 0).any(dim=(1, 2)) | (b.slopes[..., at] != 0).any(dim=(1, 2, 3))
        if used.any():
            blocks.append(Block(b.keys[used], b.biases[used], b.values[used][..., at], b.slopes[used][..., at]))
    return Form(torch.full_like(form.bias[at], lane.shift), form.linear[:, at], tuple(blocks))
