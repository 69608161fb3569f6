"""Targets and domains: formulas and callables, shapes, outward rounding, and one clear line for everything wrong."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import arb, ctx

import onelayer as ol
from onelayer import InputError, Target
from onelayer.target.domain import domain_of
from onelayer.target.target import target_of


def test_ends_are_rounded_outward():
    d = domain_of([(0, "2*pi"), ("-sqrt(2)", 0.1), ("1/3", "2/3")])
    assert d.lower[0] == 0.0
    with ctx.workprec(200):
        assert arb(d.upper[0]) > 2 * arb.pi()
        assert arb(d.lower[1]) < -arb(2).sqrt()
    assert d.upper[1] == 0.1  # a float is exactly itself
    assert math.nextafter(d.upper[0], 0.0) < 2 * math.pi + 1e-15
    assert d.ends[0] == ("0", "2*pi")
    assert str(d).startswith("x1 in [0, 2*pi], x2 in [-sqrt(2), 0.1]")


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, float])
def test_the_text_of_an_end_is_the_number_that_is_used(kind):
    """0.1 in float32 is above 1/10: a text "0.1" would promise points that are not in the box."""
    d = domain_of([(kind(0.1), kind(0.7))])
    assert d.ends == ((repr(d.lower[0]), repr(d.upper[0])),)
    assert (d.lower[0], d.upper[0]) == (float(kind(0.1)), float(kind(0.7)))
    assert f"[{d.lower[0]!r}, {d.upper[0]!r}]" in str(d)


@pytest.mark.parametrize("kind", [int, np.int64, np.uint64])
def test_whole_ends_too_long_for_a_float_are_rounded_outward(kind):
    low, high = 2**53 + 1, 2**54 + 1
    d = domain_of([(kind(low), kind(high))])
    assert d.ends == ((str(low), str(high)),)
    assert Fraction(d.lower[0]) <= low < high <= Fraction(d.upper[0])


def test_numbers_longer_than_floats_are_refused():
    with pytest.raises(InputError, match="a number or a constant formula"):
        domain_of([(np.longdouble("0.1"), 1)])


def test_a_checked_folder_says_the_ends_that_were_given(tmp_path):
    ol.build("x1", [(np.float32(0.1), np.int64(2))], 0.1, method="solved").save(tmp_path / "f")
    text, box = (json.loads((tmp_path / "f/target.json").read_text())[key] for key in ("ends", "lower"))
    assert float(text[0][0]) == box[0] == float(np.float32(0.1))
    assert ol.check(tmp_path / "f").verdict == "VALID"


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    "one", [(0, 1), [0, 1], (np.float32(0), np.int64(1)), np.array([0.0, 1.0]), "0:1", {"x1": (0, 1)}]
)
def test_one_variable_needs_no_list(one):
    d = domain_of(one)
    assert (d.names, d.lower, d.upper) == (("x1",), (0.0,), (1.0,))


@pytest.mark.usefixtures("as_user")
def test_a_domain_as_text():
    assert domain_of("0:1, -1:2*pi") == domain_of([("0", "1"), ("-1", "2*pi")])
    assert domain_of("T=280:350").names == ("T",)
    assert domain_of(("0", "2*pi")) == domain_of([("0", "2*pi")])
    for wrong in ("0", "0:1:2", ["0:1", "0:1"], (0, None), (0, 1, 2), (True, False)):
        with pytest.raises(InputError):
            domain_of(wrong)


def test_points_stay_in_the_box():
    d = domain_of([("-pi", "pi"), (1e6, 1e6 + 1)])
    x = d.points(np.random.default_rng(0).random((1000, 2)))
    assert d.contains(x).all()
    assert d.contains(d.points(np.array([[0.0, 1.0], [1.0, 0.0]]))).all()


def test_names_and_conditions():
    t = Target("p*T", {"T": (280, 350), "p": (1, 10)}, within="p*T <= 1000")
    np.testing.assert_array_equal(t(np.array([[300.0, 2.0]])), [[600.0]])
    assert t.domain.contains(np.array([[300.0, 2.0], [300.0, 9.0]])).tolist() == [True, False]


def test_a_formula_and_its_callables_agree():
    x = np.random.default_rng(0).random((50, 2))
    sides = [(0, 1)] * 2
    formula = Target("x1*x2; x1 - x2**2", sides)
    in_numpy = Target(lambda x: np.stack([x[:, 0] * x[:, 1], x[:, 0] - x[:, 1] ** 2], axis=1), sides)
    in_torch = Target(lambda x: torch.stack([x[:, 0] * x[:, 1], x[:, 0] - x[:, 1] ** 2], dim=1), sides)
    np.testing.assert_allclose(formula(x), in_numpy(x), rtol=1e-14)
    np.testing.assert_allclose(formula(x), in_torch(x), rtol=1e-14)
    assert formula.output_shape == in_numpy.output_shape == in_torch.output_shape == (2,)


def test_sequence_shapes():
    t = Target(lambda x: x.sum(axis=2, keepdims=True) ** 2, [(0, 1)] * 6, shape=(3, 2))
    assert t.output_shape == (3, 1)
    assert t.places == (3, 1)
    np.testing.assert_allclose(t(np.arange(6.0)[None] / 6), [[1 / 36, 25 / 36, 81 / 36]], rtol=1e-14)


def test_nearest_values_are_proved():
    t = Target("exp(x1)/3", [(0, 1)])
    x = np.random.default_rng(0).random((50, 1))
    values, error = t.values_with_error(x)
    assert error < 1e-15
    with ctx.workprec(200):
        for point, value in zip(x[:, 0], values[:, 0], strict=True):
            assert abs(arb(float(point)).exp() / 3 - arb(float(value))) <= arb(error)


def nothing(x):
    return np.zeros(3)


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("make", "mentions"),
    [
        (lambda: Target("sin(x1)", [(1, 0)]), "low < high for x1"),
        (lambda: Target("sin(x1)", [(0, 0)]), "low < high for x1"),
        (lambda: Target("sin(x1)", [(float("nan"), 1)]), "a finite end of x1"),
        (lambda: Target("sin(x1)", [(0, float("inf"))]), "a finite end of x1"),
        (lambda: Target("sin(x1)", [("1/0", 1)]), "a finite end of x1"),
        (lambda: Target("sin(x1)", [(0, "x1")]), "x1"),
        (lambda: Target("sin(x1)", [(0, None)]), "a number or a constant formula"),
        (lambda: Target("sin(x1)", []), "at least one side"),
        (lambda: Target("sin(x1)", ["0:1"]), "two ends"),
        (lambda: Target("sin(x3)", [(0, 1)]), "x3"),
        (lambda: Target(3, [(0, 1)]), "a formula or a callable"),
        (lambda: Target("x1", [(0, 1)], shape=(2, 2)), "n·d = 1"),
        (lambda: Target("x1", [(0, 1)], output_shape=(3,)), "`output_shape` for 1 output"),
        (lambda: Target(nothing, [(0, 1)]), "2 points in, 2 values out"),
        (lambda: Target("1/x1", [(-1, 1)]), "no finite value near x = ("),
        (lambda: Target("1/x1", [(-1, 1)], within="x1 > 0")(np.array([[0.0]])), "at x = [0.0]"),
        (lambda: Target("1/x1", [(-1, 1)], within="x1 > 0").values_with_error(np.array([[0.0]])), "at x = [0.0]"),
        (lambda: Target("x1", [(0, 1)], lipschitz=-1).modulus, "lipschitz"),
        (lambda: Target("x1", [(0, 1)], lipschitz=[1, 2]).modulus, "lipschitz"),
        (lambda: target_of("x1"), "a domain"),
        (lambda: target_of("x1", [(0, 1)], lipshitz=1), "lipshitz"),
        (lambda: target_of(Target("x1", [(0, 1)]), [(0, 1)]), "a Target alone"),
    ],
)
def test_bad_targets_get_one_clear_line(make, mentions):
    with pytest.raises(InputError) as caught:
        make()
    message = str(caught.value)
    assert mentions in message
    assert "\n" not in message


def test_a_bad_value_is_reported_with_its_point():
    t = Target(lambda x: np.where(x[:, 0] > 0.5, np.nan, 1.0), [(0, 1)])
    with pytest.raises(InputError, match=r"nan.* at x = \[0\.75\]"):
        t(np.array([[0.25], [0.75]]))


def test_a_ragged_answer_is_reported():
    t = Target(lambda x: np.zeros(2), [(0, 1)])
    with pytest.raises(InputError, match="output of shape"):
        t(np.zeros((5, 1)))


def test_a_target_shows_what_it_is():
    assert repr(ol.Target("x^2", (0, 1))) == "Target(x**2 on x in [0, 1])"
    assert repr(ol.Target((np.eye(2), np.arange(2.0)))).startswith("Target(2 samples")
