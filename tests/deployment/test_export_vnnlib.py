"""VNN-LIB: networks equal the layers, every label is proved again, a wrong one is found, and bad input is refused."""

import csv
import json
from decimal import Decimal

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import configs, plain_config, random_input, random_model
from checking import check, forged
from exporting import size_of, wrapped
from onelayer.apps.cli import main
from onelayer.common.errors import InputError
from onelayer.deployment.export.vnnlib import query
from onelayer.deployment.export.vnnlib.labels import Judge, labels_of
from onelayer.deployment.export.vnnlib.static_graph import StaticGraph
from onelayer.layer.side_by_side import side_by_side
from onelayer.proof.properties.real_function import layer_function
from onelayer.target.domain import domain_of
from questions import networks_apart, problems, rows_of, satisfied


@pytest.fixture(scope="module")
def parabola():
    return ol.build("x1^2 + x1/2", (0, 1), 0.05)


@pytest.fixture(scope="module")
def questions(parabola, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vnnlib") / "parabola"
    ol.export(parabola, folder, to="vnnlib", points=100)
    return folder


@pytest.fixture(scope="module")
def pair(parabola, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vnnlib") / "pair"
    ol.export(parabola, folder, to="vnnlib", points=100, against=ol.build("x1^2 + x1/2", (0, 1), 1e-3))
    return folder


@settings(max_examples=20)
@given(config=configs(), seed=st.integers(0, 100))
def test_the_static_graph_is_the_layer(config, seed):
    assume(config.activation != "gelu")
    approximation = wrapped(random_model(config, seed))
    places = approximation.facts.places
    content = StaticGraph(approximation.model, places).built(onnx).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    x = approximation.domain.points(np.random.default_rng(seed).random((3, approximation.domain.dimension)))
    y = np.concatenate([session.run(["y"], {"x": point[None]})[0] for point in x])
    assert y.shape == (3, len(places) * config.features_out)
    assert np.abs(y - approximation(x).reshape(3, -1)).max() <= 1e-9 * size_of(approximation)


@settings(max_examples=20)
@given(
    config=configs(norm="none", projection_bias=False),
    widths=st.tuples(*[st.integers(1, 4)] * 3),
    seed=st.integers(0, 100),
)
def test_side_by_side_is_the_difference(config, widths, seed):
    from dataclasses import replace

    heads, d_v, ffn_width = widths
    first, second = (
        random_model(config, seed),
        random_model(replace(config, heads=heads, d_v=d_v, ffn_width=ffn_width), seed + 1),
    )
    second.shift.copy_(first.shift)
    second.scale.copy_(first.scale)
    both, x = side_by_side(first, second), random_input(config, seed=seed)
    a, b, apart = (model(x).detach() for model in (first, second, both))
    assert (apart - (a - b)).abs().max() <= 1e-10 * (1 + a.abs().max() + b.abs().max())
    known = torch.cat([t.flatten().abs() for m in (first, second) for t in m.state_dict().values()])
    used = torch.cat([t.flatten().abs() for t in both.state_dict().values()])
    assert torch.isin(
        used, torch.cat([known, torch.tensor([0.0, 1.0], dtype=torch.float64)])
    ).all()  # no number is computed


def test_layers_that_do_not_fit_side_by_side():
    one = random_model(plain_config(norm="none", projection_bias=False))
    for other, found in [
        (plain_config(norm="none", projection_bias=False, features_out=1), "features_out=2 and 1"),
        (plain_config(norm="post", projection_bias=False), "norm='none' and 'post'"),
    ]:
        with pytest.raises(InputError, match=found):
            side_by_side(one, random_model(other))
    with pytest.raises(InputError, match="normalisation"):
        side_by_side(one, random_model(one.config, seed=5))
    normed = random_model(plain_config(norm="pre", projection_bias=False))
    with pytest.raises(InputError, match="LayerNorm"):
        side_by_side(normed, normed)


def test_every_label_is_proved_again(questions):
    pytest.importorskip("vnnlib", reason="pip install 'onelayer[verifiers]'")
    assert problems(questions, check=check) == []
    rows = rows_of(questions)
    values = [row for row in rows if row["kind"] in ("range", "Lipschitz")]
    assert len(values) == 18
    assert sum(row["expected"] == "sat" for row in values) == 9
    assert sorted({float(row["margin"]) for row in values}) == [0.01, 0.05, 0.2]
    assert [row["property"] for row in rows if row["kind"] == "monotone"] == ["increasing in x1"]


def test_every_distance_is_proved_again(pair):
    pytest.importorskip("vnnlib", reason="pip install 'onelayer[verifiers]'")
    assert problems(pair, check=check) == []
    assert [row["expected"] for row in rows_of(pair)] == ["unsat", "sat"] * 3


def test_labels_are_on_their_side_of_the_truth(parabola, questions):
    """At 10,001 points, T keeps every limit that it is said to keep and passes every other one."""
    values = parabola(np.linspace(0, 1, 10_001)[:, None])
    for row in rows_of(questions):
        if row["kind"] == "range":
            limit = float(row["property"].split()[-1])
            kept = (values <= limit).all() if "<=" in row["property"] else (values >= limit).all()
            assert kept == (row["expected"] == "unsat")


def test_a_wrong_label_is_caught_by_check(questions, tmp_path):
    """Forged with all digests right: a limit that T passes, and a "not" that fails."""

    def claiming(text):
        return lambda record: record | {"properties": [{"text": text, "verdict": "PROVED"}]}

    for row in rows_of(questions)[:2]:
        opposite = f"not {row['property']}" if row["expected"] == "unsat" else row["property"]
        verdict = check(forged(questions, tmp_path / row["vnnlib"], certificate=claiming(opposite)))
        assert verdict.verdict == "INVALID"


def test_a_label_that_was_turned_round_is_caught(questions, pair, tmp_path):
    pytest.importorskip("vnnlib", reason="pip install 'onelayer[verifiers]'")
    for source in (questions, pair):
        for number, change in enumerate([{"expected": "sat"}, {"property": "T <= 9"}, {"proved": "T <= 0"}]):
            folder = forged(source, tmp_path / f"{source.name}{number}")
            rows = rows_of(folder)
            assert rows[0]["expected"] == "unsat"
            with (folder / "instances.csv").open("w", newline="") as file:
                table = csv.DictWriter(file, rows[0])
                table.writeheader()
                table.writerows([rows[0] | change | ({"witness": rows[1]["witness"]}), *rows[1:]])
            if source is pair and "property" in change:
                continue  # of another form: refused by `limit_of`
            assert any(rows[0]["vnnlib"] in problem for problem in problems(folder, check=check))


def test_other_networks_and_questions_are_caught(questions, pair, tmp_path):
    pytest.importorskip("vnnlib", reason="pip install 'onelayer[verifiers]'")
    folder = forged(questions, tmp_path / "network")
    model = onnx.load(folder / "model.onnx")
    w = next(t for t in model.graph.initializer if t.name == "W_R")
    w.CopyFrom(onnx.numpy_helper.from_array(np.nextafter(onnx.numpy_helper.to_array(w), np.inf), "W_R"))
    onnx.save(model, folder / "model.onnx")
    assert "other weights" in networks_apart(folder)[0]
    folder = forged(pair, tmp_path / "pair")
    (folder / "second.safetensors").write_bytes((folder / "first.safetensors").read_bytes())
    assert "not the difference" in networks_apart(folder)[0]
    folder = forged(questions, tmp_path / "question")
    path = folder / "property-02.vnnlib"
    path.write_text(path.read_text().replace("(assert (> Y", "(assert (>= Y"))
    assert any("asks something else" in problem for problem in problems(folder, check=check))


def test_every_file_is_typed_vnnlib_and_decides_at_points(questions):
    parser = pytest.importorskip("vnnlib", reason="pip install 'onelayer[verifiers]'")
    row = next(r for r in rows_of(questions) if r["expected"] == "sat" and r["kind"] == "Lipschitz")
    asked = parser.parse_query_file(str(questions / row["vnnlib"]))
    points = [[float(x)] for x in row["witness"].split(" ; ")]
    assert satisfied(asked, [questions / "model.onnx"], points)
    assert not satisfied(asked, [questions / "model.onnx"], points[::-1])  # the first point is to the left
    with pytest.raises(parser.VNNLibException):
        parser.parse_query_string((questions / row["vnnlib"]).read_text().replace("real [1, 1]", "real [1]"))


def test_the_text_of_questions():
    domain = domain_of({"u": (0, 1), "v": ("-1/3", 2)})
    text = query.counterexample("increasing in v", domain, 1)
    assert "(assert (== X[0, 0] Z[0, 0]))" in text
    assert "(assert (<= X[0, 1] Z[0, 1]))" in text
    assert "(< (- V[0, 0] Y[0, 0]) 0.0)" in text
    assert f"(>= X[0, 1] {Decimal(domain.lower[1]):f})" in text  # the float end, digit by digit
    assert "(or (< Y[0, 0] -0.00000025) (< Y[0, 1] -0.00000025))" in query.counterexample("T >= -2.5e-7", domain, 2)
    for text in ("T <= 2*pi", "convex in u", "anything"):
        with pytest.raises(InputError):
            query.counterexample(text, domain, 1)


def test_what_cannot_be_proved_gets_no_label(parabola, monkeypatch):
    monkeypatch.setattr(Judge, "__call__", lambda self, text, or_else=False: self.open.append(text))
    judge = Judge(layer_function(parabola.model, parabola.facts.places, parabola.domain))
    assert labels_of(judge, ("range", "Lipschitz", "monotone"), 0.0) == []
    assert judge.open


@pytest.mark.long
def test_refusals(parabola, questions, tmp_path):
    place = tmp_path / "new"

    def refused(match, layer=parabola, **options):
        with pytest.raises(InputError, match=match):
            ol.export(layer, place, **({"to": "vnnlib", "points": 10} | options))
        assert not place.exists()

    refused("float32", dtype="float32")
    refused("float32 inputs", ol.build("x1*x1", [(0, 1)], 0.05, dtype="float32"))
    refused("against", against=parabola, to="onnx")
    refused("tokens", ol.gallery.histogram(3))
    refused("a gallery", ol.gallery.maximum(2))
    refused("two layers that differ", against=parabola)
    refused("one domain", against=ol.build("x1^2 + x1/2", (0, 2), 0.05))
    refused("condition", ol.build("x1*x2", [(-1, 1)] * 2, 0.1, within="x1^2 + x2^2 <= 1"))
    refused("REFUTED", ol.build("sin(30*x1)", (0, 1), 1e-3, method="solved", units=1))
    with pytest.raises(InputError, match="a new name"):
        ol.export(parabola, questions, to="vnnlib", points=10)
    model_folder = parabola.save(tmp_path / "model")
    with pytest.raises(InputError, match="earlier export"):
        ol.export(parabola, model_folder, to="vnnlib", points=10, overwrite=True)
    assert check(model_folder).verdict == "VALID"


def test_an_earlier_export_is_replaced_whole(parabola, pair, tmp_path, capsys, as_user):
    folder, source = tmp_path / "twice", parabola.save(tmp_path / "source")
    forged(pair, folder)
    (folder / "property-99.vnnlib").write_text("old")
    words = ["export", str(source), "--to", "vnnlib", "--out", str(folder), "--points", "50"]
    assert main(words) == 2
    capsys.readouterr()
    assert main([*words, "--force", "--json"]) == 0
    assert "property-99.vnnlib" not in json.loads(capsys.readouterr().out)["files"]
    assert not (folder / "property-99.vnnlib").exists()
    assert check(folder).verdict == "VALID"
    assert networks_apart(folder) == []
