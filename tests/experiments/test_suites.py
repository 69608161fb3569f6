"""Suites: every row is read, a few are measured, a run resumes, observed ranges are right, and the pages say what is stored."""

import csv
import math

import numpy as np
import pytest

import onelayer as ol
import suites
from onelayer.apps.cli import main
from onelayer.common.errors import InputError
from onelayer.experiments.extremes import largest, observed_range
from onelayer.experiments.study import Study
from onelayer.experiments.study.measures.construction import target_at
from onelayer.experiments.study.store import Outcome
from onelayer.experiments.study.sweep import BUILTIN_FOLDER, read, sweep_of, targets_in
from onelayer.formula import evaluate, parse
from pages import ROOT

SUITE = 'title = "mine"\ntargets = "mine.csv"\n[[sweep]]\nmeasure = "suite"\naxes = { share = 0.05 }\n'
ROWS = 'product,x*lambd,x,0,1,lambd,1,2\nlarger,"max(x, y)",x,0,1,y,-1,pi\n'
NAMES = {"lambd", "I", "gamma", "beta", "pr", "epsilon", "E_n", "g_", "mob", "k_spring"}  # odd ones, as variables


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.csv").write_text(ROWS)
    (tmp_path / "mine.toml").write_text(SUITE)
    return tmp_path / "mine.toml"


# -- what is read -------------------------------------------------------------------------------------------------------


def test_the_feynman_hundred_is_read_row_by_row():
    sweep = sweep_of("builtin:feynman")
    full = sweep_of("builtin:feynman", full=True)
    assert [len(s.tasks) for s in (sweep, full)] == [100, 200]
    assert {task.point["share"] for task in full.tasks} == {0.01, 0.001}
    rows = list(csv.reader((BUILTIN_FOLDER / "feynman.csv").read_text().splitlines()))
    assert [row[0] for row in rows] == [task.point["target"] for task in sweep.tasks]
    seen: set[str] = set()
    for row, task in zip(rows, sweep.tasks, strict=True):
        names, low, high = row[2::3], np.array(row[3::3], dtype=float), np.array(row[4::3], dtype=float)
        assert (low < high).all()
        formula = parse(task.point["formula"], tuple(names))
        assert set(formula.variables) == set(range(1, len(names) + 1))
        inside = low + np.linspace(0.3, 0.7, len(names)) * (high - low)
        assert np.isfinite(evaluate(formula, inside[None])).all()
        seen |= set(names)
    assert seen >= NAMES
    counts = [len(row) // 3 for row in rows]
    assert [counts.count(n) for n in range(1, 10)] == [1, 15, 36, 27, 13, 6, 0, 1, 1]


def test_a_target_of_the_suite_has_its_box():
    (task,) = [task for task in sweep_of("builtin:feynman").tasks if task.point["target"] == "I.15.3x"]
    target = target_at(task.point)
    assert target.domain.names == ("x", "u", "c", "t")
    assert list(zip(target.domain.lower, target.domain.upper, strict=True)) == [(5, 10), (1, 2), (3, 20), (1, 2)]
    assert target(np.array([[7.0, 1.5, 5.0, 2.0]]))[0, 0] == pytest.approx(4 / math.sqrt(1 - 0.09))


def test_the_nine_systems_stand_at_epsilon_and_at_a_hundredth():
    tasks = sweep_of("builtin:dynamics").tasks
    by_name: dict[str, list[float]] = {}
    for task in tasks:
        target_at(task.point)
        by_name.setdefault(task.point["target"], []).append(task.point["tolerance"])
    assert len(by_name) == 9
    assert all(large == pytest.approx(100 * small) for large, small in by_name.values())
    assert set(suites.ABSTRACTIONS) < set(by_name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,x*y,x,0,1,y,0", "7 cells in line 1"),
        ("a,x\n", "2 cells"),
        ("a,x,x,0,1\n\na,x,x,0,2\n", "'a' again in line 3"),
        ("a,x,,0,1\n", "5 cells in line 1"),
        ("\n", "no line"),
    ],
)
def test_a_suite_that_is_none_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        targets_in(text, "mine.csv")


