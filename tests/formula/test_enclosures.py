"""Vectorised enclosures of formulas: Taylor coefficients along the axes, and complex rectangles, against complex balls."""

import math

import hypothesis
import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from onelayer.formula.complex_balls import ComplexAlgebra

from formula_cases import PARTIAL, SMOOTH, dice, draw_text, settings
from onelayer.common.errors import InputError
from onelayer.formula import enclose_complex, parse
from onelayer.formula.complex_rectangles import enclose_rectangles
from onelayer.formula.taylor.axes import axis_coefficients

ORDER = 6
EVERY = [f"{name}(x1*(1 + 0.3*x2))" for name in SMOOTH + PARTIAL] + [
    "x1**-3*x2", "x1**2.5/x2", "(x1 + x2)**(1/3)", "x1**x2", "abs(x1 - 9)*x2", "max(x1, -x2, 3)/x1", "1e8 + x1*x2",
    "where(x1 < 5, x1**7, x2)", "(x1 - x2)**2*3", "x1/(x1 + x2)", "1/(0.01 + sqr(x1 - x2))", "5", "pi*x2 - e", "x1**0",
]  # fmt: skip


def boxes_of(rng, D, count=6):
    """Random boxes: wide and narrow, some far from 0."""
    width = 10.0 ** rng.uniform(-3, 0, size=(count, D))
    lower = rng.uniform(-1.0, 1.0, size=(count, D)) * 10.0 ** rng.uniform(-1, 0.3, size=(count, 1))
    return lower, lower + width


def drawn(rng):
    """A random formula in two variables that the parser accepts."""
    while True:
        try:
            return parse(draw_text(rng, 3), ("x1", "x2"))
        except InputError:
            continue


def _turn(k, N):
    """e^(iπk/N)."""
    return acb((arb(k) / N).cos_pi(), (arb(k) / N).sin_pi())


def taylor_at(formula, x, half, i):
    """Coefficients half^j ∂_i^j f/j! at a point, in balls, by Cauchy's formula on a small circle; None if not analytic.

    With N points on a circle of radius r, the mean of f(x + r w)w^−j is a_j r^j up to the aliased terms a_{j+kN} r^{j+kN},
    which are at most V(r/R)^N/(1 − (r/R)^N)·… for |f| ≤ V on the circle of radius R.
    """
    N, small, wide = 32, arb(half) * arb("1e-4"), arb(half) * arb("0.01")

    def around(radius):
        at = [acb(v) for v in x]
        at[i] = acb(arb(float(x[i]), float(radius.upper())), arb(0, float(radius.upper())))
        return at

    V = [v.abs_upper() if v.is_finite() else None for v in enclose_complex(formula, around(wide), prec=400)]
    if any(v is None for v in V):
        return None
    found = []
    values = []
    for k in range(N):
        at = [acb(v) for v in x]
        at[i] = at[i] + small * _turn(2 * k, N)
        values.append(enclose_complex(formula, at, prec=400))
    for o, bound in enumerate(V):
        row = []
        for j in range(ORDER + 1):
            turned = [values[k][o] * _turn(-2 * k * j, N) for k in range(N)]
            mean = sum(turned, acb(0)) / N
            alias = 2 * bound * (small / wide) ** (N - ORDER)
            row.append((mean.real + arb(0, float(alias.upper()))) * (arb(half) / small) ** j)
        found.append(row)
    return found


def check_taylor(formula, lower, upper, rng):
    """No coefficient at any point of a box lies outside its enclosure; the number of coefficients that were compared."""
    half = (upper / 2 - lower / 2) * (1 + 2.0**-51)
    enclosed = axis_coefficients(formula, lower, upper, half, ORDER)
    compared = 0
    with ctx.workprec(400):
        for b in range(len(lower)):
            for _ in range(2):
                t = rng.integers(0, 2, lower.shape[1]) if rng.random() < 0.3 else rng.random(lower.shape[1])
                x = np.clip(lower[b] + t * (upper[b] - lower[b]), lower[b], upper[b]).tolist()
                i = int(rng.integers(lower.shape[1]))
                exact = None
                if all(np.isfinite(low[:, i, b]).any() for low, _ in enclosed):
                    exact = taylor_at(formula, x, float(upper[b, i] / 2 - lower[b, i] / 2), i)
                if exact is None:
                    continue
                for (low, high), row in zip(enclosed, exact, strict=True):
                    for j, value in enumerate(row):
                        if math.isfinite(low[j, i, b]):
                            assert not value < arb(low[j, i, b]), (formula.text, j, x, low[j, i, b], value)
                            assert not value > arb(high[j, i, b]), (formula.text, j, x, high[j, i, b], value)
                            compared += 1
    return compared


