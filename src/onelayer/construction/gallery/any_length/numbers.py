"""Sequences of numbers of any length: means, maxima and shifts, with one set of weights and one bound for all lengths.

No weight knows the length. A mean gives all tokens the same score, a maximum scores a number by its size; a causal mask makes
both running. What is proved for n tokens grows with n, so that the bound for the largest length holds for all.

    mean       weights are 1/n up to rounding; with products and their sum in any order that is `average_error` of max|x|
    maximum    short of it by at most W((n − 1)/e)/β; the errors of the exponents count for e^(2H) − 1 of that, H as in
               `maxima`; the rest of the rounding is as for the mean. β is a power of two: scores are exact
    shift      one token has weight exactly 1: nothing is rounded
"""

import math
import time
from collections.abc import Callable

import numpy as np
import torch

from ....common.checks import is_whole, known_options, require_whole
from ....common.errors import InputError
from ....common.numbers import at_most, exact
from ....common.outward import UP_MANY
from ....layer.affine_layer import GAP
from ....layer.arithmetic import Arithmetic, arithmetic_of
from ....layer.assemble.frame import power_of_4, write_identity
from ....layer.facts import Facts
from ....layer.heads import MASKED, shortfall
from ....model.masking import of_any_length
from ....model.transformer import SingleLayerTransformer
from ....sequence_layer import SequenceLayer
from ....target.domain import domain_of
from ....target.sequence_task import Answer, SequenceTask
from ....target.target import require_tolerance
from ...lemma import Lemma, sequence_layer_by_lemma
from ..entry import Ends, points
from ..one_head import one_head
from ..routing import ASSUMES, LARGEST, LARGEST_SINGLE, STATEMENT
from ..tokens.program import MOST_LENGTH, bits, codes
from ..tokens.weights import average_error, rounded_up

LONGEST = 1000
Answers = Callable[[np.ndarray], np.ndarray]  # [batch, n] → [batch, n] or [batch]


@known_options
def mean(longest: int = LONGEST, *, domain: Ends = (0.0, 1.0), dtype: str = "float64") -> SequenceLayer:
    """The mean of the sequence: one head that attends to all numbers alike."""
    return _averaged("mean", "the mean", longest, domain, dtype, causal=False)


@known_options
def running_mean(longest: int = LONGEST, *, domain: Ends = (0.0, 1.0), dtype: str = "float64") -> SequenceLayer:
    """At every position the mean of the numbers so far: one causal head that attends to all of them alike."""
    return _averaged("running_mean", "the running mean", longest, domain, dtype, causal=True)


@known_options
def maximum(
    longest: int = LONGEST, tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64"
) -> SequenceLayer:
    """The largest number: one max-head."""
    return _extreme("maximum", "the largest number", longest, tolerance, domain, dtype)


@known_options
def minimum(
    longest: int = LONGEST, tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64"
) -> SequenceLayer:
    """The smallest number: one max-head of negative sharpness."""
    return _extreme("minimum", "the smallest number", longest, tolerance, domain, dtype, lowest=True)


@known_options
def running_max(
    longest: int = LONGEST, tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64"
) -> SequenceLayer:
    """At every position the largest number so far: one causal max-head."""
    return _extreme("running_max", "the running maximum", longest, tolerance, domain, dtype, causal=True)


@known_options
def shift(longest: int = LONGEST, by: int = 1, *, dtype: str = "float64") -> SequenceLayer:
    """Position i gets the number at position i − by, exactly, and 0 where there is none: 0 copies, 1 is the previous number."""
    require_whole("longest", longest, 1, MOST_LENGTH)
    if not is_whole(by) or abs(by) >= longest:
        raise InputError(
            f"by, a whole number below {longest} in size", f"{by!r}", "say how far numbers move to the right"
        )
    started, arithmetic = time.perf_counter(), arithmetic_of(dtype)
    largest = LARGEST if arithmetic.name == "float64" else LARGEST_SINGLE
    text = "the sequence itself" if by == 0 else f"the sequence moved by {by}, 0 where there is none"
    task = task_on_numbers("shift", text, longest, (-largest, largest), "position", by=by)
    model = of_any_length(_shifting(longest, by).to(arithmetic.dtype))
    story = (
        f"Every position carries the code of its own number and that of the position it reads, {bits(longest)} signs each. The"
        " head compares them: the token whose code agrees leads by 800 or more; the anchor, whose value is 0, comes next and"
        " is read where there is no such token. The feed-forward network passes the number on."
    )

    def answers(x: np.ndarray) -> np.ndarray:
        found, n = np.zeros_like(x), x.shape[1]
        if abs(by) < n:
            found[:, max(by, 0) : n + min(by, 0)] = x[:, max(-by, 0) : n - max(by, 0)]
        return found

    lemma = Lemma(STATEMENT, {"rounding": 0.0}, ASSUMES)
    facts = _facts("shift", "read", story, started, "position")
    return sequence_layer_by_lemma(model, task, lemma, facts, 0.0, batches(task, answers, arithmetic))


