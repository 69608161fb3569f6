"""PointLayer: a single-layer Transformer as a part of a larger network, from points [batch, D] to answers [batch, m]."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..common.errors import InputError
from .transformer import SingleLayerTransformer


class PointLayer(nn.Module):
    """[batch, D] → [batch, m], the D numbers of a point in row order, m outputs read at `places`.

    It computes in the dtype of its weights and answers in the dtype of x (of its weights, if x holds whole numbers). With a
    `vocabulary` x holds token numbers; a number that is no token is answered by NaN. The batch is computed in one piece.
    """

    def __init__(self, layer: SingleLayerTransformer, places: Sequence[int], vocabulary: int | None = None) -> None:
        super().__init__()
        self.layer, self.places, self.vocabulary = layer, list(places), vocabulary

    def forward(self, x: Tensor) -> Tensor:
        c, dtype = self.layer.config, self.layer.W_E.dtype
        D = c.tokens if self.vocabulary is not None else c.tokens * c.features_in
        if x.ndim != 2 or x.shape[1] != D:
            raise InputError(f"points of shape [batch, {D}]", f"shape {list(x.shape)}", "reshape the input")
        given = self._one_hot(x) if self.vocabulary is not None else x.reshape(x.shape[0], c.tokens, c.features_in)
        y = self.layer(given.to(dtype))[:, self.places].flatten(1)
        return y.to(x.dtype) if x.is_floating_point() else y

    def _one_hot(self, x: Tensor) -> Tensor:
        """Token numbers as unit vectors, and NaN where there is no such token."""
        hot = (x.unsqueeze(-1) == torch.arange(self.vocabulary or 0, device=x.device)).to(self.layer.W_E.dtype)
        return hot / hot.sum(dim=-1, keepdim=True)
