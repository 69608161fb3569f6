"""From a model and a target to a certificate: observe, prove, and if that fails, look for a witness.

For a layer of softmax averages and an analytic formula the proof is by interpolation (`analytic`), for everything else by
bisection (`bisection`); where the first misses the tolerance the second is tried as well, and the better bound counts. A
formula with kinks beside smooth terms needs both (`kinks_apart`).
"""

import math
from dataclasses import replace

import torch

from ..common.budget import Budget
from ..common.numbers import exact
from ..formula.additive import links_of
from ..layer.arithmetic import arithmetic_of
from ..layer.composed_reading import network_of
from ..layer.panels import FEWEST
from ..layer.reading import form_of_model
from ..layer.rounding.deployed import edges
from ..layer.rounding.online_softmax import arithmetic_of_model, attention_assumed
from ..model.config import Attention
from ..model.transformer import SingleLayerTransformer
from ..target.declared import condition_of
from ..target.singular import has_kinks
from ..target.target import Target
from .analytic import prove as analytic
from .attained import attained_by
from .bisection import prove as bisect
from .bisection.other_attention import SIGMOID_ASSUMED
from .boxes import Covering
from .certificate import Certificate, Evidence, Method, unproved
from .claim import Claim, Proof
from .composed.prove import prove as prove_composed
from .kinks_apart import parted
from .kinks_apart import prove as prove_apart
from .observation import answer_of, floats_of, observe
from .overflow import refusal
from .ramps import prove as prove_ramps
from .slopes import prove_slopes
from .witness import witness

PROOF_SECONDS = 75.0
FIRST_METHOD_TIME = 0.8  # share of the seconds for the first of two engines
OBSERVATION_TIME = 0.5  # share of the seconds for looking at points


def decide(
    model: SingleLayerTransformer, claim: Claim, budget: Budget | None = None, proved: Certificate | None = None
) -> Certificate:
    """The certificate. `proved` is one that exists already (the theorem's); it is kept if it is within the tolerance."""
    budget, target, tolerance = budget or Budget(PROOF_SECONDS), claim.target, claim.tolerance
    answer = answer_of(model, claim.places, budget.share(OBSERVATION_TIME) if target.data is None else Budget(math.inf))
    seen = observe(answer, target, claim.seed, floats_of(model))
    record = unproved(model, tolerance, str(target.domain), seen.largest, seen.points, target.margin, seen.evidence)
    record = replace(record, condition="" if target.formula is not None else condition_of(target))
    if proved is not None:
        proved = replace(proved, observed=seen.largest, observed_points=seen.points, weights=record.weights)
    best = proved or record
    if not math.isnan(seen.largest) and not best.bound <= tolerance:
        methods = methods_for(target, model.config.heads)
        for method in methods:
            own = budget.share(FIRST_METHOD_TIME if method != methods[-1] else 1.0)
            proof = prove_by(method, model, claim, seen.limit, own)
            if proof is not None and proof.bound < best.bound:
                evidence = proof.evidence | seen.evidence
                best = replace(
                    record, bound=proof.bound, method=method, assumptions=proof.assumptions, evidence=evidence
                )
            if proof is not None and proof.evidence.interrupted:
                best = replace(best, evidence=best.evidence | Evidence(interrupted=True))
                break
            close = best.bound <= bisect.CLOSE_FACTOR * seen.largest
            if best.bound <= tolerance or close or (seen.largest > tolerance and math.isfinite(best.bound)):
                break  # certified, or as close as it gets, or not certifiable but bounded
    if not math.isnan(seen.largest):
        least = attained_by(model, claim, answer, seen.worst, best, budget)
        point = least.point if target.data is None else None  # samples may be confidential: none is stored
        best = replace(best, lower=least.lower, lower_point=point)
    best = unless_contradicted(best)
    if math.isfinite(best.bound):
        best = replace(best, assumptions=(*best.assumptions, *target.caveats))
    elif (reason := refusal(model, edge_of(model, target))) is not None:
        best = replace(best, assumptions=(*best.assumptions, f"nothing is proved: {reason}"))
    if claim.slope_tolerance is not None:
        slopes = prove_slopes(model, claim, edge_of(model, target), budget)
        boxes = (*(best.evidence.worst_boxes or ()), *slopes.worst)
        best = replace(best, slope=slopes.found, evidence=best.evidence | Evidence(worst_boxes=boxes or None))
        best = unless_slopes_contradict(best)
    if best.verdict != "CERTIFIED" and max(seen.largest, seen.fitted) > tolerance:
        best = replace(best, witness=witness(model, claim, seen.worst, budget))
    return best


def methods_for(target: Target, heads: int) -> list[Method]:
    """The engines worth trying for that many heads, in order."""
    if target.formula is None or target.leaves_points_out:
        return ["bisect"]
    panels = heads >= FEWEST and all(len(link) < 2 for link in links_of(target.formula))
    apart = panels or not has_kinks(target.formula) or parted(target.formula) is not None
    return ["analytic", "bisect"] if apart else ["bisect", "analytic"]


