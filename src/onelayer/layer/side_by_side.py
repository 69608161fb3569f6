"""Two layers side by side in one: T₁ − T₂ as a single-layer Transformer, exactly.

The stream of the new layer holds that of T₁, that of T₂, and one coordinate for every output. Heads and hidden units of either
layer read and write their own part only, so that scores, weights and sums are those of the two layers:

    W^E = [E₁ E₂ 0],   S = [S₁ S₂ 0],   W^O = diag(O₁, O₂),   W₁ = diag,   W₂ = diag,   W^R = [R₁; −R₂; −1]

The bias of T₁'s read-out is the new one's, that of T₂ arrives through b₂ and the last coordinates. No number is computed from
two others: every stored weight is a weight of T₁ or of T₂, perhaps with its sign changed, or 0 or ±1. So the real function
of the new weights is the difference of the two real functions, and what is proved of one is proved of the other.
"""

from dataclasses import asdict, replace

import torch
from torch import Tensor

from ..common.errors import InputError
from ..model.transformer import SingleLayerTransformer

MAY_DIFFER = {"heads", "d_model", "d_v", "ffn_width", "dropout", "norm_eps"}  # all else in the configuration is alike


def side_by_side(first: SingleLayerTransformer, second: SingleLayerTransformer) -> SingleLayerTransformer:
    """The layer whose real function is T₁ − T₂."""
    a, b = first.config, second.config
    _require_alike(first, second)
    m, o = a.d_model + b.d_model, a.features_out
    config = replace(
        a,
        d_model=m + o,
        heads=a.heads + b.heads,
        d_v=max(a.d_v, b.d_v),
        ffn_width=a.ffn_width + b.ffn_width,
        dropout=0.0,
    )
    found = SingleLayerTransformer(config, dtype=first.W_E.dtype)
    w1, w2 = ({name: t.detach() for name, t in one.state_dict().items()} for one in (first, second))
    with torch.no_grad():
        for tensor in found.state_dict().values():
            tensor.zero_()
        for name in ("shift", "scale"):
            getattr(found, name).copy_(w1[name])
        parts = [(w1, slice(0, a.d_model), slice(0, a.heads), slice(0, a.ffn_width), a.d_v)]
        parts += [(w2, slice(a.d_model, m), slice(a.heads, None), slice(a.ffn_width, None), b.d_v)]
        W_O = found.W_O.view(config.heads, config.d_v, config.d_model)
        for w, stream, heads, units, d_v in parts:
            for name in ("W_E", "b_E", "P", "S", "b_2"):
                if name in w:
                    getattr(found, name)[..., stream] = w[name]
            found.W_Q[heads, stream], found.W_K[heads, stream] = w["W_Q"], w["W_K"]
            found.W_V[heads, stream, :d_v] = w["W_V"]
            W_O[heads, :d_v, stream] = w["W_O"].view(-1, d_v, stream.stop - stream.start)
            found.W_1[stream, units], found.b_1[units], found.W_2[units, stream] = w["W_1"], w["b_1"], w["W_2"]
        found.W_R[: a.d_model], found.W_R[a.d_model : m] = w1["W_R"], -w2["W_R"]
        found.W_R[m:] = -torch.eye(o, dtype=found.W_R.dtype)
        found.b_R.copy_(w1["b_R"])
        found.b_2[m:] = w2["b_R"]
    return found.eval()


def _require_alike(first: SingleLayerTransformer, second: SingleLayerTransformer) -> None:
    """Refuse layers that do not fit beside each other."""
    asked, change = "two layers that fit side by side", "build both on one domain, with one construction and dtype"
    a, b = asdict(first.config), asdict(second.config)
    unlike = [name for name in a if a[name] != b[name] and name not in MAY_DIFFER]
    if unlike:
        name = unlike[0]
        raise InputError(asked, f"{name}={a[name]!r} and {b[name]!r}", change)
    if first.config.norm != "none" or first.config.projection_bias:
        found = "LayerNorm" if first.config.norm != "none" else "biases of queries, keys and values"
        raise InputError(asked, found, "take layers without, as `build` makes them")
    same: list[tuple[Tensor, Tensor]] = [(first.shift, second.shift), (first.scale, second.scale)]
    if first.W_E.dtype != second.W_E.dtype or not all(torch.equal(x, y) for x, y in same):
        raise InputError(asked, "another dtype, or another normalisation of the input", change)
