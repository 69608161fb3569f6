"""Norms from both sides: the root mean square against integrals in balls, the weighted supremum against points."""

import math

import numpy as np
import pytest
import torch
from flint import acb, arb, ctx

import onelayer as ol
from onelayer.formula.taylor.series import Space
from onelayer.proof import norms
from onelayer.proof.supremum import two_formulas

# p, q, |p − q|² in balls, domain
ONE = [
    ("x", "0", lambda x: x**2, (0, 1)),
    ("sin(x)", "x - x^3/6", lambda x: (x.sin() - x + x**3 / 6) ** 2, (0, 2)),
    ("exp(2*x)", "1 + 3*x", lambda x: ((2 * x).exp() - 1 - 3 * x) ** 2, (-1, 1)),
    ("1/(1 + 25*x^2)", "0.5", lambda x: (1 / (1 + 25 * x**2) - acb(0.5)) ** 2, (-1, 1)),
    ("cos(30*x)", "0", lambda x: (30 * x).cos() ** 2, (0, 1)),
]


def mean_square(square, domain):
    with ctx.workprec(200):
        a, b = map(acb, domain)
        return (acb.integral(lambda x, _: square(x), a, b) / (b - a)).real


def require_between(found, square):
    """lower² ≤ the mean square ≤ upper², with no slack."""
    with ctx.workprec(200):
        assert arb(found.lower) ** 2 <= square
        assert square <= arb(found.upper) ** 2


@pytest.mark.parametrize(("p", "q", "square", "domain"), ONE)
@pytest.mark.parametrize("accuracy", [0.5, 1e-2, 1e-6])
def test_formulas_against_integrals_in_balls(p, q, square, domain, accuracy):
    found = ol.norm(p, q, [domain], accuracy=accuracy)
    assert found.reached
    require_between(found, mean_square(square, domain))


def test_several_variables_and_outputs():
    require_between(ol.norm("x*y*z", "0", [(0, 1)] * 3, accuracy=1e-3), arb(1) / 27)
    require_between(ol.norm("x; 3*y", "0; y", [(0, 1), (0, 2)], accuracy=1e-3), (arb(1) / 3 + 4 * arb(4) / 3) / 2)


def test_kinks_and_jumps_are_known_too():
    require_between(ol.norm("abs(x)", "0.5", [(-1, 1)], accuracy=1e-3), arb(1) / 12)
    require_between(ol.norm("where(x < 0.3, 0, 1)", "0", [(0, 1)], accuracy=1e-3), arb(7) / 10)


@pytest.mark.parametrize(("formula", "options"), [("sin(3*x1)", {}), ("exp(x1)", {"dtype": "float32"})])
def test_a_layer_against_a_quadrature(formula, options):
    """100,000 midpoints: the sum is far closer to the integral than the two ends are to each other."""
    approx = ol.build(formula, [(0, 1)], 1e-3, **options)
    found = ol.norm(approx, accuracy=0.2 if options else 0.01)  # in float32 the upper end has its rounding
    x = (np.arange(10**5) + 0.5)[:, None] / 10**5
    with torch.no_grad():
        T = approx.model.double()(torch.from_numpy(x)[:, None]).reshape(-1).numpy()
    seen = math.sqrt(np.mean((T - approx.target(x)[:, 0]) ** 2))
    assert found.reached
    assert found.lower <= seen <= found.upper < approx.certificate.bound
    assert (found.norm, found.weight, found.point) == ("Root mean square", "", None)


def test_a_weighted_supremum_against_points():
    approx = ol.build("exp(x1)*x2", [(0, 1)] * 2, 1e-2, units=4, method="solved")
    found = ol.norm(approx, p=math.inf, weight="0.1 + x1")
    x = np.random.default_rng(0).random((50_000, 2))
    seen = np.abs(approx(x) - approx.target(x)[:, 0]) / (0.1 + x[:, 0])
    assert found.reached
    assert seen.max() <= found.upper <= 1.01 * found.lower
    plain = ol.norm(approx, p=math.inf)
    both = ol.supremum(approx)
    assert plain.lower <= both.upper
    assert both.lower <= plain.upper


