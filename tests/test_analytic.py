"""The analytic certificate: close where it should be, and never below the truth, with zero slack."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from onelayer.assemble import assemble
from onelayer.build import certify_layer, frame_of
from onelayer.certify import chebyshev
from onelayer.certify.analytic import prove
from onelayer.certify.form import form_of
from onelayer.certify.part import Budget
from onelayer.certify.strip import Ellipses, largest
from onelayer.formula import parse
from onelayer.formula.bounded import evaluate_bounded
from onelayer.groups import groups_of, parts_of
from onelayer.heads import Gates, Maxima, Memory, Ridges
from onelayer.layer import scalar_layer, vector_layer
from onelayer.plan import outputs_of

ANALYTIC = [
    ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-4),
    ("exp(-x1)*cos(3*x2)", [(0, 1)] * 2, 1e-4),
    ("1/(1+x1**2+x2**2)", [(0, 1)] * 2, 1e-4),
    ("1/(1+25*x1**2)", [(-1, 1)], 1e-4),
    ("x1*x2; x1 - x2**2", [(0, 1)] * 2, 1e-3),
    ("x1*x2*x3", [(0, 1)] * 3, 1e-2),
]


@pytest.mark.parametrize(("formula", "domain", "tolerance"), ANALYTIC)
@pytest.mark.parametrize("construction", ["gates", "memory"])
def test_solved_layers_are_certified_closely(formula, domain, tolerance, construction):
    c = ol.build(formula, domain, tolerance, construction=construction).certificate
    assert c.verdict == "CERTIFIED"
    assert c.method == "analytic"
    assert c.observed <= c.bound <= 1.25 * c.observed
    assert c.bound <= tolerance


def test_an_additive_target_in_8_variables_costs_one_dimensional_certificates():
    formula = " + ".join(f"sin({i}*x{i})" for i in range(1, 9)) + " + x1*x2"
    c = ol.build(formula, [(0, 1)] * 8, 1e-3).certificate
    assert c.verdict == "CERTIFIED"
    assert max(map(len, c.evidence["groups"])) == 2
    assert len(c.evidence["groups"]) == 7


def test_part_of_a_box():
    c = ol.build("x1*x2", [(-1, 1)] * 2, 1e-2, where="x1**2 + x2**2 <= 1").certificate
    assert c.observed <= c.bound < math.inf


@pytest.mark.parametrize("formula", ["abs(x1-x2)", "max(x1, x2)", "where(x1 < 0.5, 0, x2)", "sqrt(x1*x2)"])
def test_kinks_jumps_and_singularities_are_left_undecided(formula):
    c = ol.build(formula, [(0, 1)] * 2, 0.5, units=9).certificate
    assert c.verdict == "UNDECIDED"
    assert c.bound == math.inf


def test_a_callable_is_left_undecided():
    assert ol.build(lambda x: np.sin(x[:, 0]), [(0, 1)], 1e-3).certificate.verdict == "UNDECIDED"


def test_a_spent_budget_is_undecided():
    target = ol.Target("sin(x1)", [(0, 1)])
    form = form_of(random_layer(1, 1, 0, 50.0, "memory"))
    proof = prove(form, target, frame_of(target.domain), 1e-3, Budget(seconds=-1.0))
    assert proof.bound == math.inf


def random_layer(D, m, seed, sharp, kind):
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=g, dtype=torch.float64)

    if kind == "gates":
        kept = torch.rand(6, D, generator=g) < 0.8
        gates = Gates(normal(6) * sharp, normal(6, D) / 3, kept)
        reach = torch.rand(2, D, generator=g) < 0.8
        reach[:, 0] = True
        maxima = Maxima(normal(2) * sharp, normal(2, D) / 3, reach)
        values, tops = normal(6, D + 2, m), normal(2, m)
        return scalar_layer(normal(m), D, (gates, values), (maxima, tops), normal(D, m))
    memory = Memory(normal(7, D) * sharp, normal(7) * sharp, torch.zeros(7, dtype=torch.int64))
    ridges = Ridges(normal(3, D) * sharp, normal(3) * sharp)
    return vector_layer(normal(m), D, (memory, normal(7, m)), (ridges, normal(3, m)), normal(D, m))


def observed_maximum(layer, target, seed, D):
    """The largest |model − f| found by sampling and by closing in on the worst points, f's own error taken off."""
    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    rng = np.random.default_rng(seed)
    unit = np.concatenate([rng.random((3000, D)), rng.integers(0, 2, size=(50, D)).astype(float)])
    best, step = 0.0, 0.1
    for _ in range(6):
        x = target.domain.points(np.clip(unit, 0, 1))
        with torch.no_grad():
            T = model(torch.from_numpy(x).reshape(len(x), model.config.tokens, -1)).flatten(1).numpy()
        f, error = evaluate_bounded(target.formula, x)
        gap = (np.abs(T - f) - error).max(axis=1)
        best = max(best, float(gap.max()))
        top = unit[np.argsort(-gap)[:20]]
        unit = np.repeat(top, 40, axis=0) + step * rng.normal(size=(800, D))
        step /= 5
    return best


