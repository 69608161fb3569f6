"""The independent checker on sequences of any length: every true folder is VALID, and nothing false is."""

import itertools
import json
from functools import partial

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import onelayer as ol
from checking import check, checker, forged
from onelayer.construction.gallery.any_length.brackets import Balanced, Depth
from onelayer.construction.gallery.any_length.induction import Induction
from onelayer.construction.gallery.any_length.listed_functions import ListedComposition
from onelayer.construction.gallery.any_length.recall import LookUp, PairedReverse
from onelayer.construction.gallery.any_length.token_layers import SignMajority
from onelayer.construction.gallery.tokens import CopyWhere, FirstOccurrence, Histogram
from onelayer.target.ngram import NGram

any_length, briefly = ol.gallery.any_length, partial(check, seconds=5)
TEXT = "to be or not to be, that is the question"


def running(pick):
    return lambda x: np.stack([pick(x[:, : i + 1]) for i in range(x.shape[1])], axis=1)


NUMBERS = {  # entry → (options, what it computes)
    "mean": ({"longest": 7, "domain": (-1.0, 3.0)}, lambda x: x.astype(np.longdouble).mean(1)),
    "running_mean": ({"longest": 7}, running(lambda x: x.astype(np.longdouble).mean(1))),
    "maximum": ({"longest": 7}, lambda x: x.max(1)),
    "minimum": ({"longest": 6, "domain": (-2.0, 3.0)}, lambda x: x.min(1)),
    "running_max": ({"longest": 9}, running(lambda x: x.max(1))),
    "shift": ({"longest": 9, "by": 2}, lambda x: np.pad(x, ((0, 0), (2, 0)))[:, : x.shape[1]]),
    "sort": ({"longest": 4}, lambda x: np.sort(x, axis=1)),
}
TOKENS = {  # entry → the program
    "histogram": Histogram(6, 3),
    "majority": SignMajority(9),
    "first_occurrence": FirstOccurrence(6, 3),
    "copy_where": CopyWhere(4, 2),
    "look_up": LookUp(4, 2, 2),
    "reverse": PairedReverse(5, 3),
    "depth": Depth(8),
    "balanced": Balanced(8),
    "induction": Induction(6, 3),
    "composition": ListedComposition(6, 2),
}
ALL = [*NUMBERS, *TOKENS, "language"]
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])


