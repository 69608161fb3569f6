"""Distillation: one layer trained on what teachers answer, and judged at inputs that it has not seen."""

import inspect
import json
import sys

import numpy as np
import pytest
import torch
import torch.utils.flop_counter
from torch import nn

import onelayer as ol
from onelayer.apps.cli import main
from onelayer.training.distill import OPTIONS
from onelayer.training.distill.fidelity import FidelityMeter
from onelayer.training.distill.result import Distillation
from onelayer.training.distill.teachers import packaged, teacher_of
from teachers import LINE, Deep, network, sequences


@pytest.mark.long
def test_real_sequences_are_learned_and_judged_at_held_out_inputs():
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True).eval()
    teacher = nn.Sequential(nn.Linear(1, 8), layer, nn.Linear(8, 1)).eval()
    x = torch.rand(600, 4, 1, generator=torch.Generator().manual_seed(0))
    found = ol.distill(teacher, x, heads=2, width=32, d_model=16, steps=400)
    assert found.fidelity.explained > 0.8
    assert found.fidelity.answers == 60
    assert found.approximation.certificate.verdict == "UNDECIDED"  # trained: observed only


def test_real_inputs_go_to_the_teacher_in_the_shape_they_were_given_in():
    x = np.random.default_rng(0).uniform(size=(60, 2))
    found = ol.distill(network(2, 3, 1), x, heads=2, width=16, d_model=8, steps=5)
    assert found.fidelity.answers == 6


def test_inputs_that_were_learned_from_do_not_judge():
    tokens = sequences(40).repeat(2, 1)
    options = {"heads": 2, "width": 16, "d_model": 8, "steps": 2, "every": 2}
    alone = sequences(80, seed=3)
    mixed = ol.distill(Deep().eval(), torch.cat([tokens, alone]), read="pooled", held_out=0.5, **options)
    assert mixed.fidelity.answers < 80
    with pytest.raises(ol.InputError, match="copies"):
        ol.distill(Deep().eval(), sequences(1).repeat(50, 1), **options)
    with pytest.raises(ol.InputError, match="copies"):
        ol.distill(Deep().eval(), tokens, judge=(tokens[:5], None), **options)
    with pytest.raises(ol.InputError, match="copies"):
        ol.distill(network(2, 3, 1), np.ones((50, 2)), heads=2, width=8, d_model=8, steps=2)


class Unmasked(Deep):
    """A teacher that takes tokens alone."""

    def forward(self, tokens):
        return super().forward(tokens, torch.ones_like(tokens, dtype=torch.bool))


class Optional(Unmasked):
    def forward(self, tokens, loud=False):
        assert loud is False
        return super().forward(tokens)


class Masked(Deep):
    def forward(self, tokens, attention_mask=None):
        assert attention_mask is not None
        return super().forward(tokens, attention_mask)


@pytest.mark.parametrize("kind", [Unmasked, Optional, Masked])
def test_teachers_are_called_with_a_mask_only_if_they_take_one(kind):
    options = {"heads": 2, "width": 16, "d_model": 8, "steps": 3, "every": 3}
    found = ol.distill(kind().eval(), sequences(), **options)
    assert found.fidelity == ol.distill(Deep().eval(), sequences(), **options).fidelity
    there = torch.arange(6) < torch.randint(2, 7, (200, 1), generator=torch.Generator().manual_seed(1))
    if kind is Masked:
        ol.distill(kind().eval(), sequences(), mask=there, **options)
    else:
        with pytest.raises(ol.InputError, match="takes a mask, as there is padding"):
            ol.distill(kind().eval(), sequences(), mask=there, **options)


@pytest.mark.parametrize("count", [2, 5])
def test_a_few_sequences_are_enough(count):
    tokens = torch.arange(3 * count).reshape(count, 3) % 7
    found = ol.distill(nn.Embedding(7, 4).eval(), tokens, steps=2, heads=1, width=4, d_model=4)
    assert found(tokens[:1], torch.ones(1, 3, dtype=torch.bool)).shape == (1, 3, 4)


def test_one_answer_for_a_sequence_is_learned():
    class Classes(Deep):
        def forward(self, tokens, there):
            return super().forward(tokens, there).mean(dim=1)

    found = ol.distill(Classes().eval(), sequences(), read="logits", heads=2, width=16, d_model=8, steps=2, every=2)
    assert found.fidelity.answers == 20
    assert found(sequences(3), torch.ones(3, 6, dtype=torch.bool)).shape == (3, 16)


