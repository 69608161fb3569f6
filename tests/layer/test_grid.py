"""Grids: what a format can store, digits that add up without rounding, and packing that loses nothing."""

import copy
import itertools
import math

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.layer.arithmetic import FLOAT32 as SINGLE
from onelayer.layer.assemble import Frame
from onelayer.layer.conditioning import frame_on, reframed
from onelayer.layer.digits import balance_readout, with_digits
from onelayer.layer.grid import BFLOAT16, FLOAT32, GRIDS, INT8, MOST_DIGITS, exponents, to_bits
from onelayer.layer.heads import Memory
from onelayer.layer.layer import memory_layer
from onelayer.layer.weight_format import format_of, packed, size_of, stored_as, unpacked
from onelayer.target.domain import domain_of


def numbers(count: int, seed: int) -> torch.Tensor:
    """Numbers of both signs and many sizes."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=count) * 2.0 ** rng.integers(-20, 20, count))


def test_rounding_is_that_of_torch():
    t = torch.cat([numbers(10_000, 0), torch.tensor([0.0, 1.0, 1.00390625, 1.01171875, -3.5])])
    single = t.to(torch.float32)
    assert torch.equal(to_bits(t, 24), single.double())
    assert torch.equal(to_bits(single, 8), single.to(torch.bfloat16).double())


@pytest.mark.parametrize("grid", list(GRIDS.values()), ids=list(GRIDS))
@pytest.mark.parametrize("name", ["W_K", "b_R"])
def test_what_is_rounded_is_on_the_grid_and_near(grid, name):
    t = numbers(60, 1).reshape(3, 5, 4)
    found = grid.rounded(name, t)
    assert torch.equal(grid.rounded(name, found), found)
    assert torch.equal(found.to(torch.float32).double(), found)
    relative = 1 / 127 if grid.fixed and name == "W_K" else 2.0 ** -(24 if grid.fixed else grid.bits)
    largest = t.abs().amax(dim=1, keepdim=True) if grid.fixed and name == "W_K" else t.abs()
    assert ((found - t).abs() <= relative * largest).all()


def test_a_column_of_int8_has_one_exponent():
    t = numbers(40, 2).reshape(2, 5, 4)
    whole = INT8.rounded("W_V", t) / torch.exp2(exponents(t))
    assert torch.equal(whole, whole.round())
    assert whole.abs().max() <= 127
    assert exponents(torch.tensor([[127.0], [1.0]])) == 0
    assert exponents(torch.tensor([[127.5]])) == 1
    assert exponents(torch.zeros(3, 1)) == 0


@pytest.mark.parametrize("count", [1, 2, MOST_DIGITS])
@pytest.mark.parametrize("grid", [BFLOAT16, INT8])
def test_digits_add_up_in_float32_in_any_order(grid, count):
    lane = numbers(500, 3) if not grid.fixed else torch.from_numpy(np.random.default_rng(3).normal(size=500))
    wanted = grid.in_digits(lane, count)
    digits = grid.digits(lane, count)
    assert len(digits) == count
    for digit in digits:
        assert torch.equal(grid.rounded("W_V", digit[:, None])[:, 0], digit)
    for order in itertools.permutations(range(count)):
        total = torch.zeros(500, dtype=torch.float32)
        for i in order:
            total = total + digits[i].to(torch.float32)
        assert torch.equal(total.double(), wanted)
    size = lane.abs().max() if grid.fixed else lane.abs()
    assert ((wanted - lane).abs() <= size * 2.0 ** -(7 * count if grid.fixed else min(9 * count - 1, 23))).all()


def layer_model(scale: float = 1.0) -> ol.SingleLayerTransformer:
    from onelayer.layer.assemble import Outputs, assemble

    rng = torch.Generator().manual_seed(5)
    keys, values = (torch.randn(7, n, generator=rng, dtype=torch.float64) for n in (2, 1))
    memory = Memory(3 * keys, torch.randn(7, generator=rng, dtype=torch.float64), torch.zeros(7, dtype=torch.int64))
    linear = scale * torch.tensor([[1.25], [-0.7]], dtype=torch.float64)
    layer = memory_layer(torch.tensor([0.3]).double(), 2, (memory, scale * values), linear=linear)
    return assemble(layer, Frame((0.5, 0.5), (1.0, 1.0)), Outputs(1, 1, (0,)))


def answers(model, x):
    with torch.no_grad():
        return model.double()(x[:, None])[:, 0, 0]


@pytest.mark.parametrize("grid", [BFLOAT16, INT8])
def test_a_model_in_digits_is_the_same_function(grid):
    model, x = layer_model(), torch.rand(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    with torch.no_grad():
        for lane in range(model.config.d_model):
            model.S[:, lane] = grid.in_digits(model.S[:, lane], 3)
        model.W_R[:2, 0] = grid.in_digits(model.W_R[:2, 0], 3, float(model.W_R.abs().max()))
    wide = with_digits(model, grid, [3] * model.config.d_model, 3)
    assert wide.config.d_model > model.config.d_model
    torch.testing.assert_close(answers(wide, x), answers(model, x), rtol=0, atol=1e-12)
    for name in ("S", "W_R"):
        assert torch.equal(grid.rounded(name, wide.state_dict()[name]), wide.state_dict()[name])


@pytest.mark.parametrize("scale", [1e-4, 1.0, 3e3])
def test_a_balanced_readout_is_the_same_function(scale):
    model, x = layer_model(scale), torch.rand(50, 2, dtype=torch.float64)
    before = answers(model, x)
    balance_readout(model)
    assert torch.equal(answers(model, x), before)  # powers of two
    size = model.W_R[model.W_R != 0].abs()
    assert size.max() <= 4 * size.min()


@pytest.mark.parametrize("name", list(GRIDS))
def test_packed_and_unpacked_it_is_the_same_model(name):
    model = layer_model().float()
    with torch.no_grad():
        for key, t in model.state_dict().items():
            t.copy_(GRIDS[name].rounded(key, t) + 0.0)
    tensors = packed(model, name)
    state, found = unpacked(tensors)
    assert found == name
    again = copy.deepcopy(model)
    again.load_state_dict(state)
    assert again.fingerprint() == model.fingerprint()
    assert size_of(model, name) == sum(t.numel() * t.element_size() for t in tensors.values())
    assert size_of(model, name) <= size_of(model, "float32")
    assert stored_as(model, name) == ("" if name == "float32" else name)


def test_other_numbers_are_not_packed():
    model = layer_model().float()
    assert stored_as(model, "bfloat16") == stored_as(model, "int8") == ""
    for name, how in (("bfloat16", "dtype='bfloat16'"), ("int8", "weights='int8'")):
        with pytest.raises(ol.InputError, match=how):
            packed(model, name)


def test_formats_by_name():
    assert format_of("float32", None) == (SINGLE, None)
    assert format_of("bfloat16", None) == format_of(torch.bfloat16, None) == (SINGLE, BFLOAT16)
    assert format_of(None, "int8") == format_of("float32", "int8") == (SINGLE, INT8)
    for dtype, weights in ((None, "int4"), ("bfloat16", "int8"), ("float64", "int8"), ("float16", None)):
        with pytest.raises(ol.InputError):
            format_of(dtype, weights)


@pytest.mark.parametrize("grid", list(GRIDS.values()), ids=list(GRIDS))
def test_a_frame_on_the_grid_holds_the_domain_and_the_layer_follows(grid):
    rng = np.random.default_rng(7)
    for _ in range(50):
        low = rng.normal(size=2) * 10.0 ** rng.integers(-2, 3)
        domain = domain_of([(float(a), float(a + b)) for a, b in zip(low, rng.uniform(0.1, 9, 2), strict=True)])
        ends = list(zip(domain.lower, domain.upper, strict=True))
        old = Frame(tuple((a + b) / 2 for a, b in ends), tuple(1 / (b - a) for a, b in ends))
        layer = memory_layer(
            torch.tensor([0.1]).double(), 2,
            (Memory(torch.from_numpy(rng.normal(size=(4, 2))), torch.from_numpy(rng.normal(size=4)), torch.zeros(4).long()),
             torch.from_numpy(rng.normal(size=(4, 1)))),
            linear=torch.from_numpy(rng.normal(size=(2, 1))),
        )  # fmt: skip
        new = frame_on(grid, layer, old, domain, (float(rng.uniform(*ends[0])), old.shift[1]))
        for shift, scale, (a, b) in zip(new.shift, new.scale, ends, strict=True):
            assert all(float(grid.rounded("shift", torch.tensor([v]).double())) == v for v in (shift, scale))
            assert math.frexp(scale)[0] == 0.5  # a power of two
            assert max(abs(a - shift), abs(b - shift)) * scale <= 0.5 * (1 + 1e-15)
        x = torch.from_numpy(domain.points(rng.random((20, 2))))
        torch.testing.assert_close(reframed(layer, old, new)(new(x)), layer(old(x)), rtol=1e-9, atol=1e-9)
    assert FLOAT32.bits == 24
