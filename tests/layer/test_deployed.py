"""Rounding of deployed models against their real functions, with zero slack: softmax and factored, float64 and float32."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import KINDS_AND_LAYOUTS, built, lattice_layer, loud, random_layer
from exact import exact_form, within
from onelayer.deployment.attention.linear import LinearAttention
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.layer.assemble import Frame, assemble, outputs_of
from onelayer.layer.heads import Maxima, Memory, shortfall
from onelayer.layer.layer import gate_layer, memory_layer
from onelayer.layer.reading import form_of_model
from onelayer.layer.rounding import deployed as deployed_module
from onelayer.layer.rounding.deployed import Boxes, FormProgram, edges

SIDES = [(-1.0, 2.0), (0.0, 1.0), (1000.0, 1001.0), (1e6, 1e6 + 1), (0.1, 0.1003)]
STRATEGY = (
    st.sampled_from(KINDS_AND_LAYOUTS), st.integers(1, 3), st.integers(0, 10**6), st.sampled_from([0.5, 10.0, 300.0, 1e4, 1e7]),
    st.sampled_from(SIDES), st.sampled_from([1.0, 1e4]),
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _little_work():
    """Fewer boxes: the bounds are looser, and must hold all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deployed_module, "WORK", 10**6)
        yield


def deployed(case, D, seed, sharp, side, size, arithmetic):
    """(model, places, reading, bound, points of the domain that the model's arithmetic has)."""
    kind, layout = case
    m = D if layout != "token" else 1
    layer = loud(random_layer(D, m, seed, sharp, kind), size, seed)
    model, places, target = built(layer, layout, m, D, side)
    model = model.to(arithmetic.dtype)
    numbers = (target.domain.lower, target.domain.upper, model.shift.flatten().tolist(), model.scale.flatten().tolist())
    low, high = edges(*(torch.tensor(t, dtype=torch.float64) for t in numbers))
    reading = form_of_model(model, places, float(torch.maximum(low.abs(), high.abs()).max()) * (1 + 4 * arithmetic.u))
    if reading is None:
        return None
    bound = reading.program.rounding(low, high)
    rng = np.random.default_rng(seed)
    unit = np.concatenate([rng.random((600, D)), rng.integers(0, 2, size=(20, D))])
    points = target.domain.representable(target.domain.points(unit), arithmetic is FLOAT32)
    return model, places, reading, bound, points


def rounding_here(form, edge):
    """What float64 can do to the form when it is evaluated to compare with."""
    whole = Boxes(torch.zeros(1, form.dimension).double(), torch.full((1, form.dimension), edge).double())
    return FormProgram.of_form(form, FLOAT64, terms=form.summands + 6, factored=False).on_boxes(whole)[0]


def answers(model, places, reading, points, dtype):
    """What the model and its factored form answer, as float64."""
    x = torch.from_numpy(points).to(dtype)
    with torch.no_grad():
        own = model(x.reshape(len(x), model.config.tokens, -1))[:, list(places)].flatten(1)
    return own.double(), LinearAttention(reading.form, reading.frame)(x).double()


@pytest.mark.long
@settings(max_examples=30)
@given(*STRATEGY)
def test_float32_is_within_its_bound(case, D, seed, sharp, side, size):
    found = deployed(case, D, seed, sharp, side, size, FLOAT32)
    if found is None:
        return
    model, places, reading, bound, points = found
    x = torch.from_numpy(points)
    form = reading.form
    true = form(reading.frame(x))
    own = rounding_here(form, reading.edge)
    for got in answers(model, places, reading, points, torch.float32):
        assert ((got - true).abs() - own <= bound).all()


@pytest.mark.long
@settings(max_examples=10)
@given(*STRATEGY)
def test_float64_is_within_its_bound(case, D, seed, sharp, side, size):
    found = deployed(case, D, seed, sharp, side, size, FLOAT64)
    if found is None:
        return
    model, places, reading, bound, points = found
    points = points[::60]
    both = answers(model, places, reading, points, torch.float64)
    for i, x in enumerate(points):
        true = exact_form(reading.form, reading.frame, x)
        for o, exact in enumerate(true):
            for got in both:
                assert within(exact, float(got[i, o]), float(bound[o]))


