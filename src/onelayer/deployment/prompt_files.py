"""The two files that a prompt's folder has beside those of a model: the frozen weights, and the prompt.

    weights.safetensors   the frozen layer, which is the same, byte for byte, for every prompt
    prompt.safetensors    `tokens` [token, d_model]: all that depends on the function

Together they are the model of model.safetensors, whose certificate holds for both: loading compares them, so does the checker.
"""

import json
from dataclasses import asdict

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as tensors_file

from ..approximation import Approximation
from ..common.errors import InputError
from ..layer.assemble.prompt_tokens import frozen_layer
from ..model.transformer import SingleLayerTransformer
from ..sequence_layer import SequenceLayer
from .earlier_model import PROMPT_FILES


def prompt_files(approximation: Approximation | SequenceLayer) -> dict[str, bytes]:
    """The files of a prompt, by name; none for other layers."""
    if approximation.facts.construction != "prompt":
        return {}
    layer = frozen_layer().layer
    weights = tensors_file(dict(layer.state_dict()), metadata={"frozen": json.dumps(asdict(layer.config))})
    tokens = tensors_file({"tokens": approximation.model.special.detach()}, metadata={"prompt": "tokens"})
    return dict(zip(PROMPT_FILES, (weights, tokens), strict=True))


def require_same(contents: dict[str, bytes], model: SingleLayerTransformer) -> None:
    """Refuse files of a prompt that hold other numbers than the model."""
    if not all(name in contents for name in PROMPT_FILES):
        return
    try:
        weights, tokens = (tensors_of(contents[name]) for name in PROMPT_FILES)
        frozen = frozen_layer()
        same = weights.keys() == frozen.layer.state_dict().keys() and torch.equal(tokens["tokens"], model.special)
        same = same and all(torch.equal(t, weights[name]) for name, t in frozen.layer.state_dict().items())
        same = (
            same and frozen.with_prompt(tokens["tokens"], model.config.features_in).fingerprint() == model.fingerprint()
        )
    except (SafetensorError, KeyError, RuntimeError):
        same = False
    if not same:
        raise InputError("the frozen weights and the prompt of this model", "other numbers", "build the folder again")
