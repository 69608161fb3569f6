"""The forward and the backward pass of a live layer, stage by stage: the activations h^l and δ^l = ∂L/∂h^l.

The stages are those of the block in Section III: input, embedding, heads, attention, (residual and LayerNorm,) hidden units,
feed-forward network, read-out. The loss is L = ½ Σ (T(x) − y)². Gradients are autograd's; as in `transformer.py` only the tokens
that are read out ask queries, so activations after the embedding have a row for each of these alone.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .transformer import ACTIVATION, SingleLayerTransformer


@dataclass(frozen=True, eq=False)
class Stage:
    """One activation h^l, the error δ^l = ∂L/∂h^l that comes back to it, and the weights between it and the stage before."""

    name: str
    activation: Tensor
    error: Tensor
    weights: tuple[str, ...] = ()

    @property
    def norm(self) -> float:
        """‖h^l‖, the root of the sum of squares over all entries."""
        return float(torch.linalg.vector_norm(self.activation))

    @property
    def error_norm(self) -> float:
        """‖δ^l‖."""
        return float(torch.linalg.vector_norm(self.error))


@dataclass(frozen=True, eq=False)
class Passes:
    """Both passes at one point: stages from the input to the output, the loss, ∂L/∂θ by the weight's name."""

    stages: tuple[Stage, ...]
    loss: float
    gradients: dict[str, Tensor]

    def __getitem__(self, name: str) -> Stage:
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)

    def gradient_norm(self, stage: Stage) -> float:
        """‖∂L/∂W‖ over the weights of a stage."""
        parts = [torch.linalg.vector_norm(self.gradients[name]) for name in stage.weights if name in self.gradients]
        return float(torch.linalg.vector_norm(torch.stack(parts))) if parts else 0.0


def both_passes(
    model: SingleLayerTransformer, x: Float[Tensor, "batch data feature"], y: Float[Tensor, "batch place out"]
) -> Passes:
    """The forward pass at x with every activation kept, and the backward pass of ½ Σ (T(x) − y)². Dropout is off."""
    x = x.detach().clone().requires_grad_()
    with torch.enable_grad():
        found = _forward(model, x)
        answer = found[-1][1]
        loss = (answer - y).square().sum() / 2
        parameters = dict(model.named_parameters())
        sources = [h for _, h, _ in found] + list(parameters.values())
        slopes = torch.autograd.grad(loss, sources, allow_unused=True)
    errors = [torch.zeros_like(t) if g is None else g for t, g in zip(sources, slopes, strict=True)]
    stages = [
        Stage(name, h.detach(), error, weights)
        for (name, h, weights), error in zip(found, errors[: len(found)], strict=True)
    ]
    gradients = dict(zip(parameters, errors[len(found) :], strict=True))
    return Passes(tuple(stages), float(loss.detach()), gradients)


def _forward(model: SingleLayerTransformer, x: Tensor) -> list[tuple[str, Tensor, tuple[str, ...]]]:
    """(stage, activation, weights that lead to it), in order; the last activation is T(x)."""
    c = model.config
    pre, post = c.norm == "pre", c.norm == "post"
    e = model.tokens(x)
    rows = c.read_rows
    seen = model._norm_1(e) if pre else e
    hidden = model._hidden(x, None)
    q, k, v = model._project(seen[:, rows], "Q"), model._project(seen, "K"), model._project(seen, "V")
    alpha = model._weights(q, k, model.W_K.new_zeros(0), hidden)  # Eq. (5)
    z = (alpha @ v).transpose(1, 2).flatten(2)  # Eq. (6), (7): [batch, row, head·d_v]
    a = z @ model.W_O  # Eq. (8)
    a = a + model.b_O if c.projection_bias else a
    stages = [
        ("input", x, ()),
        ("embedding", e, ("W_E", "b_E", "P", "S")),
        ("heads", z, ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V")),
        ("attention", a, ("W_O", "b_O")),
    ]
    h = e[:, rows] + a if c.residual else a
    h = model._norm_1(h) if post else h
    if c.residual or post:
        stages.append(("stream", h, ("gain_1", "offset_1")))
    hidden = ACTIVATION[c.activation]((model._norm_2(h) if pre else h) @ model.W_1 + model.b_1)  # Eq. (1)
    fed = hidden @ model.W_2 + model.b_2
    stages += [("hidden", hidden, ("W_1", "b_1")), ("feed-forward", fed, ("W_2", "b_2"))]
    out = h + fed if c.residual else fed
    out = model._norm_2(out) if post else out
    if c.residual or post:
        stages.append(("last stream", out, ("gain_2", "offset_2")))
    return [*stages, ("T(x)", model.read(out), ("W_R", "b_R"))]
