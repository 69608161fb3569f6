"""What a word in a formula can mean, and in which order variables stand."""

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable

from .vocabulary import FIRST, LETTERS, SPOKEN, SYNONYMS, UNARY

INDEXED = re.compile(r"x[1-9][0-9]*")
_CALLED = (SPOKEN - LETTERS) | set(SYNONYMS) - {"π"}
_NUMBERED = re.compile(
    rf"(?P<function>{'|'.join([*(set(UNARY) - LETTERS), *SYNONYMS])})(?P<number>[0-9]+)(?P<rest>[^\W\d]+)"
)
_LONGEST = 20  # characters of a word that is taken apart


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
            fits = (part in factors and (last or not after_call)) or (
                part in _CALLED and last is calls and not after_call
            )
            if fits:
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
