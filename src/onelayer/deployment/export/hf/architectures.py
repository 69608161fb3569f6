"""Stock architectures of `transformers`, and our weights under their names.

    BERT     every token sees all. LayerNorm of the embedding, and behind both sublayers
    GPT-2    a token sees those before it. LayerNorm before both sublayers, and behind everything
    OPT      LayerNorm before or behind both sublayers and nowhere else: for layers that have their own

Special tokens come first, as words of the vocabulary behind the data tokens; then every data token of a causal layer sees them.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from ....common.errors import InputError
from ....model.config import LayerConfig
from ..layernorm import EPS, Doubled
from ..torch import stock_heads, stock_weights

Architecture = Literal["bert", "gpt2", "opt"]
Head = Literal["none", "tokens", "text"]  # base model, an answer for every token, or logits of the next word
CLASSES: dict[tuple[Architecture, Head], str] = {
    ("bert", "none"): "BertModel",
    ("bert", "tokens"): "BertForTokenClassification",
    ("gpt2", "none"): "GPT2Model",
    ("gpt2", "tokens"): "GPT2ForTokenClassification",
    ("gpt2", "text"): "GPT2LMHeadModel",
    ("opt", "none"): "OPTModel",
}


@dataclass(frozen=True)
class StockModel:
    """Shape and weights of a model: ours, with LayerNorm, and where words and special tokens stand in the vocabulary."""

    architecture: Architecture
    head: Head
    shape: LayerConfig
    weights: dict[str, Tensor]
    words: int  # data tokens in the vocabulary; 0 where inputs are numbers

    @property
    def name(self) -> str:
        return CLASSES[self.architecture, self.head]

    @property
    def special(self) -> list[int]:
        """The numbers of the special tokens in the vocabulary."""
        return list(range(self.words, self.words + self.shape.special_tokens))

    @property
    def pad(self) -> int:
        """The number of the token that stands where there is none."""
        return self.words + self.shape.special_tokens

    def config(self) -> dict[str, Any]:
        """What the configuration of the architecture is made from."""
        c, dtype = self.shape, str(self.weights["W_E"].dtype).removeprefix("torch.")
        size: dict[str, Any] = {"vocab_size": self.pad + 1, "pad_token_id": self.pad, "bos_token_id": None}
        size |= {"eos_token_id": None, "tie_word_embeddings": False, "architectures": [self.name], "dtype": dtype}
        size |= {"hidden_size": c.d_model, "num_hidden_layers": 1, "num_attention_heads": stock_heads(c)}
        size |= {"max_position_embeddings": c.all_tokens}
        if self.head == "tokens":
            size["num_labels"] = c.features_out
        if self.architecture == "bert":
            size |= {"intermediate_size": c.ffn_width, "hidden_act": c.activation, "layer_norm_eps": EPS}
            return size | {"type_vocab_size": 1, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        size["activation_function"] = c.activation
        if self.architecture == "gpt2":
            size |= {"n_inner": c.ffn_width, "layer_norm_epsilon": EPS, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
            return size | {"attn_pdrop": 0.0} | ({"bos_token_id": 0} if self.head == "text" else {})
        size |= {"ffn_dim": c.ffn_width, "word_embed_proj_dim": c.d_model, "dropout": 0.0, "attention_dropout": 0.0}
        return size | {"do_layer_norm_before": c.norm == "pre", "_remove_final_layer_norm": True}

    def tensors(self, lm_head: Tensor | None = None) -> dict[str, Tensor]:
        """All weights of the architecture, under its names."""
        t = stock_weights(self.shape, self.weights)
        named = {"bert": _bert, "gpt2": _gpt2, "opt": _opt}[self.architecture](t, self._vectors(), self._positions())
        if self.architecture == "bert":
            named |= _linear("embeddings.LayerNorm", self.weights["gain_0"], torch.zeros_like(self.weights["gain_0"]))
        prefix = {"bert": "bert.", "gpt2": "transformer.", "opt": ""}[self.architecture] if self.head != "none" else ""
        named = {prefix + name: tensor for name, tensor in named.items()}
        if self.head == "tokens":
            named |= {"classifier.weight": t["readout.weight"], "classifier.bias": t["readout.bias"]}
        if lm_head is not None:
            named["lm_head.weight"] = lm_head
        return {name: tensor.detach().clone().contiguous() for name, tensor in named.items()}

    def ends(self) -> dict[str, Tensor]:
        """What the wrapper needs: the embedding of numbers, and the read-out."""
        names = ("W_R", "b_R") if self.words else ("shift", "scale", "W_E", "b_E", "W_R", "b_R")
        return {name: self.weights[name].detach().clone().contiguous() for name in names}

    def _vectors(self) -> Tensor:
        """The vocabulary: words, special tokens, and the token for padding."""
        w = self.weights
        special = w["S"] if self.shape.special_tokens else w["W_E"].new_zeros(0, self.shape.d_model)
        if not self.words:
            return torch.cat([special, w["b_E"][None]])
        shift, scale = w["shift"], w["scale"]
        if not bool((shift == shift[0]).all() and (scale == scale[0]).all()):
            found = "a normalisation that differs from position to position"
            raise InputError("one vector for every token of the vocabulary", found, "export it as onnx")
        words = scale[0][:, None] * w["W_E"] - (shift[0] * scale[0]) @ w["W_E"] + w["b_E"]
        return torch.cat([words, special, w["b_E"][None]])

    @property
    def exact_words(self) -> bool:
        """Whether the vectors of the vocabulary are stored without rounding: two numbers are added, and the sum is exact."""
        w = self.weights
        if not self.words:
            return True
        if bool(w["shift"].any() or w["scale"].ne(1).any()):
            return False
        a, b = w["W_E"], w["b_E"].expand_as(w["W_E"])
        total = a + b
        part = total - a
        return not bool(((a - (total - part)) + (b - part)).any())  # the rounding error, itself exact (Knuth)

    def _positions(self) -> Tensor:
        """Positional codes: 0 for special tokens, then ours."""
        codes = self.weights.get("P", self.weights["W_E"].new_zeros(self.shape.tokens, self.shape.d_model))
        return torch.cat([codes.new_zeros(self.shape.special_tokens, self.shape.d_model), codes])


def text_head(found: Doubled, words: int, ids: int, low: float) -> Tensor:
    """The read-out of a text model, [id, model]: biases are read off the constants ±C; ids that are no words get `low`."""
    w = found.weights
    head = w["W_R"].new_zeros(ids, found.config.d_model)
    head[:words] = w["W_R"].T + w["b_R"][:, None] * found.one
    head[words:] = low * found.one
    return head


def with_stock_eps(c: LayerConfig, w: dict[str, Tensor]) -> tuple[LayerConfig, dict[str, Tensor]]:
    """The same layer with LayerNorm's usual eps: the stream is multiplied by √(EPS/eps) wherever a LayerNorm reads it."""
    if c.norm_eps == EPS:
        return c, w
    factor = math.sqrt(EPS / c.norm_eps)
    larger = ["W_E", "b_E", "P", "S", "W_O", "b_O", "W_2", "b_2"]
    smaller = ["W_R"]
    if c.norm == "post":
        larger += ["gain_1", "offset_1"]
        smaller = ["W_Q", "W_K", "W_V", "W_1"]
    changed = {name: t * factor if name in larger else t / factor if name in smaller else t for name, t in w.items()}
    return replace(c, norm_eps=EPS), changed


