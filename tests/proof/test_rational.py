"""Rational Bernstein bounds: every constant, remainder and rounding claim on its own, and the hunt for a bound too small."""

import math

import numpy as np
import pytest
import torch
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from hunting import engine, hunt, observed, one_head
from onelayer.common.budget import Budget
from onelayer.formula import enclose
from onelayer.formula.numeric import evaluate
from onelayer.layer.assemble import frame_of
from onelayer.layer.form import form_of
from onelayer.layer.heads import Memory
from onelayer.layer.layer import memory_layer
from onelayer.proof.analytic.bernstein import interpolation, node_polynomial
from onelayer.proof.analytic.cleared import ClearedBoxes, OneHead
from onelayer.proof.analytic.degrees import Remainders
from onelayer.proof.analytic.prove import prove
from onelayer.proof.analytic.rational import RationalCover, _bernstein
from onelayer.proof.analytic.summand import Summand
from onelayer.proof.claim import Claim

SEEDS = st.integers(0, 10**6)
FORMULAS = {
    1: ["sin(3*x1)", "log(2 + x1)", "1/(1 + x1**2)", "exprel(x1) + log1p(x1/2)"],
    2: [
        "sin(x1*x2)",
        "exp(x1)/(2 + x2)",
        "x1**2*x2; tanh(x1 - x2)",
        "softplus(x1)*sinc(3*x1*x2)",
        "cbrt(x1 + 2)*atan2(x2, x1 + 2)",
    ],
    3: ["x1*x2*x3", "x1*tanh(x2/(2 + x3))", "x1*x2*x3/(exp(x1*x2) - 1)"],
    5: ["x1*x2*x3/(2 + x4)*x5", "x1*cos(x2*x3) - sqrt(3 + x4*x5)"],
}


def head_and_boxes(seed, D, count=3, slopes=False):
    """A head of a few tokens and boxes inside [−1, 1]^D, from one integer."""
    rng = np.random.default_rng(seed)
    target = ol.Target(FORMULAS[D][seed % len(FORMULAS[D])], [(-1, 1)] * D)
    n, m, sharp = int(rng.integers(2, 8)), target.outputs, 10 ** rng.uniform(-1, 1)
    tensor = lambda *shape: torch.from_numpy(rng.normal(size=shape))  # noqa: E731
    memory = Memory(sharp * tensor(n, D), sharp * tensor(n), torch.zeros(n, dtype=torch.int64))
    form = form_of(memory_layer(tensor(m), D, (memory, 3 * tensor(n, m)), linear=tensor(D, m)))
    if slopes:
        form.blocks[0].slopes.copy_(tensor(*form.blocks[0].slopes.shape))
    summand = Summand(form, target.formula, target, frame_of(target.domain), tuple(range(D)))
    width = 10 ** rng.uniform(-2, 0, size=(count, D))
    lower = rng.uniform(-1, 1 - width)
    return OneHead.of(summand), lower, lower + width, rng


def G_and_W(boxes, b, t):
    """G [point, out] and W [point] of box b at points t, in float64."""
    head = boxes.head
    e = np.exp(boxes.q[b] + t @ boxes.exponents[b].T)
    values = boxes.values[b][None] + np.einsum("pd,tdo->pto", t, boxes.tilt[b])
    x = boxes.centre[b] + boxes.half[b] * t
    f = np.asarray(evaluate(head.formula, x)).reshape(len(t), -1) - boxes.reference[b]
    return np.einsum("pt,pto->po", e, values) - f * e.sum(axis=1)[:, None], e.sum(axis=1)


def basis(p, t):
    """ℓ_k(t) of the nodes of degree p, [point, node]."""
    nodes = interpolation(p).nodes
    others = [np.delete(nodes, k) for k in range(p + 1)]
    columns = [((t[:, None] - z) / (x - z)).prod(axis=1) for x, z in zip(nodes, others, strict=True)]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("p", range(1, 21))
