"""Table: rows under column names, as text for a terminal and as HTML for a notebook."""

import html
import io
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text


def show(value: object) -> str:
    """A cell as text: floats with four significant digits, everything else as it prints."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Table:
    """A titled table of plain values. The first column is left-aligned, the others are right-aligned."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]] = field(default_factory=list)

    def __str__(self) -> str:
        table = RichTable(title=Text(self.title), box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for i, column in enumerate(self.columns):
            table.add_column(Text(column), justify="left" if i == 0 else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*(Text(show(cell)) for cell in row))
        out = io.StringIO()
        Console(file=out, width=10_000, color_system=None).print(table)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(show(cell))}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        caption = html.escape(self.title)
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
