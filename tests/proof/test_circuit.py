"""Circuits: no proved effect below one that was seen, without slack; close to it in two variables; graphs that are right."""

import functools
import json
import math

import numpy as np
import pytest
import torch

import onelayer as ol
from cases import random_model
from onelayer.common.budget import Budget
from onelayer.common.errors import InputError
from onelayer.model.config import LayerConfig
from onelayer.proof.circuit.circuit import Circuit, CircuitNode
from onelayer.proof.circuit.effects import AblatedLayer
from onelayer.proof.circuit.graph import Node, edges_of, nodes_of, with_heads, without
from onelayer.proof.circuit.removed import Paths
from onelayer.proof.observation import answer_of
from onelayer.proof.witness import in_balls
from onelayer.target.domain import domain_of

POINTS = 100_000
BUILT = [("sin(3*x)", "0:1", 1e-3)]
MORE = [
    ("max(x1, x2)*x1", "0:1, 0:1", 2e-2),
    ("sin(x1*x2)", "0:2, 0:2", 1e-2),
    ("abs(x1-x2)+x1", "0:1, 0:1", 1e-2),
    ("exp(-(x1-x2)^2)", "0:1, 0:1", 1e-2),
    ("1/(1+25*x^2)", "-1:1", 1e-3),
    ("sin(x1); x1*x2", "0:1, 0:1", 1e-2),
]
SMALL = {"tokens": 2, "features_in": 1, "features_out": 2, "d_model": 4, "heads": 3, "d_k": 2, "d_v": 2, "ffn_width": 4}
RANDOM = [
    {"readout": "mean", "code": "learned"},
    {"activation": "silu", "residual": False, "code": "learned", "projection_bias": True},
    {"causal": True, "activation": "gelu", "code": "learned", "projection_bias": True},
    {"readout": "output", "output_tokens": 1, "anchor_tokens": 1, "code": "learned"},
]


def seen(layer: AblatedLayer, node: Node, count: int = POINTS) -> float:
    """The largest difference at random points and corners, as computed."""
    x = layer.domain.points(np.random.default_rng(7).random((count, layer.domain.dimension)))
    corners = layer.domain.points(
        np.array(np.meshgrid(*[[0.0, 1.0]] * layer.domain.dimension)).reshape(layer.domain.dimension, -1).T
    )
    x = layer.domain.nearest(np.concatenate([x, corners]), layer.model.W_E.dtype == torch.float32)
    both = [answer_of(m, layer.places, Budget(math.inf))(x) for m in (layer.model, without(layer.model, node))]
    return float(np.abs(both[0] - both[1]).max())


def ablated(approximation: ol.Approximation) -> AblatedLayer:
    return AblatedLayer(approximation.model, approximation.domain, approximation.facts.places, approximation.vocabulary)


@functools.cache
def small() -> ol.Approximation:
    return ol.build("sin(3*x)", "0:1", 1e-3)


def judged(approximation: ol.Approximation, within: float = 1.1) -> None:
    layer = ablated(approximation)
    for node in approximation.circuit(seconds=120.0):
        observed = seen(layer, Node(node.kind, node.index))
        assert observed <= node.upper
        assert node.lower <= node.upper <= within * observed


@pytest.mark.parametrize("case", BUILT, ids=lambda case: case[0])
def test_effects_are_close_and_never_below_what_is_seen(case):
    judged(ol.build(*case))


@pytest.mark.long
@pytest.mark.parametrize("case", MORE, ids=lambda case: case[0])
def test_effects_of_more_layers(case):
    judged(ol.build(*case))


@pytest.mark.long
def test_effects_of_trained_layers_in_float32():
    judged(ol.train("sin(3*x1)*x2", "0:1, 0:1", 0.2, heads=2, width=4, d_model=6, steps=100, seconds=5.0))


