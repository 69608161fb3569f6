"""Random formulas, random boxes, and values at single points by routes of their own: plain balls at 400 bits, and mpmath."""

import math
from functools import partial

import hypothesis
from flint import acb, acb_series, arb, ctx
from hypothesis import strategies as st
from mpmath import mp

from onelayer.common.errors import InputError
from onelayer.formula import parse
from onelayer.formula.functions import FUNCTIONS as RECORDS
from onelayer.formula.tree import (
    And,
    Call,
    Constant,
    IntegerPower,
    Negation,
    Not,
    Number,
    Or,
    Power,
    Product,
    Quotient,
    Relation,
    Sum,
    Variable,
    Where,
)

settings = hypothesis.settings(deadline=None, derandomize=True, database=None, max_examples=200)
dice = st.randoms(use_true_random=False)

SMOOTH = ["sin", "cos", "exp", "tanh", "sinh", "cosh", "atan", "sigmoid", "erf", "sqr"]
SMOOTH += ["sinc", "expm1", "exprel", "softplus"]
PARTIAL = ["tan", "log", "sqrt", "asin", "acos", "log1p", "cbrt"]
NUMBERS = ["0", "1", "2", "0.1", "3.5", "1e-3", ".25", "12.", "pi", "e"]
EXPONENTS = ["2", "3", "0", "1", "-1", "-2", "7", "0.5", "(1/3)", "-2.5", "pi", "(2 - 1)", "(1.5)"]


def draw_text(rng, depth, dimension=2, kinks=True):
    """Text of a random formula, with brackets only where the grammar needs none to be a guess."""
    if depth == 0 or rng.random() < 0.1:
        return f"x{rng.randint(1, dimension)}" if rng.random() < 0.7 else rng.choice(NUMBERS)
    part = lambda: draw_text(rng, depth - 1, dimension, kinks)  # noqa: E731
    kind = rng.randint(0, 9 if kinks else 7)
    if kind <= 2:
        return f"{part()} {rng.choice('+-*/')} {part()}"
    if kind == 3:
        return f"({part()}){rng.choice(['*', '/', ' - ', '-', '+'])}({part()})"
    if kind == 4:
        return f"-{part()}" if rng.random() < 0.3 else f"({part()})**{rng.choice(EXPONENTS)}"
    if kind == 5:
        return f"{rng.choice(PARTIAL)}({part()})"
    if kind == 6:
        return rng.choice([f"sqrt(sqr({part()}) + 0.1)", f"log(1 + exp({part()}))", f"(1 + sqr({part()}))**(1/3)"])
    if kind == 7:
        return f"{rng.choice(SMOOTH)}({part()})"
    if kind == 8:
        two = rng.choice([f"min({part()}, {part()})", f"atan2({part()}, {part()})", f"hypot({part()}, {part()})"])
        return rng.choice([f"abs({part()})", two, f"max({part()}, {part()}, {part()})"])
    return f"where({draw_condition(rng, depth - 1, dimension)}, {part()}, {part()})"


def draw_condition(rng, depth, dimension=2):
    def test():
        relation = rng.choice(["<", "<=", ">", ">="])
        return f"{draw_text(rng, max(depth - 1, 0), dimension)} {relation} {rng.random():.2f}"

    kind = rng.randint(0, 5)
    if kind == 0:
        return f"not ({test()})"
    if kind == 1:
        return f"{test()} and {test()}"
    if kind == 2:
        return f"{test()} or not {test()} and {test()}"
    return f"-0.5 <= {test()}" if kind == 3 else test()


def draw_box(rng, dimension=2):
    """Pairs of exact floats lo ≤ hi, some of them points, some ending at 0 or 1."""
    box = []
    for _ in range(dimension):
        lo = rng.choice([0.0, 1.0, -1.0, rng.uniform(-2, 2), rng.uniform(0, 3)])
        box.append((lo, lo + rng.choice([0.0, 1e-6, 0.01, 0.125, 0.5, 1.0, 3.0])))
    return box


def draw_point(rng, box):
    return [rng.choice([lo, hi, min(max(rng.uniform(lo, hi), lo), hi)]) for lo, hi in box]


class Undefined(Exception):
    """The formula certainly has no value at the point."""


class Outside(Undefined):
    """Only because an argument lies outside the closed domain of a root or an arc."""


class Unknown(Exception):
    """400 bits do not decide."""


def _need(good, bad, reason=Undefined):
    if bad:
        raise reason
    if not good:
        raise Unknown