@pytest.mark.parametrize("arithmetic", [FLOAT64, FLOAT32])
def test_the_comparison_can_fail(arithmetic):
    """A bound a hundred times smaller is violated: the tests above have teeth."""
    model, places, reading, bound, points = deployed(("gates", "token"), 2, 1, 300.0, (0.0, 1.0), 1.0, arithmetic)
    got, factored = answers(model, places, reading, points, arithmetic.dtype)
    true = reading.form(reading.frame(torch.from_numpy(points)))
    wrong = 1e-2 * bound
    if arithmetic is FLOAT64:
        pairs = zip(points, got.flatten().tolist(), strict=True)
        assert not all(within(exact_form(reading.form, reading.frame, x)[0], y, float(wrong)) for x, y in pairs)
    else:
        assert (got - true).abs().max() > wrong
        assert (factored - true).abs().max() > wrong


@pytest.mark.long
def test_every_box_bounds_its_own_points():
    """Not only the largest bound holds: on every small box the model stays within that box's bound."""
    for seed, case in enumerate([("gates", "token"), ("memory", "token")] * 2):
        model, places, reading, _, _ = deployed(case, 2, seed, 30.0, (0.0, 1.0), 100.0, FLOAT32)
        rng = np.random.default_rng(seed)
        centres, halves = rng.uniform(-0.45, 0.45, size=(40, 2)), rng.uniform(0, 0.05, size=(40, 2))
        boxes = Boxes(torch.from_numpy(centres), torch.from_numpy(halves))
        bounds = torch.maximum(*(p.on_boxes(boxes) for p in (reading.program, *reading.program.others)))
        for c, r, bound in zip(centres, halves, bounds, strict=True):
            unit = c + r * rng.uniform(-1, 1, size=(100, 2)) + 0.5
            points = unit.astype(np.float32).astype(np.float64)
            points = points[(np.abs(points - 0.5 - c) <= r).all(axis=1)]
            if len(points):
                true = reading.form(reading.frame(torch.from_numpy(points)))
                own = rounding_here(reading.form, 0.5)
                for got in answers(model, places, reading, points, torch.float32):
                    assert ((got - true).abs() - own <= bound).all()