@pytest.mark.parametrize("changes", RANDOM, ids=str)
@pytest.mark.one_in(8)
@pytest.mark.parametrize("large", [1.0, 6.0])
def test_effects_of_random_layers(changes, large):
    """Dense weights, saturated attention, units that bend: the upper end holds whenever the proof is stopped."""
    model = random_model(LayerConfig(**(SMALL | changes)), seed=3).eval()
    with torch.no_grad():
        model.W_K.mul_(large)
    layer = AblatedLayer(model, domain_of([(-1, 1)] * 2), tuple(range(model.config.places)))
    for node in nodes_of(model):
        effect = layer.effect(node, 0.05, Budget(0.2))
        observed = seen(layer, node, 10_000)
        assert effect.lower <= effect.upper
        assert observed <= effect.upper
        assert effect.lower <= observed * 1.2 + 1e-12  # it is a value that exists


@pytest.mark.long
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_effects_with_layernorm(norm):
    model = random_model(LayerConfig(**(SMALL | {"norm": norm, "code": "learned", "readout": "mean"})), seed=5).eval()
    layer = AblatedLayer(model, domain_of([(-1, 1)] * 2))
    assert layer.paths is None
    for node in nodes_of(model)[:4]:
        effect = layer.effect(node, 0.2, Budget(0.5))
        assert effect.lower <= effect.upper
        assert seen(layer, node, 20_000) <= effect.upper


def one_head(bias: float) -> ol.SingleLayerTransformer:
    """T(x) = relu(x + bias): one head that reads x, one unit that sees the head."""
    config = LayerConfig(
        tokens=1,
        features_in=1,
        features_out=1,
        d_model=2,
        heads=1,
        d_k=1,
        d_v=1,
        ffn_width=1,
        residual=False,
        code="none",
    )
    model = ol.SingleLayerTransformer(config)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.W_E[0, 0] = model.W_V[0, 0, 0] = model.W_O[0, 1] = model.W_1[1, 0] = model.W_2[0, 0] = model.W_R[0, 0] = (
            1.0
        )
        model.b_1[0] = bias
    return model.eval()


@pytest.mark.parametrize(("bias", "effect"), [(-0.5, 0.5), (0.5, 1.0), (2.0, 1.0), (-2.0, 0.0)])
def test_a_head_behind_a_unit_has_the_effect_of_the_layer_not_of_what_it_writes(bias, effect):
    """|relu(x + b) − relu(b)| on [−1, 1], where the head itself writes up to 1."""
    layer = AblatedLayer(one_head(bias), domain_of([(-1, 1)]))
    found = layer.effect(Node("head", 0), 0.01, Budget(60.0))
    assert found.lower <= effect <= found.upper <= 1.02 * effect + 1e-12


def test_bounds_that_forget_the_units_are_caught(monkeypatch):
    """The check can fail: without the units that see the head, the bound would be 0, below what is proved at a point."""
    monkeypatch.setattr(Paths, "bent_by", lambda self, head, ignorable: (np.zeros(0, int), 0.0))
    monkeypatch.setattr(Paths, "most", lambda self, node: math.inf)
    layer = AblatedLayer(one_head(0.5), domain_of([(-1, 1)]))
    found = layer.effect(Node("head", 0), 0.01, Budget(60.0))
    assert found.upper == math.inf  # withdrawn


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("changes", RANDOM, ids=str)
def test_rounding_is_bounded_for_the_layer_and_without_any_node(changes, dtype):
    model = random_model(LayerConfig(**(SMALL | changes)), seed=11).to(dtype).eval()
    layer = AblatedLayer(model, domain_of([(-1, 1)] * 2), tuple(range(model.config.places)))
    assert layer.paths is not None
    x = layer.domain.nearest(np.random.default_rng(3).uniform(-1, 1, (4, 2)), single=True)
    for one in (model, *(without(model, node) for node in nodes_of(model))):
        computed = answer_of(one, layer.places, Budget(math.inf))(x)
        for point, row in zip(x, computed, strict=True):
            real = [v for r in in_balls(one, point.tolist()) for v in r]
            assert (
                max(float(abs(a - b).upper()) for a, b in zip(real, row.tolist(), strict=True))
                <= layer.paths.reach.rounding
            )


def test_coarse_bounds_hold_in_every_basis():
    for approximation in (small(), small().disguised(seed=2, seconds=1.0).layer):
        layer = ablated(approximation)
        assert layer.paths is not None
        for node in nodes_of(layer.model):
            observed = seen(layer, node, 20_000)
            assert observed <= layer.paths.most(node) + 2 * layer.paths.reach.rounding


