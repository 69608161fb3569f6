"""Tokens of a text: its characters, or its words; joining the tokens gives the text again, letter by letter.

A word, a digit or a mark of punctuation takes one space before it along, so that most spaces need no token of their own:
"a small  cat." has the tokens "a", " small", " ", " cat" and ".".
"""

import re
from collections.abc import Iterable
from typing import Literal, get_args

from ..common.checks import require_choice
from ..common.errors import InputError

Tokens = Literal["characters", "words"]
START = "⟨start⟩"  # precedes every text; its number is 0
_WORD = re.compile(r" ?[^\W\d_]+| ?\d| ?_| ?[^\w\s]|\s")


def tokens_in(text: str, kind: Tokens) -> list[str]:
    """The tokens of a text, in order."""
    require_choice("tokens", kind, get_args(Tokens))
    return list(text) if kind == "characters" else _WORD.findall(text)


def numbers_of(tokens: Iterable[str], words: tuple[str, ...]) -> list[int]:
    """The number of every token; one that the words do not have is refused."""
    known = {word: i for i, word in enumerate(words)}
    found = []
    for token in tokens:
        if token not in known:
            raise InputError(
                f"tokens out of the {len(words):,} of the model", f"{token!r}"[:60], "use words of its corpus"
            )
        found.append(known[token])
    return found
