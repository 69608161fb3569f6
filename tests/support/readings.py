"""Every reading of a function of one variable, held against values by another way (`formula_cases`), with no slack.

`READINGS` has them by name: each takes `Cases` of a function and gives a `Tally`. Cases are arguments and boxes where the
function is plain, steep, near the ends of its domain, at its poles and turning points, tiny, huge, or not defined.
"""

import itertools
import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from flint import acb, arb, ctx

from enclosing import follows
from formula_cases import SINGULAR, complex_value, value_at
from onelayer.formula import Formula, enclose, evaluate, gradient, interval, parse
from onelayer.formula.complex_rectangles import enclose_rectangles
from onelayer.formula.demands import key_of
from onelayer.formula.float_bounds import FUNCTION, SMALLEST, BoundedAlgebra, evaluate_bounded
from onelayer.formula.functions import FUNCTIONS, NOWHERE
from onelayer.formula.record import Valley
from onelayer.formula.taylor.axes import axis_coefficients
from onelayer.formula.taylor.formula import TaylorAlgebra
from onelayer.formula.taylor.series import Space
from onelayer.formula.tree import Call, Variable

BORDERS = [0.0, 1.0, -1.0, 4.49, 4.4934, -4.4934, 2.0816, 0.01, -0.01, 0.4999999, -0.5, 1.5, -1.5, math.pi, -math.pi]
BORDERS += [
    math.pi / 2,
    700.0,
    -700.0,
    745.2,
    -745.2,
    -716.0,
    1e300,
    -1e300,
    5e-324,
    -5e-324,
    1e-300,
    0.01 - 1e-9,
    30.0,
]
ACROSS = [
    (4.2, 6.2),
    (-6.5, -4.3),
    (2.0, 8.0),
    (-1.0, 0.5),
    (3.0, 3.3),
    (4.49, 4.5),
    (7.0, 8.5),
    (-12.0, 1.0),
    (0.0, 1.0),
]
SHARES = (0.0, 0.1, 0.3, 0.5, 0.77, 0.9, 1.0)
ORDER = len(SHARES) - 1
TORCH = 64  # units in the last place; nothing is proved about torch
FAR = {f"zeta{n}": 1e9 for n in range(1, 6)}  # flint's series does not end in time beyond
WIDTHS = (0.0, 1e-12, 1e-6, 1e-3, 0.03, 0.3, 2.0)


@dataclass
class Tally:
    """How much was compared, how many enclosures were finite, what was wrong, the largest share of a bound that was used."""

    cases: int = 0
    finite: int = 0
    worst: float = 0.0
    wrong: list = field(default_factory=list)

    def require(self, good, *place):
        self.cases += 1
        if not good:
            self.wrong.append(place)

    def within(self, value, low, high, *place):
        """A ball is not proved to lie outside [low, high]."""
        self.require(not (value < low or value > high), *place, value, low, high)
        middle, half = (float(low) + float(high)) / 2, (float(high) - float(low)) / 2
        if 0 < half < math.inf:
            self.worst = max(self.worst, min(abs(float(value) - middle) / half, 1.0))

    def near(self, value, found, error, *place):
        """A ball is not proved to be farther from a float than the error."""
        self.within(value - arb(found) if math.isfinite(found) else arb("inf"), -error, error, *place, found)


def ends_of(f):
    """Where something may happen: ends of the domain, poles, the valley."""
    domain, found = f.domain, [*f.singular]
    if domain:
        found += [end for end in (domain.lo, domain.hi, domain.without) if end is not None and math.isfinite(end)]
    return sorted({*found, *((f.shape.left, f.shape.right) if isinstance(f.shape, Valley) else ())})


def some_inside(f, rng, count):
    """Arguments in the domain, some very near its ends."""
    lo, hi = (f.domain.lo, f.domain.hi) if f.domain else (-math.inf, math.inf)
    away = 10.0 ** rng.uniform(-16, 2.5, count)
    if math.isfinite(lo) and math.isfinite(hi):
        away = np.where(rng.random(count) < 0.5, rng.random(count), 10.0 ** rng.uniform(-16, 0, count)) * (hi - lo)
    from_below = math.isfinite(lo) and (not math.isfinite(hi) or rng.random(count) < 0.5)
    sign = rng.choice([-1.0, 1.0], count)
    both = np.where(from_below, (lo if math.isfinite(lo) else 0.0) + away, (hi if math.isfinite(hi) else 0.0) - away)
    return (both if math.isfinite(lo) or math.isfinite(hi) else sign * away).tolist()


