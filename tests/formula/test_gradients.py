"""Gradients as formulas: every reading of them is true of the slopes of f, with no slack, kinks, jumps and poles included."""

import random
from dataclasses import replace

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given

from formula_cases import dice, draw_box, draw_formula, draw_point, outside, settings, value_at
from onelayer.formula import enclose, evaluate, interval, parse, to_text
from onelayer.formula import gradient as slope_bounds
from onelayer.formula.complex_rectangles import enclose_rectangles
from onelayer.formula.float_bounds import evaluate_bounded
from onelayer.formula.functions import FUNCTIONS as RECORDS
from onelayer.formula.gradients import gradient, slopes
from onelayer.formula.taylor.formula import TaylorAlgebra
from onelayer.formula.taylor.series import Space
from onelayer.formula.tree import postorder, variables
from onelayer.formula.vocabulary import MAX_CHARACTERS, UNARY

I = interval
FUNCTIONS = {name: f"{name}({'1.1 + ' * (name in ('acosh', 'zeta'))}0.3*x1 + 0.1*x2)" for name in UNARY}
COMPOSED = [
    "x1**7 - 3*x1*x2 + 2", "x1*x2*sin(x1)*exp(x2)", "(x1 - x2)/(x1 + x2)", "1/(1 + 25*x1**2)", "x1**x2", "x1**-2.5",
    "x2**(1/3)*x1", "x1**pi", "pi**x1/x2", "sqrt(x1**2 + x2**2)", "hypot(x1, 3*x2)", "atan2(x1, x2)", "atan2(x2, -x1)",
    "sin(x1)/x1", "(1 - cos(x1*x2))/x1**2", "x1/(exp(x1) - 1)", "log(1 + exp(x1*x2))", "erf(x1)*tanh(x2)**2",
    "abs(x1 - 2*x2)*x1", "max(x1, x2**2, 0.3)", "min(sin(x1), cos(x2), x1*x2)", "where(x1 < x2, x1**2, sin(x2))",
    "where(x1 < 1 and not x2 > 2, log(x1), x2/x1)", "log10(x1)*cbrt(x2)", "x1*(x1 + x2)**0 + x2**1", "softplus(x1)/sqr(x2)",
    "abs(abs(x1) - 0.5)*x2", "where(x2 > -9, abs(x1 + x2), 1/0)", "max(x1, 0)**2 + sqrt(1 + abs(x2))", "cos(sqrt(x1*x2))",
    "x1/sqrt(2) + log(x2)/3", "exp(-(x1 - x2)**2/0.1)/sqrt(2*pi)",
]  # fmt: skip
ALL = [*FUNCTIONS.values(), *COMPOSED]


def differences(formula, box, rng, count=3):
    """(variable, difference quotient of the first output along it) for pairs of points of a box, in balls."""
    for _ in range(count):
        for j in range(formula.dimension):
            one = draw_point(rng, box)
            other = [*one[:j], draw_point(rng, box)[j], *one[j + 1 :]]
            ends = [value_at(formula.outputs[0], point) for point in (one, other)]
            if one[j] != other[j] and all(isinstance(end, arb) for end in ends):
                with ctx.workprec(400):
                    yield j, (ends[0] - ends[1]) / (arb(one[j]) - arb(other[j]))


def steep(tree, point, j):
    """The slope at a point where the tree is smooth, to some 50 digits; None if 400 bits do not tell."""
    with ctx.workprec(400):
        step = arb(2) ** -100
        ends = [value_at(tree, [arb(x) + s * step * (k == j) for k, x in enumerate(point)]) for s in (1, -1)]
        return (ends[0] - ends[1]) / (2 * step) if all(isinstance(end, arb) for end in ends) else None


def on_box(formula, box):
    """Bounds of every output by intervals and by Taylor models, infinite where there is no enclosure."""
    space = Space(*(np.array([[side[end] for side in box]]) for end in (0, 1)))
    with np.errstate(all="ignore"):
        models = formula.tape.run(TaylorAlgebra(space))
    for found, model in zip(enclose(formula, [I(*side) for side in box]), models, strict=True):
        yield (found.lo, found.hi) if found.is_finite() else (-arb("inf"), arb("inf"))
        yield arb(float(model.low[0])), arb(float(model.high[0]))


