"""Brackets: how deep a sequence of brackets is nested at every position, and whether it is balanced so far.

Both heads of `depth` look back (a causal mask) and count as the histogram does: the anchor shares its weight with the opening
brackets so far, 1/(1 + o), or with the closing ones, and the feed-forward network turns both into counts.

`balanced` needs the depth at every earlier position too, and one layer has no position to keep it at. So it has one head for
every prefix: head p sees positions 0 … p alone. The price is `longest` heads.
"""

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Float, Int

from ....common.checks import known_options
from ....layer.arithmetic import arithmetic_of
from ....layer.assemble.frame import Frame, blank
from ....layer.heads import MASKED
from ....model.config import LayerConfig
from ....model.transformer import SingleLayerTransformer
from ....sequence_layer import SequenceLayer
from ....target.decoding import Decoding
from ...lemma import Lemma
from ..tokens.piecewise_linear import Node, decoder_through, decoding_errors, write_decoder
from ..tokens.program import BitProgram
from ..tokens.weights import average_error, rounded_up, weight_error
from .token_layers import LONGEST, for_all_lengths


@known_options
def depth(longest: int = LONGEST, *, dtype: str = "float64", seed: int = 0) -> SequenceLayer:
    """At every position, how many brackets are open: opening ones (0) so far less closing ones (1) so far."""
    return for_all_lengths(Depth(longest), "opening brackets (0) so far less closing ones (1)", dtype, seed)


@known_options
def balanced(longest: int = 64, *, dtype: str = "float64", seed: int = 0) -> SequenceLayer:
    """At every position, whether the brackets so far, opening (0) and closing (1), are balanced: one head per prefix."""
    return for_all_lengths(
        Balanced(longest), "whether the brackets (0 opens, 1 closes) are balanced so far", dtype, seed
    )


def _prefix_depths(x: Int[np.ndarray, "batch n"]) -> Int[np.ndarray, "batch n"]:
    return np.cumsum(1 - 2 * x, axis=1)


class Depth(BitProgram):
    """Head 1: score 0 on the anchor and on opening brackets, −800 on closing ones. Head 2: the other way round."""

    name = "depth"
    decoding = Decoding("round")
    kind = "count"
    causal = True

    @property
    def description(self) -> str:
        return f"how many brackets are open, at every position of up to {self.n}"

    @property
    def story(self) -> str:
        return (
            "Both heads look back. Head 1 gives the anchor and the opening brackets so far the same score and closing ones 800"
            " less, so the anchor's weight is 1/(1 + o), o being the number of opening brackets so far; head 2 does the same"
            f" for closing ones. The feed-forward network turns both into counts with {self.n} ReLUs each, piecewise"
            " linearly, and takes their difference."
        )

    def nodes(self) -> list[Node]:
        return [(Fraction(1, 1 + c), Fraction(c)) for c in range(self.n, -1, -1)]

    def write(self) -> SingleLayerTransformer:
        decoder = decoder_through(self.nodes(), self.n)  # from c = 0 down in h: all terms are positive, the offset is 0
        config = LayerConfig(
            tokens=self.n, features_in=2, features_out=1, d_model=4, heads=2, d_k=1, d_v=1, code="none", anchor_tokens=1,
            ffn_width=2 * len(decoder.units), residual=False, readout="position",
        )  # fmt: skip
        model = blank(config, Frame((0.0,) * 2 * self.n, (1.0,) * 2 * self.n))
        OPEN, CLOSE, ONE, ANCHOR = range(4)
        with torch.no_grad():
            model.W_E[0, OPEN] = model.W_E[1, CLOSE] = model.S[0, ANCHOR] = 1.0
            model.W_E[:, ONE] = 1.0
            for head, other in ((0, CLOSE), (1, OPEN)):
                model.W_Q[head, ONE, 0] = model.W_V[head, ANCHOR, 0] = model.W_O[head, head] = 1.0
                model.W_K[head, other, 0] = -MASKED
                write_decoder(model, decoder, lane=head, factor=1 - 2 * head)
        return model

    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        spread = weight_error(model.config.all_tokens, arithmetic_of(model.W_E.dtype))
        opened = decoding_errors(model, self.nodes(), spread, lane=0)
        closed = decoding_errors(model, [(x, -y) for x, y in self.nodes()], spread, lane=1)
        return Lemma(
            "the anchor's weights are 1/(1 + o) and 1/(1 + c) up to rounding; the stored decoders, evaluated exactly around"
            " all values of o and c that add up to the largest length or less, answer o and −c",
            {name: rounded_up(_largest_sum(opened[name], closed[name])) for name in opened},
        )

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n"]:
        return _prefix_depths(x).astype(np.float64)