def arguments(f, rng, count):
    """Borders, the ends of the domain and what lies beside them, then numbers of all sizes."""
    found = list(BORDERS)
    for end in ends_of(f):
        found += [end, math.nextafter(end, math.inf), math.nextafter(end, -math.inf)]
        found += [end + s * 2.0**-k for s in (1, -1) for k in (4, 16, 30, 45)]
    spread = rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-20, 8, count)
    parts = spread[: count // 3], rng.uniform(-8, 8, count // 3), some_inside(f, rng, count - 2 * (count // 3))
    return [*found, *np.concatenate(parts).tolist()]


def boxes(f, rng, count):
    """Intervals around arguments, from points to wide ones, half of them cut to the domain."""
    lo, hi = (f.domain.lo, f.domain.hi) if f.domain else (-math.inf, math.inf)
    some = [x for x in BORDERS if abs(x) not in (716.0, 745.2)] + [
        x for end in ends_of(f) for x in (end, end + 1e-9, end - 0.25)
    ]
    found = list(ACROSS)
    for x in [*some, *arguments(f, rng, count)[-count:]]:
        width = float(rng.choice(WIDTHS)) * (max(1.0, abs(x) * (abs(x) > 1e9)) if rng.random() < 0.7 else abs(x))
        low, high = (x, x + width) if rng.random() < 0.5 else (x - width, x)
        if rng.random() < 0.7:
            low, high = max(low, lo), min(high, hi)
        found.append((low, high) if low <= high else (x, x))
    return found


def points(low, high):
    """Numbers of [low, high], without repetition."""
    return sorted({min(max(low + t * (high - low), low), high) for t in SHARES})


class Cases:
    """Arguments and boxes of a function, or of a formula of x1, with its values by another way: once for all readings."""

    def __init__(self, name, seed=0, points=45, sides=18, every=1, bits=400):
        self.function, self.bits = FUNCTIONS.get(name) or replace(FUNCTIONS["exp"], name=name), bits
        self.formula = (
            Formula(f"{name}(x1)", ("x1",), (Call(name, (Variable(1),)),)) if name in FUNCTIONS else parse(name)
        )
        (self.tree,) = self.formula.outputs
        self.rng = np.random.default_rng(seed)
        far = FAR.get(name, math.inf)
        self.x = [x for x in arguments(self.function, self.rng, points)[::every] if abs(x) < far]
        self.boxes = [box for box in boxes(self.function, self.rng, sides)[::every] if max(map(abs, box)) < far]
        self.lower, self.upper = (np.array([[box[end]] for box in self.boxes]) for end in (0, 1))

    def value(self, x):
        return value_at(self.tree, [x], self.bits)

    @cached_property
    def exact(self):
        return [self.value(x) for x in self.x]

    @cached_property
    def inside(self):
        """For every box pairs of a number in it and the value there."""
        return [[(x, self.value(x)) for x in points(*box)] for box in self.boxes]

    def known(self):
        """Arguments with a value."""
        return [(x, y) for x, y in zip(self.x, self.exact, strict=True) if isinstance(y, arb)]

    def pairs(self):
        """(box, a, b, φ(a), φ(b)) of neighbours in every box."""
        for box, found in zip(self.boxes, self.inside, strict=True):
            some = [(x, y) for x, y in found if isinstance(y, arb)]
            for (a, y), (b, z) in itertools.pairwise(some):
                yield box, a, b, y, z


def column(x):
    return np.array(x)[:, None]


def numbers(c):
    """NumPy: within ULPS units in the last place, through balls within one; not finite where there is no value."""
    t, share = Tally(), FUNCTION if c.function.array else FUNCTION / 8
    found = evaluate(c.formula, column([*c.x, math.nan, math.inf, -math.inf]))[:, 0].tolist()
    t.require(math.isnan(found[-3]), "nan")
    for x, exact, value in zip(c.x, c.exact, found, strict=False):
        if isinstance(exact, str):
            t.require(not math.isfinite(value), x, value, exact)
        elif exact is not None and abs(exact) < 1e300:  # beyond, steps on the way may overflow
            t.near(exact, value, float(abs(exact)) * share + SMALLEST, x)
            t.finite += 1
    return t


def tensors(c):
    """torch, in both float types; nothing is promised, but it is the same function."""
    t = Tally()
    for dtype, largest in ((torch.float64, 1e300), (torch.float32, 1e36)):
        x, kind = torch.tensor(c.x[::2], dtype=dtype), torch.finfo(dtype)
        found = evaluate(c.formula, x[:, None])[:, 0].tolist()
        for at, value in zip(x.tolist(), found, strict=True):
            exact = c.value(at) if math.isfinite(at) else None
            if isinstance(exact, arb) and abs(exact) < largest:
                t.near(exact, value, TORCH * kind.eps * float(abs(exact)) + kind.tiny, at, dtype)
                t.finite += 1
    return t


def autograd(c):
    """torch's slopes against small differences, to nine digits; not where slopes are infinite nearby."""
    t, f = Tally(), c.function
    if f.slope == NOWHERE:
        return t
    plain = [x for x, _ in c.known()[::2] if 1e-30 < abs(x) < 50 and all(abs(x - end) > 1e-6 for end in f.singular)]
    x = torch.tensor(plain, dtype=torch.float64, requires_grad=True)
    with np.errstate(all="ignore"):
        evaluate(c.formula, x[:, None]).sum().backward()
    for at, slope in zip(x.tolist(), x.grad.tolist(), strict=True):
        with ctx.workprec(c.bits):
            step = arb(2) ** -60 * min(1, abs(at))
            y = [c.value(arb(at) + s * step) for s in (-1, 0, 1)]
            if not all(isinstance(value, arb) for value in y):
                continue
            exact, bend = (y[2] - y[0]) / (2 * step), (y[2] - 2 * y[1] + y[0]) / step
        if exact.rad() < 1e-12 * (1 + abs(exact)) and not abs(bend) > 1e-9 * (1 + abs(exact)):  # else a kink, or a jump
            t.near(exact, slope, 1e-9 * max(1.0, float(abs(exact))), at)
            t.finite += 1
    return t


def errors(c):
    """Numbers with errors: the value is no farther than the error."""
    t = Tally()
    values, bounds = (a[:, 0].tolist() for a in evaluate_bounded(c.formula, column([*c.x, math.nan])))
    t.require(math.isinf(bounds[-1]), "nan")
    for x, exact, value, error in zip(c.x, c.exact, values, bounds, strict=False):
        if math.isfinite(error):
            t.finite += 1
            t.require(exact != "undefined", x, value, error)
            if isinstance(exact, arb):
                t.near(exact, value, error, x)
    return t


class Off(BoundedAlgebra):
    """Arguments that are off by e already."""

    def __init__(self, x, e):
        super().__init__(x)
        self.e = e

    def variable(self, index):
        return super().variable(index)[0], self.e


def spreads(c):
    """How far errors of the argument move a value."""
    t, x = Tally(), np.array(c.x)
    relative = np.maximum(np.abs(x), 1e-300) * 10.0 ** c.rng.uniform(-17, 0, len(x))
    e = np.where(c.rng.random(len(x)) < 0.6, relative, c.rng.choice([0.0, 5e-324, 1e-300, 1e-6, 0.1, 1.0], len(x)))
    with np.errstate(all="ignore"):
        ((values, bounds),) = c.formula.tape.run(Off(column(x), e))
    for at, off, value, error in zip(c.x, e.tolist(), values.tolist(), (bounds * (1 + 2.0**-50)).tolist(), strict=True):
        if not (math.isfinite(value) and math.isfinite(error)):
            continue
        t.finite += 1
        for share in (-1.0, -0.5, 0.25, 1.0):
            with ctx.workprec(c.bits):
                exact = c.value(arb(at) + arb(off) * share)
            t.require(exact != "undefined", at, off, share)
            if isinstance(exact, arb):
                t.near(exact, value, error, at, off, share)
    return t


def ranges(c):
    """Enclosures on boxes; strict ones prove that there is a value everywhere."""
    t = Tally()
    for box, found in zip(c.boxes, c.inside, strict=True):
        plain, strict = (enclose(c.formula, [interval(*box)], strict=way)[0] for way in (False, True))
        t.require(plain.is_finite() or not strict.is_finite(), box)
        if not plain.is_finite():
            continue
        t.finite += 1
        for x, exact in found:
            t.require(exact != "undefined" and not (exact == "outside" and strict.is_finite()), box, x)
            if isinstance(exact, arb):
                t.within(exact, plain.lo, plain.hi, box, x)
    return t


def slopes(c):
    """Enclosed slopes hold all difference quotients."""
    t, bounds = Tally(), {}
    for box in c.boxes:
        _, ((bounds[box],),) = gradient(c.formula, [interval(*box)])
        t.finite += bounds[box].is_finite()
    for box, a, b, y, z in c.pairs():
        if bounds[box].is_finite():
            with ctx.workprec(c.bits):
                t.within((z - y) / (arb(b) - arb(a)), bounds[box].lo, bounds[box].hi, box, a, b)
    return t


def models(c):
    """Taylor models: bounds, the range of the model, and its polynomial."""
    t = Tally()
    with np.errstate(all="ignore"):
        found = c.formula.tape.run(TaylorAlgebra(Space(c.lower, c.upper)))[0]
        low, high = found.model.range()
    t.finite = int(np.isfinite(found.low).sum())
    for b, (box, values) in enumerate(zip(c.boxes, c.inside, strict=True)):
        bounded = math.isfinite(found.low[b]) and math.isfinite(found.high[b])
        for x, exact in values:
            t.require(not (bounded and exact == "undefined"), box, x)
            if isinstance(exact, arb):
                t.within(exact, float(found.low[b]), float(found.high[b]), box, x)
                t.within(exact, float(low[b]), float(high[b]), box, x)
                t.require(follows(found.model, b, [x], exact), box, x, "model")
    return t


def coefficients(c):
    """Taylor coefficients on boxes hold divided differences, which are φ^(k)/k! somewhere between."""
    t, half = Tally(), (c.upper / 2 - c.lower / 2) * (1 + 2.0**-51)
    ((low, high),) = axis_coefficients(c.formula, c.lower, c.upper, half, ORDER)
    t.finite = int(np.isfinite(high[-1]).sum())
    for b, (box, values) in enumerate(zip(c.boxes, c.inside, strict=True)):
        with ctx.workprec(c.bits):
            half_width = (arb(box[1]) - arb(box[0])) / 2
            for k, quotient in enumerate(divided(values)):
                if math.isfinite(high[k, 0, b]):
                    t.within(quotient * half_width**k, float(low[k, 0, b]), float(high[k, 0, b]), box, k)
    return t


def divided(values):
    """Divided differences of orders 0, 1, … of the first numbers, as many as have values."""
    rows, known = [], list(itertools.takewhile(lambda pair: isinstance(pair[1], arb), values))
    for k, (x, y) in enumerate(known):
        row = [y]
        for j in range(k):
            row.append((row[j] - rows[k - 1][j]) / (arb(x) - arb(known[k - 1 - j][0])))
        rows.append(row)
        yield row[k]


def rectangles(c):
    """Complex rectangles: finite only around boxes without a singularity, and then they hold the values."""
    t, f = Tally(), c.function
    im = np.array([c.rng.choice([0.0, 1e-9, 0.01, 0.3, 1.2, 3.3, b - a]) for a, b in c.boxes])
    ((low, high, across),) = enclose_rectangles(c.formula, [(c.lower[:, 0], c.upper[:, 0], im)])
    low, high, across = (np.broadcast_to(end, im.shape).tolist() for end in (low, high, across))
    for b, (box, values) in enumerate(zip(c.boxes, c.inside, strict=True)):
        if not all(map(math.isfinite, (low[b], high[b], across[b]))):
            continue
        t.finite += 1
        for z in SINGULAR.get(f.name, ()):
            t.require(not (box[0] <= z.real <= box[1] and abs(z.imag) <= im[b]), box, im[b], z)
        for (x, exact), share in zip(values, itertools.cycle((1.0, 0.625, 0.0)), strict=False):
            t.require(not isinstance(exact, str), box, x, exact)
            with ctx.workprec(c.bits):
                value = complex_value(c.tree, [acb(arb(x), arb(float(im[b])) * share)])
            if value.is_finite():
                t.within(value.real, low[b], high[b], box, x, share)
                t.within(value.imag, -across[b], across[b], box, x, share)
    return t


def domains(c):
    """The domain, what trees demand, and enclosures of points agree on where there is a value."""
    t, f = Tally(finite=1), c.function
    t.require((key_of(c.tree) is not None) == f.partial, "demands")
    for x, exact in zip(c.x, c.exact, strict=True):
        there = f.domain is None or bool(f.domain.has(x))
        (strict,) = enclose(c.formula, [x], strict=True)
        t.require(not strict.is_finite() or not isinstance(exact, str), x, strict)
        t.require(exact is None or there == isinstance(exact, arb), x, there)
        t.require(exact != "outside" or f.natural is not None, x)
    return t


def facts(c):
    """How steep a function is at most, and how its values move."""
    t, f = Tally(finite=1, cases=1), c.function
    for box, a, b, y, z in c.pairs():
        with ctx.workprec(c.bits):
            moved, way = abs(z - y), arb(b) - arb(a)
            if math.isfinite(f.steepest):
                t.within(moved / way, 0.0, f.steepest, box, a, b, "steepest")
            if f.holder:
                t.within(moved / (way.log() * f.holder[1]).exp(), 0.0, f.holder[0], box, a, b, "holder")
    return t


READINGS = {
    reading.__name__: reading
    for reading in (
        numbers, tensors, autograd, errors, spreads, ranges, slopes, models, coefficients, rectangles, domains, facts,
    )
}  # fmt: skip
