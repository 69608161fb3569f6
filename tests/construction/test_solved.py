"""Values by least squares and toward the minimax; solved layers as the issue of size demands."""

from functools import partial

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer import InputError
from onelayer.construction.solved.corrected import chosen_hinges, hinges_by_curvature, spread_hinges
from onelayer.construction.solved.values import Problem, least_squares, solve

solved = partial(ol.build, method="solved")

FRANKE = (
    "0.75*exp(-((9*x1-2)**2 + (9*x2-2)**2)/4) + 0.75*exp(-(9*x1+1)**2/49 - (9*x2+1)/10)"
    " + 0.5*exp(-((9*x1-7)**2 + (9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2 - (9*x2-7)**2)"
)
GAUSS = "exp(-6.25*((x1-0.5)**2 + (x2-0.5)**2 + (x3-0.5)**2 + (x4-0.5)**2))"


def test_least_squares_equals_numpy():
    g = torch.Generator().manual_seed(0)
    A, y = (torch.randn(60, k, generator=g, dtype=torch.float64) for k in (7, 2))
    w = torch.rand(60, generator=g, dtype=torch.float64)
    expected = np.linalg.lstsq(A.numpy() * w.sqrt()[:, None].numpy(), y.numpy() * w.sqrt()[:, None].numpy())[0]
    np.testing.assert_allclose(least_squares(A, y, w, 0.0).numpy(), expected, rtol=1e-10)


def test_cholesky_equals_qr(monkeypatch):
    g = torch.Generator().manual_seed(0)
    A, y = (torch.randn(60, k, generator=g, dtype=torch.float64) for k in (7, 2))
    w = torch.ones(60, dtype=torch.float64)
    by_qr = least_squares(A, y, w, 1e-12)
    monkeypatch.setattr("onelayer.construction.solved.values.GRAM_FROM", 3)
    torch.testing.assert_close(least_squares(A, y, w, 1e-12), by_qr, rtol=1e-9, atol=1e-12)


def test_solving_comes_close_to_the_minimax_polynomial():
    """Degree 4 for |x| on [−1, 1]: the best maximum error is 0.0676; least squares alone gives more."""
    x = torch.linspace(-1, 1, 2001, dtype=torch.float64).unsqueeze(1)

    def features(x):
        return torch.cat([x**k for k in range(5)], dim=1)

    problem = Problem(features, x[::10], x[::10].abs(), x, x.abs())
    plain = solve(problem, reweightings=0, exchanges=0)
    found = solve(problem, reweightings=30)
    assert 0.0676 <= found.observed <= 0.071
    assert found.observed < 0.8 * plain.observed


def test_the_total_is_capped():
    """Nearly dependent features would need huge coefficients: the ridge keeps Σ|c| in bounds."""
    x = torch.linspace(0, 1, 400, dtype=torch.float64).unsqueeze(1)

    def features(x):
        return torch.cat([torch.exp(-((x - c) ** 2)) for c in np.linspace(0, 1, 14)], dim=1)

    y = torch.sin(9 * x)
    free = solve(Problem(features, x, y, x, y), cap=1e30, reweightings=0)
    capped = solve(Problem(features, x, y, x, y), cap=100.0, reweightings=0)
    assert free.total > 1e4
    assert capped.total <= 200.0