def test_the_bound_is_not_absurdly_large():
    """Within a factor of 40 of what is seen, for a solved layer in float32."""
    approx = ol.build("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-3, construction="gates", dtype="float32")
    reading = form_of_model(approx.model)
    x = approx.domain.representable(approx.domain.points(np.random.default_rng(0).random((5000, 2))), True)
    true = reading.form(reading.frame(torch.from_numpy(x)))[:, 0].numpy()
    seen = np.abs(approx(x) - true).max()
    assert seen <= approx.certificate.evidence.rounding <= 40 * seen


def test_no_small_bound_is_claimed_where_errors_are_not_small():
    """Scores off by 60: a gate may be anything between its values."""
    model, places, reading, bound, points = deployed(("gates", "token"), 1, 0, 1e9, (0.0, 1.0), 1.0, FLOAT32)
    assert bound > 1
    true = reading.form(reading.frame(torch.from_numpy(points)))
    for got in answers(model, places, reading, points, torch.float32):
        assert ((got - true).abs() <= bound).all()


@pytest.mark.parametrize("sharpness", [1e3, 1e5, -(2.0**20)])
@pytest.mark.parametrize("arithmetic", [FLOAT64, FLOAT32], ids=["float64", "float32"])
def test_the_rounding_of_maxima_does_not_grow_with_their_sharpness(arithmetic, sharpness):
    """Beside the shortfall W/β, which an average may or may not have, some 100 units in the last place."""
    rng = np.random.default_rng(3)
    offsets = 0.2 * rng.normal(size=(2, 3))
    offsets, values = (torch.from_numpy(a.astype(np.float32)).double() for a in (offsets, rng.normal(size=(2, 1))))
    kept = torch.tensor([[True, True, True], [True, False, True]])
    maxima = Maxima(torch.full((2,), sharpness, dtype=torch.float64), offsets, kept)
    layer = gate_layer(torch.zeros(1, dtype=torch.float64), 3, maxima=(maxima, values))
    model, places, _ = built(layer, "token", 1, 3, (0.0, 1.0))
    model = model.to(arithmetic.dtype)
    reading = form_of_model(model, places)
    edge = torch.full((3,), 0.5, dtype=torch.float64)
    bound = float(reading.program.rounding(-edge, edge))
    assert bound < 100 * arithmetic.u + 2 * sum(values.abs().flatten()) * shortfall(3) / abs(sharpness)
    middle = rng.uniform(-0.2, 0.2, size=(40, 1)) - np.repeat(offsets.numpy(), 20, axis=0)  # all tokens contend
    points = np.clip(middle + 0.5 + rng.normal(size=(40, 3)) / abs(sharpness), 0, 1).astype(np.float32).astype(float)
    for x, *got in zip(points, *answers(model, places, reading, points, arithmetic.dtype), strict=True):
        exact = exact_form(reading.form, reading.frame, x)[0]
        assert all(within(exact, float(y), bound) for y in got)


@pytest.mark.long
@settings(max_examples=20)
@given(
    st.sampled_from([(8,), (4, 4), (3, 2, 3)]), st.sampled_from([0.5, 2.0, 8.0]), st.sampled_from([1.0, 1e5]),
    st.integers(0, 10**6), st.sampled_from([FLOAT32, FLOAT64]),
)  # fmt: skip
def test_tables_are_within_the_bound(counts, step, size, seed, arithmetic):
    """Gates that share their sharpness, so that the factored form is one of tables."""
    D = len(counts)
    model, places, _ = built(loud(lattice_layer(counts, step, seed=seed), size, seed), "token", 1, D, (0.0, 1.0))
    reading = form_of_model(model.to(arithmetic.dtype), places)
    assert LinearAttention(reading.form, reading.frame).compiled[arithmetic.dtype].shared
    edge = torch.full((D,), 0.5, dtype=torch.float64)
    bound = reading.program.rounding(-edge, edge)
    points = np.random.default_rng(seed).random((400, D)).astype(np.float32).astype(np.float64)
    if arithmetic is FLOAT64:
        points = points[:8]
    both = answers(model, places, reading, points, arithmetic.dtype)
    if arithmetic is FLOAT32:
        true = reading.form(reading.frame(torch.from_numpy(points)))
        own = rounding_here(reading.form, 0.5)
        assert all(((got - true).abs() - own <= bound).all() for got in both)
    else:
        for i, x in enumerate(points):
            exact = exact_form(reading.form, reading.frame, x)[0]
            assert all(within(exact, float(got[i, 0]), float(bound)) for got in both)


@pytest.mark.parametrize("D", [8, 16, 32])
def test_a_value_that_sums_many_inputs_is_charged_for_each(D):
    """The data token has nearly all the weight and the value Σ x_i, whose large ends cancel: every addition is rounded."""
    memory = Memory(torch.zeros(2, D).double(), torch.tensor([3.0, 2.0]).double(), torch.zeros(2, dtype=torch.int64))
    layer = memory_layer(torch.zeros(1).double(), D, (memory, torch.tensor([[1.0], [-1.0]]).double()))
    layer = replace(layer, memory=replace(memory, keys=torch.eye(2, D).double()))
    target = ol.Target("x1", [(-0.5, 0.5)] * D)
    model = assemble(layer, Frame((0.0,) * D, (1.0,) * D), outputs_of(target)).float()
    with torch.no_grad():
        inputs, constant = model.W_E.ne(0).any(dim=0), model.b_E.ne(0)
        model.W_Q[:, inputs], model.W_K[:, inputs], model.S[:, inputs] = 0.0, 0.0, 0.0
        strength = float(model.W_K[:, constant].sum()) / model.config.d_k**0.5
        model.S[:, constant] = 1 - 10 / strength  # scores of the memory tokens are 10 lower
        model.W_V[:, inputs] = 1.0
    reading = form_of_model(model)
    assert reading is not None
    x = torch.full((1, D), 2.0**-25 * 1.01)
    x[0, 0], x[0, -1] = 0.5, -0.5
    with torch.no_grad():
        off = (model(x[:, None])[:, 0].double() - copy.deepcopy(model).double()(x.double()[:, None])[:, 0]).abs()
    bound = reading.program.on_boxes(Boxes(x.double(), torch.zeros(1, D).double()))
    assert 0 < float(off) <= float(bound)
