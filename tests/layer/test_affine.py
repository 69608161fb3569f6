"""The lemma about computed sums, with zero slack against rationals: any order, fused or not, float32 and float64."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from onelayer.layer.affine import AffineNumbers, Sums, linear, lowest_bit, plus
from onelayer.layer.arithmetic import FLOAT32, FLOAT64

ARITHMETICS = pytest.mark.parametrize("arithmetic", [FLOAT32, FLOAT64], ids=["float32", "float64"])
KINDS = ("tame", "powers", "cancelling", "tiny", "digits")


def rounded(number, arithmetic):
    """The float of this format next to a rational."""
    if not number:
        return Fraction(0)
    bits, least = (24, -149) if arithmetic is FLOAT32 else (53, -1074)
    exponent = abs(number.numerator).bit_length() - number.denominator.bit_length()
    exponent += Fraction(2) ** exponent <= abs(number)
    unit = Fraction(2) ** max(exponent - bits, least)
    return round(number / unit) * unit


def numbers(rng, kind, count, arithmetic):
    """Floats of the format that make sums difficult."""
    t = rng.normal(size=count)
    match kind:
        case "powers":
            t = np.sign(t) * 2.0 ** rng.integers(-8, 9, count)
        case "cancelling":
            t = np.where(rng.random(count) < 0.5, 1, -1) * 1e6 * (1 + 2.0**-20 * t)
        case "tiny":
            t = t * 2.0 ** rng.integers(-150 if arithmetic is FLOAT32 else -1070, -20, count)
        case "digits":
            t = np.rint(t * 8) * 2.0 ** rng.integers(-7, 3, count)
    t = np.where(rng.random(count) < 0.2, 0.0, t)
    return t.astype(np.float32).astype(np.float64) if arithmetic is FLOAT32 else t


def computed(pairs, bias, order, fused, arithmetic):
    """Σ a·b + bias in this order, as the format computes it."""
    terms = [*((Fraction(a), Fraction(b)) for a, b in pairs), (Fraction(bias), Fraction(1))]
    total = Fraction(0)
    for i in order:
        a, b = terms[i]
        product = a * b if fused else rounded(a * b, arithmetic)
        total = rounded(total + product, arithmetic)
    return total


def bound_of(y, x, which):
    """The bound on |computed − M| or on |real − M| at x̂ = x, and M, as rationals."""
    symbols = [Fraction(1), Fraction(x)]
    M = sum((Fraction(c) * s for c, s in zip(y.mid.tolist(), symbols, strict=True)), Fraction(0))
    bound = sum(Fraction(c) * abs(s) for c, s in zip(getattr(y, which).tolist(), symbols, strict=True))
    return M, bound + (Fraction(float(y.own)) * abs(M) if which == "off" else 0)


def one_case(rng, arithmetic, count):
    """(entries, W, bias, x̂, the numbers that the entries are): constants, and x̂ times a power of two."""
    pick = lambda: KINDS[rng.integers(len(KINDS))]  # noqa: E731
    constants, W = (numbers(rng, pick(), count, arithmetic) for _ in range(2))
    bias, x = float(numbers(rng, pick(), 1, arithmetic)[0]), float(numbers(rng, "tame", 1, arithmetic)[0])
    entries = AffineNumbers.constant(constants, 2)
    moving = rng.random(count) < rng.choice([0.0, 0.5])
    scale = 2.0 ** rng.integers(-3, 4, count)
    entries.mid[moving] = np.stack([0 * scale, scale], axis=1)[moving]
    return entries, W, bias, x, np.where(moving, scale * x, constants)


@ARITHMETICS
def test_sums_are_within_the_bound_in_any_order(arithmetic):
    rng, exact = np.random.default_rng(1), 0
    for _ in range(600):
        count = int(rng.integers(1, 5))
        entries, W, bias, x, own = one_case(rng, arithmetic, count)
        y = linear(entries, W[:, None], np.array([bias]), arithmetic)[0]
        pairs = list(zip(own.tolist(), W.tolist(), strict=True))
        real = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(bias))
        M, near = bound_of(y, x, "rad")
        assert abs(real - M) <= near
        M, allowed = bound_of(y, x, "off")
        exact += not allowed
        for order in itertools.islice(itertools.permutations(range(count + 1)), 24):
            for fused in (False, True):
                assert abs(computed(pairs, bias, order, fused, arithmetic) - M) <= allowed
    assert 60 < exact < 500  # sums that are called exact


@ARITHMETICS
def test_the_comparison_can_fail(arithmetic):
    """A third of what the lemma charges is not enough."""
    rng, beyond = np.random.default_rng(2), 0
    for _ in range(300):
        entries, W, bias, x, own = one_case(rng, arithmetic, 3)
        y = linear(entries, W[:, None], np.array([bias]), arithmetic)[0]
        M, allowed = bound_of(y, x, "off")
        got = computed(list(zip(own.tolist(), W.tolist(), strict=True)), bias, range(4), False, arithmetic)
        beyond += abs(got - M) > allowed / 3
    assert beyond > 10


@ARITHMETICS
def test_errors_are_passed_on(arithmetic):
    """A number that is off by `off`, `own` or `rad` goes through a product, a sum and another sum."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        x, (a, b, c) = 0.5, numbers(rng, "tame", 3, arithmetic).tolist()
        entry = AffineNumbers.constant(np.array([a]), 2)
        entry.off[0], entry.own[0], entry.rad[0] = (2.0**-12, 2.0**-13), 2.0**-14, (2.0**-15, 0.0)
        M, allowed = bound_of(entry[0], x, "off")
        y = plus(
            linear(entry, np.array([[b]]), None, arithmetic), AffineNumbers.constant(np.array([c]), 2), arithmetic
        )[0]
        for sign in (-1, 1):
            start = rounded(M + sign * allowed * Fraction(99, 100), arithmetic)
            got = rounded(rounded(start * Fraction(b), arithmetic) + Fraction(c), arithmetic)
            reference, bound = bound_of(y, x, "off")
            assert abs(got - reference) <= bound
            near = bound_of(y, x, "rad")[1]
            assert abs((M + sign * Fraction(2.0**-15)) * Fraction(b) + Fraction(c) - reference) <= near


