"""The lemma for attention in any order and any blocking, with zero slack: simulated schedules, and the programs there are."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hunting
import onelayer as ol
from backend_hunting import bound_at, exp_units, hunt, real_values
from backend_programs import programs
from cases import built, random_layer
from difficult_layers import assembled, memory_tokens
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.layer.reading import form_of_model
from onelayer.layer.rounding.deployed import FormProgram
from onelayer.layer.rounding.online_softmax import FUSED, MEMORY_EFFICIENT, ONNX_RUNTIME, arithmetic_of_model
from onelayer.model.transformer import SingleLayerTransformer

PROGRAMS = {p.name: p for p in programs("cpu")}
DTYPES = [torch.float32, torch.float64]


class Schedule:
    """Online softmax in float32: blocks of random sizes in a random order, and exponentials as wrong as they may be."""

    def __init__(self, blocks, ulps, seed, ordered=False):
        self.count, self.ulps, self.ordered, self.rng = blocks, ulps, ordered, np.random.default_rng(seed)

    def blocks(self, tokens):
        order = np.arange(tokens) if self.ordered else self.rng.permutation(tokens)
        cuts = self.rng.choice(np.arange(1, tokens), min(self.count, tokens) - 1, replace=False)
        return np.split(order, np.sort(cuts))

    def exp(self, x):
        """Within `ulps` units, off to either side at random, or upwards all the time; an eighth is left for its rounding."""
        sides = np.ones(x.shape) if self.ordered else self.rng.choice([-1.0, 1.0], x.shape)
        return (np.exp(x.astype(np.float64)) * (1 + sides * (self.ulps - 0.625) * 2.0**-23)).astype(np.float32)

    def __call__(self, s, v):
        """Averages [point, out] of the values [token, out] for scores [point, token]; all float32."""
        m, l, o = np.full((len(s), 1), -np.inf, np.float32), np.float32(0), np.zeros((len(s), v.shape[1]), np.float32)
        for block in self.blocks(len(v)):
            top = np.maximum(m, s[:, block].max(axis=1, keepdims=True))
            alpha, e = self.exp(m - top), self.exp(s[:, block] - top)
            l, o, m = alpha * l + e.sum(axis=1, keepdims=True), alpha * o + e @ v[block], top
        return o * (np.float32(1) / l)


def beyond(layer, schedule, arithmetic, seed, points=200):
    """How many averages of a schedule are farther from the real ones than the bound of this arithmetic allows."""
    reading = form_of_model(assembled(replace(layer, linear=layer.linear * 0, bias=layer.bias * 0), torch.float32))
    if not reading.form.blocks:  # one token is above all others
        return 0
    (block,), frame = reading.form.blocks, reading.frame
    x = torch.from_numpy(np.random.default_rng(seed).random((points, 3)) * 3 - 1).float()
    keys, biases, values = (t[0].numpy().astype(np.float32) for t in (block.keys, block.biases, block.values))
    scores = biases + np.zeros((points, 1), np.float32)
    for i, z in enumerate(frame(x).numpy().T):
        scores = scores + z[:, None] * keys[:, i]
    y = schedule(scores, values)
    program = FormProgram.of_form(reading.form, arithmetic, frame, terms=1, factored=False)
    bound = bound_at(program, frame, x).numpy()
    return int((~(np.abs(y - real_values(reading.form, frame, x)) <= bound)).sum())


@settings(max_examples=60)
@given(
    tokens=st.integers(2, 80),
    share=st.floats(0, 1),
    sharp=st.sampled_from([1.0, 30.0, 1e3, 1e4]),
    ulps=st.sampled_from([1.0, 2.0, 20.0]),
    seed=st.integers(0, 10**6),
)
def test_every_schedule_is_within_the_bound(tokens, share, sharp, ulps, seed):
    blocks = 1 + int(share * (tokens - 1))
    _, layer = memory_tokens(tokens, sharp, 110.0, seed)
    arithmetic = replace(FLOAT32, exp_ulps=ulps, rescalings=blocks - 1)
    assert beyond(layer, Schedule(blocks, ulps, seed), arithmetic, seed) == 0


def test_rescalings_must_be_counted():
    """Exponentials that are all too large, in blocks of one token: the bound for one piece is violated, the lemma's is not."""
    _, layer = memory_tokens(300, 1.0, 110.0, 0)
    keys = torch.full_like(layer.memory.keys, 2.0**-10)
    memory = replace(layer.memory, keys=keys, biases=torch.zeros(300).double())
    values = torch.sign(torch.arange(300) - 149.5).double()[:, None].expand(300, 4).contiguous()
    layer, schedule = replace(layer, memory=memory, memory_values=values), Schedule(300, 20.0, 0, ordered=True)
    arithmetic = replace(FLOAT32, exp_ulps=20.0)
    assert beyond(layer, schedule, arithmetic, 0) > 0
    assert beyond(layer, schedule, replace(arithmetic, rescalings=299), 0) == 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_leaves_its_bound(name, dtype):
    if name == "ONNX Runtime":
        pytest.importorskip("onnxruntime")
    found = hunt(PROGRAMS[name], dtype, 200_000, seed=1_000)
    assert found.violations == 0, found.worst
    assert found.largest > 0.02  # the bound is of the size of what happens


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_hunt_can_fail(dtype):
    assert hunt(PROGRAMS["torch, fused: flash"], dtype, 200_000, shrink=0.01).violations > 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_exponentials_are_within_what_is_assumed(name, dtype):
    if name == "ONNX Runtime":
        pytest.importorskip("onnxruntime")
    program = PROGRAMS[name]
    assumed = program.backend.exp_ulps[str(dtype).removeprefix("torch.")]
    assert exp_units(program, dtype, 50_000) <= assumed + 1  # the division


