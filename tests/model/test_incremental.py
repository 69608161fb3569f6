"""A causal layer evaluated token by token against the whole layer."""

from dataclasses import replace

import pytest
import torch

from cases import OTHERS
from onelayer.common.errors import InputError
from onelayer.model.config import LayerConfig
from onelayer.model.incremental import TokenByToken
from onelayer.model.transformer import SingleLayerTransformer

CONFIG = LayerConfig(
    tokens=9, features_in=3, features_out=2, d_model=8, heads=2, d_k=4, d_v=3, ffn_width=10,
    code="learned", any_length=True, causal=True,
)  # fmt: skip


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
@pytest.mark.parametrize(
    "more", [{}, {"anchor_tokens": 1, "memory_tokens": 2}, {"code": "none", "residual": False}, *OTHERS]
)
def test_it_computes_what_the_layer_computes(norm, more):
    model = SingleLayerTransformer(replace(CONFIG, norm=norm, **more), seed=3).eval()
    x = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    growing, whole = TokenByToken(model), model(x[None])[0]
    for new in (slice(0, 3), slice(3, 4), slice(4, 5), slice(5, 9)):
        assert torch.allclose(growing.extend(x[new]), whole[new.stop - 1], rtol=0, atol=1e-13)


def test_other_layers_and_too_many_tokens_are_refused():
    with pytest.raises(InputError, match="a causal layer for any length"):
        TokenByToken(SingleLayerTransformer(replace(CONFIG, causal=False)))
    growing = TokenByToken(SingleLayerTransformer(CONFIG))
    growing.extend(torch.zeros(9, 3, dtype=torch.float64))
    with pytest.raises(InputError, match="start again with the last tokens"):
        growing.extend(torch.zeros(1, 3, dtype=torch.float64))
