"""The doors of the package: wrong types are answered in one line, and NumPy's numbers are as good as Python's."""

import json

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer import InputError
from onelayer.deployment.folder import FILES, _digest, _json

pytestmark = pytest.mark.usefixtures("as_user")


def build(**options):
    return ol.build("x1", [(0, 1)], 0.1, method="solved", **options)


@pytest.mark.parametrize(
    ("call", "mentions"),
    [
        (lambda: build(lipschitz=-1), "lipschitz"),
        (lambda: build(lipschitz="x"), "lipschitz"),
        (lambda: build(lipschitz=[1, 2]), "lipschitz"),
        (lambda: build(lipschitz=float("nan")), "lipschitz"),
        (lambda: build(split="x"), "split, a whole number"),
        (lambda: build(split=-1), "split, a whole number"),
        (lambda: build(symmetric="no"), "symmetric, True or False"),
        (lambda: build(relative="no"), "relative, True or False"),
        (lambda: ol.load(5), "folder, a path"),
        (lambda: ol.load(None), "folder, a path"),
        (lambda: ol.check(5), "folder, a path"),
        (lambda: ol.study({}), "a TOML file"),
        (lambda: ol.study("builtin:epsilon", 5), "out, a path"),
        (lambda: ol.gallery.sort(3, eps=0.1), "did you mean tolerance?"),
        (lambda: ol.gallery.histogram(3, vocab=4), "did you mean vocabulary?"),
        (lambda: ol.plot(build(), wat="heads"), "did you mean what?"),
        (lambda: ol.report(build(), file="x.html"), "an option of report"),
        (lambda: ol.load("f", folders=1), "did you mean folder?"),
        (lambda: ol.check("f", second=1), "did you mean seconds?"),
        (lambda: ol.inspect(build().model, modle=1), "did you mean model?"),
    ],
)
def test_wrong_types_and_unknown_options_get_one_clear_line(call, mentions):
    with pytest.raises(InputError) as caught:
        call()
    assert mentions in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ol.build("x1", [(0, 1)], np.float32(0.1), method="solved", seed=np.int64(3)),
        lambda: ol.build("x1 + 2", [(0, 1)], np.float32(0.1), method="solved", relative=np.bool_(True)),
        lambda: ol.gallery.sort(np.int64(3), np.float32(1e-3), descending=np.bool_(True)),
        lambda: ol.gallery.reverse(np.int64(3)),
        lambda: ol.gallery.shift(np.int64(3), np.int64(1)),
        lambda: ol.gallery.clip(np.int64(2), np.float32(-0.5), np.float32(0.5)),
        lambda: ol.gallery.affine(np.eye(2, dtype=np.float32), tolerance=np.float32(0.1)),
        lambda: ol.memorize([[0.0], [1.0]], [0.5, 0.7], tolerance=np.float32(0.1), seed=np.int64(1)),
    ],
)
def test_numpy_numbers_can_be_saved(make, tmp_path):
    made = make()
    loaded = ol.load(made.save(tmp_path / "f"))
    assert type(made.certificate.tolerance) is float
    assert loaded.certificate == made.certificate


def test_a_float32_tolerance_is_the_number_it_is():
    assert ol.build("x1", [(0, 1)], np.float32(0.1), method="solved").certificate.tolerance == float(np.float32(0.1))


def test_the_bound_of_the_theorem_is_a_plain_number():
    c = ol.build("x1", [(0, 1)], 0.1, method="representative").certificate
    assert type(c.bound) is float
    assert {type(term) for term in c.evidence.terms.values()} == {float}


# ---- types in a certificate.json whose digests fit


def resigned(folder, change):
    record = json.loads((folder / FILES[2]).read_text())
    record.pop("digest")
    change(record)
    record["digest"] = _digest(_json(record).encode())
    (folder / FILES[2]).write_text(_json(record))
    return folder


def set_to(name, value):
    return lambda record: record.update({name: value})


def evidence(**values):
    return lambda record: record["evidence"].update(values)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "change",
    [
        set_to("tolerance", "0.1"),
        set_to("tolerance", None),
        set_to("bound", "0.1"),
        set_to("bound", True),
        set_to("bound", 10**400),
        set_to("observed", [1]),
        set_to("observed_points", 1.5),
        set_to("method", "magic"),
        set_to("domain", 5),
        set_to("assumptions", "abc"),
        set_to("assumptions", [1]),
        set_to("witness", "abc"),
        set_to("witness", ["x"]),
        set_to("witness", {"x": 1}),
        set_to("margin", "1"),
        set_to("evidence", []),
        evidence(terms=[1]),
        evidence(terms={"a": "b"}),
        evidence(degrees="x"),
        evidence(boxes=[["x"]]),
        evidence(boxes=0.5),
        evidence(relative={"share": "x", "least": 1.0, "known": "proved"}),
        evidence(relative={"share": 0.1, "least": 1.0, "known": "guessed"}),
        evidence(unheard=1),
        evidence(**{"worst boxes": [{"coordinates": ["x"], "lower": [0.0], "upper": [1.0]}]}),
    ],
)
def test_a_certificate_with_wrong_types_is_refused(change, tmp_path):
    folder = build().save(tmp_path / "f")
    with pytest.raises(InputError):
        ol.load(resigned(folder, change))


def test_whole_numbers_are_fine_where_numbers_are(tmp_path):
    folder = build().save(tmp_path / "f")
    assert ol.load(resigned(folder, set_to("tolerance", 1))).certificate.tolerance == 1
    str(ol.load(folder)), str(ol.load(folder).certificate)


def test_a_method_names_the_option_meant(tmp_path):
    built = ol.build("x", (0, 1), 0.1)
    with pytest.raises(ol.InputError, match="did you mean overwrite"):
        built.save(tmp_path / "a", force=True)


@pytest.mark.parametrize("dtype", ["float32", np.float32, torch.float32])
def test_a_dtype_of_numpy_or_torch(dtype):
    assert ol.build("x", (0, 1), 0.1, dtype=dtype).model.shift.dtype == torch.float32
