"""False claims at the edges of floating point and of the rules: never VALID."""

import json

import pytest
import torch

import onelayer as ol
from checking import check
from onelayer.approximation import Approximation
from onelayer.deployment.folder import _digest, _json
from onelayer.layer.facts import Facts
from onelayer.proof.certificate import Certificate

NONE = [0.0] * 4
LINEAR = {  # T(x) = x
    "W_E": [[1, 0, 0, 0]], "W_V": [[[1], [0], [0], [0]]], "W_O": [[1, 0, 0, 0]], "W_1": [[1, 0], [0, 0], [0, 0], [0, 0]],
    "W_2": [[1, 0, 0, 0], NONE], "W_R": [[1], [0], [0], [0]],
}  # fmt: skip


def claimed(folder, formula, domain, weights, bound, *, shape=None, places=(0,), dtype=torch.float64, **more):
    """A signed folder: a model with all weights 0 but those given, said to be within `bound` of the formula."""
    base = {
        "tokens": 1,
        "features_in": 1,
        "features_out": 1,
        "d_model": 4,
        "heads": 1,
        "d_k": 1,
        "d_v": 1,
        "ffn_width": 2,
    }
    config = ol.LayerConfig(**(base | {"code": "none", "residual": False} | (shape or {})))
    model = ol.SingleLayerTransformer(config)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.fill_(float(name == "scale"))
            if name in weights:
                tensor.copy_(torch.tensor(weights[name], dtype=torch.float64))
    model = model.to(dtype)
    target = ol.Target(formula, domain)
    about = {"arithmetic": str(dtype).removeprefix("torch."), "weights": model.fingerprint()}
    tolerance = more.pop("tolerance", bound)
    certificate = Certificate(tolerance, bound, 0.0, 1, "analytic", str(target.domain), **about, **more)
    facts = Facts("solved", "gates", "token", (("gate", 1),), 1, 1.0, places=places)
    return Approximation.of(model, target, certificate, facts).save(folder)


def signed(folder, name, **changes):
    """A file of a folder changed, and everything signed anew."""
    path = folder / name
    path.write_text(_json(json.loads(path.read_text()) | changes))
    record = json.loads((folder / "certificate.json").read_text())
    record.pop("digest")
    record["sha256"] = {n: _digest((folder / n).read_bytes()) for n in ("model.safetensors", "target.json")}
    record["digest"] = _digest(_json(record).encode())
    (folder / "certificate.json").write_text(_json(record))
    return folder


def test_a_true_claim_of_this_kind_is_valid(tmp_path):
    assert check(claimed(tmp_path / "f", "x1", [(0, 1)], LINEAR, 1e-9)).verdict == "VALID"


@pytest.mark.parametrize("last", [1.0, 0.0])
def test_what_cancels_behind_a_unit_is_rounded_all_the_same(tmp_path, last):
    weights = LINEAR | {"W_2": [[3e9, 5e9, -8e9, last], NONE], "W_R": [[1]] * 4}
    assert check(claimed(tmp_path / "f", f"{last}*x1", [(0, 1)], weights, 1e-9)).verdict != "VALID"


def test_a_query_whose_slope_cancels_is_rounded(tmp_path):
    e5, rest = [[0], [0], [0], [0], [1]], [0.0] * 5
    weights = {
        "W_E": [[1, 1, 1, 0, 0]], "b_E": [0, 0, 0, 1, 0], "S": [[0, 0, 0, 0, 1]], "W_Q": [[[3], [5], [-8], [1], [0]]],
        "W_K": [e5], "W_V": [e5], "W_O": [[1, 0, 0, 0, 0]], "W_1": [[1, 0]] + [[0, 0]] * 4,
        "W_2": [[1, 0, 0, 0, 0], rest], "W_R": [[1], [0], [0], [0], [0]],
    }  # fmt: skip
    shape = {"d_model": 5, "anchor_tokens": 1}
    folder = claimed(tmp_path / "f", "1/(1+exp(-1)) + 0*x1", [(1e9, 1e9 + 1)], weights, 1e-12, shape=shape)
    assert check(folder).verdict != "VALID"


def test_places_that_see_different_tokens_are_rounded_apart(tmp_path):
    rest = [0.0] * 5
    weights = {
        "S": [[1, 1, 0, 0, 0], [-1, 4e9, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, -1, 0, 0]],
        "W_Q": [[[0], [0], [1000], [0], [0]]], "W_K": [[[1], [0], [0], [0], [0]]],
        "W_V": [[[0, 0], [0.1, -0.3], [0, 0], [0, 0], [0, 0]]], "W_O": [[0.3, 0, 0, 0, 0], [0.1, 0, 0, 0, 0]],
        "W_1": [[1, -1]] + [[0, 0]] * 4, "W_2": [[1, *rest[1:]], [-1, *rest[1:]]], "W_R": [[1], [0], [0], [0], [0]],
    }  # fmt: skip
    shape = {"d_model": 5, "d_v": 2, "anchor_tokens": 2, "output_tokens": 2, "readout": "output"}
    folder = claimed(tmp_path / "f", "0*x1; 0*x1", [(0, 1)], weights, 1e-12, shape=shape, places=(0, 1))
    assert check(folder).verdict != "VALID"


