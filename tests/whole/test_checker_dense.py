"""The checker on layers of any kind, as training makes them: T − f box by box, and the rounding beside it."""

import json

import numpy as np
import pytest
import torch
from flint import arb, ctx, fmpq
from safetensors import safe_open
from safetensors.torch import save, save_file

import onelayer as ol
from cases import plain_config, random_model
from checking import check, checker, forged
from onelayer.approximation import Approximation
from onelayer.apps.cli import main
from onelayer.layer.facts import Facts
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.proof.certificate import Certificate

KINDS = {
    "gelu, mean": {"activation": "gelu", "readout": "mean"},
    "silu, positions": {"activation": "silu", "readout": "position"},
    "relu, output token": {"activation": "relu", "readout": "output"},
    "relu, mean, alone": {"activation": "relu", "readout": "mean", "tokens": 1, "anchor_tokens": 0, "output_tokens": 0},
    "gelu, pre": {"activation": "gelu", "readout": "mean", "norm": "pre"},
    "silu, post": {"activation": "silu", "readout": "position", "norm": "post"},
    "relu, post, alone": {
        "activation": "relu",
        "readout": "output",
        "norm": "post",
        "residual": False,
        "norm_eps": 0.01,
    },
    "gelu, no residual": {"activation": "gelu", "readout": "mean", "residual": False, "projection_bias": False},
}


def dense(kind, dtype, seed=0, size=1.0, sparse=False):
    """(a random model, the checker's view of it); sparse: most weights are 0, and many of the others powers of two."""
    config = plain_config(**KINDS[kind])
    model, draw = random_model(config, seed), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for t in model.parameters():
            t.mul_(size)
            if sparse:
                t.copy_(
                    torch.where(torch.rand(t.shape, generator=draw) < 0.5, t.sign() * t.abs().log2().round().exp2(), t)
                )
                t.mul_(torch.rand(t.shape, generator=draw) < 0.4)
    model = model.to(dtype)
    _, tensors, width, _ = checker.read_tensors(save({k: t.contiguous() for k, t in model.state_dict().items()}))
    c = {name: getattr(config, name) for name in config.__dataclass_fields__}
    with ctx.workprec(checker.WORKING):
        rows = {name: rows for name, (_, rows) in tensors.items()}
        return model, checker.Dense(c, rows, list(range(config.places)), fmpq(1, 2 ** (53 if width == 8 else 24)))


def answers(model, x):
    """The deployed model at points [point, coordinate], as float64 [point, output]."""
    c = model.config
    x = torch.from_numpy(x).to(model.W_E.dtype).reshape(-1, c.tokens, c.features_in)
    with torch.no_grad():
        return model(x).double().flatten(1).numpy()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_its_rounding_covers_the_deployed_model(kind, dtype):
    """The computed answer is never further from the real one than the checker says, and the real one is right."""
    for seed, size in ((0, 1.0), (1, 0.4), (2, 3.0), (3, 1.0), (4, 3.0)):
        model, layer = dense(kind, dtype, seed, size, sparse=seed > 2)
        D = model.config.tokens * model.config.features_in
        x = np.random.default_rng(seed).standard_normal((20, D)).astype(np.float32).astype(np.float64)
        exact = answers(model.double(), x)
        model = model.to(dtype)
        for point, deployed, near in zip(x, answers(model, x), exact, strict=True):
            with ctx.workprec(checker.WORKING):
                T, off = layer.answers([[arb(v)] for v in point], checker.Jets(checker.Sides([]), []))
                for real, error, there, close in zip(T, off, deployed, near, strict=True):
                    assert abs(arb(float(there)) - real[0]) <= error
                    assert abs(arb(float(close)) - real[0]) < 1e-9 * (1 + abs(real[0]))


def test_that_comparison_can_fail():
    """Float32 answers are not within a thousandth of the rounding that is charged for them."""
    model, layer = dense("gelu, mean", torch.float32)
    x = np.random.default_rng(0).standard_normal((20, 6)).astype(np.float32).astype(np.float64)
    inside = []
    for point, deployed in zip(x, answers(model, x), strict=True):
        T, off = layer.answers([[arb(v)] for v in point], checker.Jets(checker.Sides([]), []))
        inside += [abs(arb(float(v)) - t[0]) <= e / 1000 for v, t, e in zip(deployed, T, off, strict=True)]
    assert not all(inside)


