"""Real enclosures contain every value, with no slack, and exist only where the formula has values."""

import math
import random
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given

from formula_cases import dice, draw_box, draw_formula, draw_point, outside, settings, value_at
from onelayer.common.errors import InputError
from onelayer.formula import UNDEFINED, Interval, elementary, enclose, holds, interval, parse, parse_condition

I = interval


def escapes(formula, box, found, rng, count=6, strict=False):
    """Points of the box whose value certainly is outside `found`, or missing though `found` is finite.

    A value may be missing outside the domain of a root or an arc, unless strict.
    """
    caught = []
    for _ in range(count):
        point = draw_point(rng, box)
        value = value_at(formula.outputs[0], point)
        missing = value == "undefined" or (strict and value == "outside")
        if found.is_finite() and (missing or (isinstance(value, arb) and outside(found, value))):
            caught.append(point)
    return caught


@settings
@given(dice)
def test_random_formulas_over_random_boxes(rng):
    formula, box = draw_formula(rng, rng.randint(1, 4)), draw_box(rng)
    if formula is not None:
        for strict in (False, True):
            (found,) = enclose(formula, [I(*side) for side in box], strict=strict)
            assert not escapes(formula, box, found, rng, strict=strict), (formula.text, box)


@pytest.mark.long
def test_a_thousand_more_and_most_are_finite_where_defined():
    rng, finite, defined = random.Random(1), 0, 0
    for _ in range(1000):
        formula, box = draw_formula(rng, 3), draw_box(rng)
        if formula is None:
            continue
        (found,) = enclose(formula, [I(*side) for side in box])
        assert not escapes(formula, box, found, rng, 4), (formula.text, box)
        defined += all(isinstance(value_at(formula.outputs[0], draw_point(rng, box)), arb) for _ in range(4))
        finite += found.is_finite()
    assert finite > 400
    assert finite > 0.7 * defined


def test_tight_at_points():
    rng, checked = random.Random(2), 0
    for _ in range(400):
        formula, point = draw_formula(rng, 3), [rng.uniform(0.1, 2), rng.uniform(0.1, 2)]
        value = formula and value_at(formula.outputs[0], point)
        if isinstance(value, arb) and abs(value) < 1e6:
            (found,) = enclose(formula, point)
            if found.is_finite():
                checked += 1
                assert found.hi - found.lo < 1e-25
                assert found.upper() - found.lower() <= 4 * math.ulp(found.upper())
    assert checked > 150


def test_the_check_can_fail(monkeypatch):
    """sin by its endpoints alone misses the maximum; the check sees it."""
    formula, box = parse("sin(x1)"), [(0.0, 3.0)]
    monkeypatch.setitem(elementary.RANGES, "sin", lambda x: Interval(x.lo.sin().lower(), x.hi.sin().upper()))
    (found,) = enclose(formula, [I(0.0, 3.0)])
    assert escapes(formula, box, found, random.Random(0), 40)


EXACT = {  # text, box → range
    ("sqrt(x1)", (0, 1)): (0, 1),
    ("sqrt(x1)", (0, 0.25)): (0, 0.5),
    ("x1**0.5", (0, 4)): (0, 2),
    ("x1**2.5", (0, 4)): (0, 32),
    ("x1**-0.5", (0.25, 4)): (0.5, 2),
    ("x1**2", (-1, 3)): (0, 9),
    ("x1**2", (-3, -1)): (1, 9),
    ("x1*x1", (-1, 3)): (0, 9),
    ("sqr(x1)", (-2, 1)): (0, 4),
    ("x1**3", (-2, 1)): (-8, 1),
    ("x1**-2", (-2, -1)): (0.25, 1),
    ("x1**-1", (0.5, 2)): (0.5, 2),
    ("x1**0", (-1, 1)): (1, 1),
    ("abs(x1)", (-3, 2)): (0, 3),
    ("abs(x1)", (-3, -2)): (2, 3),
    ("min(x1, 1)", (0, 3)): (0, 1),
    ("max(x1, 1, 0)", (0, 3)): (1, 3),
    ("where(x1 < 0, 1, 2)", (-1, 1)): (1, 2),
    ("where(x1 < 0, 1, 2)", (0, 1)): (2, 2),
    ("where(x1 >= 0, 1, 2)", (0, 1)): (1, 1),
    ("where(x1 > 0 and x1 < 0.5, 1, 2)", (-1, 0)): (2, 2),
    ("where(x1 < 0 or x1 >= 0.5, 1, 2)", (0.5, 1)): (1, 1),
    ("where(x1 < 0, log(x1), x1)", (0, 1)): (0, 1),
    ("cos(x1)", (-0.5, 7)): (-1, 1),
    ("2/x1 - 1", (1, 2)): (0, 1),
    ("cosh(x1)", (0, 0)): (1, 1),
}


@pytest.mark.parametrize(("case", "expected"), EXACT.items(), ids=str)
def test_exact_ranges(case, expected):
    text, side = case
    (found,) = enclose(parse(text), [I(*side)])
    assert (found.lower(), found.upper()) == expected


