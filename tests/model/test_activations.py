"""The records of activations: every reading of φ is of one function, and what is said of it holds."""

from typing import get_args

import numpy as np
import pytest
import torch

from onelayer.formula import enclose, evaluate, interval, parse
from onelayer.model.activations import ACTIVATIONS
from onelayer.model.config import Activation
from onelayer.model.reference import perceptron

POINTS = torch.cat([torch.linspace(-40, 40, 4001), torch.logspace(-12, 4, 500), -torch.logspace(-12, 4, 500)]).double()


def test_there_is_a_record_for_every_name():
    assert set(ACTIVATIONS) == set(get_args(Activation))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_formula_and_tensors_and_reference_agree(name):
    phi, x = ACTIVATIONS[name], POINTS.clone().requires_grad_()
    y = phi.on_tensors(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    value, reference = perceptron.ACTIVATION[name]
    for text, own, theirs in ((phi.formula, y, value), (phi.slope, slope, reference)):
        found = np.asarray(evaluate(parse(text), POINTS[:, None])).reshape(-1)
        np.testing.assert_allclose(found, own.detach().numpy(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found, theirs(POINTS.numpy()), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_no_slope_is_steeper(name):
    """Proved on [-32, 32]; beyond, all of them are straight up to 1e-12."""
    phi, pending = ACTIVATIONS[name], [(-32.0, 32.0)]
    slope = parse(phi.slope)
    while pending:
        low, high = pending.pop()
        found = enclose(slope, [interval(low, high)])[0]
        if not (-phi.steepest <= found.lo and found.hi <= phi.steepest):
            assert high - low > 1e-6
            pending += [(low, (low + high) / 2), ((low + high) / 2, high)]
    assert phi.steepest < 1.03 * max(1.0, float(evaluate(parse(phi.slope), POINTS[:, None]).max()))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_sizes(name):
    phi = ACTIVATIONS[name]
    y = phi.on_tensors(POINTS).abs()
    assert (y <= phi.largest(POINTS.abs())).all()
    assert abs(float(phi.on_tensors(torch.zeros(1).double()))) <= phi.at_0
    assert not phi.shrinks or (y <= POINTS.abs()).all()
