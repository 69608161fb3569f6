"""The pieces of a formula as it is typed: numbers, words, superscripts and signs."""

import keyword
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from .vocabulary import SYMBOLS

Kind = Literal["number", "word", "power", "sign"]

_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_PLAIN = str.maketrans(_RAISED + "⁺⁻", "0123456789+-")
_LEXEME = re.compile(
    r"(?P<gap> *)(?:"
    r"(?P<foreign>0[xXbBoO]\w*|[0-9][0-9.]*_\w*|[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?[jJ](?!\w))"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<power>[⁺⁻]?[{_RAISED}]+)"
    rf"|(?P<word>(?![{_RAISED}])[^\W\d](?:(?![{_RAISED}])\w)*)"
    r"|(?P<sign>\*\*|//|<=|>=|==|!=|:=|.))"
)
_SIGNS = frozenset(["**", "//", "<=", ">=", "==", "!=", *"+-*/()<>,;=|%@~&"])
_LOGIC = frozenset(["and", "or", "not"])


@dataclass(frozen=True)
class Lexeme:
    """A piece: its canonical text, the blanks before it, and what was typed."""

    kind: Kind
    text: str
    gap: str
    typed: str


def lexemes_of(line: str, names: frozenset[str]) -> list[Lexeme] | None:
    """The pieces of a line; None if it has some that no formula has, such as quotes or `lambda`."""
    found: list[Lexeme] = []
    for match in _LEXEME.finditer(line.rstrip()):
        gap, typed = match["gap"], match[0].lstrip()
        if match["word"]:
            word = unicodedata.normalize("NFKC", typed)
            if not word.isidentifier() or (keyword.iskeyword(word) and word not in _LOGIC):
                return None
            parts = [word] if word in names else [part for part in re.split("(π)", word) if part]
            for part in parts:
                found.append(Lexeme("word", part, gap, part))
                gap = ""
        elif match["power"]:
            found.append(Lexeme("power", "**" + typed.translate(_PLAIN).lstrip("+"), gap, typed))
        elif match["number"] or match["foreign"]:  # foreign numbers are refused where they are read
            found.append(Lexeme("number", typed, gap, typed))
        elif typed == "√":
            found.append(Lexeme("word", typed, gap, typed))
        elif (sign := SYMBOLS.get(typed, typed)) in _SIGNS:
            found.append(Lexeme("sign", sign, gap, typed))
        else:
            return None
    return found
