"""Ranges, slopes and properties: never false, and decided where there is room."""

import math

import numpy as np
import pytest
import torch

import onelayer as ol
import propositions
from onelayer import InputError
from onelayer.common.budget import Budget
from onelayer.proof.properties.judge import judge
from onelayer.proof.properties.reached import proved
from onelayer.proof.properties.real_function import formula_function, layer_function
from onelayer.proof.properties.span import Enclosure
from onelayer.proof.properties.statement import Limit, Statement, read

SEEDS = range(6_000_000, 6_000_060)


@pytest.fixture(scope="module")
def wave():
    """A layer for a function whose slopes, ranges and second derivatives are known."""
    return ol.build("sin(x) + y**2", {"x": (0, 1), "y": (0, 2)}, 1e-3)


@pytest.fixture(scope="module")
def disc():
    return ol.build("x1*x2 + 2*x1", [(-1, 1)] * 2, 1e-2, within="x1**2 + x2**2 <= 1")


def truths(subject, order, i, points):
    """(below, above) of divided differences of float points, [point, out]."""
    step = np.zeros(subject.domain.dimension)
    step[i] = 2.0**-20
    found = [proved(subject, x + np.outer(np.arange(order + 1), step), i) for x in points]
    return np.array([[(v.below, v.above) for v in row] for row in found if None not in row])


# ---- nothing false is proved


@pytest.mark.parametrize("kind", propositions.KINDS)
@pytest.mark.parametrize("seeds", [SEEDS[::24], pytest.param([*SEEDS[12::24], *SEEDS[1::2]], marks=pytest.mark.long)])
def test_nothing_false_is_proved(kind, seeds):
    assert not [line for seed in seeds for line in propositions.attack(kind, seed, 0.3)]


@pytest.mark.long
def test_the_hunt_is_not_empty():
    for order in range(3):
        proofs = [propositions.bounded(seed, order, 0.3) for seed in SEEDS[:8]]
        assert sum(proofs) >= 3


def test_the_hunt_would_find_an_end_that_is_too_low(monkeypatch):
    honest = propositions.span

    def wrong(*args, **options):
        found = honest(*args, **options)
        width = found.high - found.low if np.isfinite(found.high).all() else 0.0
        return type(found)(found.low, found.high - 0.04 * width, found.reason)

    monkeypatch.setattr(propositions, "span", wrong)
    assert any(propositions.attack("ranges", seed, 0.5) for seed in SEEDS[:10])


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ranges_and_slopes_hold_the_model_and_its_automatic_slopes(dtype):
    approx = ol.build("exp(-x1)*cos(3*x2); x1*x2", [(0, 1), (-1, 2)], 1e-2, dtype=dtype)
    x = torch.from_numpy(approx.domain.points(np.random.default_rng(0).random((2000, 2)))).requires_grad_(True)
    double = approx.module().double()
    y = double(x)
    slack = 1e-10  # the rounding of this evaluation
    for o, found in enumerate(approx.range()):
        assert found.low - slack <= y[:, o].min()
        assert y[:, o].max() <= found.high + slack
    slopes = approx.slopes()
    for o in range(2):
        own = torch.autograd.grad(y[:, o].sum(), x, retain_graph=True)[0]
        for i in range(2):
            assert slopes[o, i].low - slack <= own[:, i].min()
            assert own[:, i].max() <= slopes[o, i].high + slack


@pytest.mark.long
def test_a_hundred_slightly_wrong_constants(wave):
    """T <= c, T >= c and Lipschitz c with c a little beyond what T reaches are never proved."""
    values, slopes = wave.range()[0], wave.slopes()
    rng = np.random.default_rng(0)
    for _ in range(20):
        off = 10 ** rng.uniform(-12, -2)
        wrong = [f"T <= {values.reached_high - off!r}", f"T < {values.reached_high - off!r}"]
        wrong += [f"T >= {values.reached_low + off!r}", f"not T <= {values.reached_high * 1.05 + off!r}"]
        wrong += [f"Lipschitz {slopes[0, 1].reached_high - off!r} in y"]
        for text in wrong:
            assert ol.prove(wave, text, seconds=2.0).verdict in ("REFUTED", "UNDECIDED"), text