def prove_by(
    method: Method, model: SingleLayerTransformer, claim: Claim, observed: float, budget: Budget
) -> Proof | None:
    """A proof by one engine, rounding in the model's arithmetic included; None where the engine does not apply."""
    wide = edge_of(model, claim.target)
    if refusal(model, wide) is not None:
        return None
    if method == "bisect":
        proof = prove_ramps(model, claim, wide, budget) if model.config.attention == "sparsemax" else None
        return proof or bisect.prove(model, claim, observed, budget)
    proof = _prove_reading(model, claim, wide, budget)
    return proof if proof is None or model.config.attention == "softmax" else _assuming(model.config.attention, proof)


def _assuming(attention: Attention, proof: Proof) -> Proof:
    """The same proof about another attention, which assumes something else."""
    explicit, other = "explicit softmax attention", attention_assumed(attention)
    assumed = tuple(text.replace(explicit, other, 1) for text in proof.assumptions)
    return replace(proof, assumptions=(*assumed, SIGMOID_ASSUMED) if attention == "sigmoid" else assumed)


def _prove_reading(model: SingleLayerTransformer, claim: Claim, edge: float, budget: Budget) -> Proof | None:
    """A proof by interpolation for a model that is read as a sum of softmax averages, perhaps with outer functions."""
    reading, target = form_of_model(model, claim.places, edge), claim.target
    if reading is None:
        return _prove_composed(model, claim, edge, budget)
    about = (reading.form, reading.frame, claim, budget)
    kinks = target.formula is not None and has_kinks(target.formula)
    if not kinks and not len(reading.hinges):
        return analytic.prove(*about, program=reading.program)
    apart = kinks and reading.form.heads < FEWEST
    found = prove_apart(reading, claim, budget) if apart else None
    hinges = (reading.hinges, reading.hinge_values)
    found = found or analytic.prove(*about, program=reading.program, hinges=hinges)
    return found or (prove_apart(reading, claim, budget) if kinks and not apart else None)


def edge_of(model: SingleLayerTransformer, target: Target) -> float:
    """The largest |x̂_i| on the domain, the rounding of x̂ included."""
    numbers = (target.domain.lower, target.domain.upper, model.shift.flatten().tolist(), model.scale.flatten().tolist())
    low, high = edges(*(torch.tensor(t, dtype=torch.float64) for t in numbers))
    return float(torch.maximum(low.abs(), high.abs()).max()) * (1 + 4 * arithmetic_of(model.W_E.dtype).u)


def _prove_composed(model: SingleLayerTransformer, claim: Claim, edge: float, budget: Budget) -> Proof | None:
    """A proof for a model whose network computes outer functions; None for other models."""
    found = network_of(model) if claim.places == (0,) else None
    reading = form_of_model(found[0], claim.places, edge, arithmetic_of_model(model)) if found else None
    if found is None or reading is None:
        return None
    return prove_composed(reading, found[1], claim, budget)


def covering(
    model: SingleLayerTransformer, claim: Claim, certificate: Certificate, seconds: float = 60.0
) -> Covering | None:
    """The boxes behind a certificate, proved again within this many seconds by the engine that it names.

    None where the proof has no boxes (by a theorem or a lemma), or where nothing is proved. With the time that the
    certificate took, the boxes are those of the certificate; with less they may be larger.
    """
    method, evidence = certificate.method, certificate.evidence
    if method not in ("analytic", "bisect") or not math.isfinite(certificate.bound):
        return None
    limit = max(certificate.observed, evidence.fitted_error or 0.0, evidence.possible_error or 0.0)
    proof = prove_by(method, model, claim, limit, Budget(seconds))
    return None if proof is None else proof.covering


def unless_contradicted(certificate: Certificate) -> Certificate:
    """The certificate, or one without a bound if an observation contradicts it: a declared modulus was wrong."""
    if certificate.observed <= certificate.bound and certificate.lower <= certificate.bound:
        return certificate
    proved = certificate.lower > certificate.bound
    error, how = (certificate.lower, "is proved") if proved else (certificate.observed, "was observed")
    contradiction = f"contradicted: an error of {exact(error)} {how}, above the bound {exact(certificate.bound)}"
    return replace(certificate, bound=math.inf, assumptions=(*certificate.assumptions, contradiction))


def unless_slopes_contradict(certificate: Certificate) -> Certificate:
    """The same for slopes."""
    found = certificate.slope
    if found is None or not found.observed > found.bound:
        return certificate
    contradiction = f"contradicted: slopes are off by {exact(found.observed)}, above the bound {exact(found.bound)}"
    withdrawn = replace(found, bound=math.inf)
    return replace(certificate, slope=withdrawn, assumptions=(*certificate.assumptions, contradiction))