def test_constants_of_interpolation(p):
    own, t = interpolation(p), np.cos(np.linspace(0, math.pi, 1501))
    sums = np.abs(basis(p, t)).sum(axis=1)
    assert sums.max() <= own.lebesgue <= 1.01 * sums.max()
    assert np.abs(np.prod(t[:, None] - own.nodes, axis=1)).max() <= node_polynomial(20)[p] * (1 + 1e-12)
    assert np.abs(own.matrix).sum(axis=1).max() <= own.norm
    u = (own.nodes + 1) / 2
    bernstein = np.array([[math.comb(p, j) * x**j * (1 - x) ** (p - j) for j in range(p + 1)] for x in u])
    assert np.abs(own.matrix @ bernstein - np.eye(p + 1)).max() <= 1e-15 * own.norm * (p + 2)
    assert own.nodes[0] == -1
    assert own.nodes[-1] == 1


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([1, 2, 3, 5]), st.booleans())
def test_remainders_along_one_coordinate(seed, D, slopes):
    """|G − I_i G| and |W − I_i W| at random points are at most what is claimed, for every coordinate and degree."""
    head, lower, upper, rng = head_and_boxes(seed, D, slopes=slopes)
    boxes = ClearedBoxes(head, lower, upper)
    claimed = Remainders(boxes)
    for b in range(len(lower)):
        t = np.where(rng.random((12, D)) < 0.3, rng.choice([-1.0, 1.0], size=(12, D)), rng.uniform(-1, 1, size=(12, D)))
        G, W = G_and_W(boxes, b, t)
        for i in range(D):
            for p in (1, 2, 3, 5, 8):
                at = np.repeat(t[:, None], p + 1, axis=1)
                at[:, :, i] = interpolation(p).nodes
                g, w = G_and_W(boxes, b, at.reshape(-1, D))
                weights = basis(p, t[:, i])
                miss = np.abs(np.einsum("pk,pko->po", weights, g.reshape(12, p + 1, -1)) - G).max()
                miss_W = np.abs((weights * w.reshape(12, p + 1)).sum(axis=1) - W).max()
                slip = 1e-12 * (1 + np.abs(g).max() + w.max() * (1 + np.abs(boxes.size[b]).max()))  # of this test
                assert miss <= claimed.G[p, i, b] + slip
                assert miss_W <= claimed.W[p, i, b] + slip


@pytest.mark.long
@settings(max_examples=60)
@given(SEEDS, st.sampled_from([1, 2, 3, 5]), st.floats(-5, -1))
def test_remainders_of_all_coordinates_together(seed, D, fine):
    """With the degrees that are chosen, the tensor interpolants of G and W are as close as is claimed."""
    head, lower, upper, rng = head_and_boxes(seed, D)
    boxes = ClearedBoxes(head, lower, upper)
    claimed = Remainders(boxes)
    degrees, G_error, W_error = claimed.degrees(10**fine, 1.0, 20_000)
    for b in np.flatnonzero(np.isfinite(G_error)):
        key = tuple(degrees[:, b].tolist())
        nodal = boxes.nodes(key, np.array([b]), claimed.steepest)
        t = np.where(rng.random((20, D)) < 0.3, rng.choice([-1.0, 1.0], size=(20, D)), rng.uniform(-1, 1, size=(20, D)))
        G, W = G_and_W(boxes, b, t)
        for values, exact, error in ((nodal.G[0], G, G_error[b]), (nodal.W[0][..., None], W[:, None], W_error[b])):
            found = np.broadcast_to(values, (20, *values.shape))
            for i, p in enumerate(key):
                found = np.einsum("pk,pk...->p...", basis(p, t[:, i]), found)
            assert np.abs(found - exact).max() <= error + 1e-11 * (1 + np.abs(values).max())
        assert G_error[b] + W_error[b] <= 10**fine


