"""bfloat16 and int8 weights: built on their grid, certified in float32, stored in two bytes or one, exported as they are."""

import copy
import hashlib
import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import onelayer as ol
from onelayer import InputError
from onelayer.apps.cli import main
from onelayer.layer.grid import GRIDS
from onelayer.layer.reading import form_of_model
from onelayer.layer.weight_format import unpacked

FORMATS = {"bfloat16": {"dtype": "bfloat16"}, "int8": {"weights": "int8"}}
SINES = ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2)


@pytest.fixture(scope="module", params=list(FORMATS))
def approx(request):
    return ol.build(*SINES, 1e-3, **FORMATS[request.param])


def worst(approx, count, seed):
    """The largest error at random float32 points of the domain, and where two variables allow it at a lattice."""
    unit = np.random.default_rng(seed).random((count, approx.domain.dimension))
    x = approx.domain.representable(approx.domain.points(unit), True)
    return np.abs(np.asarray(approx(x), dtype=float).reshape(len(x), -1) - approx.target(x)).max()


def test_it_is_certified_on_its_grid(approx):
    c, name = approx.certificate, approx.weight_format
    assert c.verdict == "CERTIFIED"
    assert worst(approx, 20_000, 1) <= c.bound <= 1e-3
    assert c.arithmetic == "float32"
    assert c.weight_format == name
    assert approx.model.W_E.dtype == torch.float32
    assert GRIDS[name].contains(approx.model)
    assert form_of_model(approx.model) is not None  # digits are read as the one number that they are
    assert approx.bytes < 4 * approx.parameters
    assert f"{approx.bytes:,} bytes as {name}" in str(approx)
    assert f"float32, weights {name}" in str(c)
    again = ol.certify(approx)
    assert (again.bound, again.weight_format) == (c.bound, name)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize(
    ("formula", "domain", "tolerance"),
    [
        ("1/(1+25*x1**2)", [(-1, 1)], 1e-4),
        ("abs(x1-x2)", [(0, 1)] * 2, 1e-4),
        ("x1*x2; 300*(x1-x2**2)", [(0, 1)] * 2, 0.5),
        ("(x1-1000)**2", [(1000, 1001)], 1e-2),
        ("3", [(0, 1)], 1e-3),
        ("2*x1 - x2/7", [(-3, 2), (5, 9)], 1e-4),
    ],
)
def test_ranges_kinks_and_outputs(name, formula, domain, tolerance):
    approx = ol.build(formula, domain, tolerance, **FORMATS[name])
    c = approx.certificate
    assert c.verdict == "CERTIFIED"
    assert worst(approx, 5_000, 2) <= c.bound <= tolerance


