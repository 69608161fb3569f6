"""The search for few units: deterministic, interruptible, within its budget, and honest about what it could not do."""

import importlib
import math

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.common.budget import Budget
from onelayer.construction.fitted_groups import splittings
from onelayer.construction.kinks.remainder import remainders_of
from onelayer.construction.polished.candidate import Candidate
from onelayer.construction.polished.families import family_of
from onelayer.construction.polished.growth import expected_size, next_size
from onelayer.construction.polished.layer import polished
from onelayer.construction.polished.layer_size import Size, most_units
from onelayer.construction.polished.search import UnitSearch
from onelayer.construction.polished.why_not import units_needed
from onelayer.construction.request import Request
from onelayer.proof.certificate import Box, Certificate, Evidence
from onelayer.target.group_samples import GroupSamples
from onelayer.target.target import Target

pytestmark = pytest.mark.usefixtures("as_user")  # many small steps: checks of signatures would take most of the time
WAVE = Target("sin(6*x1)*x2", [(0, 1)] * 2)


def search_of(target: Target, goal: float, **about) -> UnitSearch:
    group = tuple(range(target.dimension))
    given = {"family": family_of("memory", len(group)), "budget": Budget(60.0), "most": 60} | about
    source = GroupSamples(target, group, 0)
    return UnitSearch(source=source, goal=goal, cap=lambda spread, n: 1e3 * spread, **given)


def polished_memory(target: Target, tolerance: float) -> Candidate:
    request = Request(target, tolerance)
    rest = remainders_of(request)["memory"]
    return Candidate(request, "memory", rest, splittings(target, 0)[0], Budget(60.0)).run()


def test_the_same_seed_gives_the_same_layer():
    first, second = (search_of(WAVE, 1e-3).run() for _ in range(2))
    assert first.theta.equal(second.theta)
    assert first.coefficients.equal(second.coefficients)


def test_the_search_meets_its_goal_and_prunes():
    search = search_of(WAVE, 1e-3)
    fit = search.run()
    assert fit.observed <= 1e-3
    assert fit.units == min(n for n, error in search.tried.items() if error <= 1e-3)
    assert fit.units < max(search.tried)
    assert 0.99 < search.done <= 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("family", ["memory", "gates"])
def test_a_search_goes_on_from_its_best_fit(family):
    search = search_of(WAVE, 1e-2, family=family_of(family, 2))
    before = search.run()
    after = search.resume(*search.source.sample(50, seed=5), 1e-4)
    assert after.observed <= 1e-4 < before.observed
    assert after.units > before.units


def test_time_that_is_over_leaves_a_layer_all_the_same():
    fit = search_of(WAVE, 1e-9, budget=Budget(0.0)).run()
    assert math.isfinite(fit.observed)


@pytest.mark.parametrize("stage", ["polishing", "certifying"])
def test_an_interrupt_keeps_the_best_so_far(stage):
    sent = []

    def interrupt(told: str, fraction: float) -> None:
        if stage in told and not sent:
            sent.append(told)
            raise KeyboardInterrupt

    formula = "sin(20*x1*x2) + cos(17*x1 - 9*x2)" if stage == "polishing" else "sin(3*x1*x2)"
    approx = ol.build(formula, [(0, 1)] * 2, 1e-9 if stage == "polishing" else 1e-2, progress=interrupt)
    assert sent
    assert "interrupted: this is the best layer so far" in approx.facts.notes
    assert approx.certificate.verdict in ("REFUTED", "UNDECIDED")
    assert np.isfinite(approx(np.full((1, 2), 0.5))).all()


def test_a_pilot_leaves_threads_as_before():
    threads = torch.get_num_threads()
    assert [search_of(WAVE, 1.0).pilot(n).units for n in (3, 5)] == [3, 5]
    assert torch.get_num_threads() == threads


def test_sizes_follow_the_rate():
    falling = [(n, math.exp(-2 * math.sqrt(n))) for n in (16, 25)]  # d = 2
    assert expected_size(falling, math.exp(-12.001), 2) == 37
    assert expected_size([(16, 1e-3), (25, 1e-2)], 1e-6, 2) == 10**6  # the error does not fall
    assert expected_size([(3, math.inf), (4, math.inf)], 1e-3, 1) == 10**6  # fits whose values overflow
    assert next_size([(20, 1e-2)], 1e-6, 2) == 25  # no rate to go by: a quarter more
    assert next_size(falling, 1e-9, 2) == 32  # never more than that
    assert next_size(falling, 0.5 * falling[-1][1], 2) == 27  # most of the way to 29
    assert next_size([(100, 1e-2), (110, 1.01e-6)], 1e-6, 2) == 113  # never less than 3 %


