"""The gallery on real numbers: proved bounds against exact answers, at random, tied, nearly tied and optimised inputs."""

import json
import math
import operator
from fractions import Fraction

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer import gallery
from onelayer.construction.gallery.maxima import Combination, any_shortfall, expected_range, prove_maxima
from onelayer.construction.gallery.order import rank_factor

SORT_CASES = [(n, 1e-9) for n in range(2, 9)]


def errors(approximation, x, y):
    """Exact |T(x) − y| per point, the largest over the outputs: no rounding in the difference."""
    t = np.asarray(approximation(x), dtype=np.float64).reshape(len(x), -1).tolist()
    y = np.asarray(y).reshape(len(x), -1).tolist()
    rows = [max(abs(Fraction(a) - Fraction(b)) for a, b in zip(r, s, strict=True)) for r, s in zip(t, y, strict=True)]
    return np.array(rows, dtype=object)


def holds(approximation, x, y):
    assert approximation.certificate.verdict == "CERTIFIED"
    return bool((errors(approximation, x, y) <= Fraction(approximation.certificate.bound)).all())


def hard_points(n, beta, ends, rng, count=300):
    """Random, tied, cornered and nearly tied points, with gaps around 1/β."""
    low, high = ends
    unit = rng.random((count, n))
    tied = np.round(rng.random((count, n)) * 2) / 2
    gaps = rng.exponential(1.0, (count, n)) * rng.choice([0.1, 1.0, 5.0], (count, 1)) / beta
    near = np.clip(rng.random((count, 1)) + gaps, 0, 1)
    return np.clip(low + (high - low) * np.concatenate([unit, tied, near]), low, high)


def worst_by_search(approximation, n, beta, rng, rounds=60):
    """Inputs with gaps around 1/β, moved uphill: the largest error that a random search finds."""
    gaps = rng.exponential(1.0, (64, n))
    best = 0.0
    for step in range(rounds):
        trial = np.abs(gaps + rng.normal(0, 1.5 / (1 + step / 8), gaps.shape))
        both = np.concatenate([gaps, trial])
        x = np.clip(0.3 + both / beta, 0, 1)
        e = np.abs(approximation(x).reshape(len(x), -1) - np.sort(x, axis=1)).max(axis=1)
        order = np.argsort(-e)[:64]
        gaps, best = both[order], max(best, float(e.max()))
    return best


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("n", "tolerance"), SORT_CASES)
def test_sort_is_proved_within_1e_9_and_never_exceeds_its_bound(n, tolerance):
    rng = np.random.default_rng(n)
    a = gallery.sort(n, tolerance)
    assert a.certificate.bound <= tolerance
    assert a.model.config.heads == 2**n - 1 == a.units
    x = hard_points(n, a.facts.largest_score, (0.0, 1.0), rng, 100 if n > 6 else 300)
    assert holds(a, x, np.sort(x, axis=1))
    found = worst_by_search(a, n, a.facts.largest_score, rng, 20 if n > 6 else 60)
    assert 0.05 * a.certificate.bound < found <= a.certificate.bound


@pytest.mark.long
def test_sort_of_ten_numbers_within_1e_6():
    a = gallery.sort(10, 1e-6)
    assert a.certificate.bound <= 1e-6
    assert a.model.config.heads == 1023
    x = hard_points(10, a.facts.largest_score, (0.0, 1.0), np.random.default_rng(1), 100)
    assert holds(a, x, np.sort(x, axis=1))


def test_the_expected_range_is_that_of_gumbel_variables():
    assert math.isclose(expected_range(2), 2 * math.log(2), rel_tol=1e-12)
    assert abs(expected_range(8) - 3.56) < 0.01
    g = np.random.default_rng(0).gumbel(size=(200_000, 6))
    assert abs(expected_range(6) - np.ptp(g, axis=1).mean()) < 0.02
    assert expected_range(40) > expected_range(39)  # no cancellation


def test_rank_factors_are_the_maximum_minimums_identity():
    x = [3, 1, 4, 1, 5]
    for k in range(1, 6):
        total = 0
        for bits in range(1, 32):
            chosen = [v for j, v in enumerate(x) if bits >> j & 1]
            total += rank_factor(len(chosen), k) * max(chosen)
        assert total == sorted(x)[k - 1]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 0.7), (1000.0, 1003.0)])
