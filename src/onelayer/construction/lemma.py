"""Layers whose error is bounded by a lemma: those of the gallery, and memorised samples.

Their function is described by words and numbers, not by a formula: the folder says which function it is, the certificate
which lemma bounds the error, and from which terms.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..approximation import Approximation
from ..layer.arithmetic import arithmetic_of
from ..layer.facts import Facts
from ..model.transformer import SingleLayerTransformer
from ..proof.certificate import Certificate, Evidence, unproved
from ..sequence_layer import SequenceLayer, observed_error
from ..target.description import Description
from ..target.sequence_task import SequenceTask

ROOM = 1.5  # how many times as large a rounding is stated: the independent checker counts some sums more coarsely


@dataclass(frozen=True)
class Lemma:
    """|T − f| ≤ the sum of `terms` on the whole domain, rounding included; `statement` is what is proved, in words."""

    statement: str
    terms: dict[str, float]
    assumes: tuple[str, ...] = ()  # beyond what is assumed of the arithmetic

    @property
    def bound(self) -> float:
        """The sum, rounded up."""
        return math.nextafter(math.fsum(self.terms.values()), math.inf) if any(self.terms.values()) else 0.0


def approximation_by_lemma(
    model: SingleLayerTransformer,
    description: Description,
    lemma: Lemma,
    facts: Facts,
    tolerance: float,
    samples: tuple[np.ndarray, np.ndarray],
    domain: str = "",
) -> Approximation:
    """The Approximation with its certificate; the error is observed at `samples` (inputs as users pass them, exact answers).

    `domain` is the domain in words, where the box does not say it all.
    """
    domain = domain or str(description.domain)
    approximation = Approximation(model.eval(), unproved(model, tolerance, domain), facts, description)
    x, y = samples
    with torch.no_grad():
        answers = np.asarray(approximation(x), dtype=np.float64).reshape(len(x), -1)
    error = np.abs(answers - y.reshape(len(x), -1)) if len(x) else np.zeros((0, 1))
    observed = float(error.max(initial=0.0)) if np.isfinite(answers).all() else math.nan
    certificate = certificate_by_lemma(model, lemma, tolerance, domain, (observed, len(x)))
    return replace(approximation, certificate=certificate)


def certificate_by_lemma(
    model: SingleLayerTransformer, lemma: Lemma, tolerance: float, domain: str, observed: tuple[float, int]
) -> Certificate:
    """The certificate whose bound is the lemma's; `observed` is the largest error seen, and at how many points."""
    arithmetic = arithmetic_of(model.W_E.dtype)
    return Certificate(
        tolerance=tolerance,
        bound=lemma.bound,
        observed=observed[0],
        observed_points=observed[1],
        method="lemma",
        domain=domain,
        arithmetic=arithmetic.name,
        assumptions=(*arithmetic.assumptions, *lemma.assumes),
        evidence=Evidence(lemma=lemma.statement, terms=lemma.terms),
        weights=model.fingerprint(),
    )


def sequence_layer_by_lemma(
    model: SingleLayerTransformer,
    task: SequenceTask,
    lemma: Lemma,
    facts: Facts,
    tolerance: float,
    batches: list[tuple[np.ndarray, np.ndarray]],
) -> SequenceLayer:
    """The layer with its certificate for all lengths; the error is observed at `batches` (sequences of one length, answers)."""
    layer = SequenceLayer(model.eval(), unproved(model, tolerance, task.quantifier), facts, task)
    observed = observed_error(layer, batches)
    return replace(layer, certificate=certificate_by_lemma(model, lemma, tolerance, task.quantifier, observed))
