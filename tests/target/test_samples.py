"""Data as target: shapes, one clear line for bad input, held-out samples, envelopes, and bounds that hold for every f."""

import hashlib
import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import onelayer as ol
from onelayer.common.budget import Budget
from onelayer.proof.bisection import prove as bisect
from onelayer.proof.claim import Claim
from onelayer.target.envelope import envelope_of
from onelayer.target.group_samples import GroupSamples
from onelayer.target.groups import groups_of
from onelayer.target.samples import data_of


def grid(side, count, D=2):
    axis = np.linspace(0, side, count)
    return np.stack(np.meshgrid(*[axis] * D, indexing="ij"), axis=-1).reshape(-1, D)


def wave(x):
    return 0.3 * np.sin(x.sum(axis=1))


@pytest.fixture(scope="module")
def waves():
    X = grid(3, 60)
    return X, wave(X)


@pytest.fixture(scope="module")
def certified(waves):
    return ol.build(waves, tolerance=0.05, lipschitz=0.3)


def sides_of(data, constants, x):
    """The lower and the upper side of the envelope, by the definition: functions through the samples with these constants."""
    d = (np.abs(x[:, None, :] - data.x[None]) * constants).sum(axis=2)[..., None]
    return (data.y - d).max(axis=1), (data.y + d).min(axis=1)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, np.ndarray.tolist])
def test_shapes_and_kinds(kind):
    rng = np.random.default_rng(0)
    flat, sequences = rng.random((40, 6)), rng.random((40, 3, 2))
    t = ol.Target((kind(flat), kind(flat.sum(axis=1))))
    assert (t.kind, t.dimension, t.sequence, t.output_shape) == ("data", 6, False, (1,))
    assert t.text == "40 samples of 6 variables"
    assert t.domain.lower == tuple(flat.min(axis=0))
    assert t.domain.upper == tuple(flat.max(axis=0))
    t = ol.Target((kind(sequences), kind(sequences**2)))
    assert (t.shape, t.sequence, t.output_shape, t.places) == ((3, 2), True, (3, 2), (3, 2))
    np.testing.assert_array_equal(t(sequences.reshape(40, 6)), (sequences**2).reshape(40, 6))
    assert ol.Target((kind(flat), kind(flat)), shape=(2, 3)).shape == (2, 3)
    t = ol.Target((kind(flat[:, 0]), kind(flat[:, 1])), {"T": (-1, 2)})
    assert (t.domain.names, t.dimension, t.domain.lower) == (("T",), 1, (-1.0,))
    assert groups_of(ol.Target((flat, flat[:, 0]))) == [(0, 1, 2, 3, 4, 5)]


def test_later_changes_of_the_arrays_do_not_matter():
    X, Y = np.random.default_rng(0).random((20, 2)), np.arange(20.0)
    t = ol.Target((X, Y))
    first = X[:1].copy()
    X[:], Y[:] = 0.0, 0.0
    assert t(first)[0, 0] == 0.0
    assert t.data.y[7, 0] == 7.0


