"""Layers for any length as ONNX: one graph, every length, padded and not."""

import numpy as np
import pytest

import onelayer as ol

onnxruntime = pytest.importorskip("onnxruntime")
any_length = ol.gallery.any_length
LAYERS = {
    "running_max": lambda dtype: any_length.running_max(30, 1e-3, dtype=dtype),
    "mean": lambda dtype: any_length.mean(30, dtype=dtype),
    "sort": lambda dtype: any_length.sort(4, 1e-2, dtype=dtype),
    "look_up": lambda dtype: any_length.look_up(12, 2, 3, dtype=dtype),
    "depth": lambda dtype: any_length.depth(20, dtype=dtype),
    "majority": lambda dtype: any_length.majority(20, dtype=dtype),
    "induction": lambda dtype: any_length.induction(6, 3, dtype=dtype),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_graph_answers_every_length(name, dtype, tmp_path):
    layer = LAYERS[name](dtype)
    done = ol.export(layer, tmp_path / "m.onnx", to="onnx")
    assert done.difference <= (1e-12 if dtype == "float64" else 1e-3)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    rng, d = np.random.default_rng(0), layer.description
    for n in (1, 2, 4):
        x = rng.integers(0, d.vocabulary, (3, n)) if d.vocabulary else rng.random((3, n))
        x = x.astype(dtype)
        (y,) = session.run(["y"], {"x": x, "padding": np.zeros((3, n), dtype=bool)})
        own = layer(x.astype(np.float64))
        assert np.abs(y.reshape(own.shape) - own).max() <= (1e-12 if dtype == "float64" else 1e-3)
    padding = np.array([[False, False, False], [False, True, True]])
    x = np.zeros((2, 3), dtype=dtype)
    (y,) = session.run(["y"], {"x": x, "padding": padding})
    if d.answer == "position":
        assert (y[1, 1:] == 0).all()


def test_a_folder_is_exported_and_other_formats_are_refused(tmp_path):
    folder = any_length.histogram(10, 3).save(tmp_path / "h")
    assert ol.export(folder, tmp_path / "h.onnx", to="onnx", dtype="float32").dtype == "float32"
    for to in ("c", "torch"):
        with pytest.raises(ol.InputError, match=f"one length as {to}"):
            ol.export(folder, tmp_path / "x", to=to)
    assert not (tmp_path / "x").exists()
