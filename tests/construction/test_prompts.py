"""One frozen layer for all functions: what is certified is what it computes from x and the prompt, with one file of weights."""

import hashlib
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import onelayer as ol
from checking import check, written
from onelayer.construction.prompts.construction import Prompt
from onelayer.layer.assemble import Frame
from onelayer.layer.assemble.prompt_tokens import assemble_prompt, frozen_layer, tokens_of
from onelayer.layer.layer import memory_layer

FUNCTIONS = {  # one to three variables, domains that are not alike, a kink
    "sin(x)": ((0, "2*pi"), 1e-3),
    "abs(x)": ((-1, 1), 2e-2),
    "1/(1 + x1*x2)": ([(900, 1100), (0.001, 0.002)], 1e-3),
    "exp(-x1**2 - x2**2 - x3**2)": ([(-1, 1), (-0.5, 1), (0, 1)], 0.15),
}


@pytest.fixture(scope="module")
def prompts():
    return {text: ol.prompt(text, *about, seconds=60.0) for text, about in FUNCTIONS.items()}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_every_function_is_certified(prompts, text):
    prompt = prompts[text]
    assert prompt.certificate.verdict == "CERTIFIED"
    assert not prompt.certificate.condition
    assert prompt.tokens.shape == (prompt.approximation.units, 8)


@pytest.mark.parametrize("text", FUNCTIONS)
def test_the_frozen_layer_computes_what_was_certified(prompts, text):
    """The same bits as the certified model; and zero slack against f, hunted at points of all kinds."""
    prompt = prompts[text]
    target, domain = prompt.approximation.target, prompt.approximation.domain
    rng = np.random.default_rng(3)
    unit = np.concatenate([rng.random((3000, domain.dimension)), rng.integers(0, 2, (50, domain.dimension))])
    x = domain.points(unit)
    frozen = prompt.frozen(torch.from_numpy(x), prompt.tokens)[:, 0].numpy()
    assert np.array_equal(frozen, prompt.approximation(x))
    assert np.array_equal(frozen, prompt(x))
    assert np.abs(frozen - target(x)[:, 0]).max() <= prompt.certificate.bound


@pytest.mark.parametrize("text", FUNCTIONS)
def test_prompt_tokens_are_ordinary_tokens(prompts, text):
    """The whole sequence x | prompt through the block, every token with query, key and value: the same up to proved rounding."""
    prompt = prompts[text]
    layer, x = (
        prompt.frozen.layer,
        torch.from_numpy(
            prompt.approximation.domain.points(
                np.random.default_rng(0).random((500, 3))[:, : len(prompt.approximation.domain.names)]
            )
        ),
    )
    data = layer.embed(torch.nn.functional.pad(x, (0, 3 - x.shape[1]))[:, None])
    sequence = torch.cat([data, prompt.tokens.expand(len(x), -1, -1)], dim=1)
    whole = layer.read(layer.block(sequence))[:, 0]
    off = (whole - prompt.frozen(x, prompt.tokens)).abs().max()
    assert off <= 2 * (prompt.certificate.evidence.rounding or 1e-12)


def test_one_file_of_weights_serves_all_and_the_checker_agrees(prompts, tmp_path):
    digests = set()
    for i, prompt in enumerate(prompts.values()):
        folder = prompt.save(tmp_path / str(i))
        digests.add(hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest())
        assert torch.equal(load_file(folder / "prompt.safetensors")["tokens"], prompt.tokens)
        weights = load_file(folder / "weights.safetensors")
        assert all(torch.equal(weights[name], t) for name, t in prompt.frozen.layer.state_dict().items())
        assert ol.check(folder).verdict == "VALID"
        assert torch.equal(Prompt(ol.load(folder)).tokens, prompt.tokens)
    assert len(digests) == 1


@pytest.mark.parametrize("name", ["weights.safetensors", "prompt.safetensors"])
def test_an_edited_file_is_refused(prompts, tmp_path, name):
    folder = prompts["sin(x)"].save(tmp_path / "folder")
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ol.InputError, match=f"untouched {name}"):
        ol.load(folder)


