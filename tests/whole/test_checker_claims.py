"""What stands around the bound: shares of |f|, margins and conditions are proved too, or nothing is called VALID."""

import json

import pytest

import onelayer as ol
from checking import by_hand, check, forged, numbers
from onelayer.apps.cli import main
from onelayer.layer.layer import gate_layer

RELATIVE = {
    "inside": ("2 + sin(x1)*x2", [(0, 3), (-1, 1)]),
    "at a corner": ("exp(-x1)", [(0, 3)]),
    "attained exactly": ("-3 - x1**2; 5 + x1", [(-1, 1)]),
    "at a kink": ("abs(x1 - 0.5) + 0.125", [(0, 1)]),
    "endless slope": ("sqrt(x1) + 0.5", [(0, 4)]),
}


@pytest.fixture(scope="module")
def relative(tmp_path_factory):
    """Folders of relative claims, built when first asked for."""
    root, made = tmp_path_factory.mktemp("relative"), {}

    def folder(name):
        if name not in made:
            formula, domain = RELATIVE[name]
            found = ol.build(formula, domain, 0.05, relative=True, method="solved")
            made[name] = found.save(root / name.replace(" ", "-"))
        return made[name]

    return folder


def with_relative(**changes):
    def edit(record):
        about = record["evidence"]["relative"] | changes
        return record | {"evidence": record["evidence"] | {"relative": about}}

    return edit


@pytest.mark.parametrize("name", RELATIVE)
def test_a_share_of_f_is_proved(relative, name):
    found, record = check(relative(name)), json.loads((relative(name) / "certificate.json").read_text())
    assert record["verdict"] == "CERTIFIED"
    assert found.verdict == "VALID", str(found)
    about = record["evidence"]["relative"]
    assert f"= {about['share']!r}·m, |f| ≥ m = {about['least']!r}" in found.reason


@pytest.mark.parametrize("name", RELATIVE)
def test_a_smallest_f_above_the_truth_is_refuted(relative, tmp_path, name):
    """m larger, with the share that fits the tolerance: the absolute claim stays true, the relative one is false."""

    def edit(record):
        about = record["evidence"]["relative"]
        least = 1.1 * about["least"]
        return with_relative(least=least, share=record["tolerance"] / least * (1 + 2**-52))(record)

    found = check(forged(relative(name), tmp_path / "f", edit), seconds=60.0)
    assert found.verdict == "INVALID", str(found)
    assert "|f| ≥" in found.reason
    assert found.box is not None


@pytest.mark.parametrize(
    "changes", [{"share": 1e-9}, {"least": 1e-3}, {"least": 0.0}, {"share": "1"}, {"known": "sampled"}]
)
def test_a_share_that_does_not_fit_is_refuted(relative, tmp_path, changes):
    found = check(forged(relative("at a corner"), tmp_path / "f", with_relative(**changes)), seconds=60.0)
    assert found.verdict == "INVALID", str(found)


def test_the_report_sends_relative_claims_to_the_checker(relative):
    from onelayer.views.certificate_text import how_to_check

    assert "does not prove" not in how_to_check(ol.load(relative("at a corner")))


@pytest.mark.parametrize("name", ["lemma", "norm"])
def test_other_claims_of_the_record_are_not_confirmed(relative, tmp_path, name):
    edits = {
        "lemma": lambda r: r | {"evidence": r["evidence"] | {"lemma": "T = f"}},
        "norm": lambda r: r | {"norm": "mean absolute difference"},
    }
    assert check(forged(relative("at a corner"), tmp_path / "f", edits[name])).verdict == "NOT CHECKABLE"


JUMP = "where(x1 < 0.5, 0, 1) + where(x2 < 0.5, 0, 1)"


@pytest.mark.parametrize("formula", [JUMP, "where(x1 < 0.5, 0, 1) + x2", "where(x1 < 0.5, x2, 1)"])
@pytest.mark.parametrize(("margin", "verdict"), [(0.6, "NOT CHECKABLE"), (0.5, "NOT CHECKABLE"), (0.49, "VALID")])
def test_a_margin_that_leaves_nothing_is_not_valid(tmp_path, formula, margin, verdict):
    """Jumps in coordinates that nothing mixes: where one of them leaves nothing, nothing is left."""
    plain = by_hand(tmp_path / "f", formula, [(0, 1)] * 2, gate_layer(numbers(1.0), 2), 1.5)
    edit = {"margin": margin}
    found = check(forged(plain, tmp_path / "g", lambda r: r | edit, lambda t: t | edit), boxes=4000)
    assert found.verdict == verdict, str(found)
    assert verdict != "VALID" or "more than 0.49 away from every jump" in found.reason


@pytest.mark.parametrize(
    ("within", "verdict"),
    [
        ("x1**2 - 2*x1*x2 + x2**2 < 0", "NOT CHECKABLE"),
        ("x1 > 1", "NOT CHECKABLE"),
        ("x1*x2 > 0.99999", "VALID"),
        ("0.3 < x1 < 0.30001 and x2 < 1e-6", "VALID"),
        ("x1 >= 1", "VALID"),
    ],
)
def test_a_condition_that_holds_nowhere_is_not_valid(tmp_path, within, verdict):
    folder = by_hand(tmp_path / "f", "x1*x2", [(0, 1)] * 2, gate_layer(numbers(0.0), 2), 1.5, within=within)
    found = check(folder, boxes=4000)
    assert found.verdict == verdict, str(found)
    assert verdict != "VALID" or f"where {within}" in found.reason


@pytest.mark.usefixtures("as_user")
def test_not_checkable_has_a_status_of_its_own(relative, tmp_path, capsys):
    undecided = forged(relative("at a corner"), tmp_path / "u", lambda r: r | {"bound": None, "verdict": "UNDECIDED"})
    false = forged(relative("at a corner"), tmp_path / "f", with_relative(share=1e-9))
    assert [main(["check", str(f)]) for f in (relative("at a corner"), false, undecided, tmp_path)] == [0, 1, 3, 2]
    capsys.readouterr()
