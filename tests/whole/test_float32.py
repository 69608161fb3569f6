"""float32 models: built, cast, read back and certified in their own arithmetic, observed at float32 points."""

import math

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer import InputError
from onelayer.apps.cli import main


@pytest.mark.parametrize("construction", ["gates", "memory"])
def test_the_papers_example_is_certified_in_float32(construction):
    approx = ol.build("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-3, construction=construction, dtype=torch.float32)
    c = approx.certificate
    assert approx.model.W_E.dtype == torch.float32
    assert c.verdict == "CERTIFIED"
    assert c.observed <= c.bound <= 1e-3
    assert c.arithmetic == "float32"
    assert any("no TF32" in a for a in c.assumptions)
    assert any("float32 numbers" in a for a in c.assumptions)
    x = approx.domain.representable(approx.domain.points(np.random.default_rng(5).random((5000, 2))), True)
    assert np.abs(approx(x) - approx.target(x)[:, 0]).max() <= c.bound


@pytest.mark.parametrize("side", [(1000, 1001), (0.1, 0.1003), (-1e-3, 1e5)])
def test_domains_far_from_the_unit_box(side):
    low, high = side
    approx = ol.build(f"((x1 - {low})/{high - low})**2", [side], 1e-2, dtype="float32")
    c = approx.certificate
    assert c.observed <= c.bound
    assert c.verdict == "CERTIFIED"


def test_one_weight_moved_and_certified_vanishes():
    approx = ol.build("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-3, construction="gates", dtype="float32")
    with torch.no_grad():
        approx.model.W_V[3, 0, 0] += 2e-2
    moved = ol.certify(approx)
    assert moved.verdict == "REFUTED"
    assert 1e-3 < moved.observed <= moved.bound < math.inf
    with torch.no_grad():
        approx.model.W_V[3, 0, 0] = math.nan
    assert ol.certify(approx).bound == math.inf


@pytest.mark.long
def test_any_float64_model_is_certified_from_its_weights():
    """The same bound, but for rounding, as from the layer."""
    for layout, about in (("token", {}), ("heads", {"output_shape": (2, 1)}), ("wide", {"output_shape": (2, 1)})):
        approx = ol.build("x1*x2; x1 - x2**2", [(0, 1)] * 2, 1e-3, construction="gates", layout=layout, **about)
        c = approx.certificate
        again = ol.certify(approx.model, approx.target, 1e-3, places=approx.facts.places)
        assert again.verdict == "CERTIFIED"
        assert again.bound == pytest.approx(c.bound, rel=1e-6)


def test_tolerances_below_float32_are_not_certified():
    with pytest.raises(ol.InputError, match="away from every float32 number"):
        ol.build("exp(x1)", [(0, 1)], 1e-8, dtype="float32")
    c = ol.build(
        "exp(x1)", [(0, 1)], 1.3e-7, dtype="float32", seconds=2.0
    ).certificate  # not impossible, but out of reach
    assert c.verdict != "CERTIFIED"
    assert c.observed <= c.bound


def test_observed_errors_are_those_of_float32_points():
    """float32 numbers near 1000 are 6e-5 apart: f at the points before rounding would be 3e-5 off."""
    approx = ol.build("x1 - 1000", [(1000, 1001)], 1e-4, construction="memory", dtype="float32")
    assert approx.certificate.observed < 1e-5
    inside = approx.domain.representable(np.array([[1000.00001], [1001.0], [999.0]]), True)
    assert inside[:, 0].tolist() == [1000.0, 1001.0]
    outward = ol.Target("x1", [(0.1, "2*pi")]).domain.representable(np.array([[0.1], [2 * math.pi]]), True)
    assert (np.float32(outward) == outward).all()
    assert len(outward) == 2


def test_storage_and_explanation(tmp_path):
    approx = ol.build("x1*x2", [(0, 1)] * 2, 1e-2, dtype="float32")
    loaded = ol.load(approx.save(tmp_path / "f"))
    assert loaded.certificate == approx.certificate
    assert loaded.certificate.arithmetic == "float32"
    assert loaded(np.array([0.25, 0.5])).dtype == np.float32
    loaded.explain([0.25, 0.5])
    assert float(loaded([7.0, 7.0], outside="clip")) == float(loaded([1.0, 1.0]))


@pytest.mark.usefixtures("as_user")
def test_the_command_line(tmp_path):
    out = str(tmp_path / "f")
    arguments = ["build", "x1*x2", "--domain", "0:1", "--eps", "0.01", "--out", out, "--dtype", "float32", "--quiet"]
    assert main(arguments) == 0
    assert ol.load(out).model.W_E.dtype == torch.float32


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    "more", [{"dtype": "float16"}, {"dtype": torch.int64}, {"dtype": "float32", "symmetric": True}]
)
def test_other_types_are_refused(more):
    with pytest.raises(InputError):
        ol.build("x1+x2", [(0, 1)] * 2, 0.1, **more)
