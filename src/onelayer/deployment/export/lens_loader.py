"""A one-layer Transformer in TransformerLens (4 or later), from config.json and model.safetensors.

    from load import load
    layer = load()
    y = layer(x)  # x [batch, variables], or token numbers [batch, length]
    logits, cache = layer.model.run_with_cache(layer.inputs(x))
    cache["blocks.0.attn.hook_pattern"]  # [batch, head, row, column]

In the sequence that the model sees the layer's constant tokens stand first, then one token for each position of x.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from transformer_lens import TransformerBridgeConfig
from transformer_lens.model_bridge.sources.native import NativeBlock, NativeModel, build_bridge_from_module
from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint


class PostNormBlock(NativeBlock):  # type: ignore[misc]
    """h = ln2(x + attention(x)), then h + mlp(h); ln_final is the second LayerNorm, and ln1 is not used."""

    def forward(self, hidden_states: Tensor, attention_mask: Any = None, position_ids: Any = None, **_: Any) -> Any:
        attended, _pattern = self.attn(hidden_states, attention_mask=attention_mask, position_ids=position_ids)
        h = self.ln2(hidden_states + attended)
        return (h + self.mlp(h),)


class LensLayer(nn.Module):
    """`model` is the TransformerBridge, `inputs(x)` what it takes, `layer(x)` the answers of the layer."""

    def __init__(self, about: dict[str, Any], config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        super().__init__()
        self.about = about
        dtype = tensors["embed.W_E"].dtype
        cfg = TransformerBridgeConfig.from_dict(config | {"dtype": dtype})
        with torch.random.fork_rng(devices=[]):  # a fresh model draws random numbers
            native = NativeModel(cfg).to(dtype)
            if about["norm"] == "post":
                native.layers[0] = PostNormBlock(cfg).to(dtype)
        if about["norm"] == "pre":
            native.ln_out = nn.Identity()  # the layer has no LayerNorm behind its block
        self.model = build_bridge_from_module(native, "TransformerLensNative", tl_config=cfg, model_name="onelayer")
        if about["norm"] == "pre":
            self.model.ln_final.use_native_layernorm_autograd = True  # run the identity, instead of a LayerNorm
        self.model.load_state_dict(convert_tl_checkpoint(tensors, cfg))

    def inputs(self, x: Tensor) -> Tensor:
        """Constant tokens, then x: token numbers, or real inputs as embeddings x̂ W_E, x̂ = (x − shift)·scale."""
        table = self.model.embed.weight
        split = len(table) - self.about["special"]
        if self.about["tokens"]:
            return torch.cat([torch.arange(split, len(table)).expand(len(x), -1).to(x.device), x.long()], dim=1)
        shift, scale = (torch.tensor(self.about[name], dtype=table.dtype).to(x.device) for name in ("shift", "scale"))
        x = x.reshape(len(x), -1, split)
        e = (x - shift[: x.shape[1]]) * scale[: x.shape[1]] @ table[:split]
        return torch.cat([table[split:].expand(len(x), -1, -1), e], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        first, last = self.about["rows"]
        y = self.model(self.inputs(x))[:, first:last]
        y = y.mean(dim=1, keepdim=True) if self.about["mean"] else y
        y = y if self.about["places"] is None else y[:, self.about["places"]]
        return y.reshape(len(x), *self.about["shape"])


def load(folder: str | Path = Path(__file__).parent) -> LensLayer:
    """The layer of a folder, in evaluation mode."""
    with safe_open(Path(folder) / "model.safetensors", framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        about = json.loads(file.metadata()["layer"])
    return LensLayer(about, json.loads((Path(folder) / "config.json").read_text()), tensors).eval()
