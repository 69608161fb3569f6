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
from ..formula.gradients import gradient
from ..layer.form import Form
from ..layer.reading import Reading, form_of_model
from ..layer.slope_form import slope_form
from ..model.transformer import SingleLayerTransformer
from ..target.target import Target
from .analytic import prove as analytic
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
    formula = None if target.formula is None else gradient(target.formula)
    if formula is None:
        return None
    slopes = target.part(formula)
    slopes.output_shape, slopes.function = (target.outputs * target.dimension,), None
    return slopes


def prove_slopes(model: SingleLayerTransformer, claim: Claim, edge: float, budget: Budget) -> SlopeProof:
    """A bound on the error of all slopes; infinite where the model is no sum of smooth heads, or f has no slope."""
    assert claim.slope_tolerance is not None
    slopes = slopes_of(claim.target)
    if slopes is None:
        return SlopeProof(SlopeBound(claim.slope_tolerance, math.inf, math.nan))
    seen = observe(_answer(model, claim.places), slopes, claim.seed, count=OBSERVED_POINTS)
    found = SlopeBound(claim.slope_tolerance, math.inf, seen.largest)
    reading = form_of_model(model, claim.places, edge)
    if reading is None or len(reading.hinges):
        return SlopeProof(found)
    form, error = slope_error_of(reading)
    about = replace(claim, target=slopes, tolerance=claim.slope_tolerance)
    proof = analytic.prove(form, reading.frame, about, budget, deployed=error)
    if proof is None:
        return SlopeProof(found)
    return SlopeProof(replace(found, bound=proof.bound), proof.evidence.worst_boxes or ())


def slope_error_of(reading: Reading) -> tuple[Form, np.ndarray]:
    """(the form of all slopes, how far it can be from the slopes of the model, [slope])."""
    form, error = slope_form(reading.form, reading.frame.scale, reading.edge)
    scale = torch.tensor(reading.frame.scale, dtype=torch.float64)
    lost = torch.outer(reading.slope_error, scale).flatten()
    return form, ((error + lost) * (1 + 1e-12)).numpy()


def _answer(model: SingleLayerTransformer, places: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
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
