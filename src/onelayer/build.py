"""From a function to a certified layer, in the order in which it happens: the file to read first."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from .approximation import Approximation, Facts
from .assemble import Frame, Layout, assemble
from .certify.arithmetic import FLOAT64, arithmetic_of
from .certify.decide import decide
from .certify.theorem import certify_theorem
from .domain import Domain, End
from .envelope import notes_of, room
from .layer import ScalarLayer, VectorLayer
from .plan import Plan, outputs_of
from .representative import plan_representative, representative_layer
from .solved import solved_layer
from .symmetric import symmetric_approximation
from .target import Target, target_of
from .wishes import Wishes, require_sense

Method = Literal["representative", "solved"]
Construction = Literal["auto", "gates", "memory"]


def build(
    function: "str | Callable[[Any], Any] | tuple[Any, Any] | Target",
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
    `about` goes to `Target` (shape, output_shape, lipschitz, modulus, where, evaluation_error, margin, split). Samples
    (X, Y) in place of a function are certified if `lipschitz` is declared, and only observed otherwise.
    """
    started = time.perf_counter()
    target = target_of(function, domain, about)
    arithmetic = arithmetic_of(dtype)
    wishes = Wishes(tolerance, construction, units, hinges, seed, layout, arithmetic=arithmetic.name)
    require_sense(wishes, method, symmetric, share)
    if symmetric:
        return symmetric_approximation(target, tolerance, units=units, seed=seed, progress=progress)
    plan: Plan | None = None
    layer: ScalarLayer | VectorLayer
    values_error = 0.0
    if method == "representative":
        plan = plan_representative(target, tolerance, share, layout)
        layer, values_error = representative_layer(target, plan, progress)
    else:
        layer = solved_layer(target, replace(wishes, tolerance=room(target.left_open, tolerance)), progress)
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
    proved = None
    if plan is not None and isinstance(layer, ScalarLayer) and arithmetic is FLOAT64:
        proved = certify_theorem(target, plan, layer, values_error)
    certificate = decide(model, target, tolerance, facts.places, seed=seed, progress=progress, proved=proved)
    facts = replace(facts, seconds=time.perf_counter() - started, notes=notes_of(target.left_open, tolerance))
    return Approximation(model, target, certificate, facts, target.domain, target.shape, target.output_shape, plan)


def frame_of(domain: Domain) -> Frame:
    """Normalisation of the box to [−½, ½]^D."""
    low, high = np.array(domain.lower), np.array(domain.upper)
    return Frame(tuple((low + (high - low) / 2).tolist()), tuple((1 / (high - low)).tolist()))


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
