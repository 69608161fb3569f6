"""A layer evaluated at all points of a file, however many, in constant memory; a run that was killed can be resumed.

    points, batch by batch → T(x) → values on disk      killed here, the next run resumes after the last batch
    points and values → a whole file → os.replace       the output is complete, or as it was before

The size of a batch depends only on the columns of file and layer, never on load or on where a run stopped: the output is
byte-identical to that of an uninterrupted run.
"""

import hashlib
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from ... import __version__
from ...approximation import Approximation
from ...common.atomic import require_new
from ...common.checks import require_choice
from ...common.errors import InputError
from ...common.interrupts import DeferredInterrupt
from ...common.progress import Progress
from ...target.description import Outside
from ..attention.evaluator import Evaluator
from .batch import AddedColumns, Batch
from .formats import kind_of, point_file
from .npy import NumpyPoints, write_array
from .parquet import ParquetPoints
from .partial import Counts, InUse, PartialValues, Purpose

CELLS = 2**18  # in a batch, columns of file and layer together: 2 MB as numbers, about 40 MB as CSV text
ENDS = 2**20  # bytes compared at each end of a file


def evaluate_file(
    evaluator: Evaluator,
    source: Path,
    output: Path,
    outside: Outside = "allow",
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    overwrite: bool = False,
) -> Counts:
    """Write the points of `source` and their values to `output`.

    Both are CSV, Parquet or NumPy files by their suffix, of the same kind; any kind can also become a NumPy file of the values
    alone. `overwrite` replaces a file of that name, though never the source. `notify` is told whether an earlier run is resumed.
    On an interrupt the current batch is finished, and KeyboardInterrupt says how many points are done.
    """
    _require_output(source, output, overwrite)
    return stream(Streaming(evaluator, source, outside), output, progress, notify)


def stream(
    work: "Streaming",
    output: Path,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    signed: bool = False,
) -> Counts:
    """Do the work, or resume it, and write its output; `signed` if the output's metadata are to say what it is."""
    with (
        PartialValues(_folder(output), work.purpose, work.dtype, work.outputs) as values,
        DeferredInterrupt() as interrupted,
    ):

        def step(text: str, fraction: float) -> None:
            if progress is not None:
                interrupted.call(progress, text, fraction)
            if interrupted:
                raise KeyboardInterrupt

        if notify is not None and (values.differs or values.points):
            notify(_resumption(values))
        try:
            work.evaluate(values, step)
            work.write(values, output, step, signed)
        except BaseException as error:
            if isinstance(error, InputError) or not values.points:  # nothing to resume
                values.remove()
            elif isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(f"after {_counted(values)}; run the same command to resume") from None
            raise
        values.remove()
    return values.counts


def clear(output: Path) -> None:
    """Remove what a run left that was killed right after its output was complete."""
    if _folder(output).is_dir():
        with suppress(InUse), PartialValues(_folder(output), {}, np.dtype("float64"), 1) as values:
            values.remove()


