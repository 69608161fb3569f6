"""Functions of sets: what is proved for all sizes holds for hard sets of every size, and what is not possible is refused."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import arb

import onelayer as ol
from hard_sets import hard_sets, largest_error
from onelayer.common.errors import InputError
from onelayer.construction.set_functions.aggregates import composed_text, parse_set
from onelayer.construction.set_functions.closeness import largest_size
from onelayer.construction.set_functions.exponential_sums import Normalisation, exponential_sum
from onelayer.construction.set_functions.profile import profile_of
from onelayer.construction.set_functions.ridges import ridges_of
from onelayer.construction.set_functions.terms import split
from onelayer.formula import enclose, evaluate, interval, parse, to_text

UNIT = (0.0, 1.0)
CASES = [  # text, domain, tolerance, dtype
    ("sqrt(mean(x^2))", UNIT, 1e-3, "float64"),
    ("log(mean(exp(3*x)))", (-1.0, 1.0), 1e-5, "float64"),
    ("log(1 + sum(exp(x)))", (-1.0, 1.0), 1e-3, "float64"),
    ("exp(-sum(x^2))", UNIT, 1e-4, "float64"),
    ("sum(x)", (0.1, 0.9), 1e-8, "float64"),
    ("mean(x^2) - mean(x)^2", UNIT, 1e-4, "float64"),
    ("mean(x^2)*mean(x)", UNIT, 1e-3, "float64"),
    ("max(x) - min(x)", (-3.0, 5.0), 1e-6, "float64"),
    ("max(exp(-x))^2 + mean(sqrt(x))", UNIT, 1e-3, "float64"),
    ("x - mean(x)", (-1.0, 2.0), 1e-10, "float64"),
    ("x*exp(-mean(x))", UNIT, 1e-3, "float64"),
    ("abs(x - max(x)/2) + sum(x)/8", UNIT, 1e-4, "float64"),
    ("sqrt(mean(x^2))", UNIT, 1e-1, "float32"),
    ("log(mean(exp(x)))", (0.1, 0.7), 1e-2, "float32"),
    ("x*exp(-mean(x))", UNIT, 1e-2, "float32"),
    ("max(x) - min(x)", (0.1, 5.0), 2e-2, "float32"),
    ("sum(x)", (0.1, 0.9), 1.0, "float32"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("text", "domain", "tolerance", "dtype"), CASES)
def test_the_bound_holds_at_hard_sets(text, domain, tolerance, dtype):
    layer = ol.set_function(text, domain, tolerance, longest=60, dtype=dtype)
    assert layer.certificate.verdict == "CERTIFIED"
    assert layer.certificate.bound <= tolerance
    assert layer.certificate.observed <= layer.certificate.bound
    assert largest_error(layer, hard_sets(layer, 14)) <= layer.certificate.bound


@pytest.mark.long
@pytest.mark.parametrize(("text", "domain", "tolerance", "dtype"), CASES)
def test_the_bound_holds_at_hard_sets_of_a_thousand(text, domain, tolerance, dtype):
    layer = ol.set_function(text, domain, tolerance, dtype=dtype)
    assert largest_error(layer, hard_sets(layer, 60, seed=2)) <= layer.certificate.bound


def test_the_hunt_finds_a_wrong_layer():
    """A coefficient that is off by one part in a thousand breaks the bound, and the certificate no longer counts."""
    layer = ol.set_function("log(mean(exp(x)))", UNIT, 1e-4, longest=30)
    with torch.no_grad():
        layer.model.W_O *= 1.001
        layer.model.W_2 *= 1.001
    assert largest_error(layer, hard_sets(layer, 20)) > layer.certificate.bound
    assert not layer.unchanged


def test_rounding_alone_is_within_its_term():
    """In float32 chords cost nothing for a linear function: what is left is rounding, and it is seen."""
    layer = ol.set_function("x - mean(x)", (0.0, 3.0), 1e-2, longest=400, dtype="float32")
    terms = layer.certificate.evidence.terms
    seen = largest_error(layer, hard_sets(layer, 20))
    assert 0 < seen <= sum(terms.values())
    assert terms["rounding"] > 0.9 * layer.certificate.bound


def test_order_and_padding_do_not_matter():
    layer = ol.set_function("sqrt(mean(x^2))", UNIT, 1e-2, longest=20)
    sets = hard_sets(layer, 12)
    together = layer(sets)
    for x, y in zip(sets, together, strict=True):
        assert abs(layer(x) - y) < 1e-9
        assert abs(layer(x[::-1].copy()) - y) < 1e-9
    each = ol.set_function("x - mean(x)", UNIT, 1e-2, longest=20)
    for x, y in zip(sets, each(sets), strict=True):
        assert np.abs(y - (x - x.mean())).max() < 1e-9


def test_a_layer_is_saved_and_loaded(tmp_path):
    layer = ol.set_function(rho="sqrt(m)", phi="x^2", tolerance=1e-2, longest=10)
    assert layer.description.text == "sqrt(mean(x**2))"
    again = ol.load(layer.save(tmp_path / "rms"))
    assert isinstance(again, ol.SequenceLayer)
    assert (again.description, again.certificate) == (layer.description, layer.certificate)
    p = again.description.parameters
    options = {"longest": p["longest"], "dtype": p["dtype"]}
    rebuilt = ol.set_function(p["formula"], tuple(p["domain"]), p["tolerance"], **options)
    assert rebuilt.model.fingerprint() == layer.model.fingerprint()
    assert again([0.5, 0.5]) == layer([0.5, 0.5])


def test_a_layer_says_what_its_heads_do():
    layer = ol.set_function("max(x) + exp(-sum(x))", tolerance=1e-2, longest=5)
    assert layer.facts.heads == (("exponential", 1), ("max", 1))
    assert "largest number" in layer.facts.story
    assert "Exponential heads" in layer.facts.story
    assert layer.model.config.readout == "output"
    assert layer.model.config.code == "none"


@pytest.mark.parametrize("domain", [(1e6, 1e6 + 1), (-1e-5, 1e-5)])
def test_sets_of_one_number_and_odd_intervals(domain):
    for longest in (1, 3):
        layer = ol.set_function("max(x) + sqrt(mean(x^2))", domain, 1e-3, longest=longest)
        assert largest_error(layer, hard_sets(layer, 8)) <= layer.certificate.bound


def test_many_long_sets_are_evaluated_in_parts():
    layer = ol.set_function("mean(x^2)", tolerance=1e-2, longest=600)
    x = np.random.default_rng(0).random((40, 600))
    assert np.abs(layer(x) - (x**2).mean(axis=1)).max() <= layer.certificate.bound


REFUSED = {
    "sin(x)": "without an aggregate",
    "mean(x - mean(x))": "mean inside mean",
    "sum(x, 2)": "sum",
    "mean(x": "not closed",
    "mean(x); max(x)": "2 formulas",
    "mean(A1)": "A1",
    "mean(y)": "unknown name",
    "x*mean(x^2)": "no position can divide by n",
    "sqrt(mean(x^2))*max(x)": "beside a sum",
    "max(x*(1 - x))": "rises or falls",
    "x*mean(x)*max(x)": "3 inputs",
    "log(mean(x - 2))": "none for some sets",
    "sum(x)^4": "ReLUs",
    "sqrt(mean(where(x < 0.5, 0, 1)))": "exponentials",
    "mean(1/x)": "no bound",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_possible_is_refused_in_one_line(text):
    with pytest.raises(InputError, match=r"asked: .*; found: .*; change: ") as refusal:
        ol.set_function(text, UNIT, 1e-3, longest=30)
    assert REFUSED[text] in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "options", [{"longest": 0}, {"longest": 10**6}, {"tolerance": 0.0}, {"rho": "sqrt(m)"}, {"dtype": "float16"}]
)
def test_wrong_options_are_refused(options):
    with pytest.raises(InputError):
        ol.set_function("mean(x)", **options)
    with pytest.raises(InputError):
        composed_text("x + y", "x^2")
    with pytest.raises(InputError):
        ol.set_function()


def test_aggregates_are_cut_out_of_the_text():
    f = parse_set("2mean(x^2)·max(x, 0.5) + mean(x*x) - min(x)")
    assert [aggregate.text for aggregate in f.aggregates] == ["mean(x**2)", "min(x)"]
    assert f.each
    assert to_text(f.outer.outputs[0], f.outer.names) == "2*A1*max(x, 0.5) + A1 - A2"
    assert not parse_set("max(mean(x), min(x))").each


def test_terms_are_found():
    parts = split(parse_set("3*mean(x^2) + mean(2*x + 1)^2 + max(-x) + pi"), UNIT, 10)
    found = {term.inputs[0].source: to_text(term.outer.outputs[0]) for term in parts.terms}
    assert found == {"own": "3*x1**2", "mean": "(1 + 2*x1)**2", "min": "-x1"}
    assert not parts.groups
    (term,) = split(parse_set("exp(x/2 - mean(x))"), UNIT, 10).terms
    assert (term.weights, to_text(term.outer.outputs[0])) == ((0.5, -1.0), "exp(x1)")


@pytest.mark.parametrize("text", ["sqrt(x)", "abs(x - 0.3)", "exp(-x^2)", "max(x, 0.2)"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chords_are_as_close_as_they_say(text, dtype):
    f, base = parse(text, ("x",)), Fraction(1, 8)
    profile = profile_of(f, base, (-0.125, 0.875), 1e-3, dtype)
    assert profile.chords <= 1e-3
    for t in np.random.default_rng(0).uniform(-0.125, 0.875, 300):
        exact = enclose(f, [interval(Fraction(float(t)) + base)])[0].ball()
        found = profile.decoder(Fraction(float(t)))
        assert abs(arb(found.numerator) / found.denominator - exact) <= arb(profile.chords) + arb(profile.stored)


@pytest.mark.parametrize("text", ["x^2", "exp(2*x)", "sin(3*x)", "1/(1 + x)"])
def test_exponential_sums_are_as_close_as_they_say(text):
    f, frame = parse(text, ("x",)), Normalisation(0.5, 1.0, 0.5)
    found = exponential_sum(f, UNIT, frame, 1e-6, 1e-13)
    assert found.error <= 1e-6
    x = np.linspace(0, 1, 1001)[:, None]
    made = evaluate(replace(f, outputs=(found.tree(frame),)), x)
    assert np.abs(made - evaluate(f, x)).max() <= found.error + 1e-15 * found.amplitude(0.5)


def test_ridges_are_as_close_as_they_say():
    (group,) = split(parse_set("x*exp(-mean(x))"), UNIT, 10).groups
    ridges = ridges_of(group, 1e-4)
    assert ridges.error <= 1e-4
    z = np.random.default_rng(0).random((500, 2))
    made = float(ridges.constant)
    for term in ridges.terms:
        form = z[:, [group.inputs.index(one) for one in term.inputs]] @ np.array(term.weights)
        made = made + evaluate(term.outer, form[:, None])[:, 0]
    assert np.abs(made - z[:, 0] * np.exp(-z[:, 1])).max() <= ridges.error


def test_sizes_are_enclosed():
    f = parse("x1*(1 - x1)*x2")
    assert 0.25 <= largest_size(f, [UNIT, UNIT], 0.26) <= 0.26
    assert math.isinf(largest_size(parse("1/x1"), [UNIT], 1.0))