@pytest.mark.parametrize("file", ["none.csv", "../mine.csv", "mine.toml"])
def test_a_suite_lies_beside_its_study(mine, file):
    with pytest.raises(InputError, match="file beside the study"):
        read({"targets": file, "sweep": [{"measure": "suite", "axes": {"share": 0.1}}]}, "x", False, mine.parent)


# -- what is measured ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "domain", "low", "high"),
    [
        ("x*y", {"x": (-1, 2), "y": (-3, 1)}, -6, 3),
        ("exp(-50*((x - 0.3)**2 + (y - 0.7)**2 + (z - 0.1)**2))", "0:1", math.exp(-50 * 1.79), 1),
        ("-(x1 - 0.123)**2 + x2*x3*x4*x5*x6*x7*x8*x9", "0:1", -(0.877**2), 1),
        ("sin(20*x1*x2)", "0:1", -1, 1),
    ],
)
def test_the_observed_range_is_the_range(formula, domain, low, high):
    found = observed_range(ol.Target(formula, domain))
    assert found == pytest.approx((low, high), abs=1e-12)
    assert low - 1e-12 <= found[0] < found[1] <= high + 1e-12


def test_the_widest_output_has_the_range_and_what_is_not_finite_is_skipped():
    assert observed_range(ol.Target("x; 3*x; -x", [(0, 1)])) == (0, 3)
    target = ol.Target("x", [(0, 1)])
    assert largest(lambda x: np.where(x[:, 0] > 0.5, np.nan, x[:, 0]), target) == pytest.approx(0.5, abs=1e-8)


def test_a_suite_runs_resumes_and_stays_within_its_share(mine, tmp_path, capsys, as_user):
    out = tmp_path / "out"
    assert main(["study", str(mine), "--out", str(out), "--workers", "1", "--only", "1"]) == 1  # one is missing
    assert "1 to do" in capsys.readouterr().out
    with (out / "points.csv").open() as file:
        (first,) = csv.DictReader(file)
    assert main(["study", str(mine), "--out", str(out), "--workers", "1"]) == 0
    study = ol.study(mine, out, workers=1)
    assert [row["target"] for row in study.rows] == ["product", "larger"]
    assert study.rows[0]["processor"] == float(first["processor"])  # not measured again
    for row, (low, high) in zip(study.rows, [(0, 2), (0, math.pi)], strict=True):
        assert (row["low"], row["high"]) == (low, high)
        assert row["tolerance"] == 0.05 * (high - low)
        assert row["verdict"] == "CERTIFIED"
        assert row["observed"] <= row["bound"] <= row["tolerance"]
        assert row["ratio"] == row["bound"] / row["tolerance"]
        assert row["processor"] > 0
        assert not row["reason"]


@pytest.mark.long
def test_a_share_or_a_tolerance(mine, tmp_path):
    axes = {"target": "larger", "share": [0.0, 0.1], "tolerance": [0.0, 0.1]}
    block = {"measure": "suite", "axes": axes}
    study = ol.study(read({"targets": "mine.csv", "sweep": [block]}, "x", folder=mine.parent), tmp_path / "out")
    assert [row["status"] for row in study.rows] == ["failed", "done", "done", "failed"]
    assert "a share or a tolerance" in study.rows[0]["error"]
    assert study.rows[1]["tolerance"] == 0.1


def test_checked_and_judged_rows_share_their_keys_with_the_study(mine, tmp_path):
    sweep = sweep_of(mine)
    part = suites.chosen(sweep, ["product"], [0.05], suites.thorough(True, True))
    assert [task.key for task in part.tasks] == [sweep.tasks[0].key]
    (row,) = ol.study(part, tmp_path / "out", workers=1).rows
    assert row["checked"] == "VALID"
    assert row["check_seconds"] > 0
    assert ol.study(sweep, tmp_path / "out", workers=1, only=0).rows == (row,)
    with pytest.raises(InputError, match="rows of the suite"):
        suites.chosen(sweep, ["other"], [0.05], suites.thorough(False, False))


