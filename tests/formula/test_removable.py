"""Quotients 0/0 with a limit: the value is the quotient's wherever it has one, the limit elsewhere, enclosed around 0 too."""

import math

import numpy as np
import pytest
from flint import arb, ctx

import onelayer as ol
from checking import check
from enclosing import inside
from onelayer.formula import enclose, evaluate, gradient, interval, parse, to_text
from onelayer.formula.complex_rectangles import enclose_rectangles
from onelayer.formula.float_bounds import evaluate_bounded
from onelayer.formula.taylor.formula import TaylorAlgebra
from onelayer.formula.taylor.series import Space

QUOTIENTS = {  # text in u → (the quotient as balls have it, its limit at u = 0, its slope there)
    "sin({0})/({0})": (lambda u: u.sin() / u, 1, 0),
    "sin({0})**2/({0})**2": (lambda u: (u.sin() / u) ** 2, 1, 0),
    "sin(2*({0}))/(-3*({0}))": (lambda u: -(2 * u).sin() / (3 * u), -2 / 3, 0),
    "(exp({0}) - 1)/({0})": (lambda u: u.expm1() / u, 1, 1 / 2),
    "(1 - exp(-({0})))/({0})": (lambda u: -(-u).expm1() / u, 1, -1 / 2),
    "({0})/(exp({0}) - 1)": (lambda u: u / u.expm1(), 1, -1 / 2),
    "(1 - cos({0}))/({0})**2": (lambda u: (1 - u.cos()) / u**2, 1 / 2, 0),
    "(cos({0}) - 1)/({0})": (lambda u: (u.cos() - 1) / u, 0, -1 / 2),
    "log(1 + ({0}))/({0})": (lambda u: u.log1p() / u, 1, -1 / 2),
    "tan({0})/({0})": (lambda u: u.tan() / u, 1, 0),
    "sinh({0})/({0})": (lambda u: u.sinh() / u, 1, 0),
    "tanh({0})/({0})": (lambda u: u.tanh() / u, 1, 0),
    "asin({0})/({0})": (lambda u: u.asin() / u, 1, 0),
    "({0})/atan({0})": (lambda u: u / u.atan(), 1, 0),
    "sqr(sin({0}))*({0})**-2*7": (lambda u: 7 * (u.sin() / u) ** 2, 7, 0),
}
ARGUMENTS = {
    "x1": lambda x: x,
    "0.3*(x1 - 0.1)": lambda x: (x - arb(1) / 10) * 3 / 10,
    "x1**3 - x1": lambda x: x**3 - x,
}
POINTS = [0.0, 1e-300, -1e-20, 1e-9, -1e-5, 0.009999, 0.01, 0.1, -0.3, 0.77, 1.0]


@pytest.mark.parametrize("quotient", QUOTIENTS)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_values_are_those_of_the_quotient(quotient, argument):
    formula, x = parse(quotient.format(argument), ("x1",)), np.array(POINTS)[:, None]
    assert formula.limits
    values, errors = evaluate_bounded(formula, x)
    for point, value, error in zip(POINTS, values[:, 0].tolist(), errors[:, 0].tolist(), strict=True):
        with ctx.workprec(4500):
            u = ARGUMENTS[argument](arb(point))
            exact = arb(QUOTIENTS[quotient][1]) if u == 0 else QUOTIENTS[quotient][0](u)
        (found,) = enclose(formula, [point])
        if exact.is_finite():
            assert not (exact < found.lo or exact > found.hi) or u == 0
            assert abs(exact - arb(value)) <= arb(error) + (u == 0) * 1e-15, point
            assert found.upper() - found.lower() <= 1e-15
            assert evaluate(formula, np.array([[point]]))[0, 0] == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("quotient", QUOTIENTS)
def test_boxes_around_0_are_enclosed_with_slopes(quotient):
    function, limit, slope = QUOTIENTS[quotient]
    formula = parse(quotient.format("x1"), ("x1",))
    for low, high in ((-1e-12, 1e-12), (0.0, 1e-3), (-0.2, 0.3), (0.1, 0.5)):
        (found,), ((rise,),) = gradient(formula, [interval(low, high)])
        space = Space(np.array([[low]]), np.array([[high]]))
        model = formula.tape.run(TaylorAlgebra(space))[0]
        ((least, most, _),) = enclose_rectangles(formula, [(np.array([low]), np.array([high]), np.zeros(1))])
        assert np.isfinite([least, most]).all()
        assert found.upper() - found.lower() <= 3 * (high - low) + 1e-14
        assert model.high[0] - model.low[0] <= 7 * (high - low) + 1e-12
        assert rise.upper() - rise.lower() <= 60 * (high - low) + 1e-9
        for point in (low, high, *np.linspace(low, high, 7).tolist()):
            with ctx.workprec(4500):
                exact = function(arb(point)) if point else arb(limit)
            assert not (exact < found.lo or exact > found.hi) or not point
            assert inside(exact, model.low[0], model.high[0]) or not point
            assert inside(exact, least[0], most[0]) or not point
        if low <= 0 <= high:
            assert rise.lower() - 1e-15 <= slope <= rise.upper() + 1e-15


@pytest.mark.parametrize("text", ["sin(x)/x**2", "cos(x)/x", "log(x)/x", "x/sin(x)**2", "(x - x)/(x - x)"])
def test_poles_stay_poles(text):
    formula = parse(text)
    assert not formula.limits
    assert not enclose(formula, [interval(-1, 1)])[0].is_finite()
    with pytest.raises(ol.InputError):
        ol.Target(text, [(-1, 1)])


