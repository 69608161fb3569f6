"""Points in CSV files: reading with line numbers in every complaint, writing in one piece."""

import csv
import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp

from ...errors import InputError


@dataclass(frozen=True)
class Points:
    """Rows of a CSV file as they were written, their points in the order of the variables, and their line numbers."""

    header: list[str] | None
    rows: list[list[str]]
    points: list[list[float]]
    lines: list[int]


def read(path: Path, names: Sequence[str], added: Sequence[str]) -> Points:
    """The points of a CSV file. The first row is a header if some cell of it is no number; it must name every variable.

    Without a header the columns are the variables in order. Other columns under a header are carried along; none may
    have the name of a column that will be `added`.
    """
    rows = cells_of(path)
    first = next(rows, None)
    if first is None:
        raise InputError(f"points in {path.name}", "an empty file", f"write one point {listed(names)} per line")
    header, columns = None, list(range(len(names)))
    table = Points(None, [], [], [])
    if any(number_of(cell) is None for cell in first[1]):
        header = [cell.strip() for cell in first[1]]
        columns = _columns(path, first[0], header, names, added)
        table = Points(header, [], [], [])
    else:
        _add(table, path, *first, columns, len(names))
    for line, cells in rows:
        _add(table, path, line, cells, columns, len(header) if header else len(names))
    return table


def text(table: Points, added: Sequence[str], values: Sequence[Sequence[object]]) -> str:
    """The rows with their values appended, as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if table.header:
        writer.writerow([*table.header, *added])
    for row, value in zip(table.rows, values, strict=True):
        writer.writerow([*row, *map(str, value)])
    return out.getvalue()


def write(table: Points, added: Sequence[str], values: Sequence[Sequence[object]], path: Path) -> None:
    """Write the file in one piece: it is complete, or as it was before."""
    handle, fresh = mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text(table, added, values))
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(fresh, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def require_file(path: Path) -> None:
    """The path can become a file: nothing is there, or a file."""
    if not path.name or (path.exists() and not path.is_file()):
        raise InputError("a file to write", f"{str(path)!r} is none", "choose another name for --output")
    if not path.absolute().parent.is_dir():
        raise InputError("a file to write", f"no folder {path.parent}", "make the folder first")


def listed(names: Sequence[str]) -> str:
    """The names in a line, shortened when there are many."""
    return ", ".join(names) if len(names) <= 8 else f"{names[0]}, {names[1]}, …, {names[-1]}"


def cells_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of every line that is not blank."""
    if not path.is_file():
        raise InputError("a CSV file", f"no file {path}", "name an existing file")
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            for cells in reader:
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield reader.line_num, cells
        except (csv.Error, UnicodeDecodeError) as error:
            where = f"line {reader.line_num + isinstance(error, UnicodeDecodeError)}"
            raise InputError(f"CSV in UTF-8 in {path.name}", f"{where}: {error}", "correct the file") from None


def _columns(path: Path, line: int, header: list[str], names: Sequence[str], added: Sequence[str]) -> list[int]:
    """Where the variables stand in the header."""
    asked = f"numbers, or a header with the columns {listed(names)}, in {path.name}"
    if missing := [name for name in names if name not in header]:
        raise InputError(asked, f"no column {missing[0]} in line {line}: {short(header)}", "correct that line")
    if twice := [name for name in header if header.count(name) > 1 and name in names]:
        raise InputError(asked, f"{twice[0]} twice in line {line}", "give every column its own name")
    if taken := [name for name in added if name in header]:
        raise InputError(asked, f"a column {taken[0]}, the name of the values", "rename or remove that column")
    return [header.index(name) for name in names]


def _add(table: Points, path: Path, line: int, cells: list[str], columns: list[int], width: int) -> None:
    if len(cells) != width:
        raise InputError(
            f"{width} columns in {path.name}", f"{len(cells)} in line {line}: {short(cells)}", "correct that line"
        )
    point = []
    for column in columns:
        value = number_of(cells[column])
        if value is None or not math.isfinite(value):
            raise InputError(
                f"finite numbers in {path.name}", f"{short([cells[column]])} in line {line}", "correct that line"
            )
        point.append(value)
    table.rows.append(cells)
    table.points.append(point)
    table.lines.append(line)


def number_of(cell: str) -> float | None:
    """The number that a cell holds; None if it holds none."""
    try:
        return float(cell)
    except ValueError:
        return None


def short(cells: Sequence[str]) -> str:
    """Cells as written, cut where they are long."""
    shown = repr(",".join(cells))
    return shown if len(shown) <= 60 else shown[:59] + "…"
