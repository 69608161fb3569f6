"""How far LayerNorm moves a layer that `layernorm` rewrote for it, in exact arithmetic.

A LayerNorm multiplies a stream z by ρ, |ρ − 1| ≤ δ. Absolute values are followed through all the steps (`value_bounds`):

    post-norm   h moves by δ|h|, the FFN by slope·δ|h||W_1||W_2|, and the second LayerNorm adds δ of everything
    pre-norm    scores are multiplied by two factors and move by (2δ + δ²)|score|, values by δ|value|. If scores of tokens that
                may have a weight move by at most s, weights move by e^(2s) − 1 altogether; others have a weight of e^−60 at most
    BERT        post-norm, and a LayerNorm of the embedding before: scores and values move as with pre-norm, and the stream too
    GPT-2       pre-norm, and a LayerNorm behind everything
"""

import math

import torch
from flint import arb

from ...common.outward import UP
from ...model.config import STEEPEST
from .layernorm import EPS, Doubled
from .value_bounds import AnySubject, Placement, largest_norm, value_bounds


def deviation(subject: AnySubject, found: Doubled, placement: Placement, bias_in_stream: bool = False) -> float:
    """A bound on |T' − T| over the domain, with the stored gain; the largest over the outputs, ∞ if scores move too far.

    `bias_in_stream`: the read-out takes its bias from the constants ±C, which the last LayerNorm moves too.
    """
    c, s = subject.model.config, value_bounds(subject)
    w = {name: t.detach().double().abs() for name, t in subject.model.state_dict().items()}
    delta = _delta(found, largest_norm(subject, s, placement))
    behind, ahead = placement in ("post", "bert"), placement in ("pre", "gpt2")  # of the two sublayers
    twice = 2 * delta + delta**2
    if placement != "post" and (twice * s.score > 0.1 or twice * s.masked > 1):
        return math.inf
    weights = math.expm1(2 * twice * s.score) + 20 * s.lost  # Σ|w' − w|: 6 times the lost weight, and slack
    h = torch.zeros_like(s.stream) if placement == "post" else ((weights + delta) * s.attended).expand_as(s.stream)
    if placement == "bert" and c.residual:
        h = h + delta * s.tokens[c.read_rows]  # the embedding itself
    h = h + delta * (s.stream + h) if behind else h
    read = h + delta * (s.stream + h) if ahead else h
    fed = STEEPEST[c.activation] * (read @ w["W_1"]) @ w["W_2"]
    y = h + fed if c.residual else fed
    if placement != "pre":
        y = y + delta * (s.fed + y + (s.stream if c.residual else 0.0))
    moved = y @ w["W_R"] + (delta * w["b_R"] if bias_in_stream else 0.0)
    return float(moved.max()) * 1.001


def _delta(found: Doubled, size: float) -> float:
    """max |ρ − 1| for |z| ≤ size: ρ falls with |z|, so the ends decide."""
    n, C = found.config.d_model, arb(found.constant)
    gain = arb(float(found.weights["gain_1"][0]))
    ends = [gain / (2 * (C * C + arb(z) * arb(z)) / n + arb(EPS)).sqrt() - 1 for z in (0.0, size)]
    return max(float(abs(end).upper()) for end in ends) * UP
