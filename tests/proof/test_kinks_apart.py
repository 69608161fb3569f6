"""Kinks and the rest proved apart: as close as the engines are alone, and never below the truth."""

from dataclasses import replace

import numpy as np
import pytest

import onelayer as ol
from cases import random_layer
from hostile import Case
from hunting import observed
from onelayer.common.budget import Budget
from onelayer.construction.kinks.remainder import kink_layer
from onelayer.construction.kinks.split import split
from onelayer.construction.request import Request
from onelayer.construction.solved.layer import solved_layer
from onelayer.formula import evaluate, parse
from onelayer.layer.arithmetic import arithmetic_of
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.layer import added
from onelayer.proof.claim import Claim
from onelayer.proof.decision import decide, prove_by
from onelayer.proof.kinks_apart import parted

SQUARE = [(0, 1)] * 2


def layer_of(target, tolerance, construction="gates", dtype="float64"):
    """Kinks, and a solved layer for the rest."""
    kinks = split(target.formula, target.domain, frame_of(target.domain), construction)
    rest = solved_layer(
        Request(target.part(kinks.smooth), 0.8 * tolerance, construction=construction, arithmetic=arithmetic_of(dtype))
    )
    return added(kink_layer(kinks, 0.02 * tolerance, arithmetic_of(dtype)).layer, rest)


def model_of(target, layer, dtype="float64"):
    return assemble(layer, frame_of(target.domain), outputs_of(target)).to(arithmetic_of(dtype).dtype)


CASES = [
    ("sin(3*x1)*x2 + abs(x1-x2)", SQUARE, 1e-4, "gates"),
    ("sin(3*x1)*x2 + abs(x1-x2)", SQUARE, 1e-4, "memory"),
    ("exp(x1) - 2*abs(x1+x2) + cos(x2) + max(x1, 0.3); x1*x2", [(-1, 1)] * 2, 1e-3, "gates"),
    ("sin(6*x1) + sin(5*x2) + 2*abs(x1-0.3) + max(x1, x2, x3)", [(0, 1)] * 3, 1e-5, "gates"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("formula", "domain", "tolerance", "construction"), CASES)
def test_as_close_as_interpolation_alone(formula, domain, tolerance, construction):
    target = ol.Target(formula, domain)
    model = model_of(target, layer_of(target, tolerance, construction))
    found = decide(model, Claim(target, tolerance, (0,)))
    assert (found.verdict, found.method) == ("CERTIFIED", "analytic")
    assert found.evidence.kinks <= 0.1 * tolerance
    assert found.observed <= found.bound <= 1.1 * found.observed + 0.1 * tolerance
    assert max(found.evidence.boxes) <= 100


@pytest.mark.one_in(2)
@pytest.mark.parametrize("construction", ["memory", "gates"])
def test_in_float32(construction):
    target = ol.Target("sin(3*x1)*x2 + abs(x1-x2) - max(2*x1, x2)", SQUARE)
    found = decide(model_of(target, layer_of(target, 1e-3, construction, "float32"), "float32"), Claim(target, 1e-3))
    assert (found.verdict, found.method) == ("CERTIFIED", "analytic")


@pytest.mark.long
def test_other_kinks_are_not_overlooked():
    """A kink of T that f has not, or has elsewhere, or with another slope."""
    target = ol.Target("sin(3*x1)*x2 + abs(x1-x2)", SQUARE)
    layer = layer_of(target, 1e-4)
    offsets = layer.maxima.offsets.clone()
    offsets[0, 0] += 2e-3
    for change in ({"max_values": 1.01 * layer.max_values}, {"maxima": replace(layer.maxima, offsets=offsets)}):
        found = decide(model_of(target, replace(layer, **change)), Claim(target, 1e-3), Budget(5.0, 20_000))
        assert found.verdict == "REFUTED"
        assert found.bound >= found.observed
    for other in ("sin(3*x1)*x2 + abs(x1-1.01*x2)", "sin(3*x1)*x2 + abs(x1-x2) + abs(x1-0.5)/100", "sin(3*x1)*x2 + x1"):
        given = ol.Target(other, SQUARE)
        found = decide(model_of(target, layer), Claim(given, 1e-3), Budget(5.0, 20_000))
        assert found.verdict == "REFUTED"
        assert found.bound >= found.observed


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("construction", ["gates", "memory"])
@pytest.mark.parametrize("seed", range(4))
def test_no_bound_is_below_a_proved_error(seed, construction, dtype):
    """Random kinks of all sizes, and a rest that is T's own up to little: errors are rounding, shortfall and a trifle."""
    rng = np.random.default_rng(seed)
    a, b, c = (float(f"{v:.3f}") for v in 10.0 ** rng.uniform(-1, 3, size=3))
    low = float(f"{rng.uniform(-2, 900):.2f}")
    domain = [(low, low + 1), (low - 0.25, low + 0.75)]
    kinks = f"{a}*abs(x1-x2) - {b}*max(x1+x2, {2 * low + 0.7}) + {c}*max(x1, {low + 0.3})"
    target = ol.Target(f"{kinks} + 0.001*sin(x1-{low})*x2", domain)
    parts = split(target.formula, target.domain, frame_of(target.domain), construction)
    arithmetic = arithmetic_of(dtype)
    layer = kink_layer(parts, 10.0 ** rng.uniform(-9, -2), arithmetic).layer
    some = random_layer(2, 1, seed, 1.0, construction)
    names = ("gate_values", "max_values") if construction == "gates" else ("memory_values", "ridge_values")
    changes = {name: 1e-3 * getattr(some, name) for name in names}
    layer = added(layer, replace(some, **changes, linear=1e-3 * some.linear, bias=1e-3 * some.bias))
    model = model_of(target, layer, dtype)
    proof = prove_by("analytic", model, Claim(target, 1.0), 0.0, Budget(20.0, 20_000))
    assert proof is not None
    assert proof.evidence.kinks is not None
    one = Case(seed, target, layer, 1.0)
    assert observed(one, arithmetic.dtype) <= proof.bound < 10


def test_parts_of_a_formula():
    def texts(text):
        found = parted(parse(text, ("x1", "x2")))
        x = np.random.default_rng(0).normal(size=(20, 2))
        if found is None:
            return None
        both = sum(np.asarray(evaluate(part, x)) for part in found)
        assert np.allclose(both, np.asarray(evaluate(parse(text, ("x1", "x2")), x)))
        return [len(part.variables) for part in found]

    assert texts("sin(x1) + abs(x1-x2)") == [2, 1]
    assert texts("x1 + abs(x2); exp(x1)*x2") == [1, 2]
    assert texts("2*(sin(x1) - max(x1, x2, 3*x1)/3)") == [2, 1]
    for text in (
        "abs(x1)",
        "x1 + abs(x1)",
        "sin(x1)",
        "sin(x1) + sqr(abs(x2))",
        "sin(x1) + max(x1*x2, 0)",
        "abs(3) + exp(x1)",
    ):
        assert texts(text) is None
