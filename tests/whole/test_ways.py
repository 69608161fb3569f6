"""Weights made by hand that no construction makes: sums that cancel on the way, and numbers that underflow on the way."""

from fractions import Fraction

import numpy as np
import pytest
import torch

import onelayer as ol
from made_by_hand import answers, blank, proved
from onelayer.deployment.attention.linear import LinearAttention
from onelayer.layer.reading import form_of_model

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def test_tokens_of_a_head_that_go_different_ways():
    """Two tokens cancel in every head, but only after the sums over all heads, each of which was rounded."""
    H, large, larger = 256, 1 + 62 * 2.0**-23, 1 + 66 * 2.0**-23
    model = blank(torch.float32, heads=H, d_v=2, memory_tokens=3, d_model=5)
    model.W_E[0, 0], model.S[0, 1], model.S[1, 2] = 1.0, 1.0, 1.0
    model.W_V[:, 1, 0], model.W_V[:, 2, 1] = 4 * large, -4 * larger
    model.W_O[0::2, 3], model.W_O[1::2, 4] = 1.0, 1.0
    model.W_R[[0, 3, 4], 0] = 1.0
    left = Fraction(H * (large - larger))
    x = torch.linspace(-0.5, 0.5, 64)
    error = float((answers(model, x).double() - x.double() - float(left)).abs().max())
    assert error > 1e-3
    target = ol.Target(f"x1 - {-left.numerator}/{left.denominator}", [(-0.5, 0.5)])
    assert proved(model, target) >= error


@DTYPES
def test_a_masked_token_whose_key_is_a_sum_that_cancels(dtype):
    """Exactly the key is far below 0; added up from the left it is 0."""
    big, below = (2.0**40, 200.0) if dtype == torch.float32 else (2.0**70, 1000.0)
    model = blank(dtype, d_model=8)
    model.W_E[0, 0], model.b_E[1], model.W_Q[0, 1, 0] = 1.0, 1.0, 1.0
    model.S[0, 2:5] = torch.tensor([big, -below, -big])
    model.W_K[0, 2:5, 0] = 1.0
    model.S[0, 5], model.W_V[0, 5, 0], model.W_O[0, 6] = 1.0, 1.0, 1.0
    model.W_R[[0, 6], 0] = 1.0
    x = torch.linspace(-0.5, 0.5, 5, dtype=dtype)
    error = float((answers(model, x) - x).abs().max())
    assert error == pytest.approx(0.5)  # the token has half of the weight
    assert proved(model, ol.Target("x1", [(-0.5, 0.5)])) >= error


@DTYPES
@pytest.mark.parametrize("kind", ["value", "score"])
def test_an_embedding_that_underflows_and_is_made_large_again(kind, dtype):
    tiny, up, more = (2.0**-149, 2.0**64, 2.0**85) if dtype == torch.float32 else (2.0**-1074, 2.0**64, 2.0**1010)
    model = blank(dtype)
    model.W_E[0, 0], model.W_O[0, 1], model.W_R[1, 0] = tiny, 1.0, 1.0
    if kind == "value":
        model.S[0, 3], model.b_E[2], model.W_Q[0, 2, 0] = 1.0, 1.0, 1.0
        model.W_K[0, 3, 0] = -2000.0  # the head copies the value of the data token
        model.W_V[0, 0, 0], model.W_O[0, 1] = up, more
    else:
        model.W_Q[0, 0, 0], model.S[0, 2], model.W_K[0, 2, 0] = up, more, 1.0
        model.S[0, 3], model.W_V[0, 3, 0] = 1.0, 1.0
    x = torch.linspace(-0.4, 0.4, 101, dtype=dtype)
    wanted = x if kind == "value" else torch.sigmoid(x)
    error = float((answers(model, x) - wanted).abs().max())
    assert error > 0.09
    assert proved(model, ol.Target("x1" if kind == "value" else "sigmoid(x1)", [(-0.4, 0.4)])) >= error


