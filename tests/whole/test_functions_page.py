"""The tables of functions in docs/start/formulas.md: complete, true, and every example is built again."""

import operator
import runpy

import numpy as np
import pytest
from scipy import special

import curves
import onelayer as ol
from built import Built, Case, stored
from function_table import GROUPS, ROWS, Shown, default
from functions_built import CASES
from onelayer.formula import evaluate, parse
from onelayer.formula import vocabulary as words
from pages import ROOT
from special import page_text

LANGUAGE = runpy.run_path(str(ROOT / "docs" / "language.py"))
STORED = stored("functions_built")
BY_NAME = {row.name: row for row in ROWS}
SHOWN = [row for row in ROWS if LANGUAGE["understood"](row.formula)]
EXAMPLES = [case for case in CASES if case.domain == BY_NAME[case.name].domains[0] and case.key in STORED]
NAMED = operator.attrgetter("name")
LARGEST = 150_000  # bytes of all pictures


def values(formula: str, x: np.ndarray) -> np.ndarray:
    return evaluate(parse(formula, ("x",)), x[:, None])[:, 0]


def test_every_function_has_a_row():
    families = {row.record.rstrip("0123456789") for row in ROWS if "(n, x)" in row.title}
    assert {name for name in words.SPOKEN if name not in BY_NAME and name.rstrip("0123456789") not in families} == set()
    assert all(row.record in words.RECORDS for row in SHOWN if row.record)


@pytest.mark.parametrize("record", [f for f in words.RECORDS.values() if not f.hidden], ids=NAMED)
def test_a_record_without_a_row_has_one_all_the_same(record):
    row = default(record)
    for domain in row.domains:
        x = np.linspace(*domain["x"], 50)
        assert record.domain is None or all(map(record.domain.has, x))
        assert np.isfinite(values(row.formula, x)).all()


def slope_of(row: Shown) -> str:
    return LANGUAGE["slope_text"](row).strip("`")


@pytest.mark.parametrize(
    "row", [row for row in SHOWN if not row.drawn and LANGUAGE["understood"](slope_of(row))], ids=NAMED
)
def test_slopes_are_those_of_the_values(row):
    for domain in row.domains:
        low, high = domain["x"]
        x = low + (high - low) * (np.arange(20) + 0.37) / 20
        h = 1e-5 * (high - low)
        seen = (values(row.formula, x + h) - values(row.formula, x - h)) / (2 * h)
        assert values(slope_of(row), x) == pytest.approx(seen, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    ("there", "here"), [case[:2] for case in LANGUAGE["ELSEWHERE"] if LANGUAGE["understood"](case[1])]
)
def test_names_of_others(there, here):
    x = np.array([0.11, 0.37, 0.52, 0.93])
    assert values(here, x) == pytest.approx(eval(there, {"np": np, "special": special, "x": x}), rel=1e-12)


def test_pictures_are_small_and_drawn_again():
    files = {path.stem: path.read_text() for path in curves.FOLDER.iterdir()}
    assert files.keys() == {row.name for row in SHOWN}
    assert sum(map(len, files.values())) < LARGEST
    for name in ("abs", "sin", "tan"):
        assert curves.picture(BY_NAME[name]) == files[name], "run: python benchmarks/draw/curves.py"


def test_a_curve_is_broken_where_it_jumps():
    steps = Shown("steps(x)", "where(x < 0.1, 0, 1) + 100*max(0, x - 1)", (-1, 1.5), (), (0, 2))
    assert curves.picture(steps).count("M") == 2 + 2  # the axes; the steep line is one piece with the second step
    assert curves.picture(Shown("root(x)", "sqrt(x)", (-1, 1), ())).count("M") == 2 + 1


@pytest.mark.one_in(24)
@pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: f"{case.formula}, {case.share:g}")
def test_examples_are_certified(case: Case, tmp_path):
    """As the page says, on the first domain of every function."""
    said: Built = STORED[case.key]
    assert said.verdict == "CERTIFIED"
    target = ol.Target(case.formula, case.domain, margin=case.margin)
    found = ol.build(target, tolerance=said.tolerance)
    assert found.certificate.verdict == "CERTIFIED"
    if said.check == "VALID":
        found.save(tmp_path / "layer")
        assert ol.check(tmp_path / "layer").verdict == "VALID"


def test_every_function_that_is_shown_was_built():
    assert {case.name for case in EXAMPLES} == {row.name for row in SHOWN} - {
        row.name for row in GROUPS[-1].rows
    }  # not listed yet


def test_the_page_on_special_functions_is_up_to_date():
    assert page_text(stored("special")) in (ROOT / "docs" / "run" / "special.md").read_text()
