"""Functions of flint's balls, real or complex, that flint has under another name, or not at all; and their derivatives.

A ball z is asked for its own methods, so that nothing is imported but what is real for flint only through complex balls.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

Ball = Any  # arb or acb
Taylor = Callable[[Ball, int], list[Ball]]  # (z, n) ↦ φ^(k)/k! on z, k = 0 … n


def sigmoid(z: Ball) -> Ball:
    if z.real >= 0:
        return 1 / (1 + (-z).exp())
    growth = z.exp()
    return growth / (1 + growth)


def softplus(z: Ball) -> Ball:
    return z + (-z).exp().log1p() if z.real > 0 else z.exp().log1p()


def cbrt(z: Ball) -> Ball:
    return z if z.is_zero() else z.root(3) if z.real > 0 else -(-z).root(3)


def normal(z: Ball) -> Ball:
    """The distribution function of the standard normal distribution."""
    return (-z / (z * 0 + 2).sqrt()).erfc() / 2


def normal_inverse(z: Ball) -> Ball:
    return -(2 * z).erfcinv() * (z * 0 + 2).sqrt()


def exponential_integral(z: Ball) -> Ball:
    """Ei, real on both sides of its pole."""
    complex_left = z.real < 0 and hasattr(z, "csgn")
    return -(-z).expint(1) if complex_left else z.ei()


def floor(z: Ball) -> Ball:
    """Of a real ball, or of a complex one whose real parts have the same."""
    return z * 0 + z.real.floor() if hasattr(z, "csgn") else z.floor()


def polynomial_derivative(name: str, n: int, k: int, z: Ball) -> Ball:
    """P_n^(k) = (2k − 1)!!·C_(n−k) with the parameter k + ½; T_n^(k) = n·2^(k−1)·(k − 1)!·C_(n−k) with the parameter k."""
    if k > n:
        return z * 0
    if name == "legendre":
        return math.prod(range(1, 2 * k, 2)) * z.gegenbauer_c(n - k, z * 0 + k + 0.5) if k else z.legendre_p(n)
    return n * 2 ** (k - 1) * math.factorial(k - 1) * z.gegenbauer_c(n - k, z * 0 + k) if k else z.chebyshev_t(n)


def moment_of_cosine(n: int, z: Ball) -> Ball:
    """∫t^n cos(tz + nπ/2)dt over [0, 1], the n-th derivative of sinc = ₀F₁(3/2; −z²/4)."""
    if n == 0:
        return z.sinc()
    return _over_argument(n, z, lambda k: (z.sin, z.cos)[k % 2]() * (-1 if k % 4 in (2, 3) else 1), (), (1.5,), 0.25)


def erf_over_argument(n: int, z: Ball) -> Ball:
    """The n-th derivative of erf(z)/z = 2/√π·₁F₁(½; 3/2; −z²)."""

    def erf(k: int) -> Ball:
        return (-1) ** (k - 1) * z.hermite_h(z * 0 + k - 1) * (-z * z).exp() if k else z.erf() / factor

    factor = 2 / (z * 0).pi().sqrt()
    return _over_argument(n, z, erf, (0.5,), (1.5,), 1.0) * factor


def sine_integral_over_argument(n: int, z: Ball) -> Ball:
    """The n-th derivative of Si(z)/z = ₁F₂(½; 3/2, 3/2; −z²/4)."""
    return _over_argument(n, z, lambda k: moment_of_cosine(k - 1, z) if k else z.si(), (0.5,), (1.5, 1.5), 0.25)


def _over_argument(
    n: int, z: Ball, derivative: Callable[[int], Ball], a: Sequence[float], b: Sequence[float], scale: float
) -> Ball:
    """The n-th derivative of g(z) = φ(z)/z, away from 0 from one order to the next: z g^(n) + n g^(n−1) = φ^(n).

    Near 0 with F_k = pFq(a + k; b + k; −s·z²), which has the slope −2s·z·Π(a + k)/Π(b + k)·F_(k+1), and g = F_0; s is the scale.
    """
    if z.abs_lower() > 1:
        found = derivative(0) / z
        for k in range(1, n + 1):
            found = (derivative(k) - k * found) / z
        return found
    terms = {(0, 0): z * 0 + 1}  # of z^i F_k
    for _ in range(n):
        new: dict[tuple[int, int], Ball] = {}
        for (i, k), c in terms.items():
            if i:
                new[i - 1, k] = new.get((i - 1, k), 0) + c * i
            up, down = math.prod(v + k for v in a), math.prod(v + k for v in b)
            new[i + 1, k + 1] = new.get((i + 1, k + 1), 0) - c * (2 * scale * up) / down
        terms = new
    w = -scale * z * z
    F = {k: w.hypgeom([z * 0 + v + k for v in a], [z * 0 + v + k for v in b]) for _, k in terms}
    return sum((c * z**i * F[k] for (i, k), c in terms.items()), z * 0)


def moment_of_exponential(n: int, z: Ball) -> Ball:
    """∫t^n e^(tz)dt over [0, 1], the n-th derivative of exprel; away from 0 from one order to the next."""
    if z.abs_lower() > 1:
        return z.expm1() / z if n == 0 else (z.exp() - n * moment_of_exponential(n - 1, z)) / z
    return z.hypgeom_1f1(z * 0 + n + 1, z * 0 + n + 2) / (n + 1)


def polygamma(n: int, z: Ball) -> Ball:
    """ψ^(n)."""
    if n == 0:
        return z.digamma()
    return _through_complex(z, lambda w: w.polygamma(w * 0 + n))


def zeta(n: int, z: Ball) -> Ball:
    """ζ^(n)."""
    return coefficients_at(z, n, riemann)[n] * math.factorial(n) if n else z.zeta()


def riemann(s: Any) -> Any:
    """ζ of a power series; where Re s > 5000, |ζ(s) − 1| and all |ζ^(k)(s)|/k! are less than 2^−4998."""
    if not s[0].real > 5000:
        return s.zeta()
    from flint import acb, arb

    tiny = arb(0, 1) * arb(2) ** -4998
    return [acb(1 + tiny, tiny), *[acb(tiny, tiny)] * 99]


def elliptic_series(m: Any, second: bool) -> Any:
    """K of a power series, or E = 2m(1 − m)K′ + (1 − m)K."""
    K = m.elliptic_k()
    return 2 * m * (1 - m) * K.derivative() + (1 - m) * K if second else K


def elliptic(n: int, z: Ball, second: bool) -> Ball:
    """K^(n), or E^(n), of the parameter; on wide balls as π/2·(a)_n(½)_n/n!·₂F₁(a + n, ½ + n; 1 + n; z) with a = ½, or −½."""
    if z.is_exact():
        return coefficients_at(z, n, partial(elliptic_series, second=second))[n] * math.factorial(n)
    a, factor = -0.5 if second else 0.5, z * 0 + 1
    for k in range(n):
        factor *= (a + k) * (0.5 + k) / (z * 0 + 1 + k)
    F = _through_complex(z, lambda w: w.pi() / 2 * w.hypgeom_2f1(w * 0 + a + n, w * 0 + 0.5 + n, w * 0 + 1 + n))
    return F * factor


def coefficients_at(z: Ball, order: int, make: Callable[[Any], Any]) -> list[Ball]:
    """φ^(k)/k! on a ball, k = 0 … order, from what φ makes of a power series."""
    from flint import acb_series, arb, ctx

    before, ctx.cap = ctx.cap, order + 2  # a derivative loses one
    try:
        found = make(acb_series([z, 1], order + 2))
    finally:
        ctx.cap = before
    return [found[k].real if isinstance(z, arb) else found[k] for k in range(order + 1)]


def by_series(make: Callable[[Any], Any], first: int) -> Taylor:
    """The coefficients of the derivative of order `first` of what `make` makes."""

    def on(x: Ball, order: int) -> list[Ball]:
        return [c * math.perm(first + k, first) for k, c in enumerate(coefficients_at(x, first + order, make)[first:])]

    return on


def _through_complex(z: Ball, function: Callable[[Ball], Ball]) -> Ball:
    """A function that flint has for complex balls alone, and that is real on the real line."""
    from flint import acb, arb

    return function(acb(z)).real if isinstance(z, arb) else function(z)


def by_derivatives(derivative: Callable[[int, Ball], Ball], first: int = 0) -> Taylor:
    """The coefficients of the derivative of order `first`, from all of them."""
    return lambda z, order: [derivative(first + k, z) / math.factorial(k) for k in range(order + 1)]


def of_polynomial(derivative: Callable[[int, Ball], Ball]) -> Taylor:
    """Of P_n or T_n, whose derivatives are on [−x, x], x ≥ 1, largest at x."""

    def on(x: Ball, order: int) -> list[Ball]:
        end = x.abs_upper().max(x * 0 + 1).upper()
        return bounded(derivative, lambda k: derivative(k, end).upper())(x, order)

    return on


def bounded(derivative: Callable[[int, Ball], Ball], most: Callable[[int], Any], first: int = 0) -> Taylor:
    """Of a function whose derivative of order k is at most `most(k)` in size: by the mean value form of second order."""

    def on(x: Ball, order: int) -> list[Ball]:
        c, reach = x.mid(), x - x.mid()
        at = [derivative(first + k, c) for k in range(order + 1 if x.is_exact() else order + 2)]
        found = []
        for k in range(order + 1):
            value = at[k]
            if not x.is_exact():
                bend, size = reach * reach / 2 * most(first + k + 2), type(x)(0, 1) * most(first + k)
                value += reach * at[k + 1] + bend.union(-bend)
                value = value.intersection(size) if value.overlaps(size) else size
            found.append(value / math.factorial(k))
        return found

    return on


def bessel_derivative(n: int, k: int, z: Ball) -> Ball:
    """J_n^(k) = 2^(−k) Σ_i (−1)^i C(k, i) J_(n−k+2i), in size at most `mean_of_sine`."""
    orders = [n - k + 2 * i for i in range(k + 1)]
    terms = [(-1) ** (i + (m if m < 0 else 0)) * math.comb(k, i) * z.bessel_j(abs(m)) for i, m in enumerate(orders)]
    return sum(terms, z * 0) / 2**k


def mean_of_sine(k: int) -> float:
    """The mean of |sin|^k, rounded up."""
    return math.gamma((k + 1) / 2) / (math.sqrt(math.pi) * math.gamma(k / 2 + 1)) * (1 + 1e-12)


def modified_bessel(n: int) -> Taylor:
    """I_n^(k) = 2^(−k) Σ_i C(k, i) I_(n−k+2i), which increases for u ≥ 0, and I_n(−u) = (−1)^n I_n(u)."""

    def at(x: Ball, order: int) -> list[Ball]:
        I, found = [x.bessel_i(m) for m in range(n + order + 1)], []
        for k in range(order + 1):
            whole = sum((math.comb(k, i) * I[abs(n - k + 2 * i)] for i in range(k + 1)), x * 0)
            found.append(whole / (2**k * math.factorial(k)))
        return found

    def on(x: Ball, order: int) -> list[Ball]:
        if x >= 0:
            return [a.union(b) for a, b in zip(at(x.lower(), order), at(x.upper(), order), strict=True)]
        if x <= 0:
            return [a * (-1) ** (n + k) for k, a in enumerate(on(-x, order))]
        pairs = zip(at(x * 0, order), at(x.abs_upper(), order), strict=True)
        return [(-b).union(b) if (n + k) % 2 else a.union(b) for k, (a, b) in enumerate(pairs)]

    return on
