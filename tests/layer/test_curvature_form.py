"""Slopes and second derivatives of a form as forms: against automatic differentiation, and in balls."""

import pytest
import torch
from flint import arb, ctx

from cases import random_layer
from hunting import real_value
from onelayer.layer.assemble import Frame
from onelayer.layer.curvature_form import MOST_TOKENS, curvature_form
from onelayer.layer.form import Block, Form, form_of
from onelayer.layer.one_direction import one_direction
from onelayer.layer.slope_form import slope_form

SCALES = (2.0, 3.0, 0.7)


def derivatives(form, x, i):
    """(∂_i T, ∂_i ∂_i T) by automatic differentiation, [point, out]."""
    x = x.clone().requires_grad_(True)
    first, second = [], []
    for y in form(x).unbind(dim=1):
        slope = torch.autograd.grad(y.sum(), x, create_graph=True)[0][:, i]
        first.append(slope.detach())
        second.append(torch.autograd.grad(slope.sum(), x, retain_graph=True)[0][:, i])
    return torch.stack(first, dim=1), torch.stack(second, dim=1)


@pytest.mark.parametrize("kind", ["gates", "memory"])
@pytest.mark.parametrize("D", [1, 2, 3])
def test_they_are_what_automatic_differentiation_computes(kind, D):
    form, scale = form_of(random_layer(D, 2, 3 + D, 3.0, kind)), SCALES[:D]
    x = torch.rand(50, D, dtype=torch.float64, generator=torch.Generator().manual_seed(D)) - 0.5
    slopes, _ = slope_form(form, scale, 0.5)
    for i in range(D):
        first, second = derivatives(form, x, i)
        bends, _ = curvature_form(form, scale, 0.5, i)
        own = slopes.only([i, D + i])
        assert torch.allclose(own(x), first * scale[i], rtol=0, atol=1e-12 * float(first.abs().max()) * scale[i])
        assert torch.allclose(bends(x), second * scale[i] ** 2, rtol=0, atol=1e-12 * float(second.abs().max()) * 10)


def exact_derivative(form, scale, x, order, i):
    """The derivative of that order in balls, by divided differences 2^-80 apart, as accurate as 2^-70."""
    step = arb(2) ** -80
    rows = [
        real_value(form, Frame((0.0,) * len(x), (1.0,) * len(x)), [*x[:i], x[i] + k * step, *x[i + 1 :]])
        for k in (-1, 0, 1)
    ]
    if order == 1:
        return [(c - a) / (2 * step) * arb(scale[i]) for a, c in zip(rows[0], rows[2], strict=True)]
    return [(a - 2 * b + c) / (step * step) * arb(scale[i]) ** 2 for a, b, c in zip(*rows, strict=True)]


@pytest.mark.parametrize("kind", ["gates", "memory"])
@pytest.mark.parametrize("sharp", [0.01, 3.0, 300.0])
def test_the_bound_on_their_floats_holds(kind, sharp):
    """The form of derivatives, evaluated exactly, is as close to the exact derivative as is said: no slack but 1e-20."""
    D, scale = 2, (2.0, 0.3)
    form = form_of(random_layer(D, 2, 5, sharp, kind))
    points = (torch.rand(4, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) - 0.5).tolist()
    with ctx.workprec(600):
        for i in range(D):
            slopes, slope_error = slope_form(form, scale, 0.5)
            pick = [i, D + i]
            cases = [(1, slopes.only(pick), slope_error[pick]), (2, *curvature_form(form, scale, 0.5, i))]
            for order, derived, error in cases:
                for x in points:
                    stored = real_value(derived, Frame((0.0,) * D, (1.0,) * D), x)
                    truth = exact_derivative(form, scale, x, order, i)
                    for a, b, e in zip(stored, truth, error.tolist(), strict=True):
                        assert abs(a - b) < arb(e) + arb(2) ** -66 * (1 + abs(b))


@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("sharp", [1.0, 1e4])
def test_a_form_along_one_direction_is_a_form_in_one_variable(off, sharp):
    """Keys and slopes along one direction, but for `off`: exactly evaluated, the two differ by at most what is said."""
    g = torch.Generator().manual_seed(3)

    def normal(*shape):
        return torch.randn(shape, generator=g, dtype=torch.float64)

    d, shared = normal(3), normal(4, 1, 3)
    keys = sharp * (normal(4, 5, 1) * d + shared + off * normal(4, 5, 3))
    slopes = normal(4, 5, 1, 2) * d[:, None] + off * normal(4, 5, 3, 2)
    block = Block(keys, normal(4, 5), normal(4, 5, 2), slopes)
    form = Form(normal(2), normal(1, 2) * d[:, None], (block,))
    found = one_direction(form, -torch.ones(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
    best = max(
        ((k - b.keys[h, 0]) for b in form.blocks for h in range(4) for k in b.keys[h]), key=lambda v: float(v.norm())
    )
    with ctx.workprec(300):
        for x in (2 * torch.rand(6, 3, generator=g, dtype=torch.float64) - 1).tolist():
            z = sum((arb(a) * arb(b) for a, b in zip(best.tolist(), x, strict=True)), arb(0))
            assert arb(found.low) <= z <= arb(found.high)
            there, here = (
                real_value(form, Frame((0.0,) * 3, (1.0,) * 3), x),
                real_value(found.form, Frame((0.0,), (1.0,)), [z]),
            )
            for a, b, e in zip(there, here, found.error.tolist(), strict=True):
                assert abs(a - b) <= arb(e)
    assert off > 0 or float(found.error.max()) < 1e-8


def test_many_tokens_are_refused():
    n = 70
    assert n * (n + 1) * (n + 2) // 6 > MOST_TOKENS
    block = Block(
        torch.ones(1, n, 1).double(),
        torch.zeros(1, n).double(),
        torch.ones(1, n, 1).double(),
        torch.zeros(1, n, 1, 1).double(),
    )
    assert curvature_form(Form(torch.zeros(1).double(), torch.zeros(1, 1).double(), (block,)), (1.0,), 0.5, 0) is None


def test_heads_that_do_not_reach_an_output_are_left_out():
    form = form_of(random_layer(3, 2, 1, 1.0, "gates"))
    block = form.blocks[0]
    block.values[2:], block.slopes[2:], block.keys[2:, :, 1] = 0.0, 0.0, 0.0
    slopes, _ = slope_form(form, (1.0,) * 3, 0.5)
    x = torch.rand(5, 3, dtype=torch.float64) - 0.5
    assert slopes.only([4]).heads < slopes.heads
    assert torch.allclose(slopes.only([4, 0])(x), slopes(x)[:, [4, 0]], rtol=0, atol=1e-13)
