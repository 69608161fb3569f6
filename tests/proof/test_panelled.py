"""Proofs panel by panel: for any heads of one coordinate, with no slack; and a proof that fails where it must."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import arb, ctx

import onelayer as ol
from exact import BITS, exact_form
from many_heads import some_block
from onelayer.common.budget import Budget
from onelayer.layer.assemble import Frame, Outputs, assemble
from onelayer.layer.form import Form
from onelayer.layer.heads import Bumps, Hinges, Ridges
from onelayer.layer.layer import memory_layer
from onelayer.proof.analytic.panelled import PanelledCover, _recentred, panelled
from onelayer.proof.analytic.summand import Summand
from onelayer.proof.claim import Claim
from onelayer.proof.decision import prove_by

WAVES = "sin(40*x1^2) + 0.1*cos(300*x1)"


def summand_of(form, formula="sin(3*x1)", sides=((-0.5, 0.5),), frame=Frame((0.0,), (1.0,))):  # noqa: B008
    target = ol.Target(formula, list(sides))
    return Summand(form, target.formula, target, frame, (0,))


def form_of_block(block):
    m = block.values.shape[2]
    return Form(torch.ones(m, dtype=torch.float64), torch.ones(1, m, dtype=torch.float64), (block,))


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_for_any_heads(seed):
    block = some_block(100, 2 + seed, seed, outputs=1, steep=60.0)
    frame = Frame((0.3,), (0.7,))
    summand = summand_of(form_of_block(block), sides=((-0.4, 1.0),), frame=frame)
    cover = panelled(summand, 1e-6, Budget(20.0), lambda _: None, None)
    assert isinstance(cover, PanelledCover)
    assert len(cover.parts) >= 2
    for _ in range(40):
        if not cover.refine(Budget(20.0), alone=True):
            break
    (low,), (high,) = cover.range
    assert np.isfinite([low, high]).all()
    boxes = cover.boxes
    assert boxes.lower.min() == -0.4
    assert boxes.upper.max() == 1.0
    np.testing.assert_array_equal(np.sort(boxes.lower[:, 0])[1:], np.sort(boxes.upper[:, 0])[:-1])  # no gaps
    tight = np.inf
    for x in np.random.default_rng(seed).uniform(-0.4, 1.0, 150).tolist():
        with ctx.workprec(BITS):
            g = exact_form(summand.form, frame, [x])[0] - (3 * arb(x)).sin()
        at = cover.patch.box_at(np.array([x]))
        assert arb(float(boxes.low[at, 0])) <= g <= arb(float(boxes.high[at, 0]))
        assert arb(float(low)) <= g <= arb(float(high))
        tight = min(tight, float(boxes.high[at, 0] - boxes.low[at, 0]) / (high - low))
    assert tight < 0.5  # and they say something


def test_heads_written_for_another_centre():
    block, c, half = some_block(40, 3, 5), Fraction(3, 7), 0.01
    moved, off = _recentred(block, c, half)
    form, other = form_of_block(block), form_of_block(moved)
    plain = Frame((0.0,), (1.0,))
    for z in (-0.01, 0.0, 0.004, 0.01):
        with ctx.workprec(BITS):
            x = arb(3) / 7 + arb(z)
            there = [v - arb(z) for v in exact_form(other, plain, [z])]  # less the linear part, which stays x
            here = at_ball(form, x)
            for o in range(2):
                assert abs(here[o] - there[o]) <= arb(float(off[o])) + arb(2) ** -120


def at_ball(form, x):
    """Bias and heads, without the linear part, at a ball."""
    found = [arb(b) for b in form.bias.tolist()]
    (block,) = form.blocks
    for keys, biases, values, slopes in zip(
        *(t.tolist() for t in (block.keys, block.biases, block.values, block.slopes)), strict=True
    ):
        there = [t for t, b in enumerate(biases) if b > -np.inf]
        weights = [(arb(keys[t][0]) * x + arb(biases[t])).exp() for t in there]
        for o in range(len(found)):
            own = [arb(values[t][o]) + arb(slopes[t][0][o]) * x for t in there]
            found[o] += sum((w * v for w, v in zip(weights, own, strict=True)), arb(0)) / sum(weights, arb(0))
    return found


def test_a_row_is_certified_and_a_changed_weight_is_not():
    approx = ol.build(WAVES, [(0, 3)], 1e-3)
    assert approx.facts.heads[0][0] == "bump"
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.certificate.observed <= approx.certificate.bound
    target, model = approx.target, approx.model
    with torch.no_grad():
        model.W_V[len(model.W_V) // 2] *= 1.01
    proof = prove_by("analytic", model, Claim(target, 1e-3), 0.0, Budget(20.0))
    assert proof is not None
    x = np.linspace(0, 3, 20001)[:, None]
    worst = float(np.abs(model(torch.from_numpy(x)[:, None]).detach().numpy()[:, 0] - target(x)).max())
    assert 1e-3 < worst <= proof.bound


def test_panels_only_where_they_pay():
    few = form_of_block(some_block(20, 2, 0, outputs=1))
    assert panelled(summand_of(few), 1e-6, Budget(5.0), lambda _: None, None) is None


def model_of(dimension, **parts):
    """A model made by hand: on the box of x̂ in [−½, ½]."""
    layer = memory_layer(torch.zeros(1, dtype=torch.float64), dimension, **parts)
    return assemble(layer, Frame((0.0,) * dimension, (1.0,) * dimension), Outputs(1, 1, (0,)))


def spike(dimension, coordinate, at, half):
    """Three hinges that make a triangle of height 1."""
    directions = torch.zeros(3, dimension, dtype=torch.float64)
    directions[:, coordinate] = 1 / half
    offsets = -torch.tensor([at - half, at, at + half], dtype=torch.float64) / half
    return Hinges(directions, offsets), torch.tensor([[1.0], [-2.0], [1.0]], dtype=torch.float64)


def bound_by_hand(model, target, tolerance=1e-2):
    proof = prove_by("analytic", model, Claim(target, tolerance), 0.0, Budget(20.0))
    return np.inf if proof is None else proof.bound


@pytest.mark.parametrize("half", [0.1, 1e-6])
def test_no_hinge_is_left_out(half):
    line = torch.tensor([[1.0]], dtype=torch.float64)
    alone = model_of(1, hinges=spike(1, 0, 0.125, half), linear=line)
    assert 1 <= bound_by_hand(alone, ol.Target("x1", [(-0.5, 0.5)])) <= 1.1
    assert bound_by_hand(alone, ol.Target("x1", [(-0.5, 0.5)], within="x1 < 0.4")) >= 1
    beside = model_of(2, hinges=spike(2, 1, 0.125, half), linear=torch.cat([line, 0 * line]))  # f does not know x2
    assert 1 <= bound_by_hand(beside, ol.Target("x1", [(-0.5, 0.5), (-0.5, 0.5)])) <= 1.1
    across = model_of(
        2, hinges=(Hinges(torch.ones(1, 2, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)), line)
    )
    assert bound_by_hand(across, ol.Target("0*x1*x2", [(-0.5, 0.5), (-0.5, 0.5)])) >= 1


def test_a_hinge_that_is_open_almost_everywhere():
    opened = Hinges(torch.ones(1, 1, dtype=torch.float64), torch.tensor([0.45], dtype=torch.float64))
    model = model_of(1, hinges=(opened, torch.ones(1, 1, dtype=torch.float64)))
    assert 0.0499 < bound_by_hand(model, ol.Target("x1 + 0.45", [(-0.5, 0.5)])) < 0.051


def test_floors_beyond_the_whole_floats():
    wrong = float(np.sin(2.0**53))  # sin(floor(x + 2**53 + 1)) is another number
    f = f"where(abs(x1 - 0.1234567) < 1e-7, sin(floor(x1 + {2**53 + 1})), {wrong!r})"
    model = model_of(1)
    with torch.no_grad():
        model.b_R.fill_(wrong)
    assert bound_by_hand(model, ol.Target(f, [(0.0, 0.5)])) >= 0.05


@pytest.mark.parametrize(
    ("formula", "true"),
    [
        ("where(x1 < 0.25, 0, 1)", 0.75),
        ("where(x1 <= 0.25, 0, 1)", 0.75),
        ("where(x1 < 0, -1, where(x1 <= 0, 5, 0))", 5.0),
        ("max(min(x1, 0.25), 0)", 0.0),
    ],
)
def test_jumps_at_the_ends_of_panels(formula, true):
    clip = Hinges(torch.ones(2, 1, dtype=torch.float64), torch.tensor([0.0, -0.25], dtype=torch.float64))
    model = model_of(1, hinges=(clip, torch.tensor([[1.0], [-1.0]], dtype=torch.float64)))
    assert true <= bound_by_hand(model, ol.Target(formula, [(-0.5, 0.5)]), 10.0)


def test_many_heads_on_one_side_and_few_on_the_other():
    steep = torch.full((300, 1), 4000.0, dtype=torch.float64)
    left = Ridges(steep, -steep[:, 0] * torch.linspace(-0.45, -0.05, 300, dtype=torch.float64))
    right = Bumps(steep[:10], -steep[:10, 0] * torch.linspace(0.3, 0.4, 10, dtype=torch.float64))
    values = torch.full((300, 1), 1e-3, dtype=torch.float64)
    model = model_of(1, ridges=(left, values), bumps=(right, torch.full((10, 2, 1), 1e-3, dtype=torch.float64)))
    target = ol.Target("0.3*x1", [(-0.5, 0.5)])
    bound = bound_by_hand(model, target, 1.0)
    x = np.linspace(-0.5, 0.5, 2001)[:, None]
    seen = np.abs(model(torch.from_numpy(x)[:, None]).detach().numpy()[:, 0] - target(x)).max()
    assert seen <= bound <= 1.1 * seen
