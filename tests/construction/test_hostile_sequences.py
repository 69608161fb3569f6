"""Layers for any length under hostile requests: domains that a number type cannot hold, odd inputs, and edited folders."""

import hashlib
import json

import numpy as np
import pytest
import torch

import onelayer as ol

any_length = ol.gallery.any_length
pytestmark = pytest.mark.usefixtures("as_user")  # what users pass
LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("name", ["mean", "running_mean"])
def test_a_mean_that_could_overflow_is_refused(name):
    with pytest.raises(ol.InputError, match="in size in float32"):  # at n = 10 the weights add up to more than 1
        getattr(any_length, name)(12, domain=(0, LARGEST), dtype="float32")
    layer = getattr(any_length, name)(12, domain=(0, LARGEST / 64), dtype="float32")
    assert np.abs(layer([LARGEST / 64] * 10) - LARGEST / 64).max() <= layer.certificate.bound


@pytest.mark.parametrize("name", ["mean", "running_mean", "maximum", "minimum", "running_max", "sort"])
def test_ends_may_be_constant_formulas(name):
    assert getattr(any_length, name)(3, domain=(0, "2*pi")).certificate.verdict == "CERTIFIED"


@pytest.mark.parametrize("formula", ["mean(x)", "max(x)", "sum(x)", "sqrt(mean(x^2))"])
@pytest.mark.parametrize("domain", [(0, 1e-40), (0, 1e39), (-1e37, 1)])
def test_domains_that_float32_cannot_scale_are_refused(formula, domain):
    with pytest.raises(ol.InputError, match="in float32"):
        ol.set_function(formula, domain, max(domain[1], 1e-3), dtype="float32", longest=5)


def test_an_interval_of_neighbouring_floats_has_no_knot_between():
    layer = ol.set_function("sqrt(mean(x^2))", (0.1, 0.1000000001), dtype="float32", longest=5)
    assert layer.certificate.verdict == "CERTIFIED"


@pytest.mark.parametrize("call", [
    lambda: ol.set_function(rho="m", phi=5),
    lambda: any_length.look_up(5, keys=None),
    lambda: ol.language("abc", 2.0),
    lambda: ol.language("abc", None),
    lambda: ol.language({("a", "b"): 1}, []),
    lambda: ol.language({("a", "b"): 1}, 2, tokens="foo"),
    lambda: ol.language("a\ud800b"),
    lambda: ol.language("ab").probabilities(None),
])  # fmt: skip
def test_bad_requests_are_refused(call):
    with pytest.raises(ol.InputError, match=r"^asked: .*; found: .*; change: [^\n]*$"):
        call()


@pytest.mark.parametrize(
    "x", [[10**400], None, [None], ["0.5"], np.array([1 + 2j]), np.array(["0.5"]), [np.datetime64(0, "D")]]
)
def test_what_is_no_number_is_refused(x):
    layer = any_length.maximum(5)
    for ask in (layer, layer.covers, layer.attention):
        with pytest.raises(ol.InputError, match="numbers"):
            ask(x)


def test_numbers_of_any_kind_are_taken():
    layer = any_length.maximum(5)
    half = torch.tensor([0.5, 0.25], dtype=torch.bfloat16)
    grown = torch.tensor([0.5, 0.25], requires_grad=True)
    for x in (np.array(0.5), torch.tensor(0.5), 0.5, half, grown):
        assert abs(layer(x) - 0.5) <= layer.certificate.bound
    assert np.abs(layer([half, grown]) - 0.5).max() <= layer.certificate.bound
    assert layer.covers(np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize("change", [
    {"words": []}, {"words": ["a", "b"]}, {"words": ["a", "a", "a"]}, {"parameters": {}}, {"ends": [0, 1]}, {"ends": [0, -5]},
    {"vocabulary": None}, {"longest": "4"}, {"longest": 3}, {"kind": "gallery"},
])  # fmt: skip
def test_a_language_folder_whose_parts_do_not_fit_is_refused(tmp_path, change):
    _edited(ol.language("ab", longest=4).save(tmp_path / "lm"), change)
    with pytest.raises(ol.InputError, match="build the folder again"):
        ol.load(tmp_path / "lm")


@pytest.mark.parametrize(
    "change", [{"ends": [0, 9]}, {"ends": [1, 0]}, {"kind": "language"}, {"words": ["a"]}, {"vocabulary": 1}]
)
def test_a_wider_domain_than_the_certificate_has_is_refused(tmp_path, change):
    _edited(any_length.maximum(4).save(tmp_path / "maximum"), change)
    with pytest.raises(ol.InputError, match="build the folder again"):
        ol.load(tmp_path / "maximum")


def test_changed_weights_do_not_get_a_certificate_for_one_length():
    layer = any_length.maximum(4)
    with torch.no_grad():
        layer.model.W_R += 1
    with pytest.raises(ol.InputError, match="changed after it was certified"):
        layer.at_length(2)


def _edited(folder, change):
    """target.json changed, and all digests made to fit."""
    task, record = (json.loads((folder / name).read_text()) for name in ("target.json", "certificate.json"))
    text = json.dumps(task | change).encode()
    (folder / "target.json").write_bytes(text)
    del record["digest"]
    record["sha256"]["target.json"] = hashlib.sha256(text).hexdigest()
    own = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False).encode()
    (folder / "certificate.json").write_text(json.dumps(record | {"digest": hashlib.sha256(own).hexdigest()}))