def test_tokens_with_padding_are_learned():
    tokens = sequences()
    there = torch.arange(6) < torch.randint(2, 7, (200, 1), generator=torch.Generator().manual_seed(1))
    teacher = Deep().eval()
    found = ol.distill(teacher, tokens, mask=there, heads=2, width=64, d_model=32, steps=150, every=50, batch=32)
    assert found.fidelity.explained > 0.6
    assert 0 < found.fidelity.agreement <= 1
    changed = tokens.clone()
    changed[~there] = 3  # what is padding makes no difference
    with torch.no_grad():
        assert torch.allclose(found(tokens, there)[there], found(changed, there)[there], atol=1e-5)


def test_pooled_and_logits():
    options = {"heads": 2, "width": 16, "d_model": 8, "steps": 20, "every": 20}
    pooled = ol.distill(Deep().eval(), sequences(), read="pooled", **options)
    assert pooled.student(sequences(3), torch.ones(3, 6, dtype=torch.bool)).shape == (3, 16)
    logits = ol.distill(Deep().eval(), sequences(), read="logits", temperature=2.0, **options)
    assert logits.fidelity.answers == 20 * 6


def test_fidelity_by_hand():
    seen = FidelityMeter()
    seen.add(torch.tensor([[1.0, 0.0], [0.0, 3.0]]), torch.tensor([[1.0, 2.0], [0.0, 3.0]]))
    f = seen.result()
    assert f.sup == 2.0
    assert f.rmse == 1.0
    assert f.agreement == 0.5
    assert f.cosine == pytest.approx((1 / 5**0.5 + 1) / 2)
    assert f.spread == pytest.approx(np.sqrt((0.25 + 0.25) / 2))


def test_a_small_spread_far_from_zero_is_seen():
    answers = 1e8 + torch.tensor([[0.0], [1e-3], [2e-3]], dtype=torch.float64)
    seen = FidelityMeter()
    for part in answers.split(2):
        seen.add(part, part)
    assert seen.result().spread == pytest.approx(float((answers - 1e8).std(correction=0)), rel=1e-6)


def test_a_student_that_answers_nan_is_not_close():
    seen = FidelityMeter()
    seen.add(torch.tensor([[float("nan")]]), torch.tensor([[1.0]]))
    seen.add(torch.tensor([[1.0]]), torch.tensor([[1.0]]))
    assert np.isnan(seen.result().sup)
    assert np.isnan(seen.result().rmse)
    record = Distillation(nn.Identity(), None, seen.result(), (1, 1), 1.0, "by hand").record()
    assert json.loads(json.dumps(record, allow_nan=False))["sup"] is None


def test_nothing_global_is_touched():
    teacher = Deep().eval()
    before = torch.random.get_rng_state()
    ol.distill(teacher, sequences(), heads=2, width=16, d_model=8, steps=3, every=3)
    after = torch.random.get_rng_state()
    assert torch.equal(before, after)


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ol.distill(Deep().eval()), "inputs or a domain"),
        (lambda: ol.distill(Deep().eval(), sequences(), domain=[(0, 1)]), "inputs or a domain"),
        (lambda: ol.distill(3, domain=[(0, 1)]), "can be called"),
        (lambda: ol.distill(network(2, 1), domain=3), "a domain"),
        (lambda: ol.distill(LINE, ol.build(LINE, [(0, 1)], within="abs(x1 - 0.12345) <= 1e-9")), "points in it"),
        (lambda: ol.distill(LINE, ol.build("x1", [(0, 1)])), "approximation of the teacher itself; found: one of x1"),
        (lambda: ol.distill(LINE, ol.build("x1", [(0, 1)]), steps=9), "on a domain; found: steps"),
        (lambda: ol.distill(LINE, domain=[(0, 1)], lipschitz=3.0), "Target"),
        (lambda: ol.distill(Deep(dropout=0.1), sequences()), "answers the same"),
        (lambda: ol.distill(Deep().eval(), sequences(), shape=(2, 3), norm="pre"), "on tokens; found: norm, shape"),
        (lambda: ol.distill(network(2, 1), domain=[(0, 1)] * 2, heads=3), "on a domain; found: heads"),
        (lambda: ol.distill(network(2, 3, 1), np.ones((9, 2)), read="logits"), "on real inputs; found: read"),
        (lambda: ol.distill(Deep().eval(), sequences(), heads=3, d_model=8), "multiple of heads"),
        (lambda: ol.distill(Deep().eval(), sequences(), read="mind"), "read"),
        (lambda: ol.distill(Deep().eval(), sequences(1)), "at least two"),
        (lambda: ol.distill(Deep().eval(), -sequences() - 1), "≥ 0"),
        (lambda: ol.distill(Deep().eval(), ["a", "b"]), "reads texts"),
        (lambda: ol.distill("/nowhere", ["a", "b"]), "config.json"),
        (lambda: ol.distill(Deep().eval(), sequences(), held_out=2), "held_out"),
        (lambda: ol.distill(Deep().eval(), sequences(), held_out="x"), "held_out"),
        (lambda: ol.distill(Deep().eval(), sequences(), seconds=-1), "seconds"),
        (lambda: ol.distill(Deep().eval(), sequences(), temperature=0), "temperature"),
        (lambda: ol.distill(Deep().eval(), sequences(), checkpoint=3), "checkpoint"),
        (lambda: ol.distill(Deep().eval(), sequences(), judge=3), "judge"),
        (lambda: ol.distill(Deep().eval(), sequences(), judge=(sequences().double() + 0.5, None)), "whole"),
        (lambda: ol.distill(Deep().eval(), sequences(), mask=np.full((200, 6), np.nan)), "mask"),
        (lambda: ol.distill(Deep().eval(), sequences(), student=3), "student"),
        (lambda: ol.distill(Deep().eval(), sequences() + 5), "IndexError"),
        (lambda: ol.distill(network(2, 3, 1), np.ones((9, 3))), "RuntimeError"),
        (lambda: ol.distill(network(2, 3, 1), np.ones((9, 2)), validation=0), "validation"),
        (lambda: ol.distill(network(2, 3, 1), np.ones((9, 2)), seed="x"), "seed"),
        (lambda: packaged("gpt"), "packaged teacher"),
    ],
)
def test_bad_input_is_one_line(call, words):
    with pytest.raises(ol.InputError, match=words) as refusal:
        call()
    assert "\n" not in str(refusal.value)


