"""Studies: what is stored survives a kill and is never measured twice, failures stay apart, rates cover what they should."""

import contextlib
import csv
import json
import linecache
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import onelayer as ol
import studying
from onelayer.apps.cli import main
from onelayer.common.errors import InputError
from onelayer.experiments.study import Study, Sweep, measures
from onelayer.experiments.study.fitted_rates import PREDICTIONS, RateSpec, fit_rates
from onelayer.experiments.study.run import measure_point
from onelayer.experiments.study.store import Outcome, Store
from onelayer.experiments.study.summary import TableSpec, cell, summary_table
from onelayer.experiments.study.sweep import names, read, sweep_of
from pages import ROOT, SUPPORT, with_package
from studying import counted
from sweeps import STUDIES, section
from sweeps import stored as kept

SMALL = """
title = "small"
[targets.wave]
formula = "sin(x1)"
domain = "0:1"
[[sweep]]
measure = "construct"
axes = { target = "wave", tolerance = [0.1, 0.05, 0.02, 0.01], method = "representative" }
exclude = [{ tolerance = 0.02 }]
[[rate]]
x = "tolerance"
y = "units"
theory = "lipschitz"
[[figure]]
x = "tolerance"
y = "units"
"""


# -- runs ---------------------------------------------------------------------------------------------------------------