class Continued(ComplexAlgebra):
    """Values at complex points, continued from the real parts of the arguments along straight lines.

    atan2(y, x) = (log(x + iy) − log(x − iy))/2i. Turned by the angle of the real parts, lines begin at a positive number.
    """

    def call(self, name, arguments):
        if name != "atan2":
            return super().call(name, arguments)
        (y, x), i = arguments, acb(0, 1)
        above, below = (x + i * y) * acb(x.real, -y.real), (x - i * y) * acb(x.real, y.real)
        return acb(arb.atan2(y.real, x.real)) + (above.log() - below.log()) / (2 * i)


def check_rectangles(formula, lower, upper, rng):
    """No value at a complex point of a box lies outside its rectangle; the number of values that were compared."""
    im = np.where(rng.random(lower.shape) < 0.5, 0.0, (upper - lower) * 10.0 ** rng.uniform(-2, 1, size=lower.shape))
    box = [(lower[:, i], upper[:, i], im[:, i]) for i in range(lower.shape[1])]
    found = [[np.broadcast_to(e, len(lower)) for e in z] for z in enclose_rectangles(formula, box)]
    compared = 0
    with ctx.workprec(300):
        for b in range(len(lower)):
            if not all(np.isfinite(z[2][b]) for z in found):
                continue
            for _ in range(6):
                corner = rng.random() < 0.4
                s, t = (rng.integers(0, 2, lower.shape[1]) if corner else rng.random(lower.shape[1]) for _ in range(2))
                x = np.clip(lower[b] + s * (upper[b] - lower[b]), lower[b], upper[b])
                point = [acb(arb(a), arb(c)) for a, c in zip(x.tolist(), ((2 * t - 1) * im[b]).tolist(), strict=True)]
                for (low, high, across), value in zip(found, formula.tape.run(Continued(point)), strict=True):
                    assert value.is_finite(), (formula.text, point)  # a finite rectangle proves that f is analytic
                    assert not value.real < arb(float(low[b])), (formula.text, point)
                    assert not value.real > arb(float(high[b])), (formula.text, point)
                    assert not abs(value.imag) > arb(float(across[b])), (formula.text, point, across[b], value)
                    compared += 1
    return compared


@pytest.mark.one_in(2)
@pytest.mark.parametrize("text", EVERY)
def test_every_function_is_enclosed(text):
    rng, formula = np.random.default_rng(len(text)), parse(text, ("x1", "x2"))
    taylor = rectangles = 0
    for shift in (0.0, 1.5):
        lower, upper = boxes_of(rng, 2, 12)
        scale = 0.3 if "asin" in text or "acos" in text or "tan(" in text else 1.0
        lower, upper = lower * scale + shift * scale, upper * scale + shift * scale
        taylor += check_taylor(formula, lower, upper, rng)
        rectangles += check_rectangles(formula, lower, upper, rng)
    assert taylor > 20
    assert rectangles > 10


@hypothesis.settings(settings, max_examples=60)
@given(dice, st.integers(0, 10**6))
def test_random_formulas_are_enclosed(rng, seed):
    formula, numbers = drawn(rng), np.random.default_rng(seed)
    lower, upper = boxes_of(numbers, 2, 3)
    check_rectangles(formula, lower, upper, numbers)
    check_taylor(formula, lower[:1], upper[:1], numbers)


def test_polynomials_end():
    """Along a coordinate in which f is a polynomial of degree 2, coefficients beyond that are nothing but underflow."""
    formula = parse("x1**2*exp(x2) + x1*x2", ("x1", "x2"))
    ((low, high),) = axis_coefficients(formula, np.zeros((1, 2)), np.ones((1, 2)), np.full((1, 2), 0.5), ORDER)
    assert np.abs([low[3:, 0], high[3:, 0]]).max() < 1e-200
    assert high[3, 1] > 0.01


ACROSS = ["abs(x1)", "log(x1 + 0.1)", "1/x1", "where(x1 < 0.1, 1, 2)", "log1p(x1 - 0.7)", "atan2(x1, -1)", "x1**-0.5"]
CUT = ["sqrt(x1)", "asin(x1 + 0.9)", "acos(x1 - 0.9)", "cbrt(x1)", "x1**(1/3)", "x1*sqrt(x1)", "sqrt(x1)**2"]


