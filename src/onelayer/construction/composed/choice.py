"""Composed or not: the certified layer with fewer parameters, without paying twice.

A composed layer is tried first where fewer variables interact in its inner functions than in the formula, unless these are
two and its polylines have many pieces. Once it is certified, heads alone get as much time again, for as many units as take
fewer parameters, unless the formula may have infinite slopes: heads that follow them all are no fewer. Otherwise heads alone
are tried first, and a composed layer only if they fail.

A sum of functions of one coordinate has rows of bumps as well: at once where a look at the functions says that they need many
units, else where the search has not met the tolerance within a few seconds.
"""

import math
from dataclasses import replace

from ...common.budget import Budget
from ...formula import to_text
from ...formula.additive import components, links_of
from ...layer.assemble.composed import composed_config
from ...layer.composed import ComposedLayer
from ...model.config import LayerConfig
from ...proof.decision import PROOF_SECONDS
from ...target.singular import may_be_steep
from ..adaptive.layer import SEARCHED, adaptive, curves_of
from ..fitted_groups import config_of
from ..kinks.remainder import remainders_of
from ..polished.layer import polished
from ..polished.layer_size import Size
from ..polished.refine import refined
from ..polished.why_not import explain_failure
from ..request import Certify, Found, Request
from .layer import PlannedLane, composed_layer, lanes_of

AS_LONG_AGAIN = 2.0  # times what a certified layer took: when the search for a smaller one ends
EASY_ALONE = 2  # interacting variables that heads alone follow well
ROWS_WAIT = 6.0  # seconds that the search and its proof get before rows of bumps are tried
FEW_PIECES = 40  # of all polylines together
LEAST_SECONDS = (
    20.0  # for it, halved by every variable that interacts with another: heads alone follow few of them well
)


def fewest_units(request: Request, certify: Certify) -> Found:
    """The method "polished": the layer with the fewest parameters that is certified."""
    curves = curves_of(request)
    if curves is None:
        return _fewest(request, certify)
    found = list[Found]()
    if curves.expected <= SEARCHED:
        found.append(_fewest(replace(request, budget=request.budget.up_to(ROWS_WAIT)), certify))
    if not _certified(found) and not (found and request.budget.over()):
        rows = adaptive(curves, certify)
        found += [] if rows is None else [rows]
    if not _certified(found) and not (found and request.budget.over()):
        found.append(_fewest(request, certify))
    return min(found, key=_ends)


def _certified(found: list[Found]) -> bool:
    return any(one.certificate is not None and one.certificate.verdict == "CERTIFIED" for one in found)


def _ends(found: Found) -> tuple[float, float]:
    c = found.certificate
    return (math.inf, math.inf) if c is None else (c.bound, c.observed)


def _fewest(request: Request, certify: Certify) -> Found:
    """Heads alone, or composed."""
    remainders = remainders_of(request)
    exact = any(remainder.nothing_left for remainder in remainders.values())  # kinks are all there is
    smooth = request.slope_tolerance is not None  # a polyline has no slope at its knots
    plain = request.attention == "softmax" and request.grid is None
    lanes = lanes_of(request) if plain and not (exact or smooth) else None
    helps = lanes is not None and _helps(request, lanes)
    first = _composed(request, lanes, certify) if lanes and helps else None
    if first is not None and first.certificate is not None and first.certificate.verdict == "CERTIFIED":
        assert isinstance(first.layer, ComposedLayer)
        if _steep(request):
            return first
        spent, least = request.budget.elapsed, LEAST_SECONDS / 2 ** (_interacting(request) - 1)
        again = max(AS_LONG_AGAIN * spent, spent + least)
        shorter = replace(request, budget=request.budget.up_to(again))
        size = Size(first.layer.units, config_of_composed(request, first.layer).parameter_count)
        candidates = polished(shorter, size, remainders)
        if not candidates or candidates[0].observed > candidates[0].goal:
            return first
        best = refined(candidates[:1], certify)
        return _heads_alone(best) if best.certificate.verdict == "CERTIFIED" else first
    later = bool(lanes) and not helps
    shared = replace(request, budget=request.budget.share(0.5)) if later else request
    best = refined(polished(shared, remainders=remainders), certify)
    if best.certificate.verdict != "CERTIFIED" and lanes and later and not request.budget.over():
        second = _composed(request, lanes, certify)
        if second is not None and second.certificate is not None and second.certificate.verdict == "CERTIFIED":
            return second
    return _heads_alone(best)


def _helps(request: Request, lanes: list[PlannedLane]) -> bool:
    """Whether fewer variables interact, and either heads alone would find them hard or the network is small."""
    before, pieces = _interacting(request), sum(lane.pieces for lane in lanes)
    fewer = max(lane.term.interacting for lane in lanes) < before
    return fewer and (before > EASY_ALONE or pieces <= FEW_PIECES or _steep(request))


def _heads_alone(best) -> Found:  # type: ignore[no-untyped-def]
    return Found(best.layer, best.candidate.remainder.frame, best.certificate, notes=explain_failure(best))


def _interacting(request: Request) -> int:
    """The largest number of variables that interact in the formula."""
    assert request.target.formula is not None
    return max(map(len, components(links_of(request.target.formula))), default=0)


def _steep(request: Request) -> bool:
    target = request.target
    assert target.formula is not None
    return may_be_steep(target.formula, target.domain.lower, target.domain.upper)


def _composed(request: Request, lanes: list[PlannedLane], certify: Certify) -> Found | None:
    """The composed layer with its certificate."""
    layer = composed_layer(request, lanes)
    if layer is None:
        return None
    certificate = certify(request, layer, request.frame, Budget(min(PROOF_SECONDS, request.budget.left)))
    return Found(layer, request.frame, certificate, notes=_story(request, lanes))


def _story(request: Request, lanes: list[PlannedLane]) -> tuple[str, ...]:
    """What attention computes, and what the network makes of it."""
    assert request.target.formula is not None
    names, told = request.target.formula.names, list[str]()
    for lane in lanes:
        inner = to_text(lane.term.inner, names)
        if not lane.term.plain:
            outer = to_text(lane.term.outer, ("u",))
            told.append(f"attention computes u = {inner}, the network {outer}: a polyline of {lane.pieces} pieces")
        else:
            told.append(f"attention computes {inner}, which is added")
    return tuple(told)


def config_of_composed(request: Request, layer: ComposedLayer) -> LayerConfig:
    """The shape of the Transformer that a composed layer becomes."""
    target = request.target.inner(request.target.formula.outputs[0])  # type: ignore[union-attr]
    inner = config_of(target, layer.inner, residual=False)
    return composed_config(inner, len(layer.knots), layer.outputs)
