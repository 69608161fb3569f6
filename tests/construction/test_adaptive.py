"""Rows of bumps: banded least squares, meshes, and layers of them by the default method."""

import numpy as np
import pytest

import onelayer as ol
from onelayer.checker import check
from onelayer.construction.adaptive.bends import bends, kinks_of, without_bends
from onelayer.construction.adaptive.bumps import OUTSIDE, Row
from onelayer.construction.adaptive.fit import fitted_row, forecast
from onelayer.construction.adaptive.layer import curves_of
from onelayer.construction.adaptive.spacing import GRADE, POINTS, Probe, chebyshev_points, mesh, meshed
from onelayer.construction.request import Request

ENDS = np.array([0.0, 1.0])


def graded_row(cells=70, overlap=0.9):
    widths = 1.1 ** np.abs(np.arange(cells) - cells // 3)
    return Row.on(np.concatenate([[0.0], np.cumsum(widths)]) / widths.sum(), overlap)


@pytest.mark.parametrize("outputs", [1, 2])
def test_banded_least_squares_are_least_squares(outputs):
    row, rng = graded_row(), np.random.default_rng(0)
    u = row.edges[:-1, None] + np.diff(row.edges)[:, None] * chebyshev_points()
    y = rng.standard_normal((*u.shape, outputs))
    found = row.solved(u, y, 700.0, 1e-3)
    A = row.features(u, slice(None))
    whole = np.concatenate([A, 1e-3 * np.eye(A.shape[1])])
    exact = np.linalg.lstsq(whole, np.concatenate([y.reshape(-1, outputs), np.zeros((A.shape[1], outputs))]))[0]
    np.testing.assert_allclose(found.reshape(-1, outputs), exact, rtol=0, atol=1e-9 * np.abs(exact).max())
    np.testing.assert_allclose(row.at(found, u, 700.0).reshape(-1, outputs), A @ exact, atol=1e-9)
    near = row.solved(u, y, 30.0, 1e-3)  # bumps beyond these scores leave nothing
    np.testing.assert_allclose(near.reshape(-1, outputs), exact, rtol=0, atol=1e-8 * np.abs(exact).max())


def test_windows_have_every_bump_that_matters():
    row = graded_row()
    for cells, bumps in row.windows(12.0):
        u = np.stack([row.edges[cells], row.edges[cells.start + 1 : cells.stop + 1]])
        outside = np.ones(len(row), bool)
        outside[bumps] = False
        s = row.sharpness[outside] * (u.reshape(-1, 1) - row.centres[outside])
        assert (np.abs(s) >= 12.0 - 1e-9).all()
    assert len(row) == row.cells + 2 * OUTSIDE


def test_meshes_are_graded_and_end_where_they_should():
    edges = np.linspace(-1.0, 2.0, 60_001)
    middle = (edges[:-1] + edges[1:]) / 2
    places = np.array([-1.0, 0.77, 2.0])
    found = meshed(edges, np.where(np.abs(middle - 0.5) < 0.01, 1e-4, 0.3), places)
    assert set(places) <= set(found)
    h = np.diff(found)
    assert (h > 0).all()
    assert h[np.searchsorted(found, 0.5) - 1] == pytest.approx(1e-4, rel=0.1)
    assert (h[1:] / h[:-1])[: np.searchsorted(found, 0.77) - 2].max() <= 1.1 / (1 - GRADE)


def test_a_mesh_is_as_fine_as_the_function_asks():
    probe = Probe.of(0.9, 1e-5)
    plain = mesh(lambda u: np.sin(3 * u)[:, None], ENDS, 1e-4, probe, 10**4, 8)
    wild = mesh(lambda u: np.sin(3 * u + 300 * u * u)[:, None], ENDS, 1e-4, probe, 10**4, 8)
    assert len(plain) < len(wild)
    assert np.diff(wild)[-1] < 0.3 * np.diff(wild)[0]
    assert mesh(lambda u: np.sin(4e4 * u)[:, None], ENDS, 1e-4, probe, 500, 8) is None
    assert len(chebyshev_points()) == POINTS


@pytest.mark.parametrize("share", [1e-2, 1e-5, 1e-8])
def test_a_fit_meets_its_goal_between_its_points_too(share):
    def f(u):
        return np.stack([np.sin(30 * u * u), 1 / (1 + 2500 * (u - 0.3) ** 2)], axis=1)

    fit = fitted_row(f, 2 * ENDS, share, 2.0, 5000, lambda: False)
    u = fit.row.edges[:-1, None] + np.diff(fit.row.edges)[:, None] * np.linspace(0, 1, 33)
    off = np.abs(fit.row.at(fit.values, u, 60.0) - f(u.ravel()).reshape(*u.shape, 2)).max()
    assert off <= 1.1 * share
    assert 0.5 * len(fit) < forecast(f, 2 * ENDS, share, 2.0, 5000) < 2 * len(fit)
    assert fitted_row(f, 2 * ENDS, share, 2.0, 20, lambda: False) is None


@pytest.mark.parametrize("share", [0.1, 1e-3, 1e-6])
def test_few_cells_will_do(share):
    fit = fitted_row(lambda u: np.exp(u)[:, None], ENDS, share, 1.72, 100, lambda: False)
    assert fit.observed <= share
    assert len(fit) < 25


CASES = [
    ("sin(3*x^2)*exp(-x/5)", (0, 14), 2e-4),
    ("exp(-((x - 0.37)/0.0001)^2) + x", (0, 1), 1e-4),
    ("sin(600*x); cos(500*x)", (0, 1), 1e-3),
    pytest.param("max(sin(10*x), cos(13*x))", (0, 3), 1e-4, marks=pytest.mark.long),
    pytest.param("abs(sin(20*x))", (0, 3), 1e-4, marks=pytest.mark.long),
    pytest.param("abs(x - 0.3) + 0.2*sin(600*x)", (0, 1), 1e-4, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("formula", "side", "tolerance"), CASES)
def test_the_default_method_takes_rows_where_many_units_are_needed(formula, side, tolerance, tmp_path):
    approx = ol.build(formula, [side], tolerance)
    assert dict(approx.facts.heads).keys() == {"bump"}
    assert approx.certificate.verdict == "CERTIFIED"
    x = np.random.default_rng(0).uniform(*side, (4001, 1))
    off = np.abs(approx(x).reshape(4001, -1) - approx.target(x)).max()
    assert off <= approx.certificate.bound <= tolerance
    assert off >= 0.02 * approx.certificate.bound
    assert any("bumps" in note for note in approx.facts.notes)
    if ";" not in formula:
        approx.save(tmp_path / "row")
        assert check(tmp_path / "row").verdict == "VALID"


def test_kinks_are_found_and_taken_away():
    f = ol.Target("abs(sin(3*x)) + where(x < 0.5, x, 1 - x) + 0*max(x, y - 2)", [(0, 2), (0, 1)])
    line = np.stack([np.linspace(0, 2, 4097), np.full(4097, 0.5)], axis=1)
    found = kinks_of(f.formula, 0, line)
    np.testing.assert_allclose(found, [0.0, 0.5, np.pi / 3], atol=1e-12)
    places = np.array([-0.2, 0.5, np.pi / 3, 2.0])

    def curve(u):
        return np.stack([np.abs(np.sin(3 * u)), np.where(u < 0.5, u, 1 - u)], axis=1)

    J = bends(curve, places)
    np.testing.assert_allclose(J, [[0.0, -2.0], [6.0, 0.0]], atol=1e-6)
    smooth = without_bends(curve, places, J)
    for r in places[1:-1]:
        step = 1e-6 * np.array([-1.0, 0.0, 1.0])
        left, middle, right = smooth(r + step)
        assert np.abs(left - 2 * middle + right).max() < 1e-4 * 1e-6
    assert not bends(lambda u: np.abs(u - 0.5)[:, None] ** 0.3, np.array([0.0, 0.5, 1.0])).any()


def test_sums_of_functions_of_one_coordinate():
    approx = ol.build("sin(400*x) + cos(300*y^2)", [(0, 1), (0, 1)], 1e-3)
    assert dict(approx.facts.heads).keys() == {"bump"}
    assert approx.certificate.verdict == "CERTIFIED"
    directions = approx.model.W_Q[:, :2, 0]
    assert bool((directions != 0).sum(dim=1).eq(1).all())


def test_few_units_where_few_do():
    approx = ol.build("exp(-x)*cos(3*x)", [(0, 2)], 1e-3)
    assert "bump" not in dict(approx.facts.heads)
    assert approx.units < 10


@pytest.mark.parametrize(
    "options",
    [
        {"slope_tolerance": 0.1},
        {"construction": "gates"},
        {"units": 5},
        {"layout": "wide"},
        {"attention": "linear"},
        {"target": ol.Target("sin(9*x*y)", [(0, 1)] * 2)},
        {"target": ol.Target("abs(x)", (-1, 1))},
        {"target": ol.Target("abs(x)^0.3 + sin(300*x)", (-1, 1))},
        {"target": ol.Target("where(x < 0.5, 0, x)", (0, 1), margin=0.01)},
    ],
)
def test_no_rows_where_they_cannot_do_what_is_asked(options):
    given = {"target": ol.Target("sin(300*x)", (0, 1))} | options
    assert curves_of(Request(tolerance=1e-3, **given)) is None
    assert curves_of(Request(ol.Target("sin(300*x)", (0, 1)), 1e-3)).expected > 50