def test_order_entries_hold_on_every_interval(ends, dtype):
    rng = np.random.default_rng(5)
    tolerance = 1e-8 if dtype == "float64" else 2e-2
    made = [
        (gallery.maximum(5, tolerance, domain=ends, dtype=dtype), lambda x: x.max(axis=1)),
        (gallery.minimum(4, tolerance, domain=ends, dtype=dtype), lambda x: x.min(axis=1)),
        (gallery.median(5, tolerance, domain=ends, dtype=dtype), lambda x: np.median(x, axis=1)),
        (gallery.top_k(5, 2, tolerance, domain=ends, dtype=dtype), lambda x: -np.sort(-x, axis=1)[:, :2]),
        (gallery.running_max(6, tolerance, domain=ends, dtype=dtype), lambda x: np.maximum.accumulate(x, axis=1)),
        (gallery.sort(4, tolerance, descending=True, domain=ends, dtype=dtype), lambda x: -np.sort(-x, axis=1)),
    ]
    for a, f in made:
        x = hard_points(a.domain.dimension, a.facts.largest_score, ends, rng)
        x = a.domain.representable(x, dtype == "float32")
        assert len(x)
        assert holds(a, x, f(x)), a.description.text


def test_the_absolute_difference_has_one_max_head_and_two_reads():
    a = gallery.absolute_difference(1e-9)
    assert a.facts.heads == (("max", 1), ("read", 2))
    x = hard_points(2, a.facts.largest_score, (0.0, 1.0), np.random.default_rng(0))
    exact = np.array([[abs(Fraction(p) - Fraction(q))] for p, q in x.tolist()])
    t = a(x)
    assert all(abs(Fraction(v) - e[0]) <= Fraction(a.certificate.bound) for v, e in zip(t.tolist(), exact, strict=True))


def test_even_medians_are_means_of_two():
    a = gallery.median(4, 1e-7)
    assert abs(a([0.1, 0.2, 0.6, 0.9]) - 0.4) <= a.certificate.bound


def test_changed_weights_are_not_proved():
    a = gallery.sort(3, 1e-6)
    sets = ((np.arange(1, 8)[:, None] >> np.arange(3)) & 1).astype(bool)
    factors = np.array([[float(rank_factor(int(s.sum()), k)) for k in (1, 2, 3)] for s in sets])
    f = Combination(sets, factors, np.full(3, expected_range(3)), np.ones(3))
    assert prove_maxima(a.model, (0,), f, (0.0, 1.0)) is not None
    for name, where in [("W_O", (2, 1)), ("W_K", (4, 0, 0)), ("W_V", (6, 0, 0)), ("b_R", (1,)), ("W_K", (3, 1, 0))]:
        other = ol.SingleLayerTransformer(a.model.config)
        other.load_state_dict(a.model.state_dict())
        with torch.no_grad():
            getattr(other, name)[where] += 0.25 * (1 + getattr(other, name)[where].abs())
        proved = prove_maxima(other, (0,), f, (0.0, 1.0))
        if proved is not None:  # the change may be harmless, as that of a masked key is
            x = hard_points(3, a.facts.largest_score, (0.0, 1.0), np.random.default_rng(2))
            with torch.no_grad():
                t = other(torch.from_numpy(x)[..., None])[:, 0].numpy()
            assert np.abs(t - np.sort(x, axis=1)).max() <= proved.bound


def test_any_combination_is_bounded_by_the_sum_of_shortfalls():
    sets = np.array([[True, True, False], [True, True, True]])
    assert any_shortfall(sets, np.array([[1.0], [-2.0]]))[0] > 2 * 0.4


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_routing_is_exact(dtype):
    largest = 1e140 if dtype == "float64" else 1e30
    hard = np.array([[largest, -largest, 0.0, -0.0, 1 / 3], [2.0**-60, 1.0, largest / 3, -1e-5, 7.0]])
    hard = hard if dtype == "float64" else hard.astype(np.float32).astype(np.float64)
    cases = [
        (gallery.permute([3, 1, 0, 4, 2], dtype=dtype), hard[:, [3, 1, 0, 4, 2]]),
        (gallery.reverse(5, dtype=dtype), hard[:, ::-1]),
        (gallery.shift(5, 2, dtype=dtype), np.pad(hard, ((0, 0), (2, 0)))[:, :5]),
        (gallery.shift(5, -1, cyclic=True, dtype=dtype), np.roll(hard, -1, axis=1)),
        (gallery.shift(5, 9, dtype=dtype), np.zeros_like(hard)),
    ]
    for a, wanted in cases:
        assert a.certificate.verdict == "CERTIFIED"
        assert a.certificate.bound == 0.0
        assert np.array_equal(a(hard), wanted)
        assert a.model.config.heads == 1


