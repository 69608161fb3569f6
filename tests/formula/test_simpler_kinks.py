"""Kinks that a box does not cross: replaced where one side is proved, and nowhere else."""

import numpy as np
import pytest

import onelayer as ol
from onelayer.formula import evaluate, parse
from onelayer.formula.printing import to_text
from onelayer.formula.simpler_kinks import MOST_KINKS, one_sided
from onelayer.proof.slopes import has_jumps, slopes_of

NAMES = ("x", "y")
CASES = [
    ("abs(x)", (0, 1), "x"),
    ("abs(x)", (-1, 0), "-x"),
    ("abs(x)", (-1e-300, 1), "abs(x)"),
    ("abs(x) - abs(-x)", (0, 1), "x - x"),
    ("max(x, 0)", (0, 1), "x"),
    ("max(x, 0)", (-1, 1), "max(x, 0)"),
    ("min(x, 1, 2)", (0, 1), "x"),
    ("max(x, x)", (-1, 1), "x"),
    ("abs(abs(x) + 1)", (-1, 1), "abs(x) + 1"),
    ("abs(max(x, 0) - 2)", (0, 1), "2 - x"),
    ("max(x, sqrt(x - 3))", (0, 1), "max(x, sqrt(x - 3))"),
    ("abs(0.1 - x)", (0.1, 1), "x - 0.1"),
    ("abs(0.3 - x)", (0.3, 1), "abs(0.3 - x)"),
]


@pytest.mark.parametrize(("text", "side", "other"), CASES)
def test_what_a_box_does_not_cross_is_no_kink(text, side, other):
    """0.1 as a float lies above 1/10, and 0.3 below 3/10: the second box has points on both sides."""
    found = one_sided(parse(text, NAMES), (float(side[0]), 0.0), (float(side[1]), 1.0))
    x = np.random.default_rng(0).uniform(*side, (50, 2))
    if "sqrt" not in text:
        assert np.array_equal(evaluate(found, x), evaluate(parse(other, NAMES), x))
    kinks = [name in to_text(found.outputs[0], NAMES) for name in ("abs", "max", "min")]
    assert kinks == [name in other for name in ("abs", "max", "min")]


def test_random_formulas_keep_their_values():
    rng = np.random.default_rng(1)
    for _ in range(60):
        a, b, c = rng.integers(-3, 4, 3)
        inner = f"max(x + {a}, {b}*y)".replace("+ -", "- ")
        formula = parse(f"abs({inner} - {c}) + min(abs(x), y^2, {inner})".replace("- -", "+ "), NAMES)
        low = rng.integers(-3, 3, 2)
        found = one_sided(formula, *((low + n).astype(float).tolist() for n in (0, 1)))
        x = low + rng.random((200, 2))
        assert np.allclose(evaluate(found, x), evaluate(formula, x), rtol=1e-15, atol=1e-14)


def test_points_and_very_many_kinks_are_left_alone():
    at_a_point = parse("abs(x) - abs(-x)", NAMES)
    assert one_sided(at_a_point, (0.0, 0.0), (0.0, 1.0)) is at_a_point  # both sides are 0 there: their slopes differ
    many = parse(" + ".join(f"abs(x + {n})" for n in range(MOST_KINKS + 1)), NAMES)
    assert one_sided(many, (0.0, 0.0), (1.0, 1.0)) is many


def test_slopes_at_an_edge_need_no_margin():
    assert not has_jumps(slopes_of(ol.Target("abs(x)", {"x": (0, 1)})))
    assert has_jumps(slopes_of(ol.Target("abs(x)", {"x": (-1, 1)})))
    approx = ol.build("abs(x)*y + x", {"x": (0, 1), "y": (0, 1)}, 1e-2, slope_tolerance=0.1)
    assert approx.certificate.verdict == "CERTIFIED"
    assert 0 < approx.certificate.slope.bound <= 0.1


def test_a_property_of_a_function_with_a_kink_is_judged():
    """A layer of sharp heads is not convex, and no error of slopes can be asked of it: the verdict says so."""
    approx = ol.build("abs(x)", {"x": (-1, 1)}, 0.05, properties=["convex in x"], seconds=15.0)
    assert approx.certificate.verdict in ("CERTIFIED", "UNDECIDED")
    assert "slopes" not in str(approx)
