"""Approximation: kinds and shapes in and out, points outside, explanations that add up, folders that survive."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer import InputError
from onelayer.deployment.folder import FILES
from onelayer.views.costs import plan_followed


@pytest.fixture(scope="module")
def sinsum():
    return ol.build("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1.0, method="representative")


@pytest.fixture(scope="module")
def several():
    """One approximation of each make."""
    return [
        ol.build("x1*x2; x1", [(0, 1)] * 2, 0.5, method="representative", layout=layout)
        for layout in ("token", "wide", "heads")
    ] + [
        ol.build("exp(-x1)*x2", [(0, 1)] * 2, 1e-2, construction="memory"),
        ol.build("abs(x1-x2)", [(0, 1)] * 2, 1e-2, construction="gates", units=9, hinges=4, method="solved"),
        ol.build("x1+x2", [(0, 1)] * 2, 1e-2, symmetric=True),
        ol.build(lambda x: x[:, :, 0] * 2, [(0, 1)] * 4, 1.9, method="representative", lipschitz=2.0, shape=(2, 2)),
    ]


def test_the_same_kind_comes_out(sinsum):
    x = np.random.default_rng(0).random((4, 2))
    assert isinstance(sinsum(x), np.ndarray)
    assert sinsum(x).shape == (4,)
    assert torch.equal(sinsum(torch.from_numpy(x)), torch.from_numpy(sinsum(x)))
    assert sinsum(x[0]) == sinsum(x)[0]
    assert sinsum([0.5, 0.5]) == sinsum(np.array([[0.5, 0.5]]))[0]
    assert sinsum(np.zeros((0, 2))).shape == (0,)
    one = ol.build("x1", [(0, 1)], 0.5, method="representative")
    assert one(0.5).shape == ()
    assert one(np.linspace(0, 1, 7)).shape == (7,)
    x_grad = torch.rand(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.grad(sinsum(x_grad).sum(), x_grad)[0].shape == (3, 2)


def test_chunks_do_not_change_values(sinsum, monkeypatch):
    x = np.random.default_rng(0).random((100, 2)) * 6
    expected = sinsum(x)
    monkeypatch.setattr("onelayer.approximation.CHUNK", 5000)
    np.testing.assert_allclose(sinsum(x), expected, rtol=0, atol=1e-15)


@pytest.mark.usefixtures("as_user")
def test_wrong_input_gets_one_clear_line(sinsum):
    for bad in (np.zeros((3, 5)), np.zeros((2, 2, 2, 2)), "text", None, [["a", "b"]]):
        with pytest.raises(InputError):
            sinsum(bad)


def test_points_outside(sinsum):
    outside, edge = np.array([-1.0, 2.0]), np.array([0.0, 2.0])
    assert np.isfinite(sinsum(outside))
    assert sinsum(outside, outside="clip") == sinsum(edge)
    with pytest.raises(InputError, match="points in the domain"):
        sinsum(outside, outside="error")
    assert sinsum(edge, outside="error") == sinsum(edge)


def test_explanations_add_up(several):
    for approx in several:
        x = approx.domain.points(np.full((1, approx.domain.dimension), 0.3))
        seen = approx.explain(x[0])
        np.testing.assert_allclose(seen.value, np.ravel(approx(x)), rtol=0, atol=1e-12)
        np.testing.assert_allclose(seen.contributions.sum(axis=0) + seen.rest, seen.value, rtol=0, atol=1e-12)
        assert len(seen.kinds) == approx.model.config.heads == len(seen.contributions)
        assert "T(x)" in str(seen)
        assert "<table>" in seen._repr_html_()


def test_gates_explain_everything_but_the_bias(sinsum):
    seen = sinsum.explain([1.0, 2.0])
    assert np.abs(seen.rest).max() < 1e-13
    assert set(seen.kinds) == {"gate"}


def test_explaining_one_point_at_a_time(sinsum):
    with pytest.raises(InputError, match="one point to explain"):
        sinsum.explain(np.zeros((3, 2)))


def test_folders_survive(several, tmp_path):
    for i, approx in enumerate(several):
        folder = approx.save(tmp_path / f"deep/er/{i}")
        assert sorted(p.name for p in folder.iterdir()) == sorted(FILES)
        back = ol.load(folder)
        x = approx.domain.points(np.random.default_rng(0).random((20, approx.domain.dimension)))
        assert np.array_equal(back(x), approx(x))
        assert json.dumps(back.certificate.as_json(), sort_keys=True) == json.dumps(
            approx.certificate.as_json(), sort_keys=True
        )
        assert back.facts == approx.facts
        assert back.domain.lower == approx.domain.lower
        assert (back.target is None) == (approx.target.kind == "callable")
        assert repr(back)
        assert str(back.explain(x[0])) == str(approx.explain(x[0]))


def test_saving_again_replaces_and_leaves_nothing_behind(sinsum, tmp_path):
    sinsum.save(tmp_path / "f")
    sinsum.save(tmp_path / "f", overwrite=True)
    assert sorted(p.name for p in (tmp_path / "f").iterdir()) == sorted(FILES)
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_foreign_folder_is_not_touched(sinsum, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"mine; found: one that holds thesis.txt; change: .*overwrite=True"):
        sinsum.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_a_failed_save_leaves_nothing(sinsum, tmp_path, monkeypatch):
    monkeypatch.setattr("onelayer.deployment.folder._versions", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sinsum.save(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FILES)
def test_an_edit_is_noticed(sinsum, tmp_path, name):
    folder = sinsum.save(tmp_path / "f")
    content = bytearray((folder / name).read_bytes())
    place = content.rindex(b"0") if name != FILES[0] else len(content) - 3
    content[place] ^= 1
    (folder / name).write_bytes(bytes(content))
    with pytest.raises(InputError, match="digest does not fit"):
        ol.load(folder)


def test_a_verdict_is_derived_not_read(sinsum, tmp_path):
    """Writing CERTIFIED into a record does not make it so."""
    record = sinsum.certificate.as_json() | {"bound": None, "verdict": "CERTIFIED"}
    assert type(sinsum.certificate).from_json(record).verdict == "UNDECIDED"


@pytest.mark.parametrize("damage", ["missing", "no json", "not an object", "truncated weights"])
def test_a_damaged_folder_gets_one_clear_line(sinsum, tmp_path, damage):
    folder = sinsum.save(tmp_path / "f")
    if damage == "missing":
        (folder / FILES[1]).unlink()
    elif damage == "no json":
        (folder / FILES[2]).write_text("{")
    elif damage == "not an object":
        (folder / FILES[2]).write_text("[1]")
    else:
        (folder / FILES[0]).write_bytes((folder / FILES[0]).read_bytes()[:50])
    with pytest.raises(InputError):
        ol.load(folder)


def test_certificate_in_words(sinsum):
    text = str(sinsum.certificate)
    assert "CERTIFIED" in text
    assert "float64" in text
    assert "none proved" in str(ol.build(lambda x: abs(x[:, 0] - 0.3), [(0, 1)], 0.1, units=4).certificate)
    assert "CERTIFIED" in repr(sinsum)
    assert "<table>" in sinsum._repr_html_()
    assert "<table>" in sinsum.certificate._repr_html_()


def test_changed_weights_are_not_printed_as_certified():
    approx = ol.build("x1**2", [(0, 1)], 0.1)
    assert "CERTIFIED" in str(approx)
    with torch.no_grad():
        approx.model.b_R += 1.0
    (verdict,) = [row[1] for row in approx.table().rows if row[0] == "verdict"]
    assert verdict.startswith("none")


def resigned(folder, **changes):
    """The folder with another target.json, and all digests made anew."""
    from onelayer.deployment.folder import FILES, _digest, _json

    (folder / FILES[1]).write_text(_json(json.loads((folder / FILES[1]).read_text()) | changes))
    record = json.loads((folder / FILES[2]).read_text())
    record.pop("digest")
    record["sha256"] = {name: _digest((folder / name).read_bytes()) for name in FILES[:2]}
    record["digest"] = _digest(_json(record).encode())
    (folder / FILES[2]).write_text(_json(record))
    return folder


@pytest.mark.parametrize(
    "change", [{"vocabulary": 1}, {"decoding": {"kind": "round", "labels": []}}, {"entry": "sort"}]
)
def test_a_formula_is_not_encoded(tmp_path, change):
    folder = ol.build("2 + sin(x1)", [(0, 1)], 1e-2).save(tmp_path / "f")
    assert ol.check(folder).verdict == "VALID"
    resigned(folder, **change)
    with pytest.raises(InputError, match="a formula alone"):
        ol.load(folder)
    assert ol.check(folder).verdict == "INVALID"


def test_a_folder_says_what_was_certified(tmp_path):
    """Another target, or another margin, with its own certificate: the folder follows."""
    approx = ol.build("sin(x1)", [(0, 1)], 1e-2)
    other = ol.Target("sin(x1) + 5", [(0, 1)])
    moved = replace(approx, target=other, certificate=ol.certify(approx, other, 10.0))
    assert moved.description.text == other.text
    assert ol.load(moved.save(tmp_path / "moved")).target.text == other.text
    jump = ol.build("where(x1 < 0.5, 0, 1)", [(0, 1)], 1e-2, margin=0.1)
    wider = ol.Target(jump.target.text, [(0, 1)], margin=0.3)
    again = replace(jump, certificate=ol.certify(jump, wider, 1e-2))
    loaded = ol.load(again.save(tmp_path / "again"))
    assert loaded.target.margin == loaded.certificate.margin == 0.3


def test_a_plan_is_shown_only_if_it_was_followed(tmp_path):
    """A folder keeps no declared constants, so where nothing is derived the plan cannot be made again."""
    approx = ol.build("1/x1", [(0, 1)], 60.0, within="x1 >= 0.1", method="representative", lipschitz=100.0)
    assert plan_followed(approx).units == approx.units
    loaded = ol.load(approx.save(tmp_path / "f"))
    assert plan_followed(loaded) is None
    made = "The plan, made before building"
    assert made in approx.report(tmp_path / "r.html").read_text()
    assert made not in loaded.report(tmp_path / "r.html", overwrite=True).read_text()
    other = ol.build("x1", [(0, 1)], 0.5).report(tmp_path / "r.html", overwrite=True).read_text()
    assert made not in other
    assert "planned but not built" in other


def test_numpy_seeds_and_endless_proofs(tmp_path, as_user):
    approx = ol.build("x1", [(0, 1)], 0.5, method="representative", seed=np.int64(3))
    assert ol.certify(approx, seed=np.int64(3), seconds=math.inf).verdict == "CERTIFIED"
    for seconds in (0, -1, math.nan, "x", None):
        with pytest.raises(InputError, match="seconds above 0"):
            approx.covering(seconds)
