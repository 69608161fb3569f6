"""Layers with another attention than softmax, at every door: right, or refused in one line."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import onelayer as ol
from checking import check, forged
from one_weight import FORMULAS, one_weight_layer, with_attention
from onelayer.deployment.disguise import disguised
from onelayer.deployment.export import export
from onelayer.layer.reading import form_of_model
from onelayer.model.passes import both_passes
from onelayer.views.pages import layer_record

OTHERS = ["sigmoid", "linear", "sparsemax", "local"]
X = np.linspace(-1, 1, 41)[:, None]


@pytest.fixture(scope="module")
def layers():
    return {name: one_weight_layer(name) for name in OTHERS}


@pytest.mark.parametrize("name", ["sigmoid", "linear", "sparsemax", pytest.param("local", marks=pytest.mark.long)])
def test_a_folder_keeps_the_attention(name, layers, tmp_path):
    again = ol.load(layers[name].save(tmp_path / "layer"))
    assert again.model.config == layers[name].model.config
    assert f"1 heads of {name} attention" in str(again.model)
    assert again.certificate.verdict == "CERTIFIED"
    assert np.array_equal(again(X), layers[name](X))
    assert ol.certify(again).verdict == "CERTIFIED"


@pytest.mark.parametrize("name", OTHERS)
def test_the_checker_never_takes_it_for_softmax(name, layers, tmp_path):
    """Also where the certificate would be true of softmax with the same weights: its files are the layer's own."""
    folder = layers[name].save(tmp_path / "layer")
    assert check(folder).verdict == "NOT CHECKABLE"
    assert "only softmax attention can be checked" in str(check(folder))
    softmax = with_attention(layers["local"], "softmax").save(tmp_path / "softmax")
    assert check(softmax).verdict == "VALID"  # of the logistic function: what is refused above is the attention alone
    disguise = forged(softmax, tmp_path / "forged", weights=lambda tensors: None)
    with safe_open(disguise / "model.safetensors", framework="pt") as file:
        about, tensors = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    about["config"] = json.dumps(json.loads(about["config"]) | {"attention": name})
    save_file(tensors, disguise / "model.safetensors", metadata=about)
    again = forged(disguise, tmp_path / "again")  # digests that fit
    assert check(again).verdict == "NOT CHECKABLE"


def test_softmax_weights_are_invalid_for_what_sparsemax_computes(layers, tmp_path):
    """The same weights, claim and formula with attention="softmax" are refuted: the checker does look."""
    folder = with_attention(layers["sparsemax"], "softmax").save(tmp_path / "wrong")
    assert check(folder).verdict == "INVALID"


@pytest.mark.parametrize("to", ["onnx", "c", "torch", "vnnlib", "coq", "hf", "transformer_lens"])
def test_no_export_writes_another_function(to, layers, tmp_path):
    for name in OTHERS:
        with pytest.raises(
            ol.InputError, match=f"an export of a layer with softmax attention; found: one with {name} attention"
        ):
            export(layers[name], tmp_path / "file", to=to)


@pytest.mark.parametrize("name", OTHERS)
def test_what_reads_softmax_averages_declines(name, layers):
    layer = layers[name]
    assert layer.fast().bound == layer.certificate.bound
    if name == "local":  # which is a softmax over fewer tokens
        assert np.allclose(layer.fast("linear")(X), layer(X), rtol=0, atol=1e-12)
    else:
        assert form_of_model(layer.model) is None
        assert np.array_equal(layer.fast()(X), layer(X))
        with pytest.raises(ol.InputError, match="no sum of softmax averages"):
            layer.fast("linear")
    for call in (layer.circuit, lambda: disguised(layer)):
        with pytest.raises(
            ol.InputError, match=f"the circuit of a layer with softmax attention; found: one with {name} attention"
        ):
            call()
    assert layer_record(layer) is None
    assert layer_record(with_attention(layer, "softmax")) is not None


@pytest.mark.parametrize("name", OTHERS)
def test_what_follows_the_model_is_right(name, layers, tmp_path):
    layer = layers[name]
    found = layer.explain([0.1])
    assert found.contributions.sum() + found.rest.sum() == pytest.approx(layer([[0.1]]).item(), abs=1e-15)
    x = torch.tensor([[[0.1]]], dtype=torch.float64)
    passes = both_passes(layer.model, x, torch.zeros(1, 1, 1, dtype=torch.float64))
    assert torch.equal(passes["T(x)"].activation, layer.model(x))
    assert ol.inspect(layer.model).heads == 1
    page = layer.report(tmp_path / "report.html").read_text()
    assert f"this layer has {name} attention" in page
    assert layer.model.config.parameter_count == layer.model.parameter_count


def test_a_layer_is_trained_with_the_attention_asked_for():
    for name in ("sparsemax", "local"):
        layer = ol.train(
            "x1*x2", [(-1, 1)] * 2, heads=1, width=4, d_model=4, steps=60, every=20, samples=64, attention=name,
            window=int(name == "local"), dtype="float64",
        )  # fmt: skip
        assert layer.model.config.attention == name
        assert layer.history.moments[-1].loss < layer.history.moments[0].loss
        assert ol.certify(layer, tolerance=3.0, boxes=200).verdict == "CERTIFIED"
    with pytest.raises(ol.InputError, match="a window for attention='local' alone"):
        ol.train("x1", [(0, 1)], steps=1, window=1)


def test_two_layers_are_compared_whatever_their_attention(layers):
    """|T − f| and its supremum, and properties of values: engines that enclose the layer itself."""
    found = ol.supremum(replace(layers["sparsemax"]), accuracy=0.2, seconds=5.0)
    assert found.lower <= found.upper < 1e-6
    assert FORMULAS["sparsemax"] in str(layers["sparsemax"].target)
