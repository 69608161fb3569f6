"""Methods that look for the heads that matter, from inputs and weights alone: one score for each head of a layer.

All of them see the same inputs. They look at what the heads of a layer attend to and write, at gradients, and at what happens
when a head is patched; none knows how the layer was built. `auc` says how well scores tell two groups of heads apart.
"""

import numpy as np
import torch
from torch import Tensor

from onelayer import SingleLayerTransformer

Scores = dict[str, np.ndarray]


class Run:
    """A layer at some inputs [batch, tokens, features], with the outputs z of its heads in the open."""

    def __init__(self, model: SingleLayerTransformer, x: Tensor, places: tuple[int, ...]) -> None:
        self.model, self.places, self.x = model, list(places), x
        c = model.config
        with torch.no_grad():
            rows = model.attention(x)[:, :, c.read_rows]  # [batch, head, row, token]
            tokens = model.tokens(x)
            v = torch.einsum("btm,hmw->bhtw", tokens, model.W_V)
            v = v + model.b_V[:, None] if c.projection_bias else v
            self.weights, self.z, self.asking = rows, rows @ v, tokens[:, c.read_rows]

    def answer(self, z: Tensor) -> Tensor:
        """T [batch, outputs] from the outputs of the heads [batch, head, row, d_v]; the layer has no LayerNorm."""
        model, c = self.model, self.model.config
        h = z.transpose(1, 2).flatten(2) @ model.W_O
        h = h + model.b_O if c.projection_bias else h
        h = h + self.asking if c.residual else h
        y = model.feed_forward(h)
        return model.read(h + y if c.residual else y)[:, self.places].flatten(1)


def scores(model: SingleLayerTransformer, x: Tensor, places: tuple[int, ...], seed: int = 0) -> Scores:
    """The scores of all heads by every method."""
    run = Run(model, x, places)
    z = run.z.clone().requires_grad_(True)
    y = run.answer(z)
    by_entry, by_head = torch.zeros(len(x), z.shape[1]), torch.zeros(len(x), z.shape[1])
    for o in range(y.shape[1]):  # the output that a head does most to counts
        (slope,) = torch.autograd.grad(y[:, o].sum(), z, retain_graph=True)
        product = (slope * z).detach()
        by_head = torch.maximum(by_head, product.sum(dim=(2, 3)).abs())
        by_entry = torch.maximum(by_entry, product.abs().sum(dim=(2, 3)))
    with torch.no_grad():
        base, order = run.answer(run.z), torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
        zero, other = [], []
        for h in range(z.shape[1]):
            for found, put in ((zero, torch.zeros_like(run.z[:, h])), (other, run.z[order, h])):
                patched = run.z.clone()
                patched[:, h] = put
                found.append(float((run.answer(patched) - base).abs().amax(dim=1).mean()))
        W_O = model.W_O.reshape(z.shape[1], z.shape[3], -1)
        written = torch.einsum("bhrw,hwm->bhrm", run.z, W_O).norm(dim=-1).mean(dim=(0, 2))
        sharpness = run.weights.amax(dim=-1).mean(dim=(0, 2))
        moving = run.weights.std(dim=0).mean(dim=(1, 2))
    return {
        "gradient × activation": by_head.mean(dim=0).numpy(),
        "gradient × activation, sizes": by_entry.mean(dim=0).numpy(),
        "patching with 0": np.array(zero),
        "patching with another input": np.array(other),
        "attention: largest weight": sharpness.numpy(),
        "attention: change with the input": moving.numpy(),
        "size of what is written": written.numpy(),
    }


def auc(positive: np.ndarray, negative: np.ndarray) -> float:
    """The area under the ROC curve: how often a positive scores above a negative one, ties counting one half."""
    above = (positive[:, None] > negative).mean() + (positive[:, None] == negative).mean() / 2
    return float(above)


def interval(values: np.ndarray, seed: int = 0, draws: int = 10_000) -> tuple[float, float, float]:
    """(mean, lower, upper): a 95 % interval by bootstrap over the layers, which are independent; heads of one are not."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (draws, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)
