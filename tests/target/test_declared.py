"""What is declared about f is held against its values, and a verdict that rests on it says so wherever it is shown."""

import json
import math
import re

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer import InputError, Target
from onelayer.apps.web.job import view
from onelayer.proof.claim import Claim
from onelayer.proof.decision import decide
from onelayer.views.report import page


def wave(x):
    return np.sin(10 * x[:, 0])


def spike(x):
    """Slope 1, but 250 on a ten thousandth of the domain."""
    return x[:, 0] + 0.01 * np.maximum(0.0, 1 - np.abs(x[:, 0] - 0.3063) / 0.00004)


DECLARED = [
    ("sin(10*x1)", [(0, 1)], {"lipschitz": 1.0}),
    ("sin(10*x1)", [(0, 1)], {"lipschitz": 9.99}),
    ("3*x1", [(0, 1)], {"modulus": math.sqrt}),
    ("x1 + x2/10", [(0, 1)] * 2, {"lipschitz": (1.0, 0.0)}),
    ("x1", [(0, 1)] * 2, {"lipschitz": 0.0}),
    ("1/x1", [(0, 1)], {"lipschitz": 90.0, "within": "x1 >= 0.1"}),
    (wave, [(0, 1)], {"lipschitz": 1.0}),
    (wave, [(0, 1)], {"lipschitz": 9.9}),
    (wave, [(0, 1)], {"modulus": lambda r: r}),
    (lambda x: torch.sin(10 * x[:, 0]) + x[:, 1], [(0, 1)] * 2, {"lipschitz": (1.0, 1.0)}),
    (lambda x: x.sum(axis=1), [(0, 1)] * 12, {"lipschitz": 0.99}),
    (lambda x: x[:, 0], [(0, 1)], {"lipschitz": 0.9, "evaluation_error": 0.01}),
]


@pytest.mark.parametrize(("function", "domain", "about"), DECLARED)
def test_a_declaration_that_values_contradict_is_refused_with_two_points(function, domain, about):
    with pytest.raises(InputError) as caught:
        Target(function, domain, **about)
    points = re.findall(r"\(([^()]*)\)", caught.value.found)
    a, b = (np.array([[float(v) for v in text.split(",")]]) for text in points)
    if len(domain) > 8:
        return  # not all coordinates are shown
    f = Target(function, domain, within=about.get("within"))
    gap = float(np.abs(f(a) - f(b)).max()) - 2 * about.get("evaluation_error", 0.0)
    if "modulus" in about:
        assert gap > about["modulus"](float(np.abs(a - b).max()))
    else:
        assert gap > float((np.abs(a - b) * np.array(about["lipschitz"])).sum())


@pytest.mark.parametrize(
    ("function", "domain", "about"),
    [
        ("sin(10*x1)", [(0, 1)], {"lipschitz": 10.0}),
        (wave, [(0, 1)], {"lipschitz": 10.0}),
        (lambda x: np.sin(300 * x[:, 0]), [(0, 7)], {"lipschitz": 300.0}),
        (lambda x: np.sin(3 * x[:, 0]) + 1000, [(-2, 2)], {"lipschitz": 3.0}),
        (lambda x: np.sqrt(x[:, 0]), [(0, 1)], {"modulus": math.sqrt}),
        (lambda x: x.sum(axis=1), [(0, 1)] * 12, {"lipschitz": 1.0}),
        (lambda x: np.abs(x[:, 0] - x[:, 1]), [(0, 1)] * 2, {"lipschitz": 1.0}),
        (lambda x: np.float64(np.float32(x[:, 0])), [(0, 1)], {"lipschitz": 1.0, "evaluation_error": 2.0**-24}),
        (lambda x: 7 + 0 * x[:, 0], [(0, 1)], {"lipschitz": 0.0}),
    ],
)
def test_the_smallest_true_declaration_passes(function, domain, about):
    Target(function, domain, **about)


def test_what_shows_only_while_the_error_is_observed_is_refused_then():
    model = ol.build(lambda x: x[:, 0], [(0, 1)], 0.5, method="representative", lipschitz=1.0).model
    target = Target(spike, [(0, 1)], lipschitz=2.0)  # not seen yet
    with pytest.raises(InputError, match="differ by"):
        decide(model, Claim(target, 0.5))