def _largest_sum(opened: list[Fraction], closed: list[Fraction]) -> Fraction:
    """The largest a_o + b_c with o + c ≤ n; both lists run from n down to 0."""
    up_to = list(accumulate(reversed(closed), max))  # the largest b_c with c ≤ k, at k
    return max(a + up_to[k] for k, a in enumerate(opened))  # o = n − k


class Balanced(BitProgram):
    """Head p: score 0 on positions up to p, −800 on later ones; values are 1 and −1: h_p = depth_p/(p + 1) at row i ≥ p.

    At a row i < p the causal mask leaves positions up to i: h_p = depth_i/(i + 1). With a power of two M ≥ longest the number
    Σ_p relu(−M h_p) + relu(M h_last) is 0 where no depth so far is negative and the last is 0, and at least 1 elsewhere.
    """

    name = "balanced"
    decoding = Decoding("zero")
    kind = "prefix"
    causal = True
    most = 256

    @property
    def description(self) -> str:
        return f"0 where the brackets so far are balanced, 1 or more elsewhere, up to {self.n} of them"

    @property
    def story(self) -> str:
        return (
            f"There are {self.n} heads, one for every prefix: head p sees positions up to p, all alike, and outputs the mean of"
            " 1 for every opening bracket and −1 for every closing one. A ReLU for each makes a negative depth count, one more"
            " makes a positive depth at the end count: their sum is 0 if the brackets so far are balanced, else at least 1."
        )

    @property
    def _scale(self) -> int:
        return 1 << (self.n - 1).bit_length()  # at least n

    def write(self) -> SingleLayerTransformer:
        n = self.n
        config = LayerConfig(
            tokens=n, features_in=2, features_out=1, d_model=n + 2, heads=n, d_k=1, d_v=1, code="learned",
            ffn_width=n + 1, residual=False, readout="position",
        )  # fmt: skip
        model = blank(config, Frame((0.0,) * 2 * n, (1.0,) * 2 * n))
        VALUE, ONE = n, n + 1
        with torch.no_grad():
            model.W_E[0, VALUE], model.W_E[1, VALUE] = 1.0, -1.0
            model.W_E[:, ONE] = model.W_V[:, VALUE, 0] = model.W_Q[:, ONE, 0] = 1.0
            model.P[:, :n] = torch.eye(n, dtype=torch.float64)
            later = torch.ones(n, n, dtype=torch.float64).triu(1)  # [prefix, later position]
            model.W_K[:, :n, 0] = -MASKED * later
            model.W_O[:, :n] = torch.eye(n, dtype=torch.float64)
            model.W_1[:n, :n] = -self._scale * torch.eye(n, dtype=torch.float64)
            model.W_1[n - 1, n] = self._scale
            model.W_2[:, 0] = model.W_R[0, 0] = 1.0
        return model

    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        a, n = arithmetic_of(model.W_E.dtype), self.n
        head = average_error(model.config.all_tokens, a)  # values are 1 or −1 and weights add up to 1
        total = (n + 1) * self._scale  # the most that the units add up to
        return Lemma(
            "head p outputs the depth of a prefix over its length up to rounding; a power of two M ≥ n makes a whole number or"
            " more of every negative depth, and of a positive one at the end",
            {
                "rounding of the heads": rounded_up(total * head),
                "tokens without weight": math.nextafter(8.0 * n * total * a.smallest, math.inf),
                "rounding of the feed-forward network": 2 * (n + 3) * a.u * total,
            },
        )

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n"]:
        """What the layer adds up, exactly up to float64 rounding: 0 where the brackets so far are balanced."""
        n = x.shape[1]
        means = _prefix_depths(x) / np.arange(1, n + 1) * self._scale
        below = np.maximum(-means, 0.0)
        repeated = self.n - np.arange(n)  # heads p ≥ i all see the prefix up to i
        before = np.cumsum(below, axis=1) - below
        return before + repeated * below + np.maximum(means, 0.0)
