"""`language`: from a corpus, or counts, to a causal layer with a certificate."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...common.checks import known_options, require_whole
from ...common.errors import InputError
from ...common.numbers import at_most, exact
from ...language_model import LanguageModel, softmax
from ...layer.arithmetic import arithmetic_of
from ...layer.facts import Facts
from ...model.transformer import SingleLayerTransformer
from ...proof.certificate import unproved
from ...target.ngram import NGram
from ...target.sequence_task import SequenceTask
from ...target.target import require_tolerance
from ...target.tokenizer import Tokens
from ..gallery.tokens.program import MOST_LENGTH
from ..lemma import Lemma, certificate_by_lemma
from .lanes import lanes_of
from .network import Cases, write
from .proof import prove

NORM = "total variation of the next-token distribution, ½ Σ|p − q|"
OBSERVED = 1000  # contexts at which the distribution is compared, at most
MOST_WORDS = 10_000


@known_options
def language(
    corpus: Any,
    order: int = 3,
    *,
    tokens: Tokens = "characters",
    tolerance: float = 1e-6,
    longest: int = 1000,
    dtype: str = "float64",
) -> LanguageModel:
    """A causal layer whose next-token distribution is within `tolerance` of a bigram (order 2) or trigram (order 3) model.

    `corpus` is a Path, a text, a list of these, or counts such as {("to", " be", " or"): 2}. The tolerance is in total variation
    and is proved for every context of up to `longest` tokens, rounding included; one that cannot be proved is refused.
    """
    require_tolerance(tolerance)
    require_whole("longest", longest, 2, MOST_LENGTH)
    started, arithmetic = time.perf_counter(), arithmetic_of(dtype)
    ngram = NGram.of(corpus, order, tokens)
    V = len(ngram.words)
    if V > MOST_WORDS:
        raise InputError(f"at most {MOST_WORDS:,} different tokens", f"{V:,}", "give a shorter corpus, or characters")
    cases = Cases(ngram)
    lanes = lanes_of(cases.distributions, V, tolerance)
    model = write(cases, longest, lanes, arithmetic.name)
    lemma = prove(model, ngram)
    if not lemma.bound <= tolerance:
        least = f"ask for {at_most(1.1 * lemma.bound, 2)} or more"
        raise InputError(
            f"a total variation of at most {exact(tolerance)} in {arithmetic.name}",
            f"no proof below {at_most(lemma.bound, 3)}",
            least + (", or use dtype='float64'" if arithmetic.name == "float32" else ""),
        )
    task = SequenceTask(
        kind="language",
        text=f"the next token of {ngram}",
        longest=longest,
        ends=(0.0, float(V - 1)),
        answer="position",
        outputs=V,
        vocabulary=V,
        parameters={"order": order, "tokens": tokens, "counts": ngram.digest, "followers": ngram.written},
        words=ngram.words,
    )
    facts = Facts(
        method="language",
        construction="n-gram",
        layout="position",
        heads=(("previous token", 1),),
        units=len(cases.units),
        seconds=time.perf_counter() - started,
        story=_story(cases, lanes.story),
    )
    return _certified(model, task, lemma, facts, tolerance, cases)


def _story(cases: Cases, lanes: str) -> str:
    return (
        "The embedding writes what follows the own token. The head copies the code of the previous token exactly. Each of"
        f" {len(cases.units):,} hidden units stands for two tokens in a row: it is 1 there, 0 elsewhere, and corrects what"
        f" follows. The read-out turns lanes into logits: {lanes}."
    )


def _certified(
    model: SingleLayerTransformer, task: SequenceTask, lemma: Lemma, facts: Facts, tolerance: float, cases: Cases
) -> LanguageModel:
    layer = LanguageModel(model, unproved(model, tolerance, task.quantifier), facts, task)
    contexts = sampled_contexts(cases.ngram, OBSERVED)
    observed = max(total_variations(layer, cases.ngram, contexts))
    certificate = certificate_by_lemma(model, lemma, tolerance, task.quantifier, (observed, len(contexts)))
    return replace(layer, certificate=replace(certificate, norm=NORM))


def sampled_contexts(ngram: NGram, count: int, seed: int = 0) -> list[list[int]]:
    """Contexts of two tokens: up to so many that were seen, and for every tenth of them one drawn at random."""
    seen = sorted(list(context) for context in ngram.followers if len(context) == 2) or [[0, 0]]
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(seen))[: count - count // 10]
    drawn = rng.integers(len(ngram.words), size=(count // 10, 2)).tolist()
    return [*(seen[i] for i in sorted(chosen)), *drawn]


def total_variations(layer: LanguageModel, ngram: NGram, contexts: Sequence[Sequence[int]]) -> list[float]:
    """½ Σ|p − q| at the end of every context: contexts of one length, evaluated together."""
    found = []
    step = max(1, 2**22 // len(ngram.words))
    for start in range(0, len(contexts), step):
        part = contexts[start : start + step]
        for logits, context in zip(layer(np.array(part))[:, -1], part, strict=True):
            found.append(float(np.abs(softmax(logits.astype(np.float64)) - ngram.probabilities(context)).sum() / 2))
    return found
