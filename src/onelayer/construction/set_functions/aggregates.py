"""Formulas of a set: ordinary formulas in which sum, mean, max and min of one argument run over the numbers of the set.

    sqrt(mean(x^2))        x is one number of the set, inside an aggregate
    x - mean(x)            x outside of aggregates is the number at a position: a map with one answer for each
    max(x, 0.5)            two arguments: the ordinary function, here at every position

The text is cut at the aggregates before it is parsed: `parse` reads what stands inside one as a formula of x, and the rest as
a formula of x and of the aggregates. Nothing else is added to the language.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ...common.errors import InputError
from ...formula import Formula, parse, to_text
from ...formula.screen import clip, screen

Kind = Literal["sum", "mean", "max", "min"]
EXAMPLE = "a formula of a set such as sqrt(mean(x^2))"
OWN = 1  # the variable x of the outer formula; aggregates come next
_CALL = re.compile(r"(?<![^\W\d])(sum|mean|max|min) ?\(")


@dataclass(frozen=True)
class Aggregate:
    """sum, mean, max or min of a function of one number over the set."""

    kind: Kind
    inner: Formula

    @property
    def text(self) -> str:
        return f"{self.kind}({to_text(self.inner.outputs[0], self.inner.names)})"


@dataclass(frozen=True)
class SetFormula:
    """f = outer(x_i, aggregates): Variable 1 is x_i, Variable 1 + k the k-th aggregate."""

    text: str
    outer: Formula
    aggregates: tuple[Aggregate, ...]

    @property
    def each(self) -> bool:
        """Whether there is an answer for every number of the set instead of one for all."""
        return OWN in self.outer.variables

    @property
    def canonical(self) -> str:
        """The formula in canonical words, as folders keep it: 2x is 2*x."""
        return to_text(self.outer.outputs[0], ("x", *(one.text for one in self.aggregates)))


def parse_set(text: str) -> SetFormula:
    """The function that `text` writes down; InputError, in one line, for everything else."""
    line = screen(text)
    if re.search(r"(?<!\w)A[0-9]+(?!\w)", line):
        raise InputError(EXAMPLE, clip(line), "call the numbers of the set x")
    found: dict[str, Aggregate] = {}
    pieces, end = list[str](), 0
    for kind, start, inside, stop in _aggregates(line):
        aggregate = Aggregate(kind, _inner(kind, inside))
        name = f"A{list(found).index(aggregate.text) + 1 if aggregate.text in found else len(found) + 1}"
        found.setdefault(aggregate.text, aggregate)
        pieces += [line[end:start], f"({name})"]
        end = stop
    if not found:
        change = "use sum(…), mean(…), max(…) or min(…) of x; for one number alone use build"
        raise InputError(EXAMPLE, f"{clip(line)} without an aggregate", change)
    outer = _parsed("".join([*pieces, line[end:]]), ("x", *(f"A{k + 1}" for k in range(len(found)))))
    return SetFormula(line, outer, tuple(found.values()))


def composed_text(rho: str, phi: str) -> str:
    """ρ(mean(φ(x))) as one formula of a set; ρ has one variable, of any name."""
    outer = parse(rho)
    if len(outer.outputs) != 1 or len(outer.variables) != 1:
        raise InputError("rho, a formula of one variable", clip(rho), "write for instance sqrt(m)")
    inside = to_text(_inner("mean", screen(phi)).outputs[0], ("x",))
    return to_text(outer.outputs[0], tuple(f"mean({inside})" for _ in outer.names))


def _inner(kind: str, inside: str) -> Formula:
    if (nested := next(_aggregates(inside), None)) is not None:
        change = "expand it: mean((x - mean(x))^2) is mean(x^2) - mean(x)^2"
        raise InputError(EXAMPLE, f"{nested[0]} inside {kind}", change)
    return _parsed(inside, ("x",))


def _parsed(text: str, names: tuple[str, ...]) -> Formula:
    formula = parse(text, names)
    if len(formula.outputs) != 1:
        raise InputError(EXAMPLE, f"{len(formula.outputs)} formulas in one", "give one formula, without ;")
    return formula


def _aggregates(line: str) -> Iterator[tuple[Kind, int, str, int]]:
    """(kind, start, what stands inside, end) of the outermost aggregates, from left to right."""
    at = 0
    while (match := _CALL.search(line, at)) is not None:
        stop, commas = _closed(line, match.end())
        if commas and match[1] in ("max", "min"):  # the ordinary function; there may be aggregates inside
            at = match.end()
            continue
        if commas:
            raise InputError(EXAMPLE, f"{clip(line[match.start() : stop])}", f"give {match[1]} one argument")
        kinds: dict[str, Kind] = {"sum": "sum", "mean": "mean", "max": "max", "min": "min"}
        yield kinds[match[1]], match.start(), line[match.end() : stop - 1], stop
        at = stop


def _closed(line: str, start: int) -> tuple[int, int]:
    """Where the bracket that was opened before `start` ends, and the commas directly inside."""
    depth, commas = 1, 0
    for at in range(start, len(line)):
        depth += (line[at] == "(") - (line[at] == ")")
        commas += line[at] == "," and depth == 1
        if depth == 0:
            return at + 1, commas
    raise InputError(EXAMPLE, f"{clip(line)}, a bracket that is not closed", "close it")
