"""The proof that a layer's next-token distributions are those of an n-gram model, up to a total variation.

The total variation of p and q is ½Σ|p_c − q_c|, the most that the probabilities of any event differ.

**What the layer computes.** Apart from lanes all weights are those of `network`, compared number by number. Tokens, positions and
flags are whole numbers and so are all sums of them, far below 1/u: nothing is rounded. Exactly one score is the largest and the
others are 800 lower or hidden, so that its weight is 1 and theirs 0. Products with the zeros that stand between codes and lanes
are 0, whatever the (finite) lanes are. A hidden unit is therefore 1 in its own context and 0 in all others, at most one is 1,
and the lanes at a position are those of its token in W_E, or fl(W_E + W_2) with the row of its unit: one addition in the layer's
own arithmetic, which is carried out here too. There is one case for each token alone, which stands for the first position and
for all contexts without a unit, and one for each unit; each has its distribution p in whole numbers. So a finite number of cases
covers all sequences of all lengths.

**One case.** With lanes h the logits are z_c = Σ h_l R_lc, R the lanes' part of W_R. In any order of summation the computed ones
differ by at most

    δ = γ A,   A = Σ_l |h_l| max_c |R_lc|,   γ = nu/(1 − nu),                                                         (1)

with n the largest number of terms of a sum that are not 0, or one less than that if all products are exact: in every lane R is
−1, 0 or 1, or h is. The same holds for z̃, the logits as they are computed here in float64. Let δ be the sum of both, ζ a bound
for the error of r_c = z̃_c − log p_c as computed here, S the support of p, and

    ρ = max_S r − min_S r + 2(δ + ζ),   τ = Σ_(c∉S) exp(z̃_c − min_S r + 2δ + ζ).                                       (2)

*Lemma.* The softmax q of the computed logits has total variation at most ρ/4 + τ from p.

*Proof.* On S the computed logits are log p_c + r̂_c, with all r̂_c in an interval [a, a + ρ], a = min_S r − δ − ζ. Let q_S be q
given S, M = e^ρ, and E ⊂ S an event with p(E) = t. Then q_S(E) = Σ_E p e^r̂ / (Σ_E p e^r̂ + Σ_(S∖E) p e^r̂) ≤ Mt/(Mt + 1 − t), and
the largest value of Mt/(Mt + 1 − t) − t over t is (√M − 1)/(√M + 1) = tanh(ρ/4) ≤ ρ/4. So q_S and p have total variation at
most ρ/4. All else has the probability q(S^c) ≤ Σ_(c∉S) e^(z̃_c + δ) / Σ_S p_c e^(r̂_c) ≤ Σ_(c∉S) e^(z̃_c + δ − a) = τ, and moving
that mass changes the total variation by at most τ. ∎

**Softmax itself.** Computed in the layer's arithmetic (or in float64) it subtracts the largest logit, an error of at most uD in
an exponent of size D; exponentials have relative error κ; the sum of V positive terms has γ_V, the quotient 2u. Each probability
is right up to a factor within e^(±(2(uD + κ) + 2(V + 4)u)), or up to the smallest normal number. Half the sum of the differences
is at most half of expm1 of that exponent, plus V times that number.                                                   (3)
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...common.outward import UP, UP_MANY, U
from ...layer.arithmetic import FLOAT64, Arithmetic, arithmetic_of
from ...model.transformer import SingleLayerTransformer
from ...target.ngram import Distribution, NGram
from ..gallery.routing import ASSUMES
from ..lemma import Lemma
from .network import Cases, Places, config_of, frame_of_codes

STATEMENT = (
    "the head copies the code of the previous token exactly, a hidden unit is 1 in its own context and 0 in all others, and for"
    " every context the logits are log p up to a constant and an error: the total variation is at most a quarter of the"
    " spread of that error on the support, plus the mass off it, plus the rounding of softmax"
)
CHUNK = 2**23  # logits held at a time
LARGEST = 2.0**60  # no sum of sizes may be larger: nothing overflows
LOG_ERROR = 16 * U  # relative error of a computed logarithm; NumPy's is within 4 units in the last place
TERMS = ("spread on the support", "mass off the support", "rounding of logits", "rounding of softmax")


def prove(model: SingleLayerTransformer, ngram: NGram) -> Lemma:
    """The bound on the total variation, for the weights as they are stored; nothing is claimed of another construction."""
    cases = Cases(ngram)
    if why := _difference(model, cases):
        return Lemma(f"nothing is proved: {why}", {"unproved": math.inf})
    at, a = Places(len(ngram.words), model.config.tokens).lanes, arithmetic_of(model.W_E.dtype)
    alone, added, read = (t.detach().cpu().numpy() for t in (model.W_E[:, at:], model.W_2[:, at:], model.W_R[at:]))
    reading = _Reading(read, a)
    worst = np.zeros(len(TERMS))
    for lanes, numbers in _lanes(cases, alone, added):
        terms = reading.terms(lanes, [cases.distributions[i] for i in numbers])
        most = int(np.argmax(terms.sum(axis=1)))
        worst = terms[most] if not terms[most].sum() <= worst.sum() else worst
    return Lemma(STATEMENT, dict(zip(TERMS, map(float, worst), strict=True)), (*ASSUMES, "log within 16 roundings"))


def _difference(model: SingleLayerTransformer, cases: Cases) -> str:
    """What distinguishes a model from the construction, lanes aside; "" if nothing does."""
    c, V = model.config, len(cases.ngram.words)
    places = Places(V, c.tokens)
    at, lanes = places.lanes, c.d_model - places.lanes
    if lanes < 1 or c != config_of(V, c.tokens, len(cases.units), lanes):
        return "a layer of another shape"
    own = frame_of_codes(cases, c.tokens, lanes, model.W_E.dtype).state_dict()
    free = {"W_E": np.s_[:, :at], "W_2": np.s_[:, :at], "W_R": np.s_[:at]}  # what is left of these is compared
    stored = model.state_dict()
    changed = [name for name, t in own.items() if not _equal(stored[name], t, free.get(name, np.s_[:]))]
    if changed:
        return f"{', '.join(changed)} changed"
    if not all(float(stored[name].abs().sum()) < LARGEST for name in free):  # also false for NaN
        return "lanes that are not finite, or huge"
    return ""


def _equal(stored: Tensor, own: Tensor, where: Any) -> bool:
    return stored.dtype == own.dtype and torch.equal(stored[where].cpu(), own[where])


def _lanes(cases: Cases, alone: np.ndarray, added: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Lanes as the layer computes them, and the numbers of the distributions: tokens alone, then units."""
    step = max(1, CHUNK // alone.shape[0])
    for start in range(0, len(alone), step):
        yield alone[start : start + step], cases.of_tokens[start : start + step]
    last = np.array([context[1] for context in cases.units], dtype=np.int64)
    for start in range(0, len(last), step):
        part = slice(start, start + step)
        yield alone[last[part]] + added[part], cases.of_units[part]


class _Reading:
    """The read-out of lanes in one arithmetic."""

    def __init__(self, read: np.ndarray, arithmetic: Arithmetic) -> None:
        self.read, self.arithmetic = read.astype(np.float64), arithmetic
        self.largest = np.abs(self.read).max(axis=1)  # max_c |R_lc|
        self.terms_of_tokens = int(np.count_nonzero(self.read, axis=0).max())
        self.signs = np.isin(self.read, (-1.0, 0.0, 1.0)).all(axis=1)

    def terms(self, lanes: np.ndarray, distributions: list[Distribution]) -> np.ndarray:
        """The four terms of every case, rounded up."""
        h, a, V = lanes.astype(np.float64), self.arithmetic, self.read.shape[1]
        z = h @ self.read
        own, evaluation = self._rounding(h, a), self._rounding(h, FLOAT64)
        delta = own + evaluation
        sizes = np.array([len(d) for d in distributions])
        flat = np.array([pair for d in distributions for pair in d], dtype=np.float64)
        row, starts = np.repeat(np.arange(len(h)), sizes), np.concatenate([[0], np.cumsum(sizes)[:-1]])
        token, count = flat[:, 0].astype(np.int64), flat[:, 1]
        total = np.log(np.add.reduceat(count, starts))
        r = z[row, token] - (np.log(count) - total[row])
        high, low = np.maximum.reduceat(r, starts), np.minimum.reduceat(r, starts)
        reach = np.abs(z).max(axis=1)
        zeta = (LOG_ERROR * 2 * total + 4 * U * (reach + 2 * total)) * UP
        z[row, token] = -np.inf
        with np.errstate(over="ignore"):
            off = np.exp(z + (2 * delta + zeta - low)[:, None]).sum(axis=1)
            exponent = 2 * (a.u * 2 * (reach + delta) + a.exp_error) + 2 * (V + 4) * a.u
            softmax = np.expm1(exponent * UP) / 2 + V * a.smallest
        return np.stack([(high - low) / 4, off, (delta + zeta) / 2, softmax], axis=1) * UP_MANY  # (2), (3)

    def _rounding(self, h: np.ndarray, a: Arithmetic) -> np.ndarray:
        """(1) for every row of lanes."""
        exact = (self.signs | np.isin(h, (-1.0, 0.0, 1.0))).all(axis=1)  # all products
        n = np.minimum(np.count_nonzero(h, axis=1), self.terms_of_tokens) - exact
        n = np.maximum(n, 0)
        gamma = n * a.u / (1 - n * a.u)
        return (gamma * (np.abs(h) @ self.largest) + ~exact * n * a.smallest) * UP
