"""Stock PyTorch attention as a SingleLayerTransformer with the same weights.

`nn.MultiheadAttention` and `nn.TransformerEncoderLayer` keep W^Q, W^K, W^V of all heads stacked and transposed, and
fix d_k = d_v = d_model/h. Eq. (5)–(8) are the same, so the weights carry over exactly.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..common.errors import InputError
from .config import Activation, LayerConfig
from .transformer import SingleLayerTransformer


def transformer_of(
    layer: nn.TransformerEncoderLayer, tokens: int, *, any_length: bool = False, causal: bool = False
) -> SingleLayerTransformer:
    """The model with the weights of a stock encoder layer: `SingleLayerTransformer.from_torch`."""
    _require_plain(layer)
    attention = layer.self_attn
    d_model, heads = attention.embed_dim, attention.num_heads
    config = LayerConfig(
        tokens=tokens,
        features_in=d_model,
        features_out=d_model,
        d_model=d_model,
        heads=heads,
        d_k=d_model // heads,
        d_v=d_model // heads,
        ffn_width=layer.linear1.out_features,
        activation=_activation(layer),
        dropout=attention.dropout,
        code="none",
        norm="pre" if layer.norm_first else "post",
        norm_eps=layer.norm1.eps,
        projection_bias=True,
        any_length=any_length,
        causal=causal,
    )
    weight = layer.linear1.weight
    model = SingleLayerTransformer(config, dtype=weight.dtype).to(weight.device)
    weights = attention_weights(attention) | {
        "W_E": torch.eye(d_model),
        "W_R": torch.eye(d_model),
        "W_1": layer.linear1.weight.T,
        "W_2": layer.linear2.weight.T,
        "b_1": layer.linear1.bias,
        "b_2": layer.linear2.bias,
        "gain_1": layer.norm1.weight,
        "gain_2": layer.norm2.weight,
        "offset_1": layer.norm1.bias,
        "offset_2": layer.norm2.bias,
    }
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            given = weights.get(name)
            parameter.zero_() if given is None else parameter.copy_(given)
    return model.train(layer.training)


def attention_weights(layer: nn.MultiheadAttention) -> dict[str, Tensor | None]:
    """W^Q, W^K, W^V [heads, d_model, d_k] and W^O of a stock attention layer, with its biases (None: it has none)."""
    if not layer._qkv_same_embed_dim or layer.bias_k is not None or layer.add_zero_attn:
        raise InputError(
            "self-attention with one embedding width and no extra key",
            "kdim, vdim, add_bias_kv or add_zero_attn",
            "use a MultiheadAttention without them",
        )
    h, m = layer.num_heads, layer.embed_dim
    weights: dict[str, Tensor | None] = {"W_O": layer.out_proj.weight.T, "b_O": layer.out_proj.bias}
    for which, stacked in zip("QKV", layer.in_proj_weight.chunk(3), strict=True):
        weights[f"W_{which}"] = stacked.reshape(h, m // h, m).transpose(1, 2)
    biases = [None] * 3 if layer.in_proj_bias is None else layer.in_proj_bias.chunk(3)
    for which, bias in zip("QKV", biases, strict=True):
        weights[f"b_{which}"] = None if bias is None else bias.reshape(h, m // h)
    return weights


def _require_plain(layer: object) -> None:
    """The layer is a stock one, as its constructor makes it: anything else would be converted silently wrong."""
    if not isinstance(layer, nn.TransformerEncoderLayer):
        raise InputError("a torch.nn.TransformerEncoderLayer", type(layer).__name__, "pass a stock encoder layer")
    if not layer.self_attn.batch_first:
        found = "batch_first=False (torch's default), input [tokens, batch, d_model]"
        raise InputError("a layer with batch_first=True", found, "build it with batch_first=True")
    norms, drops = (layer.norm1, layer.norm2), (layer.dropout, layer.dropout1, layer.dropout2)
    if not all(isinstance(n, nn.LayerNorm) for n in norms) or layer.norm1.eps != layer.norm2.eps:
        raise InputError("two LayerNorms with one eps", f"{norms[0]} and {norms[1]}", "use the layer as constructed")
    if any(d.p != layer.self_attn.dropout for d in drops):
        found = ", ".join(str(d.p) for d in (*drops,)) + f" and {layer.self_attn.dropout} in attention"
        raise InputError("one dropout rate", found, "use the layer as constructed")


def _activation(layer: nn.TransformerEncoderLayer) -> Activation:
    given = layer.activation
    exact_gelu = isinstance(given, nn.GELU) and given.approximate == "none"
    if given is F.relu or isinstance(given, nn.ReLU):
        return "relu"
    if given is F.gelu or exact_gelu:
        return "gelu"
    if given is F.silu or isinstance(given, nn.SiLU):
        return "silu"
    raise InputError("an activation among relu, gelu, silu", f"{given}", "use one of these")
