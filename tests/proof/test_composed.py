"""Composed layers: the bound is never below the error, and what is claimed of polylines holds."""

import math

import numpy as np
import pytest
import torch
from flint import arb

import onelayer as ol
from compositions import composition
from hunting import engine, hunt
from onelayer.common.budget import Budget
from onelayer.construction.request import Request
from onelayer.construction.solved.layer import solved_layer
from onelayer.formula import enclose, interval, parse
from onelayer.layer.assemble import frame_of
from onelayer.layer.composed_reading import network_of
from onelayer.layer.form import form_of
from onelayer.layer.reading import form_of_model
from onelayer.proof.analytic import prove as analytic
from onelayer.proof.claim import Claim
from onelayer.proof.composed import prove as composed
from onelayer.proof.composed.outer import Curve, outer_range
from onelayer.proof.composed.spread import RESOLUTIONS, Spread, spread_of
from onelayer.proof.decision import prove_by


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_no_bound_is_below_the_error(dtype):
    finds = list(hunt(engine("analytic", 20.0, dtype), (composition(seed) for seed in range(8)), dtype))
    assert not [str(find.case) for find in finds if find.violated]
    assert sum(math.isfinite(find.bound) for find in finds) >= 5


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_no_bound_is_below_the_error_in_many_layers(dtype):
    finds = list(hunt(engine("analytic", 20.0, dtype), (composition(seed) for seed in range(100, 180)), dtype))
    assert not [str(find.case) for find in finds if find.violated]
    assert sum(math.isfinite(find.bound) for find in finds) >= 60


OUTER = {"exp(u)": (-1.0, 2.0), "sqrt(u)": (0.0, 3.0), "asin(u)": (-0.5, 1.0), "sin(u)^2": (1.0, 9.0), "u": (-2.0, 5.0)}


@pytest.mark.parametrize("text", OUTER)
@pytest.mark.parametrize("seed", range(4))
def test_a_polyline_and_a_function(text, seed):
    """H(a) − h(u) in balls, at random pairs and at the knots, lies in the range; and the range is not much wider."""
    rng = np.random.default_rng(seed)
    low, high = OUTER[text]
    knots = np.sort(rng.uniform(low - 0.1, high, rng.integers(1, 12)))
    curve = Curve(knots, rng.normal(size=len(knots)) * 10 ** rng.uniform(-2, 4))
    delta = float(10 ** rng.uniform(-9, -1))
    formula = parse(text, ("u",))
    reach = outer_range(curve, formula.outputs[0], (low, high), Spread.everywhere(delta))
    bottom, top = reach.low, reach.high
    inside = np.clip(np.concatenate([rng.uniform(low, high, 300), knots, [low, high]]), low, high)
    seen = []
    for u in inside.tolist():
        for a in (u, u + delta * float(rng.uniform(-1, 1)), u - delta, u + delta):
            if abs(arb(a) - arb(u)) <= delta:
                pairs = zip(curve.values.tolist(), knots.tolist(), strict=True)
                H = sum((arb(v) * (arb(a) - arb(k)).max(arb(0)) for v, k in pairs), arb(0))
                seen.append(H - enclose(formula, [interval(u, u)])[0].ball())
    assert all(not value < arb(bottom) and not value > arb(top) for value in seen)
    widest = max(float(v) for v in seen) - min(float(v) for v in seen)
    steepest = np.abs(np.cumsum(curve.values)).max()
    assert top - bottom <= 1.05 * widest + 4 * delta * steepest + 1e-9
    assert low <= reach.lowest[0] <= reach.lowest[1] <= high
    assert low <= reach.highest[0] <= reach.highest[1] <= high


@pytest.mark.parametrize("seed", range(20))
def test_a_polyline_around_its_knots(seed):
    """H(u + e) − h(u) for e in a few intervals, which need not hold 0: in the range, which is hardly wider than what is seen."""
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.uniform(-0.1, 1.0, rng.integers(1, 6)))
    curve, formula = Curve(knots, rng.normal(size=len(knots))), parse("sin(3*u)", ("u",))
    ends = np.sort(rng.normal(size=(4, 2)) * 10 ** rng.uniform(-6, -1), axis=1)
    spread = Spread(ends[:, 0], ends[:, 1], 0, 0.25, 1)
    reach = outer_range(curve, formula.outputs[0], (0.0, 1.0), spread, 0.001)
    u = np.clip(np.concatenate([rng.random(4000), *(knots + t * w for t in ends.ravel() for w in (-1, 0, 0.5))]), 0, 1)
    low, high = spread.on(u, u)
    at = np.concatenate([u, u, u]) + np.concatenate([low, high, low + (high - low) * rng.random(len(u))])
    seen = np.maximum(at[:, None] - knots, 0.0) @ curve.values - np.tile(np.sin(3 * u), 3)
    assert reach.low - 1e-14 <= seen.min()
    assert seen.max() <= reach.high + 1e-14
    assert reach.high - reach.low <= 1.01 * np.ptp(seen)