def test_a_coarse_program_has_no_exact_products():
    coarse = type(FLOAT32)(**{**FLOAT32.__dict__, "u": 16 * FLOAT32.u})
    y = Sums(coarse).add(AffineNumbers.constant(np.array([3.0]), 1), np.array([[2.0]])).result()
    assert y.off[0, 0] >= 6 * 16 * FLOAT32.u


def test_lowest_bits():
    found = lowest_bit(np.array([0.0, 1.0, -8.0, 3.0, 5e-324, 1.0 + 2.0**-52, 0.75]))
    assert found.tolist() == [math.inf, 1.0, 8.0, 1.0, 5e-324, 2.0**-52, 0.25]


@ARITHMETICS
def test_numbers_that_are_0_but_for_rounding_are_added_all_the_same(arithmetic):
    """relu(−z) beside relu(z): an addition more where there are other terms, none where the two are alone."""
    x, W = AffineNumbers.constant(np.zeros(2), 2), np.array([[1.0], [1.0]])
    x.mid[:, 1] = 1.0, 0.75
    for rows, more in ((1, False), (2, True)):
        sums = [Sums(arithmetic).add(x[:rows], W[:rows]) for _ in range(2)]
        without, with_twin = sums[0].result(), sums[1].add_twins(np.array([[-1.0]])).result()
        assert (with_twin.off[0] > without.off[0]).any() == more


def test_an_error_that_is_charged_does_not_underflow():
    """What a subnormal coefficient loses is felt behind a small weight and a large one."""
    x = AffineNumbers.constant(np.array([2.0**-600]), 2)
    lost = linear(x, np.array([[2.0**-500]]), None, FLOAT64)  # 0 in float64
    after = linear(linear(lost, np.array([[2.0**-300]]), None, FLOAT64), np.array([[2.0**900]]), None, FLOAT64)
    assert after.mid[0, 0] == 0.0
    assert after.rad[0, 0] >= 2.0**-500
    assert after.off[0, 0] + after.own[0] >= 2.0**-500
