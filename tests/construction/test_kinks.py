"""Kinks: taken out of the formula exactly, carried by heads and hinges, and proved end to end."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
import torch
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import random_layer
from checking import check, checker
from onelayer.approximation import Approximation
from onelayer.construction.kinks.remainder import kink_layer
from onelayer.construction.kinks.split import split
from onelayer.formula import Formula, evaluate, parse, to_text
from onelayer.formula.affine import Affine, along, contending, difference, reduced, value_of
from onelayer.formula.simpler_kinks import plain
from onelayer.formula.tree import Call, Negation, Number, Product, Quotient, Sum, Variable
from onelayer.layer.arithmetic import FLOAT64, arithmetic_of
from onelayer.layer.assemble import Frame, assemble, frame_of, head_kinds, outputs_of
from onelayer.layer.facts import Facts
from onelayer.layer.heads import shortfall
from onelayer.layer.layer import added
from onelayer.layer.magnitudes import total_of
from onelayer.proof.claim import Claim
from onelayer.proof.decision import decide

SHARE = 0.02  # of the tolerance, for the sharpness of kinks


def taken(formula, domain, construction="gates", layout="token"):
    target = ol.Target(formula, domain)
    return target, split(target.formula, target.domain, frame_of(target.domain), construction, layout)


def made(formula, domain, tolerance, dtype="float64", construction="gates", layout="token"):
    """(layer of the kinks, certificate, Approximation) of a formula that is all affine and kinks."""
    target, kinks = taken(formula, domain, construction, layout)
    assert kinks.nothing_left, kinks.smooth.text
    assert kinks.kinks_left == ()
    arithmetic = arithmetic_of(dtype)
    found = kink_layer(kinks, SHARE * tolerance, arithmetic)
    layer, outputs = found.layer, outputs_of(target)
    model = assemble(layer, found.frame, outputs, layout).to(arithmetic.dtype)
    places = (0,) if layout == "token" else outputs.tokens
    certificate = decide(model, Claim(target, tolerance, places))
    heads = head_kinds(layer, outputs_of(target), layout)
    facts = Facts("solved", construction, layout, heads, layer.units, total_of(layer), places=places)
    return (layer, certificate, Approximation.of(model, target, certificate, facts))


SQUARE, CUBE = [(0, 1)] * 2, [(0, 1)] * 3
EXACT = {  # formula, domain, (units, reads, hinges)
    "distance": ("abs(x1-x2)", SQUARE, (1, 2, 0)),
    "maximum of 3": ("max(x1,x2,x3)", CUBE, (1, 0, 0)),
    "nested": ("max(x1, max(x2, x3))", CUBE, (1, 0, 0)),
    "one variable": ("3*abs(x1-0.3)", [(-1, 2)], (1, 1, 0)),
    "ramp": ("max(x1-0.3, 0)", [(0, 1)], (1, 0, 0)),
    "with a constant": ("min(x1, x2+0.2, 0.5)", SQUARE, (1, 0, 0)),
    "ridge": ("abs(x1+x2)", [(-1, 1)] * 2, (0, 2, 1)),
    "steep": ("-abs(2*x1-x2)/pi", SQUARE, (0, 2, 1)),
    "sides that differ": ("max(x1, x2)", [(0, 1), (-2, 3)], (0, 2, 1)),
    "three sides that differ": ("max(x1, x2, x3+1/3)", [(0, 1), (-2, 3), (0, 0.1)], (1, 0, 0)),
    "one form that is never the largest": ("max(x1, x2, x3-1/3)", [(0, 1), (-2, 3), (0, 0.1)], (0, 3, 1)),
    "slopes that differ": ("max(2*x1, x2, 0.3*x3)", CUBE, (1, 0, 0)),
    "downward": ("max(-x1, 0.1-x2, -x3)", CUBE, (1, 0, 0)),
    "something in common": ("max(x1+x4, x2+x4, x3+x4, x4+0.2)", [(0, 1)] * 4, (1, 1, 0)),
    "shared": ("abs(x1-x2) + 3*max(x1, x2); min(x1, x2) - pi*x2; x1 + 2", SQUARE, (1, 2, 0)),
    "irrational": ("sqrt(2)*max(x1 - pi/7, x2/3)/3 - min(x1, x2)*e", SQUARE, (1, 2, 1)),
    "far from 0": ("abs(x1-x2)", [(1000, 1001), (1000, 1001)], (1, 2, 0)),
    "many in one": ("max(x5, x3, x1+0.1, x2, x4)", [(0, 1)] * 5, (1, 0, 0)),
    "clipped": ("min(max(x1, 0.2), 0.7) + 2*min(max(x2-x1, -0.5), 0.25)", SQUARE, (4, 0, 0)),
    "hat": ("max(0, 1-abs(3*x1-1))", [(-1, 1)], (3, 0, 0)),
    "w": ("abs(abs(x1)-0.5)", [(-1, 1)], (3, 1, 0)),
    "valley": ("max(-x1, 0, 2*x1-1/3)", [(-1, 1)], (2, 1, 0)),
    "two that cross": ("min(max(x1, x2), 0.5)", SQUARE, (2, 0, 0)),
    "kinks that cancel": ("max(x1, x2) + min(x1, x2)", SQUARE, (0, 2, 0)),
    "no kinks": ("abs(3) + max(x1, 5) - min(x1, x1) + 2*abs(x1+1) + abs(x2-x2) + 0*abs(x1-x2)", SQUARE, (0, 1, 0)),
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", EXACT)
def test_certified_and_checked_at_a_millionth(tmp_path, name):
    formula, domain, sizes = EXACT[name]
    layer, certificate, approximation = made(formula, domain, 1e-6)
    assert (layer.units, len(layer.reads), len(layer.hinges)) == sizes
    assert certificate.verdict == "CERTIFIED", certificate
    found = check(approximation.save(tmp_path / "f"), seconds=60.0)
    assert found.verdict == "VALID", str(found)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["distance", "maximum of 3", "one variable", "with a constant", "ridge", "shared"])
def test_certified_in_float32(tmp_path, name):
    formula, domain, _ = EXACT[name]
    _, certificate, approximation = made(formula, domain, 1e-3, "float32")
    assert certificate.verdict == "CERTIFIED", certificate
    assert certificate.bound < 1e-4
    assert check(approximation.save(tmp_path / "f"), seconds=60.0).verdict == "VALID"
    assert made(formula, domain, 5e-5, "float32")[1].verdict == "CERTIFIED"


@pytest.mark.parametrize("name", ["distance", "shared", "sides that differ", "with a constant"])
def test_at_the_limit_of_float64(name):
    """The rounding of a max-head does not grow with its sharpness."""
    formula, domain, _ = EXACT[name]
    assert made(formula, domain, 1e-12)[1].verdict == "CERTIFIED"


@pytest.mark.parametrize("layout", ["wide", "heads"])
def test_other_layouts_have_heads_only(tmp_path, layout):
    formula = "max(x1, 2*x2); min(x1, x3) + abs(x1-x3); abs(x2-0.5)"
    layer, certificate, approximation = made(formula, [(0, 1), (0, 2), (0, 1)], 1e-6, layout=layout)
    assert (layer.units, len(layer.hinges)) == (3, 0)
    assert certificate.verdict == "CERTIFIED"
    assert check(approximation.save(tmp_path / "f"), seconds=60.0).verdict == "VALID"
    _, kinks = taken("abs(x1+x2)", SQUARE, layout=layout)
    assert kinks.nothing_left  # x1 + x2 is positive there
    _, kinks = taken("abs(x1+x2)", [(-1, 1)] * 2, layout=layout)
    assert kinks.kinks_left == ("abs(x1 + x2)",)


def test_memory_has_hinges_only(tmp_path):
    layer, certificate, approximation = made("abs(x1-x2) - max(x1, 0.3)", SQUARE, 1e-9, construction="memory")
    assert (layer.units, layer.reads, len(layer.hinges)) == (0, [0], 2)
    assert certificate.verdict == "CERTIFIED"
    assert check(approximation.save(tmp_path / "f"), seconds=60.0).verdict == "VALID"
    assert taken("max(x1, x2, x3)", CUBE, "memory")[1].kinks_left == ("max(x1, x2, x3)",)


def test_nested_kinks_across_the_box(tmp_path):
    """Along one direction they are hinges; along several they are left."""
    formula = "max(0, 1-abs(x1+2*x2)) + abs(abs(x1-x2)-0.5)"
    layer, certificate, approximation = made(formula, [(-1, 1)] * 2, 1e-9)
    assert (layer.units, len(layer.hinges)) == (3, 3)
    assert certificate.verdict == "CERTIFIED"
    assert check(approximation.save(tmp_path / "f"), seconds=60.0).verdict == "VALID"
    for formula in ("abs(abs(x1 - x2) - abs(x1 + 2*x2))", "max(x1 + x2, x1, x2, 0)"):
        assert taken(formula, [(-1, 1)] * 2)[1].kinks_left == (formula,)


def test_a_wrong_weight_is_not_certified():
    target, kinks = taken("abs(x1-x2)", SQUARE)
    found = kink_layer(kinks, 1e-8, FLOAT64)
    for change in ({"max_values": found.layer.max_values * (1 + 3e-6)}, {"bias": found.layer.bias + 2e-6}):
        model = assemble(replace(found.layer, **change), found.frame, outputs_of(target))
        assert decide(model, Claim(target, 1e-6, (0,))).verdict != "CERTIFIED"
    model = assemble(found.layer, found.frame, outputs_of(target))
    assert decide(model, Claim(target, 0.9 * found.error, (0,))).verdict == "REFUTED"


@pytest.mark.parametrize(
    ("formula", "smooth", "left"),
    [
        ("sin(x1) + abs(x1-x2)", "sin(x1)", ()),
        ("(sin(x1)*x2 - 2*(abs(x1) + x1*x2))/3", "sin(x1)*x2/3 + -(2*(x1*x2))/3", ()),
        ("x1*abs(x2) + max(x1, x2)", "x1*abs(x2)", ("abs(x2)",)),
        ("max(x1*x2, 0.1) + x1", "max(x1*x2, 0.1)", ("max(x1*x2, 0.1)",)),
        ("max(x1, x2+x3, 0.2) + x1**2", "x1**2 + max(x1, x2 + x3, 0.2)", ("max(x1, x2 + x3, 0.2)",)),
        ("exp(min(x1, x2)) + 1/3", "exp(min(x1, x2))", ("min(x1, x2)",)),
        ("where(x1 < 0, x1, abs(x2))", "where(x1 < 0, x1, abs(x2))", ("where(x1 < 0, x1, abs(x2))",)),
        ("abs(x1)**1 + max(x1, abs(x2))", "max(x1, abs(x2))", ("max(x1, abs(x2))",)),
        ("exp(-600)*abs(x1)", "exp(-600)*abs(x1)", ("abs(x1)",)),
        ("x1*x2; 5", "x1*x2; 0", ()),
    ],
)
def test_what_is_left(formula, smooth, left):
    """The rest is exact: a tree, not a difference of floats."""
    target, kinks = taken(formula, [(-1, 1)] * 3)
    assert kinks.smooth.text == smooth
    assert kinks.kinks_left == left
    assert kinks.smooth.names == target.formula.names
    x = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
    found = kink_layer(kinks, 1e-9, FLOAT64)
    rest = np.asarray(evaluate(kinks.smooth, x)).reshape(500, -1)
    with torch.no_grad():
        whole = found.layer(found.frame(torch.from_numpy(x))).numpy() + rest
    assert np.abs(whole - target(x).reshape(500, -1)).max() <= 2e-9


@pytest.mark.parametrize("allowance", [1e-2, 1e-5, 1e-9])
def test_sharpness_is_derived(allowance):
    """The error of the real function is at most what is allowed, and attained at the kink and away from it."""
    target, kinks = taken("5*max(x1, x2, x3) - 2*min(x1, 0.4); abs(x1-x3)", CUBE)
    found = kink_layer(kinks, allowance, FLOAT64)
    assert allowance / 8 < found.error <= allowance
    x = np.random.default_rng(1).random((20_000, 3))
    near = x[:, :1] + np.random.default_rng(2).normal(size=x.shape) / float(found.layer.maxima.sharpness.max())
    x = np.clip(np.concatenate([x, near]), 0, 1)
    error = np.abs(found.layer(found.frame(torch.from_numpy(x))).numpy() - target(x)).max()
    assert 0.3 * found.error < error < found.error + 1e-13


def test_sharpness_is_bounded_by_the_arithmetic():
    _, kinks = taken("abs(x1-x2)", SQUARE)
    for name, most in (("float32", 2.0**20), ("float64", 2.0**49)):
        assert float(kink_layer(kinks, 1e-300, arithmetic_of(name)).layer.maxima.sharpness) == most


@pytest.mark.parametrize("n", [2, 3, 7])
def test_the_shortfall_is_sharp(n):
    """a = 1 + W((n−1)/e): n − 1 scores that far below the largest."""
    a = 1 + shortfall(n)
    assert (n - 1) * a * np.exp(-a) / (1 + (n - 1) * np.exp(-a)) == pytest.approx(a - 1, rel=1e-12)


def test_scales_are_changed_only_if_needed():
    kept = [("max(x1, x2)", 2), ("abs(x1-0.3)+max(x1,x2,x3)", 1), ("max(x1+x2, x1)", 1)]
    for (formula, side), layout in [(case, layout) for case in kept for layout in ("token", "wide")]:
        target, kinks = taken(formula, [(0, side if layout == "token" else 1), (0, 1), (0, 1)], layout=layout)
        assert kinks.frame == frame_of(target.domain)
    target, kinks = taken("max(x1, x2, x3) + abs(x4-x5) + abs(x1-x3)", [(0, 1), (0, 2), (0, 4), (0, 1), (0, 3)])
    assert kinks.frame.shift == frame_of(target.domain).shift
    assert kinks.frame.scale == (0.25, 0.25, 0.25, 1.0, 1 / 3)
    assert [len(kinks.heads), len(kinks.hinges)] == [2, 1]  # |x1 − x3| has the scales already, |x4 − x5| is a hinge
    _, kinks = taken("max(x1, x2, x3) + max(x1, 2*x2, 0.1) + x1", CUBE)
    assert kinks.kinks_left == ("max(x1, 2*x2, 0.1)",)  # contradicting scales


@pytest.mark.parametrize("kind", ["gates", "memory"])
def test_sums_of_layers(kind):
    one, two = (random_layer(3, 2, seed, 3.0, kind) for seed in (0, 1))
    both = added(one, two)
    x = torch.rand(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 0.5
    assert torch.allclose(both(x), one(x) + two(x), rtol=0, atol=1e-13)
    assert both.units == one.units + two.units
    model = assemble(both, Frame((0.0,) * 3, (1.0,) * 3), outputs_of(ol.Target("x1;x2", CUBE)))
    shaped = x[:, None] if kind == "memory" else x[..., None]
    assert torch.allclose(model(shaped).flatten(1), both(x), rtol=0, atol=1e-12)


def test_kinks_with_a_smooth_part(tmp_path):
    target, kinks = taken("abs(x1-x2) + x1*x2 - max(x1, 0.25)", SQUARE)
    smooth = ol.build(kinks.smooth.text, SQUARE, 5e-4, construction="gates", method="solved")
    from onelayer.construction.request import Request
    from onelayer.construction.solved.layer import solved_layer

    rest = solved_layer(Request(ol.Target(kinks.smooth.text, SQUARE), 5e-4, construction="gates"))
    layer = added(kink_layer(kinks, 1e-5, FLOAT64).layer, rest)
    assert layer.units == smooth.facts.units + 2
    model = assemble(layer, kinks.frame, outputs_of(target))
    certificate = decide(model, Claim(target, 1e-3, (0,)))
    assert certificate.verdict == "CERTIFIED"


def test_affine_parts():
    names = ("x1", "x2")

    def forms(text):
        found = difference(parse(text, names).outputs[0], 2)
        rows = [sorted((*map(float, f.slopes), float(f.constant)) for f in part) for part in found or ()]
        return tuple(rows) or None

    zero = [(0, 0, 0)]
    assert forms("2*(x1 - x2/4) - 1/3*3") == ([(2, -0.5, -1)], zero)
    assert forms("max(x1, 1 + max(x2, x1), 0)") == ([(0, 0, 0), (0, 1, 1), (1, 0, 1)], zero)
    assert forms("min(x1, x2)") == (zero, [(-1, 0, 0), (0, -1, 0)])
    assert forms("-2*min(x1, x2)") == ([(-2, 0, 0), (0, -2, 0)], zero)
    assert forms("min(x1, x2)/-2") == ([(-0.5, 0, 0), (0, -0.5, 0)], zero)
    assert forms("abs(x1) + abs(x2)") == ([(s, t, 0) for s in (-1, 1) for t in (-1, 1)], zero)
    assert forms("min(max(x1, 0), 1)") == ([(0, 0, 0), (1, 0, 0)], [(0, 0, 0), (1, 0, -1)])
    assert forms("0*abs(x1)") == (zero, zero)
    assert len(forms("+".join(f"abs(x1-{k})" for k in range(30)))[0]) == 31
    assert forms("+".join(f"abs(x1-{k}*x2)" for k in range(70))) is None  # too many
    assert forms("abs(x1)*log(-1)") is forms("x1/0") is forms("x1*x2") is forms("sqr(x1)") is None
    third = difference(parse("x1/3 + pi", names).outputs[0], 2)[0][0]
    assert third.slopes == (Fraction(1, 3), 0)
    assert abs(float(third.constant) - np.pi) < 1e-15
    assert third.constant != Fraction(np.pi)
    assert value_of(parse("log(-1)", ()).outputs[0]) is None
    u, v, w = (Affine(Fraction(c), (Fraction(s),)) for c, s in ((0, 1), (1, 1), (-3, 2)))
    assert reduced([u, v, u, w]) == [v, w]
    assert contending([u, v, w], [0.0], [1.0]) == [v]
    assert contending([v, w], [0.0], [5.0]) == [v, w]


def exact(node, x):
    """A formula of rationals, min, max and abs, in rationals."""
    match node:
        case Number(value):
            return value
        case Variable(index):
            return x[index - 1]
        case Negation(u):
            return -exact(u, x)
        case Quotient(u, v):
            return exact(u, x) / exact(v, x)
        case Sum(parts):
            return sum(exact(p, x) for p in parts)
        case Product(parts):
            return math.prod(exact(p, x) for p in parts)
        case Call(name, parts):
            return {"abs": abs, "max": max, "min": min}[name](*(exact(p, x) for p in parts))


rationals = st.fractions(-3, 3, max_denominator=7)
nodes = st.recursive(
    st.one_of(rationals.map(Number), st.sampled_from([Variable(1), Variable(2)])),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda t: Sum(tuple(t))),
        inner.map(Negation),
        st.tuples(rationals.map(Number), inner).map(Product),
        inner.map(lambda t: Call("abs", (t,))),
        st.tuples(st.sampled_from(["min", "max"]), st.lists(inner, min_size=2, max_size=3)).map(
            lambda t: Call(t[0], tuple(t[1]))
        ),
    ),
    max_leaves=7,
)


@pytest.mark.long
@settings(max_examples=300)
@given(nodes, st.lists(st.tuples(rationals, rationals), min_size=6, max_size=6))
def test_nested_kinks_are_differences_of_maxima(node, points):
    """As an identity of rationals: the difference, its envelope along one direction, the formula rewritten."""
    pair = difference(node, 2)
    formula = Formula("", ("x1", "x2"), (node,))
    new = plain(formula).outputs[0]
    for x in points:
        assert exact(new, x) == exact(node, x)
        if pair is None:
            continue
        P, Q = (max(f.constant + f.slopes[0] * x[0] + f.slopes[1] * x[1] for f in forms) for forms in pair)
        assert abs(exact(node, x) - (P - Q)) < 1e-60  # constants like abs(1/3) are rounded
        for forms in pair:
            found = along(forms)
            if found is not None:
                bends = sum(c * max(_at(d, x), 0) for c, d in found[1])
                assert _at(found[0], x) + bends == max(_at(f, x) for f in forms)


@pytest.mark.long
@settings(max_examples=200)
@given(nodes, st.lists(st.tuples(rationals, rationals), min_size=4, max_size=4))
def test_the_checker_takes_nested_kinks_apart(node, points):
    """line + Σ scale·max(forms) + Σ terms is the formula, in balls that hold the exact value."""
    read = checker.Reader(["x1", "x2"], to_text(node)).node()
    found = checker.Sum([arb(0)] * 3)
    found.add(arb(1), read)
    for x in points:
        balls = [arb(v.numerator) / v.denominator for v in x]
        tops = [scale * max_of([checker.at(form, balls) for form in forms]) for scale, forms in found.kinks]
        for _, forms in found.kinks:
            chain = checker.chain(forms, [(-3.0, 3.0)] * 2) if len(forms) > 1 else None
            if chain is not None:
                L = [checker.at(form, balls) for form in chain[0]]
                steps = sum((max_of([b - a, arb(0)]) for a, b in pairwise(L)), L[0])
                assert not abs(steps - max_of([checker.at(form, balls) for form in forms])) > chain[1]
        rest = [scale * checker.value(term, balls) for scale, term in found.terms]
        total = sum([*tops, *rest], checker.at(found.line, balls))
        value = exact(node, x)
        gap = abs(total - arb(value.numerator) / value.denominator)
        assert not gap > 0
        assert gap < 1e-9


def max_of(balls):
    return reduce(arb.max, balls)


def _at(form, x):
    return form.constant + sum(a * v for a, v in zip(form.slopes, x, strict=True))


@pytest.mark.parametrize("formula", ["max(min(x1*1e-300*1e-300, 1), 0)", "min(abs(x1)*1e300*1e10, 1)"])
def test_nested_kinks_beyond_the_range_of_floats_are_left_alone(formula):
    found = ol.build(formula, [(-1, 1)], 0.9, seconds=1.0)
    assert found.certificate.verdict in ("CERTIFIED", "UNDECIDED", "REFUTED")
