"""Every function that the checker knows, in every reading: against mpmath, against 320 bits, against quotients of differences."""

import math
import random
import re

import mpmath
import pytest
from flint import acb, arb, ctx, fmpq

from checking import by_hand, check, checker, forged, numbers
from onelayer.layer.layer import gate_layer

mp = mpmath.mp.clone()
mp.dps = 50
KNOWN = checker.FUNCTIONS
REFERENCE = {
    "erfc": mp.erfc, "erfinv": mp.erfinv, "norminv": lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), "gamma": mp.gamma,
    "normcdf": mp.ncdf, "lgamma": mp.loggamma, "ai": mp.airyai, "bi": mp.airybi, "si": mp.si, "ci": mp.ci, "ei": mp.ei,
    "fresnels": mp.fresnels, "fresnelc": mp.fresnelc, "lambertw": mp.lambertw, "ellipk": mp.ellipk, "ellipe": mp.ellipe,
    "zeta": mp.zeta, "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "sinc": mp.sinc, "floor": mp.floor, "erf": mp.erf,
    "exprel": lambda x: mp.expm1(x) / x, "sec": mp.sec, "csc": mp.csc, "cot": mp.cot, "exp2": lambda x: 2**x,
    "log2": lambda x: mp.log(x, 2), "log10": mp.log10, "sign": mp.sign, "ceil": mp.ceil, "round": lambda x: mp.floor(x + 0.5),
    "sqr": lambda x: x * x, "sqrt": mp.sqrt, "log1p": mp.log1p, "expm1": mp.expm1, "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)), "abs": abs, "asinh": mp.asinh,
    **{name: getattr(mp, name) for name in re.findall("[a-z]+", "sin cos tan exp log sinh cosh tanh atan asin acos acosh atanh")},
    **{f"{c}{n}": (lambda x, n=n, f=f: f(n, x)) for c, f in (("y", mp.bessely), ("k", mp.besselk)) for n in (0, 1)},
    **{f"i{n}": (lambda x, n=n: mp.besseli(n, x)) for n in (0, 1)},
    **{f"j{n}": (lambda x, n=n: mp.besselj(n, x)) for n in range(21)},
    **{f"legendre{n}": (lambda x, n=n: mp.legendre(n, x)) for n in range(51)},
    **{f"chebyshev{n}": (lambda x, n=n: mp.chebyt(n, x)) for n in range(51)},
    **{f"digamma{n or ''}": (lambda x, n=n: mp.psi(n, x)) for n in range(5)},
}  # fmt: skip
LAST = [name for name, known in KNOWN.items() if known.slope.startswith("log(-1)")]
SOME = [n for n in KNOWN if not ("_" in n and n[-1] not in "1") and n.strip("chebyslgnr_012356") != "d"]


def places(name, draw, count=8, most=6.0):
    """Points of the domain, and near its ends."""
    known = KNOWN.get(name, KNOWN["exp"])
    low, high = max(known.low, -most), min(known.high, most + 6 * (name[0] in "jyik"))
    if name in ("log2", "log10", "sqrt", "log1p", "norminv"):
        low, high = 0.0, 1.0
    found = [draw.uniform(low, high) for _ in range(count)] + [low + 1e-9 * (high - low), high - 1e-9 * (high - low)]
    return [x for x in found if known.low <= x <= known.high and x != 0]


def value(name, x, bits=320):
    with ctx.workprec(bits):
        return checker.value(checker.Reader(["x"], f"{name}(x)").node() if name in checker.WRITTEN else tree(name), [x])


def tree(name):
    return checker.tree(name, checker.VAR)


@pytest.mark.parametrize("name", REFERENCE)
def test_values_are_those_of_mpmath(name):
    draw = random.Random(name)
    node = checker.Reader(["x"], f"{name}(x)").node()
    for x in places(name, draw):
        theirs = REFERENCE[name](mp.mpf(x))
        with ctx.workprec(400):
            ours = checker.value(node, [arb(x)])
            assert abs(ours - arb(mp.nstr(mp.re(theirs), 48))) < 1e-38 * (1 + abs(ours)), (x, ours, theirs)


