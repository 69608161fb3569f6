"""Routing: permutations, reversal and shifts, exactly, by one head.

The query of position i is its code, and the key of the position that it reads is 800 higher there than all others: softmax
gives that token the weight 1 and all others 0, in floating point too, so that a number arrives as it left.
"""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...approximation import Approximation
from ...common.checks import is_whole, known_options
from ...common.errors import InputError
from ...layer.arithmetic import arithmetic_of
from ...layer.assemble.frame import power_of_4, write_identity
from ...layer.heads import MASKED
from ...layer.reading import form_of_model
from ...model.transformer import SingleLayerTransformer
from ..lemma import Lemma
from .entry import Entry, require_length
from .one_head import one_head
from .tokens import reverse_tokens

LARGEST = 1e140  # inputs may be up to this large in size: proofs multiply queries and keys, codes or not
LARGEST_SINGLE = 1e30
STATEMENT = (
    "every position attends to one token with weight exactly 1, since all other scores are 800 lower, and the FFN and the"
    " read-out pass its number on unchanged"
)
ASSUMES = ("exp(0) = 1, exp(−800) = 0",)


@known_options
def permute(order: Sequence[int], *, dtype: str = "float64") -> Approximation:
    """Position i gets the number at position order[i] (counted from 0), exactly."""
    found = list(order) if isinstance(order, Sequence | np.ndarray) else [order]
    if not all(map(is_whole, found)) or sorted(found) != list(range(len(found))) or not found:
        raise InputError("order, a permutation of 0, 1, …, n − 1", f"{found!r}"[:80], "name every position once")
    return _routed("permute", "a permutation", [int(j) for j in found], dtype, {"order": [int(j) for j in found]})


@known_options
def reverse(n: int, vocabulary: int | None = None, *, dtype: str = "float64") -> Approximation:
    """The n numbers (or, with a vocabulary, tokens) in reverse, exactly."""
    if vocabulary is not None:
        return reverse_tokens(n, vocabulary, dtype=dtype)
    require_length(n)
    return _routed("reverse", f"{n} numbers in reverse", list(range(n - 1, -1, -1)), dtype, {"n": n})


@known_options
def shift(n: int, by: int = 1, *, cyclic: bool = False, dtype: str = "float64") -> Approximation:
    """Position i gets the number at position i − by, exactly; 0 (or, if cyclic, the other end's) where there is none."""
    require_length(n)
    if not is_whole(by):
        raise InputError("by, a whole number", f"{by!r}", "say how far the numbers move to the right")
    source = [(i - by) % n if cyclic else i - by for i in range(n)]
    text, given = (
        f"{n} numbers moved by {by}" + (", cyclically" if cyclic else ""),
        {"n": n, "by": by, "cyclic": cyclic},
    )
    return _routed("shift", text, [j if 0 <= j < n else None for j in source], dtype, given)


def route(source: Sequence[int | None], features: int = 1) -> SingleLayerTransformer:
    """The layer whose position i reads token source[i]; None reads the anchor token, whose features are 0."""
    n, d = len(source), features
    anchored = any(j is None for j in source)
    d_k = power_of_4(n)
    model = one_head(n, (d, d), d + n + anchored, d_k, d, 2 * d, anchor_tokens=int(anchored))
    codes, high = slice(d, d + n), math.sqrt(d_k) * MASKED
    with torch.no_grad():
        eye = torch.eye(d, dtype=torch.float64)
        model.W_E[:, :d] = eye
        if anchored:
            model.S[0, d + n] = 1.0
        model.W_Q[0, codes, :n] = torch.eye(n, dtype=torch.float64)
        for i, j in enumerate(source):
            model.W_K[0, d + n if j is None else d + j, i] = high
        model.W_V[0, :d] = eye
        model.W_O[:, :d] = eye
        write_identity(model, d, torch.zeros(d, dtype=torch.float64))
    return model


def prove_routing(model: SingleLayerTransformer, source: Sequence[int | None], edge: float) -> Lemma | None:
    """That every position passes its token on exactly, from the weights; None if they do something else."""
    n = len(source)
    reading = form_of_model(model, tuple(range(n)), edge)
    if reading is None or reading.form.blocks or len(reading.hinges) or reading.form.bias.any():
        return None
    wanted = torch.zeros(n, n, dtype=torch.float64)
    for i, j in enumerate(source):
        if j is not None:
            wanted[j, i] = 1.0
    plain = set(reading.frame.shift) == {0.0} and set(reading.frame.scale) == {1.0}
    return Lemma(STATEMENT, {"rounding": 0.0}, ASSUMES) if plain and torch.equal(reading.form.linear, wanted) else None


def _routed(name: str, text: str, source: Sequence[int | None], dtype: str, given: dict[str, Any]) -> Approximation:
    n, arithmetic = len(source), arithmetic_of(dtype)
    require_length(n)
    largest = LARGEST if arithmetic.name == "float64" else LARGEST_SINGLE
    it = Entry(name, text, n, n, 0.0, (-largest, largest), arithmetic, given | {"dtype": dtype}, time.perf_counter())
    model = route(source).to(arithmetic.dtype)
    lemma = it.require(prove_routing(model, source, largest))

    def function(x: np.ndarray) -> np.ndarray:
        padded = np.concatenate([x, np.zeros((len(x), 1))], axis=1)
        return padded[:, [n if j is None else j for j in source]]

    story = (
        "The one head asks with the code of its own position and finds a key that is 800 higher at the position to read"
        + (", or at the anchor token, whose value is 0, where there is none" if None in source else "")
        + ". The FFN passes the number on: relu(z) − relu(−z) = z."
    )
    return it.approximation(model, lemma, function, heads=(("read", 1),), story=story)
