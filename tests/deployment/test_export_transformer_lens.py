"""TransformerLens: every kind of layer answers and attends there as ours does; what it has no place for is refused."""

import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import onelayer as ol
from cases import configs, plain_config, random_model
from exporting import run_alone, wrapped
from lens import KINDS, NAME, compared, sample, size_of_terms
from onelayer.apps.cli import main
from onelayer.common.errors import InputError
from onelayer.deployment.export import transformer_lens as module

any_length = ol.gallery.any_length
ALONE = """
import importlib.util, sys, torch
from pathlib import Path
for place in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("load", Path(place) / "e" / "load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before = torch.random.get_rng_state()
    layer = module.load()
    assert torch.equal(before, torch.random.get_rng_state()) and not layer.training
    x = torch.load(Path(place) / "x")
    y, (logits, cache) = layer(x), layer.model.run_with_cache(layer.inputs(x))
    torch.save((y.detach(), cache["blocks.0.attn.hook_pattern"]), Path(place) / "y")
"""


@pytest.fixture
def loader():
    pytest.importorskip("transformer_lens")
    from onelayer.deployment.export import lens_loader

    return lens_loader


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_answers_and_attends_as_ours(kind, dtype, loader, tmp_path):
    """Answers differ by at most 1e-6 (float32) of the terms that the layer adds up, attention weights by 2e-6."""
    layer = KINDS[kind](dtype)
    found = ol.export(layer, tmp_path / "e", to="transformer_lens", points=300)
    assert sorted(p.name for p in (tmp_path / "e").iterdir()) == ["config.json", "load.py", "model.safetensors"]
    there = loader.load(tmp_path / "e")
    assert there.model.cfg.dtype == layer.model.W_E.dtype
    _, relative, attention = compared(layer, there, 50, dtype)
    assert relative <= (1e-6 if dtype == "float32" else 1e-14)
    assert attention <= (2e-6 if dtype == "float32" else 1e-14)
    assert found.difference <= (1e-3 if dtype == "float32" else 1e-10)  # hinges add up large terms


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(config=configs(), seed=st.integers(0, 100))
def test_layers_of_every_shape_are_written_or_refused(config, seed, tmp_path_factory):
    pytest.importorskip("transformer_lens")
    layer = wrapped(random_model(config, seed))
    folder = tmp_path_factory.mktemp("lens") / "e"
    if config.norm != "none" and not config.residual:
        with pytest.raises(InputError, match="LayerNorm without residuals"):
            ol.export(layer, folder, to="transformer_lens", points=20)
        assert not folder.exists()
        return
    x = layer.domain.points(np.random.default_rng(seed).random((20, layer.domain.dimension)))
    given = torch.from_numpy(x).reshape(20, config.tokens, config.features_in)
    assert ol.export(layer, folder, to="transformer_lens", points=20).difference <= 1e-11 * (
        1 + size_of_terms(layer.model, given)
    )


@pytest.mark.long
def test_the_folder_loads_without_onelayer(loader, tmp_path):
    kinds = {
        kind: KINDS[kind]("float32") for kind in ("gates", "trained, pre-norm", "trained, post-norm", "text, causal")
    }
    for kind, layer in kinds.items():
        ol.export(layer, tmp_path / kind / "e", to="transformer_lens", points=10)
        torch.save(torch.from_numpy(sample(layer, 5, "float32")), tmp_path / kind / "x")
    run_alone(ALONE, *(tmp_path / kind for kind in kinds))
    for kind, layer in kinds.items():
        y, pattern = torch.load(tmp_path / kind / "y")
        ours = torch.from_numpy(np.asarray(layer(sample(layer, 5, "float32"))))
        assert torch.allclose(y, ours, rtol=1e-5, atol=1e-4)
        assert torch.allclose(pattern.sum(dim=-1), torch.ones(()))
    about = safe_open(tmp_path / "text, causal" / "e" / "model.safetensors", framework="pt").metadata()
    assert "observed" in about["difference"]
    assert json.loads(about["layer"])["words"] == list(kinds["text, causal"].words)


def hooked(config, w, ids):
    """The logits of a HookedTransformer without LayerNorm, from its files, equation by equation."""
    x = w["embed.W_E"][ids] + w["pos_embed.W_pos"][: ids.shape[1]]
    q, k, v = (
        torch.einsum("btm,hmw->bhtw", x, w[f"blocks.0.attn.W_{n}"]) + w[f"blocks.0.attn.b_{n}"][:, None] for n in "QKV"
    )
    scores = q @ k.mT / config["attn_scale"]
    if config["attention_dir"] == "causal":
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    z = torch.softmax(scores, dim=-1) @ v
    x = x + torch.einsum("bhtw,hwm->btm", z, w["blocks.0.attn.W_O"]) + w["blocks.0.attn.b_O"]
    hidden = torch.relu(x @ w["blocks.0.mlp.W_in"] + w["blocks.0.mlp.b_in"])
    x = x + hidden @ w["blocks.0.mlp.W_out"] + w["blocks.0.mlp.b_out"]
    return x @ w["unembed.W_U"] + w["unembed.b_U"]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["histogram", "induction, any length", "text, causal"])
