"""Attention and the feed-forward network: parts that are left out do nothing, and sizes match."""

import numpy as np
import pytest

import onelayer as ol
from onelayer.experiments.study import Sweep
from onelayer.experiments.study.measures.construction import gate_parameters
from onelayer.experiments.study.measures.roles import trained_shape

PRODUCT = {"target": "product", "formula": "x1*x2", "domain": "-1:1"}


def measured(name, **axes):
    (task,) = Sweep.of_axes(name, {**PRODUCT, **axes}).tasks
    return task.measure(task.point)


@pytest.mark.parametrize("way", ["attention", "network", "both"])
def test_constructed_parts_have_the_parameters_that_are_counted(way):
    found = measured("roles", way=way, budget=200)
    assert found["parameters"] <= 200
    assert found["parameters"] == gate_parameters(ol.Target("x1*x2", [(-1, 1)] * 2), found["gates"], found["relus"])
    assert (found["gates"] > 0, found["relus"] > 0) == (way != "network", way != "attention")
    assert found["observed"] <= found["bound"] <= 1.11 * found["observed"]


@pytest.mark.parametrize("way", ["attention", "network", "both"])
def test_a_trained_part_stores_what_its_shape_says(way):
    target = ol.Target("x1*x2", [(-1, 1)] * 2)
    shape = trained_shape(target, way, 400)
    assert abs(shape.parameters - 400) <= 40
    found = measured("roles", way=way, made="trained", budget=400, steps=2)
    assert found["parameters"] == shape.parameters
    assert "bound" not in found
    with pytest.raises(ValueError, match="within 10 %"):
        trained_shape(target, way, 5)


def test_what_is_left_out_does_nothing():
    """A network that sees x as one token is a shallow net; attention alone over one token is affine."""
    steps = {"budget": 200, "steps": 30, "made": "trained", "seed": 1}
    one = {"target": "x", "formula": "x1**2", "domain": "-1:1"}
    (task,) = Sweep.of_axes("roles", {**one, "way": "attention", **steps}).tasks
    assert task.measure(task.point)["observed"] >= 0.5  # no affine function is closer to x² on [−1, 1]
    assert np.isfinite(measured("roles", way="network", **steps)["observed"])


def test_hinges_are_counted_and_lower_the_bound():
    without, with_hinges = (measured("corrected", units=4, hinges=h) for h in (0, 8))
    assert with_hinges["parameters"] > without["parameters"]
    assert with_hinges["bound"] < without["bound"]
