"""A folder of Parquet parts, evaluated part by part: here, or one task a part on a Dask cluster.

    in/a.parquet, in/b.parquet, …  →  out/a.parquet, out/b.parquet, …       each complete or absent, by a rename

A part is evaluated as any file is (`streaming`), on one thread, and its metadata say what was evaluated: the input, the layer,
the attention, the versions. So nothing else need be kept: a run finds the parts that are complete, whoever wrote them, and does
what is left. Workers get the files of the layer's folder as bytes, and read and write the parts themselves: they must see the
same file system. Several runs, or a worker that was given up too early, do not meet in one part: it is locked.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...approximation import Approximation, Attention
from ...common.atomic import FORCE
from ...common.cluster import LostCall, cluster_results
from ...common.errors import InputError
from ...common.machine import one_thread
from ...common.numbers import counted
from ...common.progress import Progress
from ...target.description import Outside
from ..attention.evaluator import Evaluator, evaluator
from ..folder import certified_of, files_of
from .formats import kind_of
from .parquet import signature_of
from .partial import Counts, InUse, Purpose
from .streaming import Streaming, clear, evaluate_file, stream

PATIENCE = 1.0  # seconds between looks at a part that another run writes
Files = tuple[tuple[str, bytes], ...]  # of a model folder, with their names


def evaluate_points(
    evaluator: Evaluator,
    source: Path,
    output: Path,
    outside: Outside = "allow",
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    overwrite: bool = False,
    dask: str | None = None,
) -> Counts:
    """Write the points of a file, or of a folder of Parquet parts, and their values to another."""
    if not source.is_dir():
        if dask is not None:
            raise InputError(
                "a folder of Parquet parts, for a cluster", f"{source}", "leave `dask` out, or name a folder"
            )
        return evaluate_file(evaluator, source, output, outside, progress, notify, overwrite)
    with one_thread():  # as on a worker: the same bytes on any number of cores
        return Parts(evaluator, source.absolute(), output.absolute(), outside).evaluate(
            progress or (lambda text, fraction: None), notify or (lambda text: None), overwrite, dask
        )


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a folder, all with the same columns, and where their values go."""

    evaluator: Evaluator
    source: Path
    output: Path
    outside: Outside

    def evaluate(self, progress: Progress, notify: Callable[[str], None], overwrite: bool, dask: str | None) -> Counts:
        """Evaluate the parts that are not complete. On an interrupt complete parts stay, and those that workers are at."""
        sizes = self.sizes()
        done = self.complete(sizes, overwrite)
        left = [name for name in sizes if name not in done]
        if done:
            notify(f"{len(done)} of {counted(len(sizes), 'part')} complete from an earlier run")
        new = not self.output.exists()
        self.output.mkdir(exist_ok=True)
        whole, reached = max(1, sum(sizes.values())), 0.0

        def step(within: float = 0.0) -> None:
            nonlocal reached
            reached = max(reached, (sum(sizes[name] for name in done) + within) / whole)
            progress(f"{len(done)} of {counted(len(sizes), 'part')}", reached)

        def here(name: str) -> tuple[str, Counts]:
            work, size = self._work(name), sizes[name]
            return name, stream(work, self.output / name, lambda text, fraction: step(size * fraction), notify, True)

        try:
            step()
            for name, counts in map(here, left) if dask is None else self._remote(left, dask):
                done[name] = counts
                step()
        except KeyboardInterrupt:
            told = f"after {len(done)} of {counted(len(sizes), 'part')}; run the same command to resume"
            raise KeyboardInterrupt(told) from None
        finally:
            if new:
                with suppress(OSError):  # there is something in it
                    self.output.rmdir()
        for name in sizes:
            clear(self.output / name)
        return Counts(sum(c.points for c in done.values()), sum(c.uncovered for c in done.values()))

    def sizes(self) -> dict[str, int]:
        """Parts by name and how many points they have, once their columns are the same and can be evaluated."""
        names = _parts(self.source)
        if not names:
            raise InputError("a folder of .parquet files", f"none in {self.source}", "name the folder that holds them")
        if self.output.exists() and (not self.output.is_dir() or self.output.samefile(self.source)):
            kind = "the folder of the input" if self.output.is_dir() else "a file"
            raise InputError("a folder for the parts of the output", f"{self.output} is {kind}", "choose another name")
        if not self.output.parent.is_dir():
            raise InputError("a folder to write", f"no folder {self.output.parent}", "make that folder first")
        files: dict[str, Any] = {name: self._work(name).file for name in names}
        first = files[names[0]].schema
        for name, file in files.items():
            if not file.schema.equals(first):
                columns = ", ".join(f"{field.name} {field.type}" for field in file.schema)
                raise InputError(f"the columns of {names[0]} in all parts", f"{columns} in {name}", "write them alike")
        return {name: file.count for name, file in files.items()}

    def complete(self, sizes: dict[str, int], overwrite: bool) -> dict[str, Counts]:
        """The parts of the output that are there and of this very purpose; others are refused, or left to be replaced."""
        done, others = {}, []
        for name in _parts(self.output):
            counts = complete_part(self.output / name, self._work(name).purpose) if name in sizes else None
            if counts is not None:
                done[name] = counts
            elif name not in sizes or not overwrite:
                others.append(name)
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            found = f"{others[0]}{more} in {self.output}, {self._origin(others[0])}"
            raise InputError("an output folder without other parts", found, f"choose another folder, or {FORCE}")
        return done

    def _origin(self, name: str) -> str:
        """Where a part of the output is from that this work did not write."""
        signature, _ = signature_of(self.output / name) or ({}, 0)
        if not signature or not (self.source / name).is_file():
            return "of another input"
        differs = [key for key, value in self._work(name).purpose.items() if signature.get(key) != value]
        return f"which differs in: {', '.join(differs)}" if differs else "of another run"

    def _remote(self, names: list[str], address: str) -> Iterator[tuple[str, Counts]]:
        if not names:
            return
        e = self.evaluator
        how = (e.attention, e.remainder or None, str(e.device), self.outside)
        layer: Files = tuple(files_of(e.approximation).items())
        calls = {}
        for name in names:
            call = (str(self.source / name), str(self.output / name), self._work(name).purpose)
            calls[f"eval-{hashlib.sha256(repr(call).encode()).hexdigest()}"] = call
        for key, found in cluster_results(address, evaluate_part, calls, layer, how):
            name = Path(calls[key][0]).name
            if isinstance(found, LostCall):
                change = "see the workers' logs (they need onelayer and memory), and run the same command again"
                raise InputError(f"workers that can evaluate {name}", found.why, change)
            if isinstance(found, InputError):
                raise found
            yield name, Counts(*found)

    def _work(self, name: str) -> Streaming:
        return Streaming(self.evaluator, self.source / name, self.outside)


