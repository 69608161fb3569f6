"""Folders of Parquet parts: here and on Dask the same bytes, also when a worker or the command is killed on the way."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import onelayer as ol
from cluster import cluster as started_cluster
from onelayer.apps.cli import main
from onelayer.common import cluster
from onelayer.common.errors import InputError
from onelayer.common.machine import one_thread
from onelayer.deployment.files import partial, parts, streaming
from pages import with_package

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def product():
    return ol.build("x*p", {"x": (0, 1), "p": (-1, 1)}, 0.5, method="representative")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch, as_user):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def local():
    """A scheduler and a worker of two threads in this process."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp"
    ) as found:
        yield found.scheduler_address


def write(count=4, rows=300, folder="in", names=("x", "p")):
    """Parts of various lengths; one point in eight is outside the domain."""
    Path(folder).mkdir()
    for i in range(count):
        x = np.random.default_rng(i).uniform((0, -1), (1, 1.25), (rows + 7 * i, 2))
        pq.write_table(pa.table(dict(zip(names, x.T, strict=True)) | {"n": np.arange(len(x))}), f"{folder}/{i}.parquet")


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def test_parts_become_parts(product):
    write()
    assert product.evaluate("in", "out") == 4 * 300 + 7 * 6
    for i in range(4):
        table, points = pq.read_table(f"out/{i}.parquet"), pq.read_table(f"in/{i}.parquet")
        assert table.drop_columns("y").equals(points)
        assert np.abs(table["y"].to_numpy() - product(np.stack([points["x"], points["p"]], axis=1))).max() < 1e-14
    before = contents("out")
    assert list(before) == [f"{i}.parquet" for i in range(4)]
    assert product.evaluate("in", "out") == 4 * 300 + 7 * 6  # nothing left to do
    product.evaluate("in", "again")
    assert contents("again") == contents("out") == before


def test_a_scheduler_gives_the_same_bytes(product, local, capsys):
    write()
    product.evaluate("in", "here")
    product.save("product")
    assert main(["eval", "product", "--input", "in", "--output", "there", "--dask", local]) == 0
    told = capsys.readouterr()
    assert "1,242 values written to there" in told.out
    uncovered = sum(
        int((~product.covers(np.stack([t["x"], t["p"]], axis=1))).sum())
        for t in map(pq.read_table, Path("in").iterdir())
    )
    assert f"{uncovered} of 1,242 points are not covered" in told.err
    assert contents("there") == contents("here")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("when", [1, 5, 9, 14])
def test_interrupted_anywhere_and_resumed(product, monkeypatch, when, capsys):
    """Also in the middle of a part; a part that was complete is not touched again."""
    monkeypatch.setattr(streaming, "CELLS", 4 * 100)  # batches of 100 rows
    write()
    product.save("product")
    product.evaluate("in", "whole")
    steps = 0

    def stop(text, fraction):
        nonlocal steps
        steps += 1
        if steps == when:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"after \d of 4 parts; run the same command to resume"):
        product.evaluate("in", "out", progress=stop)
    done = (
        {path.name: path.stat().st_mtime_ns for path in Path("out").glob("*.parquet")} if Path("out").exists() else {}
    )
    assert main(["eval", "product", "--input", "in", "--output", "out"]) == 0
    assert (f"{len(done)} of 4 parts complete" in capsys.readouterr().err) == bool(done)
    assert contents("out") == contents("whole")
    assert all(Path("out", name).stat().st_mtime_ns == at for name, at in done.items())


def test_progress_never_falls(product):
    write()
    seen = []
    product.evaluate("in", "out", progress=lambda text, fraction: seen.append((text, fraction)))
    assert [fraction for _, fraction in seen] == sorted(fraction for _, fraction in seen)
    assert seen[0] == ("0 of 4 parts", 0.0)
    assert seen[-1] == ("4 of 4 parts", 1.0)