def _shifting(longest: int, by: int) -> SingleLayerTransformer:
    """Score 800·(agreement of the codes of i − by and j); 800·(bits − 1) on the anchor, and 800 more where there is no i − by."""
    b = bits(longest)
    d_k = power_of_4(b + 2)
    model = one_head(longest, (1, 1), 2 * b + 4, d_k, 1, 2, code="learned", anchor_tokens=1)
    X, own, read = 0, slice(1, b + 1), slice(b + 1, 2 * b + 1)
    DATA, NONE, ANCHOR = range(2 * b + 1, 2 * b + 4)
    position, high = codes(longest), math.sqrt(d_k) * MASKED
    source = torch.arange(longest) - by
    there = (source >= 0) & (source < longest)
    with torch.no_grad():
        model.W_E[0, X] = model.b_E[DATA] = model.S[0, ANCHOR] = 1.0
        model.P[:, own] = position
        model.P[there, read], model.P[~there, NONE] = position[source[there]], 1.0
        model.W_Q[0, read, :b] = torch.eye(b, dtype=torch.float64)
        model.W_Q[0, DATA, b] = model.W_Q[0, NONE, b + 1] = 1.0
        model.W_K[0, own, :b] = high * torch.eye(b, dtype=torch.float64)
        model.W_K[0, ANCHOR, b], model.W_K[0, ANCHOR, b + 1] = high * (b - 1), high
        model.W_V[0, X, 0] = model.W_O[0, 0] = 1.0
        write_identity(model, 1, torch.zeros(1, dtype=torch.float64))
    return model


def _averaged(name: str, text: str, longest: int, domain: Ends, dtype: str, causal: bool) -> SequenceLayer:
    """One head without scores; the tolerance is what is proved."""
    started, arithmetic = time.perf_counter(), arithmetic_of(dtype)
    task = task_on_numbers(name, text, longest, domain, "position" if causal else "whole")
    model = of_any_length(_scored(longest, 0.0, 0.0, causal).to(arithmetic.dtype), causal)
    reach = max(map(abs, task.ends))
    if not 16 * reach < arithmetic.overflow:  # weights that add up to a little more than 1 must not overflow
        size = f"numbers of at most {arithmetic.overflow / 16:.2g} in size in {arithmetic.name}"
        raise InputError(size, at_most(reach, 3), "choose a smaller domain, or float64")
    summed = rounded_up(average_error(longest + 1, arithmetic))
    statement = "all scores are equal, so that all weights are 1/n up to rounding"
    lemma = Lemma(statement, {"rounding": summed * reach * UP_MANY + longest * arithmetic.smallest * max(1.0, reach)})
    story = "The one head gives every number the same score, so it outputs their mean. There are no positional codes."

    def answers(x: np.ndarray) -> np.ndarray:
        summed = np.cumsum(x.astype(np.longdouble), axis=1)
        found = summed / np.arange(1, x.shape[1] + 1)
        return np.asarray(found if causal else found[:, -1], dtype=np.float64)

    facts = _facts(name, "mean", story + _masked(causal), started, task.answer)
    return sequence_layer_by_lemma(model, task, lemma, facts, lemma.bound, batches(task, answers, arithmetic))


