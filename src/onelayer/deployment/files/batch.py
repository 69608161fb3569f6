"""A batch of points, and columns that are added to a file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ...common.errors import InputError


@dataclass(frozen=True)
class Batch:
    """Consecutive points of a file, and how much of the file lies behind them."""

    x: Float[np.ndarray, "point coordinate"]
    first: int  # points before this batch
    fraction: float
    lines: tuple[int, ...] | None = None  # where the points stand, in a file that has lines

    def __len__(self) -> int:
        return len(self.x)

    def where(self, i: int) -> str:
        """What the i-th point is called in a complaint; rows are counted from 0, as they are in arrays."""
        return f"row {self.first + i}" if self.lines is None else f"line {self.lines[i]}"


@dataclass(frozen=True)
class Added:
    """Columns that are added to a file: names, types, and one array per name, batch by batch."""

    names: tuple[str, ...]
    dtypes: tuple[np.dtype, ...]
    batches: Iterator[list[np.ndarray]]


def require_finite(name: str, names: Sequence[str], batch: Batch) -> Batch:
    """The batch, of finite numbers alone."""
    finite = np.isfinite(batch.x)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        found = f"{batch.x[row, column]:g} in column {names[column]}, {batch.where(row)}"
        raise InputError(f"finite numbers in {name}", found, "correct or remove that row")
    return batch
