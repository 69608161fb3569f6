"""Sorting of any number of numbers up to a few: a min-head for every set of positions, some of which may not be there.

Pad a sequence with the upper end of the domain, h: its k-th smallest number stays what it is for k ≤ n. By the maximum–minimums
identity, with N = longest and r = N − k + 1, it is

    y_k = Σ_S c_S(k) min(h, x_j: j ∈ S, j < n),      c_S(k) = (−1)^(|S|−r) C(|S|−1, r−1), S ⊆ {0 … N−1}, |S| ≥ r.

Head S attends to the positions of S that are there and to the anchor, whose number is h, with scores −βx: a smooth minimum of at
most |S| + 1 numbers, above the exact one by at most W(|S|/e)/β. The feed-forward network picks y_i at position i by its code:

    T_i = low − δ + Σ_k relu(y_k − low + δ + M·code_k − M),      code_k = 1 at position k, else 0,

with δ more than the heads are off by, and M a power of two, M ≥ high − low + 2δ: one unit is active. Rounding: a head is off by
(2|S| + 10)u max|x|, and by e^(2H) − 1 of its smooth part (`maxima`); the sum over all heads, in any order, by γ of the sum of
sizes; the unit and the read-out by a few u of what they add up, M included.
"""

import itertools
import math
import time
from functools import cached_property

import numpy as np
import torch

from ....common.checks import known_options, require_whole
from ....common.errors import InputError
from ....common.numbers import at_most, exact
from ....common.outward import UP_MANY
from ....layer.affine_layer import GAP
from ....layer.arithmetic import Arithmetic, arithmetic_of
from ....layer.assemble.frame import Frame, blank
from ....layer.facts import Facts
from ....layer.heads import MASKED, shortfall
from ....model.config import LayerConfig
from ....model.masking import of_any_length
from ....model.transformer import SingleLayerTransformer
from ....sequence_layer import SequenceLayer
from ....target.target import require_tolerance
from ...lemma import Lemma, sequence_layer_by_lemma
from ..entry import Ends
from ..order import rank_factor
from .numbers import batches, task_on_numbers

MOST_NUMBERS = 8  # there is a head for every set of them


@known_options
def sort(
    longest: int = MOST_NUMBERS, tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64"
) -> SequenceLayer:
    """The sequence in increasing order: a min-head for every set of positions."""
    require_whole("longest", longest, 1, MOST_NUMBERS)
    require_tolerance(tolerance)
    started, arithmetic = time.perf_counter(), arithmetic_of(dtype)
    task = task_on_numbers("sort", "the sequence in increasing order", longest, domain, "position", tolerance=tolerance)
    found = [Sorting(longest, task.ends, 2.0**power, arithmetic) for power in range(1, 60)]
    best = next((s for s in found if s.lemma.bound <= tolerance), min(found, key=lambda s: s.lemma.bound))
    if not best.lemma.bound <= tolerance:
        raise InputError(
            f"sort of up to {longest} numbers within {exact(tolerance)} in {dtype}",
            f"no proof below {at_most(best.lemma.bound, 3)}",
            f"ask for {at_most(1.1 * best.lemma.bound, 2)} or more"
            + (", or use float64" if dtype == "float32" else ""),
        )
    model = of_any_length(best.write().to(arithmetic.dtype))
    story = (
        f"There is a head for every set of positions, {len(best.sets)} in all: it attends to those of its positions that are"
        f" there, and to the anchor, whose number is the upper end (sharpness {best.beta:.3g}), and so outputs the smallest of"
        " them. By the maximum–minimums identity the outputs add up to the k-th smallest number, for every k; at position k"
        " one ReLU of the feed-forward network passes that one on."
    )
    facts = Facts(
        method="gallery",
        construction="sort",
        layout="position",
        heads=(("max", len(best.sets)),),
        units=len(best.sets),
        total=float(np.abs(best.factors).sum(axis=0).max()),
        seconds=time.perf_counter() - started,
        story=story,
    )
    seen = batches(task, lambda x: np.sort(x, axis=1), arithmetic, best.beta)
    return sequence_layer_by_lemma(model, task, best.lemma, facts, tolerance, seen)