def exactly(row, function):
    return [function(p) for p in [list(map(Fraction, p)) for p in row.tolist()]]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_linear_entries_are_within_their_rounding(dtype):
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(3, 7)), rng.normal(size=3)
    rows = [(list(map(Fraction, r)), Fraction(o)) for r, o in zip(A.tolist(), b.tolist(), strict=True)]
    low, high = Fraction(-0.1), Fraction(0.3)
    x = np.concatenate([rng.uniform(-1, 1, (200, 7)), rng.choice([-1.0, -0.1, 0.3, 1.0, 0.0], (100, 7))])
    made = [
        (gallery.affine(A, b, dtype=dtype), lambda p: [sum(map(operator.mul, r, p)) + o for r, o in rows]),
        (gallery.mean(7, dtype=dtype), lambda p: [sum(p) / 7]),
        (gallery.clip(7, -0.1, 0.3, dtype=dtype), lambda p: [min(max(v, low), high) for v in p]),
    ]
    for a, f in made:
        here = a.domain.representable(x, dtype == "float32")
        assert holds(a, here, exactly(here, f))


def test_the_mean_has_no_positional_codes_and_clip_is_exact_inside():
    assert gallery.mean(5).model.config.code == "none"
    x = np.random.default_rng(1).uniform(-0.5, 0.5, (50, 4))
    assert np.array_equal(gallery.clip(4)(x), x)


def test_a_deep_set_ignores_the_order():
    a = gallery.deep_set("x1 + x2 + max(x1, x2)", 2, 1e-3)
    assert a.certificate.verdict == "CERTIFIED"
    assert a.model.config.code == "none"
    x = np.random.default_rng(0).random((50, 2))
    assert np.abs(a(x) - a(x[:, ::-1].copy())).max() < 1e-9


