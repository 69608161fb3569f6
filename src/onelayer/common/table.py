"""Table: rows under column names, as text for a terminal, HTML for a notebook, Markdown and LaTeX for papers."""

import html
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest


def show(value: object) -> str:
    """A cell as text: floats with four significant digits, everything else as it prints."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """A time in words: 40 s, 5 min, 2 h 10 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


NARROWEST = 8  # characters: columns of a list of facts are not made narrower than this to fit a terminal
LONGEST_WORD = 24  # characters of a word that is not broken in a table of more columns
WORDS = re.compile(r"\s+|(?<=[a-z]{2}-)(?=[a-z])")  # where cells are wrapped
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def _tex(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(SPECIAL.get(c) or (f"\\{c}" if c in "&%$#_{}" else c) for c in text)


def _total(widths: list[int]) -> int:
    """The width of lines with columns of these widths."""
    return sum(widths) + 2 * len(widths) - 2


@dataclass(frozen=True)
class Table:
    """A titled table of plain values. In text the first column is left-aligned (both, if there are two), the others right."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]] = field(default_factory=list)

    def __str__(self) -> str:
        """As text; no wider than the terminal, if that is where it is printed."""
        return self.text(shutil.get_terminal_size().columns if sys.stdout.isatty() else None)

    def text(self, width: int | None = None) -> str:
        """As text; where lines would be longer than `width`, cells are wrapped between words, then columns stand below."""
        lines = [self.columns, *(tuple(show(cell) for cell in row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        least = [min(w, NARROWEST) for w in widths]
        if len(widths) > 2:  # a word that is not too long, or a number, stays whole
            words = (
                [len(word) for cell in column for word in WORDS.split(cell)] for column in zip(*lines, strict=True)
            )
            least = [min(max(found), LONGEST_WORD) for found in words]
        while width is not None and _total(widths) > width and any(w > n for w, n in zip(widths, least, strict=True)):
            wide = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
            widths[wide] -= 1
        if width is not None and _total(widths) > width and len(widths) > 2:
            fits = max([2, *(k for k in range(2, len(widths)) if _total(least[:k]) <= width)])
            parts = [range(fits), (0, *range(fits, len(widths)))]
            first, rest = (self._columns(part) for part in parts)
            if not any(show(cell) for row in rest.rows for cell in row[1:]):
                return first.text(width)
            return first.text(width) + "\n" + rest.text(width).removeprefix(f"{self.title}\n")
        left = [i == 0 or len(widths) == 2 for i in range(len(widths))]  # two columns are a list of facts

        def wrapped(line: tuple[str, ...]) -> list[str]:
            cells = [textwrap.wrap(c, w) if len(c) > w else [c] for c, w in zip(line, widths, strict=True)]
            rows = zip_longest(*cells, fillvalue="")
            return ["  ".join(f"{c:{'<' if left[i] else '>'}{widths[i]}}" for i, c in enumerate(row)) for row in rows]

        head, *body = map(wrapped, lines)
        rule = "─" * _total(widths)
        text = [self.title, *head, rule, *(line for row in body for line in row)]
        return "\n".join(line.rstrip() for line in text) + "\n"

    def _columns(self, kept: Iterable[int]) -> "Table":
        """Some of the columns."""
        kept = tuple(kept)
        rows = [tuple(row[i] for i in kept) for row in self.rows]
        return Table(self.title, tuple(self.columns[i] for i in kept), rows)

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [self.columns, ("---",) * len(self.columns), *(tuple(show(cell) for cell in row) for row in self.rows)]
        cells = ([" ".join(c.split()).replace("|", "\\|") for c in line] for line in lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"

    def latex(self) -> str:
        """The table as a LaTeX tabular; Unicode mathematics needs LuaLaTeX or XeLaTeX."""
        lines = [self.columns, *(tuple(show(cell) for cell in row) for row in self.rows)]
        text = [" & ".join(_tex(cell) for cell in line) + r" \\" for line in lines]
        columns = "ll" if len(self.columns) == 2 else "l" + "r" * (len(self.columns) - 1)
        body = "\n".join([text[0], r"\hline", *text[1:]])
        title = " ".join(self.title.split())
        return f"% {title}\n\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}\n"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(show(cell))}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        caption = html.escape(self.title)
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