class Sorting:
    """The layer of one sharpness and what is proved of it."""

    def __init__(self, longest: int, ends: Ends, beta: float, arithmetic: Arithmetic) -> None:
        self.n, (self.low, self.high), self.beta, self.arithmetic = longest, ends, beta, arithmetic
        self.sets = [c for k in range(1, longest + 1) for c in itertools.combinations(range(longest), k)]

    @cached_property
    def factors(self) -> np.ndarray:
        """c_S(k), [set, k − 1]."""
        return np.array([[rank_factor(len(s), self.n - k) for k in range(self.n)] for s in self.sets], dtype=np.float64)

    @property
    def reach(self) -> float:
        return max(abs(self.low), abs(self.high))

    @cached_property
    def _heads(self) -> tuple[float, float]:
        """What the y_k are off by: smooth minima, rounding of heads and of their sum."""
        a, sizes = self.arithmetic, np.array([len(s) for s in self.sets])
        short = np.array([shortfall(int(k) + 1) for k in sizes]) / self.beta
        H = GAP[a.dtype] * a.u + 2 * a.exp_error
        alone = (2 * sizes + 10) * a.u * self.reach + math.expm1(2 * H) * short + (self.n + 1) * a.smallest
        weighed = np.abs(self.factors)
        terms = (len(self.sets) + 8) * a.u
        summed = terms / (1 - terms) * float(weighed.sum(axis=0).max()) * self.reach * (1 + UP_MANY)
        smooth = float((weighed.T @ short).max())
        return smooth * UP_MANY, (float((weighed.T @ alone).max()) + summed) * UP_MANY

    @property
    def margin(self) -> float:
        """δ, a power of two."""
        return 2.0 ** math.ceil(math.log2(2 * sum(self._heads)))

    @property
    def gap(self) -> float:
        """M, a power of two."""
        return 2.0 ** math.ceil(math.log2(self.high - self.low + 4 * self.margin))

    @cached_property
    def lemma(self) -> Lemma:
        """|T − sorted x| for every n up to the largest length."""
        a, (smooth, rounding) = self.arithmetic, self._heads
        if not 64 * self.beta * self.reach < a.overflow:
            return Lemma("nothing is proved: scores overflow", {"unproved": math.inf})
        picked = (2 * self.n + 16) * a.u * (2 * self.gap + 4 * self.reach + 4 * self.margin) * UP_MANY
        return Lemma(
            "smooth minima over sets of the positions that are there and of the upper end add up to the k-th smallest number,"
            " each off by W(|S|/e)/β at most; at position k one unit of the feed-forward network is active",
            {
                "smooth minima": smooth,
                "rounding of the heads": rounding,
                "rounding of the feed-forward network": picked,
            },
        )

    def write(self) -> SingleLayerTransformer:
        """Stream: number | 1 | code of the position (n) | y_1 … y_n | answer."""
        n, H = self.n, len(self.sets)
        config = LayerConfig(
            tokens=n, features_in=1, features_out=1, d_model=2 * n + 3, heads=H, d_k=1, d_v=1, ffn_width=n,
            code="learned", anchor_tokens=1, residual=True, readout="position",
        )  # fmt: skip
        model = blank(config, Frame((0.0,) * n, (1.0,) * n))
        X, ONE, code, ranks, OUT = 0, 1, slice(2, n + 2), slice(n + 2, 2 * n + 2), 2 * n + 2
        hidden = 2.0 ** math.ceil(math.log2(4 * self.beta * self.reach + 2 * MASKED))
        unit = torch.eye(n, dtype=torch.float64)
        low, shift = self.low, self.margin
        with torch.no_grad():
            model.W_E[0, X] = model.b_E[ONE] = model.S[0, ONE] = 1.0
            model.P[:, code] = unit
            model.S[0, X] = self.high
            model.W_Q[:, ONE, 0] = model.W_V[:, X, 0] = 1.0
            model.W_K[:, X, 0] = -self.beta
            for head, members in enumerate(self.sets):
                for j in set(range(n)) - set(members):
                    model.W_K[head, 2 + j, 0] = -hidden
            model.W_O[:, ranks] = torch.from_numpy(self.factors)
            model.W_1[ranks] = unit
            model.W_1[code] = self.gap * unit
            model.b_1.fill_(shift - low - self.gap)
            model.W_2[:, OUT] = model.W_R[OUT, 0] = 1.0
            model.b_R.fill_(low - shift)
        return model