@given(SEEDS, st.sampled_from([1, 2, 3, 5]), st.booleans(), st.floats(-4, 4))
def test_errors_at_nodes(seed, D, slopes, offset):
    """G and W at nodes against balls of 200 bits, at the exact nodes, with values far from 0."""
    head, lower, upper, rng = head_and_boxes(seed, D, 2, slopes)
    head.values[:] += 10**offset
    head.biases[:] -= 10 ** abs(offset)
    boxes = ClearedBoxes(head, lower, upper)
    key = tuple(rng.integers(1, 5, size=D).tolist())
    nodal = boxes.nodes(key, np.arange(2), Remainders(boxes).steepest)
    with ctx.workprec(200):
        for b in range(2):
            k = tuple(int(rng.integers(p + 1)) for p in key)
            t = [_exact_node(p, j) for p, j in zip(key, k, strict=True)]
            G, W = _in_balls(boxes, b, t)
            assert not abs(W - arb(nodal.W[(b, *k)])) > arb(nodal.W_error[b])
            for o, value in enumerate(G):
                assert not abs(value - arb(nodal.G[(b, *k, o)])) > arb(nodal.G_error[b, o])


def _exact_node(p, k):
    return -(arb(2 * k + 1) / (2 * p + 2)).cos_pi() / (arb(1) / (2 * p + 2)).cos_pi()


def _in_balls(boxes, b, t):
    """(G per output, W) in balls at t, a point of the box's own coordinates; κ and M recovered from the floats in use."""
    head, D = boxes.head, boxes.head.dimension
    lower, upper = ([arb(v) for v in side[b].tolist()] for side in (boxes.lower, boxes.upper))
    half = [(hi - lo) / 2 for lo, hi in zip(lower, upper, strict=True)]
    x = [(lo + hi) / 2 + h * s for lo, hi, h, s in zip(lower, upper, half, t, strict=True)]
    z = [(x[i] - arb(float(head.shift[i]))) * arb(float(head.scale[i])) for i in range(D)]
    scores = head.keys @ ((boxes.centre[b] - head.shift) * head.scale) + head.biases
    top = scores.max()
    weights = np.exp(scores - top)
    kappa, M = (weights / weights.sum()) @ head.keys, float(top + np.log(weights.sum()))
    G, W = [arb(0)] * head.outputs, arb(0)
    f = enclose(head.formula, x, prec=200)
    for j in range(head.tokens):
        s = sum((arb(float(head.keys[j, i])) * z[i] for i in range(D)), arb(float(head.biases[j])))
        moved = [half[i] * arb(float(head.scale[i])) * t[i] * arb(float(kappa[i])) for i in range(D)]
        e = (s - arb(M) - sum(moved, arb(0))).exp()
        W += e
        slopes = head.slopes[j if len(head.slopes) > 1 else 0]
        for o in range(head.outputs):
            value = arb(float(head.values[j, o])) + arb(float(head.bias[o])) - f[o].ball()
            value += sum((z[i] * (arb(float(slopes[i, o])) + arb(float(head.linear[i, o]))) for i in range(D)), arb(0))
            G[o] += value * e
    return G, W


@given(SEEDS)
def test_bernstein_coefficients_bound_the_polynomial(seed):
    rng = np.random.default_rng(seed)
    key = (3, 1, 4)
    values = rng.normal(size=(2, 4, 2, 5))
    found, t = values, rng.uniform(-1, 1, size=(1, 3))
    for i, p in enumerate(key):
        found = np.moveaxis(np.tensordot(found, basis(p, t[:, i])[0], axes=([1], [0])), 0, 0)
    coefficients = _bernstein(values, key)
    assert (found <= coefficients.max(axis=(1, 2, 3)) + 1e-12).all()
    assert (found >= coefficients.min(axis=(1, 2, 3)) - 1e-12).all()
    np.testing.assert_allclose(coefficients[:, 0, 0, 0], values[:, 0, 0, 0], atol=1e-12)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("dtype", "first"), [(torch.float64, 0), (torch.float32, 8)], ids=["float64", "float32"])