@pytest.mark.parametrize("family", ["memory", "gates"])
def test_units_are_inserted_where_the_error_is_largest(family):
    search = search_of(WAVE, 1e-3, family=family_of(family, 2))
    fit = search.pilot(6)
    x = torch.tensor([[0.3, -0.2], [-0.4, 0.4]], dtype=torch.float64)
    theta = search.family.inserted(fit.theta, x, torch.tensor([1.0, 0.1], dtype=torch.float64), 1)
    assert len(theta) == 7
    if family == "memory":
        own = search.family.weights(theta, torch.cat([x, search.pool]))[:, -1]
        assert own[0] >= own.max() - 1e-12
    else:
        assert torch.allclose(theta[-1, 1:] / theta[-1, 0], x[0])


def test_an_expectation_is_not_lost():
    search = search_of(WAVE, 1e-3)
    units = search.expected()
    tried = dict(search.tried)
    fit = search.run()
    assert fit.observed <= 1e-3
    assert units > 0
    assert tried.items() <= search.tried.items()


def test_what_would_be_needed_is_estimated():
    search = search_of(WAVE, 1e-6)
    assert units_needed(search) is None
    search.tried = {n: math.exp(-2 * math.sqrt(n)) for n in (9, 16, 25)}  # d = 2
    assert units_needed(search) == math.ceil((math.log(1e6) / 2) ** 2)
    search.tried = dict.fromkeys((9, 16, 25), 0.1)
    assert units_needed(search) == 10**9


@pytest.mark.long
@pytest.mark.parametrize("construction", ["gates", "memory"])
def test_units_that_are_given_are_used_even_if_fewer_would_do(construction):
    approx = ol.build("x1*x2", [(0, 1)] * 2, 1e-2, construction=construction, units=9)
    assert approx.units == 9


@pytest.mark.long
def test_gates_that_would_be_cheaper():
    target = Target("x1*x2", [(0, 1)] * 2)
    few = most_units(target, "gates", [], Size(100, 300))
    approx = ol.build(target, tolerance=1e-2, construction="gates", units=few)
    more = ol.build(target, tolerance=1e-2, construction="gates", units=few + 1)
    assert approx.parameters < 300 <= more.parameters
    assert most_units(target, "gates", [], Size(100, 1)) == 0


def test_more_units_take_the_place_of_fewer_only_with_half_the_numbers():
    assert Size(9, 99).replaces(Size(9, 100))
    assert not Size(9, 100).replaces(Size(9, 100))
    assert not Size(10, 51).replaces(Size(9, 100))
    assert Size(10, 50).replaces(Size(9, 100))
    target = Target("x1*x2", [(0, 1)] * 2)
    assert most_units(target, "gates", [], Size(3, 1_000)) > 3  # with half of the numbers
    assert most_units(target, "gates", [], Size(3, 100)) <= 3


def test_groups_share_the_tolerance():
    target = Target("sin(x1) + x2 + exp(x3)*x4", [(0, 1)] * 4)
    found = polished_memory(target, 1e-4)
    assert sorted(found.fitted) == [(0,), (1,), (2, 3)]
    assert found.fitted[(1,)].heads is None  # affine: no units
    assert found.observed <= found.goal


def test_points_of_a_failed_proof_go_back_into_the_samples():
    found = polished_memory(WAVE, 1e-2)
    search = found.searches[(0, 1)]
    before, goal = len(search.pool), search.goal
    found.resume([Box((0, 1), (0.2, 0.3), (0.4, 0.5))])
    assert len(search.pool) > before
    assert search.goal < goal
    inside = search.extra[0] + 0.5
    assert (inside >= torch.tensor([0.2, 0.3], dtype=torch.float64) - 1e-12).all()
    assert (inside <= torch.tensor([0.4, 0.5], dtype=torch.float64) + 1e-12).all()
    assert found.observed <= search.goal


def test_a_certificate_that_fails_sends_the_layer_back(monkeypatch):
    """The first proof is made to fail: the layer must be polished again, and be certified then."""
    home = importlib.import_module("onelayer.pipeline")
    calls = []

    def fails_once(*given, **about):
        certificate = home_decide(*given, **about)
        calls.append(certificate)
        if len(calls) == 1:
            evidence = Evidence(worst_boxes=(Box((0, 1), (0.1, 0.1), (0.2, 0.2)),))
            return Certificate(1e-3, 2e-3, certificate.observed, 1, "analytic", "", evidence=evidence)
        return certificate

    home_decide = home.decide
    monkeypatch.setattr(home, "decide", fails_once)
    approx = ol.build(WAVE, tolerance=1e-3, construction="memory")
    assert len(calls) == 2
    assert approx.certificate.verdict == "CERTIFIED"


def test_auto_takes_the_family_with_fewer_parameters():
    target = Target("sin(6*x1)", [(0, 1)])
    best = polished(Request(target, 1e-5))
    assert best[0].observed <= best[0].goal
    assert not any(p.size.replaces(best[0].size) for p in best if p.observed <= p.goal)
