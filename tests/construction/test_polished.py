"""`build` with default options: near-minimal layers, certified, and agreed to by the independent checker."""

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.common.numbers import at_most

TWO, THREE = [(0, 1)] * 2, [(0, 1)] * 3
RUNGE_2 = "1/(1 + 16*((x1-0.5)**2 + (x2-0.5)**2))"
RUNGE_3 = "1/(1 + 16*((x1-0.5)**2 + (x2-0.5)**2 + (x3-0.5)**2))"
BRANIN = "((x2 - 5.1/(4*pi**2)*x1**2 + 5/pi*x1 - 6)**2 + 10*(1 - 1/(8*pi))*cos(x1) + 10)/308.13"
FRANKE = (
    "0.75*exp(-((9*x1-2)**2 + (9*x2-2)**2)/4) + 0.75*exp(-(9*x1+1)**2/49 - (9*x2+1)/10)"
    " + 0.5*exp(-((9*x1-7)**2 + (9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2 - (9*x2-7)**2)"
)
ISHIGAMI = "(sin(x1) + 7*sin(x2)**2 + 0.1*x3**4*sin(x1))/17.75"
GAUSS_4 = "exp(-6.25*((x1-0.5)**2 + (x2-0.5)**2 + (x3-0.5)**2 + (x4-0.5)**2))"
ADDITIVE = " + ".join(f"sin({i}*x{i})" for i in range(1, 9)) + " + x1*x2"
CYCLIC = {"shape": (3, 1), "output_shape": (3, 1)}

