"""The rounding lemma for gates against ball arithmetic, with zero slack: the model's float64 gate is within its bound."""

import numpy as np
import pytest
import torch
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from onelayer import Target
from onelayer.assemble import assemble
from onelayer.build import frame_of
from onelayer.certify.rounding import GateRounding
from onelayer.heads import Gates
from onelayer.layer import scalar_layer
from onelayer.plan import outputs_of, reach_of


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


@given(
    st.integers(1, 4),
    st.floats(0.1, 1e6),
    st.sampled_from([(0.0, 1.0), (-3.0, 0.5), (1000.0, 1001.0), (0.1, 0.3)]),
    st.integers(0, 10_000),
)
def test_float64_gates_are_within_the_bound(D, beta, side, seed):
    rng = np.random.default_rng(seed)
    target = Target("x1", [side] * D)
    cells = [(int(rng.integers(1, 30)), 30) for _ in range(D)]
    kept = rng.random(D) < 0.8
    offsets = torch.tensor([[i / n - 0.5 for i, n in cells]], dtype=torch.float64)
    gates = Gates(torch.tensor([beta], dtype=torch.float64), offsets, torch.from_numpy(kept)[None])
    values = torch.zeros(1, D + 2, 1, dtype=torch.float64)
    values[0, 0] = 1.0
    model = assemble(scalar_layer(torch.zeros(1, dtype=torch.float64), D, (gates, values)), frame_of(target.domain), outputs_of(target))
    near = np.array([i / n for i, n in cells]) + rng.normal(size=(60, D)) * 3 / beta  # where the gate switches
    x = target.domain.points(np.clip(near, 0, 1))
    with torch.no_grad():
        got = model(torch.from_numpy(x).unsqueeze(-1)).flatten().tolist()
    bound = GateRounding(D, reach_of(target)).gate(beta)
    for point, value in zip(x, got, strict=True):
        assert abs(exact_gate(target, beta, cells, kept, point) - arb(value)) <= arb(bound)


def test_the_bound_is_not_absurdly_large():
    assert GateRounding(2, 1.0).gate(100.0) < 1e-13


def test_no_bound_is_claimed_where_errors_are_not_small():
    assert GateRounding(2, 1.0).gate(1e14) == float("inf")


@pytest.mark.parametrize("factor", [0.0, 1e-3])
def test_the_comparison_can_fail(factor):
    """A bound a thousand times smaller is violated somewhere: the test above has teeth."""
    rng = np.random.default_rng(0)
    target = Target("x1", [(0.1, 0.3)] * 2)
    gates = Gates(torch.tensor([1e6], dtype=torch.float64), torch.tensor([[1 / 3 - 0.5] * 2], dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool))
    values = torch.zeros(1, 4, 1, dtype=torch.float64)
    values[0, 0] = 1.0
    model = assemble(scalar_layer(torch.zeros(1, dtype=torch.float64), 2, (gates, values)), frame_of(target.domain), outputs_of(target))
    x = target.domain.points(1 / 3 + rng.normal(size=(100, 2)) * 1e-6)
    with torch.no_grad():
        got = model(torch.from_numpy(x).unsqueeze(-1)).flatten().tolist()
    bound = factor * GateRounding(2, reach_of(target)).gate(1e6)
    errors = [abs(exact_gate(target, 1e6, [(1, 3)] * 2, [True] * 2, p) - arb(v)) for p, v in zip(x, got, strict=True)]
    assert any(e > arb(bound) for e in errors)
