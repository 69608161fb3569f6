"""The report of a layer for sequences: what the file holds, and what is refused."""

import json
import re
from dataclasses import replace

import pytest
import torch

import onelayer as ol
from languages import language
from onelayer.apps.cli import main
from onelayer.views import sequence_page, sequence_record
from onelayer.views.report import report

any_length = ol.gallery.any_length


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_what_is_said_and_held():
    layer = any_length.depth(9)
    text = sequence_page.sequence_page(layer)
    assert "For all n ≤ 9 and all sequences of n tokens out of 2: |T(x) − f(x)| ≤" in text
    assert "Both heads look back" in text
    for section in ("sequence", "heads", "weights", "certificate", "size"):
        assert f'<section id="{section}">' in text
    data = data_of(text)
    assert data["sequence"]["names"] == ["(", ")"]
    assert data["sequence"]["special"] == ["anchor"]
    assert set(data["sequence"]["weights"]) == set(layer.model.state_dict())
    for name in data["figures"]:
        assert f'id="{name}"' in text


def test_nothing_comes_from_outside():
    text = sequence_page.sequence_page(any_length.mean(5))
    own = text.replace(re.search(r"<script>/\* plotly.*?</script>", text, re.DOTALL)[0], "")
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)", own)
    assert "http" not in own.replace('http-equiv="Content-Security-Policy"', "")


def test_a_text_model():
    layer = language(("⟨start⟩", "a", "b", "</script><script>alert(1)"))
    text = sequence_page.sequence_page(layer)
    assert "<script>alert" not in text
    assert 'id="type-on"' in text
    assert 'id="random"' not in text
    record = data_of(text)["sequence"]
    assert record["language"]
    assert record["first"] == 0
    assert record["text"] == ""
    assert sequence_record.sequence_record(language(("a", "b", "cd")))["text"] == "abcd"


def test_the_words_are_those_of_the_certificate():
    layer = language(("a", "b"))
    said = replace(
        layer, certificate=replace(layer.certificate, norm="total variation of the distribution, ½ Σ|p − q|")
    )
    assert "the total variation of the distribution ≤" in sequence_page.intro(said)


def test_a_layer_too_large_for_a_page_says_so(monkeypatch):
    layer = any_length.mean(5)
    for module in (sequence_page, sequence_record):
        monkeypatch.setattr(module, "MOST_SEQUENCE_WEIGHTS", layer.parameters - 1)
    text = sequence_page.sequence_page(layer)
    assert data_of(text)["sequence"] is None
    assert "layer.attention(x)" in text
    assert 'id="typed"' not in text


def test_starting_sequences_are_valid():
    for layer in (any_length.shift(9), any_length.look_up(9, 2, 3), any_length.sort(3), any_length.histogram(4, 3)):
        task = layer.description
        names, text = sequence_record.token_names(task), sequence_record.start_text(task)
        x = [names.index(word) if names else float(word) for word in text.split()]
        assert len(x) == min(task.longest, sequence_record.START_LENGTH)
        assert layer.covers(x)


@pytest.mark.usefixtures("as_user")
def test_written_by_the_command_and_refused(tmp_path, capsys):
    layer = any_length.running_max(4)
    layer.save(tmp_path / "folder")
    assert main(["report", str(tmp_path / "folder")]) == 0
    assert "written to" in capsys.readouterr().out
    assert (tmp_path / "folder" / "report.html").stat().st_size > 1e6
    with pytest.raises(ol.InputError, match="report"):
        report(layer, tmp_path / "folder" / "report.html")
    with torch.no_grad():
        layer.model.b_R += 1.0
    with pytest.raises(ol.InputError, match="changed"):
        layer.report(tmp_path / "changed.html")
