"""Slopes: the checker proves |∂T − ∂f| ≤ bound by itself, and never confirms what is false or what it cannot decide."""

import json

import numpy as np
import pytest
import torch
from flint import arb, ctx, fmpq
from safetensors.torch import save

import onelayer as ol
from cases import built, plain_config, random_layer, random_model
from checking import by_hand, check, checker, forged, numbers
from onelayer.approximation import Approximation
from onelayer.layer.facts import Facts
from onelayer.layer.heads import Hinges
from onelayer.layer.layer import gate_layer
from onelayer.proof.certificate import Certificate

SQUARE = [(0, 1)] * 2
HILLS = (
    "0.75*exp(-((9*x1-2)**2+(9*x2-2)**2)/4) + 0.5*exp(-((9*x1-7)**2+(9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2-(9*x2-7)**2)"
)
TRUE = {
    "sines": ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-4, 1e-2, {}),
    "one variable": ("1/(1+25*x1**2)", [(-1, 1)], 1e-4, 1e-2, {}),
    "two outputs": ("x1*x2; sin(x1-x2**2)", SQUARE, 1e-3, 5e-2, {}),
    "hills": (HILLS, SQUARE, 2e-2, 1.0, {"construction": "memory"}),
    "float32": ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-3, 1e-2, {"dtype": "float32"}),
    "float32 memory": ("exp(-4*(x1-0.4)**2-4*(x2-0.5)**2)", SQUARE, 3e-3, 0.1, {"dtype": "float32", "construction": "memory"}),
    "condition": ("exp(x1*x2)", SQUARE, 1e-2, 0.2, {"within": "x1 + x2 < 1.5"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders with a claim about slopes, built when first asked for."""
    root, made = tmp_path_factory.mktemp("slopes"), {}

    def folder(name):
        if name not in made:
            formula, domain, tolerance, slopes, options = TRUE[name]
            found = ol.build(formula, domain, tolerance, slope_tolerance=slopes, **options)
            made[name] = found.save(root / name.replace(" ", "-"))
        return made[name]

    return folder


def with_slope(**changes):
    """An edit of the claim about slopes; the claim about values becomes so weak that it holds anyway."""
    weak = {"bound": 100.0, "tolerance": 100.0, "lower": 0.0}
    return lambda r: r | weak | {"slope": r["slope"] | changes}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", TRUE)
def test_a_true_claim_about_slopes_is_valid(folders, name):
    record, found = json.loads((folders(name) / "certificate.json").read_text()), check(folders(name))
    assert record["verdict"] == "CERTIFIED"
    assert found.verdict == "VALID", str(found)
    slope = record["slope"]
    assert f"sup |∂T − ∂f| ≤ {slope['bound']!r} ≤ {slope['tolerance']!r}" in found.reason


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [name for name in TRUE if name != "condition"])
def test_a_bound_below_what_is_observed_is_refuted(folders, tmp_path, name):
    observed = json.loads((folders(name) / "certificate.json").read_text())["slope"]["observed"]
    edit = with_slope(bound=0.99 * observed, observed=0.0)
    found = check(forged(folders(name), tmp_path / "f", edit))
    assert found.verdict == "INVALID", str(found)
    assert "the slopes: |∂T − ∂f| ≥" in found.reason
    assert found.box is not None


@pytest.mark.one_in(9)
@pytest.mark.parametrize("bound", [0.0, 1e-300, 1e-30])
@pytest.mark.parametrize("name", ["sines", "two outputs", "condition"])
def test_a_bound_of_next_to_nothing_is_refuted(folders, tmp_path, name, bound):
    """No box can be proved against it, and a single point refutes it."""
    found = check(forged(folders(name), tmp_path / "f", with_slope(bound=bound, observed=0.0)))
    assert found.verdict == "INVALID", str(found)
    assert "the slopes: |∂T − ∂f|" in found.reason


def test_a_true_bound_of_0_is_not_refuted(tmp_path):
    """T = 1/2 is f itself: what cannot be decided is not called wrong."""
    folder = by_hand(tmp_path / "f", "0.5", [(0, 1)], gate_layer(numbers(0.5), 1), 1.0)
    found = check(
        forged(folder, tmp_path / "s", lambda r: r | {"slope": {"tolerance": 1.0, "bound": 0.0, "observed": 0.0}})
    )
    assert found.verdict != "INVALID", str(found)


def nudge(name, by):
    def edit(tensors):
        flat = tensors[name].flatten()
        flat[int(flat.abs().argmax())] *= 1 + by

    return edit


FALSE = {
    "formula": {"target": lambda t: t | {"formula": t["formula"] + " + 0.002*sin(7*x1)"}},
    "one value": {"weights": nudge("W_V", 0.02)},
    "one key": {"weights": lambda t: t["W_K"][0, 0].mul_(1.02)},
    "normalisation": {"weights": nudge("scale", 0.02)},
    "read-out": {"weights": nudge("W_R", 0.02)},
    "wider domain": {
        "target": lambda t: t | {"upper": [7.5, t["upper"][1]], "ends": [["0.0", "7.5"], t["ends"][1]]},
        "certificate": lambda r: with_slope()(r) | {"domain": "x1 in [0.0, 7.5], x2 in [0.0, 2*pi]"},
    },
}


@pytest.mark.parametrize("name", ["sines", "float32"])
@pytest.mark.parametrize("edit", FALSE)
def test_slopes_of_another_layer_or_formula_are_refuted(folders, tmp_path, name, edit):
    """The claim about values stays true: slopes alone decide."""
    found = check(forged(folders(name), tmp_path / "f", **({"certificate": with_slope()} | FALSE[edit])), seconds=30.0)
    assert found.verdict == "INVALID", str(found)
    assert "the slopes: |∂T − ∂f| ≥" in found.reason or edit == "wider domain"


def test_an_added_constant_has_no_slope(folders, tmp_path):
    edit = {"certificate": with_slope(), "target": lambda t: t | {"formula": t["formula"] + " + 0.25"}}
    assert check(forged(folders("sines"), tmp_path / "f", **edit)).verdict == "VALID"


RECORDS = {
    "no record": [1, 2],
    "text": "0.01",
    "number as text": {"tolerance": "1", "bound": 0.5, "observed": 0.1},
    "truth": {"tolerance": True, "bound": 0.5, "observed": 0.1},
    "negative": {"tolerance": 1.0, "bound": -0.5, "observed": -0.6},
    "no tolerance": {"bound": 0.5, "observed": 0.1},
    "another claim": {"tolerance": 1.0, "bound": 0.5, "observed": 0.1, "curvature": 1.0},
    "above the tolerance": {"tolerance": 0.4, "bound": 0.5, "observed": 0.1},
    "below what is observed": {"tolerance": 1.0, "bound": 0.5, "observed": 0.6},
    "no bound": {"tolerance": 1.0, "bound": None, "observed": 0.6},
    "not observed": {"tolerance": 1.0, "bound": 0.5, "observed": None},
    "nothing": {},
}


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_that_makes_no_sense_is_invalid(folders, tmp_path, record):
    found = check(forged(folders("sines"), tmp_path / "f", lambda r: r | {"slope": RECORDS[record]}))
    assert found.verdict == "INVALID", str(found)


def test_a_huge_number_and_an_undecided_claim(folders, tmp_path):
    huge = {"tolerance": 10**400, "bound": 0.5, "observed": 0.1}
    assert check(forged(folders("sines"), tmp_path / "f", lambda r: r | {"slope": huge})).verdict != "VALID"
    open_one = {"tolerance": 1.0, "bound": None, "observed": 0.6}
    found = check(forged(folders("sines"), tmp_path / "g", lambda r: r | {"slope": open_one, "verdict": "UNDECIDED"}))
    assert found.verdict == "NOT CHECKABLE"


SLOPE = {"tolerance": 100.0, "bound": 100.0, "observed": 0.0}


def claimed(folder, to, **edits):
    """The folder with a claim about slopes that is certainly true, if T and f have slopes."""
    return forged(folder, to, lambda r: r | {"slope": SLOPE}, **edits)


def test_values_proved_and_slopes_not(tmp_path):
    """Kinks and jumps without a margin: the values are said to be proved."""
    plain = gate_layer(numbers(0.5), 2)
    cases = {
        "abs": by_hand(tmp_path / "1", "abs(x1 - 0.5)*x2", SQUARE, plain, 1.0),
        "max": by_hand(tmp_path / "2", "sin(max(x1, x2))", SQUARE, plain, 1.0),
        "where": by_hand(tmp_path / "3", "where(x1 < 0.5, x2, 1)", SQUARE, plain, 1.0),
    }  # fmt: skip
    for n, (why, folder) in enumerate(cases.items()):
        assert check(folder).verdict == "VALID"
        found = check(claimed(folder, tmp_path / f"s{n}"), boxes=5000)
        assert found.verdict == "NOT CHECKABLE", str(found)
        assert found.reason.startswith("the values were proved, the slopes not: ")
        assert why in found.reason


def test_an_endless_slope_is_refuted(tmp_path):
    """√x near 0: whatever is claimed, there is a box where the slope is steeper."""
    folder = by_hand(tmp_path / "f", "sqrt(x1)", [(0, 1)], gate_layer(numbers(0.5), 1), 1.0)
    assert check(folder).verdict == "VALID"
    assert check(claimed(folder, tmp_path / "s")).verdict == "INVALID"


@pytest.mark.long
def test_across_the_cut_of_atan2_there_is_no_slope(tmp_path):
    """T = 0 is within π of the angle everywhere; the slopes of its two sides agree, and yet there is none on the cut."""
    sides = [(1, 2), (-2, -1)], [(-1, 1), (-2, -1)]
    found = [check(claimed(by_hand(tmp_path / f"{n}", "atan2(x1, x2)", side, gate_layer(numbers(0.0), 2), 3.2),
                           tmp_path / f"s{n}"), boxes=2000) for n, side in enumerate(sides)]  # fmt: skip
    assert [v.verdict for v in found] == ["VALID", "NOT CHECKABLE"]
    assert found[1].reason.startswith("the values were proved")


def sloped(folder, to, slope, margin):
    """The folder with another claim about slopes, this far from kinks."""
    return forged(folder, to, lambda r: r | {"slope": slope, "margin": margin}, lambda t: t | {"margin": margin})


def test_slopes_of_a_layer_with_a_hinge(tmp_path):
    """T = 0.5 + max(0, x1 − 0.5), f = x1/2 + 0.5: the slopes are 1/2 apart on both sides, margin or not."""
    hinge = (Hinges(numbers([1.0, 0.0]), torch.tensor([0.0]).double()), numbers([1.0]))
    folder = by_hand(tmp_path / "f", "x1/2 + 0.5", SQUARE, gate_layer(numbers(0.5), 2, hinges=hinge), 1.0)
    for n, (bound, verdict) in enumerate(((0.51, "VALID"), (0.49, "INVALID"))):
        slope = {"tolerance": 1.0, "bound": bound, "observed": 0.0}
        for margin in (0.0, 0.4):
            found = check(sloped(folder, tmp_path / f"s{n}{margin}", slope, margin))
            assert found.verdict == verdict, str(found)


KINKED = {
    "abs": ("abs(x1 - 0.5) + x2", 0.05),
    "max": ("max(x1, 0.4, 1 - x2)", 0.1),
    "where": ("where(x1 < 0.5, sin(x2), 1 + x1)", 0.1),
    "one branch": ("abs(x1 + 1)*max(x2, 3)", 0.0),
}


@pytest.mark.parametrize("name", KINKED)
def test_slopes_away_from_kinks(tmp_path, name):
    """T = 0.5, so |∂f| is what counts: true at what it is, and false at 2 % less."""
    formula, margin = KINKED[name]
    steepest = {"abs": 1.0, "max": 1.0, "where": 1.0, "one branch": 3.0}[name]
    folder = by_hand(tmp_path / "f", formula, SQUARE, gate_layer(numbers(0.5), 2), 6.0)
    for n, (bound, verdict) in enumerate(((1.001 * steepest, "VALID"), (0.98 * steepest, "INVALID"))):
        slope = {"tolerance": 9.0, "bound": bound, "observed": 0.0}
        found = check(sloped(folder, tmp_path / f"s{n}", slope, margin))
        assert found.verdict == verdict, str(found)
        assert ("away from every kink" in found.reason) == (margin > 0 and verdict == "VALID")


def test_a_margin_that_leaves_no_slope_proves_nothing(tmp_path):
    """Kinks everywhere excuse all points: then nothing is claimed."""
    folder = by_hand(tmp_path / "f", "9*x1 + 0*abs(sin(99*x1))", [(0, 1)], gate_layer(numbers(0.5), 1), 9.0)
    slope = {"tolerance": 1.0, "bound": 1.0, "observed": 0.0}
    found = check(sloped(folder, tmp_path / "s", slope, 0.1), boxes=3000)
    assert found.verdict == "NOT CHECKABLE", str(found)
    assert "the values were proved" in found.reason


@pytest.mark.long
def test_slopes_of_a_trained_layer(tmp_path):
    config = plain_config(tokens=1, features_in=1, features_out=1, activation="gelu", readout="mean", output_tokens=0)
    target, model = ol.Target("x1", [(0, 1)]), random_model(config)
    claim = Certificate(50.0, 50.0, 0.0, 1, "bisect", str(target.domain), weights=model.fingerprint())
    facts = Facts("trained", "dense", "token", (("dense", 1),), 1, 1.0)
    folder = Approximation.of(model, target, claim, facts).save(tmp_path / "f")
    assert check(folder).verdict == "VALID"
    x = torch.linspace(0, 1, 400, dtype=torch.float64)
    steepest = max(abs(automatic(model, [0], [v])[0] - 1) for v in x.tolist())
    for n, (share, verdict) in enumerate(((1.01, "VALID"), (0.98, "INVALID"))):
        slope = {"tolerance": 100.0, "bound": share * steepest, "observed": 0.0}
        found = check(forged(folder, tmp_path / f"s{n}", lambda r, s=slope: r | {"slope": s}))
        assert found.verdict == verdict, str(found)


def test_slopes_at_stored_samples_are_not_checkable(tmp_path):
    x = np.linspace(0, 1, 5)[:, None]
    folder = ol.memorize(x, np.sin(x[:, 0])).save(tmp_path / "f")
    assert check(folder, data=(x, np.sin(x))).verdict == "VALID"
    assert check(claimed(folder, tmp_path / "s"), data=(x, np.sin(x))).verdict == "NOT CHECKABLE"


FUNCTIONS = """sin(x1*x2); cos(x1+x2**2); tan(x1)*x2; exp(x1-x2); log(x1+x2); sqrt(x1*x2); tanh(x1/x2); sinh(x1); cosh(x1*x2);
atan(x1-3*x2); asin(x1*x2/2); acos(x1-x2); sigmoid(x1*x2); erf(x1-x2); sqr(x1-x2); sinc(x1*x2); exprel(x1-x2); cbrt(x1-x2);
cbrt(x2-x1-1); expm1(x1*x2); log1p(x1*x2); softplus(x1-x2); hypot(x1, x2); atan2(x1-0.6, x2); atan2(x1, -x2); x1**x2; 2**x1;
x1**pi; x1**3/x2**2; x1**-2; x1**1.5; x1**0*x2; 1/(1+x1+x2)/x1; x1*x1*x2*x2; sin(x1)/x1 + (exp(x1*x2)-1)/(x1*x2);
(1-cos(x1))/x1**2; 3; pi*x1-e; x1*abs(-3)+max(1, 2); -(x1-x2)*-x2"""


@pytest.mark.parametrize("text", FUNCTIONS.split(";"))
def test_slopes_of_formulas_are_limits_of_quotients(text):
    """Against (f(x + h) − f(x − h))/2h in 400 bits, h = 2^−100."""
    with ctx.workprec(400):
        node, h = checker.Reader(["x1", "x2"], text).node(), arb(2) ** -100
        for x in ([arb(0.75), arb(0.5)], [arb(0.375), arb(0.8125)]):
            for i in range(2):
                ends = [checker.value(node, [v + s * h if j == i else v for j, v in enumerate(x)]) for s in (1, -1)]
                slope = checker.value(checker.slope_of(node, i), x)
                assert abs(slope - (ends[0] - ends[1]) / (2 * h)) < 1e-50


@pytest.mark.parametrize("text", ["sinc(x1)", "exprel(x1)", "sin(2*x1)/x1", "x1**2", "x1*sinh(x1)", "sinc(x1**2)"])
def test_slopes_of_limits_are_regular(text):
    """At 0, on an interval around it, and on complex rectangles."""
    node = checker.slope_of(checker.Reader(["x1"], text).node(), 0)
    quarter = checker.acb(arb(0, 0.25), arb(0, 0.25))
    for ball in (arb(0), arb(0, 0.25), quarter):
        assert checker.value(node, [ball], {}).is_finite()
    inside = checker.acb(arb(0.125), arb(-0.0625))
    assert checker.value(node, [quarter], {}).contains(checker.value(node, [inside], {}))


@pytest.mark.parametrize(
    "text", ["sqrt(x1)", "cbrt(x1)", "log(x1)", "asin(x1+1)", "(x1**2)**0.5", "cbrt(x1)**3", "x1**pi", "1/x1"]
)
def test_where_a_rule_does_not_hold_there_is_no_slope(text):
    node = checker.slope_of(checker.Reader(["x1"], text).node(), 0)
    for ball in (arb(0), arb(0, 0.25), checker.Sides([(-0.25, 0.25)])[0]):
        assert not checker.value(node, [ball]).is_finite()
    assert not checker.value(node, checker.Sides([(-0.25, 0.25)])).is_finite()


def read(model, places, domain):
    """The checker's view of a model."""
    _, tensors, _, _ = checker.read_tensors(save({k: t.contiguous() for k, t in model.state_dict().items()}))
    c = {name: getattr(model.config, name) for name in model.config.__dataclass_fields__}
    with ctx.workprec(checker.READING):
        box = [(float(a), float(b)) for a, b in zip(domain.lower, domain.upper, strict=True)]
        weights = {name: rows for name, (_, rows) in tensors.items()}
        return checker.Layer(c, weights, list(places), box, fmpq(1, 2**53)), checker.Domain(box, None, 0.0)


def part_of(layer, domain, groups=None):
    with ctx.workprec(checker.READING):
        f = [("num", (), fmpq(0))] * len(layer.lines)
        g = checker.Slopes(layer, f, len(domain.box))
        groups = groups or [list(range(len(domain.box)))]
        return [checker.SlopePart(g, axes, n == 0, domain, 1.0) for n, axes in enumerate(groups)], g


def automatic(model, places, x):
    """∂T_o/∂x_i at a point by automatic differentiation, at o·D + i."""
    c = model.config
    rows = torch.autograd.functional.jacobian(
        lambda t: model(t.reshape(1, c.tokens, c.features_in))[:, list(places)].flatten(), torch.tensor(x).double()
    )
    return rows.flatten().tolist()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("sharp", [0.5, 10.0, 300.0])
@pytest.mark.parametrize(
    ("kind", "layout"), [("gates", "token"), ("gates", "wide"), ("gates", "heads"), ("memory", "token")]
)
def test_slopes_of_layers_are_those_of_automatic_differentiation(kind, layout, sharp):
    for seed, D in enumerate((1, 2, 3)):
        m = D if layout != "token" else 2
        model, places, target = built(random_layer(D, m, seed, sharp, kind), layout, m, D)
        layer, domain = read(model, places, target.domain)
        assert layer.sure
        (part,), g = part_of(layer, domain)
        groups = [part.axes for part in checker.parts_of(g, domain, 1.0)]
        apart = part_of(layer, domain, groups)[0]
        for x in np.random.default_rng(seed).uniform(-1, 2, size=(5, D)).tolist():
            true = automatic(model, places, x)
            with ctx.workprec(checker.WORKING):
                found = [float(v) for v in part.at([arb(v) for v in x])]
                rows = [p.at([arb(x[i]) for i in p.axes]) for p in apart]
            assert found == pytest.approx(true, rel=1e-7, abs=1e-7 * sharp)
            assert [float(sum(column)) for column in zip(*rows, strict=True)] == pytest.approx(found, abs=1e-12 * sharp)


@pytest.mark.parametrize("sharp", [1.0, 40.0])
@pytest.mark.parametrize("kind", ["gates", "memory"])
def test_slopes_on_ellipses_are_within_their_bound(kind, sharp):
    """|∂_i A − c| at complex points, summed over the heads, is nowhere above V; and V is not idle."""
    closest = 0.0
    for seed in range(3):
        model, places, target = built(random_layer(2, 1, seed, sharp, kind), "token", 1, 2)
        layer, domain = read(model, places, target.domain)
        (part,), _ = part_of(layer, domain)
        for box in ([(-1.0, 2.0), (-1.0, 2.0)], [(0.25, 0.5), (1.0, 1.5)]):
            halves, middles = [(b - a) / 2 for a, b in box], [(a + b) / 2 for a, b in box]
            for axis in range(2):
                bounds = list(part.sizes_of_heads(axis, halves, part.turning(box)))
                for n, rho in enumerate(checker.RHOS[:6]):
                    most = [sum(head(n)[k] for head in bounds) for k in range(2)]
                    t = np.exp(1j * np.linspace(0, 2 * np.pi, 24, endpoint=False))
                    z = [np.full(24, middles[k] + s * halves[k], complex) for k, s in ((0, -0.7), (1, 0.4))]
                    z[axis] = middles[axis] + halves[axis] * (rho * t + 1 / (rho * t)) / 2
                    for k in range(2):
                        size = np.abs(slopes_at(part, z, k)).max()
                        assert size <= most[k]
                        closest = max(closest, size / most[k])
    assert closest > 0.02


def slopes_at(part, z, i):
    """Σ_heads ∂_i A − (the middle of the slopes of its values), at complex points."""
    total = 0
    for scores, values in part.averages:
        S, V = (np.array([[float(k) for k in row] for row in rows]) for rows in (scores, values[0]))
        s, v = (A[:, :1] + A[:, 1:] @ np.array(z) for A in (S, V))
        e = np.exp(s - s.real.max(axis=0))
        w = e / e.sum(axis=0)
        k, u = S[:, i + 1 : i + 2], V[:, i + 1 : i + 2]
        total = total + (w * (v * k + u)).sum(0) - (w * v).sum(0) * (w * k).sum(0) - (u.max() + u.min()) / 2
    return total


def test_a_unit_that_may_switch_is_no_branch():
    """relu(x) on [0, 1] is linear there, but by no margin; on [1, 2] it is linear for certain."""
    for low, sure in ((0.0, False), (1.0, True)):
        config = plain_config(tokens=1, features_in=1, features_out=1, d_model=3, heads=1, ffn_width=1, d_k=1, d_v=1,
                              anchor_tokens=0, readout="position", output_tokens=0, projection_bias=False)  # fmt: skip
        model = random_model(config)
        with torch.no_grad():
            for t in model.parameters():
                t.zero_()
            model.shift.zero_()
            model.scale.fill_(1.0)
            model.W_E[0, 0], model.W_1[0, 0], model.W_2[0, 1], model.W_R[1, 0] = 1.0, 1.0, 1.0, 1.0
        layer, _ = read(model, (0,), ol.Target("x1", [(low, low + 1)]).domain)
        assert layer.sure is sure
        assert layer.lines[0][1] == 1


def test_tokens_left_out_are_counted():
    """A token 745 below another: the slopes of the average over all tokens are within `lost` of those without it."""
    model, places, target = built(random_layer(1, 1, 3, 2000.0, "memory"), "token", 1, 1)
    layer, domain = read(model, places, target.domain)
    kept = [len(head.scores) for head in layer.heads.values()]
    assert min(kept) < model.config.all_tokens
    (_,), g = part_of(layer, domain)
    assert all(high > 0 and low < 0 for low, high in zip(g.low, g.high, strict=True))
    assert g.high[0] > arb(layer.tiny) * max(abs(float(v)) for v in layer.scale)


def test_a_branch_whose_coefficient_may_be_0_is_not_dropped(tmp_path):
    """The constant is sin(1), but its ball contains 0; at x1 = 100 the slope of f is 84."""
    folder = by_hand(tmp_path / "a", "0.5", [(0, 100), (0, 1)], gate_layer(numbers(0.5), 2), 1000.0)
    f = "x2*max(sin(-1e100*sin(pi+1e-100))*x1, 0.3)"
    slope = {"tolerance": 10.0, "bound": 10.0, "observed": 0.0}
    claim = {"slope": slope, "margin": 0.001}
    folder = forged(folder, tmp_path / "f", lambda r: r | claim, target=lambda t: t | {"formula": f, "margin": 0.001})
    assert check(folder, boxes=300).verdict != "VALID"