@pytest.mark.usefixtures("as_user")
def test_the_command_line_refuses_what_it_cannot_use(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a\nb\nc\n")
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    (tmp_path / "empty.npy").write_bytes(b"")
    with (tmp_path / "archive.npy").open("wb") as file:
        np.savez(file, a=np.ones((3, 3), dtype=np.int64))
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    for arguments, words in [
        (["model", "--inputs", "none.txt", "--out", "s"], "a file of inputs"),
        (["model", "--inputs", "bad.npy", "--out", "s"], "token numbers"),
        (["model", "--inputs", "empty.npy", "--out", "s"], "token numbers"),
        (["model", "--inputs", "archive.npy", "--out", "s"], "an archive"),
        (["nowhere", "--inputs", "in.txt", "--out", "s"], "config.json"),
        (["model", "--inputs", "in.txt", "--out", "model"], "a new folder"),
        (["model", "--inputs", "in.txt", "--out", "s"], "transformers"),
    ]:
        assert main(["distill", *arguments]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_every_option_is_named_and_belongs_somewhere():
    with pytest.raises(ol.InputError, match="found: hats"):
        ol.distill(Deep().eval(), sequences(), hats=3)
    fixed = {"teacher", "inputs", "domain", "tolerance", "progress"}
    named = set(inspect.signature(ol.distill).parameters) - fixed
    assert named == set().union(*OPTIONS.values())
    assert OPTIONS["real inputs"] <= set(inspect.signature(ol.train).parameters)


def test_a_head_that_the_folder_lacks_is_not_asked(tmp_path):
    """transformers draws missing weights at random: what they answer is not the teacher's."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=11, max_position_embeddings=8, **sizes)
    whole, bare = tmp_path / "whole", tmp_path / "bare"
    transformers.BertForMaskedLM(config).save_pretrained(whole)
    transformers.BertModel(config).save_pretrained(bare)
    assert teacher_of(whole, "hidden").head is not None
    assert teacher_of(bare, "hidden").head is None
    before = torch.random.get_rng_state()
    with pytest.raises(ol.InputError, match="for what is read"):
        teacher_of(bare, "logits")
    assert torch.equal(before, torch.random.get_rng_state())
    for name in ("whole", "bare"):
        teacher_of(tmp_path / name, "pooled")
    (whole / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ol.InputError, match="a model in whole"):
        teacher_of(whole, "hidden")


@pytest.mark.long
def test_packaged_teachers(tmp_path):
    """The real ALBERT and MiniLM, where they are installed (extra `teachers`)."""
    pytest.importorskip("transformers")
    pytest.importorskip("rxnmapper", exc_type=ImportError)
    from reactions import reactions, tokens

    folder = packaged("rxnmapper")
    x, there, _ = tokens(reactions(60, False, 0), folder, 0.15, 0)
    found = ol.distill(folder, x, mask=there, heads=2, width=32, d_model=16, steps=4, every=4)
    assert found.parameters[0] == pytest.approx(735_567, rel=0.05)
    assert 0 <= found.fidelity.agreement <= 1
