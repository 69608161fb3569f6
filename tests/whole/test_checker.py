"""The independent checker: it confirms true certificates, refutes false ones, and shares nothing with the library."""

import ast
import json
import math
import shutil
import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import onelayer as ol
from cases import built, loud, plain_config, random_layer, random_model
from checking import SOURCE, by_hand, check, checker, forged, numbers
from exact import exact_model, within
from onelayer.approximation import Approximation
from onelayer.layer.facts import Facts
from onelayer.layer.heads import Gates, Hinges, Maxima
from onelayer.layer.layer import gate_layer
from onelayer.layer.reading import form_of_model
from onelayer.proof.certificate import Certificate

LINES = 5_700  # the whole checker, docstrings and all: one file to read

SQUARE = [(0, 1)] * 2
TRUE = {
    "gates": ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-4, {"construction": "gates"}),
    "memory": ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-4, {"construction": "memory"}),
    "product": ("exp(-x1)*cos(3*x2)", SQUARE, 1e-4, {}),
    "runge": ("1/(1+25*x1**2)", [(-1, 1)], 1e-4, {}),
    "two outputs": ("x1*x2; x1-x2**2", SQUARE, 1e-3, {}),
    "wide": ("x1*x2; x1-x2**2", SQUARE, 1e-2, {"layout": "wide", "construction": "gates"}),
    "wide, two places": ("x1*x2; x1-x2**2", SQUARE, 1e-2, {"layout": "wide", "shape": (2, 1), "output_shape": (2, 1)}),
    "heads, two places": (
        "x1*x2; x1-x2**2",
        SQUARE,
        1e-2,
        {"layout": "heads", "shape": (2, 1), "output_shape": (2, 1)},
    ),
    "representative": ("sin(x1)*x2", SQUARE, 0.4, {"method": "representative"}),
    "representative kink": ("abs(x1-0.5)", [(0, 1)], 0.1, {"method": "representative"}),
    "additive": (" + ".join(f"sin({i}*x{i})" for i in range(1, 9)), [(0, 1)] * 8, 3e-2, {}),
    "far from 0": ("sin(x1)", [(1e6, 1e6 + 1)], 1e-3, {}),
    "decimal ends": ("exp(t)", {"t": (0.1, 0.7)}, 1e-3, {}),
    "float32": ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-3, {"dtype": "float32", "method": "solved"}),
    "float32 memory": ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-3, {"dtype": "float32", "construction": "memory"}),
    "float32 bump": ("exp(-4*(x1-0.4)**2-4*(x2-0.5)**2)", SQUARE, 3e-3, {"dtype": "float32", "construction": "memory"}),
    "float32 wide": ("x1*x2; x1-x2**2", SQUARE, 1e-2, {"dtype": "float32", "layout": "wide", "construction": "gates"}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of true certificates, built when first asked for."""
    root, made = tmp_path_factory.mktemp("folders"), {}

    def folder(name):
        if name not in made:
            formula, domain, tolerance, options = TRUE[name]
            made[name] = ol.build(formula, domain, tolerance, **options).save(root / name.replace(" ", "-"))
        return made[name]

    return folder


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", TRUE)
def test_a_true_certificate_is_valid(folders, name):
    folder = folders(name)
    found, record = check(folder), json.loads((folder / "certificate.json").read_text())
    assert record["verdict"] == "CERTIFIED"
    assert found.verdict == "VALID", str(found)
    assert found.bound <= record["bound"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["gates", "additive", "memory", "runge", "two outputs"])
def test_its_own_bound_is_close_to_the_truth(folders, tmp_path, name):
    """The same folder with other claims: just below what is observed it is refuted."""
    observed = json.loads((folders(name) / "certificate.json").read_text())["observed"]
    low = forged(
        folders(name), tmp_path / "low", lambda r: r | {"bound": 0.999 * observed, "observed": 0.0, "lower": 0.0}
    )
    found = check(low)
    assert found.verdict == "INVALID"
    assert "above the claimed" in found.reason
    assert found.box is not None


def nudge(name, by):
    def edit(tensors):
        flat = tensors[name].flatten()
        flat[int(flat.abs().argmax())] += by

    return edit


EDITS = {
    "bound": {"certificate": lambda r: r | {"bound": r["bound"] / 2, "observed": 0.0}},
    "tolerance": {"certificate": lambda r: r | {"tolerance": r["bound"] / 2}},
    "verdict": {"certificate": lambda r: r | {"verdict": "REFUTED"}},
    "observed": {"certificate": lambda r: r | {"observed": 2 * r["bound"]}},
    "formula": {"target": lambda t: t | {"formula": t["formula"] + " + 0.001"}},
    "name": {"target": lambda t: t | {"names": ["x2", "y"]}},
    "wider domain": {"target": lambda t: t | {"upper": [t["upper"][0] * 1.5, t["upper"][1]]}},
    "narrower domain": {"target": lambda t: t | {"upper": [t["upper"][0] / 2, t["upper"][1]]}},
    "ends": {"target": lambda t: t | {"ends": [["0", "7"], t["ends"][1]]}},
    "swapped": {"target": lambda t: t | {"lower": t["upper"], "upper": t["lower"]}},
    "one value": {"weights": nudge("W_V", 1e-3)},
    "one key": {"weights": lambda t: t["W_K"][0, 0].mul_(1.01)},
    "normalisation": {"weights": nudge("scale", 1e-3)},
    "read-out": {"weights": nudge("W_R", 1e-3)},
    "idle unit": {"weights": lambda t: (t["W_1"].fill_(1.0), t["W_2"].fill_(1e-3))},  # it sees what heads have written
    "places": {"target": lambda t: t | {"output_shape": [2]}},
    "domain text": {"certificate": lambda r: r | {"domain": r["domain"].replace("2*pi", "3*pi")}},
    "margin": {"certificate": lambda r: r | {"margin": 0.1}},
}
SINGLE = {  # of a float32 folder: its claim is mostly rounding, so the edits are larger
    "bound": {"certificate": lambda r: r | {"bound": 0.5 * r["observed"], "observed": 0.0}},
    "formula": EDITS["formula"],
    "arithmetic": {"certificate": lambda r: r | {"arithmetic": "float64"}},
    "one value": {"weights": nudge("W_V", 1e-2)},
    "one key": {"weights": lambda t: t["W_K"][0, 0].mul_(1.05)},
    "normalisation": EDITS["normalisation"],
    "read-out": EDITS["read-out"],
}


@pytest.mark.parametrize("stale", [True, False], ids=["stale digests", "fitting digests"])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_found(folders, tmp_path, edit, stale):
    seconds = 3.0 if edit == "idle unit" else 60.0  # a layer that is no sum of heads any more takes long
    found = check(forged(folders("gates"), tmp_path / "f", **EDITS[edit], stale=stale), seconds=seconds)
    expected = ("INVALID", "NOT CHECKABLE") if edit == "idle unit" and not stale else ("INVALID",)
    assert found.verdict in expected, str(found)
    assert ("digest" in found.reason or "other weights" in found.reason) == stale
    assert "\n" not in found.reason


CARRIED = [("W_R", 0), ("W_R", -1), ("b_R", 0), ("W_E", 0), ("b_E", -1), ("b_2", 0), ("b_2", -1)]


@pytest.mark.parametrize("name", ["memory", "runge"])
@pytest.mark.parametrize(("tensor", "row"), CARRIED)
def test_an_edit_of_what_the_residual_stream_carries_is_found(folders, tmp_path, name, tensor, row):
    """x, the code and the outputs stand in the stream, and the read-out holds the linear part."""
    edit = {"weights": lambda t: t[tensor][row].add_(1e-2)}
    found = check(forged(folders(name), tmp_path / "f", **edit), seconds=60.0)
    assert found.verdict == "INVALID", str(found)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["float32", "float32 memory"])
@pytest.mark.parametrize("edit", SINGLE)
def test_an_edit_of_a_float32_folder_is_found(folders, tmp_path, edit, name):
    found = check(forged(folders(name), tmp_path / "f", **SINGLE[edit]), seconds=60.0)
    assert found.verdict == "INVALID", str(found)


def test_a_claim_below_the_rounding_is_not_confirmed(folders, tmp_path):
    """Between the largest error of T itself and that plus all rounding nothing can be decided: the model may do better."""
    low = forged(folders("float32"), tmp_path / "f", lambda r: r | {"bound": 1.5 * r["observed"]})
    assert check(low).verdict == "NOT CHECKABLE"


def test_a_looser_claim_is_still_true(folders, tmp_path):
    loose = forged(folders("runge"), tmp_path / "f", lambda r: r | {"bound": r["tolerance"]})
    assert check(loose).verdict == "VALID"


def test_undecided_and_callables_are_not_checkable(folders, tmp_path):
    folder = forged(folders("runge"), tmp_path / "f", lambda r: r | {"bound": None, "verdict": "UNDECIDED"})
    assert check(folder).verdict == "NOT CHECKABLE"
    folder = ol.build(lambda x: x[:, 0], [(0, 1)], 0.5, method="representative", lipschitz=1.0).save(tmp_path / "g")
    assert json.loads((folder / "certificate.json").read_text())["verdict"] == "CERTIFIED"
    assert "callable" in check(folder).reason


def test_a_witness_is_checked(folders, tmp_path):
    def claim(tolerance, x):
        return lambda r: r | {"tolerance": tolerance, "witness": x, "verdict": "REFUTED", "bound": None}

    observed = json.loads((folders("runge") / "certificate.json").read_text())["observed"]
    x = np.linspace(-1, 1, 2001)
    worst = float(x[np.abs(ol.load(folders("runge"))(x) - 1 / (1 + 25 * x**2)).argmax()])
    good = forged(folders("runge"), tmp_path / "good", claim(0.9 * observed, [worst]))
    assert check(good).verdict == "VALID"
    for name, (tolerance, point) in {
        "bad": (2 * observed, [worst]),
        "out": (0.9 * observed, [1.5]),
        "no": (1e-9, ["x"]),
    }.items():
        assert check(forged(folders("runge"), tmp_path / name, claim(tolerance, point))).verdict == "INVALID"


HOSTILE = {
    "empty": lambda d: (d / "model.safetensors").write_bytes(b""),
    "huge header": lambda d: (d / "model.safetensors").write_bytes(struct.pack("<Q", 2**63) + b"{}"),
    "header is a list": lambda d: (d / "model.safetensors").write_bytes(struct.pack("<Q", 2) + b"[]"),
    "no tensors": lambda d: (d / "model.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}"),
    "far away": lambda d: (d / "model.safetensors").write_bytes(tensor_file([0, 2**39], b"")),
    "odd entry": lambda d: (d / "model.safetensors").write_bytes(tensor_file("x", b"")),
    "no JSON": lambda d: (d / "target.json").write_text("{"),
    "deep JSON": lambda d: (d / "target.json").write_text("[" * 100_000),
    "NaN": lambda d: (d / "certificate.json").write_text('{"bound": NaN}'),
    "twice": lambda d: (d / "certificate.json").write_text('{"bound": 1, "bound": 2}'),
    "binary": lambda d: (d / "certificate.json").write_bytes(bytes(range(256))),
    "missing": lambda d: (d / "target.json").unlink(),
}


def tensor_file(offsets, data):
    header = json.dumps({"W": {"dtype": "F64", "shape": [2**36], "data_offsets": offsets}}).encode()
    return struct.pack("<Q", len(header)) + header + data


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_get_one_line(folders, tmp_path, name):
    folder = shutil.copytree(folders("runge"), tmp_path / "f")
    HOSTILE[name](folder)
    found = check(folder)
    assert found.verdict == "INVALID"
    assert "\n" not in found.reason
    assert len(found.reason) < 200


def set_number(name, number):
    def edit(tensors):
        tensors[name].view(-1)[0] = number

    return edit


SENSELESS = {
    "nan weight": {"weights": set_number("W_V", math.nan)},
    "infinite weight": {"weights": set_number("b_1", math.inf)},
    "zero scale": {"weights": set_number("scale", 0.0)},
    "missing tensor": {"weights": lambda t: t.pop("W_O")},
    "extra tensor": {"weights": lambda t: t.update(W_X=torch.zeros(1, dtype=torch.float64))},
    "other shape": {"weights": lambda t: t.update(b_R=torch.zeros(2, dtype=torch.float64))},
    "schema": {"certificate": lambda r: r | {"schema": 99}},
    "text bound": {"certificate": lambda r: r | {"bound": "1"}},
    "negative bound": {"certificate": lambda r: r | {"bound": -1.0}},
    "true bound": {"certificate": lambda r: r | {"bound": True}},
    "float32": {"certificate": lambda r: r | {"arithmetic": "float32"}},
    "formula executes": {"target": lambda t: t | {"formula": "__import__('os').getcwd()"}},
    "formula is deep": {"target": lambda t: t | {"formula": "-" * 3000 + "x1"}},
    "formula explodes": {"target": lambda t: t | {"formula": "x1**9**9**9**9"}},
    "number explodes": {"target": lambda t: t | {"formula": "1e999999999*x1"}},
    "condition as value": {"target": lambda t: t | {"formula": "x1 < 2"}},
    "unknown name": {"target": lambda t: t | {"formula": "z"}},
    "many conditions": {"target": lambda t: t | {"formula": f"where({' and '.join(['x1 < 0.1'] * 400)}, 1, 2)"}},
    "pole": {"target": lambda t: t | {"formula": "1/x1"}},
    "undefined": {"target": lambda t: t | {"formula": "log(x1 - 2)"}},
    "no domain": {"target": lambda t: t | {"names": [], "lower": [], "upper": [], "ends": []}},
    "infinite domain": {"target": lambda t: t | {"upper": [1e300]}},
    "text domain": {"target": lambda t: t | {"upper": ["1"]}},
}


@pytest.mark.parametrize("name", SENSELESS)
def test_senseless_content_with_fitting_digests_is_never_valid(folders, tmp_path, name):
    found = check(forged(folders("runge"), tmp_path / "f", **SENSELESS[name]), seconds=2.0)
    assert found.verdict == ("NOT CHECKABLE" if name == "undefined" else "INVALID"), str(found)
    assert "\n" not in found.reason


def one_maximum(D, value, linear, bias, sharpness=1e5):
    s = Maxima(numbers(sharpness), torch.zeros(1, D, dtype=torch.float64), torch.ones(1, D, dtype=torch.bool))
    slope = numbers(*linear).reshape(D, 1) if linear else None
    return gate_layer(numbers(bias), D, maxima=(s, numbers([value])), linear=slope)


LAMBERT = {2: 0.278465, 3: 0.463923}  # W((n − 1)/e)


@pytest.mark.parametrize(("factor", "verdict"), [(1.01, "VALID"), (0.9, "NOT CHECKABLE"), (0.5, "NOT CHECKABLE")])
def test_sharp_maxima_are_kinks(tmp_path, factor, verdict):
    """|x1 − x2| = 2·max − x1 − x2 and max(x1, x2, x3), short by W/β: proved at once, and nothing below that."""
    layer = one_maximum(2, 2.0, [-1.0, -1.0], 0.0)
    folder = by_hand(tmp_path / "abs", "abs(x1-x2)", SQUARE, layer, factor * 2 * LAMBERT[2] / 1e5)
    found = check(folder, seconds=5.0)
    assert found.verdict == verdict
    layer = one_maximum(3, 1.0, None, 0.5)
    folder = by_hand(tmp_path / "max", "max(x1, max(x2, x3))", [(0, 1)] * 3, layer, factor * LAMBERT[3] / 1e5)
    found = check(folder, seconds=5.0)
    assert found.verdict == verdict
    assert found.boxes < 20 or verdict != "VALID"


def test_blunt_maxima_are_decided_both_ways(tmp_path):
    layer = one_maximum(2, 2.0, [-1.0, -1.0], 0.0, sharpness=20.0)
    short = 2 * LAMBERT[2] / 20
    assert check(by_hand(tmp_path / "true", "abs(x1-x2)", SQUARE, layer, 1.01 * short)).verdict == "VALID"
    assert check(by_hand(tmp_path / "false", "abs(x1-x2)", SQUARE, layer, 0.97 * short)).verdict == "INVALID"
    assert check(by_hand(tmp_path / "min", "-min(x1,x2)*2+x1+x2", SQUARE, layer, 1.01 * short)).verdict == "VALID"


@pytest.mark.parametrize(
    ("value", "bound", "verdict"), [(2.0, 1e-12, "VALID"), (2.001, 1.001e-3, "VALID"), (2.001, 9e-4, "INVALID")]
)
def test_hinges(tmp_path, value, bound, verdict):
    h = Hinges(numbers([1.0, -1.0]), numbers(0.0))
    layer = gate_layer(numbers(0.0), 2, linear=numbers([-1.0], [1.0]), hinges=(h, numbers([value])))
    assert check(by_hand(tmp_path / "f", "abs(x1-x2)", SQUARE, layer, bound)).verdict == verdict


def test_units_are_paired_once(tmp_path):
    """relu(d) − relu(−d) − relu(−d): the first two make d, the third is left over."""
    h = Hinges(numbers([1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]), numbers(0.0, 0.0, 0.0))
    layer = gate_layer(numbers(0.0), 2, hinges=(h, numbers([1.0], [-1.0], [-1.0])))
    formula = "max(x1-x2, 0) - 2*max(x2-x1, 0)"
    assert check(by_hand(tmp_path / "f", formula, SQUARE, layer, 1e-12)).verdict == "VALID"
    assert check(by_hand(tmp_path / "g", "2*x1 - 2*x2", SQUARE, layer, 0.5)).verdict == "INVALID"


def test_gates_at_a_kink_need_small_boxes(tmp_path):
    approx = ol.build("abs(x1-0.4)", [(0, 1)], 0.05, construction="gates")
    for factor, verdict in ((1.02, "VALID"), (0.98, "INVALID")):
        claim = replace(approx.certificate, bound=factor * approx.certificate.observed, observed=0.0)
        folder = replace(approx, certificate=claim).save(tmp_path / verdict)
        assert check(folder).verdict == verdict
    plane = ol.build("abs(x1-x2)", SQUARE, 0.05, construction="gates", units=9)
    claim = replace(plane.certificate, bound=1.5 * plane.certificate.observed, tolerance=0.1)
    assert check(replace(plane, certificate=claim).save(tmp_path / "plane")).verdict == "VALID"


FLAT = Gates(numbers(1.0), numbers([0.0]), torch.ones(1, 1, dtype=torch.bool))
ROOTS = [  # formula, what T = x̂ + ½ = x is off by
    ("sqrt(x1)", 0.25),
    ("x1**1.5", 0.1482),
    ("where(x1 < 0.5, 0, x1)", 0.5),
    ("max(x1, 0.5)", 0.5),
    ("min(max(x1, 0.2), 0.7)", 0.3),
    ("abs(abs(x1-0.5)-0.25)", 0.75),
    ("max(0, 1-abs(4*x1-2))", 1.0),
    ("abs(sin(6*x1)) + x1", 1.0),
    ("x1 + 0.1*sigmoid(50*x1 - 25)", 0.1),
    ("x1 + atan(3*x1)", math.atan(3)),
]


@pytest.mark.parametrize(("formula", "error"), ROOTS)
def test_singular_and_jumping_targets(tmp_path, formula, error):
    layer = gate_layer(numbers(0.5), 1, linear=numbers([1.0]))
    assert check(by_hand(tmp_path / "f", formula, [(0, 1)], layer, 1.001 * error)).verdict == "VALID"
    assert check(by_hand(tmp_path / "g", formula, [(0, 1)], layer, 0.999 * error)).verdict == "INVALID"


def test_the_margin_of_a_jump_is_left_out(tmp_path):
    """T steps from 0 to 1 within 0.02 of the jump; f = 1[x ≥ 1/3] is missed there by ½, elsewhere by little."""
    gate = Gates(numbers(1000.0), numbers([1 / 3 - 0.5]), torch.ones(1, 1, dtype=torch.bool))
    layer = gate_layer(numbers(0.0), 1, gates=(gate, torch.tensor([[[1.0], [0.0], [0.0]]], dtype=torch.float64)))
    plain = by_hand(tmp_path / "plain", "where(3*x1 < 1, 0, 1)", [(0, 1)], layer, 1e-3)
    assert check(plain).verdict == "INVALID"
    for margin, verdict in ((0.02, "VALID"), (0.001, "INVALID")):
        edit = {"schema": 3, "margin": margin}
        both = {"certificate": lambda r, e=edit: r | e, "target": lambda t, e=edit: t | e}
        assert check(forged(plain, tmp_path / str(margin), **both)).verdict == verdict
        one = check(forged(plain, tmp_path / f"one {margin}", both["certificate"]))
        assert (one.verdict, "margins" in one.reason) == ("INVALID", True)


def test_part_of_a_box(tmp_path):
    layer = gate_layer(numbers(0.0), 2)
    disk = {"within": "x1**2 + x2**2 <= 1"}
    box = [(-1, 1)] * 2
    assert check(by_hand(tmp_path / "f", "x1*x2", box, layer, 0.55, **disk)).verdict == "VALID"
    assert check(by_hand(tmp_path / "g", "x1*x2", box, layer, 0.45, **disk)).verdict == "INVALID"


def test_an_unknown_architecture_is_not_checkable(folders, tmp_path):
    def with_norm(path):
        with safe_open(path, framework="pt") as file:
            about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about["config"] = json.dumps(json.loads(about["config"]) | {"norm": "rms"})
        save_file(tensors, path, metadata=about)

    folder = forged(folders("runge"), tmp_path / "f")
    with_norm(folder / "model.safetensors")
    folder = forged(folder, tmp_path / "g")
    found = check(folder)
    assert found.verdict == "NOT CHECKABLE"
    assert "norm" in found.reason


def test_a_spent_budget_is_said(folders):
    found = check(folders("runge"), boxes=5)
    assert found.verdict == "NOT CHECKABLE"
    assert "not decided within" in found.reason
    assert len(found.box) == 1


def rounding_of(folder, enough):
    """The checker's own bound on the rounding of a folder's model, per output; boxes are halved until it is `enough`."""
    content = (folder / "model.safetensors").read_bytes()
    about, tensors, width, _ = checker.read_tensors(content)
    with checker.ctx.workprec(checker.READING):
        f, domain, _ = checker.read_target(json.loads((folder / "target.json").read_text()), 0.0)
        layer = checker.read_layer(about, tensors, domain.box, len(f), checker.fmpq(1, 2 ** (53 if width == 8 else 24)))
        g = checker.Difference(layer, f, domain.box, 1.0, 0)
        part = checker.Part(g, range(len(domain.box)), True, domain, enough)
        beside = part.rounding(layer, lambda box: None)
        return [float((a + b + c).lower()) for a, b, c in zip(g.rounding, beside, g.high, strict=True)]


ROUNDED = [
    (kind, layout, D, seed, sharp, side, size)
    for seed, (kind, layout, D, sharp, side, size) in enumerate(
        [
            ("gates", "token", 1, 0.5, (-1.0, 2.0), 1.0),
            ("gates", "token", 2, 10.0, (0.0, 1.0), 1e4),
            ("gates", "token", 2, 300.0, (1000.0, 1001.0), 1.0),
            ("gates", "wide", 2, 10.0, (0.0, 1.0), 1.0),
            ("gates", "heads", 2, 10.0, (0.0, 1.0), 1e4),
            ("gates", "token", 3, 1e4, (0.1, 0.1003), 1.0),
            ("memory", "token", 1, 300.0, (0.0, 1.0), 1e4),
            ("memory", "token", 2, 0.5, (-1.0, 2.0), 1.0),
            ("memory", "token", 2, 10.0, (1e6, 1e6 + 1), 1.0),
            ("memory", "token", 3, 10.0, (0.0, 1.0), 1e4),
        ]
    )
]


def deployed(folder, kind, layout, D, seed, sharp, side, size, dtype):
    """(model, places, points): a random layer whose values cancel, with points that its arithmetic has."""
    m = D if layout != "token" else 1
    layer = loud(random_layer(D, m, seed, sharp, kind), size, seed)
    model, places, target = built(layer, layout, m, D, side)
    model = model.to(dtype)
    return model, places, saved(folder, model, target, places, seed)


def saved(folder, model, target, places, seed):
    """Points of the domain that the model's arithmetic has; a folder of the model is written."""
    dtype = str(model.W_E.dtype).removeprefix("torch.")
    about = {"weights": model.fingerprint(), "arithmetic": dtype}
    claim = Certificate(1e9, 1e9, 0.0, 1, "analytic", str(target.domain), **about)
    facts = Facts("solved", "gates", "token", (("gate", 1),), 1, 1.0, places=places)
    Approximation.of(model, target, claim, facts).save(folder)
    rng, D = np.random.default_rng(seed), target.dimension
    unit = np.concatenate([rng.random((60, D)), rng.integers(0, 2, size=(8, D))])
    return target.domain.representable(target.domain.points(unit), model.W_E.dtype == torch.float32)


def answers(model, places, points):
    x = torch.from_numpy(points).to(model.W_E.dtype).reshape(len(points), model.config.tokens, -1)
    with torch.no_grad():
        return model(x)[:, list(places)].flatten(1).double().tolist()


SLOW = ("gates token 2 300", "gates wide 2 10", "gates heads 2 10", "memory token 2 10", "memory token 3 10")


def rounded_in(case, dtype):
    """Every case runs in one arithmetic; in both, and the slow ones at all, only where all tests run."""
    name, turn = f"{case[0]} {case[1]} {case[2]} {case[4]:g}", case[3] % 2
    long = name in SLOW or dtype != ("float32", "float64")[turn]
    return pytest.param(case, getattr(torch, dtype), id=f"{name}-{dtype}", marks=pytest.mark.long if long else ())


@pytest.mark.parametrize(
    ("case", "dtype"), [rounded_in(case, dtype) for case in ROUNDED for dtype in ("float32", "float64")]
)
def test_its_rounding_covers_the_deployed_model(tmp_path, case, dtype):
    """|model − T| ≤ rounding with zero slack, against T in 400 bits."""
    model, places, points = deployed(tmp_path / "f", *case, dtype)
    bound = rounding_of(tmp_path / "f", 1e-300)
    for x, row in zip(points, answers(model, places, points), strict=True):
        for got, true, most in zip(row, exact_model(model, x, places), bound, strict=True):
            assert within(true, got, most)


@pytest.mark.parametrize(
    "dtype",
    [pytest.param(torch.float32, id="float32", marks=pytest.mark.long), pytest.param(torch.float64, id="float64")],
)
@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 3, 4, 5))])
def test_its_rounding_covers_dense_weights(tmp_path, seed, dtype):
    """No weight is 0 or a power of two; queries are constant, and large biases keep all units linear."""
    about = {"code": "learned", "readout": "output", "d_k": 4, "memory_tokens": seed, "residual": True}
    sizes = {"tokens": 2, "features_in": 1, "features_out": 1, "projection_bias": False}
    model = random_model(plain_config(**about, **sizes), seed)
    with torch.no_grad():
        model.b_1 += 1e5
        model.W_2 *= 1e-8  # so that the residual way counts
        model.W_O *= 10.0 ** (seed % 3)
    model = model.to(dtype)
    points = saved(tmp_path / "f", model, ol.Target("x1", [(-1, 2)] * 2), (0,), seed)
    bound = rounding_of(tmp_path / "f", 1e-300)
    assert 0 < bound[0] < (1 if dtype == torch.float32 else 1e-8)
    for x, row in zip(points, answers(model, (0,), points), strict=True):
        assert within(exact_model(model, x, (0,))[0], row[0], bound[0])  # seen: 0.3 to 3% of the bound