SPREAD = np.random.default_rng(1).random((20, 2))
VALUES = SPREAD.sum(axis=1)


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("make", "mentions"),
    [
        (lambda: ol.Target((SPREAD, VALUES[:-1])), "20 inputs and 19 answers"),
        (lambda: ol.Target((SPREAD[:1], VALUES[:1])), "at least 2 samples"),
        (lambda: ol.Target(([], [])), "N ≥ 1"),
        (lambda: ol.Target((SPREAD[[0, 0]], VALUES[[0, 0]])), "at least 2 different samples"),
        (lambda: ol.Target((SPREAD, np.where(VALUES > 1, np.nan, VALUES))), "nan"),
        (lambda: ol.Target((np.where(SPREAD > 0.5, np.inf, SPREAD), VALUES)), "inf"),
        (lambda: ol.Target((SPREAD[[0, 1, 0]], VALUES[:3])), "samples 0 and 2 have the same x"),
        (lambda: ol.Target((SPREAD * [1, 0], VALUES)), "x2 = 0 in all of them"),
        (lambda: ol.Target((SPREAD, VALUES), [(0, 1), (0, 0.5)]), "sample"),
        (lambda: ol.Target((SPREAD, VALUES), [(0, 1)] * 2, within="x1 > 0.5"), "sample"),
        (lambda: ol.Target((SPREAD, VALUES), [(0, 1)] * 3), "samples of 2 variables"),
        (lambda: ol.Target((SPREAD, VALUES), [(0, 1), (1, 1)]), "low < high for x2"),
        (lambda: ol.Target((SPREAD, VALUES, VALUES)), "a pair (X, Y)"),
        (lambda: ol.Target([SPREAD, VALUES]), "samples (X, Y)"),
        (lambda: ol.Target((SPREAD * 1j, VALUES)), "real numbers as X"),
        (lambda: ol.Target((SPREAD, ["a"] * 20)), "real numbers as Y"),
        (lambda: ol.Target(([[1, 2], [3]], [1, 2])), "numbers as X"),
        (lambda: ol.Target((np.sin, VALUES)), "real numbers as X"),
        (lambda: ol.Target((np.array([2**53 + 1, 0]), VALUES[:2])), "float64 holds exactly"),
        (lambda: ol.Target((torch.zeros(2, dtype=torch.bfloat16), VALUES[:2])), "numbers as X"),
        (lambda: ol.Target((SPREAD[:, None], VALUES), shape=(2, 1)), "shape (1, 2), as X has it"),
        (lambda: ol.Target((np.zeros((20, 2, 1, 1)), VALUES)), "reshape the data"),
        (lambda: ol.Target((SPREAD, VALUES), output_shape=(2,)), "`output_shape` for 1 output"),
        (lambda: ol.Target((SPREAD, VALUES), split=-1), "split"),
        (lambda: ol.Target((SPREAD, VALUES), modulus=lambda r: r), "declare lipschitz"),
        (lambda: ol.Target((SPREAD, VALUES), lipschitz=-1.0), "lipschitz"),
        (lambda: ol.Target((SPREAD, VALUES))(np.zeros((1, 2))), "not a sample"),
        (lambda: ol.build((SPREAD, VALUES), method="representative"), "evaluated anywhere"),
        (lambda: ol.build((SPREAD, VALUES), symmetric=True), "evaluated anywhere"),
        (lambda: ol.build((SPREAD, VALUES), units=10, method="solved"), "18 fitted samples"),
        (lambda: ol.build((SPREAD, VALUES), hinges=20, method="solved"), "18 fitted samples"),
    ],
)
def test_bad_data_get_one_clear_line(make, mentions):
    with pytest.raises(ol.InputError) as caught:
        make()
    message = str(caught.value)
    assert mentions in message
    assert "\n" not in message


def test_equal_samples_count_once_and_declared_errors_are_allowed():
    X = np.array([0.0, 1.0, -0.0, 2.0])
    data = data_of((X, np.array([5.0, 6.0, 5.0, 7.0])))
    assert data.rows.tolist() == [0, 1, 3]
    data = data_of((X, np.array([5.0, 6.0, 5.1, 7.0])), error=0.1)
    assert len(data) == 3
    with pytest.raises(ol.InputError, match="same x"):
        data_of((X, np.array([5.0, 6.0, 5.1, 7.0])), error=0.01)


