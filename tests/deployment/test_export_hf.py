"""Hugging Face: stock models of `transformers` answer as ours do, for every kind of layer; the bound on LayerNorm holds."""

import hashlib
import json
import math
import os
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import configs, plain_config, random_model
from exporting import SINES, run_alone, size_of, wrapped
from huggingface import KINDS, TEXT
from onelayer.apps.cli import main
from onelayer.common.errors import InputError
from onelayer.deployment.export import hf
from onelayer.deployment.export.sequence_subject import sequence_subject_of
from onelayer.deployment.export.subject import subject_of
from onelayer.deployment.export.value_bounds import value_bounds
from onelayer.layer.facts import Facts
from onelayer.model.config import LayerConfig
from onelayer.proof.certificate import Certificate
from onelayer.sequence_layer import SequenceLayer
from onelayer.target.sequence_task import SequenceTask

transformers = pytest.importorskip("transformers", reason="Hugging Face's transformers is not installed")
gallery = ol.gallery
OPENS_AS = {  # the others are BertModel
    "trained, pre-norm": "OPTModel",
    "trained, post-norm": "OPTModel",
    "tokens": "BertForTokenClassification",
    "tokens, one answer": "BertForTokenClassification",
    "any length, tokens": "BertForTokenClassification",
    "causal": "GPT2Model",
    "causal, tokens": "GPT2ForTokenClassification",
    "causal, one length": "GPT2ForTokenClassification",
    "text, words": "GPT2LMHeadModel",
    "text, characters": "GPT2LMHeadModel",
}


@pytest.fixture(scope="module")
def text():
    return ol.language(TEXT, tokens="words", tolerance=1e-6, longest=40)


@pytest.fixture(autouse=True)
def quiet():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def rounding(subject) -> float:
    """64 roundings of the largest sum of absolute values that makes up an answer."""
    w = {name: t.detach().double().abs() for name, t in subject.model.state_dict().items()}
    s = value_bounds(subject)
    return 64 * subject.arithmetic.u * float(((s.stream + s.fed) @ w["W_R"] + w["b_R"]).max())


def loaded(folder, **options):
    from onelayer.deployment.export.hf.wrapper import load

    return load(folder, **options)


@pytest.mark.one_in(7)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_layer(kind, dtype, tmp_path):
    """What is observed is within the bound on LayerNorm and a few roundings."""
    layer, name = KINDS[kind](dtype), OPENS_AS.get(kind, "BertModel")
    found = ol.export(layer, tmp_path / "m", to="hf", points=500)
    subject = sequence_subject_of(layer, None) if isinstance(layer, SequenceLayer) else subject_of(layer, None, True)
    assert found.difference <= (found.bound or 0.0) + rounding(subject)
    assert found.difference <= (1e-10 if dtype == "float64" else 2e-3)
    assert (found.bound is None) == (name == "OPTModel")
    model = transformers.AutoModel.from_pretrained(tmp_path / "m")
    assert model.config.architectures == [name]
    assert str(model.dtype) == f"torch.{dtype}"
    assert model.config.num_hidden_layers == 1


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_a_layer_with_layernorm_becomes_opt(norm, activation, tmp_path):
    """Every token sees all, by a mask; another eps becomes a factor of the stream."""
    for i, changes in enumerate(({"readout": "mean"}, {"norm_eps": 1e-3}, {"causal": True, "readout": "position"})):
        config = plain_config(norm=norm, d_model=8, d_k=4, d_v=4, activation=activation, **changes)
        layer = wrapped(random_model(config, 3))
        found = ol.export(layer, tmp_path / f"m{i}", to="hf", points=50)
        assert found.bound is None
        assert found.difference <= 1e-11 * size_of(layer)
        assert found.notes == (f"OPTModel, {norm}-norm, the layer's own",)


