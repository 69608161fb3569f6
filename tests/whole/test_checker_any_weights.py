"""Folders whose weights were changed by hand so that sums cancel, overflow or underflow: the checker says nothing false of them."""

import json

import numpy as np
import pytest

import onelayer as ol
from checking import check, forged, numbers

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