def judged(formula, slope_formula, box, rng):
    """How many enclosures of partial derivatives are finite; every one is true of f on the box."""
    bounds, (values, (partials,)) = list(on_box(slope_formula, box)), slope_bounds(formula, [I(*side) for side in box])
    pairs = [[bounds[2 * j + way] for j in range(formula.dimension)] for way in (0, 1)]
    pairs.append([(found.lo, found.hi) if found.is_finite() else (-arb("inf"), arb("inf")) for found in partials])
    (plain,) = enclose(formula, [I(*side) for side in box])
    assert values[0].is_finite() == plain.is_finite()
    assert not plain.is_finite() or (values[0].lo, values[0].hi) == (plain.lo, plain.hi)
    for _ in range(3):
        if value_at(formula.outputs[0], draw_point(rng, box)) == "undefined":
            assert not any(lo.is_finite() and hi.is_finite() for way in pairs for lo, hi in way), (formula.text, box)
    for j, quotient in differences(formula, box, rng):
        for way in pairs:
            both = way[j][0].is_finite() and way[j][1].is_finite()
            assert not both or not (quotient < way[j][0] or quotient > way[j][1]), (formula.text, box, j)
    return sum(bool(lo.is_finite() and hi.is_finite()) for lo, hi in pairs[0])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", ALL)
def test_at_points_it_is_the_slope_in_every_reading(text):
    formula, rng, checked = parse(text, ("x1", "x2")), random.Random(1), 0
    found = gradient(formula)
    for _ in range(20):
        point = [rng.uniform(0.1, 1.7), rng.uniform(0.1, 1.7)]
        _, (bounds,) = slope_bounds(formula, point)
        (numbers,), (sizes,) = (table.tolist() for table in evaluate_bounded(found, np.array([point])))
        plain = evaluate(found, np.array([point]))[0].tolist()
        for j, sharp in enumerate(enclose(found, point)):
            slope = steep(formula.outputs[0], point, j)
            if not (bounds[j].is_finite() and sharp.is_finite()) or slope is None:
                continue
            checked += 1
            assert max(sharp.lo, bounds[j].lo) <= min(sharp.hi, bounds[j].hi)
            scale = 1 + bounds[j].magnitude()
            assert max(abs(slope - sharp.lo), abs(slope - sharp.hi)) < 1e-25 * scale, point
            assert abs(arb(numbers[j]) - slope) <= arb(sizes[j]) + 1e-25, point
            assert abs(plain[j] - numbers[j]) <= 1e-9 * scale
    assert checked >= 15


@pytest.mark.one_in(5)
@pytest.mark.parametrize("text", ALL)
def test_on_boxes_it_encloses(text):
    formula, rng = parse(text, ("x1", "x2")), random.Random(2)
    found = gradient(formula)
    finite = sum(judged(formula, found, draw_box(rng), rng) for _ in range(25))
    assert finite > 5


@pytest.mark.long
@settings
@given(dice)
def test_random_formulas_over_random_boxes(rng):
    formula = draw_formula(rng, rng.randint(1, 3))
    found = gradient(formula) if formula else None
    if found is not None:
        judged(formula, found, draw_box(rng), rng)
        assert parse(found.text, formula.names).outputs == found.outputs


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_many_more_and_enough_are_finite(count):
    rng, finite, none = random.Random(5), 0, 0
    for _ in range(count):
        formula, box = draw_formula(rng, 2), draw_box(rng)
        if formula is not None:
            found = gradient(formula)
            none += found is None
            finite += judged(formula, found, box, rng) == 2 if found else 0
    assert finite > 0.4 * count
    assert none == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", ALL)
def test_text_reads_back_as_its_own_trees(text):
    formula = parse(text, ("x1", "x2"))
    found = gradient(formula)
    again = parse(found.text, found.names)
    assert (again.outputs, again.names) == (found.outputs, formula.names)
    assert len(found.outputs) == 2
    assert found.text.count(";") == 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", ALL)
def test_parts_stay_shared(text):
    formula = parse(text, ("x1", "x2"))
    own, made = len(postorder(formula.outputs)), len(postorder(gradient(formula).outputs))
    assert made <= 8 * 2 * own
    assert len(postorder([tree for row in slopes(formula) for tree in row])) <= 8 * 2 * own + 20


def test_a_deep_formula_makes_few_trees_although_its_text_would_be_endless():
    text = "x"
    for _ in range(40):
        text = f"sin({text})*x" if len(text) % 2 else f"1/(2 + {text})"
    formula = parse(text)
    assert gradient(parse(text.replace("x", "(x + y)"))) is None
    assert len(postorder(slopes(formula)[0])) < 8 * len(postorder(formula.outputs))
    assert len(gradient(parse("x*y")).text) < MAX_CHARACTERS


