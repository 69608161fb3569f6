"""Taylor models: every enclosure contains the function, on boxes of all sizes, with zero slack."""

import numpy as np
import pytest
import torch
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import configs, random_model
from formula_cases import dice, draw_box, draw_formula, draw_point, value_at
from formula_cases import settings as formula_settings
from onelayer.formula import parse, parse_condition
from onelayer.formula.taylor.formula import TaylorAlgebra, condition_on
from onelayer.formula.taylor.kink import maximum, merged
from onelayer.formula.taylor.series import Space, monomials
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.layer.assemble import Frame, Outputs, assemble
from onelayer.layer.heads import Maxima
from onelayer.layer.layer import gate_layer
from onelayer.proof.bisection.transformer import Network, opposite_pairs
from onelayer.proof.witness import in_balls


def space_of(box):
    """One box, given as pairs (low, high)."""
    return Space(*(np.array([[side[end] for side in box]]) for end in (0, 1)))


def inside(value, low, high):
    """Whether a ball is not proved to lie outside [low, high]."""
    return not (value < arb(float(low)) or value > arb(float(high)))


def follows(model, box, point, value, off=0.0):
    """Whether the polynomial at a point is not proved farther from the value than remainder, kinks and `off` allow."""
    space, c, r = model.space, model.c[:, box], float(model.r[box])
    if not (np.isfinite(c).all() and np.isfinite(r)):
        return True
    total, slack = arb(0), arb(r) + arb(float(off))
    with ctx.workprec(300):
        t = [
            (arb(x) - arb(m)) / arb(h)
            for x, m, h in zip(point, space.centre[box].tolist(), space.half[box].tolist(), strict=True)
        ]
        for exponents, coefficient in zip(space.monomials.exponents.tolist(), c.tolist(), strict=True):
            term = arb(coefficient)
            for base, power in zip(t, exponents, strict=True):
                term *= base**power
            total += term
        for k, a in model.a.items():
            slack += abs(arb(float(a[box]))) * arb(float(space.kinks[k].half[box]))
        return not abs(value - total) > slack


@formula_settings
@given(dice)
def test_drawn_formulas_are_enclosed(rng):
    formula = draw_formula(rng, rng.randint(1, 4))
    if formula is None:
        return
    box = draw_box(rng)
    found = formula.tape.run(TaylorAlgebra(space_of(box)))[0]
    model_low, model_high = found.model.range()
    for _ in range(8):
        point = draw_point(rng, box)
        value = value_at(formula.outputs[0], point)
        if value is None:
            continue
        if value == "undefined":
            assert not (np.isfinite(found.low[0]) and np.isfinite(found.high[0])), (formula.text, box)
            continue
        for low, high in ((found.low[0], found.high[0]), (model_low[0], model_high[0])):
            assert inside(value, low, high), (formula.text, box, low, high)
        assert follows(found.model, 0, point, value), (formula.text, box, point)


STEEP = [
    "sin(1e3*x1)", "exp(-(9*x1-4)**2)", "1/(x1+1e-3)", "sqrt(x1)", "sqrt(x1*x2)", "log(x1+1e-9)", "asin(x1)", "acos(x1)",
    "atan(1e3*x1)", "tan(1.57*x1)", "sigmoid(200*(x1-x2))", "erf(30*x1-9)", "tanh(1e3*x1-300)", "x1**0.3", "x1**-2.5",
    "x1**x2", "(1e8+x1)-1e8", "1e9*(x1+1)**2-1e9*x1**2", "abs(x1-x2)", "max(x1,x2,0.3)", "min(x1*x2,sin(9*x1))",
    "where(x1<x2,x1,x2**2)", "abs(abs(x1-0.5)-abs(x2-0.5))", "cosh(9*x1)-sinh(9*x1)", "x1**7-x2**5",
    "1e234*(exp((1e13+269.0009)-1e13+0.01*x1))**-2", "1e250*(1e-130*(x1+1))*(1e-130*x2+1e-131)", "1/(1+25*(x1-x2)**2)",
]  # fmt: skip


