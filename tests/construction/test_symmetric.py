"""Symmetric targets without positional codes."""

import itertools

import numpy as np
import pytest

import onelayer as ol
from onelayer import InputError


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("formula", "most"),
    [("x1 + x2 + x3", 1), ("max(x1, x2, x3)", 1), ("x1**2 + x2**2 + x3**2", 40), ("x1**3 + x2**3 + x3**3", 40)],
)
def test_sums_maxima_and_power_sums(formula, most):
    approx = ol.build(formula, [(-1, 2)] * 3, 1e-3, symmetric=True)
    assert approx.certificate.observed <= 1e-3
    assert approx.units <= most
    assert approx.model.config.code == "none"
    assert "P" not in approx.model.state_dict()
    x = np.random.default_rng(0).uniform(-1, 2, size=(200, 3))
    for order in itertools.permutations(range(3)):  # exact up to the order of floating-point sums
        assert np.abs(approx(x[:, order]) - approx(x)).max() <= 1e-15 * max(approx.facts.total, 10) * 8


def test_what_is_not_symmetric_is_refused():
    with pytest.raises(InputError, match="values differ"):
        ol.build("x1 - x2", [(0, 1)] * 2, 1e-2, symmetric=True)
    with pytest.raises(InputError, match="one interval for every token"):
        ol.build("x1 + x2", [(0, 1), (0, 2)], 1e-2, symmetric=True)
