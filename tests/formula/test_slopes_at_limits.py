"""sinc′ and exprel′ around 0, where the language writes them as 0/0: every reading against balls, with zero slack."""

import pickle

import numpy as np
import pytest
import torch
from flint import acb, arb, ctx

import onelayer as ol
from onelayer.formula import enclose, enclose_complex, evaluate, gradient, interval, parse
from onelayer.formula.complex_rectangles import enclose_rectangles
from onelayer.formula.float_bounds import DefinedAlgebra, evaluate_bounded
from onelayer.formula.taylor.axes import axis_coefficients

NAMES = ("sinc", "exprel")
POINTS = [
    0.0,
    -0.0,
    5e-324,
    -1e-300,
    1e-9,
    -1e-9,
    0.01,
    0.4999999,
    -0.4999999,
    0.5,
    -0.5,
    2.0816,
    4.4934,
    -4.4934,
    7.99,
    8.1,
]
POINTS += [-30.0, 30.0, 300.0, -300.0]


def slope(name):
    return parse(f"{name}(x1)", ("x1",)).slopes


def exact(name, z, k=1):
    """The k-th derivative at a complex point: ∫t^k e^(tz)dt = ₁F₁(k + 1; k + 2; z)/(k + 1), and that of sinc by z → ±iz."""
    z, i = acb(z), acb(0, 1)
    whole = lambda w: w.hypgeom_1f1(acb(k + 1), acb(k + 2)) / (k + 1)  # noqa: E731
    return whole(z) if name == "exprel" else (i**k * whole(i * z) + (-i) ** k * whole(-i * z)) / 2


def some_boxes(seed):
    """Intervals of all widths: around 0, beside it, and far away."""
    rng = np.random.default_rng(seed)
    for centre in [*POINTS, *rng.uniform(-9, 9, 30).tolist()]:
        width = 10.0 ** rng.uniform(-12, 0.5)
        low = centre - width * float(rng.choice([0.0, rng.random(), 1.0]))
        yield low, low + width


@pytest.mark.parametrize("name", NAMES)
def test_the_truth_is_the_quotient_away_from_0(name):
    with ctx.workprec(400):
        for x in (0.7, -2.5, 4.4):
            z = arb(x)
            quotient = (z.cos() - z.sinc()) / z if name == "sinc" else (z.exp() - z.expm1() / z) / z
            assert abs(exact(name, x) - quotient).abs_upper() < arb("1e-90")


