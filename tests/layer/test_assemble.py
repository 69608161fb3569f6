"""The assembled Transformer computes its layer, in every layout, by one softmax attention and token-wise maps."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onelayer import InputError
from onelayer.layer.assemble import Frame, Outputs, assemble
from onelayer.layer.assemble.gates import assemble_gates
from onelayer.layer.assemble.memory import assemble_memory
from onelayer.layer.heads import Gates, Hinges, Maxima, Memory, Ridges
from onelayer.layer.layer import gate_layer, memory_layer


def generator(seed):
    return torch.Generator().manual_seed(seed)


def normal(*shape, g):
    return torch.randn(shape, generator=g, dtype=torch.float64)


def random_scalar_layer(D, m, seed, *, full=True, sharp=30.0, hinges=0):
    g = generator(seed)
    gates = Gates(normal(5, g=g) * sharp, normal(5, D, g=g) / 2, torch.rand(5, D, generator=g) < 0.7)
    values = normal(5, D + 2, m, g=g) if full else torch.nn.functional.pad(normal(5, 1, m, g=g), (0, 0, 0, D + 1))
    kept = torch.rand(3, D, generator=g) < 0.6
    kept[:, seed % D] = True
    maxima = Maxima(normal(3, g=g) * sharp, normal(3, D, g=g) / 2, kept)
    bank = Hinges(normal(hinges, D, g=g), normal(hinges, g=g))
    return gate_layer(
        normal(m, g=g), D, (gates, values), (maxima, normal(3, m, g=g)), normal(D, m, g=g),
        (bank, normal(hinges, m, g=g)) if hinges else None,
    )  # fmt: skip


def relative_layer(D, m, seed, *, units=12, sharp=30.0, masked=True):
    """Gates alone, each with a token of value 0, which is how values are solved for."""
    g = generator(seed)
    kept = torch.rand(units, D, generator=g) < (0.7 if masked else 1.1)
    kept[torch.arange(units), torch.arange(units) % D] = True
    values = normal(units, D + 2, m, g=g)
    values[torch.arange(units), 1 + torch.arange(units) % D] = 0.0
    gates = Gates(normal(units, g=g) * sharp, normal(units, D, g=g) / 2, kept)
    return gate_layer(normal(m, g=g), D, (gates, values), linear=normal(D, m, g=g) if seed % 2 else None)


def frame(D):
    return Frame(tuple(0.5 + j for j in range(D)), tuple(1 / (1 + j) for j in range(D)))


def points(D, n=20, seed=0):
    unit = torch.rand(n, D, generator=generator(seed), dtype=torch.float64)
    unit[:2] = torch.tensor([[0.0], [1.0]])
    f = frame(D)
    return unit / torch.tensor(f.scale) - 0.5 / torch.tensor(f.scale) + torch.tensor(f.shift)


def run(model, x, outputs, layout):
    """The model's outputs as [batch, places · width]."""
    y = model(x.reshape(len(x), model.config.tokens, model.config.features_in))
    return y.flatten(1) if layout == "token" else y[:, list(outputs.tokens)].flatten(1)


@given(st.integers(1, 4), st.integers(1, 3), st.booleans(), st.integers(0, 50), st.sampled_from([1.0, 30.0, 1e4]))
def test_all_layouts_compute_the_layer(D, width, full, seed, sharp):
    places = 1 + seed % D
    layer = random_scalar_layer(D, places * width, seed, full=full, sharp=sharp)
    outputs = Outputs(places, width, tuple(range(places)))
    x = points(D)
    expected = layer(frame(D)(x))
    for layout in ("token", "wide", "heads"):
        got = run(assemble(layer, frame(D), outputs, layout), x, outputs, layout)
        torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-13 * sharp + 1e-12)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 50), st.sampled_from([1.0, 30.0, 1e4]))
