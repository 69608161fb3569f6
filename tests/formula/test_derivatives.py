"""Derivative enclosures: every difference quotient along a coordinate lies inside, with no slack.

By the mean value theorem (Lebourg's, at kinks) (f(a) − f(b))/(a_j − b_j) ∈ G_j for a, b in the box that differ in
coordinate j only. That is the property that Lipschitz constants are made of.
"""

import random

import pytest
from flint import arb, ctx
from hypothesis import given

from formula_cases import dice, draw_box, draw_formula, draw_point, outside, settings, value_at
from onelayer.formula import UNDEFINED, enclose, gradient, interval, parse
from onelayer.formula import derivatives as derivative

I = interval


def escapes(formula, box, partials, rng, count=4):
    """Pairs along a coordinate whose difference quotient certainly is outside the enclosure of that partial."""
    caught = []
    for _ in range(count):
        for j, bound in enumerate(partials):
            one = draw_point(rng, box)
            other = list(one)
            other[j] = draw_point(rng, box)[j]
            ends = [value_at(formula.outputs[0], point) for point in (one, other)]
            if bound.is_finite() and one[j] != other[j] and all(isinstance(end, arb) for end in ends):
                with ctx.workprec(400):
                    quotient = (ends[0] - ends[1]) / (arb(one[j]) - arb(other[j]))
                    if outside(bound, quotient):
                        caught.append((one, other))
    return caught


@settings
@given(dice)
def test_random_formulas_over_random_boxes(rng):
    formula, box = draw_formula(rng, rng.randint(1, 3)), draw_box(rng)
    if formula is not None:
        (value,), (partials,) = gradient(formula, [I(*side) for side in box])
        assert not escapes(formula, box, partials, rng), (formula.text, box)
        (plain,) = enclose(formula, [I(*side) for side in box])
        assert (value.lo == plain.lo and value.hi == plain.hi) or (value is UNDEFINED and plain is UNDEFINED)


@pytest.mark.long
def test_a_thousand_more_and_enough_are_finite():
    rng, finite = random.Random(5), 0
    for _ in range(1000):
        formula, box = draw_formula(rng, 2), draw_box(rng)
        if formula is not None:
            _, (partials,) = gradient(formula, [I(*side) for side in box])
            assert not escapes(formula, box, partials, rng, 3), (formula.text, box)
            finite += all(partial.is_finite() for partial in partials)
    assert finite > 450


def test_tight_at_points_against_small_differences():
    rng, checked = random.Random(6), 0
    for _ in range(300):
        formula, point = draw_formula(rng, 2, kinks=False), [rng.uniform(0.1, 1.5), rng.uniform(0.1, 1.5)]
        _, (partials,) = gradient(formula, point) if formula else (None, [[UNDEFINED, UNDEFINED]])
        for j in range(2):
            if not (partials[j].is_finite() and partials[j].magnitude() < 1e4):
                continue
            with ctx.workprec(400):
                step = arb(2) ** -100
                shifted = [[arb(x) + sign * step * (k == j) for k, x in enumerate(point)] for sign in (1, -1)]
                ends = [value_at(formula.outputs[0], there) for there in shifted]
                if all(isinstance(end, arb) for end in ends):
                    slope = (ends[0] - ends[1]) / (2 * step)
                    assert abs(slope - partials[j].lo) < 1e-25, (formula.text, point)
                    assert abs(slope - partials[j].hi) < 1e-25, (formula.text, point)
                    checked += 1
    assert checked > 250


KINKED = [
    "abs(x1) - abs(x2 - x1)",
    "max(x1, x2, x1*x2)",
    "min(sin(3*x1), cos(x2), 0.3)",
    "abs(abs(x1) - 0.5)*x2",
    "max(x1, 0)**2 + sqrt(1 + abs(x2))",
    "where(x2 > -9, abs(x1 + x2), 1/0)",
]


