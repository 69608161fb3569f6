"""Case studies of the paper that need no file of their own: a jump, and outputs that are as many as you like."""

import numpy as np
import pytest

import onelayer as ol

STEP = "where(x1 < 0.5, 0, 1)"


@pytest.fixture(scope="module")
def step():
    return ol.build(STEP, [(0, 1)], 0.05, margin=0.01)


def test_a_step_is_certified_outside_a_margin(step):
    assert step.certificate.verdict == "CERTIFIED"
    x = np.random.default_rng(0).random((20_000, 1))
    off = np.abs(step(x) - (x[:, 0] >= 0.5))
    away = np.abs(x[:, 0] - 0.5) > 0.01
    assert off[away].max() <= step.certificate.bound
    assert not step.covers(np.array([[0.505]]))[0]


@pytest.mark.parametrize("reach", [0.1, 1e-3, 1e-6])
def test_no_neighbourhood_of_a_jump_has_less_than_half_of_it(step, reach):
    near = ol.Target(STEP, [(0.5 - reach, 0.5 + reach)])
    found = ol.supremum(step.model, near, seconds=3.0)
    assert found.upper >= 0.5
    assert found.lower >= 0.5 - 1e-6
    assert ol.certify(step.model, near, 0.49, seconds=3.0).verdict == "REFUTED"


def test_in_the_mean_a_jump_is_harmless(step):
    found = ol.norm(step)
    assert found.upper < 0.05 < ol.norm(step, p=float("inf"), seconds=2.0).lower


def test_a_step_on_a_finite_set_is_exact():
    x = np.append(np.linspace(0, 1, 101), 0.5 - 1e-6)[:, None]  # the last sample is close to the jump
    stored = ol.memorize(x, (x[:, 0] >= 0.5).astype(int))
    assert stored.certificate.bound < 0.5
    assert (stored.answer(x) == (x[:, 0] >= 0.5)).all()


LENGTHS = {
    "fewer": ("x1*x2; x2*x3", (2, 1)),
    "as many": ("x2; x3; x1*x2", (3, 1)),
    "more": ("x1; x2; x3; x1*x2; x1*x3", (5, 1)),
    "other width": ("x1 + x2; x1*x2; x3; 1 - x3", (2, 2)),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("layout", ["token", "wide", "heads"])
@pytest.mark.parametrize("case", LENGTHS)
def test_three_tokens_to_any_number_of_vectors(case, layout):
    formula, shape = LENGTHS[case]
    options = {"shape": (3, 1), "output_shape": shape, "layout": layout}
    if layout != "token" and shape[0] > 3:
        with pytest.raises(ol.InputError, match="a token for each output"):
            ol.build(formula, [(0, 1)] * 3, 1e-2, **options)
        return
    approx = ol.build(formula, [(0, 1)] * 3, 1e-2, **options)
    x = np.random.default_rng(0).random((500, 3, 1))
    y = approx(x)
    assert approx.certificate.verdict == "CERTIFIED"
    assert y.shape == (500, *shape)
    assert np.abs(y.reshape(500, -1) - approx.target(x.reshape(500, 3))).max() <= approx.certificate.bound
