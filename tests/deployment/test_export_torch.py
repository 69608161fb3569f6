"""Stock PyTorch: the encoder layer answers as ours does, LayerNorm and residuals included; the bound on LayerNorm holds."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import onelayer as ol
from cases import configs, plain_config, random_model
from exporting import SINES, run_alone, size_of, wrapped
from onelayer.common.errors import InputError
from onelayer.common.numbers import at_least
from onelayer.deployment.export import loader
from onelayer.deployment.export.deviation import deviation
from onelayer.deployment.export.layernorm import doubled
from onelayer.deployment.export.subject import subject_of
from onelayer.deployment.export.torch import _shaped, stock_weights
from onelayer.model.transformer import SingleLayerTransformer

ALONE = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from layer import load
dtype = getattr(torch, sys.argv[3])
x = (torch.rand(100_000, 2, generator=torch.Generator().manual_seed(17), dtype=torch.float64) * 2 * torch.pi).to(dtype)
f = x.double().sin().sum(dim=1)
for folder in sys.argv[1:3]:
    layer = load(folder)
    assert type(layer.layer) is torch.nn.TransformerEncoderLayer and not layer.training
    with torch.no_grad():
        fast = layer(x)
    assert fast.shape == (100_000,) and fast.dtype == dtype
    slow = layer(x[:20_000]).detach()  # with gradients
    print((fast.double() - f).abs().max().item(), (slow.double() - f[:20_000]).abs().max().item())
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("dtype", "tolerance", "claim"),
    [pytest.param("float64", 1e-6, 1e-6, marks=pytest.mark.long), ("float32", 5e-4, 1e-3)],
)
def test_sines_hold_in_a_process_without_onelayer(dtype, tolerance, claim, tmp_path):
    """Residuals and LayerNorm included, behind the sublayers and before them, on both of torch's paths."""
    approximation = ol.build(*SINES, tolerance, dtype=dtype)
    for norm in ("post", "pre"):
        found = ol.export(approximation, tmp_path / norm, to="torch", norm=norm, points=2000)
        assert sorted(p.name for p in (tmp_path / norm).iterdir()) == ["layer.py", "model.safetensors"]
        assert found.difference <= {"float64": 1e-11, "float32": 1e-4}[dtype]
        assert found.bound <= {"float64": 1e-10, "float32": 1e-3}[dtype]
    errors = run_alone(ALONE, tmp_path / "post", tmp_path / "pre", dtype).split()
    assert len(errors) == 4
    assert max(map(float, errors)) <= claim


@pytest.mark.long
@settings(max_examples=25)
@given(config=configs(norm="none"), seed=st.integers(0, 100), norm=st.sampled_from(["post", "pre"]))
def test_layers_without_layernorm_become_stock_layers(config, seed, norm, tmp_path_factory):
    approximation = wrapped(random_model(config, seed))
    folder = tmp_path_factory.mktemp("stock") / "m"
    found = ol.export(approximation, folder, to="torch", norm=norm, points=50)
    layer = loader.load(folder)
    x = approximation.domain.points(np.random.default_rng(seed).random((7, approximation.domain.dimension)))
    y = layer(torch.from_numpy(x)).detach().numpy()
    assert layer.layer.norm_first == (norm == "pre")
    assert y.shape == approximation(x).shape
    assert np.abs(y - approximation(x)).max() <= 1e-9 * size_of(approximation)
    assert found.difference <= 1e-9 * size_of(approximation)


@settings(max_examples=25)
@given(config=configs(norm="none"), seed=st.integers(0, 100), norm=st.sampled_from(["post", "pre"]))
def test_the_bound_on_layernorm_holds(config, seed, norm):
    """With the constants chosen for float32, in float64: what is seen is LayerNorm's doing, not rounding's."""
    approximation = wrapped(random_model(config, seed).float())
    subject = subject_of(approximation, None)
    found = doubled(subject, norm)
    bound = deviation(subject, found, norm)
    stock = {name: t.double() for name, t in stock_weights(found.config, found.weights).items()}
    layer = loader.filled(_shaped(subject, found.config), stock)
    own = wrapped(random_model(config, seed).float().double())
    x = approximation.domain.points(np.random.default_rng(seed).random((40, approximation.domain.dimension)))
    seen = np.abs(layer(torch.from_numpy(x)).detach().numpy() - own(x)).max()
    assert seen <= bound + 1e-11 * size_of(own)