TARGETS = ["sin(3*x1)", "exp(x1)", "1/(1.05 - x1)", "log(x1 + 0.01)", "sqrt(x1 + 0.02)", "x1**3 - x1", "atan(9*x1 - 4)",
           "asin(0.98*x1)", "tanh(20*x1 - 7)", "1e6*x1**2 - 1e6*x1"]  # fmt: skip


@settings(max_examples=60)
@given(
    st.sampled_from(TARGETS), st.sampled_from(["gates", "memory"]), st.sampled_from([0.5, 5.0, 60.0, 1e3]),
    st.integers(0, 10**6),
)  # fmt: skip
def test_no_bound_is_below_the_truth_in_one_dimension(formula, kind, sharp, seed):
    hunt(formula, kind, sharp, seed, 1)


@settings(max_examples=30)
@given(
    st.sampled_from(["sin(3*x1)*x2", "exp(x1*x2)", "1/(1.1 - x1*x2)", "x1 + cos(5*x2)", "sqrt(x1 + x2 + 0.1)"]),
    st.sampled_from(["gates", "memory"]),
    st.sampled_from([0.5, 5.0, 20.0]),
    st.integers(0, 10**6),
)
def test_no_bound_is_below_the_truth_in_two_dimensions(formula, kind, sharp, seed):
    hunt(formula, kind, sharp, seed, 2)


def hunt(formula, kind, sharp, seed, D):
    target = ol.Target(formula, [(0, 1)] * D)
    layer = random_layer(D, 1, seed, sharp, kind)
    proof = prove(form_of(layer), target, frame_of(target.domain), 0.1, Budget(seconds=1.0))
    assert observed_maximum(layer, target, seed, D) <= proof.bound


def test_the_hunt_finds_something():
    """Bounds are finite and close on tame cases, so that the hunts above are not empty."""
    ratios = []
    for D, formula in ((1, "sin(3*x1)"), (2, "exp(x1*x2)")):
        for seed, kind in enumerate(["gates", "memory"] * 3):
            target = ol.Target(formula, [(0, 1)] * D)
            layer = random_layer(D, 1, seed, 5.0, kind)
            bound = prove(form_of(layer), target, frame_of(target.domain), 0.1).bound
            ratios.append(bound / observed_maximum(layer, target, seed, D))
    assert max(ratios) < 1.1
    assert min(ratios) >= 1.0


def test_can_fail():
    """One value moved by more than the slack, and CERTIFIED vanishes."""
    from dataclasses import replace

    from onelayer.solved import solved_layer
    from onelayer.wishes import Wishes

    target = ol.Target("sin(x1)+sin(x2)", [(0, "2*pi")] * 2)
    layer = solved_layer(target, Wishes(1e-4, "gates"))
    assert certify_layer(target, layer, "token", 1e-4, 0.0, 0).verdict == "CERTIFIED"
    values = layer.gate_values.clone()
    values[3, 0, 0] += 1e-3
    moved = certify_layer(target, replace(layer, gate_values=values), "token", 1e-4, 0.0, 0)
    assert moved.verdict == "UNDECIDED"
    assert 1e-4 < moved.bound < 2e-3
    broken = values.clone()
    broken[0, 0, 0] = math.nan
    assert certify_layer(target, replace(layer, gate_values=broken), "token", 1e-4, 0.0, 0).verdict == "UNDECIDED"


