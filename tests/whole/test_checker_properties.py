"""Properties: the checker proves them by itself, and never confirms one that is false by a little."""

import numpy as np
import pytest
import torch
from flint import arb, ctx
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
TRUE = {
    "cube": ("x1**3", [(-1, 1)], 1e-3, ["increasing in x1", "not convex in x1", "Lipschitz 3.1 in x1"], {}),
    "sum": (
        "sin(x1) + x2**2",
        [(0, 1), (0, 2)],
        1e-3,
        ["increasing in x1", "convex in x2", "T <= 2*pi", "not T < 2"],
        {},
    ),
    "product": (
        "exp(x1*x2)",
        SQUARE,
        1e-2,
        ["convex in x1", "increasing in x2", "T > 0.9"],
        {"within": "x1 + x2 < 1.8"},
    ),
    "float32": ("x1**2; 2 - x1", [(1, 2)], 1e-2, ["T >= -0.1", "Lipschitz 4.2 in x1"], {"dtype": "float32"}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders with properties, built when first asked for."""
    root, made = tmp_path_factory.mktemp("properties"), {}

    def folder(name):
        if name not in made:
            formula, domain, tolerance, properties, options = TRUE[name]
            made[name] = ol.build(formula, domain, tolerance, properties=properties, **options).save(root / name)
        return made[name]

    return folder


def with_property(folder, to, *texts, **edits):
    """The folder with other properties; the claim about values becomes so weak that it holds anyway."""
    weak = {"bound": 100.0, "tolerance": 100.0, "lower": 0.0, "observed": 0.0}
    some = [{"text": text, "verdict": "PROVED"} for text in texts]
    return forged(folder, to, lambda r: r | weak | {"properties": some, "verdict": "CERTIFIED"}, **edits)


LONG = pytest.param("product", marks=pytest.mark.long)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["cube", "sum", LONG, "float32"])
def test_true_properties_are_valid(folders, name):
    found = check(folders(name))
    assert found.verdict == "VALID", str(found)
    assert all(text in found.reason for text in TRUE[name][3])


def ends_of(approx, order, i):
    """The least and the largest value, slope or second derivative along x_i that float64 sees, over all outputs."""
    lower, upper = map(np.array, (approx.target.domain.lower, approx.target.domain.upper))
    x = lower + (upper - lower) * np.random.default_rng(0).random((3000, len(lower)))
    x[: 2 ** len(lower)] = list(np.ndindex(*[2] * len(lower))) * (upper - lower) + lower
    x = x[x.sum(axis=1) < 1.79] if approx.target.domain.within is not None else x
    h = 1e-4 * (upper[i] - lower[i])
    x[:, i] = np.clip(x[:, i], lower[i] + h, upper[i] - h)
    rows = [np.asarray(approx(x + s * h * np.eye(len(lower))[i])).reshape(len(x), -1) for s in (-1, 0, 1)]
    found = [rows[1], (rows[2] - rows[0]) / (2 * h), (rows[2] - 2 * rows[1] + rows[0]) / h**2][order]
    return float(found.min()), float(found.max())


@pytest.mark.parametrize("name", ["cube", "sum", LONG])
def test_limits_that_are_passed_by_two_percent_are_refuted(folders, tmp_path, name):
    approx = ol.load(folders(name))
    for i, variable in enumerate(approx.target.domain.names):
        (low, high), (least, most) = ends_of(approx, 1, i), ends_of(approx, 0, i)
        steepest, gap = max(-low, high), 0.02 * (most - least)
        claims = [(f"Lipschitz {0.98 * steepest!r} in {variable}", "INVALID"), (f"T <= {most - gap!r}", "INVALID"),
                  (f"T > {least + gap!r}", "INVALID"), (f"T < {most + gap!r}", "VALID"), (f"T >= {least - gap!r}", "VALID"),
                  (f"Lipschitz {1.02 * steepest!r} in {variable}", "VALID"), (f"not T < {most - gap!r}", "VALID"),
                  (f"not T <= {most + gap!r}", "INVALID"),
                  (f"not Lipschitz {1.02 * steepest!r} in {variable}", "INVALID")]  # fmt: skip
        for n, (text, verdict) in enumerate(claims if name != "product" else claims[:3]):
            found = check(with_property(folders(name), tmp_path / f"{i}-{n}", text))
            assert found.verdict == verdict, f"{text}: {found}"


FALSE = [
    ("cube", "convex in x1"),
    ("cube", "decreasing in x1"),
    ("cube", "not increasing in x1"),
    ("sum", "concave in x2"),
    ("sum", "convex in x1"),
    pytest.param("product", "decreasing in x2", marks=pytest.mark.long),
    ("float32", "increasing in x1"),
    ("float32", "concave in x1"),
]


@pytest.mark.parametrize(("name", "text"), FALSE)
def test_shapes_that_it_has_not_are_refuted(folders, tmp_path, name, text):
    found = check(with_property(folders(name), tmp_path / "f", text))
    assert found.verdict == "INVALID", str(found)
    assert repr(text) in found.reason


def test_other_weights_have_other_properties(folders, tmp_path):
    """One property that is true among several, and weights turned upside down."""
    found = check(with_property(folders("cube"), tmp_path / "f", "increasing in x1", weights=lambda t: t["W_R"].neg_()))
    assert found.verdict == "INVALID"
    found = check(with_property(folders("cube"), tmp_path / "g", "increasing in x1", "T <= 0.9"))
    assert found.verdict == "INVALID"


@pytest.mark.parametrize(
    "text", ["growing in x1", "increasing in x9", "T <= x1", "T <= 1/0", "", 5, "0 <= T", "Lipschitz in x1"]
)
def test_what_is_not_understood_is_never_valid(folders, tmp_path, text):
    assert check(with_property(folders("cube"), tmp_path / "f", text)).verdict != "VALID"


def test_a_limit_that_is_reached_is_not_decided(tmp_path):
    """T = 1/2 is increasing, and at most 1/2: neither proved nor called false."""
    folder = by_hand(tmp_path / "f", "0.5", [(0, 1)], gate_layer(numbers(0.5), 1), 1.0)
    for n, text in enumerate(("increasing in x1", "T <= 0.5", "T >= 0.5", "Lipschitz 0 in x1", "convex in x1")):
        found = check(with_property(folder, tmp_path / f"{n}", text), boxes=200)
        assert found.verdict != "INVALID", f"{text}: {found}"


def test_properties_of_a_layer_with_a_hinge(tmp_path):
    """T = 0.5 + max(0, x1 − 0.5): its slopes are 0 and 1. Second derivatives are not looked at."""
    hinge = (Hinges(numbers([1.0, 0.0]), torch.tensor([0.0]).double()), numbers([1.0]))
    folder = by_hand(tmp_path / "f", "0.5", SQUARE, gate_layer(numbers(0.5), 2, hinges=hinge), 1.0)
    claims = [("Lipschitz 1.01 in x1", "VALID"), ("Lipschitz 0.98 in x1", "INVALID"), ("decreasing in x1", "INVALID"),
              ("not decreasing in x1", "VALID"), ("Lipschitz 0.01 in x2", "VALID"), ("T <= 1.01", "VALID"),
              ("T <= 0.99", "INVALID"), ("convex in x1", "NOT CHECKABLE")]  # fmt: skip
    for n, (text, verdict) in enumerate(claims):
        found = check(with_property(folder, tmp_path / f"{n}", text), boxes=2000)
        assert found.verdict == verdict, f"{text}: {found}"


@pytest.mark.long
def test_properties_of_a_trained_layer(tmp_path):
    """With LayerNorm, by slopes in Taylor models."""
    sizes = {"tokens": 1, "features_in": 1, "features_out": 1, "readout": "mean", "output_tokens": 0}
    model = random_model(plain_config(**sizes, activation="gelu", norm="post"), 2)
    target = ol.Target("x1", [(0, 1)])
    claim = Certificate(50.0, 50.0, 0.0, 1, "bisect", str(target.domain), weights=model.fingerprint())
    approx = Approximation.of(model, target, claim, Facts("trained", "dense", "token", (("dense", 1),), 1, 1.0))
    folder, (low, high), (least, most) = approx.save(tmp_path / "f"), ends_of(approx, 1, 0), ends_of(approx, 0, 0)
    steepest, gap = max(-low, high), 0.02 * (most - least)
    claims = [(f"Lipschitz {1.02 * steepest!r} in x1", "VALID"), (f"Lipschitz {0.98 * steepest!r} in x1", "INVALID"),
              (f"T <= {most + gap!r}", "VALID"), (f"T <= {most - gap!r}", "INVALID"), ("convex in x1", "NOT CHECKABLE"),
              (f"not T >= {least + gap!r}", "VALID")]  # fmt: skip
    for n, (text, verdict) in enumerate(claims):
        found = check(with_property(folder, tmp_path / f"{n}", text), seconds=60.0)
        assert found.verdict == verdict, f"{text}: {found}"


@pytest.mark.parametrize("sharp", [0.5, 10.0])
@pytest.mark.parametrize(("kind", "layout"), [("gates", "token"), ("gates", "wide"), ("memory", "token")])
def test_second_derivatives_are_those_of_automatic_differentiation(kind, layout, sharp):
    """At points, and inside what is said of boxes."""
    for seed, D in enumerate((1, 2)):
        m = D if layout != "token" else 2
        model, places, target = built(random_layer(D, m, seed, sharp, kind), layout, m, D)
        _, tensors, _, _ = checker.read_tensors(save({k: t.contiguous() for k, t in model.state_dict().items()}))
        c = {name: getattr(model.config, name) for name in model.config.__dataclass_fields__}
        box = [(float(a), float(b)) for a, b in zip(target.domain.lower, target.domain.upper, strict=True)]
        domain = checker.Domain(box, None, 0.0)
        with ctx.workprec(checker.READING):
            layer = checker.Layer(
                c, {n: rows for n, (_, rows) in tensors.items()}, list(places), box, checker.fmpq(1, 2**53)
            )
            zeros = [checker.Reader([], "0").node()] * len(layer.lines)
            part = checker.SlopePart(checker.Slopes(layer, zeros, D, 2), list(range(D)), True, domain, 0.1 * sharp**2)

        def outputs(x, model=model, places=places):
            shape = model.config.tokens, model.config.features_in
            return model(x.reshape(1, *shape))[:, list(places)].flatten()

        rng = np.random.default_rng(seed)
        for x in [[a + (b - a) * rng.random() for a, b in box] for _ in range(4)]:
            at = torch.tensor(x, dtype=torch.float64)
            true = [torch.autograd.functional.hessian(lambda t, o=o: outputs(t)[o], at)[i, i].item()
                    for o in range(len(zeros)) for i in range(D)]  # fmt: skip
            near = [(max(a, v - 0.02 / sharp), min(b, v + 0.03 / sharp)) for v, (a, b) in zip(x, box, strict=True)]
            with ctx.workprec(checker.WORKING):
                found = [float(v) for v in part.at([arb(v) for v in x])]
                leaf = part.enclose(near, 0)
            assert found == pytest.approx(true, rel=1e-6, abs=1e-6 * sharp**2)
            assert all(a <= v <= b for a, v, b in zip(leaf.low, found, leaf.high, strict=True))
