"""Regression in context, measured: errors stay below the bound, which is nearly the least possible; rates are theory's."""

import numpy as np
import pytest

from onelayer.experiments.study.fitted_rates import fit_line
from onelayer.experiments.study.measures import measure_of
from onelayer.experiments.study.measures.in_context import functions_of, samples_of
from onelayer.target.domain import domain_of


def measured(**axes):
    return measure_of("context")({"dimension": 1, "spread": "lattice", "sharpness": 0.0, "seed": 0} | axes)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("spread", ["lattice", "random"])
def test_no_error_is_above_the_bound(dimension, spread):
    for N in (10, 60):
        found = measured(dimension=dimension, samples=N, spread=spread)
        assert found["observed"] <= found["bound"]
        assert found["least"] <= found["bound"] <= 1.001 * found["least"]
        assert found["valley"] > 0.999 * found["least"]  # the bound cannot be lower


def test_a_sharpness_that_does_not_grow_keeps_the_bound_up():
    few, many = (measured(samples=N, sharpness=100.0) for N in (10, 200))
    assert many["bound"] > few["bound"] > few["observed"]
    assert many["observed"] > 10 * many["least"]


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_rate_on_lattices_is_that_of_theory(dimension):
    found = [measured(dimension=dimension, samples=N) for N in (9, 36, 144, 400)]
    slope, half, _ = fit_line(*(np.log([row[name] for row in found]) for name in ("samples", "bound")))
    assert slope == pytest.approx(-1 / dimension, abs=1e-3)
    assert half < 1e-2


@pytest.mark.parametrize("D", [1, 2, 3])
def test_the_functions_are_no_steeper_than_declared(D):
    domain = domain_of([(0, 1)] * D)
    X, x = (samples_of(domain, 50, "random", seed) for seed in (1, 2))
    apart = np.sqrt(np.square(x[:, None] - X).sum(axis=2))
    for at_samples, at_points in functions_of(X, x).values():
        assert (np.abs(at_points[:, None] - at_samples) <= apart * (1 + 1e-12)).all()
