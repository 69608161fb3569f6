"""Even functions of one number: fewer numbers stored, proved and checked like any other layer, and left where of no use."""

import numpy as np
import pytest
import torch

import onelayer as ol
from exact import exact_model
from onelayer.checker import check
from onelayer.construction.polished.even import EvenFamily, is_even
from onelayer.deployment.export import export
from onelayer.layer.reading import form_of_model
from onelayer.target.group_samples import GroupSamples

RUNGE, SIDES = "1/(1 + 25*x1**2)", [(-1, 1)]


def test_the_derivatives_are_those_of_the_features():
    family, g = EvenFamily(1), torch.Generator().manual_seed(0)
    theta = family.start(5, (1.5, 1.0), 3)
    x = torch.rand(40, 1, generator=g, dtype=torch.float64) - 0.5
    c = torch.randn(6, 1, generator=g, dtype=torch.float64)
    found = family.jacobian(x, family.weights(theta, x), c)[0]
    assert not found[:, 1::2].any()
    for unit in range(5):
        step = torch.zeros_like(theta)
        step[unit, 0] = 1e-5
        ahead, behind = (family.features(x, family.weights(theta + s * step, x)) @ c for s in (1, -1))
        torch.testing.assert_close(found[:, 2 * unit], ((ahead - behind) / 2e-5)[:, 0], rtol=1e-6, atol=1e-8)
    more = family.inserted(theta, x, x[:, 0].abs(), 3)
    assert more.shape == (8, 2)
    assert not more[:, 1].any()


@pytest.mark.parametrize(
    ("formula", "side", "even"),
    [
        (RUNGE, (-1, 1), True),
        (RUNGE, (-1, 1.001), False),
        ("exp(-(x1-3)**2)", (2, 4), True),
        ("sin(x1)", (-1, 1), False),
        (f"{RUNGE} + 1e-4*x1", (-1, 1), False),
    ],
)
def test_what_is_even(formula, side, even):
    assert is_even(GroupSamples(ol.Target(formula, [side]), (0,), 0), 1e-5) == even


@pytest.mark.long
def test_an_even_function_stores_fewer_numbers(tmp_path):
    approx = ol.build(RUNGE, SIDES, 1e-6, units=5)
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.model.config.d_model == 1
    assert approx.parameters == approx.model.parameter_count <= 35
    assert form_of_model(approx.model) is not None
    folder = approx.save(tmp_path / "even")
    assert check(folder).verdict == "VALID"
    assert torch.equal(ol.load(folder).model.W_K, approx.model.W_K)
    x = np.random.default_rng(0).uniform(-1, 1, size=(400, 1))
    real = [float(exact_model(approx.model, p, (0,))[0].mid()) for p in x]
    wrong = np.abs(np.array(real) - 1 / (1 + 25 * x[:, 0] ** 2))
    assert wrong.max() <= approx.certificate.bound
    for to in ("onnx", "torch", "c"):
        assert export(approx, tmp_path / to, to=to).difference <= 1e-9


@pytest.mark.parametrize(
    ("formula", "options"),
    [
        ("cos(6*x1)", {}),  # few usual gates do it
        ("sin(3*x1)", {}),
        (RUNGE, {"dtype": "float32"}),
        pytest.param(RUNGE, {"units": 4}, marks=pytest.mark.long),  # usual gates are closer
        (RUNGE, {"layout": "wide"}),
        ("abs(x1) + x1**2", {}),
    ],
)
def test_other_layers_keep_their_codes(formula, options):
    approx = ol.build(formula, SIDES, 1e-4, **options)
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.model.config.d_model > 1


@pytest.mark.long
def test_with_a_given_number_of_units_the_closer_ones_are_taken():
    """And those of an even function, with half the numbers, may well be closer."""
    approx = ol.build(RUNGE, SIDES, 1e-6, units=6)
    assert (approx.units, approx.parameters) == (6, 35)
    assert approx.certificate.observed < 1e-7


def test_a_linear_part_of_one_number_takes_no_head():
    approx = ol.build("exp(x1)*sin(3*x1)", SIDES, 1e-5)
    assert dict(approx.facts.heads).keys() == {"gate"}
    assert approx.model.W_R[0].detach().abs().item() > 0
    assert approx.parameters == 18 + 8 * approx.units
