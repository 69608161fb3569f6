"""From a function to a certified layer, step by step: the file to read first.

target → request → layer (heads and values) → model (weights) → certificate → approximation
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from .approximation import Approximation
from .common.budget import Budget
from .common.checks import is_number, known_options, require_flag, require_seconds, require_seed
from .common.errors import InputError
from .common.machine import device_of
from .common.numbers import counted
from .common.progress import Progress
from .construction.gridded import model_on
from .construction.leaning import attempts, statements_of, time_to_judge
from .construction.menu import Construction, Method
from .construction.methods import METHODS, facts_of
from .construction.relative import relative_to, with_declared_minimum
from .construction.request import BUILD_SECONDS, Request
from .layer.assemble import Frame, Layout, assemble
from .layer.composed import ComposedLayer
from .layer.equivalent import softmax_equivalent
from .layer.heads import EDGE
from .layer.layer import GateLayer, Layer, MemoryLayer
from .layer.magnitudes import largest_score_of
from .layer.symmetric import SymmetricLayer
from .layer.weight_format import Weights, format_of, stored_as
from .model.config import Attention
from .model.transformer import SingleLayerTransformer
from .proof.certificate import Certificate, Evidence, PropertyRecord
from .proof.claim import Claim
from .proof.decision import PROOF_SECONDS, decide
from .proof.norms import norm_of
from .proof.properties.judge import Judgement, judge
from .proof.properties.real_function import layer_function
from .proof.slopes import require_slopes
from .proof.supremum import Pair, layer_and_target, supremum_of, two_formulas
from .proof.two_sided import Supremum
from .target.difference import difference
from .target.domain import Sides
from .target.target import Target, TargetLike, require_tolerance, target_of

RELATIVE_TIME = 0.1  # share of the seconds for the lower bound of |f| that a relative tolerance needs


@known_options
def build(
    function: TargetLike,
    domain: Sides | None = None,
    tolerance: float = 1e-2,
    *,
    slope_tolerance: float | None = None,
    properties: Sequence[str] = (),
    relative: bool = False,
    method: Method = "polished",
    construction: Construction = "auto",
    layout: Layout = "token",
    attention: Attention = "softmax",
    window: int | None = None,
    units: int | None = None,
    hinges: int = 0,
    dtype: str | torch.dtype | None = None,
    weights: Weights | None = None,
    device: str = "cpu",
    seed: int = 0,
    seconds: float = BUILD_SECONDS,
    progress: Progress | None = None,
    shape: tuple[int, int] | None = None,
    output_shape: tuple[int, ...] | None = None,
    lipschitz: float | Sequence[float] | None = None,
    modulus: Callable[[float], float] | None = None,
    within: str | None = None,
    evaluation_error: float = 0.0,
    margin: float = 0.0,
    split: int = 0,
    symmetric: bool = False,
) -> Approximation:
    """A single-layer Transformer for f on a domain, with a certificate of its error.

    `slope_tolerance` asks for |∂_i T − ∂_i f| ≤ slope_tolerance as well, for every i, proved for the real function of the stored
    weights; where f has kinks, at points that are more than `margin` away from them.
    `properties` are texts such as "increasing in x1" or "T <= 1" (`ol.prove` lists them): the layer is to have them as well, and
    CERTIFIED then means that they are proved too. A property that f itself does not have is refused.
    `relative=True` asks for |T − f| ≤ tolerance times the smallest |f| on the domain; refused where f may be 0.
    `method="polished"` searches for the fewest units that are certified. `seconds` is the time for everything, search and proof;
    when it is up, the best layer so far is returned with the best bound so far.
    `method="solved"` solves for the values of fixed heads only: quicker, larger.
    `method="representative"` is the paper's construction: its size is known in advance and its bound is proved.
    `attention` other than "softmax" makes another architecture (docs/theory/attention.md): "linear" has the same gates, "sigmoid"
    and "sparsemax" have ridge gates on one token that holds x, "local" has gates on tokens that see those up to `window` away.
    `device="cuda"` solves, polishes and proves on a GPU; the model itself is returned on the CPU.
    Without a `dtype` the model is float64. `dtype="float32"` rounds the weights to float32 and certifies that model, run in
    float32, at float32 points.
    `dtype="bfloat16"` stores every number as bfloat16, `weights="int8"` every matrix as int8 with a power of two for each column:
    the layer is found on that grid. Both are run in float32 and certified for that (docs/run/formats.md).
    The options from `shape` on are those of `Target`. An `nn.Module` from [batch, D] to [batch, m] is taken like a function, and
    as a formula where its operations allow that (modules of tokens: `distill`). Samples (X, Y) in place of a function are
    certified if `lipschitz` is declared, and only observed otherwise.
    """
    require_seconds(seconds, "the build")
    budget = Budget(seconds)
    target = target_of(
        function, domain, shape=shape, output_shape=output_shape, lipschitz=lipschitz, modulus=modulus, within=within,
        evaluation_error=evaluation_error, margin=margin, split=split, symmetric=symmetric,
    )  # fmt: skip
    require_tolerance(tolerance)
    require_flag("relative", relative)
    arithmetic, grid = format_of(dtype, weights)
    scale = relative_to(target, tolerance, budget.share(RELATIVE_TIME)) if relative else None
    request = Request(
        target, scale.tolerance if scale else tolerance, method=method, construction=construction, layout=layout,
        attention=attention, window=window, units=units, hinges=hinges, arithmetic=arithmetic, grid=grid, device=device,
        seed=seed, budget=budget, progress=progress, slope_tolerance=slope_tolerance, relative=scale,
    ).checked()  # fmt: skip

    statements = statements_of(properties, target)
    for attempt in attempts(request, statements):  # the request itself, if there are no properties to make room for
        found = METHODS["symmetric" if target.symmetric else method](attempt, certified)  # target → heads and values
        model = assembled(request, found.layer, found.frame)  # heads and values → weights
        known = (found.certificate, found.proved) if attempt.target is target else (None, None)
        certificate = known[0] or decide(model, request.claim, budget.up_to(PROOF_SECONDS), known[1])
        if properties:
            certificate = replace(certificate, properties=judged(model, request.claim, properties, budget))
        if certificate.verdict == "CERTIFIED":
            break
    certificate = with_declared_minimum(replace(certificate, evidence=certificate.evidence | Evidence(relative=scale)))
    certificate = replace(certificate, weight_format=grid.name if grid else "")
    facts = facts_of(found, request)
    return Approximation.of(model, target, certificate, facts)


def assembled(request: Request, layer: Layer | ComposedLayer | SymmetricLayer, frame: Frame) -> SingleLayerTransformer:
    """The model of a layer, in the arithmetic of the request."""
    if request.weight_grid is not None and isinstance(layer, GateLayer | MemoryLayer):
        return model_on(request.weight_grid, request, layer, frame).model
    about = (request.outputs, request.layout, request.attention, request.window or 0)
    dtype = request.arithmetic.name
    model = assemble(layer, frame, *about).to(request.arithmetic.dtype)
    if request.attention == "linear" and softmax_equivalent(model, request.places, EDGE) is None:
        assert isinstance(layer, GateLayer)
        asked = f"scores that linear attention, which does not subtract the largest, has the exponentials of in {dtype}"
        found = f"scores up to {largest_score_of(layer):.3g}"
        raise InputError(asked, found, "allow a larger tolerance, or use attention='softmax'")
    return model


def judged(
    model: SingleLayerTransformer, claim: Claim, properties: Sequence[str], budget: Budget
) -> tuple[PropertyRecord, ...]:
    """What can be proved about the properties of a model."""
    statements, subject = (
        statements_of(properties, claim.target),
        layer_function(model, claim.places, claim.target.domain),
    )
    found = [judge(subject, s, time_to_judge(budget, statements), claim.seed) for s in statements]
    return tuple(PropertyRecord(j.text, j.verdict) for j in found)


def certified(request: Request, layer: Layer | ComposedLayer, frame: Frame, budget: Budget) -> Certificate:
    """What can be proved about the model of a layer, for methods that continue from there."""
    return decide(assembled(request, layer, frame), request.claim, budget)


@known_options
def certify(
    model: SingleLayerTransformer | Approximation,
    target: Target | None = None,
    tolerance: float | None = None,
    *,
    slope_tolerance: float | None = None,
    places: tuple[int, ...] | None = None,
    seconds: float = PROOF_SECONDS,
    boxes: int = 200_000,
    device: str = "cpu",
    seed: int = 0,
    progress: Progress | None = None,
) -> Certificate:
    """What can be proved about sup |T − f| for any single-layer Transformer, trained or constructed.

    The model takes the D = tokens·features_in variables of the target in row order; its outputs at `places` (all of them
    unless given) are the outputs of the target in row order. An `Approximation` supplies target, places and tolerances.
    With `slope_tolerance` the slopes are part of the claim, as for `build`; slopes and properties of an `Approximation` are.
    Stops when the bound is good enough, or when the seconds or boxes are used up, with the best bound so far. With
    `device="cuda"`, T is evaluated on a GPU where the proof is by interpolation.
    """
    require_seconds(seconds, "the proof", finite=False)
    budget = Budget(seconds, boxes)
    old: Certificate | None = None
    if isinstance(model, Approximation):
        target = model.target if target is None else target
        places = model.facts.places if places is None else places
        old, model = model.certificate, model.model
        tolerance = old.tolerance if tolerance is None else tolerance
        slope_tolerance = old.slope.tolerance if slope_tolerance is None and old.slope else slope_tolerance
    claim = claim_about(model, target, tolerance, places, seed)
    require_boxes(boxes)
    device_of(device)
    if slope_tolerance is not None:
        require_slopes(claim.target, slope_tolerance)
    claim = replace(claim, device=device, progress=progress, slope_tolerance=slope_tolerance)
    found = decide(model, claim, budget)
    if old and old.properties:
        found = replace(found, properties=judged(model, claim, [p.text for p in old.properties], budget))
    return replace(found, weight_format=stored_as(model, old.weight_format if old else ""))


def claim_about(
    model: SingleLayerTransformer,
    target: Target | None,
    tolerance: float | None,
    places: tuple[int, ...] | None,
    seed: int,
) -> Claim:
    """The claim that a model is within the tolerance of a target, once the three are known to fit together."""
    if not isinstance(model, SingleLayerTransformer):
        raise InputError("a SingleLayerTransformer", type(model).__name__, "pass a model, or an Approximation")
    if not isinstance(target, Target):
        found = "a gallery entry, a callable or data that were not stored" if target is None else type(target).__name__
        raise InputError("a Target to compare with", found, "pass Target(function, domain)")
    if tolerance is None:
        raise InputError("a tolerance", "none", "give for instance 1e-3")
    require_tolerance(tolerance)
    require_seed(seed)
    rows = tuple(range(model.config.places)) if places is None else places
    claim = Claim(target, tolerance, rows, seed)
    claim.require_fit(model)
    return claim


def require_boxes(boxes: int) -> None:
    if not (isinstance(boxes, int) and boxes > 0):
        raise InputError("a whole number of boxes above 0", f"{boxes!r}", "give how many boxes may be examined")


@known_options
def supremum(
    T: SingleLayerTransformer | Approximation | Target | str,
    f: Target | str | None = None,
    domain: Sides | None = None,
    *,
    accuracy: float = 0.01,
    within: str | None = None,
    places: tuple[int, ...] | None = None,
    seconds: float = PROOF_SECONDS,
    boxes: int = 200_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Supremum:
    """[lower, upper] around sup |T − f| over a domain, both ends proved, lower at a point that is named.

    T is an `Approximation` (its own target is f, unless another one is given), a `SingleLayerTransformer`, or a formula: two
    formulas in up to ten variables have a supremum norm too. Formulas are text with a domain, `within` a condition that cuts a
    part out of it, or `Target`s, which have theirs with them. Stops when upper ≤ (1 + accuracy)·lower, or when the seconds or
    boxes are used up, with what was proved so far; `reached` says which. For a layer the lower end is about the real function
    of the stored weights, and the upper end holds for the computed answers as well.
    """
    require_accuracy(seconds, accuracy, boxes)
    require_seed(seed)
    budget = Budget(seconds, boxes)
    pair = compared(T, f, domain, within, places, seed, budget)
    return supremum_of(pair, float(accuracy), budget, seed, progress)


@known_options
def norm(
    T: SingleLayerTransformer | Approximation | Target | str,
    f: Target | str | None = None,
    domain: Sides | None = None,
    *,
    p: float = 2,
    weight: str | None = None,
    accuracy: float = 0.01,
    places: tuple[int, ...] | None = None,
    seconds: float = PROOF_SECONDS,
    boxes: int = 200_000,
    progress: Progress | None = None,
) -> Supremum:
    """[lower, upper] around the norm of (T − f)/w over a box, both ends proved.

    `p=2` is the root mean square over the box and all outputs, `p=math.inf` the supremum. `weight` is w as a formula in the
    same variables, positive on the box; without it w = 1, and for `p=math.inf` `supremum` is then quicker. T, f and the rest are
    as for `supremum`. A jump of f counts as it is, whatever the margin of the target: in the mean it is harmless.
    """
    require_accuracy(seconds, accuracy, boxes)
    if not (is_number(p) and p in (2, math.inf)):
        raise InputError("`p`, 2 or math.inf", f"{p!r}", "choose the root mean square (2) or the supremum")
    budget = Budget(seconds, boxes)
    pair = compared(T, f, domain, None, places, 0, budget)
    f = pair.target
    if not isinstance(weight, str | None):
        raise InputError("`weight`, a formula", type(weight).__name__, "give text such as '1 + x1'")
    w = None if weight is None else Target(weight, f.domain)
    if w is not None and w.outputs != 1:
        raise InputError("a weight with one output", counted(w.outputs, "output"), "give one formula, such as 1 + x1")
    name = "Root mean square" if p == 2 else "Supremum"
    unknown = Supremum(
        0.0, math.inf, None, float(accuracy), "none", 0, str(f.domain), pair.compared, pair.assumptions, name, weight or ""
    )  # fmt: skip
    assert pair.search is not None
    return norm_of(pair.search(), unknown, float(p), w, budget, progress)


def require_accuracy(seconds: float, accuracy: float, boxes: int) -> None:
    require_seconds(seconds, "the proof", finite=False)
    if not (is_number(accuracy) and 0 < accuracy < 1e6):
        raise InputError("`accuracy`, a share above 0 and below 1e6", f"{accuracy!r}", "give for instance 0.01 for 1%")
    require_boxes(boxes)


def compared(
    T: SingleLayerTransformer | Approximation | Target | str,
    f: Target | str | None,
    domain: Sides | None,
    within: str | None,
    places: tuple[int, ...] | None,
    seed: int,
    budget: Budget,
) -> Pair:
    """T and f as they are given to `supremum` and `norm`."""
    if isinstance(T, str | Target):
        if not isinstance(f, str | Target):
            found = "nothing" if f is None else type(f).__name__
            raise InputError("a formula, or a Target, to compare with", found, 'pass two, such as "sin(x)" and "x"')
        texts = (T if isinstance(T, str) else T.text, f if isinstance(f, str) else f.text)
        return two_formulas(*difference(T, f, domain, within), texts)
    if isinstance(T, Approximation):
        places = T.facts.places if places is None else places
        f = T.target if f is None else f
        T.require_numbers()
        if f is None:
            found = "none: those of gallery entries, callables and data are not stored"
            raise InputError("a target to compare the layer with", found, "give a formula to compare it with")
        if isinstance(f, str) and domain is None:
            if within is not None:
                change = "give `domain` as well, or leave `within` out"
                raise InputError("a condition and the domain that it cuts", "`within` alone", change)
            domain = T.domain
        elif f is T.target and (domain is not None or within is not None):
            change = "leave it out, or give a formula to compare with"
            raise InputError("the layer's own domain", f"`{'within' if domain is None else 'domain'}` as well", change)
        T = T.model
    if isinstance(f, str):
        f = Target(f, domain, within=within)
    elif domain is not None or within is not None:
        raise InputError("a Target alone", "a Target and a domain beside it", "give the domain to Target(…)")
    claim = claim_about(T, f, 1.0, places, seed)
    return layer_and_target(T, claim.target, claim.places, budget)


@known_options
def prove(approximation: Approximation, text: str, *, seconds: float = PROOF_SECONDS, seed: int = 0) -> Judgement:
    """Whether a layer has a property on its domain: PROVED, REFUTED with points that show it, or UNDECIDED.

    The property is text: "increasing in x1", "decreasing in x1", "convex in x1", "concave in x1", "Lipschitz 3 in x1",
    "T <= 2", "T >= 0", "T < 2*pi", "T > 0", or one of these after "not". Names are those of the domain, constants are numbers or
    constant formulas. It is about the real function T of the stored weights, all outputs, and points that differ in that
    variable alone; with a condition `within`, about segments that lie in the domain. Values are proved for every layer,
    slopes and second derivatives for layers of smooth heads. A limit that T reaches cannot be told from one that it passes.
    """
    if not isinstance(approximation, Approximation):
        raise InputError("an Approximation", type(approximation).__name__, "pass what build, train or load returned")
    return approximation.prove(text, seconds, seed)