# ---- what is true is proved


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("increasing in x", "PROVED"),
        ("decreasing in x", "REFUTED"),
        ("not decreasing in x", "PROVED"),
        ("not increasing in x", "REFUTED"),
        ("convex in y", "PROVED"),
        ("concave in y", "REFUTED"),
        ("not concave in y", "PROVED"),
        ("convex in x", "REFUTED"),
        ("T <= 2*pi", "PROVED"),
        ("T < 4.9", "PROVED"),
        ("T ≥ -1/100", "PROVED"),
        ("T > 1", "REFUTED"),
        ("Lipschitz 1.1 in x", "PROVED"),
        ("Lipschitz 4.1 in y", "PROVED"),
        ("Lipschitz 0.9 in x", "REFUTED"),
        ("  not   Lipschitz   3.9   in   y ", "PROVED"),
    ],
)
def test_verdicts(wave, text, verdict):
    found = ol.prove(wave, text)
    assert found.verdict == verdict
    assert found.proved is (verdict == "PROVED")
    assert found.text == " ".join(text.split())
    assert verdict in str(found)
    shows = found.text.startswith("not ") == (verdict == "PROVED")
    assert (found.witness is not None) == (found.shown is not None) == shows
    assert "∞" not in str(found)
    if shows:
        statement = read(text, wave.domain.names)
        assert len(found.witness) == 1 + statement.order
        assert statement.fails(*found.shown)
        assert all(repr(end).removesuffix(".0") in str(found) for end in found.shown)


def test_a_limit_that_is_reached_is_undecided():
    """T is constant: whether it is increasing cannot be told from floats, and it is not refuted either."""
    flat = ol.build("0*x1 + 1/3", (0, 1), 1e-3, method="solved")
    for text in ("increasing in x1", "decreasing in x1", "not concave in x1", "Lipschitz 0 in x1"):
        found = ol.prove(flat, text, seconds=2.0)
        assert found.verdict == "UNDECIDED"
        assert "limit" in found.reason


def test_ranges_are_close(wave):
    values, slopes = wave.range()[0], wave.slopes()
    for found, truth in ((values, (0, math.sin(1) + 4)), (slopes[0, 0], (math.cos(1), 1)), (slopes[0, 1], (0, 4))):
        width = truth[1] - truth[0]
        assert found.low <= found.reached_low <= truth[0] + 0.06 * width
        assert found.high >= found.reached_high >= truth[1] - 0.06 * width
        assert found.high - found.low <= 1.1 * width
    assert "reached" in str(values)
    assert "T along y" in str(slopes)


def test_a_condition_counts(disc):
    """On the disc x1·x2 + 2·x1 has slopes 2 + x2 ≥ 1 along x1 and stays below 2.6; on the box it reaches 3."""
    assert ol.prove(disc, "T < 2.75").verdict == "PROVED"
    found = ol.prove(disc, "increasing in x1")
    assert found.verdict == "PROVED"
    assert "segments along x1" in found.domain
    refuted = ol.prove(disc, "increasing in x2")
    assert refuted.verdict == "REFUTED"
    a, b = (np.array(x) for x in refuted.witness)
    assert (a**2).sum() <= 1
    assert (b**2).sum() <= 1
    assert a[0] == b[0]
    assert a[1] < b[1]


def test_sharp_slopes_along_one_direction():
    """A very sharp maximum: its slopes go from −1 to 1, a little beyond, within a millionth of the square."""
    approx = ol.build("abs(x1 - x2)", [(0, 1)] * 2, 1e-5)
    subject = layer_function(approx.model, approx.facts.places, approx.domain)
    rng = np.random.default_rng(0)
    for i, found in enumerate(approx.slopes(seconds=20.0)):
        assert -1.3 < found.low < -1.1
        assert 1.1 < found.high < 1.3
        for _ in range(40):
            x = np.full((2, 2), 0.2 + 0.6 * rng.random())
            x[:, i] += np.sort(10 ** rng.uniform(-8, -4) * rng.normal(size=2))
            (slope,) = proved(subject, x, i)
            assert found.low <= slope.above
            assert slope.below <= found.high


def test_layers_that_are_no_sum_of_heads():
    seed = next(
        s
        for s in range(4, 400, 5)
        if propositions._case(s).model.config.norm == "pre" and not propositions._case(s).poisoned
    )
    subject = propositions.subject_of(propositions._case(seed))
    found = judge(subject, Statement("convex", 2, 0, least=Limit(-1e300, -1e300)), Budget(1.0))
    assert found.verdict == "UNDECIDED"
    assert "no sum of smooth softmax heads" in found.reason


