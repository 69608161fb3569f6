"""One layer over token sequences: an embedding, learned positions, ONE stock encoder layer, a linear read-out.

    e_i = E[token_i] + p_i,   y = read-out(LayerNorm(encoder layer(e)))

The layer is `nn.TransformerEncoderLayer`: PyTorch's own attention and feed-forward network, with a mask for padding. It is the
student that `distill` trains for a teacher of token sequences.
"""

import torch
from torch import Tensor, nn

from ..common.errors import InputError


class TokenEncoder(nn.Module):
    """Token numbers [batch, n] and a mask, true for tokens and false for padding → [batch, n, out], or [batch, out] if pooled."""

    def __init__(
        self, vocabulary: int, length: int, outputs: int, heads: int, width: int, d_model: int, pooled: bool, seed: int
    ) -> None:
        super().__init__()
        self.pooled = pooled
        self.sizes = {"vocabulary": vocabulary, "length": length, "outputs": outputs, "heads": heads, "width": width}
        self.sizes |= {"d_model": d_model, "pooled": pooled, "seed": seed}
        with torch.random.fork_rng(devices=[]):  # modules draw from torch's global generator; `_draw` replaces that
            self.embedding = nn.Embedding(vocabulary, d_model)
            self.positions = nn.Parameter(torch.zeros(length, d_model))
            self.layer = nn.TransformerEncoderLayer(
                d_model, heads, width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.norm = nn.LayerNorm(d_model)
            self.readout = nn.Linear(d_model, outputs)
        self._draw(seed)

    def _draw(self, seed: int) -> None:
        """Random weights, by the seed alone."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, p in self.named_parameters():
                if p.ndim >= 2:
                    scale = 0.02 if name in ("embedding.weight", "positions") else p.shape[-1] ** -0.5
                    p.copy_(torch.randn(p.shape, generator=generator) * scale)
                elif "norm" not in name:
                    p.zero_()

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        self._require(tokens, mask)
        e = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        y = self.readout(self.norm(self.layer(e, src_key_padding_mask=~mask)))
        return pooled(y, mask) if self.pooled else y

    def _require(self, tokens: Tensor, mask: Tensor) -> None:
        """Refuse tokens without an embedding and sequences longer than the learned positions."""
        vocabulary, length = self.sizes["vocabulary"], self.sizes["length"]
        if tokens.is_floating_point() or tokens.ndim != 2 or tokens.shape[1] > length or mask.shape != tokens.shape:
            found = f"tokens {list(tokens.shape)} of {tokens.dtype}, mask {list(mask.shape)}"
            raise InputError(f"token numbers [N, n], n at most {length}, and a mask of that shape", found, "cut them")
        if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary:
            found = f"{int(tokens.min())} to {int(tokens.max())}"
            raise InputError(f"token numbers from 0 to {vocabulary - 1}", found, "distill with these tokens, too")


def pooled(y: Tensor, mask: Tensor) -> Tensor:
    """The mean over all tokens that are not padding."""
    weights = mask.to(y.dtype).unsqueeze(-1)
    return (y * weights).sum(dim=1) / weights.sum(dim=1)
