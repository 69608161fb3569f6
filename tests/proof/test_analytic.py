"""The analytic certificate: close where it should be, undecided where nothing is proved. `test_soundness` hunts."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import onelayer as ol
from cases import certified, random_layer
from onelayer.common.budget import Budget
from onelayer.formula import parse
from onelayer.formula.additive import components, maximal, parts_of
from onelayer.formula.float_bounds import evaluate_bounded
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.form import Form, form_of
from onelayer.proof.analytic import enclosure
from onelayer.proof.analytic.prove import prove
from onelayer.proof.claim import Claim
from onelayer.target.groups import groups_of

ANALYTIC = [
    ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-4),
    ("exp(-x1)*cos(3*x2)", [(0, 1)] * 2, 1e-4),
    ("1/(1+x1**2+x2**2)", [(0, 1)] * 2, 1e-4),
    ("tanh(5*(x1-x2))", [(0, 1)] * 2, 1e-3),
    ("1/(1+25*x1**2)", [(-1, 1)], 1e-4),
    ("x1*x2; x1 - x2**2", [(0, 1)] * 2, 1e-3),
    ("x1*x2*x3", [(0, 1)] * 3, 1e-2),
]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("formula", "domain", "tolerance", "construction"), [(*c, how) for how in ("gates", "memory") for c in ANALYTIC]
)
def test_solved_layers_are_certified_closely(formula, domain, tolerance, construction):
    c = ol.build(formula, domain, tolerance, construction=construction).certificate
    assert c.verdict == "CERTIFIED"
    assert c.method == "analytic"
    assert c.observed <= c.bound <= 1.25 * c.observed
    assert c.bound <= tolerance


def test_an_additive_target_in_8_variables_costs_one_dimensional_certificates():
    formula = " + ".join(f"sin({i}*x{i})" for i in range(1, 9)) + " + x1*x2"
    c = ol.build(formula, [(0, 1)] * 8, 1e-3).certificate
    assert c.verdict == "CERTIFIED"
    assert max(map(len, c.evidence.groups)) == 2
    assert len(c.evidence.groups) == 7


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_part_of_a_box(tolerance):
    c = ol.build("x1*x2", [(-1, 1)] * 2, tolerance, within="x1**2 + x2**2 <= 1").certificate
    assert c.observed <= c.bound <= 1.2 * c.observed


@pytest.mark.parametrize("formula", ["max(x1, x2)", "where(x1 < 0.5, 0, x2)"])
def test_kinks_and_jumps_have_no_analytic_proof(formula):
    target = ol.Target(formula, [(0, 1)] * 2)
    form = form_of(random_layer(2, 1, 0, 3.0, "memory"))
    assert prove(form, frame_of(target.domain), Claim(target, 0.5)).bound == math.inf


def test_a_callable_is_left_undecided():
    assert ol.build(lambda x: np.sin(x[:, 0]), [(0, 1)], 1e-3).certificate.verdict == "UNDECIDED"


def test_a_spent_budget_is_undecided():
    target = ol.Target("sin(x1)", [(0, 1)])
    form = form_of(random_layer(1, 1, 0, 50.0, "memory"))
    proof = prove(form, frame_of(target.domain), Claim(target, 1e-3), Budget(seconds=-1.0))
    assert proof.bound == math.inf


def test_can_fail():
    """One value moved by more than the slack, and CERTIFIED vanishes."""

    from onelayer.construction.request import Request
    from onelayer.construction.solved.layer import solved_layer

    target = ol.Target("sin(x1)+sin(x2)", [(0, "2*pi")] * 2)
    layer = solved_layer(Request(target, 1e-4, construction="gates"))
    assert certified(target, layer, 1e-4).verdict == "CERTIFIED"
    values = layer.gate_values.clone()
    values[3, 0, 0] += 1e-3
    moved = certified(target, replace(layer, gate_values=values), 1e-4)
    assert moved.verdict == "REFUTED"
    assert 1e-4 < moved.bound < 2e-3
    broken = values.clone()
    broken[0, 0, 0] = math.nan
    assert certified(target, replace(layer, gate_values=broken), 1e-4).verdict == "UNDECIDED"


@given(st.integers(0, 10**6), st.sampled_from(["gates", "memory"]), st.integers(1, 4))
def test_the_form_is_the_model(seed, kind, D):
    target = ol.Target("x1", [(-1, 2)] * D)
    layer = random_layer(D, 1, seed, 10.0, kind)
    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    x = torch.from_numpy(target.domain.points(np.random.default_rng(seed).random((30, D))))
    form = form_of(layer)
    expected = model(x.reshape(30, model.config.tokens, -1)).flatten(1)
    torch.testing.assert_close(form(frame_of(target.domain)(x)), expected, rtol=0, atol=1e-11)
    (whole,) = form.split([tuple(range(D))])
    torch.testing.assert_close(whole(frame_of(target.domain)(x)), expected, rtol=0, atol=1e-11)


@given(st.integers(0, 10**6), st.sampled_from(["gates", "memory"]))
def test_a_form_is_the_sum_of_its_overlapping_parts(seed, kind):
    """Heads on (x1, x2), (x2, x3), (x4): none is lost, none counts twice."""
    groups = [(0, 1), (1, 2), (3,)]
    layers = [random_layer(len(g), 2, seed + i, 10.0, kind) for i, g in enumerate(groups)]
    blocks, bias, linear = [], torch.zeros(2, dtype=torch.float64), torch.zeros(4, 2, dtype=torch.float64)
    for group, layer in zip(groups, layers, strict=True):
        form, pick = form_of(layer), list(group)
        bias, linear[pick] = bias + form.bias, linear[pick] + form.linear
        for block in form.blocks:
            keys = torch.zeros(*block.keys.shape[:2], 4, dtype=torch.float64)
            slopes = torch.zeros(*block.slopes.shape[:2], 4, 2, dtype=torch.float64)
            keys[..., pick], slopes[:, :, pick] = block.keys, block.slopes
            blocks.append(replace(block, keys=keys, slopes=slopes))
    form = Form(bias, linear, tuple(blocks))
    x = torch.rand(30, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 0.5
    for way in (groups, maximal(form.links()), components(form.links())):
        parts = sum(part(x[:, list(group)]) for group, part in zip(way, form.split(way), strict=True))
        torch.testing.assert_close(parts, form(x), rtol=0, atol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize(("variables", "tolerance"), [(5, 1e-2), (8, 1e-3)])
def test_overlapping_terms_are_proved_one_by_one(variables, tolerance):
    """A chain over all variables: the proof looks at two at a time."""
    chain = " + ".join(f"sin(x{i}*x{i + 1})" for i in range(1, variables))
    approx = ol.build(chain, [(0, 1)] * variables, tolerance)
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.certificate.evidence.groups == tuple((i, i + 1) for i in range(variables - 1))


def test_a_formula_is_the_sum_of_its_parts():
    formula = parse("-(sin(x1) - 2*(x2*x4 + 3))/pi + x3**2 + 7; x1 - x2", ("x1", "x2", "x3", "x4"))
    target = ol.Target(formula.text, [(0, 1)] * 4)
    groups = groups_of(target)
    assert groups == [(0,), (1, 3), (2,)]
    x = np.random.default_rng(0).random((20, 4))
    parts = zip(parts_of(formula, groups), groups, strict=True)
    total = sum(evaluate_bounded(part, x[:, list(group)])[0] for part, group in parts)
    np.testing.assert_allclose(total, target(x), rtol=0, atol=1e-14)


def test_one_box_with_more_points_than_are_looked_at_at_once_has_a_range():
    """Three outputs at the finest grid: no part of the boxes is empty."""
    a = np.random.default_rng(0).normal(size=(1, 24, 24, 3))
    low, high, *_ = enclosure._polynomial_range(a, np.ones(1), replace(enclosure.FINE, points=10**9))
    total = np.abs(a).sum(axis=(1, 2))
    assert (low < high).all()
    assert (high < 2 * total).all()
