"""A causal layer evaluated token by token: the embedding of earlier positions is kept, and one row is computed at a time.

The same function as the whole layer, up to the order of summation. A step costs one row of the feed-forward network and of the
read-out, and attention from it to the positions so far.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ..common.errors import InputError
from . import program
from .on_tensors import OnTensors
from .transformer import SingleLayerTransformer


class TokenByToken:
    """The answers of a causal layer at the last position, as its sequence grows."""

    def __init__(self, model: SingleLayerTransformer) -> None:
        c = model.config
        if not (c.causal and c.any_length and c.readout == "position"):
            found = f"causal={c.causal}, any_length={c.any_length}, readout={c.readout!r}"
            raise InputError("a causal layer for any length, read at every position", found, "choose another layer")
        self.model, self.length = model, 0
        self.rows = model.W_E.new_zeros(c.tokens, c.d_model)

    def extend(self, x: Float[Tensor, "more feature"]) -> Float[Tensor, " out"]:
        """Append one token or more, and answer at the position of the last."""
        model, new = self.model, slice(self.length, self.length + len(x))
        if new.stop > model.config.tokens or not len(x):
            asked = f"1 to {model.config.tokens - self.length:,} more tokens"
            raise InputError(asked, f"{len(x):,}", "start again with the last tokens")
        with torch.no_grad():
            e = (x - model.shift[new]) * model.scale[new] @ model.W_E + model.b_E
            self.rows[new] = e if model.config.code == "none" else e + model.P[new]
            self.length = new.stop
            first = self.length - 1 - model.config.window if model.config.attention == "local" else 0
            seen = self.rows[None, max(first, 0) : self.length]
            groups = [seen, model.special] if model.config.special_tokens else [seen]
            return model.read(program.block(OnTensors(model), seen[:, -1:], groups))[0, 0]
