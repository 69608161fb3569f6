"""The two files that a prompt's folder has beside those of a model: the frozen weights, and the prompt.

    weights.safetensors   the frozen layer, which is the same, byte for byte, for every prompt
    prompt.safetensors    `tokens` [token, d_model]: all that depends on the function

Together they are the model of model.safetensors, whose certificate holds for both: `construction.prompts` compares them.
"""

import json
from dataclasses import asdict

from safetensors.torch import save as tensors_file

from ..approximation import Approximation
from ..layer.assemble.prompt_tokens import frozen_layer
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
