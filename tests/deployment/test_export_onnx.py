"""ONNX: the graph equals the model for every config, in ONNX Runtime; the claims hold without onelayer."""

import builtins

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import configs, plain_config, random_model
from exporting import SINES, run_alone, size_of, wrapped
from onelayer.common.errors import InputError
from onelayer.common.numbers import at_least, at_most


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@settings(max_examples=50)
@given(config=configs(), seed=st.integers(0, 100), single=st.booleans())
def test_every_layer_is_the_same_in_onnx_runtime(config, seed, single, tmp_path_factory):
    approximation = wrapped(random_model(config, seed))
    dtype = "float32" if single or config.activation == "gelu" else "float64"
    path = tmp_path_factory.mktemp("onnx") / "m.onnx"
    found = ol.export(approximation, path, to="onnx", dtype=dtype, points=50)
    x = approximation.domain.points(np.random.default_rng(seed).random((7, approximation.domain.dimension)))
    x = x.astype(dtype)
    y = session(path).run(["y"], {"x": x})[0]
    own = approximation(x.astype(np.float64))
    assert y.shape == own.shape
    assert y.dtype == x.dtype
    # random weights: scores of size 100 and LayerNorm over one or two coordinates enlarge what float32 rounds
    if dtype == "float64":
        assert np.abs(y - own).max() <= 1e-9 * size_of(approximation)
        assert found.difference <= 1e-9 * size_of(approximation)
    else:
        cast = wrapped(random_model(config, seed).float())
        assert np.median(np.abs(y - cast(x))) <= 1e-4 * size_of(approximation)


def test_a_changed_weight_is_seen(tmp_path):
    """The comparison can fail."""
    approximation = wrapped(random_model(plain_config()))
    ol.export(approximation, tmp_path / "m.onnx", to="onnx", points=50)
    model = onnx.load(tmp_path / "m.onnx")
    w = next(t for t in model.graph.initializer if t.name == "W_V")
    w.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(w) * 1.001, "W_V"))
    onnx.save(model, tmp_path / "n.onnx")
    x = np.random.default_rng(0).random((7, 6))
    assert np.abs(session(tmp_path / "n.onnx").run(["y"], {"x": x})[0] - approximation(x)).max() > 1e-5


@pytest.mark.parametrize(
    ("dtype", "tolerance", "claim"),
    [pytest.param("float64", 1e-6, 1e-6, marks=pytest.mark.long), ("float32", 5e-4, 1e-3)],
)
def test_sines_hold_in_a_process_without_onelayer(dtype, tolerance, claim, tmp_path):
    approximation = ol.build(*SINES, tolerance, dtype=dtype)
    assert approximation.certificate.verdict == "CERTIFIED"
    found = ol.export(approximation, tmp_path / "sines.onnx", to="onnx")
    assert found.error <= tolerance
    code = """
import sys, numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
x = np.random.default_rng(17).uniform(0, 2 * np.pi, (100_000, 2)).astype(sys.argv[2])
y = session.run(["y"], {"x": x})[0]
assert y.shape == (100_000,) and y.dtype == x.dtype
print(np.abs(y - np.sin(x.astype(np.float64)).sum(axis=1)).max())
"""
    assert float(run_alone(code, tmp_path / "sines.onnx", dtype)) <= claim


