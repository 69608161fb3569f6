"""From a model and a target to a certificate: observe, prove, and if that fails, look for a witness.

A layer of softmax averages with an analytic formula is proved by interpolation (`analytic`), everything else by bisection
(`bisect`); where the first falls short of the tolerance the second tries as well, and the better bound counts. A formula
with kinks beside a smooth rest takes both (`parted`).
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from ..approximation import Approximation
from ..common.errors import InputError
from ..common.machine import device_of
from ..formula import Formula
from ..formula.rewriting import parted
from ..formula.tree import Call, Where, postorder
from ..layer.arithmetic import FLOAT32, Arithmetic, arithmetic_of
from ..layer.reading import Reading, form_of_model
from ..layer.rounding.deployed import Deployment, edges
from ..model.transformer import SingleLayerTransformer
from ..target.target import Target, require_tolerance
from .analytic import prove as analytic
from .analytic.part import Budget
from .analytic.prove import Proof
from .bisection import prove as bisect
from .certificate import Certificate, Method
from .kinks_apart import prove as prove_apart
from .observation import observe
from .witness import witness

Progress = Callable[[str, float], None]


def certify(
    model: SingleLayerTransformer | Approximation,
    target: Target | None = None,
    tolerance: float | None = None,
    *,
    places: tuple[int, ...] | None = None,
    seconds: float = 60.0,
    boxes: int = 200_000,
    device: str = "cpu",
    seed: int = 0,
    progress: Progress | None = None,
) -> Certificate:
    """What can be proved about sup |T − f| for any single-layer Transformer, trained or constructed.

    The model takes the D = tokens·features_in variables of the target in row order; its outputs at `places` (all of them
    unless given) are the outputs of the target in row order. An `Approximation` brings target, places and tolerance along.
    Stops when the bound is good, or after so many seconds or boxes with the best bound so far. `device="cuda"` evaluates T on
    a GPU where the proof is by interpolation.
    """
    if isinstance(model, Approximation):
        target = model.target if target is None else target
        tolerance = model.certificate.tolerance if tolerance is None else tolerance
        places = model.facts.places if places is None else places
        model = model.model
    if not isinstance(model, SingleLayerTransformer):
        raise InputError("a SingleLayerTransformer", type(model).__name__, "pass a model, or an Approximation")
    if not isinstance(target, Target):
        found = "a gallery entry, a callable or data that were not stored" if target is None else type(target).__name__
        raise InputError("a Target to compare with", found, "pass Target(function, domain)")
    if tolerance is None:
        raise InputError("a tolerance", "none", "give for instance 1e-3")
    require_tolerance(tolerance)
    _require_budget(seconds, boxes, seed)
    rows = tuple(range(model.config.places)) if places is None else places
    _require_fit(model, target, rows)
    if model.config.attention == "fused":
        change = "certify a copy with attention='softmax'"
        raise InputError("explicit softmax attention", "attention='fused', whose rounding is unknown", change)
    if len({p.dtype for p in model.state_dict().values()}) > 1:
        raise InputError("weights of one dtype", "several", "convert the model with .double() or .float()")
    if model.training and model.config.dropout:
        raise InputError("a model that answers the same each time", "dropout in training mode", "call model.eval()")
    device_of(device)
    return decide(model, target, tolerance, rows, Budget(boxes, seconds, device), seed, progress)


def decide(
    model: SingleLayerTransformer,
    target: Target,
    tolerance: float,
    places: tuple[int, ...],
    budget: Budget | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    proved: Certificate | None = None,
) -> Certificate:
    """The certificate. `proved` is one that is known already (the theorem's): kept if it is within the tolerance."""
    budget = budget or Budget()
    arithmetic = arithmetic_of(model.W_E.dtype)
    seen = observe(_answer(model, places), target, seed, np.float32 if arithmetic is FLOAT32 else np.float64)
    record = Certificate(
        tolerance,
        math.inf,
        seen.largest,
        seen.points,
        "none",
        str(target.domain),
        arithmetic=arithmetic.name,
        margin=target.margin,
        evidence=seen.evidence,
        weights=model.fingerprint(),
    )
    if proved is not None:
        proved = replace(proved, observed=seen.largest, observed_points=seen.points, weights=record.weights)
    best = proved or record
    if not math.isnan(seen.largest) and not best.bound <= tolerance:
        for method in _methods(target):
            proof = prove_by(method, model, target, tolerance, places, seen.limit, budget, progress)
            if proof is not None and proof.bound < best.bound:
                best = replace(
                    record,
                    bound=proof.bound,
                    method=method,
                    assumptions=proof.assumptions,
                    evidence=proof.evidence | seen.evidence,
                )
            if proof is not None and "interrupted" in proof.evidence:
                best = replace(best, evidence=best.evidence | {"interrupted": True})
                break
            close = best.bound <= bisect.ENOUGH * seen.largest
            if best.bound <= tolerance or close or (seen.largest > tolerance and math.isfinite(best.bound)):
                break  # certified, or as close as can be, or beyond hope with a bound to show
    best = believed(best)
    if best.verdict != "CERTIFIED" and max(seen.largest, seen.fitted) > tolerance:
        found = witness(model, target, tolerance, seen.worst, places)
        best = replace(best, witness=found)
    return best


def _methods(target: Target) -> list[Method]:
    """The engines worth trying, in order."""
    if target.formula is None or target.margin:
        return ["bisect"]
    apart = not _has_kinks(target.formula) or parted(target.formula) is not None
    return ["analytic", "bisect"] if apart else ["bisect", "analytic"]


def _has_kinks(formula: Formula) -> bool:
    kinked = ("abs", "min", "max")
    return any(isinstance(t, Where) or (isinstance(t, Call) and t.name in kinked) for t in postorder(formula.outputs))


def prove_by(
    method: Method,
    model: SingleLayerTransformer,
    target: Target,
    tolerance: float,
    places: tuple[int, ...],
    observed: float,
    budget: Budget,
    progress: Progress | None = None,
) -> Proof | None:
    """A proof by one engine, rounding in the arithmetic of the model included; None where it does not apply."""
    arithmetic = arithmetic_of(model.W_E.dtype)
    if method == "bisect":
        fresh = Budget(budget.boxes, max(budget.seconds - budget.elapsed, budget.seconds / 4))
        return bisect.prove(
            model,
            target,
            tolerance,
            observed,
            places=places,
            arithmetic=arithmetic,
            budget=fresh,
            progress=progress,
        )
    numbers = (target.domain.lower, target.domain.upper, model.shift.flatten().tolist(), model.scale.flatten().tolist())
    low, high = edges(*(torch.tensor(t, dtype=torch.float64) for t in numbers))
    edge = float(torch.maximum(low.abs(), high.abs()).max())
    if not fits(model, edge, arithmetic):
        return None
    reading = form_of_model(model, places, edge * (1 + 4 * arithmetic.u))
    if reading is None:
        return None
    how = deployment(reading, arithmetic)
    if target.formula is not None and _has_kinks(target.formula):
        return prove_apart(reading, target, tolerance, budget, how, progress)
    if len(reading.hinges):
        return None
    return analytic.prove(reading.form, target, reading.frame, tolerance, budget, progress, how=how)


def fits(model: SingleLayerTransformer, edge: float, arithmetic: Arithmetic) -> bool:
    """Whether no number on the way can overflow for |x̂| ≤ edge, whatever cancels: absolute values through all the steps."""
    w = {name: t.detach().double().abs() for name, t in model.state_dict().items()}
    c = model.config
    e = edge * w["W_E"].sum(dim=0) + w["b_E"] + (w["P"].amax(dim=0) if "P" in w else 0.0)
    e = torch.maximum(e, w["S"].amax(dim=0)) if c.special_tokens else e
    q, k, v = (torch.einsum("m,hmw->hw", e, w[f"W_{name}"]) for name in "QKV")
    a = v.flatten() @ w["W_O"]
    h = a + e if c.residual else a
    u = h @ w["W_1"] + w["b_1"]
    f = u @ w["W_2"] + w["b_2"] + h
    sizes = [e, q, k, v, (q * k).sum(dim=1), a, u, f, f @ w["W_R"] + w["b_R"]]
    return all(bool((t < arithmetic.overflow / 64 / c.all_tokens).all()) for t in sizes)


def deployment(reading: Reading, arithmetic: Arithmetic) -> Deployment:
    """How the model of a reading is evaluated."""
    largest = {name: float(getattr(reading, name).max()) for name in ("passed", "constants", "error")}
    summands = max(
        reading.summands, reading.form.terms
    )  # of the model, and of the form itself where `fast` evaluates it
    return Deployment(arithmetic, summands, reading.steps, **largest)


def believed(certificate: Certificate) -> Certificate:
    """The certificate, or one without a bound if an observation contradicts it: a declared modulus was wrong."""
    if certificate.observed <= certificate.bound:
        return certificate
    told = f"contradicted: an error of {certificate.observed:.3g} was observed, above the bound {certificate.bound:.3g}"
    return replace(certificate, bound=math.inf, assumptions=(*certificate.assumptions, told))


def _answer(model: SingleLayerTransformer, places: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """T at points [point, D], in chunks that bound the memory of the attention weights."""
    c = model.config
    rows = max(1, 2**22 // (c.heads * c.all_tokens * (c.read_rows.stop - c.read_rows.start)))

    def answer(x: np.ndarray) -> np.ndarray:
        given = torch.from_numpy(x).to(model.W_E.dtype).reshape(len(x), c.tokens, c.features_in)
        with torch.no_grad():
            parts = [model(part)[:, list(places)].flatten(1) for part in given.split(rows)]
        return torch.cat(parts).double().numpy()

    return answer


def _require_fit(model: SingleLayerTransformer, target: Target, places: tuple[int, ...]) -> None:
    c = model.config
    if c.tokens * c.features_in != target.dimension:
        raise InputError(
            f"a model of {target.dimension} variables, as the target has",
            f"{c.tokens} tokens with {c.features_in} features",
            "make the two agree",
        )
    if not places or not all(isinstance(p, int) and 0 <= p < c.places for p in places):
        raise InputError(f"places among 0 … {c.places - 1}", f"{places}", "name rows that the model reads out")
    if len(places) * c.features_out != target.outputs:
        raise InputError(
            f"a model with {target.outputs} outputs, as the target has",
            f"{len(places)} places with {c.features_out} features",
            "name the places, or give output_shape",
        )


def _require_budget(seconds: float, boxes: int, seed: int) -> None:
    if not (isinstance(seed, int) and 0 <= seed < 2**32):
        raise InputError("a seed, a whole number from 0 to 2^32 − 1", f"{seed!r}", "give for instance 0")
    if not (isinstance(seconds, int | float) and seconds > 0):
        raise InputError("seconds above 0", f"{seconds!r}", "give the time that the proof may take")
    if not (isinstance(boxes, int) and boxes > 0):
        raise InputError("a whole number of boxes above 0", f"{boxes!r}", "give how many boxes may be looked at")
