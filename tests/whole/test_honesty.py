"""What must never be certified, stored or lost: the finds of a hostile reader."""

import itertools
import math
import os
from dataclasses import replace

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer import InputError
from onelayer.proof.claim import Claim
from onelayer.views.costs import plan_followed


def test_a_contradicted_declaration_is_refused():
    for f in (lambda x: 10 * x[:, 0], "10*x1"):
        with pytest.raises(InputError, match=r"x = \(.*\) and \(.*\) differ by"):
            ol.build(f, [(0, 1)], 0.1, method="representative", lipschitz=1.0)


def test_a_modulus_is_declared_on_the_whole_box():
    def f(x):
        return np.where((x**2).sum(axis=1) <= 1, x[:, 0], 1000.0)

    c = ol.build(f, [(-1, 1)] * 2, 0.3, method="representative", lipschitz=1.0, within="x1**2+x2**2<=1").certificate
    assert c.verdict != "CERTIFIED"
    assert any("on the whole box" in a for a in c.assumptions)


def test_a_model_that_answers_nan_is_never_certified():
    c = ol.build("x1", [(0, 1)], 0.5, method="representative").certificate
    from dataclasses import replace

    assert c.verdict == "CERTIFIED"
    assert replace(c, observed=math.nan).verdict == "UNDECIDED"


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    "call",
    [
        lambda: ol.build("1e300*x1", [(0, 1e-310)], 0.1, method="representative"),
        lambda: ol.build("x1", [(0, 10**400)], 0.1),
        lambda: ol.build("x1", [(0, 1)], 1e-320),
        lambda: ol.build(np.sin, [(0, 1)], 0.1, evaluation_error=math.nan),
        lambda: ol.build(np.sin, [(0, 1)], 0.1, evaluation_error="x"),
        lambda: ol.build("x1", [(0, 1)], 0.1, lipschitz=1.0, modulus=lambda r: r),
        lambda: ol.Target("x1", ol.Target("x1", [(0, 1)]).domain, within="x1 < 0.5"),
        lambda: ol.build("x1", [(0, 1)], 0.1, modulus=3),
        lambda: ol.build("x1", [(0, 1)], 0.1, shape=1),
        lambda: ol.build("x1", [(0, 1)], 0.1, output_shape=1),
        lambda: ol.build("x1", [(0, 1)], 0.1, lipschitz="a", method="representative"),
        lambda: ol.build("x1", [(0, 1)], 0.1, lipschitz=True, method="representative"),
        lambda: ol.build("x1", [(0, 1)], 0.1, hinges=-1),
        lambda: ol.build("x1", [(0, 1)], 0.1, units=2.5),
        lambda: ol.build("x1", [(0, 1)], 0.1, units=10**6),
        lambda: ol.build("x1", [(0, 1)], 0.1, seed=2**70),
        lambda: ol.build("x1", [(0, 1)], 0.1, method="representative", units=5),
        lambda: ol.build("x1", [(0, 1)], 0.1, method="representative", hinges=5),
        lambda: ol.build("x1", [(0, 1)], 0.1, method="representative", symmetric=True),
        lambda: ol.build("x1", [(0, 1)], 0.1, construction="memory", layout="heads"),
        lambda: ol.build("x1", [(0, 1)], 0.1, symmetric=True, layout="wide"),
        lambda: ol.plan("x1", [(1e15, 1e15 + 1)], 1e-12, method="representative"),
    ],
)
def test_senseless_wishes_get_one_clear_line(call):
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_numpy_numbers_are_welcome():
    assert ol.build("x1", [(0, 1)], 0.5, lipschitz=np.float64(1), method="representative").certificate.bound <= 0.5


@pytest.mark.parametrize(
    ("formula", "domain", "tolerance"),
    [
        ("sin(10*x1)", [(1e8, 1e8 + 1)], 0.2),
        ("1e9 + abs(x1-0.5)", [(0, 1)], 0.05),
        pytest.param("x1**(1/3) + x2**1.5", [(0, 1)] * 2, 0.5, marks=pytest.mark.long),
    ],
)
def test_what_is_planned_is_certified(formula, domain, tolerance):
    """Rounding is part of the plan: far from 0, with a large offset, and without Lipschitz constants."""
    approx = ol.build(formula, domain, tolerance, method="representative")
    assert approx.certificate.verdict == "CERTIFIED"
    assert plan_followed(approx).config == approx.model.config