EASY = [
    ("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-6, 16, {}),
    ("1/(1 + 25*x1**2)", [(-1, 1)], 1e-6, 10, {}),
    pytest.param(BRANIN, [(-5, 10), (0, 15)], 1e-5, 32, {}, marks=pytest.mark.long),
]
HARD = [
    (RUNGE_2, TWO, 1e-5, 40, {}),
    ("x1*x2; x2*x3; x3*x1", THREE, 1e-5, 60, CYCLIC),
    ("sin(x1*x2)", [(0, "pi")] * 2, 1e-5, 85, {}),
    (FRANKE, TWO, 1e-5, 125, {}),
    (FRANKE, TWO, 1e-6, 210, {}),
    (ISHIGAMI, [("-pi", "pi")] * 3, 1e-4, 70, {}),
    (RUNGE_3, THREE, 1e-3, 64, {}),
    (ADDITIVE, [(0, 1)] * 8, 1e-5, 65, {}),
]


def certified(formula, domain, tolerance, units, about):
    approx = ol.build(formula, domain, tolerance, **about)
    assert approx.certificate.verdict == "CERTIFIED", approx
    assert approx.certificate.observed <= approx.certificate.bound <= tolerance
    assert approx.units <= units
    return approx


@pytest.mark.parametrize(("formula", "domain", "tolerance", "units", "about"), EASY)
def test_few_units_are_certified(as_user, tmp_path, formula, domain, tolerance, units, about):
    approx = certified(formula, domain, tolerance, units, about)
    if len(domain) <= 2:
        assert ol.check(approx.save(tmp_path / "folder")).verdict == "VALID"


@pytest.mark.long
@pytest.mark.parametrize(("formula", "domain", "tolerance", "units", "about"), HARD)
def test_few_units_are_certified_on_harder_targets(as_user, tmp_path, formula, domain, tolerance, units, about):
    approx = certified(formula, domain, tolerance, units, about)
    if len(domain) <= 2:
        assert (
            ol.check(approx.save(tmp_path / "folder"), seconds=1200.0).verdict == "VALID"
        )  # minutes for Franke at 1e-6


@pytest.mark.long
def test_four_variables(as_user):
    approx = ol.build(GAUSS_4, [(0, 1)] * 4, 1e-3)
    assert approx.units <= 80
    assert approx.certificate.bound <= 3e-3  # CERTIFIED on an idle machine; the proof has a minute


@pytest.mark.parametrize("layout", ["token", "wide", "heads"])
def test_sequences_in_every_layout(as_user, layout):
    approx = ol.build("x1*x2; x1 - x2", TWO, 1e-4, layout=layout, shape=(2, 1), output_shape=(2, 1))
    assert approx.certificate.verdict == "CERTIFIED"
    x = np.random.default_rng(0).random((5, 2, 1))
    expected = np.stack([x[:, 0] * x[:, 1], x[:, 0] - x[:, 1]], axis=1)
    assert np.abs(approx(x) - expected).max() <= 1e-4


@pytest.mark.one_in(2)
@pytest.mark.parametrize("formula", ["sin(6*x1)*x2", RUNGE_2])
@pytest.mark.long
def test_float32(as_user, formula):
    approx = ol.build(formula, TWO, 1e-3, dtype="float32")
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.model.W_E.dtype == torch.float32


@pytest.mark.long
def test_a_tolerance_below_float32_is_answered_with_the_smallest_that_holds(as_user):
    approx = ol.build("sin(6*x1)", [(0, 1)], 1e-7, dtype="float32", seconds=10)
    assert approx.certificate.verdict != "CERTIFIED"
    smallest = (
        f"the smallest tolerance that this layer is certified for in float32 is {at_most(approx.certificate.bound, 3)}"
    )
    assert smallest in approx.facts.notes
    assert approx.certificate.bound < 1e-4


@pytest.mark.parametrize(("formula", "units"), [("3", 0), ("x1 + 2*x2 - 1", 0), ("x1*0 + x2**2", 3)])
def test_what_is_affine_needs_no_units(as_user, formula, units):
    approx = ol.build(formula, TWO, 1e-4)
    assert approx.units <= units
    assert approx.certificate.verdict == "CERTIFIED"


def noise(x: np.ndarray) -> np.ndarray:
    """As good as random."""
    return np.modf(np.abs(np.sin(x @ np.array([12.9898, 78.233]) * 1e4)) * 43758.5453)[0]


@pytest.mark.long
def test_targets_that_cannot_be_met_end_with_an_explanation(as_user):
    hard = ol.build(noise, TWO, 1e-2, seconds=1)
    assert hard.certificate.verdict == "REFUTED"
    assert any(note.startswith("the part in x1, x2: ") for note in hard.facts.notes)
    short = ol.build("sin(x1*x2)", [(0, 9)] * 2, 1e-6, seconds=2)
    assert short.certificate.verdict == "REFUTED"
    reached = f"the smallest tolerance that this layer is certified for is {at_most(short.certificate.bound, 3)}"
    assert np.isfinite(short.certificate.bound)
    assert reached in short.facts.notes
    tiny = ol.build("sin(x1)", [(0, 3)], 1e-15, seconds=10)
    assert tiny.certificate.verdict != "CERTIFIED"
    assert any("rounding in float64 alone" in note for note in tiny.facts.notes)


@pytest.mark.long
def test_thirty_interacting_variables(as_user):
    formula = "sin(" + "*".join(f"(x{i} + 0.5)" for i in range(1, 31)) + ")"
    approx = ol.build(formula, [(0, 1)] * 30, 1e-3, seconds=1)
    assert approx.certificate.verdict in ("REFUTED", "UNDECIDED")
    assert any("the part in x1, x2, …, x30" in note for note in approx.facts.notes)


def test_data(as_user):
    rng = np.random.default_rng(0)
    X = 3 * rng.random((800, 2))
    Y = 0.3 * np.sin(X.sum(axis=1))
    approx = ol.build((X, Y), tolerance=1e-3)
    assert approx.certificate.verdict == "UNDECIDED"  # nothing can be proved from points alone
    assert approx.certificate.observed <= 1e-3
    fresh = 3 * rng.random((500, 2)) * 0.9 + 0.15
    assert np.abs(approx(fresh) - 0.3 * np.sin(fresh.sum(axis=1))).max() < 5e-3


def test_the_global_generator_is_left_alone(as_user):
    before, state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    ol.build("sin(6*x1)", [(0, 1)], 1e-4)
    assert torch.get_rng_state().equal(before)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
