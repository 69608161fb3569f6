"""The pieces of the analytic certificate: strips, grids, boxes, covers."""

import math

import numpy as np
import pytest
import torch
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

import hunting
import onelayer as ol
from cases import random_layer
from onelayer.common.budget import Budget
from onelayer.common.numbers import at_most
from onelayer.construction.request import Request
from onelayer.construction.solved.layer import solved_layer
from onelayer.formula.float_bounds import evaluate_bounded, evaluate_bounded_on_axes
from onelayer.layer.arithmetic import FLOAT64
from onelayer.layer.assemble import Frame, frame_of
from onelayer.layer.form import Block, Form, form_of
from onelayer.layer.heads import Gates
from onelayer.layer.layer import gate_layer
from onelayer.layer.rounding.deployed import Boxes, FormProgram
from onelayer.proof.analytic import chebyshev
from onelayer.proof.analytic.grid import Grids, grid_rounding, on_grids
from onelayer.proof.analytic.prove import prove
from onelayer.proof.analytic.strip import Ellipses, size_on_ellipses
from onelayer.proof.analytic.subdivision import tiling
from onelayer.proof.analytic.summand import Summand
from onelayer.proof.analytic.tiles import Tiles
from onelayer.proof.claim import Claim

KINDS = st.sampled_from(["gates", "memory"])
SEEDS = st.integers(0, 10**6)


@given(SEEDS, KINDS, st.floats(1.1, 5.0), st.floats(-0.3, 3.0), st.floats(-3.0, -0.7))
def test_the_strip_bound_holds_at_complex_points(seed, kind, rho, sharp, width):
    """|T| at random points with one coordinate on its ellipse is below the bound (or the bound is infinite)."""
    form = form_of(random_layer(2, 1, seed, 10**sharp, kind))
    rng = np.random.default_rng(seed)
    c, r = rng.uniform(-0.4, 0.4, size=(1, 2)), 10**width * rng.uniform(0.1, 1, size=(1, 2))
    bound = size_on_ellipses(
        form, Ellipses(torch.from_numpy(c), torch.from_numpy(r), torch.tensor([[rho]]).double())
    ).numpy()[0, :, 0]
    for i in range(2):
        if math.isfinite(bound[i]):
            assert np.abs(complex_value(form, on_ellipse(rng, c[0], r[0], rho, i))).max() <= bound[i]


def on_ellipse(rng, c, r, rho, i):
    """Random points of the box, coordinate i on its ellipse or inside."""
    x = (c + r * rng.uniform(-1, 1, size=(300, len(c)))).astype(complex)
    turn = np.exp(1j * rng.uniform(0, 2 * np.pi, 300)) * np.where(rng.random(300) < 0.5, rho, rng.uniform(1, rho, 300))
    x[:, i] = c[i] + r[i] * (turn + 1 / turn) / 2
    return x


def complex_value(form, x):
    total = form.bias.numpy() + x @ form.linear.numpy()
    for block in form.blocks:
        scores = np.einsum("bd,htd->bht", x, block.keys.numpy()) + block.biases.numpy()
        e = np.exp(scores - scores.real.max(axis=-1, keepdims=True))
        w = e / e.sum(axis=-1, keepdims=True)
        values = block.values.numpy() + np.einsum("bd,htdo->bhto", x, block.slopes.numpy())
        total = total + (w[..., None] * values).sum(axis=(1, 2))
    return total


def test_negligible_tokens_may_turn_as_they_like():
    """A gate of sharpness 1,000 far from its offset: no bound if all tokens are kept, |F| near 1 if not."""
    layer = gate_layer(torch.zeros(1).double(), 1, (_gate(1000.0, -0.4), torch.tensor([[[1.0], [0], [0]]]).double()))
    form, far = (
        form_of(layer),
        Ellipses(torch.full((1, 1), 0.2).double(), torch.full((1, 1), 0.1).double(), torch.full((1, 1), 2.0).double()),
    )
    assert size_on_ellipses(form, far, closely=False).isinf().all()
    assert 1 <= float(size_on_ellipses(form, far)) < 1.1
    near = Ellipses(
        torch.full((1, 1), -0.35).double(), torch.full((1, 1), 0.1).double(), torch.full((1, 1), 2.0).double()
    )
    assert size_on_ellipses(form, near).isinf().all()