def test_a_formula_never_rests_on_what_is_declared():
    """A constant that is false in a place too small to be seen proves nothing, for it is derived all the same."""
    needle = "x1 + 1e-5*exp(-(3e7*(x1 - 0.37))**2)"  # slope 250 on a ten millionth of the domain
    target = Target(needle, [(0, 1)], lipschitz=2.0)
    assert target.modulus.kind == "derived"
    assert target.modulus.lipschitz[0] > 200
    c = ol.build("sin(10*x1)", [(0, 1)], 1.0, method="representative", lipschitz=500.0).certificate
    assert c.headline == "CERTIFIED"
    assert c == ol.build("sin(10*x1)", [(0, 1)], 1.0, method="representative").certificate


def test_where_nothing_is_derived_the_declared_constant_is_named():
    c = ol.build("1/x1", [(0, 1)], 60.0, within="x1 >= 0.1", method="representative", lipschitz=100.0).certificate
    assert c.headline == "CERTIFIED if |f(x) − f(y)| ≤ 100·|x − y|"


def test_what_is_declared_of_a_formula_is_not_declared_of_its_parts():
    whole = Target("1/x1 + x2", [(0, 1)] * 2, within="x1 >= 0.1", lipschitz=(100.0, 1.0))
    assert whole.modulus.kind == "declared"
    assert whole.part(Target("1000*x1", [(0, 1)] * 2).formula).modulus.kind == "derived"


CONDITION = "|f(x) − f(y)| ≤ 0.1·|x1 − y1| + 0.7·|x2 − y2| and the values given are within 1e-07 of f"


@pytest.fixture(scope="module")
def promised():
    return ol.build(
        lambda x: 0.1 * x[:, 0] + 0.7 * np.abs(x[:, 1] - 0.4),
        [(0, 1)] * 2,
        0.2,
        lipschitz=(0.1, 0.7),
        evaluation_error=1e-7,
    )


def test_a_verdict_that_rests_on_a_declaration_says_so_everywhere(promised, tmp_path, capsys, as_user):
    from onelayer.apps.cli import main

    c = promised.certificate
    assert (c.verdict, c.condition) == ("CERTIFIED", CONDITION)
    said = f"CERTIFIED if {CONDITION}"
    folder = promised.save(tmp_path / "f")
    record = json.loads((folder / "certificate.json").read_text())
    assert (record["verdict"], record["condition"]) == ("CERTIFIED", CONDITION)
    loaded = ol.load(folder)
    assert loaded.certificate.headline == said
    assert f">{said}<" in page(loaded)
    assert view(promised)["headline"] == said
    for text in (str(c), repr(promised), repr(loaded), c._repr_html_(), str(ol.certify(promised))):
        assert said in text
    main(["inspect", str(folder)])
    assert said in capsys.readouterr().out
    main(["inspect", str(folder), "--json"])
    assert json.loads(capsys.readouterr().out)["condition"] == CONDITION
    main(["eval", str(folder), "0.5", "0.5", "--json"])
    assert json.loads(capsys.readouterr().out)["condition"] == CONDITION
    ol.export(promised, tmp_path / "layer.c", to="c", points=100)
    header = (tmp_path / "layer.c").read_text().split("*/")[0]
    assert header.count("0.7") >= 2  # the verdict, and what is proved in all
    assert "CERTIFIED if" in header


def test_a_bound_without_a_verdict_says_so_too():
    c = ol.build(lambda x: np.abs(x[:, 0]), [(-1, 1)], 1e-3, units=3, lipschitz=1.0).certificate
    assert c.verdict != "CERTIFIED"
    assert math.isfinite(c.bound)
    assert c.headline == c.verdict
    assert "if |f(x) − f(y)| ≤ 1·|x − y|" in str(c)


def test_comparisons_say_what_their_bounds_rest_on():
    target = Target(lambda x: 0.5 * x[:, 0], [(0, 1)], lipschitz=0.5)
    found = ol.compare(target, tolerance=0.1, seconds=0.2, optimizers=(), peers=False)
    assert "proved if |f(x) − f(y)| ≤ 0.5·|x − y|" in str(found)


@pytest.mark.long
def test_refuted_data_rest_on_their_constants_and_callables_do_not():
    x = np.linspace(0, 1, 30)[:, None]
    data = ol.build((x, 5 * np.abs(x[:, 0] - 0.5)), tolerance=1e-6, units=2, lipschitz=5.0).certificate
    assert data.headline == "REFUTED if |f(x) − f(y)| ≤ 5·|x − y|"
    values = ol.build(lambda x: 5 * np.abs(x[:, 0] - 0.5), [(0, 1)], 1e-6, units=2, lipschitz=5.0).certificate
    assert values.headline == "REFUTED"
