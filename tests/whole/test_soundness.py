"""No bound below the truth, with zero slack: the short version of `benchmarks/measure/soundness.py`."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import crafted_hunt
import hunting
import onelayer as ol
import statements
from checking import checker
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.form import form_of
from onelayer.proof import decision

SEEDS = range(5_000_000, 5_000_240)
HUNTS = [
    ("analytic", hunting.case, torch.float64, SEEDS[:120]),
    ("analytic", hunting.case, torch.float32, SEEDS[120:160]),
    ("analytic", hunting.special, torch.float64, SEEDS[:60]),
    ("analytic", hunting.special, torch.float32, SEEDS[60:90]),
    ("bisect", hunting.case, torch.float64, SEEDS[160:210]),
    ("bisect", hunting.case, torch.float32, SEEDS[210:240]),
    ("bisect", hunting.network, torch.float64, SEEDS[:60]),
    ("bisect", hunting.network, torch.float32, SEEDS[60:100]),
]


@pytest.mark.parametrize(
    ("method", "maker", "dtype", "seeds"),
    [
        *((*hunt, seeds[::5]) for *hunt, seeds in HUNTS),
        *(
            pytest.param(*hunt, [s for s in seeds if s not in seeds[::5]], marks=pytest.mark.long)
            for *hunt, seeds in HUNTS
        ),
    ],
)
def test_no_bound_is_below_the_truth(method, maker, dtype, seeds):
    few = method == "analytic" and len(seeds) < 20  # there, more of them must end in time
    engine = hunting.engine(method, 1.0 if few else 0.3, dtype, 20_000 if method == "analytic" else 200)
    finds = list(hunting.hunt(engine, map(maker, seeds), dtype))
    violations = [f"{f.case}: bound {f.bound!r} < observed {f.observed!r}" for f in finds if f.violated]
    assert not violations
    assert sum(math.isfinite(f.bound) for f in finds) > len(finds) / 5  # the hunt is not empty
    if dtype == torch.float64 and maker is hunting.case:
        assert np.median([f.ratio for f in finds if f.telling]) < 1.1  # nor are the bounds


def test_the_hunt_would_find_a_bound_that_is_too_low():
    """An engine that claims 1% less than the analytic one is caught, and so is one that ignores NaN."""
    honest = hunting.engine("analytic", seconds=0.5)
    cases = [hunting.case(seed) for seed in SEEDS[:40]]
    assert any(f.violated for f in hunting.hunt(lambda case: 0.95 * honest(case), cases))
    poisoned = [case for case in map(hunting.case, range(100)) if case.poisoned]
    assert poisoned
    assert all(f.violated for f in hunting.hunt(lambda case: 1e9, poisoned))


def test_real_and_deployed_values_agree():
    """The ball of T is what the model answers, up to rounding."""
    for seed in range(30):
        case = hunting.case(seed)
        if not case.poisoned:
            frame, form = frame_of(case.target.domain), form_of(case.layer)
            x = case.target.domain.points(np.full((1, case.target.dimension), 0.3))
            real = [float(v) for v in hunting.real_value(form, frame, x[0].tolist())]
            answer = hunting.deployed(assemble(case.layer, frame, outputs_of(case.target)), x)[0]
            size = sum(float(b.values.abs().sum() + b.slopes.abs().sum()) for b in form.blocks)
            assert np.abs(np.array(real) - answer).max() <= 1e-9 * (1 + size + float(form.linear.abs().sum()))


def test_a_case_is_the_same_every_time():
    a, b = hunting.case(17), hunting.case(17)
    assert str(a) == str(b)
    assert (a.layer.bias == b.layer.bias).all()
    assert replace(a, tolerance=1.0).tolerance != a.tolerance


@pytest.mark.one_in(5)
@pytest.mark.parametrize("kind", statements.KINDS)
def test_nothing_around_a_bound_is_false(kind, tmp_path):
    assert not [line for seed in range(3) for line in statements.attack(kind, seed, tmp_path / str(seed))]


@pytest.mark.long
def test_the_attacks_would_find_a_false_statement(tmp_path, monkeypatch):
    """A certificate that covered every point, a checker that believed every share, numbers rounded to the nearest."""
    monkeypatch.setattr(ol.Approximation, "covers", lambda self, x: np.full(len(x), True))
    monkeypatch.setattr(statements, "at_most", lambda value, digits: f"{value:.{digits}g}")
    monkeypatch.setattr(statements, "check", lambda folder, seconds: checker.Verdict("VALID", ""))
    for kind in ("margins", "float32_points", "relative_claims", "printed_numbers"):
        assert any(statements.attack(kind, seed, tmp_path / f"{kind}{seed}") for seed in range(3)), kind


def test_nothing_is_false_about_crafted_layers():
    found = [crafted_hunt.attack(seed, "bounds") for seed in range(20)]
    found += [
        crafted_hunt.attack(seed, kind) for seed in range(2) for kind in ("slopes", "supremum", "formulas", "overflow")
    ]
    assert not [line for one in found for line in one.false]
    assert sum(one.said for one in found) > len(found) / 5  # the hunt is not empty


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(100, 200), range(200, 300)])
def test_nothing_is_false_about_more_of_them(seeds):
    assert not [line for seed in seeds for line in crafted_hunt.attack(seed).false]


def test_the_crafted_hunt_would_find_a_bound_that_is_too_low(monkeypatch):
    """An engine that claims a thousandth of what it proved; the same seed is the same attack again."""
    honest = decision.prove_by

    def bold(*arguments):
        proof = honest(*arguments)
        return proof and replace(proof, bound=proof.bound / 1000)

    monkeypatch.setattr(decision, "prove_by", bold)
    false = next(one for one in (crafted_hunt.attack(seed, "bounds") for seed in range(60)) if one.false)
    assert crafted_hunt.attack(false.seed, "bounds").about == false.about
