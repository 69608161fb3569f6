"""Studies on Dask: the same table as with local processes, also when a worker is killed on the way."""

import os

import pytest

import onelayer as ol
import studying
from cluster import cluster as started_cluster
from cluster import differences, kill_after
from onelayer.apps.cli import main
from onelayer.common import cluster
from onelayer.common.errors import InputError
from onelayer.experiments.study import Sweep
from onelayer.experiments.study.store import Store
from pages import SUPPORT, with_package
from studying import counted, table_of


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
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", "1s")
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
    env["PYTHONPATH"] += os.pathsep + str(SUPPORT)
    log, out = tmp_path / "log", tmp_path / "out"
    sweep = Sweep.of_axes(studying.noted, {"n": list(range(24)), "log": str(log), "seconds": 0.4})
    store = Store(out / "points.sqlite")
    with started_cluster(tmp_path, env=env) as (address, groups):
        killer = kill_after(groups[0], store, 6)
        remote = ol.study(sweep, out, dask=address)
        killer.join(timeout=30)
        assert not killer.is_alive()
    assert len(remote.done) == 24
    assert set(counted(log)) == set(range(24))
    assert sum(counted(log).values()) <= 25  # at most the one that the killed worker had just finished
    local = ol.study(sweep, tmp_path / "local", workers=2)
    assert differences(remote, local) == []
    assert table_of(remote) == table_of(local)
