"""Heads against key width: no layer contradicts what docs/theory/limits.md proves, and the measure says what it built."""

import numpy as np
import pytest
import torch
from numpy.polynomial import polynomial

import onelayer as ol
from onelayer.experiments.study.measures.heads import memory_heads
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.model.config import LayerConfig
from onelayer.model.transformer import SingleLayerTransformer

SQUARE = [(-1, 1)] * 2


def random_layer(seed, size=2.0, **sizes):
    config = LayerConfig(features_out=1, heads=1, d_v=1, ffn_width=1, **sizes)
    model = SingleLayerTransformer(config, seed=seed, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(size * torch.randn(p.shape, generator=generator, dtype=torch.float64))
        model.W_2.zero_()  # the feed-forward network is the identity
        model.b_2.zero_()
    return model


@pytest.mark.parametrize("d_k", [2, 5, 16])
def test_a_constant_query_needs_keys_of_width_one(d_k):
    """(a): a head of any width that a constant token asks, rewritten with W_K W_Qᵀ s/√d_k as its only column of keys."""
    sizes = {"tokens": 3, "features_in": 1, "d_model": 6, "output_tokens": 1, "readout": "output"}
    wide, narrow = (random_layer(7, 0.5, d_k=k, **sizes) for k in (d_k, 1))
    with torch.no_grad():
        for name, p in narrow.named_parameters():
            if name not in ("W_Q", "W_K"):
                p.copy_(getattr(wide, name))
        s = wide.S[0]
        narrow.W_Q.copy_((s / (s @ s))[None, :, None])  # the query is 1
        narrow.W_K.copy_((wide.W_K[0] @ (wide.W_Q[0].T @ s) / d_k**0.5)[None, :, None])
        x = torch.rand(50, 3, 1, dtype=torch.float64)
        torch.testing.assert_close(narrow(x), wide(x), rtol=1e-10, atol=1e-10)
        narrow.W_K.mul_(1.01)
        assert (narrow(x) - wide(x)).abs().max() > 1e-6


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(3))
def test_a_head_with_keys_along_one_direction_misses_a_product_by_a_half(seed):
    """(b): its error is at least ½ with any number of tokens; with keys along both directions it is not."""
    target = ol.Target("x1*x2", SQUARE)
    layer = memory_heads(target, 1, 1, 8 * (seed + 1), seed)
    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    found = ol.supremum(model, target, accuracy=0.2)
    assert found.upper >= 0.5
    direction = torch.linalg.svd(layer.memory.keys).Vh[0]
    v = torch.stack([-direction[1], direction[0]])
    x = torch.rand(20, 2, dtype=torch.float64) - 0.5
    steps = torch.stack([layer(x + t * v) - layer(x) for t in (0.1, 0.2)])
    torch.testing.assert_close(steps[1], 2 * steps[0][:1].expand(20, 1), rtol=0, atol=1e-9)  # affine, with one slope
    both = memory_heads(target, 1, 2, 24, seed)
    grid = torch.cartesian_prod(*[torch.linspace(-0.5, 0.5, 41, dtype=torch.float64)] * 2)
    assert (both(grid)[:, 0] - 4 * grid.prod(dim=1)).abs().max() < 0.25


@pytest.mark.parametrize("d_k", [1, 2, 8])
@pytest.mark.parametrize("asks", ["data", "constant"])
def test_one_head_of_any_width_has_five_zeros_at_most(d_k, asks):
    """(c), on 100 random heads; and a polynomial of degree 6 shows that the count can be exceeded."""
    x = torch.linspace(-3, 3, 2001, dtype=torch.float64)
    most = 0
    for seed in range(100):
        constant = {"output_tokens": 1, "readout": "output"} if asks == "constant" else {"anchor_tokens": 1}
        model = random_layer(seed, tokens=1, features_in=1, d_model=4, d_k=d_k, **constant)
        with torch.no_grad():
            y = model(x[:, None, None]).flatten().numpy()
        most = max(most, *(sign_changes(v, np.abs(y).max()) for v in (y, y - np.median(y))))
    assert 1 <= most <= 5
    assert sign_changes(polynomial.polyval(x.numpy(), polynomial.polyfromroots(range(-2, 4)) * 1.0)) == 5
    assert sign_changes(polynomial.polyval(x.numpy() + 1e-3, polynomial.polyfromroots([-2.5, *range(-2, 3)]))) == 6


def sign_changes(y, scale=1.0):
    """Changes of sign; what may be rounding counts as zero."""
    s = np.sign(y[np.abs(y) > 1e-9 * scale])
    return int((s[1:] != s[:-1]).sum())


def test_the_layer_of_several_heads_is_the_one_assembled():
    target = ol.Target("sin(x1*x2)", SQUARE)
    layer = memory_heads(target, 3, 1, 12, 0)
    assert (layer.memory.groups, len(layer.memory)) == (3, 12)
    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    x = 2 * torch.rand(100, 2, dtype=torch.float64) - 1
    with torch.no_grad():
        torch.testing.assert_close(model(x[:, None])[:, 0], layer(x / 2), rtol=0, atol=1e-9)
