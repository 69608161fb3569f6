"""From a function to a certified layer, in the order in which it happens: the file to read first."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch

from .approximation import Approximation, Facts
from .common.machine import device_of
from .construction.plan import Plan
from .construction.polished.layer import polished
from .construction.polished.refine import Layer, refined
from .construction.polished.search import Effort
from .construction.polished.why_not import told
from .construction.relative import relative_to
from .construction.representative.construction import plan_representative, representative_layer
from .construction.representative.theorem import certify_theorem
from .construction.request import Wishes, require_sense
from .construction.solved.search import solved_layer
from .construction.symmetric import symmetric_approximation
from .layer.arithmetic import FLOAT64, arithmetic_of
from .layer.assemble import Frame, Layout, assemble, frame_of, outputs_of
from .layer.layer import ScalarLayer, VectorLayer
from .layer.magnitudes import amplitude_of, largest_score_of, total_of
from .model.transformer import SingleLayerTransformer
from .proof.analytic.part import Budget
from .proof.certificate import Certificate
from .proof.decision import decide
from .target.domain import Domain, End
from .target.envelope import notes_of, room
from .target.target import Target, require_tolerance, target_of

Method = Literal["polished", "solved", "representative"]
Construction = Literal["auto", "gates", "memory"]


def build(
    function: "str | Callable[[Any], Any] | tuple[Any, Any] | Target",
    domain: Sequence[tuple[End, End]] | Mapping[str, tuple[End, End]] | Domain | None = None,
    tolerance: float = 1e-2,
    *,
    relative: bool = False,
    method: Method = "polished",
    construction: Construction = "auto",
    layout: Layout = "token",
    units: int | None = None,
    hinges: int = 0,
    symmetric: bool = False,
    share: float | None = None,
    dtype: "str | torch.dtype" = "float64",
    device: str = "cpu",
    seed: int = 0,
    seconds: float = 300.0,
    progress: Callable[[str, float], None] | None = None,
    **about: Any,
) -> Approximation:
    """A single-layer Transformer for f on a domain, with what is proved about its error.

    `relative=True` asks for |T − f| ≤ tolerance times the least |f| on the domain; refused where f may vanish (`relative`).
    `method="polished"` looks for the fewest units that are certified, for `seconds` at most (the proof has its own time).
    `method="solved"` solves for the values of fixed heads alone: quicker, larger.
    `method="representative"` is the paper's construction: its size is known beforehand and its bound is proved.
    `device="cuda"` solves, polishes and proves on a GPU; the model itself comes back on the CPU.
    `dtype="float32"` rounds the weights to float32 and certifies that model, run in float32, at float32 points.
    `about` goes to `Target` (shape, output_shape, lipschitz, modulus, where, evaluation_error, margin, split). Samples
    (X, Y) in place of a function are certified if `lipschitz` is declared, and only observed otherwise.
    """
    started = time.perf_counter()
    target = target_of(function, domain, about)
    arithmetic = arithmetic_of(dtype)
    require_tolerance(tolerance)
    scale = relative_to(target, tolerance) if relative else None
    tolerance = scale.tolerance if scale else tolerance
    wishes = Wishes(
        room(target.left_open, tolerance), construction, units, hinges, seed, layout, seconds, arithmetic.name, device
    )
    device_of(device)
    require_sense(wishes, method, symmetric, share)
    if symmetric:
        found = symmetric_approximation(target, tolerance, units=units, seed=seed, progress=progress)
        return scale.marked(found) if scale else found
    plan: Plan | None = None
    proved: Certificate | None = None
    frame, outputs = frame_of(target.domain), outputs_of(target)

    def model_of(layer: Layer, frame: Frame) -> SingleLayerTransformer:
        return assemble(layer, frame, outputs, layout).to(arithmetic.dtype)

    def certificate_of(layer: Layer, frame: Frame) -> Certificate:
        places = (0,) if layout == "token" else outputs.tokens
        model = model_of(layer, frame)
        try:
            budget = Budget(device=device)
            found = decide(model, target, tolerance, places, budget, seed, progress, proved)
        except KeyboardInterrupt:
            if method != "polished":
                raise
            effort.interrupted.set()
            return decide(model, target, tolerance, places, Budget(seconds=1e-9), seed)
        if "interrupted" in found.evidence:
            effort.interrupted.set()
        return found

    notes: tuple[str, ...] = ()
    effort = Effort(seconds)
    layer: Layer
    if method == "polished":
        best = refined(polished(target, wishes, effort, progress), certificate_of)
        layer, certificate, notes, frame = best.layer, best.certificate, told(best), best.source.rest.frame
    else:
        if method == "representative":
            plan = plan_representative(target, tolerance, share, layout)
            layer, values_error = representative_layer(target, plan, progress)
            if arithmetic is FLOAT64:
                proved = certify_theorem(target, plan, layer, values_error)
        else:
            layer = solved_layer(target, wishes, progress)
        certificate = certificate_of(layer, frame)
    facts = Facts(
        method=method,
        construction="memory" if isinstance(layer, VectorLayer) else "gates",
        layout=layout,
        heads=head_kinds(layer, layout, target),
        units=layer.units,
        total=total_of(layer),
        amplitude=amplitude_of(layer),
        largest_score=largest_score_of(layer),
        seconds=time.perf_counter() - started,
        seed=seed,
        places=(0,) if layout == "token" else outputs.tokens,
        notes=(*notes_of(target.left_open, tolerance), *notes),
    )
    found = Approximation(
        model_of(layer, frame), target, certificate, facts, target.domain, target.shape, target.output_shape, plan
    )
    return scale.marked(found) if scale else found


def head_kinds(layer: ScalarLayer | VectorLayer, layout: Layout, target: Target) -> tuple[tuple[str, int], ...]:
    """Heads in the order of the model, as (kind, count)."""
    if isinstance(layer, VectorLayer):
        kinds = [("memory", layer.memory.groups), ("ridge", len(layer.ridges)), ("read", len(layer.reads))]
    else:
        kinds = [("gate", len(layer.gates)), ("max", len(layer.maxima)), ("read", len(layer.reads))]
        if layout == "heads":
            kinds = [*kinds, ("constant", 1)] * target.places[0]
    return tuple((kind, count) for kind, count in kinds if count)
