"""Depth: stacks of stock encoder layers, trained to sort or distilled into one layer.

A stack is made of PyTorch's parts: an embedding with learned positions, `layers` encoder layers (pre-norm, GELU, feed-forward
network four times as wide), a linear read-out at every position. `device="auto"` uses a GPU if there is one.
"""

import math
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from ....construction.gallery.order import sort
from ....training.distill import distill
from ....training.recipe import Recipe
from .registry import Point, Result, measure

HEADS = 4  # of a layer
FFN_RATIO = 4  # width of its feed-forward network over d_model
TEST_LISTS = 20_000  # on which sorting is judged
SCORE_FACTOR = 3.0  # random teachers attend more sharply than fresh layers; otherwise depth would do nothing


class Stack(nn.Module):
    """Encoder layers over embedded numbers or tokens: [batch, n] (and a mask) → [batch, n, out]."""

    def __init__(self, vocabulary: int, length: int, outputs: int, layers: int, d_model: int, seed: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_model) if vocabulary else nn.Linear(1, d_model)
        self.positions = nn.Parameter(torch.zeros(length, d_model))
        inner = FFN_RATIO * d_model
        layer = nn.TransformerEncoderLayer(d_model, HEADS, inner, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d_model)
        self.readout = nn.Linear(d_model, outputs)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, p in self.named_parameters():
                if p.ndim >= 2:
                    size = 1.0 if "embedding" in name else p.shape[-1] ** -0.5
                    p.copy_(torch.randn(p.shape, generator=generator) * size)
                elif "norm" not in name:
                    p.zero_()

    def forward(self, x: Tensor, there: Tensor | None = None) -> Tensor:
        e = self.embedding(x if isinstance(self.embedding, nn.Embedding) else x.unsqueeze(-1))
        mask = None if there is None else ~there
        return self.readout(self.norm(self.layers(e + self.positions, src_key_padding_mask=mask)))

    def sharpened(self, factor: float) -> "Stack":
        """The stack itself, its queries and keys scaled so that all scores are multiplied by the factor."""
        with torch.no_grad():
            for name, p in self.named_parameters():
                if "in_proj_weight" in name:
                    p[: 2 * p.shape[1]] *= math.sqrt(factor)
        return self


def device_for(device: str) -> str:
    return ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device


def parameter_count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@measure("sorting", n=5, layers=1, d_model=32, steps=2000, batch=512, rate=3e-3, tolerance=1e-6, device="auto", seed=0)
def sorting(point: Point) -> Result:
    """n numbers in [0, 1], sorted by a stack of trained layers, or by the constructed layer (layers = 0).

    Training sees fresh numbers at every step.
    """
    n, seed = point["n"], point["seed"]
    lists = torch.rand(TEST_LISTS, n, generator=torch.Generator().manual_seed(10_000_019 + seed), dtype=torch.float64)
    wanted = lists.sort(dim=1).values
    started = time.perf_counter()
    if point["layers"] == 0:
        built = sort(n, tolerance=point["tolerance"])
        errors = np.abs(np.asarray(built(lists.numpy())) - wanted.numpy())
        size, verdict, bound = built.parameters, built.certificate.verdict, built.certificate.bound
        heads = built.model.config.heads
    else:
        device = device_for(point["device"])
        model = _trained_to_sort(point, device)
        with torch.no_grad():
            answers = torch.cat([model(part.float().to(device))[..., 0].double().cpu() for part in lists.split(4096)])
        errors = (answers - wanted).abs().numpy()
        size, verdict, bound, heads = parameter_count(model), "UNDECIDED", math.inf, HEADS * point["layers"]
    return {
        "parameters": size,
        "heads": heads,
        "observed": float(errors.max()),
        "rmse": float(np.sqrt(np.square(errors).mean())),
        "verdict": verdict,
        **({"bound": bound} if math.isfinite(bound) else {}),
        "took": time.perf_counter() - started,
    }


def _trained_to_sort(point: Point, device: str) -> Stack:
    n, seed = point["n"], point["seed"]
    model = Stack(0, n, 1, point["layers"], point["d_model"], seed).to(device)
    generator = torch.Generator(device).manual_seed(seed)

    def loss() -> Tensor:
        x = torch.rand(point["batch"], n, generator=generator, device=device)
        return (model(x)[..., 0] - x.sort(dim=1).values).square().mean()

    return descended(model, point, loss)


def descended(model: Stack, point: Point, loss: Callable[[], Tensor]) -> Stack:
    """The stack after the point's number of steps with AdamW; `loss` draws a batch each time it is called."""
    recipe = Recipe(rate=point["rate"], steps=point["steps"], batch=point["batch"], seed=point["seed"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0, weight_decay=0.0)
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(step, False)
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def width_of(budget: int, layers: int) -> int:
    """d_model of a stack with about this many parameters: a layer has about 12 d_model²."""
    return max(HEADS, HEADS * round(math.sqrt(budget / (12 * layers)) / HEADS))


@measure(
    "depth", depth=2, budget=100_000, width=64, vocabulary=32, length=12, outputs=16, sequences=20_000, steps=2000,
    batch=128, rate=2e-3, device="auto", seed=0,
)  # fmt: skip
def depth(point: Point) -> Result:
    """A random teacher of `depth` layers and about `budget` parameters, distilled into one layer of d_model `width`."""
    d_model = width_of(point["budget"], point["depth"])
    shape = (point["vocabulary"], point["length"], point["outputs"], point["depth"])
    teacher = Stack(*shape, d_model, point["seed"]).sharpened(SCORE_FACTOR)
    generator = torch.Generator().manual_seed(20_000_003 + point["seed"])
    tokens = torch.randint(0, point["vocabulary"], (point["sequences"], point["length"]), generator=generator)
    sizes = {"heads": HEADS, "d_model": point["width"], "width": FFN_RATIO * point["width"]}
    options = {axis: point[axis] for axis in ("steps", "batch", "rate", "seed")}
    device = device_for(point["device"])
    found = distill(teacher.eval(), tokens, **sizes, **options, every=point["steps"], device=device)
    f = found.fidelity
    return {
        "teacher_parameters": found.parameters[0],
        "teacher_width": d_model,
        "parameters": found.parameters[1],
        "unexplained": 1 - f.explained,
        "rmse": f.rmse,
        "cosine": f.cosine,
        "agreement": f.agreement,
        "took": found.history.seconds if found.history else 0.0,
    }
