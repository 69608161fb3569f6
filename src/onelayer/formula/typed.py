"""Formulas as people type them, rewritten in the canonical words that are stored and that the checker reads.

    x*exp(-x^2)   x*exp(-x**2)        2x(…)   an answer: 2*x*(…)?
    2(x + 1)      2*(x + 1)           1/2x    an answer: two readings
    |x| + ln(x)   abs(x) + log(x)     f(x, y) = x·y²   x*y**2, in the variables x, y

One pass over the pieces of the text, in linear time; nothing is executed. Text that is canonical already comes back
character by character. What can be read in two ways is a fault and not a guess; all faults are found at once, and where
each has one likely repair the corrected formula is offered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .screen import Fault, TooManyFaults, add_fault, check_names, clip
from .vocabulary import RESERVED, SYNONYMS
from .words import INDEXED, Lexeme, lexemes_of
from .writer import CanonicalWriter


@dataclass(frozen=True)
class Typed:
    """Canonical text, the names of its variables (None: x1, x2, …), and what was wrong with what was typed."""

    text: str
    names: tuple[str, ...] | None
    faults: tuple[Fault, ...] = ()
    declared: bool = False  # what was typed says in which order the variables stand

    @property
    def correction(self) -> str:
        """What to type instead."""
        return f"f({', '.join(self.names)}) = {self.text}" if self.declared and self.names else self.text


def as_canonical(
    line: str, names: Sequence[str] | None, condition: bool = False, own: frozenset[str] = frozenset()
) -> Typed:
    """The line, a formula or a condition, in canonical words. With faults, the text is the likely repair."""
    found = _written(line, names, condition, own)
    if not found.faults or not all(fault.repaired for fault in found.faults):
        return found
    known = found.names if found.declared else names
    again = _written(found.text, known, condition, own)  # it has names of its own, and is tried before it is offered
    left = [replace(fault, repaired=False) for fault in again.faults]
    return Typed(again.text, again.names, (*found.faults, *left), found.declared)


def _written(line: str, names: Sequence[str] | None, condition: bool, own: frozenset[str]) -> Typed:
    """The line, written once."""
    given = None if names is None else check_names(names, RESERVED | {"pi"})
    lexemes = lexemes_of(line, frozenset(given or ()))
    if lexemes is None:
        return Typed(line, given)
    faults: list[Fault] = []
    try:
        declared = None
        if not condition:
            lexemes, declared = _right_sides(lexemes, faults)
        elif _outer(lexemes, "="):
            add_fault(faults, "a condition with =", "compare with <, <=, > or >=")
        if given is None and declared is not None:
            given = check_names(declared, RESERVED | {"pi"})
        elif declared is not None and (strange := [name for name in declared if name not in (given or ())]):
            add_fault(faults, f"the argument {clip(strange[0])}", "use the names in the domain")
        writer = CanonicalWriter(lexemes, given, faults, own)
        writer.write()
        variables = writer.variables() if given is None else given
    except TooManyFaults:
        return Typed(line, given, tuple(faults))
    return Typed(writer.text, variables, tuple(faults), declared is not None)


def _right_sides(lexemes: list[Lexeme], faults: list[Fault]) -> tuple[list[Lexeme], tuple[str, ...] | None]:
    """The lexemes without `y =` or `f(x, y) =` before an output, and the arguments that were declared."""
    kept: list[Lexeme] = []
    declared: tuple[str, ...] | None = None
    for output in _outputs(lexemes):
        if output[:1] and output[0].text == ";":
            kept.append(output.pop(0))
        equals = _outer(output, "=")
        if not equals:
            kept += output
            continue
        left, right = output[: equals[0]], output[equals[0] + 1 :]
        words = [lexeme.text for lexeme in left if lexeme.kind == "word"]
        shape = "".join("w" if lexeme.kind == "word" else lexeme.text for lexeme in left)
        arguments = tuple(words[1:])
        if (
            len(equals) > 1
            or INDEXED.fullmatch(words[0] if words else "x1")
            or words[0] in RESERVED
            or words[0] in SYNONYMS
            or shape not in ("w", "w(" + ",".join("w" * len(arguments)) + ")")
        ):
            add_fault(faults, "an equation", "write what stands on one side of = alone")
        elif any(lexeme.text == words[0] for lexeme in right):
            add_fault(faults, f"{clip(words[0])} on both sides of =", "write the formula without =")
        elif arguments and declared not in (None, arguments):
            add_fault(faults, "outputs with different arguments", "give every output the same arguments")
        declared = arguments or declared
        kept += right
    return kept, declared


def _outputs(lexemes: list[Lexeme]) -> list[list[Lexeme]]:
    """The lexemes of every output; each but the first starts with its `;`."""
    cuts = [0, *(i for i, lexeme in enumerate(lexemes) if lexeme.text == ";"), len(lexemes)]
    return [lexemes[a:b] for a, b in pairwise(cuts)]


def _outer(lexemes: list[Lexeme], sign: str) -> list[int]:
    """Where a sign stands outside brackets."""
    depth, found = 0, []
    for i, lexeme in enumerate(lexemes):
        depth += (lexeme.text == "(") - (lexeme.text == ")")
        if lexeme.text == sign and depth == 0:
            found.append(i)
    return found
