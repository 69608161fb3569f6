"""Store: one SQLite file, one row per point, written as soon as the point is done.

A row is complete or absent, whenever the process is killed: every write is a separate transaction on a separate connection.
The key is primary, so no point is stored twice. A point that failed is stored with its error.
"""

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.atomic import FORCE
from ...common.errors import InputError
from ...deployment.earlier_model import MODEL_FILES, REPORT, is_page
from .axes import Task
from .sweep import Sweep

FILE, POINTS = "points.sqlite", "points.csv"
LOCK_TIMEOUT = 60.0  # seconds to wait for another process that writes
TABLES = """
CREATE TABLE IF NOT EXISTS points (
  key TEXT PRIMARY KEY, measure TEXT NOT NULL, point TEXT NOT NULL, status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
  result TEXT NOT NULL, error TEXT NOT NULL, seconds REAL NOT NULL, versions TEXT NOT NULL,
  stored TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;
CREATE TABLE IF NOT EXISTS sweeps (
  digest TEXT PRIMARY KEY, name TEXT NOT NULL, points INTEGER NOT NULL, started TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;
"""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a point: its result, or the error that it failed with."""

    status: str  # "done" or "failed"
    result: dict[str, Any]
    error: str
    seconds: float
    versions: dict[str, str]


@dataclass(frozen=True)
class Store:
    """The results stored in one folder."""

    path: Path

    @staticmethod
    def open(folder: Path, sweep: Sweep) -> "Store":
        """The store of a folder, created if needed; it records every sweep that it was used for."""
        if folder.exists() and not folder.is_dir():
            raise InputError("a folder for the study", f"{folder} is a file", "choose another name")
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(folder / FILE)
        with store.connection() as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(TABLES)
            row = (sweep.digest, sweep.name, len(sweep.tasks))
            db.execute("INSERT OR IGNORE INTO sweeps (digest, name, points) VALUES (?, ?, ?)", row)
        return store

    def remove(self) -> None:
        """Remove a store without points, and its folder if that is all there is."""
        for path in self.path.parent.glob(f"{FILE}*"):
            path.unlink()
        with suppress(OSError):  # there is something else in it
            self.path.parent.rmdir()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """One transaction, all or nothing. A file that is not a store, or not writable, is reported in one line."""
        try:
            with closing(sqlite3.connect(self.path, timeout=LOCK_TIMEOUT)) as db, db:
                yield db
        except sqlite3.Error as error:
            raise InputError(f"a store in {self.path}", str(error), "choose another folder") from None

    def write(self, task: Task, outcome: Outcome) -> bool:
        """Store the outcome of a point; False if it was stored before."""
        texts = (json.dumps(task.point, sort_keys=True), outcome.status, json.dumps(plain(outcome.result)))
        row = (task.key, task.measure.name, *texts, outcome.error, outcome.seconds, json.dumps(outcome.versions))
        with self.connection() as db:
            written = db.execute(
                "INSERT OR IGNORE INTO points (key, measure, point, status, result, error, seconds, versions)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            return written.rowcount == 1

    def forget_failed(self, sweep: Sweep) -> None:
        """Delete the failed points of a sweep, so that they are tried again."""
        with self.connection() as db:
            keys = [(task.key,) for task in sweep.tasks]
            db.executemany("DELETE FROM points WHERE status = 'failed' AND key = ?", keys)

    def outcomes(self) -> dict[str, Outcome]:
        """Everything that is stored, by key."""
        with self.connection() as db:
            rows = db.execute("SELECT key, status, result, error, seconds, versions FROM points").fetchall()
        return {key: self._outcome(*rest) for key, *rest in rows}

    def _outcome(self, status: str, result: str, error: str, seconds: float, versions: str) -> Outcome:
        try:
            found, made_by = json.loads(result), json.loads(versions)
        except ValueError:
            found = made_by = None
        if not isinstance(found, dict) or not isinstance(made_by, dict):
            raise InputError(f"results in {self.path}", "a row that is none", "choose another folder")
        return Outcome(status, found, error, seconds, made_by)

    def sweeps(self) -> dict[str, int]:
        """The digest of every sweep that this store was used for, and its number of points."""
        with self.connection() as db:
            return dict(db.execute("SELECT digest, points FROM sweeps").fetchall())


def require_no_other(folder: Path, overwrite: bool) -> None:
    """Refuse the folder of a model and, unless `overwrite`, files that no study wrote where this one would write."""
    if any((folder / name).exists() for name in MODEL_FILES):
        raise InputError("a folder for the study", f"{folder} holds a model", "name another folder")
    page = folder / REPORT
    taken = [POINTS] if (folder / POINTS).exists() and not (folder / FILE).exists() else []
    taken += [REPORT] if page.is_file() and not is_page(page, "a study") else []
    if taken and not overwrite:
        found = f"{' and '.join(taken)} in {folder}, which no study wrote"
        raise InputError("a folder for the study", found, f"name another folder, or replace them: {FORCE}")


def plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result for JSON: numbers that are not finite become null."""
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in result.items()}