def test_formulas_have_properties_too():
    subject = formula_function(ol.Target("sin(x) + y**2", {"x": (0, 1), "y": (0, 2)}))
    for text, verdict in (
        ("increasing in x", "PROVED"),
        ("convex in y", "PROVED"),
        ("convex in x", "REFUTED"),
        ("T <= 4", "REFUTED"),
    ):
        assert judge(subject, read(text, subject.domain.names), Budget(5.0)).verdict == verdict
    kinked = formula_function(ol.Target("abs(x1) + 2*x1", [(-1, 1)]))
    assert judge(kinked, read("increasing in x1", ("x1",)), Budget(5.0)).verdict == "PROVED"


# ---- texts


@pytest.mark.parametrize(
    "text",
    [
        "", "increasing", "increasing in", "increasing in z", "increasing in x y", "growing in x", "not",
        "not not increasing in x", "T", "T <", "T <= ", "T == 1", "T <= x", "T <= 1; 2",
        "T <= 1/0", "T <= log(-1)", "T <= nan", "T <= inf", "1 <= T <= 2",
        "Lipschitz in x", "Lipschitz -1 in x", "Lipschitz 1 in z", "Lipschitz __import__('os') in x", "T <= " + "1" * 3000,
        "t <= 1", 5, None, ["T <= 1"],
    ],
)  # fmt: skip
@pytest.mark.usefixtures("as_user")
def test_nonsense_gets_one_line(wave, text):
    with pytest.raises(InputError) as caught:
        ol.prove(wave, text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("T <=", "a number after <=; found: nothing; change: write for instance T <= 2"),
        ("T <= 2 and T >= 0", "one property at a time"),
        ("0 <= T <= 2", "one property at a time"),
        ("increasing in x; convex in y", "one property at a time"),
        ("T <= 2, T >= 0", "one property at a time"),
        ("increasing", "write increasing in x"),
        ("increasing in x, y", "a variable among x, y; found: 'x, y'"),
        ("Lipschitz 3", "write a constant and a variable, as in Lipschitz 3 in x"),
        ("2 >= T", "write T alone on the left"),
        ("T = 2", "then <=, >=, < or >"),
        ("", "found: nothing"),
        ("T <= y", "the unknown name 'y'"),
    ],
)
@pytest.mark.usefixtures("as_user")
def test_what_is_wrong_is_named(wave, text, found):
    with pytest.raises(InputError) as caught:
        ol.prove(wave, text)
    assert found in str(caught.value)


def test_relations_inside_a_constant_are_no_second_property():
    assert read("T <= where(1 < 2, 3, 4)", ("x",)).most == Limit(3.0, 3.0)
    assert read("Increasing in X", ("X",)).order == 1


@pytest.mark.usefixtures("as_user")
def test_only_layers_of_real_variables_have_properties(wave):
    with pytest.raises(InputError, match="an Approximation"):
        ol.prove("x", "T <= 1")
    with pytest.raises(InputError, match="real variables"):
        ol.gallery.reverse(3, vocabulary=4).range()
    with pytest.raises(InputError, match="seconds"):
        wave.range(seconds=0)


def test_enclosures_are_printed_outward():
    text = str(Enclosure(-1.00006, 2.00004, -0.99994, 1.99996))
    assert text == "[-1.001, 2.001], reached: -0.9999 to 1.999"
    assert str(Enclosure(-math.inf, 2.0)) == "[-∞, 2]"
    assert str(Enclosure(-math.inf, math.inf)) == "none proved"


def test_limits_are_outward():
    statement = read("T <= 0.1", ("x",))
    assert statement.most.below <= 0.1 <= statement.most.above
    assert statement.most.below < statement.most.above  # 1/10 is no float
    assert not statement.holds(-1.0, statement.most.above)
    assert statement.holds(-1.0, statement.most.below)
    assert not statement.fails(statement.most.below, statement.most.above)
    assert not read("T < 1", ("x",)).holds(0.0, 1.0)
    assert read("T < 1", ("x",)).fails(1.0, 1.0)
    assert not read("T <= 1", ("x",)).fails(1.0, 1.0)
    assert not read("T <= 1", ("x",)).holds(math.nan, math.nan)
