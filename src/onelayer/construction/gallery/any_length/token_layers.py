"""Token programs for sequences of any length: the same weights as for one length, and one lemma for all of them.

Counts, look-ups and copies compare tokens and positions; none of their weights knows how many tokens there are. So the layer
for `longest` tokens is the layer for all shorter sequences too, and its lemma, which bounds the error for every count and
every position that can occur, holds for them as well.
"""

import time

import numpy as np

from ....common.checks import known_options, require_seed
from ....layer.arithmetic import arithmetic_of
from ....model.config import LayerConfig
from ....model.masking import of_any_length
from ....sequence_layer import SequenceLayer
from ....target.sequence_task import SequenceTask
from ...lemma import sequence_layer_by_lemma
from ..tokens import CopyWhere, FirstOccurrence, Histogram
from ..tokens.program import TOLERANCE, Program, facts_of, proved
from ..tokens.sequences import sequences
from .majority import SignMajority

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
