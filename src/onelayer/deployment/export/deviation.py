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
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP
from ...layer.arithmetic import arithmetic_of
from ...layer.number_range import out_of_range
from ...model.activations import activation_of
from .layernorm import EPS, Doubled
from .value_bounds import WIDE, AnySubject, Placement, ValueBounds, largest_norm, value_bounds


def deviation(subject: AnySubject, found: Doubled, placement: Placement, bias_in_stream: bool = False) -> float:
    """A bound on |T' − T| over the domain, with the stored gain; the largest over the outputs, ∞ if scores move too far.

    `bias_in_stream`: the read-out takes its bias from the constants ±C, which the last LayerNorm moves too. ∞ also for numbers
    that proofs cannot multiply, or that are so small that the half of one is another number.
    """
    c, s = subject.model.config, value_bounds(subject)
    w = {name: t.detach().double().abs() for name, t in subject.model.state_dict().items()}
    least = 2 * arithmetic_of(subject.model.W_E.dtype).smallest
    if out_of_range(subject.model, 1.0) is not None or any(bool(((t > 0) & (t < least)).any()) for t in w.values()):
        return math.inf
    first, delta = _deltas(found, s.largest_token, largest_norm(subject, s, placement), placement)
    behind, ahead = placement in ("post", "bert"), placement in ("pre", "gpt2")  # of the two sublayers
    twice = 2 * first + first**2
    if placement != "post" and (twice > WIDE or twice * s.score > 0.1 or twice * s.masked > 1):
        return math.inf
    h = torch.zeros_like(s.stream) if placement == "post" else first * s.attended + _reweighted(s, twice)
    if placement == "bert" and c.residual:
        h = h + first * s.tokens[c.read_rows]  # the embedding itself
    h = h + delta * (s.stream + h) if behind else h
    read = h + delta * (s.stream + h) if ahead else h
    fed = activation_of(c).steepest * (read @ w["W_1"]) @ w["W_2"]
    y = h + fed if c.residual else fed
    if placement != "pre":
        y = y + delta * (s.fed + y + (s.stream if c.residual else 0.0))
    moved = y @ w["W_R"] + (delta * w["b_R"] if bias_in_stream else 0.0)
    return float(moved.max()) * 1.001


def _reweighted(s: ValueBounds, twice: float) -> Float[Tensor, "row model"]:
    """What attention adds moves by this if every score s_t moves by at most twice·|s_t|.

    Altogether weights move by e^(2η) − 1, η of the tokens that may have a weight, and by 6 times the lost weight, and slack. Each
    weight also moves by at most e^(2η) − 1 of itself, η of all tokens, which counts where a value is large and its weight small.
    """
    together = math.expm1(2 * twice * s.score) + 20 * s.lost
    return torch.minimum(together * s.largest_values, math.expm1(2 * twice * s.masked) * s.attended)


def _deltas(found: Doubled, token: float, size: float, placement: Placement) -> tuple[float, float]:
    """max |ρ − 1| of a LayerNorm that reads the tokens, |e| ≤ token, and of all others, |z| ≤ size; 0 where there is none.

    A LayerNorm in the stream also multiplies the constants ±C by its ρ. With c, the product of the factors before it, the next
    one has ρ = g/√(2(c²C² + |z|²)/n + eps): ρ falls with c and |z|, and c·ρ rises with c, so the ends decide.
    """
    n, gains = found.config.d_model, [arb(float(found.weights[f"gain_{i}"][0])) for i in range(3)]

    def factors(gain: arb, constant: float, c: tuple[arb, arb], most: float) -> tuple[arb, arb]:
        """The lowest and the highest ρ."""
        least = 2 * (c[0] * constant) ** 2 / n + arb(EPS)
        return gain / (2 * ((c[1] * constant) ** 2 + arb(most) ** 2) / n + arb(EPS)).sqrt(), gain / least.sqrt()

    def furthest(*ends: arb) -> float:
        return max(float(abs(end - 1).upper()) for end in ends) * UP

    one = (arb(1), arb(1))
    if placement in ("pre", "gpt2"):
        before, later = factors(gains[1], found.entry, one, token), factors(gains[2], found.constant, one, size)
        return furthest(*before), furthest(*later)
    before = factors(gains[0], found.entry, one, token) if placement == "bert" else one
    first = factors(gains[1], found.constant, before, size)
    lowest = before[0] * factors(gains[1], found.constant, (before[0], before[0]), size)[0]
    highest = before[1] * factors(gains[1], found.constant, (before[1], before[1]), size)[1]
    second = factors(gains[2], found.constant, (lowest, highest), size)
    return furthest(*before), furthest(*first, *second)