@given(N=st.integers(2, 60), D=st.integers(1, 8), seed=st.integers(0, 99))
def test_the_split(N, D, seed):
    X = np.random.default_rng(seed).random((N, D))
    data, again, other = (data_of((X, X[:, 0]), seed=s) for s in (seed, seed, seed + 1))
    assert sorted([*data.fitted, *data.held_out]) == list(range(N))
    assert 1 <= len(data.held_out) <= max(1, N // 10)
    assert len(data.fitted) >= 1
    assert np.array_equal(data.held_out, again.held_out)
    assert N < 60 or D > 2 or not np.array_equal(data.held_out, other.held_out)
    if len(data.extremes) < N:
        assert not set(data.extremes) & set(data.held_out)
    assert set(X.argmax(axis=0)) <= set(data.extremes)


def test_what_is_held_out_is_never_fitted(waves):
    X, Y = waves
    target = ol.Target((X, Y))
    held = {tuple(x) for x in target.domain.unit(X[target.data.held_out]) - 0.5}
    for count in (10, 500, 10**6):
        points, values = GroupSamples(target, (0, 1), 0).sample(count, 3)
        assert points.shape == (min(count, 3240), 2)
        assert len(values) == len(points)
        assert not held & set(map(tuple, points.tolist()))
    changed = Y.copy()
    changed[target.data.held_out] += 1.0
    a, b = (ol.build((X, y), tolerance=0.01) for y in (Y, changed))
    assert a.certificate.weights == b.certificate.weights
    assert a.certificate.observed < 0.01 < 0.9 < b.certificate.observed


def test_without_a_constant_nothing_is_proved(waves):
    approx = ol.build(waves, tolerance=1e-3, method="solved")
    c = approx.certificate
    assert (c.verdict, c.bound, c.method, c.observed_points) == ("UNDECIDED", np.inf, "none", 360)
    X, Y = waves
    held = approx.target.data.held_out
    assert c.observed == pytest.approx(np.abs(approx(X[held]) - Y[held]).max(), rel=1e-9)
    assert c.observed <= 1e-3
    assert c.evidence.held_out == 360
    assert "360 held-out samples" in str(approx)
    assert approx.target.modulus.kind == "estimated"
    assert ol.plan(waves, tolerance=1e-3, method="solved").units > 0


def test_builds_are_repeatable_and_touch_no_global_generator(waves):
    before = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002 (it is to stay as it is)
    a, b = (ol.build(waves, tolerance=0.01, seed=3) for _ in range(2))
    assert a.certificate == b.certificate
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == str(np.random.get_state())  # noqa: NPY002


def test_a_target_leaves_the_warning_filters_alone():
    code = """
import sys, warnings, numpy, onelayer
before = list(warnings.filters)
x = numpy.linspace(0, 1, 9)
onelayer.Target((x, x), lipschitz=1.0), onelayer.Target((x, x)).modulus
sys.exit(before != list(warnings.filters))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missed_sample_refutes(waves):
    approx = ol.build(waves, tolerance=1e-4, units=1)
    assert approx.certificate.verdict == "REFUTED"
    X, Y = waves
    row = int((approx.certificate.witness == X).all(axis=1).argmax())
    assert abs(approx(X[row]) - Y[row]) > 1e-4


def test_certified_for_every_function_through_the_samples(certified):
    """The two sides of the envelope are the worst functions that the data allow; no slack."""
    c, data = certified.certificate, certified.target.data
    assert c.verdict == "CERTIFIED"
    assert c.observed <= c.evidence.possible_error <= c.bound <= 0.05
    assert c.bound <= 1.6 * c.evidence.possible_error
    assert any("Lipschitz" in line for line in c.assumptions)
    rng = np.random.default_rng(5)
    x = np.concatenate([3 * rng.random((4000, 2)), grid(3, 2), grid(3, 60)[:59] + 3 / 118])
    for side in sides_of(data, 0.3, x):
        assert np.abs(certified(x) - side[:, 0]).max() <= c.bound
    assert np.abs(certified(x) - wave(x)).max() <= c.bound


@pytest.mark.parametrize("seed", range(6))
def test_no_bound_is_below_the_truth(seed):
    """Random data of random Lipschitz functions, random domains, several outputs: the sides never exceed the bound."""
    rng = np.random.default_rng(seed)
    D, m = 1 + seed % 2, 1 + seed % 3
    constants = rng.uniform(0.2, 2.0, D)
    X = rng.uniform(-1, 1, (60 * D, D)) * 10.0 ** rng.integers(-2, 3) + rng.normal() * 10
    waves = rng.normal(size=(D, m)) / np.ptp(X, axis=0)[:, None]
    Y = np.sin(X @ waves) * (constants / np.abs(waves).max(axis=1)).min() / D
    target = ol.Target((X, Y), lipschitz=constants.tolist())
    approx = ol.build(target, tolerance=0.2 * float(np.ptp(Y)))
    c = approx.certificate
    assert np.isfinite(c.bound)
    x = target.domain.points(rng.random((3000, D)))
    for side in sides_of(target.data, constants, x):
        assert np.abs(approx(x).reshape(len(x), -1) - side).max() <= c.bound
    assert c.observed <= c.bound


@pytest.mark.parametrize(("D", "count", "most"), [(1, 9, 1.02), (2, 5, 1.2)])
def test_the_bound_tends_to_the_worst_function_from_above(D, count, most):
    """Few samples: the gap is most of the bound. Searched as far as the budget goes, whatever the tolerance."""
    X = grid(3, count, D)
    approx = ol.build((X, wave(X)), tolerance=0.3, units=1 if D == 1 else 2, lipschitz=0.3)
    target, tiny = approx.target, 1e-9
    proof = bisect.prove(approx.model, Claim(target, tiny, approx.facts.places), 0.0, Budget(60.0, 8_000))
    x = grid(3, 3001 if D == 1 else 121, D)
    sides = [np.abs(approx(x) - side[:, 0]).max() for side in sides_of(target.data, 0.3, x)]
    assert max(sides) <= proof.bound <= most * max(sides)
    assert np.abs(approx(x) - target(x)[:, 0]).max() < 0.8 * max(sides)  # the middle alone would be too little


@given(seed=st.integers(0, 2**16), D=st.integers(1, 3), shift=st.sampled_from([0.0, 1e3, -1e9]))
def test_the_envelope_contains_what_it_should_in_exact_arithmetic(seed, D, shift):
    rng = np.random.default_rng(seed)
    X = shift + rng.random((6, D)) * 10.0 ** rng.integers(-3, 3)
    constants = tuple((10.0 ** rng.integers(-3, 3) * rng.random(D)).tolist())
    Y = X @ np.array(constants) * rng.uniform(-0.99, 0.99)
    envelope = envelope_of(data_of((X, Y - Y.mean()), error=1e-3 * float(np.ptp(Y))), constants)
    points = np.concatenate([X[:2], X[:1] + rng.random((4, D))])
    values, radius = envelope(points)
    error = Fraction(envelope.data.error)
    for point, value, r in zip(points.tolist(), values[:, 0].tolist(), radius[:, 0].tolist(), strict=True):
        distances = [
            sum(Fraction(L) * abs(Fraction(a) - Fraction(b)) for L, a, b in zip(constants, point, x, strict=True))
            for x in envelope.data.x.tolist()
        ]
        y = [Fraction(v) for v in envelope.data.y[:, 0].tolist()]
        low = max(v - error - d for v, d in zip(y, distances, strict=True))
        high = min(v + error + d for v, d in zip(y, distances, strict=True))
        assert Fraction(value) - Fraction(r) <= low <= high <= Fraction(value) + Fraction(r)
        assert r <= float(error + min(distances)) * (1 + 1e-9) + 1e-9 * abs(value) + 1e-12


def test_what_is_left_open_is_at_most_the_distance_to_the_nearest_sample():
    rng = np.random.default_rng(3)
    X = rng.random((50, 2))
    target = ol.Target((X, 0.2 * X[:, 0]), [(0, 1)] * 2, lipschitz=(0.4, 0.7))
    fine = grid(1, 150)
    low, high = sides_of(target.data, np.array([0.4, 0.7]), fine)
    nearest = (np.abs(fine[:, None] - X[None]) * [0.4, 0.7]).sum(axis=2).min(axis=1)
    values, radius = target.enclosed(fine)
    np.testing.assert_allclose(radius, (high - low) / 2, atol=1e-14)
    np.testing.assert_allclose(values, (high + low) / 2, atol=1e-14)
    assert (radius[:, 0] <= nearest * (1 + 1e-11)).all()
    assert 0.8 * radius.max() <= target.uncertainty <= radius.max() + 0.55 / 149
    wide = ol.Target((X, 0.2 * X[:, 0]), [(0, 5)] * 2, lipschitz=(0.4, 0.7))
    assert wide.uncertainty > 2 * target.uncertainty


def test_a_constant_that_samples_contradict_is_refused(waves):
    X, Y = waves
    with pytest.raises(ol.InputError, match=r"samples (\d+) and (\d+), whose values differ") as caught:
        ol.Target(waves, lipschitz=0.2)
    words = str(caught.value).split()
    i, k = (int(words[words.index("samples", 6) + n].strip(",")) for n in (1, 3))
    assert abs(Y[i] - Y[k]) > 0.2 * np.abs(X[i] - X[k]).sum()
    factor = float(words[words.index("times") - 1])
    ol.Target(waves, lipschitz=0.2 * factor)
    with pytest.raises(ol.InputError, match="obey the declared"):
        ol.Target(waves, lipschitz=0.2 * factor * 0.99)
    ol.Target(waves, lipschitz=0.2 * factor * 0.99, evaluation_error=0.01)


def test_rounded_values_do_not_contradict_the_exact_constant():
    X = np.random.default_rng(0).random((200, 1))
    ol.Target((X, 0.3 * X[:, 0] + 1 / 3), lipschitz=0.3)


def test_a_tolerance_that_the_samples_cannot_carry_is_said_to_be_so():
    X = grid(3, 20)
    approx = ol.build((X, wave(X)), tolerance=0.01, lipschitz=0.3)
    assert approx.certificate.verdict == "UNDECIDED"
    assert approx.certificate.observed <= 0.01 < approx.target.uncertainty <= approx.certificate.bound
    assert "leave f open" in str(approx)


def test_a_declared_error_is_part_of_the_bound(waves):
    X, Y = waves
    rng = np.random.default_rng(0)
    approx = ol.build((X, Y + rng.uniform(-0.01, 0.01, len(Y))), tolerance=0.08, lipschitz=0.3, evaluation_error=0.01)
    assert approx.certificate.verdict == "CERTIFIED"
    x = 3 * rng.random((3000, 2))
    assert np.abs(approx(x) - wave(x)).max() <= approx.certificate.bound


@pytest.mark.long
def test_float32(waves):
    c = ol.build(waves, tolerance=0.05, lipschitz=0.3, dtype="float32").certificate
    assert (c.verdict, c.arithmetic) == ("CERTIFIED", "float32")
    c = ol.build(waves, tolerance=0.01, dtype="float32").certificate
    assert c.verdict == "UNDECIDED"
    assert c.observed <= 0.01


def test_part_of_a_box():
    X = grid(2, 41) - 1
    X = X[(X**2).sum(axis=1) <= 1]
    target = ol.Target((X, 0.2 * X[:, 0] * X[:, 1]), within="x1**2 + x2**2 <= 1", lipschitz=0.2)
    c = ol.build(target, tolerance=0.03).certificate
    assert c.verdict == "CERTIFIED"


def test_a_perturbed_weight_is_no_longer_certified(certified):
    model = ol.SingleLayerTransformer(certified.model.config)
    model.load_state_dict(certified.model.state_dict())
    again = ol.certify(model, certified.target, 0.05, places=certified.facts.places)
    assert again.verdict == "CERTIFIED"
    with torch.no_grad():
        model.b_R += 0.1
    assert ol.certify(model, certified.target, 0.05, places=certified.facts.places).verdict == "REFUTED"


def test_folders_say_which_samples_they_were(certified, waves, tmp_path):
    folder = certified.save(tmp_path / "a")
    about = json.loads((folder / "target.json").read_text())
    X, Y = waves
    assert (about["kind"], about["formula"]) == ("data", None)
    assert about["data"] == {
        "samples": 3600,
        "held_out": 360,
        "split": 0,
        "sha256": {name: hashlib.sha256(t.tobytes()).hexdigest() for name, t in (("x", X + 0.0), ("y", Y + 0.0))},
    }
    back = ol.load(folder)
    assert back.target is None
    assert back.certificate == certified.certificate
    assert "3,600 samples of 2 variables, not stored" in str(back)
    assert "360 held-out samples" in str(back)
    again = back.save(tmp_path / "b")
    assert (again / "target.json").read_text() == (folder / "target.json").read_text()
    found = ol.check(folder)
    assert (found.verdict, found.reason) == ("NOT CHECKABLE", "the target is data that are not stored")
    with pytest.raises(ol.InputError, match="data that were not stored"):
        ol.certify(back)
    assert ol.certify(back, ol.Target(waves, lipschitz=0.3)).verdict == "CERTIFIED"