def test_that_comparison_can_fail(tmp_path):
    """A hundredth of the bound is violated."""
    model, places, points = deployed(tmp_path / "f", *ROUNDED[1], torch.float32)
    bound = rounding_of(tmp_path / "f", 1e-300)
    pairs = zip(points, answers(model, places, points), strict=True)
    assert not all(within(exact_model(model, x, places)[0], row[0], bound[0] / 100) for x, row in pairs)


@pytest.mark.parametrize("kind", ["gates", "memory"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_its_rounding_is_close_to_the_library_s(tmp_path, kind, seed):
    """Other code, the same mathematics: within a factor of 2 of each other."""
    case = (kind, "token", 2, seed, [0.5, 5.0, 30.0][seed], (0.0, 1.0), 1.0)
    model, places, _ = deployed(tmp_path / "f", *case, torch.float32)
    own = np.array(rounding_of(tmp_path / "f", 1e-300))
    reading, box = form_of_model(model, places), torch.full((2,), 0.5, dtype=torch.float64)
    theirs = reading.program.rounding(-box, box).numpy()
    assert (own <= 2 * theirs).all()
    assert (theirs <= 2 * own).all()


def test_it_runs_alone(folders, tmp_path):
    script = shutil.copy(SOURCE, tmp_path / "alone.py")

    def run(*arguments):
        return subprocess.run([sys.executable, "-I", script, *map(str, arguments)], capture_output=True, text=True)

    good, bad, usage = (
        run(folders("runge")),
        run(forged(folders("runge"), tmp_path / "f", stale=True, **EDITS["bound"])),
        run(tmp_path),
    )
    assert (good.returncode, bad.returncode, usage.returncode, run().returncode) == (0, 1, 2, 2)
    assert good.stdout.startswith("VALID: ")
    assert bad.stdout.startswith("INVALID: ")
    assert good.stderr == bad.stderr == ""
    assert usage.stderr.count("\n") == 1


def test_it_imports_flint_and_the_standard_library_only():
    tree = ast.parse(SOURCE.read_text())
    names = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add((node.module or "").split(".")[0])
        assert not (isinstance(node, ast.Name) and node.id in ("eval", "exec", "compile", "__import__"))
    assert names <= {*sys.stdlib_module_names, "flint"}
    assert "importlib" not in names
    assert len(SOURCE.read_text().splitlines()) <= LINES
