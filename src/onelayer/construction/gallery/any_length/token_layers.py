"""Token programs for sequences of any length: the same weights as for one length, and one lemma for all of them.

Counts, look-ups and copies compare tokens and positions; none of their weights knows how many tokens there are. So the layer
for `longest` tokens is the layer for all shorter sequences too, and its lemma, which bounds the error for every count and
every position that can occur, holds for them as well.

The majority of any number of bits: the sign of a mean, which no length changes.
"""

import time

import numpy as np
import torch
from jaxtyping import Float, Int

from ....common.checks import known_options, require_seed
from ....layer.arithmetic import arithmetic_of
from ....model.config import LayerConfig
from ....model.masking import of_any_length
from ....model.transformer import SingleLayerTransformer
from ....sequence_layer import SequenceLayer
from ....target.decoding import Decoding
from ....target.sequence_task import SequenceTask
from ...lemma import Lemma, sequence_layer_by_lemma
from ..one_head import one_head
from ..tokens import CopyWhere, FirstOccurrence, Histogram
from ..tokens.program import TOLERANCE, BitProgram, Program, facts_of, proved
from ..tokens.sequences import sequences
from ..tokens.weights import average_error, rounded_up


class SignMajority(BitProgram):
    """Ones have value 1, zeros −1, the output token 0, all weights are equal: h = (ones − zeros)/(n + 1).

    A majority makes h at least 1/(n + 1), anything else at most 0. M is a power of two, M ≥ longest + 1, so that
    relu(Mh) − relu(Mh − 1) is 1 or 0.
    """

    name = "majority"
    decoding = Decoding("round")
    layout = "token"
    kind = "uniform"

    @property
    def description(self) -> str:
        return f"whether more than half of up to {self.n} bits are ones (0 for a tie)"

    @property
    def story(self) -> str:
        return (
            "All scores are 0, so the output token gives all bits and itself the same weight. Ones have value 1, zeros −1: the"
            " head's output is positive for a majority of ones, by 1/(n + 1) at least. The feed-forward network stretches"
            f" that by {self._scale} and cuts it off at 0 and 1, with two ReLUs."
        )

    @property
    def _scale(self) -> int:
        return 1 << self.n.bit_length()  # at least n + 1

    def write(self) -> SingleLayerTransformer:
        model = one_head(self.n, (2, 1), 1, 1, 1, 2, code="none", output_tokens=1)
        with torch.no_grad():
            model.W_E[0, 0], model.W_E[1, 0] = -1.0, 1.0
            model.W_V[0, 0, 0] = model.W_O[0, 0] = model.W_R[0, 0] = 1.0
            model.W_1[0, :] = self._scale
            model.b_1[1] = -1.0
            model.W_2[0, 0], model.W_2[1, 0] = 1.0, -1.0
        return model

    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        a = arithmetic_of(model.W_E.dtype)
        head = average_error(model.config.all_tokens, a)  # values are 1 or −1 and weights add up to less than 1
        return Lemma(
            "the head's output is (ones − zeros)/(n + 1) up to rounding, at least 1/(n + 1) for a majority and at most 0"
            " otherwise; M(n + 1) ≥ 1 carries it to 1 or 0",
            {
                "rounding of the head": rounded_up(self._scale * head),
                "rounding of the feed-forward network": 4 * self._scale * a.u,
            },
        )

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch 1"]:
        return (2 * x.sum(axis=1, keepdims=True) > x.shape[1]).astype(np.float64)


LONGEST = 1000
WEIGHTS = 2**24  # attention weights, queries, keys and values at which the error is observed, for each length


@known_options
def histogram(longest: int = LONGEST, vocabulary: int = 26, *, dtype: str = "float64", seed: int = 0) -> SequenceLayer:
    """At every position, how often its token occurs in the sequence."""
    return for_all_lengths(Histogram(longest, vocabulary), "how often the token here occurs", dtype, seed)


@known_options
def majority(longest: int = LONGEST, *, dtype: str = "float64", seed: int = 0) -> SequenceLayer:
    """Whether more than half of the bits are ones; a tie gives 0."""
    return for_all_lengths(SignMajority(longest), "whether more than half of the bits are ones", dtype, seed)


@known_options
def first_occurrence(
    longest: int = LONGEST, vocabulary: int = 26, *, dtype: str = "float64", seed: int = 0
) -> SequenceLayer:
    """At every position, the first position (from 0) that holds the same token."""
    return for_all_lengths(FirstOccurrence(longest, vocabulary), "the first position of the token here", dtype, seed)


@known_options
def copy_where(longest: int = LONGEST, vocabulary: int = 26, *, dtype: str = "float64", seed: int = 0) -> SequenceLayer:
    """The token at the first marked position, at every position: v is plain, v + vocabulary marked; "none" is vocabulary."""
    program = CopyWhere(longest, vocabulary)
    text = f"the token at the first marked position ({vocabulary} or more is marked), {vocabulary} if there is none"
    return for_all_lengths(program, text, dtype, seed)


def for_all_lengths(program: Program, text: str, dtype: str, seed: int) -> SequenceLayer:
    """The layer of a program, for every length up to the program's; refused where the dtype does not carry that many."""
    require_seed(seed)
    started = time.perf_counter()
    lifted = of_any_length(program.write().to(arithmetic_of(dtype).dtype), program.causal)
    model, lemma = proved(program, lifted)
    parameters = {"longest" if name == "n" else name: value for name, value in program.parameters.items()}
    task = SequenceTask(
        kind="gallery",
        text=text,
        longest=program.n,
        ends=(0.0, float(program.tokens - 1)),
        answer="position" if program.layout == "position" else "whole",
        outputs=model.config.features_out,
        vocabulary=program.tokens,
        decoding=program.decoding,
        entry=program.name,
        parameters=parameters,
    )
    facts = facts_of(program, model, started, seed)
    return sequence_layer_by_lemma(model, task, lemma, facts, TOLERANCE, _batches(program, model.config, seed))


def _batches(program: Program, c: LayerConfig, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sequences of several lengths, all of them where they are few, with the right answers."""
    width = c.heads * (c.d_k + c.d_v)
    lengths = sorted({n for n in (1, 2, 3, 7, 64, program.n - 1, program.n) if 1 <= n <= program.n})
    found = [
        sequences(n, program.tokens, [], seed + n)[: max(16, WEIGHTS // (n * (c.heads * n + width)))] for n in lengths
    ]
    return [(x, program.answers(x)) for x in found]
