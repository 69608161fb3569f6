"""Functions of the user's own, records that contradict themselves, functions with jumps."""

import math
from dataclasses import replace

import numpy as np
import pytest
from flint import arb

import onelayer as ol
from onelayer import checker
from onelayer.common.errors import InputError
from onelayer.formula import enclose, evaluate, gradient, interval, parse, to_text
from onelayer.formula.functions import FUNCTIONS
from onelayer.formula.own import require_consistent, together
from onelayer.formula.record import Monotone

DAWSON = {"ball": lambda z: z.pi().sqrt() / 2 * (-z * z).exp() * z.erfi(), "slope": "1 - 2*u*y"}


def dawson(**changes):
    return ol.Function("dawson", **(DAWSON | changes))


def test_a_layer_for_a_function_of_ones_own(tmp_path):
    target = ol.Target("x*dawson(3*x)", (0, 2), functions=[dawson()])
    found = ol.build(target, tolerance=1e-3)
    assert found.certificate.verdict == "CERTIFIED"
    assert "dawson as enclosed by its record" in found.certificate.assumptions
    folder = found.save(tmp_path / "layer")
    assert ol.load(folder).description.kind == "callable"
    assert ol.check(folder).verdict == "NOT CHECKABLE"


def test_slopes_through_functions_that_stand_beside():
    twice = ol.Function("twice", ball=lambda z: 2 * z.sin(), slope="other(u)")
    other = ol.Function("other", ball=lambda z: 2 * z.cos(), slope="-twice(u)", least=-2.0, most=2.0)
    target = ol.Target("twice(x)", (0, 1), functions=[twice, other])
    assert target.formula is not None
    assert target.formula.slopes is not None
    assert target.formula.slopes.text == "other(x)"
    bend = target.formula.slopes.slopes
    assert bend is not None
    np.testing.assert_allclose(evaluate(bend, np.array([[0.3]])), -2 * math.sin(0.3), rtol=1e-15)
    assert target.modulus.lipschitz[0] <= 2.05


def test_one_name_with_two_records():
    steep, flat = (ol.Function("g", ball=lambda z, k=k: k * z, slope=f"{k}") for k in (5, 1))
    slopes = [
        gradient(parse("g(x)", own=together([g])), [interval(0, 1)])[1][0][0].magnitude() for g in (steep, flat, steep)
    ]
    assert slopes == [5, 1, 5]


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("changes", "mentions"),
    [
        ({"slope": "1 - u*y"}, "a slope that is not"),
        ({"slope": "1 -"}, "not an expression"),
        ({"slope": "1 - 2*u*w"}, "unknown name 'w'"),
        ({"shape": "increasing"}, "the other direction"),
        ({"shape": "even"}, "the value of an even function at 0"),
        ({"shape": "wavy"}, "any, increasing, decreasing, even"),
        ({"most": 0.5}, "a value outside its enclosure"),
        ({"ball": lambda z: z / 0}, "no finite ball"),
        ({"ball": 3}, "a function of a ball"),
        ({"domain": (1, 1)}, "low < high"),
    ],
)
def test_records_that_cannot_be_true_are_refused(changes, mentions):
    with pytest.raises(InputError, match=mentions):
        ol.Target("dawson(x)", (0, 1), functions=[dawson(**changes)])


@pytest.mark.parametrize("name", ["sin", "j", "x1", "a b", "pi", "lambda", "arcsin"])
def test_names_that_are_taken(name):
    with pytest.raises(InputError, match="a name of a new function"):
        ol.Function(name, **DAWSON)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_record_of_the_language_is_consistent(name):
    require_consistent(FUNCTIONS[name])


@pytest.mark.parametrize("change", [{"slope": "y + u"}, {"shape": Monotone(0.0, rises=False)}, {"steepest": 2.0}])
def test_the_check_of_records_can_fail(change):
    with pytest.raises(InputError, match="a record of exp"):
        require_consistent(replace(FUNCTIONS["exp"], **change))


def test_an_own_function_with_the_name_of_an_activation_is_itself():
    own = ol.Function("gelu", ball=lambda z: z.cos(), slope="-sin(u)", analytic=True)
    target = ol.Target("gelu(x) + 2*abs(x - 0.3)", (-1, 1), functions=[own])
    found = ol.build(target, tolerance=1e-2)
    x = np.linspace(-1, 1, 1001)
    assert found.certificate.verdict == "CERTIFIED"
    assert np.abs(np.ravel(found(x[:, None])) - np.cos(x) - 2 * np.abs(x - 0.3)).max() <= found.certificate.bound


