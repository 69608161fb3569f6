"""The door of every proof that counts rounding: numbers that cannot be lost in our algebra, nor overflow in the layer's.

Absolute values go through all steps of the layer, whatever cancels there: computed numbers are hardly larger, whatever rounding
does to them. So no other step of a proof asks whether something overflows.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..layer.arithmetic import Arithmetic
from ..layer.number_range import out_of_range
from ..layer.rounding.online_softmax import arithmetic_of_model
from ..model import program
from ..model.activations import activation_of
from ..model.transformer import SingleLayerTransformer


def refusal(model: SingleLayerTransformer, edge: float) -> str | None:
    """Why nothing is proved about a model for |x̂| ≤ edge; None if its weights are as proofs need them."""
    arithmetic = arithmetic_of_model(model)
    if (reason := out_of_range(model, edge)) is not None or cannot_overflow(model, edge, arithmetic):
        return reason
    return f"numbers of the layer may overflow in {arithmetic.name}"


def cannot_overflow(model: SingleLayerTransformer, edge: float, arithmetic: Arithmetic) -> bool:
    """Whether no intermediate result can overflow for |x̂| ≤ edge. Sums over tokens, and rounding, are left 64 times room."""
    steps = Magnitudes(model, edge)
    with np.errstate(all="ignore"):
        program.answer(steps)
    return steps.largest < arithmetic.overflow / 64 / model.config.all_tokens


class Magnitudes(program.ArraySteps[np.ndarray]):
    """One row that no token exceeds in any coordinate; `largest` is the largest number that was met."""

    def __init__(self, model: SingleLayerTransformer, edge: float) -> None:
        self.config, self.edge, self.largest = model.config, edge, 0.0
        self.w = {name: t.detach().double().abs().cpu().numpy() for name, t in model.state_dict().items()}

    def _met(self, x: np.ndarray) -> np.ndarray:
        self.largest = max(self.largest, math.inf if np.isnan(x).any() else float(x.max(initial=0.0)))
        return x

    def inputs(self) -> np.ndarray:
        scale = self.w["scale"]
        self._met(self.edge / scale)  # |x − shift|
        return self._met(np.full((1, self.config.features_in), self.edge))

    def constant(self, name: str) -> np.ndarray:
        return self._met(self.w[name].max(axis=0, keepdims=True))

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        W = self.w[f"W_{name}"]
        W = W if W.ndim == 2 else np.concatenate(W, axis=-1)  # the heads side by side
        return self._met(x @ W + self.w.get(f"b_{name}", np.zeros(1)).reshape(-1))

    def plus(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._met(x + y)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        """A computed variance may be 0 where the real one is not: |x − μ|/√(var + eps) is at most 2 max|x|/√eps."""
        self._met(4 * (x * x).sum(axis=-1) + self.config.norm_eps)
        y = np.full_like(x, 2 * x.max() * max(1.0, self.config.norm_eps**-0.5))
        return self._met(self._met(y) * self.w[f"gain_{name}"] + self.w[f"offset_{name}"])

    def attend(self, queries: np.ndarray, keys: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> np.ndarray:
        return self.average(queries, self.joined(keys), self.joined(values))

    def average(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Weights of at most 1, in sum 1 for all attentions but one."""
        linear = self.config.attention == "linear"  # φ(t) ≤ 1 + |t|
        q, k = (1 + q, 1 + k) if linear else (q, k)
        self._met((q * k.max(axis=-2, keepdims=True)).sum(axis=-1))
        tokens = self.config.all_tokens if self.config.attention == "sigmoid" else 1
        return self._met(tokens * v.max(axis=-2, keepdims=True))

    def activate(self, u: np.ndarray) -> np.ndarray:
        return self._met(activation_of(self.config).largest(u))

    def mean(self, x: np.ndarray) -> np.ndarray:
        return x

    def moved(self, move: Callable[..., Any], *values: np.ndarray) -> np.ndarray:
        return np.asarray(move(*values))
