"""The running error of gates against ball arithmetic, with zero slack: the model's float64 gate is within its bound."""

import numpy as np
import torch
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from onelayer import Target
from onelayer.construction.representative.layer import gate_rounding, reach_of
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.heads import Gates
from onelayer.layer.layer import gate_layer


def exact_gate(target, beta, cells, kept, x):
    """F in ball arithmetic, from the exact normalisation of the box and exact corners i/n − ½."""
    with ctx.workprec(200):
        total = arb(1)
        for j, (low, high) in enumerate(zip(target.domain.lower, target.domain.upper, strict=True)):
            if kept[j]:
                t = (arb(float(x[j])) - arb(low)) / (arb(high) - arb(low)) - arb(1) / 2
                b = arb(cells[j][0]) / cells[j][1] - arb(1) / 2
                total += (-arb(beta) * (t - b)).exp()
        return 1 / total


def gate_model(target, beta, cells, kept):
    """A model of one gate with corners i/n − ½."""
    D = target.dimension
    offsets = torch.tensor([[i / n - 0.5 for i, n in cells]], dtype=torch.float64)
    gates = Gates(torch.tensor([beta], dtype=torch.float64), offsets, torch.tensor([list(map(bool, kept))]))
    values = torch.zeros(1, D + 2, 1, dtype=torch.float64)
    values[0, 0] = 1.0
    layer = gate_layer(torch.zeros(1, dtype=torch.float64), D, (gates, values))
    return assemble(layer, frame_of(target.domain), outputs_of(target))


def violations(target, beta, cells, kept, bound, seed, count):
    """How many of the model's float64 values are farther than `bound` from the exact gate, near where it switches."""
    rng = np.random.default_rng(seed)
    near = np.array([i / n for i, n in cells]) + rng.normal(size=(count, target.dimension)) * 3 / beta
    x = target.domain.points(np.clip(near, 0, 1))
    with torch.no_grad():
        got = gate_model(target, beta, cells, kept)(torch.from_numpy(x).unsqueeze(-1)).flatten().tolist()
    errors = [abs(exact_gate(target, beta, cells, kept, p) - arb(v)) for p, v in zip(x, got, strict=True)]
    return sum(not error <= arb(bound) for error in errors)


@given(
    st.integers(1, 4),
    st.floats(0.1, 1e6),
    st.sampled_from([(0.0, 1.0), (-3.0, 0.5), (1000.0, 1001.0), (0.1, 0.3)]),
    st.integers(0, 10_000),
)
def test_float64_gates_are_within_the_bound(D, beta, side, seed):
    rng = np.random.default_rng(seed)
    target = Target("x1", [side] * D)
    cells, kept = [(int(rng.integers(1, 30)), 30) for _ in range(D)], rng.random(D) < 0.8
    bound = gate_rounding(D, reach_of(target), beta)
    assert violations(target, beta, cells, kept, bound, seed, 60) == 0


def test_the_comparison_can_fail():
    """A bound a thousand times smaller is violated: the test above has teeth."""
    target = Target("x1", [(0.1, 0.3)] * 2)
    bound = 1e-3 * gate_rounding(2, reach_of(target), 1e6)
    assert violations(target, 1e6, [(1, 3)] * 2, [True] * 2, bound, 0, 100) > 0


def test_the_bound_is_not_absurdly_large():
    assert gate_rounding(2, 1.0, 100.0) < 1e-13


def test_no_bound_is_claimed_where_errors_are_not_small():
    assert gate_rounding(2, 1.0, 1e14) == float("inf")
