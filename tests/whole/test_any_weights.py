"""Weights and formulas made by hand so that numbers vanish or overflow inside our own algebra: nothing false is said of them."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import arb, ctx, fmpq
from safetensors.torch import save

import onelayer as ol
from checking import check, checker, forged
from made_by_hand import answers, blank, proved
from onelayer.approximation import Approximation
from onelayer.deployment.export.subject import Bound, Subject
from onelayer.layer.arithmetic import FLOAT32
from onelayer.layer.number_range import out_of_range
from onelayer.layer.reading import form_of_model
from onelayer.proof.bisection.activated import relu_lines
from onelayer.proof.certificate import Certificate
from onelayer.proof.overflow import cannot_overflow
from onelayer.proof.two_sided import Supremum
from onelayer.proof.witness import in_balls

UNIT = [(0, 1)]


def masked(dtype, value, score):
    """A memory token of this value, masked by a score of `score` − 900 x, beside a unit that is silent by a hair."""
    model = blank(dtype, d_model=7, d_k=4)
    model.shift.fill_(0.5)
    model.W_E[0, 0], model.b_E[1], model.S[0, 5], model.S[0, 2] = 1.0, 1.0, 1.0, value
    model.W_Q[0, 1, 0], model.W_Q[0, 0, 1] = 1.0, 1.0
    model.W_K[0, 5, 0], model.W_K[0, 5, 1] = 2 * (score - 450.0), -1800.0
    model.W_V[0, 2, 0], model.W_O[0, 3] = 1.0, 1.0
    model.W_1[3, 0], model.b_1[0], model.W_2[0, 4], model.W_R[4, 0] = 1.0, -(2.0**-60), 2.0**10, 1.0
    return model


def hinged(inner, outer):
    """Three ReLUs, a hat of height inner·outer²·2^−22, whose outgoing weights are small twice."""
    width, at = 2.0**-22, 0.1
    model = blank(torch.float64, d_model=2, ffn_width=3, memory_tokens=0)
    model.shift.fill_(0.5)
    model.W_E[0, 0], model.W_R[1, 0] = 1.0, outer
    for unit, height in enumerate((1.0, -2.0, 1.0)):
        model.W_1[0, unit], model.b_1[unit], model.W_2[unit, 1] = inner, -inner * (at + unit * width), height * outer
    return model, 0.5 + at + width


def test_weight_on_a_masked_token_opens_a_silent_unit():
    """The real function is above 1e-11 at 0, where the token is least masked."""
    model, target = masked(torch.float32, 2.0**105, -104.5), ol.Target("1e-14*x1", UNIT)
    assert proved(model, target) >= float(in_balls(model, [0.0])[0][0]) > 1e-11
    reading = form_of_model(model, (0,), 0.5)
    assert reading is None or float(reading.error) > 1e-11


@pytest.mark.parametrize("bias", [-0.1, 0.1])
def test_a_rounded_value_opens_a_silent_unit(bias):
    """The value of a memory token is 0, and −1 as it is computed: half of that reaches a unit, which is silent or open."""
    model, large = blank(torch.float32, d_model=10), 2.0**40
    model.W_E[0, 0], model.b_E[1], model.W_O[0, 6] = 1.0, 1.0, 1.0
    model.S[0, 2:6], model.W_V[0, 2:6, 0] = torch.tensor([large, 1.0, -large, -1.0]), 1.0
    model.W_1[6, 0], model.b_1[0], model.W_2[0, 7], model.W_R[[0, 7], 0] = -math.copysign(1.0, -bias), bias, 1.0, 1.0
    x = torch.linspace(-0.5, 0.5, 11)
    wanted = x + max(bias, 0.0)
    error = float((model(x[:, None, None])[:, 0, 0] - wanted).abs().max())
    assert error > 0.09
    assert proved(model, ol.Target(f"x1 + {max(bias, 0.0)}", [(-0.5, 0.5)])) >= error


def test_products_of_two_outgoing_weights_vanish():
    """W_2·W_R is 0 in float64, and the hat is 2.6e-26 high all the same: by neither engine is the bound below it."""
    model, x = hinged(2.0**1013, 2.0**-538)
    target = ol.Target("1e-31*abs(x1 - 0.25) + 1e-31*sin(x1)", UNIT)
    height = float(model(torch.tensor([[[x]]], dtype=torch.float64)))
    assert height > 1e-26
    assert proved(model, target) >= height
    assert "products of weights" in str(ol.certify(model, target, 1e-30, seconds=1.0).assumptions)


def test_products_of_queries_and_keys_vanish():
    """A slope of 1/8 that a product of 2^-1200 carries: it is not proved to be small."""
    model = blank(torch.float64, d_k=4, memory_tokens=2)
    model.shift.fill_(0.5)
    model.scale.fill_(2.0**500)
    model.W_E[0, 0] = model.b_E[1] = model.S[0, 2] = model.S[1, 3] = model.W_Q[0, 1, 0] = 1.0
    model.W_Q[0, 0, 1] = model.W_K[0, 2, 1] = 2.0**-600
    model.W_K[0, 1, 0], model.W_V[0, 2, 0], model.W_V[0, 3, 0] = -4000.0, 2.0**699, -(2.0**699)
    model.W_O[0, 4] = model.W_R[4, 0] = 1.0
    found = ol.certify(model, ol.Target("0*x1", UNIT), 1e250, slope_tolerance=1e-3, seconds=1.0)
    assert found.slope is not None
    assert found.slope.bound >= 0.125


def test_queries_that_a_fused_kernel_divides_first():
    """x is subnormal and x/√d_k is 0, but 2^14 keys of 2^119 times that count."""
    model = blank(torch.float32, d_k=2**14, attention="fused")
    model.W_E[0, 0] = model.S[0, 1] = model.W_V[0, 1, 0] = model.W_O[0, 2] = model.W_R[2, 0] = 1.0
    model.W_Q[0, 0], model.W_K[0, 1] = 1.0, 2.0**119
    x, steep = 63 * 2.0**-149, 2.0**124
    error = abs(float(model(torch.full((1, 1, 1), x))) - 0.5 - steep * x)
    assert error > 1.8e-6
    target = ol.Target(f"1/2 + {steep!r}*x1", [(0, x)])
    assert proved(model, target) >= error


@pytest.mark.parametrize(
    "formula",
    [
        "1e-170*(1e-170*abs(1e140*x1))",
        "1e-170*(1e-170*abs(1e140*x1*(1 + 1e-9*sin(x1))))",
        "1e-170*(1e-170*max(1e140*x1, sin(x1)))",
    ],
)
def test_the_coefficient_of_a_kink_vanishes(formula):
    found = ol.supremum(formula, "0", domain=[(-1e150, 1e150)], seconds=1.0)
    assert 9.9e-51 < found.lower <= found.upper


@pytest.mark.parametrize("formula", ["1e-160*x1", "1e-165", "1e-155*(1 + x1)", "1e-165; 1e-166*x1"])
def test_squares_vanish(formula):
    size = {"1e-160*x1": 1e-160 / math.sqrt(3), "1e-165": 1e-165}.get(formula)
    found = ol.norm(formula, "; ".join("0" for _ in formula.split(";")), domain=UNIT, seconds=1.0)
    assert 0 < found.lower <= found.upper
    assert size is None or (found.lower <= size * (1 + 1e-12) and size <= found.upper * (1 + 1e-12))


def test_a_bias_of_a_projection_overflows():
    shape = {"tokens": 2, "features_in": 1, "features_out": 1, "d_model": 3, "heads": 1, "d_k": 1, "d_v": 1}
    model = ol.SingleLayerTransformer(ol.LayerConfig(**shape, ffn_width=2, projection_bias=True), dtype=torch.float32)
    with torch.no_grad():
        model.b_V.fill_(3e38)
        model.W_O.fill_(4.0)
        model.W_2.fill_(0.0)
        model.W_R.fill_(1e-38)
        assert model(torch.zeros(1, 2, 1)).isnan().all()
    assert not cannot_overflow(model, 1.0, FLOAT32)


def test_a_relu_on_an_interval_that_is_too_wide():
    share, width = relu_lines(np.array([-1.5e308]), np.array([1.5e308]))
    assert share[0] == 0.0
    assert width[0] == math.inf


def test_what_an_export_says_in_all_does_not_rest_on_evidence():
    """A bound of which the evidence says that it is all rounding."""
    approximation = ol.build("sin(x1)", UNIT, 1e-3)
    certificate = approximation.certificate
    evidence = replace(certificate.evidence, rounding=certificate.bound * (1 - 1e-6))
    approximation = replace(approximation, certificate=replace(certificate, evidence=evidence))
    total = Subject(approximation, approximation.model).in_all(Bound(1e-15, "the file", 1e-15))
    assert total is not None
    assert total >= approximation.certificate.bound


def test_ends_that_contradict_each_other_withdraw_the_upper_one():
    found = Supremum(2.0, 1.0, None, 0.1, "bisect", 1, "x1 in [0, 1]", ("p", "q")).unless_contradicted()
    assert found.upper == math.inf
    assert "contradicted" in found.assumptions[-1]


def test_the_door():
    """Numbers that proofs can multiply are let in, whatever they are alone; others are named."""
    model, _ = hinged(2.0**900, 2.0**-30)
    assert out_of_range(model, 0.5) is None
    for inner, outer in ((2.0**900, 2.0**100), (1.0, 2.0**-500)):
        reason = out_of_range(hinged(inner, outer)[0], 0.5)
        assert reason is not None
        assert "W_2" in reason
    model.scale.fill_(2.0**600)
    assert "another unit" in str(out_of_range(model, 0.5))
    model.b_R.fill_(math.inf)
    assert "not finite" in str(out_of_range(model, 0.5))
    with pytest.raises(ol.InputError, match="weights that proofs can multiply"):
        ol.norm(hinged(2.0**900, 2.0**100)[0], ol.Target("x1", UNIT), seconds=1.0)


def test_the_checker_charges_products_with_powers_of_two_that_underflow():
    """x·2^-1060 has 14 bits left, and the network makes it large again: what is computed is 3e-5 from x."""
    model = blank(torch.float64, memory_tokens=0, d_model=1, readout="mean")
    for name, value in (("W_E", 2.0**-1060), ("W_1", 2.0**500), ("W_2", 2.0**500), ("W_R", 2.0**60)):
        getattr(model, name).fill_(value)
    about = {name: getattr(model.config, name) for name in model.config.__dataclass_fields__}
    tensors = checker.read_tensors(save({k: t.contiguous() for k, t in model.state_dict().items()}))[1]
    weights = {name: rows for name, (_, rows) in tensors.items()}
    with ctx.workprec(checker.WORKING):
        layer, charged = checker.Dense(about, weights, [0], fmpq(1, 2**53)), []
        for x in np.random.default_rng(0).random(100).tolist():
            T, off = layer.answers([[arb(x)]], checker.Jets(checker.Sides([]), []))
            computed = float(model(torch.full((1, 1, 1), x, dtype=torch.float64)))
            assert abs(T[0][0] - computed) <= off[0].upper()
            charged.append(float(abs(T[0][0] - computed)) > 1e-6)
        assert any(charged)


@pytest.fixture(scope="module")
def histogram(tmp_path_factory):
    return ol.gallery.any_length.histogram(longest=6, vocabulary=3).save(tmp_path_factory.mktemp("histogram") / "layer")


@pytest.mark.parametrize("k", [100, 380, 600, 1060])
def test_sequences_whose_heads_are_scaled_down_are_never_wrongly_valid(tmp_path, histogram, k):
    """The same real function: W_O times 2^-k, and W_1 times 2^k."""

    def change(tensors):
        tensors["W_O"] *= 2.0**-k
        for name, power in (("W_1", min(k, 1000)), ("b_1", min(k, 1000) - k), ("W_2", k - min(k, 1000))):
            tensors[name] *= 2.0**power

    folder = forged(histogram, tmp_path / "scaled", weights=change)
    found, layer = check(folder), ol.load(folder)
    error = max(abs(float(layer([0] * n)[0]) - n) for n in range(1, 7))
    assert found.verdict in ("VALID", "NOT CHECKABLE")
    assert error <= found.bound
    assert found.verdict == ("VALID" if k < 400 else "NOT CHECKABLE")


def test_the_checker_knows_which_products_underflow():
    """A number that is known is multiplied with a small power of two without loss; numbers between two ends are not."""
    numbers = checker.Rounded({"W": [[2.0**-30]]}, fmpq(1, 2**24))
    one = fmpq(1)
    ((low, high, off),) = numbers.linear([(one, one, fmpq(0))], "W")
    assert (low, high, off) == (fmpq(1, 2**30), fmpq(1, 2**30), 0)
    assert numbers.linear([(fmpq(0), fmpq(1), fmpq(0))], "W")[0][2] >= fmpq(1, 2**150)
    with pytest.raises(checker.Verdict, match="W are beyond"):
        checker.Rounded({"W": [[2.0**-41]]}, fmpq(1, 2**24))


def pairs_that_part():
    """x as 220 pairs −relu(−x)w + relu(x)w whose two units write to different coordinates, and 219·2^-25 x besides."""
    n, columns = 220, 15
    model, last, total = (
        blank(torch.float32, d_model=4 + columns, ffn_width=2 * n, memory_tokens=0, residual=False),
        3,
        0,
    )
    model.W_E[0, 0], model.W_V[0, 0, 0], model.W_O[0, 1] = 1.0, 1.0, 1.0
    for i in range(n):
        w = 1.0 if i == 0 else 2.0**-25
        total += Fraction(w)
        for unit, sign in ((i, -1.0), (n + i, 1.0)):
            model.W_1[1, unit], model.W_1[2, unit] = sign, sign * (i + 1)  # nothing is written to 2
        model.W_2[i, 4 + i % columns], model.W_2[n + i, last] = -w, w
    model.W_R[3:, 0] = 1.0
    return model, total


def test_the_units_of_a_pair_that_write_to_different_coordinates(tmp_path):
    """219 numbers of half a unit are added to x one by one: the prover and the checker count every one of them."""
    model, total = pairs_that_part()
    x = torch.linspace(0.5, 1, 2001, dtype=torch.float32)
    error = max(
        abs(Fraction(y) - total * Fraction(a))
        for found in answers(model, x).tolist()
        for a, y in zip(x.tolist(), found, strict=True)
    )
    target = ol.Target(f"{total.numerator}/{total.denominator}*x1", [(0.5, 1)])
    assert float(error) > 5e-6
    assert proved(model, target) >= float(error)
    claim = Certificate(
        4e-6, 4e-6, 0.0, 1, "analytic", str(target.domain), weights=model.fingerprint(), arithmetic="float32"
    )
    facts = ol.build("x1", [(0.5, 1)], 0.01).facts
    assert check(Approximation.of(model, target, claim, facts).save(tmp_path / "layer")).verdict == "NOT CHECKABLE"


def test_the_top_of_a_very_high_parabola():
    """Four times its coefficient is beyond the largest float."""
    y = "((x1 - 123456789/1073741824)*2147483648 - 1)"
    inside = "x1 >= 123456789/1073741824 and x1 <= 123456790/1073741824"
    found = ol.supremum(f"where({inside}, 1e157*(1e150*(8 + 4.6*{y} - 4.6*{y}**2)), 0)", "0", domain=UNIT, seconds=2.0)
    assert found.upper >= 9.15e307
