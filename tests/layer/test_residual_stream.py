"""Layers whose residual stream carries outputs and x: forms, errors and rounding against exact arithmetic, zero slack."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import built
from exact import exact_form, exact_model, within
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.layer.heads import Gates, Memory, Ridges
from onelayer.layer.layer import gate_layer, memory_layer
from onelayer.layer.reading import form_of_model
from onelayer.layer.rounding import deployed as deployed_module
from onelayer.layer.rounding.deployed import edges

KINDS = ["gates", "saturated gates", "centred gates", "even gates", "memory", "ridges"]


@pytest.fixture(scope="module", autouse=True)
def _little_work():
    """Fewer boxes: the bounds are looser, and must hold all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deployed_module, "WORK", 10**6)
        yield


def layer_of(kind, D, seed, sharp, linear):
    """A layer with a linear part of the given size."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=g, dtype=torch.float64)

    straight = normal(D, 1) * linear
    if kind in ("memory", "ridges"):
        memory = (Memory(normal(9, D) * sharp, normal(9) * sharp, torch.zeros(9, dtype=torch.int64)), normal(9, 1))
        ridges = (Ridges(normal(3, D) * sharp, normal(3)), normal(3, 1)) if kind == "ridges" else None
        return memory_layer(normal(1), D, memory, ridges, linear=straight)
    if kind == "even gates":
        values = torch.cat([torch.zeros(6, 2, 1, dtype=torch.float64), normal(6, 1, 1) * max(linear, 1e-3)], dim=1)
        gates = Gates(normal(6) * sharp, torch.zeros(6, 1, dtype=torch.float64), torch.ones(6, 1, dtype=torch.bool))
        return gate_layer(normal(1), 1, (gates, values))
    kept = torch.ones(6, D, dtype=torch.bool)
    values = normal(6, D + 2, 1)
    offsets = normal(6, D) / 3
    if kind != "centred gates":
        values[:, 1] = 0.0  # one token of value 0: the anchor needs no lane
    if kind == "saturated gates":  # the data tokens have all the weight, everywhere: what is left is affine
        offsets[::2] = 1e4 * (1 + offsets[::2].abs())
    sharpness = normal(6).abs() * sharp + 0.1 if kind == "saturated gates" else normal(6) * sharp
    return gate_layer(normal(1), D, (Gates(sharpness, offsets, kept), values), linear=straight)


def checked(kind, D, seed, sharp, linear, arithmetic, count, side=(-1.0, 2.0), change=1.0):
    """Whether |computed − real| ≤ change·bound at random points, for the real function of the stored weights."""
    D = 1 if kind == "even gates" else D
    model, places, target = built(layer_of(kind, D, seed, sharp, linear), "token", 1, D, side)
    model = model.to(arithmetic.dtype)
    assert model.config.residual
    assert (model.config.d_model == 1) == (kind == "even gates")
    numbers = (target.domain.lower, target.domain.upper, model.shift.flatten().tolist(), model.scale.flatten().tolist())
    low, high = edges(*(torch.tensor(t, dtype=torch.float64) for t in numbers))
    reading = form_of_model(model, places, float(torch.maximum(low.abs(), high.abs()).max()) * (1 + 4 * arithmetic.u))
    assert reading is not None
    bound = float(reading.program.rounding(low, high))
    unit = np.random.default_rng(seed).random((count, D))
    unit[:4] = np.random.default_rng(seed).integers(0, 2, size=(4, D))
    points = target.domain.representable(target.domain.points(unit), arithmetic is FLOAT32)
    with torch.no_grad():
        got = model(torch.from_numpy(points).to(arithmetic.dtype).reshape(count, model.config.tokens, -1)).flatten()
    pairs = zip(points, got.tolist(), strict=True)
    return all(within(exact_model(model, x, places)[0], y, change * bound) for x, y in pairs)


@pytest.mark.long
@settings(max_examples=25)
@given(
    st.sampled_from(KINDS), st.integers(1, 3), st.integers(0, 10**6), st.sampled_from([0.5, 10.0]),
    st.sampled_from([0.0, 1e-3, 1.0, 1e6]), st.sampled_from([FLOAT64, FLOAT32]),
    st.sampled_from([(-1.0, 2.0), (1000.0, 1001.0), (0.1, 0.1003)]),
)  # fmt: skip
def test_the_bound_holds_for_what_is_computed(kind, D, seed, sharp, linear, arithmetic, side):
    assert checked(kind, D, seed, sharp, linear, arithmetic, 40, side)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arithmetic", [FLOAT64, FLOAT32], ids=["float64", "float32"])
def test_the_bound_holds_at_many_points(kind, arithmetic):
    assert checked(kind, 1 + (kind == "memory"), 7, 3.0, 10.0, arithmetic, 500)


@pytest.mark.parametrize("kind", ["gates", "saturated gates", "even gates", "memory"])
@pytest.mark.parametrize("arithmetic", [FLOAT64, FLOAT32], ids=["float64", "float32"])
def test_the_comparison_can_fail(kind, arithmetic):
    assert not checked(kind, 1, 7, 3.0, 10.0, arithmetic, 300, change=5e-3)


def test_slopes_that_cancel_are_rounded_all_the_same():
    """A saturated gate adds 1e6·x, the read-out takes it away: the form is small, what is rounded on the way is not."""
    layer = layer_of("saturated gates", 1, 3, 3.0, 1.0)
    values, linear = layer.gate_values.clone(), layer.linear.clone()
    values[0, -1], linear[0] = 1e6, 1.0 - 1e6
    model, places, target = built(replace(layer, gate_values=values, linear=linear), "token", 1, 1)
    for arithmetic in (FLOAT64, FLOAT32):
        model = model.to(arithmetic.dtype)
        reading = form_of_model(model, places)
        assert float(reading.form.linear.abs().max()) < 20
        edge = torch.full((1,), 0.5, dtype=torch.float64)
        bound = float(reading.program.rounding(-edge, edge))
        unit = np.random.default_rng(0).random((300, 1))
        x = target.domain.representable(target.domain.points(unit), arithmetic is FLOAT32)
        with torch.no_grad():
            got = model(torch.from_numpy(x).to(arithmetic.dtype).reshape(-1, 1, 1)).flatten().tolist()
        off = [abs(float((exact_model(model, p, places)[0] - y).mid())) for p, y in zip(x, got, strict=True)]
        assert 100 * arithmetic.u < max(off) <= bound
        assert within(reading.form(reading.frame(torch.from_numpy(x[:1])))[0, 0].item(), got[0], 2 * bound)


@pytest.mark.parametrize("kind", ["gates", "memory"])
def test_a_coordinate_of_x_may_be_read_with_any_factor(kind):
    """Whatever else is written there: the form follows, and says how far it may be off, and the computed answers too."""
    layer = layer_of(kind, 1, 5, 2.0, 1.0)
    model = built(layer, "token", 1, 1)[0]
    out, edge = int((model.W_O != 0).any(dim=0).nonzero()), torch.full((1,), 0.5, dtype=torch.float64)
    for name, index, value in (
        ("W_R", (0,), 0.3),
        ("W_R", (out, 0), 1.5),  # what heads have moved
        ("W_O", (0, 0), 1.0),  # a head writes where x is
        ("W_E", (0, 0), 0.75),  # x times a number that is no power of two
        ("b_E", (0,), 1.0),  # a constant where x is
        ("b_2", (0,), 0.25),
        ("W_2", (0, 0), 0.5),  # the network writes there
    ):
        model, places, target = built(layer, "token", 1, 1)
        with torch.no_grad():
            model.W_R[0] = 0.3
            getattr(model, name)[index] = value
        reading = form_of_model(model)
        rounding = float(reading.program.rounding(-edge, edge))
        for x in target.domain.points(np.random.default_rng(0).random((10, 1))):
            form = exact_form(reading.form, reading.frame, x)[0]
            got = float(model(torch.from_numpy(x).reshape(1, 1, 1)).detach())
            assert within(form, exact_model(model, x, places)[0], float(reading.error)), name
            assert within(form, got, rounding), name


def test_a_hidden_unit_that_may_switch_behind_a_head_is_not_read():
    model = built(layer_of("gates", 1, 5, 2.0, 1.0), "token", 1, 1)[0]
    with torch.no_grad():
        model.W_1[1, 0] = model.W_2[0, 1] = 1.0
    assert form_of_model(model) is None