@pytest.mark.long
def test_a_layer_is_read_back():
    built = ol.build("a*b/c", {"a": (1, 5), "b": (1, 5), "c": (1, 5)}, 0.2)
    assert built.facts.construction == "composed" or built.certificate.verdict == "CERTIFIED"
    layer = ol.build("sqrt((a - b)^2 + (c - d)^2)", "1:5", 0.05)
    assert layer.facts.construction == "composed"
    inner, network = network_of(layer.model)
    assert form_of_model(inner) is not None
    x = torch.rand(50, 1, 4, dtype=torch.float64) * 4 + 1
    with torch.no_grad():
        lanes = inner(x)[:, 0].numpy()
        T = network.bias + np.maximum(lanes[:, network.lanes] + network.offsets, 0) @ network.values
        np.testing.assert_allclose(T, layer.model(x)[:, 0].numpy(), atol=1e-10)


@pytest.mark.long
def test_another_formula_is_not_matched():
    """A layer of sqrt((a − b)² + (c − d)²) proves nothing about another function by its lanes."""
    built = ol.build("sqrt((a - b)^2 + (c - d)^2)", "1:5", 0.05)
    other = ol.certify(built.model, ol.Target("sqrt((a - b)^2 + (c + d)^2)", "1:5"), 0.05, seconds=5.0)
    assert other.verdict != "CERTIFIED"
    near = ol.certify(built.model, ol.Target("sqrt((a - b)^2 + 1.02*(c - d)^2)", "1:5"), 0.05, seconds=5.0)
    assert near.observed <= near.bound


@pytest.mark.long
@pytest.mark.parametrize("how", RESOLUTIONS[:2])
def test_no_point_is_outside_the_spread_of_its_lane(how):
    """(g, A − g) at random points, and whole intervals of g: A − g is where the spread says, without slack."""
    target = ol.Target("x1^2 + sin(3*x2) + x3*x4", [(-1, 1)] * 4)
    layer = solved_layer(Request(target, 1e-3, units=40))
    form, frame = form_of(layer), frame_of(target.domain)
    proof = analytic.prove(form, frame, Claim(target, 1e-3), Budget(60.0))
    spread = spread_of(form, frame, target, proof, Budget(60.0), how)
    assert len(spread.low) > 1
    x = target.domain.points(np.random.default_rng(0).random((20_000, 4)))
    u = target(x)[:, 0]
    error = form(frame(torch.from_numpy(x)))[:, 0].numpy() - u
    low, high = spread.on(u, u)
    assert (low <= error).all()
    assert (error <= high).all()
    wide = spread.on(u - 0.1, u + 0.1)
    assert (wide[0] <= low).all()
    assert (high <= wide[1]).all()
    assert (high - low).mean() < 2 * proof.bound
    assert (np.abs([low, high]) <= proof.bound).all()


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_value_lies_in_as_many_bins_as_there_are_groups(groups):
    """K ≤ g/w < K + n: all of these K count, and no other; edges belong to the bin above."""
    high = np.random.default_rng(groups).random(40)
    spread = Spread(-high[::-1], high, -20, 0.5, groups)
    for u in (-3.2, -3.0, 0.0, 1.75, np.nextafter(2.0, 0.0), 2.0):
        own = [K for K in range(-20, 20) if K <= u / 0.5 < K + groups]
        low, top = spread.on(np.array([u]), np.array([u]))
        assert (float(low[0]), float(top[0])) == (min(-high[19 - K] for K in own), max(high[K + 20] for K in own))


@pytest.mark.long
def test_a_composed_layer_is_bounded_closely():
    """δ by value brings bound and error together: as a rule, and still more if asked."""
    built = ol.build("1/(1 + 16*((x1 - 0.5)^2 + (x2 - 0.5)^2 + (x3 - 0.5)^2))", [(0, 1)] * 3, 1e-3)
    assert built.facts.construction == "composed"
    found = ol.supremum(built, accuracy=0.01)
    assert found.reached
    assert found.lower <= found.upper <= built.certificate.bound < 1.05 * built.certificate.lower
    about = Claim(built.target, found.lower, built.facts.places, close=0.0025)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composed, "RESOLUTIONS", ())
        one = prove_by("analytic", built.model, about, found.lower, Budget(60.0))
    assert one.bound > 1.1 * found.upper
    x = torch.rand(20_000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
    assert np.abs(built(x).reshape(-1) - built.target(x)[:, 0]).max() <= found.upper


@pytest.mark.long
def test_the_worst_boxes_hold_bad_points():
    """Next to a box that the spread names the error is nearly as large as the bound: sup |T − f| is found there."""
    built = ol.build("exp(-6.25*((x1-0.5)^2 + (x2-0.5)^2 + (x3-0.5)^2 + (x4-0.5)^2))", [(0, 1)] * 4, 1e-3)
    about = Claim(built.target, 1e-9, built.facts.places, close=0.0025)
    proof = prove_by("analytic", built.model, about, 1e-9, Budget(60.0))
    boxes = [box for box in proof.evidence.worst_boxes if len(box.coordinates) == 4]
    assert boxes
    centres = (np.array([b.lower for b in boxes]) + np.array([b.upper for b in boxes])) / 2
    errors = np.abs(built(centres).reshape(-1) - built.target(centres)[:, 0])
    assert 0.9 * proof.bound < errors.max() <= proof.bound