@pytest.mark.parametrize("name", SOME)
def test_boxes_hold_the_values_in_them(name):
    """Balls, intervals, Taylor models and complex balls, in 96 bits; and slopes are limits of quotients, on complex balls too."""
    known, draw, node, held = KNOWN[name], random.Random(name), tree(name), 0
    for c in places(name, draw, 5):
        r = draw.choice([1e-12, 1e-3, 0.05, 0.4, 2.0])
        ends = (max(c - r, known.low if known.closed else -math.inf), c + r)
        x = [draw.choice([*ends, draw.uniform(*ends)]) for _ in range(3)]
        with ctx.workprec(96):
            box = checker.Sides([ends])
            z, jets = acb(box[0], arb(0, r)), checker.Jets(box, [0])
            ball, disc, found = checker.value(node, box), checker.value(node, [z]), checker.interval(node, box)
            pairs = [found, (ball.lower(), ball.upper()), jets.ends(jets.of(node))]
            terms = checker.expansion(name, box[0]) if name not in checker.JUMPS else []
        for p in x:
            real, w = value(name, arb(p)), acb(arb(p), arb(draw.uniform(-r, r)))
            for low, high in pairs if real.is_finite() else []:
                assert not low > real, (ends, p, low, real)
                assert not high < real, (ends, p, high, real)
            with ctx.workprec(320):
                for k, term in enumerate(terms):
                    own = checker.value(checker.derivative(name, k), [arb(p)]) / math.factorial(k)
                    assert not (term.is_finite() and own.is_finite()) or term.overlaps(own), (ends, p, k)
                point, h = checker.value(node, [w]), arb(2) ** -100
                sides = [checker.value(node, [w + s * h]) for s in (1, -1)]
                slope = checker.value(checker.derivative(name, 1), [w])
            if disc.is_finite():
                assert not real.is_finite() or acb(disc).overlaps(acb(real)), (ends, p)
                assert not point.is_finite() or acb(disc).overlaps(acb(point)), (ends, w)
            if all(v.is_finite() for v in (*sides, slope)) and name not in checker.JUMPS:
                held += 1
                with ctx.workprec(320):
                    off = (sides[0] - sides[1]) / (2 * h) - slope
                    assert abs(off) < 1e-40 * (1 + abs(slope)), w
    assert held or name in (*checker.JUMPS, *LAST, "erfinv")


@pytest.mark.parametrize("name", SOME)
def test_hostile_arguments(name):
    """Refused, or right: what 800 bits say is in it."""
    known = KNOWN[name]
    some = [0.0, 5e-324, -5e-324, 1e-300, 1e300, -1e300, 1.0, -1.0, 1e5, -777.5, known.low, known.high]
    some += [math.nextafter(v, s) for v in (known.low, known.high) for s in (-math.inf, math.inf)]
    for x in filter(math.isfinite, some):
        with ctx.workprec(96):
            found, more = checker.value(tree(name), [arb(x)]), value(name, arb(x), 800)
            inside = (known.low <= x <= known.high if known.closed else known.low < x < known.high) and not (
                known.pole and x == 0
            )
            assert inside or not found.is_finite(), x
            assert not (found.is_finite() and more.is_finite()) or found.overlaps(more), x
            around = checker.value(tree(name), [arb(x, 0.25)])
            assert not around.is_finite() or not more.is_finite() or around.overlaps(more)
    for ball in (arb.nan(), arb("inf"), arb(0, "inf"), acb(arb.nan(), 1), acb(arb(0, "inf"), arb(0, 1))):
        assert known.tight or not checker.value(tree(name), [ball]).is_finite() or known.ball(ball).is_finite()
    edges = [acb(arb(v, 0.1), arb(0, 0.1)) for v in (known.low, known.high) if math.isfinite(v)] + [acb(0)] * known.pole
    assert not any(checker.value(tree(name), [z]).is_finite() for z in edges)  # a branch point, or a pole


@pytest.mark.parametrize("name", ["atan", "asinh"])
def test_cuts_along_the_imaginary_axis(name):
    assert not checker.value(tree(name), [acb(arb(0, 0.1), arb(1.5, 0.1))]).is_finite()
    assert checker.value(tree(name), [acb(arb(0, 0.1), arb(0, 0.5))]).is_finite()


LIMITS = {
    "j3(2*x)/x**3": 1 / 6, "j1(x)/x": 0.5, "x**2/j2(x)": 8.0, "i1(x)/x": 0.5, "asinh(x)/x": 1.0, "x/atanh(x)": 1.0,
    "lambertw(x)/x": 1.0, "erf(x)/x": 2 / math.sqrt(math.pi), "si(2*x)/x": 2.0, "(cosh(x) - 1)/x**2": 0.5,
    "(1 - cosh(x))/x**2": -0.5, "(1 - cos(2*x))/x**2": 2.0, "cot(x)*x": 1.0, "csc(x)*x": 1.0, "log1p(x)/x": 1.0,
    "j20(x)/x**20": 2.0**-20 / math.factorial(20),
}  # fmt: skip


