"""Polish, check, certify; and where that fails, polish again with the points at which it failed.

Before a proof is tried the layer is checked on fresh points: if one of them shows an error above the goal, points around it
are added to the samples. If the proof fails, points of the boxes that decided it are.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from ...common.budget import Budget
from ...layer.layer import Layer
from ...proof.analytic.summand import MOST_WITH_HEADS
from ...proof.certificate import Box, Certificate
from ...proof.decision import PROOF_SECONDS
from ...proof.observation import observe
from ..request import Certify
from .candidate import Candidate

FRESH_POINTS = 5_000  # looked at before a proof, and uphill from the worst of them …
MORE_FRESH_POINTS = 20_000  # … if five and more variables interact, or a condition leaves only part of the box
MOST_LOOKS = 3  # times that fresh points may send a layer back to be polished
MOST_ROUNDS = 3  # times that a failed certificate may
AROUND = 0.01  # share of the sides: how far around a bad point new samples lie


@dataclass(frozen=True)
class Refined:
    """The best layer, its certificate, and the candidate that it came from."""

    layer: Layer
    certificate: Certificate
    candidate: Candidate


def refined(candidates: list[Candidate], certify: Certify) -> Refined:
    """The first candidate that is certified, after as many rounds as that needs; else the one with the smallest bound."""
    found: list[Refined] = []
    for candidate in candidates:
        if found and (candidate.observed > candidate.request.fit_tolerance or not candidate.request.budget.left):
            break  # it cannot do better than what was not certified, or there is no time to prove it
        candidate.renew()
        for turn in range(MOST_ROUNDS + 1):
            useful = bool(candidate.searches) and candidate.target.data is None  # held-out data stay held out
            if useful and candidate.observed <= candidate.goal:
                try:
                    _check_fresh_points(candidate)
                except KeyboardInterrupt:
                    candidate.budget.interrupted.set()
            layer = candidate.layer
            certificate = _certified(candidate, layer, certify)
            found.append(Refined(layer, certificate, candidate))
            if certificate.verdict == "CERTIFIED":
                return found[-1]
            boxes = list(certificate.evidence.worst_boxes or ())
            hopeless = candidate.observed > candidate.request.fit_tolerance or not np.isfinite(certificate.bound)
            hopeless = hopeless or candidate.target.data is not None or not boxes
            if turn == MOST_ROUNDS or hopeless or candidate.budget.over():
                break
            try:
                candidate.resume(boxes)
            except KeyboardInterrupt:
                candidate.budget.interrupted.set()
                break
        if candidate.budget.interrupted.is_set():
            break
    return min(found, key=lambda r: (r.certificate.bound, r.certificate.observed))


def _certified(candidate: Candidate, layer: Layer, certify: Certify) -> Certificate:
    """The certificate of the candidate's layer; after an interrupt only what was observed."""
    request, frame = candidate.request, candidate.remainder.frame
    try:
        certificate = certify(request, layer, frame, Budget(min(PROOF_SECONDS, request.budget.left)))
    except KeyboardInterrupt:
        candidate.budget.interrupted.set()
        return certify(replace(request, progress=None), layer, frame, Budget(seconds=1e-9))
    if certificate.evidence.interrupted:
        candidate.budget.interrupted.set()
    return certificate


def _check_fresh_points(candidate: Candidate) -> None:
    """Look at fresh points, new ones each time; where the error is above the goal the candidate is polished again."""
    target = candidate.target
    many = target.domain.within is not None or max(map(len, candidate.searches)) > MOST_WITH_HEADS
    for look in range(MOST_LOOKS):
        if candidate.budget.over():
            return
        layer = candidate.layer

        def answer(x: np.ndarray, layer: Layer = layer) -> np.ndarray:
            return np.asarray(layer(candidate.remainder.frame(torch.from_numpy(x))))

        seen = observe(
            answer, target, candidate.request.seed + 1 + look, count=MORE_FRESH_POINTS if many else FRESH_POINTS
        )
        limit = 0.5 * (candidate.goal + candidate.request.fit_tolerance)
        if seen.largest <= limit:
            return
        reach, whole = AROUND * target.domain.sides, tuple(range(target.dimension))
        low, high = (np.clip(seen.worst + s * reach, target.domain.lower, target.domain.upper) for s in (-1, 1))
        corners = zip(low[:8].tolist(), high[:8].tolist(), strict=True)
        candidate.resume([Box(whole, tuple(lower), tuple(upper)) for lower, upper in corners])