def test_no_bound_is_below_the_truth(dtype, first):
    finds = list(hunt(engine("analytic", 1.0, dtype), map(one_head, range(first, first + 8)), dtype))
    assert not [str(find.case) for find in finds if find.violated]
    assert sum(math.isfinite(find.bound) for find in finds) >= 3


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_no_bound_is_below_the_truth_in_many_cases(dtype):
    finds = hunt(engine("analytic", 2.0, dtype), map(one_head, range(10_000, 10_250)), dtype)
    assert not [str(find.case) for find in finds if find.violated]


def test_the_hunt_can_fail():
    """A bound that is too small by one part in ten thousand is found."""
    cases = [one_head(seed) for seed in range(12)]
    honest = engine("analytic", 1.0)
    assert any(find.violated for find in hunt(lambda one: honest(one) * 0.98, cases))


MANY_VARIABLES = [
    ("x1*x2*x3*log(x5/x4)", [(1, 5)] * 5),
    ("x1*(1 + x5*x6*cos(x4)/(x2*x3))", [(1, 3)] * 6),
    ("x1*x2**3/(exp(x1*x2/(x3*x4)) - 1)/x5", [(1, 2)] * 5),
]


@pytest.mark.parametrize(("formula", "domain"), MANY_VARIABLES)
def test_close_in_five_and_more_variables(formula, domain):
    """Within a tenth of an error that is proved, where bisection is several times too wide."""
    rng, target = np.random.default_rng(1), ol.Target(formula, domain)
    case = fitted_case(target, rng)
    bound = engine("analytic", 60.0)(case)
    seen = observed(case, points=20_000)
    assert seen <= bound <= 1.1 * seen


def fitted_case(target, rng, tokens=12):
    """A head with random keys whose values are fitted: the error is a few per cent of the range."""
    from hostile import Case, _fitted

    D = target.dimension
    keys, biases = rng.normal(size=(tokens, D)) * 1.5, rng.normal(size=tokens)
    memory = Memory(torch.from_numpy(keys), torch.from_numpy(biases), torch.zeros(tokens, dtype=torch.int64))
    layer = memory_layer(torch.zeros(1).double(), D, (memory, torch.zeros(tokens, 1).double()))
    layer = _fitted(layer, target, rng)
    x = target.domain.points(rng.random((500, D)))
    z = frame_of(target.domain)(torch.from_numpy(x))
    return Case(1, target, layer, float(np.abs(form_of(layer)(z).numpy() - target(x)).max()) * 2)


def test_time_and_hopeless_targets():
    """Without time, or where f is not analytic, there is no bound; and nothing takes long."""
    case = fitted_case(ol.Target("x1*x2*x3*x4/x5", [(1, 3)] * 5), np.random.default_rng(0))
    assert engine("analytic", -1.0)(case) == math.inf
    kinked = ol.Target("x1*abs(x2 - x3)*x4*x5", [(0, 1)] * 5)
    form = form_of(case.layer)
    assert prove(form, frame_of(kinked.domain), Claim(kinked, 0.1), Budget(5.0)).bound == math.inf


def test_an_interrupt_keeps_the_bound(monkeypatch):
    case = fitted_case(ol.Target("x1*x2*x3*x4/x5", [(1, 3)] * 5), np.random.default_rng(0))

    def interrupted(self, budget, alone):
        raise KeyboardInterrupt

    monkeypatch.setattr(RationalCover, "refine", interrupted)
    proof = prove(form_of(case.layer), frame_of(case.target.domain), Claim(case.target, case.tolerance), Budget(60.0))
    assert proof.evidence.interrupted
    assert math.isfinite(proof.bound)
    assert len(proof.covering) == proof.evidence.boxes[0]
