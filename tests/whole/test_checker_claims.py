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


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", RELATIVE)
def test_a_share_of_f_is_proved(relative, name):
    found, record = check(relative(name)), json.loads((relative(name) / "certificate.json").read_text())
    assert record["verdict"] == "CERTIFIED"
    assert found.verdict == "VALID", str(found)
    about = record["evidence"]["relative"]
    assert f"= {about['share']!r}·m, |f| ≥ m = {about['least']!r}" in found.reason


@pytest.mark.one_in(2)
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


# ---- the lower bound of sup |T − f|

LOWER = {
    "gates": ("sin(x1)*x2", [(0, 1)] * 2, {}),
    "a kink": ("abs(x1 - x2)", [(0, 1)] * 2, {}),
    "a condition": ("x1*x2", [(-1, 1)] * 2, {"within": "x1**2 + x2**2 <= 1"}),
    "a margin": ("where(x1 > 0, 1, 0)", [(-1, 1)], {"margin": 0.1}),
    "float32": ("exp(x1)", [(0, 1)], {"dtype": "float32"}),
    "composed": ("1/(1 + 16*((x1-0.5)**2 + (x2-0.5)**2 + (x3-0.5)**2))", [(0, 1)] * 3, {}),
    "two outputs": ("x1*x2; x1 - x2**2", [(0, 1)] * 2, {}),
}


@pytest.fixture(scope="module")
def two_sided(tmp_path_factory):
    """Folders whose certificates have a lower bound, built when first asked for."""
    root, made = tmp_path_factory.mktemp("lower"), {}

    def folder(name):
        if name not in made:
            formula, domain, options = LOWER[name]
            tolerance = {"a margin": 0.1, "composed": 1e-3}.get(name, 1e-2)
            made[name] = ol.build(formula, domain, tolerance, **options).save(root / name)
        return made[name]

    return folder


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", LOWER)
def test_a_lower_bound_is_proved_and_a_larger_one_is_refuted(two_sided, tmp_path, name):
    record = json.loads((two_sided(name) / "certificate.json").read_text())
    assert 0 < record["lower"] <= record["bound"]
    found = check(two_sided(name))
    assert found.verdict == "VALID", str(found)
    assert found.reason.startswith(f"{record['lower']!r} ≤ sup |T − f| ≤ {record['bound']!r}")
    for n, factor in enumerate((1 + 1e-9, 1.001, 3.0)):
        raised = forged(two_sided(name), tmp_path / str(n), lambda r, k=factor: r | {"lower": r["lower"] * k})
        assert check(raised).verdict == "INVALID", factor


@pytest.mark.parametrize(
    "change",
    [
        {"lower": -1.0},
        {"lower": "0.1"},
        {"lower": True},
        {"lower_point": None},
        {"lower_point": [0.5]},
        {"lower_point": [0.5, 2.0]},
        {"lower_point": ["0.5", 0.5]},
        {"lower_point": {"x1": 0.5}},
    ],
)
def test_a_malformed_lower_bound_is_refused(two_sided, tmp_path, change):
    assert check(forged(two_sided("gates"), tmp_path / "f", lambda r: r | change)).verdict == "INVALID"


def test_another_point_may_have_the_lower_bound_too(two_sided, tmp_path):
    lower = forged(two_sided("gates"), tmp_path / "f", lambda r: r | {"lower": r["lower"] / 2})
    assert check(lower).verdict == "VALID"
    elsewhere = forged(two_sided("gates"), tmp_path / "g", lambda r: r | {"lower_point": [0.5, 0.5]})
    record = json.loads((elsewhere / "certificate.json").read_text())
    assert check(elsewhere).verdict == "INVALID", record["lower"]
    outside = forged(two_sided("a condition"), tmp_path / "h", lambda r: r | {"lower_point": [0.9, 0.9]})
    assert check(outside).reason == "the point of the lower bound is not in the domain"


def test_a_refuted_claim_has_a_lower_bound_too(tmp_path):
    folder = ol.build("sin(3*x1)", [(0, 1)], 1e-6, units=1, seconds=5.0).save(tmp_path / "f")
    record = json.loads((folder / "certificate.json").read_text())
    assert record["verdict"] == "REFUTED"
    assert record["lower"] > record["tolerance"]
    assert check(folder).verdict == "VALID"
    raised = forged(folder, tmp_path / "g", lambda r: r | {"lower": r["lower"] * 1.001})
    assert check(raised).verdict == "INVALID"


def test_folders_of_version_3_are_read_and_checked(two_sided, tmp_path):
    """They have no lower bound."""

    def older(record):
        kept = {k: v for k, v in record.items() if k not in ("lower", "lower_point")}
        return kept | {"schema": 3}

    folder = forged(two_sided("gates"), tmp_path / "f", older, lambda t: t | {"schema": 3})
    found = check(folder)
    assert (found.verdict, found.reason.startswith("sup |T − f| ≤")) == ("VALID", True)
    certificate = ol.load(folder).certificate
    assert (certificate.lower, certificate.lower_point) == (0.0, None)
    assert "at least" not in str(certificate)
    newer = forged(two_sided("gates"), tmp_path / "g", lambda r: r | {"schema": 5})
    assert check(newer).verdict == "INVALID"
    with pytest.raises(ol.InputError, match="schema 3 or 4"):
        ol.load(newer)


def test_properties_are_not_taken_on_trust(tmp_path):
    """The checker proves them by itself; a false one, or a record that does not fit, is INVALID."""
    folder = ol.build("x1**2", [(0.1, 1)], 1e-2, properties=["increasing in x1"]).save(tmp_path / "m")
    found = check(folder)
    assert found.verdict == "VALID"
    assert "increasing in x1" in found.reason
    wrong = [
        [{"text": "decreasing in x1", "verdict": "PROVED"}],
        [{"text": "increasing in x1", "verdict": "UNDECIDED"}],
        [{"text": "increasing in x1"}],
        ["increasing in x1"],
        "increasing in x1",
    ]
    for number, records in enumerate(wrong):
        changed = forged(folder, tmp_path / f"{number}", lambda r, records=records: r | {"properties": records})
        assert check(changed).verdict == "INVALID"
    assert check(forged(folder, tmp_path / "none", lambda r: r | {"properties": []})).verdict == "VALID"