def test_another_model_takes_the_place_of_a_prompt(prompts, tmp_path):
    folder = prompts["sin(x)"].save(tmp_path / "folder")
    ol.build("sin(x)", (0, 1), 0.1, method="solved").save(folder, overwrite=True)
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "target.json", "certificate.json"}


def test_a_changed_prompt_has_no_certificate(prompts):
    prompt = prompts["sin(x)"]
    moved = prompt.tokens.clone()
    moved[0, -1] += 1.0
    x = torch.linspace(0, 6, 100, dtype=torch.float64)[:, None]
    off = (prompt.frozen(x, moved)[:, 0] - x[:, 0].sin()).abs().max()
    assert off > prompt.certificate.bound  # the prompt is what makes it sin


def test_the_weights_know_no_function_and_learn_none():
    layer = frozen_layer()
    assert not any(p.requires_grad for p in layer.parameters())
    assert set(torch.cat([t.flatten() for t in layer.state_dict().values()]).tolist()) == {
        0.0,
        1.0,
        2.0,
        -2.0 * 2.0**40,
    }


def test_what_a_prompt_cannot_hold_is_not_dropped():
    linear = torch.ones(1, 1, dtype=torch.float64)
    layer = memory_layer(torch.zeros(1, dtype=torch.float64), 1, linear=linear)
    with pytest.raises(ValueError, match="one head"):
        assemble_prompt(layer, Frame((0.0,), (1.0,)))
    one = torch.ones(1, dtype=torch.float64)
    with pytest.raises(ol.InputError, match="scores"):
        tokens_of(one[:, None], 2.0**39 * one, one)


@pytest.mark.usefixtures("as_user")
def test_bad_input_is_refused_in_one_line():
    built = ol.build("sin(x)", (0, 1), 1e-2, construction="memory")
    good = frozen_layer()
    x, tokens = torch.zeros(1, 1, dtype=torch.float64), torch.zeros(2, 8, dtype=torch.float64)
    for call in (
        lambda: ol.prompt("x1*x2*x3*x4", [(0, 1)] * 4),
        lambda: ol.prompt("x; x", (0, 1)),
        lambda: ol.prompt("x", (0, 1), steepest=1.0),
        lambda: ol.prompt("x", (0, 1), 0.0),
        lambda: ol.prompt("x", (0, 1), eps=0.1),
        lambda: Prompt(built),
        lambda: good(x, tokens[:, :5]),
        lambda: good(x, tokens.float()),
        lambda: good(x, tokens * torch.nan),
        lambda: good(torch.zeros(1, 4, dtype=torch.float64), tokens),
    ):
        with pytest.raises(ol.InputError) as refusal:
            call()
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["weights.safetensors", "prompt.safetensors"])
def test_the_checker_looks_at_both_files_of_a_prompt(tmp_path, name):
    folder = ol.prompt("sin(x)", (0, 1), 0.05).save(tmp_path / "prompt")
    assert check(folder).verdict == "VALID"
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    assert check(folder).verdict == "INVALID"
    (folder / name).unlink()
    assert check(folder).verdict == "INVALID"


@pytest.mark.parametrize(("name", "tensor"), [("weights.safetensors", "W_V"), ("prompt.safetensors", "tokens")])
def test_other_numbers_are_found_although_all_digests_fit(prompts, tmp_path, name, tensor):
    """The files beside the model are compared with it, number by number, by loading and by the checker."""
    folder = next(iter(prompts.values())).save(tmp_path / "p")
    tensors = load_file(folder / name)
    tensors[tensor] = tensors[tensor] * 2
    save_file(tensors, folder / name)
    record = json.loads((folder / "certificate.json").read_text())
    record["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    record.pop("digest")
    record["digest"] = hashlib.sha256(written(record).encode()).hexdigest()
    (folder / "certificate.json").write_text(written(record))
    with pytest.raises(ol.InputError, match="frozen weights and the prompt"):
        ol.load(folder)
    found = check(folder)
    assert found.verdict == "INVALID"
    assert "not the model" in found.reason
