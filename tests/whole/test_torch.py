"""PyTorch's own tools on the layer and on `approx.module()`: export, compile, state, copies, functional calls, other dtypes."""

import copy
import io
import math
import pickle
import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn

import onelayer as ol
from cases import plain_config, random_model

SIZES = (17, 5, 2, 64)  # torch makes a graph of its own for a batch of one


@pytest.fixture(scope="module")
def approx():
    return ol.build("sin(x1)*x2; x1", [(0, 2)] * 2, 1e-2)


@pytest.fixture(params=["softmax", "fused", "mean", "module"])
def subject(request, approx):
    """(module, shape of one input): the layer itself in several forms, and what `module()` makes of an approximation."""
    if request.param == "module":
        return approx.module(), (2,)
    change = {"attention": request.param} if request.param != "mean" else {"readout": "mean", "norm": "pre"}
    config = plain_config(**change)
    return random_model(config), (config.tokens, config.features_in)


def points(shape, batch, seed=0):
    return torch.rand(batch, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.one_in(4)
@pytest.mark.usefixtures("as_user")
def test_export_keeps_the_batch_dynamic(subject):
    module, shape = subject
    batch = {0: torch.export.Dim("batch")}
    program = torch.export.export(module, (points(shape, 3),), dynamic_shapes=(batch,), strict=False)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    again = torch.export.load(file).module()
    for n in (1, *SIZES):
        torch.testing.assert_close(again(points(shape, n)), module(points(shape, n)), rtol=1e-13, atol=1e-13)


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("as_user")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor's own
@pytest.mark.parametrize(
    ("backend", "sizes"),
    [
        ("eager", SIZES),
        pytest.param("inductor", (64, 100, 257), marks=pytest.mark.long),  # it multiplies tiny batches in its own way
    ],
)
def test_compile_makes_one_graph_for_all_batch_sizes(subject, backend, sizes):
    module, shape = subject
    torch._dynamo.reset()
    compiled = torch.compile(module, backend=backend, fullgraph=True, dynamic=True)
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        for n in sizes:
            torch.testing.assert_close(compiled(points(shape, n)), module(points(shape, n)), rtol=1e-12, atol=1e-12)


def test_state_goes_round(subject, approx):
    module, shape = subject
    x, expected = points(shape, 3), module(points(shape, 3))
    other = copy.deepcopy(module)
    with torch.no_grad():
        for number in other.parameters():
            number.mul_(2)
    assert not torch.equal(other(x), expected)
    other.load_state_dict(module.state_dict())
    assert torch.equal(other(x), expected)


def test_copies_and_pickles_answer_the_same(subject):
    module, shape = subject
    x = points(shape, 3)
    for again in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(again(x), module(x))
        assert next(again.parameters()).data_ptr() != next(module.parameters()).data_ptr()


def test_functional_call_takes_other_weights(subject):
    module, shape = subject
    x = points(shape, 3)
    halved = {name: t / 2 for name, t in module.state_dict().items()}
    other = copy.deepcopy(module)
    other.load_state_dict(halved)
    assert torch.equal(torch.func.functional_call(module, halved, (x,)), other(x))
    assert not torch.equal(other(x), module(x))


def test_vmap_and_jacrev(subject):
    module, shape = subject
    x = points(shape, 4)

    def one(point):
        return module(point[None])[0]

    torch.testing.assert_close(torch.func.vmap(one)(x), module(x), rtol=1e-12, atol=1e-12)
    slopes = torch.func.vmap(torch.func.jacrev(one))(x)
    assert slopes.shape == (4, *module(x).shape[1:], *shape)
    step = 1e-6 * torch.ones_like(x[0])
    along = (one(x[0] + step) - one(x[0] - step)) / 2
    torch.testing.assert_close(slopes[0].flatten(-len(shape)) @ step.flatten(), along, rtol=1e-4, atol=1e-12)


def test_the_module_is_a_part_of_a_larger_network(approx):
    x = points((2,), 5)
    net = nn.Sequential(approx.module(), nn.Linear(2, 1, dtype=torch.float64))
    assert "0.layer.W_Q" in net.state_dict()
    assert torch.equal(net[0](x), approx(x))
    assert net[0](x[:0]).shape == (0, 2)
    net.float()
    net(x.float()).sum().backward()
    assert net[0].layer.W_O.grad is not None
    assert net[0](x.double()).dtype == torch.float64
    assert approx.unchanged
    assert all(t.grad is None for t in approx.model.parameters())
    with pytest.raises(ol.InputError, match=r"\[batch, 2\]"):
        net[0](x[0])


def test_the_module_of_tokens_answers_like_the_approximation_and_nan_where_there_is_no_token():
    approx = ol.gallery.histogram(vocabulary=3, n=4)
    x = torch.tensor([[0, 1, 1, 2], [2, 2, 2, 2]])
    module = approx.module()
    assert torch.equal(module(x), approx(x).flatten(1))
    assert module(torch.tensor([[0, 1, 1, 3]])).isnan().all()
    assert module(torch.tensor([[0.0, 1.0, 1.0, 0.5]])).isnan().all()


def test_tensors_keep_their_dtype_and_have_gradients_only_if_asked(approx):
    x = points((2,), 5)
    assert not approx(x).requires_grad
    assert approx(x).numpy().shape == (5, 2)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        found = approx(x.to(dtype))
        assert found.dtype == dtype
        assert torch.equal(found, approx(x.to(dtype).double()).to(dtype))
    assert approx(torch.tensor([[1, 1]])).dtype == torch.float64
    x.requires_grad_()
    assert torch.autograd.grad(approx(x).sum(), x)[0].shape == (5, 2)
    with torch.no_grad():
        assert not approx(x).requires_grad
    assert torch.func.vmap(torch.func.jacrev(approx))(x.detach()).shape == (5, 2, 2)
    assert not approx.fast()(x.detach()).requires_grad


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_another_dtype_takes_the_certificate_away_loudly(dtype, approx, tmp_path):
    approx = replace(approx, model=copy.deepcopy(approx.model))
    assert approx.certificate.verdict == "CERTIFIED"
    x = points((2,), 100)
    approx(x)  # no warning
    fast = approx.fast()
    approx.model.to(getattr(torch, dtype))
    for refused in (
        lambda: approx(x),
        lambda: approx(x.numpy()),
        lambda: approx.save(tmp_path / "f"),
        lambda: ol.export(approx, tmp_path / "f.onnx", to="onnx"),
        approx.fast,
        lambda: fast(x),
        approx.report,
        approx.covering,
        lambda: approx.evaluate(tmp_path / "x.csv", tmp_path / "y.csv"),
    ):
        with pytest.raises(ol.InputError, match=f"from float64 to {dtype}"):
            refused()
    assert not list(tmp_path.iterdir())
    assert "CERTIFIED" not in str(approx)
    facts = dict(approx.table().rows)
    assert facts["verdict"].startswith("none: ")
    assert facts["bound (proved)"] == "none proved"
    assert fast.bound == math.inf


def test_weights_that_were_rounded_and_came_back_are_noticed(approx):
    approx = replace(approx, model=copy.deepcopy(approx.model))
    x = points((2,), 3)
    kept = approx(x)
    approx.model.bfloat16().double()
    with pytest.raises(ol.InputError, match="changed after it was certified"):
        approx(x)
    again = replace(approx, model=copy.deepcopy(approx.model))
    with torch.no_grad(), pytest.raises(ol.InputError, match="changed after it was certified"):
        again(x)
    assert len(kept) == 3


def test_a_module_that_was_moved_leaves_the_approximation_certified(approx):
    approx.module().half()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        approx(points((2,), 3))
    assert approx.unchanged
