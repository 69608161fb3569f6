"""Study: the results of a sweep as a tidy table with fitted rates; one row per point, one column per axis or result."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.atomic import require_new, write_file
from ...common.errors import InputError
from ...common.numbers import exact
from ...common.table import Table, duration
from .fitted_rates import Rate, fit_rates, rate_table
from .store import Outcome
from .summary import result_text, summary_table
from .sweep import Sweep

STATUS_COLUMNS = ("measure", "status", "error", "spent")  # besides axes and results
HIDDEN_COLUMNS = ("formula", "domain")  # not printed: the target has a name
CELL_WIDTH = 40  # characters of a text in a printed table


@dataclass(frozen=True, eq=False)
class Study:
    """The results of a sweep so far. Rows are dictionaries; `folder` is where they are stored, None if read from a file."""

    sweep: Sweep
    rows: tuple[dict[str, Any], ...]
    folder: Path | None = None

    @staticmethod
    def of(sweep: Sweep, outcomes: Mapping[str, Outcome], folder: Path | None = None) -> "Study":
        """One row for each point of the sweep that is stored, in the order of the sweep."""
        rows = []
        for task in sweep.tasks:
            if (outcome := outcomes.get(task.key)) is not None:
                result = {key: value for key, value in outcome.result.items() if key != "traceback"}
                status = (task.measure.name, outcome.status, outcome.error, outcome.seconds)
                rows.append({**task.point, **result, **dict(zip(STATUS_COLUMNS, status, strict=True))})
        return Study(sweep, tuple(rows), folder)

    @staticmethod
    def read(sweep: Sweep, path: str | Path) -> "Study":
        """The study of a sweep whose table was written as CSV."""
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]
        return Study(sweep, tuple(rows))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns: axes, results, and the status of the point."""
        seen = dict.fromkeys(key for row in self.rows for key in row if key not in STATUS_COLUMNS)
        return (*seen, *STATUS_COLUMNS)

    @property
    def done(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["status"] == "done"]

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["status"] == "failed"]

    @property
    def missing(self) -> int:
        """How many points are not measured yet."""
        return len(self.sweep.tasks) - len(self.rows)

    def rates(self) -> list[Rate]:
        """Every rate of the sweep that has enough points."""
        return [rate for spec in self.sweep.rates for rate in fit_rates(self.done, spec)]

    def table(self) -> Table:
        """The points, without columns that are the same in every row."""
        named = [c for c in self.columns if c not in HIDDEN_COLUMNS]
        varying = [c for c in named if len({repr(row.get(c)) for row in self.rows}) > 1]
        shown = varying or list(self.columns[:1])
        axes = {axis for task in self.sweep.tasks for axis in task.point}
        cells = [tuple(_short(row.get(c), c, c in axes) for c in shown) for row in self.rows]
        return Table(f"{self.sweep.title}: {len(self.rows)} points", tuple(shown), cells)

    def tables(self) -> list[Table]:
        """The tables of the sweep that have rows, summed up over seeds."""
        return [table for spec in self.sweep.tables if (table := summary_table(self.done, spec)).rows]

    def rate_table(self) -> Table:
        return rate_table(self.rates())

    def summary(self) -> str:
        """How many points are done, failed and missing, in one line."""
        spent = duration(sum(row["spent"] or 0.0 for row in self.rows))
        parts = [f"{len(self.done)} points done", f"{len(self.failed)} failed", f"{self.missing} to do"]
        return f"{', '.join(parts)}; {spent} of measuring"

    def csv(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write all rows and columns as CSV; the file is complete or absent. `overwrite=True` replaces one of that name."""
        require_new(Path(path), overwrite)
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return write_file(Path(path), text.getvalue())

    def parquet(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write all rows and columns as Parquet (extra `files`). `overwrite=True` replaces a file of that name."""
        require_new(Path(path), overwrite)
        try:
            import pyarrow as arrow
            from pyarrow import parquet
        except ImportError:
            raise InputError("pyarrow, for Parquet", "not installed", "pip install 'onelayer[files]'") from None
        columns = {c: [row.get(c) for row in self.rows] for c in self.columns}
        fresh = Path(path).with_name(f".new-{Path(path).name}")
        try:
            parquet.write_table(arrow.table(columns), fresh)
            return fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)

    def report(self, path: str | Path = "report.html", overwrite: bool = False) -> Path:
        """Write the report: rates, pictures and points on one page that works offline.

        `overwrite=True` replaces a file of that name.
        """
        from ...views.report import report

        return report(self, path, overwrite)

    def record(self) -> dict[str, Any]:
        """The study for JSON."""
        rates = [dict(zip(("group", "law", "b", "interval", "r2", "points", "theory", "agrees"), r.cells, strict=True))
                 for r in self.rates()]  # fmt: skip
        return {"name": self.sweep.name, "rows": list(self.rows), "rates": rates, "missing": self.missing}

    def __str__(self) -> str:
        rates = f"\n{self.rate_table()}" if self.rates() else ""
        return f"{self.table()}{rates}\n{self.summary()}"

    def _repr_html_(self) -> str:
        rates = self.rate_table()._repr_html_() if self.rates() else ""
        return self.table()._repr_html_() + rates + f"<p>{self.summary()}</p>"


def _short(value: Any, column: str, axis: bool) -> object:
    if value is None:
        return "–"
    if isinstance(value, float):
        return exact(value) if axis else result_text(value, column, 4)
    return f"{value[: CELL_WIDTH - 1]}…" if isinstance(value, str) and len(value) > CELL_WIDTH else value


def _value(text: str | None) -> Any:
    """A cell of a CSV file: a number if it is one, None if it is empty."""
    if not text:
        return None
    if text in ("True", "False"):
        return text == "True"
    try:
        number = json.loads(text)
    except ValueError:
        return text
    return number if isinstance(number, int | float) else text
