"""Following pointers to where they end: one layer with one head, applied as often as the longest chain asks.

A sequence of n tokens lists a map g of the positions 0 … n − 1: token j is g(j). At every position i the answer is the fixed
point that i, g(i), g(g(i)), … arrives at. Where a chain runs into a longer cycle there is none; the layer then never halts,
and says so.

The stream of position i holds four codes of b signs, b being the number of binary digits of the largest position, and one
number:

    own     the code of i                          never changes
    next    the code of g(i)                       never changes
    here    the code of the position reached       at first g(i)
    read    empty between steps
    left    twice the number of signs that changed in the last step: the halting unit

A step. The head compares `here` with all `own` and copies `next` from where they agree: read = code of g(here). Positions with
another code lie at least 1600 below. The feed-forward network then sets here ← read, left ← Σ |read − here|, read ← 0, with z
= relu(z) − relu(−z), 6b + 1 ReLUs in all. It stops when nothing changed at any position: every `here` is then a fixed point. A
list of n ≥ 2 pointers that all end does so within n − 1 steps, so one that is not done by then has a cycle.

Proof, with rounding. Suppose |here − code| ≤ δ = 1/100. Queries copy `here`, keys are ± a whole number, so that a score is off
by at most 800·b·(δ + 2bu) ≤ 400; the right one leads by 800 or more. By `tokens.weights` what is read is off by r, a few n·u,
and it is read from `next`, which is exact: errors of earlier steps do not matter beyond this. `read` was 0 and is set to z − z
= 0, exactly. The update of `here` is fl(z − here), off by 4u, and adding it costs 2u more: |here − code| ≤ r + 6u, which is at
most δ. So it is after every number of steps. `left` is a sum of 2b + 2 numbers whose sizes add up to less than 8b + 8, where a
sign that did not change adds at most r + δ' + u, δ' = r + 6u, and one that did adds 2 up to that: off by b(2r + 8u) + (2b +
3)(8b + 8)u < ½. It is never negative, rounding being monotone, so the ReLU that takes its last value away sees it. ∎
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int

from ....common.checks import known_options, require_whole
from ....common.errors import InputError
from ....common.numbers import at_most
from ....layer.arithmetic import Arithmetic, arithmetic_of
from ....layer.assemble.frame import Frame, blank, power_of_4
from ....layer.heads import MASKED
from ....model.config import LayerConfig
from ....model.repeated import RepeatedLayer
from ....model.transformer import SingleLayerTransformer
from ....target.sequence_task import SequenceTask
from ...lemma import Lemma
from ..tokens.program import MOST_TOKENS, TOLERANCE, bits, codes
from ..tokens.weights import average_error, masked_error, rounded_up
from .proved_steps import ProvedSteps

CHANGED = 1.0  # the halting unit is below this if no sign changed, and above it if one did
NOISE = Fraction(1, 100)  # δ


@dataclass(frozen=True, eq=False)
class PointerLayer(ProvedSteps):
    """The repeated layer for lists of up to `longest` pointers."""

    task: SequenceTask

    def answer(self, lists: Any) -> tuple[list[np.ndarray], Int[np.ndarray, " batch"], Bool[np.ndarray, " batch"]]:
        """For each list: where every position ends, the number of steps, and whether the layer halted (else it has a cycle)."""
        x, padding, lengths = self.task.batch(lists)
        lengths = [x.shape[1]] if lengths is None else lengths
        for row, n in zip(x.numpy(), lengths, strict=True):
            if row[:n].max() >= n:
                asked = f"pointers of a list of {n}, which are 0 … {n - 1}"
                raise InputError(asked, f"{int(row[:n].max())}", "let an end of a chain point to itself")
        with torch.no_grad():
            found = self.repeated.run(self.task.features(x.to(self.repeated.layer.W_E.dtype)), padding)
        ends = np.rint(found.answers[..., 0].double().numpy()).astype(np.int64)
        return [row[:n] for row, n in zip(ends, lengths, strict=True)], found.steps.numpy(), found.halted.numpy()


@known_options
def follow_pointers(longest: int = 64, *, dtype: str = "float64") -> PointerLayer:
    """At every position of a list of pointers, the position where its chain ends; one head, and steps as the list asks."""
    require_whole("longest", longest, 2, MOST_TOKENS)
    a = arithmetic_of(dtype)
    layer = _written(longest).to(a.dtype).eval()
    lemma = _lemma(longest, a)
    if not lemma.bound <= TOLERANCE:
        raise InputError(
            f"{longest} pointers in {dtype}", f"a bound of {at_most(lemma.bound, 3)}", "choose fewer, or float64"
        )
    task = SequenceTask(
        kind="gallery",
        text="where the pointers of a list end",
        longest=longest,
        ends=(0.0, longest - 1.0),
        answer="position",
        vocabulary=longest,
    )
    repeated = RepeatedLayer(layer, halting=layer.config.d_model - 1, threshold=CHANGED, most_steps=longest - 1)
    domain = f"all n ≤ {longest:,} and all lists of n pointers 0 … n − 1"
    return PointerLayer(repeated, domain, lambda _: lemma, lemma, layer.fingerprint(), task)


def _lemma(longest: int, a: Arithmetic) -> Lemma:
    """|T − position| after every number of steps m: the position is g applied m + 1 times."""
    b, u = bits(longest), Fraction(a.u)
    r = average_error(longest, a) + Fraction(masked_error(longest, 1.0, a))
    score = MASKED * b * (NOISE + 2 * b * u)
    left = b * (2 * r + 8 * u) + (2 * b + 3) * (8 * b + 8) * u
    if not (score <= MASKED / 2 and r + 6 * u <= NOISE and 2 * left < CHANGED):
        return Lemma("nothing is proved: rounding is too large for this many positions", {"unproved": float("inf")})
    return Lemma(
        "in every step one position has the largest score and all others lie at least 800 below; what is copied is exact up to"
        " the rounding of one head, whatever the number of steps; the halting unit is within ½ of a whole number",
        {
            "rounding of the head": rounded_up(2**b * r / 2),
            "rounding of the feed-forward network": rounded_up(2**b * 6 * u / 2),
            "rounding of the read-out": rounded_up((b + 2) * 2 ** (b + 1) * u),
        },
    )


def _written(n: int) -> SingleLayerTransformer:
    b = bits(n)
    own, following, here, read = (slice(k * b, (k + 1) * b) for k in range(4))
    LEFT = 4 * b
    config = LayerConfig(
        tokens=n, features_in=n, features_out=1, d_model=4 * b + 1, heads=1, d_k=power_of_4(b), d_v=b, code="learned",
        ffn_width=6 * b + 1, any_length=True,
    )  # fmt: skip
    model, unit = blank(config, Frame((0.0,) * n * n, (1.0,) * n * n)), torch.eye(b, dtype=torch.float64)
    positive = [slice(k * b, (k + 1) * b) for k in range(6)]  # units of ± read, ± here, ± (read − here)
    with torch.no_grad():
        model.W_E[:, following] = model.W_E[:, here] = model.P[:, own] = codes(n)
        model.W_Q[0, here, :b] = model.W_V[0, following] = model.W_O[:, read] = unit
        model.W_K[0, own, :b] = MASKED * config.d_k**0.5 * unit
        for k, (of_read, of_here) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))):
            model.W_1[read, positive[k]], model.W_1[here, positive[k]] = of_read * unit, of_here * unit
        model.W_1[LEFT, -1] = 1.0
        for k, sign in ((0, 1.0), (1, -1.0)):
            model.W_2[positive[k], read], model.W_2[positive[k], here] = -sign * unit, sign * unit
            model.W_2[positive[k + 2], here] = -sign * unit
        model.W_2[4 * b : 6 * b, LEFT], model.W_2[-1, LEFT] = 1.0, -1.0
        model.W_R[here, 0] = 2.0 ** torch.arange(-1, b - 1, dtype=torch.float64)  # Σ 2^k (sign + 1)/2
        model.b_R.fill_((2**b - 1) / 2)
    return model
