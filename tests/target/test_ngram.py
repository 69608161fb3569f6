"""N-gram models in whole numbers, and the tokens of texts."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from onelayer.common.errors import InputError
from onelayer.target.ngram import NGram
from onelayer.target.tokenizer import START, numbers_of, tokens_in


@given(st.text())
def test_joining_the_tokens_gives_the_text(text):
    assert "".join(tokens_in(text, "words")) == text
    assert "".join(tokens_in(text, "characters")) == text


def test_words_take_one_space_along():
    assert tokens_in("a small  cat, x_1 = 42.\n", "words") == [
        "a", " small", " ", " cat", ",", " x", "_", "1", " =", " 4", "2", ".", "\n",
    ]  # fmt: skip


def test_an_unknown_token_is_named():
    with pytest.raises(InputError, match="found: 'dog'"):
        numbers_of(["cat", "dog"], (START, "cat"))


def test_counts_of_a_small_text_by_hand():
    model = NGram.of("abab", 3, "characters")
    assert model.words == (START, "a", "b")
    assert model.followers == {
        (): {1: 2, 2: 2},
        (0,): {1: 1},
        (1,): {2: 2},
        (2,): {1: 1},
        (0, 1): {2: 1},
        (1, 2): {1: 1},
        (2, 1): {2: 1},
    }
    assert model.next([2, 0, 1]) == {2: 1}  # seen
    assert model.next([2, 2]) == {1: 1}  # (b, b) was not: what followed b
    assert model.next([]) == {1: 2, 2: 2}
    assert model.own_contexts == []  # all contexts of two tokens say what their last token says
    np.testing.assert_array_equal(model.probabilities([1]), [0.0, 0.0, 1.0])


def test_a_token_that_nothing_followed_has_the_distribution_of_all_tokens():
    model = NGram.of("aab", 3, "characters")
    assert model.next([1, 2]) == model.next([2]) == {1: 2, 2: 1}


def test_texts_do_not_run_into_one_another():
    model = NGram.of(["ab", "cd"], 3, "characters")
    assert (2, 3) not in model.followers
    assert model.followers[(0,)] == {1: 1, 3: 1}
    assert all(0 not in found for found in model.followers.values())


def test_counts_can_be_given():
    texts = ["to be or not to be", "to do"]
    read = NGram.of(texts, 3, "words")
    grams = {}
    for context, found in read.followers.items():
        grams |= {tuple(read.words[i] for i in (*context, token)): count for token, count in found.items()}
    assert NGram.of(grams, 3, "words").digest == read.digest
    longest = NGram.of({("a", "b", "c"): 2, ("d", "b", "c"): 1, ("d", "b", "a"): 1}, 3, "words")
    assert longest.next([2]) == {3: 3, 1: 1}  # sums over the first token
    assert longest.next([]) == {3: 3, 1: 1}


def test_distributions_have_no_common_factors():
    model = NGram.of({("a", "b"): 4, ("a", "c"): 6, ("d", "b"): 2, ("d", "c"): 3}, 2, "words")
    assert model.distribution([1]) == model.distribution([4]) == ((2, 2), (3, 3))


def test_the_digest_is_that_of_the_counts():
    assert NGram.of("abab", 3, "characters").digest == NGram.of(["abab"], 3, "characters").digest
    assert NGram.of("abab", 3, "characters").digest != NGram.of("abaab", 3, "characters").digest
    assert NGram.of("abab", 3, "characters").digest != NGram.of("abab", 2, "characters").digest