def test_a_killed_run_loses_and_repeats_nothing(tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    axes = {"n": list(range(12)), "log": str(log), "seconds": 0.25}
    code = (
        "import sys, json; from onelayer.experiments.study import Sweep, study; import studying;"
        "study(Sweep.of_axes(studying.noted, json.loads(sys.argv[1])), sys.argv[2], workers=2)"
    )
    env = {**with_package(), "OMP_NUM_THREADS": "1"}
    env["PYTHONPATH"] += os.pathsep + str(SUPPORT)
    call = [sys.executable, "-c", code, json.dumps(axes), str(out)]
    sweep = Sweep.of_axes(studying.noted, axes)
    store = Store(out / "points.sqlite")
    first = subprocess.Popen(call, env=env, start_new_session=True)
    while first.poll() is None and not (store.path.exists() and len(stored(store)) >= 3):
        time.sleep(0.02)
    assert first.poll() is None, "it was over before it could be killed"
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    gone(first.pid)
    finished = {task.point["n"] for task in sweep.tasks if task.key in stored(store)}
    assert 3 <= len(finished) < 12
    before = counted(log)
    assert finished <= set(before)  # nothing is stored that was not measured

    assert subprocess.run(call, env=env, check=False).returncode == 0
    after = counted(log)
    assert set(after) == set(range(12))
    assert all(after[n] == 1 for n in finished)  # what was stored was not measured again
    study = ol.study(sweep, out, workers=1)
    assert [row["square"] for row in study.rows] == [n * n for n in range(12)]
    assert counted(log) == after  # and a finished study measures nothing


def gone(group: int) -> None:
    """Wait for the other processes of a group: they end by themselves."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(600):
            os.killpg(group, 0)
            time.sleep(0.05)
        raise AssertionError("processes were left behind")


def stored(store: Store) -> dict:
    with contextlib.suppress(Exception):  # its tables are being made
        return store.outcomes()
    return {}


def test_a_point_that_fails_is_recorded_and_the_rest_is_done(tmp_path, capsys):
    log = tmp_path / "log"
    sweep = Sweep.of_axes(studying.noted, {"n": [1, 2, 3], "log": str(log), "fail": 2})
    study = ol.study(sweep, tmp_path / "out", workers=1)
    assert [row["n"] for row in study.done] == [1, 3]
    assert study.failed[0]["error"] == "ValueError: n = 2 is not liked"
    ol.study(sweep, tmp_path / "out", workers=1)
    assert counted(log)[2] == 1  # not tried again
    ol.study(sweep, tmp_path / "out", workers=1, retry=True)
    assert counted(log) == {1: 1, 2: 2, 3: 1}
    assert "n = 2 is not liked" in study.report(tmp_path / "report.html").read_text()


def test_a_process_that_dies_takes_only_its_own_point_along(tmp_path):
    study = ol.study(Sweep.of_axes(studying.deadly, {"n": [1, 2, 3, 4, 5]}), tmp_path, workers=2)
    assert [row["n"] for row in study.done] == [1, 3, 4, 5]
    assert "the process died" in study.failed[0]["error"]


def test_results_are_plain(tmp_path):
    study = ol.study(Sweep.of_axes(studying.wrong, {"n": [1]}), tmp_path, workers=1)
    assert "'list' is list" in study.failed[0]["error"]


def test_a_changed_sweep_goes_on_with_what_it_shares(tmp_path):
    log = tmp_path / "log"
    for values in ([1, 2, 3], [2, 3, 4]):
        study = ol.study(Sweep.of_axes(studying.noted, {"n": values, "log": str(log)}), tmp_path / "out", workers=1)
    assert [row["n"] for row in study.rows] == [2, 3, 4]
    assert counted(log) == {1: 1, 2: 1, 3: 1, 4: 1}
    assert sorted(Store(tmp_path / "out" / "points.sqlite").sweeps().values()) == [3, 3]


def test_no_point_is_stored_twice(tmp_path):
    sweep = Sweep.of_axes(studying.noted, {"n": [1], "log": "x"})
    store = Store.open(tmp_path, sweep)
    assert store.write(sweep.tasks[0], Outcome("done", {"square": float("inf")}, "", 0.0, {}))
    assert not store.write(sweep.tasks[0], Outcome("done", {"square": 5}, "", 0.0, {}))
    assert store.outcomes()[sweep.tasks[0].key].result == {"square": None}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE points SET result = '{bad'",
        "UPDATE points SET result = '3'",
        "UPDATE points SET versions = ''",
        "DROP TABLE points; CREATE TABLE points (a)",
    ],
)
def test_a_damaged_store_is_refused_in_one_line(damage, tmp_path):
    sweep = Sweep.of_axes(studying.noted, {"n": [1], "log": str(tmp_path / "log")})
    ol.study(sweep, tmp_path / "out", workers=1)
    with contextlib.closing(sqlite3.connect(tmp_path / "out" / "points.sqlite")) as db:
        db.executescript(damage)
    with pytest.raises(InputError, match=r"points\.sqlite"):
        ol.study(sweep, tmp_path / "out", workers=1)


def test_only_so_many_points_and_a_word_on_the_time_left(tmp_path):
    told = []
    sweep = Sweep.of_axes(studying.noted, {"n": [1, 2, 3], "log": str(tmp_path / "log")})
    study = ol.study(sweep, tmp_path / "out", workers=1, only=1, progress=lambda *a: told.append(a))
    assert (len(study.rows), study.missing) == (1, 2)
    assert told[0] == ("0 of 3 points", 0.0)
    assert told[-1] == ("1 of 3 points, 0 s left", 1 / 3)


def test_an_interrupt_leaves_a_store_to_go_on_with(tmp_path):
    def stop(text, fraction):
        if fraction > 0.5:
            raise KeyboardInterrupt

    sweep = Sweep.of_axes(studying.noted, {"n": [1, 2, 3], "log": str(tmp_path / "log")})
    with pytest.raises(KeyboardInterrupt):
        ol.study(sweep, tmp_path / "out", workers=1, progress=stop)
    ol.study(sweep, tmp_path / "out", workers=1)
    assert counted(tmp_path / "log") == {1: 1, 2: 1, 3: 1}


def test_an_interrupt_on_the_command_line_is_one_sentence(tmp_path, monkeypatch, capsys, as_user):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ol, "study", stopped)
        assert main(["study", "builtin:steps", "--out", str(tmp_path / "out")]) == 130
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == "interrupted before the first point; run the same command again"
    sweep = Sweep.of_axes(studying.stubborn, {"n": [1, 2]})
    with pytest.raises(KeyboardInterrupt, match="after 0 of 2 points; run the same command again to resume"):
        ol.study(sweep, tmp_path / "other", workers=1)


def test_a_study_without_its_scheduler_leaves_nothing(tmp_path, monkeypatch, as_user):
    monkeypatch.setattr("onelayer.common.cluster.CONNECT_TIMEOUT", "1s")
    with pytest.raises(InputError, match="a Dask scheduler such as"):
        ol.study("builtin:steps", tmp_path / "out", dask="tcp://127.0.0.1:9")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="found: both"):
        ol.study("builtin:steps", tmp_path / "out", dask="tcp://127.0.0.1:9", workers=2)


def test_what_an_interrupt_cut_short_is_not_stored(tmp_path):
    """Building and training answer an interrupt with the best so far: no result of a point."""
    before = signal.getsignal(signal.SIGINT)
    sweep = Sweep.of_axes(studying.stubborn, {"n": [1, 2]})
    with pytest.raises(KeyboardInterrupt):
        ol.study(sweep, tmp_path, workers=1)
    assert Store(tmp_path / "points.sqlite").outcomes() == {}
    assert signal.getsignal(signal.SIGINT) is before


# -- sweeps -------------------------------------------------------------------------------------------------------------


def test_a_study_from_a_file_on_the_command_line(tmp_path, capsys, as_user):
    file, out = tmp_path / "small.toml", tmp_path / "out"
    file.write_text(SMALL)
    assert main(["study", str(file), "--out", str(out), "--workers", "1", "--only", "1"]) == 1  # two are left
    assert main(["study", str(file), "--out", str(out), "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "3 points done, 0 failed, 0 to do" in printed
    assert "units ~ tolerance^b" in printed
    with (out / "points.csv").open() as table:
        assert [(row["tolerance"], row["units"]) for row in csv.DictReader(table)] == [
            ("0.1", "11"), ("0.05", "21"), ("0.01", "101"),
        ]  # fmt: skip
    page = (out / "report.html").read_text()
    assert 'id="figure-1"' in page
    assert "http" not in page.split("<script>")[0].replace("http-equiv", "")
    assert main(["study", str(file), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rates"][0]["theory"] == "-1"


def test_a_study_from_axes(tmp_path, capsys, as_user):
    axes = ["--axis", "target=sin-sum", "--axis", "tolerance=3,2", "--axis", "method=representative"]
    assert main(["study", *axes, "--out", str(tmp_path), "--workers", "1"]) == 0
    assert "2 points done" in capsys.readouterr().out
    assert main(["study", "--list"]) == 0
    assert "builtin:epsilon" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("tolerance = [", "tolerence = ["), "'tolerence'"),
        (("measure = \"construct\"", "measure = \"guess\""), "a measure, one of"),
        (("target = \"wave\"", "target = \"surf\""), "'surf'"),
        (("[0.1, 0.05", "[\"low\", 0.05"), "tolerance, a number"),
        (("exclude = [{ tolerance", "exclude = [{ tol"), "'tol'"),
        (("theory = \"lipschitz\"", "theory = \"magic\""), "'magic'"),
        (("title = \"small\"", "titel = \"small\""), "'titel'"),
        (("domain = \"0:1\"", ""), "formula and domain"),
        (("[[sweep]]", "[[sweep"), "TOML in"),
        (("[[sweep]]", "[sweep]"), "[[sweep]]"),
        (("[0.1, 0.05", "[nan, 0.05"), "finite numbers"),
        (("[0.1, 0.05", "[[0.1], 0.05"), "finite numbers"),
        (("formula = \"sin(x1)\"", "formula = 3"), "formula, text"),
        (("[targets.wave]", "[targets]\nwave = 3\n[targets.other]"), "wave"),
        (("target = \"wave\"", "target = \"wave\", formula = \"x1\""), "axis domain"),
        (("y = \"units\"\ntheory", "y = 3\ntheory"), "y, the name of a column"),
        (("theory = \"lipschitz\"", "where = 3"), "where, a table"),
        (("theory = \"lipschitz\"", "by = [3]"), "by, names of columns"),
        (("theory = \"lipschitz\"", "dimension = -1"), "dimension, a whole"),
        (("theory = \"lipschitz\"", "law = \"cubic\""), "'cubic'"),
        (("theory = \"lipschitz\"\n[[figure]]", "[[figure]]\nscale = \"round\""), "'round'"),
        (("theory = \"lipschitz\"\n[[figure]]", "[[table]]\nby = []\n[[figure]]"), "by and columns"),
        (("target = \"wave\", ", ""), "axis target"),
        (("[targets.wave]\nformula = \"sin(x1)\"\ndomain = \"0:1\"", "targets = 3"), "targets, a table"),
        (("measure = \"construct\"", "full = \"no\""), "full, true or false"),
        (("[0.1, 0.05", f"[{10**400}, 0.05"), "tolerance, a number"),
        (("[0.1, 0.05", f"{'[' * 2000}{']' * 2000}, [0.1, 0.05"), "TOML in"),
        (("measure = \"construct\"", "full = true"), "at least one point"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_in_one_line(change, words, tmp_path, capsys, as_user):
    file = tmp_path / "wrong.toml"
    assert change[0] in SMALL
    file.write_text(SMALL.replace(*change))
    assert main(["study", str(file), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_other_bad_input(tmp_path, capsys, as_user):
    (tmp_path / "points.sqlite").write_text("not a database, but long enough to be taken for one " * 30)
    sweep = Sweep.of_axes(studying.noted, {"n": [1], "log": "x"})
    for call in (
        lambda: ol.study("builtin:nothing"),
        lambda: ol.study(tmp_path / "none.toml"),
        lambda: ol.study(sweep, tmp_path),
        lambda: ol.study(sweep, tmp_path / "points.sqlite"),
        lambda: ol.study(sweep, tmp_path / "out", workers=0),
        lambda: ol.study(sweep, tmp_path / "out", only=-1),
        lambda: Sweep.of_axes(studying.noted, {"n": []}),
        lambda: Sweep.of_axes(
            studying.noted, {"n": list(range(1000)), "m": list(range(10**4)), "k": list(range(10**4))}
        ),
        lambda: Sweep.of_axes(3, {"n": [1]}),
    ):
        with pytest.raises(InputError):
            call()
    assert main(["study"]) == 2
    assert main(["study", "--axis", "target=franke", "--axis", "target=runge", "--axis", "tolerance=1"]) == 2
    assert main(["study", "--axis", "tolerance", "--out", str(tmp_path / "out")]) == 2
    assert "change:" in capsys.readouterr().err


@pytest.mark.parametrize("name", names())
def test_built_in_studies_are_well_formed(name):
    quick, full = sweep_of(f"builtin:{name}"), sweep_of(f"builtin:{name}", full=True)
    assert quick.tasks
    assert {task.key for task in quick.tasks} <= {task.key for task in full.tasks}
    assert quick.title
    assert quick.about
    titles = [part.title for part in (*full.rates, *full.figures, *full.tables)]
    texts = (quick.about, quick.limits, *titles)
    assert not [text for text in texts if "](" in text]  # a page shows links as they stand
    assert not [title for title in titles if "`" in title]


def test_a_report_marks_code_and_escapes_the_rest(tmp_path):
    sweep = replace(Sweep.of_axes(studying.noted, {"n": [1], "log": str(tmp_path / "log")}), about="`n` is < 2")
    page = ol.study(sweep, tmp_path / "out", workers=1).report(tmp_path / "report.html").read_text()
    assert "<p><code>n</code> is &lt; 2</p>" in page


def test_the_key_says_what_is_measured():
    one, two = (read({"sweep": [{"axes": {"target": "sin-sum", "tolerance": t}}]}, "x") for t in (1, 1.0))
    assert one.tasks[0].key == two.tasks[0].key
    assert one.digest == two.digest
    other = {"targets": {"sin-sum": {"formula": "sin(x1)", "domain": "0:1"}}}
    changed = read({**other, "sweep": [{"axes": {"target": "sin-sum", "tolerance": 1}}]}, "x")
    assert changed.tasks[0].key != one.tasks[0].key


def test_a_changed_function_is_measured_anew(tmp_path):
    file = tmp_path / "mine.py"
    found = []
    for factor in (2, 3, 3):
        file.write_text(f"def mine(point):\n    return {{'y': {factor} * point['n']}}\n")
        linecache.checkcache()
        space = {}
        exec(compile(file.read_text(), file, "exec"), space)
        study = ol.study(Sweep.of_axes(space["mine"], {"n": [1]}), tmp_path / "out", workers=1)
        found.append((study.rows[0]["y"], study.rows[0]["spent"]))
    assert [y for y, _ in found] == [2, 3, 3]
    assert found[1] == found[2]  # stored


def test_every_measure_says_what_it_does_and_has_a_home():
    assert {found.name for found in measures.all_measures()} == set(measures.MODULES)
    for found in measures.all_measures():
        assert found.summary


def test_importing_studies_imports_neither_joblib_nor_dask_nor_torch():
    heavy = "('joblib', 'dask', 'distributed', 'torch')"
    code = f"import sys, onelayer as ol; ol.study; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=with_package()).returncode == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "axes", "expected"),
    [
        ("attention", {"tolerance": 0.01, "attention": "adaptive"}, {"verdict": "CERTIFIED", "units": 4}),
        ("train", {"budget": 200, "steps": 5, "optimizer": "sgd"}, {"heads": 1, "dimension": 2}),
        ("sample", {"samples": 40, "lipschitz": 1.0, "tolerance": 0.5}, {"proof": "bisect"}),
        ("sample", {"samples": 40, "way": "trained", "budget": 200, "steps": 5}, {"proof": "none"}),
        ("contest", {"tolerance": 0.1, "steps": 5}, {"theorem_units": 8930, "verdict": "CERTIFIED"}),
        ("heads", {"way": "memory", "budget": 100}, {"heads": 1, "rank": 1, "proof": "analytic"}),
        ("roles", {"way": "network", "budget": 150}, {"gates": 0, "relus": 14, "proof": "bisect"}),
        ("corrected", {"units": 4, "hinges": 4}, {"gates": 4, "relus": 4}),
    ],
)
def test_measures_say_what_was_asked(name, axes, expected):
    (task,) = Sweep.of_axes(name, {"target": "sin-sum", **axes}).tasks
    outcome = measure_point(task.measure.function, task.point)
    assert outcome.error == ""
    assert expected.items() <= outcome.result.items()
    assert outcome.result["observed"] > 0
    assert outcome.result.get("bound", math.inf) >= outcome.result["observed"]
    assert set(outcome.versions) >= {"python", "torch", "onelayer"}


def test_tables_sum_up_over_seeds():
    assert cell([3, 3, None]) == "3"
    assert cell([1.0, 2.0, 40.0]) == "2 (1 … 40)"
    assert cell(["b", "a", "b"]) == "a, b"
    assert cell([None]) == "–"
    rows = [{"f": f, "same": 1, "seed": s, "units": s + 1} for f in ("p", "q") for s in range(3)]
    table = summary_table(rows, TableSpec(("f", "same"), ("units",)))
    assert table.columns == ("f", "units")
    assert table.rows == [("p", "2 (1 … 3)"), ("q", "2 (1 … 3)")]
    with pytest.raises(InputError, match="entries of"):
        TableSpec.read({"by": ["f"], "columns": ["units"], "over": "seed"})


# -- rates --------------------------------------------------------------------------------------------------------------


@given(st.floats(-4, 4), st.floats(0.1, 5), st.integers(0, 2**31), st.sampled_from(("power", "exponential")))
def test_the_interval_covers_the_exponent(b, scale, seed, law):
    """Noise with a known spread: the interval, here widened to what 40 draws allow, covers the exponent."""
    rng = np.random.default_rng(seed)
    x = np.geomspace(1, 1000, 60)
    D = 2
    y = scale * (x**b if law == "power" else np.exp(-b * x ** (1 / D))) * np.exp(0.05 * rng.standard_normal(60))
    rows = [{"x": float(u), "y": float(v), "dimension": D} for u, v in zip(x, y, strict=True)]
    (rate,) = fit_rates(rows, RateSpec("x", "y", law=law))
    half = (rate.high - rate.low) / 2
    assert abs(rate.exponent - b) <= 2.5 * half  # five standard errors
    assert half < 0.05


def test_the_interval_is_of_95_percent():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        x = np.geomspace(1, 100, 8)
        rows = [{"x": float(u), "y": float(u**-2 * np.exp(0.1 * rng.standard_normal()))} for u in x]
        (rate,) = fit_rates(rows, RateSpec("x", "y"))
        covered += rate.low <= -2 <= rate.high
    assert 0.92 <= covered / 400 <= 0.98


def test_theory_can_be_contradicted():
    rows = [{"x": t, "y": t**-2 * w, "dimension": 1} for t, w in ((1, 1.0), (0.1, 1.01), (0.01, 0.99), (0.001, 1.0))]
    (rate,) = fit_rates(rows, RateSpec("x", "y", theory="lipschitz"))
    assert rate.agrees is False
    assert rate.cells[-2:] == ("-1", "no")
    (rate,) = fit_rates(rows, RateSpec("x", "y", theory="lipschitz", dimension=2))
    assert rate.agrees is True
    (rate,) = fit_rates(rows, RateSpec("x", "y"))
    assert rate.agrees is None
    assert PREDICTIONS["second-order"].agrees(-0.9, -0.8, 2)
    assert PREDICTIONS["additive"].agrees(1.2, 1.3, 1)
    assert not PREDICTIONS["additive"].agrees(1.6, 1.7, 1)
    assert not PREDICTIONS["second-order"].agrees(-1.9, -1.8, 2)
    assert not PREDICTIONS["analytic"].agrees(-0.1, 0.3, 2)


def test_seeds_that_change_nothing_are_no_evidence():
    points = ((1.0, 1.0), (0.1, 9.0), (0.01, 110.0), (0.001, 950.0))
    alone, often = ([{"x": x, "y": y, "seed": s} for x, y in points for s in range(n)] for n in (1, 30))
    (one,), (many,) = (fit_rates(rows, RateSpec("x", "y")) for rows in (alone, often))
    assert one.cells == many.cells
    (shaken,) = fit_rates([*often, {"x": 1.0, "y": 1.01, "seed": 30}], RateSpec("x", "y"))
    assert shaken.points == 121


def test_targets_of_different_dimension_are_fitted_apart():
    rows = [{"x": t, "y": t**-D, "dimension": D} for D in (1, 2) for t in (1.0, 0.1, 0.01, 0.001)]
    rates = fit_rates(rows, RateSpec("x", "y", theory="lipschitz"))
    assert [(rate.dimension, rate.agrees) for rate in rates] == [(1, True), (2, True)]


def test_rates_want_three_different_points():
    rows = [{"x": x, "y": y} for x, y in ((1, 1), (2, 2), (2, 3), (0, 1), (3, None), (4, float("inf")))]
    assert fit_rates(rows, RateSpec("x", "y")) == []


def test_the_theorems_rate_is_found(tmp_path):
    """The paper's construction, in truth: units ~ ε^(−D)."""
    axes = {"target": "bump-1", "tolerance": [0.1, 0.03, 0.01, 0.003], "method": "representative"}
    study = ol.study(Sweep.of_axes("construct", axes), tmp_path, workers=1)
    (rate,) = fit_rates(study.done, RateSpec("tolerance", "units", theory="lipschitz"))
    assert abs(rate.exponent + 1) < 0.05


def test_a_table_is_read_back(tmp_path):
    sweep = sweep_of(write(tmp_path / "small.toml", SMALL))
    study = ol.study(sweep, tmp_path / "out", workers=1)
    again = Study.read(sweep, tmp_path / "out" / "points.csv")
    assert [rate.cells for rate in again.rates()] == [rate.cells for rate in study.rates()]
    from pyarrow import parquet

    read_back = parquet.read_table(study.parquet(tmp_path / "points.parquet")).to_pylist()
    assert [row["units"] for row in read_back] == [row["units"] for row in study.rows]


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_says_what_is_stored(name):
    """Every number of docs/build/study.md comes from the tables in docs/studies, and every point is there."""
    study = kept(name)
    assert study.missing == 0
    assert section(study, name) in (ROOT / "docs" / "build" / "study.md").read_text()
    assert all((ROOT / "docs" / "studies" / f"{name}-{i + 1}.svg").exists() for i in range(len(study.sweep.figures)))


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