def _extreme(
    name: str,
    text: str,
    longest: int,
    tolerance: float,
    domain: Ends,
    dtype: str,
    lowest: bool = False,
    causal: bool = False,
) -> SequenceLayer:
    """One head whose score is ±βx, β the smallest power of two for which the tolerance is proved."""
    require_tolerance(tolerance)
    started, arithmetic = time.perf_counter(), arithmetic_of(dtype)
    task = task_on_numbers(name, text, longest, domain, "position" if causal else "whole")
    reach, power, lemma = max(map(abs, task.ends)), 0, None
    while lemma is None or lemma.bound > tolerance:
        found = _smooth(longest, 2.0**power, reach, arithmetic)
        if lemma is not None and not found.bound < lemma.bound * (1 - 1e-3):
            raise InputError(
                f"{name} of up to {longest:,} numbers within {exact(tolerance)} in {dtype}",
                f"no proof below {at_most(lemma.bound, 3)}",
                f"ask for {at_most(1.1 * lemma.bound, 2)} or more" + (", or use float64" if dtype == "float32" else ""),
            )
        lemma, power = found, power + 1
    beta = 2.0 ** (power - 1)
    model = of_any_length(_scored(longest, -beta if lowest else beta, reach, causal).to(arithmetic.dtype), causal)
    which = "smallest" if lowest else "largest"
    story = f"The one head attends to the {which} of the numbers (sharpness {beta:.3g}) and outputs it."

    def answers(x: np.ndarray) -> np.ndarray:
        if causal:
            return np.asarray(np.maximum.accumulate(x, axis=1))
        return np.asarray(x.min(axis=1) if lowest else x.max(axis=1))

    facts = _facts(name, "max", story + _masked(causal), started, task.answer)
    return sequence_layer_by_lemma(model, task, lemma, facts, tolerance, batches(task, answers, arithmetic, beta))


def _smooth(longest: int, beta: float, reach: float, a: Arithmetic) -> Lemma:
    """The bound of a max-head over up to this many numbers of this size."""
    if not 16 * beta * reach < a.overflow:
        return Lemma("nothing is proved: scores overflow", {"unproved": math.inf})
    H, short = GAP[a.dtype] * a.u + 2 * a.exp_error, shortfall(longest) / beta
    summed = rounded_up(average_error(longest + 1, a))
    rounding = math.expm1(2 * H) * short + summed * reach + longest * a.smallest * max(1.0, reach)
    statement = "a smooth maximum of n numbers is short of the exact one by W((n−1)/e)/β at most, which grows with n"
    return Lemma(statement, {"smooth maximum": short * UP_MANY, "rounding": rounding * UP_MANY})


def _scored(longest: int, beta: float, reach: float, causal: bool) -> SingleLayerTransformer:
    """One head with score βx on data, |x| ≤ reach, read at every position if causal, else at an output token.

    The output token does not see itself: its own score lies at least 800 below every βx.
    """
    model = one_head(longest, (1, 1), 3, 4, 1, 2, code="none", output_tokens=0 if causal else 1)
    X, DATA, OUTPUT = range(3)  # coordinates of the stream
    with torch.no_grad():
        model.W_E[0, X] = model.b_E[DATA] = 1.0
        model.W_Q[0, DATA, 0] = model.W_V[0, X, 0] = model.W_O[0, 0] = 1.0
        model.W_K[0, X, 0] = 2 * beta  # √d_k = 2
        if not causal:
            model.S[0, DATA] = model.S[0, OUTPUT] = model.W_Q[0, OUTPUT, 1] = 1.0
            model.W_K[0, OUTPUT, 1] = -(2.0 ** math.ceil(math.log2(4 * abs(beta) * reach + 2 * MASKED)))
        write_identity(model, 1, torch.zeros(1, dtype=torch.float64))
    return model


def _masked(causal: bool) -> str:
    return (
        " A causal mask hides later positions." if causal else " The output token, which reads it, does not see itself."
    )


def task_on_numbers(
    name: str, text: str, longest: int, domain: Ends, answer: Answer, **more: int | float
) -> SequenceTask:
    require_whole("longest", longest, 1, MOST_LENGTH)
    low, high = domain_of([domain]).lower[0], domain_of([domain]).upper[0]
    given = {"longest": longest, **more}
    return SequenceTask(
        kind="gallery", text=text, longest=longest, ends=(low, high), answer=answer, entry=name, parameters=given
    )


def _facts(name: str, kind: str, story: str, started: float, layout: str) -> Facts:
    seconds = time.perf_counter() - started
    return Facts(
        method="gallery", construction=name, layout=layout, heads=((kind, 1),), units=1, seconds=seconds, story=story
    )


def batches(
    task: SequenceTask, answers: Answers, arithmetic: Arithmetic, sharpness: float = 0.0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sequences of several lengths, the shortest and the longest among them, with the right answers."""
    rng, found = np.random.default_rng(0), []
    low, high = task.ends
    for n in sorted({1, 2, 3, 8, task.longest // 2 or 1, max(1, task.longest - 1), task.longest}):
        if n <= task.longest:
            x = points(n, (low, high), sharpness)[: max(4, 20_000 // n)] if low > -1e30 else rng.normal(size=(64, n))
            x = x.astype(np.float32).astype(np.float64).clip(low, high) if arithmetic.name == "float32" else x
            found.append((x, answers(x)))
    return found
