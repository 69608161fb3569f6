"""Composed layers: polylines with few pieces, and builds that use them where they help."""

import numpy as np
import pytest

import onelayer as ol
from onelayer.construction.composed.curve import fitted_polyline, samples_of

CURVES = {  # function, ends, ∫ √|h''|
    "exp": (np.exp, -3.0, 3.0, 2 * (np.exp(1.5) - np.exp(-1.5))),
    "sqrt": (np.sqrt, 0.0, 2.0, 2 * 2**0.25),
    "asin": (np.arcsin, 0.0, 1.0, np.pi / np.sqrt(2)),
    "sin": (np.sin, 0.0, 20.0, 15.4),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("error", [1e-1, 1e-3])
def test_a_polyline_is_within_its_error_with_few_pieces(name, error):
    h, low, high, bends = CURVES[name]
    seen = samples_of(h, low, high, error)
    assert seen is not None
    curve = fitted_polyline(*seen, error, 10_000)
    assert curve is not None
    u = np.concatenate([np.linspace(low, high, 20_001), low + (high - low) * np.logspace(-16, 0, 5000)])
    assert np.abs(np.interp(u, curve.knots, curve.values) - h(u)).max() <= 1.02 * error
    assert len(curve.knots) - 1 <= 1.35 * bends / (4 * np.sqrt(error)) + 2


def test_a_function_that_is_not_finite_has_no_polyline():
    assert samples_of(lambda u: 1 / np.where(u == 0, np.nan, u), -1.0, 1.0, 0.1) is None


BUILDS = {
    "sqrt((a - b)^2 + (c - d)^2)": ("1:5", 0.05),  # a cone in four variables
    "a*b*c*d*f*g": ("1:3", 7.0),  # six variables that interact
    "-a*b^4/(c^2*d^2*f^2)": ("1:5", 4.0),  # a range of 10^3 in one corner
    "a*b*cos(c)*d + 3": ("1:3", 0.5),
    "a*b; sqrt(a^2 + b^2)": ("0:3", 0.05),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("formula", BUILDS)
def test_certified(formula):
    domain, tolerance = BUILDS[formula]
    built = ol.build(formula, domain, tolerance)
    c = built.certificate
    assert c.verdict == "CERTIFIED"
    assert c.observed <= c.bound <= tolerance
    assert built.units <= 40
    if built.facts.construction == "composed":
        assert any("the network" in note for note in built.facts.notes)
        assert len(c.evidence.lanes) >= 1


@pytest.mark.long
def test_the_same_seed_gives_the_same_layer():
    one, two = (ol.build("sqrt((a - b)^2 + (c - d)^2)", "1:5", 0.05, seed=3) for _ in range(2))
    assert one.model.fingerprint() == two.model.fingerprint()


@pytest.mark.long
def test_everything_else_knows_composed_layers(tmp_path):
    built = ol.build("sqrt((a - b)^2 + (c - d)^2)", "1:5", 0.05)
    assert built.facts.construction == "composed"
    x = np.random.default_rng(0).uniform(1, 5, (7, 4))
    np.testing.assert_allclose(built.fast()(x), built(x), atol=1e-11)
    explained = built.explain(x[0])
    np.testing.assert_allclose(explained.contributions.sum(axis=0) + explained.rest, built(x[0]), atol=1e-9)
    loaded = ol.load(built.save(tmp_path / "layer"))
    assert loaded.certificate == built.certificate
    assert ol.certify(loaded).bound == built.certificate.bound
    built.report(tmp_path / "report.html")
    single = ol.build("sqrt((a - b)^2 + (c - d)^2)", "1:5", 0.05, dtype="float32")
    assert single.certificate.verdict == "CERTIFIED"
