"""A relative tolerance: the lower bound of |f| is never above the truth, and a function that may vanish is refused."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from onelayer.apps.cli import main
from onelayer.common.errors import InputError
from onelayer.construction.relative import relative_to
from onelayer.proof.certificate import RelativeTolerance
from onelayer.target.smallest import MOST_VALUES, smallest_by_modulus, smallest_of_formula

small = st.integers(-4, 4)


def least(formula: str, domain: object, **about: object) -> tuple[float, float]:
    target = ol.Target(formula, domain, **about)
    return smallest_of_formula(target.formula, target.domain)


@pytest.mark.parametrize(
    ("formula", "domain", "smallest"),
    [
        ("2 + sin(x1)*x2", [(0, 7), (-1, 1)], 1.0),
        ("exp(-x1)", [(0, 3)], math.exp(-3)),
        ("-3 - x1**2", [(-1, 1)], 3.0),
        ("x1 + x2; 5*exp(x1)", [(1, 2), (0.25, 2)], 1.25),
        ("(x1 - 0.3)**2 + (x2 - 0.7)**2 + 1e-3", [(0, 1)] * 2, 1e-3),
        ("abs(x1 - 0.5) + 0.125", [(0, 1)], 0.125),
        ("7", [(0, 1)], 7.0),
        ("where(x1 < 0.5, 1, -2)", [(0, 1)], 0.0),  # a jump across 0: both signs, so no bound is claimed
        ("where(x1 < 0.5, 1.5 - x1, 2)", [(0, 1)], 1.0),
        ("sqrt(x1) + 0.5", [(0, 4)], 0.5),  # an endless slope at the minimum
        ("max(x1, 1 - x1)", [(0, 1)], 0.5),
    ],
)
def test_known_minima(formula, domain, smallest):
    m, seen = least(formula, domain)
    assert smallest / 1.05 <= m <= smallest  # never above, zero slack, and not far below
    assert seen >= smallest * (1 - 1e-15)


random_sums = given(
    st.lists(st.tuples(small, small, small), min_size=1, max_size=3), st.integers(-9, 9), st.integers(0, 2**31)
)


def require_never_above(terms, constant, seed):
    """Random sums of a·sin(b·x1 + c·x2) and a·x1·x2: the bound is below |f| at every point that was tried."""
    parts = [f"({a})*sin(({b})*x1 + ({c})*x2) + ({c})*x1*x2/4" for a, b, c in terms]
    formula = " + ".join([*parts, f"({constant})"])
    domain = [(-1, 2), (0, 1)]
    m, seen = least(formula, domain)
    target = ol.Target(formula, domain)
    rng = np.random.default_rng(seed)
    points = target.domain.points(np.concatenate([rng.random((2000, 2)), np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])]))
    exact, error = target.values_with_error(points[np.argsort(np.abs(target(points))[:, 0])[:20]])
    assert m <= np.abs(exact).min() + error
    assert m <= seen


@settings(max_examples=30, deadline=None)
@random_sums
def test_never_above_the_truth(terms, constant, seed):
    require_never_above(terms, constant, seed)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@random_sums
def test_never_above_the_truth_of_many(terms, constant, seed):
    require_never_above(terms, constant, seed)


@settings(max_examples=40, deadline=None)
@given(st.integers(-8, 8), small, small, st.floats(0.1, 3.0))
def test_callables_never_above_the_truth(constant, a, b, high):
    slopes = [abs(a) + 1e-9, abs(b) + 1e-9]
    target = ol.Target(
        lambda x: constant + a * np.sin(x[:, 0]) + b * np.cos(x[:, 1]), [(0, high)] * 2, lipschitz=slopes
    )
    m, _ = smallest_by_modulus(target)
    points = target.domain.points(np.random.default_rng(0).random((4000, 2)))
    assert m <= np.abs(target(points)).min()


def test_a_condition_cuts_zeros_out():
    formula, box = "x1**2 + x2**2 - 2", [(-1, 1)] * 2
    assert least(formula, box)[0] == 0.0
    assert 0.7 < least(formula, box, within="x1**2 + x2**2 <= 1.25")[0] <= 0.75


@pytest.mark.parametrize("formula", ["sin(x1)", "x1**2", "x1 - 0.1", "1; x1", "x1**4"])
def test_a_function_that_may_vanish_is_refused(formula):
    with pytest.raises(InputError, match=r"asked: a relative tolerance.*found: f may be.*change: give an absolute"):
        ol.build(formula, [(-1, 1)], tolerance=1e-3, relative=True)


def test_the_tolerance_is_rounded_down():
    for share, m in ((0.1, 3.0), (1e-4, 0.7), (1 / 3, 1 / 7)):
        assert 0 < Fraction(RelativeTolerance(share, m, "proved").tolerance) <= Fraction(share) * Fraction(m)


def test_a_formula_is_certified_and_the_folder_says_so(tmp_path):
    approx = ol.build("exp(-x1)*(2 + sin(3*x2))", [(0, 2), (0, 1)], tolerance=1e-3, relative=True)
    c = approx.certificate
    record = c.evidence.relative
    assert c.verdict == "CERTIFIED"
    assert record.known == "proved"
    assert record.least <= 2 * math.exp(-2)
    assert c.tolerance <= 1e-3 * record.least
    points = approx.domain.points(np.random.default_rng(0).random((2000, 2)))
    exact = np.exp(-points[:, 0]) * (2 + np.sin(3 * points[:, 1]))
    assert (np.abs(approx(points) - exact) <= 1e-3 * np.abs(exact)).all()
    assert "relative tolerance: 0.001 of |f| ≥ 0.27" in repr(approx)
    assert "0.001 of |f| ≥ 0.27" in str(c)
    loaded = ol.load(approx.save(tmp_path / "waves"))
    assert loaded.certificate.evidence.relative == record
    assert loaded.facts.notes == approx.facts.notes
    assert str(ol.check(tmp_path / "waves")).startswith("VALID")


def test_a_callable_rests_on_its_declared_modulus():
    def slope(x):
        return 3 + x[:, 0]

    approx = ol.build(slope, [(0, 1)], tolerance=0.05, relative=True, lipschitz=1.0)
    c = approx.certificate
    assert c.verdict == "CERTIFIED"
    assert c.evidence.relative.known == "declared"
    assert 2.9 < c.evidence.relative.least <= 3
    assert any("|f| ≥" in a and "declared modulus" in a for a in c.assumptions)
    rough = ol.Target(slope, [(0, 1)], modulus=lambda r: r)
    assert 2.9 < relative_to(rough, 0.1).least <= 3
    off = ol.Target(slope, [(0, 1)], lipschitz=1.0, evaluation_error=0.5)
    assert 2.4 < relative_to(off, 0.1).least <= 2.5


def test_without_a_modulus_nothing_is_certified():
    found = relative_to(ol.Target(lambda x: 3 + x[:, 0], [(0, 1)]), 0.1)
    assert found.known == "sampled"
    assert "not proved" in str(found)
    x = np.linspace(0, 1, 40)[:, None]
    approx = ol.build((x, 3 + np.sin(x[:, 0])), tolerance=0.01, relative=True, method="solved")
    assert approx.certificate.verdict == "UNDECIDED"
    assert approx.certificate.evidence.relative == RelativeTolerance(0.01, 3.0, "sampled")


def test_data_with_a_constant():
    x = np.linspace(0, 1, 60)[:, None]
    found = relative_to(ol.Target((x, 3 + x[:, 0]), lipschitz=1.0), 0.1)
    assert found.known == "declared"
    assert 2.9 < found.least <= 3


def test_values_asked_of_a_callable_are_limited():
    asked = 0

    def wild(x):
        nonlocal asked
        asked += len(x)
        return 1 + 1e-6 * np.sin(x).sum(axis=1)

    m, _ = smallest_by_modulus(ol.Target(wild, [(0, 1)] * 4, lipschitz=100.0))
    assert m <= 1
    assert asked <= 2 * MOST_VALUES


def test_a_value_that_is_not_finite_is_named():
    with pytest.raises(InputError, match="finite value"):
        relative_to(ol.Target(lambda x: np.where(x[:, 0] > 0.7, np.nan, 2.0), [(0, 1)], lipschitz=1.0), 0.1)


@pytest.mark.usefixtures("as_user")
def test_plan_and_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    by_share = ol.plan("2 + x1", [(0, 1)], 0.01, relative=True, method="representative")
    assert 0.0195 < by_share.tolerance < 0.02
    ask = ["2 + sin(x1)", "--domain", "0:3", "--eps", "1e-3", "--relative"]
    assert main(["build", *ask, "--out", "two", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["certificate"]["evidence"]["relative"]["known"] == "proved"
    assert 0.0019 < record["certificate"]["tolerance"] < 0.002
    assert main(["plan", *ask, "--method", "solved"]) == 0
    assert main(["build", "sin(x1)", "--domain", "-1:1", "--eps", "1e-3", "--relative", "--out", "no"]) == 2
    assert "relative tolerance" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
