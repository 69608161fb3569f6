"""Slopes of layers of any kind in the checker: boxes contain what automatic differentiation finds, LayerNorm included."""

import numpy as np
import pytest
import torch
from flint import ctx, fmpq
from safetensors.torch import save

from cases import plain_config, random_model
from checking import checker

KINDS = {
    "gelu, mean": {"activation": "gelu", "readout": "mean"},
    "silu, positions, pre": {"activation": "silu", "readout": "position", "norm": "pre"},
    "relu, output token": {"activation": "relu", "readout": "output"},
    "gelu, post": {"activation": "gelu", "readout": "mean", "norm": "post", "projection_bias": False},
    "relu, no residual, pre": {"activation": "relu", "readout": "mean", "norm": "pre", "residual": False},
}


@pytest.mark.one_in(7)
@pytest.mark.parametrize("size", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_box_contains_the_slopes_of_its_points(kind, size):
    config = plain_config(**KINDS[kind])
    model = random_model(config, int(10 * size)).double()
    with torch.no_grad():
        for t in model.parameters():
            t.mul_(size)
    _, tensors, _, _ = checker.read_tensors(save({k: t.contiguous() for k, t in model.state_dict().items()}))
    c = {name: getattr(config, name) for name in config.__dataclass_fields__}
    D, rng, finite = config.tokens * config.features_in, np.random.default_rng(5), 0

    def outputs(x):
        return model(x.reshape(1, config.tokens, config.features_in)).flatten()

    for width in (2.0**-20, 2.0**-12, 0.03):
        low = rng.standard_normal(D)
        box = [(float(v), float(v + width)) for v in low]
        with ctx.workprec(checker.WORKING):
            layer = checker.Dense(
                c, {n: rows for n, (_, rows) in tensors.items()}, list(range(config.places)), fmpq(1, 2**53)
            )
            zero = checker.Reader([], "0").node()
            part = checker.Tangents(layer, [zero] * len(layer.lines), checker.Domain(box, None, 0.0), [0, D - 1])
            leaf = part.enclose(box, 0)
        finite += np.isfinite(leaf.high).all()
        for _ in range(20):
            x = torch.tensor(low + width * rng.random(D))
            slopes = torch.autograd.functional.jacobian(outputs, x)[:, [0, D - 1]].flatten().numpy()
            slack = 1e-9 * (1 + np.abs(slopes))
            assert (np.array(leaf.low) <= slopes + slack).all()
            assert (np.array(leaf.high) >= slopes - slack).all()
            if width < 1e-3 and size <= 1 and config.activation != "relu":
                assert (np.array(leaf.high) - leaf.low < 0.3 * (1 + np.abs(slopes).max())).all()
    assert finite >= 1