@pytest.mark.parametrize("kind", KINDS)
def test_a_box_contains_its_points(kind):
    model, layer = dense(kind, torch.float64, 3, 0.5)
    D, rng = model.config.tokens * model.config.features_in, np.random.default_rng(7)
    zero = checker.Reader(["x1"], "0").node()
    finite = 0
    for width in (2.0**-12, 0.03, 0.3):
        low = rng.standard_normal(D)
        box = [(float(v), float(v + width)) for v in low]
        with ctx.workprec(checker.WORKING):
            layer.on([zero] * len(layer.lines), checker.Domain(box, None, 0.0))
            leaf = layer.enclose(box, 0)
        T = answers(model, low + width * rng.random((200, D)))
        assert (np.array(leaf.low) <= T).all()
        assert (np.array(leaf.high) >= T).all()
        finite += np.isfinite(leaf.high).all()
        if width < 1e-3:
            assert (np.array(leaf.high) - leaf.low < 100 * np.ptp(T, axis=0) + 1e-9).all()
    assert finite >= 2


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder as `train` makes it by default, but with fewer steps, certified."""
    found = ol.train("sin(x1)", [(0, 3)], tolerance=0.3, steps=300)
    certificate = ol.certify(found, seconds=30.0)
    assert certificate.verdict == "CERTIFIED"
    folder = tmp_path_factory.mktemp("trained") / "f"
    return ol.Approximation.of(found.model, found.target, certificate, found.facts).save(folder)


def test_a_trained_layer_is_checked(trained, tmp_path):
    record = json.loads((trained / "certificate.json").read_text())
    found = check(trained, seconds=120.0)
    assert found.verdict == "VALID", str(found)
    assert found.bound <= record["bound"]
    assert "at float32 inputs" in found.reason
    false = forged(trained, tmp_path / "f", lambda r: r | {"bound": 0.9 * r["observed"], "observed": 0.0})
    assert check(false, seconds=120.0).verdict == "INVALID"
    other = forged(trained, tmp_path / "g", target=lambda t: t | {"formula": "sin(x1) + 0.7"})
    assert check(other, seconds=120.0).verdict == "INVALID"


@pytest.mark.long
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_layer_norm_is_checked(tmp_path, norm):
    """A true claim is VALID; with other gains, offsets, another ε or another place of the norm it is not."""
    sizes = {"heads": 2, "width": 8, "d_model": 8, "dtype": "float64", "norm": norm}
    found = ol.train("sin(x1)", [(0, 3)], tolerance=0.5, steps=120, **sizes)
    certificate = ol.certify(found, seconds=20.0)
    assert certificate.verdict == "CERTIFIED"
    folder = ol.Approximation.of(found.model, found.target, certificate, found.facts).save(tmp_path / "f")
    assert check(folder, seconds=60.0).verdict == "VALID"
    less = forged(
        folder, tmp_path / "less", lambda r: r | {"bound": 0.95 * r["observed"], "observed": 0.0, "lower": 0.0}
    )
    assert check(less, seconds=60.0).verdict == "INVALID"
    edits = {
        "gain": lambda t: t["gain_2"].mul_(2.0),
        "first gain": lambda t: t["gain_1"].mul_(-1.0),
        "offset": lambda t: t["offset_2"].add_(1.0),
    }
    for name, edit in edits.items():
        weak = forged(folder, tmp_path / name, lambda r: r | {"lower": 0.0}, weights=edit)
        assert check(weak, seconds=60.0).verdict == "INVALID", name
    other = {"norm_eps": 9.0}, {"norm_eps": 0.0}, {"norm_eps": "1e-5"}, {"norm": {"pre": "post", "post": "pre"}[norm]}
    for n, change in enumerate(other):
        copy = forged(folder, tmp_path / f"{n}", lambda r: r | {"lower": 0.0})
        with safe_open(copy / "model.safetensors", framework="pt") as file:
            about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about["config"] = json.dumps(json.loads(about["config"]) | change)
        save_file(tensors, copy / "model.safetensors", metadata=about)
        assert check(forged(copy, tmp_path / f"{n}c"), seconds=60.0).verdict == "INVALID", change


def test_a_witness_against_a_trained_layer_is_checked(trained, tmp_path):
    def claim(tolerance, x):
        return lambda r: r | {"tolerance": tolerance, "witness": [x], "verdict": "REFUTED", "bound": None}

    model, x = ol.load(trained), np.linspace(0, 3, 301, dtype=np.float32).astype(np.float64)
    errors = np.abs(np.asarray(model(x), dtype=np.float64).ravel() - np.sin(x))
    worst, least = float(x[errors.argmax()]), float(x[errors.argmin()])
    assert check(forged(trained, tmp_path / "f", claim(0.9 * errors.max(), worst))).verdict == "VALID"
    assert check(forged(trained, tmp_path / "g", claim(0.9 * errors.max(), least))).verdict == "INVALID"


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize("activation", ["relu", pytest.param("silu", marks=pytest.mark.long)])
def test_train_certify_check_on_the_command_line(tmp_path, capsys, activation):
    out = str(tmp_path / "f")
    sizes = ["--steps", "60", "--heads", "2", "--width", "8", "--d-model", "8", "--dtype", "float64"]
    ask = ["train", "x1*x2", "--domain", "0:1", "--eps", "0.6", *sizes, "--activation", activation]
    assert main([*ask, "--certify", "30", "--out", out]) == 0
    assert (tmp_path / "f" / "report.html").stat().st_size > 10_000
    assert main(["check", out]) == 0
    assert ol.load(out).model.config.activation == activation
    assert main([*ask, "--out", str(tmp_path / "g"), "--no-report", "--seed", "1"]) == 1
    assert not (tmp_path / "g" / "report.html").exists()
    capsys.readouterr()


def empty(folder, formula, bound, weights, dtype=torch.float64, side=(0.0, 1.0), **sizes):
    """A folder of a layer whose weights are 0 but for these, which claims |T − formula| ≤ bound; and the layer itself."""
    about = {"tokens": 1, "features_in": 1, "features_out": 1, "d_model": 2, "heads": 1, "d_k": 1, "d_v": 1}
    about |= {"ffn_width": 2, "anchor_tokens": 0, "output_tokens": 0, "readout": "mean", "code": "none"}
    config = plain_config(**about | sizes)
    model = SingleLayerTransformer(config, dtype=dtype).eval()
    with torch.no_grad():
        for name, t in model.state_dict().items():
            t.fill_(float(name == "scale"))
        for (name, *place), number in weights.items():
            getattr(model, name)[tuple(place)] = number
    target = ol.Target(formula, [side] * config.tokens)
    arithmetic = str(dtype).removeprefix("torch.")
    claim = Certificate(bound, bound, 0.0, 1, "bisect", str(target.domain), arithmetic, weights=model.fingerprint())
    facts = Facts("trained", "trained", "token", (("trained", 1),), 1)
    approx = Approximation.of(model, target, claim, facts)
    return approx, approx.save(folder)


OVERFLOWS = {
    "one token's score": ({("W_E", 0, 0): 1e200, ("W_Q", 0, 0, 0): 1.0, ("W_K", 0, 0, 0): 1.0}, {}),
    "a sum that cancels": (
        {("b_1", ...): 1.0, ("W_2", ..., 0): 1.5e308, ("b_2", 0): -1.5e308, ("W_R", 0, 0): 2.0**-1074},
        {},
    ),
    "x − shift": ({("shift", ...): -3e38, ("scale", ...): 2.0**-120}, {"dtype": torch.float32, "side": (-3e38, 3e38)}),
}


@pytest.mark.parametrize("kind", OVERFLOWS)
def test_numbers_that_overflow_on_the_way_are_not_checkable(tmp_path, kind):
    """What is computed is infinite or NaN, however small the real function of the weights is."""
    weights, options = OVERFLOWS[kind]
    approx, folder = empty(tmp_path / "f", "0", 1e-3, weights, **options)
    assert not np.isfinite(approx(np.float32(options.get("side", (0, 1))[1])))
    assert check(folder, boxes=50).verdict == "NOT CHECKABLE"


def test_a_mean_is_rounded_as_a_whole(tmp_path):
    """What is 0 in one row of the mean is not 0 in another: the sum behind the mean has the summands of both."""
    u, many = 2.0**-53, 401
    weights = {("P", 1, 0): 2.0, ("P", 0): torch.tensor([0.0] + [u] * 400), ("W_R", ..., 0): 1.0}
    approx, folder = empty(tmp_path / "f", "1 + 100*0.5**52", 50 * u, weights, tokens=2, d_model=many, code="learned")
    assert abs(float(approx(np.zeros(2))) - (1 + 200 * u)) > 50 * u
    assert check(folder, boxes=3).verdict == "NOT CHECKABLE"


def test_a_mean_that_is_read_twice(tmp_path):
    _, folder = empty(tmp_path / "f", "0", 1e-3, {})
    path = folder / "model.safetensors"
    with safe_open(path, framework="pt") as file:
        about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    about["facts"] = json.dumps(json.loads(about["facts"]) | {"places": [0, 0]})
    save_file(tensors, path, metadata=about)
    twice = forged(folder, tmp_path / "g", target=lambda t: t | {"formula": "0; 0", "output_shape": [2]})
    assert ol.load(twice).output_shape == (2,)
    assert check(twice).verdict == "VALID"


def test_a_witness_is_a_point_that_the_layer_takes(tmp_path):
    """A float32 layer is certified at float32 points: at another one it is not refuted."""
    approx, folder = empty(tmp_path / "f", "x1", 0.1, {}, torch.float32)
    for x, verdict in ((0.5, "VALID"), (0.7, "INVALID")):
        claim = {"tolerance": 0.1, "witness": [x], "verdict": "REFUTED", "bound": None}
        assert approx.covers(x) is (verdict == "VALID")
        assert check(forged(folder, tmp_path / verdict, lambda r, c=claim: r | c)).verdict == verdict
