"""A file of points by its suffix: CSV, Parquet (pyarrow) or a NumPy array.

Every kind knows how many columns it has (`width`) and yields its points in batches of rows, starting at any row; errors name
the line or row. CSV and Parquet files can be written again with columns added.

Points in CSV files. The first row is a header if any of its cells is not a number; it must name every variable.

Without a header the columns are the variables in order. Other columns under a header are copied as written.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from ...common.errors import InputError
from .batch import AddedColumns, Batch
from .cells import cells_in, listed, number_of, opened, require_names, short
from .npy import NumpyPoints
from .parquet import ParquetPoints


class CsvPoints:
    """A CSV file of points."""

    def __init__(self, path: Path, names: Sequence[str], added: Sequence[str]) -> None:
        self.path, self.names = path, names
        with opened(path) as file:
            first = next(cells_in(file, path.name), None)
        if first is None:
            raise InputError(f"points in {path.name}", "an empty file", f"write one point {listed(names)} per line")
        self.header: list[str] | None = None
        self.columns = list(range(len(names)))
        if any(number_of(cell) is None for cell in first[1]):
            self.header = [cell.strip() for cell in first[1]]
            asked = f"numbers, or a header with the columns {listed(names)}, in {path.name}"
            require_names(asked, self.header, names, added, f" in line {first[0]}")
            self.columns = [self.header.index(name) for name in names]
        self.width = len(self.header or names)

    def batches(self, rows: int, skip: int = 0) -> Iterator[Batch]:
        size = max(1, self.path.stat().st_size)
        with opened(self.path) as file:
            cells = self._rows(file)
            for _ in islice(cells, skip):
                pass
            while taken := list(islice(cells, rows)):
                x = self._points(taken)
                read = min(1.0, file.buffer.tell() / size)  # the reader buffers a little ahead
                yield Batch(x, skip, read, tuple(line for line, _ in taken))
                skip += len(taken)

    def write(self, stream: TextIO, added: AddedColumns, rows: int) -> Iterator[float]:
        writer = csv.writer(stream, lineterminator="\n")
        size = max(1, self.path.stat().st_size)
        if self.header:
            writer.writerow([*self.header, *added.names])
        with opened(self.path) as file:
            cells = self._rows(file)
            for columns in added.batches:
                values = zip(*(column.tolist() for column in columns), strict=True)
                taken = islice(cells, len(columns[0]))
                writer.writerows([*row, *map(str, value)] for (_, row), value in zip(taken, values, strict=True))
                yield min(1.0, file.buffer.tell() / size)

    def _rows(self, file: TextIO) -> Iterator[tuple[int, list[str]]]:
        """(line number, cells) of every point, checked to have one cell per column."""
        cells = cells_in(file, self.path.name)
        if self.header:
            next(cells, None)
        for line, row in cells:
            if len(row) != self.width:
                found = f"{len(row)} in line {line}: {short(row)}"
                raise InputError(f"{self.width} columns in {self.path.name}", found, "correct that line")
            yield line, row

    def _points(self, taken: list[tuple[int, list[str]]]) -> np.ndarray:
        """The points of some lines, once all numbers are finite."""
        D = len(self.columns)
        try:
            numbers = (float(row[column]) for _, row in taken for column in self.columns)
            x = np.fromiter(numbers, np.float64, len(taken) * D).reshape(-1, D)
            if np.isfinite(x).all():
                return x
        except ValueError:
            pass
        cells = ((line, row[column]) for line, row in taken for column in self.columns)
        line, cell = next((line, cell) for line, cell in cells if not math.isfinite(_number(cell)))
        found = f"{short([cell])} in line {line}"
        raise InputError(f"finite numbers in {self.path.name}", found, "correct that line")


def _number(cell: str) -> float:
    value = number_of(cell)
    return math.nan if value is None else value


Kind = Literal["CSV", "Parquet", "NumPy"]
PointFile = CsvPoints | ParquetPoints | NumpyPoints


def kind_of(path: Path) -> Kind:
    """The kind of a file by its suffix; any other suffix means CSV."""
    suffix = path.suffix.lower()
    return "Parquet" if suffix == ".parquet" else "NumPy" if suffix == ".npy" else "CSV"


def point_file(path: Path, names: Sequence[str], added: Sequence[str]) -> PointFile:
    """The file, for points in the variables `names`; none of its columns may have the name of one to be `added`."""
    kind = kind_of(path)
    if not path.is_file():
        raise InputError(f"a {kind} file", f"no file {path}", "name an existing file")
    if kind == "Parquet":
        return ParquetPoints(path, names, added)
    return NumpyPoints(path, names) if kind == "NumPy" else CsvPoints(path, names, added)