@pytest.mark.parametrize("below", [0.0, 60.0, 82.0, 84.0])
def test_factored_heads_with_small_exponentials_and_small_inputs(below):
    """x·e^b underflows where e^b is small for all tokens of a head: its columns are scaled."""
    H, edge = 4, 1e-6
    model = blank(torch.float32, heads=H, d_model=5)
    model.W_E[0, 0], model.b_E[1], model.S[0, 2] = 1.0, 1.0, 1.0
    model.W_Q[:, 1, 0], model.W_K[:, 0, 0], model.W_K[:, 1:3, 0] = 1.0, 1.0, -below
    model.W_V[:, 0, 0], model.W_O[:, 3], model.W_R[3, 0] = 1.0, 1.0, 1.0
    reading = form_of_model(model, edge=edge)
    factored = LinearAttention(reading.form, reading.frame)
    assert len(factored.compiled[torch.float32].shared) == 1
    x = torch.from_numpy(np.linspace(-edge, edge, 401).astype(np.float32))[:, None]
    exact = (H * x.double() * torch.sigmoid(x.double()))[:, 0]
    ends = torch.full((1,), edge, dtype=torch.float64)
    bound = float(reading.program.rounding(-ends, ends).max())
    assert float((factored(x)[:, 0].double() - exact).abs().max()) <= bound


def test_a_constant_that_all_heads_are_added_up_with():
    """One head adds 1 to the coordinate that 255 others add small numbers to; the bias takes it away afterwards."""
    H, small = 256, 0.49 * 2.0**-22
    model = blank(torch.float32, heads=H, d_model=8, memory_tokens=2)
    model.W_E[0, 0], model.b_E[1], model.S[0, 2], model.S[1, 3] = 1.0, 1.0, 1.0, 1.0
    model.W_Q[:, 1, 0], model.W_K[0, 2, 0], model.W_V[0, 2, 0] = 1.0, 2000.0, 1.0
    model.W_K[1:, 0, 0], model.W_K[1:, 3, 0], model.W_V[1:, 1, 0] = 1.0, -2000.0, small
    model.W_O[:, 4], model.W_R[4, 0], model.b_R[0] = 1.0, 1.0, -1.0
    x, each = torch.linspace(-0.5, 0.5, 101), Fraction(float(model.W_V[1, 1, 0])) * (H - 1)
    exact = float(each) * torch.sigmoid(x.double())
    error = float((answers(model, x).double() - exact).abs().max())
    assert error > 1e-5
    assert proved(model, ol.Target(f"{each.numerator}/{each.denominator}*sigmoid(x1)", [(-0.5, 0.5)])) >= error


@pytest.mark.parametrize("kind", ["value alone", "value", "key"])
def test_constants_that_add_up_without_rounding_until_x_joins_them(kind):
    model, C = blank(torch.float32, d_model=8), 2.0**20
    model.W_E[0, 0], model.b_E[1:4], model.W_Q[0, 3, 0] = 1.0, 1.0, 1.0
    model.S[0, 4], model.W_O[0, 5], model.W_R[5, 0] = 1.0, 1.0, 1.0
    sums = model.W_K if kind == "key" else model.W_V
    sums[0, :3, 0] = torch.tensor([1.0, C, 1 - C])
    if kind == "key":
        model.W_V[0, 3, 0] = 1.0
    elif kind == "value alone":
        model.W_K[0, 4, 0] = -2000.0
    x = torch.linspace(-0.5, 0.5, 101)
    formula = {"value alone": "1 + x1", "value": "(1 + x1)/2", "key": "sigmoid(1 + x1)"}[kind]
    target = ol.Target(formula, [(-0.5, 0.5)])
    error = np.abs(answers(model, x).double().numpy() - target(x.double().numpy()[:, None])[:, 0]).max()
    assert error > 0.01
    assert proved(model, target) >= error


@DTYPES
def test_a_unit_of_constants_that_goes_several_ways(dtype):
    C = 2.0**30 if dtype == torch.float32 else 2.0**60
    for numbers in ((C, 1.0, -C), (C, -C, 1.0)):
        model = blank(dtype, d_model=8)
        model.W_E[0, 0], model.W_R[0, 0], model.b_1[0], model.W_R[3:6, 0] = 1.0, 1.0, 1.0, 1.0
        model.W_2[0, 3:6] = torch.tensor(numbers, dtype=dtype)
        x = torch.linspace(-0.5, 0.5, 11, dtype=dtype)
        for plus in (0, 1):
            error = float((answers(model, x) - x - plus).abs().max())
            assert proved(model, ol.Target(f"x1 + {plus}", [(-0.5, 0.5)])) >= error