def test_the_largest_error_of_a_row_is_looked_for():
    target = ol.Target("x*y", [(0, 1), (0, 1)])
    built = ol.build(target, tolerance=0.05)
    seen = largest(lambda x: suites.errors(built, target, x), target)
    assert 0.9 * built.certificate.observed <= seen <= built.certificate.bound


# -- pages --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", suites.SUITES)
def test_a_page_says_what_is_stored(name):
    """Every number on the page comes from the table in docs/studies."""
    study = suites.stored(name)
    page = (ROOT / "docs" / "run" / f"{name}.md").read_text()
    assert suites.SECTIONS[name](study) in page
    known = {(task.point["target"], task.point["share"]) for task in study.sweep.tasks}
    assert {(row["target"], row["share"]) for row in study.rows} <= known
    assert all(row["status"] in ("done", "failed") for row in study.rows)


def row_of(task, verdict="CERTIFIED", **other):
    result = {"dimension": 1, "tolerance": 0.1, "units": 3, "parameters": 1234, "bound": 0.05, "observed": 0.04}
    result |= {"verdict": verdict, "ratio": 0.5, "processor": 1.25, "wall": 2.0, "reason": "", **other}
    return task.key, Outcome("done", result, "", 3.0, {})


def test_what_fails_stays_in_the_table_with_the_reason():
    sweep = sweep_of("builtin:feynman")
    first, second, third, fourth = sweep.tasks[:4]
    undecided = {"ratio": 3.0001, "bound": 0.30001, "observed": 0.0699, "judged": 0.08, "reason": "no | proof"}
    outcomes = dict(
        [
            row_of(first, checked="VALID", check_seconds=0.26),
            row_of(second, "UNDECIDED", **undecided),
            row_of(third, "REFUTED", ratio=None, observed=0.5, processor=9.0),
            (fourth.key, Outcome("failed", {}, "onelayer.common.errors.InputError: asked: a; found: b", 1.0, {})),
        ]
    )
    study = Study.of(sweep, outcomes)
    lines = suites.feynman_section(study).splitlines()
    rows = {line.split(" | ")[0].strip("| "): line for line in lines if line.count("|") > 8}
    assert rows["I.6.2a"].endswith("| 1 | 3 | 1,234 | 0.5 | 1.2 | 2.0 | CERTIFIED | VALID, 0.3 s |  |")
    assert "| 3.01 | 1.2 | 2.0 | UNDECIDED | – | observed at 69 % of the tolerance (80 % after" in rows["I.6.2"]
    assert rows["I.6.2"].endswith("after an ascent); no \\| proof |")
    assert rows["I.6.2b"].endswith("| – | 9.0 | 2.0 | REFUTED | – | observed at 500 % of the tolerance |")
    assert rows["I.8.14"].endswith("| refused | – | asked: a; found: b |")
    assert "| not measured |" in rows["III.21.20"]
    assert sum("`" in line for line in lines) == 100
    (head,) = [line for line in lines if line.startswith("**")]
    assert head.startswith("**1 of 100 are CERTIFIED** (4 measured); the median is 1.2 processor s.")
    assert "VALID to 1 of 1" in head
    assert "0 UNDECIDED rows are observed below half" in head  # 0.0699 of 0.1, and the ascent saw more
    key, low = row_of(second, "UNDECIDED", **{**undecided, "observed": 0.0499, "judged": 0.0499})
    assert "1 UNDECIDED row is" in suites.feynman_section(Study.of(sweep, {**outcomes, key: low}))
    key, high = row_of(second, "UNDECIDED", **{**undecided, "observed": 0.0499, "judged": 0.05})
    assert "0 UNDECIDED rows are" in suites.feynman_section(Study.of(sweep, {**outcomes, key: high}))
    assert "| 4 | 27 | 0 | 0 | 0 | 1 | – |" in lines
    assert "| 3 | 36 | 0 | 0 | 1 | 0 | 9.0 |" in lines
