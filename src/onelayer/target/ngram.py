"""NGram: a bigram or trigram model of texts, in whole numbers.

    p(c | a, b) = count(a, b, c) / count(a, b)      if something followed (a, b)
                = count(b, c) / count(b)            else, if something followed b
                = count(c) / count                  else

A bigram model has no first line. Counts of contexts count what followed. The token ⟨start⟩, number 0, precedes every text
and never follows anything.
"""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
from jaxtyping import Float

from ..common.checks import is_whole, require_choice
from ..common.errors import InputError
from .tokenizer import START, Tokens, numbers_of, tokens_in

Distribution = tuple[tuple[int, int], ...]  # (token, count), sorted; counts have no common factor
Followers = dict[tuple[int, ...], dict[int, int]]  # context → what followed, and how often
MOST_COUNT = 2**53  # whole numbers up to this are floats


@dataclass(frozen=True, eq=False)
class NGram:
    """What followed the contexts of up to order − 1 tokens, and how often."""

    order: int
    words: tuple[str, ...]
    followers: Followers

    def __post_init__(self) -> None:
        _require_order(self.order)
        strange = next((word for word in self.words if any("\ud800" <= letter <= "\udfff" for letter in word)), None)
        if strange is not None:  # no file could hold it
            raise InputError("tokens that UTF-8 can write", ascii(strange)[:60], "remove surrogates from the text")
        if not self.followers.get(()):
            raise InputError("a corpus with one token or more", "none", "give a text that is not empty")

    @staticmethod
    def of(corpus: Any, order: int, tokens: Tokens) -> "NGram":
        """The model of a Path, a text, a list of these, or counts such as {("to", " be", " or"): 2}."""
        _require_order(order)
        require_choice("tokens", tokens, get_args(Tokens))
        if isinstance(corpus, NGram):
            if corpus.order != order:
                raise InputError(f"an NGram of order {order}", f"order {corpus.order}", f"set order={corpus.order}")
            return corpus
        if isinstance(corpus, Mapping):
            return _of_counts(corpus, order)
        return _of_texts([tokens_in(text, tokens) for text in _texts(corpus)], order)

    def next(self, context: Sequence[int]) -> dict[int, int]:
        """How often each token followed the longest end of this context that something followed."""
        for length in range(min(self.order - 1, len(context)), -1, -1):
            found = self.followers.get(tuple(context[len(context) - length :]))
            if found:
                return found
        raise AssertionError("the empty context always has followers")

    def distribution(self, context: Sequence[int]) -> Distribution:
        """The same without common factors: equal distributions are equal tuples."""
        found = self.next(context)
        factor = math.gcd(*found.values())
        return tuple(sorted((token, count // factor) for token, count in found.items()))

    def probabilities(self, context: Sequence[int]) -> Float[np.ndarray, " token"]:
        """p(c | context) for every token c, each rounded once."""
        found, p = self.next(context), np.zeros(len(self.words))
        p[list(found)] = np.array(list(found.values())) / sum(found.values())
        return p

    @cached_property
    def own_contexts(self) -> list[tuple[int, ...]]:
        """The contexts of two tokens whose distribution is not that of their last token alone, sorted."""
        pairs = sorted(c for c, f in self.followers.items() if len(c) == 2 and f)
        return [c for c in pairs if self.distribution(c) != self.distribution(c[1:])]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of order, words and counts."""
        counts = sorted((context, sorted(found.items())) for context, found in self.followers.items() if found)
        return hashlib.sha256(json.dumps([self.order, self.words, counts]).encode()).hexdigest()

    @property
    def written(self) -> dict[str, str]:
        """The counts as a folder keeps them, "a b" → "c:3 d:1" in numbers of tokens: what followed, and how often."""
        return {
            " ".join(map(str, context)): " ".join(f"{token}:{count}" for token, count in sorted(found.items()))
            for context, found in sorted(self.followers.items())
            if found
        }

    def __str__(self) -> str:
        name = {2: "bigram", 3: "trigram"}[self.order]
        seen = sum(1 for context in self.followers if len(context) == self.order - 1)
        return f"a {name} model of {len(self.words):,} tokens with {seen:,} contexts"


def _require_order(order: object) -> None:
    if not is_whole(order) or order not in (2, 3):
        raise InputError("order 2 or 3", f"{order!r}", "choose 2 for a bigram model, 3 for a trigram model")


def _texts(corpus: Any) -> list[str]:
    """The texts of a corpus; a str is a text and a Path is a file, never the other way round."""
    parts = [corpus] if isinstance(corpus, str | Path) else corpus
    if not isinstance(parts, Sequence) or not parts or not all(isinstance(part, str | Path) for part in parts):
        asked = "a corpus: a Path, a text, a list of these, or counts"
        raise InputError(asked, f"{type(corpus).__name__}", "give for instance Path('corpus.txt')")
    return [part if isinstance(part, str) else _read(part) for part in parts]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "bytes that are not UTF-8"
        raise InputError(f"a text file {path}", why, "name a file of UTF-8 text") from None


def _of_texts(texts: list[list[str]], order: int) -> NGram:
    words = (START, *sorted({token for text in texts for token in text}))
    followers: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for text in texts:
        found = [0, *numbers_of(text, words)]
        for i in range(1, len(found)):
            for length in range(min(order, i + 1)):
                followers[tuple(found[i - length : i])][found[i]] += 1
    return NGram(order, words, {context: dict(found) for context, found in followers.items()})


def _of_counts(counts: Mapping[Any, Any], order: int) -> NGram:
    """Counts of n-grams of tokens. Where none of a shorter length are given, they are sums of the longer ones."""
    for gram, count in counts.items():
        tokens = isinstance(gram, tuple) and 1 <= len(gram) <= order and all(isinstance(t, str) for t in gram)
        if not tokens or not is_whole(count) or not 1 <= int(count) <= MOST_COUNT or gram[-1] == START:
            asked = f"counts of up to {order} tokens each, such as {{('a', 'b'): 3}}, none of them ending in {START}"
            raise InputError(asked, f"{gram!r}: {count!r}"[:80], "correct this entry")
    words = (START, *sorted({token for gram in counts for token in gram} - {START}))
    number = {word: i for i, word in enumerate(words)}
    grams: dict[int, Counter[tuple[int, ...]]] = {n: Counter() for n in range(1, order + 1)}
    for gram, count in counts.items():
        grams[len(gram)][tuple(number[t] for t in gram)] += int(count)
    for n in range(order - 1, 0, -1):
        if not grams[n]:
            for longer, count in grams[n + 1].items():
                grams[n][longer[1:]] += count
    followers: Followers = {(): {}}
    for found in grams.values():
        for gram, count in found.items():
            followers.setdefault(gram[:-1], {})[gram[-1]] = count
    if max(sum(found.values()) for found in followers.values()) > MOST_COUNT:
        raise InputError(f"counts with a sum of at most {MOST_COUNT:,}", "a larger sum", "divide them")
    return NGram(order, words, followers)