@pytest.mark.parametrize("slope", ["cos(u)", "cos(u) + 0*max(u, 0)", "cos(u) + 0*atan2(u, 1)"])
def test_own_functions_inside_kinks(slope):
    own = ol.Function("g", ball=lambda z: z.sin(), slope=slope)
    found = ol.build(ol.Target("abs(g(x))", (-1, 2), functions=[own]), tolerance=1e-2)
    assert found.certificate.verdict == "CERTIFIED" or "atan2" in slope


STEPS = {  # text: the same by NumPy
    "floor(x)": np.floor, "ceil(x)": np.ceil, "round(x)": lambda x: np.floor(x + 0.5), "sign(x)": np.sign,
    "mod(x, 2)": lambda x: np.mod(x, 2), "mod(x, -3)": lambda x: np.mod(x, -3), "mod(7, x)": lambda x: np.mod(7, x),
}  # fmt: skip


@pytest.mark.parametrize("text", STEPS)
def test_steps(text):
    x = np.array([-3.5, -2.0, -1.25, -0.5, 0.5, 1.0, 2.5, 4.0])
    formula = parse(text)
    np.testing.assert_array_equal(evaluate(formula, x[:, None])[:, 0], STEPS[text](x))
    for value, found in zip(x.tolist(), STEPS[text](x).tolist(), strict=True):
        assert enclose(formula, [interval(value - 0.1, value + 0.1)])[0].contains(found)
    (slope,) = gradient(formula, [interval(1.1, 1.2)])[1][0]
    assert slope.is_finite() or "7" in text
    if "7" not in text:
        assert not gradient(formula, [interval(-0.5, 3.5)])[1][0][0].is_finite()


def test_whole_numbers_at_the_edges_of_a_domain():
    assert ol.build("mod(x, 2)", (-2, 4), 1e-2, margin=0.01).certificate.verdict == "CERTIFIED"


def test_jumps_at_the_edge_of_a_domain_are_left_out_as_well(tmp_path):
    found = ol.build("floor(3*x)", (0, 1), 1e-2, margin=0.01)
    assert found.certificate.verdict == "CERTIFIED"
    assert ol.check(found.save(tmp_path / "steps")).verdict == "VALID"
    x = np.array([[0.2], [0.5], [0.9]])
    np.testing.assert_allclose(found(x)[:, 0] if found(x).ndim > 1 else found(x), [0, 1, 2], atol=1e-2)


def test_what_cancels_beside_a_limit_is_told_or_stays():
    kept = {
        "x*sin(y)/(x*y)": ("sinc(y)", {"x", "y"}),
        "log(x)*sin(y)/(log(x)*y)": ("sinc(y)*(log(x)/log(x))", {"y"}),
        "floor(x)*sin(y)/(floor(x)*y)": ("sinc(y)*(floor(x)/floor(x))", {"y"}),
        "sin(floor(x))/floor(x)": ("sin(floor(x))/floor(x)", set()),
        "sin(max(x, 0))/max(x, 0)": ("sin(max(x, 0))/max(x, 0)", set()),
        "sin(abs(x))/abs(x)": ("sinc(abs(x))", {"abs(x)"}),
    }
    for text, (read, limits) in kept.items():
        formula = parse(text)
        assert to_text(formula.outputs[0], formula.names) == read
        assert {to_text(factor, formula.names) for factor in formula.limits} == limits
        node = checker.Reader(list(formula.names), text).node()
        at = arb(0.5 if "floor" in text else -0.5)
        assert checker.value(node, [at] * len(formula.names)).is_finite() is (limits not in ({"y"}, set()))


def test_the_checker_survives_vast_whole_numbers():
    for text in ("floor(exp(exp(exp(x1))))", "min(1, floor(exp(exp(x1))))", "round(1e300*x1)"):
        node = checker.Reader(["x1"], text).node()
        assert checker.choices_of(node, checker.Sides([(0.0, 40.0)])) == []


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("j(1, x)/x", "1/2*j0(x) + 1/2*j2(x)"), ("i1(x)/x", "1/2*i0(x) + -1/2*i2(x)"), ("erf(x)/x", "erfrel(x)"),
        ("si(3*x)/x", "3*sirel(3*x)"), ("lambertw(x)/x", "1/exp(lambertw(x))"), ("(cosh(x) - 1)/x^2", "exp(x)*exprel(-x)**2/2"),
        ("x*cot(x)", "cos(x)/sinc(x)"), ("j(2, x)/x^3", "j2(x)/x**3"), ("x/asinh(x)", "exp(asinh(x))*exprel(-2*asinh(x))"),
    ],
)  # fmt: skip
def test_limits_of_special_functions(text, read):
    formula = parse(text, ("x",))
    assert to_text(formula.outputs[0], formula.names) == read
    assert bool(formula.limits) is (text != "j(2, x)/x^3")
