"""What the checker proves of T − f on a box, against T − f itself in 320 bits: random layers, adversarial weights, no slack."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from checking import checker

FORMULAS = {  # by number of variables
    1: ["sin(9*x1)", "1/(1.02 - x1)", "abs(x1 - 0.3)*exp(x1)", "sqrt(x1)"],
    2: ["exp(-4*(x1 - 0.3)**2 - 9*(x2 + x1)**2)", "1/(1 + 16*(x1**2 + x2**2))", "max(x1, x2**2)*cos(x1)", "tanh(8*x1 - 4*x2)"],
    3: ["exp(-x1*x2)*sin(3*x3)", "sqrt(0.2 + x1*x2*x3)", "x1/(0.3 + x2*x3)", "exp(x1 + x2**2 - x3)*x1"],
}  # fmt: skip


def head(rng, D, outs, sharp, kind):
    """Scores and values of a head: plain, or as nasty as floats allow."""
    n = int(rng.integers(2, 9))
    scores, values = rng.normal(size=(n, D + 1)) * sharp, rng.normal(size=(outs, n, D + 1))
    if kind == "huge values that cancel":
        values = 1e7 * (1 + 1e-6 * values)
    elif kind == "almost equal keys":
        scores = scores[:1] * (1 + 1e-9 * rng.normal(size=(n, 1)))
    elif kind == "one token leads":
        scores[0, 0] += 30 * sharp
    elif kind == "the same token twice":
        scores[1], values[:, 1] = scores[0], -values[:, 0]
    elif kind == "weights of one coordinate":
        scores[:, 1 + int(rng.integers(D)) :] = scores[0, -1]
        scores[:, 1] = scores[:, 0]
    elif kind == "constant values":
        values[:, :, 1:] = 0
    balls = [[arb(float(k)) for k in row] for row in scores]
    return checker.Head(balls, [[[arb(float(k)) for k in v] for v in row] for row in values], [], [])


KINDS = [
    "plain",
    "huge values that cancel",
    "almost equal keys",
    "one token leads",
    "the same token twice",
    "weights of one coordinate",
    "constant values",
]


def case(seed, D, heads, kind, outs=1):
    """(a part, what it is made of)."""
    rng = np.random.default_rng(seed)
    sharp = float(rng.choice([0.1, 2.0, 12.0, 150.0]))
    formulas = [FORMULAS[D][int(rng.integers(len(FORMULAS[D])))] for _ in range(outs)]
    nodes = [checker.Reader([f"x{i + 1}" for i in range(D)], text).node() for text in formulas]
    g = SimpleNamespace(
        lines=[[arb(float(v)) for v in rng.normal(size=D + 1)] for _ in range(outs)],
        heads=[head(rng, D, outs, sharp, kind) for _ in range(heads)],
        terms=[[(arb(float(rng.normal())), node)] for node in nodes],
    )
    domain = checker.Domain([(0.0, 1.0)] * D, None, 0.0)
    with ctx.workprec(checker.READING):
        return checker.Part(g, range(D), True, domain, 10.0 ** float(rng.integers(-7, 1))), g, rng


def true(g, x):
    """T − f at a point, straight from its definition."""
    found = [checker.at(line, x) for line in g.lines]
    for h in g.heads:
        e = [checker.at(s, x).exp() for s in h.scores]
        for o, row in enumerate(h.values):
            found[o] += sum((w * checker.at(v, x) for w, v in zip(e, row, strict=True)), arb(0)) / sum(e, arb(0))
    return [t + sum((k * checker.value(n, x) for k, n in row), arb(0)) for t, row in zip(found, g.terms, strict=True)]


def boxes(rng, D):
    """The whole domain, and ever smaller boxes in it, thin ones too."""
    yield [(0.0, 1.0)] * D
    for k in range(1, 7):
        sides = rng.uniform(0, 1, size=D) * 2.0 ** -rng.integers(k, 2 * k, size=D).astype(float)
        starts = rng.uniform(0, 1 - sides) * (rng.uniform(size=D) < 0.7)
        yield [(float(a), float(a + s)) for a, s in zip(starts, sides, strict=True)]


def missed(part, g, rng, effort):
    """(how often T − f is seen outside its enclosure, how many enclosures are finite)."""
    bad, finite = 0, 0
    for box in boxes(rng, len(part.box)):
        with ctx.workprec(checker.WORKING):
            leaf = part.enclose(box, effort)
        finite += max(leaf.high) < math.inf
        points = [rng.choice([0.0, 1.0, rng.uniform()], size=len(box)) for _ in range(12)] + list(
            rng.uniform(size=(12, len(box)))
        )
        with ctx.workprec(checker.READING):
            rows = [
                true(g, [arb(a) + (arb(b) - arb(a)) * arb(float(t)) for t, (a, b) in zip(p, box, strict=True)])
                for p in points
            ]
        for o, column in enumerate(zip(*rows, strict=True)):
            bad += sum(bool(v < leaf.low[o] or v > leaf.high[o]) for v in column)
            bad += not (leaf.seen[o][1] <= leaf.high[o] and leaf.seen[o][0] >= leaf.low[o])
    return bad, finite


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("D", [1, 2, 3])
def test_the_difference_lies_in_its_enclosure(D, heads, kind):
    some = 0
    for seed in range(4):
        part, g, rng = case(100 * D + 10 * heads + seed, D, heads, kind, outs=1 + seed % 2)
        assert part.cleared == (heads == 1)
        bad, finite = missed(part, g, rng, seed % len(checker.EFFORTS))
        assert bad == 0
        some += finite
    assert some


@pytest.mark.parametrize("what", ["truncation", "denominator", "dropped"])
def test_it_is_seen_if_a_summand_is_forgotten(monkeypatch, what):
    """The test above has teeth: without the bound on truncation, with W = 1, or without what was dropped, points are outside."""
    if what == "truncation":
        monkeypatch.setattr(
            checker.Part,
            "degrees",
            lambda self, curves, enough: ([3] * len(curves[0]), [[0.0] * len(curves)] * len(curves[0]), None),
        )
    elif what == "denominator":
        monkeypatch.setattr(checker.Shape, "quotients", lambda self: [a + self.delta for a in self.P])
    else:
        plain = checker.Shape.of.__func__
        monkeypatch.setattr(checker.Shape, "of", classmethod(lambda cls, t, s, e: plain(cls, t, s, [0.0, 0.0])))
    bad = 0
    for seed in range(6):
        part, g, rng = case(seed, 2, 1, "plain")
        bad += missed(part, g, rng, 0)[0]
    assert bad


def exactly(tensor, sizes, point):
    """A polynomial with Bernstein coefficients at a rational point."""
    rows = [fmpq(*v.as_integer_ratio()) for v in tensor]
    for n, x in zip(sizes, point, strict=True):
        weights = [math.comb(n - 1, k) * x**k * (1 - x) ** (n - 1 - k) for k in range(n)]
        step = len(rows) // n
        rows = [sum((weights[k] * rows[k * step + j] for k in range(n)), fmpq(0)) for j in range(step)]
    return rows[0]


@pytest.mark.parametrize("sizes", [(1,), (9,), (4, 5), (2, 6, 3)])
@pytest.mark.parametrize("under", [False, True])
def test_quotients_of_polynomials_are_bounded(sizes, under):
    rng = np.random.default_rng(len(sizes))
    for seed in range(8):
        P = rng.normal(size=math.prod(sizes)) * 10.0 ** rng.integers(-8, 8) + rng.choice([-1.0, 0.0, 1.0]) * 1e3
        Q = rng.uniform(-0.02 if seed % 2 else 0.05, 3, size=math.prod(sizes)) if under else np.zeros(0)
        shape = checker.Shape.of((P.tolist(), Q.tolist()), sizes, (0.0, 0.0))
        top, rises = shape.ceiling(-math.inf, 1e-9)
        points = [[fmpq(int(k), 97) for k in rng.integers(0, 98, size=len(sizes))] for _ in range(40)]
        values = [exactly(shape.P, sizes, x) / (exactly(shape.Q, sizes, x) if under else 1) for x in points]
        assert rises <= top
        if top < math.inf:
            assert max(values) <= fmpq(*top.as_integer_ratio())
            assert top - rises <= 1e-6 * (1 + abs(top)) or under or len(sizes) > 1
        pieces = [half for axis in range(len(sizes)) for half in shape.halves(axis)]
        for piece, at in zip(pieces, [(axis, end) for axis in range(len(sizes)) for end in (0, 1)], strict=True):
            for x in points[:4]:
                y = [(t + at[1]) / 2 if i == at[0] else t for i, t in enumerate(x)]
                off = abs(exactly(piece.P, sizes, x) - exactly(shape.P, sizes, y))
                assert off <= fmpq(*shape.delta.as_integer_ratio()) / 400 * 2


def test_numbers_that_would_overflow_have_no_shape():
    assert checker.Shape.of(([1e200, 1.0], []), (2,), (0.0, 0.0)) is None
    assert checker.Shape.of(([math.nan, 1.0], []), (2,), (0.0, 0.0)) is None
    assert checker.Shape.of(([1.0, 1.0], []), (2,), (math.inf, 0.0)) is None


def test_what_is_settled_is_the_same_function():
    rng = np.random.default_rng(0)
    for D, texts in FORMULAS.items():
        for text in [*texts, "exp(-((9*x1-2)**2)/4 - 2 + pi*x1/3)*2**0.5"]:
            node = checker.Reader([f"x{i + 1}" for i in range(D)], text).node()
            for x in rng.uniform(size=(5, D)):
                balls = [arb(float(v)) for v in x]
                one, two = checker.value(node, balls), checker.value(checker.settled(node, D), balls)
                assert one.overlaps(two)
                assert two.is_finite()
    text = "exp(-((9*x1-2)**2 + (9*x2-2)**2)/4)"
    split = checker.settled(checker.Reader(["x1", "x2"], text).node(), 2)
    assert split[0] == "mul"
    assert sorted(len(checker.variables(part)) for part in split[1]) == [0, 1, 1]
