"""The checker on one box: what it proves of an interpolant holds, and boxes are cut where that helps."""

import math

import numpy as np
import pytest
from flint import arb

import onelayer as ol
from checking import check, checker

Part, EFFORTS = checker.Part, checker.EFFORTS


def extremes(values, degrees, effort, share):
    part = Part.__new__(Part)
    part.share = share
    shape = part.shape(([arb(float(v)) for v in values.ravel()], []), degrees, effort, (0.0, 0.0))
    return part.extremes(shape, effort)


def on_grid(coefficients, sides):
    """A sum of products of Chebyshev polynomials on a product of points."""
    for t in sides:
        basis = np.cos(np.outer(np.arccos(t), np.arange(coefficients.shape[0])))
        coefficients = np.moveaxis(np.tensordot(basis, coefficients, axes=1), 0, -1)
    return coefficients


def nodes(n):
    return np.cos((2 * np.arange(n) + 1) * np.pi / (2 * n))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("effort", range(len(EFFORTS)))
@pytest.mark.parametrize("degrees", [(1,), (9,), (4, 1), (3, 7), (2, 5, 3), (1, 1, 1, 2)])
@pytest.mark.parametrize("decay", [0.0, 1.5])
def test_bounds_on_an_interpolant_hold(degrees, effort, decay):
    rng = np.random.default_rng(sum(degrees))
    for _ in range(5):
        order = sum(np.meshgrid(*(np.arange(p + 1) for p in degrees), indexing="ij"))
        c = rng.normal(size=order.shape) * np.exp(-decay * order)
        low, high, falls, rises = extremes(on_grid(c, [nodes(p + 1) for p in degrees]), list(degrees), effort, 1.0)
        seen = on_grid(c, [np.cos(np.linspace(0, math.pi, 60 if len(degrees) < 3 else 17)) for _ in degrees])
        assert low <= seen.min()
        assert seen.max() <= high
        assert falls >= seen.min() - 0.02 * np.ptp(seen)  # a grid of ours misses a little
        assert rises <= seen.max() + 0.02 * np.ptp(seen)


def test_they_are_close_where_high_degrees_add_little():
    degrees = [10, 10, 14]
    c = np.zeros([p + 1 for p in degrees])
    c[0, 0, 0], c[1, 0, 0], c[0, 2, 1], c[10, 10, 14] = 0.2, 0.5, 0.4, 1e-4
    low, high, falls, rises = extremes(on_grid(c, [nodes(p + 1) for p in degrees]), degrees, 1, 1.0)
    assert -0.7 - 0.05 <= low <= -0.7 <= falls <= -0.7 + 0.05
    assert 1.1 - 0.05 <= rises <= 1.1 <= high <= 1.1 + 0.05


def test_numbers_that_are_not_finite_prove_nothing():
    values = np.ones((3, 3))
    values[1, 1] = math.nan
    low, high, falls, rises = extremes(values, [2, 2], 0, 1.0)
    assert (low, high) == (-math.inf, math.inf)
    assert falls > rises  # nothing is attained


def test_a_size_that_is_not_a_number_is_a_reason_to_cut():
    fine, bad = ([dict.fromkeys(range(len(checker.RHOS)), v)] for v in (1e-9, math.nan))
    part = Part.__new__(Part)
    assert part.degrees([[fine, fine], [fine, fine]], 1.0)[2] is None
    assert part.degrees([[fine, fine], [fine, bad]], 1.0)[2] == 1


ONE_AXIS = {  # what must be cut along one coordinate alone before a term is analytic
    "two squares": ("1/(1 + 16*((x1-0.5)**2 + (x2-0.5)**2))", [(0, 1)] * 2, 1e-3),
    "a root of a quotient": ("x1/sqrt(1 - x2**2/x3**2)", [(1, 5), (1, 2), (3, 10)], 0.06),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ONE_AXIS)
def test_the_axis_that_keeps_a_term_from_being_analytic_is_cut(tmp_path, monkeypatch, name):
    folder, boxes, whole = ol.build(*ONE_AXIS[name]).save(tmp_path / "f"), [], Part.across

    def across(self, rough, box, widths):
        boxes.append(box)
        return whole(self, rough, box, widths)

    monkeypatch.setattr(Part, "across", across)
    assert check(folder, boxes=300).verdict == "VALID"
    sides = [[(b - a) / (q - p) for (a, b), (p, q) in zip(box, ONE_AXIS[name][1], strict=True)] for box in boxes]
    assert boxes
    assert min(map(min, sides)) >= 1 / 8


def test_a_tensor_is_transformed_along_every_index():
    values = np.random.default_rng(0).normal(size=(2, 3, 4))
    c = checker.transformed([arb(float(v)) for v in values.ravel()], [checker.coefficients(p) for p in (1, 2, 3)])
    back = on_grid(np.array([float(v) for v in c]).reshape(2, 3, 4), [nodes(n) for n in (2, 3, 4)])
    assert np.allclose(back, values, atol=1e-12)
