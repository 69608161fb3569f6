"""The edges of floating point, where a bound is easily lost: underflow, overflow, undefined values, huge coordinates."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import arb

import onelayer as ol
from onelayer.common.budget import Budget
from onelayer.formula import enclose, holds, parse
from onelayer.formula.taylor.formula import TaylorAlgebra
from onelayer.formula.taylor.series import Space
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.model.config import LayerConfig
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.proof.bisection import prove as bisect
from onelayer.proof.bisection.transformer import Network
from onelayer.proof.claim import Claim
from onelayer.proof.decision import prove_by
from onelayer.proof.witness import in_balls
from onelayer.target.margin import in_scope


def blank(D=1, dtype=torch.float64, **changes):
    """A model whose weights are all 0."""
    shape = {"d_model": D + 1, "heads": 1, "d_k": 1, "d_v": 1, "ffn_width": 1, "readout": "mean"} | changes
    model = ol.SingleLayerTransformer(ol.LayerConfig(tokens=D, features_in=1, features_out=1, **shape), dtype=dtype)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    return model.eval()


def enclosed(text, low, high):
    found = parse(text, ("x1",)).tape.run(TaylorAlgebra(Space(np.array([[low]]), np.array([[high]]))))[0]
    return found.low[0], found.high[0], *(end[0] for end in found.model.range())


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("1e150*x1**-2.5", 0.9e60, 1.1e60),
        ("1e42*sqrt(x1)", 8e-85, 1.2e-84),
        ("1e24*x1**0.3", 8e-83, 1.2e-82),
        ("1e162*(1e-162*x1*(1-x1))", 0.0, 0.7),
        ("1e300*(1e-200*x1)*(1e-100*x1)", 0.5, 1.0),
        ("exp(-1e3*x1)*1e300", 0.5, 1.5),
    ],
)
def test_nothing_is_lost_to_underflow(text, low, high):
    found = enclosed(text, low, high)
    for x in np.linspace(low, high, 41):
        ball = enclose(parse(text, ("x1",)), [float(np.clip(x, low, high))])[0].ball()
        for a, b in (found[:2], found[2:]):
            assert not ball < arb(float(a))
            assert not ball > arb(float(b))


@pytest.mark.long
def test_a_peak_too_narrow_to_be_seen_is_not_certified_below_its_height():
    """Sampling misses the peak, so the bound alone must hold there."""
    model = blank()
    with torch.no_grad():
        model.b_R.fill_(1.0)
    peak = "1e150*(1e60*max(0.5,min(1.5,1.1-0.2*(x1-0.5)*16777216)))**-2.5"
    target = ol.Target(f"where(x1<0.5,1,where(x1>=0.500000059604644775390625,1,{peak}))", [(0, 1)])
    assert ol.certify(model, target, 0.2975).bound >= 0.301348


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "largest"), [(torch.float32, 3.4028234e38), (torch.float64, 1.797693134862e308)])
def test_overflow_on_the_way_is_never_certified(dtype, largest):
    """A unit of no consequence overflows in a narrow bump: 0·∞ is NaN."""
    model = blank(1, dtype, d_model=3, heads=2, anchor_tokens=1, output_tokens=1, readout="output", residual=False)
    with torch.no_grad():
        model.W_E[0, 0] = 1
        model.S[0] = torch.tensor([0.0, 1.0, 0.0])
        model.S[1] = torch.tensor([0.0, 1.0, -7.5])
        model.W_Q[:, 1, 0] = 1
        model.W_K[0, 0, 0], model.W_K[1, 0, 0] = 1000, -1000
        model.W_V[:, 1, 0] = 1
        model.W_O[:, 2] = 15
        model.W_1[2, 0] = 0.4 * largest
    target = ol.Target("0*x1", [(-1, 1.3)])
    assert prove_by("bisect", model, Claim(target, 1e-3), 0.0, Budget(5.0)) is None
    assert ol.certify(model, target, 1e-3, seconds=5.0).verdict == "UNDECIDED"


@pytest.mark.long
def test_a_hinge_in_tiny_numbers_stays_a_hinge():
    model = blank(1, code="none", d_model=1, residual=False)
    with torch.no_grad():
        model.W_E.fill_(1e-170)
        model.W_2.fill_(1e170)
        for weight in (model.W_V, model.W_O, model.W_1, model.W_R):
            weight.fill_(1.0)
    assert bisect.prove(model, Claim(ol.Target("0*x1", [(-1, 1)]), 1e-3), 1e-9).bound >= 1
    assert bisect.prove(model, Claim(ol.Target("x1/2", [(-1, 1)]), 1e-3), 1e-9).bound >= 0.5


@pytest.mark.parametrize("size", [1e-21, 3e-22, 1e-20])
def test_layer_norm_of_tiny_numbers(size):
    model = blank(1, torch.float32, norm="pre", code="none", d_model=3, norm_eps=1e-44)
    with torch.no_grad():
        model.gain_1.fill_(1)
        model.gain_2.fill_(1)
        model.W_E[0, 0], model.b_E[1], model.W_V[0, 0, 0], model.W_O[0, 2], model.W_R[2, 0] = 1, size, 1, 1, 1
        x = float(torch.tensor(0.7 * size, dtype=torch.float32))
        deployed = float(model(torch.tensor([[[x]]], dtype=torch.float32)))
    off = Network(model, FLOAT32)(Space(np.array([[x]]), np.array([[x]]))).off[0, 0]
    assert not abs(in_balls(model, [x])[0][0] - deployed) > arb(float(off))


def test_a_witness_lies_in_the_domain():
    """In floats the condition seems to hold where it does not."""
    where = "(1e16+10*x1)-1e16 >= 9.5"
    target = ol.Target("where(x1<0.945, x1-0.4, 0)*1", [(0.5, 1)], within=where)
    c = ol.certify(blank(), target, 0.1)
    assert c.witness is None or holds(target.domain.within, list(c.witness)) is True


@pytest.mark.parametrize("margin", [0.83, 0.7, 0.95, 0.58, 0.33, 0.45])
def test_margins_at_huge_coordinates(margin):
    """No box is dropped that holds a point farther from the jump; no point is asked about that is closer."""
    jump = 1e15 + 50
    target = ol.Target("where(x1<1000000000000050,0,1)", [(1e15, 1e15 + 100)], margin=margin)
    ends = jump + np.arange(-12, 13) * 0.125
    dropped = bisect.BranchAndBound.of(blank(), target, (0,), FLOAT64)._at_jump(Space(ends[:-1, None], ends[1:, None]))
    farthest = np.maximum(np.abs(ends[:-1] - jump), np.abs(ends[1:] - jump))
    assert (farthest[dropped] <= margin).all()
    wanted = in_scope(target, ends[:, None])
    assert (np.abs(ends[wanted] - jump) >= margin).all()


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("tanh(sqrt(x1))", -1.0, -0.5), ("erf(1/x1)", -1.0, 1.0), ("sin(x1/x1)", 0.0, 0.0), ("asin(x1)", 1.1, 2.0),
        ("x1**4.5", -1e-12, -1e-13),
        ("min(5, max(1, log(x1)))", -1.0, 1.0), ("min(abs(1/x1), 5)", -1.0, 1.0), ("0*log(x1)", -1.0, 1.0),
        ("where(sin(1/x1) < 2, 1, 0)", -1.0, 1.0), ("(1/x1)**0", -1.0, 1.0), ("exp(-1/x1**2)", -1.0, 1.0),
    ],
)  # fmt: skip
def test_what_is_undefined_somewhere_has_no_bounds(text, low, high):
    found = enclosed(text, low, high)
    assert not np.isfinite(found[:2]).all()


@pytest.mark.long
def test_undefined_formulas_are_not_certified_on_parts_of_boxes():
    target = ol.Target("sin(1/x1)", [(-1, 1)], within="x1 > -2")
    assert ol.certify(blank(), target, 1.6, seconds=3.0).verdict != "CERTIFIED"


def test_roots_are_claimed_where_they_are_defined_and_the_certificate_says_so():
    """Sampling does not see that f is undefined next to a border; intervals cannot tell it from rounding."""
    for text, sure in (("x1**4.5", False), ("sqrt(x1)", False), ("sqrt(x1 + 1)", True)):
        found = ol.certify(blank(), ol.Target(text, [(-1e-12, 1)], within="x1 > -0.9e-12"), 1.6, seconds=3.0)
        assert found.verdict == "CERTIFIED"
        assert any("only points where f is defined" in a for a in found.assumptions) != sure
    with pytest.raises(ol.InputError, match="no finite value"):
        ol.Target("sqrt(x1)", [(-1e-12, 1)])  # a corner is sampled


def test_roots_at_0_have_bounds():
    assert ol.build("x1**(1/3)", [(0, 1)], 0.2).certificate.verdict == "CERTIFIED"
    assert np.isfinite(enclosed("x1**(1/3)", 0.0, 1.0)).all()


@pytest.mark.long
def test_many_coordinates_are_left_alone():
    target = ol.Target("+".join(f"x{i}" for i in range(1, 41)), [(0, 1)] * 40)
    assert bisect.prove(blank(40), Claim(target, 0.1), 0.1) is None
    assert ol.certify(blank(40), target, 0.1).verdict == "REFUTED"


@pytest.mark.usefixtures("as_user")
def test_odd_requests_are_refused_in_one_line():
    target = ol.Target("x1", [(0, 1)])
    mixed = blank()
    mixed.W_R.data = mixed.W_R.data.float()
    for call in (
        lambda: ol.certify(mixed, target, 0.1),
        lambda: ol.certify(blank(), target, 0.1, seed=-5),
        lambda: ol.certify(blank(), target, 0.1, seed="a"),
        lambda: ol.certify(blank(), target, -1.0),
        lambda: ol.certify(blank(), target, 0.1, places=(7,)),
        lambda: ol.certify(blank(2), target, 0.1),
        lambda: ol.certify(blank(), "x1", 0.1),
        lambda: ol.certify(None, target, 0.1),
        lambda: ol.certify(blank(), target, 0.1, seconds=0),
        lambda: ol.certify(blank(dropout=0.5).train(), target, 0.1),
        lambda: ol.Target("x1", [(0, 1)], margin=-1.0),
    ):
        with pytest.raises(ol.InputError) as refused:
            call()
        assert "\n" not in str(refused.value)


def bump(columns, dtype=torch.float64, a=0.3, b=0.30001, K=2.0**27, value=1.0):
    """A layer whose one head is worth `value` on (a, b) and 0 elsewhere, written to as many stream coordinates as columns."""
    config = LayerConfig(
        tokens=1, features_in=1, features_out=1, d_model=6 + len(columns), heads=1, d_k=4, d_v=1, ffn_width=2,
        code="none", residual=True, readout="position", memory_tokens=2,
    )  # fmt: skip
    model = SingleLayerTransformer(config, dtype=dtype)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.W_E[0, 0], model.b_E[1] = 1.0, 1.0
        model.S[0, 2], model.S[0, 3], model.S[0, 4] = K, -K * a, 1.0
        model.S[1, 2], model.S[1, 3] = 2 * K, -K * (a + b)
        model.W_Q[0, 0, 0], model.W_Q[0, 1, 1] = 2.0, 2.0
        model.W_K[0, 2, 0], model.W_K[0, 3, 1] = 1.0, 1.0
        model.W_V[0, 4, 0] = value
        model.W_O[0, 6:] = torch.tensor(columns, dtype=dtype)
        model.W_R[6:, 0] = 1.0
    return model.eval().requires_grad_(False)


NOTHING = ol.Target("0*x1", [(0, 1)])


def test_a_normalisation_that_turns_the_axis_round_is_not_read():
    model = bump([1.0])
    with torch.no_grad():
        model.scale.fill_(-1.0)
        model.S[:, 2] *= -1
    assert float(model(torch.tensor([[[0.300005]]], dtype=torch.float64)).detach()) == 1.0
    assert ol.certify(model, NOTHING, 1e-3, seconds=2.0).bound >= 1.0


def test_what_cancels_between_stream_coordinates_rounds_all_the_same():
    s = 2.0**60
    model = bump([3 * s, 5 * s, -8 * s])
    x = torch.linspace(0.3, 0.30001, 301, dtype=torch.float64).reshape(-1, 1, 1)
    error = float(model(x).abs().max())
    assert error > 100  # the real function is 0
    assert ol.certify(model, NOTHING, 1e-3, seconds=2.0).bound >= error


def test_what_underflows_may_be_made_large_again():
    model = bump([2.0**-149, 0.0], torch.float32, a=-6e-6, b=6e-6, K=2.0**20, value=0.51)
    with torch.no_grad():
        model.W_1[6, 0], model.W_1[6, 1] = 1.0, -1.0
        model.W_2[0, 7], model.W_2[1, 7] = 2.0**120, -(2.0**120)
        model.W_R[:] = 0.0
        model.W_R[7, 0] = 2.0**29
    deployed = float(model(torch.zeros(1, 1, 1)).abs())
    assert deployed > 0.9  # the real function is at most 0.51
    assert ol.certify(model, ol.Target("0*x1", [(-0.3, 0.7)]), 0.6, seconds=2.0).bound >= deployed


@pytest.mark.parametrize("method", ["analytic", "bisect"])
@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize(("scale", "weight", "high"), [(2.0**-125, 2.0**125, 2.0**-12), (2.0**120, 1.0, 2.0**-130)])
def test_a_normalised_input_may_underflow(method, flushed, scale, weight, high):
    """T = fl(x·scale)·weight, where x·scale or x is subnormal: both engines charge what is lost, times what follows."""
    config = LayerConfig(
        tokens=1, features_in=1, features_out=1, d_model=1, heads=1, d_k=1, d_v=1, ffn_width=1, code="none",
        residual=True, readout="position",
    )  # fmt: skip
    model = SingleLayerTransformer(config, dtype=torch.float32)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.scale.fill_(scale)
        model.W_E.fill_(weight)
        model.W_R.fill_(1.0)
    model.eval().requires_grad_(False)
    factor = scale * weight
    target = ol.Target(f"x1*2**{int(np.log2(factor))}", [(0, high)])
    x = torch.linspace(0, high, 1001, dtype=torch.float64).float().reshape(-1, 1, 1)
    torch.set_flush_denormal(flushed)
    try:
        answers = model(x)
    finally:
        torch.set_flush_denormal(False)
    error = float((answers.double() - x.double() * factor).abs().max())
    assert error > 0 or (scale > 1 and not flushed)  # there is something to lose
    proof = prove_by(method, model, Claim(target, 1.0), 0.0, Budget(5.0))
    assert error <= proof.bound < math.inf


def test_linear_heads_that_cancel_round_in_proportion_to_the_domain():
    s = 2.0**30
    config = LayerConfig(
        tokens=1, features_in=1, features_out=1, d_model=2, heads=3, d_k=1, d_v=1, ffn_width=1, code="none",
        residual=True, readout="position",
    )  # fmt: skip
    model = SingleLayerTransformer(config)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.W_E[0, 0], model.W_R[1, 0] = 1.0, 1.0
        model.W_V[:, 0, 0] = 1.0
        model.W_O[:, 1] = torch.tensor([3 * s, 5 * s, -8 * s], dtype=torch.float64)
    model.eval().requires_grad_(False)
    x = 1000 * torch.rand(3000, 1, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    proof = prove_by("analytic", model, Claim(ol.Target("0*x1", [(0, 1000)]), 1e-3), 0.0, Budget())
    assert proof is not None
    assert proof.bound >= float(model(x).abs().max())


def test_every_column_of_a_head_is_a_summand():
    H, T, u = 32, 31, 2.0**-24
    config = LayerConfig(
        tokens=1, features_in=1, features_out=1, d_model=T + 3, heads=H, d_k=1, d_v=T, ffn_width=1, code="none",
        residual=True, readout="position", memory_tokens=T,
    )  # fmt: skip
    model = SingleLayerTransformer(config, dtype=torch.float32)
    small = torch.tensor(0.99 * u, dtype=torch.float32)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.W_E[0, 0], model.W_O[:, T + 1], model.W_R[T + 1, 0] = 1.0, 1.0, 1.0
        model.S[:, 1 : T + 1] = torch.eye(T)
        model.W_V[:, 1 : T + 1, :] = 32 * small * torch.eye(T)
        model.W_V[0, 1, 0] = 32.0
    model.requires_grad_(False)
    exact = 1 + (H * T - 1) * Fraction(float(small))
    target = ol.Target(f"{exact.numerator}/{exact.denominator} + 0*x1", [(0, 1)])
    error = abs(float(Fraction(float(model.eval()(torch.zeros(1, 1, 1)))) - exact))
    claim = Claim(target, 1e-3)
    for method in ("analytic", "bisect"):
        assert prove_by(method, model, claim, 0.0, Budget(2.0)).bound >= error


def test_a_jump_through_the_centre_is_no_hindrance():
    approx = ol.build("where(x1<0.5,0,1)+0.2*sin(x2)", [(0, 1)] * 2, 5e-2, margin=0.1, seconds=20.0)
    assert approx.certificate.observed <= 5e-2
