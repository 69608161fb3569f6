"""Proofs near infinite slopes: frozen nodes, sharp layers, and the targets that need them."""

import math

import numpy as np
import pytest
import torch
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from checking import check, forged
from exact import exact_form, within
from onelayer.common.budget import Budget
from onelayer.formula import enclose
from onelayer.layer.assemble import frame_of
from onelayer.layer.form import form_of
from onelayer.layer.heads import Gates, Memory
from onelayer.layer.layer import gate_layer, memory_layer
from onelayer.proof.analytic.enclosure import on_sharp_grids
from onelayer.proof.analytic.frozen import Freezer
from onelayer.proof.analytic.grid import Grids
from onelayer.proof.analytic.prove import prove
from onelayer.proof.claim import Claim

ONE = [
    ("sqrt(x)", {"x": (0, 1)}, (0.0,)),
    ("abs(x)**(2/3) - x", {"x": (-1, 1)}, (0.0,)),
    ("asin(x)*x + x**2", {"x": (0, 1)}, (1.0,)),
    ("sqrt(1 - x**2)", {"x": (-1, 1)}, (1.0,)),
    ("exp(sqrt(x)) + x**1.5", {"x": (0, 2)}, (0.0,)),
    ("sqrt(x + sqrt(x))", {"x": (0, 1)}, (0.0,)),
]
TWO = [
    ("sqrt(x)*cos(y) + y**2", {"x": (0, 1), "y": (0, 2)}, (0.0, 1.0)),
    ("sqrt(x*y)", {"x": (0, 1), "y": (0, 1)}, (0.0, 0.0)),
    ("asin(x*y)", {"x": (0, 1), "y": (0, 1)}, (1.0, 1.0)),
    ("sqrt(x**2 + y**2)", {"x": (-1, 1), "y": (-1, 1)}, (0.0, 0.0)),
]


def random_graded_layer(D, z, seed, sharpest):
    """Gates or memory tokens whose sharpness grows toward ẑ, with random values."""
    rng = np.random.default_rng(seed)
    beta = torch.from_numpy(10 ** rng.uniform(0, sharpest, 5) * rng.choice([-1.0, 1.0], 5))
    values = torch.from_numpy(rng.normal(size=(5, D + 2, 1)) / 5)
    side, up = rng.choice([-1.0, 1.0], 2)  # a line so steep that the error is often largest at the place
    bias, linear = torch.tensor([3 * up], dtype=torch.float64), torch.from_numpy(6 * side * np.sign(z)[:, None])
    if seed % 2:
        offsets = torch.from_numpy(z + rng.normal(size=(5, D)) / beta.abs().numpy()[:, None])
        return gate_layer(bias, D, (Gates(beta, offsets, torch.ones(5, D, dtype=torch.bool)), values), linear=linear)
    keys = -beta[:, None] * torch.from_numpy(np.abs(rng.normal(size=(5, D))))
    biases = torch.arange(5, dtype=torch.float64) - keys @ torch.from_numpy(z)
    return memory_layer(bias, D, (Memory(keys, biases, torch.zeros(5, dtype=torch.int64)), values[:, 0]), linear=linear)


def points_toward(z, domain, rng, count):
    """Points of the box, log-uniform in the distance from z."""
    x = domain.points(rng.random((count, len(z))))
    return np.clip(z + 10.0 ** -rng.uniform(0, 14, (count, 1)) * (x - z), domain.lower, domain.upper)


def sound(case, seed, sharpest, tolerance, count):
    """The bound of a random layer holds at points close to the singular place, judged in balls; whether there is one."""
    text, sides, z = case
    target = ol.Target(text, sides)
    frame, rng, z = frame_of(target.domain), np.random.default_rng(seed), np.array(z)
    hat = frame(torch.from_numpy(z)[None])[0].numpy()
    form = form_of(random_graded_layer(len(z), hat, seed, sharpest))
    bound = prove(form, frame, Claim(target, tolerance), Budget(20.0)).bound
    for x in points_toward(z, target.domain, rng, count) if math.isfinite(bound) else []:
        f = enclose(target.formula, x.tolist(), prec=200)[0]
        with ctx.workprec(200):
            assert not f.is_finite() or within(exact_form(form, frame, x)[0], arb(f.lo).union(arb(f.hi)), bound)
    return math.isfinite(bound)


@settings(max_examples=5, deadline=None)
@given(st.sampled_from(ONE), st.integers(0, 10**6), st.floats(1, 7), st.sampled_from([1.0, 1e-2]))
def test_bounds_hold_near_singular_points(case, seed, sharpest, tolerance):
    assert sound(case, seed, sharpest, tolerance, 40)


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(st.sampled_from(TWO), st.integers(0, 10**6), st.floats(1, 4))
def test_bounds_hold_near_lines_corners_and_tips(case, seed, sharpest):
    sound(case, seed, sharpest, 1.0, 40)


