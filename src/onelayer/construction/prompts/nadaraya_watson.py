"""Regression in context: samples are the prompt, and the frozen layer computes their Nadaraya–Watson estimate.

Token j carries the key βx_j, the bias −β|x_j|²/2 and the value y_j, so that its score is −β|x − x_j|²/2 up to a constant. β is
in the prompt, not in the weights. For every f with |f(x) − f(x')| ≤ L|x − x'| (Euclidean) and f(x_j) = y_j,

    |T(x) − f(x)| ≤ Σ_j α_j(x) |f(x_j) − f(x)| ≤ L Σ_j α_j(x) d_j,    d_j = |x − x_j|.

Lemma. With N tokens, the fill distance ρ, Lambert's W, and scores that are off by at most h,

    Σ_j α_j d_j ≤ √(ρ² + (2/β)(W((N−1)/e) + 2h)).

Proof. The scores are t_j = −βd_j²/2 + δ_j, |δ_j| ≤ h, and a softmax average of N scores is at most W((N−1)/e) below the largest
(`layer.heads.shortfall`). So Σ α_j βd_j²/2 ≤ h − Σ α_j t_j ≤ h + W − max t ≤ β min_j d_j²/2 + W + 2h, and min_j d_j ≤ ρ. By
Jensen's inequality the square of the average is at most the average of the squares.

The bound falls with β, to Lρ, which no method can undercut (`fill_distance`): without noise nothing is gained by averaging. To
be within a factor √(1 + τ) of it β must be 2W/(τρ²), which grows like N^(2/D) ln N on a lattice. So β is the largest power of
two whose scores the layer holds, an eighth of σ; h is then some 1e-3 beside W, which is at least 0.27.
"""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ...approximation import Approximation
from ...common.checks import is_number
from ...common.errors import InputError
from ...common.numbers import exact
from ...common.outward import UP, UP_MANY, U
from ...layer.arithmetic import FLOAT64
from ...layer.assemble.prompt_tokens import SIGMA, VARIABLES, frozen_layer, read_tokens, tokens_of
from ...layer.facts import Facts
from ...layer.heads import shortfall
from ...model.transformer import SingleLayerTransformer
from ...target.description import Description
from ...target.domain import Domain, Sides, domain_of
from ...target.samples import Data, data_of
from ..lemma import Lemma, approximation_by_lemma
from .fill_distance import fill_distance

AT_ONCE = 2**22  # pairs of samples compared at a time
STATEMENT = (
    "for every f with these values and this steepest slope L in the Euclidean norm, |T(x) − f(x)| is at most the sum of: L times"
    " the fill distance ρ of the samples; what softness adds, L(√(ρ² + (2/β)(W((N−1)/e) + 2h)) − ρ), h being the rounding of"
    " scores; the rounding of the given values; the rounding of the average"
)
STORY = (
    "The one head of the frozen layer weighs every sample by exp(−β|x − x_j|²/2) and answers with the mean of their values. "
    "Samples are tokens of the prompt; the weights are the same for all samples."
)


def in_context(
    X: Any, y: Any, domain: Sides | None, tolerance: float, steepest: float | None, sharpness: float | None = None
) -> Approximation:
    """The frozen layer with a token for each sample, and the bound for every function that fits them."""
    started = time.perf_counter()
    data = data_of((X, y))
    box = domain if isinstance(domain, Domain) else domain_of(data.box() if domain is None else domain)
    data.require_inside(box)
    L = _slope_of(steepest)
    if box.dimension > VARIABLES or data.y.shape[1] > 1:
        found = f"{box.dimension} variables and {data.y.shape[1]} outputs"
        raise InputError(f"samples of 1 to {VARIABLES} variables with one output", found, "build a layer for them")
    _require_no_steeper(data, L)
    beta = _sharpest(box, data.x) if sharpness is None else sharpness
    keys, biases = beta * data.x, -beta / 2 * np.square(data.x).sum(axis=1)
    prompt = tokens_of(*(torch.from_numpy(t) for t in (keys, biases, data.y[:, 0].copy())))
    model = frozen_layer().with_prompt(prompt, box.dimension)
    facts = Facts(
        method="in context",
        construction="prompt",
        layout="token",
        heads=(("memory", 1),),
        units=len(data),
        amplitude=float(np.ptp(data.y)) / 2,
        largest_score=float(beta * _largest_score(box, data.x)),
        seconds=time.perf_counter() - started,
        story=STORY,
    )
    described = Description(
        kind="data",
        text=str(data),
        domain=box,
        shape=(box.dimension, 1),
        output_shape=(1,),
        sequence=False,
        data=data.record() | {"held_out": 0, "in_context": True},
    )
    lemma = prove_in_context(model, data, box, L, beta)
    proved = approximation_by_lemma(model, described, lemma, facts, tolerance, (data.x, data.y))
    condition = f"|f(x) − f(y)| ≤ {exact(L)}·|x − y|, Euclidean"
    return replace(proved, certificate=replace(proved.certificate, condition=condition))


