"""A built-in study on a Dask scheduler with two workers, one of which is killed during the run, beside the same study run here.

    python benchmarks/measure/cluster.py epsilon --out .    compares study-epsilon-dask with study-epsilon; makes what is missing

Prints where the two tables differ, times excepted. Results that depend on a search's time limit may differ on a busy machine.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onelayer as ol
from onelayer.experiments.study import Study
from onelayer.experiments.study.store import Store
from onelayer.experiments.study.sweep import sweep_of
from page import options, page_of, placed

PAGE = page_of("study.md")
TIMES = ("took", "trained_took", "spent", "points_per_second", "worker")


@contextmanager
def cluster(folder: Path, workers: int = 2, env: dict[str, str] | None = None) -> Iterator[tuple[str, list[int]]]:
    """(address, process groups of the workers) of a scheduler on this machine; everything is killed at the end."""
    started: list[subprocess.Popen[bytes]] = []
    file = folder / f".scheduler-{os.getpid()}.json"

    def start(*words: str) -> subprocess.Popen[bytes]:
        call = [sys.executable, "-m", "dask", *words]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(call, env=env, cwd=folder, start_new_session=True, **quiet))
        return started[-1]

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file.name)
        while not file.exists() or not file.read_text().strip().endswith("}"):
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        alone = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
        groups = [start("worker", address, *alone).pid for _ in range(workers)]
        yield address, groups
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        file.unlink(missing_ok=True)


def kill_after(group: int, store: Store, points: int) -> threading.Thread:
    """A thread that kills a worker once this many points are stored."""

    def wait() -> None:
        while not store.path.exists() or _count(store) < points:
            time.sleep(0.1)
        os.killpg(group, signal.SIGKILL)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def _count(store: Store) -> int:
    try:
        return len(store.outcomes())
    except Exception:  # its tables are still being created
        return 0


def differences(one: Study, two: Study) -> list[str]:
    """Where two tables differ, times excepted."""
    found = []
    for a, b in zip(one.rows, two.rows, strict=True):
        other = [f"{k} {a[k]} against {b.get(k)}" for k in a if k not in TIMES and a[k] != b.get(k)]
        if other:
            found.append(f"{a['target']}, {a.get('method')}, {a.get('tolerance')}: {'; '.join(other)}")
    return found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("name", metavar="STUDY")
    parser.add_argument("--out", type=Path, default=Path(), help="folder that holds study-NAME and study-NAME-dask")
    parser.add_argument("--page", action="store_true", help="write the outcome into study.md")
    args = parser.parse_args()
    sweep = sweep_of(f"builtin:{args.name}")
    folder = args.out / f"study-{args.name}-dask"
    store = Store.open(folder, sweep)
    before = len(store.outcomes())
    soon = before + (len(sweep.tasks) - sum(task.key in store.outcomes() for task in sweep.tasks)) // 3
    with cluster(args.out, env={**os.environ, "OMP_NUM_THREADS": "1"}) as (address, groups):
        killer = kill_after(groups[0], store, soon)
        remote = ol.study(sweep, folder, dask=address)
        killer.join(timeout=1)
    print(f"on the cluster, a worker killed after {soon - before} points: {remote.summary()}")
    local = ol.study(sweep, args.out / f"study-{args.name}")
    print(f"here: {local.summary()}")
    found = differences(local, remote)
    text = f"{len(local.rows) - len(found)} of {len(local.rows)} rows of the two tables are equal, times excepted."
    print("\n".join([text, *found]))
    if args.page:
        PAGE.write_text(placed(PAGE.read_text(), "cluster", "\n".join([text, *(f"- {line}" for line in found)])))


if __name__ == "__main__":
    main()
