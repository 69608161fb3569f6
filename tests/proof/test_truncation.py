"""Heads of smaller rank: what the cut changes never exceeds its bound, in balls and with no slack."""

import numpy as np
import pytest
import torch
from flint import arb, ctx

import onelayer as ol
from onelayer.layer.arithmetic import arithmetic_of
from onelayer.model.config import LayerConfig
from onelayer.proof.circuit import truncation
from onelayer.proof.circuit.truncation import truncated
from onelayer.proof.witness import in_balls
from onelayer.target.domain import domain_of

BOX = [(-1, 2), (0, 1)]


def random_layer(seed, **changes):
    shape = {"tokens": 2, "features_in": 1, "features_out": 2, "d_model": 4, "heads": 2, "d_k": 3, "d_v": 2}
    config = LayerConfig(**(shape | {"ffn_width": 3, "code": "learned"} | changes))
    model = ol.SingleLayerTransformer(config, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.5 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return model


def require_bounded(model, cut, domain, seed):
    """|T' − T| ≤ bound at points and corners."""
    points = np.random.default_rng(seed).random((12, len(domain.lower)))
    points[:4] = points[:4].round()
    with ctx.workprec(256):
        for x in domain.points(points).tolist():
            for one, two in zip(in_balls(model, x), in_balls(cut.model, x), strict=True):
                assert all(abs(a - b) <= arb(cut.bound) for a, b in zip(one, two, strict=True))


LAYERS = [
    {},
    {"projection_bias": True, "activation": "gelu", "readout": "mean"},
    {"residual": False, "activation": "silu"},
    {"anchor_tokens": 1, "output_tokens": 1, "readout": "output", "projection_bias": True},
    {"causal": True, "code": "none"},
    {"attention": "local", "window": 0, "anchor_tokens": 1},
]


@pytest.mark.parametrize("circuit", ["QK", "OV"])
@pytest.mark.parametrize("changes", LAYERS)
def test_random_layers_stay_within_the_bound(changes, circuit):
    for seed in range(2):
        model = random_layer(seed, **changes)
        for rank in range((3 if circuit == "QK" else 2) + 1):
            cut = truncated(model, domain_of(BOX), circuit, rank)
            require_bounded(model, cut, domain_of(BOX), seed)
    assert cut.bound < 1e-9  # the full rank changes nothing but rounding


def test_the_rank_falls_and_the_next_singular_value_is_cut_off():
    model = random_layer(3)
    before = ol.inspect(model)
    for rank in (0, 1, 2):
        cut = truncated(model, domain_of(BOX), "QK", rank)
        assert ol.inspect(cut.model).qk.rank == (rank, rank)
        assert cut.cut_off == pytest.approx(float(before.qk.singular_values[:, rank].max()), rel=1e-9)


def test_a_certified_layer_of_gates_has_no_rank_to_spare():
    approx = ol.build("sin(x1)*x2", [(0, 1)] * 2, 1e-2, method="solved", construction="gates")
    assert set(ol.inspect(approx.model).qk.rank) == {1}
    whole, none = (truncated(approx.model, approx.domain, "QK", rank) for rank in (1, 0))
    require_bounded(approx.model, none, approx.domain, 0)
    x = approx.domain.points(np.random.default_rng(0).random((200, 2)))
    rows = torch.from_numpy(x).reshape(200, 2, 1).to(arithmetic_of("float64").dtype)
    apart = [np.abs(c.model(rows).detach().numpy()[:, 0, 0] - approx.target(x)[:, 0]).max() for c in (whole, none)]
    assert apart[0] <= 1e-2 < 0.1 < apart[1]


@pytest.mark.parametrize("wrong", ["norm", "tokens"])
def test_the_check_can_fail(wrong, monkeypatch):
    """A norm that is a little too small everywhere, or tokens that are, and the bound is missed somewhere."""
    model = random_layer(1, heads=1, d_v=1)
    if wrong == "norm":
        honest = truncation._norm
        monkeypatch.setattr(truncation, "_norm", lambda P: honest(P) / 50)
    else:
        monkeypatch.setattr(truncation._Norms, "tokens", lambda self, domain: [arb(0.02)] * 2)
    cut = truncated(model, domain_of(BOX), "OV", 0)
    with pytest.raises(AssertionError):
        require_bounded(model, cut, domain_of(BOX), 0)


@pytest.mark.parametrize(
    ("circuit", "rank", "changes", "mentions"),
    [
        ("VO", 1, {}, "circuit"),
        ("OV", 3, {}, "rank, a whole number from 0 to 2"),
        ("OV", 1, {"norm": "pre"}, "a layer without LayerNorm"),
        ("OV", 1, {"attention": "sigmoid"}, "a layer with softmax attention"),
        ("QK", 3, {"attention": "linear"}, "a layer with softmax attention"),
        ("QK", 1, {"attention": "sparsemax"}, "a layer with softmax attention"),
    ],
)
@pytest.mark.usefixtures("as_user")
def test_what_is_refused(circuit, rank, changes, mentions):
    with pytest.raises(ol.InputError) as caught:
        truncated(random_layer(0, **changes), domain_of(BOX), circuit, rank)
    assert mentions in str(caught.value)