def sequence_layer(config, seed: int, tokens: bool, sharp: float) -> SequenceLayer:
    """Random weights as a layer for any length, in float32; scores are multiplied by `sharp`."""
    model = random_model(config, seed).float()
    with torch.no_grad():
        model.W_Q.mul_(sharp)
        model.shift.zero_()
        model.scale.fill_(1.0)
    V = config.features_in if tokens else None
    about = {"kind": "gallery", "text": "nothing", "longest": config.tokens, "outputs": config.features_out}
    about |= {"answer": "position" if config.readout == "position" else "whole", "vocabulary": V}
    task = SequenceTask(ends=(0.0, V - 1.0) if V else (-1.0, 2.0), **about)
    certificate = Certificate(1.0, math.inf, 0.0, 0, "none", "", "float32", weights=model.fingerprint())
    facts = Facts("trained", "", "position", (("trained", config.heads),), config.heads, 0.0, places=(0,))
    return SequenceLayer(model, certificate, facts, task)


def moved_by_layernorm(folder, subject, x, mask=None) -> float:
    """The largest difference in float64, where constants were chosen for float32: LayerNorm's doing, not rounding's."""
    own = subject.model.double()
    with torch.no_grad():
        found = loaded(folder, dtype=torch.float64)(x, mask)
        given = subject.layer.description.features(x) if mask is not None else x.reshape(len(x), *own.shift.shape)
        y = own(given, ~mask) if mask is not None else own(given)
    return float((found.reshape(len(x), -1) - y.reshape(len(x), -1)).abs().max())


@settings(max_examples=6)
@given(config=configs(norm="none"), seed=st.integers(0, 100), causal=st.booleans())
def test_the_bound_on_layernorm_holds(config, seed, causal, tmp_path_factory):
    if causal and config.readout != "output":
        config = replace(config, causal=True)
    layer = wrapped(random_model(config, seed).float())
    subject = subject_of(layer, None, causal=True)
    folder = tmp_path_factory.mktemp("hf") / "m"
    found = ol.export(layer, folder, to="hf", points=20)
    x = torch.from_numpy(layer.domain.points(np.random.default_rng(seed).random((40, layer.domain.dimension))))
    seen = moved_by_layernorm(folder, subject, x)
    assert seen <= found.bound + 1e-11 * size_of(layer)


@pytest.mark.long
@settings(max_examples=25)
@given(
    config=configs(norm="none", code="learned", any_length=True, output_tokens=1),
    seed=st.integers(0, 100),
    causal=st.booleans(),
    tokens=st.booleans(),
    sharp=st.sampled_from([1.0, 30.0, 1000.0]),
)
def test_the_bound_holds_for_all_lengths(config, seed, causal, tokens, sharp, tmp_path_factory):
    """With masks and with vocabularies, and where some weights are negligible."""
    config = replace(config, features_in=max(2, config.features_in) if tokens else 1)
    if causal and config.readout != "output":
        config = replace(config, causal=True)
    layer = sequence_layer(config, seed, tokens, sharp)
    subject = sequence_subject_of(layer, None)
    folder = tmp_path_factory.mktemp("hf") / "m"
    found = ol.export(layer, folder, to="hf")
    rng, n = np.random.default_rng(seed), config.tokens
    x = rng.integers(0, config.features_in, (40, n)) if tokens else rng.uniform(-1, 2, (40, n))
    mask = torch.from_numpy(np.arange(n) < rng.integers(1, n + 1, (40, 1)))
    seen = moved_by_layernorm(folder, subject, torch.from_numpy(x.astype(np.float64)), mask)
    scores = 1 + value_bounds(subject).masked
    assert found.bound is None or seen <= found.bound + 1e-13 * scores * rounding(subject) / 2.0**-24


