"""Polish, look, certify; and where that fails, polish again with the points at which it failed.

Before a proof is tried the layer is looked at on fresh points: if one of them shows an error above the goal, the points
around it go back into the samples. If the proof fails, the boxes that decided it do.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from ...common.budget import Budget
from ...layer.layer import Layer
from ...proof.certificate import Certificate
from ...proof.observation import observe
from ..request import Certify
from .layer import Box, Polished

LOOKS = 3  # times that fresh points may send a layer back
ROUNDS = 3  # times that a certificate may
AROUND = 0.01  # of the sides: how far around a bad point new samples lie


@dataclass(frozen=True)
class Refined:
    """The best layer, its certificate, the family it is of."""

    layer: Layer
    certificate: Certificate
    source: Polished


def refined(candidates: list[Polished], certify: Certify) -> Refined:
    """The first candidate that is certified, after as many rounds as that needs; else the one with the smallest bound."""
    found: list[Refined] = []
    for candidate in candidates:
        if found and candidate.observed > candidate.request.fit_tolerance:
            break  # it cannot do better than what was not certified
        candidate.renew()
        for turn in range(ROUNDS + 1):
            if candidate.observed <= candidate.goal and candidate.target.data is None:  # data: held out is held out
                try:
                    _look(candidate)
                except KeyboardInterrupt:
                    candidate.budget.interrupted.set()
            layer = candidate.layer
            certificate = _certified(candidate, layer, certify)
            found.append(Refined(layer, certificate, candidate))
            if certificate.verdict == "CERTIFIED":
                return found[-1]
            boxes = _boxes(certificate)
            hopeless = candidate.observed > candidate.request.fit_tolerance or not np.isfinite(certificate.bound)
            if turn == ROUNDS or hopeless or candidate.target.data is not None or candidate.budget.over() or not boxes:
                break
            try:
                candidate.resume(boxes)
            except KeyboardInterrupt:
                candidate.budget.interrupted.set()
                break
        if candidate.budget.interrupted.is_set():
            break
    return min(found, key=lambda r: (r.certificate.bound, r.certificate.observed))


def _certified(candidate: Polished, layer: Layer, certify: Certify) -> Certificate:
    """The certificate of the candidate's layer; after an interrupt only what was observed."""
    request, frame = candidate.request, candidate.rest.frame
    try:
        certificate = certify(request, layer, frame, Budget())
    except KeyboardInterrupt:
        candidate.budget.interrupted.set()
        return certify(replace(request, progress=None), layer, frame, Budget(seconds=1e-9))
    if certificate.evidence.interrupted:
        candidate.budget.interrupted.set()
    return certificate


def _look(candidate: Polished) -> None:
    """Fresh points, each time other ones; where the error is above the goal the candidate is polished again."""
    target = candidate.target
    for look in range(LOOKS):
        layer = candidate.layer

        def answer(x: np.ndarray, layer: Layer = layer) -> np.ndarray:
            return np.asarray(layer(candidate.rest.frame(torch.from_numpy(x))))

        seen = observe(answer, target, candidate.request.seed + 1 + look)
        limit = 0.5 * (candidate.goal + candidate.request.fit_tolerance)
        if seen.largest <= limit or candidate.budget.over():
            return
        reach, whole = AROUND * target.domain.sides, tuple(range(target.dimension))
        low, high = (np.clip(seen.worst + s * reach, target.domain.lower, target.domain.upper) for s in (-1, 1))
        candidate.resume([Box(whole, a, b) for a, b in zip(low[:8], high[:8], strict=True)])


def _boxes(certificate: Certificate) -> list[Box]:
    """The boxes that a failed proof names."""
    worst = certificate.evidence.worst_boxes or ()
    return [Box(b.coordinates, np.array(b.lower), np.array(b.upper)) for b in worst]