def real_value(tree, point):
    """The value at a point as a tiny ball; only the chosen branch of `where` counts."""
    go = lambda part: real_value(part, point)  # noqa: E731
    match tree:
        case Number(value):
            return arb(value.numerator) / value.denominator
        case Constant(name):
            return arb.pi() if name == "pi" else arb.const_e()
        case Variable(index):
            return arb(point[index - 1])
        case Sum(parts):
            return sum((go(part) for part in parts), arb(0))
        case Negation(part):
            return -go(part)
        case Product(parts):
            result = arb(1)
            for part in parts:
                result = result * go(part)
            return result
        case Quotient(top, bottom):
            numerator, denominator = go(top), go(bottom)
            _need(not denominator.contains(0), denominator == 0)
            return numerator / denominator
        case IntegerPower(base, n):
            root = go(base)
            if n < 0:
                _need(not root.contains(0), root == 0)
            return root**n
        case Power(base, exponent):
            root, power = go(base), go(exponent)
            if isinstance(exponent, Number) and exponent.value > 0 and root.is_zero():
                return arb(0)
            closed = isinstance(exponent, Number) and exponent.value > 0
            _need(root > 0, root < 0 if closed else root <= 0, Outside if closed else Undefined)
            return (power * root.log()).exp()
        case Where(test, yes, no):
            return go(yes if truth(test, point) else no)
        case Call(name, parts):
            return _call(name, [go(part) for part in parts])
    raise AssertionError(tree)


def _bessel(n, sign):
    return lambda z: (z / 2) ** n * (sign * z * z / 4).hypgeom_0f1(acb(n + 1)) / math.factorial(n)


def _moment(n, z):
    """∫t^n e^(tz)dt over [0, 1], the n-th derivative of exprel."""
    return z.hypgeom_1f1(acb(n + 1), acb(n + 2)) / (n + 1)


def _wave(n, z):
    """The n-th derivative of sinc."""
    i = acb(0, 1)
    return (i**n * _moment(n, i * z) + (-i) ** n * _moment(n, -i * z)) / 2


def _polygamma(n, z):
    """From the series of log Γ at z + 1."""
    before, ctx.cap = ctx.cap, n + 2
    try:
        above = acb_series([z + 1, 1], n + 2).lgamma()[n + 1] * math.factorial(n + 1)
    finally:
        ctx.cap = before
    return above - (-1) ** n * math.factorial(n) / z ** (n + 1)


def _polynomial(n, step, z):
    """The n-th of a family that starts with 1 and z, by its recurrence; exact but for the rounding of many bits."""
    last, found = z * 0 + 1, z
    with ctx.workprec(ctx.prec + 8 * n):
        for k in range(1, n):
            last, found = found, step(k, z, found, last)
    return last if n == 0 else found


def _legendre(k, z, found, last):
    return ((2 * k + 1) * z * found - k * last) / (k + 1)


def _chebyshev(k, z, found, last):
    return 2 * z * found - last


def _derivative(name, n, entire=False):
    """By Cauchy's formula: the mean over 80 points of a circle, which misses 8^−80 of the values on one 8 times as wide."""

    def at(z):
        r = arb(1) / 16 if entire else min((acb(1) - z).abs_lower() / 16, arb(1))
        turns = [(acb(0, 2) * acb.pi() * k / 80).exp() for k in range(80)]
        values = [SPECIAL[name](z + r * t) for t in turns]
        off = 1024 * max(float(abs(value).upper()) for value in values) * 8.0**-80
        mean = sum((value / t**n for value, t in zip(values, turns, strict=True)), acb(0)) / 80
        return (mean + acb(arb(0, off), arb(0, off))) / acb(r) ** n * math.factorial(n)

    return at


