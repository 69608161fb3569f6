"""Least numbers of units: no certified layer has fewer, the points prove what they say, and the bounds are not trivial."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from onelayer.common.errors import InputError
from onelayer.formula import enclose
from onelayer.layer.reading import form_of_model
from onelayer.proof.counting import bits_of_class
from onelayer.proof.least_units import KINDS, LeastUnits, least_units, units_of

HATS = "max(0, 1 - 9*abs(x1 - 0.13)) + max(0, 1 - 7*abs(x1 - 0.47)) + max(0, 1 - 5*abs(x1 - 0.79))"
CASES = [
    ("sin(20*x1)", "representative", "gates", 0.3, "plain"),
    ("sin(20*x1)", "solved", "gates", 0.3, "equal"),
    ("sin(20*x1)", "polished", "gates", 0.3, "gates"),
    ("sin(20*x1)", "polished", "memory", 0.1, "memory"),
    (HATS, "polished", "gates", 0.1, "gates"),
    (HATS, "polished", "memory", 0.1, "hinges"),
    ("x1**2", "representative", "gates", 0.01, "plain"),
    ("exp(x1)", "polished", "gates", 1e-4, "equal"),
]


@pytest.mark.parametrize(("formula", "method", "construction", "tolerance", "kind"), CASES)
def test_no_certified_layer_has_fewer_units(formula, method, construction, tolerance, kind):
    built = ol.build(formula, "0:1", tolerance, method=method, construction=construction, seconds=30.0)
    assert built.certificate.verdict == "CERTIFIED"
    read = form_of_model(built.model, built.facts.places)
    found, count = units_of(read)
    assert found == kind
    reach = math.nextafter(built.certificate.bound + float(read.error.max()), math.inf)
    assert getattr(least_units(built.target, reach), kind) <= count  # even at the layer's own bound, zero slack


def test_the_bounds_are_not_trivial_and_can_be_tight():
    waves = least_units(ol.Target("sin(50*x1)", "0:1"), 0.1)
    assert (waves.plain, waves.equal, waves.gates, waves.memory) == (16, 8, 4, 9)
    kinks = least_units(ol.Target(HATS, "0:1"), 0.01)
    assert kinks.hinges == 9  # as many as the formula has
    exact = ol.build(HATS, "0:1", 0.01, construction="memory", seconds=30.0)
    assert units_of(form_of_model(exact.model, exact.facts.places)) == ("hinges", 9)
    one = least_units(ol.Target("exp(x1)", "0:1"), 1e-4)
    assert one.gates == 1 and ol.build("exp(x1)", "0:1", 1e-4, construction="gates", seconds=30.0).units == 1


def proofs(formula: str, tolerance: float) -> LeastUnits:
    """The bounds, after their points were looked at again in balls, a line for crossings being sought among all slopes tried."""
    target = ol.Target(formula, "0:1")
    found = least_units(target, tolerance, 512)
    eps = Fraction(tolerance)

    def f(x: float) -> tuple[Fraction, Fraction]:
        (value,) = enclose(target.formula, [x])
        return Fraction(value.lower()), Fraction(value.upper())

    last = -math.inf
    for a, b, c in found.bends:
        assert last <= a < b < c
        last = c
        (low, high), share = f(b), (Fraction(b) - Fraction(a)) / (Fraction(c) - Fraction(a))
        chord = [(1 - share) * f(a)[end] + share * f(c)[end] for end in (0, 1)]
        assert low - chord[1] > 2 * eps or chord[0] - high > 2 * eps
    for points in (found.turns, found.crossings):
        assert list(points) == sorted(set(points))
    if len(found.turns) > 1:  # they turn for one of the slopes at least
        slopes = slopes_between([f(x)[0] for x in found.turns], found.turns)
        assert any(turning(found.turns, f, slope, eps) for slope in slopes)
    return found


def slopes_between(values: list[Fraction], points: tuple[float, ...]) -> list[Fraction]:
    """0, and slopes that keep every rise a rise and every fall a fall, if there are any: between the extreme chords."""
    steps = np.diff(np.array(values)) / np.diff(np.array([Fraction(x) for x in points]))
    rises, falls = sorted((steps[0::2], steps[1::2]), key=lambda s: -max(s, default=Fraction(0)))
    return [Fraction(0), (min(rises) + max(falls, default=min(rises) - 1)) / 2]


def turning(points, f, slope, eps) -> bool:
    ends = [[v - slope * Fraction(x) for v in f(x)] for x in points]
    up = [b[0] - a[1] > 2 * eps for a, b in zip(ends, ends[1:], strict=False)]
    down = [a[0] - b[1] > 2 * eps for a, b in zip(ends, ends[1:], strict=False)]
    alternate = [up[i] if i % 2 == 0 else down[i] for i in range(len(up))]
    return all(alternate) or all(down[i] if i % 2 == 0 else up[i] for i in range(len(up)))


@pytest.mark.parametrize(
    ("formula", "tolerance"),
    [("sin(50*x1)", 0.2), (HATS, 0.05), ("abs(x1 - 0.3)**0.5", 0.02), ("cos(pi*x1) + 0.7*cos(2*pi*x1) + 0.5*cos(4*pi*x1) + cos(64*pi*x1)/4", 0.2)],
)  # fmt: skip
def test_the_points_prove_what_they_say(formula, tolerance):
    found = proofs(formula, tolerance)
    assert found.bends and len(found.turns) > 2


def test_more_tolerance_never_needs_more_units():
    target = ol.Target("sin(30*x1) + x1**2", "0:1")
    sizes = [least_units(target, 0.05 * 1.5**k, 256) for k in range(9)]
    for kind in KINDS:
        counts = [getattr(size, kind) for size in sizes]
        assert counts == sorted(counts, reverse=True), kind
    assert sizes[-1].plain == 0 or sizes[-1].plain < sizes[0].plain


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_layers_have_no_more_crossings_and_turns_than_the_table_says(seed, n):
    """Random gates and tokens: the theorem itself, seen from the other side."""
    random = torch.Generator().manual_seed(seed)
    draw = lambda *size: torch.randn(*size, generator=random, dtype=torch.float64)  # noqa: E731
    x = torch.linspace(-4, 4, 4001, dtype=torch.float64)
    b, c, u, (level, slope) = 2 * draw(n), draw(n), draw(n), draw(2)

    def crossings(y):
        return int((y.sign().diff() != 0).sum())

    def turns(y):
        return 1 + crossings(y.diff())

    def gates(beta, u):
        return ((c + u * x[:, None]) * torch.sigmoid(beta * (x[:, None] - b))).sum(dim=1)

    one, any_ = torch.full((n,), 3.0, dtype=torch.float64), 4 * draw(n)
    plain, equal, free = gates(one, 0 * u) + level, gates(one, u) + slope * x + level, gates(any_, u) + slope * x + level
    scores = 2 * draw(n) * x[:, None] + draw(n)
    memory = torch.softmax(scores, dim=1) @ c + slope * x + level
    assert crossings(plain) <= n and turns(plain) <= 2 * n - 1
    assert crossings(equal) <= 2 * n + 1 and turns(equal) <= 4 * n
    assert crossings(free) <= 2 ** (n + 1) - 1 and turns(free) <= 2 * 3**n - 2**n
    assert crossings(memory) <= 2 * n - 1 and turns(memory) <= max(n * (n + 1) // 2, 1)


def test_two_gates_can_do_what_two_of_one_sharpness_cannot():
    """Three crossings without slopes: sharpnesses that differ are worth more, so the bound for any gates has to be weaker."""
    x = np.linspace(-3, 3, 2001)
    y = 1 / (1 + np.exp(-x)) - 0.5 - 0.2 * (1 / (1 + np.exp(-20 * x)) - 0.5)
    assert (np.diff(np.sign(y[y != 0])) != 0).sum() == 3


def test_what_has_no_such_bound_is_refused():
    for target in (ol.Target("x1 + x2", "0:1"), ol.Target(lambda x: x[:, 0], [(0, 1)], lipschitz=1.0)):
        with pytest.raises(InputError, match="one variable"):
            least_units(target, 0.1)


# -- classes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("constant", "alpha"), [(1.0, 1.0), (0.5, 0.5)])
def test_the_functions_that_are_counted_are_in_the_class_and_far_apart(constant, alpha):
    tolerance = 0.04
    count = bits_of_class([constant], [1.0], tolerance, alpha)
    width = 1 / count
    x = np.linspace(0, 1, 40 * count + 1)
    centre = (np.minimum(x // width, count - 1) + 0.5) * width
    bump = 2 ** (alpha - 1) * constant * ((width / 2) ** alpha - np.abs(x - centre) ** alpha).clip(0)
    y = bump * (-1) ** np.minimum(x // width, count - 1)
    assert np.abs(y).max() > tolerance
    steps = np.abs(y[:, None] - y) - constant * np.abs(x[:, None] - x) ** alpha
    assert steps.max() <= 1e-12  # the class's own inequality


def test_bits_grow_like_theory_says_and_edge_cases_need_none():
    assert bits_of_class([1.0], [1.0], 0.01) == 49  # ⌈50⌉ − 1
    assert bits_of_class([2.0, 1.0], [1.0, 3.0], 0.1) == 9 * 14
    assert bits_of_class([1.0], [1.0], 0.01, 0.5) == math.ceil(0.5 * (1 / (math.sqrt(2) * 0.01)) ** 2 / (1 + 1e-12)) - 1
    assert bits_of_class([0.0, 5.0], [1.0, 1.0], 0.1) == 0
    with pytest.raises(InputError, match="exponent"):
        bits_of_class([1.0], [1.0], 0.1, 1.5)
    with pytest.raises(InputError, match="for every side"):
        bits_of_class([1.0], [1.0, 1.0], 0.1)


@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.75])
def test_gates_reach_root_exponential_rates_for_powers(alpha):
    """docs/theory/sizes.md, 3: x^α on [0, 1] by a trapezoidal sum of n gates at 0 with sharpnesses in geometric progression."""
    x = np.concatenate([[0.0], np.logspace(-30, 0, 4001)])
    grid = np.linspace(-60 / (1 - alpha), 60 / alpha, 200_001)
    whole = np.exp(-alpha * grid) @ np.tanh(np.exp(grid.clip(max=700))) * (grid[1] - grid[0])
    roots, errors = [], []
    for n in (8, 16, 32, 64, 96):
        goal = np.pi * np.sqrt(alpha * (1 - alpha) * n)  # L = π²/h
        h = np.pi**2 / goal
        k = np.arange(-round(goal / ((1 - alpha) * h)), round(goal / (alpha * h)) + 1)
        y = (h * np.exp(-alpha * k * h) * np.tanh(np.exp(k * h) * x[:, None])).sum(axis=1) / whole
        roots.append(np.sqrt(len(k)))
        errors.append(np.abs(y - x**alpha).max())
    rate = -np.polyfit(roots, np.log(errors), 1)[0]
    assert rate == pytest.approx(np.pi * np.sqrt(alpha * (1 - alpha)), rel=0.12)
