"""Families, variable projection, sharpening: the derivatives are right, and what is polished is what is assembled."""

import math
from dataclasses import replace

import pytest
import torch

from onelayer.construction.fitted_groups import FittedGroup, combined
from onelayer.construction.polished.families import MemoryFamily, family_of
from onelayer.construction.polished.fit import (
    Fit,
    FitSamples,
    StepLimits,
    _normal_equations,
    _state,
    errors_at,
    polish,
    sharpen,
)
from onelayer.construction.solved.values import Solution
from onelayer.target.group_samples import GroupSamples
from onelayer.target.target import Target

FAMILIES = ["memory", "gates"]
FREE = StepLimits(cap=1e3, reach=200.0, enough=0.0)


def samples_of(formula: str, dimension: int, count: int = 400) -> FitSamples:
    source = GroupSamples(Target(formula, [(0, 1)] * dimension), tuple(range(dimension)), 0)
    points, values = source.sample(count, 5)
    pool, pool_values = source.sample(3000, 6)
    return FitSamples(points, values, torch.ones(len(points), dtype=torch.float64), pool, pool_values)


@pytest.mark.parametrize("name", [*FAMILIES, "tokens alone"])
@pytest.mark.parametrize(("dimension", "outputs"), [(1, 1), (2, 1), (2, 3), (3, 2)])
def test_the_jacobian_is_the_derivative(name, dimension, outputs):
    family = MemoryFamily(dimension, straight=False) if name == "tokens alone" else family_of(name, dimension)
    generator = torch.Generator().manual_seed(1)
    theta = family.start(5, (1.0, 1.0), 0) + torch.randn(5, dimension + 1, generator=generator, dtype=torch.float64)
    x = torch.rand(7, dimension, generator=generator, dtype=torch.float64) - 0.5
    c = torch.randn(family.count(5), outputs, generator=generator, dtype=torch.float64)

    def answer(flat: torch.Tensor) -> torch.Tensor:
        return family.features(x, family.weights(flat.reshape(theta.shape), x)) @ c

    exact = torch.autograd.functional.jacobian(answer, theta.flatten())  # [point, out, parameter]
    ours = family.jacobian(x, family.weights(theta, x), c).permute(1, 0, 2)
    assert torch.allclose(ours, exact, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_slope_is_that_of_the_projected_problem(name):
    """F(θ), the values solved for at every θ, falls along the step at the rate that the normal equations promise."""
    family, samples, penalty = family_of(name, 2), samples_of("sin(4*x1*x2); x1 - x2**2", 2), 1e-4
    theta = family.start(6, (1.0, 1.0), 0)
    state = _state(family, theta, samples, penalty)
    slope = _normal_equations(family, state, samples)[1].flatten()
    direction = torch.randn(theta.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    h = 1e-5
    up, down = (_state(family, theta + s * h * direction, samples, penalty).cost(penalty) for s in (1, -1))
    assert (up - down) / (2 * h) == pytest.approx(-2 * float(slope @ direction.flatten()), rel=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("group", [(0,), (0, 2)])
def test_what_is_fitted_is_what_the_layer_computes(name, group):
    target = Target("x1*cos(x3)", [(0, 1)] * 3)
    family = family_of(name, len(group))
    theta = family.start(4, (1.0, 1.0), 3)
    generator = torch.Generator().manual_seed(2)
    c = torch.randn(family.count(4), 1, generator=generator, dtype=torch.float64)
    part = FittedGroup(group, family.heads(theta, group, 3), Solution(c, 0.0, 0.0))
    x = torch.rand(50, 3, generator=generator, dtype=torch.float64) - 0.5
    own = x[:, list(group)]
    expected = family.features(own, family.weights(theta, own)) @ c + float(target.centre[0])
    assert torch.allclose(combined(target, [part], name)(x), expected, atol=1e-11)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", FAMILIES)
def test_polishing_lowers_the_error_a_hundred_times(name):
    family, samples = family_of(name, 1), samples_of("1/(1 + 25*(2*x1 - 1)**2)", 1)
    theta = family.start(6, (1.5, 1.0), 0)
    before = polish(family, theta, samples, FREE, iterations=0)
    after = polish(family, theta, samples, FREE)
    assert after.fitted < before.fitted / 100
    best, _ = sharpen(family, after, samples, FREE)
    assert best.observed <= float(errors_at(family, after, samples.pool, samples.pool_values).max())


def test_limits_are_respected():
    family, samples = family_of("memory", 2), samples_of("sin(9*x1)*cos(7*x2)", 2)
    theta = family.start(20, (0.35, 2.0), 0)
    free, tight = polish(family, theta, samples, FREE), polish(family, theta, samples, replace(FREE, cap=10.0))
    assert tight.total < 0.5 * free.total
    assert tight.total < 5 * 10.0  # a penalty, not a constraint
    small = polish(family, theta, samples, replace(FREE, reach=6.0))
    assert float(small.theta.abs().max()) <= 6.0
    assert polish(family, theta, samples, replace(FREE, over=lambda: True)).theta.equal(theta)
    enough = polish(family, theta, samples, replace(FREE, enough=10.0))
    assert enough.theta.equal(theta)


def test_errors_that_are_not_numbers_count_as_infinite():
    family = family_of("memory", 1)
    fit = Fit(torch.full((2, 2), math.nan, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64), 0.0)
    x = torch.zeros(4, 1, dtype=torch.float64)
    assert errors_at(family, fit, x, x).isinf().all()