SPECIAL = {  # of complex balls; by other ways than the package's where there are some
    "asinh": lambda z: (z + (z * z + 1).sqrt()).log() if z.real > 0 else -((z * z + 1).sqrt() - z).log(),
    "acosh": lambda z: (z + (z - 1).sqrt() * (z + 1).sqrt()).log(),
    "atanh": lambda z: (z.log1p() - (-z).log1p()) / 2,
    "erfc": lambda z: z.erfc(),
    "erfinv": lambda z: acb(z.real.erfinv()),
    "normcdf": lambda z: (z / -acb(2).sqrt()).erfc() / 2,
    "norminv": lambda z: -acb((2 * z.real).erfcinv()) * acb(2).sqrt(),
    "gamma": lambda z: 1 / z.rgamma(),
    "lgamma": lambda z: z.lgamma(),
    "digamma": lambda z: (z + 1).digamma() - 1 / z,
    **{f"digamma{n}": partial(_polygamma, n) for n in range(1, 6)},
    **{f"j{n}": _bessel(n, -1) for n in range(41)},
    **{f"i{n}": _bessel(n, 1) for n in range(41)},
    **{f"sinc{n}": partial(_wave, n) for n in range(1, 6)},
    **{f"exprel{n}": partial(_moment, n) for n in range(1, 6)},
    "erfrel": lambda z: 2 / acb.pi().sqrt() * (-z * z).hypgeom_1f1(acb(0.5), acb(1.5)),
    "sirel": lambda z: z.si() / z if not z.contains(0) else (-z * z / 4).hypgeom([acb(0.5)], [acb(1.5), acb(1.5)]),
    **{f"legendre{n}": partial(_polynomial, n, _legendre) for n in range(51)},
    **{f"chebyshev{n}": partial(_polynomial, n, _chebyshev) for n in range(51)},
    "floor": lambda z: acb(z.real.floor()),
    **{f"y{n}": lambda z, n=n: z.bessel_y(acb(n)) for n in range(2)},
    **{f"k{n}": lambda z, n=n: z.bessel_k(acb(n)) for n in range(2)},
    "ai": lambda z: z.airy_ai(),
    "bi": lambda z: z.airy_bi(),
    "si": lambda z: z.si(),
    "ci": lambda z: z.ci(),
    "ei": lambda z: z.ei() if z.real > 0 else -(-z).expint(acb(1)),
    "fresnels": lambda z: z.fresnel_s(),
    "fresnelc": lambda z: z.fresnel_c(),
    "lambertw": lambda z: z.lambertw(),
    "ellipk": lambda z: acb.pi() / 2 / acb(1).agm((1 - z).sqrt()),
    "ellipe": lambda z: z.elliptic_e(),
    "zeta": lambda z: z.zeta(),
    "ai1": lambda z: z.airy_ai(derivative=1),
    "bi1": lambda z: z.airy_bi(derivative=1),
    **{f"{name}{n}": _derivative(name, n) for name in ("ellipk", "ellipe", "zeta") for n in range(1, 6)},
    **{f"{name}{n}": _derivative(name, n, entire=True) for name in ("erfrel", "sirel") for n in range(1, 6)},
}
BY_NAME = ("softplus", "cbrt", "exprel", "sinc", "sigmoid", "sqr", "abs")  # in `_call`
NEW = {n: f for n, f in RECORDS.items() if n not in SPECIAL and n not in BY_NAME and not hasattr(arb, n)}
SPECIAL |= {name: f.ball for name, f in NEW.items()}  # without a way of their own here: their ball, with more bits
OPEN = {
    **dict.fromkeys(("atanh", "erfinv"), (-1, 1)),
    "norminv": (0, 1),
    "ellipk": (-math.inf, 1),
    "ellipe": (-math.inf, 1),
    "zeta": (1, math.inf),
}
OPEN |= dict.fromkeys(("gamma", "lgamma", "digamma", "y0", "y1", "k0", "k1", "ci"), (0, math.inf))
SINGULAR = {  # points at which a function is not analytic, nearest to the real line
    "tan": (math.pi / 2, -math.pi / 2),
    "tanh": (1j * math.pi / 2,),
    "log1p": (-1.0,),
    "norminv": (0.0, 1.0),
    **dict.fromkeys(("sigmoid", "softplus"), (1j * math.pi,)),
    **dict.fromkeys(("atan", "asinh"), (1j,)),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv", "acosh"), (1.0, -1.0)),
    **dict.fromkeys(("log", "sqrt", "cbrt", "abs", "floor", "gamma", "lgamma", "digamma"), (0.0,)),
    **dict.fromkeys(("y0", "y1", "k0", "k1", "ci", "ei"), (0.0,)),
    **dict.fromkeys(("ellipk", "ellipe", "zeta"), (1.0,)),
}
OPEN |= {n: (f.domain.lo, f.domain.hi) for n, f in NEW.items() if f.domain and not f.domain.closed}
CLOSED = {n: (f.domain.lo, f.domain.hi) for n, f in NEW.items() if f.domain and f.domain.closed}
CLOSED |= {"acosh": (1, math.inf), "lambertw": (-0.3678794411714423, math.inf)}  # the float above −1/e


def _at_order(name):
    """Where K, E, ζ and ψ are defined, there their derivatives are."""
    return name.rstrip("12345") if name[0] in "dez" else name


def _elliptic(kind, n, m):
    a = mp.mpf(1 if kind == "k" else -1) / 2
    return mp.pi / 2 * mp.rf(a, n) * mp.rf(0.5, n) / mp.factorial(n) * mp.hyp2f1(a + n, 0.5 + n, 1 + n, m)


