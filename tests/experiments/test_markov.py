"""Chains that switch, and a layer trained on them for a few steps."""

import numpy as np
import pytest

from markov import Chain, trained_on_chain


def test_entropies_are_those_of_long_sequences():
    chain = Chain(0.2, 0.6)
    x = chain.sequences(2000, 100, np.random.default_rng(0))
    assert x.mean() == pytest.approx(chain.stationary, abs=5e-3)
    switched = x[:, 1:] != x[:, :-1]
    assert switched[x[:, :-1] == 0].mean() == pytest.approx(0.2, abs=5e-3)
    assert switched[x[:, :-1] == 1].mean() == pytest.approx(0.6, abs=5e-3)
    assert chain.entropy_rate < chain.unigram_entropy
    assert Chain(0.3, 0.7).entropy_rate == pytest.approx(Chain(0.3, 0.7).unigram_entropy)  # symbols are independent


@pytest.mark.parametrize("tied", [True, False])
def test_training_is_reproducible(tied):
    chain = Chain(0.2, 0.3)
    one, two = (trained_on_chain(chain, tied, 2, steps=20) for _ in range(2))
    assert one == two
    assert [outcome.seed for outcome in one] == [0, 1]
    assert all(outcome.loss < 0.7 for outcome in one)
