"""Streaming: a layer evaluated at all points of a file, however many, in constant memory, and resumable.

    points, batch by batch → T(x) → values on disk      killed here, the next run goes on after the last batch
    points and values → a whole file → os.replace       the output is complete, or as it was before

Batches are cut by the columns of file and layer alone, never by load or by where a run stopped: the bytes of the output are
those of a run that was not interrupted.
"""

import hashlib
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from ... import __version__
from ...approximation import Approximation, Outside
from ...common.errors import InputError
from ...common.interrupts import Interruption
from ..attention.evaluator import Evaluator
from .batch import Added, Batch
from .npy import NumpyPoints, write_array
from .points import kind_of, point_file
from .values import Purpose, Values

Step = Callable[[str, float], None]
CELLS = 2**18  # of a batch, columns of file and layer together: 2 MB as numbers, some 40 MB as the text of a CSV file
ENDS = 2**20  # bytes at both ends of a file that are compared


def evaluate_file(
    fast: Evaluator,
    source: Path,
    output: Path,
    outside: Outside = "allow",
    progress: Step | None = None,
    tell: Callable[[str], None] | None = None,
) -> int:
    """Write the points of `source` and their values to `output`; how many there were.

    Both are CSV, Parquet or NumPy files by their suffix, of one kind; a NumPy file of the values alone can come of any. `tell`
    hears whether an earlier run is gone on with. An interrupt ends the batch and is raised with a word on how far it came.
    """
    _require_output(source, output)
    work = Streaming(fast, source, outside)
    with Values(_folder(output), work.purpose, work.dtype, work.outputs) as values, Interruption() as interrupted:

        def step(text: str, fraction: float) -> None:
            if progress is not None:
                interrupted.ask(progress, text, fraction)
            if interrupted:
                raise KeyboardInterrupt

        if tell is not None and (values.differs or values.points):
            tell(_told(values))
        try:
            work.evaluate(values, step)
            work.write(values, output, step)
        except BaseException as error:
            if isinstance(error, InputError) or not values.points:  # nothing that can be used again
                values.remove()
            elif isinstance(error, KeyboardInterrupt):
                told = f"after {_counted(values)}; the same command goes on from there"
                raise KeyboardInterrupt(told) from None
            raise
        values.remove()
    return values.points


