"""All ranges of a layer at once: what its values span, or its slopes along every variable."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...common.budget import Budget
from ...common.table import Table
from .reached import points_of, reached
from .real_function import RealFunction
from .span import Enclosure, span

LOOKING = 0.3  # share of the seconds for looking at points


@dataclass(frozen=True)
class Enclosures:
    """One enclosure for every output, `found[o]`, or for every output and variable, `found[o, i]`, counted from 0."""

    what: str
    entries: tuple[Enclosure, ...]
    shape: tuple[int, ...]
    labels: tuple[str, ...]
    domain: str
    reason: str = ""  # why nothing is proved, where that is so

    def __getitem__(self, index: int | tuple[int, int]) -> Enclosure:
        at = (index,) if isinstance(index, int) else index
        if len(at) == 1 and len(self.shape) == 2 and 1 in self.shape:  # one output, or one variable
            at = (0, at[0]) if self.shape[0] == 1 else (at[0], 0)
        return self.entries[int(np.ravel_multi_index(at, self.shape))]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Enclosure]:
        return iter(self.entries)

    def table(self) -> Table:
        rows: list[tuple[object, ...]] = [
            *zip(self.labels, map(str, self.entries), strict=True),
            ("domain", self.domain),
        ]
        return Table(self.what, ("", "proved"), rows + ([("why", self.reason)] if self.reason else []))

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def values_spanned(subject: RealFunction, budget: Budget, seed: int = 0) -> Enclosures:
    """An enclosure of the values of every output."""
    entries, reason = _entries(subject, 0, 0, budget, seed)
    labels = tuple(_output(subject, o) for o in range(subject.outputs))
    return Enclosures("Range", tuple(entries), (subject.outputs,), labels, str(subject.domain), reason)


def slopes_spanned(subject: RealFunction, budget: Budget, seed: int = 0) -> Enclosures:
    """An enclosure of the slopes of every output along every variable."""
    names, columns, reasons = subject.domain.names, list[list[Enclosure]](), list[str]()
    for i in range(len(names)):
        entries, reason = _entries(subject, 1, i, budget.share(1 / (len(names) - i)), seed)
        columns.append(entries)
        reasons.append(reason)
    entries = [column[o] for o in range(subject.outputs) for column in columns]
    labels = tuple(f"{_output(subject, o)} along {name}" for o in range(subject.outputs) for name in names)
    shape, reason = (subject.outputs, len(names)), next(filter(None, reasons), "")
    return Enclosures("Slopes", tuple(entries), shape, labels, str(subject.domain), reason)


def _entries(subject: RealFunction, order: int, i: int, budget: Budget, seed: int) -> tuple[list[Enclosure], str]:
    seen = points_of(reached(subject, order, i, budget.share(LOOKING), seed))
    found = span(subject, order, i, seen, budget)
    ends = (found.low, found.high, *seen)
    return [Enclosure(*(float(end) for end in four)) for four in zip(*ends, strict=True)], found.reason


def _output(subject: RealFunction, o: int) -> str:
    return "T" if subject.outputs == 1 else f"T, output {o + 1}"
