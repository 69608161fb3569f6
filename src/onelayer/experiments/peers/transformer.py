"""The stock one-layer Transformer, trained: `nn.TransformerEncoderLayer` (post-norm, GELU) on scalar tokens.

Every variable is a token, embedded linearly, with a learned position; the read-out is linear in all tokens. Parameters
for D variables, m outputs, width d and feed-forward width f:

    2d + Dd + (4d² + 4d) + (2df + f + d) + 4d + (Dd + 1)m
"""

import torch
from torch import Tensor, nn

from ...target.target import Target
from .descent import adam, race, seeded, stored_numbers
from .task import Clock, FittedPeer, matches_budget, samples_of

WIDTHS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
SIZES_TRIED = 3  # per budget
MAX_RATE, RATE_TIMES_WIDTH = 2e-2, 0.16  # the peak rate of Adam is smaller for layers wider than 8

Size = tuple[int, int, int]  # width, heads, feed-forward width


class StockTransformer(nn.Module):
    """Scalar tokens → embedding + positions → one stock encoder layer → linear read-out."""

    def __init__(self, dimension: int, outputs: int, size: Size) -> None:
        super().__init__()
        width, heads, inner = size
        self.embedding = nn.Linear(1, width)
        self.positions = nn.Parameter(torch.randn(dimension, width))
        self.layer = nn.TransformerEncoderLayer(width, heads, inner, 0.0, "gelu", batch_first=True, norm_first=False)
        self.readout = nn.Linear(dimension * width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embedding(x.unsqueeze(-1)) + self.positions
        out: Tensor = self.readout(self.layer(tokens).flatten(1))
        return out


def sizes(dimension: int, outputs: int, budget: int) -> list[Size]:
    """Sizes that match the budget, feed-forward widths nearest to the usual 4d first."""
    found = []
    for d in WIDTHS:
        fixed = 2 * d + dimension * d + 4 * d * d + 9 * d + (dimension * d + 1) * outputs
        inner = round((budget - fixed) / (2 * d + 1))
        if inner >= 1 and matches_budget(fixed + inner * (2 * d + 1), budget):
            heads = next(h for h in (4, 2, 1) if h == 1 or (d / h >= 4 and d % h == 0))
            found.append((max(inner / (4 * d), 4 * d / inner), (d, heads, inner)))
    return [size for _, size in sorted(found)[:SIZES_TRIED]]


def fit(target: Target, parameters: int, seconds: float, seed: int = 0) -> FittedPeer | None:
    """Best of a few sizes, trained by Adam with warm-up and cosine; None if no size matches the budget."""
    clock = Clock(seconds)
    samples = samples_of(target, parameters)
    candidates = sizes(target.dimension, target.outputs, parameters)
    if not candidates:
        return None

    def train(size: Size, cap: float) -> nn.Module:
        model = seeded(lambda: StockTransformer(target.dimension, target.outputs, size), seed)
        adam(model, samples, cap, min(MAX_RATE, RATE_TIMES_WIDTH / size[0]), seed)
        return model.eval()

    model = race(candidates, train, samples, seconds)
    layer = model.layer
    assert isinstance(layer, nn.TransformerEncoderLayer)
    width, heads = layer.self_attn.embed_dim, layer.self_attn.num_heads
    note = f"d {width}, heads {heads}, feed-forward {layer.linear1.out_features}; {clock.end}"
    return FittedPeer(samples.function(model), stored_numbers(model), clock.spent, note)
