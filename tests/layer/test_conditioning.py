"""Conditioned layers: the same function, and a rounding that is no larger."""

import numpy as np
import pytest
import torch

import onelayer as ol
from exact import exact_form, within
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.conditioning import cancelling, centred, conditioned, from_origin, rounding_at
from onelayer.layer.grid import BFLOAT16, FLOAT32
from onelayer.layer.heads import Gates, Memory
from onelayer.layer.layer import GateLayer, gate_layer, memory_layer
from onelayer.layer.reading import form_of_model
from onelayer.target.domain import domain_of


def random_layer(kind: str, seed: int):
    g = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    if kind == "memory":
        tokens = Memory(20 * draw(12, 2), 5 * draw(12), torch.tensor([0] * 7 + [1] * 5))
        return memory_layer(draw(1), 2, (tokens, draw(12, 1) + 3), linear=draw(2, 1))
    gates = Gates(10 * draw(6), draw(6, 2) / 2, torch.ones(6, 2, dtype=torch.bool))
    return gate_layer(draw(1), 2, (gates, draw(6, 4, 1) + 3), linear=draw(2, 1))


DOMAINS = ([(0, 1), (0, 1)], [(-5, 10), (0, 15)], [(1000, 1001), (1000, 1001)])


@pytest.mark.one_in(6)
@pytest.mark.parametrize("kind", ["memory", "gates"])
@pytest.mark.parametrize("sides", DOMAINS)
@pytest.mark.parametrize("grid", [FLOAT32, BFLOAT16], ids=["float32", "bfloat16"])
def test_the_function_stays_and_rounds_no_more(kind, sides, grid):
    domain = domain_of(sides)
    for seed in range(3):
        layer, frame = random_layer(kind, seed), frame_of(domain)
        _, new, other = conditioned(layer, frame, grid, domain)
        x = torch.from_numpy(domain.points(np.random.default_rng(seed).random((200, 2))))
        torch.testing.assert_close(new(other(x)), layer(frame(x)), rtol=1e-8, atol=1e-8)
        assert float(other(x).abs().max()) <= 0.5
        if grid is FLOAT32:
            assert rounding_at(new, other(x)) <= 1.2 * rounding_at(layer, frame(x))  # it is judged by other points


def test_keys_become_small_where_they_count():
    layer = from_origin(random_layer("memory", 3))
    x = torch.zeros(1, 2, dtype=torch.float64)
    for group in range(2):
        mine = layer.memory.group == group
        weights = layer.memory.features(x)[0, mine]
        assert float((weights @ layer.memory.keys[mine]).abs().max()) < 1e-12
        assert float(layer.memory.biases[mine].max()) == 0.0


@pytest.mark.parametrize("kind", ["memory", "gates"])
def test_centring_lowers_what_cancels(kind):
    layer = random_layer(kind, 1)
    x = torch.rand(300, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 0.5
    new = centred(layer)
    torch.testing.assert_close(new(x), layer(x), rtol=1e-10, atol=1e-10)
    assert float(cancelling(new, x).max()) < float(cancelling(layer, x).max())
    assert isinstance(new, GateLayer) == (kind == "gates")


@pytest.mark.long
def test_float32_goes_far_below_what_its_values_once_allowed(tmp_path):
    """1/(1 + 25x²) within 5e-6: about 80 roundings of its range; VALID to the checker, too."""
    approx = ol.build("1/(1 + 25*x1**2)", [(-1, 1)], 5e-6, dtype="float32")
    c = approx.certificate
    assert c.verdict == "CERTIFIED"
    assert c.observed <= c.bound <= 5e-6
    assert all(float(s).hex().split("p")[0] == "0x1.0000000000000" for s in approx.model.scale.flatten())
    assert ol.check(approx.save(tmp_path / "f")).verdict == "VALID"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_key_that_is_rounded_when_it_is_computed_is_charged(dtype):
    """S·W_K with a factor that is no power of two: float32 rounds the key, and the bound says so."""
    target = ol.Target("x1 + x2", [(0, 1), (0, 1)])
    model = assemble(random_layer("memory", 2), frame_of(target.domain), outputs_of(target)).to(dtype)
    edge = torch.full((2,), 0.5, dtype=torch.float64)
    before = float(form_of_model(model).program.rounding(-edge, edge, over=lambda: True))
    with torch.no_grad():
        model.W_K *= 1.1
    reading = form_of_model(model)
    after = float(reading.program.rounding(-edge, edge, over=lambda: True))
    assert after > before
    for x in target.domain.representable(target.domain.points(np.random.default_rng(0).random((20, 2))), True):
        got = float(model(torch.from_numpy(x).to(dtype).reshape(1, 1, 2)).detach().flatten()[0])
        assert within(exact_form(reading.form, reading.frame, x)[0], got, after)
