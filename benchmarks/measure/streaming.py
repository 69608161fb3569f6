"""Many points of a Parquet file through `onelayer eval`: peak memory, points per second, and a kill halfway.

The layer is that of sin x1 + sin x2 at 1e-6. The command runs in a separate process on one thread; its peak memory is what
Linux reports while it runs. It runs once undisturbed, then again: killed (SIGKILL) once half of the values are written, and
restarted. `--page` writes the table into streaming.md.

    python benchmarks/measure/streaming.py --points 100000000 --page     takes minutes, and 6 GB of disk meanwhile
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

import onelayer as ol
from onelayer.common.errors import InputError
from page import markdown, options, page_of, placed

PAGE = page_of("streaming.md")
AT_ONCE = 10**6  # points written at a time
BYTES = 60  # of disk per point: input, values, two outputs
COLUMNS = ("points", "peak memory, MB", "seconds", "points/s", "killed at", "second run, s", "same bytes")


@dataclass(frozen=True)
class Run:
    """One run of the command."""

    status: int
    seconds: float
    peak: float  # bytes of memory


@dataclass(frozen=True)
class Measured:
    """An undisturbed run, one that was killed, one that resumed from there; whether the bytes are the same."""

    points: int
    undisturbed: Run
    killed_at: int
    killed: Run
    second: Run
    same: bool

    @property
    def row(self) -> tuple[str, ...]:
        peak = max(run.peak for run in (self.undisturbed, self.killed, self.second)) / 1e6
        rate = self.points / self.undisturbed.seconds
        times = (f"{self.undisturbed.seconds:.0f}", f"{rate:,.0f}", f"{self.killed_at:,}", f"{self.second.seconds:.0f}")
        return (f"{self.points:,}", f"{peak:.0f}", *times, "yes" if self.same else "NO")


def measured(points: int, folder: Path) -> Measured:
    """Three runs in a folder with enough free disk."""
    if shutil.disk_usage(folder).free < BYTES * points + 10**8:
        raise InputError(f"{BYTES * points / 1e9:.1f} GB of disk", "less", "fewer --points, or another TMPDIR")
    ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-6).save(folder / "layer")
    write_points(points, folder / "in.parquet")
    undisturbed, _ = evaluated(folder)
    expected = digest(folder / "out.parquet")
    (folder / "out.parquet").unlink()
    killed, there = evaluated(folder, points // 2)
    second, _ = evaluated(folder)
    return Measured(points, undisturbed, there, killed, second, digest(folder / "out.parquet") == expected)


def write_points(points: int, path: Path) -> None:
    """Random points of the domain, a million at a time."""
    random = np.random.default_rng(0)
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in ("x1", "x2")])
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, points, AT_ONCE):
            x = random.uniform(0, 2 * np.pi, (2, min(AT_ONCE, points - start)))
            writer.write_table(pyarrow.table(list(x), schema=schema))


def evaluated(folder: Path, kill_at: int | None = None) -> tuple[Run, int]:
    """One run of the command, killed once `kill_at` values are written; and how many were written last."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    arguments = ["eval", "layer", "--input", "in.parquet", "--output", "out.parquet"]
    started = time.perf_counter()
    command = [sys.executable, "-m", "onelayer.apps.cli", *arguments]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    values, there = folder / ".out.parquet.part" / "values", 0
    peak = 0
    while process.poll() is None:
        time.sleep(0.05)
        peak = max(peak, high_water(process.pid))
        there = values.stat().st_size // 8 if values.exists() else there
        if kill_at is not None and there >= kill_at:
            process.send_signal(signal.SIGKILL)
            process.wait()
    return Run(process.returncode, time.perf_counter() - started, peak), there


def high_water(pid: int) -> int:
    """Peak memory of a running process so far, in bytes, as Linux reports it; 0 once it has ended.

    The figure the system gives at the end would include the parent's memory, from before the child became another program.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--points", type=int, default=5 * 10**6)
    parser.add_argument("--page", action="store_true", help="write the table into streaming.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(args.points, Path(folder))
    table = markdown(COLUMNS, [found.row])
    print(table)
    if args.page:
        PAGE.write_text(placed(PAGE.read_text(), "streaming", table))
    assert (found.undisturbed.status, found.second.status) == (0, 0)


if __name__ == "__main__":
    main()
