"""Other attention: linear, sparse and adaptive, each within what it says of itself."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import lattice_layer, random_layer
from onelayer import InputError
from onelayer.deployment.attention.sparse import Cells, SparseAttention
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.layer.form import Block, Form, form_of
from onelayer.layer.heads import Hinges, scattered_memory
from onelayer.layer.layer import memory_layer
from onelayer.layer.rounding.deployed import Boxes, FormProgram


def points(count, D, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).random((count, D)) - 0.5)


def no_hinges(D, m):
    return Hinges(torch.zeros(0, D).double(), torch.zeros(0).double()), torch.zeros(0, m).double()


@pytest.mark.long
@given(
    kind=st.sampled_from(["gates", "maxima", "memory", "ridges"]),
    seed=st.integers(0, 10**6),
    sharp=st.sampled_from([1.0, 30.0, 1e3, 1e6]),
    remainder=st.sampled_from([1e-3, 1e-6, 1e-9]),
    single=st.booleans(),
)
@settings(max_examples=15)
def test_nothing_that_matters_is_dropped(kind, seed, sharp, remainder, single):
    """Zero slack: the answer of cells is within remainder and rounding of the form, evaluated in full in float64."""
    D, m = 2, 2
    form = form_of(random_layer(D, m, seed, sharp, kind))
    arithmetic = FLOAT32 if single else FLOAT64
    if single:  # the numbers of a float32 model
        cast = [Block(*(t.float().double() for t in (b.keys, b.biases, b.values, b.slopes))) for b in form.blocks]
        form = Form(form.bias.float().double(), form.linear.float().double(), tuple(cast))
    how = FormProgram.of_form(form, arithmetic)
    sparse = SparseAttention(form, no_hinges(D, m), how, remainder, 0)
    x = points(300, D, seed).to(arithmetic.dtype)
    edge = torch.full((D,), 0.5, dtype=torch.float64)
    own = Boxes(torch.zeros(1, D).double(), edge[None])
    allowed = (
        remainder
        + sparse.rounding(-edge, edge, remainder / 10)
        + float(FormProgram.of_form(form, FLOAT64, terms=form.summands + 3).on_boxes(own).max())
    )
    assert float((sparse(x).double() - form(x.double())).abs().max()) <= allowed


@pytest.mark.parametrize("name", ["memory", "sharp gates"])
def test_most_is_dropped(name):
    """Of 900 memory tokens some hundred are near a point; of sharp gates few are undecided."""
    if name == "memory":
        memory = scattered_memory(900, (0, 1), 2, 0.6, 0.5, 0)
        g = torch.Generator().manual_seed(0)
        layer = memory_layer(torch.zeros(1).double(), 2, (memory, torch.randn(900, 1, generator=g).double()))
    else:
        layer = lattice_layer((12, 12), 40.0)
    form = form_of(layer)
    cells = Cells(form, 1e-6, torch.float64, FormProgram.of_form(form, FLOAT64))
    cells(points(500, 2))
    tokens = sum(b.biases.numel() for b in form.blocks)
    assert cells.per_side > 1
    assert sum(c.tokens for c in cells.made.values()) / len(cells.made) < tokens / 2


def test_a_remainder_below_rounding_keeps_everything():
    form = form_of(lattice_layer((12, 12), 40.0))
    cells = Cells(form, 1e-30, torch.float64, FormProgram.of_form(form, FLOAT64), per_side=4)
    assert cells.cell(5).tokens == sum(b.biases.numel() for b in form.blocks)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("dtype", "attention"),
    [*product(("float64", "float32"), ("auto", "softmax", "fused", "linear", "sparse", "adaptive"))],
)
def test_an_approximation_with_other_attention(attention, dtype):
    approx = ol.build("sin(x1)*x2; x1 + x2", [(0, 1), (-1, 1)], 1e-2, dtype=dtype)
    fast = approx.fast(attention)
    x = approx.domain.points(np.random.default_rng(0).random((500, 2)))
    x = x.astype(np.float32).astype(np.float64) if dtype == "float32" else x
    truth = np.stack([np.sin(x[:, 0]) * x[:, 1], x.sum(axis=1)], axis=1)
    assert fast(x).shape == approx(x).shape == (500, 2)
    assert np.abs(fast(x) - truth).max() <= fast.bound
    assert np.abs(fast(x) - approx(x)).max() <= fast.remainder + (1e-12 if dtype == "float64" else 1e-4)
    assert fast.bound <= 1e-2  # what is left out comes from what the tolerance leaves
    assert fast.attention == {"auto": "linear"}.get(attention, attention)
    assert fast(x[0]).shape == (2,)
    assert isinstance(fast(torch.from_numpy(x)), torch.Tensor)


def test_points_outside_the_domain_are_the_models():
    approx = ol.build("sin(x1)*x2", [(0, 1)] * 2, 1e-3)
    x = np.random.default_rng(0).random((100, 2)) * 4 - 1
    for attention in ("linear", "sparse", "adaptive"):
        fast = approx.fast(attention)
        outside = (np.abs(x - 0.5) > 0.5).any(axis=1)
        np.testing.assert_array_equal(fast(x)[outside], approx(x[outside]))
        np.testing.assert_allclose(fast(x), approx(x), rtol=0, atol=1e-3)
        with pytest.raises(InputError, match="domain"):
            fast(x, outside="error")


def test_kinks_in_the_feed_forward_network():
    approx = ol.build(
        "abs(x1 - x2) + sin(x1)", [(0, 1)] * 2, 1e-2, method="solved", units=16, hinges=6, construction="gates"
    )
    x = np.random.default_rng(0).random((200, 2))
    fast = approx.fast("linear")
    np.testing.assert_allclose(fast(x), approx(x), rtol=0, atol=1e-9)


def test_a_trained_layer_has_the_model_alone():
    trained = ol.train("x1 + x2", [(0, 1)] * 2, steps=5, heads=1, width=8)
    assert trained.fast().attention == "softmax"
    assert trained.fast().bound == trained.certificate.bound
    with pytest.raises(InputError, match="no sum of softmax averages"):
        trained.fast("linear")


def test_bad_wishes(as_user):
    approx = ol.build("x1**2", [(0, 1)], 1e-2)
    for wish, text in (
        ({"attention": "dense"}, "one of auto"),
        ({"attention": "linear", "remainder": 1e-3}, "sparse or adaptive"),
        ({"attention": "sparse", "remainder": -1.0}, "above 0"),
        ({"device": "nowhere"}, "present on this machine"),
    ):
        with pytest.raises(InputError, match=text):
            approx.fast(**wish)


def test_cells_answer_only_where_they_reach():
    """A layer that does not normalise to [−½, ½]: beyond the cells the model answers."""
    approx = ol.gallery.mean(4, 3.0, domain=(-100.0, 100.0))
    x = np.random.default_rng(0).uniform(-100, 100, (500, 4))
    for attention in ("sparse", "adaptive"):
        fast = approx.fast(attention)
        assert np.abs(fast(x).ravel() - x.mean(axis=1)).max() <= fast.bound


@pytest.mark.parametrize("device", ["meta", "nowhere", None])
def test_devices_that_cannot_answer(device, as_user):
    with pytest.raises(InputError, match="present on this machine"):
        ol.build("x1**2", [(0, 1)], 1e-2).fast(device=device)


def test_the_bound_of_a_model_covers_its_form():
    """A model that adds heads up in several places may round less often than the form, which adds them in one."""
    reading = ol.build("sin(x1)*x2", [(0, 1)] * 2, 1e-2).fast("linear").reading
    (form,) = reading.program.others
    assert form.terms > reading.form.heads > 1
    edge = torch.full((2,), 0.5, dtype=torch.float64)
    loose = replace(form, terms=10**9)
    assert (replace(reading.program, others=(loose.of(reading.form),)).rounding(-edge, edge) > 1e-8).all()
    assert (reading.program.rounding(-edge, edge) < 1e-10).all()


def test_changed_weights_have_no_bound():
    approx = ol.build("x1**2", [(0, 1)], 1e-2)
    assert approx.fast().bound <= 1e-2
    with torch.no_grad():
        approx.model.b_R.add_(1.0)
    assert approx.fast().bound == float("inf")