def test_what_is_assumed_of_the_programs():
    fused = FUSED.arithmetic(FLOAT32, 129)
    assert (fused.rescalings, fused.exp_ulps, fused.u) == (2, 20.0, FLOAT32.u)
    assert "rescaled at most 2 times" in fused.assumptions[0]
    assert FUSED.arithmetic(FLOAT64, 64).rescalings == 0
    assert ONNX_RUNTIME.arithmetic(FLOAT32, 10_000) == FLOAT32
    coarse = MEMORY_EFFICIENT.arithmetic(FLOAT32, 64)
    assert coarse.exp_error == FLOAT32.exp_error  # in units of float32, whatever the products are
    assert coarse.u == 16 * FLOAT32.u


def fused_copy(model):
    found = SingleLayerTransformer(replace(model.config, attention="fused"), dtype=model.W_E.dtype)
    found.load_state_dict(model.state_dict())
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_fused_layers_are_certified(dtype):
    approx = ol.build("sin(x1)*x2", [(0, 1)] * 2, 1e-2, dtype=dtype)
    model = fused_copy(approx.model)
    certificate = ol.certify(model, approx.target, 1e-2)
    assert certificate.verdict == "CERTIFIED"
    assert certificate.bound >= approx.certificate.bound - 1e-6 * approx.certificate.bound
    assert any("torch's fused kernels on a CPU" in text for text in certificate.assumptions)
    assert not any("explicit" in text for text in certificate.assumptions)
    assert arithmetic_of_model(model).exp_ulps == (20.0 if dtype == "float32" else 2.0)


def test_fused_layers_have_the_form_of_softmax_layers():
    model = built(random_layer(2, 1, 0, 5.0, "gates"), "token", 1, 2)[0]
    own, fused = form_of_model(model), form_of_model(fused_copy(model))
    assert all(torch.equal(a.keys, b.keys) for a, b in zip(own.form.blocks, fused.form.blocks, strict=True))
    assert (fused.error >= own.error).all()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["analytic", "bisect"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_bound_of_a_fused_layer_is_below_the_truth(method, dtype):
    finds = list(hunting.hunt(hunting.engine(method, 0.3, dtype), map(hunting.fused, range(10)), dtype))
    assert not [str(f.case) for f in finds if f.violated]
    assert any(np.isfinite(f.bound) for f in finds)
