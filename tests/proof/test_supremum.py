"""sup |T − f| from both sides, without slack: no lower end above an error that exists, no upper end below one that was seen."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from flint import arb, ctx

import onelayer as ol
from cases import plain_config, random_model
from onelayer.common.budget import Budget
from onelayer.formula import enclose
from onelayer.proof.attained import attained, real_function
from onelayer.proof.certificate import Certificate
from onelayer.proof.decision import unless_contradicted
from onelayer.proof.supremum import supremum_of, two_formulas
from onelayer.proof.witness import in_balls
from onelayer.target.difference import difference

PARTS = ("sin(3*x1)", "exp(x1)", "x1**3", "1/(2 + x1)", "sqrt(x1 + 0.1)", "abs(x1 - 0.3)", "tanh(4*x1)", "max(x1, 0.5)")
QUICK = [
    ("sin(x1)", "x1 - x1**3/6", [(0, 1)], None),
    ("exp(x)", "1 + x + x^2/2 + x^3/6", [(-1, 1)], None),
    ("abs(x)", "sqrt(x^2 + 0.01)", [(-1, 1)], None),
    ("max(x, y)", "log(exp(5*x) + exp(5*y))/5", [(0, 1)] * 2, None),
    ("x*y", "x^2", [(-1, 1)] * 2, "x^2 + y^2 <= 1"),
    ("exp(-x^2 - y^2 - z^2)", "1/(1 + x^2 + y^2 + z^2)", [(-1, 1)] * 3, None),
    ("x; y", "sin(x); sin(y)", [(0, 1)] * 2, None),
    ("1 + 1e-13*sin(x)", "1", [(0, 1)], None),
]


@functools.cache
def small():
    return ol.build("x1**2", [(0, 1)], 0.1, method="solved")


def balls_at(formula, x):
    with ctx.workprec(256):
        return [v.lo.union(v.hi) for v in enclose(formula, list(x), 256, strict=True)]


def gap_at(p, q, domain, x, within=None):
    """|p − q| at a point, the largest over the outputs, in balls."""
    apart, _ = difference(p, q, domain, within)
    return max((abs(v) for v in balls_at(apart.formula, x)), key=lambda g: float(g.mid()))


def error_at(model, target, x, place=0):
    """|T − f| at a point, T the real function of the weights, in balls."""
    with ctx.workprec(256):
        return abs(in_balls(model, list(x))[place][0] - balls_at(target.formula, x)[0])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("p", "q", "domain", "within"), QUICK)
def test_the_accuracy_is_reached_and_the_point_has_the_lower_end(p, q, domain, within):
    found = ol.supremum(p, q, domain, within=within, seconds=30.0)
    assert found.reached
    assert found.upper <= 1.01 * found.lower
    assert gap_at(p, q, domain, found.point, within) >= arb(found.lower)
    apart, _ = difference(p, q, domain, within)
    points = apart.domain.points(np.random.default_rng(1).random((3000, apart.dimension)))
    points = points[apart.domain.contains(points)]
    assert not any(abs(v) > arb(found.upper) for x in points for v in balls_at(apart.formula, x.tolist()))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("seed", range(12))
def test_random_pairs_in_one_variable_against_a_dense_grid(seed):
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(2):
        parts = rng.choice(PARTS, size=2, replace=False)
        texts.append(" + ".join(f"{c:.3f}*{part}" for c, part in zip(rng.normal(size=2), parts, strict=True)))
    found = ol.supremum(*texts, [(0, 1)], seconds=5.0)
    apart, _ = difference(*texts, [(0, 1)])
    assert not any(abs(balls_at(apart.formula, [x])[0]) > arb(found.upper) for x in np.linspace(0, 1, 4001).tolist())
    assert gap_at(*texts, [(0, 1)], found.point) >= arb(found.lower)
    assert found.reached


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(4))
def test_random_layers(seed):
    shape = {"tokens": 2, "features_in": 1, "features_out": 1}
    config = plain_config(**shape, activation=("relu", "gelu")[seed % 2])
    model, target = random_model(config, seed), ol.Target("sin(x1)*x2", [(-1, 1)] * 2)
    found = ol.supremum(model, target, places=(0,), accuracy=0.2, seconds=4.0)
    x = np.random.default_rng(seed).uniform(-1, 1, (4000, 2))
    with torch.no_grad():
        answers = model(torch.from_numpy(x).reshape(-1, config.tokens, config.features_in))[:, 0, 0].numpy()
    assert found.lower <= found.upper
    assert np.abs(answers - target(x)[:, 0]).max() <= found.upper
    assert error_at(model, target, found.point) >= arb(found.lower)


def test_a_certificate_has_both_ends():
    approx = ol.build("sin(x1)*x2", [(0, 1)] * 2, 1e-3)
    c = approx.certificate
    assert 0 < c.lower <= c.bound <= 1.05 * c.lower
    assert "known within" in str(c)
    assert error_at(approx.model, approx.target, c.lower_point) >= arb(c.lower)
    assert Certificate.from_json(c.as_json()) == c


@pytest.mark.long
def test_float32_is_about_the_real_function_of_the_weights():
    approx = ol.build("exp(x1)*x2", [(0, 1)] * 2, 1e-2, dtype="float32")
    c = approx.certificate
    assert 0 < c.lower <= c.bound
    assert error_at(approx.model, approx.target, c.lower_point) >= arb(c.lower)


def test_a_condition_and_a_margin_keep_the_point_in_scope():
    disc = ol.build("x*y", [(-1, 1)] * 2, 1e-2, within="x^2 + y^2 <= 0.5").certificate
    assert sum(v * v for v in disc.lower_point) <= 0.5
    step = ol.build("where(x > 0, 1, 0)", (-1, 1), 0.1, margin=0.1).certificate
    assert abs(step.lower_point[0]) > 0.1


@pytest.mark.long
def test_a_callable_is_known_up_to_its_declared_error():
    def f(x):
        return np.sin(x[:, 0])

    for error in (0.0, 0.01):
        approx = ol.build(f, [(0, 1)], 0.2, lipschitz=1.0, evaluation_error=error)
        c = approx.certificate
        assert c.lower <= c.bound
        if c.lower:
            with ctx.workprec(256):
                T = in_balls(approx.model, list(c.lower_point))[0][0]
                assert abs(T - arb(float(np.sin(c.lower_point[0])))) - arb(error) >= arb(c.lower)
    vague = ol.build(f, [(0, 1)], 0.2, lipschitz=1.0, evaluation_error=1.0).certificate
    assert vague.lower == 0.0
    assert vague.lower_point is None


def test_the_certificate_of_data_keeps_no_sample():
    x = np.linspace(0, 1, 40)[:, None]
    for lipschitz in (None, 4.0):
        c = ol.build((x, np.sin(3 * x[:, 0])), None, 0.3, lipschitz=lipschitz, units=3, seconds=10.0).certificate
        assert c.lower <= c.bound
        assert c.lower_point is None


def test_points_outside_the_domain_prove_nothing():
    approx = ol.build("x1**2", [(0, 1)], 0.1)
    T = real_function(approx.model, approx.facts.places)
    assert attained(T, approx.target, np.array([[1.5], [-0.2]])).lower == 0.0
    half = ol.Target("x1**2", [(0, 1)], within="x1 < 0.5")
    assert attained(T, half, np.array([[0.5], [0.75]])).lower == 0.0
    assert attained(T, half, np.array([[0.75], [0.25]])).point in ((0.25,), None)


def test_a_lower_bound_above_the_upper_one_takes_the_upper_one_away():
    c = ol.build("x1**2", [(0, 1)], 0.1).certificate
    wrong = replace(c, lower=2 * c.bound)
    assert wrong.verdict == "UNDECIDED"
    cleared = unless_contradicted(wrong)
    assert math.isinf(cleared.bound)
    assert "is proved, above the bound" in cleared.assumptions[-1]


def test_equal_functions_end_at_rounding():
    for p, q in (("x", "x"), ("sin(x)^2 + cos(x)^2", "1")):
        found = ol.supremum(p, q, [(0, 3)], seconds=5.0)
        assert found.lower == 0.0
        assert found.point is None
        assert found.upper < 1e-11
        assert not found.reached
        assert "asked for and not reached" in str(found)
        assert "inf" not in str(found)


@pytest.mark.usefixtures("as_user")
def test_time_that_is_up_is_no_error():
    found = ol.supremum("exp(x)*sin(40*x*y)", "cos(30*x + y)", [(0, 3)] * 2, accuracy=1e-9, seconds=0.2)
    assert not found.reached
    assert 0 < found.lower <= found.upper


@pytest.mark.one_in(2)
@pytest.mark.parametrize("accuracy", [1e-9, 1e-10, 1e-12, 1e-14])
def test_more_accuracy_gives_no_worse_ends(accuracy):
    found = ol.supremum("sin(x)", "x", [(0, 1)], accuracy=accuracy, seconds=4.0)
    assert found.upper <= (1 + 1e-8) * found.lower
    assert arb(found.lower) <= gap_at("sin(x)", "x", [(0, 1)], (1.0,)) <= arb(found.upper)


def test_the_best_ends_of_all_steps_are_kept():
    """An engine that proves less the more it is asked for: the ends are those of the easy question."""
    pair = two_formulas(*difference("sin(x)", "x", [(0, 1)]), ("sin(x)", "x"))
    asked = []

    def tired(method, claim, observed, budget):
        asked.append(claim.close)
        proof = pair.prove(method, claim, observed, budget)
        return replace(proof, bound=1.0) if claim.close < 1e-8 else proof

    found = supremum_of(replace(pair, prove=tired), 1e-12, Budget(20.0))
    assert min(asked) < 1e-8
    assert found.upper <= (1 + 1e-5) * found.lower
    assert not found.reached
    assert found.accuracy == 1e-12


def test_what_was_given_is_printed_and_what_it_rests_on():
    found = ol.supremum("sin(x)", "x - x^3/6", [(0, 1)])
    text = str(found)
    assert all(part in text for part in ("sin(x)", "x - x^3/6", "|p − q|", "at (1)", "% apart", "x in [0, 1]"))
    assert found.assumptions
    assert all(f"assumes            {a}" in text for a in found.assumptions)
    nothing = str(replace(found, upper=math.inf, assumptions=()))
    assert "no upper bound was found in the time given" in nothing
    assert "inf" not in nothing
    assert max(map(len, found.table().text(80).splitlines())) <= 80
    close = replace(found, lower=0.25, upper=0.25 * (1 + 1e-12))
    assert "0.25000000000025:" in str(close)


def test_an_approximation_and_its_own_target():
    approx = ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-4)
    found = ol.supremum(approx, seconds=20.0)
    assert found.reached
    assert approx.certificate.lower <= found.upper
    assert found.lower <= approx.certificate.bound
    other = ol.supremum(approx, "sin(x1) + sin(x2) + 1", seconds=20.0)
    assert 0.99 < other.lower <= other.upper < 1.02


def test_a_gallery_entry_is_compared_on_its_own_domain():
    found = ol.supremum(ol.gallery.maximum(2), "max(x1, x2)", seconds=10.0)
    assert found.domain == "x1 in [0.0, 1.0], x2 in [0.0, 1.0]"
    assert 0 <= found.lower <= found.upper < 1e-5


def test_targets_and_declared_variables():
    one = ol.supremum("f(y, x) = y - x", "0", [(0, 1), (2, 4)])
    assert 3.99 <= one.lower <= one.upper <= 4.05
    box = [(0, 2), (-1, 1)]
    two = ol.supremum(ol.Target("x1*x2", box), ol.Target("x1", box))
    assert two.lower == pytest.approx(4, rel=1e-6)
    assert two.upper >= 4


@pytest.mark.parametrize(
    ("call", "mentions"),
    [
        (lambda: ol.supremum("x"), "to compare with"),
        (lambda: ol.supremum("x", "x^2"), "a domain"),
        (lambda: ol.supremum("x", lambda x: x, [(0, 1)]), "to compare with"),
        (lambda: ol.supremum("x", "x; x", [(0, 1)]), "as many outputs"),
        (lambda: ol.supremum("x", "1/x", [(-1, 1)]), "finite"),
        (lambda: ol.supremum("x", "x^2", [(0, 1)], accuracy=0), "accuracy"),
        (lambda: ol.supremum("x", "x^2", [(0, 1)], accuracy="1%"), "accuracy"),
        (lambda: ol.supremum("x", "x^2", [(0, 1)], accuracy=1e300), "below 1e6"),
        (lambda: ol.supremum("x", "x^2", [(0, 1)], accuracy=math.nan), "above 0"),
        (lambda: ol.supremum("x", "x^2", [(0, 1)], seconds=-1), "seconds"),
        (lambda: ol.supremum("x", "x^2", [(0, 1)], boxes=0), "boxes"),
        (lambda: ol.supremum("x", "x^2", [(0, 1)], eps=1), "an option of supremum"),
        (lambda: ol.supremum(small(), domain=(0, 1)), "`domain` as well; change: leave it out"),
        (lambda: ol.supremum(small(), "x1", within="x1 < 0.5"), "`within` alone"),
        (lambda: ol.supremum(small(), "x1; x1"), "a layer with 2 outputs, as the target has; found: 1 output"),
        (lambda: ol.supremum(ol.gallery.maximum(2)), "a target to compare the layer with; found: none"),
        (lambda: ol.supremum(ol.gallery.reverse(3, vocabulary=4), "x1"), "real variables"),
        (lambda: ol.supremum(3, "x^2", [(0, 1)]), "a SingleLayerTransformer"),
        (lambda: ol.supremum(ol.Target("x", (0, 1)), "x^2", [(0, 1)]), "one domain"),
        (lambda: ol.supremum(ol.Target("x", (0, 1)), ol.Target("x", (0, 2))), "one domain"),
        (lambda: ol.supremum(ol.Target(np.sin, (0, 1), lipschitz=1.0), "x1"), "formulas on both sides"),
    ],
)
@pytest.mark.usefixtures("as_user")
def test_what_is_refused(call, mentions):
    with pytest.raises(ol.InputError) as caught:
        call()
    assert mentions in str(caught.value)
    assert "\n" not in str(caught.value)


def test_budget_of_boxes_is_kept():
    assert (
        ol.supremum("abs(x - y)*sin(9*x)", "x*y", [(0, 1)] * 2, accuracy=1e-9, boxes=2000, seconds=20.0).boxes < 20_000
    )