@pytest.mark.parametrize("text", LIMITS)
def test_limits_where_a_quotient_is_0_over_0(text):
    node = checker.Reader(["x"], text).node()
    assert abs(checker.value(node, [arb(0)]) - LIMITS[text]) < 1e-15 * LIMITS[text] ** 2 + 1e-40 + 1e-15 * abs(
        LIMITS[text]
    )
    for x in (arb(0, 0.1), acb(arb(0, 0.1), arb(0, 0.1))):
        assert checker.value(node, [x]).is_finite()
        assert checker.value(checker.slope_of(node, 0), [x]).is_finite()
    with ctx.workprec(400):
        x = arb(0.3125)
        names = {name: (lambda u, name=name: value(name, u, 400)) for name in REFERENCE}
        assert (eval(text, names | {"x": x}) - checker.value(node, [x])).contains(0)
        h = arb(2) ** -100
        quotient = (checker.value(node, [x + h]) - checker.value(node, [x - h])) / (2 * h)
        assert abs(quotient - checker.value(checker.slope_of(node, 0), [x])) < 1e-50


def test_whole_numbers():
    """floor: jumps, the whole numbers it may take, its slope."""
    node = checker.Reader(["x"], "floor(x)").node()
    wide, flat = checker.Sides([(0.5, 2.5)]), checker.Sides([(1.25, 1.75)])
    assert checker.jumps_of([node]) == [node]
    assert (checker.truth(node, wide), checker.truth(node, flat)) == ({0, 2}, {1})
    assert [list(c.values()) for c in checker.choices_of(node, wide)] == [[0], [1], [2]]
    assert checker.choices_of(node, checker.Sides([(0.0, 1e300)])) == []
    assert checker.interval(node, wide) == (0, 2)
    slope = checker.slope_of(node, 0)
    assert checker.value(slope, flat) == 0
    assert not checker.value(slope, wide).is_finite()
    assert checker.jumps_of([slope]) == [slope]
    assert checker.unbent(node, flat) == ("num", (), fmpq(1))
    assert not checker.value(node, [acb(arb(1, 0.1), arb(0, 0.1))]).is_finite()
    mod = checker.Reader(["x", "y"], "mod(x, y)").node()
    assert checker.value(mod, [arb(-7), arb(2)]) == 1
    assert checker.value(mod, [arb(7), arb(-2)]) == -1


JUMPS = {
    "floor(x1)": 0.5,
    "round(x1)": 0.5,
    "x1 - mod(x1, 1)": 0.5,
    "sign(x1 - 0.3)": 1.5,
    "2*floor(x1*x1)": 1.5,
    "ceil(x1)": 0.5,
}


@pytest.mark.parametrize("text", JUMPS)
def test_claims_about_jumps(tmp_path, text):
    """T = 0.5 on [0.1, 1.2]; of slopes, beside the margin."""
    folder = by_hand(tmp_path / "f", "x1", [(0.1, 1.2)], gate_layer(numbers(0.5), 1), 3.0)
    node = checker.Reader(["x1"], text).node()
    most = max(abs(0.5 - float(checker.value(node, [arb(x)]))) for x in (0.1, 0.2, 0.4, 0.6, 1.1))
    for n, (bound, verdict) in enumerate(((1.001 * most, "VALID"), (0.98 * most, "INVALID"))):
        found = check(forged(folder, tmp_path / f"g{n}", lambda r, b=bound: r | {"bound": b, "lower": 0.0},
                             target=lambda t: t | {"formula": text}))  # fmt: skip
        assert found.verdict == verdict, str(found)
    for margin, verdict in ((0.05, "VALID"), (0.0, "NOT CHECKABLE")):
        slope = {"slope": {"tolerance": 1.0, "bound": 1e-9, "observed": 0.0}}
        found = check(forged(folder, tmp_path / f"s{margin}", lambda r, m=margin, s=slope: r | s | {"margin": m},
                             target=lambda t, m=margin: t | {"formula": text, "margin": m}))  # fmt: skip
        assert found.verdict == verdict, str(found)
