"""The functions of one variable, a record of facts each (`record`): every reading follows from it (`derived`), or is faster.

flint is not imported here, so that words cost nothing: balls are asked for their own methods.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from operator import methodcaller
from typing import Any

from . import ball_functions as balls
from .ball_functions import Ball
from .record import BetweenPoles, DefinedOn, Even, Function, Monotone, OwnName, Pole, Shape, Turning, Valley, Wave

NOWHERE = "log(-1)"  # the slope of the last of a family: not known
EVERYWHERE: Callable[[Ball], bool] = lambda z: True  # noqa: E731
LAST_ORDER, LAST_DEGREE, LAST_DERIVATIVE = 40, 50, 5
LEAST_OF_GAMMA = 1.4616321449683622, 1.4616321449683625  # where it is least lies between
ABOVE_MINUS_1_OVER_E = -0.3678794411714423
POSITIVE, ARC = DefinedOn(0.0), DefinedOn(-1.0, 1.0, closed=True)


def _inverse(n: int) -> float:
    """1/n, or a little more."""
    return 1 / n * (1 + 2.0**-50)


def _largest_hermite(n: int) -> float:
    """2/√π·max |H_n(u)e^(−u²)|/(n + 1), or more, by Cramér's inequality."""
    return 1.1284 * 1.0865 * math.sqrt(2.0**n * math.factorial(n)) / (n + 1)


def _family(
    stem: str,
    words: str,
    derivative: Callable[[int, Ball], Ball],
    shapes: Callable[[int], Shape],
    shown: bool = True,
    **facts: Any,
) -> list[Function]:
    """A function and its derivatives, each the slope of the one before. Facts hold for all of them, or are functions of n."""
    found = []
    for n in range(LAST_DERIVATIVE + 1):
        own = {name: fact(n) if name in ("array", "steepest", "taylor") else fact for name, fact in facts.items()}
        name, next_one = (f"{stem}{k}" if k else stem for k in (n, n + 1))
        slope, said = f"{next_one}(u)" if n < LAST_DERIVATIVE else NOWHERE, f"derivative of order {n} of {stem}"
        own.setdefault("taylor", balls.by_derivatives(derivative, n))
        own |= {"hidden": n > 0 or not shown} | ({"synonyms": (), "drawn": ""} if n else {})
        found.append(Function(name, said if n else words, partial(derivative, n), slope, shapes(n), **own))
    return found


def _over_powers(n: int, sign: str) -> str:
    """J_n(u)/u^n = Σ c_m J_m(u), as J_m = u·(J_(m−1) + J_(m+1))/2m; for I_m with a minus sign."""
    terms, stem = {n: Fraction(1)}, "j" if sign == "+" else "i"
    for _ in range(n):
        new: dict[int, Fraction] = {}
        for m, c in terms.items():
            new[m - 1] = new.get(m - 1, Fraction(0)) + c / (2 * m)
            new[m + 1] = new.get(m + 1, Fraction(0)) + c / (2 * m) * (1 if sign == "+" else -1)
        terms = new
    return " + ".join(f"({c.numerator}/{c.denominator})*{stem}{m}(u)" for m, c in terms.items())


def _bessel(n: int) -> list[Function]:
    """J_n and I_n."""
    slopes = [f"(j{n - 1}(u) - j{n + 1}(u))/2", f"(i{n - 1}(u) + i{n + 1}(u))/2"] if n else ["-j1(u)", "i1(u)"]
    first, second = slopes if n < LAST_ORDER else [NOWHERE] * 2
    even = Even(1.0 if n == 0 else 0.0) if n % 2 == 0 else Monotone()
    roots = [(n, _over_powers(n, sign)) if 0 < 2 * n <= LAST_ORDER else None for sign in ("+", "-")]
    return [
        Function(f"j{n}", f"Bessel function of the first kind, of order {n}", lambda z: z.bessel_j(n), first,
                 Turning(-0.403, 1.0) if n == 0 else Turning(-0.582, 0.582), steepest=0.6, analytic=EVERYWHERE,
                 taylor=balls.bounded(partial(balls.bessel_derivative, n), balls.mean_of_sine), hidden=n > 1, drawn=f"J_{n}",
                 letter=True, root=roots[0]),
        Function(f"i{n}", f"modified Bessel function of the first kind, of order {n}", lambda z: z.bessel_i(n), second, even,
                 analytic=EVERYWHERE, taylor=balls.modified_bessel(n), hidden=n > 1, drawn=f"I_{n}", letter=True, root=roots[1]),
    ]  # fmt: skip


