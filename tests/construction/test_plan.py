"""Plans: sizes before building, polite refusals with a way out."""

import numpy as np
import pytest

import onelayer as ol
from onelayer import InputError
from onelayer import plan as make_plan
from onelayer.construction.representative.layer import plan_representative


def test_every_method_side_by_side():
    plans = make_plan("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 0.1)
    assert [p.method for p in plans.plans] == ["representative", "solved", "polished"]
    assert plans["representative"].proved
    assert plans["representative"].bound <= 0.1
    assert not plans["solved"].proved
    assert not plans["polished"].proved
    assert plans["polished"].units <= plans["solved"].units
    assert plans["solved"].units < plans["representative"].units / 100
    assert "estimate" in str(plans)
    assert plans.as_json()["plans"][0]["units"] == plans["representative"].units
    with pytest.raises(KeyError):
        plans["trained"]


def test_a_bound_without_rounding_is_called_that():
    """The certificate of the layer that is built has the rounding, and a larger bound."""
    plan = make_plan("sin(x1)", [(0, 1)], 0.1, method="representative")
    assert plan.bound < ol.build("sin(x1)", [(0, 1)], 0.1, method="representative").certificate.bound
    assert "bound (proved in exact arithmetic)" in str(plan)
    assert plan.as_json()["known"] == "proved in exact arithmetic"
    plans = make_plan("sin(x1)", [(0, 1)], 0.1)
    assert [p.known for p in plans.plans] == ["proved in exact arithmetic", "estimate, aimed at", "estimate, aimed at"]
    assert [row[-1] for row in plans.table().rows] == [p.known for p in plans.plans]
    assert [row[-2] for row in plans.table().rows][1:] == [
        "0.1",
        "0.1",
    ]  # nothing is rounded up where nothing is proved


def test_a_planned_bound_names_what_was_declared():
    target = ol.Target(lambda x: np.sin(x[:, 0]), [(0, 1)], lipschitz=1.0)
    plan = make_plan(target, tolerance=0.1, method="representative")
    assert "if |f(x) − f(y)| ≤ 1·|x − y|" in str(plan)
    assert plan.as_json()["condition"] == "|f(x) − f(y)| ≤ 1·|x − y|"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("method", ["solved", "polished"])
@pytest.mark.parametrize("formula", ["sin(x1)+sin(x2)", "exp(-x1)*cos(3*x2)"])
def test_the_estimate_is_of_the_right_size(as_user, formula, method):
    plan = make_plan(formula, [(0, 1)] * 2, 1e-3, method=method)
    built = ol.build(formula, [(0, 1)] * 2, 1e-3, method=method)
    assert built.certificate.observed <= 1e-3
    assert plan.units / 6 <= built.units <= 6 * plan.units


def test_what_does_not_fit_is_refused_with_a_way_out():
    with pytest.raises(InputError, match=r"heads.*method='solved'.*tolerance of about"):
        make_plan("sin(x1*x2*x3)", [(0, 1)] * 3, 1e-4, method="representative")
    with pytest.raises(InputError, match="method='solved'"):
        ol.build("sin(x1*x2*x3)", [(0, 1)] * 3, 1e-4, method="representative")
    both = make_plan("sin(x1*x2*x3)", [(0, 1)] * 3, 1e-3)
    assert [p.method for p in both.plans] == ["solved", "polished"]
    assert "method='solved'" in both.refusals[0]


def test_kinks_and_affine_parts_are_planned_as_they_are_built():
    square = [(0, 1)] * 2
    assert make_plan("abs(x1 - x2)", square, 1e-6, method="polished").units == 1
    assert make_plan("x1 - x2", square, 1e-6, method="polished").units == 0
    assert make_plan("3.5", square, 1e-6, method="polished").units == 0


def test_the_tolerance_that_a_refusal_names_would_fit():
    with pytest.raises(InputError) as refused:
        make_plan("sin(x1*x2*x3)", [(0, 1)] * 3, 1e-4, method="representative")
    named = float(str(refused.value).split("tolerance of about ")[1])
    assert make_plan("sin(x1*x2*x3)", [(0, 1)] * 3, named, method="representative").bound <= named


def test_a_jump_is_refused():
    with pytest.raises(InputError, match="may jump"):
        make_plan("where(x1 < 0.5, 0, 1)", [(0, 1)], 0.1, method="representative")


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize("tolerance", [0, -1e-3, float("nan"), float("inf"), "small", True])
def test_a_bad_tolerance_gets_one_clear_line(tolerance):
    for call in (lambda: make_plan("x1", [(0, 1)], tolerance), lambda: ol.build("x1", [(0, 1)], tolerance)):
        with pytest.raises(InputError, match=r"asked: a tolerance above 0 .*; found: "):
            call()


@pytest.mark.usefixtures("as_user")
def test_unknown_words_get_one_clear_line():
    for options in ({"method": "magic"}, {"construction": "towers"}, {"layout": "round"}, {"share": 2.0}):
        with pytest.raises(InputError):
            ol.build("x1", [(0, 1)], 0.1, **({"method": "representative"} | options))
    with pytest.raises(InputError, match="method, one of"):
        make_plan("x1", [(0, 1)], 0.1, method="magic")
    with pytest.raises(InputError, match="the paper's construction"):
        ol.build("x1", [(0, 1)], 0.1, method="representative", construction="memory")


def test_smaller_share_means_sharper_and_fewer():
    target = ol.Target("sin(x1)", [(0, 3)])
    few, many = (plan_representative(target, 0.1, share) for share in (0.01, 0.9))
    assert few.units < many.units
    assert few.sharpness > many.sharpness
    assert np.isclose(few.bound, 0.1, rtol=1e-3)


def test_options_of_the_target_are_sent_there(as_user):
    with pytest.raises(
        InputError, match=r"found: where; change: put it into the target: Target\(function, domain, within=…\)"
    ):
        make_plan("x1", [(0, 1)], 0.1, where="x1 < 0.5")
    with pytest.raises(InputError, match="a forecast"):
        make_plan(ol.Target("x1*x2", [(0, 1)] * 2, symmetric=True), tolerance=1e-2)