MPMATH = {  # of numbers of mpmath, at its precision
    **{
        name: getattr(mp, name)
        for name in ("sin", "cos", "tan", "exp", "sqrt", "tanh", "sinh", "cosh", "atan", "asin", "acos")
    },
    **{
        name: getattr(mp, name)
        for name in ("expm1", "log1p", "erf", "asinh", "acosh", "atanh", "erfc", "erfinv", "gamma")
    },
    **{
        name: getattr(mp, name)
        for name in ("digamma", "si", "ci", "ei", "fresnels", "fresnelc", "ellipk", "ellipe", "zeta")
    },
    **{name: getattr(mp, name) for name in ("sinc", "floor")},
    "log": mp.ln,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x)),
    "exprel": lambda x: mp.expm1(x) / x if x else mp.one,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "abs": abs,
    "sqr": lambda x: x * x,
    "normcdf": lambda x: mp.erfc(-x / mp.sqrt(2)) / 2,
    "norminv": lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1),
    "lgamma": mp.loggamma,
    "ai": mp.airyai,
    "bi": mp.airybi,
    "ai1": lambda x: mp.airyai(x, derivative=1),
    "bi1": lambda x: mp.airybi(x, derivative=1),
    "lambertw": lambda x: mp.lambertw(x).real,
    **{f"{k}{n}": partial(getattr(mp, f"bessel{k}"), n) for k in "ji" for n in range(41)},
    **{f"{k}{n}": partial(getattr(mp, f"bessel{k}"), n) for k in "yk" for n in range(2)},
    **{f"digamma{n}": partial(mp.psi, n) for n in range(1, 6)},
    **{f"legendre{n}": partial(mp.legendre, n) for n in range(51)},
    **{f"chebyshev{n}": partial(mp.chebyt, n) for n in range(51)},
    **{f"zeta{n}": lambda x, n=n: mp.zeta(x, 1, n) for n in range(1, 6)},
    **{f"exprel{n}": lambda x, n=n: mp.hyp1f1(n + 1, n + 2, x) / (n + 1) for n in range(1, 6)},
    **{f"sinc{n}": lambda x, n=n: (mp.j**n * mp.hyp1f1(n + 1, n + 2, mp.j * x)).real / (n + 1) for n in range(1, 6)},
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "erfrel": lambda x: mp.erf(x) / x if x else 2 / mp.sqrt(mp.pi),
    "sirel": lambda x: mp.si(x) / x if x else mp.one,
    **{
        f"erfrel{n}": lambda x, n=n: mp.diff(lambda t: 2 / mp.sqrt(mp.pi) * mp.hyp1f1(0.5, 1.5, -t * t), x, n)
        for n in range(1, 6)
    },
    **{f"sirel{n}": lambda x, n=n: mp.diff(lambda t: mp.hyp1f2(0.5, 1.5, 1.5, -t * t / 4), x, n) for n in range(1, 6)},
    **{f"ellip{k}{n}": partial(_elliptic, k, n) for k in "ke" for n in range(1, 6)},
}


def _special(name, x):
    inside = _at_order(name)
    low, high = OPEN.get(inside) or CLOSED.get(inside) or (-math.inf, math.inf)
    if name in CLOSED:
        _need(x >= low, x < low, Outside)
    else:
        _need(x > low and x < high, x <= low or x >= high)
    if name == "ei":
        _need(x > 0 or x < 0, x == 0)
    with ctx.workprec(ctx.prec if abs(x) < 1e9 else 10 * ctx.prec):
        found = SPECIAL[name](acb(x)).real
    _need(found.is_zero() or found.rel_accuracy_bits() > 90, False)
    return found


