"""Counting: a head whose output is a function of one count alone, and a decoder that turns it into the answer.

histogram           the anchor shares its weight with the tokens equal to that of the query: 1/(1 + c)
parity, majority    all tokens have equal weight 1/(n + 1), ones have value n + 1: the head's output is their number c
"""

from abc import abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int

from ....approximation import Approximation
from ....common.checks import known_options
from ....layer.arithmetic import arithmetic_of
from ....layer.assemble.frame import power_of_4
from ....layer.heads import MASKED
from ....model.transformer import SingleLayerTransformer
from ....target.decoding import Decoding
from ...lemma import Lemma
from ..one_head import one_head
from .piecewise_linear import Decoder, Node, decoder_through, decoding_terms, units_of, write_decoder
from .program import BitProgram, Program, bits, codes, packed
from .weights import average_error, weight_error


@known_options
def histogram(n: int, vocabulary: int = 26, *, dtype: str = "float64", seed: int = 0) -> Approximation:
    """At every position, how often its token occurs in the sequence."""
    return packed(Histogram(n, vocabulary), dtype, seed)


@known_options
def parity(n: int, *, dtype: str = "float64", seed: int = 0) -> Approximation:
    """The parity of n bits: 1 if the number of ones is odd."""
    return packed(Parity(n), dtype, seed)


@known_options
def majority(n: int, *, dtype: str = "float64", seed: int = 0) -> Approximation:
    """The majority of n bits: 1 if more than half of them are ones; a tie gives 0."""
    return packed(Majority(n), dtype, seed)


class Histogram(Program):
    """Score 400·(bits) for equal tokens and the anchor, at least 800 less for others; 1/(1 + c) ↦ c by n − 1 ReLUs."""

    name = "histogram"
    decoding = Decoding("round")
    kind = "match"

    @property
    def description(self) -> str:
        return f"at every position, how often its token occurs among n = {self.n}"

    @property
    def story(self) -> str:
        b = bits(self.vocabulary)
        return (
            f"Tokens are written as codes of {b} signs. The head compares the code at its position with all: equal tokens and the"
            " anchor have the same score, other tokens lie 800 or more below it and get no weight. So the anchor's weight is"
            f" 1/(1 + c), c being how often that token occurs. The feed-forward network turns it into c with {self.n - 1}"
            " ReLUs, piecewise linearly through all n values that 1/(1 + c) can take."
        )

    def nodes(self) -> list[Node]:
        return [(Fraction(1, 1 + c), Fraction(c)) for c in range(self.n, 0, -1)]

    def write(self) -> SingleLayerTransformer:
        b, V = bits(self.vocabulary), self.vocabulary
        decoder = decoder_through(self.nodes(), self.n - 1)  # from c = 1 down in h: all terms are positive
        d_k = power_of_4(b + 1)
        width = b + 2  # code | is a token | is the anchor
        model = one_head(self.n, (V, 1), width, d_k, 1, units_of(decoder), code="none", anchor_tokens=1)
        scale = MASKED / 2 * d_k**0.5
        with torch.no_grad():
            model.W_E[:, :b], model.W_E[:, b] = codes(V), 1.0
            model.S[0, b + 1] = 1.0
            model.W_Q[0, : b + 1, : b + 1] = torch.eye(b + 1)  # q = (code, 1)
            model.W_K[0, :b, :b] = scale * torch.eye(b)  # k = 400·√d_k·(code, 0)
            model.W_K[0, b + 1, b] = scale * b  # the anchor's: 400·√d_k·(0, bits)
            model.W_V[0, b + 1, 0] = 1.0
            model.W_O[0, 0] = 1.0
            write_decoder(model, decoder)
        return model

    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        arithmetic = arithmetic_of(model.W_E.dtype)
        spread = weight_error(model.config.all_tokens, arithmetic)  # the value is 1: no other rounding
        return Lemma(
            "the anchor's weight is 1/(1 + c) up to rounding, c = 1 … n; the stored decoder, evaluated exactly around all"
            " n values, answers c",
            decoding_terms(model, self.nodes(), spread),
        )

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n"]:
        return np.stack([(x == x[:, [i]]).sum(axis=1) for i in range(x.shape[1])], axis=1).astype(np.float64)


class BitCount(BitProgram):
    """A function of the number of ones among n bits, read at an output token."""

    decoding = Decoding("round")
    layout = "token"
    kind = "uniform"
    what: ClassVar[str]

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    def description(self) -> str:
        return f"{self.what}, n = {self.n}"

    @property
    def story(self) -> str:
        return (
            f"All scores are 0, so the output token gives each of the {self.n} bits and itself the weight 1/{self.n + 1}."
            f" Ones have value {self.n + 1}, all else 0: the head's output is the number of ones. The feed-forward network"
            f" goes through the right answers to 0, 1, …, {self.n} piecewise linearly, with one ReLU per change of slope"
            f" ({len(self.decoder.units)})."
        )

    @abstractmethod
    def value(self, count: int) -> int:
        """The right answer when this many bits are ones."""

    def nodes(self) -> list[Node]:
        return [(Fraction(c), Fraction(self.value(c))) for c in range(self.n + 1)]

    @property
    def decoder(self) -> Decoder:
        return decoder_through(self.nodes(), self.n // 2)

    def write(self) -> SingleLayerTransformer:
        decoder = self.decoder
        model = one_head(self.n, (2, 1), 1, 1, 1, units_of(decoder), code="none", output_tokens=1)
        with torch.no_grad():
            model.W_E[1, 0] = 1.0
            model.W_V[0, 0, 0] = self.n + 1
            model.W_O[0, 0] = 1.0
            write_decoder(model, decoder)
        return model

    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        spread = average_error(model.config.all_tokens, arithmetic_of(model.W_E.dtype))
        return Lemma(
            "the head's output is the number c of ones up to rounding, c = 0 … n; the stored decoder, evaluated exactly"
            " around all n + 1 values, answers right",
            decoding_terms(model, self.nodes(), spread),
        )

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch 1"]:
        table = np.array([self.value(c) for c in range(self.n + 1)], dtype=np.float64)
        return table[x.sum(axis=1, keepdims=True)]

    def special(self) -> list[list[int]]:
        return [[1] * c + [0] * (self.n - c) for c in range(self.n + 1)]


class Parity(BitCount):
    """Slopes alternate between 1 and −1: n ReLUs, from the middle outwards."""

    name = "parity"
    what = "parity of the number of ones among n bits"

    def value(self, count: int) -> int:
        return count % 2


class Majority(BitCount):
    """0 up to n/2, then 1: two ReLUs."""

    name = "majority"
    what = "whether more than half of n bits are ones (0 for a tie)"

    def value(self, count: int) -> int:
        return int(2 * count > self.n)