def test_an_anchor_without_a_lane_computes_the_layer(D, width, seed, sharp):
    places = 1 + seed % D
    layer = relative_layer(D, places * width, seed, sharp=sharp)
    outputs = Outputs(places, width, tuple(range(places)))
    x = points(D)
    expected = layer(frame(D)(x))
    for layout in ("token", "wide", "heads"):
        got = run(assemble(layer, frame(D), outputs, layout), x, outputs, layout)
        torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-12 * sharp + 1e-11)


@pytest.mark.parametrize("layout", ["token", "wide"])
@pytest.mark.parametrize(("D", "m"), [(1, 1), (2, 1), (2, 3), (3, 2), (4, 4)])
def test_no_lane_of_gates_can_be_left_out(layout, D, m):
    """Keys and values of as many heads as lanes are linearly independent: no smaller stream could hold them."""
    layer = relative_layer(D, m, 2)
    places = min(D, m) if layout == "wide" else 1
    outputs = Outputs(places, m // places, tuple(range(places))) if m % places == 0 else Outputs(1, m, (0,))
    model = assemble(layer, frame(D), outputs, layout)
    c, lanes = model.config, D + 1
    assert c.d_model == (max(lanes, m) if layout == "token" else lanes + m + outputs.width)
    assert (c.d_k, c.d_v, c.special_tokens, c.heads) == (1, m, 1, layer.units)
    assert c.ffn_width == (1 if layout == "token" else m)
    assert torch.linalg.matrix_rank(model.W_K[:, :lanes, 0]) == lanes
    assert torch.linalg.matrix_rank(model.W_V[:, :lanes].transpose(1, 2).flatten(0, 1)) == lanes
    codes = model.P if c.code == "one-hot" else model.b_E[None]
    tokens = torch.cat([codes, model.S, model.W_E])  # the directions in which tokens differ
    assert torch.linalg.matrix_rank(tokens[:, :lanes]) == lanes
    idle = layout == "token"  # the residual stream passes by the one hidden unit that a network must have
    assert (model.W_1 != 0).any(dim=0).all() == (not idle)
    assert (model.W_2 != 0).any(dim=1).all() == (not idle)


@pytest.mark.parametrize(("D", "groups", "linear"), [(1, 1, True), (2, 1, False), (3, 1, True), (3, 3, True)])
def test_memory_tokens_hold_nothing_but_keys_biases_and_values(D, groups, linear):
    g = generator(1)
    group = torch.arange(12) % groups
    keys = normal(12, D, g=g) * (torch.arange(D) % groups == group[:, None])
    memory = (Memory(keys, normal(12, g=g), group), normal(12, 1, g=g))
    layer = memory_layer(normal(1, g=g), D, memory, linear=normal(D, 1, g=g) if linear else None)
    model = assemble(layer, frame(D), Outputs(1, 1, (0,)))
    flags = groups if groups > 1 else 0
    assert model.S.shape == (12, D + 1 + flags + 1)
    assert torch.linalg.matrix_rank(model.S) == D + 1 + flags + 1
    assert (model.config.heads, model.config.ffn_width, model.config.code) == (groups, 1, "none")
    assert torch.equal(model.W_R[:D], layer.linear)  # x stays in the stream: no head reads it


@given(st.booleans(), st.booleans(), st.integers(0, 50), st.sampled_from([1.0, 30.0, 1e4]))
def test_a_function_of_one_number_has_no_output_token_and_no_reads(centred, hinged, seed, sharp):
    g = generator(seed)
    layer = random_scalar_layer(1, 1, seed, sharp=sharp) if centred else relative_layer(1, 1, seed, sharp=sharp)
    bank = Hinges(normal(3, 1, g=g), normal(3, g=g))
    straight = replace(layer, linear=normal(1, 1, g=g))
    layer = replace(straight, hinges=bank, hinge_values=normal(3, 1, g=g)) if hinged else straight
    model = assemble(layer, frame(1), Outputs(1, 1, (0,)))
    c = model.config
    assert (c.heads, c.ffn_width, c.d_model) == (layer.units, 3 if hinged else 1, 3 if centred else 2)
    assert (c.code, c.output_tokens, c.anchor_tokens, c.readout) == ("none", 0, 1, "position")
    x = points(1, 200)
    got = model(x.reshape(-1, 1, 1)).flatten(1)
    torch.testing.assert_close(got, layer(frame(1)(x)), rtol=1e-11, atol=1e-12 * sharp + 1e-11)


@given(st.integers(1, 8), st.integers(0, 50), st.sampled_from([1.0, 30.0, 1e4]))
def test_gates_at_the_centre_with_slopes_alone_have_a_stream_of_one_coordinate(units, seed, sharp):
    g = generator(seed)
    gates = Gates(normal(units, g=g) * sharp, torch.zeros(units, 1, dtype=torch.float64), torch.ones(units, 1) > 0)
    values = torch.nn.functional.pad(normal(units, 1, 1, g=g), (0, 0, 2, 0))
    layer = gate_layer(normal(1, g=g), 1, (gates, values))
    model = assemble(layer, frame(1), Outputs(1, 1, (0,)))
    assert (model.config.d_model, model.parameter_count) == (1, 11 + 4 * units)
    x = points(1, 200)
    torch.testing.assert_close(
        model(x.reshape(-1, 1, 1)).flatten(1), layer(frame(1)(x)), rtol=1e-11, atol=1e-13 * sharp + 1e-12
    )
    for changed in (
        replace(layer, linear=torch.ones(1, 1, dtype=torch.float64)),
        replace(layer, gates=replace(gates, offsets=gates.offsets + 1e-9)),
        replace(layer, gate_values=values + 1e-9),
    ):
        assert assemble(changed, frame(1), Outputs(1, 1, (0,))).config.d_model > 1


@pytest.mark.parametrize(("D", "m"), [(1, 1), (1, 2), (2, 1), (3, 4)])
@pytest.mark.parametrize("kind", ["gates", "centred gates", "memory"])
def test_the_inner_layer_of_a_composed_one_has_its_outputs_in_the_first_coordinates(D, m, kind):
    """And nothing but them: no residual stream, so heads read x."""
    g = generator(4)
    if kind == "memory":
        memory = (Memory(normal(9, D, g=g), normal(9, g=g), torch.zeros(9, dtype=torch.int64)), normal(9, m, g=g))
        layer = memory_layer(normal(m, g=g), D, memory, linear=normal(D, m, g=g))
        model, reads = assemble_memory(layer, frame(D), residual=False), 1
    else:
        layer = relative_layer(D, m, 1) if kind == "gates" else random_scalar_layer(D, m, 1)
        model, reads = assemble_gates(layer, frame(D), Outputs(1, m, (0,)), "token", residual=False), D
    assert not model.config.residual
    assert model.config.heads == (1 if kind == "memory" else layer.units) + reads
    assert torch.equal(model.W_R[:m], torch.eye(m, dtype=torch.float64))
    x = points(D)
    got = model(x.reshape(len(x), model.config.tokens, -1)).flatten(1)
    torch.testing.assert_close(got, layer(frame(D)(x)), rtol=1e-11, atol=1e-11)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 50))
