"""Domains as text: "0:1" for all variables, "0:1, -1:2*pi" one by one, or named, "T=280:350, p=1:10".

Imports nothing heavy, so that the command line starts quickly; `domain.py` makes a Domain of what is read here.
"""

from collections.abc import Iterator
from unicodedata import normalize

from ..common.errors import InputError

DOMAIN_EXAMPLE = 'a domain such as "0:1", "0:1, -1:2*pi" or "T=280:350, p=1:10"'
MOST_VARIABLES = 512
TextSides = list[tuple[str, str]] | dict[str, tuple[str, str]]


def read_domain(text: str) -> TextSides:
    """(low, high) per variable as text, by name where names are given."""
    sides: list[tuple[str, str]] = []
    names: list[str] = []
    for part in split(text, ","):
        *named, interval = split(part, "=")
        ends = list(split(interval, ":"))
        if len(ends) == 3 and not named and ends[0].isidentifier():  # x:0:1
            named, ends = ends[:1], ends[1:]
        if len(ends) != 2 or not all(ends) or len(named) > 1 or named == [""]:
            raise InputError(DOMAIN_EXAMPLE, f"{part!r}", "write every side as low:high or name=low:high")
        if any(end.lower().lstrip("+-") in ("nan", "inf", "infinity") for end in ends):
            raise InputError("finite ends low < high", f"{part!r}", "give finite numbers")
        sides.append((ends[0], ends[1]))
        names += [normalize("NFKC", name) for name in named] or [""]
    if not any(names):
        return sides
    if not all(names) or len(set(names)) < len(names):
        raise InputError(DOMAIN_EXAMPLE, f"{text!r}", "give every side its own name, or none")
    return dict(zip(names, sides, strict=True))


def split(text: str, separator: str) -> Iterator[str]:
    """The parts between separators that are not inside brackets, stripped of blanks."""
    depth, start = 0, 0
    for i, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == separator and depth == 0:
            yield text[start:i].strip()
            start = i + 1
    yield text[start:].strip()
