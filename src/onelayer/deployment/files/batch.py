"""A batch of points, and columns to add to a file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ...common.errors import InputError
from ...common.numbers import exact


@dataclass(frozen=True)
class Batch:
    """Consecutive points of a file."""

    x: Float[np.ndarray, "point coordinate"]
    first: int  # points before this batch
    fraction: float  # of the file that has been read
    lines: tuple[int, ...] | None = None  # line numbers of the points, in a text file

    def __len__(self) -> int:
        return len(self.x)

    def where(self, i: int) -> str:
        """Names the i-th point in an error message; rows are counted from 0, as in arrays."""
        return f"row {self.first + i}" if self.lines is None else f"line {self.lines[i]}"


@dataclass(frozen=True)
class AddedColumns:
    """Columns to add to a file: names, types, and one array per name, batch by batch."""

    names: tuple[str, ...]
    dtypes: tuple[np.dtype, ...]
    batches: Iterator[list[np.ndarray]]


def require_finite(name: str, names: Sequence[str], batch: Batch) -> Batch:
    """The batch, once all its numbers are finite."""
    finite = np.isfinite(batch.x)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        found = f"{exact(batch.x[row, column])} in column {names[column]}, {batch.where(row)}"
        raise InputError(f"finite numbers in {name}", found, "correct or remove that row")
    return batch