def _gate(sharpness, offset):
    return Gates(
        torch.tensor([sharpness]).double(), torch.tensor([[offset]]).double(), torch.ones(1, 1, dtype=torch.bool)
    )


@given(SEEDS, KINDS, st.integers(1, 4), st.floats(-1.0, 3.0))
def test_grids_are_within_their_rounding(seed, kind, D, sharp):
    """T on product grids against the real T in balls, with zero slack; sharp layers take the other path."""
    form = form_of(random_layer(D, 2, seed, 10**sharp, kind))
    rng = np.random.default_rng(seed)
    n = 3
    x = rng.uniform(-0.5, 0.5, size=(2, D, n))
    T, rounding = on_grids(form, Grids(torch.from_numpy(x.mean(axis=2)), torch.from_numpy(x)), 0.5)
    index = np.stack(np.meshgrid(*([np.arange(n)] * D), indexing="ij"), axis=-1).reshape(-1, D)
    for b, k in ((0, 0), (1, n**D - 1), (1, n**D // 2)):
        point = [x[b, j, index[k, j]].item() for j in range(D)]
        with ctx.workprec(200):
            real = hunting.real_value(form, Frame((0.0,) * D, (1.0,) * D), point)
            for o in range(2):
                assert abs(arb(T[b, k, o].item()) - real[o]) <= arb(rounding[o].item())


def test_some_heads_this_way_some_that_way_pays_for_both():
    tame, steep = (form_of(random_layer(1, 1, 0, sharp, "memory")) for sharp in (1.0, 3e3))
    both = Form(tame.bias, tame.linear, (*tame.blocks, *steep.blocks))
    x = torch.linspace(-0.5, 0.5, 5).double().reshape(1, 1, 5)
    T, rounding = on_grids(both, Grids(x.mean(dim=2), x), 0.5)
    whole = Boxes(torch.zeros(1, 1).double(), torch.full((1, 1), 0.5).double())
    assert rounding >= grid_rounding(both, 0.5) + FormProgram.of_form(both, FLOAT64, factored=False).on_boxes(whole)
    torch.testing.assert_close(T[0], both(x[0].T), rtol=0, atol=1e-11)


def test_formulas_on_grids_are_formulas_at_points():
    formula = ol.Target("sin(x1)*x3 + exp(x2); 4; x2**2/(x1+2)", [(0, 1)] * 3).formula
    axes = np.random.default_rng(0).random((2, 3, 4))
    values, errors = evaluate_bounded_on_axes(formula, list(axes.swapaxes(0, 1)))
    points = Grids(torch.zeros(2, 3).double(), torch.from_numpy(axes)).points().numpy()
    expected = evaluate_bounded(formula, points)
    np.testing.assert_array_equal(values.reshape(-1, 3), expected[0])
    np.testing.assert_array_equal(errors.reshape(-1, 3), expected[1])


def test_interpolation_and_its_constants():
    p, N = 12, 40
    t = chebyshev.nodes(p)
    polynomial = np.polynomial.Polynomial(np.random.default_rng(0).normal(size=p + 1))
    fine = np.cos((2 * np.arange(N) + 1) * np.pi / (2 * N))
    a = chebyshev.along(chebyshev.coefficients(p), polynomial(t)[None], 1)
    np.testing.assert_allclose(chebyshev.along(chebyshev.values(p, N), a, 1)[0], polynomial(fine), rtol=0, atol=1e-12)
    np.testing.assert_allclose(a[0], polynomial.convert(kind=np.polynomial.Chebyshev).coef, rtol=0, atol=1e-12)
    dense = polynomial(np.linspace(-1, 1, 20_001))
    assert np.abs(dense).max() <= np.abs(polynomial(fine)).max() * chebyshev.enlargement(p, N, 1)
    through = chebyshev.values(p, 4000) @ chebyshev.coefficients(p)
    assert np.abs(through).sum(axis=1).max() <= chebyshev.lebesgue(p)
    rho = 2.0  # 1/(1.3 − y) is analytic in the ellipse
    V = 1 / (1.3 - (rho + 1 / rho) / 2)
    fixed = (np.zeros((1, 1, 1)), np.zeros((1, 0)), np.zeros((1, 1)))  # slopes, constants and what they cost
    tiles = Tiles(np.array([[[-1.0], [1.0]]]), np.array([[rho]]), np.array([[[V]]]), *fixed)
    off = np.abs(through @ (1 / (1.3 - t)) - 1 / (1.3 - np.cos((2 * np.arange(4000) + 1) * np.pi / 8000))).max()
    assert off <= tiles.truncation(p).item() < 100 * off


def part_of(formula, domain, layer, within=None):
    target = ol.Target(formula, domain, within=within)
    group = tuple(range(target.dimension))
    return Summand(form_of(layer), target.formula, target, frame_of(target.domain), group)


def test_boxes_are_small_where_the_layer_turns():
    """One very sharp gate in the middle: boxes shrink toward it and cover the side without gaps."""
    layer = gate_layer(torch.zeros(1).double(), 1, (_gate(3000.0, 0.0), torch.tensor([[[1.0], [0], [0]]]).double()))
    tiles = tiling(part_of("x1", [(0, 1)], layer), Budget().over, 1, 0.0).analytic
    order = np.argsort(tiles.boxes[:, 0, 0])
    low, high = tiles.boxes[order, 0, 0], tiles.boxes[order, 1, 0]
    assert low[0] == 0
    assert high[-1] == 1
    np.testing.assert_array_equal(high[:-1], low[1:])
    widths = high - low
    assert len(tiles) < 60  # evenly, more than 1,000
    assert widths.max() > 30 * widths.min()
    assert abs((low + high)[widths.argmin()] / 2 - 0.5) < 0.01


def test_boxes_do_not_depend_on_the_accuracy():
    """A millionth of the truncation on the very same boxes: only the degrees rise."""
    target = ol.Target("exp(-x1)*cos(3*x2)", [(0, 1)] * 2)
    layer = solved_layer(Request(target, 1e-4, construction="gates"))
    rough, close = (
        prove(form_of(layer), frame_of(target.domain), Claim(target, 1e-4), truncation=t) for t in (1e-6, 1e-12)
    )
    assert rough.evidence.boxes == close.evidence.boxes
    assert rough.evidence.degrees[0] < close.evidence.degrees[0] < 2 * rough.evidence.degrees[0]
    assert close.bound <= rough.bound <= 1.25 * close.bound


def test_progress_names_the_bound_and_an_interrupt_keeps_it():
    target = ol.Target("x1*x2", [(-1, 1)] * 2, within="x1**2 + x2**2 <= 1")
    form, frame = form_of(random_layer(2, 1, 0, 3.0, "memory")), frame_of(target.domain)
    seen = []
    whole = prove(form, frame, Claim(target, 1e-3, progress=lambda stage, fraction: seen.append((stage, fraction))))
    stages, fractions = zip(*seen, strict=True)
    assert stages[0] == "certifying"
    assert stages[-1] == f"certifying, bound {at_most(whole.bound, 3)}"
    assert list(fractions) == sorted(fractions)
    assert fractions[-1] == 1.0

    def interrupt(stage, fraction):
        if "bound" in stage:
            raise KeyboardInterrupt

    early = prove(form, frame, Claim(target, 1e-3, progress=interrupt))
    assert whole.bound < early.bound < math.inf


def test_an_interrupt_before_there_is_a_bound_is_an_interrupt():
    target = ol.Target("x1*x2", [(-1, 1)] * 2)

    def interrupt(stage, fraction):
        raise KeyboardInterrupt

    claim = Claim(target, 1e-3, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        prove(form_of(random_layer(2, 1, 0, 3.0, "memory")), frame_of(target.domain), claim)


def test_a_head_without_tokens_proves_nothing():
    block = Block(*(torch.zeros(s).double() for s in ((1, 2, 1), (1, 2), (1, 2, 1), (1, 2, 1, 1))))
    nobody = Block(block.keys, block.biases - math.inf, block.values, block.slopes)
    form = Form(torch.zeros(1).double(), torch.zeros(1, 1).double(), (nobody,))
    target = ol.Target("x1", [(0, 1)])
    assert prove(form, frame_of(target.domain), Claim(target, 0.1)).bound == math.inf
    many = [torch.zeros(s).double() for s in ((1, 2, 5), (1, 2), (1, 2, 1), (1, 2, 5, 1))]
    wide = Form(form.bias, torch.zeros(5, 1).double(), (Block(many[0], many[1] - math.inf, *many[2:]),))
    target = ol.Target("x1*x2*x3*x4*x5", [(0, 1)] * 5)
    assert prove(wide, frame_of(target.domain), Claim(target, 0.1)).bound == math.inf
