"""The labelled questions for verifiers: each case of the generator is proved again, and what verifiers say is judged rightly."""

import pytest

import marabou
import verifiers
from questions import problems, rows_of
from verifier_layers import cases

NAMES = [case.name for case in cases()]


def test_there_are_enough_cases_of_every_kind():
    assert len(set(NAMES)) == len(NAMES) >= 35
    for word in ("rising", "turning", "float32", "pruned", "student"):
        assert sum(word in name for name in NAMES) >= 4


@pytest.mark.long
@pytest.mark.parametrize("case", cases(), ids=NAMES)
def test_every_label_of_a_case_is_valid(case, tmp_path):
    pytest.importorskip("vnnlib", reason="pip install 'onelayer[verifiers]'")
    verifiers.generate(tmp_path, [case])
    assert problems(tmp_path / case.name) == []
    rows = rows_of(tmp_path / case.name)
    expected = [row["expected"] for row in rows if row["kind"] != "monotone"]
    assert expected.count("sat") == expected.count("unsat")
    if case.kinds == ("monotone",):
        (row,) = rows
        assert row["expected"] == ("unsat" if "rising" in case.name else "sat")
        assert abs(float(row["margin"]) / (int(case.name.split("-")[1]) / 100) - 1) < 0.1


def test_answers_are_judged_beside_the_truth():
    assert [verifiers.judged(*pair) for pair in [("unsat", "unsat"), ("sat", "sat")]] == ["proved", "refuted"]
    assert verifiers.judged("unsat", "sat") == verifiers.judged("sat", "unsat") == "wrong"
    assert verifiers.judged("timeout", "sat") == "undecided"
    above, apart = {"kind": "range", "property": "T <= 1.5"}, {"kind": "equivalence", "property": "|T1 - T2| <= 0.5"}
    assert verifiers._by_bounds({"lower": -9.0, "upper": 1.5}, above) == "unsat"
    assert verifiers._by_bounds({"lower": -9.0, "upper": 1.6}, above) == "unknown"
    assert verifiers._by_bounds({"lower": -9.0, "upper": 0.1}, apart) == "unknown"
    assert verifiers._by_bounds({"lower": float("nan"), "upper": float("nan")}, apart) == "unknown"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_marabou_reads_every_kind_of_question(tmp_path):
    pytest.importorskip("vnnlib", reason="pip install 'onelayer[verifiers]'")
    pytest.importorskip("maraboupy", reason="pip install 'onelayer[verifiers]'")
    chosen = [case for case in cases() if case.name in ("sine", "sine-student")]
    verifiers.generate(tmp_path, chosen)
    for case in chosen:
        folder = tmp_path / case.name
        for row in rows_of(folder):
            paths = [folder / name for name in row["networks"].split()]
            said, _ = marabou.answer(paths, folder / row["vnnlib"], 5)
            assert said in ("unknown", "timeout", row["expected"])