def test_other_parts_are_refused_and_replaced_only_when_told(product):
    write()
    product.evaluate("in", "out")
    before = contents("out")
    with pytest.raises(InputError, match=r"0\.parquet and 3 more in .*which differs in: points outside; change"):
        product.evaluate("in", "out", outside="clip")
    assert contents("out") == before
    pq.write_table(pq.read_table("in/2.parquet").slice(5), "in/2.parquet")  # one input has changed
    with pytest.raises(InputError, match=r"found: 2\.parquet in "):
        product.evaluate("in", "out")
    product.evaluate("in", "out", overwrite=True)
    after = contents("out")
    assert [name for name in after if after[name] != before[name]] == ["2.parquet"]
    Path("in/3.parquet").unlink()
    with pytest.raises(InputError, match=r"found: 3\.parquet in "):  # not ours to remove
        product.evaluate("in", "out", overwrite=True)
    assert contents("out") == after


@pytest.mark.parametrize("broken", [b"", b"PAR1", "cut", "plain"])
def test_what_is_no_complete_part_does_not_count(product, broken):
    write(1)
    product.evaluate("in", "out")
    path, whole = Path("out/0.parquet"), Path("out/0.parquet").read_bytes()
    if broken == "plain":
        pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    else:
        path.write_bytes(whole[:-9] if broken == "cut" else broken)
    with pytest.raises(InputError, match="without other parts"):
        product.evaluate("in", "out")
    product.evaluate("in", "out", overwrite=True)
    assert path.read_bytes() == whole