@pytest.mark.parametrize("text", KINKED)
def test_lipschitz_across_kinks(text):
    formula, rng = parse(text), random.Random(7)
    box = [(-1.0, 1.25), (-0.75, 1.0)]
    _, (partials,) = gradient(formula, [I(*side) for side in box])
    constants = [partial.magnitude() for partial in partials]
    for _ in range(100):
        a, b = draw_point(rng, box), draw_point(rng, box)
        ends = [value_at(formula.outputs[0], point) for point in (a, b)]
        with ctx.workprec(400):
            bound = sum((arb(L) * abs(arb(s) - arb(t)) for L, s, t in zip(constants, a, b, strict=True)), arb(0))
            assert not abs(ends[0] - ends[1]) > bound
    assert not escapes(formula, box, partials, rng, 30)


EXACT = {  # text, side → range of the derivative
    ("abs(x1)", (-1, 2)): (-1, 1),
    ("abs(x1)", (0, 2)): (1, 1),
    ("abs(x1)", (-3, 0)): (-1, -1),
    ("max(x1, 2*x1)", (-1, 1)): (1, 2),
    ("min(x1, 5)", (0, 1)): (1, 1),
    ("x1**2", (-1, 3)): (-2, 6),
    ("x1**3", (-1, 2)): (0, 12),
    ("x1**1", (-1, 2)): (1, 1),
    ("x1**0", (-1, 2)): (0, 0),
    ("1/x1", (0.5, 1)): (-4, -1),
    ("sqrt(x1)", (0.25, 1)): (0.5, 1),
    ("x1**1.5", (0, 4)): (0, 3),
    ("sigmoid(x1)", (0, 0)): (0.25, 0.25),
    ("tanh(x1)", (0, 0)): (1, 1),
    ("atan(x1)", (-1, 1)): (0.5, 1),
    ("sin(x1)", (-1, 10)): (-1, 1),
    ("where(x1 < 0, 7*x1, x1)", (0, 1)): (1, 1),
    ("3", (0, 1)): (0, 0),
}


@pytest.mark.parametrize(("case", "expected"), EXACT.items(), ids=str)
def test_exact_derivatives(case, expected):
    text, side = case
    _, ((partial,),) = gradient(parse(text), [I(*side)])
    assert (partial.lower(), partial.upper()) == expected


UNBOUNDED = [
    ("sqrt(x1)", (0, 1)),
    ("x1**0.5", (0, 1)),
    ("asin(x1)", (0, 1)),
    ("acos(x1)", (-1, 0)),
    ("x1**(1/3)", (0, 1)),
    ("where(x1 < 0, 0, 1)", (-1, 1)),
    ("where(x1 < 0, x1, x1)", (-1, 1)),
    ("where(where(x1 < 0, 0, 1) < 0.5, 0, 1)", (-1, 1)),
    ("where(x1 < 0, 0, 1)*0", (-1, 1)),
    ("log(x1)", (0, 1)),
    ("min(2, sqrt(x1))", (0, 1)),
]


@pytest.mark.parametrize(("text", "side"), UNBOUNDED)
def test_no_constant_where_slopes_are_unbounded_or_values_jump(text, side):
    _, ((partial,),) = gradient(parse(text), [I(*side)])
    assert partial is UNDEFINED


def test_a_switch_spoils_only_its_own_variables():
    (value,), (partials,) = gradient(parse("where(x1 < 0, x2, 3*x2)"), [I(-1, 1), I(0, 1), I(0, 1)])
    assert (value.lower(), value.upper()) == (0, 3)
    assert partials[0] is UNDEFINED
    assert (partials[1].lower(), partials[1].upper()) == (1, 3)
    assert (partials[2].lower(), partials[2].upper()) == (0, 0)


def test_outputs_and_sides():
    values, partials = gradient(parse("x1*x2; x2; 1/(x1 - x1)"), [I(0, 1), I(2, 3), I(0, 0)])
    assert [len(row) for row in partials] == [3, 3, 3]
    assert (partials[0][0].lower(), partials[0][0].upper()) == (2, 3)
    assert values[2] is UNDEFINED
    assert all(partial is UNDEFINED for partial in partials[2])


def test_the_check_can_fail(monkeypatch):
    monkeypatch.setitem(derivative._SLOPES, "abs", lambda x, y: I(1))
    formula, box = parse("abs(x1)"), [(-1.0, 1.0)]
    _, (partials,) = gradient(formula, [I(-1.0, 1.0)])
    assert escapes(formula, box, partials, random.Random(0), 20)
