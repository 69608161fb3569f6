"""The golden corpus: its record fits its cases, a small case is built again, and what is changed is reported.

Weights depend on the processor and on the versions of libraries, so they are not compared here; `golden.py compare` does it.
"""

import json

import pytest

import golden
from golden_cases import cases
from golden_differences import LARGER, differences, ratio

SMALL = ("kink-abs", "refused-word")
RECORD = golden.read(golden.RECORD)
CASES = RECORD["cases"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(folder, rows) of two cases, built now."""
    out = tmp_path_factory.mktemp("golden")
    return out, golden.rows_of([case for case in cases() if case.name in SMALL], out)


def matters(name, row, **changes):
    return [one.what for one in differences(name, CASES[name] | changes, row) if one.matters]


def test_the_record_has_every_case():
    assert CASES.keys() == {case.name for case in cases()}
    assert len(cases()) == len(CASES)  # no two have one name
    assert all(CASES[case.name]["command"] == case.command for case in cases())
    assert RECORD["commit"] == "774c3fcebae6"
    assert {row["status"] for row in CASES.values()} == {0, 1, 2}
    claimed = [verdict for row in CASES.values() for verdict in row.get("false", {}).values()]
    assert len(claimed) > 100
    assert "VALID" not in claimed


def test_small_cases_are_as_recorded(built):
    """Bounds, verdicts, exit statuses and the checker's answers, to false claims as well."""
    _, rows = built
    assert rows["refused-word"] == CASES["refused-word"]
    was, now = CASES["kink-abs"], rows["kink-abs"]
    assert [one for one in differences("kink-abs", was, now, same_machine=False) if one.matters] == []
    assert ratio(was["bound"], now["bound"]) <= LARGER
    assert now["false"].keys() == was["false"].keys()


def test_a_command_that_was_measured_is_not_built_again(built, monkeypatch):
    out, rows = built
    monkeypatch.setattr(golden, "run", None)
    assert golden.rows_of([case for case in cases() if case.name in SMALL], out) == rows


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"status": 1}, "status"),
        ({"verdict": "UNDECIDED"}, "verdict"),
        ({"check": "NOT CHECKABLE"}, "check"),
        ({"properties": ["increasing in x1"]}, "properties"),
        ({"weights": "0" * 64}, "weights"),
        ({"command": "build"}, "command (freeze it again)"),
    ],
)
def test_a_changed_record_is_reported(changes, what):
    row = CASES["kink-abs"]
    assert matters("kink-abs", row) == []
    assert matters("kink-abs", row, **changes) == [what]


def test_larger_bounds_and_contradictions_are_reported():
    row = CASES["kink-smooth"] | {"false": {}}
    bound, lower = row["bound"], row["lower"]
    old = CASES["kink-smooth"] | {"false": {}}

    def found(**changes):
        return [one.what.split(" ×")[0] for one in differences("c", old, row | changes) if one.matters]

    assert found(bound=1.009 * bound) == found(bound=0.9999 * bound) == []
    assert found(bound=1.011 * bound) == found(bound=None) == ["bound"]
    assert found(bound=0.999 * lower) == ["bound below an error proved before"]
    assert found(lower=1.001 * bound) == ["error above a bound proved before"]
    assert found(false={"bound": "VALID"}) == ["check of a false bound"]
    assert found(false={"bound": "INVALID"}) == []
    old |= {"arithmetic": "float32"}
    assert found(bound=1.5 * bound, arithmetic="float32") == []  # reported with its ratio alone


def test_the_script_ends_with_1_after_a_difference(built, tmp_path, monkeypatch, capsys):
    out, rows = built
    for status, verdict in ((0, rows["kink-abs"]["verdict"]), (1, "REFUTED")):
        changed = {name: row | ({"verdict": verdict} if name == "kink-abs" else {}) for name, row in rows.items()}
        record = tmp_path / "record.json"
        record.write_text(golden.record_text({"commit": "0", "machine": golden.machine()}, changed))
        assert json.loads(record.read_text())["cases"] == changed
        given = ["golden.py", "compare", "--record", str(record), "--out", str(out), "--only", *SMALL]
        monkeypatch.setattr("sys.argv", given)
        assert golden.main() == status
    assert "| kink-abs | verdict | REFUTED | CERTIFIED | **yes** |" in capsys.readouterr().out