def test_bad_folders(product, monkeypatch, capsys):
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", "1s")
    product.save("product")
    write()
    write(1, folder="other", names=("x", "q"))
    write(1, folder="mixed")
    pq.write_table(pa.table({"x": [0.5], "p": [0.5]}), "mixed/1.parquet")
    write(2, folder="gaps")
    pq.write_table(pa.table({"x": [0.5, np.nan], "p": [0.5, 0.5], "n": [1, 2]}), "gaps/1.parquet")
    Path("empty").mkdir()
    Path("file.parquet").write_bytes(b"")
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    for words, *call in [
        ("none in", "empty", "out"),
        ("no column p", "other", "out"),
        ("the columns of 0.parquet in all parts; found: x double, p double in 1.parquet", "mixed", "out"),
        ("is the folder of the input", "in", "in"),
        ("is a file", "in", "file.parquet"),
        ("no folder", "in", "nowhere/out"),
        ("Dask scheduler", "in", "out", "--dask", "tcp://127.0.0.1:9"),
        ("Dask scheduler", "in", "out", "--dask", "nonsense://x"),
        ("a folder of Parquet parts, for a cluster", "in/0.parquet", "out.parquet", "--dask", "tcp://127.0.0.1:9"),
    ]:
        source, output, *more = call
        assert main(["eval", "product", "--input", source, "--output", output, *more]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert words in err
        assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
    assert main(["eval", "product", "--input", "in"]) == main(["eval", "product", "1", "1", "--dask", "tcp://x"]) == 2
    assert main(["eval", "product", "--input", "gaps", "--output", "out"]) == 2  # the part before it is complete
    assert os.listdir("out") == ["0.parquet"]
    assert "nan in column x, row 1" in capsys.readouterr().err


def test_what_workers_answer_is_one_line(product, local, monkeypatch):
    write(2)
    pq.write_table(pa.table({"x": [0.5, np.inf], "p": [0.5, 0.5], "n": [1, 2]}), "in/1.parquet")
    with pytest.raises(InputError, match=r"inf in column x, row 1 \(on a worker\)"):
        product.evaluate("in", "out", dask=local)
    Path("in/1.parquet").unlink()
    work = streaming.Streaming(product.fast(), Path("in/0.parquet"), "allow")
    layer = tuple(parts.files_of(product).items())
    how = ("softmax", None, "cpu", "allow")
    found = parts.evaluate_part(layer, how, "in/0.parquet", "w.parquet", work.purpose | {"versions": "onelayer 0"})
    assert "versions onelayer" in str(found)
    assert "not onelayer 0" in str(found)
    assert "no file" in str(parts.evaluate_part(layer, how, "in/7.parquet", "w.parquet", work.purpose))

    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(parts, "evaluate_part", fail)
    with pytest.raises(InputError, match=r"workers that can evaluate 0\.parquet; found: no space left"):
        product.evaluate("in", "new", dask=local)
    assert not Path("new").exists()


def test_two_at_one_part_wait_for_each_other(product, monkeypatch):
    """As when a scheduler gives a part to a second worker while the first is still at it."""
    monkeypatch.setattr(parts, "PATIENCE", 0.02)
    write(1)
    with one_thread():
        work = streaming.Streaming(product.fast(), Path("in/0.parquet"), "allow")
        purpose = work.purpose
    layer, how = tuple(parts.files_of(product).items()), ("softmax", None, "cpu", "allow")
    found = []
    second = threading.Thread(
        target=lambda: found.append(parts.evaluate_part(layer, how, "in/0.parquet", "out.parquet", purpose))
    )
    with partial.PartialValues(Path(".out.parquet.part"), purpose, work.dtype, 1):
        second.start()
        time.sleep(0.3)
        assert not found
    second.join()
    assert found[0][0] == 300
    assert parts.evaluate_part(layer, how, "in/0.parquet", "out.parquet", purpose) == found[0]


def test_what_a_kill_leaves_beside_a_complete_part_is_removed(product, monkeypatch):
    write(1)
    with monkeypatch.context() as killed:
        killed.setattr(partial.PartialValues, "remove", lambda self: None)
        product.evaluate("in", "out")
    assert sorted(os.listdir("out")) == [".0.parquet.part", "0.parquet"]
    product.evaluate("in", "out")
    assert os.listdir("out") == ["0.parquet"]


def test_a_file_system_without_locks_is_refused(product, monkeypatch):
    import fcntl

    def refuse(file, how):
        raise OSError(37, "No locks available")

    write(1)
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(InputError, match="has locks; found: No locks available"):
        product.evaluate("in", "out")


def test_one_thread_until_the_last_of_several_blocks_ends():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    first, second = one_thread(), one_thread()
    try:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert torch.get_num_threads() == 1
        second.__exit__(None, None, None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# ---- killed

MANY, LONG = 8, 100_000


def wait_for_parts(number, seconds=120):
    """Until so many parts are there, and another is being evaluated."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if len(list(Path("out").glob("*.parquet"))) >= number and list(Path("out").glob(".*.part")):
            return
        time.sleep(0.01)
    raise AssertionError("no parts")


def environment():
    return {**with_package(), "OMP_NUM_THREADS": "1"}


@pytest.mark.long
def test_a_killed_worker_loses_nothing(product, tmp_path):
    """A real scheduler and two worker processes; one of them is killed while parts are being evaluated."""
    write(MANY, LONG)
    product.evaluate("in", "whole")
    with started_cluster(tmp_path, env=environment()) as (address, groups):

        def kill():
            wait_for_parts(2)
            os.killpg(groups[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        product.evaluate("in", "out", dask=address)
        killer.join()
    assert contents("out") == contents("whole")


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_command_is_run_again(product, tmp_path, number):
    """Parts that were complete are not touched; workers finish the part that they are at, and the second run finds it."""
    write(MANY, LONG)
    product.evaluate("in", "whole")
    product.save("product")
    with started_cluster(tmp_path, env=environment()) as (address, _):
        call = [sys.executable, "-m", "onelayer.apps.cli", "eval", "product", "--input", "in", "--output", "out"]
        call += ["--dask", address]
        command = subprocess.Popen(call, env=environment(), stderr=subprocess.PIPE, text=True)
        wait_for_parts(2)
        command.send_signal(number)
        _, err = command.communicate()
        assert command.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
        if number == signal.SIGINT:
            assert err.startswith("interrupted after ")
            assert err.count("\n") == 1
        done = {path: path.stat().st_mtime_ns for path in Path("out").glob("*.parquet")}
        assert 2 <= len(done) < MANY
        second = subprocess.run(call, env=environment(), capture_output=True, text=True, check=True)
        assert f"of {MANY} parts complete from an earlier run" in second.stderr
    assert contents("out") == contents("whole")
    assert all(path.stat().st_mtime_ns == at for path, at in done.items())