def test_a_unit_that_only_rounding_opens():
    """The weights of very many equal tokens do not quite sum up to 1, and the unit behind opens at that."""
    tokens = 139_284
    model = blank(torch.float32, d_model=4, memory_tokens=tokens, residual=False)
    model.W_E[0, 0], model.b_E[1], model.S[:, 2], model.W_Q[0, 1, 0] = 1.0, 1.0, 1.0, 1.0
    model.W_V[0, 1:3, 0], model.W_O[0, 3] = 1.0, 1.0
    model.W_1[3, 0], model.b_1[0], model.W_2[0, 3], model.W_R[3, 0] = 1.0, -(1 + 2.1e-4), 2.0**14, 1.0
    assert form_of_model(model) is None


@pytest.mark.parametrize("constant", [2.0**-5, 2.0**-3])
def test_a_constant_in_the_lane_of_a_composed_layer(constant):
    """abs(σ(x1) + σ(x2) − 1) of the sum that the stream holds, and a head that adds a constant to it."""
    model = blank(torch.float64, heads=3, d_model=8, memory_tokens=2, residual=False, ffn_width=2, features_in=2)
    model.W_E[0, 1], model.W_E[1, 5], model.b_E[2], model.S[0, 3], model.S[1, 4] = 1.0, 1.0, 1.0, 1.0, 1.0
    model.W_Q[:, 2, 0], model.W_K[0, 1, 0], model.W_K[1, 5, 0], model.W_K[:2, 4, 0] = 1.0, 1.0, 1.0, -4000.0
    model.W_V[:2, 2, 0], model.W_K[2, 4, 0], model.W_V[2, 4, 0], model.W_O[:, 0] = 1.0, 4000.0, constant, 1.0
    model.W_1[0, :2], model.b_1[:], model.W_2[:, 0] = 1.0, torch.tensor([-1.0, 1.0]), torch.tensor([2.0, -1.0])
    model.W_R[0, 0], model.b_R[0] = 1.0, 2.0
    x = 4 * torch.rand(2000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 2
    wanted = (torch.sigmoid(x).sum(dim=1) - 1).abs()
    error = float((model(x[:, None])[:, 0, 0] - wanted).abs().max())
    assert error > constant / 2
    assert proved(model, ol.Target("abs(sigmoid(x1) + sigmoid(x2) - 1)", [(-2, 2)] * 2)) >= error


@DTYPES
def test_what_cancels_to_0_in_the_stream_and_again_on_its_ways_out(dtype):
    """Two coordinates hold 0 exactly, and something else as computed; each reaches the output with both signs."""
    u, big = (2.0**-24, 2.0**60) if dtype == torch.float32 else (2.0**-53, 2.0**120)
    model = blank(dtype, heads=8, d_model=7, ffn_width=4)
    model.W_E[0, 0], model.b_E[1], model.S[0, 2], model.W_Q[:, 1, 0], model.W_K[:, 2, 0] = 1.0, 1.0, 1.0, 1.0, 2000.0
    for i, (at, C) in enumerate(((3, big), (4, big * u))):
        model.b_E[at] = C
        model.W_V[4 * i : 4 * i + 4, 2, 0] = torch.tensor([-C, -1.25 * C * u, -1.25 * C * u, 2.5 * C * u], dtype=dtype)
        model.W_O[4 * i : 4 * i + 4, at] = 1.0
        model.W_1[at, 2 * i : 2 * i + 2] = torch.tensor([1.0, -1.0], dtype=dtype)
        model.W_2[2 * i : 2 * i + 2, at + 2] = torch.tensor([-1.0, 1.0], dtype=dtype)
    model.W_R[0, 0], model.W_R[3:7, 0] = 1.0, 1.0
    x = torch.linspace(-0.5, 0.5, 11, dtype=dtype)
    error = float((answers(model, x) - x).abs().max())
    assert error > 1000
    assert proved(model, ol.Target("x1", [(-0.5, 0.5)])) >= error