@pytest.mark.parametrize("causal", [False, True])
def test_the_bound_covers_the_stored_vectors_of_a_vocabulary(causal, tmp_path):
    """A word is stored as W^E + b^E in one number, which is rounded: the stored weights answer within the bound all the same."""
    shape = {"tokens": 2, "features_in": 2, "features_out": 1, "d_model": 1, "heads": 1, "d_k": 1, "d_v": 1}
    config = LayerConfig(**shape, ffn_width=1, code="none", any_length=True, causal=causal, readout="position")
    layer = sequence_layer(config, 0, True, 1.0)
    with torch.no_grad():
        for p in layer.model.parameters():
            p.zero_()
        layer.model.W_R.fill_(1.0)
        layer.model.b_E.fill_(1.0)
        layer.model.W_E.copy_(torch.tensor([[2.0**-24], [1.5 * 2.0**-24]]))
    layer = replace(layer, certificate=replace(layer.certificate, weights=layer.model.fingerprint()))
    found = ol.export(layer, tmp_path / "m", to="hf")
    x, mask = torch.tensor([[0.0, 1.0]], dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool)
    seen = moved_by_layernorm(tmp_path / "m", sequence_subject_of(layer, None), x, mask)
    assert found.bound is None or seen <= found.bound


@pytest.mark.parametrize("causal", [False, True])
def test_the_bound_is_not_idle(causal, tmp_path, monkeypatch):
    """Smaller constants C show, and what is proved follows."""
    config = plain_config(projection_bias=False, causal=causal, readout="position")
    layer = wrapped(random_model(config))
    subject = subject_of(layer, None, causal=True)
    x = torch.from_numpy(subject.points(50, 0))
    seen, bounds = [], []
    for i, u in enumerate((2.0**-20, 2.0**-24)):
        smaller = replace(subject.arithmetic, u=u)
        monkeypatch.setattr(type(subject), "arithmetic", property(lambda _, a=smaller: a))
        found = ol.export(layer, tmp_path / f"m{i}", to="hf", points=5)
        seen.append(moved_by_layernorm(tmp_path / f"m{i}", subject, x))
        bounds.append(found.bound)
    assert seen[0] > 1e-8
    assert seen[1] < seen[0] / 8
    assert all(s <= b < math.inf for s, b in zip(seen, bounds, strict=True))


ALONE = """
import sys, torch
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForTokenClassification, AutoTokenizer
sys.path.insert(0, sys.argv[1])
from wrapper import load
x = torch.rand(1000, 2, generator=torch.Generator().manual_seed(17), dtype=torch.float64) * 2 * torch.pi
with torch.no_grad():
    print((load()(x) - x.sin().sum(dim=1)).abs().max().item())
    model, tokenizer = AutoModelForTokenClassification.from_pretrained(sys.argv[2]), AutoTokenizer.from_pretrained(sys.argv[2])
    print(model(**tokenizer("0 0 1 0 3", return_tensors="pt")).logits[0, 1:, 0].round().int().tolist())
    model, tokenizer = AutoModelForCausalLM.from_pretrained(sys.argv[3]), AutoTokenizer.from_pretrained(sys.argv[3])
    told = model.generate(**tokenizer("the dog", return_tensors="pt"), max_new_tokens=6, do_sample=False)
    print(tokenizer.decode(told[0], skip_special_tokens=True))
    for folder in sys.argv[1:]:
        print(type(AutoModel.from_pretrained(folder, trust_remote_code=False)).__name__)
"""


@pytest.mark.long
def test_in_a_process_without_onelayer(text, tmp_path):
    for name, layer in (("sines", ol.build(*SINES, 1e-3)), ("tokens", gallery.histogram(5, 4)), ("text", text)):
        ol.export(layer, tmp_path / name, to="hf", points=50)
    printed = run_alone(ALONE, tmp_path / "sines", tmp_path / "tokens", tmp_path / "text").splitlines()
    assert float(printed[0]) <= 1e-3
    assert printed[1] == "[3, 3, 1, 3, 1]"
    assert printed[2] == text.generate("the dog", length=6, temperature=0.0)
    assert printed[3:] == ["BertModel", "BertModel", "GPT2Model"]
    assert "import onelayer" not in (tmp_path / "sines" / "wrapper.py").read_text()


