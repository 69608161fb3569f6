"""Points in NumPy files: an array [N, D], or any [N, …] with D numbers per point; only the values are written.

Batches are read with plain reads: the pages of a memory-mapped file would count as memory of the process.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ...common.errors import InputError
from ...common.numbers import counted
from .batch import Batch, require_finite


class NumpyPoints:
    """An array of points in a file; integers and floats of any width."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names, D = path, names, len(names)
        try:
            with path.open("rb") as file:
                version = np.lib.format.read_magic(file)
                form = np.lib.format
                header = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
                shape, self.by_column, self.dtype = header(file)
                self.start = file.tell()
        except ValueError as error:
            why = " ".join(str(error).split())[:100]
            raise InputError(f"an array of numbers in {path.name}", why, "write it with numpy.save") from None
        if self.dtype.kind not in "fiu":
            raise InputError(f"numbers in {path.name}", f"dtype {self.dtype}", "write floats or integers")
        if not shape or min(shape) < 0 or (math.prod(shape[1:]) != D) or (self.by_column and len(shape) > 2):
            wanted = f"an array [N, {D}] in {path.name}"
            raise InputError(
                wanted, f"shape {list(shape)}", f"write one row per point, {counted(D, 'number')} each, in C order"
            )
        self.count, self.width = int(shape[0]), D
        if path.stat().st_size < self.start + self.count * D * self.dtype.itemsize:
            raise InputError(f"{self.count:,} points in {path.name}", "a file that ends too early", "write it again")

    def batches(self, rows: int, skip: int = 0) -> Iterator[Batch]:
        with self.path.open("rb") as file:
            for first in range(skip, self.count, rows):
                x = self._read(file, first, min(rows, self.count - first))
                batch = Batch(x, first, (first + len(x)) / self.count)
                yield require_finite(self.path.name, self.names, batch)

    def _read(self, file: BinaryIO, first: int, rows: int) -> np.ndarray:
        D, size = self.width, self.dtype.itemsize

        def numbers(position: int, count: int) -> np.ndarray:
            file.seek(self.start + position * size)
            return np.fromfile(file, self.dtype, count)

        if self.by_column:
            return np.stack([numbers(j * self.count + first, rows) for j in range(D)], axis=1).astype(np.float64)
        return numbers(first * D, rows * D).reshape(rows, D).astype(np.float64)


def write_array(
    stream: BinaryIO, batches: Iterator[np.ndarray], dtype: np.dtype, shape: tuple[int, ...]
) -> Iterator[float]:
    """Write batches of numbers as one array, yielding the fraction done."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    rows = 0
    for batch in batches:
        stream.write(batch.tobytes())
        rows += len(batch)
        yield rows / shape[0]
