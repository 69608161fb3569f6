"""Slopes: proved, searched for, refused where there are none; never below the truth."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import hunting
import onelayer as ol
from cases import random_model
from onelayer.formula import gradients
from onelayer.formula.taylor.series import Space
from onelayer.layer.form import form_of
from onelayer.layer.slope_form import slope_form
from onelayer.model.config import LayerConfig
from onelayer.proof.bisection.tangents import Slopes
from onelayer.proof.certificate import Certificate
from onelayer.proof.slopes import slopes_at
from slope_hunting import observed_slopes, slope_engine

SEEDS = range(7_000_000, 7_000_120)
HUNTS = [
    (hunting.case, torch.float64, SEEDS[:50]),
    (hunting.case, torch.float32, SEEDS[50:65]),
    (hunting.one_head, torch.float64, SEEDS[65:80]),
    (hunting.special, torch.float64, SEEDS[80:100]),
    (hunting.network, torch.float64, SEEDS[100:110]),
    (hunting.network, torch.float32, SEEDS[110:120]),
]
WAVES = "sin(x1) + sin(x2)"
SQUARE = [(0, "2*pi")] * 2


def differences(function, x, i, step=1e-6):
    ahead, behind = x.copy(), x.copy()
    ahead[:, i] += step
    behind[:, i] -= step
    return (function(ahead) - function(behind)) / (2 * step)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("maker", "dtype", "seeds"),
    [
        *((maker, dtype, seeds[::3]) for maker, dtype, seeds in HUNTS),
        *(
            pytest.param(maker, dtype, [s for s in seeds if s not in seeds[::3]], marks=pytest.mark.long)
            for maker, dtype, seeds in HUNTS
        ),
    ],
)
def test_no_bound_on_slopes_is_below_the_truth(maker, dtype, seeds):
    engine = slope_engine(0.5, dtype, 300 if maker is hunting.network else 20_000)
    finds = list(hunting.hunt(engine, map(maker, seeds), dtype, observed_slopes))
    assert not [f"{f.case}: bound {f.bound!r} < observed {f.observed!r}" for f in finds if f.violated]
    assert sum(math.isfinite(f.bound) for f in finds) >= len(finds) / 5


def test_the_hunt_would_find_a_bound_on_slopes_that_is_too_low():
    honest = slope_engine(0.5)
    cases = [hunting.case(seed) for seed in SEEDS[:15]]
    assert any(f.violated for f in hunting.hunt(lambda case: 0.95 * honest(case), cases, seen=observed_slopes))


@pytest.mark.parametrize("seed", range(20))
def test_the_slope_form_has_the_slopes_of_the_form(seed):
    case = hunting.case(seed) if seed % 2 else hunting.one_head(seed)
    if case.poisoned:
        return
    form, scale = form_of(case.layer), (0.7,) * case.target.dimension
    slopes, _ = slope_form(form, scale, 0.5)
    x = (torch.rand(50, form.dimension, dtype=torch.float64) - 0.5).requires_grad_(True)
    y = form(x)
    own = [torch.autograd.grad(y[:, o].sum(), x, retain_graph=True)[0] * 0.7 for o in range(y.shape[1])]
    values = sum(
        float(b.values.abs().max() + b.slopes.abs().max()) for b in form.blocks
    )  # a common offset is rounded too
    size = 1 + values * max((float(b.keys.abs().max()) for b in form.blocks), default=0.0)
    assert float((slopes(x) - torch.cat(own, dim=1)).detach().abs().max()) <= 1e-9 * size


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("readout", ["position", "output", "mean"])
def test_tangents_enclose_the_slopes_of_any_transformer(norm, activation, readout):
    sizes = {"tokens": 2, "features_in": 1, "features_out": 2, "d_model": 6, "heads": 2, "d_k": 3, "d_v": 2}
    config = LayerConfig(**sizes, ffn_width=5, activation=activation, norm=norm, readout=readout, output_tokens=1)
    model, rng = random_model(config, seed=len(norm) + len(activation)), np.random.default_rng(1)
    lower = rng.uniform(-1, 0.5, (4, 2))
    upper = lower + 10 ** rng.uniform(-4, -1, (4, 1))
    low, high = Slopes(model)(Space(lower, upper)).model.range()
    at = slopes_at(model, tuple(range(config.places)))
    for box in range(4):
        found = at(lower[box] + (upper[box] - lower[box]) * rng.random((100, 2)))
        rounding = 1e-11 * (1 + np.abs(found).max())
        assert (found >= low[box] - rounding).all()
        assert (found <= high[box] + rounding).all()
    assert np.isfinite(high - low).any()


def test_values_and_slopes_are_certified_together(tmp_path):
    a = ol.build(WAVES, SQUARE, 1e-4, slope_tolerance=1e-3)
    c = a.certificate
    assert c.verdict == "CERTIFIED"
    assert c.slope.observed <= c.slope.bound <= 1.3 * c.slope.observed
    x = np.random.default_rng(0).uniform(0.01, 6.2, (500, 2))
    for i in range(2):
        assert np.abs(differences(a, x, i) - np.cos(x[:, i])).max() <= c.slope.bound + 1e-8
    again = ol.load(a.save(tmp_path / "both")).certificate
    assert again.slope == c.slope
    assert "slopes" in str(c)


def test_the_gradient_is_derived_once(monkeypatch):
    derived, honest = [], gradients.gradient
    monkeypatch.setattr(gradients, "gradient", lambda formula: derived.append(formula) or honest(formula))
    a = ol.build("sin(x1)*exp(x2)", [(0, 1)] * 2, 1e-2, slope_tolerance=0.1)
    ol.certify(a)
    assert len(derived) == 1


def test_a_tolerance_for_slopes_decides_the_verdict():
    values = ol.build(WAVES, SQUARE, 1e-2)
    target = ol.Target(WAVES, SQUARE)
    strict = ol.certify(values.model, target, 1e-2, slope_tolerance=1e-6, places=values.facts.places)
    assert strict.bound <= 1e-2
    assert strict.verdict == "UNDECIDED"
    loose = ol.certify(values.model, target, 1e-2, slope_tolerance=1.0, places=values.facts.places)
    assert loose.verdict == "CERTIFIED"


def test_a_slope_that_contradicts_its_bound_certifies_nothing():
    c = ol.build("x1**2", [(0, 1)], 1e-2, slope_tolerance=0.1).certificate
    assert c.verdict == "CERTIFIED"
    for slope in (replace(c.slope, observed=c.slope.bound * 1.01), replace(c.slope, observed=math.nan)):
        assert replace(c, slope=slope).verdict == "UNDECIDED"
    assert replace(c, slope=replace(c.slope, bound=math.inf)).verdict == "UNDECIDED"


def test_an_infinite_slope_bound_reads_back():
    c = ol.build("x1**2", [(0, 1)], 1e-2, slope_tolerance=0.1).certificate
    c = replace(c, slope=replace(c.slope, bound=math.inf))
    assert Certificate.from_json(c.as_json()) == c


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("formula", "domain", "options"),
    [
        ("x1*x2; x1 - x2**2", [(0, 1)] * 2, {}),
        ("2*x1 + 3*x2", [(0, 1)] * 2, {}),
        ("sin(x1)", [(0, 3)], {"dtype": "float32"}),
        pytest.param("exp(-x1**2 - x2**2)", [(-1, 1)] * 2, {"within": "x1**2 + x2**2 <= 1"}, marks=pytest.mark.long),
        ("x1*x2 + x2*x3", [(0, 1)] * 3, {}),
        ("abs(x1 - x2)", [(0, 1)] * 2, {"margin": 0.01}),
        ("max(x1, x2) + sin(x1)", [(0, 1)] * 2, {"margin": 0.02}),
    ],
)
def test_slopes_of_all_kinds_are_certified(formula, domain, options):
    c = ol.build(formula, domain, 1e-3, slope_tolerance=2e-2, **options).certificate
    assert c.verdict == "CERTIFIED"
    assert c.slope.holds


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("sqrt(x1)", {}, "finite slopes"),
        ("abs(x1 - 0.5)", {}, "a margin around the kinks"),
        ("sin(x1)", {"slope_tolerance": -1.0}, "a tolerance above 0"),
        ("sin(x1)", {"method": "solved"}, "which fits slopes"),
        (lambda x: x[:, 0], {"lipschitz": 1.0}, "a formula"),
    ],
)
def test_where_there_are_no_slopes_it_says_so(function, options, words):
    with pytest.raises(ol.InputError, match=words):
        ol.build(function, [(0, 1)], 1e-2, **({"slope_tolerance": 0.1} | options))


@pytest.mark.long
def test_a_trained_layer_has_slopes_too():
    trained = ol.train("sin(x1) + x2", [(0, 1)] * 2, steps=100, heads=2)
    c = ol.certify(trained, tolerance=1.0, slope_tolerance=2.0)
    assert c.verdict == "CERTIFIED"
    assert c.slope.observed <= c.slope.bound


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3])
def test_kinks_are_as_sharp_as_their_slopes_ask_for(tolerance):
    c = ol.build("abs(x1)", [(-1, 1)], tolerance, slope_tolerance=1e-2, margin=0.02).certificate
    assert c.verdict == "CERTIFIED"
    assert not any("where" in a for a in c.assumptions)  # nothing is left out of the claim about values


def test_slopes_that_fail_are_named_and_nothing_else():
    a = ol.build("sin(x1)", [(-1, 1)], 1e-3, slope_tolerance=1e-12, seconds=5.0)
    assert a.certificate.verdict == "UNDECIDED"
    (note,) = [note for note in a.facts.notes if "proved" in note]
    assert note.startswith("the values are proved; the slopes are not")
    assert "slopes: bound (proved)" in str(a)


def test_certify_repeats_slopes_and_properties():
    a = ol.build("x1**3", [(-1, 1)], 1e-3, slope_tolerance=0.1, properties=["increasing in x1"])
    again = ol.certify(a)
    assert again.slope.tolerance == 0.1
    assert again.properties == a.certificate.properties
    assert again.properties[0].verdict == "PROVED"
