"""The independent checker on composed layers: true folders are valid, forged ones never, and hints are only hints."""

import json
import math
import random
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch

import onelayer as ol
from checking import check, checker, forged
from compositions import composition
from onelayer.approximation import Approximation
from onelayer.construction.composed import choice
from onelayer.layer.composed_reading import network_of
from onelayer.layer.facts import Facts

UNIT = [(1, 2)] * 3
RUNGE = "1/(1 + 16*((x1-0.5)**2 + (x2-0.5)**2 + (x3-0.5)**2))"
GAUSS = "exp(-6.25*((x1-0.5)**2 + (x2-0.5)**2 + (x3-0.5)**2 + (x4-0.5)**2))"
TRUE = {
    "exp of logs": ("x1*x2/x3", UNIT, 0.02, {}),
    "negative factor": ("-x1*x2*x3/3", {"x1": (-2, -1), "x2": (1, 3), "x3": (1, 2)}, 0.05, {}),
    "square root at 0": ("sqrt(x1**2 + x2**2)", [(0, 1)] * 2, 0.02, {}),
    "root of logs": ("sqrt(x1*x2/(x3 + 1))", UNIT, 0.02, {}),
    "square of a sine": ("sin(x1*x2)**2", [(0, 2)] * 2, 0.05, {}),
    "shifted factor": ("x1*x2*cos(x3)", {"x1": (1, 3), "x2": (1, 3), "x3": (0, 3)}, 0.3, {}),
    "several terms": ("exp(-x1*x2) + x1*x3/x2 + x3", UNIT, 0.05, {}),
    "two outputs": ("x1*x2/x3; sqrt(x1**2 + x2**2 + x3**2)", UNIT, 0.05, {}),
    "constant term": ("3*pi/2 - x1*x2*x3", UNIT, 0.1, {}),
    "nested quotient": ("x1*x2/(x3*(x4 + x2)) + 1/x4", [(1, 2)] * 4, 0.1, {}),
    "logarithm": ("log(x1*x2 + x3)", UNIT, 0.02, {}),
    "root below": ("x1/sqrt(1 - x2**2/x3**2)", {"x1": (1, 5), "x2": (1, 2), "x3": (3, 10)}, 0.05, {}),
    "float32": ("x1*x2/x3", UNIT, 0.02, {"dtype": "float32"}),
    "sum in a quotient": (RUNGE, [(0, 1)] * 3, 1e-3, {}),
    "sum in an exponential": (GAUSS, [(0, 1)] * 4, 1e-3, {}),
    "float32, several terms": ("x1*x2*x3 + x1/x2 - sqrt(x1*x3)", UNIT, 0.1, {"dtype": "float32"}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of composed layers, built when first asked for, also where heads alone would be smaller."""
    root, made = tmp_path_factory.mktemp("composed"), {}

    def folder(name):
        if name not in made:
            formula, domain, tolerance, options = TRUE[name]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(choice, "polished", lambda *_: [])
                patch.setattr(choice, "_interacting", lambda _: math.inf)
                made[name] = ol.build(formula, domain, tolerance, **options).save(root / name.replace(" ", "-"))
        return made[name]

    return folder


def record_of(folder):
    return json.loads((folder / "certificate.json").read_text())


@pytest.mark.one_in(7)
@pytest.mark.parametrize("name", TRUE)
def test_a_true_folder_is_valid(folders, name):
    record, found = record_of(folders(name)), check(folders(name))
    assert record["verdict"] == "CERTIFIED"
    assert record["evidence"]["lanes"]
    assert found.verdict == "VALID", str(found)
    assert 0.9 * record["observed"] <= found.bound <= record["bound"]


def hinted(n=0, **changes):
    """An edit of the hint about lane n."""

    def edit(record):
        lanes = record["evidence"]["lanes"]
        lanes[n] |= {key: change(lanes[n][key]) for key, change in changes.items()}
        return record

    return {"certificate": edit}


def nudged(name, index, by):
    def edit(tensors):
        tensors[name][index] += by

    return {"weights": edit}


def swapped(record):
    first, second = record["evidence"]["lanes"][:2]
    first["inner"], second["inner"] = second["inner"], first["inner"]
    return record


def without(record, n=-1):
    record["evidence"]["lanes"].pop(n)
    return record


def below(record, share=0.98):
    """A bound below the truth, and nothing else in the record that contradicts it."""
    return record | {"bound": share * record["lower"], "lower": 0.0, "lower_point": None, "observed": 0.0}


def formula(text):
    return {"target": lambda t: t | {"formula": text}}


def loud(tensors):
    """The same function, but the read-out adds and subtracts 2^20: in float32 that rounds away more than is claimed."""
    tensors["b_2"][1], tensors["b_2"][2] = 2.0**20, -(2.0**20)
    tensors["W_R"][1:3, 0] = 1.0


FALSE = {
    "rounding of the network": ("float32", {"weights": loud}),
    "bound below the truth": ("exp of logs", {"certificate": below}),
    "bound below the truth, root": ("square root at 0", {"certificate": below}),
    "bound below the truth, several": ("several terms", {"certificate": below}),
    "bound below the truth, float32": ("float32", {"certificate": below}),
    "bound just below the truth": ("sum in a quotient", {"certificate": lambda r: below(r, 0.9999)}),
    "bound just below the truth, four": ("sum in an exponential", {"certificate": lambda r: below(r, 0.9999)}),
    "knot moved by little": ("sum in a quotient", nudged("b_1", slice(None), 2e-4)),
    "value by little": ("sum in an exponential", nudged("W_2", (0, 0), 2e-4)),
    "head by little": ("sum in a quotient", nudged("W_V", (0, slice(None), 0), 1e-3)),
    "inner bound, by value": ("sum in a quotient", hinted(bound=lambda b: b / 2)),
    "knot moved": ("exp of logs", nudged("b_1", 1, 0.05)),
    "knot moved, float32": ("float32", nudged("b_1", 1, 0.05)),
    "value": ("several terms", nudged("W_2", (0, 0), 0.05)),
    "value of the other output": ("two outputs", nudged("W_2", (0, 1), 1e-3)),
    "bias": ("constant term", nudged("b_R", 0, 0.1)),
    "network bias": ("constant term", nudged("b_2", 0, 0.1)),
    "twice the coordinate": ("exp of logs", nudged("W_1", (0, 0), 1.0)),
    "second coordinate": ("two outputs", nudged("W_1", (1, 0), 1.0)),
    "head": ("exp of logs", nudged("W_V", (0, slice(None), 0), 0.05)),
    "read-out": ("exp of logs", nudged("W_R", (0, 0), 0.05)),
    "factor missing": ("exp of logs", hinted(inner=lambda t: t.replace("log(x2) + ", ""))),
    "factor twice": ("exp of logs", hinted(inner=lambda t: t + " + log(x2)")),
    "sign": ("negative factor", hinted(outer=lambda t: f"-({t})")),
    "logarithm of what is negative": ("negative factor", hinted(inner=lambda t: t.replace("-x1", "x1"))),
    "outer": ("square root at 0", hinted(outer=lambda _: "u")),
    "inner": ("square root at 0", hinted(inner=lambda t: t + " + 0.01")),
    "shift": ("exp of logs", hinted(shift=lambda s: s + 0.1)),
    "inner bound": ("exp of logs", hinted(bound=lambda b: b / 2)),
    "no inner bound": ("exp of logs", hinted(bound=lambda _: 0.0)),
    "lanes swapped": ("several terms", {"certificate": swapped}),
    "lane omitted": ("several terms", {"certificate": without}),
    "output": ("two outputs", hinted(output=lambda _: 1)),
    "no lanes": ("constant term", {"certificate": lambda r: r | {"evidence": r["evidence"] | {"lanes": []}}}),
    "no list": ("constant term", {"certificate": lambda r: r | {"evidence": r["evidence"] | {"lanes": {}}}}),
    "malformed": ("constant term", hinted(output=lambda _: True)),
    "no text": ("constant term", hinted(inner=lambda _: None)),
    "no number": ("constant term", hinted(shift=lambda _: "0")),
    "formula": ("exp of logs", formula("x1*x2/x3 + 0.02")),
    "factor in the formula": ("exp of logs", formula("1.02*x1*x2/x3")),
    "term in the formula": ("several terms", formula("exp(-x1*x2) + x1*x3/x2 + x3 + 0.03*x1")),
    "no value somewhere": ("exp of logs", formula("x1*x2/x3*(x1 - 1.5)/(x1 - 1.5)")),
    "no value, added": ("exp of logs", formula("x1*x2/x3 + log(x1 - 1.5) - log(x1 - 1.5)")),
    "wider domain": (
        "square root at 0",
        {
            "target": lambda t: t | {"upper": [1.5, 1.0], "ends": [["0", "1.5"], ["0", "1"]]},
            "certificate": lambda r: r | {"domain": "x1 in [0, 1.5], x2 in [0, 1]"},
        },
    ),
}


@pytest.mark.one_in(12)
@pytest.mark.parametrize("edit", FALSE)
def test_a_forged_folder_is_not_valid(folders, tmp_path, edit):
    name, edits = FALSE[edit]
    found = check(forged(folders(name), tmp_path / "f", **edits), seconds=20.0)
    assert found.verdict in ("INVALID", "NOT CHECKABLE"), str(found)
    assert "\n" not in found.reason


def cut_off(source, destination):
    """T = max(x1² + x2² − 1, 0) against f = x1² + x2² − 1, written as a composition that has no value where f < 0."""
    shift = record_of(source)["evidence"]["lanes"][0]["shift"] - 1.0
    numbers = {"bound": 0.02, "tolerance": 0.02, "lower": 0.0, "lower_point": None, "observed": 0.0}

    def hinge(tensors):
        for name in ("W_2", "b_1", "b_2", "b_R"):
            tensors[name].zero_()
        tensors["b_1"][0], tensors["W_2"][0, 0], tensors["W_R"][0, 0] = shift, 1.0, 1.0

    changes = {"inner": lambda t: t + " - 1", "outer": lambda _: "sqrt(u)**2", "shift": lambda _: shift}
    edits = {"certificate": lambda record: hinted(**changes)["certificate"](record) | numbers}
    return forged(source, destination, weights=hinge, **edits, **formula("x1**2 + x2**2 - 1"))


def test_a_composition_has_a_value_wherever_the_formula_has_one(folders, tmp_path):
    """√u·√u is u only where u ≥ 0; on a box around 0 its enclosure says nothing about the rest."""
    found = check(cut_off(folders("square root at 0"), tmp_path / "f"), seconds=20.0)
    assert found.verdict == "INVALID", str(found)


def test_what_a_composition_takes_roots_of():
    """A root of what may be negative is refused, unless f has the same root, and then no value there."""

    def refused(*texts):
        f, *parts = (checker.Reader(["x"], text).node() for text in texts)
        try:
            checker.defined_with(f, parts, [(-1.0, 1e-3)], lambda _: None)
        except checker.Verdict as found:
            return found.verdict == checker.UNCHECKED
        return False

    assert refused("x", "sqrt(x)**2")
    assert refused("x", "x + asin(2*x) - asin(2*x)")
    assert refused("x", "where(x**0.5 >= 0, x, 0)")
    assert refused("where(x > 0, sqrt(x), 0)", "sqrt(x)")
    assert refused("asin(2*x)", "sqrt(2*x)")
    assert not refused("sqrt(x)", "x**0.5", "x**1.5")
    assert not refused("x", "sqrt(x + 1)**2", "acos(x)", "sqrt(x**2)")


@pytest.mark.parametrize("name", ["sum in a quotient", "sum in an exponential"])
def test_the_error_of_a_lane_by_value(folders, name, monkeypatch):
    """With one δ for all values of g the bound would not be proved; and it is close to the truth."""
    record = record_of(folders(name))
    assert record["bound"] <= 1.05 * record["lower"]
    monkeypatch.setattr(checker, "SPREADS", (0,))
    found = check(folders(name))
    assert found.verdict == "NOT CHECKABLE", str(found)


@pytest.mark.parametrize("cells", [1, 7, 300])
def test_no_point_is_outside_the_spread_of_its_lane(folders, cells, monkeypatch):
    """(g, z − g) at points, with zero slack; few cells make the spread wide, not false."""
    caught, search = [], checker.search
    monkeypatch.setattr(checker, "SPREADS", (cells,))
    monkeypatch.setattr(checker, "search", lambda parts, *rest: (caught.extend(parts), search(parts, *rest))[1])
    check(folders("sum in a quotient"))
    near = caught[-1].near
    assert isinstance(caught[-1], checker.Outer)
    assert near.ends
    lane = record_of(folders("sum in a quotient"))["evidence"]["lanes"][0]
    inner = network_of(ol.load(folders("sum in a quotient")).model)[0]
    x = torch.rand(3000, 3, 1, generator=torch.Generator().manual_seed(cells), dtype=torch.float64)
    with torch.no_grad():
        z = inner(x)[:, 0, 0].numpy() + lane["shift"]
    g, width = ol.Target(lane["inner"], [(0, 1)] * 3)(x[..., 0].numpy())[:, 0], 0
    for u, e in zip(g.tolist(), (z - g).tolist(), strict=True):
        low, high = near.on(checker.exact(u), checker.exact(u))
        assert low <= checker.exact(e) <= high
        width += float((high - low) / near.delta)
    assert (width < 1.8 * len(g)) == (cells == 300)


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_a_value_lies_in_as_many_bins_as_there_are_parts(parts):
    """K ≤ g/w < K + n: all of these K count, and no other; and δ holds in any case."""
    near, rng = checker.Spread.__new__(checker.Spread), random.Random(parts)
    near.ends, near.first, near.width, near.parts = (
        [[rng.random() for _ in range(40)] for _ in range(2)],
        -20,
        0.5,
        [None] * parts,
    )
    for delta in (2, 0.6):
        near.delta = checker.exact(float(delta))
        for u in (-3.2, -3.0, 0.0, 1.75, math.nextafter(2.0, 0.0), 2.0):
            own = [K + 20 for K in range(-20, 20) if K <= u / 0.5 < K + parts]
            fall, rise = (min(max(row[k] for k in own), delta) for row in near.ends)
            found = near.on(checker.exact(u), checker.exact(u))
            assert found == (-checker.exact(float(fall)), checker.exact(float(rise)))


@pytest.mark.parametrize("seed", range(10))
def test_how_far_a_polyline_moves(seed):
    """H(u + e) − H(u), in rationals, with zero slack."""
    rng, exact = random.Random(seed), checker.exact
    units = sorted((exact(rng.uniform(-1, 1)), exact(rng.gauss(0, 1))) for _ in range(5))
    ends = sorted(exact(rng.gauss(0, 0.2)) for _ in range(2))
    near = SimpleNamespace(on=lambda a, b: tuple(ends))
    H = checker.BentLine((exact(1.0), -knot, worth, 0) for knot, worth in units)
    lane = checker.Lane(0, checker.ONE, checker.ONE, H, exact(1.0), None, [])
    outer = checker.Outer(0, [(-1.0, 1.0)], 1, lane, near)
    cuts = [exact(-1.0), *(k for k, _ in units), exact(1.0)]
    for n, (a, b) in enumerate(pairwise(cuts)):
        b = a + (b - a) * exact(rng.random())
        low, high = outer.moved(n, a, b)
        for u in (a, b, a + (b - a) * exact(rng.random())):
            for e in (*ends, *(ends[0] + (ends[1] - ends[0]) * exact(rng.random()) for _ in range(20))):
                assert low <= sum(v * (max(u + e - k, 0) - max(u - k, 0)) for k, v in units) <= high
        low, high = outer.moved(n, a, a)
        seen = [sum(v * (max(a + e - k, 0) - max(a - k, 0)) for k, v in units) for e in ends]
        assert low <= min(seen) <= max(seen) <= high


def test_sums_of_the_largest():
    rng = random.Random(0)
    for _ in range(50):
        one, two = ([rng.choice([-math.inf, rng.random()]) for _ in range(rng.randint(1, 8))] for _ in range(2))
        sums = [
            max((a + b for i, a in enumerate(one) for j, b in enumerate(two) if i + j == k), default=-math.inf)
            for k in range(len(one) + len(two) - 1)
        ]
        assert checker.largest_sums(one, two) == sums


@pytest.mark.long
def test_another_way_to_write_the_same_is_still_valid(folders, tmp_path):
    for n, edit in enumerate(
        [
            formula("x1*(x2/x3)"),
            formula("1/(x3/(x2*x1))"),
            hinted(outer=lambda _: "exp(u/2)**2"),
            hinted(inner=lambda _: "log(x1*x2) - log(x3)"),
        ]
    ):
        found = check(forged(folders("exp of logs"), tmp_path / str(n), **edit))
        assert found.verdict == "VALID", str(found)


EQUAL = [
    ("x*y/z", "exp(log(x) + log(y) + log(1/z))"),
    ("1/(x*(y + z))", "exp(-log(x) - log(y + z))"),
    ("x*cos(y)", "exp(log(x) + log(cos(y) + 2)) - 2*x"),
    ("sqrt(x*y)", "sqrt(1*exp(log(x) + log(y)))"),
    ("(x + y)/(x + y)**2", "1/(x + y)"),
    ("x*exp(y)*exp(z/2)", "exp(log(x) + y + z/2)"),
    ("sqrt(x)*sqrt(x)*x**2", "x**3"),
    ("(x + y)**2*z", "x**2*z + 2*x*y*z + z*y**2"),
    ("x/(2*x + 2*y)", "x/2/(x + y)"),
]
DIFFERENT = [
    ("x*y", "x + y"),
    ("sqrt(x**2)", "x"),
    ("sqrt(x*y)", "sqrt(x)*y"),
    ("sqrt(x**2*y)", "x*sqrt(y)"),
    ("exp(x + y)", "exp(x) + exp(y)"),
    ("log(x*y)", "log(x) - log(y)"),
    ("exp(2*log(x))", "x**3"),
    ("exp(log(x)**2)", "x**2"),
    ("sin(x + y)", "sin(x) + y"),
    ("x/(y + z)", "x/y + x/z"),
    ("abs(x)", "x"),
    ("where(x < y, x, y)", "where(x > y, x, y)"),
    ("x**0.5", "x**0.25"),
]


def difference(left, right):
    f, g = (checker.Reader(["x", "y", "z"], text).node() for text in (left, right))
    return checker.difference_of(f, [g])


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal_formulas_are_recognised(left, right):
    assert difference(left, right).is_zero()
    assert abs(difference(f"{left} + pi/3", right) - checker.arb.pi() / 3) < 1e-12


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_different_formulas_are_not(left, right):
    with pytest.raises(checker.Verdict, match="not recognised") as found:
        difference(left, right)
    assert found.value.verdict == "NOT CHECKABLE"


def random_text(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["x", "y", "2", "0.5", "pi", "x", "y"])
    a, b = random_text(rng, depth - 1), random_text(rng, depth - 1)
    n = rng.choice(["2", "3", "0", "(-1)", "(-2)", "0.5", "(1/3)", "(-0.5)", "1.5"])
    sums = [f"({a} + {b})", f"({a} - {b})", f"{a}*({b})", f"{a}/({b})", f"({a})**{n}", f"sqrt({a})", f"abs({a})"]
    logs = [f"exp({a} + {b})", f"log({a})", f"exp(log({a}) + {b})", f"exp({b}*log({a}))", f"where({a} < {b}, {a}, {b})"]
    return rng.choice(sums + logs)


@pytest.mark.parametrize("seed", range(4))
def test_a_normal_form_has_the_value_of_the_formula(seed):
    """Wherever the formula has a value, with zero slack; forms that are too large are refused."""
    rng, compared = random.Random(seed), 0
    points = [(0.7, 1.9), (-0.7, 1.3), (2.5, -0.4), (-1.1, -2.2), (1.0, 1.0), (0.0, 0.5)]
    for _ in range(400):
        node = checker.Reader(["x", "y"], random_text(rng, 4)).node()
        try:
            form = checker.canonical(checker.normal(node))
        except checker.Verdict:
            continue
        for point in points:
            x = checker.balls(point)
            before, after = checker.value(node, x), checker.value(form, x)
            if before.is_finite() and after.is_finite():
                compared += 1
                assert before.overlaps(after), (node, point)
    assert compared > 800


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_random_and_damaged_layers(tmp_path, seed):
    """What the library proves the checker proves too, and never a bound below an error that was seen."""
    case = composition(seed)
    first = ol.certify(case.network, case.target, case.tolerance)
    if first.evidence.lanes is None:
        pytest.skip("proved in another way, or refuted")
    claim = ol.certify(case.network, case.target, 1.0001 * first.bound)
    facts = Facts("polished", "composed", "token", (("gate", 1),), 1, 1.0)
    folder = Approximation.of(case.network, case.target, claim, facts).save(tmp_path / "true")
    assert check(folder).verdict == "VALID"
    low = forged(folder, tmp_path / "f", lambda r: r | {"bound": 0.9999 * r["observed"], "observed": 0.0})
    assert check(low, seconds=20.0).verdict != "VALID"