class Streaming:
    """A layer with its attention, a file of points for it, and what to do about points outside the domain."""

    def __init__(self, fast: Evaluator, source: Path, outside: Outside) -> None:
        if outside not in get_args(Outside):
            raise InputError("outside='allow', 'error' or 'clip'", f"{outside!r}", "choose one of the three")
        self.fast, self.source, self.outside = fast, source, outside
        self.approximation = approximation = fast.approximation
        self.names = added_names(approximation)
        self.file = point_file(source, approximation.domain.names, self.names)
        self.rows = max(1, CELLS // (self.file.width + len(self.names)))  # of a batch
        self.outputs = math.prod(approximation.output_shape)
        self.dtype = np.dtype("float32" if approximation.model.W_E.dtype == torch.float32 else "float64")

    def values_at(self, x: np.ndarray) -> np.ndarray:
        """[point, out]."""
        return np.asarray(self.fast(x, self.outside)).reshape(len(x), self.outputs)

    @property
    def purpose(self) -> Purpose:
        """Everything that the bytes of the values depend on."""
        a = self.approximation
        return {
            "input": fingerprint(self.source),
            "layer": f"{a.model.fingerprint()} {a.facts.places}",
            "domain": f"{a.domain} {a.domain.lower} {a.domain.upper}",
            "points outside": self.outside,
            "attention": f"{self.fast.attention}, remainder {self.fast.remainder}, on {self.fast.device.type}",
            "batches": self.rows,
            "threads": torch.get_num_threads(),
            "versions": f"onelayer {__version__}, torch {torch.__version__}, numpy {np.__version__}",
        }

    def evaluate(self, values: Values, step: Step) -> None:
        """The values that are still missing."""
        for batch in self.file.batches(self.rows, values.points):
            self._require_known(batch)
            values.append(self.values_at(batch.x))
            step(f"{values.points:,} points", batch.fraction)

    def write(self, values: Values, output: Path, step: Step) -> None:
        """Points and values as the output, in one piece."""
        fresh, kind = values.folder / "whole", kind_of(output)
        text: dict[str, Any] = {"encoding": "utf-8", "newline": ""} if kind == "CSV" else {}
        try:
            with fresh.open("w" if kind == "CSV" else "wb", **text) as stream:
                for fraction in self.written(values, stream, alone=kind == "NumPy"):
                    step(f"writing {output.name}", fraction)
        except ValueError:  # rows that do not fit: it is another file by now
            self._require_unchanged(values)
            raise
        self._require_unchanged(values)
        if output.exists():
            shutil.copymode(output, fresh)
        os.replace(fresh, output)

    def written(self, values: Values, stream: Any, alone: bool = False) -> Iterator[float]:
        """Write points and values, or the values `alone` as an array; yields the fraction done."""
        a = self.approximation
        if alone or isinstance(self.file, NumpyPoints):
            shape = (values.points, *(() if a.output_shape == (1,) else a.output_shape))
            return write_array(stream, values.batches(), self.dtype, shape)
        none = added_columns(a, np.zeros((0, self.outputs), self.dtype))
        added = Added(tuple(self.names), tuple(column.dtype for column in none), self.columns(values))
        return self.file.write(stream, added, self.rows)

    def columns(self, values: Values) -> Iterator[list[np.ndarray]]:
        """The columns that are added, batch by batch."""
        return (added_columns(self.approximation, y) for y in values.batches())

    @contextmanager
    def passing(self) -> Iterator[Values]:
        """All values, for as long as they are looked at; nothing is kept."""
        with (
            tempfile.TemporaryDirectory() as folder,
            Values(Path(folder), self.purpose, self.dtype, self.outputs) as values,
        ):
            self.evaluate(values, lambda text, fraction: None)
            yield values

    def _require_unchanged(self, values: Values) -> None:
        if values.purpose["input"] != fingerprint(self.source):
            found = "a file that was changed in the meantime"
            raise InputError(f"{self.source.name} as it was at the start", found, "evaluate it again")

    def _require_known(self, batch: Batch) -> None:
        """The points are in the domain, if that was asked for, and tokens are tokens."""
        a, x = self.approximation, batch.x
        if self.outside == "error":
            with np.errstate(over="ignore"):
                inside = a.domain.contains(x) & a.domain.contains(x.astype(self.dtype).astype(np.float64))
            if not inside.all():
                found = batch.where(int((~inside).argmax()))
                raise InputError(f"points in the domain: {a.domain}", found, "move it, or allow points outside")
        if a.vocabulary is not None:
            known = ((x >= 0) & (x < a.vocabulary) & (x == np.rint(x))).all(axis=1)
            if not known.all():
                found = f"others in {batch.where(int((~known).argmax()))}"
                raise InputError(f"tokens 0, 1, …, {a.vocabulary - 1}", found, "number the tokens from 0 on")


def added_names(approximation: Approximation) -> list[str]:
    """The columns that evaluation adds to a file: y, or y1, y2, …, and likewise the answers, if values stand for some."""
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
    """Of a file: its size, when it was written, and SHA-256 of both ends (the schema of a Parquet file is at its end)."""
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


def _require_output(source: Path, output: Path) -> None:
    """The output can become a file of the kind of the input, or an array of values."""
    if not output.name or (output.exists() and not output.is_file()):
        raise InputError("a file to write", f"{str(output)!r} is none", "choose another name for the output")
    if not output.absolute().parent.is_dir():
        raise InputError("a file to write", f"no folder {output.parent}", "make the folder first")
    if kind_of(output) not in (kind_of(source), "NumPy"):
        asked = f"an output of the kind of {source.name}, or .npy for the values alone"
        raise InputError(asked, output.name, f"call it {output.with_suffix(source.suffix).name}")


def _folder(output: Path) -> Path:
    """Where the values wait until they are complete."""
    return output.absolute().parent / f".{output.name}.part"


def _told(values: Values) -> str:
    if values.differs:
        return f"values of an earlier run were for other {', '.join(values.differs)}: started afresh"
    return f"going on after {_counted(values)} of an earlier run"


def _counted(values: Values) -> str:
    return "1 point" if values.points == 1 else f"{values.points:,} points"
