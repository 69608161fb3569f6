"""The pieces of a formula as it is typed: numbers, words, superscripts and signs; and what a word can mean."""

import difflib
import keyword
import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from .vocabulary import FIRST, LETTERS, SPOKEN, SYMBOLS, SYNONYMS, UNARY

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
INDEXED = re.compile(r"x[1-9][0-9]*")
_CALLED = (SPOKEN - LETTERS) | set(SYNONYMS) - {"π"}
_NUMBERED = re.compile(
    rf"(?P<function>{'|'.join([*(set(UNARY) - LETTERS), *SYNONYMS])})(?P<number>[0-9]+)(?P<rest>[^\W\d]+)"
)
_LONGEST = 20  # characters of a word that is taken apart


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


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """x, y, z, t, then the other names from A to Z."""
    found = set(names)
    return tuple([name for name in FIRST if name in found] + sorted(found - set(FIRST)))


def strange_letter(name: str) -> str | None:
    """The first letter that looks like another one or begins no word: names are Latin or Greek unless a domain has them."""
    if name[0] == "_":
        return repr("_")
    letters = [letter for letter in name if not letter.isascii()]
    scripts = ((letter, unicodedata.name(letter, "?")) for letter in letters)
    return next((f"{letter!r} ({text})" for letter, text in scripts if not text.startswith(("LATIN", "GREEK"))), None)


def closest(name: str, known: Collection[str]) -> str | None:
    """The known word that looks most like the name."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1)), None)


def function_like(name: str) -> str | None:
    """The function that is meant by a word that is none, such as Sin or sine."""
    if name.lower() in SPOKEN or name.lower() in SYNONYMS:
        return SYNONYMS.get(name.lower(), name.lower())
    return closest(name, SPOKEN)


def taken_apart(word: str, factors: Collection[str], calls: bool) -> str | None:
    """The product that a word of several words may stand for: xy is x*y, sinx is sin(x), xsin before a bracket x*sin."""
    if len(word) > _LONGEST:
        return None
    readings: dict[int, list[str]] = {0: []}  # how the first letters can be read
    for start in range(len(word)):
        if start not in readings:
            continue
        for end in range(len(word), start, -1):
            part = word[start:end]
            last, after_call = end == len(word), bool(readings[start]) and readings[start][-1] in _CALLED
            called = part in _CALLED and last is calls and not after_call
            if called or (part in factors and (last or not after_call)):
                readings.setdefault(end, [*readings[start], part])
    parts = readings.get(len(word), [])
    if len(parts) < 2:
        return None
    if parts[-2] in _CALLED:
        return "*".join([*parts[:-2], f"{SYNONYMS.get(parts[-2], parts[-2])}({parts[-1]})"])
    return "*".join(parts)


def number_inside(word: str, factors: Collection[str]) -> str | None:
    """The formula that a word with numbers in it may stand for: sin2x is sin(2*x), x1x2 is x1*x2."""
    if len(word) > _LONGEST:
        return None
    pieces = [piece for piece in re.split(r"(x[1-9][0-9]*)", word) if piece]
    indexed = [piece for piece in pieces if INDEXED.fullmatch(piece)]
    if indexed and len(pieces) > 1:
        return taken_apart(word, {*factors, *indexed}, calls=False)
    found = _NUMBERED.fullmatch(word)
    if not found or found["rest"] not in factors:
        return None
    name = SYNONYMS.get(found["function"], found["function"])
    return f"{name}({found['number']}*{found['rest']})"