def test_sin_sum_with_at_most_24_gates():
    approx = solved("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-4, construction="gates")
    assert approx.units <= 24
    assert approx.certificate.observed <= 1e-4
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.facts.total < 1e4


@pytest.mark.long
def test_franke_with_at_most_400_gates():
    approx = solved(FRANKE, [(0, 1)] * 2, 3e-4, construction="gates", units=256)
    assert approx.units <= 400
    assert approx.certificate.observed <= 3e-4


@pytest.mark.long
def test_franke_finds_its_own_size():
    approx = solved(FRANKE, [(0, 1)] * 2, 3e-4, construction="gates")
    assert approx.units <= 400
    assert approx.certificate.observed <= 3e-4


@pytest.mark.long
def test_gauss_in_4_d_with_at_most_800_memory_tokens():
    approx = solved(GAUSS, [(0, 1)] * 4, 3e-3, construction="memory", units=700)
    assert approx.units <= 800
    assert approx.certificate.observed <= 3e-3


@pytest.mark.one_in(2)
@pytest.mark.parametrize("construction", ["gates", "memory"])
def test_the_feed_forward_network_corrects_a_kink(construction):
    without = solved("abs(x1-x2)", [(0, 1)] * 2, 1e-4, construction=construction, units=16)
    corrected = solved("abs(x1-x2)", [(0, 1)] * 2, 1e-4, construction=construction, units=16, hinges=6)
    assert without.certificate.observed > 1e-2
    assert corrected.certificate.observed < 1e-6
    assert corrected.model.config.ffn_width > without.model.config.ffn_width


@pytest.mark.one_in(3)
@pytest.mark.parametrize("layout", ["token", "wide", "heads"])
def test_solved_sequences_in_every_layout(layout):
    approx = solved(
        "x1*x2; x2*x3; x3*x1",
        [(0, 1)] * 3,
        2e-2,
        construction="gates",
        layout=layout,
        shape=(3, 1),
        output_shape=(3, 1),
    )
    assert approx.certificate.observed <= 2e-2
    assert approx(np.array([[0.5, 0.4, 0.3]])).shape == (1, 3, 1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("construction", ["gates", "memory"])
def test_solved_targets_of_other_kinds(construction):
    disc = solved("x1*x2", [(-1, 1)] * 2, 1e-2, within="x1**2 + x2**2 <= 1", construction=construction)
    assert disc.certificate.observed <= 1e-2
    two = solved(lambda x: np.stack([x[:, 0] ** 2, x[:, 1]], axis=1), [(0, 1)] * 2, 1e-3, construction=construction)
    assert two.certificate.observed <= 1e-3
    constant = solved("3", [(0, 1)], 1e-6, construction=construction)
    assert constant.certificate.observed <= 1e-6


@pytest.mark.long
def test_the_same_seed_gives_the_same_layer():
    a, b = (solved("exp(-x1)*x2", [(0, 1)] * 2, 1e-3, seed=3) for _ in range(2))
    for name, tensor in a.model.state_dict().items():
        assert torch.equal(tensor, b.model.state_dict()[name])


def test_refusals():
    with pytest.raises(InputError, match="units, a whole number"):
        solved("x1", [(0, 1)], 0.1, units=0)
    with pytest.raises(InputError, match="2 groups"):
        solved("x1 + x2", [(0, 1)] * 2, 0.1, units=1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("formula", "domain", "units", "factor"), [("sin(6*x1)", [(0, 1)], 3, 50), ("x1*x2", [(-1, 1)] * 2, 4, 3)]
)
def test_the_feed_forward_network_corrects_a_smooth_residual(formula, domain, units, factor):
    """The bound falls, it is proved, and dense points find no error above it."""
    before, after = (solved(formula, domain, 1e-6, construction="gates", units=units, hinges=h) for h in (0, 8))
    assert after.model.config.ffn_width == 8
    assert after.certificate.bound < before.certificate.bound / factor
    axis = np.linspace(domain[0][0], domain[0][1], 40_001 if len(domain) == 1 else 301)
    x = np.stack(np.meshgrid(*[axis] * len(domain)), axis=-1).reshape(-1, len(domain))
    assert np.abs(after(x).reshape(-1) - after.target(x)[:, 0]).max() <= after.certificate.bound
    again = ol.certify(after, tolerance=2 * after.certificate.bound)
    assert again.verdict == "CERTIFIED"
    with torch.no_grad():
        after.model.W_2[np.abs(after.model.W_2.numpy()).sum(axis=1).argmax()] = 0.0  # one hinge less
    assert ol.certify(after, tolerance=2 * after.certificate.bound).verdict != "CERTIFIED"


@pytest.mark.parametrize("construction", ["gates", "memory"])
def test_the_feed_forward_network_alone(construction):
    """Without units the layer is a polygon, here proved; the heads, if any, only copy x."""
    alone = solved("x1**2", [(-1, 1)], 0.01, construction=construction, units=0, hinges=9)
    assert alone.units == 0
    assert alone.certificate.verdict == "CERTIFIED"
    assert alone.certificate.bound >= 2 / (8 * 10**2 / 4) / 2  # ten pieces of x²: no polygon is closer
    kinked = solved("abs(x1-x2)", [(0, 1)] * 2, 1e-6, construction=construction, units=0, hinges=2)
    assert kinked.certificate.verdict == "CERTIFIED"
    with pytest.raises(InputError, match="units, a whole number"):
        solved("x1", [(0, 1)], 0.1, construction=construction, units=0)


def test_hinges_are_chosen_for_what_is_left():
    """Two of many are the values themselves: they are found, and none is chosen twice."""
    g = torch.Generator().manual_seed(0)
    x = torch.rand(500, 2, generator=g, dtype=torch.float64) - 0.5
    many, one = spread_hinges(400, 2, 3), torch.ones(500, 1, dtype=torch.float64)
    y = (many.features(x)[:, 17] - 2 * many.features(x)[:, 250])[:, None]
    found, left = chosen_hinges(12, x, y, one, 3), []
    for hinges in (found, spread_hinges(12, 2, 3)):
        phi = torch.cat([one, hinges.features(x)], dim=1)
        left.append(float((phi @ least_squares(phi, y, one[:, 0], 1e-16) - y).norm()))
    assert left[0] < 1e-2 * left[1]
    assert len({(*a, b) for a, b in zip(found.directions.tolist(), found.offsets.tolist(), strict=True)}) == 12


def test_knots_follow_the_curvature():
    x = torch.linspace(-0.5, 0.5, 4001, dtype=torch.float64)
    even = -hinges_by_curvature(4, x, x[:, None] ** 2).offsets
    np.testing.assert_allclose(even.numpy(), [-0.3, -0.1, 0.1, 0.3], atol=5e-3)
    kinked = -hinges_by_curvature(4, x, (x[:, None] - 0.2).abs()).offsets
    np.testing.assert_allclose(kinked.numpy(), [0.2] * 4, atol=5e-3)
    cubic = -hinges_by_curvature(1, x, (x[:, None] + 0.5) ** 4).offsets  # √|r″| ~ x + ½: half of its integral at 1/√2
    np.testing.assert_allclose(cubic.numpy(), [2**-0.5 - 0.5], atol=5e-3)


def test_hinges_are_as_many_as_asked():
    for count in (1, 3, 9, 40):
        assert len(spread_hinges(count, 3, 0)) == count
