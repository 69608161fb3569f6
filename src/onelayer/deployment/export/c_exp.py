"""An exponential in C that needs no libm, and a proved bound on its relative error.

With N table entries per octave and C = (log 2)/N, n a whole number next to x/C, x = n C + r, n = N k + j, 0 ≤ j < N:

    e^x = 2^k · 2^(j/N) · e^r ≈ 2^k · (T_j + T_j q),    q = r + r²(c_2 + c_3 r + r²(c_4 + c_5 r)),    |r| ≤ R, a little above C/2

n C is taken off in two pieces. C_hi has so few bits that n C_hi is exact, and so is x − n C_hi: a multiple of the last place
of x, or of C_hi's, and fewer than 2^p of them, p the bits of a significand. C_lo is the rest, rounded. 2^k is made of its bits.
Write u for the unit round-off, M for the largest |n|. The result is e^x times these factors:

    table        1 ± τ,    τ = max_j |T_j 2^(−j/N) − 1|
    remainder    e^(±ρ),   ρ = M|C − C_hi − C_lo| + uM|C_lo| + u|r|: C_lo as stored, its product, the difference
    series       1 ± e^R σ,    σ = Σ_k |c_k − 1/k!| R^k + e^R R^(d+1)/(d+1)!, degree d
    polynomial   1 ± e^R (η + u|q|(1 + u)),    η = u(R + (2d − 1)Q)(1 + 4du) + underflow: in Q = |q − r| a term has at most 2d − 2
                 factors 1 + δ, |δ| ≤ u, the sum with r has one; then T_j q is rounded
    sum          1 ± u
    scaling      1 ± u: exact, but for results below the smallest normal number, where e^x is above it

Each is enclosed by ball arithmetic; fused multiply-adds only leave roundings out. For x ≤ LOW, log(smallest normal number)
rounded down, the answer is 0, which is as near as certificates ask (`layer/arithmetic`). Above HIGH it is infinite.
What is proved is less than the 2 units in the last place that certificates assume of exp: their bounds hold with this one too.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from flint import arb, ctx

from ...layer.arithmetic import ARITHMETICS
from .c_text import array

Exponential = Literal["libm", "table"]
PRECISION = 200  # bits of the balls


@dataclass(frozen=True)
class Format:
    """A format of numbers, and the size of the table and of the polynomial for it."""

    digits: int  # p
    bias: int  # of exponents
    unsigned: str  # a type as wide
    suffix: str
    entries: int  # N
    degree: int  # d, 3 or 5
    high: float  # HIGH

    def rounded(self, value: arb) -> float:
        """A float of this format next to the value; how far it is from it is left to `table_exp`."""
        return float(np.float32(float(value))) if self.digits == 24 else float(value)


FORMATS = {
    "float64": Format(53, 1023, "uint64_t", "", entries=64, degree=5, high=709.0),
    "float32": Format(24, 127, "uint32_t", "f", entries=16, degree=3, high=88.0),
}


@dataclass(frozen=True)
class TableExp:
    """The constants of the function, and the relative error that is proved for LOW < x ≤ HIGH."""

    format: Format
    low: float
    step: tuple[float, float]  # C_hi, C_lo
    steps: float  # 1/C
    table: tuple[float, ...]
    coefficients: tuple[float, ...]  # c_2, …, c_d
    error: float

    def source(self) -> str:
        """C source of `table_exp`."""
        f = self.format
        numbers = {
            "LOW": self.low,
            "HIGH": f.high,
            "STEPS": self.steps,
            "STEP_HI": self.step[0],
            "STEP_LO": self.step[1],
        }
        lines = [f"#define EXP_{name} {value.hex()}{f.suffix}" for name, value in numbers.items()]
        c = [f"{value.hex()}{f.suffix}" for value in self.coefficients]
        pairs = [f"{even} + r * {odd}" for even, odd in zip(c[::2], c[1::2], strict=True)]  # d is odd
        curve = pairs[0] if len(pairs) == 1 else f"{pairs[0]} + rr * ({pairs[1]})"
        body = BODY.format(
            unsigned=f.unsigned, curve=curve, half=f"0.5{f.suffix}", entries=f.entries, bias=f.bias, mask=f.entries - 1,
            shift=f.entries.bit_length() - 1, fraction=f.digits - 1, infinite=2 * f.bias + 1,
        )  # fmt: skip
        return "\n".join([*lines, "", array("EXP_TABLE", np.array(self.table), f.suffix), body])


@cache
def table_exp(name: str) -> TableExp:
    """The function for the arithmetic of this name, with its proof."""
    f, a = FORMATS[name], ARITHMETICS[name]
    with ctx.workprec(PRECISION):
        u, log2, d = arb(a.u), arb.const_log2(), f.degree
        step, smallest = log2 / f.entries, arb(a.smallest)
        low = f.rounded(smallest.log())
        if not arb(low) <= smallest.log():
            low = float(np.nextafter(np.dtype(name).type(low), np.dtype(name).type(-np.inf)))
        M = math.ceil(max(-low, f.high) / float(step)) + 1
        unit = 2.0 ** (math.frexp(float(step))[1] - f.digits + M.bit_length())  # last place of C_hi
        hi = math.floor(float(step) / unit) * unit
        lo = f.rounded(step - hi)
        # |n − x/C| ≤ 1/2 and four roundings of x/C or less: the constant, the product, the sum with ±1/2
        R = step * (arb(0.5) + 4 * u * (M + 1))
        _require_exact(f, (low, f.high), hi, unit, M, R)

        table = tuple(f.rounded((log2 * j / f.entries).exp()) for j in range(f.entries))
        tau = max((abs(arb(t) * (-log2 * j / f.entries).exp() - 1).upper() for j, t in enumerate(table)), key=float)
        inexact = M * abs(step - hi - lo) + u * M * abs(arb(lo))
        rho = inexact + u * (R + inexact)
        R = R + rho
        coefficients = tuple(f.rounded(1 / arb(math.factorial(k))) for k in range(2, d + 1))
        sigma = R.exp() * R ** (d + 1) / math.factorial(d + 1)
        for k, c in enumerate(coefficients, start=2):
            sigma += abs(arb(c) - 1 / arb(math.factorial(k))) * R**k
        Q = R.exp() - 1 - R + sigma
        eta = u * (R + (2 * d - 1) * Q) * (1 + 4 * d * u) + 2 * d * smallest
        q = R + Q + eta
        product = (1 + tau) * rho.exp() * (1 + R.exp() * sigma) * (1 + R.exp() * (eta + u * q * (1 + u))) * (1 + u) ** 2
        error = math.nextafter(float((product - 1).upper()), math.inf)
        return TableExp(f, low, (hi, lo), f.rounded(1 / step), table, coefficients, error)


def _require_exact(f: Format, ends: tuple[float, float], hi: float, unit: float, M: int, R: arb) -> None:
    """n C_hi and x − n C_hi are exact, and 2^k is a normal number."""
    low, high = ends
    if not (hi % unit == 0 and hi / unit * M < 2.0**f.digits):
        raise AssertionError("n C_hi has too many bits")
    far = R + M * abs(arb.const_log2() / f.entries - hi)  # |x − n C_hi|
    e = math.frexp(hi / 2.01)[1] - 1  # |x| of any n other than 0 is at least hi/2.01 ≥ 2^e
    while 2.0**e <= max(-low, high):  # 2^e ≤ |x| < 2^(e+1)
        if not far < 2.0**f.digits * arb(min(unit, 2.0 ** (e + 1 - f.digits))):
            raise AssertionError("x − n C_hi has too many bits")
        e += 1
    most = math.floor(high / hi + 1) + f.entries * f.bias
    if not (far < hi and most // f.entries <= 2 * f.bias):
        raise AssertionError("2^k overflows")


BODY = """/* e^x = 2^k 2^(j/N) e^r: k from its bits, a table, a polynomial; 0 where e^x is below the smallest normal number */
static real table_exp(real x)
{{
    union {{
        {unsigned} bits;
        real number;
    }} power;
    if (!(x > EXP_LOW))
        return x != x ? x : 0;
    power.bits = ({unsigned}){infinite} << {fraction};
    if (x > EXP_HIGH)
        return power.number;
    const real steps = x * EXP_STEPS;
    const long n = (long)(steps + (steps < 0 ? -{half} : {half}));
    const unsigned long place = (unsigned long)(n + {entries}L * {bias}L);
    const real r = (x - (real)n * EXP_STEP_HI) - (real)n * EXP_STEP_LO;
    const real rr = r * r;
    const real q = r + rr * ({curve});
    const real t = EXP_TABLE[place & {mask}];
    power.bits = ({unsigned})(place >> {shift}) << {fraction};
    return (t + t * q) * power.number;
}}
"""
