"""Formulas as compositions: what is rewritten is the same function."""

import numpy as np
import pytest

from onelayer import Target
from onelayer.formula import Formula, evaluate, parse, to_text
from onelayer.formula.additive import additive_terms
from onelayer.formula.composition import U, ways
from onelayer.target.ranges import bounds_on, range_of

FORMULAS = {
    "a*b/c": 1,
    "sin(a*b)^2": 1,
    "sqrt((a - b)^2 + (c - d)^2)": 2,
    "a*b*cos(c)": 1,
    "a*(b + c*d)": 1,
    "a*b*c*d*(1/a - 1/d)": 1,
    "-a*b^2/(c*d^3)": 1,
    "a*exp(-b*c)": 2,
    "exp(a*b)/exp(c)": 2,
    "a*log(b/c) + 3": 2,
    "(a*b + c*d)/(a + c)": 2,
    "2*a*(1 - cos(b*c)) - 7 + d": 2,
    "asin(a/(5*b))": 1,
    "1/(exp(a*b/(c*d)) - 1)": 1,
    "(1 - a)*b*c": 1,
    "-(a*b)": 1,
}


def target_of(text: str) -> Target:
    return Target(text, dict.fromkeys(parse(text).names, (1, 3)))


@pytest.mark.parametrize("text", FORMULAS)
def test_a_way_is_the_same_function(text):
    target = target_of(text)
    x = target.domain.points(np.random.default_rng(0).random((400, target.dimension)))
    total, interacting = np.zeros(len(x)), 0
    for term in additive_terms(target.formula.outputs[0]):
        for one in ways(term, bounds_on(target))[0]:
            inner = np.asarray(evaluate(Formula("", target.formula.names, (one.inner,)), x))
            total += np.asarray(evaluate(Formula("", ("u",), (one.outer,)), inner))[:, 0]
            interacting = max(interacting, one.interacting)
    np.testing.assert_allclose(total, target(x)[:, 0], rtol=1e-11, atol=1e-11)
    assert interacting == FORMULAS[text]


@pytest.mark.parametrize("text", FORMULAS)
def test_every_way_is_the_same_function(text):
    target = target_of(text)
    x = target.domain.points(np.random.default_rng(1).random((50, target.dimension)))
    for term in additive_terms(target.formula.outputs[0]):
        wanted = np.asarray(evaluate(Formula("", target.formula.names, (term,)), x))[:, 0]
        for way in ways(term, bounds_on(target)):
            total = np.zeros(len(x))
            for one in way:
                inner = np.asarray(evaluate(Formula("", target.formula.names, (one.inner,)), x))
                total += np.asarray(evaluate(Formula("", ("u",), (one.outer,)), inner))[:, 0]
            np.testing.assert_allclose(total, wanted, rtol=1e-11, atol=1e-11, err_msg=to_text(term))


def test_logarithms_need_a_sign():
    """a*b with both signs: one factor can be shifted, two cannot."""
    one = Target("a*b", {"a": (-1, 1), "b": (1, 2)})
    found = ways(one.formula.outputs[0], bounds_on(one))
    assert [composition.interacting for composition in found[0]] == [1, 1]
    two = Target("a*b", {"a": (-1, 1), "b": (-1, 2)})
    assert ways(two.formula.outputs[0], bounds_on(two)) == []


def test_a_term_of_one_variable_is_plain():
    target = Target("sin(exp(a))", {"a": (0, 1)})
    ((one,),) = ways(target.formula.outputs[0], bounds_on(target))
    assert one.plain
    assert one.outer is U


@pytest.mark.parametrize(
    "text", ["(a - b)^2 + (c - d)^2", "log(1/a^3) + log(b)", "a*b - c", "sin(5*a)*b", "a/(b + c)", "sqrt(a - 1)"]
)
def test_a_range_holds_all_values(text):
    target = target_of(text)
    low, high = range_of(target.formula, target.domain)
    unit = np.random.default_rng(3).random((20_000, target.dimension))
    unit[:5000] = np.round(unit[:5000])  # corners
    values = target.values(target.domain.points(unit))
    assert low <= values.min()
    assert values.max() <= high
    assert high - low <= 1.05 * np.ptp(values)