@pytest.mark.one_in(5)
@pytest.mark.parametrize("text", [text for text in ALL if "where" not in text])
def test_second_derivatives(text):
    formula, rng, checked = parse(text, ("x1", "x2")), random.Random(3), 0
    first = gradient(formula)
    second = gradient(first)
    assert len(second.outputs) == 4
    for _ in range(6):
        point = [rng.uniform(0.2, 1.6), rng.uniform(0.2, 1.6)]
        for place, found in enumerate(enclose(second, point)):
            slope = steep(first.outputs[place // 2], point, place % 2)
            if slope is not None and found.is_finite():
                checked += 1
                assert abs(slope - found.lo) < 1e-22 * (1 + abs(slope)), (point, place)
    assert checked >= 12


SMOOTH = [text for name, text in FUNCTIONS.items() if name not in ("abs", "erfinv", "norminv")] + [
    text for text in COMPOSED if "where" not in text
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", SMOOTH)
def test_complex_readings_are_finite_where_f_is_analytic(text):
    formula, rng, finite = parse(text, ("x1", "x2")), random.Random(4), 0
    found = gradient(formula)
    for _ in range(20):
        point = [rng.uniform(0.2, 1.6), rng.uniform(0.2, 1.6)]
        boxes = [(np.array([x - 1e-3]), np.array([x + 1e-3]), np.array([1e-3])) for x in point]
        if not np.isfinite(enclose_rectangles(formula, boxes)[0][2]).all():
            continue
        finite += 1
        for (low, high, _), slope in zip(enclose_rectangles(found, boxes), enclose(found, point), strict=True):
            assert np.isfinite(low[0]), point
            assert arb(low[0]) <= slope.lo <= slope.hi <= arb(high[0]), point
    assert finite >= 15


EXACT = {  # text, side → range of the derivative; None: no enclosure
    ("abs(x)", (-1, 2)): (-1, 1),
    ("abs(x)", (0, 0)): (-1, 1),
    ("abs(x)", (0.5, 2)): (1, 1),
    ("abs(x) - abs(-x)", (0, 0)): (-2, 2),
    ("max(x, 0) - max(-x, 0)", (0, 0)): (0, 2),
    ("max(x, 2*x, 3*x)", (-1, 1)): (1, 3),
    ("min(x, 5)", (0, 1)): (1, 1),
    ("x**2", (-1, 3)): (-2, 6),
    ("x**1.5", (0, 4)): (0, 3),
    ("sigmoid(x)", (0, 0)): (0.25, 0.25),
    ("atan(x)", (-1, 1)): (0.5, 1),
    ("atan2(x, 1)", (-1, 1)): (0.5, 1),
    ("where(x < 0, 7*x, x)", (1, 2)): (1, 1),
    ("where(x < 0, 7*x, x)", (-2, -1)): (7, 7),
    ("where(x < 0, x, x)", (-1, 1)): None,
    ("where(x < 0, 0, 1)", (-1, 1)): None,
    ("where(x < 0, 0, 1)", (0, 0)): None,
    ("where(x <= 0 and x >= 0, 0, sin(x))", (0, 0)): None,
    ("where(x < 0, 0, 1)*2", (-1, 1)): None,
    ("sin(where(x < 0, 0, 1)/3)", (0, 0)): None,
    ("where(x < 0, 0, 1)*0", (-1, 1)): (0, 0),
    ("atan2(x, -1)", (-1, 1)): None,
    ("atan2(x, -1)", (0, 0)): None,
    ("log(x)", (-2, -1)): None,
    ("log1p(x)", (-4, -3)): None,
    ("x + 0*log(x)", (-2, -1)): None,
    ("where(x > 0, log(x), 1/0)", (-2, -1)): None,
    ("x + 1/0", (1, 2)): None,
    ("sqrt(x)", (0, 1)): None,
    ("cbrt(x)", (-1, 1)): None,
    ("asin(x)", (0, 1)): None,
    ("acos(x)", (2, 3)): None,
    ("min(2, sqrt(x))", (0, 1)): None,
    ("sinc(sqrt(x))", (0, 1)): None,
    ("where(where(x < 0, 0, 1) < 0.5, 0, 1)", (-1, 1)): None,
    ("x**(1/3)", (0, 1)): None,
    ("log(x)", (0, 1)): None,
    ("1/x", (0.5, 1)): (-4, -1),
    ("sqrt(x)", (0.25, 1)): (0.5, 1),
    ("sin(x)", (-1, 10)): (-1, 1),
    ("x**3", (-1, 2)): (0, 12),
    ("3*x", (0, 1)): (3, 3),
    ("x**0 + 7", (0, 1)): (0, 0),
}


@pytest.mark.parametrize(("case", "expected"), EXACT.items(), ids=str)
def test_kinks_jumps_and_places_without_a_value(case, expected):
    text, side = case
    found = gradient(parse(text))
    (slope,) = enclose(found, [I(*side)])
    assert ((slope.lower(), slope.upper()) == expected) if expected else not slope.is_finite()
    _, ((bound,),) = slope_bounds(parse(text), [I(*side)])
    if side[0] < side[1] and bound.is_finite():
        assert bound.lower() <= expected[0] <= expected[1] <= bound.upper()
    _, errors = evaluate_bounded(found, np.array([[float(side[0])], [float(side[1])]]))
    assert expected is None or np.isfinite(errors[1, 0])
    assert expected is not None or side[0] != side[1] or np.isinf(errors).all()


def test_a_part_without_the_variable_still_tells_where_f_is_defined():
    found = gradient(parse("log(y) + x/z + tan(t)*x", ("x", "y", "z", "t")))
    good = [I(0, 1), I(1, 2), I(1, 2), I(0, 1)]
    assert all(slope.is_finite() for slope in enclose(found, good))
    for j, side in ((1, I(-2, -1)), (2, I(-1, 1)), (3, I(1, 2))):
        assert not any(slope.is_finite() for slope in enclose(found, [*good[:j], side, *good[j + 1 :]])), j


def test_a_divisor_that_cancels_in_the_slope_is_kept():
    found = gradient(parse("(y*sin(x) + 1)/x"))
    assert not enclose(found, [I(-1, 1), I(0, 1)])[1].is_finite()
    assert enclose(found, [I(1, 2), I(0, 1)])[1].is_finite()


def test_a_switch_spoils_only_its_own_variables():
    slope, other, none = enclose(gradient(parse("where(x1 < 0, x2, 3*x2)", ("x1", "x2", "x3"))), [I(-1, 1)] * 3)
    assert not slope.is_finite()
    assert (other.lower(), other.upper()) == (1, 3)
    assert (none.lower(), none.upper()) == (0, 0)


@pytest.mark.parametrize(("text", "slope"), [
    ("x**3", "3*x**2"), ("sin(x)*y", "cos(x)*y; sin(x)"), ("x*y*z", "y*z; x*z; x*y"), ("3", None), ("0.1*x - 4", "0.1"),
    ("sqrt(x**2 + y**2)", "x/sqrt(x**2 + y**2); y/sqrt(x**2 + y**2)"), ("1/x", "-(1/x/x)"), ("log(x)", "1/x + 0*log(x)"),
    ("x; y", "1; 0; 0; 1"), ("exp(-x^2)", "-(2*exp(-x**2)*x)"), ("x**(1/3)", "x**(-2/3)/3"),
    ("x/sqrt(2) + y", "1/sqrt(2); 1"), ("abs(x)", "where(x > pi - pi, 1, -1)"),
    ("x**-999", "-(999*x**(-1000))"), ("x**-1000", None),
])  # fmt: skip
def test_what_is_written(text, slope):
    found = gradient(parse(text))
    assert (found and found.text) == slope
    assert found is None or "; ".join(to_text(o, found.names) for o in found.outputs) == slope


def test_names_order_and_limits_are_kept():
    formula = parse("f(b, a) = sin(a)/a + b*e")
    found = gradient(formula)
    assert (found.names, found.declared, found.limits) == (("b", "a"), True, formula.limits)
    assert found.text.startswith("e; ")


def test_every_function_has_a_slope():
    for function in RECORDS.values():
        assert set(variables(parse(function.slope, ("u", "y")).outputs[0])) <= {1, 2}


def test_the_check_can_fail(monkeypatch):
    formula, box = parse("abs(sin(x1)) + x2", ("x1", "x2")), [(-1.0, 1.0), (0.0, 1.0)]
    for text in ("1", "where(u > 0, 1, 0.5)"):
        monkeypatch.setitem(RECORDS, "abs", replace(RECORDS["abs"], slope=text))
        bounds = enclose(gradient(formula), [I(*side) for side in box])
        assert any(outside(bounds[j], quotient) for j, quotient in differences(formula, box, random.Random(0), 20))