def test_biases_that_cancel_what_layernorm_moves():
    """q = eW + b = 0, but a factor of e moves it by as much of eW."""
    model = SingleLayerTransformer(
        plain_config(
            tokens=2, features_in=1, features_out=1, d_model=3, heads=1, d_k=1, d_v=1, ffn_width=2, code="none"
        )
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.W_E[0, 0] = model.b_E[1] = model.W_K[0, 0, 0] = model.W_V[0, 0, 0] = model.W_O[0, 2] = model.W_R[2, 0] = 1
        model.S[:, 1] = 1
        model.W_Q[0, 1, 0], model.b_Q[0, 0] = 2.0**17, -(2.0**17)
    subject = subject_of(wrapped(model.float()), None)
    found = doubled(subject, "pre")
    stock = {name: t.double() for name, t in stock_weights(found.config, found.weights).items()}
    layer = loader.filled(_shaped(subject, found.config), stock)
    x = subject.approximation.domain.points(np.random.default_rng(0).random((400, 2)))
    seen = np.abs(layer(torch.from_numpy(x)).detach().numpy() - wrapped(model.double())(x)).max()
    assert seen <= deviation(subject, found, "pre")


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_bound_is_not_idle(norm, monkeypatch):
    """A constant C that is too small shows: the deviation grows with 1/C², and so does what is proved."""
    subject = subject_of(wrapped(random_model(plain_config(projection_bias=False))), None)
    x = subject.points(100, 0)
    own, seen, bounds = subject.approximation(x), [], []
    for u in (2.0**-20, 2.0**-24):  # C is proportional to 1/√u
        smaller = replace(subject.arithmetic, u=u)
        monkeypatch.setattr(type(subject), "arithmetic", property(lambda _, a=smaller: a))
        found = doubled(subject, norm)
        layer = loader.filled(_shaped(subject, found.config), stock_weights(found.config, found.weights))
        seen.append(np.abs(layer(torch.from_numpy(x)).detach().numpy() - own).max())
        bounds.append(deviation(subject, found, norm))
    assert seen[0] > 1e-9
    assert seen[1] < seen[0] / 8
    assert all(s <= b < math.inf for s, b in zip(seen, bounds, strict=True))


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_a_layer_with_layernorm_is_copied(norm, activation, tmp_path):
    """Its heads are padded to the stock width where they are narrower."""
    for i, widths in enumerate(({"d_k": 4, "d_v": 4}, {"d_k": 3, "d_v": 1}, {"heads": 1, "d_k": 2, "d_v": 3})):
        config = plain_config(norm=norm, d_model=8, activation=activation, norm_eps=1e-3, **widths)
        approximation = wrapped(random_model(config, 3))
        found = ol.export(approximation, tmp_path / f"m{i}", to="torch", points=50)
        assert found.bound is None
        assert found.difference <= 1e-11 * size_of(approximation)
        assert ol.export(approximation, tmp_path / f"n{i}", to="torch", norm=norm, points=5).path.is_dir()


def test_what_no_stock_layer_can_be_is_refused(tmp_path, as_user):
    def refused(words, asked=None, **changes):
        with pytest.raises(InputError, match=words):
            ol.export(wrapped(random_model(plain_config(**changes))), tmp_path / "m", to="torch", norm=asked)

    refused("post-norm itself", "pre", norm="post")
    refused("without residuals", norm="pre", residual=False)
    refused("2 heads of widths 3 and 2", norm="pre")
    refused("500 heads, which make d_model", heads=500, d_k=20)
    with pytest.raises(InputError, match=r"beside LayerNorm.*e\+30.*onnx or c"):
        ol.export(ol.gallery.reverse(3, dtype="float32"), tmp_path / "m", to="torch")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "made",
    [
        lambda: ol.build("x1*x2; x1 - x2**2", [(0, 1), (-1, 1)], 0.01),
        lambda: ol.build("exp(-x1)*cos(3*x2)", [(0, 1)] * 2, 1e-3, construction="memory"),
        lambda: ol.build("sin(x1)*x2", [(0, 1)] * 2, 0.05, layout="wide"),
        lambda: ol.build("abs(x1 - x2)", [(0, 1)] * 2, 1e-3),
        lambda: ol.gallery.sort(4),
        lambda: ol.gallery.histogram(5, 4),
        lambda: ol.memorize(np.arange(12.0).reshape(6, 2), np.arange(6) % 3),
    ],
    ids=["outputs", "memory", "wide", "kink", "sort", "tokens", "samples"],
)
def test_constructed_layers_of_every_kind(made, tmp_path):
    approximation = made()
    for norm in ("post", "pre"):
        found = ol.export(approximation, tmp_path / norm, to="torch", norm=norm, points=500)
        # a sharp head answers to the last bit of its scores; all others to rounding
        sharp = 1 + (approximation.facts.largest_score or 0.0)
        assert found.difference <= 1e-13 * sharp * size_of(approximation) * (1 + (approximation.facts.total or 0.0))


def test_constructing_draws_no_random_numbers(tmp_path):
    before = torch.random.get_rng_state()
    ol.export(wrapped(random_model(plain_config())), tmp_path / "m", to="torch", points=5)
    loader.load(tmp_path / "m")
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_file_says_what_it_is(tmp_path):
    found = ol.export(ol.gallery.sort(3), tmp_path / "m", to="torch", points=20)
    with safe_open(tmp_path / "m" / "model.safetensors", framework="pt") as file:
        told = file.metadata()
    assert json.loads(told["layer"])["norm_first"] is False
    assert at_least(found.difference, 3) in told["difference"]
    assert "exact arithmetic" in told["layernorm"]
    assert "import onelayer" not in (tmp_path / "m" / "layer.py").read_text()