def test_the_file_says_what_it_is(tmp_path):
    approximation = ol.build("x1*x2; x1 - x2**2", [(0, 1), (-1, 1)], 0.05)
    found = ol.export(approximation, tmp_path / "m.onnx", to="onnx", points=500)
    model = onnx.load(tmp_path / "m.onnx")
    told = {p.key: p.value for p in model.metadata_props}
    assert told["target"] == approximation.target.text
    assert told["tolerance"] == "0.05"
    assert told["verdict"].startswith("CERTIFIED, of the layer in onelayer")
    assert at_least(found.difference, 3) in told["difference"]
    assert told["input"] == "x [batch, 2]: x1, x2"
    assert told["output"] == "y [batch, 2]"
    assert {n.op_type for n in model.graph.node} <= {
        *("Reshape", "Sub", "Mul", "MatMul", "Add", "Shape", "Concat", "Expand", "Slice", "Transpose"),
        *("Softmax", "Relu", "Gather", "Unsqueeze", "ReduceSum"),
    }
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("dtype", "tolerance", "weights"),
    [("float64", 1e-4, None), ("float32", 1e-3, None), ("bfloat16", 2e-2, None), ("float32", 2e-2, "int8")],
)
def test_what_is_proved_of_the_difference(dtype, tolerance, weights, tmp_path):
    """Zero slack: ONNX Runtime stays within the bound of our own layer, and of f."""
    approximation = ol.build(*SINES, tolerance, dtype=dtype, weights=weights)
    dtype = "float64" if dtype == "float64" else "float32"  # of inputs
    found = ol.export(approximation, tmp_path / "m.onnx", to="onnx")
    assert found.difference <= found.bound < tolerance
    assert "in ONNX Runtime on a CPU, rounding included" in found.bound_of
    told = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert told["proved"] == f"{at_most(found.bound)}: {found.bound_of}"
    total = float(told["in all"].split()[5])
    assert found.in_all <= total
    assert found.in_all <= (approximation.certificate.bound + found.bound) * (1 + 1e-9)
    assert found.in_all <= tolerance or any("not proved to keep" in note for note in found.notes)
    unit = np.random.default_rng(1).random((20_000, 2)) ** 3  # close to an end of the domain
    x = approximation.domain.representable(approximation.domain.points(unit), dtype == "float32")
    y = session(tmp_path / "m.onnx").run(["y"], {"x": x.astype(dtype)})[0].astype(np.float64)
    assert np.abs(y - approximation(x)).max() <= found.bound
    assert np.abs(y - np.sin(x).sum(axis=1)).max() <= total


def test_what_is_only_measured(tmp_path):
    """Another dtype, trained layers and hinges: no bound, and the file does not speak of one."""
    hinged = ol.build(
        "abs(x1 - x2) + sin(x1)", [(0, 1)] * 2, 1e-2, method="solved", units=16, hinges=6, construction="gates"
    )
    trained = ol.train("x1 + x2", [(0, 1)] * 2, steps=5, heads=1, width=8)
    for i, (layer, dtype) in enumerate(((hinged, None), (trained, None), (ol.build(*SINES, 1e-2), "float32"))):
        found = ol.export(layer, tmp_path / f"{i}.onnx", to="onnx", dtype=dtype, points=50)
        assert found.in_all is None
        assert found.bound is None
        assert "proved" not in {p.key for p in onnx.load(tmp_path / f"{i}.onnx").metadata_props}


def test_token_numbers_go_in_as_they_are(tmp_path):
    approximation = ol.gallery.histogram(5, 4)
    found = ol.export(approximation, tmp_path / "h.onnx", to="onnx", points=300)
    assert found.bound is None  # token numbers are not points of a box
    assert found.difference < 1e-9
    x = np.random.default_rng(0).integers(0, 4, (50, 5)).astype(np.float64)
    y = session(tmp_path / "h.onnx").run(["y"], {"x": x})[0]
    assert (np.rint(y) == approximation.answer(x)).all()


def test_gelu_in_float64_is_refused_and_float32_works(tmp_path):
    approximation = wrapped(random_model(plain_config(activation="gelu")))
    with pytest.raises(InputError, match=r"Erf only in float32.*dtype='float32'"):
        ol.export(approximation, tmp_path / "m.onnx", to="onnx")
    assert list(tmp_path.iterdir()) == []
    assert ol.export(approximation, tmp_path / "m.onnx", to="onnx", dtype="float32", points=50).dtype == "float32"


def test_without_the_package_one_line_says_so(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "onnxruntime":
            raise ImportError("No module named 'onnxruntime'", name="onnxruntime")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"onnxruntime is not installed; change: pip install 'onelayer\[onnx\]'"):
        ol.export(wrapped(random_model(plain_config())), tmp_path / "m.onnx", to="onnx")
