"""The model equals torch.nn.MultiheadAttention and torch.nn.TransformerEncoderLayer with the same weights."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from onelayer import InputError, LayerConfig, SingleLayerTransformer
from onelayer.model.stock import attention_weights

CLOSE = {"rtol": 0, "atol": 1e-12}


def randomised(layer: nn.Module, seed: int) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=p.dtype) / 2)
    return layer.eval()


def sequences(batch: int, tokens: int, width: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(tokens)
    return torch.randn(batch, tokens, width, generator=generator, dtype=torch.float64)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 6), st.booleans(), st.integers(0, 99))
def test_equals_multihead_attention(heads, width, tokens, bias, seed):
    m = heads * width
    stock = randomised(nn.MultiheadAttention(m, heads, bias=bias, batch_first=True, dtype=torch.float64), seed)
    config = LayerConfig(
        tokens=tokens, features_in=m, features_out=m, d_model=m, heads=heads, d_k=width, d_v=width,
        ffn_width=1, code="none", projection_bias=bias, residual=False,
    )  # fmt: skip
    model = SingleLayerTransformer(config)
    given_weights = {name: w for name, w in attention_weights(stock).items() if w is not None}
    given_weights |= {"W_E": torch.eye(m)}  # attention(x) then speaks of x itself
    model.load_state_dict(given_weights, strict=False)
    x = sequences(3, tokens, m)
    expected, expected_weights = stock(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(model.attend(x, x, x.new_zeros(0, m)), expected, **CLOSE)
    torch.testing.assert_close(model.attention(x), expected_weights, **CLOSE)


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 6), st.integers(1, 9),
    st.sampled_from(["relu", "gelu", nn.functional.silu, nn.GELU(), nn.ReLU(), nn.SiLU()]),
    st.booleans(), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_equals_transformer_encoder_layer(heads, width, tokens, ffn, activation, norm_first, bias, seed):
    m = heads * width
    stock = nn.TransformerEncoderLayer(
        m,
        heads,
        ffn,
        activation=activation,
        norm_first=norm_first,
        batch_first=True,
        bias=bias,
        dtype=torch.float64,
        layer_norm_eps=1e-3 if seed % 2 else 1e-5,
    )
    stock = randomised(stock, seed)
    x = sequences(3, tokens, m)
    torch.testing.assert_close(SingleLayerTransformer.from_torch(stock, tokens)(x), stock(x), **CLOSE)


def test_dropout_dtype_and_mode_carry_over():
    stock = nn.TransformerEncoderLayer(4, 2, dropout=0.25, batch_first=True)
    model = SingleLayerTransformer.from_torch(stock, 3)
    assert model.config.dropout == 0.25
    assert model.W_Q.dtype == torch.float32
    assert model.training
    assert not SingleLayerTransformer.from_torch(stock.eval(), 3).training


def test_the_comparison_can_fail():
    stock = randomised(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dtype=torch.float64), 0)
    model, x = SingleLayerTransformer.from_torch(stock, 3), sequences(2, 3, 4)
    with torch.no_grad():
        model.W_K[1, 0, 0] += 1e-9
    with pytest.raises(AssertionError):
        torch.testing.assert_close(model(x), stock(x), **CLOSE)


@pytest.mark.usefixtures("as_user")
def test_refusals_are_one_clear_line():
    with pytest.raises(InputError, match=r"asked: .*TransformerEncoderLayer; found: Linear; change: "):
        SingleLayerTransformer.from_torch(nn.Linear(2, 2), 3)
    with pytest.raises(InputError, match="asked: an activation among relu, gelu, silu"):
        SingleLayerTransformer.from_torch(
            nn.TransformerEncoderLayer(4, 2, activation=nn.functional.tanh, batch_first=True), 3
        )
    with pytest.raises(InputError, match="found: batch_first=False"):
        SingleLayerTransformer.from_torch(nn.TransformerEncoderLayer(4, 2), 3)
    for name, changed in [("norm2", nn.LayerNorm(4, eps=0.1)), ("norm1", nn.Identity()), ("dropout1", nn.Dropout(0.7))]:
        layer = nn.TransformerEncoderLayer(4, 2, batch_first=True)
        setattr(layer, name, changed)
        with pytest.raises(InputError, match="use the layer as constructed"):
            SingleLayerTransformer.from_torch(layer, 3)
    with pytest.raises(InputError, match="asked: self-attention with one embedding width"):
        attention_weights(nn.MultiheadAttention(4, 2, kdim=3))
