"""Known functions: layers whose error a lemma of their own bounds, such as the gallery's and memorised samples.

Such a function is described by words and numbers, not by a formula: the folder says which one it is, and the certificate
which lemma bounds the error, from which terms.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ..approximation import Approximation, Facts
from ..layer.arithmetic import arithmetic_of
from ..model.transformer import SingleLayerTransformer
from ..proof.certificate import SCHEMA, Certificate, Evidence
from ..target.decoding import Decoding
from ..target.domain import Domain


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


@dataclass(frozen=True, kw_only=True)
class Known:
    """A function that words describe: which one, on which domain, how inputs are encoded and answers decoded."""

    kind: str  # "gallery" or "samples"
    description: str
    domain: Domain
    words: str  # the domain in words, for the certificate
    shape: tuple[int, int]
    output_shape: tuple[int, ...]
    entry: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    vocabulary: int | None = None  # inputs are token numbers below this
    decoding: Decoding | None = None

    def record(self) -> dict[str, Any]:
        """All of it, for target.json."""
        d = self.domain
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "data": None,
            "formula": None,
            "description": self.description,
            "names": list(d.names),
            "ends": [list(pair) for pair in d.ends],
            "lower": list(d.lower),
            "upper": list(d.upper),
            "within": None,
            "sequence": True,
            "shape": list(self.shape),
            "output_shape": list(self.output_shape),
            "margin": 0.0,
            "entry": self.entry,
            "parameters": self.parameters,
            "vocabulary": self.vocabulary,
            "decoding": None if self.decoding is None else self.decoding.record(),
        }


def known_approximation(
    model: SingleLayerTransformer,
    known: Known,
    lemma: Lemma,
    facts: Facts,
    tolerance: float,
    samples: tuple[np.ndarray, np.ndarray],
) -> Approximation:
    """The Approximation with its certificate; the error is observed at `samples` (inputs as users give them, exact answers)."""
    arithmetic = arithmetic_of(model.W_E.dtype)
    blank = Certificate(tolerance, math.inf, 0.0, 0, "lemma", known.words)
    approximation = Approximation(
        model.eval(), None, blank, facts, known.domain, known.shape, known.output_shape, stored=known.record()
    )
    x, y = samples
    with torch.no_grad():
        answers = np.asarray(approximation(x), dtype=np.float64).reshape(len(x), -1)
    error = np.abs(answers - y.reshape(len(x), -1)) if len(x) else np.zeros((0, 1))
    observed = float(error.max(initial=0.0)) if np.isfinite(answers).all() else math.nan
    certificate = Certificate(
        tolerance=tolerance,
        bound=lemma.bound,
        observed=observed,
        observed_points=len(x),
        method="lemma",
        domain=known.words,
        arithmetic=arithmetic.name,
        assumptions=(*arithmetic.assumptions, *lemma.assumes),
        evidence=Evidence(lemma=lemma.statement, terms=lemma.terms),
        weights=model.fingerprint(),
    )
    return replace(approximation, certificate=certificate)