def test_token_layers_are_tried_at_all_sequences():
    layer = ol.gallery.histogram(4, 3)
    circuit = layer.circuit()
    assert {node.method for node in circuit} == {"all sequences"}
    head = circuit["head 1"]
    assert head.lower == pytest.approx(7)
    assert head.upper - head.lower < 1e-7
    many = ol.gallery.histogram(12, 5)
    effect = ablated(many).effect(Node("head", 0), 0.05, Budget(5.0))
    assert 0 < effect.lower <= effect.upper < math.inf
    assert effect.method == "sizes of the weights"


def test_a_length_of_a_sequence_layer():
    circuit = ol.gallery.any_length.balanced(6).circuit(4, seconds=5.0)
    assert len(circuit.heads) > 1
    assert all(node.upper < math.inf for node in circuit)


def test_what_without_means():
    model = random_model(LayerConfig(**(SMALL | RANDOM[1])), seed=2).eval()
    x = torch.rand(5, 2, 1, dtype=torch.float64)
    alone = without(model, *(Node("head", h) for h in (0, 2)))
    assert torch.equal(alone(x), without(without(model, Node("head", 0)), Node("head", 2))(x))
    torch.testing.assert_close(with_heads(model, [1])(x), alone(x))
    assert not without(model, Node("unit", 1)).W_2[1].any()
    assert model.W_2[1].any()


def test_edges_follow_the_weights():
    assert edges_of(one_head(0.5), ["x"], ["T"]) == (("x", "head 1"), ("head 1", "unit 1"), ("unit 1", "T"))
    circuit = small().circuit(seconds=5.0)
    assert ("head 1", "T") in circuit.edges
    assert [node.does for node in circuit.heads] == ["gate"] * len(circuit.heads)
    turned = small().disguised(seed=1, seconds=1.0)
    aside = turned.roles.index("aside")
    assert (f"head {aside + 1}", "T") not in edges_of(
        turned.layer.model, ["x", "anchor"][: turned.layer.model.config.all_tokens], ["T"]
    )


def test_a_circuit_as_a_file(tmp_path):
    circuit = small().circuit(seconds=5.0)
    path = circuit.save(tmp_path / "circuit.json")
    record = json.loads(path.read_text())
    assert record["weights"] == small().model.fingerprint()
    assert [n["name"] for n in record["nodes"]] == [n.name for n in circuit]
    assert all(n["lower"] <= n["upper"] for n in record["nodes"])
    with pytest.raises(InputError, match="overwrite=True"):
        circuit.save(path)
    assert circuit.save(path, overwrite=True) == path
    open_end = Circuit((CircuitNode("head 1", "head", 0, 1.0, math.inf, None, "none"),), (), "x in [0, 1]", "", 0.05)
    assert open_end.as_json()["nodes"][0]["upper"] is None
    assert "∞" in str(open_end)


@pytest.mark.usefixtures("as_user")
def test_bad_input_is_refused():
    for wrong in (
        {"accuracy": 0},
        {"accuracy": math.nan},
        {"accuracy": "5%"},
        {"seconds": -1},
        {"seed": -1},
        {"eps": 1},
    ):
        with pytest.raises(InputError):
            small().circuit(**wrong)
    changed = ol.build("x", "0:1", 0.1)
    with torch.no_grad():
        changed.model.W_R.mul_(2)
    with pytest.raises(InputError, match="changed"):
        changed.circuit()


def test_a_token_that_nearly_cancels_its_position_is_not_lost_in_rounding():
    """b^E + p rounds to 1, and W^E takes the 1 away: what is left, 2^-54, is no 0."""
    shape = {"tokens": 1, "features_in": 2, "features_out": 1, "d_model": 1, "heads": 1, "d_k": 1, "d_v": 1}
    model = ol.SingleLayerTransformer(LayerConfig(**shape, ffn_width=1, code="learned")).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        for p, value in ((model.b_E, 1.0), (model.P, 2.0**-54), (model.W_E, -1.0)):
            p.fill_(value)
        for p in (model.W_V, model.W_O, model.W_R):
            p.fill_(1.0)
    paths = AblatedLayer(model, domain_of([(0, 1)]), vocabulary=2).paths
    assert paths is not None
    assert paths.most(Node("head", 0)) >= 2.0**-54
