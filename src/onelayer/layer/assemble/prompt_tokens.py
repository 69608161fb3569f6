"""One layer for all functions of up to three variables: the function is in the memory tokens alone, the prompt.

Stream (8 numbers):  x_1 x_2 x_3 | k_1 k_2 k_3 | code | value.   The data token is (x, 0, 1, 0), prompt token j is
(0, k_j, −b_j/σ, y_j). The one head asks with q = (x, 1) and finds the keys (k_j, b_j), so that by Eq. (5)–(8)

    T(x) = Σ_j y_j softmax_j(k_j·x + b_j).

W^K multiplies the code by −σ, which gives prompt tokens their biases back (σ is a power of two: exactly) and the data token the
score −σ: it has weight 0 beside scores that stay above −σ/2. A domain's normalisation is in the keys and biases, and a constant
is in the values, because weights sum to 1. So no weight depends on the function, its domain or the number of its variables.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.errors import InputError
from ...model.config import LayerConfig
from ...model.prompted_layer import FrozenLayer
from ...model.transformer import SingleLayerTransformer
from ..layer import MemoryLayer
from .frame import Frame, blank

VARIABLES = 3
SIGMA = 2.0**40  # the data token's score is −σ: far below all others, and small enough for proofs by bisection
CODE, VALUE, WIDTH = 2 * VARIABLES, 2 * VARIABLES + 1, 2 * VARIABLES + 2  # of the stream: places after x and keys


def frozen_layer() -> FrozenLayer:
    """The layer. Its numbers are 0, ±1, √d_k and −√d_k·σ, and it has no memory."""
    D = VARIABLES
    config = LayerConfig(
        tokens=1, features_in=D, features_out=1, d_model=WIDTH, heads=1, d_k=D + 1, d_v=1, ffn_width=1, code="none"
    )  # fmt: skip
    model = blank(config, Frame((0.0,) * D, (1.0,) * D))
    root = math.sqrt(config.d_k)  # 2: undoes 1/√d_k exactly
    eye = torch.eye(D, dtype=torch.float64)
    with torch.no_grad():
        model.W_E[:, :D] = eye
        model.b_E[CODE] = 1.0
        model.W_Q[0, :D, :D], model.W_Q[0, CODE, D] = eye, 1.0
        model.W_K[0, D : 2 * D, :D], model.W_K[0, CODE, D] = root * eye, -root * SIGMA
        model.W_V[0, VALUE, 0] = 1.0
        model.W_O[0, VALUE] = 1.0
        model.W_R[VALUE, 0] = 1.0
    return FrozenLayer(model)


def tokens_of(
    keys: Float[Tensor, "token variable"], biases: Float[Tensor, " token"], values: Float[Tensor, " token"]
) -> Float[Tensor, "token model"]:
    """The prompt with these keys, biases and values."""
    prompt = torch.zeros(len(keys), WIDTH, dtype=torch.float64)
    prompt[:, VARIABLES : VARIABLES + keys.shape[1]] = keys
    prompt[:, CODE], prompt[:, VALUE] = biases / -SIGMA, values
    if not torch.isfinite(prompt).all() or not (prompt[:, CODE].abs() < 0.25).all():
        raise InputError(f"scores of at most {SIGMA / 4:.0e}", "larger ones", "scale the domain, or ask for less")
    return prompt


def read_tokens(
    prompt: Float[Tensor, "token model"], variables: int
) -> tuple[Float[Tensor, "token variable"], Float[Tensor, " token"], Float[Tensor, " token"]]:
    """(keys, biases, values) of a prompt, exactly: the inverse of `tokens_of`."""
    return prompt[:, VARIABLES : VARIABLES + variables], -SIGMA * prompt[:, CODE], prompt[:, VALUE]


def assemble_prompt(layer: MemoryLayer, frame: Frame) -> SingleLayerTransformer:
    """The frozen layer with the tokens of a layer of one head that has no linear part, its normalisation included."""
    if layer.memory.groups > 1 or layer.linear.any() or len(layer.ridges) or len(layer.hinges):
        raise ValueError("a prompt holds the memory tokens of one head, and nothing else")
    shift, scale = (torch.tensor(t, dtype=torch.float64) for t in (frame.shift, frame.scale))
    keys = layer.memory.keys * scale
    prompt = tokens_of(keys, layer.memory.biases - keys @ shift, (layer.memory_values + layer.bias)[:, 0])
    return frozen_layer().with_prompt(prompt, layer.dimension)
