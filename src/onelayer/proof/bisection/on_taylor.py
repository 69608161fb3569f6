"""The steps of a layer on Taylor models: the real function of its stored weights, nothing rounded."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...common.outward import U
from ...formula.taylor.functions import power
from ...formula.taylor.series import Space, Taylor, stack
from ...layer.affine_layer import opposite_pairs
from ...layer.arithmetic import FLOAT64, Arithmetic
from ...model.activations import activation_of
from ...model.dual import Differentiable
from ...model.transformer import SingleLayerTransformer
from .activated import activated, slope_at
from .attention import Offs, attended
from .other_attention import by_features, by_sigmoid, by_sparsemax

ATTENDED = {  # Eq. (5)–(7) on boxes, by the attention of the layer
    "softmax": attended,
    "fused": attended,  # the same real function; its rounding is in the arithmetic (`layer.rounding.online_softmax`)
    "local": attended,
    "sigmoid": by_sigmoid,
    "linear": by_features,
    "sparsemax": by_sparsemax,
}


@dataclass(frozen=True)
class Weights:
    """The stored numbers by name, as float64 arrays (exact also for float32 models)."""

    model: SingleLayerTransformer

    def __getattr__(self, name: str) -> np.ndarray:
        found = getattr(self.model, name).detach().cpu().double().numpy()
        object.__setattr__(self, name, found)
        return found

    def matrix(self, name: str) -> np.ndarray:
        """W of a linear map, the heads of Q, K and V side by side."""
        W: np.ndarray = getattr(self, f"W_{name}")
        return W if W.ndim == 2 else W.transpose(1, 0, 2).reshape(W.shape[1], -1)

    def bias(self, name: str) -> np.ndarray | float:
        biased = name not in "QKVO" or self.model.config.projection_bias
        return getattr(self, f"b_{name}").reshape(-1) if biased else 0.0


class OnTaylor(Differentiable[Taylor]):
    """[box, token, d_model] on the boxes of a space."""

    def __init__(self, w: Weights, space: Space) -> None:
        self.w, self.config, self.space = w, w.model.config, space

    def inputs(self) -> Taylor:
        hats = normalised(self.space, self.w.shift.reshape(-1), self.w.scale.reshape(-1))
        return reshaped(hats, self.config.tokens, self.config.features_in)

    def constant(self, name: str) -> Taylor:
        return self._wide(getattr(self.w, name))

    def _wide(self, value: np.ndarray) -> Taylor:
        """The same constants on every box."""
        return self.space.constant(np.broadcast_to(value, (self.space.boxes, *value.shape)))

    def linear(self, x: Taylor, name: str) -> Taylor:
        return x.linear(self.w.matrix(name), self.w.bias(name))

    def plus(self, x: Taylor, y: Taylor) -> Taylor:
        return x + y

    def moved(self, move: Callable[..., Any], *values: Taylor) -> Taylor:
        kinks = sorted({k for t in values for k in t.a})
        a = {k: move(*(t.a.get(k, np.zeros(t.shape)) for t in values)) for k in kinks}
        return Taylor(self.space, move(*(t.c for t in values)), move(*(t.r for t in values)), a)

    def average(self, q: Taylor, k: Taylor, v: Taylor) -> Taylor:
        exact = (np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape))
        return self.rounded_average(q, k, v, exact, FLOAT64)[0]

    def rounded_average(
        self, q: Taylor, k: Taylor, v: Taylor, offs: Offs, arithmetic: Arithmetic
    ) -> tuple[Taylor, np.ndarray]:
        """(Z, off), see `attention.attended`."""
        return ATTENDED[self.config.attention](q, k, v, offs, math.sqrt(self.config.d_k), arithmetic)

    def mean(self, x: Taylor) -> Taylor:
        y = x.sum(-2)[None]
        return y.times(np.full(y.shape, 1 / x.shape[1]), 1e-15)

    def activate(self, u: Taylor) -> Taylor:
        if self.config.activation != "relu":
            return activated(activation_of(self.config), u)
        least, most = self._relu_slopes(u)
        open_units = self.space.between(np.zeros(u.shape), np.maximum(u.range()[1], 0.0))
        return u.choose(most == 0, self.space.constant(np.zeros(u.shape))).choose(least < most, open_units)

    def slope(self, u: Taylor) -> Taylor:
        if self.config.activation != "relu":
            return slope_at(activation_of(self.config), u)
        return self.space.between(*self._relu_slopes(u))

    def _relu_slopes(self, u: Taylor) -> tuple[np.ndarray, np.ndarray]:
        """0 or 1 where the sign is proved, else from 0 to 1; pairs relu(z) w − relu(−z) w count as z w."""
        first, second = opposite_pairs(self.w.W_1, self.w.b_1, self.w.W_2)
        low, high = u.range()
        least, most = np.where(low >= 0, 1.0, 0.0), np.where(high <= 0, 0.0, 1.0)
        for units, slope in ((first, 1.0), (second, 0.0)):
            least[..., units], most[..., units] = slope, slope
        return least, most

    def directions(self) -> list[Taylor]:
        """x̂_i has the slope scale_i along x_i."""
        scale = self.w.scale
        return [self._wide(scale * unit.reshape(scale.shape)) for unit in np.eye(self.space.dimension)]

    def unbiased(self, x: Taylor, name: str) -> Taylor:
        return x.linear(self.w.matrix(name))

    def scores(self, products: Taylor) -> Taylor:
        s = products.sum(-1)
        return s.times(np.full(s.shape, 1 / math.sqrt(self.config.d_k)), 1e-15)[..., None]

    def norm(self, x: Taylor, name: str) -> Taylor:
        return self.offset(self.standardised(self.centred(x))[0], name)

    def norm_slopes(self, x: Taylor, slopes: list[Taylor], name: str) -> list[Taylor]:
        """Of y = c r with r = (mean c² + eps)^(−1/2), c = x − μ: y' = c' r − c mean(c c') r³."""
        c, moved = self.centred(x), [self.centred(t) for t in slopes]
        root, cube = self._spread(c, -0.5)[0], self._spread(c, -1.5)[0]
        return [self._gained(t * root - c * (self._mean_of(c * t) * cube), name) for t in moved]

    def centred(self, x: Taylor) -> Taylor:
        """x − μ."""
        m = self.config.d_model
        return x.flat().linear(np.eye(m) - 1 / m, error=2.0**-51)

    def standardised(self, centred: Taylor) -> tuple[Taylor, np.ndarray]:
        """((x − μ)/√(var + eps), a lower bound on var + eps)."""
        root, least = self._spread(centred, -0.5)
        y, bound = centred * root, math.sqrt(self.config.d_model)  # |x − μ| ≤ √(m·var)
        return y.best(*(np.full(y.shape, s * bound) for s in (-1, 1))), least

    def offset(self, y: Taylor, name: str) -> Taylor:
        """y·gain + offset."""
        return self._gained(y, name) + self.space.constant(np.broadcast_to(getattr(self.w, f"offset_{name}"), y.shape))

    def _gained(self, y: Taylor, name: str) -> Taylor:
        return y.times(np.broadcast_to(getattr(self.w, f"gain_{name}"), y.shape))

    def _mean_of(self, x: Taylor) -> Taylor:
        """The mean of every row, as a column."""
        total = x.sum(-1)[..., None]
        return total.times(np.full(total.shape, 1 / x.shape[-1]), 2 * U)

    def _spread(self, centred: Taylor, exponent: float) -> tuple[Taylor, np.ndarray]:
        """((var + eps)^exponent, a lower bound on var + eps), as columns."""
        eps, variance = self.config.norm_eps, self._mean_of(centred * centred)
        low, high = variance.range()
        shifted = Taylor(variance.space, variance.c.copy(), variance.r.copy())
        shifted.c[0] += eps
        shifted.r = shifted.r + 4e-16 * np.abs(shifted.c[0])
        least = np.maximum(low, 0.0) + eps * (1 - 1e-15)
        return power(shifted, exponent, (least, np.maximum(high, 0.0) + eps * (1 + 1e-15))), least


def normalised(space: Space, shift: np.ndarray, scale: np.ndarray) -> Taylor:
    """x̂ = (x − shift)·scale, [box, coordinate]."""
    columns = []
    for i in range(space.dimension):
        moved = space.variable(i) + space.constant(np.full(space.boxes, -shift[i]))
        columns.append(moved.times(np.full(space.boxes, scale[i])))
    return stack(columns)


def reshaped(t: Taylor, *shape: int) -> Taylor:
    """The same entries of every box in another shape."""
    kinks = {k: a.reshape(len(a), *shape) for k, a in t.a.items()}
    return Taylor(t.space, t.c.reshape(*t.c.shape[:2], *shape), t.r.reshape(len(t.r), *shape), kinks)
