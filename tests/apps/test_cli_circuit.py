"""`onelayer circuit`: what it prints and writes, disguised variants, and what it refuses."""

import json

import pytest

import onelayer as ol
from onelayer.apps.cli import main


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, as_user):
    """(status, stdout, stderr) of one command, in a folder with two layers, as a user runs it."""
    monkeypatch.chdir(tmp_path)
    ol.build("x^2", "0:1", 0.05, method="solved").save("square")
    ol.gallery.any_length.majority(5).save("votes")

    def command(*arguments):
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return command


def test_a_circuit_and_a_disguised_layer(run, tmp_path):
    status, out, _ = run("circuit", "square", "--seconds", "10")
    assert status == 0
    assert "head 1" in out
    record = json.loads((tmp_path / "square" / "circuit.json").read_text())
    assert all(node["lower"] <= node["upper"] for node in record["nodes"])
    status, out, _ = run("circuit", "votes", "--length", "3", "--out", "votes.json", "--json")
    assert status == 0
    assert json.loads(out) == json.loads((tmp_path / "votes.json").read_text())
    status, out, _ = run("circuit", "square", "--disguise", "other", "--seed", "3", "--seconds", "10")
    assert status == 0
    assert "quiet" in out
    assert "written to other/circuit.json" in out
    assert json.loads((tmp_path / "other" / "circuit.json").read_text())["together"] < 2e-9
    assert ol.load(tmp_path / "other").certificate.verdict == "CERTIFIED"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "no such folder"),
        (["votes"], "--length"),
        (["votes", "--length", "6"], "6"),
        (["square", "--length", "1"], "leave --length out"),
        (["square", "--seconds", "0"], "seconds"),
        (["square", "--accuracy", "0"], "accuracy"),
        (["square", "--out", "square"], "a folder"),
        (["square", "--out", "a.json", "--disguise", "b"], "both"),
        (["square", "--disguise", "votes"], "--force"),
        (["square", "--disguise", "square", "--force"], "the layer itself"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(run, tmp_path, words, said):
    before = sorted(path.name for path in tmp_path.rglob("*"))
    status, out, err = run("circuit", *words)
    assert status == 2
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
