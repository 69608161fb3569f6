"""What all exports share: bad input, names that are taken, writing all or nothing, the command line."""

import json
import os
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

import export as figures
import onelayer as ol
from cases import plain_config, random_model
from exporting import wrapped
from onelayer.apps.cli import main
from onelayer.common import atomic
from onelayer.common.errors import InputError
from onelayer.deployment.export import FILES
from onelayer.target.domain import domain_of
from page import placed
from pages import ROOT

NEEDED = {"hf": "transformers"}  # by formats whose packages the extra `dev` does not have
FORMATS = [
    pytest.param(to, marks=pytest.mark.skipif(bool(needed) and find_spec(needed) is None, reason=f"needs {needed}"))
    for to in FILES
    if to not in ("coq", "transformer_lens", "vnnlib")  # they have tests of their own
    for needed in [NEEDED.get(to, "")]
]


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    """The folder of x·p over named variables."""
    return ol.build("x*p", {"x": (0, 1), "p": (-1, 2)}, 0.01).save(tmp_path_factory.mktemp("export") / "product")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, as_user):
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return command


@pytest.mark.one_in(2)
@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_command_writes_and_says_how_close(run, product, to, dtype):
    status, out, err = run(
        "export", product, "--to", to, "--out", "deep/e", "--dtype", dtype, "--points", 500, "--json"
    )
    record = json.loads(out, parse_constant=pytest.fail)
    assert (status, err) == (0, "")
    assert record["to"] == to
    assert record["dtype"] == dtype
    assert record["points"] == 504  # and the corners
    assert record["difference"] <= (1e-12 if dtype == "float64" else 1e-4)
    assert record["error"] <= 0.01
    assert Path(record["path"]).exists()
    assert os.listdir("deep") == ["e"]
    status, out, err = run("export", product, "--to", to, "--out", "e")
    assert (status, err) == (0, "")
    assert "observed difference" in out
    assert out.endswith("written to e\n")


@pytest.mark.parametrize("to", FORMATS)
def test_what_is_there_is_left_alone_or_replaced_if_asked(product, to, tmp_path):
    first = ol.export(product, tmp_path / "e", to=to, points=10)
    with pytest.raises(InputError, match="something with that name"):
        ol.export(product, tmp_path / "e", to=to, points=10)
    again = ol.export(product, tmp_path / "e", to=to, points=10, overwrite=True)
    assert again == first
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "diary.txt").touch()
    (tmp_path / "link").symlink_to(tmp_path / "e")
    for taken in ("own", "link"):
        with pytest.raises(InputError, match="something else"):
            ol.export(product, tmp_path / taken, to=to, points=10, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e", "link", "own"]


@pytest.mark.parametrize("to", FORMATS)
def test_all_or_nothing(product, to, tmp_path, monkeypatch):
    def broken(*_):
        raise OSError("no space left")

    monkeypatch.setattr(atomic.os, "replace", broken)
    monkeypatch.setattr(atomic.os, "rename", broken)
    with pytest.raises(OSError, match="no space"):
        ol.export(product, tmp_path / "e", to=to, points=10)
    assert list(tmp_path.iterdir()) == []


def test_the_page_has_every_format():
    pages = ("export.md", "huggingface.md", "verifiers.md")
    page, further, *others = ((ROOT / "docs" / "run" / name).read_text() for name in pages)
    text = "".join([page, further, *others])
    assert set(re.findall(r"^\$ onelayer export .* --to (\w+)", text, re.MULTILINE)) == set(FILES)
    assert page != placed(page, "exports", "x")
    assert further != placed(further, "kinds", "x")


def test_the_figures_of_the_page(product, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "POINTS", 50)
    rows = figures.rows("x·p", ol.load(product), tmp_path)
    assert [row[1] for row in rows] == ["onnx", "torch, post-norm", "torch, pre-norm", "c"]
    assert all(float(row[3]) <= 0.01 and float(row[4]) < 1e-9 for row in rows)


def test_bad_input_is_one_line(run, product, tmp_path):
    for arguments, words in (
        (("--to", "tflite", "--out", "e"), "tflite"),
        (("--to", "onnx", "--out", ""), "--out"),
        (("--to", "onnx", "--out", "e", "--norm", "pre"), "norm"),
        (("--to", "onnx", "--out", "e", "--points", "0"), "points"),
        (("--to", "onnx", "--out", ".."), "new file"),
    ):
        status, out, err = run("export", product, *arguments)
        assert (status, out, err.count("\n")) == (2, "", 1), arguments
        assert words in err
    status, _, err = run("export", "nowhere", "--to", "c", "--out", "e")
    assert (status, err.count("\n")) == (2, 1)
    assert os.listdir() == []
    for bad in ({"to": "c", "dtype": "float16"}, {"to": "c", "seed": -1}, {"to": "torch", "norm": "rms"}):
        with pytest.raises(InputError):
            ol.export(product, "e", **bad)
    with pytest.raises(InputError, match="an Approximation or a model folder"):
        ol.export(random_model(plain_config()), "e", to="c")


def test_float32_that_cannot_hold_the_weights(tmp_path):
    model = random_model(plain_config())
    with torch.no_grad():
        model.W_K[0, 0, 0] = 1e300
    with pytest.raises(InputError, match=r"finite weights.*float64"):
        ol.export(wrapped(model), tmp_path / "e", to="c", dtype="float32")


def test_a_missed_tolerance_is_said(product, tmp_path):
    approximation = ol.load(product)
    strict = replace(approximation, certificate=replace(approximation.certificate, tolerance=1e-9))
    found = ol.export(strict, tmp_path / "e", to="onnx", dtype="float32", points=500)
    assert found.error > 1e-9
    assert "build with a smaller one" in str(found)


def test_points_lie_where_the_target_asks(tmp_path):
    approximation = wrapped(random_model(plain_config(features_in=1, tokens=2)))
    disc = domain_of([(0, 1)] * 2, "x1**2 + x2**2 <= 1")
    approximation = replace(approximation, description=replace(approximation.description, domain=disc))
    found = ol.export(approximation, tmp_path / "e", to="onnx", points=1000)
    assert 700 < found.points < 870


def test_the_model_folder_holds_the_bare_weights(product):
    """A model made from model.safetensors alone answers as ours."""
    with safe_open(product / "model.safetensors", framework="pt") as file:
        about = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    model = ol.SingleLayerTransformer(ol.LayerConfig(**json.loads(about["config"])))
    model.load_state_dict(tensors)
    approximation = ol.load(product)
    x = torch.rand(20, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = model(x.reshape(20, *approximation.shape[::-1]) if model.config.tokens == 1 else x.reshape(20, 2, 1))
    y = y[:, json.loads(about["facts"])["places"]].reshape(20)
    assert np.array_equal(y.detach().numpy(), approximation(x.numpy()))
