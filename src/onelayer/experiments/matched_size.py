"""The size of a trained layer whose number of parameters matches a budget."""

from ..model.config import LayerConfig
from ..target.target import Target
from ..training.material import Material
from .peers.task import matches_budget

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # of d_model


def layer_size(target: Target | Material, budget: int) -> tuple[int, int, int] | None:
    """(heads, width, d_model) that match the budget, with the FFN's width closest to four times d_model; None if none do."""
    n, d = target.shape
    found = []
    for d_model in WIDTHS:
        heads = next(h for h in (4, 2, 1) if h == 1 or d_model / h >= 4)
        per_head = -(-d_model // heads)
        config = LayerConfig(
            tokens=n, features_in=d, features_out=target.outputs, d_model=d_model, heads=heads, d_k=per_head,
            d_v=per_head, ffn_width=1, code="learned", readout="mean", projection_bias=True,
        )  # fmt: skip
        smallest = config.parameter_count
        for width in range(1, 1 + max(8, 8 * d_model)):
            if matches_budget(smallest + (width - 1) * (2 * d_model + 1), budget):
                found.append((max(width / (4 * d_model), 4 * d_model / width), (heads, width, d_model)))
    return min(found)[1] if found else None