def prove_in_context(model: SingleLayerTransformer, data: Data, domain: Domain, L: float, beta: float) -> Lemma:
    """The lemma, with the numbers of the model's own weights; infinite if these are not the tokens of the samples."""
    N, D = data.x.shape
    keys, biases, values = (t.numpy() for t in read_tokens(model.special.detach(), D))
    S = beta * _largest_score(domain, data.x)
    frozen = frozen_layer().with_prompt(model.special.detach(), D).fingerprint() == model.fingerprint()
    same = np.array_equal(keys, beta * data.x) and np.array_equal(values, data.y[:, 0])
    if not (frozen and same and S <= SIGMA / 4):  # the data token then has weight 0, and T is what the lemma is about
        return Lemma(STATEMENT, {"unproved": math.inf})
    squares = np.square(data.x).sum(axis=1)  # within (D + 1)u of |x_j|²
    stored = float(np.abs(biases + beta / 2 * squares).max()) * UP  # what the biases themselves are off by
    # scores: (n + 1)uS for n products and a bias, in any order; 2uS for the largest one subtracted; (D + 1)uS for |x_j|²; and
    # 2uS for keys and biases that are rounded, where β is no power of two
    h = (stored + (2 * D + 6) * U * S + FLOAT64.exp_error) * UP_MANY
    rho, _ = fill_distance(domain, data.x)
    far = math.sqrt(rho**2 + 2 / beta * (shortfall(N) + 2 * h) * UP) * UP
    V = float(np.abs(data.y).max())
    average = (2 * (N + 1) + 9) * U * V + 4 * (N + 1) * FLOAT64.smallest * (1 + V)  # as in `layer.rounding.deployed`
    return Lemma(
        STATEMENT,
        {
            "fill distance": L * rho * UP,
            "softness": L * (far - rho) * UP,
            "values": float(data.radius.max()),
            "rounding": average * UP_MANY,
        },
    )


def _largest_score(domain: Domain, x: np.ndarray) -> float:
    """max_j (Σ_i |x_ji| max |x_i| + |x_j|²/2): no term of a score, divided by β, is larger."""
    reach = np.abs([domain.lower, domain.upper]).max(axis=0)
    return float((np.abs(x) @ reach + np.square(x).sum(axis=1) / 2).max()) * UP


def _sharpest(domain: Domain, x: np.ndarray) -> float:
    """The largest power of two whose scores are at most an eighth of σ, beside which the data token has no weight."""
    return 2.0 ** math.floor(math.log2(SIGMA / 8 / _largest_score(domain, x)))


def _slope_of(steepest: float | None) -> float:
    if not is_number(steepest) or not 0 < float(steepest or 0) < 1e150:
        change = "give L with |f(x) − f(x')| ≤ L|x − x'|, Euclidean"
        raise InputError("`steepest`, a number above 0, for samples", f"{steepest!r}", change)
    assert steepest is not None
    return float(steepest)


def _require_no_steeper(data: Data, L: float) -> None:
    """Refuse samples that no function of this steepest slope has: all pairs are compared."""
    x, y, radius = data.x, data.y[:, 0], data.radius[:, 0]
    rows = max(1, AT_ONCE // (len(x) * x.shape[1]))
    for first in range(0, len(x), rows):
        some = slice(first, first + rows)
        apart = np.sqrt(np.square(x[some, None] - x).sum(axis=2)) * UP
        over = np.abs(y[some, None] - y) - L * apart - (radius[some, None] + radius) * UP
        i, j = np.unravel_index(over.argmax(), over.shape)
        if over[i, j] > 0:
            slope = abs(y[first + i] - y[j]) / apart[i, j]
            found = f"slope {slope:.6g} between samples {data.rows[first + i]} and {data.rows[j]}"
            raise InputError(f"samples of a function with slopes up to {exact(L)}", found, "give a larger `steepest`")