def test_hinges_live_in_the_feed_forward_network(D, m, seed):
    layer = random_scalar_layer(D, m, seed, hinges=4)
    x = points(D)
    outputs = Outputs(1, m, (0,))
    torch.testing.assert_close(
        run(assemble(layer, frame(D), outputs), x, outputs, "token"), layer(frame(D)(x)), rtol=1e-11, atol=1e-11
    )
    with pytest.raises(InputError, match="hinges in the FFN"):
        assemble(layer, frame(D), outputs, "wide")


@given(
    st.integers(1, 4), st.integers(1, 3), st.integers(0, 50), st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from([1.0, 30.0, 1e3]),
)  # fmt: skip
def test_memory_tokens_and_ridges_compute_the_layer(D, m, seed, ridged, linear, hinged, sharp):
    g = generator(seed)
    group = torch.arange(12) % (1 + seed % D)
    keys = normal(12, D, g=g) * sharp
    keys[torch.arange(D) % (1 + seed % D) != group[:, None]] = 0.0
    memory = Memory(keys, normal(12, g=g) * sharp, group)
    layer = memory_layer(
        normal(m, g=g), D, (memory, normal(12, m, g=g)),
        (Ridges(normal(4, D, g=g) * sharp, normal(4, g=g)), normal(4, m, g=g)) if ridged else None,
        normal(D, m, g=g) if linear else None,
        (Hinges(normal(3, D, g=g), normal(3, g=g)), normal(3, m, g=g)) if hinged else None,
    )  # fmt: skip
    x = points(D)
    outputs = Outputs(1, m, (0,))
    got = run(assemble(layer, frame(D), outputs), x, outputs, "token")
    torch.testing.assert_close(got, layer(frame(D)(x)), rtol=1e-11, atol=1e-13 * sharp + 1e-12)


