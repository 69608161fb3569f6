"""A file of points by its suffix: CSV, Parquet (pyarrow) or a NumPy array.

Every kind knows how many columns it has (`width`) and yields its points in batches of rows, starting at any row; errors name
the line or row. CSV and Parquet files can be written again with columns added.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ...common.errors import InputError
from .csv import CsvPoints
from .npy import NumpyPoints
from .parquet import ParquetPoints

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
