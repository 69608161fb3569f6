"""The boxes behind a certificate: they cover the domain, every point keeps what its box says, and together they say what the
certificate says."""

import functools
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import onelayer as ol
from hunting import deployed, proved_error
from onelayer.common.budget import Budget
from onelayer.common.outward import UP
from onelayer.proof.claim import Claim
from onelayer.proof.decision import prove_by

POINTS = 2_000
WORST = 4  # points, per target, where the real function of the weights is looked at as well
CASES = {
    "Runge": ("1/(1 + 25*x1**2)", [(-1, 1)], 1e-2, {}),
    "sum": ("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 0.1, {}),
    "sum of sharp terms": ("1/(1 + 25*x1**2) + 1/(1 + 10*x2**2)", [(-1, 1)] * 2, 2e-2, {}),
    "product": ("sin(x1*x2)", [(0, 2)] * 2, 0.1, {}),
    "kink": ("abs(x1 - x2)", [(0, 1)] * 2, 2e-2, {}),
    "kink beside a wave": ("abs(x1 - x2) + sin(3*x1)", [(0, 1)] * 2, 2e-2, {}),
    "maximum": ("max(x1, x2, x3)", [(0, 1)] * 3, 2e-2, {}),
    "outputs": ("x1*x2; x2*x3", [(0, 1)] * 3, 0.1, {}),
    "disk": ("exp(-x1**2 - x2)", [(-1, 1)] * 2, 0.1, {"within": "x1**2 + x2**2 <= 1"}),
    "float32": ("exp(-x1)*x2", [(0, 1)] * 2, 1e-2, {"dtype": "float32"}),
    "idle": ("x1**2", [(0, 1)] * 2, 1e-2, {}),  # x2 is in no patch
}


@functools.cache
def made(name):
    """(approximation, its covering)"""
    if name == "trained":
        trained = ol.train(
            "x1 * x2", [(0, 1)] * 2, steps=40, activation="relu", dtype="float64",
            heads=2, width=16, d_model=8, every=20, batch=64, samples=500,
        )  # fmt: skip
        a = replace(trained, certificate=ol.certify(trained, tolerance=0.9, seconds=20.0))
    else:
        formula, domain, tolerance, options = CASES[name]
        a = ol.build(formula, domain, tolerance, **options)
    return a, a.covering()


LONG = ("disk", "outputs", "sum of sharp terms", "kink beside a wave")
every = [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in (*CASES, "trained")]
names = pytest.mark.parametrize("name", every)


def points_of(a, count, seed=0):
    """Random points of the domain, as numbers that the model sees exactly."""
    unit = np.random.default_rng(seed).random((count, a.domain.dimension))
    return a.domain.representable(a.domain.points(unit), a.model.W_E.dtype == torch.float32)


def violation(a, boxes, x):
    """A point where |T − f| is above what its boxes say, or None: seen in floats, then proved with f in balls."""
    T = deployed(a.model, x)
    gaps = np.abs(T - a.target.values(x)).max(axis=1)
    bounds = np.array([boxes.bound(point) for point in x])
    suspects = np.flatnonzero(~(gaps <= bounds)).tolist()
    for i in [*suspects, *np.argsort(-gaps / bounds)[:WORST]]:
        if not proved_error(a.target, a.model, T[i].tolist(), x[i].tolist()) <= bounds[i]:
            return x[i]
    return None


def that_matter(patch):
    """All boxes of a patch, or, of many, those with the lowest and highest ends of some output and the first ten."""
    if len(patch) <= 100:
        return range(len(patch))
    return sorted({*patch.low.argmin(axis=0).tolist(), *patch.high.argmax(axis=0).tolist(), *range(10)})


def every_box(boxes):
    """A bound for each combination of boxes, one of every patch, as large as the domain, before it is cut to the proof's."""
    ends = np.array([boxes.domain.lower, boxes.domain.upper])
    for combination in itertools.product(*map(that_matter, boxes.patches)):
        one = [
            replace(p, lower=ends[:1, p.coordinates], upper=ends[1:, p.coordinates], low=p.low[[b]], high=p.high[[b]])
            for p, b in zip(boxes.patches, combination, strict=True)
        ]
        everywhere = replace(boxes, patches=tuple(one), everywhere=math.inf, domain=replace(boxes.domain, within=None))
        yield everywhere.bound(ends.mean(axis=0))


@pytest.mark.one_in(2)
@names
def test_together_they_say_what_the_certificate_says(name):
    a, boxes = made(name)
    assert a.certificate.verdict == "CERTIFIED"
    assert boxes.everywhere == a.certificate.bound
    assert a.certificate.bound / UP**2 <= max(every_box(boxes)) <= a.certificate.bound * UP**2


@pytest.mark.long
def test_both_engines_and_several_patches_are_here():
    methods = {name: a.certificate.method for name, (a, _) in ((n, made(n)) for n in (*CASES, "trained"))}
    assert set(methods.values()) == {"analytic", "bisect"}
    assert made("kink beside a wave")[0].certificate.evidence.kinks is not None
    assert [p.coordinates for p in made("sum")[1].patches] == [(0,), (1,)]
    assert min(len(p) for p in made("sum of sharp terms")[1].patches) > 1
    assert len(made("trained")[1]) > 10
    assert [p.coordinates for p in made("idle")[1].patches] == [(0,)]
    assert len(made("outputs")[1].patches[0].low[0]) == 2


@pytest.mark.one_in(2)
@names
def test_every_point_lies_in_boxes(name):
    a, boxes = made(name)
    corners = np.array(list(itertools.product(*zip(a.domain.lower, a.domain.upper, strict=True))))
    x = np.concatenate([points_of(a, 300), corners[a.domain.contains(corners)]])
    for point in x:
        own = boxes.at(point)
        assert [tuple(box["coordinates"]) for box in own] == [p.coordinates for p in boxes.patches]
        for box in own:
            assert (box["lower"] <= point[box["coordinates"]]).all()
            assert (point[box["coordinates"]] <= box["upper"]).all()
            assert len(box["low"]) == len(box["high"]) == a.target.outputs
        assert boxes.bound(point) <= a.certificate.bound


@pytest.mark.one_in(2)
@names
def test_no_point_is_worse_than_its_box_says(name):
    a, boxes = made(name)
    assert violation(a, boxes, points_of(a, POINTS, seed=1)) is None


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["Runge", "sum", "sum of sharp terms", "product", "disk", "trained"])
def test_the_hunt_can_fail(name):
    a, boxes = made(name)
    halved = tuple(replace(p, low=p.low / 2, high=p.high / 2) for p in boxes.patches)
    assert violation(a, replace(boxes, patches=halved), points_of(a, POINTS, seed=1)) is not None


