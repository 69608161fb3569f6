"""FrozenLayer: one set of weights for many functions. Which function it computes is said by the prompt, a part of its input.

The layer is an ordinary `SingleLayerTransformer` without special tokens. Its sequence is x | prompt: one data token, then as
many prompt tokens as are given, which have no embedding of their own: they are vectors of the stream, as soft prompts are.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..common.errors import InputError
from . import program
from .on_tensors import OnTensors
from .transformer import SingleLayerTransformer


class FrozenLayer(nn.Module):
    """T(x, prompt), [batch, D] and [token, d_model] → [batch, out]. The weights are fixed: none of them asks for a gradient.

    D may be smaller than the number of variables that the layer has; those that are not given are 0.
    """

    def __init__(self, layer: SingleLayerTransformer) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False).eval()

    @property
    def variables(self) -> int:
        return self.layer.config.features_in

    def forward(
        self, x: Float[Tensor, "batch variable"], prompt: Float[Tensor, "token model"]
    ) -> Float[Tensor, "batch out"]:
        """Eq. (5)–(8) on the sequence x | prompt, read out at x, the only token that needs a query."""
        self._require_prompt(prompt)
        if not 1 <= x.shape[1] <= self.variables:
            asked, found = f"points with 1 to {self.variables} variables", f"shape {list(x.shape)}"
            raise InputError(asked, found, "pass [batch, D]")
        e = self.layer.embed(nn.functional.pad(x, (0, self.variables - x.shape[1]))[:, None])
        return self.layer.read(program.block(OnTensors(self.layer), e, [e, prompt]))[:, 0]

    def with_prompt(self, prompt: Float[Tensor, "token model"], variables: int) -> SingleLayerTransformer:
        """The same layer with the prompt among its weights, as memory tokens, and W^E for the first variables alone.

        It computes the same numbers: a variable that is 0 adds 0 to every product, exactly.
        """
        self._require_prompt(prompt)
        model = SingleLayerTransformer(
            replace(self.layer.config, features_in=variables, memory_tokens=len(prompt)), dtype=prompt.dtype
        )
        weights = dict(self.layer.state_dict())
        weights |= {name: weights[name][:, :variables] for name in ("shift", "scale")}
        model.load_state_dict(weights | {"W_E": weights["W_E"][:variables], "S": prompt})
        return model.eval()

    def _require_prompt(self, prompt: Tensor) -> None:
        width, dtype = self.layer.config.d_model, self.layer.W_E.dtype
        if not isinstance(prompt, Tensor) or prompt.ndim != 2 or not len(prompt) or prompt.shape[1] != width:
            found = f"shape {list(prompt.shape)}" if isinstance(prompt, Tensor) else type(prompt).__name__
            raise InputError(f"a prompt of shape [tokens, {width}]", found, "pass the tokens of ol.prompt(…)")
        if prompt.dtype != dtype:
            raise InputError(f"a prompt of dtype {dtype}", f"{prompt.dtype}", f"convert with prompt.to({dtype})")
        if not torch.isfinite(prompt).all():
            raise InputError("finite numbers in a prompt", "infinite ones or NaN", "pass the tokens of ol.prompt(…)")