@pytest.mark.parametrize("name", NAMES)
def test_floats(name):
    x = np.array([*POINTS, *np.random.default_rng(1).uniform(-3, 3, 400)])[:, None]
    values, errors = evaluate_bounded(slope(name), x)
    with ctx.workprec(400):
        for point, value, error in zip(x[:, 0].tolist(), values[:, 0].tolist(), errors[:, 0].tolist(), strict=True):
            assert not abs(exact(name, point).real - arb(value)) > arb(error), point
            assert abs(point) > 100 or error <= 1e-13 * (1 + abs(value))
    np.testing.assert_array_equal(evaluate(slope(name), x), values)
    there = evaluate(slope(name), torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(there, values, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_errors_of_the_argument_count(name):
    """The argument (x + 1e8) − 1e8 is off by far more than the slope rounds."""
    formula = parse(f"{name}(x1 + 1e8 - 1e8)", ("x1",)).slopes
    x = np.random.default_rng(2).uniform(-1, 1, (300, 1))
    values, errors = evaluate_bounded(formula, x)
    misses = [
        abs(float(exact(name, p).real.mid()) - v) for p, v in zip(x[:, 0].tolist(), values[:, 0].tolist(), strict=True)
    ]
    assert (np.array(misses) <= errors[:, 0] + 1e-15).all()
    assert max(misses) > 1e-10
    assert np.isfinite(errors).all()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_intervals_and_partials(name):
    for low, high in some_boxes(3):
        (found,), ((partial,),) = gradient(slope(name), [interval(low, high)])
        (plain,) = enclose(slope(name), [interval(low, high)])
        assert plain.is_finite()
        assert partial.is_finite()
        with ctx.workprec(400):
            for share in (0.0, 0.3, 1.0):
                x = min(low + share * (high - low), high)
                for part, k in ((found, 1), (plain, 1), (partial, 2)):
                    value = exact(name, x, k).real
                    assert not value < part.lo, (low, high, k)
                    assert not value > part.hi, (low, high, k)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_complex_balls_and_rectangles(name):
    rng, near = np.random.default_rng(4), 0
    for low, high in some_boxes(4):
        if max(abs(low), abs(high)) > 40:
            continue
        im = (high - low) * 10.0 ** rng.uniform(-2, 0.5)
        box = acb(arb((low + high) / 2, (high - low) / 2), arb(0, im))
        (ball,) = enclose_complex(slope(name), [box])
        ((a, b, e),) = enclose_rectangles(slope(name), [(np.array([low]), np.array([high]), np.array([im]))])
        near += low <= 0 <= high
        assert ball.is_finite()
        assert np.isfinite(e).all() or high > 8 or low < -8
        with ctx.workprec(400):
            for u, v in [*rng.uniform(-1, 1, (6, 2)), (-1, 1), (1, 1), (0, 1)]:
                x = min(max((low + high) / 2 + u * (high - low) / 2, low), high)
                value = exact(name, acb(x, v * im))
                assert ball.overlaps(value)
                if np.isfinite(e).all():
                    assert not value.real < arb(float(a[0]))
                    assert not value.real > arb(float(b[0]))
                    assert not abs(value.imag) > arb(float(e[0]))
    assert near > 5


@pytest.mark.parametrize("name", NAMES)
def test_taylor_coefficients(name):
    order, boxes = 6, [box for box in some_boxes(5) if max(map(abs, box)) < 40]
    lower, upper = (np.array([[box[end]] for box in boxes]) for end in (0, 1))
    half = (upper / 2 - lower / 2) * (1 + 2.0**-51)
    ((low, high),) = axis_coefficients(slope(name), lower, upper, half, order)
    around = ((lower <= 0) & (upper >= 0))[:, 0]
    assert np.isfinite(high[:, 0, around & (half[:, 0] < 3)]).all()
    with ctx.workprec(400):
        for b, (first, last) in enumerate(boxes):
            for x in (first, first + 0.4 * (last - first), last):
                for j in range(order + 1):
                    if np.isfinite(high[j, 0, b]):
                        value = (
                            exact(name, min(x, last), j + 1).real * (arb(last) / 2 - arb(first) / 2) ** j / arb(j).fac()
                        )
                        assert not value < arb(float(low[j, 0, b])), (first, last, j)
                        assert not value > arb(float(high[j, 0, b])), (first, last, j)


def test_only_a_gradient_is_read_so():
    """A formula that somebody writes is what it says: 0/0 has no value."""
    written = parse("(cos(x1) - sinc(x1))/x1")
    assert not enclose(written, [interval(-1, 1)])[0].is_finite()
    assert np.isinf(evaluate_bounded(written, np.zeros((1, 1)))[1]).all()
    derived = slope("sinc")
    assert derived.text == written.text
    assert not enclose(derived, [interval(-1, 1)], strict=True)[0].is_finite()
    with np.errstate(all="ignore"):
        assert not np.isfinite(derived.tape.run(DefinedAlgebra(np.zeros((1, 1))))[0][1]).any()
    again = pickle.loads(pickle.dumps(derived.tape))
    assert len(again._varying) == len(derived.tape._varying)
    assert {step.method for step in again._varying} == {step.method for step in derived.tape._varying}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("sin(3*x)/x", [(-1, 1)]),
        ("(exp(x) - 1)/x", [(-1, 2)]),
        ("x/(exp(x) - 1)", [(0, 1)]),
        ("(1 - cos(x))/x^2", [(-3, 3)]),
    ],
)
def test_slopes_around_a_limit_are_certified(text, domain):
    c = ol.build(text, domain, 1e-3, slope_tolerance=2e-2).certificate
    assert c.verdict == "CERTIFIED"
    assert c.slope.observed <= c.slope.bound <= 1.3 * c.slope.observed
