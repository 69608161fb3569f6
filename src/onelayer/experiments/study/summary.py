"""Summary tables of a study: columns summed up over seeds, as median (smallest … largest)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ...common.errors import InputError
from ...common.numbers import at_least, at_most, exact
from ...common.table import Table
from .entries import names_of, require_known, where_of
from .fitted_rates import Row, grouped, matching

ENTRIES = {"title", "by", "columns", "where"}
MISSING = "–"
OBSERVED = ("observed", "trained_observed", "difference")  # columns of lower bounds


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
        names = (MISSING if values[i] is None else _axis(values[i]) for i in kept)
        table.rows.append((*names, *(cell([row.get(column) for row in group], column) for column in spec.columns)))
    return table


def cell(values: list[Any], column: str = "") -> str:
    """One column over a group: numbers as median (smallest … largest), texts as a list without repetitions."""
    present = [value for value in values if value is not None]
    if not present:
        return MISSING
    if any(isinstance(value, str) for value in present):
        return ", ".join(sorted({str(value) for value in present}))
    low, high = min(present), max(present)
    if low == high:
        return _number(low, column)
    return f"{_number(median(present), column)} ({_number(low, column)} … {_number(high, column)})"


def result_text(value: float, column: str, digits: int) -> str:
    """A number of a result: a bound rounded up, an observed error down, anything else to the nearest."""
    if column == "bound":
        return at_most(value, digits)
    return at_least(value, digits) if column in OBSERVED else f"{value:.{digits}g}"


def _axis(value: Any) -> str:
    """A value of an axis, as it was given."""
    return exact(value) if isinstance(value, float) else _number(value, "")


def _number(value: Any, column: str) -> str:
    if isinstance(value, str):
        return value
    whole = isinstance(value, int) or (value.is_integer() and 1 <= abs(value) < 1000)  # a median of counts, or 2.0
    return f"{int(value):,}" if whole else result_text(value, column, 3)
