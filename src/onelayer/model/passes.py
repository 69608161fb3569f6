"""The forward and the backward pass of a live layer, stage by stage: the activations h^l and δ^l = ∂L/∂h^l.

The stages are those of the block in Section III: input, embedding, heads, attention, (residual and LayerNorm,) hidden units,
feed-forward network, read-out. The loss is L = ½ Σ (T(x) − y)². Gradients are autograd's; as in `transformer.py` only the tokens
that are read out ask queries, so activations after the embedding have a row for each of these alone.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from . import program
from .on_tensors import OnTensors
from .transformer import SingleLayerTransformer


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


WEIGHTS = {  # stage → the weights between it and the stage before
    "embedding": ("W_E", "b_E", "P", "S"),
    "heads": ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"),
    "attention": ("W_O", "b_O"),
    "stream": ("gain_1", "offset_1"),
    "hidden": ("W_1", "b_1"),
    "feed-forward": ("W_2", "b_2"),
    "last stream": ("gain_2", "offset_2"),
    "T(x)": ("W_R", "b_R"),
}
AROUND = {"O": ("heads", "attention"), "2": ("hidden", "feed-forward")}  # what a linear map takes, and what it makes


class _Watched(OnTensors):
    """An evaluation without dropout that keeps its stages."""

    def __init__(self, model: SingleLayerTransformer, x: Tensor, e: Tensor) -> None:
        super().__init__(model, x, model._hidden(x, None))
        self.stages = {"input": x, "embedding": e}

    def linear(self, x: Tensor, name: str) -> Tensor:
        y = super().linear(x, name)
        self.stages |= dict(zip(AROUND.get(name, ()), (x, y), strict=False))
        return y

    def plus(self, x: Tensor, y: Tensor) -> Tensor:
        return self._stream(super().plus(x, y))

    def norm(self, x: Tensor, name: str) -> Tensor:
        y = super().norm(x, name)
        return self._stream(y) if self.config.norm == "post" else y

    def _stream(self, h: Tensor) -> Tensor:
        self.stages["last stream" if "feed-forward" in self.stages else "stream"] = h
        return h

    def drop(self, x: Tensor) -> Tensor:
        return x


def _forward(model: SingleLayerTransformer, x: Tensor) -> list[tuple[str, Tensor, tuple[str, ...]]]:
    """(stage, activation, weights that lead to it), in order; the last activation is T(x)."""
    e = model.tokens(x)
    watched = _Watched(model, x, e)
    out = program.read(watched, program.block(watched, e[:, model.config.read_rows], [e]))
    return [(name, h, WEIGHTS.get(name, ())) for name, h in (watched.stages | {"T(x)": out}).items()]
