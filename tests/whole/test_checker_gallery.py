"""The independent checker on the gallery: every entry is VALID, and nothing false is."""

import itertools
import json
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import onelayer as ol
from checking import check, checker, forged
from onelayer import gallery

briefly = partial(check, seconds=0.5)  # what is not VALID may cost the whole budget
MATRIX, OFFSET = [[1.0, 2.5, -0.3], [0.1, 0.0, 1.0]], [1.0, 0.1]
RANKS = np.sort
NUMBERS = {  # entry → (how it is made, what it computes)
    "maximum": (lambda **o: gallery.maximum(4, **o), lambda x: x.max(1, keepdims=True)),
    "minimum": (lambda **o: gallery.minimum(3, domain=(-2.0, 3.0), **o), lambda x: x.min(1, keepdims=True)),
    "absolute_difference": (lambda **o: gallery.absolute_difference(**o), lambda x: abs(x[:, :1] - x[:, 1:])),
    "running_max": (lambda **o: gallery.running_max(3, **o), lambda x: np.maximum.accumulate(x, 1)),
    "median": (lambda **o: gallery.median(3, **o), lambda x: np.median(x, 1, keepdims=True)),
    "median, even": (lambda **o: gallery.median(4, **o), lambda x: np.median(x, 1, keepdims=True)),
    "top_k": (lambda **o: gallery.top_k(4, 2, **o), lambda x: RANKS(x, 1)[:, :-3:-1]),
    "sort": (lambda **o: gallery.sort(4, **o), lambda x: RANKS(x, 1)),
    "sort, descending": (lambda **o: gallery.sort(3, descending=True, **o), lambda x: RANKS(x, 1)[:, ::-1]),
}
EXACT = {  # entries without a tolerance
    "mean": (lambda **o: gallery.mean(8, **o), lambda x: x.mean(1, keepdims=True)),
    "affine": (lambda **o: gallery.affine(MATRIX, OFFSET, **o), lambda x: x @ np.array(MATRIX).T + OFFSET),
    "clip": (lambda **o: gallery.clip(3, low=-0.3, high=0.55, **o), lambda x: np.clip(x, -0.3, 0.55)),
    "permute": (lambda **o: gallery.permute([2, 0, 3, 1], **o), lambda x: x[:, [2, 0, 3, 1]]),
    "reverse": (lambda **o: gallery.reverse(4, **o), lambda x: x[:, ::-1]),
    "shift": (lambda **o: gallery.shift(3, **o), lambda x: np.pad(x, ((0, 0), (1, 0)))[:, :-1]),
    "shift, cyclic": (lambda **o: gallery.shift(4, -1, cyclic=True, **o), lambda x: np.roll(x, -1, 1)),
}


def copied(x):
    marked = x >= 3
    token = np.where(marked.any(1), np.take_along_axis(x, marked.argmax(1)[:, None], 1)[:, 0] - 3, 3)
    return np.repeat(np.eye(4)[token][:, None], x.shape[1], 1)


