"""Forms read from weights: those of the layers they were built from, and the models' real functions, in ball arithmetic."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import KINDS_AND_LAYOUTS, built, random_layer
from exact import added, exact_form, exact_hinges, exact_model, within
from onelayer.layer.form import form_of
from onelayer.layer.heads import Gates, Hinges, Memory
from onelayer.layer.layer import gate_layer, memory_layer
from onelayer.layer.reading import form_of_model
from onelayer.model.config import LayerConfig
from onelayer.model.transformer import SingleLayerTransformer


def heads_of(form):
    """Every head as a set of tokens (key, bias, values, slopes): what blocks and order do not change."""
    found = []
    for block in form.blocks:
        numbers = ((t + 0.0).tolist() for t in (block.keys, block.biases, block.values, block.slopes))
        for keys, biases, values, slopes in zip(*numbers, strict=True):
            tokens = zip(keys, biases, values, slopes, strict=True)
            head = frozenset(str(token) for token in tokens if token[1] > -float("inf"))
            if len(head) > 1:
                found.append(head)
    return sorted(found, key=sorted)


@settings(max_examples=40)
@given(st.sampled_from(KINDS_AND_LAYOUTS), st.integers(1, 3), st.integers(0, 10**6), st.sampled_from([0.5, 10.0, 1e4]))
def test_the_form_is_that_of_the_layer(case, D, seed, sharp):
    kind, layout = case
    m = D if layout != "token" else 1 + seed % 2
    layer = random_layer(D, m, seed, sharp, kind)
    model, places, _ = built(layer, layout, m, D)
    reading = form_of_model(model, places)
    if sharp < 100:  # the reading also leaves out tokens that happen to be far below another one
        assert heads_of(reading.form) == heads_of(form_of(layer))
    x = torch.rand(20, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) - 0.5
    torch.testing.assert_close(reading.form(x), form_of(layer)(x), rtol=0, atol=1e-11)
    assert not len(reading.hinges)


@settings(max_examples=25)
@given(
    st.sampled_from(KINDS_AND_LAYOUTS), st.integers(1, 3), st.integers(0, 10**6), st.sampled_from([0.5, 10.0, 1e4]),
    st.sampled_from([torch.float64, torch.float32]),
)  # fmt: skip
def test_the_error_covers_the_real_function_of_the_weights(case, D, seed, sharp, dtype):
    kind, layout = case
    m = D if layout != "token" else 1 + seed % 2
    model, places, target = built(random_layer(D, m, seed, sharp, kind), layout, m, D)
    reading = form_of_model(model.to(dtype), places)
    if reading is None:  # keys of 1e4 times directions of 1e4: float32 cannot tell which tokens are masked
        assert (kind, sharp, dtype) == ("memory", 1e4, torch.float32)
        return
    assert float(reading.error.max()) <= 1e-12
    for x in target.domain.points(np.random.default_rng(seed).random((3, D))):
        pairs = zip(exact_form(reading.form, reading.frame, x), exact_model(model, x, places), strict=True)
        for (read, true), error in zip(pairs, reading.error.tolist(), strict=True):
            assert within(read, true, error)


@pytest.mark.parametrize("kind", ["gates", "memory"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_hinges_are_read(kind, dtype):
    g = torch.Generator().manual_seed(3)
    hinges = Hinges(torch.randn(4, 2, generator=g, dtype=torch.float64), torch.zeros(4, dtype=torch.float64))
    values = torch.randn(4, 1, generator=g, dtype=torch.float64)
    layer = replace(random_layer(2, 1, 5, 4.0, kind), hinges=hinges, hinge_values=values)
    model, places, target = built(layer, "token", 1, 2)
    reading = form_of_model(model.to(dtype), places)
    assert torch.equal(reading.hinges.directions, hinges.directions.to(dtype).double())
    assert torch.equal(reading.hinge_values, values.to(dtype).double())
    for x in target.domain.points(np.random.default_rng(0).random((5, 2))):
        own = exact_hinges(reading.hinges, reading.hinge_values, reading.frame, x)
        read = added(exact_form(reading.form, reading.frame, x), own)
        assert within(read[0], exact_model(model, x, places)[0], float(reading.error))


def test_many_heads_and_tokens_are_read():
    g = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=g, dtype=torch.float64)

    gates = Gates(10 * normal(800), normal(800, 8) / 3, torch.rand(800, 8, generator=g) < 0.9)
    layer = gate_layer(normal(1), 8, (gates, normal(800, 10, 1)))
    assert form_of_model(built(layer, "token", 1, 8)[0]).form.heads == 800
    memory = Memory(9 * normal(800, 8), 9 * normal(800), torch.arange(800) % 3)
    layer = memory_layer(normal(1), 8, (memory, normal(800, 1)))
    reading = form_of_model(built(layer, "token", 1, 8)[0])
    assert sum(int(b.there.sum()) for b in reading.form.blocks) == 800


def test_what_has_another_form_is_not_read():
    layer = random_layer(2, 1, 0, 5.0, "gates")

    def fresh():
        return built(layer, "token", 1, 2)[0]

    assert form_of_model(fresh()) is not None
    assert form_of_model(fresh(), (1,)) is None  # no such place
    config = LayerConfig(tokens=2, features_in=1, features_out=1, d_model=8, heads=2, d_k=4, d_v=4, ffn_width=8)
    assert form_of_model(SingleLayerTransformer(config)) is None  # quadratic scores
    for changes in ({"norm": "pre"}, {"activation": "gelu"}, {"readout": "mean"}, {"attention": "sparsemax"}):
        changed = LayerConfig(**{**fresh().config.__dict__, **changes})
        model = SingleLayerTransformer(changed)
        model.load_state_dict(fresh().state_dict(), strict=False)
        assert form_of_model(model) is None
    for name, index, value in (("W_O", (0, 0), float("nan")), ("b_R", (0,), float("inf"))):
        model = fresh()
        with torch.no_grad():
            getattr(model, name)[index] = value
        assert form_of_model(model) is None, name


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("name", "index", "value"),
    [
        ("W_E", (0, 0), 1.5),  # x̂ times 1.5: one more rounding
        ("W_E", (0, 1), 0.3),  # a code that moves
        ("W_R", (0, 0), 1.7),  # what heads have moved, times 1.7: one more rounding
        ("W_Q", (0, 0, 0), 1e-3),
        ("b_E", (0,), 0.1),
        ("b_2", (0,), 1e6),
    ],
)
def test_numbers_that_no_construction_writes_are_read_with_their_errors(name, index, value, dtype):
    """Neither powers of two nor alone in their coordinates: the form is near the real function, and says how near."""
    model, places, target = built(random_layer(2, 1, 0, 5.0, "gates"), "token", 1, 2)
    with torch.no_grad():
        getattr(model, name)[index] = value
    model = model.to(dtype)
    reading = form_of_model(model, places)
    edge = torch.full((2,), 0.5, dtype=torch.float64)
    rounding = float(reading.program.rounding(-edge, edge, over=lambda: True))  # the first bound, which is true, too
    points = target.domain.representable(target.domain.points(np.random.default_rng(0).random((12, 2))), True)
    for x in points:
        real = exact_model(model, x, places)[0]
        assert within(exact_form(reading.form, reading.frame, x)[0], real, float(reading.error))
        got = float(model(torch.from_numpy(x).to(dtype).reshape(1, 2, 1)).detach().flatten()[0])
        assert within(exact_form(reading.form, reading.frame, x)[0], got, rounding)


def test_a_token_within_reach_is_not_masked():
    """With its masking key raised, a token counts again."""
    gates = Gates(
        torch.ones(1, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64), torch.tensor([[True, False]])
    )
    layer = gate_layer(torch.zeros(1, dtype=torch.float64), 2, (gates, torch.ones(1, 4, 1, dtype=torch.float64)))
    model = built(layer, "token", 1, 2)[0]
    assert int(form_of_model(model).form.blocks[0].there.sum()) == 2
    with torch.no_grad():
        model.W_K[0, 2, 0] = -700.0
    reading = form_of_model(model)
    assert int(reading.form.blocks[0].there.sum()) == 3