def test_the_files_are_those_of_a_hookedtransformer(kind, loader, tmp_path):
    layer = KINDS[kind]("float64")
    ol.export(layer, tmp_path / "e", to="transformer_lens", points=10)
    config = json.loads((tmp_path / "e" / "config.json").read_text())
    with safe_open(tmp_path / "e" / "model.safetensors", framework="pt") as file:
        w = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    x = sample(layer, 5, "float64")
    s, V = layer.model.config.special_tokens, layer.description.vocabulary
    ids = torch.cat([torch.arange(V, V + s).expand(5, -1), torch.from_numpy(x).long()], dim=1)
    y = hooked(config, w, ids)[:, s:].squeeze(-1).numpy()
    ours = np.asarray(layer(x))
    assert np.abs(y - ours).max() <= 1e-12 * (1 + np.abs(ours).max())


@pytest.mark.long
def test_one_length_of_a_causal_layer(loader, tmp_path):
    layer = any_length.running_max(30, 1e-3).at_length(6)
    assert layer.model.config.causal
    assert ol.export(layer, tmp_path / "e", to="transformer_lens", points=50).difference < 1e-12
    there, x = loader.load(tmp_path / "e"), torch.rand(3, 6, generator=torch.Generator().manual_seed(0)).double()
    changed = torch.cat([x[:, :5], x[:, 5:] + 1], dim=1)
    assert torch.equal(there(x)[:, :5], there(changed)[:, :5])
    with pytest.raises(InputError, match="causal"):
        ol.export(layer, tmp_path / "c", to="c")


@pytest.mark.long
def test_hooks_change_what_the_layer_answers(loader, tmp_path):
    """A pattern that is overwritten by a hook re-weighs the values; the layer answers as before when the hook is gone."""
    layer = KINDS["histogram"]("float64")
    ol.export(layer, tmp_path / "e", to="transformer_lens", points=10)
    there = loader.load(tmp_path / "e")
    tokens = there.inputs(torch.from_numpy(sample(layer, 4, "float64")))
    plain = there.model(tokens)
    even = there.model.run_with_hooks(tokens, fwd_hooks=[(NAME, lambda p, hook: torch.full_like(p, 1 / p.shape[-1]))])
    assert (plain - even).abs().max() > 0.1
    assert torch.equal(plain, there.model(tokens))


@pytest.mark.long
def test_a_wrong_weight_is_noticed(loader, tmp_path, monkeypatch):
    """The measured difference is one: a weight that moves on its way into the file shows in it."""
    layer, true = KINDS["gates"]("float64"), module._written

    def wrong(*given):
        config, tensors = true(*given)
        tensors["blocks.0.attn.W_K"][0, 0, 0] += 0.01
        return config, tensors

    assert ol.export(layer, tmp_path / "right", to="transformer_lens", points=200).difference < 1e-12
    monkeypatch.setattr(module, "_written", wrong)
    found = ol.export(layer, tmp_path / "wrong", to="transformer_lens", points=200)
    assert found.difference > 1e-4
    assert "attention weights: observed difference 0 " not in str(found)


@pytest.mark.long
def test_the_command_writes_a_folder_and_replaces_it(loader, tmp_path, capsys, monkeypatch, as_user):
    monkeypatch.chdir(tmp_path)
    any_length.histogram(10, 3).save(tmp_path / "h")
    command = ["export", "h", "--to", "transformer_lens", "--out", "e", "--dtype", "float32", "--json"]
    assert main(command) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["dtype"] == "float32"
    assert record["difference"] < 1e-12
    assert main(command) == 2
    assert "something with that name" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    (tmp_path / "e" / "diary.txt").touch()
    assert main([*command, "--force"]) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e", "h"]


def refused(layer, tmp_path, **options):
    with pytest.raises(InputError) as raised:
        ol.export(layer, tmp_path / "e", to="transformer_lens", points=10, **options)
    assert not (tmp_path / "e").exists()
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_without_the_package_there_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformer_lens", None)
    monkeypatch.delitem(sys.modules, "onelayer.deployment.export.lens_loader", raising=False)
    monkeypatch.delattr("onelayer.deployment.export.lens_loader", raising=False)
    assert "pip install 'onelayer[interop]'" in refused(wrapped(random_model(plain_config())), tmp_path)


def test_what_transformerlens_has_no_place_for_is_refused(tmp_path, monkeypatch):
    model = random_model(plain_config())
    for norm in ("pre", "post"):
        bare = wrapped(random_model(plain_config(norm=norm, residual=False)))
        assert "LayerNorm without residuals" in refused(bare, tmp_path)
    tokens = wrapped(random_model(plain_config(tokens=2, features_in=2)))
    tokens = replace(tokens, description=replace(tokens.description, vocabulary=2, shape=(2, 1)))
    assert "shifted or scaled" in refused(tokens, tmp_path)
    with torch.no_grad():
        model.W_K[0, 0, 0] = math.inf
    assert "finite" in refused(wrapped(model), tmp_path)
    assert "norm" in refused(wrapped(random_model(plain_config())), tmp_path, norm="pre")
    monkeypatch.setattr(module, "MOST_WEIGHTS", 10)
    assert "at_length" in refused(any_length.mean(30), tmp_path)
    assert "export it as onnx or c" in refused(wrapped(random_model(plain_config())), tmp_path)