def test_every_entry_explains_its_heads():
    for a in (gallery.sort(3), gallery.running_max(3), gallery.shift(3), gallery.mean(3), gallery.affine([[1.0, 2.0]])):
        assert len(a.facts.story) > 40
        assert "what heads do" in str(a)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gallery.sort(10, 1e-13), "no proof below"),
        (lambda: gallery.sort(6, 1e-6, dtype="float32"), "float64"),
        (lambda: gallery.sort(20), "heads"),
        (lambda: gallery.sort(0), "from 1 to 512"),
        (lambda: gallery.sort(3, -1.0), "tolerance"),
        (lambda: gallery.sort(3, domain=(1.0, 0.0)), "low < high"),
        (lambda: gallery.top_k(3, 4), "from 1 to 3"),
        (lambda: gallery.permute([0, 0]), "permutation"),
        (lambda: gallery.permute([]), "permutation"),
        (lambda: gallery.clip(2, 1.0, 0.0), "in order"),
        (lambda: gallery.affine([[1.0], [2.0, 3.0]]), "matrix"),
        (lambda: gallery.affine([[1.0]], [1.0, 2.0]), "shapes"),
        (lambda: gallery.mean(3, 1e-30), "no proof below"),
        (lambda: gallery.sort(3, dtype="float16"), "float32"),
        (lambda: gallery.affine([[1.0] * 40], domain=(0.0, 1e37), dtype="float32"), "overflow"),
        (lambda: gallery.affine([[4.4e156] * 42], domain=(0.0, 1e150)), "overflow"),
        (lambda: gallery.affine([[1e39]], dtype="float32"), "overflow"),
        (lambda: gallery.clip(2, -1e300, 1e300, dtype="float32"), "overflow"),
        (lambda: gallery.mean(3, domain=(1e100, 2e100), dtype="float32"), "float32 numbers in it"),
        (lambda: gallery.affine([[1.0]], tolerance=0.0), "tolerance"),
        (lambda: gallery.mean(3, tolerance=0), "tolerance"),
        (lambda: gallery.permute([0, "a"]), "permutation"),
        (lambda: gallery.permute(3), "permutation"),
        (lambda: gallery.permute([True, False]), "permutation"),
        (lambda: gallery.clip(2, "a", 6), "numbers"),
        (lambda: gallery.clip(2, math.nan, 6), "numbers"),
        (lambda: gallery.sort(512), "about 1e154"),
        (lambda: gallery.deep_set("x1 - x2", 2), "permutation"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(make, words, as_user):
    with pytest.raises(ol.InputError) as refusal:
        make()
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_entry_survives_its_folder(tmp_path):
    a = gallery.sort(3, 1e-7)
    a.save(tmp_path / "sort")
    b = ol.load(tmp_path / "sort")
    assert b.certificate == a.certificate
    assert b.facts.story == a.facts.story
    assert np.array_equal(a([0.3, 0.1, 0.2]), b([0.3, 0.1, 0.2]))
    assert "3 numbers in ascending order" in str(b)
    with pytest.raises(ol.InputError):
        b.answer([0.3, 0.1, 0.2])
    assert ol.check(tmp_path / "sort").verdict == "VALID"


def test_the_command_line_lists_and_builds(tmp_path, capsys, as_user):
    from onelayer.apps.cli import main

    assert main(["gallery"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in gallery.ENTRIES)
    assert main(["gallery", "sort", "--n", "3", "--eps", "1e-7", "--out", str(tmp_path / "s"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "CERTIFIED"
    assert main(["eval", str(tmp_path / "s"), "0.3", "0.1", "0.2"]) == 0
    assert main(["gallery", "permute", "--order", "1,0"]) == 0
    assert main(["gallery", "affine", "--matrix", "1,2; 3,4", "--offset", "0.5,1"]) == 0
    assert main(["gallery", "shift", "--n", "4", "--by=-1", "--cyclic", "--json"]) == 0
    capsys.readouterr()
    for bad in (
        ["srt"],
        ["sort"],
        ["sort", "--n", "x"],
        ["sort", "--n"],
        ["sort", "--m", "3"],
        ["sort", "--n", "3", "--domain", "1"],
    ):
        assert main(["gallery", *bad]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("entry", ["sort", "maximum", "minimum", "median", "running_max", "mean", "reverse", "clip"])
def test_one_number_is_its_own_everything(entry):
    a = gallery.ENTRIES[entry](1)
    assert holds(a, np.array([[0.3], [0.0], [0.4]]), np.array([[0.3], [0.0], [0.4]]))


def test_few_sets_of_many_numbers():
    a = gallery.top_k(40, 1, 1e-6)
    assert a.model.config.heads == 1
    x = np.random.default_rng(0).random((50, 40))
    assert holds(a, x, x.max(axis=1))


def test_ends_may_be_formulas_and_lengths_numpys(as_user):
    a = gallery.sort(np.int64(3), 1e-6, domain=("0", "2*pi"))
    assert a.description.parameters["domain"][1] > 6.28
    assert np.abs(a([3.0, 1.0, 2.0]) - [1, 2, 3]).max() <= 1e-6


def test_the_least_tolerance_that_a_refusal_names_is_granted():
    with pytest.raises(ol.InputError) as refusal:
        gallery.sort(2, 1.5e-15)
    least = float(str(refusal.value).split("ask for ")[1].split(" ")[0])
    assert least < 1e-13
    assert gallery.sort(2, least).certificate.verdict == "CERTIFIED"


def test_flushed_subnormals_are_covered_or_excluded():
    a = gallery.clip(2, -1e-37, 1e-37, domain=(-1e-37, 1e-37), dtype="float32")
    assert any("subnormal" in text for text in gallery.reverse(3).certificate.assumptions)
    torch.set_flush_denormal(True)
    try:
        y = a(np.array([1.1e-38, 1e-40]))
    finally:
        torch.set_flush_denormal(False)
    assert np.abs(y - [1.1e-38, 1e-40]).max() <= a.certificate.bound


@pytest.mark.parametrize(
    "change", [{"vocabulary": 3}, {"decoding": []}, {"decoding": {"kind": "round"}}, {"output_shape": [7]}]
)
def test_a_folder_that_contradicts_its_model_is_refused(change, tmp_path, as_user):
    from onelayer.deployment.folder import FILES, _digest, _json

    gallery.sort(3).save(tmp_path / "s")
    about = json.loads((tmp_path / "s" / FILES[1]).read_text()) | change
    (tmp_path / "s" / FILES[1]).write_text(_json(about))
    record = json.loads((tmp_path / "s" / FILES[2]).read_text())
    record.pop("digest")
    record["sha256"] = {name: _digest((tmp_path / "s" / name).read_bytes()) for name in FILES[:2]}
    record["digest"] = _digest(_json(record).encode())
    (tmp_path / "s" / FILES[2]).write_text(_json(record))
    with pytest.raises(ol.InputError, match=r"asked: a (complete )?target\.json"):
        ol.load(tmp_path / "s")