def _polynomials(n: int) -> list[Function]:
    """P_n and T_n: their slopes are sums of those of lower degree."""
    lower, found = range(n - 1, -1, -2), []
    for name, letter, least, factor in (
        ("legendre", "P", -0.5, lambda k: 2 * k + 1),
        ("chebyshev", "T", -1.0, lambda k: 2 * n if k else n),
    ):
        slope, shape = (
            " + ".join(f"{factor(k)}*{name}{k}(u)" for k in lower) or "0",
            Turning() if n % 2 else Turning(least),
        )
        own = partial(balls.polynomial_derivative, name, n)
        found.append(
            Function(f"{name}{n}", f"{name.capitalize()} polynomial of degree {n}", partial(own, 0), slope, shape, hidden=True,
                     analytic=EVERYWHERE, taylor=balls.of_polynomial(own), drawn=f"{letter}_{n}")
        )  # fmt: skip
    return found


_RECORDS = [
    Function("sin", "sine, of an angle in radians", lambda z: z.sin(), "cos(u)", Wave(0.0), steepest=1.0, array="sin",
             root=(1, "sinc(u)")),
    Function("cos", "cosine", lambda z: z.cos(), "-sin(u)", Wave(0.5), steepest=1.0, array="cos"),
    Function("tan", "tangent", lambda z: z.tan(), "1 + y**2", BetweenPoles(), array="tan", root=(1, "sinc(u)/cos(u)")),
    Function("exp", "e^x", lambda z: z.exp(), "y", Monotone(0.0), array="exp"),
    Function("log", "natural logarithm", lambda z: z.log(), "1/u", Monotone(), POSITIVE, array="log", singular=(0.0,),
             synonyms=("ln",)),
    Function("sqrt", "square root", lambda z: z.sqrt(), "0.5/y", Monotone(0.0), DefinedOn(0.0, closed=True),
             holder=(1.0, 0.5), array="sqrt", singular=(0.0,), synonyms=("√",)),
    Function("tanh", "hyperbolic tangent", lambda z: z.tanh(), "1 - y**2", Monotone(-1.0, 1.0), steepest=1.0, array="tanh",
             root=(1, "2*sigmoid(2*u)*exprel(-2*u)")),
    Function("sinh", "hyperbolic sine", lambda z: z.sinh(), "cosh(u)", Monotone(), array="sinh",
             root=(1, "exp(u)*exprel(-2*u)")),
    Function("cosh", "hyperbolic cosine", lambda z: z.cosh(), "sinh(u)", Even(1.0), array="cosh"),
    Function("atan", "inverse tangent", lambda z: z.atan(), "1/(1 + u**2)", Monotone(), steepest=1.0, array="atan",
             numpy="arctan", synonyms=("arctan",), drawn="arctan", root=(1, "cos(y)/sinc(y)")),
    Function("asin", "inverse sine", lambda z: z.asin(), "1/sqrt(1 - u**2)", Monotone(), ARC, holder=(2.2215, 0.5),
             array="asin", numpy="arcsin", singular=(-1.0, 1.0), synonyms=("arcsin",), drawn="arcsin", root=(1, "1/sinc(y)")),
    Function("acos", "inverse cosine", lambda z: z.acos(), "-(1/sqrt(1 - u**2))", Monotone(0.0, rises=False), ARC,
             holder=(2.2215, 0.5), array="acos", numpy="arccos", singular=(-1.0, 1.0), synonyms=("arccos",), drawn="arccos"),
    Function("sigmoid", "1/(1 + e^(-x))", balls.sigmoid, "0.25 - (y - 0.5)**2", Monotone(0.0, 1.0), steepest=0.25,
             array="special", synonyms=("expit",), drawn="σ"),
    Function("erf", "error function", lambda z: z.erf(), "2/sqrt(pi)*exp(-u**2)", Monotone(-1.0, 1.0), steepest=1.13,
             array="special", root=(1, "erfrel(u)")),
    Function("expm1", "e^x - 1, accurate near 0", lambda z: z.expm1(), "exp(u)", Monotone(-1.0), array="expm1",
             root=(1, "exprel(u)")),
    Function("log1p", "log(1 + x), accurate near 0", lambda z: z.log1p(), "1/(1 + u)", Monotone(), DefinedOn(-1.0),
             array="log1p", singular=(-1.0,), root=(1, "1/exprel(y)")),
    Function("softplus", "log(1 + e^x)", balls.softplus, "sigmoid(u)", Monotone(0.0), steepest=1.0, array="special"),
    *_family("sinc", "sin(x)/x, and 1 at 0 (no factor pi)", balls.moment_of_cosine,
             lambda n: Turning(*((-0.21724, 1.0), (-0.43619, 0.43619))[n] if n < 2 else (-_inverse(n + 1), _inverse(n + 1))),
             steepest=lambda n: _inverse(n + 2) if n else 0.44,
             taylor=lambda n: balls.bounded(balls.moment_of_cosine, lambda k: _inverse(k + 1), n),
             array=lambda n: "special" if n < 2 else "", analytic=EVERYWHERE),
    *_family("exprel", "(e^x - 1)/x, and 1 at 0", balls.moment_of_exponential, lambda n: Monotone(0.0), ends=True,
             array=lambda n: "special" if n < 2 else "", analytic=EVERYWHERE),
    *_family("erfrel", "erf(x)/x, and its limit at 0", balls.erf_over_argument,
             lambda n: Turning(-_largest_hermite(n), _largest_hermite(n)), analytic=EVERYWHERE, shown=False,
             taylor=lambda n: balls.bounded(balls.erf_over_argument, _largest_hermite, n)),
    *_family("sirel", "si(x)/x, and 1 at 0", balls.sine_integral_over_argument,
             lambda n: Turning(-_inverse((n + 1) ** 2), _inverse((n + 1) ** 2)), analytic=EVERYWHERE, shown=False,
             taylor=lambda n: balls.bounded(balls.sine_integral_over_argument, lambda k: _inverse((k + 1) ** 2), n)),
    Function("cbrt", "cube root, of negative numbers too", balls.cbrt, "1/(3*y**2)", Monotone(), holder=(1.6, 1 / 3),
             array="special", singular=(0.0,)),
    Function("abs", "absolute value", lambda z: abs(z), "where(u > pi - pi, 1, -1)", Even(0.0), steepest=1.0, array="abs",
             numpy="absolute", singular=(0.0,)),
    Function("sqr", "square", lambda z: z * z, "2*u", Even(0.0), array="square"),
    Function("floor", "largest whole number that is not above x; it jumps", balls.floor, "0/(1 - 2*(y - y)**2)", Monotone(),
             array="floor", analytic=lambda z: z.real.floor().is_exact()),
    # each of these is its record and nothing else
    Function("asinh", "inverse hyperbolic sine", lambda z: z.asinh(), "1/sqrt(1 + u**2)", Monotone(), steepest=1.0,
             array="asinh", numpy="arcsinh", analytic=lambda z: z.imag.abs_upper() < 1, synonyms=("arcsinh", "arsinh"),
             drawn="arsinh", root=(1, "1/(exp(y)*exprel(-2*y))")),
    Function("acosh", "inverse hyperbolic cosine, x >= 1", lambda z: z.acosh(), "1/(sqrt(u - 1)*sqrt(u + 1))",
             Monotone(0.0), DefinedOn(1.0, closed=True), holder=(1.4143, 0.5), array="acosh", numpy="arccosh",
             analytic=lambda z: z.real > 1, singular=(1.0,), synonyms=("arccosh", "arcosh"), drawn="arcosh"),
    Function("atanh", "inverse hyperbolic tangent, -1 < x < 1", lambda z: z.atanh(), "1/((1 - u)*(1 + u))", Monotone(),
             DefinedOn(-1.0, 1.0), array="atanh", numpy="arctanh", analytic=EVERYWHERE, singular=(-1.0, 1.0),
             synonyms=("arctanh", "artanh"), drawn="artanh",
             root=(1, "1/(2*sigmoid(2*y)*exprel(-2*y))")),
    Function("erfc", "1 - erf(x), accurate where that is small", lambda z: z.erfc(), "-(2/sqrt(pi)*exp(-u**2))",
             Monotone(0.0, 2.0, rises=False), steepest=1.13, analytic=EVERYWHERE),
    Function("erfcx", "e^(x^2)*erfc(x)", lambda z: (z * z).exp() * z.erfc(), "2*u*y - 2/sqrt(pi)", Monotone(0.0, rises=False),
             analytic=EVERYWHERE),
    Function("erfinv", "inverse of erf, -1 < x < 1", lambda z: z.erfinv(), "sqrt(pi)/2*exp(y**2)", Monotone(),
             DefinedOn(-1.0, 1.0), singular=(-1.0, 1.0)),
    Function("normcdf", "distribution function of the standard normal distribution", balls.normal,
             "exp(-u**2/2)/sqrt(2*pi)", Monotone(0.0, 1.0), steepest=0.4, analytic=EVERYWHERE, synonyms=("ndtr",), drawn="Φ"),
    Function("norminv", "inverse of normcdf, 0 < x < 1", balls.normal_inverse, "sqrt(2*pi)*exp(y**2/2)", Monotone(),
             DefinedOn(0.0, 1.0), singular=(0.0, 1.0), synonyms=("ndtri", "probit")),
    Function("gamma", "gamma function, x > 0", lambda z: z.gamma(), "y*digamma(u)", Valley(*LEAST_OF_GAMMA, 0.88560319441088),
             POSITIVE, analytic=EVERYWHERE, singular=(0.0,), drawn="Γ", letter=True),
    Function("lgamma", "logarithm of the gamma function, x > 0", lambda z: z.lgamma(), "digamma(u)",
             Valley(*LEAST_OF_GAMMA, -0.12148629053585), POSITIVE, analytic=EVERYWHERE, singular=(0.0,),
             synonyms=("gammaln", "loggamma"), drawn="log Γ"),
    *_family("digamma", "slope of lgamma, x > 0", balls.polygamma,
             lambda n: Monotone(0.0 if n % 2 else None, 0.0 if n and n % 2 == 0 else None, n % 2 == 0),
             domain=POSITIVE, ends=True, analytic=EVERYWHERE, singular=(0.0,), synonyms=("psi",),
             taylor=lambda n: balls.by_series(lambda s: s.lgamma(), n + 1)),
    *(record for n in range(LAST_ORDER + 1) for record in _bessel(n)),
    *(record for n in range(LAST_DEGREE + 1) for record in _polynomials(n)),
    Function("y0", "Bessel function of the second kind, of order 0, x > 0", lambda z: z.bessel_y(0), "-y1(u)",
             Turning(most=0.5214), POSITIVE, analytic=EVERYWHERE, singular=(0.0,), drawn="Y_0", letter=True),
    Function("y1", "Bessel function of the second kind, of order 1, x > 0", lambda z: z.bessel_y(1), "y0(u) - y/u",
             Turning(most=0.4168), POSITIVE, analytic=EVERYWHERE, singular=(0.0,), drawn="Y_1", letter=True),
    Function("k0", "modified Bessel function of the second kind, of order 0, x > 0", lambda z: z.bessel_k(0), "-k1(u)",
             Monotone(0.0, rises=False), POSITIVE, ends=True, analytic=EVERYWHERE, singular=(0.0,), drawn="K_0", letter=True),
    Function("k1", "modified Bessel function of the second kind, of order 1, x > 0", lambda z: z.bessel_k(1), "-k0(u) - y/u",
             Monotone(0.0, rises=False), POSITIVE, ends=True, analytic=EVERYWHERE, singular=(0.0,), drawn="K_1", letter=True),
    Function("ai", "Airy function Ai", lambda z: z.airy_ai(), "ai1(u)", Turning(-0.4191, 0.5357), analytic=EVERYWHERE,
             drawn="Ai", letter=True),
    Function("ai1", "slope of Ai", lambda z: z.airy_ai(derivative=1), "u*ai(u)", Turning(), analytic=EVERYWHERE, hidden=True),
    Function("bi", "Airy function Bi", lambda z: z.airy_bi(), "bi1(u)", Turning(-0.455), analytic=EVERYWHERE, drawn="Bi",
             letter=True),
    Function("bi1", "slope of Bi", lambda z: z.airy_bi(derivative=1), "u*bi(u)", Turning(), analytic=EVERYWHERE, hidden=True),
    Function("si", "sine integral", lambda z: z.si(), "sinc(u)", Turning(-1.852, 1.852), steepest=1.0, analytic=EVERYWHERE,
             drawn="Si", letter=True, root=(1, "sirel(u)")),
    Function("ci", "cosine integral, x > 0", lambda z: z.ci(), "cos(u)/u", Turning(most=0.4721), POSITIVE, analytic=EVERYWHERE,
             singular=(0.0,), drawn="Ci", letter=True),
    Function("ei", "exponential integral; its pole is at 0", balls.exponential_integral, "exp(u)/u", Pole(),
             DefinedOn(without=0.0), analytic=EVERYWHERE, singular=(0.0,), synonyms=("expi",), drawn="Ei", letter=True),
    *(Function(f"fresnel{name[0]}", f"Fresnel integral: of {name}(pi t^2/2) from 0 to x",
               methodcaller(f"fresnel_{name[0]}"), f"{name}(pi/2*u**2)", Turning(-most, most), steepest=1.0,
               analytic=EVERYWHERE, drawn=name[0].upper()) for name, most in (("sin", 0.714), ("cos", 0.78))),
    Function("lambertw", "principal branch of Lambert's W, x >= -1/e", lambda z: z.lambertw(), "exp(-y)/(1 + y)",
             Monotone(-1.0), DefinedOn(ABOVE_MINUS_1_OVER_E, closed=True), holder=(2.34, 0.5), analytic=EVERYWHERE,
             singular=(ABOVE_MINUS_1_OVER_E,), drawn="W", root=(1, "1/exp(y)")),
    *_family("ellipk", "complete elliptic integral K of the parameter m < 1", partial(balls.elliptic, second=False),
             lambda n: Monotone(0.0), domain=DefinedOn(hi=1.0), ends=True, analytic=EVERYWHERE, singular=(1.0,), drawn="K",
             taylor=lambda n: balls.by_series(partial(balls.elliptic_series, second=False), n)),
    *_family("ellipe", "complete elliptic integral E of the parameter m < 1", partial(balls.elliptic, second=True),
             lambda n: Monotone(None, 0.0, rises=False) if n else Monotone(1.0, rises=False), domain=DefinedOn(hi=1.0), ends=True,
             analytic=EVERYWHERE, singular=(1.0,), drawn="E",
             taylor=lambda n: balls.by_series(partial(balls.elliptic_series, second=True), n)),
    *_family("zeta", "Riemann's zeta function, x > 1", balls.zeta,
             lambda n: Monotone(None if n % 2 else float(n == 0), 0.0 if n % 2 else None, n % 2 == 1),
             domain=DefinedOn(1.0), ends=True, analytic=EVERYWHERE, singular=(1.0,), drawn="ζ", letter=True,
             taylor=lambda n: balls.by_series(balls.riemann, n)),
]  # fmt: skip


class _Functions(dict[str, Function]):
    def __missing__(self, name: str) -> Function:
        if isinstance(name, OwnName):
            return name.record
        raise KeyError(name)


FUNCTIONS = _Functions({record.name: record for record in _RECORDS})


def natural_domain(name: str) -> tuple[float, float] | None:
    """The closed domain to which arguments of a function of one variable are cut; None if there is none."""
    return FUNCTIONS[name].natural if name in FUNCTIONS or isinstance(name, OwnName) else None
