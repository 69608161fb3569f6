"""build(attention=…): certified layers with linear, sigmoid, sparsemax and local attention, and what is refused."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.construction.kinks.remainder import as_ramps
from onelayer.construction.polished.families import family_of
from onelayer.construction.polished.polyline import polyline_fit
from onelayer.experiments.study.measures.variants import additive_floor, window_floor
from onelayer.layer.arithmetic import arithmetic_of
from onelayer.layer.assemble import Frame, Outputs, assemble
from onelayer.layer.heads import Hinges, Ramps
from onelayer.layer.layer import memory_layer
from onelayer.proof.ramps import ramp_rounding, ramps_of
from onelayer.target.group_samples import GroupSamples

SQUARE = [(0, 1), (0, 1)]
CASES = {
    "runge": ("1/(1 + 25*x1**2)", (-1, 1), 1e-2),
    "additive": ("sin(3*x1) + cos(2*x2)", SQUARE, 1e-2),
    "product": ("x1*x2", SQUARE, 1e-2),
    "kinked": ("abs(x1 - x2)", SQUARE, 1e-2),
}


QUICK = [("product", "linear"), ("product", "sigmoid"), ("kinked", "sparsemax"), ("kinked", "local")]


def hunted(approximation, f, lower, upper):
    """The largest |T − f| at many points, corners included."""
    D = len(lower)
    x = np.random.default_rng(1).uniform(lower, upper, (20_000, D))
    corners = np.array(np.meshgrid(*zip(lower, upper, strict=True))).reshape(D, -1).T
    x = np.concatenate([x, corners])
    return float(np.abs(np.asarray(approximation(x)).reshape(len(x), -1)[:, 0] - f(x)).max())


@pytest.mark.parametrize(
    ("name", "attention"),
    [
        pytest.param(name, attention, marks=[] if (name, attention) in QUICK else pytest.mark.long)
        for name in CASES
        for attention in ("linear", "sigmoid", "sparsemax", "local")
    ],
)
def test_certified_and_never_exceeded(name, attention):
    formula, domain, tolerance = CASES[name]
    window = {"window": 0} if attention == "local" else {}
    built = ol.build(formula, domain, tolerance, attention=attention, seconds=60.0, **window)
    assert built.certificate.verdict == "CERTIFIED"
    assert built.model.config.attention == attention
    sides = [domain] if isinstance(domain, tuple) else domain
    lower, upper = ([float(side[i]) for side in sides] for i in (0, 1))
    f = ol.Target(formula, domain)
    assert hunted(built, lambda x: f(x)[:, 0], lower, upper) <= built.certificate.bound  # no slack


def test_linear_attention_has_the_gates_of_softmax_attention():
    softmax = ol.build("x1*x2", SQUARE, 1e-2, construction="gates")
    linear = ol.build("x1*x2", SQUARE, 1e-2, attention="linear")
    assert linear.units == softmax.units
    x = np.random.default_rng(2).random((1000, 2))
    assert np.abs(linear(x) - softmax(x)).max() < 1e-10


def test_sparsemax_is_exact_for_piecewise_linear_functions():
    for formula in ("abs(x1 - 0.3)", "max(0, 1 - 3*abs(x1 - 0.4))", "max(x1, x2) - min(2*x1, x2)"):
        D = 2 if "x2" in formula else 1
        built = ol.build(formula, SQUARE[:D] if D > 1 else (0, 1), 1e-3, attention="sparsemax")
        assert built.certificate.bound < 1e-12


def test_a_group_that_one_line_is_enough_for_takes_no_unit():
    built = ol.build("min(x1, 0.2) + sin(x2)", [(-1, 1)] * 2, 0.1, attention="sparsemax")
    assert (built.certificate.verdict, built.units) == ("CERTIFIED", 1)


def test_the_bound_of_ramps_can_fail():
    """A weight that is moved a little is noticed."""
    built = ol.build("abs(x1 - 0.3)", (0, 1), 1e-3, attention="sparsemax")
    with torch.no_grad():
        built.model.W_O *= 1.0002
    moved = ol.certify(built.model, built.target, 1e-3)
    assert moved.verdict == "CERTIFIED"
    assert moved.bound > 1e-4
    with torch.no_grad():
        built.model.W_O *= 1.02
    assert ol.certify(built.model, built.target, 1e-3).verdict == "REFUTED"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_of_ramps_is_never_exceeded(dtype):
    """Against the same weights in more digits; ramps_of reads back what was assembled."""
    rng = torch.Generator().manual_seed(2)
    heads = Ramps(4 * torch.randn(12, 2, generator=rng).double(), torch.randn(12, generator=rng).double())
    given = torch.randn(12, 1, generator=rng).double(), torch.randn(2, 1, generator=rng).double()
    made = memory_layer(torch.ones(1, dtype=torch.float64), 2, ridges=(heads, given[0]), linear=given[1])
    model = assemble(made, Frame((0.5, 0.5), (1.0, 1.0)), Outputs(1, 1, (0,)), attention="sparsemax").to(dtype)
    layer, frame = ramps_of(model)
    x = torch.from_numpy(np.random.default_rng(5).random((5000, 2))).to(dtype)
    with torch.no_grad():
        computed = model(x[:, None])[:, 0].double().numpy()
    exact = np.longdouble
    hat = (x.double().numpy().astype(exact) - np.array(frame.shift, exact)) * np.array(frame.scale, exact)
    s = hat @ layer.ridges.directions.numpy().astype(exact).T + layer.ridges.offsets.numpy().astype(exact)
    weights = np.clip((1 + s) / 2, 0, 1)
    T = (
        layer.bias.numpy()
        + hat @ layer.linear.numpy().astype(exact)
        + weights @ layer.ridge_values.numpy().astype(exact)
    )
    off = np.abs(computed - T).max(axis=0)
    allowed = ramp_rounding(layer, max(frame.scale), 0.5 + 1e-6, arithmetic_of(dtype))
    assert (off > 0).all()
    assert (off <= allowed).all()


def test_other_layers_are_no_ramps():
    built = ol.build("abs(x1 - 0.3)", (0, 1), 1e-3, attention="sparsemax")
    assert ramps_of(built.model) is not None
    with torch.no_grad():
        built.model.W_1[0, 0] = 1.0
    assert ramps_of(built.model) is None


def test_hinges_are_ramps_on_the_box():
    rng = torch.Generator().manual_seed(0)
    hinges = Hinges(torch.randn(5, 2, generator=rng).double(), 0.3 * torch.randn(5, generator=rng).double())
    values = torch.randn(5, 1, generator=rng).double()
    ramps, weights = as_ramps(hinges, values)
    x = torch.rand(500, 2, generator=rng).double() - 0.5
    assert torch.allclose(ramps.features(x) @ weights, hinges.features(x) @ values, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["ridges", "ramps"])
def test_jacobians_are_derivatives(name):
    family, rng = family_of(name, 2), torch.Generator().manual_seed(1)
    theta, x = family.start(4, (1.5, 1.0), 0), torch.rand(50, 2, generator=rng).double() - 0.5
    c = torch.randn(family.count(4), 1, generator=rng).double()

    def T(flat):
        return family.features(x, family.weights(flat.reshape(theta.shape), x)) @ c[:, 0]

    by_hand = family.jacobian(x, family.weights(theta, x), c)[0]
    assert torch.allclose(by_hand, torch.autograd.functional.jacobian(T, theta.flatten()), atol=1e-12)


def test_polylines_have_the_rate_of_theory():
    """Error about (M/4n)², M = ∫√|f''|: four times the pieces, a sixteenth of the error."""
    source = GroupSamples(ol.Target("sin(6*x1)", (0, 1)), (0,), 0)
    errors = [polyline_fit(source, 1e-9, 100, units=units).fitted for units in (7, 15, 31, 63)]
    rates = np.diff(np.log(errors)) / np.log(2)
    assert (np.abs(rates + 2) < 0.3).all()


def test_lower_bounds():
    """x1·x2: the mixed difference over the square is 1, and x2 moves it by 1 where x1 = 1."""
    product = ol.Target("x1*x2", SQUARE)
    assert additive_floor(product) == pytest.approx(0.25)
    assert window_floor(product) == pytest.approx(0.5)
    best = ol.Target("x1*x2 - x1/2 - x2/2 + 1/4", SQUARE)  # what the best g(x1) + h(x2) leaves
    assert np.abs(best(np.random.default_rng(0).random((1000, 2)))).max() <= 0.25
    assert additive_floor(ol.Target("sin(x1) + x2**2", SQUARE)) == 0.0
    assert window_floor(ol.Target("sin(x1)", (0, 1))) == 0.0


def test_the_page_repeats_the_study():
    """The table of docs/theory/attention.md has the units and parameters of docs/studies/variants.csv."""
    docs = Path(__file__).parents[2] / "docs"
    with (docs / "studies" / "variants.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["layout"] == "token" and row["tolerance"] == "0.003"]
    found = {
        (row["target"], row["attention"]): f"{row['units']}, {row['parameters']}"
        for row in rows
        if row["verdict"] == "CERTIFIED"
    }
    page = (docs / "theory" / "attention.md").read_text()
    lines = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    start = next(i for i, line in enumerate(lines) if line[0] == "target")
    assert len(rows) == 30
    for line in lines[start + 2 :]:
        for attention, cell in zip(lines[start][1:], line[1:], strict=True):
            assert cell == found.get((line[0], attention), "–"), (line[0], attention)


LOCAL = "x1 + x2; x2**2 + x3; x2*x4 + x3; x3 - x4**2"


@pytest.mark.parametrize("layout", ["wide", pytest.param("heads", marks=pytest.mark.long)])
def test_local_outputs_need_no_more_than_their_window(layout):
    about = {"shape": (4, 1), "output_shape": (4, 1), "attention": "local", "layout": layout}
    built = ol.build(LOCAL, [(0, 1)] * 4, 1e-1, window=1, **about)
    assert built.certificate.verdict == "CERTIFIED"
    x = np.random.default_rng(0).random((200, 4))
    far = x.copy()
    far[:, 3] = 1 - far[:, 3]
    near = np.asarray(built(x)).reshape(200, 4), np.asarray(built(far)).reshape(200, 4)
    assert (near[0][:, :2] == near[1][:, :2]).all()  # tokens 0 and 1 do not see token 3
    assert (near[0][:, 2:] != near[1][:, 2:]).any()
    with pytest.raises(ol.InputError, match="give a window of 1"):
        ol.build(LOCAL, [(0, 1)] * 4, 1e-1, window=0, **about)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"attention": "fused"}, "attention"),
        ({"attention": "linear", "method": "solved"}, "use method='polished'"),
        ({"attention": "linear", "symmetric": True}, "symmetric=True; change: leave it out"),
        ({"attention": "linear", "construction": "memory"}, "construction='memory'"),
        ({"attention": "linear", "layout": "heads"}, "use layout='token' or 'wide'"),
        ({"attention": "sigmoid", "layout": "wide"}, "there is one data token"),
        ({"attention": "sparsemax", "slope_tolerance": 0.1}, "slope"),
        ({"attention": "local"}, "a window"),
        ({"attention": "linear", "window": 1}, "window=1"),
        ({"window": 1}, "leave `window` out"),
    ],
)
def test_what_is_not_made_is_refused(options, says):
    with pytest.raises(ol.InputError, match=says):
        ol.build("x1*x2", SQUARE, 1e-2, **options)


def test_heads_too_sharp_for_linear_attention_are_refused():
    with pytest.raises(ol.InputError, match="does not subtract the largest"):
        ol.build("max(x1, x2, x3)", [(0, 1)] * 3, 1e-5, attention="linear")


def test_kinks_of_linear_attention_are_hinges():
    built = ol.build("abs(x1 - x2) + sin(x1)", SQUARE, 1e-2, attention="linear")
    assert ("attention", "linear") in built.table().rows
    assert built.certificate.verdict == "CERTIFIED"
    assert built.model.config.ffn_width >= 1
    assert not any(kind == "max" for kind, _ in built.facts.heads)