@pytest.mark.parametrize("text", STEEP)
def test_steep_formulas_are_enclosed_on_boxes_down_to_a_billionth(text):
    rng = np.random.default_rng(0)
    formula = parse(text, ("x1", "x2"))
    n = 60
    half = 10.0 ** rng.uniform(-12, 0, size=(n, 1)) * rng.random((n, 2))
    middle = np.where(rng.random((n, 2)) < 0.3, rng.integers(0, 2, size=(n, 2)), rng.random((n, 2)))
    lower, upper = np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)
    found = formula.tape.run(TaylorAlgebra(Space(lower, upper)))[0]
    low, high = found.model.range()
    for b in range(n):
        for corner in (rng.random(2), rng.random(2), rng.integers(0, 2, size=2)):
            point = np.clip(lower[b] + (upper[b] - lower[b]) * corner, lower[b], upper[b]).tolist()
            value = value_at(formula.outputs[0], point)
            if value is None or value == "undefined":
                continue
            for a, z in ((found.low[b], found.high[b]), (low[b], high[b])):
                assert inside(value, a, z), (point, a, z)
            assert follows(found.model, b, point, value), point


def test_enclosures_are_of_fourth_order():
    """Halving a box of a smooth formula divides the remainder by about 16."""
    formula = parse("exp(x1)*sin(3*x2)/(1+x1**2)", ("x1", "x2"))
    rests = [
        formula.tape.run(TaylorAlgebra(space_of([(0.3, 0.3 + h), (0.4, 0.4 + h)])))[0].model.r[0] for h in (0.1, 0.05)
    ]
    assert 12 < rests[0] / rests[1] < 20


def test_conditions():
    space = Space(np.array([[0.0], [0.6], [0.4]]), np.array([[0.4], [1.0], [0.6]]))
    truth = condition_on(space, parse_condition("x1 < 0.5", ("x1",)))
    assert truth.yes.tolist() == [True, False, False]
    assert truth.no.tolist() == [False, True, False]
    lost = condition_on(space, parse_condition("1/(x1-0.2) < 1e9", ("x1",)))
    assert not lost.yes[0]


random_models = given(configs(), st.integers(0, 10**6), st.floats(-6, 0.5), st.floats(-1.5, 2.0), st.booleans())


def require_enclosed(config, seed, size, sharp, single):
    """The real function of the weights is enclosed; the model's answers lie within the stated rounding of what is."""
    model = random_model(config, seed)
    with torch.no_grad():
        model.W_K.mul_(10.0**sharp)
    model = model.float() if single else model
    rng = np.random.default_rng(seed)
    D = config.tokens * config.features_in
    middle = rng.normal(size=(2, D)).astype(np.float32)
    half = 10.0**size * rng.random((2, D))
    lower, upper = (middle - half).astype(np.float32), (middle + half).astype(np.float32)
    answer = Network(model, FLOAT32 if single else FLOAT64)(Space(lower.astype(float), upper.astype(float)))
    low, high = answer.model.range()
    for b in range(2):
        points = np.clip(lower[b] + (upper[b] - lower[b]) * rng.random((3, D)), lower[b], upper[b]).astype(np.float32)
        given_points = torch.from_numpy(points).to(model.W_E.dtype).reshape(3, config.tokens, config.features_in)
        with torch.no_grad():
            computed = model(given_points).flatten(1).double().numpy()
        for point, row in zip(points.astype(float), computed, strict=True):
            exact = [value for place in in_balls(model, point.tolist()) for value in place]
            for o, value in enumerate(exact):
                assert inside(value, low[b, o], high[b, o])
                assert follows(answer.model[o], b, point.tolist(), value)
                assert follows(answer.model[o], b, point.tolist(), arb(float(row[o])), answer.off[b, o])


@settings(max_examples=30)
@random_models
def test_any_model_is_enclosed_in_its_own_arithmetic(config, seed, size, sharp, single):
    require_enclosed(config, seed, size, sharp, single)


@pytest.mark.long
@settings(max_examples=60)
@random_models
def test_many_models_are_enclosed_in_their_own_arithmetic(config, seed, size, sharp, single):
    require_enclosed(config, seed, size, sharp, single)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("sharpness", [0.3, 30.0, 1e4, 1e7, -1e5])