@given(st.integers(0, 10**6), st.floats(-9, -1))
def test_what_is_frozen_stays_within_its_cost(seed, size):
    """|f(x) − F(x, c)| ≤ cost at random points of boxes at the singular place, in balls."""
    rng = np.random.default_rng(seed)
    text, sides, z = ONE[seed % len(ONE)]
    target = ol.Target(text, sides)
    low, high = (np.array(end) for end in (target.domain.lower, target.domain.upper))
    around = np.array(z) + 10**size * np.array([[-rng.random()], [rng.random()]])
    box = np.clip(around, low, high)
    frozen = Freezer(target.formula)(box, (low, high))
    assert frozen is not None
    assert np.isfinite(frozen.cost).all()
    for share in rng.random(20):
        x = float(box[0, 0] + share * (box[1, 0] - box[0, 0]))
        f = enclose(target.formula, [x])[0]
        F = enclose(frozen.formula, [x, *frozen.constants])[0]
        assert abs(f.lower() - F.upper()) <= frozen.cost[0] * (1 + 1e-12) + 1e-15 * abs(f.lower())


@given(st.integers(0, 10**6), st.floats(1, 7))
def test_the_rounding_of_sharp_layers_is_bounded_on_every_box(seed, sharpest):
    """T computed at the nodes of small boxes is within the bound of T in balls."""
    rng, target = np.random.default_rng(seed), ol.Target("sqrt(x)", {"x": (0, 1)})
    frame = frame_of(target.domain)
    form = form_of(random_graded_layer(1, np.array([-0.5]), seed, sharpest))
    width = 10.0 ** -rng.uniform(0, 10)
    x = np.sort(width * rng.random(6))
    hat = frame(torch.from_numpy(x)[:, None]).T[None]
    T, rounding = on_sharp_grids(form, Grids(hat.mean(dim=2), hat), frame)
    for at, value in zip(x, T[0, :, 0].tolist(), strict=True):
        assert within(exact_form(form, frame, [at])[0], arb(value), float(rounding[0, 0]))


def certified(text, sides, tolerance, seconds=120.0):
    found = ol.build(text, sides, tolerance, seconds=seconds)
    assert found.certificate.verdict == "CERTIFIED"
    return found


def test_the_square_root_is_certified_and_checked(tmp_path):
    """A bound that is too small is not confirmed."""
    found = certified("sqrt(x)", {"x": (0, 1)}, 1e-2)
    folder = found.save(tmp_path / "model")
    assert check(folder, seconds=120).verdict == "VALID"
    smaller = 0.9 * found.certificate.observed
    assert check(forged(folder, tmp_path / "less", lambda r: r | {"bound": smaller}), seconds=60).verdict == "INVALID"


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "sides", "tolerance"),
    [
        ("sqrt(x)", {"x": (0, 1)}, 1e-4),
        ("abs(x)**(2/3)", {"x": (-1, 1)}, 1e-4),
        ("sqrt(1 - x**2)", {"x": (-1, 1)}, 1e-3),
        ("asin(x)", {"x": (0, 1)}, 1e-4),
        ("y; sqrt(x)", {"x": (0, 1), "y": (-1, 1)}, 3e-4),
        ("x**2 + y; abs(x)**(2/3) - x", {"x": (-1, 1), "y": (-1, 1)}, 2e-4),
        ("sqrt(x)*cos(y)", {"x": (0, 1), "y": (0, 2)}, 1e-3),
        ("sqrt(x*y)", {"x": (0, 1), "y": (0, 1)}, 1e-2),
        ("asin(x*y)", {"x": (0, 1), "y": (0, 1)}, 1e-2),
        ("asin(n*sin(t))", {"n": (0, 1), "t": (1, 5)}, 0.0314),
        ("asin(u/(n*d))", {"u": (1, 2), "n": (1, 5), "d": (2, 5)}, 0.0157),
    ],
)
def test_infinite_slopes_are_certified_and_checked(text, sides, tolerance, tmp_path):
    found = certified(text, sides, tolerance)
    assert check(found.save(tmp_path / "model"), seconds=600).verdict == "VALID"


@pytest.mark.long
def test_a_cone_is_certified():
    certified("sqrt(x**2 + y**2)", {"x": (-1, 1), "y": (-1, 1)}, 0.0141)


def test_a_formula_without_a_value_at_the_place_is_refused():
    with pytest.raises(ol.InputError, match="finite on the whole domain"):
        ol.build("1/sqrt(x)", {"x": (0, 1)}, 1e-3)


def test_a_domain_that_is_singular_all_over_is_bounded():
    """Every box is frozen: none is left for polynomials."""
    target = ol.Target("abs(x)**(2/3)", {"x": (-1.6e-7, 1.6e-7)})
    layer = gate_layer(torch.tensor([0.1], dtype=torch.float64), 1)
    proof = prove(form_of(layer), frame_of(target.domain), Claim(target, 0.26), Budget(seconds=10.0))
    assert 0.1 <= proof.bound <= 0.11
