"""The values computed so far, on disk, so that a run that was killed resumes where it stopped.

A folder beside the output holds the numbers of all finished batches in order (`values`) and a `journal`: its first line says what
the values are for, each other line how many rows a batch has, the checksum of its bytes, and how many of its points are not
covered by the certificate. A batch counts if numbers and line are present and agree; anything after the last such batch is
cut off. The output is also written there (`whole`) before it is renamed.
"""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from ...common.errors import InputError

Purpose = dict[str, str | int]


class InUse(InputError):
    """Another run writes the same output."""


class Counts(NamedTuple):
    """How many points a file has, and of how many of them the certificate does not speak."""

    points: int
    uncovered: int

    def __str__(self) -> str:
        return f"{self.uncovered:,} of {self.points:,} points are not covered by the certificate"


class PartialValues:
    """Values of shape [point, out] in a folder, appended batch by batch."""

    def __init__(self, folder: Path, purpose: Purpose, dtype: np.dtype, outputs: int) -> None:
        self.folder, self.purpose, self.dtype, self.outputs = folder, purpose, dtype, outputs
        self.rows: list[int] = []  # of every batch
        self.points = 0
        self.uncovered = 0  # points of which the certificate does not speak
        folder.mkdir(exist_ok=True)
        self._journal = (folder / "journal").open("a+b")
        self._numbers = (folder / "values").open("a+b")
        try:
            free = _lock(self._journal.fileno())
        except InputError:
            self.close()
            raise
        if not free:
            self.close()
            raise InUse("an output that no other run writes", f"{folder.name} in use", "wait for the other run")
        self.differs = self._recover()

    def append(self, y: Shaped[np.ndarray, "point out"], uncovered: int) -> None:
        """Add a batch: first its numbers, then its line in the journal, without which they do not count."""
        content = np.ascontiguousarray(y, dtype=self.dtype).tobytes()
        self._numbers.write(content)
        self._numbers.flush()
        self._journal.write(f"{len(y)} {zlib.crc32(content)} {uncovered}\n".encode())
        self._journal.flush()
        self._count(len(y), uncovered)

    @property
    def counts(self) -> Counts:
        return Counts(self.points, self.uncovered)

    def batches(self) -> Iterator[np.ndarray]:
        """All batches in order."""
        with (self.folder / "values").open("rb") as file:
            for rows in self.rows:
                yield np.fromfile(file, self.dtype, rows * self.outputs).reshape(rows, self.outputs)

    def remove(self) -> None:
        self.close()
        for name in ("values", "whole", "journal"):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # there is some other file in it
            self.folder.rmdir()

    def close(self) -> None:
        self._journal.close()
        self._numbers.close()

    def __enter__(self) -> "PartialValues":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _recover(self) -> list[str]:
        """Recover the batches of an earlier run for the same purpose; otherwise start over and return what differs."""
        self._journal.seek(0)
        lines = self._journal.read().splitlines(keepends=True)
        purpose, earlier = self.purpose, _purpose(lines[0]) if lines else None
        if earlier != purpose:
            self._cut(0, 0)
            self._journal.write(json.dumps(purpose, sort_keys=True).encode() + b"\n")
            self._journal.flush()
            return [] if earlier is None else [key for key in purpose if earlier.get(key) != purpose[key]]
        whole, size = len(lines[0]), 0
        held = self._numbers.seek(0, os.SEEK_END)
        self._numbers.seek(0)
        for line in lines[1:]:
            rows, checksum, uncovered = _entry(line)
            wanted = rows * self.outputs * self.dtype.itemsize
            if not rows or wanted > held - size:
                break
            content = self._numbers.read(wanted)
            if zlib.crc32(content) != checksum:
                break
            self._count(rows, uncovered)
            whole, size = whole + len(line), size + len(content)
        self._cut(whole, size)
        return []

    def _count(self, rows: int, uncovered: int) -> None:
        self.rows.append(rows)
        self.points += rows
        self.uncovered += uncovered

    def _cut(self, journal: int, numbers: int) -> None:
        for file, size in ((self._journal, journal), (self._numbers, numbers)):
            file.truncate(size)
            file.seek(0, os.SEEK_END)


def _purpose(line: bytes) -> Any:
    """The first line of a journal; None if it is incomplete or no JSON object."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and line.endswith(b"\n") else None


def _entry(line: bytes) -> tuple[int, int, int]:
    """(rows, checksum, points not covered) of a line; zeros if it is incomplete or malformed."""
    parts = line.split()
    whole = line.endswith(b"\n") and len(parts) == 3 and all(part.isdigit() and len(part) < 19 for part in parts)
    return (int(parts[0]), int(parts[1]), int(parts[2])) if whole else (0, 0, 0)


def _lock(file: int) -> bool:
    """Lock the file; whether that worked. The lock ends with the process; systems without such locks do without."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        asked = "a folder to write in whose file system has locks"
        raise InputError(asked, f"{error.strerror}", "choose another folder") from None
    return True
