"""`onelayer sets`: folders of set functions, JSON, and refusals in one line."""

import json

import onelayer as ol
from onelayer.apps.cli import main


def test_a_set_function_becomes_a_folder(tmp_path, capsys, as_user):
    out = tmp_path / "centred"
    assert main(["sets", "x - mean(x)", "--domain=-1:1", "--eps", "1e-6", "--longest", "9", "--out", str(out)]) == 0
    assert "all n ≤ 9 and all x in [-1, 1]^n" in capsys.readouterr().out
    layer = ol.load(out)
    assert abs(layer([1.0, 0.0])[0] - 0.5) <= layer.certificate.bound
    assert main(["sets", "mean(x)", "--eps", "1e-6", "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err


def test_json_says_what_was_built(capsys, as_user):
    assert main(["sets", "max(x)", "--eps", "1e-3", "--longest", "5", "--dtype", "float32", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "CERTIFIED"
    assert record["heads"] == [{"kind": "max", "count": 1}]
    assert record["task"]["parameters"]["formula"] == "max(x)"
    assert record["folder"] is None


def test_bad_requests_are_refused_in_one_line(capsys, as_user):
    for words in (["sin(x)"], ["mean(x)", "--domain", "0:1, 0:2"], ["mean(x)", "--domain", "y=0:1"], ["x*mean(x^2)"]):
        assert main(["sets", *words, "--eps", "1e-3"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
