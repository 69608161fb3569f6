"""Disguised layers: the same function in other weights, with a certificate; distractors whose effects are what is said."""

import functools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import onelayer as ol
from cases import random_model
from onelayer.common.errors import InputError
from onelayer.deployment.disguise import Disguise, turned
from onelayer.deployment.distractors import Distractors
from onelayer.model.config import LayerConfig
from onelayer.proof.circuit.effects import AblatedLayer
from onelayer.proof.circuit.graph import Node, without
from onelayer.proof.circuit.same_function import apart
from onelayer.target.domain import domain_of

SAME = 1e-9
LAYERS = {
    "gates": lambda: ol.build("sin(3*x)", "0:1", 1e-3),
    "memory": lambda: ol.build("exp(-x^2)", "-1:1", 1e-2, construction="memory"),
    "count": lambda: ol.gallery.histogram(4, 3),
    "parity": lambda: ol.gallery.parity(4),
    "brackets": lambda: ol.gallery.any_length.balanced(6).at_length(4),
}


@functools.cache
def layer(name: str) -> ol.Approximation:
    return LAYERS[name]()


@functools.cache
def variant(name: str, seed: int = 1) -> Disguise:
    return layer(name).disguised(seed=seed, seconds=5.0)


def inputs(approximation: ol.Approximation, count: int = 20_000) -> np.ndarray:
    rng, D = np.random.default_rng(5), approximation.domain.dimension
    if approximation.vocabulary is not None:
        return rng.integers(0, approximation.vocabulary, (count, D)).astype(float)
    return approximation.domain.points(rng.random((count, D)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAYERS)
def test_the_same_function_with_a_certificate_of_its_own(name):
    found, x = variant(name), inputs(layer(name))
    difference = float(np.abs(np.asarray(layer(name)(x)) - np.asarray(found.layer(x))).max())
    assert difference <= SAME
    assert found.distance <= SAME
    certificate = found.layer.certificate
    assert certificate.verdict == "CERTIFIED"
    assert certificate.weights == found.layer.model.fingerprint() != layer(name).model.fingerprint()
    if certificate.method == "lemma":
        terms = certificate.evidence.terms
        assert terms is not None
        assert certificate.bound >= sum(terms.values())
        assert terms["the layer"] == layer(name).certificate.bound
        assert difference <= certificate.bound - layer(name).certificate.bound


def test_a_variant_of_a_formula_is_proved_again_and_checked(tmp_path):
    found = variant("gates")
    assert found.layer.certificate.method == "bisect"
    folder = found.save(tmp_path / "variant", found.circuit(5.0))
    assert ol.check(folder).verdict == "VALID"
    truth = json.loads((folder / "circuit.json").read_text())
    assert [n["role"] for n in truth["nodes"] if n["kind"] == "head"] == list(found.roles)
    weights = (folder / "model.safetensors").read_bytes()
    assert not any(word in weights for word in (b"quiet", b"aside", b'"pair"', b"gate"))
    (folder / "circuit.json").write_text("{}")
    with pytest.raises(InputError, match="of something else"):
        found.save(folder, overwrite=True)


def test_a_new_model_takes_the_circuit_of_the_old_one_away(tmp_path):
    layer("gates").save(tmp_path / "m")
    layer("gates").circuit(seconds=5.0).save(tmp_path / "m" / "circuit.json")
    layer("parity").save(tmp_path / "m", overwrite=True)
    assert not (tmp_path / "m" / "circuit.json").exists()


@pytest.mark.parametrize("name", ["gates", "count"])
def test_distractors_do_what_is_said(name):
    found = variant(name)
    circuit = found.circuit(20.0)
    layer_of = AblatedLayer(found.layer.model, found.layer.domain, found.layer.facts.places, found.layer.vocabulary)
    assert layer_of.paths is not None
    counted = {role: found.roles.count(role) for role in ("layer", "quiet", "aside", "pair")}
    assert counted == {"layer": layer(name).model.config.heads, "quiet": 2, "aside": 1, "pair": 2}
    slack = 4 * layer_of.paths.reach.rounding
    for node in circuit.heads:
        if node.role == "quiet":
            assert node.upper <= 2.0**-34 + slack
        elif node.role == "aside":
            assert node.upper <= 1e-12 + slack
        else:
            assert node.lower > 1e-3
    distractors = [Node("head", h) for h, role in enumerate(found.roles) if role != "layer"]
    alone = replace(layer_of, model=without(found.layer.model, *distractors)).model
    x = found.layer.as_tokens(torch.from_numpy(inputs(found.layer)))
    with torch.no_grad():
        together = float((alone(x) - found.layer.model(x)).abs().max())
    assert circuit.together is not None
    assert together <= circuit.together + slack
    assert circuit.together <= 2 * SAME


def test_a_seed_gives_the_variant():
    again = layer("gates").disguised(seed=1, seconds=5.0)
    assert again.layer.model.fingerprint() == variant("gates").layer.model.fingerprint()
    assert again.roles == variant("gates").roles
    assert variant("gates", 2).layer.model.fingerprint() != variant("gates").layer.model.fingerprint()
    state = variant("gates").layer.model.state_dict()
    assert all(bool(state[name].ne(0).all()) for name in ("W_E", "W_Q", "W_K", "W_V"))  # nothing stands out


@pytest.mark.one_in(3)
@pytest.mark.parametrize("changes", [{}, {"activation": "gelu", "residual": False}, {"causal": True}])
def test_the_distance_of_two_layers_is_never_below_what_is_seen(changes):
    config = LayerConfig(
        **{
            "tokens": 2,
            "features_in": 1,
            "features_out": 2,
            "d_model": 4,
            "heads": 2,
            "d_k": 2,
            "d_v": 2,
            "ffn_width": 3,
        }
        | {"code": "learned", "projection_bias": True}
        | changes
    )
    model, x = random_model(config, seed=4).eval(), torch.rand(20_000, 2, 1, dtype=torch.float64) * 2 - 1
    own = AblatedLayer(model, domain_of([(-1, 1)] * 2), (0, 1))
    assert own.paths is not None
    other = turned(model, np.random.default_rng(1))
    with torch.no_grad():
        exact = apart(model, other, own.edge, own.paths.reach, False)
        assert float((model(x) - other(x)).abs().max()) <= exact + 1e-12
        assert exact < 1e-11
        for name, _ in other.named_parameters():  # one weight after the other is disturbed
            rough = turned(model, np.random.default_rng(1))
            getattr(rough, name).flatten()[0] += 1e-4
            assert (
                float((model(x) - rough(x)).abs().max())
                <= apart(model, rough, own.edge, own.paths.reach, False) + 1e-12
            )


@pytest.mark.usefixtures("as_user")
def test_what_cannot_be_disguised_is_refused():
    base = layer("gates")
    uncertified = replace(base, certificate=replace(base.certificate, bound=1.0))
    with pytest.raises(InputError, match="UNDECIDED"):
        uncertified.disguised()
    with pytest.raises(InputError, match="float64"):
        ol.build("x", "0:1", 0.1, dtype="float32").disguised()
    for wrong in ({"quiet": -1}, {"pairs": 1.5}, {"aside": 1000}, {"seed": -1}, {"seconds": 0}, {"heads": 3}):
        with pytest.raises(InputError):
            base.disguised(**wrong)
    with pytest.raises(InputError, match="effect"):
        Distractors(effect=-1.0)
    none = base.disguised(quiet=0, aside=0, pairs=0, seconds=1.0)
    assert set(none.roles) == {"layer"}
