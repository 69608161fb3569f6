"""Where formulas have infinite slopes, and points graded toward these places."""

import numpy as np
import pytest

import onelayer as ol
from onelayer.target.group_samples import GroupSamples
from onelayer.target.singular import places_of


def places(text, sides):
    target = ol.Target(text, sides)
    return places_of(target.formula, target.domain.lower, target.domain.upper)


@pytest.mark.parametrize(
    ("text", "side", "found"),
    [
        ("sqrt(x)", (0, 1), [0.0]),
        ("sqrt(1 - x**2)", (-1, 1), [-1.0, 1.0]),
        ("acos(x)", (0, 1), [1.0]),
        ("abs(x - 0.3)**(2/3)", (-1, 1), [0.3]),
        ("sqrt(x + 0.1)", (0, 1), []),
        ("abs(x)", (-1, 1), []),
    ],
)
def test_points_of_infinite_slope_are_found(text, side, found):
    points = [z for place in places(text, {"x": side}) for z in place.points.ravel().tolist()]
    assert sorted(points) == pytest.approx(found, abs=1e-12)


def test_lines_and_tips_are_found():
    (line,) = places("sqrt(x)*cos(y)", {"x": (0, 1), "y": (0, 1)})
    assert line.coordinates == (0,)  # a line: any y
    (tip,) = places("sqrt(x**2 + y**2)", {"x": (-1, 1), "y": (-1, 1)})
    np.testing.assert_allclose(tip.points, [[0.0, 0.0]], atol=1e-12)
    (edge,) = places("sqrt(x*y)", {"x": (0, 1), "y": (0, 1)})
    assert len(edge.points) > 5
    assert edge.points.min(axis=1).max() < 1e-12


def test_a_side_with_few_numbers_in_it_is_not_halved_for_ever():
    (edge,) = places("sqrt(x*y)", {"x": (0, 0.001276109681715441), "y": (0.9989097397556043, 1)})
    assert edge.points[:, 0].max() < 1e-12


def test_half_of_the_samples_are_graded_toward_the_place():
    """Log-uniform: each of four decades gets its share, and the finest ones change f by about the detail that matters."""
    target = ol.Target("sqrt(x)*cos(y)", {"x": (0, 1), "y": (0, 1)})
    source = GroupSamples(target, (0, 1), 0, detail=1e-4)
    x = source.sample(8_000, 0)[0][:, 0].numpy() + 0.5
    for decade in range(2, 6):
        assert 0.04 < ((x > 10.0**-decade) & (x <= 10.0 ** (1 - decade))).mean() < 0.25
    assert source.gradings[0].finest == pytest.approx(1e-8, rel=4)


def test_other_targets_are_sampled_as_before():
    assert GroupSamples(ol.Target("sin(x)", {"x": (0, 1)}), (0,), 0).gradings == []
