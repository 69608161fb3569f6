"""Values by least squares and toward the minimax; solved layers as the issue of size demands."""

from functools import partial

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer import InputError
from onelayer.construction.solved.corrected import spread_hinges
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


def test_hinges_are_as_many_as_asked():
    for count in (1, 3, 9, 40):
        assert len(spread_hinges(count, 3, 0)) == count
