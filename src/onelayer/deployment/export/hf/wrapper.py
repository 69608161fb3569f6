"""A stock one-layer model of `transformers`, from x to y.

    from wrapper import load
    y = load()(x)  # x [batch, variables], or [batch, length] with mask=, True where there is a token

Needs torch, transformers and safetensors. README.md says what the layer computes, and what is proved about it.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoModel


def load(folder: str | Path = Path(__file__).parent, **options: Any) -> Any:
    """The function x → y of a folder; options go to `from_pretrained`."""
    model = AutoModel.from_pretrained(folder, **options).eval()
    with safe_open(Path(folder) / "wrapper.safetensors", framework="pt") as file:
        w = {name: file.get_tensor(name).to(model.device, model.dtype) for name in file.keys()}  # noqa: SIM118
        about = json.loads(file.metadata()["layer"])
    table, first = model.get_input_embeddings(), len(about["special"])

    def layer(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        special = table(torch.tensor(about["special"], dtype=torch.long, device=x.device)).expand(len(x), -1, -1)
        if about["tokens"]:
            e = table(x.long())
        else:  # x̂ = (x − shift)·scale, then a linear map
            x = x.to(model.dtype).reshape(len(x), -1, about["features"])
            e = (x - w["shift"][: x.shape[1]]) * w["scale"][: x.shape[1]] @ w["W_E"] + w["b_E"]
        there = torch.ones(e.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask
        e, n, seen = torch.cat([special, e], dim=1), first + e.shape[1], {}
        if mask is not None:
            seen["attention_mask"] = torch.nn.functional.pad(mask.long(), (first, 0), value=1)
        elif about["all_see_all"]:  # a decoder whose tokens are to see later ones too
            seen["attention_mask"] = torch.ones(len(x), 1, n, n, dtype=torch.bool, device=x.device)
            seen["position_ids"] = torch.arange(n, device=x.device).expand(len(x), -1)
        h = model(inputs_embeds=e, **seen).last_hidden_state
        h = h[:, about["rows"][0] : about["rows"][1]]
        if about["mean"]:
            h = (h * there.unsqueeze(-1)).sum(dim=1, keepdim=True) / there.sum(dim=1)[:, None, None]
        y = h @ w["W_R"] + w["b_R"]
        if about["places"] is None:  # sequences of any length
            return y * there.unsqueeze(-1) if about["per_position"] else y[:, 0]
        return y[:, about["places"]].reshape(len(x), *about["shape"])

    return layer
