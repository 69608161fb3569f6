"""The student of token sequences: an embedding, learned positions, ONE stock encoder layer, a linear read-out.

    e_i = E[token_i] + p_i,   y = read-out(LayerNorm(encoder layer(e)))

The layer is `nn.TransformerEncoderLayer`: PyTorch's own attention and feed-forward network, with a mask for padding.
"""

import torch
from torch import Tensor, nn


class Student(nn.Module):
    """Tokens [batch, n] and a mask of those that are there → answers [batch, n, out], or [batch, out] if pooled."""

    def __init__(
        self, vocabulary: int, length: int, outputs: int, heads: int, width: int, d_model: int, pooled: bool, seed: int
    ) -> None:
        super().__init__()
        self.pooled = pooled
        self.embedding = nn.Embedding(vocabulary, d_model)
        self.positions = nn.Parameter(torch.zeros(length, d_model))
        self.layer = nn.TransformerEncoderLayer(
            d_model, heads, width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(d_model)
        self.readout = nn.Linear(d_model, outputs)
        self._draw(seed)

    def _draw(self, seed: int) -> None:
        """Fresh weights from a generator of their own."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, p in self.named_parameters():
                if p.ndim >= 2:
                    scale = 0.02 if name in ("embedding.weight", "positions") else p.shape[-1] ** -0.5
                    p.copy_(torch.randn(p.shape, generator=generator) * scale)
                elif "norm" not in name:
                    p.zero_()

    def forward(self, tokens: Tensor, there: Tensor) -> Tensor:
        e = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        y = self.readout(self.norm(self.layer(e, src_key_padding_mask=~there)))
        return pooled(y, there) if self.pooled else y


def pooled(y: Tensor, there: Tensor) -> Tensor:
    """The mean over the tokens that are there."""
    weights = there.to(y.dtype).unsqueeze(-1)
    return (y * weights).sum(dim=1) / weights.sum(dim=1)