def _call(name, values):
    x = values[0]
    if name in SPECIAL:
        return _special(name, x)
    if name in ("min", "max"):
        for other in values[1:]:
            x = x.min(other) if name == "min" else x.max(other)
        return x
    if name == "log":
        _need(x > 0, x <= 0)
    if name == "sqrt":
        _need(x >= 0, x < 0, Outside)
    if name in ("asin", "acos"):
        _need(x >= -1 and x <= 1, x < -1 or x > 1, Outside)
    if name == "log1p":
        _need(x > -1, x <= -1)
        return x.log1p()
    if name == "atan2":
        y, x = values
        _need(x != 0 or y != 0, x == 0 and y == 0)
        if y == 0:
            return arb(0) if x > 0 else arb.pi()
        _need(y > 0 or y < 0 or x > 0, False)
        return (y / x).atan() if x > 0 else (arb.pi() / 2 if y > 0 else -arb.pi() / 2) - (x / y).atan()
    if name == "softplus":
        return x.exp().log1p()
    if name == "cbrt":
        _need(x > 0 or x < 0 or x == 0, False)
        return x if x == 0 else (x.log() / 3).exp() if x > 0 else -((-x).log() / 3).exp()
    if name == "exprel":
        return arb(1) if x == 0 else x.expm1() / x
    if name == "sinc":
        return arb(1) if x == 0 else x.sin() / x
    if name == "tan":
        _need(x.tan().is_finite(), False)
    if name == "sigmoid":
        return 1 / (1 + (-x).exp())
    return abs(x) if name == "abs" else x * x if name == "sqr" else getattr(x, name)()


def truth(test, point):
    match test:
        case Not(part):
            return not truth(part, point)
        case And(parts):
            return _first(parts, False, point)
        case Or(parts):
            return _first(parts, True, point)
        case Relation(sign, left, right):
            a, b = real_value(left, point), real_value(right, point)
            if sign in (">", ">="):
                a, b = b, a
            yes, no = (a < b, a >= b) if sign in ("<", ">") else (a <= b, a > b)
            if not (yes or no):
                raise Unknown
            return yes


def _first(parts, decisive, point):
    """The decisive truth value if one part has it, whatever the others are; else the other truth value."""
    doubt = None
    for part in parts:
        try:
            if truth(part, point) is decisive:
                return decisive
        except (Undefined, Unknown) as reason:
            doubt = reason if doubt is None or isinstance(reason, Unknown) else doubt
    if doubt is not None:
        raise doubt
    return not decisive


def complex_value(tree, point):
    """Principal value at a complex point as a tiny ball; kinks and conditions look at real parts."""
    go = lambda part: complex_value(part, point)  # noqa: E731
    match tree:
        case Number() | Constant():
            return acb(real_value(tree, ()))
        case Variable(index):
            return acb(point[index - 1])
        case Sum(parts):
            return sum((go(part) for part in parts), acb(0))
        case Negation(part):
            return -go(part)
        case Product(parts):
            result = acb(1)
            for part in parts:
                result = result * go(part)
            return result
        case Quotient(top, bottom):
            return go(top) / go(bottom)
        case IntegerPower(base, n):
            return go(base) ** n
        case Power(base, exponent):
            return (go(exponent) * go(base).log()).exp()
        case Where(test, yes, no):
            return go(yes if truth(test, [z.real for z in map(acb, point)]) else no)
        case Call(name, parts):
            return _complex_call(name, [go(part) for part in parts])
    raise AssertionError(tree)


def _complex_call(name, values):
    z = values[0]
    match name:
        case "sigmoid":
            return 1 / (1 + (-z).exp())
        case "sqr":
            return z**2
        case "abs":
            return -z if z.real < 0 else z
        case "min" | "max":
            for w in values[1:]:
                z = w if (w.real < z.real) == (name == "min") else z
            return z
        case "softplus":
            return (1 + z.exp()).log()
        case "cbrt":
            return -(-z).pow(acb(arb(1) / 3)) if z.real < 0 else z.pow(acb(arb(1) / 3))
        case "exprel":
            return acb(1) if z == 0 else z.expm1() / z
        case "atan2":  # continued from the angle of the real parts, which lines turned by it leave at a positive number
            (y, x), i = values, acb(0, 1)
            above, below = (x + i * y) * acb(x.real, -y.real), (x - i * y) * acb(x.real, y.real)
            return acb(arb.atan2(y.real, x.real)) + (above.log() - below.log()) / (2 * i)
    return SPECIAL[name](z) if name in SPECIAL else getattr(z, name)()


def value_at(tree, point, bits=400):
    """A tiny ball, or None if so many bits do not tell; if there certainly is no value "undefined", or "outside" (`Outside`)."""
    with ctx.workprec(bits):
        try:
            ball = real_value(tree, point)
        except Outside:
            return "outside"
        except Undefined:
            return "undefined"
        except Unknown:
            return None
        return ball if ball.is_finite() else None


def draw_formula(rng, depth, kinks=True):
    """A random formula of x1, x2, or None where the drawn text is refused (a constant exponent divides by zero)."""
    try:
        return parse(draw_text(rng, depth, 2, kinks), ["x1", "x2"])
    except InputError:
        return None


def outside(found, ball):
    """Whether a point value certainly lies outside an interval: there is no slack here."""
    return bool(ball < found.lo or ball > found.hi)