@given(st.integers(0, 10**6), st.sampled_from(["gates", "memory"]), st.floats(1.1, 5.0), st.floats(0.5, 30.0))
def test_the_strip_bound_holds_at_complex_points(seed, kind, rho, sharp):
    """|T| at random points with one coordinate on its ellipse is below the bound (or the bound is infinite)."""
    D = 2
    form = form_of(random_layer(D, 1, seed, sharp, kind))
    rng = np.random.default_rng(seed)
    c, r = rng.uniform(-0.4, 0.4, size=(1, D)), rng.uniform(0.001, 0.2, size=(1, D))
    bound = largest(form, Ellipses(torch.from_numpy(c), torch.from_numpy(r), rho)).numpy()[0, :, 0]
    for i in range(D):
        if math.isfinite(bound[i]):
            x = (c + r * rng.uniform(-1, 1, size=(200, D))).astype(complex)
            phase = np.exp(1j * rng.uniform(0, 2 * np.pi, 200))
            x[:, i] = c[0, i] + r[0, i] * (rho * phase + 1 / (rho * phase)) / 2
            assert np.abs(complex_value(form, x)).max() <= bound[i]


def complex_value(form, x):
    total = form.bias.numpy() + x @ form.linear.numpy()
    for block in form.blocks:
        scores = np.einsum("bd,htd->bht", x, block.keys.numpy()) + block.biases.numpy()
        e = np.exp(scores - scores.real.max(axis=-1, keepdims=True))
        w = e / e.sum(axis=-1, keepdims=True)
        values = block.values.numpy() + np.einsum("bd,htdo->bhto", x, block.slopes.numpy())
        total = total + (w[..., None] * values).sum(axis=(1, 2))
    return total


@given(st.integers(0, 10**6), st.sampled_from(["gates", "memory"]), st.integers(1, 4))
def test_the_form_is_the_model(seed, kind, D):
    target = ol.Target("x1", [(-1, 2)] * D)
    layer = random_layer(D, 1, seed, 10.0, kind)
    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    x = torch.from_numpy(target.domain.points(np.random.default_rng(seed).random((30, D))))
    form = form_of(layer)
    expected = model(x.reshape(30, model.config.tokens, -1)).flatten(1)
    torch.testing.assert_close(form(frame_of(target.domain)(x)), expected, rtol=0, atol=1e-11)
    parts = form.restricted(tuple(range(D)), with_bias=True)
    torch.testing.assert_close(parts(frame_of(target.domain)(x)), expected, rtol=0, atol=1e-11)


def test_interpolation_and_its_constants():
    p, N = 12, 40
    t = chebyshev.nodes(p)
    polynomial = np.polynomial.Polynomial(np.random.default_rng(0).normal(size=p + 1))
    fine = np.cos((2 * np.arange(N) + 1) * np.pi / (2 * N))
    np.testing.assert_allclose(chebyshev.matrix(p, N) @ polynomial(t), polynomial(fine), rtol=0, atol=1e-12)
    dense = polynomial(np.linspace(-1, 1, 20_001))
    assert np.abs(dense).max() <= np.abs(polynomial(fine)).max() * chebyshev.enlargement(p, N, 1)
    assert np.abs(chebyshev.matrix(p, 4000)).sum(axis=1).max() <= chebyshev.lebesgue(p)
    f = 1 / (1.3 - fine)  # analytic in the ellipse with ρ + 1/ρ < 2.6
    rho = 2.0
    V = 1 / (1.3 - (rho + 1 / rho) / 2)
    off = np.abs(chebyshev.matrix(p, N) @ (1 / (1.3 - t)) - f).max()
    assert off <= V * chebyshev.truncation(p, rho, 1)


def test_a_formula_is_the_sum_of_its_parts():
    formula = parse("-(sin(x1) - 2*(x2*x4 + 3))/pi + x3**2 + 7; x1 - x2", ("x1", "x2", "x3", "x4"))
    target = ol.Target(formula.text, [(0, 1)] * 4)
    groups = groups_of(target)
    assert groups == [(0,), (1, 3), (2,)]
    x = np.random.default_rng(0).random((20, 4))
    parts = zip(parts_of(formula, groups), groups, strict=True)
    total = sum(evaluate_bounded(part, x[:, list(group)])[0] for part, group in parts)
    np.testing.assert_allclose(total, target(x), rtol=0, atol=1e-14)
