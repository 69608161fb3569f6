"""Induction in two layers, right for all sequences; and what one layer cannot do, checked where everything can be listed."""

import itertools
import math

import numpy as np
import pytest
import torch

import lengths
from onelayer.common.errors import InputError
from onelayer.construction.gallery.any_length.induction import Induction
from onelayer.construction.gallery.lower_bounds import bits_needed, heads_needed, induction_limit
from two_layers import induction

both = pytest.mark.parametrize("dtype", ["float64", "float32"])


def check(model, sequences, vocabulary):
    right = lengths.followers(vocabulary)
    for s, found in zip(sequences, model(sequences), strict=True):
        assert np.abs(found - right(s)).max() <= model.bound


@both
@pytest.mark.parametrize(("vocabulary", "longest"), [(2, 7), (3, 5), (5, 3)])
def test_all_short_sequences_are_answered_within_the_bound(dtype, vocabulary, longest):
    model = induction(longest, vocabulary, dtype=dtype)
    assert model.bound < 1e-5
    for n in range(1, longest + 1):
        check(model, [list(s) for s in itertools.product(range(vocabulary), repeat=n)], vocabulary)


@both
def test_long_sequences_are_answered_within_the_bound(dtype):
    rng = np.random.default_rng(3)
    model = induction(300, 9, dtype=dtype)
    drawn = [rng.integers(0, k, n).tolist() for n in (300, 299, 17, 1) for k in (1, 2, 9)]
    far = [8, 7, *[0] * 297, 8]  # the first token comes again at the very end
    check(model, [*drawn, far], 9)  # padded together
    assert model.answer([far])[0][-1] == 7


def test_its_size_does_not_depend_on_the_length():
    small, large = induction(8, 8), induction(4000, 8)
    assert small.parameters_without_positions == large.parameters_without_positions == 643
    assert large.bound == small.bound
    assert [layer.config.heads for layer in (large.first, large.second)] == [1, 1]
    assert large.first.config.d_model == 10


def test_a_changed_weight_ends_the_proof_and_answers_go_wrong():
    model = induction(9, 3)
    with torch.no_grad():
        model.first.W_K[0, :, 1] = 0.0  # the sign that keeps a position from seeing itself
    assert math.isinf(model.bound)
    assert model.answer([[0, 1, 2, 0]])[0].tolist() != [3, 3, 3, 1]


def test_too_little_precision_and_bad_sequences_are_refused():
    with pytest.raises(InputError, match="longest"):
        induction(2, 8)
    with pytest.raises(InputError):
        induction(9, 3).answer([[0, 3]])


def recovered(pairs, heads, free, values):
    """Whether leaders and their symbols tell all choices of free tokens apart; a head is an order of (position, symbol)."""
    seen = set()
    for symbols in itertools.product(range(values), repeat=free):
        tokens = set(enumerate(symbols))
        seen.add(tuple(next(pairs[k] for k in order if pairs[k] in tokens) for order in heads))
    return len(seen) == values**free


def test_no_head_that_picks_one_token_tells_all_choices_apart():
    """Two free tokens with three symbols: at least 2·(1 − 1/3) heads, so two. All 720 orders of one head are tried."""
    pairs = list(itertools.product(range(2), range(3)))
    orders = list(itertools.permutations(range(6)))
    assert heads_needed(2, 3) == 2
    assert not any(recovered(pairs, [order], 2, 3) for order in orders)
    first = [0, 1, 2, 3, 4, 5]  # leads with the first token, whatever its symbol
    assert recovered(pairs, [first, first[::-1]], 2, 3)


def test_bits_are_counted_in_whole_numbers():
    assert bits_needed(10, 2) == 10
    assert bits_needed(3, 7) == 9  # 343 choices
    n = induction_limit(heads=2, d_v=3, p=64, vocabulary=8)
    assert n == 457
    assert bits_needed((n - 1) // 2, 7) > 2 * 5 * 64 >= bits_needed((n - 3) // 2, 7)


def test_two_layers_go_past_the_limit_of_one_and_the_gallery_keeps_to_it():
    """At n = 457 no single layer with two heads as wide as these can do it in float64; the two layers do."""
    model = induction(457, 8)
    check(model, [np.random.default_rng(0).integers(0, 8, 457).tolist()], 8)
    for n in (5, 17, 63):
        config = Induction(n, 8).write().config
        assert config.heads == 2 * n - 1 >= heads_needed((n - 1) // 2, 7)
        assert config.heads * (config.d_v + 2) * 64 >= bits_needed((n - 1) // 2, 7)
