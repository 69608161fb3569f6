"""Least numbers of units: no certified layer has fewer, the points prove what they say, and the bounds are not trivial."""

import itertools
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
from onelayer.proof.least_units import KINDS, least_units, units_of

HATS = "max(0, 1 - 9*abs(x1 - 0.13)) + max(0, 1 - 7*abs(x1 - 0.47)) + max(0, 1 - 5*abs(x1 - 0.79))"
CASES = [
    pytest.param("sin(20*x1)", "representative", "gates", 0.3, "plain", marks=pytest.mark.long),
    ("sin(20*x1)", "solved", "gates", 0.3, "equal"),
    ("sin(20*x1)", "polished", "gates", 0.3, "gates"),
    pytest.param("sin(20*x1)", "polished", "memory", 0.1, "memory", marks=pytest.mark.long),
    pytest.param(HATS, "polished", "gates", 0.1, "gates", marks=pytest.mark.long),
    (HATS, "polished", "memory", 0.1, "hinges"),
    ("x1**2", "representative", "gates", 0.1, "plain"),
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
    assert getattr(least_units(built.target, reach, 512), kind) <= count  # even at the layer's own bound, zero slack


def test_the_bounds_are_not_trivial_and_can_be_tight():
    waves = least_units(ol.Target("sin(50*x1)", "0:1"), 0.1)
    assert (waves.plain, waves.equal, waves.gates, waves.memory) == (16, 8, 4, 9)
    kinks = least_units(ol.Target(HATS, "0:1"), 0.01)
    assert kinks.hinges == 9  # as many as the formula has
    exact = ol.build(HATS, "0:1", 0.01, construction="memory", seconds=30.0)
    assert units_of(form_of_model(exact.model, exact.facts.places)) == ("hinges", 9)
    one = least_units(ol.Target("exp(x1)", "0:1"), 1e-4)
    assert one.gates == 1
    assert ol.build("exp(x1)", "0:1", 1e-4, construction="gates", seconds=30.0).units == 1


@pytest.mark.parametrize(
    ("formula", "tolerance"),
    [("sin(50*x1)", 0.2), (HATS, 0.05), ("abs(x1 - 0.3)**0.5", 0.02), ("3*x1 + cos(64*pi*x1)/4", 0.2)],
)
def test_the_points_prove_what_they_say(formula, tolerance):
    """Looked at again in rational arithmetic, from balls around the values of f."""
    target = ol.Target(formula, "0:1")
    found, eps = least_units(target, tolerance, 512), Fraction(tolerance)

    def f(x: float, slope: float = 0.0) -> tuple[Fraction, Fraction]:
        (value,) = enclose(target.formula, [x])
        return tuple(Fraction(end) - Fraction(slope) * Fraction(x) for end in (value.lower(), value.upper()))

    last = -math.inf
    for a, b, c in found.bends:
        assert last <= a < b < c
        last = c
        (low, high), share = f(b), (Fraction(b) - Fraction(a)) / (Fraction(c) - Fraction(a))
        chord = [(1 - share) * f(a)[end] + share * f(c)[end] for end in (0, 1)]
        assert low - chord[1] > 2 * eps or chord[0] - high > 2 * eps
    for points in (found.turns.points, found.crossings.points):
        assert list(points) == sorted(set(points))
        assert len(points) > 2
    sides = [f(x, found.crossings.slope) for x in found.crossings.points]
    even, odd = sides[0::2], sides[1::2]
    up, down = (even, odd) if even[0][0] > odd[0][1] else (odd, even)
    assert min(low for low, _ in up) - max(high for _, high in down) > 2 * eps  # room for a level between
    ends = [f(x, found.turns.slope) for x in found.turns.points]
    rises = [b[0] - a[1] > 2 * eps for a, b in itertools.pairwise(ends)]
    falls = [a[0] - b[1] > 2 * eps for a, b in itertools.pairwise(ends)]
    assert all(r != s for r, s in zip(rises, falls, strict=True))
    assert all(r != s for r, s in itertools.pairwise(rises))
    assert found.bends


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
        clear = y[y.abs() > 1e-9]  # not rounding
        return int((clear.sign().diff() != 0).sum())

    def turns(y):
        return 1 + crossings(y.diff())

    def gates(beta, u):
        return ((c + u * x[:, None]) * torch.sigmoid(beta * (x[:, None] - b))).sum(dim=1)

    one, any_ = torch.full((n,), 3.0, dtype=torch.float64), 4 * draw(n)
    plain, equal, free = (
        gates(one, 0 * u) + level,
        gates(one, u) + slope * x + level,
        gates(any_, u) + slope * x + level,
    )
    scores = 2 * draw(n) * x[:, None] + draw(n)
    memory = torch.softmax(scores, dim=1) @ c + slope * x + level
    assert crossings(plain) <= n
    assert turns(plain) <= 2 * n - 1
    assert crossings(equal) <= 2 * n + 1
    assert turns(equal) <= 4 * n
    assert crossings(free) <= 2 ** (n + 1) - 1
    assert turns(free) <= 2 * 3**n - 2**n
    assert crossings(memory) <= 2 * n - 1
    assert turns(memory) <= max(n * (n + 1) // 2, 1)


def test_fewer_tokens_than_proved_are_never_certified():
    """The other side of the first test: this check would fail if the bound were one too high."""
    least = least_units(ol.Target("sin(20*x1)", "0:1"), 0.1, 512).memory
    built = ol.build("sin(20*x1)", "0:1", 0.1, construction="memory", units=least - 1, seconds=10.0)
    assert built.certificate.verdict != "CERTIFIED"


def test_two_gates_can_do_what_two_of_one_sharpness_cannot():
    """Three crossings without slopes: sharpnesses that differ are worth more, so the bound for any gates has to be weaker."""
    x = np.linspace(-3, 3, 2001)
    y = 1 / (1 + np.exp(-x)) - 0.5 - 0.2 * (1 / (1 + np.exp(-20 * x)) - 0.5)
    assert (np.diff(np.sign(y[y != 0])) != 0).sum() == 3


def test_what_has_no_such_bound_is_refused():
    for target in (ol.Target("x1 + x2", "0:1"), ol.Target(lambda x: x[:, 0], [(0, 1)], lipschitz=1.0)):
        with pytest.raises(InputError, match="one variable"):
            least_units(target, 0.1)
    with pytest.raises(InputError, match="three points"):
        least_units(ol.Target("x1", "0:1", within="x1 < 0.001"), 0.1, 100)


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


@pytest.mark.parametrize(("s", "p", "q"), [(0.25, 0, 1), (0.5, 0, 1), (0.75, 0, 1), (1.5, 1, 2)])
def test_gates_reach_root_exponential_rates_for_powers(s, p, q):
    """docs/theory/sizes.md, 3: x^s on [0, 1] by a trapezoidal sum of n gates at 0 with sharpnesses in geometric progression."""

    def g(z):
        return z**p * np.tanh(z)  # rows 1 and 4 of the table; d = π/2

    x = np.concatenate([[0.0], np.logspace(-30, 0, 4001)])
    t = np.linspace(-60 / (q - s), 60 / (s - p), 200_001)
    whole = np.exp(-s * t) @ g(np.exp(t)) * (t[1] - t[0])
    theory = np.pi * np.sqrt((s - p) * (q - s) / (q - p))
    roots, errors = [], []
    for r in theory * np.sqrt([8, 16, 32, 64, 96]):
        h = np.pi**2 / r
        k = np.arange(-round(r / ((q - s) * h)), round(r / ((s - p) * h)) + 1)
        y = (h * np.exp(-s * k * h) * g(np.exp(k * h) * x[:, None])).sum(axis=1) / whole
        roots.append(np.sqrt(len(k)))
        errors.append(np.abs(y - x**s).max())
    assert -np.polyfit(roots, np.log(errors), 1)[0] == pytest.approx(theory, rel=0.12)
