"""A language model as its user holds it: probabilities, generated text, its folder, and the two commands."""

import json

import numpy as np
import pytest

import onelayer as ol
from onelayer.apps.cli import main
from onelayer.target.ngram import NGram

TEXT = "the cat sat on the mat. the dog sat on the cat. a cat and a dog ran."


@pytest.fixture(scope="module")
def layer():
    return ol.language(TEXT, tokens="words", longest=12)


def test_probabilities_are_those_of_the_counts(layer):
    words = layer.words
    found = layer.probabilities("the cat sat on the")
    assert found.sum() == pytest.approx(1)
    assert {words[i]: round(p, 5) for i, p in enumerate(found) if p > 1e-5} == {" mat": 0.5, " cat": 0.5}
    np.testing.assert_array_equal(found, layer.probabilities(layer.encode("the cat sat on the")))
    after_the = layer.probabilities([words.index(" the")])  # the first position: what followed it anywhere
    assert after_the[words.index(" dog")] == pytest.approx(1 / 3, abs=1e-6)
    ngram = NGram.of(TEXT, 3, "words")
    long = layer.encode(TEXT)  # longer than the longest context
    assert np.abs(layer.probabilities(long) - ngram.probabilities(long)).sum() / 2 <= layer.certificate.bound


def test_the_same_seed_gives_the_same_text(layer):
    text = layer.generate("the", 40, seed=3)
    assert text == layer.generate("the", 40, seed=3)
    assert text != layer.generate("the", 40, seed=4)
    assert text.startswith("the")
    assert len(layer.encode(text)) == 42
    assert layer.generate("the", 0) == "the"


def test_every_step_of_generated_text_was_seen(layer):
    """Also beyond the longest context, where generation starts again with the last tokens."""
    ngram = NGram.of(TEXT, 3, "words")
    numbers = layer.encode(layer.generate(length=60, seed=1))
    assert all(numbers[i] in ngram.next(numbers[:i]) for i in range(1, len(numbers)))


@pytest.mark.long
def test_temperature():
    layer = ol.language(
        {("⟨start⟩", "a"): 9, ("⟨start⟩", "b"): 1, ("a", "a"): 9, ("a", "b"): 1, ("b", "a"): 9, ("b", "b"): 1}, 2
    )
    assert layer.generate(length=50, temperature=0.0) == "a" * 50
    cool, plain, hot = (layer.generate(length=2000, temperature=t).count("b") for t in (0.5, 1.0, 10.0))
    assert cool < 60 < 150 < plain < 250 < 700 < hot  # 1/82, 1/10 and about 0.445 of 2000
    assert layer.generate(length=50, temperature=1e-300) == "a" * 50


def test_a_folder_keeps_the_model(layer, tmp_path):
    layer.save(tmp_path / "lm")
    again = ol.load(tmp_path / "lm")
    assert isinstance(again, ol.LanguageModel)
    assert again.words == layer.words
    assert again.generate("the", 30, seed=5) == layer.generate("the", 30, seed=5)
    assert again.certificate == layer.certificate
    layer.save(tmp_path / "lm", overwrite=True)


def test_unknown_words_and_bad_options_get_one_clear_line(layer):
    for call, mentions in (
        (lambda: layer.generate("the elephant"), "' elephant'"),
        (lambda: layer.probabilities("zebra"), "'zebra'"),
        (lambda: layer.probabilities([99]), "tokens from 0 to"),
        (lambda: layer.probabilities([]), "1 to 12 tokens"),
        (lambda: layer.generate("the", -1), "length, a whole number"),
        (lambda: layer.generate("the", temperature=-1.0), "temperature"),
        (lambda: layer.generate("the", temperature=float("nan")), "temperature"),
        (lambda: layer.generate("the", seed=-1), "seed"),
    ):
        with pytest.raises(ol.InputError) as caught:
            call()
        assert mentions in str(caught.value)


@pytest.mark.usefixtures("as_user")
def test_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.txt").write_text(TEXT)
    assert main(["language", "corpus.txt", "--order", "3", "--longest", "50", "--out", "lm", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "CERTIFIED"
    assert record["certificate"]["bound"] <= 1e-6
    assert main(["generate", "lm", "--prompt", "the c", "--length", "30", "--seed", "2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("the c")
    assert len(text) == 36
    assert main(["generate", "lm", "--prompt", "the c", "--length", "30", "--seed", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] + "\n" == text
    assert main(["language", "corpus.txt", "--out", "lm", "--force", "--tokens", "words"]) == 0
    assert "written to lm" in capsys.readouterr().out


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("command", "mentions"),
    [
        ("language none.txt --out lm", "No such file"),
        ("language bytes.bin --out lm", "not UTF-8"),
        ("language empty.txt --out lm", "one token or more"),
        ("language corpus.txt --out lm --order 4", "--order"),
        ("language corpus.txt --out lm --eps 0", "a tolerance above 0"),
        ("language corpus.txt --out lm --longest 100000", "longest"),
        ("language corpus.txt --out lm --dtype float32", "or use --dtype float64"),
        ("generate none --prompt a", "no such folder"),
        ("generate other --prompt a", "a layer of another kind"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(command, mentions, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.txt").write_text(TEXT)
    (tmp_path / "bytes.bin").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty.txt").write_text("")
    if "other" in command:
        ol.gallery.shift(3).save(tmp_path / "other")
    assert main(command.split()) == 2
    said = capsys.readouterr()
    assert mentions in said.err
    assert said.err.count("\n") == 1
    assert not said.out
    assert not (tmp_path / "lm").exists()
