"""Summary tables of a study: columns summed up over seeds, as median (smallest … largest)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ...common.errors import InputError
from ...common.table import Table
from .entries import names_of, require_known, where_of
from .fitted_rates import Row, grouped, matching

ENTRIES = {"title", "by", "columns", "where"}
MISSING = "–"


@dataclass(frozen=True)
class TableSpec:
    """A table to make: one row for every combination of `by`, over the rows where `where` holds."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""

    @staticmethod
    def read(entry: Mapping[str, Any]) -> "TableSpec":
        """From a table [[table]]."""
        require_known("entries of [[table]]", entry, ENTRIES)
        by, columns = names_of(entry, "by"), names_of(entry, "columns")
        if not by or not columns:
            raise InputError("[[table]] with by and columns", ", ".join(entry) or "nothing", "name columns in both")
        return TableSpec(by, columns, where_of(entry), str(entry.get("title", "")))


def summary_table(rows: Iterable[Row], spec: TableSpec) -> Table:
    """The table, without columns of `by` that have one value only."""
    groups = grouped(matching(rows, spec.where), spec.by)
    kept = [i for i in range(len(spec.by)) if len({values[i] for values in groups}) > 1] or [0]
    table = Table(spec.title, (*(spec.by[i] for i in kept), *spec.columns))
    for values, group in groups.items():
        names = (MISSING if values[i] is None else _number(values[i]) for i in kept)
        table.rows.append((*names, *(cell([row.get(column) for row in group]) for column in spec.columns)))
    return table


def cell(values: list[Any]) -> str:
    """One column over a group: numbers as median (smallest … largest), texts as a list without repetitions."""
    present = [value for value in values if value is not None]
    if not present:
        return MISSING
    if any(isinstance(value, str) for value in present):
        return ", ".join(sorted({str(value) for value in present}))
    low, high = min(present), max(present)
    if low == high:
        return _number(low)
    return f"{_number(median(present))} ({_number(low)} … {_number(high)})"


def _number(value: Any) -> str:
    if isinstance(value, str):
        return value
    whole = isinstance(value, int) or (value.is_integer() and 1 <= abs(value) < 1000)  # a median of counts, or 2.0
    return f"{int(value):,}" if whole else f"{value:.3g}"
