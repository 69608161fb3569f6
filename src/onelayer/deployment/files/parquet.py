"""Points in Parquet files: columns named after the variables, floats or integers; other columns are copied.

Row groups may be of any size: columns are read through a buffer, never whole, and cut into batches of the requested size. So
neither the values nor the row groups written depend on the row groups of the input.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import InputError
from .batch import AddedColumns, Batch, require_finite
from .cells import listed, require_names
from .partial import Purpose

BUFFER = 2**20  # bytes of a column read at a time
SIGNATURE = b"onelayer"  # key of the metadata that says what the values of a file are


class ParquetPoints:
    """A Parquet file of points."""

    def __init__(self, path: Path, names: Sequence[str], added: Sequence[str]) -> None:
        require_pyarrow()
        from pyarrow import parquet, types

        self.path, self.names = path, names
        with arrow_errors(path):
            file = parquet.ParquetFile(path)
        self.schema, self.count = file.schema_arrow, file.metadata.num_rows
        groups = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
        self.starts = np.cumsum([0, *groups]).tolist()
        self.width = len(self.schema.names)
        require_names(f"the columns {listed(names)} in {path.name}", self.schema.names, names, added)
        for name in names:
            kind = self.schema.field(name).type
            if not (types.is_floating(kind) or types.is_integer(kind)):
                raise InputError(f"numbers in {path.name}", f"{kind} in column {name}", "write floats or integers")

    def batches(self, rows: int, skip: int = 0) -> Iterator[Batch]:
        for table in self._tables(rows, skip, list(self.names)):
            x = np.empty((table.num_rows, len(self.names)))
            for j, name in enumerate(self.names):
                column = table.column(name)
                if column.null_count:
                    row = skip + int(np.argmax(column.is_null().to_numpy()))
                    found = f"none in column {name}, row {row}"
                    raise InputError(f"numbers in every row of {self.path.name}", found, "fill it in, or drop the row")
                x[:, j] = column.to_numpy()
            yield require_finite(self.path.name, self.names, Batch(x, skip, (skip + len(x)) / self.count))
            skip += len(x)

    def write(self, stream: Any, added: AddedColumns, rows: int, signature: Purpose | None = None) -> Iterator[float]:
        import pyarrow
        from pyarrow import parquet

        schema = self.schema
        for name, dtype in zip(added.names, added.dtypes, strict=True):
            schema = schema.append(pyarrow.field(name, pyarrow.from_numpy_dtype(dtype)))
        if signature is not None:
            schema = schema.with_metadata({**(schema.metadata or {}), SIGNATURE: json.dumps(signature, sort_keys=True)})
        written = 0
        with parquet.ParquetWriter(stream, schema, use_dictionary=self._repetitive()) as writer:
            for table, columns in zip(self._tables(rows, 0, None), added.batches, strict=True):
                arrays = [pyarrow.array(column) for column in columns]
                writer.write_table(pyarrow.table([*table.columns, *arrays], schema=schema), row_group_size=rows)
                written += table.num_rows
                yield written / self.count

    def _repetitive(self) -> list[str]:
        """Columns whose values may repeat; real numbers seldom do, and looking for repeats takes time."""
        from pyarrow import types

        return [field.name for field in self.schema if not types.is_floating(field.type)]

    def _tables(self, rows: int, skip: int, columns: list[str] | None) -> Iterator[Any]:
        """The rows after the first `skip`, in tables of `rows` rows; the last may be shorter."""
        import pyarrow
        from pyarrow import parquet

        groups = [g for g, end in enumerate(self.starts[1:]) if end > skip]
        if not groups:
            return
        skip -= self.starts[groups[0]]
        held: list[Any] = []
        number = 0
        with arrow_errors(self.path), parquet.ParquetFile(self.path, buffer_size=BUFFER, pre_buffer=False) as file:
            for part in file.iter_batches(batch_size=rows, row_groups=groups, columns=columns):
                cut = min(skip, part.num_rows)
                skip -= cut
                held.append(part.slice(cut))
                number += part.num_rows - cut
                while number >= rows:
                    table = pyarrow.Table.from_batches(held)
                    yield table.slice(0, rows)
                    held = table.slice(rows).to_batches()
                    number -= rows
        if number:
            yield pyarrow.Table.from_batches(held)


def signature_of(path: Path) -> tuple[Purpose, int] | None:
    """(signature, number of rows) of a file that was written with one; None of any other file."""
    require_pyarrow()
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path) as file:
            found = json.loads((file.schema_arrow.metadata or {}).get(SIGNATURE, b"null"))
            return (found, file.metadata.num_rows) if isinstance(found, dict) else None
    except (ArrowException, OSError, ValueError):
        return None


def require_pyarrow() -> None:
    """pyarrow is installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        change = "pip install 'onelayer[files]', or write CSV"
        raise InputError("a Parquet file, which pyarrow reads", "pyarrow is not installed", change) from None


@contextmanager
def arrow_errors(path: Path) -> Iterator[None]:
    """Turns pyarrow's errors about a file into one line."""
    from pyarrow import ArrowException

    try:
        yield
    except ArrowException as error:
        raise InputError(f"Parquet in {path.name}", " ".join(str(error).split())[:100], "correct the file") from None
