"""Kinks and smooth terms proved apart: f = f_k + f_s, T = T_k + T_s, so |T − f| ≤ |T_k − f_k| + |T_s − f_s|.

f_k has the additive terms of f that are kinks of affine functions, f_s the others, which must be smooth. T_k has the heads
whose values are proportional to their scores (smooth maxima), the hinges, and an affine function ℓ; T_s the other heads and
what ℓ leaves of the affine part. Any ℓ gives a proof, a good one makes T_k − f_k small: by least squares at random points.
T_k − f_k is bounded by bisection, where equal kinks cancel, and T_s − f_s by interpolation, which does far better there.
The rounding of the whole model is added (`layer.rounding.deployed`).
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..common.budget import Budget
from ..common.machine import one_thread
from ..common.outward import UP, U
from ..formula import Formula
from ..formula.additive import additive_terms, gathered
from ..formula.affine import difference
from ..formula.simpler_kinks import kinks_in
from ..formula.tree import Node, Sum, variables
from ..layer.form import Block, Form
from ..layer.reading import Reading
from ..layer.rounding.proportional import proportional_fit
from ..target.target import Target
from .analytic import prove as analytic
from .analytic.prove import ROUNDING_SHARE, box_of
from .bisection.form import TaylorForm
from .bisection.prove import MOST_COORDINATES, BranchAndBound
from .certificate import Evidence
from .claim import Claim, Proof

KINK_SHARE = 0.1  # share of the tolerance below which the kinks are not bounded more closely
KINK_TIME = 0.25  # share of the seconds that the kinks may take
MOST_KINK_BOXES = 20_000  # kinks that cancel need only a few
SAMPLED_POINTS = 400  # for least squares, and to see how large T_k − f_k is
# a head is a maximum if its values are proportional to its scores up to these shares of the tolerance and of the values
UNEVEN_OF_TOLERANCE, UNEVEN_OF_VALUES = 1e-3, 1e-4
SAME_COEFFICIENT = 1e-12  # relative difference up to which a coefficient of ℓ is set to that of T


def parted(formula: Formula) -> tuple[Formula, Formula] | None:
    """(kinks of affine functions, the rest), which add up to the formula; None if either has nothing, or other kinks."""
    D, kinks, rest = formula.dimension, list[Node](), list[Node]()
    for output in formula.outputs:
        trees = [(tree, bool(kinks_in(tree))) for tree in additive_terms(output)]
        if any(kinked and difference(tree, D) is None for tree, kinked in trees):
            return None
        kinks.append(gathered(Sum, [tree for tree, kinked in trees if kinked]))
        rest.append(gathered(Sum, [tree for tree, kinked in trees if not kinked]))
    straight = all(difference(tree, D) is not None for output in rest for tree in additive_terms(output))
    if straight or not variables(*kinks):
        return None
    return replace(formula, outputs=tuple(kinks)), replace(formula, outputs=tuple(rest))


def prove(reading: Reading, claim: Claim, budget: Budget) -> Proof | None:
    """The proof; None where f has no such parts, or the kinks of T are not those of f."""
    target, tolerance = claim.target, claim.tolerance
    parts = parted(target.formula) if target.formula is not None and not target.margin else None
    if parts is None or not reading.form.is_finite() or target.dimension > MOST_COORDINATES:
        return None
    kinked, smooth = (target.part(formula) for formula in parts)
    maxima, others = _split_heads(reading, UNEVEN_OF_TOLERANCE * tolerance)
    maxima_form = Form(torch.zeros_like(reading.form.bias), torch.zeros_like(reading.form.linear), maxima)
    maxima_form = _with_affine(maxima_form, reading, kinked)
    kinks = _kink_bound(maxima_form, reading, claim.about(kinked), budget)
    if not kinks <= tolerance:
        return None
    linear, bias = reading.form.linear - maxima_form.linear, reading.form.bias - maxima_form.bias
    split_rounding = 2 * U * float((linear.abs().sum(dim=0) * reading.edge + bias.abs()).max()) * UP
    box = box_of(target, reading.frame)
    deployed = reading.program.rounding(*box, claim.share(ROUNDING_SHARE) * tolerance).numpy()
    left = Form(bias, linear, others)
    about = claim.about(smooth)
    proof = analytic.prove(left, reading.frame, about, budget, program=reading.program, deployed=deployed)
    if proof is None:
        return None
    bound, covering = (proof.bound + kinks + split_rounding) * UP, proof.covering
    if covering is not None:
        covering = replace(covering, extra=(covering.extra + kinks + split_rounding) * UP, everywhere=bound)
    return replace(proof, bound=bound, evidence=proof.evidence | Evidence(kinks=kinks), covering=covering)


def _split_heads(reading: Reading, uneven: float) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """(heads that are maxima, all others)."""
    maxima, others = list[Block](), list[Block]()
    edge = torch.full((1, reading.form.dimension), reading.edge, dtype=torch.float64)
    for block in reading.form.blocks:
        line = proportional_fit(block)
        size = (block.values.abs() + reading.edge * block.slopes.abs().sum(dim=2)).amax(dim=(1, 2))
        top = (line.uneven(edge)[0].amax(dim=1) <= (UNEVEN_OF_VALUES * size).clamp_max(uneven)) & (size > 0)
        for mine, found in ((top, maxima), (~top, others)):
            if mine.any():
                found.append(Block(block.keys[mine], block.biases[mine], block.values[mine], block.slopes[mine]))
    return tuple(maxima), tuple(others)


def _residual(maxima_form: Form, reading: Reading, kinked: Target) -> tuple[Tensor, Tensor]:
    """(x̂, f_k − heads − hinges) at random points of the box."""
    x = kinked.domain.points(np.random.default_rng(0).random((SAMPLED_POINTS, kinked.dimension)))
    hat = reading.frame(torch.from_numpy(x))
    hinges = reading.hinges.features(hat) @ reading.hinge_values
    return hat, torch.from_numpy(kinked.values(x)) - maxima_form(hat) - hinges


def _with_affine(maxima_form: Form, reading: Reading, kinked: Target) -> Form:
    """The heads with an affine function such that heads, hinges and it come close to f_k."""
    hat, gap = _residual(maxima_form, reading, kinked)
    if not gap.isfinite().all():
        return maxima_form
    found = torch.linalg.lstsq(torch.cat([torch.ones_like(hat[:, :1]), hat], dim=1), gap, driver="gelsd").solution
    given = torch.cat([reading.form.bias[None], reading.form.linear])
    close = (found - given).abs() <= SAME_COEFFICIENT * gap.abs().max()
    found = torch.where(close, given, found)
    return Form(found[0], found[1:], maxima_form.blocks)


def _kink_bound(maxima_form: Form, reading: Reading, claim: Claim, budget: Budget) -> float:
    """A bound on |T_k − f_k|, f_k being the claim's target."""
    kinked = claim.target
    T = TaylorForm(maxima_form, reading.frame, reading.hinges, reading.hinge_values)
    seen = float(_residual(maxima_form, reading, kinked)[1].abs().max())
    search = BranchAndBound(T, kinked, range(len(maxima_form.bias)), T.numbers)
    own = Budget(KINK_TIME * budget.left, min(budget.boxes, MOST_KINK_BOXES))
    with one_thread(True):
        cover, _, interrupted = search.run(claim.share(KINK_SHARE) * claim.tolerance, seen, own, claim.progress)
    if interrupted:
        raise KeyboardInterrupt  # without a bound for the smooth terms there is none to return
    return float(cover.bound.max()) * UP if len(cover) else np.inf
