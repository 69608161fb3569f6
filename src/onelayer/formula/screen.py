"""Checks on the raw text, before any parser sees it, and refusals: all that is wrong with a formula in one line.

Python's own parser recurses on brackets and reads whole integers; here a linear scan bounds nesting, length and digits
first. The scan does not decide whether text is a formula, only that trying is cheap.
"""

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..common.errors import InputError
from .vocabulary import ALLOWED, MAX_CHARACTERS, MAX_DEPTH, MAX_DIGITS

EXAMPLE = "a formula such as x*exp(-y^2)"
CONDITION = "a condition such as x^2 + y^2 <= 1"

_FOREIGN_BLANKS = re.compile("[\u00a0\u2002\u2003\u2009\u202f\u3000]")  # of web pages and word processors
_FILE = re.compile(r"[\w./\\:~ -]+\.(csv|tsv|txt|json|parquet|npy|npz|xlsx?)", re.IGNORECASE)
MOST = 5  # faults that are told
LONGEST = 300  # characters of a correction that is shown
_INSTEAD = {"#": "leave comments out", "\\": "leave the backslash out"}


def clip(piece: str, length: int = 60) -> str:
    """The piece in one quoted line of bounded length."""
    piece = " ".join(piece.split())
    return repr(piece if len(piece) <= length else piece[: length - 1] + "…")


def refuse(found: str, change: str = f"use {ALLOWED}", asked: str = EXAMPLE) -> InputError:
    """The InputError to raise: `found` names the offending piece."""
    return InputError(asked, found, change)


def plain(text: str) -> str:
    """The text with plain blanks in the place of those that web pages and word processors put in."""
    return _FOREIGN_BLANKS.sub(" ", text)


def screen(text: object) -> str:
    """The text in one line without outer blanks, or InputError where reading it further would be unsafe."""
    if not isinstance(text, str):
        raise refuse(type(text).__name__, "pass the formula as text, a str")
    if len(text) > MAX_CHARACTERS:
        raise refuse(f"{len(text)} characters", f"use at most {MAX_CHARACTERS} characters")
    line = re.sub(r"[ \t\r\n]+", " ", plain(text)).strip()
    if not line:
        raise refuse("empty text", "write a formula; it may use " + ALLOWED)
    if _FILE.fullmatch(line):
        samples = "samples in a file are for `onelayer build` and `onelayer memorize`, in Python pass (X, Y)"
        raise refuse(f"the name of a file, {clip(line)}", f"write a formula; {samples}")
    for position, character in enumerate(line):
        if character in _INSTEAD:
            raise refuse(f"{character!r} at character {position + 1}", _INSTEAD[character])
        if not character.isprintable():
            raise refuse(f"the unprintable {character!r} at character {position + 1}", "remove it")
    depth = 0
    for character in line:
        depth += (character in "([{") - (character in ")]}")
        if depth > MAX_DEPTH:
            raise refuse(f"brackets nested more than {MAX_DEPTH} deep", f"nest at most {MAX_DEPTH} deep")
    longest = max((len(run) for run in re.findall(r"[\w.]+", line)), default=0)
    if longest > MAX_DIGITS:
        raise refuse(f"a number or name of {longest} characters", f"use at most {MAX_DIGITS} characters")
    return line


def check_names(names: Sequence[str], reserved: frozenset[str]) -> tuple[str, ...]:
    """The variable names as a tuple: distinct identifiers, none of them reserved."""
    asked = "names, a sequence of distinct identifiers"
    if isinstance(names, str):
        raise refuse(f"the str {clip(names)}", "pass a sequence, such as ['u', 'v']", asked)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise refuse(clip(str(name)), "use letters, digits and _, not starting with a digit", asked)
        if name in reserved or keyword.iskeyword(name):
            raise refuse(f"{name!r}, which already has a meaning", "choose another name", asked)
    for name in names:
        if list(names).count(name) > 1:
            raise refuse(f"{name!r} twice", "give every variable its own name", asked)
    return tuple(names)


@dataclass(frozen=True)
class Fault:
    """A piece that is not in the language, what to do about it, and whether the writer has repaired it.

    `instead` is what else may be meant, after "or".
    """

    found: str
    change: str
    repaired: bool
    instead: str


class TooManyFaults(Exception):
    """There is no point in reading on."""


def add_fault(faults: list[Fault], found: str, change: str, repaired: bool = False, instead: str = "") -> None:
    """Note a fault once; raises when there are too many to tell."""
    if all(fault.found != found for fault in faults):
        faults.append(Fault(found, change, repaired, instead))
    if len(faults) > MOST:
        raise TooManyFaults


def refusal_of(asked: str, faults: Sequence[Fault], correction: str | None) -> InputError:
    """The InputError that tells all faults; `correction` is a formula without them."""
    told = list(faults[:MOST])
    found = _listed([fault.found for fault in told]) + (" and more" if len(faults) > MOST else "")
    if correction is not None and len(correction) <= LONGEST:
        others = dict.fromkeys(fault.instead for fault in told if fault.instead)
        return InputError(asked, found, ", or ".join([f"write {correction}", *others]))
    changes = [fault.change for fault in told]
    return InputError(asked, found, changes[0] if len(set(changes)) == 1 else _listed(changes))


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else " ".join(f"({i}) {part}" for i, part in enumerate(parts, 1))