def test_a_weight_in_the_mean():
    """mean (x/(1 + x))² over [0, 1] is 3/2 − 2 log 2."""
    found = ol.norm("x", "0", [(0, 1)], weight="1 + x", accuracy=1e-3)
    require_between(found, arb(3) / 2 - 2 * arb(2).log())
    assert "Root mean square of |p − q|/w" in str(found)


def test_a_weight_with_a_zero_proves_nothing():
    found = ol.norm("1 + x", "0", [(0, 1)], p=math.inf, weight="x", seconds=0.5)
    assert math.isinf(found.upper)
    assert not found.reached


def test_tiles_whose_share_of_the_volume_vanishes():
    """1e100 on a tile of 1e-250 in a domain of 1e150: the mean square is at least 1e-200, and a share of 1e-400 is 0."""
    target = ol.Target("1e100 + 0*x", [(0, 1e150)])
    search = two_formulas(target, target, ("p", "q")).search()
    tiles = norms._Tiles.of(search, np.array([[0.0]]), np.array([[1e-250]]), 2.0, None)
    assert tiles.upper >= 1e-100
    assert tiles.lower == 0


def test_a_weight_that_changes_sign_is_measured_by_its_size():
    """0.2 − x is at most 0.2 on [0, 1], and 0.8 in size: lower ends are divided by the latter."""
    least, size = norms._bounds(ol.Target("0.2 - x", [(0, 1)]), Space(np.zeros((1, 1)), np.ones((1, 1))))
    assert least == 0
    assert size >= 0.8


@pytest.mark.parametrize("part", ["mean", "remainder"])
def test_the_check_can_fail(part, monkeypatch):
    """With wrong means of monomials, or without the remainder, the integrals are missed."""
    honest = norms.root_mean_square
    if part == "mean":
        monkeypatch.setattr(norms, "_moments", lambda D: np.diag(np.full(len(norms.monomials(D)), 0.5)))
    else:
        monkeypatch.setattr(norms, "root_mean_square", lambda g: honest(type(g)(g.space, g.c, 0 * g.r)))
    with pytest.raises(AssertionError):
        test_formulas_against_integrals_in_balls(*ONE[2], 1e-3)


def test_a_tile_far_from_0_is_smaller_than_its_cube():
    """The mean is over the tile, not over the cube that rounding makes of it."""
    lower = np.array([[1e6]])
    tile = Space(lower, np.nextafter(np.nextafter(lower, np.inf), np.inf))
    (low,), (high,) = norms.root_mean_square(tile.variable(0))
    assert low <= 1e6 <= high


@pytest.mark.parametrize(
    ("call", "mentions"),
    [
        (lambda: ol.norm("x", "0", [(0, 1)], p=1), "`p`, 2 or math.inf"),
        (lambda: ol.norm("x", "0", [(0, 1)], weight="1; x"), "a weight with one output"),
        (lambda: ol.norm("x", "0", [(0, 1)], weight=lambda x: x), "a formula"),
        (lambda: ol.norm("x", "0", [(0, 1)], weight=2.0), "a formula"),
        (lambda: ol.norm("x", "0", [(0, 1)], weight="-1 - x"), "below 0 near"),
        (lambda: ol.norm("1 + x", "0", [(0, 1)], p=math.inf, weight="x - 0.3"), "below 0 near"),
        (lambda: ol.norm("x", "0", [(0, 1)], weight="y"), "variable"),
        (lambda: ol.norm("x", "0", [(0, 1)], accuracy=0), "accuracy"),
        (lambda: ol.norm(ol.Target("x", [(0, 1)], within="x < 0.5"), "0"), "a norm over a box"),
        (lambda: ol.norm(ol.build(np.sin, [(0, 1)], 0.1)), "without a declared modulus"),
    ],
)
@pytest.mark.usefixtures("as_user")
def test_what_is_refused(call, mentions):
    with pytest.raises(ol.InputError) as caught:
        call()
    assert mentions in str(caught.value)
    assert "\n" not in str(caught.value)
