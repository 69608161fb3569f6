"""A stock torch.nn.TransformerEncoderLayer between a linear embedding and a linear read-out.

    from layer import load
    y = load()(x)  # x [batch, variables] → y [batch] or [batch, outputs…]

Needs torch and safetensors, nothing else. All numbers are in model.safetensors beside this file; its metadata say what the
layer computes, on which domain, and the largest observed difference from the layer it was exported from.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

ACTIVATION: dict[str, Any] = {"relu": "relu", "gelu": "gelu", "silu": nn.functional.silu}


class ExportedLayer(nn.Module):
    """x̂ = (x − shift)·scale → embedding and codes, special tokens → stock encoder layer → read-out at some rows."""

    shift: Tensor
    scale: Tensor
    codes: Tensor
    special: Tensor

    def __init__(self, about: dict[str, Any]) -> None:
        super().__init__()
        self.about = about
        n, d, m = about["tokens"], about["features"], about["d_model"]
        self.register_buffer("shift", torch.zeros(n, d))
        self.register_buffer("scale", torch.ones(n, d))
        self.register_buffer("codes", torch.zeros(n, m))
        self.register_buffer("special", torch.zeros(about["special"], m))
        self.embedding = nn.Linear(d, m)
        self.layer = nn.TransformerEncoderLayer(
            m,
            about["heads"],
            about["ffn_width"],
            dropout=0.0,
            activation=ACTIVATION[about["activation"]],
            layer_norm_eps=about["norm_eps"],
            batch_first=True,
            norm_first=about["norm_first"],
        )
        self.readout = nn.Linear(m, about["out"])

    def forward(self, x: Tensor) -> Tensor:
        about = self.about
        if about["vocabulary"] is not None:  # token numbers become unit vectors
            x = (x.unsqueeze(-1) == torch.arange(about["vocabulary"], device=x.device)).to(self.scale.dtype)
        x = x.reshape(len(x), about["tokens"], about["features"])
        e = self.embedding((x - self.shift) * self.scale) + self.codes
        h = self.layer(torch.cat([e, self.special.expand(len(x), -1, -1)], dim=1))
        h = h[:, about["first_row"] : about["last_row"] + 1]
        y = self.readout(h.mean(dim=1, keepdim=True) if about["mean"] else h)
        return y[:, about["places"]].reshape(len(x), *about["shape"])


def load(folder: str | Path = Path(__file__).parent) -> ExportedLayer:
    """The layer of a folder, in evaluation mode."""
    with safe_open(Path(folder) / "model.safetensors", framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        about = json.loads(file.metadata()["layer"])
    return filled(about, tensors)


def filled(about: dict[str, Any], tensors: dict[str, Tensor]) -> ExportedLayer:
    """The layer with the given numbers; no random numbers are drawn."""
    tensors = {name: t.float() if t.dtype == torch.bfloat16 else t for name, t in tensors.items()}  # the same numbers
    with torch.device("meta"):
        layer = ExportedLayer(about)
    layer.load_state_dict(tensors, assign=True)
    return layer.eval()
