"""Covered points: those of which the certificate speaks as they are given, and no others."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import onelayer as ol
from onelayer import InputError, Target
from onelayer.proof.scope import Scope
from onelayer.target.description import Description


def scope_of(target, dtype=torch.float64):
    return Scope(Description.of(target), target.formula, target.margin, dtype)


def covered(target, x, dtype=torch.float64):
    return scope_of(target, dtype).covers(x)[0]


@pytest.fixture(scope="module")
def step():
    return ol.build("where(x1 < 0.5, 0, 1)", [(0, 1)], 0.01, margin=0.1)


# ---- margin


def test_within_the_margin_of_a_jump_the_bound_is_not_said_to_hold(step):
    x = np.linspace(0, 1, 2001)
    off = np.abs(step(x) - (x >= 0.5))
    said = step.covers(x)
    assert said.dtype == bool
    assert off[said].max() <= step.certificate.bound
    assert off[~said].max() > step.certificate.bound  # so it must not be said there
    assert said[np.abs(x - 0.5) > 0.1001].all()


@given(
    margin=st.floats(1e-6, 0.4),
    end=st.integers(-4, 4),
    side=st.sampled_from([-1, 1]),
    jump=st.sampled_from(["0.5", "0.3"]),
)
def test_the_margin_is_decided_exactly(margin, end, side, jump):
    """Points a few floats from the edge of the margin: none that is within it counts as covered."""
    x = float(jump) + side * margin
    for _ in range(abs(end)):
        x = np.nextafter(x, np.inf * np.sign(end))
    target = Target(f"where(x1 < {jump}, 0, 1)", [(-1, 2)], margin=margin)
    far = abs(Fraction(float(x)) - Fraction(jump)) > Fraction(margin)
    assert far or not covered(target, [[x]])[0]
    assert covered(target, [[float(jump) + side * margin * (1 + 1e-9)]])[0]


# ---- float types


def test_points_that_are_not_float32():
    """The layer rounds them, and the error then exceeds the bound many times."""
    single = ol.build("x1 - 1000", [(1000, 1001)], 1e-5, method="solved", dtype="float32")
    x = np.random.default_rng(0).uniform(1000, 1001, 3000)
    x[::2] = x[::2].astype(np.float32)
    said, off = single.covers(x), np.abs(single(x) - (x - 1000))
    assert (said == (x == x.astype(np.float32))).all()
    assert single.certificate.verdict == "CERTIFIED"
    assert off[said].max() <= single.certificate.bound
    assert off[~said].max() > 2 * single.certificate.bound
    with pytest.raises(InputError, match="points in float32"):
        single(1000.1, outside="error")
    assert single(np.float32(1000.1), outside="error") == single(1000.1)


def test_numbers_are_taken_as_they_are_given():
    wide = Target("x1", [(0, 1e17)])
    for exact in (
        [0.1],
        [1],
        [True],
        [Fraction(1, 4)],
        [Decimal("0.5")],
        [2**55],
        np.float16([0.1]),
        np.int64([2**40]),
    ):
        assert covered(wide, exact).all(), exact
    rounded = ([Fraction(1, 10)], [Decimal("0.1")], [2**53 + 1], np.int64([2**53 + 1]), np.longdouble(["0.1"]))
    for other in (*rounded, [2**53 + 1, 0.5], torch.tensor([2**53 + 1]), [np.nan], [np.inf]):
        assert not covered(wide, other)[0], other
    half = torch.tensor([0.1], dtype=torch.bfloat16)
    assert covered(wide, half, torch.float32).all()
    assert covered(wide, torch.tensor([0.1, 0.5], dtype=torch.float64), torch.float32).tolist() == [False, True]


# ---- the condition


@given(t=st.floats(0, 6.3), end=st.integers(-3, 3))
def test_the_condition_is_decided_exactly(t, end):
    """Around the edge of the disk, where floats say either: rational arithmetic is the judge."""
    x, y = np.cos(t), np.sin(t)
    for _ in range(abs(end)):
        x = np.nextafter(x, np.inf * np.sign(end))
    target = Target("x1*x2", [(-2, 2)] * 2, within="x1**2 + x2**2 <= 1")
    assert covered(target, [[x, y]])[0] == (Fraction(float(x)) ** 2 + Fraction(float(y)) ** 2 <= 1)


def test_a_condition_without_a_value_does_not_hold():
    target = Target("x1", [(0, 1)], within="sqrt(x1 - 0.1) < 5")
    x = np.array([[0.1], [np.nextafter(0.1, 0)], [0.2], [0.05]])  # the float 0.1 is above 1/10
    assert covered(target, x).tolist() == [True, False, True, False]


def test_a_box_as_it_is_kept():
    x = np.array([[0.0], [np.nextafter(2 * np.pi, 9)], [2 * np.pi], [7.0], [-1e-300]])
    target = Target("x1", [(0, "2*pi")])
    assert covered(target, x).tolist() == [True, x[1, 0] <= target.domain.upper[0], True, False, False]


# ---- tokens, samples, weights


def test_tokens():
    count = ol.gallery.histogram(3, 5)
    assert count.covers([[0, 1, 4], [0, 1, 5], [0.5, 1, 1], [-1, 0, 0]]).tolist() == [True, False, False, False]


def test_of_memorised_samples_none_is_known():
    m = ol.memorize([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.7])
    assert m.covers([0.0, 1.0]) is False
    with pytest.raises(InputError, match="stored samples"):
        m([0.0, 1.0], outside="error")


def test_changed_weights_are_not_covered():
    approx = ol.build("x1", [(0, 1)], 0.1, method="solved")
    assert approx.covers(0.5) is True
    assert approx.fast().covers([[0.5]]).tolist() == [True]
    with torch.no_grad():
        approx.model.b_R += 1
    assert approx.covers(0.5) is False
    with pytest.raises(InputError, match="the weights that the certificate is about"):
        approx(0.5, outside="error")


# ---- what is done about it


def test_what_is_not_covered_is_refused_by_name(step):
    for x, why in ((0.45, "more than 0.1 away from every jump"), (1.5, "points in the domain: x1 in")):
        for layer in (step, step.fast()):
            with pytest.raises(InputError, match=why):
                layer(x, outside="error")
            assert np.isfinite(layer(x))
    assert step([0.1, 0.9], outside="error").shape == (2,)


def test_clip_moves_to_the_box_whatever_the_condition():
    disk = ol.build("x1*x2", [(-1, 1)] * 2, 0.05, within="x1**2 + x2**2 <= 1", method="solved")
    assert disk([3.0, 0.5], outside="clip") == disk([1.0, 0.5])
    assert disk.covers([[3.0, 0.5], [1.0, 0.5], [0.5, 0.5]]).tolist() == [False, False, True]