def test_token_programs_answer_at_their_rows_and_attend_as_ours(tmp_path):
    layer = gallery.histogram(5, 4)
    ol.export(layer, tmp_path / "m", to="hf", points=20)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    given_ids = tokenizer(["0 0 1 0 3"], return_tensors="pt")
    assert given_ids.input_ids.tolist() == [[4, 0, 0, 1, 0, 3]]  # the anchor first
    options = {"attn_implementation": "eager"}
    model = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path / "m", **options)
    with torch.no_grad():
        found = model(**given_ids, output_attentions=True)
        x = torch.tensor([[0.0, 0, 1, 0, 3]], dtype=torch.float64)
        own = layer.model.attention(layer.as_tokens(x))[0, 0, :5]
    assert np.abs(found.logits[0, 1:, 0].numpy() - layer([0, 0, 1, 0, 3])).max() <= 1e-12
    assert (found.attentions[0][0, 0, 1:, [1, 2, 3, 4, 5, 0]] - own).abs().max() <= 1e-12
    assert model.config.num_labels == 1


def test_texts_are_cut_as_ours_are(tmp_path):
    """Python and `tokenizers` do not agree on what a letter is: marks, superscripts."""
    corpus = "x² isn't e\u0301te 12 a_b, naïve\u00a0 ½ x\ty\n\nz ٣ Ⅷ a"
    for kind in ("words", "characters"):
        model = ol.language(corpus, order=2, tokens=kind, tolerance=1e-3, longest=60)
        ol.export(model, tmp_path / kind, to="hf")
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / kind)
        rng = np.random.default_rng(0)
        texts = [corpus, "", *("".join(rng.permutation(model.words[1:])[:7]) for _ in range(50))]
        for words in texts:
            try:
                expected = model.encode(words)
            except InputError:  # words that grew together
                with pytest.raises(Exception, match="UNK"):
                    tokenizer(words)
                continue
            ids = tokenizer(words).input_ids
            assert ids == [len(model.words), *expected]  # the anchor, ⟨start⟩, the text
            assert tokenizer.decode(ids, skip_special_tokens=True) == words
        with pytest.raises(Exception, match="UNK"):
            tokenizer("x² ж")


