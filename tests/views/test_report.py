"""The report as a file: one page for every kind of approximation, with nothing from outside."""

import json
import re

import numpy as np
import pytest

import onelayer as ol
from onelayer.apps.cli import main
from onelayer.views.report import page
from reports import KINDS


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


@pytest.mark.one_in(6)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_report(kind):
    approx = KINDS[kind]()
    text = page(approx)
    assert len(text.encode()) < 8e6
    assert approx.certificate.verdict in text
    for section in ("function", "heads", "point", "walk", "weights", "certificate", "size"):
        assert f'<section id="{section}">' in text
    assert ('<section id="training">' in text) == (kind == "trained")
    data = data_of(text)
    for name in data["figures"]:
        assert f'id="{name}"' in text
    drawn = 0 if kind == "tokens" else {"3-D": 3, "6-D": 2, "sequence": 2, "gallery": 2, "memorised": 3}.get(kind, 1)
    assert len(data["scenes"]) == drawn


def test_every_figure_says_what_it_shows():
    places = re.findall(r'<div class="figure"[^>]*>', page(KINDS["kink"]()))
    assert len(places) >= 7
    for place in places:
        assert re.search(r' role="figure" aria-label="[^"]{10,}"', place), place


def test_nothing_comes_from_outside():
    text = page(KINDS["2-D"]())
    own = text.replace(re.search(r"<script>/\* plotly.*?</script>", text, re.DOTALL)[0], "")
    assert len(own) < 1e6
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)", own)
    assert "http" not in own.replace('http-equiv="Content-Security-Policy"', "")
    assert "default-src 'none'" in own


def test_a_hostile_description_is_only_text():
    def evil(x):
        return x[:, 0]

    evil.__qualname__ = "</script><script>alert(1)</script>"
    text = page(ol.build(evil, [(0, 1)], 0.5, lipschitz=1.0))
    assert "<script>alert" not in text


def test_the_page_holds_the_weights_bit_by_bit():
    import base64

    approx = KINDS["2-D"]()
    weights = data_of(page(approx))["layer"]["weights"]
    for name, t in approx.model.state_dict().items():
        kept = np.frombuffer(base64.b64decode(weights[name]["base64"]), dtype=weights[name]["dtype"])
        assert np.array_equal(kept.reshape(weights[name]["shape"]), t.numpy())


def test_a_layer_too_large_for_a_page_says_so():
    approx = ol.train("x1*x2", [(0, 1)] * 2, width=2000, steps=1)
    text = page(approx)
    assert len(text.encode()) < 8e6
    assert (data_of(text)["layer"] is None) == (approx.parameters > 200_000)
    assert approx.parameters > 200_000
    assert "approx.explain(x)" in text


@pytest.mark.usefixtures("as_user")
def test_written_by_build_and_by_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["build", "x1**2", "--domain", "0:1", "--eps", "0.1"]
    assert main([*arguments, "--out", "square"]) == 0
    assert "report.html" in capsys.readouterr().out
    assert (tmp_path / "square" / "report.html").stat().st_size > 1e6
    assert main(["check", "square"]) == 0  # a report beside the certificate disturbs nothing
    assert main([*arguments, "--out", "plain", "--no-report"]) == 0
    assert not (tmp_path / "plain" / "report.html").exists()
    assert main(["report", "plain"]) == 0
    assert (tmp_path / "plain" / "report.html").exists()
    assert main(["report", "plain", "--out", "plain"]) == 2
    assert main(["report", "nowhere"]) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plain", "square"]


@pytest.mark.usefixtures("as_user")
def test_bad_input(tmp_path):
    with pytest.raises(ol.InputError, match="an Approximation"):
        ol.report("folder")
    with pytest.raises(ol.InputError, match="is a folder"):
        KINDS["kink"]().report(tmp_path)
    with pytest.raises(ol.InputError, match="a path"):
        KINDS["kink"]().report(None)
