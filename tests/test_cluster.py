"""Studies on Dask: the same table as with local processes, also when a worker is killed on the way."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import onelayer as ol
import studying
from onelayer.apps.cli import main
from onelayer.errors import InputError
from onelayer.study import Sweep, cluster
from onelayer.study.store import Store
from pages import with_package
from test_study import counted, stored, table_of


def test_a_scheduler_gives_the_same_table(tmp_path):
    from distributed import LocalCluster

    axes = {"n": [1, 2, 3, 4], "fail": 3}
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp"
    ) as local:
        remote = ol.study(
            Sweep.of_axes(studying.noted, {**axes, "log": str(tmp_path / "log")}),
            tmp_path / "remote",
            dask=local.scheduler_address,
        )
        assert counted(tmp_path / "log") == {1: 1, 2: 1, 3: 1, 4: 1}
    sweep = Sweep.of_axes(studying.noted, {**axes, "log": str(tmp_path / "log")})
    local = ol.study(sweep, tmp_path / "local", workers=1)
    assert table_of(remote) == table_of(local)
    assert [row["status"] for row in remote.rows] == ["done", "done", "failed", "done"]


def test_a_scheduler_that_is_not_there(tmp_path, capsys, as_user, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", "1s")
    sweep = Sweep.of_axes(studying.noted, {"n": [1], "log": str(tmp_path / "log")})
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(InputError, match="Dask scheduler"):
            ol.study(sweep, tmp_path / "out", dask=address)
    call = ["study", "--axis", "target=sin-sum", "--axis", "tolerance=3.0", "--out", str(tmp_path / "cli")]
    assert main([*call, "--dask", "tcp://127.0.0.1:9"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.long
def test_a_killed_worker_loses_and_repeats_nothing_that_is_stored(tmp_path):
    """A real scheduler, two worker processes, one of them killed with SIGKILL mid-run."""
    env = {**with_package(), "OMP_NUM_THREADS": "1"}
    env["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
    log, out = tmp_path / "log", tmp_path / "out"
    sweep = Sweep.of_axes(studying.noted, {"n": list(range(24)), "log": str(log), "seconds": 0.4})
    started: list[subprocess.Popen] = []

    def start(*words: str, **kept) -> subprocess.Popen:
        call = [sys.executable, "-m", "dask", *words]
        started.append(subprocess.Popen(call, env=env, cwd=tmp_path, start_new_session=True, **kept))
        return started[-1]

    try:
        scheduler = start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", stderr=subprocess.PIPE, text=True
        )
        address = None
        for line in scheduler.stderr:
            if found := re.search(r"Scheduler at: +(tcp://\S+)", line):
                address = found[1]
                break
        threading.Thread(target=scheduler.stderr.read, daemon=True).start()  # so that it never waits for a reader
        workers = [
            start("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", stderr=subprocess.DEVNULL)
            for _ in range(2)
        ]
        store = Store(out / "points.sqlite")
        killed_at: list[int] = []

        def kill_one() -> None:
            while len({o.result.get("worker") for o in stored(store).values()}) < 2:  # both are at work
                time.sleep(0.05)
            killed_at.append(len(stored(store)))
            os.killpg(workers[0].pid, signal.SIGKILL)

        hunter = threading.Thread(target=kill_one, daemon=True)
        hunter.start()
        remote = ol.study(sweep, out, dask=address)
        hunter.join(timeout=30)
        assert killed_at
        assert killed_at[0] < 24
        assert workers[0].wait() == -signal.SIGKILL
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if started and started[0].stderr:
            started[0].stderr.close()
    assert len(remote.done) == 24
    assert set(counted(log)) == set(range(24))
    assert sum(counted(log).values()) <= 25  # at most the one that the killed worker had just finished
    local = ol.study(Sweep.of_axes(studying.noted, {"n": list(range(24)), "log": str(log), "seconds": 0.4}),
                     tmp_path / "local", workers=2)  # fmt: skip
    assert table_of(remote) == table_of(local)
