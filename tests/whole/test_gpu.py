"""On a GPU: evaluation, solving, polishing, proving and training give what the CPU gives, within what is proved."""

import numpy as np
import pytest
import torch

import onelayer as ol
from backend_hunting import hunt
from backend_programs import programs
from cases import lattice_layer
from onelayer.deployment.attention.kernels import card, summands
from onelayer.deployment.attention.linear import LinearAttention
from onelayer.layer.arithmetic import arithmetic_of
from onelayer.layer.assemble import frame_of
from onelayer.layer.form import form_of
from onelayer.layer.heads import scattered_memory
from onelayer.layer.layer import memory_layer
from onelayer.layer.rounding.deployed import FormProgram

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")]
BOX = [(-0.5, 0.5)] * 2


def layer_of(kind):
    if kind == "gates":
        return lattice_layer((20, 20), 1.5)
    memory = scattered_memory(300, (0, 1), 2, 0.6, 0.5, 0)
    g = torch.Generator().manual_seed(0)
    return memory_layer(torch.zeros(1).double(), 2, (memory, torch.randn(300, 1, generator=g).double()))


@pytest.mark.parametrize("kind", ["gates", "memory"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_kernels_are_within_the_proved_term(kind, dtype):
    """Zero slack against the same float32 or float64 numbers evaluated in float64 on the CPU."""
    form = form_of(layer_of(kind))
    stored = type(form)(
        form.bias.to(dtype).double(),
        form.linear.to(dtype).double(),
        tuple(type(b)(*(t.to(dtype).double() for t in (b.keys, b.biases, b.values, b.slopes))) for b in form.blocks),
    )
    x = torch.from_numpy(np.random.default_rng(0).random((20_000, 2)) - 0.5).to(dtype)
    fast = LinearAttention(stored, frame_of(ol.Target("x1", BOX).domain), device="cuda")
    edge = torch.full((2,), 0.5, dtype=torch.float64)
    program = FormProgram.of_form(stored, card(arithmetic_of(dtype)), terms=summands(stored.heads, dtype) + 10)
    rounding = float(program.rounding(-edge, edge).max())
    off = float((fast(x.cuda()).cpu().double() - stored(x.double())).abs().max())
    assert 0 < off <= rounding * (2 if dtype == torch.float64 else 1)  # in float64 the comparison rounds as well


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("program", programs("cuda"), ids=lambda p: p.name)
def test_no_program_leaves_its_bound(program, dtype):
    if str(dtype).removeprefix("torch.") not in program.backend.exp_ulps:
        pytest.skip("the kernel does not take this dtype")
    found = hunt(program, dtype, 10**6)
    assert found.violations == 0, found.worst


@pytest.mark.parametrize("attention", ["softmax", "fused"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_model_itself_has_a_bound(attention, dtype):
    approx = ol.build("sin(x1)*x2", [(0, 1)] * 2, 1e-3, dtype=dtype)
    fast = approx.fast(attention, device="cuda")
    x = np.random.default_rng(0).random((1000, 2)).astype(np.float32).astype(np.float64)
    assert np.abs(fast(x) - np.sin(x[:, 0]) * x[:, 1]).max() <= fast.bound < 2e-3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_approximation(dtype):
    approx = ol.build("sin(x1)*x2", [(0, 1)] * 2, 1e-3, dtype=dtype)
    fast = approx.fast(device="cuda")
    x = np.random.default_rng(0).random((1000, 2)).astype(np.float32).astype(np.float64)
    assert fast.attention == "linear"
    assert np.abs(fast(x) - np.sin(x[:, 0]) * x[:, 1]).max() <= fast.bound
    np.testing.assert_allclose(fast(x), approx(x), rtol=0, atol=1e-12 if dtype == "float64" else 1e-3)
    np.testing.assert_allclose(fast(x + 5.0), approx(x + 5.0), rtol=1e-4, atol=1e-4)
    assert fast(torch.from_numpy(x)).device.type == "cpu"


@pytest.mark.parametrize("method", ["solved", "polished"])
@pytest.mark.parametrize("construction", ["gates", "memory"])
def test_building(method, construction):
    approx = ol.build("sin(3*x1)*x2", [(0, 1)] * 2, 1e-3, method=method, construction=construction, device="cuda")
    assert approx.certificate.verdict == "CERTIFIED"
    assert any("GPU" in line for line in approx.certificate.assumptions)
    assert approx.model.W_E.device.type == "cpu"
    again = ol.certify(approx)
    assert abs(again.bound - approx.certificate.bound) <= 1e-9
    assert ol.certify(approx, device="cuda").bound == pytest.approx(again.bound, abs=1e-9)


def test_training():
    trained = ol.train("x1 + x2", [(0, 1)] * 2, steps=200, heads=2, width=16, device="cuda")
    assert trained.certificate.observed < 1.0
