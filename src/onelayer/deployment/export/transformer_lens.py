"""TransformerLens: config and state dict of a HookedTransformer, and a short loader that makes a TransformerBridge of them.

The model is TransformerLens's own: token embedding, positions, one block, unembedding. What differs from ours is rewritten, and
computes the same function in exact arithmetic:

    order       constant tokens come first, where causal data tokens see them, and positions count from there
    inputs      rows of W_E are tokens, or the directions of real features; a real input is their combination
    residuals   a layer without them writes to lanes of the stream that nothing has written before
    heads       one width for keys and values, padded with zeros; scores are divided by √d_k as ours are
    LayerNorm   none, before the sublayers, or behind them: never one that the layer does not have

TransformerLens runs the files before they are written; its rounding is measured, not bounded.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from ...common.errors import InputError
from ...common.numbers import at_least
from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from .layernorm import coordinates
from .sequence_subject import SequenceSubject
from .subject import Made, Measured, Subject

FILES = ("config.json", "load.py", "model.safetensors")
MOST_WEIGHTS = 2**26  # attention weights of one input: TransformerLens computes those of all tokens
CHUNK = 2**22  # numbers held at a time when measuring
WORK = 2**34  # products spent on measuring: large layers are measured at fewer points
COMPARED = 64  # inputs at which attention weights are compared


def make(subject: Subject, x: np.ndarray) -> Made:
    """The three files of a layer of one length, run by TransformerLens at the points x."""
    a, c = subject.approximation, subject.model.config
    about = _about(subject.model, a.vocabulary is not None)
    about |= {"places": list(subject.places), "shape": list(subject.shape)}
    config, tensors = _written(subject.model, a.vocabulary is not None)
    layer = _loader().LensLayer(about, config, tensors).eval()
    rows = max(1, CHUNK // _cost(c, c.all_tokens))

    @torch.no_grad()
    def answer(points: np.ndarray) -> np.ndarray:
        parts = [layer(part).reshape(len(part), -1) for part in torch.from_numpy(points).split(rows)]
        return torch.cat(parts).numpy() if parts else np.zeros((0, subject.outputs))

    x = x[:: max(1, math.ceil(len(x) * c.all_tokens * sum(t.numel() for t in tensors.values()) / WORK))]
    measured = subject.measure(answer, x)
    some = torch.from_numpy(x[:: max(1, len(x) // min(COMPARED, rows))].astype(subject.arithmetic.name))
    own = _features(some, c, a.vocabulary)
    seen = _attention(layer, subject.model, some, own)
    return _made(subject.about(), layer.about, config, tensors, measured, f"{at_least(seen, 3)} at {len(some)} points")


def make_lengths(subject: SequenceSubject, seed: int) -> Made:
    """The three files of a layer for sequences of any length, run at random sequences of several lengths."""
    d, c, rng = subject.layer.description, subject.model.config, np.random.default_rng(seed)
    shape = [*([-1] if d.answer == "position" else []), *([d.outputs] if d.outputs > 1 else [])]
    about = _about(subject.model, d.vocabulary is not None)
    about |= {"places": None if d.answer == "position" else [0], "shape": shape, "words": list(d.words)}
    config, tensors = _written(subject.model, d.vocabulary is not None)
    layer = _loader().LensLayer(about, config, tensors).eval()
    worst, seen, count = 0.0, 0.0, 0
    for n in sorted({1, 2, min(7, d.longest), max(1, d.longest // 2), d.longest}):
        rows = max(1, min(COMPARED, CHUNK // _cost(c, n + c.special_tokens)))
        low, high = d.ends
        x = rng.integers(0, d.vocabulary, (rows, n)) if d.vocabulary else low + (high - low) * rng.random((rows, n))
        given = torch.from_numpy(x.astype(subject.arithmetic.name).clip(low, high))
        with torch.no_grad():
            found = layer(given).double().numpy()
        own = subject.layer.values(given.double())
        difference = float(np.abs(found.reshape(own.shape) - own).max())
        if not math.isfinite(difference):
            asked = f"a layer that can be evaluated in {subject.arithmetic.name}"
            raise InputError(asked, "values that are not finite", "export in float64")
        worst, count = max(worst, difference), count + rows
        seen = max(seen, _attention(layer, subject.model, given, d.features(given)))
    measured = Measured(count, worst, None)
    words = subject.about() | {"input": f"x [batch, length], length ≤ {d.longest}"}
    return _made(words, layer.about, config, tensors, measured, f"{at_least(seen, 3)} at the same sequences")


def _loader() -> Any:
    """The module that is written as load.py; importing it imports TransformerLens."""
    try:
        from . import lens_loader
    except ImportError as error:
        found = f"{error.name} is not installed" if "transformer" in str(error.name) else f"{error}".splitlines()[0]
        change = "pip install 'onelayer[interop]'"
        raise InputError("the package transformer_lens, version 4 or later", found, change) from None
    return lens_loader


def _made(
    words: dict[str, str],
    about: dict[str, Any],
    config: dict[str, Any],
    tensors: dict[str, Tensor],
    measured: Measured,
    attention: str,
) -> Made:
    metadata = words | measured.words() | {"layer": json.dumps(about)}
    metadata["attention"] = f"weights differ by {attention}, observed"
    files = {
        "config.json": (json.dumps(config, indent=1) + "\n").encode(),
        "load.py": Path(_loader().__file__).read_bytes(),
        "model.safetensors": save(tensors, metadata=metadata),
    }
    special = about["special"]
    notes = [f"attention weights: observed difference {attention}"]
    notes += [f"the sequence starts with {special} constant token{'s' if special > 1 else ''}"] if special else []
    return Made(files, measured, None, tuple(notes))


def _about(model: SingleLayerTransformer, tokens: bool) -> dict[str, Any]:
    """What the loader needs to know beside the configuration of TransformerLens."""
    c = model.config
    s = c.special_tokens
    rows = [s - c.output_tokens, s] if c.readout == "output" else [s, None]
    about = {"norm": c.norm, "special": s, "tokens": tokens, "rows": rows, "mean": c.readout == "mean"}
    if tokens:
        return about
    return about | {name: getattr(model, name).double().tolist() for name in ("shift", "scale")}


def _cost(c: LayerConfig, tokens: int) -> int:
    """Numbers that TransformerLens holds for one input."""
    return tokens * max(c.heads * tokens, c.heads * max(c.d_k, c.d_v), 3 * c.d_model, c.ffn_width)


def _features(x: Tensor, c: LayerConfig, vocabulary: int | None) -> Tensor:
    """Points [point, D] as our own layer takes them."""
    if vocabulary is None:
        return x.reshape(len(x), c.tokens, c.features_in)
    return torch.nn.functional.one_hot(x.long(), vocabulary).to(x.dtype)


def _attention(layer: Any, model: SingleLayerTransformer, x: Tensor, own: Tensor) -> float:
    """The largest difference between attention weights in TransformerLens and in our layer, at the rows that are read."""
    s, (first, last) = model.config.special_tokens, layer.about["rows"]
    name = "blocks.0.attn.hook_pattern"
    with torch.no_grad():
        _, cache = layer.model.run_with_cache(layer.inputs(x), names_filter=name)
        ours = model.attention(own).roll((s, s), dims=(-2, -1))  # constant tokens come last in ours
    difference = (cache[name] - ours)[:, :, first:last].abs()
    return float(difference.max()) if len(x) else 0.0


def _written(model: SingleLayerTransformer, tokens: bool) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The arguments of HookedTransformerConfig, and the state dict under HookedTransformer's names."""
    c = model.config
    w = {name: t.detach() for name, t in model.state_dict().items()}
    _require_possible(c, w, tokens)
    embed, attend, feed = _lanes(c, w)
    dtype, d_head = w["W_E"].dtype, max(c.d_k, c.d_v)
    twice = 2.0 if c.d_k == 1 < d_head else 1.0  # TransformerLens refuses to divide scores by 1
    zeros: Callable[..., Tensor] = lambda *shape: torch.zeros(*shape, dtype=dtype)  # noqa: E731

    def wide(t: Tensor) -> Tensor:
        return torch.nn.functional.pad(t, (0, d_head - t.shape[-1]))

    special = w.get("S", zeros(0, c.d_model))
    codes = (w.get("P", zeros(c.tokens, c.d_model)) + w["b_E"]) @ embed
    attn = {}
    for which, width, factor in (("Q", c.d_k, twice), ("K", c.d_k, 1.0), ("V", c.d_v, 1.0)):
        attn[f"W_{which}"] = wide(torch.einsum("hmw,mz->hzw", w[f"W_{which}"] * factor, embed))
        attn[f"b_{which}"] = wide(w.get(f"b_{which}", zeros(c.heads, width)) * factor)
    out = (w["W_O"] @ attend).reshape(c.heads, c.d_v, -1)
    attn["W_O"] = torch.nn.functional.pad(out, (0, 0, 0, d_head - c.d_v))
    attn["b_O"] = w.get("b_O", zeros(c.d_model)) @ attend
    tensors = {
        "embed.W_E": torch.cat([w["W_E"], special]) @ embed,
        "pos_embed.W_pos": torch.cat([zeros(c.special_tokens, codes.shape[1]), codes]),
        **{f"blocks.0.attn.{name}": t for name, t in attn.items()},
        "blocks.0.mlp.W_in": attend.T @ w["W_1"],
        "blocks.0.mlp.b_in": w["b_1"],
        "blocks.0.mlp.W_out": w["W_2"] @ feed,
        "blocks.0.mlp.b_out": w["b_2"] @ feed,
        "unembed.W_U": feed.T @ w["W_R"],
        "unembed.b_U": w["b_R"],
    }
    for i, name in _norms(c).items():
        tensors[f"{name}.w"] = w[f"gain_{i}"] if i else torch.ones(c.d_model, dtype=dtype)
        tensors[f"{name}.b"] = w[f"offset_{i}"] if i else zeros(c.d_model)
    config = {
        "n_layers": 1,
        "d_model": embed.shape[1],
        "n_ctx": c.all_tokens,
        "n_heads": c.heads,
        "d_head": d_head,
        "d_mlp": c.ffn_width,
        "d_vocab": c.features_in + c.special_tokens,
        "d_vocab_out": c.features_out,
        "act_fn": c.activation,
        "attn_scale": math.sqrt(c.d_k) * twice,
        "attention_dir": "causal" if c.causal else "bidirectional",
        "normalization_type": None if c.norm == "none" else "LN",
        "eps": c.norm_eps,
    }
    return config, {name: t.clone().contiguous() for name, t in tensors.items()}


