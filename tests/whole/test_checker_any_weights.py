"""Weights made by hand so that sums cancel, overflow or underflow: the checker says nothing false of such folders."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import arb

import onelayer as ol
from checking import check, forged, numbers
from made_by_hand import blank
from onelayer.approximation import Approximation
from onelayer.layer.facts import Facts
from onelayer.proof.certificate import Certificate

UNIT = [(0, 1)]
N = 7  # longer than the sequences at which the checker tries a layer


@pytest.fixture(scope="module", params=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture(scope="module")
def sort(tmp_path_factory, dtype):
    """Coordinates: the number, 1, N positions, N ranks, the answer."""
    return ol.gallery.any_length.sort(longest=N, dtype=dtype, tolerance=1e-2).save(
        tmp_path_factory.mktemp("sort") / "layer"
    )


def error(folder, right, ends=(0.0, 1.0)):
    """The largest at some sequences of N numbers of few digits."""
    layer, draw = ol.load(folder), np.random.default_rng(0)
    rows = ends[0] + (ends[1] - ends[0]) * draw.integers(0, 2**20, (20, N)) / 2.0**20
    with np.errstate(invalid="ignore"):
        return max(np.abs(np.ravel(layer(x)) - right(np.array(x))).max() for x in rows.tolist())


def never_false(folder, wrong):
    """NOT CHECKABLE, and VALID would be false."""
    found, claimed = check(folder), json.loads((folder / "certificate.json").read_text())["bound"]
    assert not wrong <= claimed
    assert found.verdict == "NOT CHECKABLE", str(found)


@pytest.mark.parametrize("dtype", ["float32"], indirect=True)
def test_biases_that_cancel_round_the_number(sort, tmp_path):
    def change(tensors):
        tensors["b_E"][0], tensors["P"][:, 0] = 2.0**19, -(2.0**19)

    folder = forged(sort, tmp_path / "f", weights=change)
    never_false(folder, error(folder, np.sort))


def test_queries_that_cancel(sort, tmp_path, dtype):
    """At the last position 1 + 2^30 − 2^30 is computed as 0, so all numbers have the same weight."""

    def change(tensors):
        tensors["P"][-1, -1] = tensors["W_1"][
            -1, -1
        ] = -1.0  # what this changes of the answer comes back from the last unit
        tensors["W_Q"][:, [1 + N, -1]] = 2.0**30 if dtype == "float32" else 2.0**60

    folder = forged(sort, tmp_path / "f", weights=change)
    never_false(folder, error(folder, np.sort))


def test_scores_that_overflow(tmp_path):
    """Weights that proofs can multiply one by one, but not all, and numbers as large."""
    high = 2.0**249

    def change(tensors):
        tensors["S"][0, 0] = high
        tensors["W_Q"][:, 1], tensors["W_K"][:, 0] = 2.0**400, -(2.0**400)

    claim = {"bound": high / 2**16, "tolerance": high, "domain": f"all n ≤ 1 and all x in [0, {high!r}]^n"}
    layer = ol.gallery.any_length.sort(longest=1).save(tmp_path / "layer")
    folder = forged(layer, tmp_path / "f", lambda r: r | claim, lambda t: t | {"ends": [0.0, high]}, change)
    never_false(folder, abs(ol.load(folder)([high / 3]) - high / 3))


def test_an_average_that_is_written_small(tmp_path):
    """What W^O writes is about 2^-140 and keeps nine bits; the units make it large again."""
    ends = (-(2.0**-61), 2.0**-61)
    layer = ol.set_function("mean(x)", longest=N, domain=ends, dtype="float32", tolerance=1e-22)

    def change(tensors):
        tensors["scale"][:] = 1.0
        for name, factor in (("W_V", 2.0**-40), ("W_O", 2.0**-40), ("W_1", 2.0**100), ("W_2", 2.0**40)):
            tensors[name] *= factor

    folder = forged(layer.save(tmp_path / "layer"), tmp_path / "f", lambda r: r | {"bound": 4e-24}, weights=change)
    never_false(folder, error(folder, np.mean, ends))


def test_a_function_that_jumps_does_not_rise(tmp_path):
    """Its slope is 1 on both sides of the jump, but its greatest value is not that of the greatest number."""
    jump = "max(where(x < 0.3, x, x - 1))"
    layer = ol.set_function("max(x)^2", longest=N, tolerance=0.05)

    def change(tensors):
        for name in ("W_1", "b_1", "W_2"):
            tensors[name].zero_()
        tensors["W_1"][-1, :4], tensors["b_1"][:4] = numbers(1, -1, 1, 1), numbers(0, 0, 0.25, 0.15)
        tensors["W_2"][:4, -2], tensors["b_R"][0] = numbers(1, -1, -10, 10), 0.5  # from max(x) to max(x) − 1 around 0.3
        tensors["W_K"] *= 64

    said = lambda t: t | {"text": jump, "parameters": t["parameters"] | {"formula": jump, "tolerance": 0.7}}  # noqa: E731
    claim = {"bound": 0.6, "tolerance": 0.7, "observed": 0.0}
    folder = forged(layer.save(tmp_path / "layer"), tmp_path / "f", lambda r: r | claim, said, change)
    never_false(folder, abs(float(ol.load(folder)([0.29, 0.36])) - 0.29))


def claimed(model, target, bound, folder):
    """The folder of a layer made by hand, which claims this bound."""
    claim = Certificate(bound, bound, 0.0, 1, "analytic", str(target.domain), weights=model.fingerprint())
    places = tuple(range(model.config.tokens)) if model.config.readout == "position" else ()
    facts = Facts("by hand", "", model.config.readout, (("weight", model.config.heads),), 1, places=places)
    return Approximation.of(model, target, claim, facts).save(folder)


def error_at(folder, x, value):
    return float(np.abs(ol.load(folder).model(numbers(*x)[None]).detach().numpy().ravel() - value).max())


def test_the_rounding_of_the_input_matters_to_tokens_that_are_left_out(tmp_path):
    """x̂ cancels a bias, and a key 2^70 times what is left of it says whether a token has weight."""
    scale, a, model = 0.3712345678, 0.7, blank(torch.float64, d_model=4)
    while Fraction(a) * Fraction(scale) - Fraction(a * scale) <= Fraction(1, 2**58):
        a = math.nextafter(a, 1)
    model.scale.fill_(scale)
    model.W_E[0, 0] = model.b_E[1] = model.W_K[0, 0, 0] = model.W_V[0, 1, 0] = model.W_O[0, 2] = model.W_R[2, 0] = 1.0
    model.b_E[0], model.W_Q[0, 1, 0] = -(a * scale), -(2.0**70)
    folder = claimed(model, ol.Target("0*x1", [(a, a * (1 + 1e-6))]), 1e-6, tmp_path / "layer")
    never_false(folder, error_at(folder, [[a]], 0.0))


def test_errors_of_queries_and_keys_are_multiplied(tmp_path):
    """Query and key are 0 and computed as 1, so the score is 1 and not 0, of which either error times 0 says nothing."""
    model, first, second = blank(torch.float64, d_model=8), 1 + 2.0**-30, 2.0**60 + 2.0**30
    model.b_E[:4] = numbers(
        first, -(first * second), -float(Fraction(first) * Fraction(second) - Fraction(first * second)), 1
    )
    model.W_Q[0, :3, 0] = model.W_K[0, :3, 0] = numbers(second, 1, 1)
    model.W_E[0, 7] = model.W_V[0, 3, 0] = model.W_O[0, 4] = model.W_R[4, 0] = 1.0
    folder = claimed(model, ol.Target("1/2 + 0*x1", UNIT), 1e-6, tmp_path / "layer")
    never_false(folder, error_at(folder, [[0.5]], 0.5))


def test_the_rounding_of_the_input_matters_to_silent_units(tmp_path):
    """x̂ is rounded to what lies below a bias that it exceeds."""
    draw, model = np.random.default_rng(0), blank(torch.float64, d_model=4)
    while True:
        scale, shift, a = draw.uniform(1, 2), -draw.uniform(0, 2), draw.uniform(0.5, 1)
        c = math.nextafter((a - shift) * scale, 10.0)
        if Fraction(c) < (Fraction(a) - Fraction(shift)) * Fraction(scale):
            break
    model.shift.fill_(shift)
    model.scale.fill_(scale)
    model.W_E[0, 0], model.b_E[0], model.W_1[0, 0], model.W_2[0, 1], model.W_R[1, 0] = 1.0, -c, -1.0, 2.0**60, 1.0
    folder = claimed(model, ol.Target("0*x1", [(a, a * (1 + 1e-6))]), 1e-6, tmp_path / "layer")
    never_false(folder, error_at(folder, [[a]], 0.0))


def test_heads_of_two_places_that_see_other_tokens(tmp_path):
    """What place 1 sees, in one list, is what place 2 sees; but the second value has weight e^−15 there, and 1 here."""
    model = blank(
        torch.float64, tokens=2, d_model=12, d_k=4, d_v=2, memory_tokens=4, code="learned", readout="position"
    )
    model.P[0, 0] = model.P[1, 1] = model.b_E[2] = model.W_V[0, 6, 0] = model.W_V[0, 7, 1] = model.W_O[
        1, 8
    ] = model.W_R[8] = 1.0
    model.W_Q[0, :3, :3] = model.W_K[0, 3:6, :3] = torch.eye(3)
    model.S[:2, 3], model.S[2:, 4], model.S[[0, 2], 5] = 4000.0, 4000.0, 30.0
    model.S[0, 6] = model.S[1, 7] = model.S[2, 6] = model.S[2, 7] = 1.0
    target = ol.Target("1/(1 + exp(15)) + 0*x1; 1/(1 + exp(-15)) + 0*x2", [(0, 1)] * 2, shape=(2, 1))
    folder = claimed(model, target, 1e-18, tmp_path / "layer")
    right = 1 / (1 + arb(-15).exp())
    (_, computed), *_ = ol.load(folder).model(numbers([0.5], [0.5])[None]).tolist()
    never_false(folder, float(abs(right - computed[0])))


def test_ends_that_are_no_floats(tmp_path):
    """Proved up to 2^60 + 384, and stated up to the next float, where the layer is no minimum."""
    low = 2**60 + 256
    layer = ol.set_function("min(x)", domain=(0.0, 128.0), tolerance=1e-1, longest=2)
    folder, formula, ends = layer.save(tmp_path / "layer"), f"min(x - {low})", [low, low + 128]

    def change(tensors):
        tensors["shift"].fill_(float(low))
        tensors["scale"].fill_(1.0)
        tensors["b_R"].zero_()
        tensors["W_K"][0, 0, 0], tensors["W_K"][0, 3:5, 0] = -8.0, -1770.0
        tensors["W_1"][7] = numbers(1, -1)

    own = json.loads((folder / "target.json").read_text())["parameters"] | {"domain": ends, "formula": formula}
    said = {
        "bound": 0.07,
        "observed": 0.0,
        "domain": f"all n ≤ 2 and all x in [{float(ends[0])!r}, {float(ends[1])!r}]^n",
    }
    target = lambda t: t | {"ends": ends, "parameters": own, "text": formula}  # noqa: E731
    found = check(forged(folder, tmp_path / "f", lambda r: r | said, target, change))
    assert found.verdict == "INVALID", str(found)
