"""The independent checker on functions of sets: every true folder is VALID, and nothing false is."""

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
from onelayer.construction.set_functions.aggregates import parse_set
from onelayer.construction.set_functions.construction import answers_of

briefly = partial(check, seconds=5)

SETS = {  # name → (formula, options)
    "max": ("max(x)", {"tolerance": 1e-6}),
    "range": ("max(x) - min(x)", {"domain": (-1.0, 3.0)}),
    "max of exp": ("max(exp(-x))", {}),
    "mean": ("mean(x)", {"domain": (-2.0, 1.0)}),
    "mean of sin": ("mean(sin(x))", {"domain": (0.0, 3.0)}),
    "mean of abs": ("3 - 2*mean(abs(x - 0.3))", {}),
    "root": ("sqrt(mean(x^2))", {"domain": (0.25, 1.0), "tolerance": 1e-2}),
    "variance": ("mean(x^2) - mean(x)^2", {}),
    "log of a sum": ("log(1 + sum(x))", {"tolerance": 1e-2}),
    "exp of a sum": ("exp(-sum(x^2))", {"tolerance": 1e-2}),
    "centred": ("x - mean(x)", {"domain": (-1.0, 1.0), "tolerance": 1e-4}),
    "distance": ("abs(x - mean(x))", {"tolerance": 1e-4}),
    "softmax like": ("exp(x - max(x))", {"tolerance": 1e-2}),
    "midrange": ("max(x)*min(x)", {"tolerance": 1e-2}),
    "two averages": ("mean(x^2)*mean(x)", {"tolerance": 2e-2}),
}
SINGLE = {"root": 5e-2, "exp of a sum": 5e-2, "max": 1e-3, "range": 1e-3, "two averages": 0.2}
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])


