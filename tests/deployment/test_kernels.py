"""The GPU kernels, in Triton's interpreter on the CPU or on the GPU itself: equal to what torch computes."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from flint import arb, arb_series, ctx

from onelayer.deployment.attention import kernels
from onelayer.deployment.attention.averages import SoftmaxAverages
from onelayer.deployment.attention.shared_keys import shared_keys_of
from onelayer.layer.form import Block

pytest.importorskip("triton", reason="Triton is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CLOSE = {torch.float64: 1e-13, torch.float32: 2e-5}


def drawn(*shape, seed=0, size=1.0):
    return size * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def gate_block(heads, D, m, beta=3.0, full=True, seed=0):
    """Gates of one sharpness; with values on the anchor alone unless `full`."""
    keys = torch.cat([torch.zeros(heads, 1, D), -beta * torch.eye(D).expand(heads, D, D)], dim=1).double()
    biases = torch.cat([torch.zeros(heads, 1), drawn(heads, D, seed=seed)], dim=1)
    biases[:, 1:][drawn(heads, D, seed=seed + 1) > 1] = -torch.inf
    values, slopes = drawn(heads, D + 1, m, seed=seed + 2), drawn(heads, D + 1, D, m, seed=seed + 3)
    if not full:
        values[:, 1:], slopes = 0.0, torch.zeros_like(slopes)
    return Block(keys, biases, values, slopes)


def points(count, D, dtype):
    return torch.from_numpy(np.random.default_rng(0).random((count, D)) - 0.5).to(dtype)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("heads", "D", "m", "full"), [(1, 1, 1, False), (70, 2, 1, False), (70, 2, 2, True), (9, 4, 1, True)]
)
@pytest.mark.parametrize("paired", [False, True])
def test_shared_keys(dtype, heads, D, m, full, paired):
    block = gate_block(heads, D, m, full=full)
    shared, x = shared_keys_of(block, dtype), points(150, D, dtype)
    assert shared.constant == (not full)
    assert shared.paired
    E = torch.exp(x[:, shared.coordinates] * shared.keys)
    given = (t.to(DEVICE) for t in (E, *shared.factors(x, E)))
    torch.testing.assert_close(kernels.quotients(*given, paired).cpu(), shared(x), rtol=0, atol=CLOSE[dtype] * heads)
    torch.testing.assert_close(shared(x), block(x.double()).to(dtype), rtol=0, atol=CLOSE[dtype] * heads)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("heads", "T", "D", "m", "sloped"),
    [(40, 3, 2, 2, True), (3, 5, 4, 1, False), (1, 50, 3, 2, False), (2, 20, 1, 1, True)],
)
def test_averages(dtype, heads, T, D, m, sloped):
    biases = drawn(heads, T, seed=1)
    biases[:, 1:][drawn(heads, T - 1, seed=2) > 1] = -torch.inf
    slopes = drawn(heads, T, D, m, seed=4) * sloped
    block = Block(drawn(heads, T, D, size=20.0), biases, drawn(heads, T, m, seed=3), slopes)
    own, x = SoftmaxAverages.of(block, dtype), points(70, D, dtype)
    there = own.to(DEVICE)
    y = kernels.averages(x.to(DEVICE), there.keys, there.biases, there.values, there.slopes).cpu()
    torch.testing.assert_close(y, own(x), rtol=0, atol=CLOSE[dtype] * heads)
    torch.testing.assert_close(own(x), block(x.double()).to(dtype), rtol=0, atol=CLOSE[dtype] * heads)


@pytest.mark.parametrize("beta", [30.0, 160.0])
def test_denominators_whose_products_overflow_are_not_paired(beta):
    """e^80 fits into float32, its square does not; e^15 and its square do."""
    shared = shared_keys_of(gate_block(6, 1, 1, beta, full=False), torch.float32)
    assert shared.paired == (beta < 100)
    x = torch.linspace(-0.5, 0.5, 101)[:, None]
    E = torch.exp(x[:, shared.coordinates] * shared.keys)
    given = (t.to(DEVICE) for t in (E, *shared.factors(x, E)))
    torch.testing.assert_close(kernels.quotients(*given, shared.paired).cpu(), shared(x), rtol=0, atol=1e-5)


def test_few_points_and_many_heads_are_shared_by_programs():
    shared, x = shared_keys_of(gate_block(700, 2, 1, full=False), torch.float64), points(5, 2, torch.float64)
    assert kernels._splits(x, 700) > 1
    E = torch.exp(x[:, shared.coordinates] * shared.keys)
    given = [t.to(DEVICE) for t in (E, *shared.factors(x, E))]
    torch.testing.assert_close(kernels.quotients(*given, True).cpu(), shared(x), rtol=0, atol=1e-11)
    assert kernels.quotients(given[0][:0], given[1], given[2][:0], given[3], True).shape == (0, 1)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [3.0, 300.0, 1e7])
@pytest.mark.parametrize("sloped", [False, True])
def test_the_largest_score_may_come_late(dtype, size, sloped):
    """Scores rise from token to token, so that those looked at first are the smallest; far ones in another way."""
    T = 600
    biases = torch.linspace(0, size, T, dtype=torch.float64)[None]
    block = Block(drawn(1, T, 2), biases, drawn(1, T, 1, seed=1), drawn(1, T, 2, 1, seed=2) * sloped)
    own, x = SoftmaxAverages.of(block, dtype), points(40, 2, dtype)
    there = own.to(DEVICE)
    y = kernels.averages(x.to(DEVICE), there.keys, there.biases, there.values, there.slopes).cpu()
    torch.testing.assert_close(y, own(x), rtol=0, atol=CLOSE[dtype] * (1 if dtype == torch.float64 else size))


def test_the_polynomial_for_powers_of_two():
    """Within 2.9u of 2^f for |f| ≤ 1/2: Taylor series of p(f)·2^−f − 1 on 1,024 pieces, the last term on the whole piece."""
    source = Path(kernels.__file__).with_name("triton.py").read_text()
    first, second = re.search(r"q = f \* (\S+) \+ (\S+)", source).groups()
    coefficients = [arb(float(c)) for c in (first, second, *re.findall(r"q = q \* f \+ (\S+)", source))]
    assert len(coefficients) == 11
    order, before = 8, ctx.cap

    def series(at):
        f, p = arb_series([at, 1], prec=order), arb_series([0], prec=order)
        for c in coefficients:
            p = p * f + c
        return p * (-arb.const_log2() * f).exp() - 1

    worst, half = arb(0), arb(1) / 2048
    with ctx.workprec(128):
        ctx.cap = order
        for i in range(1024):
            middle = (2 * arb(i) + 1) / 2048 - arb(1) / 2
            here, last = series(middle), series(middle + arb(0, 1) * half)[order - 1]
            terms = [abs(here[k]) * half**k for k in range(order - 1)]
            worst = worst.max(sum(terms, abs(last) * half ** (order - 1)))
        ctx.cap = before
    assert 2.0**-53 < worst < 2.9 * 2.0**-53
