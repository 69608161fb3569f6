"""`make demo`: the paper's example built three ways, and the model checked against two other implementations.

First sin x1 + sin x2 on [0, 2π]²: the paper's construction (its size and its bound are known before anything is built)
beside the same kind of heads with solved values, and with keys and offsets polished too.

Then ten random layers of each kind. "Stock" is torch.nn.TransformerEncoderLayer (its own code, no onelayer in it); "NumPy"
is `onelayer.reference`, Eq. (1)–(10) written out. Each number is the largest absolute difference over all entries.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

import onelayer as ol
from onelayer import SingleLayerTransformer
from onelayer.common.table import Table
from onelayer.model.reference import transformer

TOKENS, D_MODEL, HEADS, WIDTH, BATCH, SEEDS = 6, 8, 4, 16, 5, 10


def stock_layer(seed: int, norm_first: bool, activation: str) -> nn.TransformerEncoderLayer:
    layer = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, WIDTH, activation=activation, norm_first=norm_first, batch_first=True, dtype=torch.float64
    )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=p.dtype) / 2)
    return layer.eval()


def differences(stock: nn.TransformerEncoderLayer, model: SingleLayerTransformer, x: torch.Tensor) -> list[float]:
    """The four columns of the table for one layer."""
    x = x.requires_grad_()
    expected, got = stock(x), model(x)
    upstream = torch.ones_like(expected)
    stock_dx = torch.autograd.grad(expected, x, upstream)[0]
    weight_gradients = torch.autograd.grad(got, list(model.parameters()), upstream)
    w = {name: t.detach().numpy() for name, t in model.state_dict().items()}
    y, passed = transformer.forward(model.config, w, x.detach().numpy())
    dx, by_hand = transformer.backward(model.config, w, passed, upstream.numpy())
    of_weights = [
        abs(by_hand[name] - g.numpy()).max()
        for (name, _), g in zip(model.named_parameters(), weight_gradients, strict=True)
    ]
    return [
        (got - expected).abs().max().item(),
        abs(y - expected.detach().numpy()).max(),
        abs(dx - stock_dx.numpy()).max(),
        max(of_weights),
    ]


def compare() -> Table:
    title = (
        f"One layer, three implementations ({SEEDS} random layers per row; {TOKENS} tokens, d_model {D_MODEL},"
        f" {HEADS} heads, FFN {WIDTH}; float64): largest absolute difference"
    )
    columns = ("layer", "T: model − stock", "T: NumPy − stock", "∂L/∂x: NumPy − stock", "∂L/∂θ: NumPy − autograd")
    table = Table(title, columns)
    for norm_first in (False, True):
        for activation in ("relu", "gelu"):
            worst = np.zeros(4)
            for seed in range(SEEDS):
                stock = stock_layer(seed, norm_first, activation)
                generator = torch.Generator().manual_seed(seed)
                x = torch.randn(BATCH, TOKENS, D_MODEL, generator=generator, dtype=torch.float64)
                worst = np.maximum(worst, differences(stock, SingleLayerTransformer.from_torch(stock, TOKENS), x))
            name = f"{'pre' if norm_first else 'post'}-norm, {activation}"
            table.rows.append((name, *(f"{d:.1e}" for d in worst)))
    return table


def paper_example() -> Table:
    """One layer for sin x1 + sin x2, by all three methods."""
    columns = ("method", "tolerance", "units", "parameters", "bound (proved)", "observed error", "verdict", "seconds")
    table = Table("sin x1 + sin x2 on [0, 2π]², by one attention layer", columns)
    cases = (("representative", 0.5), ("representative", 0.2), ("solved", 0.2), ("solved", 1e-4), ("polished", 1e-6))
    for method, tolerance in cases:
        approx = ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, tolerance, method=method)
        c = approx.certificate
        bound = f"{c.bound:.4g}" if np.isfinite(c.bound) else "none"
        size = (f"{approx.units:,}", f"{approx.parameters:,}")
        table.rows.append(
            (method, f"{tolerance:g}", *size, bound, f"{c.observed:.2g}", c.verdict, f"{approx.facts.seconds:.1f}")
        )
    return table


if __name__ == "__main__":
    print(paper_example())
    print(compare())
    folder = ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-6).save("demo-layer", overwrite=True)
    print(f"open {ol.load(folder).report(folder / 'report.html', overwrite=True).relative_to(Path.cwd())} in a browser")