def built(name, dtype="float64", **more):
    formula, own = SETS[name]
    loose = {"tolerance": SINGLE[name]} if dtype == "float32" and name in SINGLE else {}
    return ol.set_function(formula, **{"longest": 9, "tolerance": 1e-3} | own | loose | more, dtype=dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folders of functions, built when first asked for."""
    root, made = tmp_path_factory.mktemp("sets"), {}

    def of(name, dtype="float64"):
        if (name, dtype) not in made:
            made[name, dtype] = built(name, dtype).save(root / f"{name}-{dtype}".replace(" ", "-"))
        return made[name, dtype]

    return of


def observed(folder):
    """The largest error of the stored layer at many sets of all sizes."""
    layer, worst = ol.load(folder), 0.0
    target = json.loads((folder / "target.json").read_text())
    (low, high), rng, answers = target["ends"], np.random.default_rng(0), answers_of(parse_set(target["text"]))
    for n in range(1, target["longest"] + 1):
        unit = rng.random((240, n))
        unit[40:80], unit[80:120] = np.round(unit[40:80]), unit[:40, :1]
        unit[120:160] = np.clip(unit[:40, :1] + unit[:40] * 1e-3, 0, 1)
        unit[160:200] = np.where(np.arange(n) == 0, unit[:40, :1], unit[:40, 1:2] if n > 1 else unit[:40, :1])
        x = np.clip(low + (high - low) * unit, low, high)
        x = x.astype(np.float32).astype(np.float64) if layer.model.W_E.dtype == torch.float32 else x
        x = x[((x >= low) & (x <= high)).all(1)]
        found = layer.values(torch.from_numpy(x))
        with np.errstate(all="ignore"):
            error = np.abs(found - answers(x).reshape(found.shape)).max()
        worst = max(worst, float(error) if np.isfinite(error) else np.inf)
    return worst


@pytest.mark.one_in(3)
@DTYPES
@pytest.mark.parametrize("name", SETS)
def test_every_set_function_is_valid(folder, name, dtype):
    found = check(folder(name, dtype))
    assert found.verdict == "VALID", str(found)
    assert found.bound <= json.loads((folder(name, dtype) / "certificate.json").read_text())["bound"]
    assert observed(folder(name, dtype)) <= found.bound + 1e-15


OTHERS = [
    ("max(x)", {"longest": 1}),
    ("max(x)", {"longest": 1000, "domain": (-1e6, 1e6), "tolerance": 1.0}),
    ("x - mean(x)", {"longest": 100, "domain": (1e-3, 2e-3), "tolerance": 1e-12}),
    ("mean(x^2) + log(2 + max(x)) + x*0", {"longest": 5}),
    ("log(1 + sum(x)) + mean(cos(3*x)) - min(x)", {"longest": 50, "tolerance": 1e-2}),
    ("sum(x)/7 - sum(x^2)", {"longest": 6}),
    ("log(mean(exp(3*x)))", {"longest": 100}),
    ("sqrt(mean(x^2))", {"longest": 1000}),
    ("x*exp(-mean(x))", {"longest": 100, "tolerance": 5e-3}),
    ("max(x, 0.5)*2 - min(exp(x))", {"longest": 10}),
    ("log(mean(x) + 1) + mean(x)*max(x)", {"longest": 20, "tolerance": 1e-2}),
]


@pytest.mark.long
@pytest.mark.parametrize(("formula", "options"), OTHERS)
def test_other_formulas_are_valid_or_refused_by_the_engine(tmp_path, formula, options):
    try:
        layer = ol.set_function(formula, **options)
    except ol.InputError:
        return
    found = check(layer.save(tmp_path / "f"))
    assert found.verdict == "VALID", str(found)


def tampered(source, tmp_path, changes, count=2):
    """The verdicts on folders with one number changed, in every tensor; what is VALID holds at all sets that are tried."""
    verdicts, bound = [], json.loads((source / "certificate.json").read_text())["bound"]
    for key, tensor in load_file(source / "model.safetensors").items():
        for place, by in itertools.product([int(tensor.abs().argmax()), tensor.numel() - 1][:count], changes):

            def edit(tensors, key=key, place=place, by=by):
                tensors[key].view(-1)[place] += by

            changed = forged(source, tmp_path / str(len(verdicts)), weights=edit)
            verdicts.append(briefly(changed).verdict)
            if verdicts[-1] == "VALID":
                assert observed(changed) <= bound, (key, place, by)
    return verdicts


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", SETS)
def test_a_changed_weight_is_valid_only_if_it_does_not_matter(folder, tmp_path, name):
    found = tampered(folder(name), tmp_path, (1.0,), 1)
    assert found.count("VALID") < len(found) / 2
    assert "INVALID" in found


@pytest.mark.long
@DTYPES
@pytest.mark.parametrize("name", SETS)
def test_small_and_large_changes_are_valid_only_if_they_do_not_matter(folder, tmp_path, name, dtype):
    tampered(folder(name, dtype), tmp_path, (-0.5, 2.0**-20, 3e-3, 800.0), 1)


@pytest.mark.one_in(4)
@DTYPES
@pytest.mark.parametrize("name", SETS)
def test_answers_moved_by_more_than_twice_the_bound_are_not_valid(folder, tmp_path, name, dtype):
    """|T + 2.1·bound − f| > bound everywhere, as |T − f| ≤ bound."""
    bound = json.loads((folder(name, dtype) / "certificate.json").read_text())["bound"]

    def edit(tensors):
        tensors["b_R"] += 2.1 * bound

    assert briefly(forged(folder(name, dtype), tmp_path / "f", weights=edit)).verdict != "VALID"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", SETS)
def test_what_is_false_by_far_is_invalid(folder, tmp_path, name):
    def edit(tensors):
        tensors["b_R"] += 0.5

    assert briefly(forged(folder(name), tmp_path / "f", weights=edit)).verdict == "INVALID"


@pytest.mark.parametrize(
    "name", ["max", "mean of sin", "root", "log of a sum", "softmax like", "variance", "two averages"]
)
def test_a_bound_below_the_truth_is_not_valid(folder, tmp_path, name):
    below = observed(folder(name)) * 0.9
    found = briefly(forged(folder(name), tmp_path / "f", lambda r: r | {"bound": below, "observed": 0.0}))
    assert found.verdict != "VALID"


def retold(t, **new):
    """Another task, with the parameters that repeat it."""
    t = t | {k: v for k, v in new.items() if k in t}
    own = {"formula": t["text"], "longest": t["longest"], "domain": t["ends"]}
    return t | {"parameters": t["parameters"] | own}


OTHER_FORMULAS = {
    "max": ["min(x)", "mean(x)", "max(x) + 2e-6", "max(x^2)", "sum(x)", "max(abs(x - 0.3))"],
    "mean": ["max(x)", "mean(x)*1.001", "mean(x^3)", "sum(x)"],
    "mean of sin": ["sin(mean(x))", "mean(cos(x))", "max(sin(x))", "sum(sin(x))", "mean(sin(x)) + 0.002"],
    "root": ["sqrt(mean(x))", "mean(x^2)", "sqrt(sum(x^2))", "sqrt(mean(x^3))"],
    "variance": ["mean(x^2) - max(x)^2", "mean(x^2) - mean(x^2)^2", "mean(x^2) - mean(x)", "mean(x^2)"],
    "log of a sum": ["log(1 + mean(x))", "log(1 + sum(x^2))", "log(2 + sum(x))", "sum(x)"],
    "centred": ["x - max(x)", "mean(x) - x", "x - sum(x)", "x - mean(x^3)", "x"],
    "distance": ["abs(x - max(x))", "x - mean(x)", "abs(2*x - mean(x))", "abs(x + mean(x))"],
    "two averages": ["mean(x^2)*max(x)", "mean(x)^2", "mean(x^3)*mean(x)"],
}


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in OTHER_FORMULAS.items() for t in texts])
def test_another_formula_is_not_valid(folder, tmp_path, name, text):
    found = briefly(forged(folder(name), tmp_path / "f", target=lambda t: retold(t, text=text)))
    assert found.verdict != "VALID", str(found)


def test_a_mean_at_every_position_is_not_taken_for_the_number_there(tmp_path):
    """A layer that says x − x² at every position does not say x − mean(x²)."""
    layer = ol.set_function("x - mean(x) - 0.1*x^2", longest=5)
    edit = lambda t: retold(t, text="x - mean(x) - 0.1*mean(x^2)")  # noqa: E731
    found = check(forged(layer.save(tmp_path / "f"), tmp_path / "g", target=edit))
    assert found.verdict == "INVALID", str(found)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", SETS)
def test_larger_sets_are_not_valid(folder, tmp_path, name):
    edit = lambda t: retold(t, longest=t["longest"] + 1)  # noqa: E731
    said = lambda r: r | {"domain": r["domain"].replace("n ≤ 9 ", "n ≤ 10 ")}  # noqa: E731
    assert briefly(forged(folder(name), tmp_path / "f", said, edit)).verdict == "INVALID"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", SETS)
def test_another_interval_is_valid_only_where_the_bound_holds(folder, tmp_path, name):
    """Linear functions go on beyond the interval they were made for; others do not."""
    edit = lambda t: retold(t, ends=[-7.0, 9.0])  # noqa: E731
    said = lambda r: r | {"domain": "all n ≤ 9 and all x in [-7, 9]^n"}  # noqa: E731
    other = forged(folder(name), tmp_path / "f", said, edit)
    found = briefly(other)
    assert "different sequences" not in found.reason
    if name not in ("mean", "centred", "distance", "mean of abs", "max", "range"):
        assert found.verdict != "VALID"
    if found.verdict == "VALID":
        assert observed(other) <= found.bound


@pytest.mark.parametrize("flag", ["causal", "any_length", "residual"])
@pytest.mark.parametrize("name", ["max", "root", "centred"])
def test_other_masks_are_not_valid(folder, tmp_path, name, flag):
    copy = forged(folder(name), tmp_path / "f")
    path = copy / "model.safetensors"
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
    config = json.loads(about["config"])
    about["config"] = json.dumps(config | {flag: not config[flag]})
    save_file(load_file(path), path, metadata=about)
    assert briefly(forged(copy, tmp_path / "g")).verdict != "VALID"


@pytest.mark.parametrize("edit", [{"tolerance": 1.0}, {"dtype": "float32"}, {"longest": 99}, {"domain": [0, 2]}])
def test_parameters_that_say_something_else_are_not_confirmed(folder, tmp_path, edit):
    change = lambda t: t | {"parameters": t["parameters"] | edit}  # noqa: E731
    assert briefly(forged(folder("max"), tmp_path / "f", target=change)).verdict == "INVALID"


def test_formulas_are_read_like_the_engine_reads_them():
    """The value of a formula at a set, in balls and in double precision."""
    x = [0.3, 0.75, 0.1]
    for name, (text, _) in SETS.items():
        f = parse_set(text)
        own = {"formula": text, "longest": 3, "tolerance": 1.0, "dtype": "float64", "domain": [0.0, 1.0]}
        target = {"text": text, "longest": 3, "ends": [0.0, 1.0], "entry": "", "outputs": 1, "decoding": None}
        target |= {"parameters": own, "answer": "position" if f.each else "whole"}
        right = (
            np.broadcast_to(answers_of(f)(np.array([x])).reshape(-1), (3,))
            if not f.each
            else answers_of(f)(np.array([x]))[0]
        )
        for i in range(3):
            assert abs(float(checker.set_value(target, x, i)) - right[i]) < 1e-14, name
