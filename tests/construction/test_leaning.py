"""Layers that have the properties that f has: built, certified, saved; properties that f does not have are refused."""

import json

import pytest

import onelayer as ol
from onelayer import InputError
from onelayer.proof.certificate import Certificate, PropertyRecord


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("formula", "domain", "tolerance", "properties"),
    [
        ("x1**3", [(-1, 1)], 1e-3, ["increasing in x1"]),
        ("-x1**3", [(-1, 1)], 1e-3, ["decreasing in x1", "not increasing in x1"]),
        ("x1**2", [(0, 1)], 1e-3, ["increasing in x1", "convex in x1", "T >= 0"]),
        ("sin(x1)", [(-3, 3)], 1e-4, ["T <= 1", "T >= -1"]),
        ("sin(x1)", [(-3, 3)], 1e-3, ["Lipschitz 1 in x1"]),
        ("tanh(3*x1*x2)", [(0, 1)] * 2, 1e-2, ["increasing in x1", "increasing in x2"]),
    ],
)
def test_the_layer_has_them_and_is_certified(formula, domain, tolerance, properties):
    approx = ol.build(formula, domain, tolerance, properties=properties, seconds=100.0)
    c = approx.certificate
    assert c.verdict == "CERTIFIED"
    assert c.tolerance == tolerance
    assert [p.text for p in c.properties] == properties
    assert approx.target.text == formula
    again = ol.certify(approx)
    assert again.bound <= tolerance
    assert all(ol.prove(approx, text).proved for text in properties)


def test_they_are_part_of_the_folder(tmp_path):
    approx = ol.build("x1", [(0, 1)], 1e-2, properties=["increasing in x1"], method="solved")
    loaded = ol.load(approx.save(tmp_path / "f"))
    assert loaded.certificate == approx.certificate
    assert "increasing in x1: PROVED" in str(loaded.certificate)


@pytest.mark.usefixtures("as_user")
def test_certified_needs_all_of_them():
    approx = ol.build("x1", [(0, 1)], 1e-2, method="solved")
    record = json.loads(json.dumps(approx.certificate.as_json()))
    assert Certificate.from_json(record).verdict == "CERTIFIED"
    for verdict in ("UNDECIDED", "REFUTED"):
        record["properties"] = [{"text": "increasing in x1", "verdict": verdict}]
        assert Certificate.from_json(record).verdict == "UNDECIDED"
    record["properties"] = [{"text": "increasing in x1", "verdict": "PROVED"}]
    assert Certificate.from_json(record).properties == (PropertyRecord("increasing in x1", "PROVED"),)
    for wrong in (
        "PROVED",
        ["PROVED"],
        [{"text": 1, "verdict": "PROVED"}],
        [{"text": "T > 0", "verdict": "CERTIFIED"}],
    ):
        record["properties"] = wrong
        with pytest.raises(InputError):
            Certificate.from_json(record)


@pytest.mark.parametrize(
    ("options", "mentions"),
    [
        ({"properties": ["convex in x1"]}, "a function that has the property 'convex in x1'"),
        ({"properties": ["T <= 0.5"]}, "has not: (1)"),
        ({"properties": ["not increasing in x1"]}, "a function that has the property"),
        ({"properties": "increasing in x1"}, "a list of texts"),
        ({"properties": ["growing"]}, "a property such as"),
        ({"properties": 5}, "a list of texts"),
    ],
)
@pytest.mark.usefixtures("as_user")
def test_what_f_does_not_have_is_refused(options, mentions):
    with pytest.raises(InputError) as caught:
        ol.build("sin(x1)", [(0, 1)], 1e-2, **options)
    assert mentions in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("as_user")
def test_a_callable_has_no_known_properties():
    with pytest.raises(InputError, match="a formula, whose properties are known"):
        ol.build(lambda x: x[:, 0], [(0, 1)], 0.1, lipschitz=1, properties=["increasing in x1"])