@pytest.mark.parametrize(("text", "read"), [
    ("exp(x) - 1", "expm1(x)"), ("3 + exp(x*y) - 1", "expm1(x*y) + 3"), ("1 - exp(x)", "-expm1(x)"), ("exp(x) + 1", "exp(x) + 1"),
    ("exp(x) + exp(x) - 1", "expm1(x) + exp(x)"), ("1 - exp(x) - exp(x)", "-expm1(x) - exp(x)"),
    ("log(1 + x)", "log1p(x)"), ("log(x - y + 1)", "log1p(x - y)"), ("log(1 + exp(x))", "softplus(x)"),
    ("log(2 + x)", "log(2 + x)"),
    ("sqrt(x^2 + y^2 - 2*x*y*cos(t))", "sqrt((x - y*cos(t))**2 + (y*sin(t))**2)"), ("sqrt(x^2 + y^2 - x*y*cos(t))",) * 2,
    ("sin(x - y)/(y - x)", "-sinc(x - y)"), ("sin(x*y)^2/y^2", "x**2*sinc(x*y)**2"), ("hypot(x, y)", "sqrt(x**2 + y**2)"),
    ("x*y/(exp(x*y/t) - 1)", "t/exprel(x*y/t)"), ("sin(x)/(0*x)", "sin(x)/(0*x)"),
])  # fmt: skip
def test_what_is_read(text, read):
    formula = parse(text)
    assert to_text(formula.outputs[0], formula.names) == read.replace("^", "**")
    assert parse(read, formula.names).outputs == formula.outputs


PIECES = [
    "exp(x)",
    "-exp(x)",
    "1",
    "-1",
    "x",
    "sin(x)/x",
    "log(1+x)",
    "cos(y)**2",
    "x**2",
    "x*y*cos(y)",
    "-2*x*y*cos(y)",
]
AROUND = ("{0}", "({0})*({0})", "log(9+({0})**2)", "({0})/(2+({0})**2)", "sqrt(({0})**2+x)")


def test_terms_that_occur_twice_count_twice():
    """What is read has the values of what was typed, term by term, whatever equal parts are merged or rewritten."""
    rng, at = np.random.default_rng(0), np.array([[0.37, 1.9]])
    for _ in range(400):
        terms = rng.choice(PIECES, size=rng.integers(2, 6)).tolist()
        around = str(rng.choice(AROUND))
        value = evaluate(parse(around.format(" + ".join(terms)), ["x", "y"]), at)[0, 0]
        whole = sum(evaluate(parse(term, ["x", "y"]), at)[0, 0] for term in terms)
        alone = evaluate(parse(around.format("s"), ["x", "s"]), np.array([[at[0, 0], whole]]))[0, 0]
        assert value == pytest.approx(alone, rel=1e-12, abs=1e-12), (around, terms)


def test_the_certificate_names_the_limit_and_the_checker_takes_it(tmp_path):
    found = ol.build("sin(x1)/x1", [(-4, 4)], 1e-3, seconds=30.0)
    assert found.certificate.verdict == "CERTIFIED"
    assert "where x1 = 0 the formula is undefined; its limit is taken" in found.certificate.assumptions
    assert abs(float(found(np.array([0.0]))) - 1) <= 1e-3
    assert check(found.save(tmp_path / "f"), seconds=60.0).verdict == "VALID"
    assert not ol.Target("sin(x1)/x1", [(1, 4)]).caveats


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("text", "domain"),
    [("sin(3*x)/x", (-1, 1)), ("(exp(x) - 1)/x", (-1, 2)), ("x/(exp(x) - 1)", (0, 1)), ("(1 - cos(x))/x^2", (-3, 3))],
)
def test_slopes_around_a_limit_are_certified(text, domain):
    c = ol.build(text, [domain], 1e-3, slope_tolerance=2e-2).certificate
    assert c.verdict == "CERTIFIED"
    assert c.slope.observed <= c.slope.bound <= 1.3 * c.slope.observed


def test_six_variables_with_a_removable_singularity_are_a_target():
    text = "(p*E*t/(h/(2*pi)))*sin((w - w_0)*t/2)**2/((w - w_0)*t/2)**2"
    target = ol.Target(text, {"p": (1, 3), "E": (1, 3), "t": (1, 3), "h": (1, 3), "w": (1, 5), "w_0": (1, 5)})
    assert target.caveats == ("where w - w_0 = 0 the formula is undefined; its limit is taken",)
    assert target(np.array([[2.0, 1, 3, 1, 2, 2]]))[0, 0] == pytest.approx(2 * 3 * 2 * math.pi)


@pytest.mark.parametrize(("text", "sides", "sure"), [
    ("sqrt(x1**2 + x2**2 - 2*x1*x2*cos(x3 - x4))", [(1, 5)] * 4, True),
    ("sqrt(x1**2 + x2**2 - 2*x1*x2)", [(1, 5)] * 2, False),
    ("asin(x1/(x2*x3))", [(1, 2), (2, 5), (1, 5)], True),
    ("asin(x1*sin(x2))", [(0, 1), (1, 5)], True),
    ("acos(2*x1/(1 + x1**2))", [(0.5, 2)], False),
])  # fmt: skip
def test_roots_and_arcs_that_reach_the_edge_of_their_domain_are_targets(text, sides, sure):
    target = ol.Target(text, sides)
    assert (not target.caveats) == sure
    x = target.domain.points(np.random.default_rng(0).random((4000, len(sides))))
    x[:1000, -1] = x[:1000, 0]
    x = target.domain.points(target.domain.unit(x))
    assert np.isfinite(target(x)).all()
    edge = np.nextafter(x, np.inf), np.nextafter(x, -np.inf)
    with np.errstate(all="ignore"):
        bounds = target.formula.tape.run(TaylorAlgebra(Space(np.minimum(*edge), np.maximum(*edge))))[0]
    assert np.isfinite(bounds.low).all()
    assert np.isfinite(bounds.high).all()