def test_a_text_model_writes_and_rules_out_special_tokens(text, tmp_path):
    ol.export(text, tmp_path / "m", to="hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "m")
    given_ids = tokenizer("the dog", return_tensors="pt")
    told = model.generate(**given_ids, max_new_tokens=8, do_sample=False)
    assert tokenizer.decode(told[0], skip_special_tokens=True) == text.generate("the dog", length=8, temperature=0.0)
    with torch.no_grad():
        p = model(**given_ids).logits[0, -1].softmax(dim=0)
    assert (p[len(text.words) :] == 0).all()
    assert np.abs(p[: len(text.words)].numpy() - text.probabilities("the dog")).max() <= 1e-12


def test_the_card_says_what_it_is(text, tmp_path):
    found = ol.export(ol.build("x*p", {"x": (0, 1), "p": (-1, 2)}, 0.01), tmp_path / "m", to="hf", points=20)
    card = (tmp_path / "m" / "README.md").read_text()
    digest = hashlib.sha256((tmp_path / "m" / "model.safetensors").read_bytes()).hexdigest()
    for words in (
        "x*p",
        "0.01",
        "CERTIFIED",
        digest,
        "LayerNorm",
        "BertModel",
        "observed at 24 points",
        "from wrapper",
    ):
        assert words in card
    assert found.files[0] == "README.md"
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == sorted(found.files)
    ol.export(text, tmp_path / "m", to="hf", overwrite=True)  # which has no wrapper
    assert {p.name for p in (tmp_path / "m").iterdir()} == set(hf.FILES) - {"wrapper.py", "wrapper.safetensors"}
    assert "total variation" in (tmp_path / "m" / "README.md").read_text()


def test_only_a_certified_layer_is_tagged_certified(tmp_path):
    layer = ol.build("x*x", {"x": (0, 1)}, 0.01)
    open_claim = replace(layer, certificate=replace(layer.certificate, bound=math.inf))
    assert open_claim.certificate.verdict != "CERTIFIED"
    for name, exported in (("proved", layer), ("open", open_claim)):
        ol.export(exported, tmp_path / name, to="hf", points=5)
        tags = (tmp_path / name / "README.md").read_text().split("---")[1]
        assert ("- certified" in tags) == (name == "proved")


def test_scores_that_are_too_large_are_not_bounded(tmp_path):
    layer = sequence_layer(plain_config(tokens=3, features_in=1, any_length=True, code="learned"), 0, False, 1e9)
    found = ol.export(layer, tmp_path / "m", to="hf")
    assert found.bound is None
    assert "not bounded" in found.notes[1]
    assert "not bounded" in (tmp_path / "m" / "README.md").read_text()


def test_random_state_and_settings_are_left_alone(tmp_path):
    transformers.utils.logging.set_verbosity_warning()
    transformers.utils.logging.enable_progress_bar()
    before = torch.random.get_rng_state()
    ol.export(wrapped(random_model(plain_config())), tmp_path / "m", to="hf", points=5)
    assert torch.equal(before, torch.random.get_rng_state())
    assert transformers.utils.logging.get_verbosity() == transformers.utils.logging.WARNING
    assert transformers.utils.logging.is_progress_bar_enabled()


def test_what_no_stock_model_can_be_is_refused(tmp_path, as_user):
    def refused(words, **changes):
        with pytest.raises(InputError, match=words):
            ol.export(wrapped(random_model(plain_config(**changes))), tmp_path / "m", to="hf")

    refused("without residuals", norm="pre", residual=False)
    refused("2 heads of widths 3 and 2", norm="pre")
    refused("500 heads, which make d_model", heads=500, d_k=20)
    with pytest.raises(InputError, match="beside LayerNorm"):
        ol.export(gallery.reverse(3), tmp_path / "m", to="hf")
    with pytest.raises(InputError, match="norm, post or pre"):
        ol.export(gallery.sort(3), tmp_path / "m", to="hf", norm="pre")
    owns = sequence_layer(
        plain_config(norm="pre", d_model=8, d_k=4, d_v=4, any_length=True, features_in=1), 0, False, 1.0
    )
    with pytest.raises(InputError, match="pre-norm of the layer's own"):
        ol.export(owns, tmp_path / "m", to="hf")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_one_line(tmp_path, monkeypatch, capsys, as_user):
    folder = ol.build("x1*x1", [(0, 1)], 0.1).save(tmp_path / "square")
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["export", str(folder), "--to", "hf", "--out", str(tmp_path / "m")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "onelayer[interop]" in err
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(__version__="4.57.1"))
    with pytest.raises(InputError, match=r"version 4\.57\.1"):
        ol.export(folder, tmp_path / "m", to="hf")
    assert os.listdir(tmp_path) == ["square"]


def test_the_command(tmp_path, monkeypatch, capsys, as_user):
    monkeypatch.chdir(tmp_path)
    gallery.histogram(4, 3).save("counts")
    assert main(["export", "counts", "--to", "hf", "--out", "m", "--points", "50", "--json"]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out, parse_constant=pytest.fail)
    assert (err, record["to"], record["dtype"]) == ("", "hf", "float64")
    assert record["difference"] <= record["bound"] + 1e-12
    for arguments in (["nowhere", "--out", "n"], ["counts", "--out", "m"], ["m", "--out", "n"]):
        assert main(["export", *arguments, "--to", "hf"]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
    assert sorted(os.listdir()) == ["counts", "m"]
