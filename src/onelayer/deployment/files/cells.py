"""Cells of CSV files as text, with line numbers; names and cells for error messages."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from ...common.errors import InputError


def cells_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of every line that is not blank."""
    if not path.is_file():
        raise InputError("a CSV file", f"no file {path}", "name an existing file")
    with opened(path) as file:
        yield from cells_in(file, path.name)


def opened(path: Path) -> TextIO:
    """The file as text."""
    return path.open(encoding="utf-8-sig", newline="")


def cells_in(file: TextIO, name: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of every line that is not blank, of an open file."""
    reader = csv.reader(file, strict=True)
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield reader.line_num, cells
    except (csv.Error, UnicodeDecodeError) as error:
        where = f"line {reader.line_num + isinstance(error, UnicodeDecodeError)}"
        raise InputError(f"CSV in UTF-8 in {name}", f"{where}: {error}", "correct the file") from None


def number_of(cell: str) -> float | None:
    """The number in a cell; None if there is none."""
    try:
        return float(cell)
    except ValueError:
        return None


def listed(names: Sequence[str]) -> str:
    """The names in one line, shortened if there are many."""
    return ", ".join(names) if len(names) <= 8 else f"{names[0]}, {names[1]}, …, {names[-1]}"


def short(cells: Sequence[str]) -> str:
    """Cells as written, cut if they are long."""
    shown = repr(",".join(cells))
    return shown if len(shown) <= 60 else shown[:59] + "…"


def require_names(asked: str, header: Sequence[str], names: Sequence[str], added: Sequence[str], at: str = "") -> None:
    """The header (found `at` some line) has every variable once and none of the columns to be added."""
    if missing := [name for name in names if name not in header]:
        raise InputError(asked, f"no column {missing[0]}{at}: {short(header)}", "correct the column names")
    if twice := [name for name in names if list(header).count(name) > 1]:
        raise InputError(asked, f"{twice[0]} twice{at}", "give every column its own name")
    if taken := [name for name in added if name in header]:
        raise InputError(asked, f"a column {taken[0]}, the name of the values", "rename or remove that column")
