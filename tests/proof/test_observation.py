"""Observed errors: found on edges and vertices of boxes of many variables, the same by seed, at points in scope alone."""

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.experiments.peers.task import observed_error
from onelayer.proof.observation import OBSERVED_POINTS, observe, observe_from


def at_an_edge(x):
    """1 at the middle of one edge of the unit cube, almost 0 at all corners and at most points inside."""
    away = np.where([True, False, True, True, False], 1 - x[:, :5], x[:, :5]).sum(axis=1)
    return np.exp(-away / 0.15 - ((x[:, 5] - 0.37) / 0.2) ** 2)


def zero(dimension=6, **about):
    return ol.Target("+".join(f"0*x{j + 1}" for j in range(dimension)), [(0, 1)] * dimension, **about)


def test_the_worst_error_at_an_edge_is_found():
    points = np.random.default_rng(0).random((OBSERVED_POINTS, 6))
    assert at_an_edge(points).max() < 0.5  # which random points do not see
    for seed in range(5):
        assert observe(at_an_edge, zero(), seed).largest > 0.99


def test_a_layer_that_is_wrong_along_an_edge_is_refuted():
    layer = ol.build(zero(), tolerance=1e-3)
    bump = "exp(-((1-x1)+x2+(1-x3)+(1-x4)+x5)/0.15-((x6-0.37)/0.2)**2)"
    certificate = ol.certify(layer.model, ol.Target(bump, [(0, 1)] * 6), 0.9, seconds=1.0)
    assert certificate.observed > 0.99
    assert certificate.verdict == "REFUTED"


def test_the_worst_error_at_a_vertex_is_found_where_there_are_too_many_to_try():
    vertex = np.random.default_rng(3).integers(0, 2, 14)
    seen = observe(lambda x: np.exp(-np.abs(x - vertex).sum(axis=1)), zero(14))
    assert seen.largest == 1.0
    assert seen.worst[0].tolist() == vertex.tolist()


def test_the_same_by_seed_and_without_global_randomness():
    torch_state, state = torch.random.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
    first, again, other = (observe(at_an_edge, zero(), seed) for seed in (4, 4, 5))
    assert (first.largest, first.points) == (again.largest, again.points)
    assert (first.worst == again.worst).all()
    assert first.worst.shape != other.worst.shape or (first.worst != other.worst).any()
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    assert str(np.random.get_state()) == state  # noqa: NPY002


def test_worst_points_come_first_and_lie_apart():
    worst = observe(at_an_edge, zero()).worst
    errors = at_an_edge(worst)
    assert (np.diff(errors) <= 0).all()
    assert len(worst) > 8
    gaps = np.abs(worst[:, None] - worst[None]).max(axis=2) + np.eye(len(worst))
    assert gaps.min() >= 0.01


@pytest.mark.parametrize("dimension", [1, 2, 6, 12, 100])
def test_a_callable_is_called_a_few_times_with_points_that_are_counted(dimension):
    asked = []

    def f(x):
        asked.append(len(x))
        return np.zeros(len(x))

    target = ol.Target(f, [(0, 1)] * dimension)
    asked.clear()
    seen = observe(lambda x: np.sin(9 * x).sum(axis=1), target)
    assert len(asked) <= 10
    assert sum(asked[:-1]) == seen.points  # last the worst points once more
    assert seen.points <= 2 * 23_000


@pytest.mark.parametrize("about", [{"within": "x1+x2 <= 1.1"}, {"margin": 0.05}])
def test_only_points_in_scope_are_looked_at(about):
    f = "where(x1 < 0.5, 0, 1)+0*x2" if "margin" in about else "0*x1+0*x2"
    target = ol.Target(f, [(0, 1)] * 2, **about)
    asked = []

    def answer(x):
        asked.append(x)
        return (x[:, 0] > 0.5) + (x[:, 0] + x[:, 1])  # largest where the scope ends, or at a corner

    seen = observe(answer, target)
    x = np.concatenate(asked)
    if "margin" in about:
        assert np.abs(x[:, 0] - 0.5).min() >= 0.05
        assert seen.largest == 2.0
    else:
        assert (x.sum(axis=1) <= 1.1).all()
        assert seen.largest > 2.09


def test_float32_points_reach_ends_that_are_no_float32_numbers():
    """0.1 and 0.3 are not float32 numbers: the corner is the float32 point next to it, inside the box."""
    target = ol.Target("0*x1+0*x2", [(0.1, 0.3)] * 2)
    asked = []

    def answer(x):
        asked.append(x)
        return x.sum(axis=1)

    seen = observe(answer, target, dtype=np.float32)
    x = np.concatenate(asked)
    assert (x == x.astype(np.float32)).all()
    assert target.domain.contains(x).all()
    assert seen.largest == 2 * float(np.nextafter(np.float32(0.3), np.float32(0)))


def test_what_is_not_finite_is_seen_on_the_way_up():
    def answer(x):
        errors = at_an_edge(x)
        return np.where(errors > 0.9, np.nan, errors)

    points = np.random.default_rng(0).random((1000, 6))
    seen = observe_from(answer, zero(), points)
    assert np.isnan(seen.largest)
    assert np.isnan(answer(seen.worst)).all()


def test_an_answer_whose_time_is_up_covers_the_first_points():
    seen = observe(lambda x: at_an_edge(x[:50]), zero())
    assert 50 <= seen.points <= 50 * 9
    assert seen.largest > 0


def test_every_competitor_is_followed_uphill_from_its_own_worst_points():
    assert observed_error(at_an_edge, zero()) > 0.99
    assert observed_error(lambda x: at_an_edge(1 - x), zero()) > 0.99