@pytest.mark.long
@pytest.mark.parametrize("name", list(FORMATS))
def test_no_bound_is_below_an_error(name):
    """Random targets, zero slack."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        a, b, c, d = np.round(rng.normal(size=4) * 2, 2).tolist()
        formula = (
            f"({a})*sin(({b})*x1 + x2) + ({c})*exp(-x1**2)*x2" if seed % 2 else f"({a})/(1 + ({b})**2*x1**2) + ({d})*x1"
        )
        low = float(np.round(rng.normal(), 2))
        domain = [(low, low + 1 + abs(c))] * (2 if seed % 2 else 1)
        approx = ol.build(formula, domain, 10.0 ** -rng.uniform(1.5, 4), seconds=30.0, **FORMATS[name])
        assert worst(approx, 20_000, seed) <= approx.certificate.bound
        assert GRIDS[name].contains(approx.model)


def test_one_number_moved_and_certified_vanishes(approx):
    moved = replace(approx, model=copy.deepcopy(approx.model))
    with torch.no_grad():
        t = moved.model.S
        t[1, int(t.abs().sum(dim=0).argmax())] *= 1.5
    with pytest.raises(InputError, match="changed after"):
        moved([0.0, 0.0])
    assert ol.certify(moved).verdict != "CERTIFIED"
    with torch.no_grad():
        moved.model.W_E[0, 0] = 1 + 2.0**-20  # on no grid but float32's
    assert ol.certify(moved).weight_format == ""


def test_a_folder_holds_the_narrow_numbers(approx, tmp_path):
    folder = approx.save(tmp_path / "f")
    tensors = load_file(folder / "model.safetensors")
    kinds = {"bfloat16": {torch.bfloat16}, "int8": {torch.int8, torch.float32}}[approx.weight_format]
    assert {t.dtype for t in tensors.values()} == kinds
    assert sum(t.numel() * t.element_size() for t in tensors.values()) == approx.bytes
    assert json.loads((folder / "certificate.json").read_text())["weight_format"] == approx.weight_format
    loaded = ol.load(folder)
    assert loaded.certificate == approx.certificate
    assert loaded.unchanged
    x = np.float32(approx.domain.points(np.random.default_rng(3).random((100, 2))))
    assert np.array_equal(loaded(x), approx(x))
    assert ol.check(folder).verdict == "VALID"
    assert np.abs(loaded.fast()(x) - approx(x)).max() < 1e-4


def test_the_report_counts_the_bytes(approx, tmp_path):
    page = approx.report(tmp_path / "r.html").read_text()
    assert f"{approx.bytes:,}, as {approx.weight_format}" in page


def resealed(folder, tensors, fingerprint=None):
    """The folder with other tensors, and digests that fit."""
    content = (folder / "model.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    save_file(tensors, folder / "model.safetensors", metadata=header["__metadata__"])
    record = json.loads((folder / "certificate.json").read_text())
    record.pop("digest")
    record["sha256"]["model.safetensors"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if fingerprint:
        record["weights"] = fingerprint
    text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)
    record["digest"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "certificate.json").write_text(json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False))


def test_a_changed_number_or_exponent_is_noticed(approx, tmp_path):
    folder = approx.save(tmp_path / "f")
    lane = int(approx.model.S.abs().sum(dim=0).argmax())
    tensors = load_file(folder / "model.safetensors")
    names = ["S", "S.exponent"] if approx.weight_format == "int8" else ["S"]
    for name in names:
        for sealed in (False, True):
            spoiled = tmp_path / f"{name}-{sealed}"
            shutil.copytree(folder, spoiled)
            other = {key: t.clone() for key, t in tensors.items()}
            other[name][..., lane] = other[name][..., lane] + (3 if name == "S.exponent" else 5)
            if sealed:  # somebody recomputes every digest, that of the weights included
                model = copy.deepcopy(approx.model)
                model.load_state_dict(unpacked(other)[0])
                resealed(spoiled, other, model.fingerprint())
                assert ol.load(spoiled).certificate.verdict == "CERTIFIED"  # a digest is no proof
            else:
                save_file(other, spoiled / "model.safetensors")
                with pytest.raises(InputError):
                    ol.load(spoiled)
            assert ol.check(spoiled).verdict != "VALID"


def test_another_format_than_the_certificate_says_is_refused(approx, tmp_path):
    folder = approx.save(tmp_path / "f")
    resealed(folder, {name: t.clone() for name, t in approx.model.state_dict().items()})  # the same numbers, as float32
    with pytest.raises(InputError, match=f"asked: {approx.weight_format} weights; found: float32"):
        ol.load(folder)
    assert ol.check(folder).verdict == "INVALID"


def test_onnx_holds_the_narrow_numbers(approx, tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    found = ol.export(approx, tmp_path / "m.onnx", to="onnx")
    assert found.difference < 1e-4
    assert found.error <= 1e-3
    stored = {t.name: t.data_type for t in onnx.load(tmp_path / "m.onnx").graph.initializer}
    assert stored["W_K_stored"] == {"bfloat16": 16, "int8": 3}[approx.weight_format]
    assert "W_K" not in stored


@pytest.mark.parametrize("exp", ["libm", "table"])
def test_c_holds_the_narrow_numbers_and_compiles_without_a_warning(approx, exp, tmp_path):
    found = ol.export(approx, tmp_path / "m.c", to="c", exp=exp)
    assert found.difference is None or found.difference <= found.bound
    text = (tmp_path / "m.c").read_text()
    assert {"bfloat16": "static const uint16_t", "int8": "static const int8_t"}[approx.weight_format] in text
    for compiler in filter(shutil.which, ("gcc", "clang")):
        command = [compiler, "-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror", "-c", str(tmp_path / "m.c")]
        assert subprocess.run([*command, "-o", str(tmp_path / "m.o")], capture_output=True, check=False).returncode == 0


def test_torch_holds_what_it_can(approx, tmp_path):
    found = ol.export(approx, tmp_path / "m", to="torch")
    assert found.error <= 1e-3
    kinds = {t.dtype for t in load_file(tmp_path / "m" / "model.safetensors").values()}
    assert (torch.bfloat16 in kinds) == (approx.weight_format == "bfloat16")
    assert any("written as float32" in note for note in found.notes) == (approx.weight_format == "int8")


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize("options", [["--dtype", "bfloat16"], ["--weights", "int8"]])
def test_the_command_line(options, tmp_path, capsys):
    out = str(tmp_path / "f")
    assert main(["build", "x1*x2", "--domain", "0:1", "--eps", "0.01", "--out", out, "--no-report", *options]) == 0
    assert "bytes as " in capsys.readouterr().out
    assert ol.load(out).weight_format == options[1]


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"symmetric": True}, "weights; found: symmetric=True"),
        ({"attention": "linear"}, "weights; found: attention='linear'"),
        ({"layout": "wide"}, "weights; found: layout='wide'; change: use layout='token'"),
        ({"method": "representative"}, "weights; found: method='representative'"),
        ({"weights": "int8", "dtype": "bfloat16"}, "float32, .* found: dtype='bfloat16'; change: leave `dtype` out"),
        ({"weights": "int4"}, "found: 'int4'; change: .* dtype='bfloat16'"),
    ],
)
def test_what_is_not_made_is_refused(name, more, says):
    with pytest.raises(InputError, match=says):
        ol.build("x1+x2", [(0, 1)] * 2, 0.1, **(FORMATS[name] | more))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dtype": "float16"}, "found: 'float16'; change: .* int8 is weights='int8'"),
        ({"dtype": torch.int8}, "found: 'int8'"),
        ({"dtype": "float64", "weights": "int8"}, "found: dtype='float64'"),
    ],
)
def test_dtypes_that_are_not_made_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        ol.build("x1+x2", [(0, 1)] * 2, 0.1, **options)


@pytest.mark.usefixtures("as_user")
def test_gates_have_bfloat16_weights_but_no_int8(tmp_path):
    approx = ol.build("1/(1+25*x1**2)", [(-1, 1)], 1e-2, construction="gates", dtype="bfloat16")
    assert approx.certificate.verdict == "CERTIFIED"
    assert worst(approx, 5_000, 4) <= approx.certificate.bound
    with pytest.raises(InputError, match="memory tokens"):
        ol.build("x1", [(0, 1)], 0.1, construction="gates", weights="int8")


def test_a_changed_model_of_another_format_is_told_what_it_was(as_user):
    approx = ol.build("x1**2", [(0, 1)], 1e-2, weights="int8")
    approx.model.bfloat16()
    for ask in (approx, approx.explain):
        with pytest.raises(ol.InputError, match="its numbers are int8, its arithmetic is float32"):
            ask([0.5])
    assert "observed before" in str(approx)