@pytest.mark.parametrize("text", ACROSS + CUT)
def test_nothing_is_claimed_across_singularities(text):
    """The box [−0.5, 0.5] holds a singularity of each. Some have a range there: of the values where they are defined."""
    formula = parse(text, ("x1",))
    lower, upper = np.array([[-0.5]]), np.array([[0.5]])
    ((low, high),) = axis_coefficients(formula, lower, upper, np.array([[0.5]]), ORDER)
    first = 1 if text in CUT else 0
    assert np.isfinite([low[:first], high[:first]]).all()
    assert np.isinf([low[first:], high[first:]]).all()
    ((low, high, im),) = enclose_rectangles(formula, [(lower[:, 0], upper[:, 0], np.zeros(1))])
    assert np.isinf([low, high, im]).all()


def test_ranges_are_cut_to_where_functions_are_defined():
    """√u decides a condition though u may be negative."""
    formula = parse(
        "where(sqrt(x1) < 5, x1, 7) + where(asin(x1 + 0.9) > -1, 1, 0) + where(x1**0.3 < 2, x1, 0)", ("x1",)
    )
    ends = np.array([[-0.5]]), np.array([[0.5]])
    ((low, high),) = axis_coefficients(formula, *ends, np.array([[0.5]]), 1)
    np.testing.assert_allclose([low[:, 0, 0], high[:, 0, 0]], [[0.0, 1.0], [2.0, 1.0]], atol=1e-12)


DELICATE = ["expm1", "log1p", "sinc", "exprel", "softplus", "cbrt"]
PLACES = [0.0, 1e-150, 1e-9, -1e-9, 0.01, -0.4, 1.5, -1.5, 3.1416, 4.4934, -4.4934, 7.99, -8.01, 30.0, -30.0, 300.0]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "text", [f"{name}(x1)" for name in DELICATE] + ["atan2(x1, x2)", "atan2(x2, x1)", "atan2(x1, -x1 - 3)"]
)
def test_delicate_functions_are_enclosed_near_and_far(text):
    rng, formula = np.random.default_rng(len(text)), parse(text, ("x1", "x2"))
    taylor = rectangles = 0
    for scale in (1e-12, 1e-6, 1e-2, 1.0):
        centre = np.stack([np.repeat(PLACES, 2), rng.permutation(np.repeat(PLACES, 2))], axis=1)
        lower = centre - scale * rng.integers(0, 3, centre.shape) * rng.random(centre.shape)
        upper = np.maximum(centre, lower) + scale * rng.random(centre.shape)
        taylor += check_taylor(formula, lower, upper, rng)
        rectangles += check_rectangles(formula, lower, upper, rng)
    assert taylor > 200
    assert rectangles > 200


@pytest.mark.parametrize(
    "text", ["expm1(x1)", "log1p(x1)", "exp(x1) - 1", "log(1 + x1)", "x1*sinc(x1)", "x1*exprel(x1)"]
)
def test_enclosures_are_tight_near_0(text):
    formula, lower, upper = parse(text, ("x1",)), np.array([[1e-10]]), np.array([[2e-10]])
    ((low, high),) = axis_coefficients(formula, lower, upper, np.array([[0.5e-10]]), 3)
    assert (high - low)[0, 0, 0] < 1.001e-10
    assert (high - low)[1, 0, 0] < 1e-19
    ((a, b, e),) = enclose_rectangles(formula, [(lower[:, 0], upper[:, 0], np.array([1e-11]))])
    assert b - a < 1.001e-10
    assert e < 1.001e-11


def test_the_judge_can_fail(monkeypatch):
    from onelayer.formula import rectangle_functions
    from onelayer.formula.taylor import axes

    with monkeypatch.context() as patch:
        patch.setitem(rectangle_functions.MAPS, "exprel", rectangle_functions._sinc)
        with pytest.raises(AssertionError):
            test_delicate_functions_are_enclosed_near_and_far("exprel(x1)")
    with monkeypatch.context() as patch:
        patch.setitem(axes.MOMENTS, "sinc", axes.MOMENTS["exprel"])
        with pytest.raises(AssertionError):
            test_delicate_functions_are_enclosed_near_and_far("sinc(x1)")
