"""The factored form: the model's answers without an exponential per head, also where it must fall back."""

import numpy as np
import pytest
import torch

import onelayer as ol
from cases import KINDS_AND_LAYOUTS, built, lattice_layer, random_layer
from onelayer import InputError
from onelayer.deployment.attention.linear import CHUNK, LinearAttention
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.layer.assemble import Frame
from onelayer.layer.form import Block, Form
from onelayer.layer.reading import form_of_model
from onelayer.layer.rounding.deployed import FormProgram


def both(layer, layout, m, D, count=200, side=(-1.0, 2.0), dtype=torch.float64):
    """(the model's answers, the factored ones, LinearAttention)."""
    model, places, target = built(layer, layout, m, D, side)
    model = model.to(dtype)
    reading = form_of_model(model, places)
    factored = LinearAttention(reading.form, reading.frame)
    x = torch.from_numpy(target.domain.points(np.random.default_rng(0).random((count, D)))).to(dtype)
    with torch.no_grad():
        y = model(x.reshape(count, model.config.tokens, -1))[:, list(places)].flatten(1)
    return y, factored(x), factored


@pytest.mark.parametrize("counts", [(20,), (9, 8), (4, 5, 4)])
@pytest.mark.parametrize("m", [1, 2])
def test_lattices_are_factored_and_equal_to_the_model(counts, m):
    y, fast, factored = both(lattice_layer(counts, 1.5, m), "token", m, len(counts))
    torch.testing.assert_close(fast, y, rtol=0, atol=1e-11)
    compiled = factored.compiled[torch.float64]
    assert len(compiled.shared) == 1
    assert not compiled.averages
    assert len(compiled.shared[0].keys) == len(counts)  # one exponential per coordinate, however many heads


@pytest.mark.parametrize("case", KINDS_AND_LAYOUTS)
@pytest.mark.parametrize("sharp", [3.0, 1e3])
def test_any_layer_is_evaluated(case, sharp):
    kind, layout = case
    m = 2 if layout == "token" else 3
    y, fast, _ = both(random_layer(3, m, 1, sharp, kind), layout, m, 3)
    torch.testing.assert_close(fast, y, rtol=0, atol=1e-11)


def test_float32():
    y, fast, factored = both(lattice_layer((9, 8), 1.5), "token", 1, 2, dtype=torch.float32)
    assert fast.dtype == torch.float32
    torch.testing.assert_close(fast, y, rtol=0, atol=1e-3)
    assert factored.compiled[torch.float32].shared


def test_exponents_that_would_overflow_fall_back():
    """β = 600 overflows float32 (e^88) but not float64 (e^709); β = 6000 both."""
    for steps, tables in ((32.0, {torch.float64: 1, torch.float32: 0}), (320.0, {torch.float64: 0, torch.float32: 0})):
        layer = lattice_layer((20,), steps)
        for dtype, count in tables.items():
            y, fast, factored = both(layer, "token", 1, 1, dtype=dtype)
            assert len(factored.compiled[dtype].shared) == count
            assert fast.isfinite().all()
            torch.testing.assert_close(fast, y, rtol=0, atol=1e-11 if dtype == torch.float64 else 1e-3)


def test_points_outside_the_box():
    layer = lattice_layer((9, 8), 1.5)
    model, _, _ = built(layer, "token", 1, 2)
    reading = form_of_model(model)
    x = 1e6 * torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = LinearAttention(reading.form, reading.frame)(x)
    torch.testing.assert_close(y, model(x.unsqueeze(-1)).flatten(1).detach(), rtol=1e-11, atol=1e-11)


def test_big_batches_are_cut_in_pieces():
    layer = lattice_layer((9, 8), 1.5)
    model, _, target = built(layer, "token", 1, 2)
    reading = form_of_model(model)
    fast = LinearAttention(reading.form, reading.frame)
    count = 3 * CHUNK // fast.compiled[torch.float64].shared[0].width
    x = torch.from_numpy(target.domain.points(np.random.default_rng(0).random((count, 2))))
    torch.testing.assert_close(fast(x)[-50:], fast(x[-50:]), rtol=0, atol=1e-11)
    assert fast(x[:0]).shape == (0, 1)


def test_half_precision_is_refused():
    reading = form_of_model(built(lattice_layer((5,), 1.0), "token", 1, 1)[0])
    with pytest.raises(InputError, match="float64 or float32"):
        LinearAttention(reading.form, reading.frame)(torch.zeros(3, 1, dtype=torch.float16))


def test_a_solved_layer_is_mostly_tables():
    approx = ol.build("sin(x1) + cos(x2)*x3", [(0, 1)] * 3, 1e-3, construction="gates", method="solved")
    reading = form_of_model(approx.model)
    fast = LinearAttention(reading.form, reading.frame)
    x = approx.domain.points(np.random.default_rng(0).random((100, 3)))
    np.testing.assert_allclose(fast(torch.from_numpy(x))[:, 0].numpy(), approx(x), rtol=0, atol=1e-11)
    assert fast.compiled[torch.float64].shared


@pytest.mark.parametrize(
    ("arithmetic", "beta", "value"),
    [(FLOAT32, 84.0, 1e3), (FLOAT64, 693.0, 1e8), (FLOAT32, -84.0, 1e-25), (FLOAT64, -693.0, 1e-170)],
)
def test_numerators_neither_overflow_nor_vanish(arithmetic, beta, value):
    """Exponents that fit, times values that fit, need not: such heads are averaged."""
    keys, biases, values = (torch.zeros(4, 2, 1, dtype=torch.float64) for _ in range(3))
    keys[:, 1], values[:, 1] = -abs(beta), value
    biases[:, 1, 0] = beta * torch.tensor([0.125, 0.25, 0.375, 0.5])
    slopes = torch.zeros(4, 2, 1, 1, dtype=torch.float64)
    given = (keys, biases[..., 0], values, slopes)
    block = Block(*(t.to(arithmetic.dtype).double() for t in given))
    form = Form(torch.zeros(1).double(), torch.zeros(1, 1).double(), (block,))
    x = torch.linspace(-0.5, 0.5, 101, dtype=arithmetic.dtype)[:, None]
    y, edge = LinearAttention(form, Frame((0.0,), (1.0,)))(x).double(), torch.full((1,), 0.5, dtype=torch.float64)
    allowed, own = (FormProgram.of_form(form, a).rounding(-edge, edge) for a in (arithmetic, FLOAT64))
    assert ((y - form(x.double())).abs() <= allowed + own).all()
