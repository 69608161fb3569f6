"""The certificate of a model, from nothing but its weights and the target: read, prove, account for its arithmetic."""

import math
from collections.abc import Callable

import torch

from ..model import SingleLayerTransformer
from ..target import Target
from .analytic import prove
from .arithmetic import Arithmetic, arithmetic_of
from .certificate import Certificate
from .deployed import Deployment, edges
from .reading import Reading, form_of_model


def deployment(reading: Reading, arithmetic: Arithmetic) -> Deployment:
    """How the model of a reading is evaluated."""
    largest = {name: float(getattr(reading, name).max()) for name in ("passed", "constants", "error")}
    return Deployment(arithmetic, reading.summands, reading.steps, **largest)


def certify_model(
    target: Target,
    model: SingleLayerTransformer,
    places: tuple[int, ...],
    tolerance: float,
    observed: float,
    points: int,
    progress: Callable[[str, float], None] | None = None,
) -> Certificate:
    """The analytic certificate of a model as it is stored and deployed; a record of the observed error where none applies."""
    arithmetic = arithmetic_of(model.W_E.dtype)
    record = Certificate(tolerance, math.inf, observed, points, "none", str(target.domain), arithmetic=arithmetic.name)
    numbers = (target.domain.lower, target.domain.upper, model.shift.flatten().tolist(), model.scale.flatten().tolist())
    low, high = edges(*(torch.tensor(t, dtype=torch.float64) for t in numbers))
    edge = float(torch.maximum(low.abs(), high.abs()).max())
    reading = form_of_model(model, places, edge * (1 + 4 * arithmetic.u)) if math.isfinite(edge) else None
    if reading is None or len(reading.hinges):
        return record
    how = deployment(reading, arithmetic)
    proof = prove(reading.form, target, reading.frame, tolerance, progress=progress, how=how)
    if proof is None or not proof.bound < math.inf:
        return record
    return Certificate(
        tolerance, proof.bound, observed, points, "analytic", str(target.domain), arithmetic=arithmetic.name,
        assumptions=proof.assumptions, evidence=proof.evidence,
    )  # fmt: skip