TOKENS = {
    "histogram": (lambda **o: gallery.histogram(4, 3, **o), lambda x: (x[:, :, None] == x[:, None]).sum(2)),
    "first_occurrence": (
        lambda **o: gallery.first_occurrence(4, 3, **o),
        lambda x: (x[:, :, None] == x[:, None]).argmax(2),
    ),
    "copy_where": (lambda **o: gallery.copy_where(3, 3, **o), copied),
    "reverse, tokens": (lambda **o: gallery.reverse(4, 3, **o), lambda x: np.eye(3)[x[:, ::-1]]),
    "parity": (lambda **o: gallery.parity(5, **o), lambda x: x.sum(1, keepdims=True) % 2),
    "majority": (lambda **o: gallery.majority(5, **o), lambda x: 2 * x.sum(1, keepdims=True) > 5),
}
ALL = NUMBERS | EXACT | TOKENS
LENGTHS = {  # entry → how it is made at length n, and lengths
    "maximum": (gallery.maximum, (1, 2, 5, 30)),
    "minimum": (gallery.minimum, (1, 2, 7)),
    "running_max": (gallery.running_max, (1, 2, 9)),
    "median": (gallery.median, (1, 2, 5, 6)),
    "sort": (gallery.sort, (1, 2, 5)),
    "top_k": (lambda n, **o: gallery.top_k(n, 2, **o), (2, 5, 7)),
    "mean": (gallery.mean, (1, 2, 33)),
    "clip": (lambda n, **o: gallery.clip(n, low=-0.05, high=0.0, **o), (1, 5)),
    "affine": (lambda n, **o: gallery.affine(np.linspace(-1, 2, 3 * n).reshape(3, n), **o), (1, 9)),
    "reverse": (gallery.reverse, (1, 2, 17)),
    "shift": (lambda n, **o: gallery.shift(n, 2, **o), (1, 2, 9)),
    "histogram": (lambda n, **o: gallery.histogram(n, 5, **o), (1, 2, 24)),
    "first_occurrence": (lambda n, **o: gallery.first_occurrence(n, 5, **o), (1, 2, 17)),
    "copy_where": (lambda n, **o: gallery.copy_where(n, 2, **o), (1, 2, 9)),
    "reverse, tokens": (lambda n, **o: gallery.reverse(n, 4, **o), (1, 2, 9)),
    "parity": (gallery.parity, (1, 2, 40)),
    "majority": (gallery.majority, (1, 2, 41)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folders of entries, built when first asked for."""
    root, made = tmp_path_factory.mktemp("gallery"), {}

    def of(name, dtype="float64"):
        if (name, dtype) not in made:
            options = {"tolerance": 1e-6 if dtype == "float64" else 1e-3} if name in NUMBERS else {}
            made[name, dtype] = ALL[name][0](dtype=dtype, **options).save(root / f"{len(made)}")
        return made[name, dtype]

    return of


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ALL)
def test_every_entry_is_valid(folder, name, dtype):
    found = check(folder(name, dtype))
    assert found.verdict == "VALID", str(found)
    assert found.bound <= json.loads((folder(name, dtype) / "certificate.json").read_text())["bound"]


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", LENGTHS)
def test_other_lengths_are_valid_too(tmp_path, name, dtype):
    make, lengths = LENGTHS[name]
    ordered = name in ("maximum", "minimum", "running_max", "median", "sort", "top_k")
    for n in lengths:
        options = {"tolerance": 1e-6 if dtype == "float64" else 1e-3} if ordered else {}
        found = check(make(n, dtype=dtype, **options).save(tmp_path / str(n)))
        assert found.verdict == "VALID", f"{n}: {found}"


def observed(folder, name):
    """The largest error of the stored layer at some inputs, or at all sequences of tokens."""
    model, target = ol.load(folder), json.loads((folder / "target.json").read_text())
    n, tokens = len(target["names"]), target.get("vocabulary")
    if tokens:
        x = np.array(list(itertools.product(range(tokens), repeat=n)))
    else:
        low, high = (np.clip(target[k], -1e3, 1e3) for k in ("lower", "upper"))
        unit = np.random.default_rng(0).random((400, n))
        unit[100:200], unit[200:300] = np.round(unit[100:200]), unit[:100, :1] + unit[:100] * 1e-6
        single = model.model.W_E.dtype == torch.float32
        x = np.clip(low + (high - low) * unit, low, high).astype(np.float32 if single else np.float64)
        x = x.astype(np.float64)
    return np.abs(
        np.asarray(model(x), dtype=np.float64).reshape(len(x), -1) - ALL[name][1](x).reshape(len(x), -1)
    ).max()


def tampered(source, tmp_path, name, changes):
    """The verdicts on folders with one number changed, in every tensor; what is VALID holds at all inputs that are tried."""
    verdicts, bound = [], json.loads((source / "certificate.json").read_text())["bound"]
    for key, tensor in load_file(source / "model.safetensors").items():
        for place, by in itertools.product({int(tensor.abs().argmax()), tensor.numel() - 1}, changes):

            def edit(tensors, key=key, place=place, by=by):
                tensors[key].view(-1)[place] += by

            changed = forged(source, tmp_path / str(len(verdicts)), weights=edit)
            verdicts.append(briefly(changed).verdict)
            if verdicts[-1] == "VALID":
                assert observed(changed, name) <= bound, (key, place, by)
    return verdicts


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", ["maximum", "median", "clip", "shift", "histogram", "first_occurrence", "parity"])
def test_a_changed_weight_is_valid_only_if_it_does_not_matter(folder, tmp_path, name):
    found = tampered(folder(name), tmp_path, name, (1.0,))
    assert found.count("VALID") < len(found) / 2


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ALL)
def test_small_and_large_changes_are_valid_only_if_they_do_not_matter(folder, tmp_path, name, dtype):
    tampered(folder(name, dtype), tmp_path, name, (-0.5, 2.0**-20, 3e-5, 800.0))


@pytest.mark.parametrize("name", [*NUMBERS, "mean", "clip", "histogram", "parity", "majority"])
def test_a_bound_below_the_truth_is_not_valid(folder, tmp_path, name):
    below = observed(folder(name), name) / 2
    edit = {"bound": below, "observed": 0.0, "tolerance": 1.0}
    found = briefly(forged(folder(name), tmp_path / "f", lambda r: r | edit, lambda t: retold(t, tolerance=1.0)))
    assert found.verdict != "VALID"


def retold(target, **parameters):
    """Other parameters, of those that there are."""
    own = target["parameters"]
    return target | {"parameters": own | {k: v for k, v in parameters.items() if k in own}}


OTHER_ENTRIES = [
    ("maximum", "minimum"),
    ("minimum", "maximum"),
    ("running_max", "reverse"),
    ("running_max", "sort"),
    ("maximum", "median"),
    ("median", "maximum"),
    ("median", "mean"),
    ("mean", "maximum"),
    ("reverse", "permute"),
    ("histogram", "first_occurrence"),
    ("first_occurrence", "histogram"),
    ("parity", "majority"),
    ("majority", "parity"),
    ("copy_where", "reverse"),
    ("reverse, tokens", "copy_where"),
    ("maximum", "unheard_of"),
    ("histogram", "unheard_of"),
]


@pytest.mark.parametrize(("name", "other"), OTHER_ENTRIES)
def test_another_entry_is_not_valid(folder, tmp_path, name, other):
    more = {"sort": {"descending": False}, "permute": {"order": [3, 0, 2, 1]}}.get(other, {})
    edit = lambda t: t | {"entry": other, "parameters": t["parameters"] | more}  # noqa: E731
    assert briefly(forged(folder(name), tmp_path / "f", target=edit)).verdict != "VALID"


OTHER_TARGETS = {
    "n": ("maximum", lambda t: retold(t, n=5)),
    "n of tokens": ("histogram", lambda t: retold(t, n=5)),
    "vocabulary": ("histogram", lambda t: retold(t, vocabulary=4)),
    "vocabulary, twice": ("histogram", lambda t: retold(t, vocabulary=4) | {"vocabulary": 4, "upper": [3.0] * 4}),
    "k": ("top_k", lambda t: retold(t, k=3)),
    "k and shape": ("top_k", lambda t: retold(t, k=3) | {"output_shape": [3]}),
    "order": ("permute", lambda t: retold(t, order=[2, 0, 1, 3])),
    "no order": ("permute", lambda t: retold(t, order=[2, 0, 2, 1])),
    "order of another kind": ("permute", lambda t: retold(t, order=2)),
    "by": ("shift", lambda t: retold(t, by=2)),
    "cyclic": ("shift", lambda t: retold(t, cyclic=True)),
    "descending": ("sort", lambda t: retold(t, descending=True)),
    "low": ("clip", lambda t: retold(t, low=-0.4)),
    "ends in the wrong order": ("clip", lambda t: retold(t, low=0.6)),
    "matrix": ("affine", lambda t: retold(t, matrix=[[1.0, 2.5, -0.3], [0.1, 0.0, 0.9]])),
    "no matrix": ("affine", lambda t: retold(t, matrix=[[1.0, 2.5], [0.1, 0.0, 0.9]])),
    "matrix of another kind": ("affine", lambda t: retold(t, matrix=3)),
    "offset": ("affine", lambda t: retold(t, offset=[1.0, 0.2])),
    "dtype": ("maximum", lambda t: retold(t, dtype="float32")),
    "domain of the parameters": ("maximum", lambda t: retold(t, domain=[0.0, 2.0])),
    "tolerance of the parameters": ("maximum", lambda t: retold(t, tolerance=1e-9)),
    "parameters": ("maximum", lambda t: t | {"parameters": None}),
    "one more": ("maximum", lambda t: t | {"parameters": t["parameters"] | {"by": 1}}),
    "none": ("parity", lambda t: t | {"parameters": {}}),
    "decoding": ("histogram", lambda t: t | {"decoding": {"kind": "zero", "labels": []}}),
    "labels": ("copy_where", lambda t: t | {"decoding": {"kind": "largest", "labels": [3, 2, 1, 0]}}),
    "decoding of numbers": ("maximum", lambda t: t | {"decoding": {"kind": "round", "labels": []}}),
    "shape of the answers": ("copy_where", lambda t: t | {"output_shape": [4, 3]}),
    "condition": ("maximum", lambda t: t | {"within": "x1 > 2"}),
    "formula": ("maximum", lambda t: t | {"formula": "max(x1, x2, x3, x4)"}),
    "names": ("parity", lambda t: t | {"names": 5}),
}


@pytest.mark.parametrize("case", OTHER_TARGETS)
def test_another_target_is_not_valid(folder, tmp_path, case):
    name, edit = OTHER_TARGETS[case]
    assert briefly(forged(folder(name), tmp_path / "f", target=edit)).verdict != "VALID"


@pytest.mark.parametrize("name", ["maximum", "sort", "running_max", "mean", "clip"])
def test_a_wider_domain_is_not_valid(folder, tmp_path, name):
    """Codes hide tokens, and rounding is bounded, on the domain alone."""
    text = "[-1e9, 1e9]"

    def target(t):
        n = len(t["names"])
        sides = {"lower": [-1e9] * n, "upper": [1e9] * n, "ends": [["-1e9", "1e9"]] * n}
        return retold(t, domain=[-1e9, 1e9]) | sides

    n = len(json.loads((folder(name) / "target.json").read_text())["names"])
    said = f"x1, …, x{n} in {text}" if n > 3 else ", ".join(f"x{i + 1} in {text}" for i in range(n))
    found = briefly(forged(folder(name), tmp_path / "f", lambda r: r | {"domain": said}, target))
    assert found.verdict != "VALID"
    assert "different domains" not in found.reason


def test_other_claims_are_not_confirmed(folder, tmp_path):
    slope = {"tolerance": 1.0, "bound": 1.0, "observed": 0.0}
    for n, (name, edit) in enumerate(
        [
            ("maximum", {"slope": slope}),
            ("histogram", {"slope": slope}),
            ("histogram", {"lower": 1e-15}),
            ("histogram", {"domain": "all sequences of 5 tokens out of 3"}),
            ("parity", {"norm": "mean absolute difference"}),
            ("maximum", {"properties": [{"text": "symmetric", "verdict": "PROVED"}]}),
        ]
    ):
        assert briefly(forged(folder(name), tmp_path / str(n), lambda r, edit=edit: r | edit)).verdict != "VALID"


def test_ranks_are_read_only_from_all_sets(folder, tmp_path):
    """One head of a rank that is a little sharper than the others: the lemma about their sum does not hold for it."""

    def edit(tensors):
        tensors["W_K"][-1] *= 1 + 2.0**-20

    found = briefly(forged(folder("sort"), tmp_path / "f", weights=edit))
    assert found.verdict == "NOT CHECKABLE", str(found)


def test_too_many_sets_are_not_checkable(tmp_path):
    assert briefly(gallery.sort(9).save(tmp_path / "f")).verdict == "NOT CHECKABLE"
    assert checker.SETS < 2**9 - 1
