"""Interpolation: one layer whose FFN is a piecewise linear function of one number z, the projection of the input.

    z(x) = Σ_j u_j·x̂_j                                           read-heads: head j attends to token j alone; W^O adds up
    T(x) = y_c + Σ_i a_i relu(s_i (z − k_i)),   s_i = ±1          FFN: a ReLU per knot, values on W^2; read-out with bias y_c

x̂ = (x − shift)·scale is the normalisation of the embedding. Through N samples (z_i, y_i) in order of z it takes N − 1 ReLUs:
from the sample c in the middle outwards, those right of it look right (s = 1), those left of it look left (s = −1). Each is
0 on the other side, so that a value is summed from at most half of them, over half the distance.

Stream of token j (n > 1): (x̂_j in d coordinates, one-hot code of j). A single token is projected in the embedding already
and needs two coordinates, (z, 1). The output token is the first unit vector; its query scores 800 on the token of each head.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from ...layer.assemble.frame import Frame, blank
from ...layer.heads import MASKED
from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer


@dataclass(frozen=True, eq=False)
class Interpolation:
    """The numbers that such a layer is made of; all arrays are float64."""

    frame: Frame
    directions: Float[np.ndarray, "token feature"]  # u_j
    knots: Float[np.ndarray, " unit"]  # k_i
    signs: Float[np.ndarray, " unit"]  # s_i
    values: Float[np.ndarray, "unit out"]  # a_i
    base: Float[np.ndarray, " out"]  # y_c

    @property
    def config(self) -> LayerConfig:
        (n, d), (units, m) = self.directions.shape, self.values.shape
        return interpolation_config(n, d, m, units)

    def model(self, dtype: torch.dtype) -> SingleLayerTransformer:
        """The layer, its weights rounded to `dtype`."""
        config = self.config
        n, d, m = config.tokens, config.features_in, config.features_out
        u = torch.from_numpy(self.directions)
        model = blank(config, self.frame)
        with torch.no_grad():
            if n == 1:
                model.W_E[:, 0] = u[0]
                model.b_E[1] = 1.0  # what tells the data token from the output token
                model.W_K[0, 1, 0] = MASKED
                model.W_V[0, 0, 0] = 1.0
            else:
                model.W_E[:, :d] = torch.eye(d, dtype=torch.float64)
                for j in range(n):
                    model.W_K[j, d + j, 0] = MASKED
                    model.W_V[j, :d, 0] = u[j]
            model.S[0, 0] = 1.0
            model.W_Q[:, 0, 0] = 1.0
            model.W_O[:, 0] = 1.0
            model.W_1[0] = torch.from_numpy(self.signs)
            model.b_1.copy_(torch.from_numpy(-self.signs * self.knots))
            model.W_2[:, :m] = torch.from_numpy(self.values)
            model.W_R[:m] = torch.eye(m, dtype=torch.float64)
            model.b_R.copy_(torch.from_numpy(self.base))
        return model.to(dtype).eval()


def interpolation_config(n: int, d: int, m: int, units: int) -> LayerConfig:
    """The shape: n tokens of d numbers, m outputs at one output token, `units` ReLUs (at least one)."""
    return LayerConfig(
        tokens=n, features_in=d, features_out=m, d_model=max(2 if n == 1 else d + n, m), heads=n, d_k=1, d_v=1,
        ffn_width=units, code="none" if n == 1 else "one-hot", output_tokens=1, residual=False, readout="output",
    )  # fmt: skip


def interpolation_of(model: SingleLayerTransformer) -> Interpolation | None:
    """The numbers of a layer, read back from its weights; None unless every single weight is an interpolation's."""
    c = model.config
    n, d, m = c.tokens, c.features_in, c.features_out
    if c != interpolation_config(n, d, m, c.ffn_width):
        return None
    w = {name: t.detach().double().numpy() for name, t in model.state_dict().items()}
    directions = w["W_E"][None, :, 0] if n == 1 else w["W_V"][:, :d, 0]
    frame = Frame(tuple(w["shift"].ravel().tolist()), tuple(w["scale"].ravel().tolist()))
    signs = w["W_1"][0]
    found = Interpolation(frame, directions, -signs * w["b_1"], signs, w["W_2"][:, :m], w["b_R"])
    if not (np.abs(signs) == 1).all() or not all(np.isfinite(t).all() for t in w.values()):
        return None
    again = found.model(model.W_E.dtype).state_dict()
    return found if all(torch.equal(t, again[name]) for name, t in model.state_dict().items()) else None


def slopes_between(
    knots: Float[np.ndarray, " sample"], y: Float[np.ndarray, "sample out"]
) -> Float[np.ndarray, "piece out"]:
    """Slopes of the polygon through (k_i, y_i), k sorted; 0 between equal knots, of which only the first can be met."""
    gap = np.diff(knots)[:, None]
    return np.diff(y, axis=0) / np.where(gap > 0, gap, np.inf)


def interpolate(
    frame: Frame,
    directions: Float[np.ndarray, "token feature"],
    knots: Float[np.ndarray, " sample"],
    y: Float[np.ndarray, "sample out"],
) -> Interpolation:
    """The polygon through (k_i, y_i), k sorted, from the sample in the middle outwards; its N − 1 units in order of knots.

    Right of the middle sample c the units are at k_c, …, k_(N−1), left of it at k_2, …, k_c (counting from 1).
    """
    N, c = len(knots), len(knots) // 2
    slope = slopes_between(knots, y)
    turn = np.diff(slope, axis=0)  # at the knots 1 … N − 2
    if N == 1:  # a layer has at least one ReLU: this one adds nothing
        return Interpolation(frame, directions, knots, np.ones(1), np.zeros_like(y), y[0])
    values = np.concatenate([turn[: c - 1], -slope[c - 1 : c], slope[c : c + 1], turn[c:]])
    at = np.concatenate([knots[1 : c + 1], knots[c : N - 1]])
    signs = np.where(np.arange(N - 1) < c, -1.0, 1.0)
    return Interpolation(frame, directions, at, signs, values, y[c])
