"""Bins of sums: no sum is above what is said of its bin, and what is said is attained by some cells."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from onelayer.proof.composed.spread import Binned, Tops, bin_of, width_for


@pytest.mark.parametrize("seed", range(6))
def test_no_sum_is_above_its_bin(seed):
    """All products of cells, with every end of every cell: Σ e ≤ C(K) for some K ≤ Σ g/w < K + n, exactly that of the lemma."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    ranges = [np.sort(rng.normal(size=(9, 2)) * 10 ** rng.uniform(-2, 2), axis=1) for _ in range(n)]
    errors = [np.where(rng.random(9) < 0.1, np.inf, rng.normal(size=9)) for _ in range(n)]
    width = width_for(ranges, 64)
    tops = Tops.of([Binned.of(g, e, width) for g, e in zip(ranges, errors, strict=True)])
    for chosen in itertools.product(range(9), repeat=n):
        total = sum(e[c] for e, c in zip(errors, chosen, strict=True))
        for ends in itertools.product((0, 1), repeat=n):
            K = sum(int(bin_of(g[c], width)[s]) for g, c, s in zip(ranges, chosen, ends, strict=True))
            found = tops.values[K - tops.first]
            assert total <= found or found >= 1e299


@pytest.mark.parametrize("seed", range(6))
def test_the_cells_of_a_place_attain_it(seed):
    rng = np.random.default_rng(seed)
    ranges = [np.sort(rng.normal(size=(20, 2)), axis=1) for _ in range(3)]
    errors = [rng.normal(size=20) for _ in range(3)]
    tops = Tops.of([Binned.of(g, e, width_for(ranges, 100)) for g, e in zip(ranges, errors, strict=True)])
    for place in np.flatnonzero(np.isfinite(tops.values)).tolist():
        cells = tops.cells(place)
        total = sum(e[c] for e, c in zip(errors, cells, strict=True))
        assert total == pytest.approx(tops.values[place], abs=1e-12)


def test_bins_are_exact():
    """Also for quotients that underflow: a negative number is never in bin 0."""
    values = np.array([-5e-324, 5e-324, 0.0, -1e-300, np.nextafter(4.0, 0.0), 4.0, -4.0, np.nextafter(-4.0, -5.0)])
    assert bin_of(values, 4.0).tolist() == [-1, 0, 0, -1, 0, 1, -1, -2]


def test_rounding_of_sums_is_covered():
    """0.1 + 0.2 + … in floats may fall below the sum of these floats; the top may not."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        errors = rng.normal(size=5) * 10.0 ** rng.uniform(-8, 8, 5)
        tops = Tops.of([Binned.of(np.zeros((1, 2)), np.array([e]), 1.0) for e in errors])
        assert Fraction(float(tops.values[0])) >= sum(map(Fraction, errors.tolist()))
