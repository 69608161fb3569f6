"""Slopes: a bound on |∂_i T − ∂_i f| for every i, T the real function of the stored weights.

The slopes of T are a sum of softmax averages like T itself (`layer.slope_form`), those of f a formula (`formula.gradients`); so
they are proved close by the engine that proves values close. The rounding of T's evaluation is no part of it: the bound is
about the slopes of the real function, not about those that automatic differentiation computes.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..common.budget import Budget
from ..common.errors import InputError
from ..common.machine import one_thread
from ..common.outward import UP_FEW
from ..formula.simpler_kinks import one_sided
from ..formula.tree import switches
from ..layer.form import Form
from ..layer.number_range import out_of_range
from ..layer.reading import Reading, form_of_model
from ..layer.slope_form import slope_form
from ..model.transformer import SingleLayerTransformer
from ..target.singular import places_of
from ..target.target import Target, require_tolerance
from .analytic import prove as analytic
from .bisection.prove import MOST_COORDINATES, BranchAndBound
from .bisection.tangents import Slopes, has_slopes
from .certificate import Box, SlopeBound
from .claim import Claim
from .observation import observe

OBSERVED_POINTS = 5_000


@dataclass(frozen=True)
class SlopeProof:
    """What is proved about slopes, and the boxes that decided it."""

    found: SlopeBound
    worst: tuple[Box, ...] = ()


def slopes_of(target: Target) -> Target | None:
    """The target whose outputs are ∂f_o/∂x_i, at o·D + i; None if f is not a formula or a slope cannot be written as one."""
    own = None if target.formula is None else one_sided(target.formula, target.domain.lower, target.domain.upper)
    formula = None if own is None else own.slopes
    if formula is None:
        return None
    slopes = target.part(formula)
    slopes.output_shape, slopes.function = (target.outputs * target.dimension,), None
    return slopes


def require_slopes(target: Target, slope_tolerance: float) -> None:
    """Refuse a tolerance for slopes that is no tolerance, or where f has no slopes that are known."""
    require_tolerance(slope_tolerance, "`slope_tolerance`, a tolerance")
    if target.formula is None:
        found = "data" if target.kind == "data" else "a callable"
        raise InputError(
            "a formula, whose slopes can be derived", found, "give f as a formula, or no `slope_tolerance`"
        )
    slopes = slopes_of(target)
    if slopes is None or places_of(target.formula, target.domain.lower, target.domain.upper):
        raise InputError("finite slopes on the whole domain", "a place where f may have none", "shrink the domain")
    if has_jumps(slopes) and not target.margin:
        raise InputError(
            "a margin around the kinks of f, where it has no slope", "margin=0", "give for instance margin=0.01"
        )


def prove_slopes(
    model: SingleLayerTransformer, claim: Claim, edge: float, budget: Budget, observed: bool = True
) -> SlopeProof:
    """A bound on the error of all slopes, infinite where nothing is proved; unless `observed`, at no points it is looked for."""
    assert claim.slope_tolerance is not None
    slopes = slopes_of(claim.target)
    if slopes is None:
        return SlopeProof(SlopeBound(claim.slope_tolerance, math.inf, math.nan))
    answer = slopes_at(model, claim.places)
    largest = observe(answer, slopes, claim.seed, count=OBSERVED_POINTS).largest if observed else 0.0
    found = SlopeBound(claim.slope_tolerance, math.inf, largest)
    about = replace(claim, target=slopes, tolerance=claim.slope_tolerance, slope_tolerance=None)
    reading = form_of_model(model, claim.places, edge)
    if reading is None or len(reading.hinges) or has_jumps(slopes):
        return SlopeProof(replace(found, bound=_by_bisection(model, about, edge, largest, budget)))
    form, error = slopes_of_reading(reading)
    proof = analytic.prove(form, reading.frame, about, budget, deployed=error)
    if proof is None:
        return SlopeProof(found)
    return SlopeProof(replace(found, bound=proof.bound), proof.evidence.worst_boxes or ())


def has_jumps(slopes: Target) -> bool:
    """Whether a slope may jump: f has kinks."""
    assert slopes.formula is not None
    return bool(switches(slopes.formula.outputs))


def _by_bisection(model: SingleLayerTransformer, claim: Claim, edge: float, observed: float, budget: Budget) -> float:
    """A bound for any model, where f has kinks outside the margin around them; ∞ if nothing is proved."""
    c, D = model.config, claim.target.dimension
    if D > MOST_COORDINATES or out_of_range(model, edge) is not None or not has_slopes(c):
        return math.inf
    columns = [(r * c.features_out + o) * D + i for r in claim.places for o in range(c.features_out) for i in range(D)]
    search = slope_search(model, claim.target, columns)
    with one_thread(True):
        cover, _, _ = search.run(claim.tolerance, observed, budget, claim.progress)
    bound = float(cover.bound.max(initial=-math.inf)) * UP_FEW
    return bound if math.isfinite(bound) else math.inf


def slope_search(model: SingleLayerTransformer, target: Target, columns: list[int]) -> BranchAndBound:
    """Bisection for the slopes of any model, those at (place·out)·D + i in `columns`, against a target."""
    c, D = model.config, target.dimension
    widest = c.all_tokens * c.heads * (c.d_k + (2 * D + 1) * c.d_v) + c.all_tokens * (c.d_model + c.ffn_width)
    return BranchAndBound(Slopes(model), target, columns, (D + 1) * widest)


def slopes_of_reading(reading: Reading) -> tuple[Form, np.ndarray]:
    """(the form of all slopes, how far it can be from the slopes of the model, [slope])."""
    form, error = slope_form(reading.form, reading.frame.scale, reading.edge)
    scale = torch.tensor(reading.frame.scale, dtype=torch.float64)
    lost = torch.outer(reading.slope_error, scale).flatten()
    return form, ((error + lost) * (1 + 1e-12)).numpy()


def slopes_at(model: SingleLayerTransformer, places: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """The slopes of the model's real function at points, by automatic differentiation in float64: [point, o·D + i]."""
    double, c = deepcopy(model).double().eval(), model.config
    rows = max(1, 2**21 // (c.heads * c.all_tokens * (c.read_rows.stop - c.read_rows.start)))

    def answer(x: np.ndarray) -> np.ndarray:
        parts = []
        for part in torch.from_numpy(x).split(rows):
            given = part.reshape(len(part), c.tokens, c.features_in).requires_grad_(True)
            outputs = double(given)[:, list(places)].flatten(1)
            own = [torch.autograd.grad(y.sum(), given, retain_graph=True)[0].flatten(1) for y in outputs.unbind(dim=1)]
            parts.append(torch.cat(own, dim=1))
        return torch.cat(parts).numpy()

    return answer
