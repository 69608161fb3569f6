"""Models on a grid: values that are solved for again as they are rounded, and the numbers that answers are linear in."""

import copy

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.construction.on_grid import GridColumns, nearest_values, on_grid, reweighted
from onelayer.layer.grid import BFLOAT16, FLOAT32, GRIDS, INT8
from onelayer.layer.value_entries import features, value_entries

TARGETS = {
    "gates": ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2),
    "one gate variable": ("exp(x1)", [(0, 1)]),
    "memory": ("1/(1 + 16*((x1-0.5)**2 + (x2-0.5)**2))", [(0, 1)] * 2),
    "two outputs": ("x1*x2; x1 - x2**2", [(0, 1)] * 2),
    "kinks": ("abs(x1-x2) + sin(3*x1)", [(0, 1)] * 2),
}


def built(name):
    construction = "gates" if "gate" in name else "memory"
    return ol.build(*TARGETS[name], 1e-3, construction=construction)


def samples(approx, count=2000, seed=0):
    x = approx.domain.points(np.random.default_rng(seed).random((count, approx.domain.dimension)))
    return torch.from_numpy(x), torch.from_numpy(approx.target(x))


def answers(model, x):
    with torch.no_grad():
        return model.double()(x.reshape(len(x), model.config.tokens, -1))[:, 0]


@pytest.mark.parametrize("name", list(TARGETS))
def test_answers_are_linear_in_the_values(name):
    approx = built(name)
    model, (x, _) = copy.deepcopy(approx.model), samples(approx, 100)
    entries = value_entries(model)
    assert entries
    before, phi = answers(model, x), features(model, x, entries)
    rng, expected = torch.Generator().manual_seed(1), before.clone()
    with torch.no_grad():
        for e, columns in zip(entries, phi, strict=True):
            step = torch.randn(len(e.at), generator=rng, dtype=torch.float64)
            getattr(model, e.name).view(-1)[e.at] += step
            for o in range(before.shape[1]):
                expected[:, o] += columns[:, e.output == o] @ step[e.output == o]
    torch.testing.assert_close(answers(model, x), expected, rtol=1e-9, atol=1e-9)


def test_a_network_behind_the_heads_has_no_such_values():
    layer = ol.build("sqrt(x1+x2)", [(0, 1)] * 2, 0.05)
    assert layer.facts.construction == "composed"
    assert value_entries(layer.model) is None


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "grid"),
    [
        (n, g) for n in TARGETS for g in GRIDS.values() if not (g is INT8 and "gate" in n)
    ],  # masks share the offsets' columns
    ids=lambda case: getattr(case, "name", case),
)
def test_it_beats_rounding_every_number(name, grid):
    approx = built(name)
    x, y = samples(approx)
    found = on_grid(approx.model, grid, x, y, digits=(1, 1))
    assert grid.contains(found.model)
    assert found.model.W_E.dtype == torch.float32
    plain = copy.deepcopy(approx.model)
    with torch.no_grad():
        for key, t in plain.state_dict().items():
            t.copy_(grid.rounded(key, t))
    cast = float((answers(plain, x) - y).abs().max())
    fresh = samples(approx, 5000, 1)
    assert found.observed <= (cast / 2 if grid is not FLOAT32 and name in ("gates", "memory") else cast)
    assert float((answers(found.model, fresh[0]) - fresh[1]).abs().max()) <= 2 * found.observed + 1e-6


@pytest.mark.one_in(2)
@pytest.mark.parametrize("grid", [BFLOAT16, INT8])
def test_digits_are_added_until_the_error_is_small_enough(grid):
    approx = built("memory")
    x, y = samples(approx)
    errors = {}
    for goal in (1.0, 1.2e-3, 1e-9):
        found = on_grid(approx.model, grid, x, y, goal)
        errors[goal] = found.observed
        assert found.observed <= goal or goal == 1e-9
        assert (found.digits == (1, 1)) == (goal == 1.0)
    assert errors[1e-9] <= errors[1.2e-3] <= errors[1.0]


def test_rounding_one_after_another_comes_close_to_the_best():
    """A few overlapping features, where all numbers of the grid near the solution can be tried."""
    x = torch.linspace(0, 1, 60, dtype=torch.float64)
    y, start = torch.exp(x) * torch.cos(4 * x), torch.zeros(4, dtype=torch.float64)
    phi = torch.softmax(-40 * (x[:, None] - torch.linspace(0, 1, 4, dtype=torch.float64)) ** 2, dim=1)
    off = reweighted(phi, y, start)
    columns = GridColumns([(INT8, 1, 4 * float(off[0].abs().max()), torch.arange(4))])
    found = nearest_values(phi, y, off, columns, start)
    assert torch.equal(columns.rounded(found), found)
    near = columns.rounded(off[0])
    offsets = torch.cartesian_prod(*[torch.arange(-3.0, 4.0, dtype=torch.float64)] * 4) * columns.spacing(near)
    errors = (phi @ (near + offsets).T - y[:, None]).abs().amax(dim=0)
    error = float((phi @ found - y).abs().max())
    assert error <= float((phi @ near - y).abs().max())
    assert error <= 1.05 * float(errors.min())