@pytest.mark.parametrize(
    ("name", "side", "extremes"),
    [
        ("sin", (0, 1.5), (0, 1.5)),
        ("sin", (1, 2), (1, None)),
        ("sin", (4, 5.5), (None, 5.5)),
        ("sin", (-2, 1), (None, 1)),
        ("cos", (-1, 0.5), (-1, None)),
        ("cos", (3, 4), (None, 4)),
        ("cos", (6, 7), (7, None)),
        ("sin", (10_000, 10_000.5), (10_000.5, 10_000)),
    ],
)
def test_waves_are_tight(name, side, extremes):
    """Endpoints give lo and hi, or None for the extreme value −1 or 1."""
    (found,) = enclose(parse(f"{name}(x1)"), [I(*side)])
    function = getattr(math, name)
    expected = [(-1, 1)[place] if at is None else function(at) for place, at in enumerate(extremes)]
    assert sorted([found.lower(), found.upper()]) == pytest.approx(sorted(expected), abs=2e-16)


NOWHERE = [
    ("sqrt(x1)", (-1e-300, 1)),
    ("sqrt(x1)", (-2, -1)),
    ("log(x1)", (0, 1)),
    ("1/x1", (-1, 1)),
    ("1/x1", (0, 1)),
    ("x1**-1", (-1, 0)),
    ("x1**0.5", (-1, 1)),
    ("x1**-0.5", (0, 1)),
    ("x1**pi", (0, 1)),
    ("x1**x1", (0, 1)),
    ("tan(x1)", (1.5, 1.6)),
    ("tan(x1)", (-10, 10)),
    ("asin(x1)", (0, 1.0000000000000002)),
    ("acos(x1)", (-1.5, 0)),
    ("0*log(x1)", (-1, 1)),
    ("log(x1)**0", (-1, 1)),
    ("min(0, log(x1))", (-1, 1)),
    ("max(0, log(x1), 1)", (-1, 1)),
    ("abs(log(x1))", (-1, 1)),
    ("sin(1/x1)", (-1, 1)),
    ("tanh(1/x1)", (-1, 1)),
    ("exp(-1/x1)", (-1, 1)),
    ("sigmoid(log(x1)); erf(log(x1)); cosh(log(x1)); atan(log(x1)); sqr(log(x1)); cos(log(x1))", (-1, 1)),
    ("where(log(x1) < 0, 1, 1)", (-1, 1)),
    ("where(x1 < 0, log(x1), 1)", (-1, 1)),
    ("where(x1 < 0, 1, log(x1))", (-1, 1)),
    ("x1 + 1/0", (1, 2)),
    ("exp(exp(exp(x1)))", (10, 10)),
]


@pytest.mark.parametrize(("text", "side"), NOWHERE)
def test_never_finite_where_undefined(text, side):
    found = enclose(parse(text), [I(*side)], strict=True)
    assert all(part is UNDEFINED and not part.is_finite() for part in found)
    cut = text.startswith(("sqrt", "asin", "acos", "x1**0.5")) and side[1] >= -1 + (text[0] == "s")
    assert all(part.is_finite() == cut for part in enclose(parse(text), [I(*side)])), "only what can be cut is"


def test_ranges_keep_the_known_bounds():
    found = enclose(parse("1 - erf(x1); 1 - tanh(x1); sigmoid(-x1); 1 - sin(x1)**2; exp(-x1)"), [I(0, 1e6)])
    assert all(side.lo >= 0 for side in found)
    assert enclose(parse("sqrt(1 - erf(x1))"), [I(0, 1e6)])[0].is_finite()


def test_one_interval_object_for_two_variables():
    side = I(-1, 1)
    assert enclose(parse("x1*x2"), [side, side])[0].lower() == -1


def test_conditions_are_proved_refuted_or_open():
    disk = parse_condition("x1**2 + x2**2 <= 1")
    assert holds(disk, [I(0, 0.5), I(0, 0.5)]) is True
    assert holds(disk, [I(0.8, 1), I(0.8, 1)]) is False
    assert holds(disk, [I(0, 1), I(0, 1)]) is None
    assert holds(disk, [1, 0]) is True
    assert holds(parse_condition("0 <= x1 < 1"), [I(0, 1)]) is None
    assert holds(parse_condition("not x1 < 0"), [I(0, 1)]) is True
    assert holds(parse_condition("log(x1) < 0"), [I(-1, 0.5)]) is None
    assert holds(parse_condition("log(x1) < 0 or 1 > 0"), [I(-1, 0.5)]) is True


def test_intervals():
    tenth = I(Fraction(1, 10))
    with ctx.workprec(300):
        assert not outside(tenth, arb(1) / 10)
    assert tenth.lower() < Fraction(1, 10) < tenth.upper()
    assert I(0, 1e-3).contains(1e-3)
    assert not I(0, 1e-3).contains(math.nextafter(1e-3, 1))
    assert I(-3, 2).magnitude() == 3
    assert math.isnan(UNDEFINED.magnitude())
    assert math.isnan(UNDEFINED.lower())
    assert not UNDEFINED.contains(0)
    assert I(arb(10) ** 400).lower() == math.nextafter(math.inf, 0)
    assert I(arb(10) ** 400).upper() == math.inf
    assert I(1 / arb(10) ** 400).upper() == 5e-324
    assert I(0, 1).ball().contains(0)
    for ends in ((1, 0), (0, math.inf), (math.nan, 1)):
        with pytest.raises(InputError, match="lo ≤ hi"):
            I(*ends)


def test_precision_is_restored_and_chosen():
    before = ctx.prec
    wide, narrow = (enclose(parse("exp(x1)"), [0.1], prec=bits)[0] for bits in (53, 300))
    assert wide.contains(narrow)
    assert narrow.hi - narrow.lo < arb(2) ** -280
    with pytest.raises(InputError, match="2 sides"):
        enclose(parse("x1 + x2"), [0.1])
    assert ctx.prec == before