def evaluate_part(
    layer: Files, how: tuple[Attention, float | None, str, Outside], source: str, output: str, purpose: Purpose
) -> tuple[int, int] | InputError:
    """On a worker: one part, and its counts. What is wrong with the input is returned, as there is no use in trying again."""
    attention, remainder, device, outside = how
    try:
        with one_thread():
            work = Streaming(_evaluator(layer, attention, remainder, device), Path(source), outside)
            if differs := [key for key, value in work.purpose.items() if purpose[key] != value]:
                found = f"{differs[0]} {work.purpose[differs[0]]}, not {purpose[differs[0]]}"
                return InputError("workers that are as this machine is", found, "use the same files and versions there")
            while True:
                try:
                    counts = complete_part(Path(output), purpose) or stream(work, Path(output), signed=True)
                    return counts.points, counts.uncovered
                except InUse:
                    time.sleep(PATIENCE)
    except InputError as error:
        return InputError(error.asked, f"{error.found} (on a worker)", error.change)


def complete_part(path: Path, purpose: Purpose) -> Counts | None:
    """How many points a part has, if it is there and was evaluated for this purpose."""
    signature, rows = signature_of(path) or ({}, 0)
    uncovered = signature.pop("uncovered", None)
    return Counts(rows, uncovered) if signature == purpose and isinstance(uncovered, int) else None


def _parts(folder: Path) -> list[str]:
    """The Parquet files of a folder that are not hidden; none if there is no such folder."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(p.name for p in found if kind_of(p) == "Parquet" and p.name[0] not in "._" and p.is_file())


@lru_cache(maxsize=2)
def _evaluator(layer: Files, attention: Attention, remainder: float | None, device: str) -> Evaluator:
    """Made once on a worker, not for every part."""
    approximation = certified_of(dict(layer))
    assert isinstance(approximation, Approximation)
    return evaluator(approximation, attention, remainder, device)
