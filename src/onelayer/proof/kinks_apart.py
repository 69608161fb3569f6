"""Kinks and the rest proved apart: f = f_k + f_s, T = T_k + T_s, so |T − f| ≤ |T_k − f_k| + |T_s − f_s|.

f_k has the additive terms of f that are kinks of affine functions, f_s the others, which must be smooth. T_k has the heads
whose values are proportional to their scores (smooth maxima), the hinges, and an affine function ℓ; T_s the other heads and
what ℓ leaves of the affine part. Any ℓ gives a proof, a good one makes T_k − f_k small: by least squares at random points.
T_k − f_k is bounded by bisection, where equal kinks cancel, and T_s − f_s by interpolation, which bisection is no match for.
The rounding of the whole model is added (`deployed`; hinges here).
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..common.budget import Budget
from ..common.machine import one_thread
from ..common.outward import UP, UP_MANY, U
from ..formula.rewriting import parted
from ..layer.form import Block, Form
from ..layer.reading import Reading
from ..layer.rounding.deployed import Deployment, deployed_rounding
from ..layer.rounding.proportional import proportional_fit
from ..target.target import Target
from .analytic import prove as analytic
from .analytic.prove import ROUNDING, box_of
from .bisection.form import Averages
from .bisection.prove import MOST_COORDINATES, BranchAndBound
from .certificate import Evidence
from .claim import Claim, Proof

SHARE = 0.1  # of the tolerance: the kinks need not be bounded more closely
TIME = 0.25  # of the seconds, at most, for the kinks
BOXES = 20_000  # at most: kinks that cancel need a few
POINTS = 400  # for least squares, and to see how large T_k − f_k is
ALIKE = 1e-3  # of the tolerance, and …
CLEARLY = 1e-4  # … of its values: a head whose values are proportional to its scores up to that is a maximum
SAME = 1e-12  # a coefficient of ℓ so close (relatively) to that of T is that of T


def prove(reading: Reading, claim: Claim, budget: Budget, how: Deployment) -> Proof | None:
    """The proof; None where f has no such parts, or the kinks of T are not those of f."""
    target, tolerance = claim.target, claim.tolerance
    parts = parted(target.formula) if target.formula is not None and not target.margin else None
    if parts is None or not reading.form.is_finite() or target.dimension > MOST_COORDINATES:
        return None
    kinked, smooth = (target.part(formula) for formula in parts)
    heads, others = _sorted(reading, ALIKE * tolerance)
    tops = Form(torch.zeros_like(reading.form.bias), torch.zeros_like(reading.form.linear), heads)
    tops = _levelled(tops, reading, kinked)
    kinks = _kinks(tops, reading, claim.of(kinked), budget)
    if not kinks <= tolerance:
        return None
    linear, bias = reading.form.linear - tops.linear, reading.form.bias - tops.bias
    slip = 2 * U * float((linear.abs().sum(dim=0) * reading.edge + bias.abs()).max()) * UP
    box = box_of(target, reading.frame)
    deployed = deployed_rounding(reading.form, *box, how, ROUNDING * tolerance) + _hinge_rounding(reading, how)
    rest = Form(bias, linear, others)
    proof = analytic.prove(rest, reading.frame, claim.of(smooth), budget, how=how, deployed=deployed.numpy())
    if proof is None:
        return None
    bound, covering = (proof.bound + kinks + slip) * UP, proof.covering
    if covering is not None:
        covering = replace(covering, extra=(covering.extra + kinks + slip) * UP, everywhere=bound)
    return replace(proof, bound=bound, evidence=proof.evidence | Evidence(kinks=kinks), covering=covering)


def _sorted(reading: Reading, uneven: float) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """(heads that are maxima, all others)."""
    maxima, others = list[Block](), list[Block]()
    edge = torch.full((1, reading.form.dimension), reading.edge, dtype=torch.float64)
    for block in reading.form.blocks:
        line = proportional_fit(block)
        size = (block.values.abs() + reading.edge * block.slopes.abs().sum(dim=2)).amax(dim=(1, 2))
        top = (line.uneven(edge)[0].amax(dim=1) <= (CLEARLY * size).clamp_max(uneven)) & (size > 0)
        for mine, found in ((top, maxima), (~top, others)):
            if mine.any():
                found.append(Block(block.keys[mine], block.biases[mine], block.values[mine], block.slopes[mine]))
    return tuple(maxima), tuple(others)


def _gap(tops: Form, reading: Reading, kinked: Target) -> tuple[Tensor, Tensor]:
    """(x̂, f_k − heads − hinges) at random points of the box."""
    x = kinked.domain.points(np.random.default_rng(0).random((POINTS, kinked.dimension)))
    hat = reading.frame(torch.from_numpy(x))
    return hat, torch.from_numpy(kinked.values(x)) - tops(hat) - reading.hinges.features(hat) @ reading.hinge_values


def _levelled(tops: Form, reading: Reading, kinked: Target) -> Form:
    """The heads with an affine function such that heads, hinges and it come close to f_k."""
    hat, gap = _gap(tops, reading, kinked)
    if not gap.isfinite().all():
        return tops
    found = torch.linalg.lstsq(torch.cat([torch.ones_like(hat[:, :1]), hat], dim=1), gap, driver="gelsd").solution
    given = torch.cat([reading.form.bias[None], reading.form.linear])
    close = (found - given).abs() <= SAME * gap.abs().max()
    found = torch.where(close, given, found)
    return Form(found[0], found[1:], tops.blocks)


def _kinks(tops: Form, reading: Reading, claim: Claim, budget: Budget) -> float:
    """A bound on |T_k − f_k|, f_k being the claim's target."""
    kinked = claim.target
    T = Averages(tops, reading.frame, reading.hinges, reading.hinge_values)
    seen = float(_gap(tops, reading, kinked)[1].abs().max())
    search = BranchAndBound(T, kinked, range(len(tops.bias)), T.numbers)
    own = Budget(TIME * budget.left, min(budget.boxes, BOXES))
    with one_thread(True):
        cover, _, interrupted = search.run(SHARE * claim.tolerance, seen, own, claim.progress)
    if interrupted:
        raise KeyboardInterrupt  # without the rest there is no bound to return
    return float(cover.bound.max()) * UP if len(cover) else np.inf


def _hinge_rounding(reading: Reading, how: Deployment) -> Tensor:
    """What the rounding of hinges can add to every output: x̂, products and sums in relu(a·x̂ + b), and its value."""
    a, edge = how.arithmetic, reading.edge
    weights = reading.hinges.directions.abs().sum(dim=1)
    size = (weights * edge + reading.hinges.offsets.abs()) * UP
    terms = reading.form.dimension + 4 + how.summands + how.steps + len(reading.hinges)
    off = 2.1 * a.u * edge * weights + terms * a.u * size + terms * a.smallest
    return (off[:, None] * reading.hinge_values.abs()).sum(dim=0) * UP_MANY