@pytest.mark.parametrize(
    ("dtype", "formula", "changes"),
    [
        (
            torch.float64,
            "x1",
            {"scale": [[2.0**-1064]], "W_E": [[2.0**1000, 0, 0, 0]], "W_R": [[2.0**64], [0], [0], [0]]},
        ),
        (
            torch.float32,
            "x1",
            {"scale": [[2.0**-140]], "W_E": [[2.0**100, 0, 0, 0]], "W_R": [[2.0**40], [0], [0], [0]]},
        ),
        (torch.float32, "0*x1", {"shift": [[-1e30]], "scale": [[1e10]], "W_R": [[0]] * 4}),
        (torch.float64, "0*x1", {"W_E": [[1e120, 0, 0, 0]], "W_R": [[0]] * 4}),
    ],
)
def test_underflow_and_overflow(tmp_path, dtype, formula, changes):
    folder = claimed(tmp_path / "f", formula, [(0, 1)], LINEAR | changes, 1e-4, dtype=dtype)
    assert check(folder).verdict == "NOT CHECKABLE"


def test_nothing_to_the_power_0_is_nothing(tmp_path):
    folder = claimed(tmp_path / "f", "sqrt(x1)**0 - 1", [(1, 2)], {}, 1e-3)
    assert check(folder).verdict == "VALID"
    changed = signed(folder, "target.json", lower=[-2.0], ends=[["-2", "2"]])
    signed(changed, "certificate.json", domain="x1 in [-2, 2]")
    assert check(changed).verdict != "VALID"


def test_witnesses(tmp_path):
    """A witness counts outside the margin only, and must not contradict the bound."""
    more = {"tolerance": 0.5, "margin": 0.2}
    jump = ("where(x1>0.5, 1, 0)", [(0, 1)], {})
    for x, verdict in ((0.55, "NOT CHECKABLE"), (0.75, "VALID")):
        folder = claimed(tmp_path / f"f{x}", *jump, 2.0, witness=(x,), **more)
        assert check(signed(folder, "target.json", margin=0.2)).verdict == verdict
    for bound in (0.1, 0.7):
        folder = claimed(tmp_path / f"g{bound}", "x1", [(0, 1)], {}, bound, witness=(0.75,), tolerance=0.5)
        assert check(folder).verdict == "INVALID"


@pytest.mark.parametrize(
    "changes",
    [
        {"formula": "x1 # + 100"}, {"formula": 0}, {"shape": [7, 3]}, {"shape": "x"}, {"output_shape": []},
        {"schema": True}, {"schema": 1}, {"names": ["pi"], "formula": "pi"}, {"ends": [["1", "0"]]},
    ],
)  # fmt: skip
def test_files_that_contradict_themselves(tmp_path, changes):
    folder = signed(claimed(tmp_path / "f", "x1", [(0, 1)], LINEAR, 1e-3), "target.json", **changes)
    assert check(folder).verdict == "INVALID"


@pytest.mark.parametrize(
    ("slope", "more", "offset"), [("1e20", "1", "0.5"), ("1e16", "1", "0.5"), ("1e12", "1e-5", "5e-6")]
)
def test_slopes_that_differ_behind_the_last_bit_are_told_apart(slope, more, offset, tmp_path):
    """x1 + max(0, more·x1 − offset), written with slopes that agree as floats; T = x1."""
    folder = ol.build("max(0, x1 - 2) + x1", [(-1, 1)], 1e-9, seconds=5.0).save(tmp_path / "f")
    formula = f"x1 + max(0, ({slope} + {more})*x1 - {offset}, {slope}*x1) - max(0, {slope}*x1)"
    assert ol.check(folder).verdict == "VALID"
    assert ol.check(signed(folder, "target.json", formula=formula, description=formula)).verdict != "VALID"


def test_wide_nests_of_kinks_keep_to_the_time(tmp_path):
    part = "abs(x1) + abs(x1 - 0.1) + abs(x1 - 0.2) - abs(x1 - 0.3) - abs(x1 - 0.4) - abs(x1 - 0.5)"
    folder = ol.build("max(0, x1 - 2) + x1", [(-1, 1)], 1e-9, seconds=5.0).save(tmp_path / "f")
    formula = f"max({', '.join(f'{k}*x1 + {part}' for k in range(6))})"
    assert ol.check(signed(folder, "target.json", formula=formula, description=formula), seconds=5.0).verdict != "VALID"