def _linear(name: str, weight: Tensor, bias: Tensor) -> dict[str, Tensor]:
    return {f"{name}.weight": weight, f"{name}.bias": bias}


def _layer_part(t: dict[str, Tensor], ours: str, name: str, transposed: bool = False) -> dict[str, Tensor]:
    """A linear map or a LayerNorm of the stock encoder layer under another name."""
    weight = t[f"layer.{ours}.weight"]
    return _linear(name, weight.T if transposed else weight, t[f"layer.{ours}.bias"])


def _three(t: dict[str, Tensor], names: tuple[str, str, str]) -> dict[str, Tensor]:
    """Queries, keys and values apart."""
    weights, biases = t["layer.self_attn.in_proj_weight"].chunk(3), t["layer.self_attn.in_proj_bias"].chunk(3)
    parts = (_linear(name, w, b) for name, w, b in zip(names, weights, biases, strict=True))
    return {name: tensor for part in parts for name, tensor in part.items()}


def _bert(t: dict[str, Tensor], vectors: Tensor, positions: Tensor) -> dict[str, Tensor]:
    zeros, at = torch.zeros_like(vectors[:1]), "encoder.layer.0"
    own = "attention.self"
    return {
        "embeddings.word_embeddings.weight": vectors,
        "embeddings.position_embeddings.weight": positions,
        "embeddings.token_type_embeddings.weight": zeros,
        **_three(t, (f"{at}.{own}.query", f"{at}.{own}.key", f"{at}.{own}.value")),
        **_layer_part(t, "self_attn.out_proj", f"{at}.attention.output.dense"),
        **_layer_part(t, "norm1", f"{at}.attention.output.LayerNorm"),
        **_layer_part(t, "linear1", f"{at}.intermediate.dense"),
        **_layer_part(t, "linear2", f"{at}.output.dense"),
        **_layer_part(t, "norm2", f"{at}.output.LayerNorm"),
        **_linear("pooler.dense", zeros.expand(zeros.shape[1], -1), zeros[0]),  # which nothing here uses
    }


def _gpt2(t: dict[str, Tensor], vectors: Tensor, positions: Tensor) -> dict[str, Tensor]:
    weight, bias = t["layer.self_attn.in_proj_weight"], t["layer.self_attn.in_proj_bias"]
    return {
        "wte.weight": vectors,
        "wpe.weight": positions,
        **_layer_part(t, "norm1", "h.0.ln_1"),
        **_linear("h.0.attn.c_attn", weight.T, bias),
        **_layer_part(t, "self_attn.out_proj", "h.0.attn.c_proj", transposed=True),
        **_layer_part(t, "norm2", "h.0.ln_2"),
        **_layer_part(t, "linear1", "h.0.mlp.c_fc", transposed=True),
        **_layer_part(t, "linear2", "h.0.mlp.c_proj", transposed=True),
        **_layer_part(t, "norm2", "ln_f"),
    }


def _opt(t: dict[str, Tensor], vectors: Tensor, positions: Tensor) -> dict[str, Tensor]:
    at = "decoder.layers.0"
    own = f"{at}.self_attn"
    return {
        "decoder.embed_tokens.weight": vectors,
        "decoder.embed_positions.weight": torch.nn.functional.pad(positions, (0, 0, 2, 0)),  # OPT starts at row 2
        **_three(t, (f"{own}.q_proj", f"{own}.k_proj", f"{own}.v_proj")),
        **_layer_part(t, "self_attn.out_proj", f"{own}.out_proj"),
        **_layer_part(t, "norm1", f"{at}.self_attn_layer_norm"),
        **_layer_part(t, "linear1", f"{at}.fc1"),
        **_layer_part(t, "linear2", f"{at}.fc2"),
        **_layer_part(t, "norm2", f"{at}.final_layer_norm"),
    }
