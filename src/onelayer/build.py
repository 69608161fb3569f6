"""From a function to a certified layer, in the order in which it happens: the file to read first."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from .approximation import Approximation, Facts
from .assemble import Frame, Layout, assemble
from .assemble.scalar import bound_of_outputs
from .certify.analytic import prove
from .certify.arithmetic import FLOAT32, arithmetic_of
from .certify.certificate import Certificate
from .certify.form import form_of
from .certify.model import certify_model
from .certify.rounding import U64
from .certify.theorem import certify_theorem
from .domain import Domain, End
from .errors import InputError
from .layer import ScalarLayer, VectorLayer
from .plan import Plan, outputs_of
from .representative import plan_representative, representative_layer
from .sample import uniform_points
from .solved import solved_layer
from .symmetric import symmetric_approximation
from .target import Target, target_of
from .wishes import Wishes, require_sense

Method = Literal["representative", "solved"]
Construction = Literal["auto", "gates", "memory"]
OBSERVED_POINTS = 20_000


def build(
    function: "str | Callable[[Any], Any] | Target",
    domain: Sequence[tuple[End, End]] | Mapping[str, tuple[End, End]] | Domain | None = None,
    tolerance: float = 1e-2,
    *,
    method: Method = "solved",
    construction: Construction = "auto",
    layout: Layout = "token",
    units: int | None = None,
    hinges: int = 0,
    symmetric: bool = False,
    share: float | None = None,
    dtype: "str | torch.dtype" = "float64",
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
    **about: Any,
) -> Approximation:
    """A single-layer Transformer for f on a domain, with what is proved about its error.

    `method="representative"` is the paper's construction: its size is known beforehand and its bound is proved.
    `method="solved"` keeps such heads and solves for their values: far fewer units; certified if f is an analytic formula.
    `dtype="float32"` rounds the weights to float32 and certifies that model, run in float32, at float32 points.
    `about` goes to `Target` (shape, output_shape, lipschitz, modulus, where, evaluation_error).
    """
    started = time.perf_counter()
    target = target_of(function, domain, about)
    arithmetic = arithmetic_of(dtype)
    wishes = Wishes(tolerance, construction, units, hinges, seed, layout, arithmetic=arithmetic.name)
    require_sense(wishes, method, symmetric, share)
    if symmetric:
        return symmetric_approximation(target, tolerance, units=units, seed=seed)
    plan: Plan | None = None
    layer: ScalarLayer | VectorLayer
    values_error = 0.0
    if method == "representative":
        plan = plan_representative(target, tolerance, share, layout)
        layer, values_error = representative_layer(target, plan, progress)
    else:
        layer = solved_layer(target, wishes, progress)
    model = assemble(layer, frame_of(target.domain), outputs_of(target), layout).to(arithmetic.dtype)
    facts = Facts(
        method=method,
        construction="memory" if isinstance(layer, VectorLayer) else "gates",
        layout=layout,
        heads=head_kinds(layer, layout, target),
        units=layer.units,
        total=total_of(layer),
        seed=seed,
        places=(0,) if layout == "token" else outputs_of(target).tokens,
    )
    unproved = Certificate(tolerance, float("inf"), float("inf"), 0, "none", str(target.domain))
    approximation = Approximation(
        model, target, unproved, facts, target.domain, target.shape, target.output_shape, plan
    )
    observed, count = observe(approximation, seed)
    if arithmetic is FLOAT32:
        certificate = certify_model(target, model, facts.places, tolerance, observed, count, progress)
    elif plan is not None and isinstance(layer, ScalarLayer):
        certificate = certify_theorem(target, plan, layer, observed, count, values_error)
    else:
        certificate = certify_layer(target, layer, layout, tolerance, observed, count, progress)
    certificate = replace(_believed(certificate), weights=model.fingerprint())
    return replace(approximation, certificate=certificate, facts=replace(facts, seconds=time.perf_counter() - started))


def _believed(certificate: Certificate) -> Certificate:
    """The certificate, or one without a bound if an observation contradicts it: a declared modulus was wrong."""
    if certificate.observed <= certificate.bound:
        return certificate
    told = f"contradicted: an error of {certificate.observed:.3g} was observed, above the bound {certificate.bound:.3g}"
    return replace(certificate, bound=float("inf"), assumptions=(*certificate.assumptions, told))


def certify_layer(
    target: Target,
    layer: ScalarLayer | VectorLayer,
    layout: Layout,
    tolerance: float,
    observed: float,
    points: int,
    progress: Callable[[str, float], None] | None = None,
) -> Certificate:
    """The analytic certificate of a solved layer, where that applies; otherwise a record of the observed error."""
    record = Certificate(tolerance, float("inf"), observed, points, "none", str(target.domain))
    form = form_of(layer)
    proof = prove(form, target, frame_of(target.domain), tolerance, progress=progress) if form is not None else None
    if proof is None or not proof.bound < float("inf"):
        return record
    selection = 8 * U64 * bound_of_outputs(layer) if layout == "wide" and isinstance(layer, ScalarLayer) else 0.0
    return replace(
        record,
        bound=(proof.bound + selection) * (1 + 1e-12),
        method="analytic",
        assumptions=proof.assumptions,
        evidence=proof.evidence,
    )


def frame_of(domain: Domain) -> Frame:
    """Normalisation of the box to [−½, ½]^D."""
    low, high = np.array(domain.lower), np.array(domain.upper)
    return Frame(tuple((low + (high - low) / 2).tolist()), tuple((1 / (high - low)).tolist()))


def observe(approximation: Approximation, seed: int) -> tuple[float, int]:
    """(largest |T − f|, number of points) on fresh random points of the domain, corners included; NaN if T is not finite."""
    target = approximation.target
    assert target is not None
    dtype = approximation.model.W_E.dtype
    points = target.domain.points(uniform_points(OBSERVED_POINTS, target.dimension, 1_000_003 + seed).numpy())
    points = target.domain.representable(points, dtype == torch.float32)
    if not len(points):
        raise InputError(
            "a domain with points in it", f"none of {OBSERVED_POINTS:,} samples satisfies `where`", "widen it"
        )
    rng = np.random.default_rng(seed)
    largest, count, reach = 0.0, 0, 0.05
    for _ in range(4):  # then closer and closer around the worst points found
        errors = np.abs(approximation(points).reshape(len(points), -1) - target(points)).max(axis=1)
        largest = max(largest, float(errors.max())) if np.isfinite(errors).all() else math.nan
        count += len(points)
        if math.isnan(largest):
            break
        worst = points[np.argsort(-errors)[:40]]
        around = np.repeat(worst, 25, axis=0) + reach * target.domain.sides * rng.normal(
            size=(25 * len(worst), target.dimension)
        )
        points = np.clip(around, target.domain.lower, target.domain.upper)
        points = np.concatenate([worst[:1], target.domain.representable(points, dtype == torch.float32)])
        reach /= 5
    else:  # the worst points once more, with f as exactly as it can be had
        exact, _ = target.nearest(worst)
        largest = max(largest, float(np.abs(approximation(worst).reshape(len(worst), -1) - exact).max()))
    return largest, count


def total_of(layer: ScalarLayer | VectorLayer) -> float:
    """Σ|c| over all values, the largest over the outputs."""
    parts = [layer.linear, layer.hinge_values]
    if isinstance(layer, ScalarLayer):
        parts += [layer.gate_values.flatten(0, 1), layer.max_values]
    else:
        parts += [layer.memory_values, layer.ridge_values]
    return float(sum(p.abs().sum(dim=0) for p in parts).max())  # type: ignore[union-attr]


def head_kinds(layer: ScalarLayer | VectorLayer, layout: Layout, target: Target) -> tuple[tuple[str, int], ...]:
    """Heads in the order of the model, as (kind, count)."""
    if isinstance(layer, VectorLayer):
        kinds = [("memory", layer.memory.groups), ("ridge", len(layer.ridges)), ("read", len(layer.reads))]
    else:
        kinds = [("gate", len(layer.gates)), ("max", len(layer.maxima)), ("read", len(layer.reads))]
        if layout == "heads":
            kinds = [*kinds, ("constant", 1)] * target.places[0]
    return tuple((kind, count) for kind, count in kinds if count)