@pytest.mark.parametrize("layout", ["token", "wide", "heads"])
def test_layouts_are_strict(layout):
    """Exactly one attention layer; embedding and FFN act token by token: moving one token moves no other."""
    outputs = Outputs(2, 2, (0, 2))
    model = assemble(random_scalar_layer(4, 4, 1), frame(4), outputs, layout)
    assert sum("W_Q" in name for name, _ in model.named_parameters()) == 1
    assert [name for name, _ in model.named_modules()] == [""]  # no layer hides inside
    x = points(4).unsqueeze(-1)
    moved = x.clone()
    moved[:, 1] += 0.1
    others = [i for i in range(model.config.all_tokens) if i != 1]
    assert torch.equal(model.tokens(x)[:, others], model.tokens(moved)[:, others])
    h = torch.randn(5, 4, model.config.d_model, generator=generator(0), dtype=torch.float64)
    one_by_one = torch.stack([model.feed_forward(h[:, i : i + 1])[:, 0] for i in range(4)], dim=1)
    torch.testing.assert_close(model.feed_forward(h), one_by_one, rtol=1e-13, atol=1e-13)
    shuffled = model.feed_forward(h[:, [2, 0, 3, 1]])
    torch.testing.assert_close(shuffled, model.feed_forward(h)[:, [2, 0, 3, 1]], rtol=1e-13, atol=1e-13)


def test_masked_tokens_have_weight_exactly_zero():
    """Sharp heads of both signs, at the corners of the domain: what a head must not see has weight 0, not e^(−S+β)."""
    g = generator(3)
    D = 3
    kept = torch.tensor([[True, False, False], [False, True, True], [False, False, False]])
    gates = Gates(torch.tensor([1e7, -1e7, 50.0], dtype=torch.float64), normal(3, D, g=g) / 4, kept)
    maxima = Maxima(torch.tensor([1e7, -1e7], dtype=torch.float64), normal(2, D, g=g) / 4, kept[:2])
    layer = gate_layer(
        torch.zeros(1, dtype=torch.float64), D, (gates, normal(3, D + 2, 1, g=g)), (maxima, normal(2, 1, g=g))
    )
    model = assemble(layer, frame(D), Outputs(1, 1, (0,)))
    corners = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * D)
    f = frame(D)
    x = (corners - 0.5) / torch.tensor(f.scale) + torch.tensor(f.shift)
    alpha = model.attention(x.unsqueeze(-1))[:, :, -1]  # the output token's row: [batch, head, token]
    hidden = ~torch.cat([kept, kept[:2]])
    assert (alpha[:, :, :D][:, hidden] == 0).all()
    assert (alpha[:, 3:, D] == 0).all()  # a max-head does not see the anchor
    assert alpha.shape[-1] == D + 1  # the output token is the anchor
    assert torch.equal(alpha[:, 2, D], torch.ones(8, dtype=torch.float64))  # a fully masked gate is the constant 1


def test_more_places_than_tokens_is_refused():
    with pytest.raises(InputError, match="3 output positions, 2 tokens"):
        assemble(random_scalar_layer(2, 3, 0), frame(2), Outputs(3, 1, (0, 1, 2)), "wide")