def built(name, dtype="float64", **more):
    if name == "language":
        return ol.language(TEXT, longest=12, dtype=dtype, **{"tolerance": 1e-4} | more)
    own = NUMBERS[name][0] if name in NUMBERS else TOKENS[name].parameters
    own = {"longest" if k == "n" else k: v for k, v in own.items()}
    loose = {"tolerance": 1e-3} if name in ("maximum", "minimum", "running_max", "sort") and dtype == "float32" else {}
    return getattr(any_length, name)(**own | loose | more, dtype=dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folders of entries, built when first asked for."""
    root, made = tmp_path_factory.mktemp("sequences"), {}

    def of(name, dtype="float64"):
        if (name, dtype) not in made:
            made[name, dtype] = built(name, dtype).save(root / f"{name}-{dtype}")
        return made[name, dtype]

    return of


def observed(folder, name):
    """The largest error of the stored layer at all sequences of tokens, or at many of numbers."""
    layer, worst = ol.load(folder), 0.0
    tokens, rng = layer.description.vocabulary, np.random.default_rng(0)
    if name == "language":
        ngram = NGram.of(TEXT, 3, "characters")
        longer = [rng.integers(tokens, size=n).tolist() for n in range(3, layer.longest + 1) for _ in range(4)]
        short = (itertools.product(range(tokens), repeat=n) for n in (1, 2))
        for context in itertools.chain(*short, longer):
            with np.errstate(all="ignore"):
                found = np.abs(layer.probabilities(context) - ngram.probabilities(context)).sum() / 2
            worst = max(worst, found if np.isfinite(found) else np.inf)
        return worst
    for n in range(1, layer.longest + 1):
        if tokens:
            x = np.array(list(itertools.product(range(tokens), repeat=n)), dtype=np.float64)
            right = TOKENS[name].answers(x.astype(np.int64))
        else:
            low, high = np.clip(layer.description.ends, -1e3, 1e3)
            unit = rng.random((300, n))
            unit[100:200], unit[200:] = np.round(unit[100:200]), np.clip(unit[:100, :1] + unit[:100] * 1e-6, 0, 1)
            x = np.clip(low + (high - low) * unit, low, high)
            x = x.astype(np.float32).astype(np.float64) if layer.model.W_E.dtype == torch.float32 else x
            right = NUMBERS[name][1](x)
        found = layer.values(torch.from_numpy(x)).astype(np.longdouble)
        error = np.abs(found - np.asarray(right).reshape(found.shape)).max()
        worst = max(worst, float(error) if np.isfinite(error) else np.inf)
    return worst


@pytest.mark.one_in(2)
@DTYPES
@pytest.mark.parametrize("name", ALL)
def test_every_entry_is_valid(folder, name, dtype):
    found = check(folder(name, dtype))
    assert found.verdict == "VALID", str(found)
    assert found.bound <= json.loads((folder(name, dtype) / "certificate.json").read_text())["bound"]
    assert observed(folder(name, dtype), name) <= found.bound


OTHERS = [
    ("mean", {"longest": 1}),
    ("maximum", {"longest": 1}),
    ("maximum", {"longest": 300, "domain": (-1e6, 1e6), "tolerance": 1.0}),
    ("running_max", {"longest": 200, "domain": (1e-3, 2e-3), "tolerance": 1e-9}),
    ("minimum", {"longest": 2, "domain": (-5.0, -3.0)}),
    ("shift", {"longest": 40, "by": -3}),
    ("shift", {"longest": 1, "by": 0}),
    ("sort", {"longest": 1}),
    ("sort", {"longest": 7, "domain": (-5.0, -3.0)}),
    ("histogram", {"longest": 60, "vocabulary": 5}),
    ("majority", {"longest": 200}),
    ("first_occurrence", {"longest": 60, "vocabulary": 26}),
    ("copy_where", {"longest": 60, "vocabulary": 26}),
    ("look_up", {"longest": 60, "keys": 1, "values": 5}),
    ("look_up", {"longest": 30, "keys": 7, "values": 1}),
    ("reverse", {"longest": 9, "vocabulary": 26}),
    ("depth", {"longest": 60}),
    ("balanced", {"longest": 33}),
    ("induction", {"longest": 9, "vocabulary": 5}),
    ("composition", {"longest": 12, "vocabulary": 4}),
    ("composition", {"longest": 5, "vocabulary": 4}),
    ("language", {"order": 2}),
]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("name", "options"), OTHERS)
def test_other_sizes_are_valid_too(tmp_path, name, options):
    found = check(built(name, **options).save(tmp_path / "f"))
    assert found.verdict == "VALID", str(found)


@pytest.mark.long
@pytest.mark.parametrize("name", [*NUMBERS, *TOKENS])
def test_default_sizes_are_valid(tmp_path, name):
    found = check(getattr(any_length, name)().save(tmp_path / "f"))
    assert found.verdict == "VALID", str(found)


def tampered(source, tmp_path, name, changes, count=2):
    """The verdicts on folders with one number changed, in every tensor; what is VALID holds at all inputs that are tried."""
    verdicts, bound = [], json.loads((source / "certificate.json").read_text())["bound"]
    for key, tensor in load_file(source / "model.safetensors").items():
        for place, by in itertools.product([int(tensor.abs().argmax()), tensor.numel() - 1][:count], changes):

            def edit(tensors, key=key, place=place, by=by):
                tensors[key].view(-1)[place] += by

            changed = forged(source, tmp_path / str(len(verdicts)), weights=edit)
            verdicts.append(briefly(changed).verdict)
            if verdicts[-1] == "VALID":
                assert observed(changed, name) <= bound, (key, place, by)
    return verdicts


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", ALL)
def test_a_changed_weight_is_valid_only_if_it_does_not_matter(folder, tmp_path, name):
    found = tampered(folder(name), tmp_path, name, (1.0,))
    assert found.count("VALID") < len(found) / 2
    assert "INVALID" in found or name == "language"


@pytest.mark.long
@DTYPES
@pytest.mark.parametrize("name", ALL)
def test_small_and_large_changes_are_valid_only_if_they_do_not_matter(folder, tmp_path, name, dtype):
    tampered(folder(name, dtype), tmp_path, name, (-0.5, 2.0**-20, 3e-5, 800.0))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [name for name in ALL if name != "shift"])
def test_a_bound_below_the_truth_is_not_valid(folder, tmp_path, name):
    below = observed(folder(name), name) / 2
    found = briefly(forged(folder(name), tmp_path / "f", lambda r: r | {"bound": below, "observed": 0.0}))
    assert found.verdict != "VALID"


def retold(**parameters):
    return lambda t: t | {"parameters": t["parameters"] | parameters}


def longer(t):
    return t | {"longest": t["longest"] + 1} | retold(longest=t["longest"] + 1)(t)


OTHER_TARGETS = {
    **{f"longer {name}": (name, longer) for name in ALL},
    **{f"longer parameters of {name}": (name, retold(longest=99)) for name in NUMBERS},
    "vocabulary": ("histogram", retold(vocabulary=4)),
    "keys": ("look_up", retold(keys=4, values=1)),
    "by": ("shift", retold(by=1)),
    "by, backwards": ("shift", retold(by=-2)),
    "one more": ("maximum", retold(by=1)),
    "none": ("depth", lambda t: t | {"parameters": {}}),
    "no parameters": ("mean", lambda t: t | {"parameters": None}),
    "decoding": ("histogram", lambda t: t | {"decoding": {"kind": "zero", "labels": []}}),
    "labels": ("reverse", lambda t: t | {"decoding": {"kind": "largest", "labels": [2, 1, 0]}}),
    "answer": ("mean", lambda t: t | {"answer": "position"}),
    "answer of a position": ("running_mean", lambda t: t | {"answer": "whole"}),
    "kind": ("mean", lambda t: t | {"kind": "set"}),
    "kind of text": ("histogram", lambda t: t | {"kind": "language"}),
    "words": ("mean", lambda t: t | {"words": ["a"]}),
    "a formula": ("maximum", lambda t: t | {"formula": "max(x1, x2)"}),
    "names": ("maximum", lambda t: t | {"names": ["x1"]}),
    "maximum, minimum": ("maximum", lambda t: t | {"entry": "minimum"}),
    "minimum, maximum": ("minimum", lambda t: t | {"entry": "maximum"}),
    "maximum, mean": ("maximum", lambda t: t | {"entry": "mean"}),
    "mean, maximum": ("mean", lambda t: t | {"entry": "maximum"}),
    "running_max, running_mean": ("running_max", lambda t: t | {"entry": "running_mean"}),
    "running_max, sort": ("running_max", lambda t: retold(tolerance=1e-6)(t) | {"entry": "sort"}),
    "sort, running_max": ("sort", lambda t: t | {"entry": "running_max", "parameters": {"longest": 4}}),
    "histogram, first_occurrence": ("histogram", lambda t: t | {"entry": "first_occurrence"}),
    "first_occurrence, histogram": ("first_occurrence", lambda t: t | {"entry": "histogram"}),
    "induction, composition": ("induction", lambda t: t | {"entry": "composition"}),
    "composition, induction": ("composition", lambda t: t | {"entry": "induction"}),
    "depth, balanced": ("depth", lambda t: t | {"entry": "balanced", "decoding": {"kind": "zero", "labels": []}}),
    "balanced, depth": ("balanced", lambda t: t | {"entry": "depth", "decoding": {"kind": "round", "labels": []}}),
    "depth, histogram": ("depth", lambda t: retold(vocabulary=2)(t) | {"entry": "histogram"}),
    "unheard of": ("histogram", lambda t: t | {"entry": "unheard_of"}),
    "order": ("language", retold(order=2)),
    "no counts": ("language", lambda t: t | {"parameters": {"order": 3, "tokens": "characters", "counts": ""}}),
    "counts of nothing": ("language", retold(followers={})),
    "counts that are no numbers": ("language", retold(followers={"": "1:x"})),
    "counts of unknown tokens": ("language", retold(followers={"": "99:1"})),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", OTHER_TARGETS)
def test_another_target_is_not_valid(folder, tmp_path, case):
    name, edit = OTHER_TARGETS[case]
    record = json.loads((folder(name) / "certificate.json").read_text())
    n = json.loads((folder(name) / "target.json").read_text())["longest"]
    said = record["domain"].replace(f"n ≤ {n} ", f"n ≤ {n + 1} ") if case.startswith("longer") else record["domain"]
    found = briefly(forged(folder(name), tmp_path / "f", lambda r: r | {"domain": said}, edit))
    assert found.verdict != "VALID", str(found)


def test_other_counts_are_invalid(folder, tmp_path):
    followers = json.loads((folder("language") / "target.json").read_text())["parameters"]["followers"]
    context = next(k for k, v in followers.items() if " " in k and " " in v)
    other = followers | {context: followers[context].replace(":1", ":2", 1)}
    found = briefly(forged(folder("language"), tmp_path / "f", target=retold(followers=other)))
    assert found.verdict == "INVALID", str(found)


@pytest.mark.parametrize("name", ["maximum", "mean", "sort", "minimum"])
def test_a_wider_domain_is_not_valid(folder, tmp_path, name):
    edit = lambda t: t | {"ends": [-1e9, 1e9]}  # noqa: E731
    said = f"all n ≤ {json.loads((folder(name) / 'target.json').read_text())['longest']} and all x in [-1e9, 1e9]^n"
    said = said.replace("1e9", "1000000000")
    found = briefly(forged(folder(name), tmp_path / "f", lambda r: r | {"domain": said}, edit))
    assert found.verdict != "VALID"
    assert "different sequences" not in found.reason


@pytest.mark.parametrize("name", ["shift", "maximum"])
def test_numbers_whose_sums_may_overflow(folder, tmp_path, name):
    """Beside the number that is moved, units may add up many, and ∞·0 is no number."""
    longest = json.loads((folder(name) / "target.json").read_text())["longest"]
    edit = lambda t: t | {"ends": [-1.5e308, 1.5e308]}  # noqa: E731
    said = f"all n ≤ {longest} and all x in [-1.5e+308, 1.5e+308]^n"
    found = briefly(forged(folder(name), tmp_path / "f", lambda r: r | {"domain": said}, edit))
    assert (found.verdict, found.reason) == ("NOT CHECKABLE", "numbers may overflow")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("flag", ["causal", "any_length", "residual"])
def test_other_masks_are_not_valid(folder, tmp_path, name, flag):
    """A causal flag that is turned, where it matters; a layer of one length; a residual connection."""
    layer = ol.load(folder(name))
    if flag == "causal" and layer.model.config.readout == "output":
        return
    copy = forged(folder(name), tmp_path / "f")
    path = copy / "model.safetensors"
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
    config = json.loads(about["config"])
    about["config"] = json.dumps(config | {flag: not config[flag]})
    save_file(load_file(path), path, metadata=about)
    found = briefly(forged(copy, tmp_path / "g"))
    assert found.verdict != "VALID", str(found)
    if flag == "any_length":
        assert found.verdict == "INVALID"


def test_what_is_false_by_far_is_invalid(folder, tmp_path):
    """Weights that make the answers wrong by a tenth or more, where every sequence shows it."""

    def halved(tensors):
        tensors["W_R"] *= 0.5

    for name in [n for n in ALL if n not in ("language", "balanced")]:
        changed = forged(folder(name), tmp_path / name, weights=halved)
        assert observed(changed, name) > 0.1
        found = briefly(changed)
        assert found.verdict == "INVALID", f"{name}: {found}"


def test_other_claims_are_not_confirmed(folder, tmp_path):
    slope = {"tolerance": 1.0, "bound": 1.0, "observed": 0.0}
    edits = [{"slope": slope}, {"lower": 1e-300}, {"norm": "mean absolute difference"}, {"margin": 0.1}]
    edits += [{"domain": "all n ≤ 99 and all x in [0, 1]^n"}, {"witness": [0.0], "verdict": "REFUTED"}]
    for n, (name, edit) in enumerate(itertools.product(["maximum", "histogram", "language"], edits)):
        assert briefly(forged(folder(name), tmp_path / str(n), lambda r, edit=edit: r | edit)).verdict != "VALID"


def test_the_definitions_are_those_of_the_gallery():
    """What the checker says that an entry computes, at all short sequences."""
    for name, program in TOKENS.items():
        own = {k: v for k, v in program.parameters.items() if k != "n"}
        x = np.array(list(itertools.product(range(program.tokens), repeat=4)))
        right = program.answers(x).reshape(len(x), -1)
        width = right.shape[1] if name == "majority" else right.shape[1] // 4
        about = checker.Program(name, own, width, program.tokens, program.n, True)
        rows = [
            [float(v) for i in range(1 if name == "majority" else 4) for v in about.right(s, i)] for s in x.tolist()
        ]
        assert np.abs(np.array(rows) - right).max() < 1e-12, name