@pytest.mark.one_in(3)
@names
def test_outside_there_is_nothing(name):
    a, boxes = made(name)
    inside = points_of(a, 1)[0] if name != "disk" else np.zeros(2)
    for axis, end in itertools.product(range(a.domain.dimension), (a.domain.lower, a.domain.upper)):
        out = inside.copy()
        out[axis] = np.nextafter(end[axis], np.inf if end is a.domain.upper else -np.inf)
        assert boxes.at(out) == []
        assert boxes.bound(out) == math.inf
    assert boxes.bound(np.full_like(inside, np.nan)) == math.inf


@pytest.mark.long
def test_a_condition_cuts_points_out():
    _, boxes = made("disk")
    assert boxes.at([0.6, 0.79])
    assert boxes.at([0.6, 0.81]) == []
    assert boxes.bound([0.6, 0.81]) == math.inf


def test_where_boxes_touch_the_better_one_counts():
    _, boxes = made("Runge")
    (patch,) = boxes.patches
    assert len(patch) > 1
    for face in sorted(set(patch.lower[:, 0]) & set(patch.upper[:, 0])):
        sides = [boxes.bound(np.nextafter(face, to)) for to in (-np.inf, np.inf)]
        assert boxes.bound(face) == min(sides)


@pytest.mark.long
def test_points_in_a_better_place_are_known_better():
    """The reason for boxes: they say more than the certificate."""
    a, boxes = made("disk")
    assert np.median([boxes.bound(p) for p in points_of(a, 200)]) < 0.9 * a.certificate.bound


def test_a_record_is_json():
    for name in ("Runge", "sum", "trained"):
        boxes = made(name)[1]
        told = boxes.record(len(boxes))
        assert json.loads(json.dumps(told, allow_nan=False)) == told
        assert [len(p["low"]) for p in told["patches"]] == [len(p) for p in boxes.patches]
        assert boxes.record(len(boxes) - 1) is None
    _, boxes = made("Runge")
    patch = boxes.patches[0]
    unknown = replace(boxes, patches=(replace(patch, high=np.full_like(patch.high, np.inf)),), everywhere=math.inf)
    told = unknown.record(10_000)
    assert told["patches"][0]["high"][0] == [None]
    assert told["everywhere"] is None
    assert unknown.bound(0.0) == math.inf


def test_no_boxes_behind_other_certificates():
    a, _ = made("Runge")
    for changes in ({"method": "theorem"}, {"method": "lemma"}, {"method": "none"}, {"bound": math.inf}):
        assert replace(a, certificate=replace(a.certificate, **changes)).covering() is None
    assert replace(a, target=None).covering() is None
    assert a.covering(seconds=1e-9) is None


def test_a_changed_model_has_no_boxes():
    a, _ = made("Runge")
    changed = replace(a, certificate=replace(a.certificate, weights="of another model"))
    with pytest.raises(ol.InputError, match="changed after it was certified"):
        changed.covering()


@pytest.mark.parametrize("x", [[0.0, 0.0], [], "somewhere"])
def test_a_point_has_all_variables(x):
    with pytest.raises(ol.InputError, match="a point of 1 numbers"):
        made("Runge")[1].bound(x)


def test_a_proof_is_shown_and_compared_without_its_boxes():
    a, _ = made("Runge")
    proof = prove_by("analytic", a.model, Claim(a.target, a.certificate.tolerance, a.facts.places), 0.0, Budget())
    assert proof.covering is not None
    assert proof == replace(proof, covering=None)
    assert repr(proof) == repr(replace(proof, covering=None))


def test_points_near_a_jump_have_no_boxes():
    a = ol.build("where(x1 < 0.5, 0, 1)", [(0, 1)], 0.1, margin=0.05)
    boxes = a.covering()
    assert boxes.at([0.5]) == []
    assert boxes.bound(0.2) <= a.certificate.bound
