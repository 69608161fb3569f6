"""SingleLayerTransformer: the shape of its answers, exact saturation, and that it keeps its hands off global state."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cases import OTHERS, VARIANTS, configs, plain_config, random_input, random_model
from onelayer import InputError, SingleLayerTransformer


@given(configs())
def test_shapes_and_weights_sum_to_one(config):
    model, x = random_model(config), random_input(config)
    assert model(x).shape == (3, config.places, config.features_out)
    alpha = model.attention(x)
    assert alpha.shape == (3, config.heads, config.all_tokens, config.all_tokens)
    torch.testing.assert_close(alpha.sum(dim=-1), torch.ones_like(alpha[..., 0]), rtol=0, atol=1e-14)


@given(configs())
def test_fused_attention_is_the_same_function(config):
    model, x = random_model(config), random_input(config)
    fused = SingleLayerTransformer(dataclasses.replace(config, attention="fused"))
    fused.load_state_dict(model.state_dict())
    torch.testing.assert_close(fused(x), model(x), rtol=1e-11, atol=1e-11)


@given(configs(), st.sampled_from([{}, *OTHERS]))
def test_tokens_that_are_not_read_need_no_query(config, other):
    """forward computes the rows it reads; block computes all: the same numbers."""
    config = dataclasses.replace(config, **other)
    model, x = random_model(config), random_input(config)
    everything = model.block(model.tokens(x))[:, config.read_rows]
    torch.testing.assert_close(model.read(everything), model(x), rtol=1e-12, atol=1e-12)


@given(configs(code="none", readout="position"))
def test_without_codes_the_layer_is_permutation_equivariant(config):
    model, x = random_model(config), random_input(config)
    model.shift.copy_(model.shift[:1].expand_as(model.shift))  # one normalisation for every position
    model.scale.copy_(model.scale[:1].expand_as(model.scale))
    order = torch.randperm(config.tokens, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(x[:, order]), model(x)[:, order], rtol=1e-11, atol=1e-11)


def test_with_codes_it_is_not():
    config = plain_config()
    model, x = random_model(config), random_input(config)
    order = torch.tensor([2, 0, 1])
    assert (model(x[:, order]) - model(x)[:, order]).abs().max() > 1e-3


@pytest.mark.parametrize("attention", ["softmax", "fused"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_scores_of_1e10_saturate_exactly(dtype, attention):
    """Scores up to ±1e10: finite everywhere, and exactly one-hot where the top score leads by ≥ 800."""
    config = plain_config(
        tokens=5, features_in=1, features_out=1, d_model=6, heads=1, d_k=1, d_v=1,
        anchor_tokens=0, output_tokens=0, projection_bias=False, residual=False, attention=attention,
    )  # fmt: skip
    model = SingleLayerTransformer(config, dtype=dtype)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.W_E[0, 0] = model.W_V[0, 0, 0] = model.W_O[0, 0] = 1.0  # value = x, copied to the output
        model.W_Q[0, 1:, 0] = 1.0  # the query of every token is 1 (its code has one 1)
        model.W_K[0, 0, 0] = 1.0  # the score of token j is x_j
        model.W_1[0, 0], model.W_1[0, 1], model.W_2[0, 0], model.W_2[1, 0] = 1.0, -1.0, 1.0, -1.0
        model.W_R[0, 0] = 1.0
    x = torch.tensor([[-1e10, 1e10, 0.0, 1e10 - 2048, 3.0], [5e9, -1e10, -1e10, 0.0, 1.0]], dtype=dtype).unsqueeze(-1)
    alpha = model.attention(x)
    assert alpha.isfinite().all()
    one_hot = torch.zeros(2, 5, dtype=dtype)
    one_hot[0, 1] = one_hot[1, 0] = 1
    assert torch.equal(alpha[:, 0], one_hot.unsqueeze(1).expand(2, 5, 5))
    assert torch.equal(model(x)[:, :, 0], x.amax(dim=1).expand(2, 5))


@given(configs(norm="none"), st.sampled_from([1.0, 1e2, 1e5]))
def test_a_lead_of_800_is_exactly_one_hot(config, scale):
    """For drawn heads of any width: where the top score leads by ≥ 800 its weight is 1 and all others are 0."""
    model, x = random_model(config), random_input(config)
    with torch.no_grad():
        model.W_Q.mul_(scale)
        model.W_K.mul_(scale)
        e = model.tokens(x)
        q, k = model._project(e, "Q"), model._project(e, "K")
        scores = q @ k.mT / math.sqrt(config.d_k)
        alpha = model.attention(x)
    assert alpha.isfinite().all()
    assert model(x).isfinite().all()
    top, index = scores.max(dim=-1, keepdim=True)
    below = (top - scores >= 800 * (1 + 1e-9)) | torch.zeros_like(scores, dtype=torch.bool).scatter(-1, index, True)
    leads = below.all(dim=-1)
    one_hot = torch.zeros_like(scores).scatter(-1, index, 1.0)
    assert torch.equal(alpha[leads], one_hot[leads])


def test_huge_scores_without_a_leader_stay_finite():
    config = plain_config(projection_bias=False)
    model = random_model(config)
    with torch.no_grad():
        model.W_Q.mul_(1e5)
        model.W_K.mul_(1e5)
    x = random_input(config, batch=50)
    assert model(x).isfinite().all()
    alpha = model.attention(x)
    assert alpha.isfinite().all()
    assert ((alpha == 0) | (alpha == 1)).double().mean() > 0.9  # the property is not empty: most weights saturate


@pytest.mark.one_in(6)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(map(str, v.values())))
def test_gradcheck(variant):
    sizes = {"tokens": 2, "d_model": 4, "heads": 2, "d_k": 2, "d_v": 2, "ffn_width": 3}
    config = plain_config(**variant, **sizes, code="learned")
    model, x = random_model(config), random_input(config, batch=2)
    names = [name for name, _ in model.named_parameters()]

    def run(x, *parameters):
        return torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), (x,))

    assert torch.autograd.gradcheck(run, (x.requires_grad_(), *model.parameters()))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other["attention"])
def test_gradcheck_of_other_attention(other):
    test_gradcheck({**other, "activation": "gelu"})


def test_dropout_acts_in_training_only():
    config = plain_config(dropout=0.5)
    model, x = random_model(config), random_input(config)
    assert torch.equal(model.eval()(x), model(x))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model.train()
        assert not torch.equal(model(x), model(x))


def test_normalisation_is_part_of_the_model():
    config = plain_config()
    model, x = random_model(config), random_input(config)
    raw = SingleLayerTransformer(config)
    raw.load_state_dict(model.state_dict() | {"shift": torch.zeros(3, 2), "scale": torch.ones(3, 2)})
    assert torch.equal(raw((x - model.shift) * model.scale), model(x))


@pytest.mark.usefixtures("as_user")
def test_bad_construction_and_input_is_one_clear_line():
    model = random_model(plain_config())
    for call, mentions in [
        (lambda: SingleLayerTransformer({"heads": 1}), "found: dict"),
        (lambda: SingleLayerTransformer(plain_config(), dtype=torch.int64), "found: torch.int64"),
        (lambda: SingleLayerTransformer(plain_config(), dtype="float32"), "found: float32"),
        (lambda: model(np.zeros((1, 3, 2))), "found: ndarray; change: convert with torch.as_tensor"),
        (lambda: model([[[0.0, 0.0]] * 3]), "found: list"),
    ]:
        with pytest.raises(InputError, match=mentions):
            call()


@pytest.mark.parametrize("attention", ["softmax", "fused"])
def test_dropout_reaches_the_attention_weights(attention):
    """With all other dropout places made inert, training mode still differs from evaluation."""
    model, x = (
        random_model(plain_config(dropout=0.5, attention=attention, residual=False)),
        random_input(plain_config()),
    )
    e, s = model.embed(x), model.special
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(model.train().attend(e, e, s), model.eval().attend(e, e, s))


def test_the_feed_forward_network_sees_one_position():
    """It cannot mix tokens: what stands at another position changes nothing, to the bit."""
    model = random_model(plain_config())
    h = torch.randn(1, 3, model.config.d_model, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    other = h.clone()
    other[:, 1] += 1.0
    same = model.feed_forward(h) == model.feed_forward(other)
    assert same[:, [0, 2]].all()
    assert not same[:, 1].all()


def test_an_empty_batch_is_fine():
    model = random_model(plain_config())
    assert model(torch.zeros(0, 3, 2, dtype=torch.float64)).shape == (0, 3, 2)


def test_mean_read_out_is_over_data_tokens_only():
    config = plain_config(readout="mean", memory_tokens=2)
    model, x = random_model(config), random_input(config)
    rows = model.block(model.tokens(x))[:, :3]
    by_hand = (rows[:, 0] + rows[:, 1] + rows[:, 2]) / 3 @ model.W_R + model.b_R
    torch.testing.assert_close(model(x)[:, 0], by_hand, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize("shape", [(3, 2), (4, 2, 3), (4, 3, 2, 1), (4, 3, 1)])
def test_wrong_input_shape_is_one_clear_line(shape):
    with pytest.raises(InputError, match=r"^asked: input of shape \[batch, 3, 2\].*found: shape.*change: "):
        random_model(plain_config())(torch.zeros(shape, dtype=torch.float64))


def test_wrong_dtype_is_one_clear_line():
    with pytest.raises(InputError, match=r"^asked: input of dtype torch.float64; found: dtype torch.float32; change: "):
        random_model(plain_config())(torch.zeros(1, 3, 2))


def test_construction_touches_no_global_state():
    before, dtype = torch.random.get_rng_state(), torch.get_default_dtype()
    a, b = SingleLayerTransformer(plain_config(), seed=3), SingleLayerTransformer(plain_config(), seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_default_dtype() == dtype
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    other = SingleLayerTransformer(plain_config(), seed=4)
    assert not torch.equal(a.W_Q, other.W_Q)


def test_parameter_count_counts_every_stored_number():
    model = SingleLayerTransformer(plain_config(norm="post"))
    assert model.parameter_count == sum(p.numel() for p in model.parameters()) + 3 * 2 * 2 + 3 * 7  # shift, scale, P
    assert str(model.parameter_count) in repr(model)


@given(configs())
def test_the_config_knows_the_size_before_anything_is_built(config):
    assert config.parameter_count == SingleLayerTransformer(config).parameter_count
