"""Sequences of any length and causal layers: equal to stock PyTorch, to the NumPy reference, and to the sequence alone."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import onelayer as ol
from cases import OTHERS
from checking import checker
from onelayer.common.errors import InputError
from onelayer.deployment.export.subject import subject_of
from onelayer.layer.reading import form_of_model
from onelayer.model.reference.transformer import backward, forward
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.proof.witness import in_balls

N, D = 6, 4
KINDS = [
    {"readout": readout, "causal": causal, "norm": norm, "attention": attention}
    for readout, causal, norm, attention in itertools.product(
        ("position", "mean", "output"), (False, True), ("none", "pre", "post"), ("softmax", "fused")
    )
    if not (causal and readout == "output")
] + [
    {"readout": readout, "causal": causal, "norm": "none", **other}
    for readout, causal, other in itertools.product(("position", "output"), (False, True), OTHERS)
    if not (causal and readout == "output")
]


def layer(seed=0, **options):
    config = ol.LayerConfig(**{
        "tokens": N, "features_in": 2, "features_out": 3, "d_model": 8, "heads": 2, "d_k": 4, "d_v": 3, "ffn_width": 5,
        "code": "learned", "anchor_tokens": 1, "memory_tokens": 2, "output_tokens": 1, "projection_bias": True,
        "activation": "gelu", "any_length": True, **options,
    })  # fmt: skip
    model = ol.SingleLayerTransformer(config, seed=seed).eval()
    with torch.no_grad():
        for t in model.parameters():
            t.copy_(torch.randn(t.shape, generator=torch.Generator().manual_seed(seed + t.numel()), dtype=t.dtype))
    return model


def batch(lengths, features=2, seed=0, left=False):
    """(x, padding): noise, and in the places without a token large numbers that would be seen."""
    generator = torch.Generator().manual_seed(seed)
    n = max(lengths)
    x = torch.randn(len(lengths), n, features, generator=generator, dtype=torch.float64)
    padding = torch.arange(n)[None] >= torch.tensor(lengths)[:, None]
    padding = padding.flip(1) if left else padding
    return x.masked_fill(padding[..., None], 1e3), padding


def stock(causal_first=False):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return torch.nn.TransformerEncoderLayer(
            D, 2, 7, dropout=0.0, batch_first=True, norm_first=causal_first, dtype=torch.float64
        ).eval()


# ---- the same as others


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_equal_to_stock_pytorch(causal, norm_first):
    theirs = stock(norm_first)
    ours = SingleLayerTransformer.from_torch(theirs, N, any_length=True, causal=causal)
    x, padding = batch([5, 3, 1, 4], features=D)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    wanted = theirs(x, src_mask=mask, src_key_padding_mask=padding)
    there = ~padding
    assert torch.allclose(ours(x, padding)[there], wanted[there], rtol=0, atol=1e-12)
    assert (ours(x, padding)[padding] == 0).all()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_padded_sequences_get_the_answers_of_the_sequences_alone(kind):
    model = layer(**kind)
    lengths = [4, 1, 6, 3]
    x, padding = batch(lengths)
    together = model(x, padding)
    for i, n in enumerate(lengths):
        alone = model(x[i : i + 1, :n])[0]
        assert torch.allclose(together[i, : len(alone)], alone, rtol=0, atol=1e-11)
        assert torch.allclose(model.at_length(n)(x[i : i + 1, :n])[0], alone, rtol=0, atol=1e-12)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k["attention"] != "fused"], ids=lambda k: "-".join(map(str, k.values()))
)
@pytest.mark.parametrize("left", [False, True])
def test_the_reference_agrees_forward_and_backward(kind, left):
    model = layer(**kind)
    x, padding = batch([4, 1, 5], left=left)
    x.requires_grad_(True)
    answer = model(x, padding)
    upstream = torch.randn(answer.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    names = list(dict(model.named_parameters()))
    slopes = torch.autograd.grad((answer * upstream).sum(), [x, *model.parameters()])
    w = {name: t.detach().numpy() for name, t in model.state_dict().items()}
    found, passed = forward(model.config, w, x.detach().numpy(), padding=padding.numpy())
    dx, g = backward(model.config, w, passed, upstream.numpy())
    assert np.allclose(found, answer.detach().numpy(), rtol=1e-10, atol=1e-10)
    assert all(torch.isfinite(t).all() for t in slopes)
    for name, ours in zip(["x", *names], slopes, strict=True):
        theirs = dx if name == "x" else g[name]
        assert np.allclose(theirs, ours.numpy(), rtol=1e-8, atol=1e-8 * (1 + np.abs(theirs).max())), name


def test_later_tokens_change_nothing_in_a_causal_layer():
    model = layer(causal=True)
    x, _ = batch([6])
    changed = x.clone()
    changed[:, 3:] += 1
    assert torch.equal(model(x)[:, :3], model(changed)[:, :3])
    assert not torch.equal(model(x)[:, 3:], model(changed)[:, 3:])
    weights = model.attention(x)
    assert (weights[..., :6, :6].triu(1) == 0).all()
    assert torch.allclose(weights.sum(dim=-1), torch.ones((), dtype=torch.float64))


def test_attention_is_what_the_model_uses():
    model = layer(causal=True, projection_bias=False, norm="none")
    x, padding = batch([4, 2])
    e = model.tokens(x)
    z = model.attention(x, padding) @ model._project(e, "V")
    a = z.transpose(1, 2).flatten(2) @ model.W_O
    wanted = model.read((e + a + model.feed_forward(e + a))[:, :4], padding)
    assert torch.allclose(model(x, padding), wanted, rtol=0, atol=1e-10)


def test_nothing_there_is_no_nan():
    for kind in KINDS:
        x, padding = batch([3, 3])
        assert torch.isfinite(layer(**kind)(x, torch.ones_like(padding))).all()


def test_gradients_survive_padding_on_the_left():
    model = layer(causal=True, anchor_tokens=0, memory_tokens=0, output_tokens=0)
    x, padding = batch([5, 2], left=True)
    model(x, padding).square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


# ---- what is refused


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m(torch.zeros(1, N + 1, 2, dtype=torch.float64)), "n ≤ 6"),
        (lambda m: m(torch.zeros(1, 0, 2, dtype=torch.float64)), "n ≤ 6"),
        (lambda m: m(torch.zeros(2, 3, 2, dtype=torch.float64), torch.zeros(2, 4, dtype=torch.bool)), "shape [2, 3]"),
        (lambda m: m.at_length(7), "up to 6"),
        (lambda m: m.at_length(0), "up to 6"),
        (lambda m: layer(causal=True, readout="output"), "causal"),
    ],
)
def test_bad_input(as_user, call, words):
    with pytest.raises(InputError) as found:
        call(layer())
    assert words in str(found.value)


def test_padding_for_a_layer_of_one_length(as_user):
    x, padding = batch([N])
    with pytest.raises(InputError, match="any_length=False"):
        layer(any_length=False)(x, padding)


def test_masked_layers_are_not_read_as_others(as_user):
    approx = ol.build("sin(x1) + x2", [(0, 1)] * 2, 1e-2, layout="wide")
    for mask in ("any_length", "causal"):
        model = SingleLayerTransformer(replace(approx.model.config, **{mask: True}))
        model.load_state_dict(approx.model.state_dict())
        assert form_of_model(model, (0,)) is None
        with pytest.raises(InputError, match=mask):
            subject_of(replace(approx, model=model), None)
        if mask == "any_length":
            with pytest.raises(InputError, match="at_length"):
                ol.certify(model, approx.target, 1e-2)


# ---- causal layers are proved


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
def test_causal_layers_in_balls(norm):
    model = layer(causal=True, norm=norm).at_length(3)
    x, _ = batch([3])
    rows = in_balls(model, x.flatten().tolist())
    for wanted, found in zip(model(x)[0].tolist(), rows, strict=True):
        assert all(
            abs(float(f.mid()) - w) < 1e-9 and float(f.rad()) < 1e-30 for f, w in zip(found, wanted, strict=True)
        )


@pytest.mark.one_in(4)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["none", "post"])
def test_causal_layers_are_certified(norm, activation):
    """The bound is close, so it is of the causal layer and not of one that sees all tokens."""
    config = ol.LayerConfig(
        tokens=3, features_in=1, features_out=1, d_model=6, heads=2, d_k=1, d_v=2, ffn_width=4, code="learned", norm=norm,
        activation=activation, causal=True, any_length=True,
    )  # fmt: skip
    model = ol.SingleLayerTransformer(config, seed=4).at_length(3)
    target = ol.Target("x1; x2*x1; x3", [(-1, 1)] * 3, shape=(3, 1), output_shape=(3,))
    seen = ol.certify(model, target, 10.0, slope_tolerance=100.0)
    assert seen.verdict == "CERTIFIED"
    assert seen.slope.observed <= seen.slope.bound
    found = ol.certify(model, target, 1.2 * seen.observed)
    assert found.verdict == "CERTIFIED"
    sees_all = ol.SingleLayerTransformer(replace(model.config, causal=False))
    sees_all.load_state_dict(model.state_dict())
    x = torch.rand(500, 3, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 - 1
    assert not torch.allclose(model(x), sees_all(x), atol=1e-3)
    f = torch.cat([x[:, :1], x[:, 1:2] * x[:, :1], x[:, 2:]], dim=1)
    assert float((model(x) - f).detach().abs().max()) <= found.bound


@pytest.mark.parametrize("key", ["any_length", "causal", "relative_positions"])
def test_the_checker_does_not_overlook_a_mask(key, tmp_path):
    approx = ol.build("sin(x1)", [(0, 1)], 1e-2)
    approx.save(tmp_path / "f")
    file = tmp_path / "f" / "model.safetensors"
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + size])
    config = json.loads(head["__metadata__"]["config"]) | {key: True}
    head["__metadata__"]["config"] = json.dumps(config)
    text = json.dumps(head).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    assert checker.check(tmp_path / "f").verdict != "VALID"
