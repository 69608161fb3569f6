"""Branch and bound: kinks, jumps, callables, trained layers; certified within the default budget, and never wrongly."""

import math

import numpy as np
import pytest
import torch

import onelayer as ol
from cases import certified
from onelayer.common.budget import Budget
from onelayer.layer.heads import Maxima
from onelayer.layer.layer import gate_layer
from onelayer.proof.bisection import prove as bisect
from onelayer.proof.claim import Claim


def max_layer(D, factor, linear, sharpness=1e5):
    """factor·max(x) + Σ linear·x on [0, 1]^D by one max-head."""
    maxima = Maxima(
        torch.tensor([sharpness], dtype=torch.float64), torch.zeros(1, D).double(), torch.ones(1, D, dtype=torch.bool)
    )
    bias = torch.tensor([(factor + linear * D) / 2], dtype=torch.float64)
    tops = torch.tensor([[factor]], dtype=torch.float64)
    return gate_layer(bias, D, maxima=(maxima, tops), linear=torch.full((D, 1), float(linear), dtype=torch.float64))


@pytest.mark.parametrize(
    ("formula", "factor", "linear"),
    [
        ("abs(x1-x2)", 2.0, -1.0),
        ("abs(3*x2-3*x1)/3", 2.0, -1.0),
        ("max(x1,x2,x3)", 1.0, 0.0),
        ("max(x3,max(x1,x2))", 1.0, 0.0),
        ("-min(-x1,-x2,-x3)", 1.0, 0.0),
        ("max(0, x1-x2) + x2", 1.0, 0.0),
    ],
)
def test_a_max_head_cancels_the_kink_of_the_target(formula, factor, linear):
    D = 3 if "x3" in formula else 2
    c = certified(ol.Target(formula, [(0, 1)] * D), max_layer(D, factor, linear), 1e-5)
    assert (c.verdict, c.method) == ("CERTIFIED", "bisect")
    assert c.observed <= c.bound <= 3 * c.observed


def test_an_unlike_kink_does_not_cancel():
    c = certified(ol.Target("abs(x1-1.01*x2)", [(0, 1)] * 2), max_layer(2, 2.0, -1.0), 1e-5)
    assert c.verdict == "REFUTED"
    assert c.bound >= c.observed > 5e-3


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("formula", "tolerance", "options"),
    [
        ("abs(x1-x2)", 0.05, {}),
        ("abs(x1-x2)", 1e-5, {"units": 16, "hinges": 6, "method": "solved"}),
        ("where(x1<0.5, 0, 1)", 0.05, {"margin": 0.05}),
        ("where(x1<0.5, 0.5-x1, x1-0.5)", 0.05, {}),
        pytest.param("sqrt(x1*x2) + abs(x1 - 0.3)*x2", 0.1, {}, marks=pytest.mark.long),
        ("max(sin(3*x1), x2)", 0.1, {}),
    ],
)
def test_certified_within_the_default_budget(formula, tolerance, options):
    c = ol.build(formula, [(0, 1)] * 2, tolerance, **options).certificate
    assert (c.verdict, c.method) == ("CERTIFIED", "bisect")
    assert c.observed <= c.bound <= tolerance


def test_a_callable_with_a_declared_modulus():
    def f(x):
        return np.sin(x[:, 0]) * 0.7 + 0.3 * np.abs(x[:, 1] - 0.4)

    c = ol.build(f, [(0, 1)] * 2, 0.1, lipschitz=(0.7, 0.3)).certificate
    assert (c.verdict, c.method) == ("CERTIFIED", "bisect")
    assert any("declared" in a for a in c.assumptions)
    c = ol.build(f, [(0, 1)] * 2, 0.1, modulus=lambda r: r).certificate
    assert c.verdict == "CERTIFIED"


@pytest.mark.long
def test_a_jump_without_a_margin_is_refuted():
    built = ol.build("where(x1<0.5, 0, 1)", [(0, 1)], 0.05, units=8)
    assert built.certificate.verdict == "REFUTED"
    assert abs(built.certificate.witness[0] - 0.5) < 0.1
    assert any("`margin`" in note for note in built.facts.notes)


def test_the_margin_is_not_wider_than_stated():
    """A layer that is wrong only at a distance of 0.04 to 0.06 from the jump is not certified with a margin of 0.03."""
    approx = ol.build("where(x1<0.5, 0, 1)", [(0, 1)], 0.05, margin=0.05)
    for margin, verdict in ((0.05, "CERTIFIED"), (0.005, "REFUTED")):
        target = ol.Target("where(x1<0.5, 0, 1)", [(0, 1)], margin=margin)
        assert ol.certify(approx.model, target, 0.05, places=(0,)).verdict == verdict


def trained(norm, activation, steps, dtype=torch.float64):
    config = ol.LayerConfig(
        tokens=2,
        features_in=1,
        features_out=1,
        d_model=16,
        heads=4,
        d_k=4,
        d_v=4,
        ffn_width=32,
        activation=activation,
        norm=norm,
        readout="mean",
        code="learned",
    )
    model = ol.SingleLayerTransformer(config, seed=1, dtype=dtype)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        x = torch.rand(128, 2, 1, generator=generator, dtype=dtype)
        loss = (model(x)[:, 0, 0] - torch.sin(3 * x[:, 0, 0]) * x[:, 1, 0]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


@pytest.mark.one_in(7)
@pytest.mark.parametrize("norm", ["none", "pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("steps", [0, 150])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_trained_layers(norm, activation, steps, dtype):
    target = ol.Target("sin(3*x1)*x2", [(0, 1)] * 2)
    c = ol.certify(trained(norm, activation, steps, dtype), target, 5.0, seconds=20.0)
    assert c.verdict == "CERTIFIED"
    assert c.observed <= c.bound <= 2 * c.observed
    assert c.arithmetic == ("float64" if dtype == torch.float64 else "float32")


@pytest.mark.long
def test_any_time_a_bound():
    """A spent budget and an interrupt leave a valid bound; a larger budget a better one."""
    target = ol.Target("abs(x1-x2)", [(0, 1)] * 2)
    approx = ol.build(target, tolerance=0.05, method="solved")
    observed = approx.certificate.observed
    bounds = [
        bisect.prove(approx.model, Claim(target, 1e-9), observed, Budget(boxes=n)).bound for n in (1, 10, 100, 1000)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0] / 2
    assert bounds[-1] >= observed

    stages = []

    def interrupt(stage, fraction):
        stages.append(stage)
        if len(stages) == 5:
            raise KeyboardInterrupt

    proof = bisect.prove(approx.model, Claim(target, 1e-9, progress=interrupt), observed)
    assert proof.evidence.interrupted
    assert observed <= proof.bound < math.inf
    assert "bound" in stages[-1]


def test_weights_that_are_not_finite_are_never_proved():
    target = ol.Target("x1", [(0, 1)])
    for bad in (math.nan, math.inf):
        model = ol.build(target, tolerance=0.1).model
        with torch.no_grad():
            model.W_V[0, 0, 0] = bad
        assert bisect.prove(model, Claim(target, 0.1), 0.0) is None
        c = ol.certify(model, target, 0.1, places=(0,))
        assert (c.verdict, c.bound) == ("UNDECIDED", math.inf)
