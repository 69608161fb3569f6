"""Order: sorting, ranks, maxima and what is made of them, by max-heads of one layer.

The k-th smallest of n numbers is Σ_S (−1)^(|S|−k) C(|S|−1, k−1) max_S over all sets S of at least k of them (the
maximum–minimums identity): one max-head per set and a linear output. How sharp the heads must be follows from the tolerance
(`maxima`), and the certificate says so.

A causal max-head: attention that only looks back, by positional codes alone, in an ordinary softmax layer.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
import torch

from ...approximation import Approximation
from ...common.checks import known_options, require_whole
from ...common.errors import InputError
from ...layer.assemble import Outputs, assemble
from ...layer.assemble.frame import power_of_4, write_identity
from ...layer.heads import MASKED, Maxima
from ...layer.layer import gate_layer
from ...model.transformer import SingleLayerTransformer
from ..lemma import Lemma
from .entry import Ends, Entry, Function, entry, require_length
from .maxima import Combination, any_shortfall, expected_range, prove_maxima
from .one_head import one_head


def causal(it: Entry, beta: float) -> SingleLayerTransformer:
    """q_i = (1, code_i), k_j = √d_k·(βx_j, −S in the codes of all positions before j): score βx_j, or βx_j − S for j > i."""
    n = it.n
    d_k = power_of_4(n + 1)
    root = math.sqrt(d_k)
    model = one_head(n, (1, 1), n + 2, d_k, 1, 2, frame=it.frame)
    X, codes, ONE = 0, slice(1, n + 1), n + 1  # coordinates of the stream
    hidden = 2 * beta + 2 * MASKED  # more than scores can differ by
    later = torch.ones(n, n, dtype=torch.float64).triu(1)  # [query position, later position]
    with torch.no_grad():
        model.W_E[0, X] = model.b_E[ONE] = 1.0
        model.W_Q[0, ONE, 0] = 1.0
        model.W_Q[0, codes, codes] = torch.eye(n, dtype=torch.float64)
        model.W_K[0, X, 0] = root * beta
        model.W_K[0, codes, codes] = -root * hidden * later.T
        model.W_V[0, X, 0] = 1.0
        model.W_O[0, 0] = it.span
        write_identity(model, 1, torch.tensor([it.frame.shift[0]], dtype=torch.float64))
    return model


SMOOTH_SHARE = 0.9  # share of the tolerance by which smooth maxima may fall short; the rest is for rounding
MOST_HEADS = 2**16
Rank = tuple[int, float]  # (k, factor): the k-th smallest number times the factor
Tried = tuple[float, SingleLayerTransformer, Lemma | None]  # a sharpness, its layer, and what is proved


@known_options
def sort(
    n: int, tolerance: float = 1e-6, *, descending: bool = False, domain: Ends = (0.0, 1.0), dtype: str = "float64"
) -> Approximation:
    """The n numbers in ascending (or descending) order: 2^n − 1 max-heads."""
    require_length(n)
    way, ranks = ("descending", range(n, 0, -1)) if descending else ("ascending", range(1, n + 1))
    it = entry("sort", f"{n} numbers in {way} order", n, n, tolerance, domain, dtype, descending=descending)
    return _ranks(it, [[(k, 1.0)] for k in ranks])


@known_options
def top_k(
    n: int, k: int, tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64"
) -> Approximation:
    """The k largest of n numbers, the largest first: a max-head for every set of more than n − k numbers."""
    require_length(n)
    require_whole("k", k, 1, n)
    it = entry("top_k", f"the {k} largest of {n} numbers", n, int(k), tolerance, domain, dtype, k=int(k))
    return _ranks(it, [[(n - i, 1.0)] for i in range(k)])


@known_options
def median(n: int, tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64") -> Approximation:
    """The median of n numbers; for even n the mean of the two in the middle: a max-head for every set of n/2 or more."""
    require_length(n)
    row = [((n + 1) // 2, 1.0)] if n % 2 else [(n // 2, 0.5), (n // 2 + 1, 0.5)]
    return _ranks(entry("median", f"the median of {n} numbers", n, 1, tolerance, domain, dtype), [row])


@known_options
def maximum(n: int, tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64") -> Approximation:
    """The largest of n numbers: one max-head."""
    return _extremum(entry("maximum", f"the largest of {n} numbers", n, 1, tolerance, domain, dtype), lowest=False)


@known_options
def minimum(n: int, tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64") -> Approximation:
    """The smallest of n numbers: one max-head of negative sharpness."""
    return _extremum(entry("minimum", f"the smallest of {n} numbers", n, 1, tolerance, domain, dtype), lowest=True)


@known_options
def absolute_difference(tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64") -> Approximation:
    """|x1 − x2| = 2 max(x1, x2) − x1 − x2: one max-head, two reads."""
    it = entry("absolute_difference", "|x1 − x2|", 2, 1, tolerance, domain, dtype)
    sets = np.array([[True, True], [True, False], [False, True]])
    factors = np.array([[2.0], [-1.0], [-1.0]])
    f = Combination(sets, factors, any_shortfall(sets, factors), np.array([2.0]))
    story = (
        "Head 1 attends to the larger of the two numbers (sharpness {beta:.3g}) and its output counts twice; heads 2 and 3"
        " read x1 and x2, which are taken off. 2 max(x1, x2) − x1 − x2 = |x1 − x2|."
    )
    return _built(it, f, lambda x: np.abs(x[:, :1] - x[:, 1:]), (("max", 1), ("read", 2)), story)


@known_options
def running_max(n: int, tolerance: float = 1e-6, *, domain: Ends = (0.0, 1.0), dtype: str = "float64") -> Approximation:
    """At position i the largest of the first i numbers: one causal max-head."""
    it = entry("running_max", f"the running maximum of {n} numbers", n, n, tolerance, domain, dtype)
    sets, factors = np.tri(n, dtype=bool), np.eye(n)
    f = Combination(sets, factors, any_shortfall(sets, factors), np.ones(n))
    story = (
        "The one head is causal: the code of position i in the query meets a key that hides every later position, so that"
        " it attends to the largest of x1 … xi (sharpness {beta:.3g}). The FFN passes its output on."
    )
    return _built(it, f, lambda x: np.maximum.accumulate(x, axis=1), (("max", 1),), story, causal)


def rank_factor(size: int, k: int) -> int:
    """The factor of max_S, |S| = size, in the k-th smallest number."""
    return (-1) ** (size - k) * math.comb(size - 1, k - 1) if size >= k else 0


def _ranks(it: Entry, rows: list[list[Rank]]) -> Approximation:
    """Outputs that are ranks, or means of ranks (factors that add up to 1 in absolute value)."""
    n, least = it.n, min(k for row in rows for k, _ in row)
    count = sum(math.comb(n, size) for size in range(least, n + 1))
    if count > MOST_HEADS:
        found = f"{count:,}" if count < 10**12 else f"about 1e{len(str(count)) - 1}"
        raise InputError(f"{it.name} with at most {MOST_HEADS:,} heads", f"{found} for n = {n}", "take fewer numbers")
    members = [c for size in range(least, n + 1) for c in itertools.combinations(range(n), size)]
    sets = np.zeros((len(members), n), dtype=bool)
    for row, chosen in zip(sets, members, strict=True):
        row[list(chosen)] = True
    by_size = [[sum(c * rank_factor(size, k) for k, c in row) for row in rows] for size in range(n + 1)]
    factors = np.array(by_size)[sets.sum(axis=1)]
    used = factors.any(axis=1)
    f = Combination(sets[used], factors[used], np.full(len(rows), expected_range(n)), np.ones(len(rows)))

    def function(x: np.ndarray) -> np.ndarray:
        ordered = np.sort(x, axis=1)
        return np.stack([sum(c * ordered[:, k - 1] for k, c in row) for row in rows], axis=1)

    story = (
        "There is a head for every set S of {least} or more numbers: it attends to them alone (sharpness {beta:.3g}) and so"
        " outputs the largest of S. The outputs add them up with the factors (−1)^(|S|−k) C(|S|−1, k−1), which by the"
        " maximum–minimums identity leaves the k-th smallest number."
    )
    return _built(it, f, function, (("max", int(used.sum())),), story.replace("{least}", str(least)))


def _extremum(it: Entry, lowest: bool) -> Approximation:
    sets, factors = np.ones((1, it.n), dtype=bool), np.ones((1, 1))
    f = Combination(sets, factors, any_shortfall(sets, factors), np.ones(1), lowest)
    pick: Callable[..., np.ndarray] = np.min if lowest else np.max
    which = "smallest" if lowest else "largest"
    story = f"The one head attends to the {which} of the numbers (sharpness {{beta:.3g}}) and outputs it."
    return _built(it, f, lambda x: pick(x, axis=1, keepdims=True), (("max", 1),), story)


def _built(
    it: Entry,
    f: Combination,
    function: Function,
    kinds: tuple[tuple[str, int], ...],
    story: str,
    assembled: Callable[[Entry, float], SingleLayerTransformer] | None = None,
) -> Approximation:
    """The layer with the smallest sharpness, a power of two, for which the lemma proves the tolerance."""
    places = tuple(range(it.n)) if assembled else (0,)

    def tried(power: int) -> Tried:
        beta = 2.0**power
        model = assembled(it, beta) if assembled else _scalar(it, f, beta, reads=len(kinds) > 1)
        model = model.to(it.arithmetic.dtype)
        return beta, model, prove_maxima(model, places, f, it.ends)

    needed = max(float(f.short.max()) * it.span / (SMOOTH_SHARE * it.tolerance), 1.0)
    first = math.ceil(math.log2(needed))
    found = [tried(first)]
    for more in range(1, 4):  # rounding may need more than its share
        lemma = found[0][2]
        if lemma is None or not lemma.bound <= it.tolerance:
            found.insert(0, tried(first + more))
    for less in range(1, first):  # too sharp for the arithmetic: the refusal says what would be possible
        if all(lemma is None for _, _, lemma in found):
            found.append(tried(first - less))
    beta, model, lemma = min(found, key=lambda t: t[2].bound if t[2] else math.inf)
    lemma, total = it.require(lemma), float(np.abs(f.factors).sum(axis=0).max() * it.span)
    return it.approximation(model, lemma, function, heads=kinds, story=story.format(beta=beta), total=total, score=beta)


def _scalar(it: Entry, f: Combination, beta: float, reads: bool) -> SingleLayerTransformer:
    """Max-heads for all sets; single numbers have read heads if `reads`."""
    factors, sets = torch.from_numpy(f.factors) * it.span, torch.from_numpy(f.sets)
    bias = torch.tensor([math.fsum(column) for column in f.factors.T], dtype=torch.float64) * it.frame.shift[0]
    linear = torch.zeros(it.n, len(bias), dtype=torch.float64)
    if reads:
        single = sets.sum(dim=1) == 1
        linear[sets[single].to(torch.int64).argmax(dim=1)] = factors[single]
        sets, factors = sets[~single], factors[~single]
    sharpness = torch.full((len(sets),), -beta if f.lowest else beta, dtype=torch.float64)
    maxima = Maxima(sharpness, torch.zeros(len(sets), it.n, dtype=torch.float64), sets)
    layer = gate_layer(bias, it.n, maxima=(maxima, factors), linear=linear)
    return assemble(layer, it.frame, Outputs(1, len(bias), (0,)))
