"""How far LayerNorm moves a layer that `layernorm` rewrote for it, in exact arithmetic.

A LayerNorm multiplies a stream z by ρ, |ρ − 1| ≤ δ. Absolute values are followed through all the steps (`value_bounds`):

    post-norm   h moves by δ|h|, the FFN by slope·δ|h||W_1||W_2|, and the second LayerNorm adds δ of everything
    pre-norm    scores are multiplied by two factors and move by (2δ + δ²)|score|, values by δ|value|. If scores of tokens that
                may have a weight move by at most s, weights move by e^(2s) − 1 altogether; others have a weight of e^−60 at most
"""

import math

from flint import arb

from ...common.outward import UP
from ...model.config import STEEPEST
from .layernorm import EPS, Doubled
from .subject import Subject
from .value_bounds import largest_norm, value_bounds


def deviation(subject: Subject, found: Doubled) -> float:
    """A bound on |T' − T| over the domain, with the stored gain; the largest over the outputs, ∞ if scores move too far."""
    c, s = subject.model.config, value_bounds(subject)
    w = {name: t.detach().double().abs() for name, t in subject.model.state_dict().items()}
    delta = _delta(found, largest_norm(subject, s, found.config.norm))
    slope = STEEPEST[c.activation]
    if found.config.norm == "post":
        moved = delta * s.stream  # after the first LayerNorm
        fed = slope * (moved @ w["W_1"]) @ w["W_2"]
        y = fed + delta * (s.fed + fed)
        y = y + moved + delta * (s.stream + moved) if c.residual else y
    else:
        twice = 2 * delta + delta**2
        if twice * s.score > 0.1 or twice * s.masked > 1:
            return math.inf
        weights = math.expm1(2 * twice * s.score) + 20 * s.lost  # Σ|w' − w|: 6 times the lost weight, and slack
        a = (weights + delta) * s.attended
        fed = slope * ((a + delta * (s.stream + a)) @ w["W_1"]) @ w["W_2"]
        y = a + fed if c.residual else fed
    return float((y @ w["W_R"]).max()) * 1.001


def _delta(found: Doubled, size: float) -> float:
    """max |ρ − 1| for |z| ≤ size: ρ falls with |z|, so the ends decide."""
    n, C = found.config.d_model, arb(found.constant)
    gain = arb(float(found.weights["gain_1"][0]))
    ends = [gain / (2 * (C * C + arb(z) * arb(z)) / n + arb(EPS)).sqrt() - 1 for z in (0.0, size)]
    return max(float(abs(end).upper()) for end in ends) * UP
