"""Sums in any order of additions, in float32, against exact ones: they are off by at most `any_order`, with zero slack."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onelayer import checker
from onelayer.layer.arithmetic import FLOAT32
from onelayer.layer.rounding.deployed import any_order

U = FLOAT32.u


def summed(terms: list[np.float32], order: str, rng: np.random.Generator) -> np.float32:
    """The terms added up two at a time: the largest or the smallest first, one after another, by halves, or in any tree."""
    pile = sorted(terms, key=abs, reverse=order == "largest")
    while len(pile) > 1:
        if order == "tree":
            a, b = sorted(rng.choice(len(pile), 2, replace=False).tolist(), reverse=True)
        else:
            a, b = 1, 0
        joined = np.float32(pile[a] + pile[b])
        del pile[max(a, b)], pile[min(a, b)]
        pile = [*pile, joined] if order == "halves" else [joined, *pile]
    return pile[0]


def allowed(terms: list[np.float32]) -> float:
    sizes = torch.tensor([abs(float(t)) for t in terms], dtype=torch.float64)
    up, down = (sum(max(s * float(t), 0.0) for t in terms) for s in (1, -1))
    return float(any_order(sizes, torch.tensor(max(up, down), dtype=torch.float64), U))


def drawn(seed: int, count: int, spread: float) -> list[np.float32]:
    """Terms of both signs whose sizes spread over so many powers of two, some of them nearly cancelling."""
    rng = np.random.default_rng(seed)
    terms = rng.choice([-1, 1, 1, 1], count) * 2.0 ** (-spread * rng.random(count)) * rng.uniform(1, 2, count)
    terms[count // 2 :] = -terms[: count - count // 2] * (1 + 2.0**-20 * rng.normal(size=count - count // 2))
    return [np.float32(t) for t in terms]


@given(
    st.integers(0, 10**6),
    st.integers(2, 120),
    st.sampled_from([0.0, 5.0, 30.0, 60.0]),
    st.sampled_from(["largest", "smallest", "halves", "tree"]),
)
def test_every_order_is_within_the_bound(seed, count, spread, order):
    terms = drawn(seed, count, spread)
    exact = sum(map(Fraction, map(float, terms)), Fraction(0))
    off = abs(Fraction(float(summed(terms, order, np.random.default_rng(seed)))) - exact)
    assert off <= allowed(terms)


def test_a_smaller_bound_would_be_broken():
    """One term and many just above half a unit in its last place: each addition is off by almost as much as it can be."""
    terms = [np.float32(1.0), *[np.float32(2.0**-24 * (1 + 2.0**-12))] * 200]
    exact = sum(map(Fraction, map(float, terms)), Fraction(0))
    off = abs(Fraction(float(summed(terms, "largest", np.random.default_rng(0)))) - exact)
    assert 0.95 * allowed(terms) < off <= allowed(terms)


def test_terms_that_do_not_count_cost_little():
    """A thousand terms of 2^−60: the sum of all sizes, not a rounding of the sum for each."""
    terms = [np.float32(1.0), np.float32(0.5), *[np.float32(2.0**-60)] * 1000]
    assert allowed(terms) < 1.01 * 1.5 * U + 1001 * 2.0**-60


@pytest.mark.parametrize("seed", range(20))
def test_the_checker_charges_as_much(seed):
    from flint import arb

    terms = drawn(seed, 50, 30.0)
    up, down = (sum(max(s * float(t), 0.0) for t in terms) for s in (1, -1))
    found = checker.summation([arb(abs(float(t))) for t in terms], arb(max(up, down)), arb(U))
    assert float(found) == pytest.approx(allowed(terms), rel=1e-4)