def test_rounding_of_sharp_maxima(sharpness, dtype):
    """Max-heads of all kinds, also on boxes across their kinks: what is computed is within `off` of what is enclosed."""
    rng = np.random.default_rng(int(abs(sharpness)))
    D, kept = 4, torch.tensor(rng.random((6, 4)) < 0.7)
    kept[:, 0] = True
    numbers = [torch.tensor(a) for a in (np.full(6, sharpness), 0.3 * rng.normal(size=(6, D)), rng.normal(size=(6, 2)))]
    layer = gate_layer(torch.zeros(2, dtype=torch.float64), D, maxima=(Maxima(*numbers[:2], kept), numbers[2]))
    model = assemble(layer, Frame((0.0,) * D, (1.0,) * D), Outputs(1, 2, (0,))).to(dtype)
    middle = rng.uniform(-0.4, 0.4, size=(30, D))
    middle[:24] = middle[:24, :1] - np.repeat(numbers[1].numpy(), 4, axis=0)  # all tokens of a head contend
    half = 10.0 ** rng.uniform(-9, -1, size=(30, 1)) * rng.random((30, D))
    lower, upper = ((middle + s * half).astype(np.float32) for s in (-1, 1))
    answer = Network(model, FLOAT32 if dtype is torch.float32 else FLOAT64)(
        Space(lower.astype(float), upper.astype(float))
    )
    assert (answer.off < 5000 * (2.0**-24 if dtype is torch.float32 else 2.0**-53)).all()  # no word of sharpness
    for b in range(len(lower)):
        points = np.clip(lower[b] + (upper[b] - lower[b]) * rng.random((4, D)), lower[b], upper[b]).astype(np.float32)
        with torch.no_grad():
            computed = model(torch.from_numpy(points).to(dtype)[..., None]).flatten(1).double().tolist()
        for point, row in zip(points.astype(float).tolist(), computed, strict=True):
            for o, value in enumerate(in_balls(model, point)[0]):
                assert follows(answer.model[o], b, point, value)
                assert follows(answer.model[o], b, point, arb(row[o]), answer.off[b, o])


def test_rounding_of_a_plain_model_is_small():
    model = random_model(
        ol.LayerConfig(tokens=2, features_in=1, features_out=1, d_model=4, heads=2, d_k=4, d_v=2, ffn_width=4)
    )
    answer = Network(model, FLOAT64)(Space(np.zeros((1, 2)), np.full((1, 2), 1e-3)))
    assert answer.off.max() < 1e-10


def test_equal_kinks_cancel_and_others_do_not():
    space = Space(np.zeros((3, 2)), np.array([[1.0, 1.0], [0.5, 1.0], [1e-3, 1e-3]]))
    x, y = space.variable(0), space.variable(1)
    zero = space.constant(np.zeros(3))
    one = maximum([x, y])
    for other, like in (
        (maximum([zero, (y - x).times(np.full(3, 7.0))]).times(np.full(3, 1 / 7)) + x, True),  # relu(7(y − x))/7 + x
        (maximum([y.times(np.full(3, 2.0)), x.times(np.full(3, 2.0))]).times(np.full(3, 0.5)), True),
        (maximum([x, y.times(np.full(3, 1.1))]), False),
    ):
        gap = one - other
        low, high = merged(gap).range()
        wide = gap.range()
        assert (wide[1] - wide[0] > 1e-6).all()
        assert (high - low < 1e-12).all() == like


def test_opposite_pairs():
    W_1, b_1 = np.array([[1.0, -1.0, 2.0, -2.0]]), np.array([0.5, -0.5, 0.0, 0.0])
    W_2 = np.array([[3.0], [-3.0], [1.0], [1.0]])  # the second pair is |z|, not z
    assert opposite_pairs(W_1, b_1, W_2) == ([0], [1])


def test_monomials():
    m = monomials(2)
    assert len(m) == 10
    assert m.exponents[:3].tolist() == [[0, 0], [1, 0], [0, 1]]
    assert all((m.exponents[i] + m.exponents[j] == m.exponents[k]).all() for i, j, k in m.pairs)