class Streaming:
    """A layer with its attention, a file of points for it, and what to do about points that are not covered."""

    def __init__(self, evaluator: Evaluator, source: Path, outside: Outside) -> None:
        require_choice("outside", outside, get_args(Outside))
        self.evaluator, self.source, self.outside = evaluator, source, outside
        self.approximation = approximation = evaluator.approximation
        self.names = added_names(approximation)
        self.file = point_file(source, approximation.domain.names, self.names)
        self.rows = max(1, CELLS // (self.file.width + len(self.names)))  # of a batch
        self.outputs = math.prod(approximation.output_shape)
        self.dtype = np.dtype("float32" if approximation.model.W_E.dtype == torch.float32 else "float64")

    def values_at(self, x: np.ndarray) -> np.ndarray:
        """[point, out]."""
        outside: Outside = "clip" if self.outside == "clip" else "allow"
        return np.asarray(self.evaluator(x, outside)).reshape(len(x), self.outputs)

    def covered(self, x: np.ndarray) -> np.ndarray:
        """Of which points the certificate speaks; what is not covered was refused before, if it is refused."""
        return np.ones(len(x), bool) if self.outside == "error" else np.atleast_1d(self.approximation.covers(x))

    @property
    def purpose(self) -> Purpose:
        """Everything that the bytes of the values depend on."""
        a, e = self.approximation, self.evaluator
        return {
            "input": fingerprint(self.source),
            "layer": f"{a.model.fingerprint()} {a.facts.places}",
            "domain": f"{a.domain} {a.domain.lower} {a.domain.upper} {a.certificate.margin}",
            "points outside": self.outside,
            "attention": f"{e.attention}, remainder {e.remainder}, on {e.device.type}",
            "batches": self.rows,
            "threads": torch.get_num_threads(),
            "versions": f"onelayer {__version__}, torch {torch.__version__}, numpy {np.__version__}",
        }

    def evaluate(self, values: PartialValues, step: Progress) -> None:
        """Compute the values that are still missing."""
        for batch in self.file.batches(self.rows, values.points):
            self._require_valid(batch)
            values.append(self.values_at(batch.x), int((~self.covered(batch.x)).sum()))
            step(f"{values.points:,} points", batch.fraction)

    def write(self, values: PartialValues, output: Path, step: Progress, signed: bool = False) -> None:
        """Write points and values as the output, in one piece."""
        fresh, kind = values.folder / "whole", kind_of(output)
        text: dict[str, Any] = {"encoding": "utf-8", "newline": ""} if kind == "CSV" else {}
        try:
            with fresh.open("w" if kind == "CSV" else "wb", **text) as stream:
                for fraction in self.write_to(values, stream, kind == "NumPy", signed):
                    step(f"writing {output.name}", fraction)
        except ValueError:  # rows that do not fit: the file has changed
            self._require_unchanged(values)
            raise
        self._require_unchanged(values)
        if output.exists():
            shutil.copymode(output, fresh)
        os.replace(fresh, output)

    def write_to(
        self, values: PartialValues, stream: Any, alone: bool = False, signed: bool = False
    ) -> Iterator[float]:
        """Write points and values, or the values `alone` as an array, yielding the fraction done."""
        a = self.approximation
        if alone or isinstance(self.file, NumpyPoints):
            shape = (values.points, *(() if a.output_shape == (1,) else a.output_shape))
            return write_array(stream, values.batches(), self.dtype, shape)
        none = added_columns(a, np.zeros((0, self.outputs), self.dtype))
        added = AddedColumns(tuple(self.names), tuple(column.dtype for column in none), self.columns(values))
        if signed and isinstance(self.file, ParquetPoints):
            return self.file.write(stream, added, self.rows, {**values.purpose, "uncovered": values.uncovered})
        return self.file.write(stream, added, self.rows)

    def columns(self, values: PartialValues) -> Iterator[list[np.ndarray]]:
        """The added columns, batch by batch."""
        return (added_columns(self.approximation, y) for y in values.batches())

    @contextmanager
    def temporary(self) -> Iterator[PartialValues]:
        """All values, in a temporary folder."""
        with (
            tempfile.TemporaryDirectory() as folder,
            PartialValues(Path(folder), self.purpose, self.dtype, self.outputs) as values,
        ):
            self.evaluate(values, lambda text, fraction: None)
            yield values

    def _require_unchanged(self, values: PartialValues) -> None:
        if values.purpose["input"] != fingerprint(self.source):
            found = "a file that was changed in the meantime"
            raise InputError(f"{self.source.name} as it was at the start", found, "evaluate it again")

    def _require_valid(self, batch: Batch) -> None:
        """The points are covered, if `outside` is "error", and token numbers are in the vocabulary."""
        a, x = self.approximation, batch.x
        if self.outside == "error":
            a.require_covered(x, lambda i: f"{batch.where(i)} of {self.source.name}")
        if a.vocabulary is not None:
            valid = ((x >= 0) & (x < a.vocabulary) & (x == np.rint(x))).all(axis=1)
            if not valid.all():
                found = f"others in {batch.where(int((~valid).argmax()))}"
                raise InputError(f"tokens from 0 to {a.vocabulary - 1}", found, "number the tokens from 0")


def added_names(approximation: Approximation) -> list[str]:
    """The columns that evaluation adds to a file: y, or y1, y2, …, and answers likewise where values stand for them."""
    counts = {"y": math.prod(approximation.output_shape), "answer": _answers(approximation)}
    return [word if n == 1 else f"{word}{i + 1}" for word, n in counts.items() for i in range(n)]


def added_columns(approximation: Approximation, y: np.ndarray) -> list[np.ndarray]:
    """One array per name, from values [point, out]."""
    answers = _answers(approximation)
    if not answers:
        return list(y.T)
    shaped = y[:, 0] if approximation.output_shape == (1,) else y.reshape(len(y), *approximation.output_shape)
    return [*y.T, *np.asarray(approximation.decode(shaped)).reshape(len(y), answers).T]


def fingerprint(path: Path) -> str:
    """A file's size, time of modification, and SHA-256 of both ends (the schema of a Parquet file is at its end)."""
    about = path.stat()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(ENDS))
        file.seek(max(0, about.st_size - ENDS))
        digest.update(file.read(ENDS))
    return f"{about.st_size} {about.st_mtime_ns} {digest.hexdigest()}"


def _answers(approximation: Approximation) -> int:
    """How many whole numbers, tokens or labels the values of one point stand for."""
    if approximation.decoding is None:
        return 0
    shape = approximation.output_shape
    return math.prod(shape[:-1] if approximation.decoding.kind == "largest" else shape)


def _require_output(source: Path, output: Path, overwrite: bool) -> None:
    """The output can be written, and is of the kind of the input or an array of values."""
    if not output.name or (output.exists() and not output.is_file()):
        raise InputError("a file to write", f"{output} is a folder", "choose another name for the output")
    if output.exists() and source.exists() and output.samefile(source):
        raise InputError("an output that is not the input", f"{output} is {source}", "choose another name")
    require_new(output, overwrite)
    if not (parent := output.absolute().parent).is_dir():
        found = f"{output.parent} is a file" if parent.exists() else f"no folder {output.parent}"
        raise InputError(
            "a file to write", found, "choose another place" if parent.exists() else "make the folder first"
        )
    if kind_of(output) not in (kind_of(source), "NumPy"):
        asked = f"an output of the same kind as {source.name}, or .npy for the values alone"
        raise InputError(asked, output.name, f"call it {output.with_suffix(source.suffix).name}")


def _folder(output: Path) -> Path:
    """Where the values are kept until they are complete."""
    return output.absolute().parent / f".{output.name}.part"


def _resumption(values: PartialValues) -> str:
    if values.differs:
        return f"an earlier run differs in {', '.join(values.differs)}: starting over"
    return f"resuming after {_counted(values)} of an earlier run"


def _counted(values: PartialValues) -> str:
    return "1 point" if values.points == 1 else f"{values.points:,} points"