def test_a_changed_model_does_not_carry_its_certificate_along(tmp_path):
    approx = ol.build("x1", [(0, 1)], 0.5, method="representative")
    with torch.no_grad():
        approx.model.W_O.zero_()
    with pytest.raises(InputError, match="changed after it was certified"):
        approx.save(tmp_path / "f")
    approx = ol.build("x1", [(0, 1)], 0.5, method="representative")
    approx.model.float()
    with pytest.raises(InputError, match="changed after it was certified"):
        approx.save(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", ["data", "memory", "config"])
def test_a_model_that_was_changed_behind_the_back_of_torch(tmp_path, change):
    """Neither `.data` nor shared memory moves the version that torch counts, and the configuration is no weight."""
    approx = ol.build("sin(3*x)", [(-1, 1)], 1e-2)
    approx(0.3)
    if change == "config":
        approx.model.config = replace(approx.model.config, residual=not approx.model.config.residual)
    elif change == "data":
        approx.model.b_R.data += 100.0
    else:
        approx.model.b_R.detach().numpy()[:] += 100.0
    if change == "config":
        with pytest.raises(InputError, match="changed after it was certified"):
            approx(0.3)
    assert not approx.covers(0.3)
    assert "none: a model that was changed after it was certified" in str(approx)
    for state in (lambda: approx.save(tmp_path / "f"), lambda: ol.export(approx, tmp_path / "f.c", to="c")):
        with pytest.raises(InputError, match="changed after it was certified"):
            state()


def test_an_interrupt_while_replacing_keeps_the_old_folder(tmp_path, monkeypatch):
    approx = ol.build("x1", [(0, 1)], 0.5, method="representative")
    approx.save(tmp_path / "f")

    renamed, before = os.replace, {p.name: p.read_bytes() for p in (tmp_path / "f").iterdir()}
    for moment in range(1, 7):
        calls = itertools.count(1)

        def interrupted(a, b, calls=calls, moment=moment):
            if next(calls) == moment:
                raise KeyboardInterrupt
            renamed(a, b)

        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ol.build("x1 + 1", [(0, 1)], 0.5, method="representative").save(tmp_path / "f", overwrite=True)
        monkeypatch.undo()
        assert {p.name: p.read_bytes() for p in (tmp_path / "f").iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_callable_may_write_into_its_input():
    def f(x):
        x -= 0.5
        return x[:, 0] ** 2

    assert ol.build(f, [(0, 1)], 1e-3).certificate.observed <= 1e-3


@pytest.mark.long
@pytest.mark.parametrize(
    "formula", ["1e234*(exp((1e13+269.0009)-1e13+0.01*x1))**-2", "1e292*(exp((1e13+269.0009)-1e13+0.01*x1))**-2.5"]
)
def test_errors_of_the_formula_do_not_underflow(formula):
    """f itself is off by 1e-3 in floating point: no certificate may come out below that."""
    from flint import arb

    from onelayer.formula import enclose

    approx = ol.build(formula, [(0, 1)], 1e-6)
    x = np.linspace(0, 1, 21)[:, None]
    true = max(
        float(abs(enclose(approx.target.formula, p)[0].ball() - arb(t)).lower())
        for p, t in zip(x.tolist(), approx(x).tolist(), strict=True)
    )
    assert true > 1e-3
    assert approx.certificate.verdict != "CERTIFIED"
    assert approx.certificate.bound >= true


def test_weights_that_are_not_finite_are_never_proved():
    from dataclasses import replace

    from cases import certified
    from onelayer.construction.request import Request
    from onelayer.construction.solved.layer import solved_layer

    target = ol.Target("sin(x1)", [(0, 1)])
    layer = solved_layer(Request(target, 1e-2, construction="memory"))
    for bad in (math.nan, math.inf):
        keys = layer.memory.keys.clone()
        keys[0, 0] = bad
        broken = replace(layer, memory=replace(layer.memory, keys=keys))
        certificate = certified(target, broken, 1e-2)
        assert (certificate.verdict, certificate.bound) == ("UNDECIDED", math.inf)


def test_a_large_offset_in_the_layout_heads_is_paid_for():
    """There the bias is one of the M + 1 summands of a dot product: M·u·|bias| belongs to the bound."""
    plain, offset = (
        ol.build(f, [(0, 1)], 0.05, method="representative", layout="heads")
        for f in ("abs(x1-0.5)", "1e9 + abs(x1-0.5)")
    )
    assert offset.certificate.verdict == "CERTIFIED"
    extra = offset.certificate.evidence.terms["evaluation"] - plain.certificate.evidence.terms["evaluation"]
    assert extra >= (offset.units + 1) * 2.0**-53 * 1e9


def test_cancelling_offsets_of_groups_are_certified_soundly():
    c = ol.build("(sin(x1) + 1e6) + (sin(x2) - 1e6)", [(0, 1)] * 2, 1e-4).certificate
    assert c.verdict == "CERTIFIED"
    assert c.observed <= c.bound


def test_nothing_is_claimed_about_an_empty_domain():
    target = ol.Target("x1", [(0, 1)], within="x1 > 2")
    from onelayer.layer.assemble import frame_of
    from onelayer.layer.form import form_of
    from onelayer.layer.layer import gate_layer
    from onelayer.proof.analytic.prove import prove

    layer = gate_layer(torch.zeros(1, dtype=torch.float64), 1)
    assert prove(form_of(layer), frame_of(target.domain), Claim(target, 0.1)).bound == math.inf
