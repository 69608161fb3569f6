"""Stock PyTorch: an nn.TransformerEncoderLayer with linear embedding and read-out, as safetensors and a short loader.

The stock layer has residuals, LayerNorm, and d_k = d_v = d_model/heads. A layer that has all of these (or whose heads fit into
wider ones) is copied as it is. One without LayerNorm is rewritten so that LayerNorm hardly moves it (`layernorm`).
"""

import json
import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from ...common.errors import InputError
from ...layer.assemble.frame import power_of_4
from ...model.config import LayerConfig
from . import loader
from .deviation import deviation
from .layernorm import doubled
from .subject import Bound, Made, Subject

Norm = Literal["post", "pre"]
FILES = ("layer.py", "model.safetensors")
CHUNK = 2**22  # numbers held at a time when measuring
WORK = 2**34  # products spent on measuring: wide stock layers are measured at fewer points


def make(subject: Subject, x: np.ndarray, norm: Norm | None) -> Made:
    """The two files, run on both of torch's paths (with and without gradients) at the points x."""
    c = subject.model.config
    weights = {name: t.detach() for name, t in subject.model.state_dict().items()}
    if c.norm == "none":
        found = doubled(subject, norm or "post")
        about, tensors = _shaped(subject, found.config), stock_weights(found.config, found.weights)
        of = "what LayerNorm changes in exact arithmetic; rounding is only measured"
        apart = deviation(subject, found, norm or "post")
        bound = Bound(apart, of) if math.isfinite(apart) else None
        notes = (f"{found.config.norm}-norm, constants ±C in the stream, C = {found.constant:.4g}",)
    else:
        require_own(c, norm)
        about, tensors, bound = _shaped(subject, c), stock_weights(c, weights), None
        notes = (f"{c.norm}-norm, the layer's own",)
    layer = loader.filled(about, tensors)
    rows = max(1, CHUNK // (c.all_tokens * max(about["d_model"], about["heads"] * c.all_tokens, c.ffn_width)))

    def answer(points: np.ndarray) -> np.ndarray:
        parts = [layer(part).reshape(len(part), -1) for part in torch.from_numpy(points).split(rows)]
        return torch.cat(parts).detach().numpy() if parts else np.zeros((0, subject.outputs))

    cost = c.all_tokens * sum(t.numel() for t in tensors.values())
    x = x[:: max(1, math.ceil(len(x) * cost / WORK))]
    measured = subject.measure(answer, x)
    with torch.no_grad():  # the path that torch takes for inference
        inference = subject.measure(answer, x)
    measured = max(measured, inference, key=lambda seen: (seen.difference, seen.error or 0.0))
    metadata = subject.about() | measured.words() | {"layer": json.dumps(about)}
    metadata |= {"layernorm": str(bound)} if bound else {}
    files = {
        FILES[0]: Path(loader.__file__).read_bytes(),
        FILES[1]: save(_narrowed(subject, tensors), metadata=metadata),
    }
    return Made(files, measured, bound, notes)


def _narrowed(subject: Subject, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """bfloat16 weights as bfloat16, but for tensors with other numbers, as LayerNorm may need them; the loader widens them."""
    if subject.stored != "bfloat16":
        return tensors
    narrow = {name: t.to(torch.bfloat16) for name, t in tensors.items()}
    return {name: narrow[name] if torch.equal(narrow[name].to(t.dtype), t) else t for name, t in tensors.items()}


def require_own(c: LayerConfig, norm: Norm | None) -> None:
    """A layer with LayerNorm can be copied into a stock layer."""
    if norm not in (None, c.norm):
        raise InputError(f"norm={norm!r}", f"a layer that has {c.norm}-norm itself", "leave norm out")
    if not c.residual:
        raise InputError("a stock encoder layer", "LayerNorm without residuals", "train it with residuals")
    if _width(c) is None:
        found = f"{c.heads} heads of widths {c.d_k} and {c.d_v} beside LayerNorm over d_model = {c.d_model}"
        raise InputError("heads that fit into d_model", found, "export it as onnx or c")


def _width(c: LayerConfig) -> int | None:
    """The smallest width of stock heads that holds ours: it divides d_model and leaves enough heads.

    Widths that are d_k times a power of 4 come first: they change 1/√d_k by a power of two.
    """
    enough = [w for w in range(max(c.d_k, c.d_v), c.d_model + 1) if c.d_model % w == 0 and c.d_model // w >= c.heads]
    return min(enough, key=lambda w: (w % c.d_k != 0 or power_of_4(w // c.d_k) != w // c.d_k, w), default=None)


def stock_heads(c: LayerConfig) -> int:
    """The number of stock heads: ours, and zeros."""
    width = _width(c)
    if width is None:
        raise InputError("heads that fit into d_model", f"d_model = {c.d_model}", "export it as onnx or c")
    return c.d_model // width


def _shaped(subject: Subject, c: LayerConfig) -> dict[str, Any]:
    """What the loader needs to know."""
    about: dict[str, Any] = {"tokens": c.tokens, "features": c.features_in}
    about |= {"special": c.special_tokens, "d_model": c.d_model, "heads": stock_heads(c), "ffn_width": c.ffn_width}
    about |= {"activation": c.activation, "norm_first": c.norm == "pre", "norm_eps": c.norm_eps}
    about |= {"first_row": c.read_rows.start, "last_row": c.read_rows.stop - 1, "mean": c.readout == "mean"}
    about |= {"out": c.features_out, "places": list(subject.places), "shape": list(subject.shape)}
    return about | {"vocabulary": subject.approximation.vocabulary}


def stock_weights(c: LayerConfig, w: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our weights under the stock layer's names: matrices transposed, heads padded to one width and to one number."""
    m, h, dtype = c.d_model, stock_heads(c), w["W_E"].dtype
    width = m // h

    def padded(matrix: Tensor, count: int) -> Tensor:
        """[head, …, width of ours] → [all heads, …, width]."""
        wide = matrix.new_zeros(h, *matrix.shape[1:-1], width)
        wide[: c.heads, ..., :count] = matrix
        return wide

    rescale = math.sqrt(width / c.d_k)  # stock scores are divided by √width; a power of two for powers of 4
    parts, biases = [], []
    for which, count, factor in (("Q", c.d_k, rescale), ("K", c.d_k, 1.0), ("V", c.d_v, 1.0)):
        parts.append(padded(w[f"W_{which}"] * factor, count).transpose(1, 2).reshape(m, m))
        own = w.get(f"b_{which}", torch.zeros(c.heads, count, dtype=dtype))
        biases.append(padded(own * factor, count).reshape(m))
    out = padded(w["W_O"].reshape(c.heads, c.d_v, m).transpose(1, 2), c.d_v).transpose(1, 2).reshape(m, m)
    zeros = torch.zeros(m, dtype=dtype)
    found = {
        "shift": w["shift"],
        "scale": w["scale"],
        "codes": w.get("P", torch.zeros(c.tokens, m, dtype=dtype)),
        "special": w.get("S", torch.zeros(0, m, dtype=dtype)),
        "embedding.weight": w["W_E"].T,
        "embedding.bias": w["b_E"],
        "layer.self_attn.in_proj_weight": torch.cat(parts),
        "layer.self_attn.in_proj_bias": torch.cat(biases),
        "layer.self_attn.out_proj.weight": out.T,
        "layer.self_attn.out_proj.bias": w.get("b_O", zeros),
        "layer.linear1.weight": w["W_1"].T,
        "layer.linear1.bias": w["b_1"],
        "layer.linear2.weight": w["W_2"].T,
        "layer.linear2.bias": w["b_2"],
        "layer.norm1.weight": w["gain_1"],
        "layer.norm1.bias": w["offset_1"],
        "layer.norm2.weight": w["gain_2"],
        "layer.norm2.bias": w["offset_2"],
        "readout.weight": w["W_R"].T,
        "readout.bias": w["b_R"],
    }
    return {name: t.detach().clone().contiguous() for name, t in found.items()}