def _norms(c: LayerConfig) -> dict[int, str]:
    """Which LayerNorm of ours (0: none) stands under which name; `load.py` explains post-norm."""
    if c.norm == "none":
        return {}
    if c.norm == "pre":
        return {1: "blocks.0.ln1", 2: "blocks.0.ln2"}
    return {0: "blocks.0.ln1", 1: "blocks.0.ln2", 2: "ln_final"}


def _lanes(c: LayerConfig, w: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Where the embedding, attention and the MLP write, as 0-1 matrices [model, lane]."""
    if c.residual:
        eye = torch.eye(c.d_model, dtype=w["W_E"].dtype)
        return eye, eye, eye
    return coordinates(c, w)


def _require_possible(c: LayerConfig, w: dict[str, Tensor], tokens: bool) -> None:
    """Refuse what TransformerLens has no place for."""
    if c.norm != "none" and not c.residual:
        raise InputError(
            "a layer as TransformerLens has them", "LayerNorm without residuals", "train it with residuals"
        )
    if tokens and not (bool((w["shift"] == 0).all()) and bool((w["scale"] == 1).all())):
        raise InputError("tokens that are unit vectors", "tokens that are shifted or scaled", "export it as onnx")
    weights = c.heads * c.all_tokens**2
    if weights > MOST_WEIGHTS:
        found = f"{c.heads:,} heads and {c.all_tokens:,} tokens, which make {weights:,}"
        change = "export it as onnx, or one length of it: at_length(n)" if c.any_length else "export it as onnx or c"
        raise InputError(f"at most {MOST_WEIGHTS:,} attention weights for one input", found, change)
