"""A composed layer against a composed formula: T = Σ H(A(x)), f = Σ h(g(x)), one lane for every term.

    |A − g| ≤ δ on the domain           by interpolation, as for any layer, rounding included
    g(x) ∈ [low, high]                   by Taylor models
    A − g ∈ [low(u), high(u)] if g = u   by cells and bins (`spread`), where δ alone would cost much
    H(a) − h(u) for such a and u         on intervals of u: H(u) − h(u) by Taylor models, H(a) − H(u) = (a − u)·(slopes of H)

The sum of the ranges of the lanes holds T − f, up to what the network rounds. Which lane belongs to which term is found by
comparing A with inner functions of f at points; a wrong guess gives a large bound, never a false one.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ...common.budget import Budget
from ...common.outward import UP, UP_FEW, U
from ...formula import Formula, enclose, to_text
from ...layer.assemble import Frame
from ...layer.composed_reading import OuterNetwork
from ...layer.form import Block, Form
from ...layer.reading import Reading
from ...target.ranges import range_of
from ...target.target import Target
from ..analytic import prove as analytic
from ..certificate import Box, Evidence
from ..claim import Claim, Proof
from .lanes import Lane, matched
from .outer import CLOSE, Curve, Reach, outer_range
from .spread import RESOLUTIONS, Spread, spread_of

NEGLIGIBLE = 0.01  # share of the tolerance: an error of a lane that costs no more need not be known closely
OUTER_SHARE = 0.1  # of how close the bound is to be: how close ranges of outer functions are, relative to their width
WORTHWHILE = (
    1.02  # where the bound is at most this many times the one with exact lanes, δ by value is as a rule not looked for
)


@dataclass(frozen=True)
class Proved:
    """A lane with what is proved of it: |A − g| ≤ δ, the bound of the proof, and the range of g."""

    lane: Lane
    form: Form  # A
    inner: Target  # g
    proof: Proof
    span: tuple[float, float]
    curve: Curve

    def reach(self, spread: Spread, close: float) -> Reach:
        """H(A(x)) − h(g(x)), for all x."""
        return outer_range(self.curve, self.lane.term.outer, self.span, spread, close)


@dataclass(frozen=True)
class Added:
    """What is added to the ranges of the lanes: (low, high) per output, and the rounding of the network."""

    ends: np.ndarray  # [out, 2]
    sizes: np.ndarray  # [out]: of the constants
    rounding: np.ndarray  # [out]

    def bound(self, lanes: list[Proved], found: list[Reach]) -> float:
        """A bound on |T − f|."""
        ends, sizes = self.ends.copy(), self.sizes.copy()
        for one, reach in zip(lanes, found, strict=True):
            ends[one.lane.output] += (reach.low, reach.high)
            sizes[one.lane.output] += max(abs(reach.low), abs(reach.high))
        adding = 2 * (len(lanes) + 2) * U * sizes  # what rounding does to these sums here
        return float((np.abs(ends).max(axis=1) + self.rounding + adding).max()) * UP_FEW


def prove(reading: Reading, network: OuterNetwork, claim: Claim, budget: Budget) -> Proof | None:
    """The proof, or None if the lanes of the model are not inner functions of the formula."""
    target = claim.target
    lanes = matched(reading, network, target)
    if lanes is None or target.formula is None or len(reading.hinges) or bool(reading.form.bias.any()):
        return None
    constants, found = [lane for lane in lanes if lane.index < 0], list[Proved]()
    for lane in (lane for lane in lanes if lane.index >= 0):
        one = _proved(reading, network, lane, claim, budget)
        if one is None:
            return None
        found.append(one)
    ends, sizes = np.tile(network.bias[:, None], (1, 2)), np.abs(network.bias)
    tops = np.full(network.lanes.max(initial=-1) + 1, -np.inf)  # of the lanes; others reach no output
    for one in found:
        top = np.nextafter(one.span[1] + one.proof.bound * UP - one.lane.shift, np.inf)
        tops[one.lane.index] = max(tops[one.lane.index], top)
    rounding = network.rounding(tops, reading.program.arithmetic)
    for lane in constants:  # terms without variables
        ball = enclose(Formula("", target.formula.names, (lane.term.inner,)), [0.0] * target.dimension)[0]
        ends[lane.output] -= (ball.upper(), ball.lower())
        sizes[lane.output] += ball.magnitude()
    bound, worst = _closest(reading.frame, claim, budget, found, Added(ends, sizes, rounding))
    inner = [one.proof for one in found]
    told = tuple(_told(one.lane, one.proof.bound, target.formula.names) for one in found)
    evidence = _evidence(inner, float(rounding.max()))
    evidence |= Evidence(lanes=told, worst_boxes=(*worst, *(evidence.worst_boxes or ())))
    return Proof(bound, evidence, inner[0].assumptions)


def _proved(reading: Reading, network: OuterNetwork, lane: Lane, claim: Claim, budget: Budget) -> Proved | None:
    """The lane with its own proof; None if there is none."""
    curve, inner = Curve.of(network, lane), claim.target.inner(lane.term.inner)
    assert inner.formula is not None
    matters = NEGLIGIBLE * claim.tolerance / max(float(np.abs(np.cumsum(curve.values)).max()), 1e-290)
    own = replace(claim, tolerance=max(lane.apart, matters), progress=None).about(inner)
    form = _lane_form(reading.form, lane)
    proof = analytic.prove(form, reading.frame, own, budget, program=reading.program.only([lane.index]))
    span = range_of(inner.formula, inner.domain)
    if proof is None or not np.isfinite(proof.bound) or not np.isfinite(span).all():
        return None
    return Proved(lane, form, inner, proof, span, curve)


def _closest(
    frame: Frame, claim: Claim, budget: Budget, lanes: list[Proved], added: Added
) -> tuple[float, tuple[Box, ...]]:
    """(a bound on |T − f|, where it may be attained): with one δ per lane, and with δ by value where that promises more."""
    close = CLOSE if claim.close is None else min(CLOSE, OUTER_SHARE * claim.close)
    deltas = [one.proof.bound for one in lanes]
    bound, at_best = (
        added.bound(lanes, [one.reach(Spread.everywhere(s * d), close) for one, d in zip(lanes, deltas, strict=True)])
        for s in (1.0, 0.0)
    )
    worst = tuple[Box, ...]()
    if bound <= (WORTHWHILE if claim.close is None else 1.0) * at_best:
        return bound, worst
    for how in RESOLUTIONS if claim.close is not None else RESOLUTIONS[:1]:
        spreads = [spread_of(one.form, frame, one.inner, one.proof, budget, how) for one in lanes]
        reaches = [one.reach(spread, close) for one, spread in zip(lanes, spreads, strict=True)]
        found, before = added.bound(lanes, reaches), bound
        if found < bound:
            bound, worst = found, tuple(box for pair in zip(spreads, reaches, strict=True) for box in _worst(*pair))
        if bound <= claim.tolerance or not bound < before or budget.over():
            break
    return bound, worst


def _worst(spread: Spread, reach: Reach) -> list[Box]:
    """Boxes where H(A) − h(g) may be smallest or largest."""
    ends = [spread.box(*at, above) for at in (reach.lowest, reach.highest) for above in (False, True)]
    return [box for box in ends if box is not None]


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
    """A as a form: one output, shifted, with the heads that contribute to it. The stream itself holds no constant."""
    blocks, at = list[Block](), slice(lane.index, lane.index + 1)
    for b in form.blocks:
        used = (b.values[..., at] != 0).any(dim=(1, 2)) | (b.slopes[..., at] != 0).any(dim=(1, 2, 3))
        if used.any():
            blocks.append(Block(b.keys[used], b.biases[used], b.values[used][..., at], b.slopes[used][..., at]))
    return Form(torch.full_like(form.bias[at], lane.shift), form.linear[:, at], tuple(blocks))
