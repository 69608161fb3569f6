"""Reading a composed layer back from the weights of a model: its inner model, and its ReLUs.

Every hidden unit must read one coordinate of the stream, as it is: relu(z_k + b). With the network replaced by one that passes
these coordinates through, the model is an ordinary one, whose reading is that of the inner functions A. All other numbers are
the stored floats: T = bias + Σ_i values_i·relu(A_lane(i) + offset_i), up to the rounding of these sums (`affine`).
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from ..common.outward import UP_FEW, UP_MANY
from ..model.transformer import SingleLayerTransformer
from .affine import AffineNumbers, linear
from .arithmetic import Arithmetic
from .assemble.composed import FEED_FORWARD
from .assemble.frame import write_identity


@dataclass(frozen=True)
class OuterNetwork:
    """T as a function of the lanes: bias_o + Σ_i values_io·relu(a_lane(i) + offset_i)."""

    lanes: np.ndarray  # [relu]
    offsets: np.ndarray  # [relu]
    values: np.ndarray  # [relu, out]
    bias: np.ndarray  # [out]

    def rounding(self, tops: np.ndarray, a: Arithmetic) -> np.ndarray:
        """How far outputs, as computed from lanes [lane] of at most `tops`, can be from the exact ones. ReLUs are symbols."""
        reach, n = np.maximum(tops[self.lanes] + self.offsets, 0.0) * UP_FEW, len(self.lanes)
        mid = np.eye(1 + n)[1:]
        units = AffineNumbers(mid, 0 * mid, 0 * mid, mid[:, :0], np.full(n, a.u))  # an offset is added
        outputs = linear(linear(units, self.values, None, a), np.eye(len(self.bias)), self.bias, a)
        off, sizes = (t @ np.append(1.0, reach) * UP_MANY for t in (outputs.errors + outputs.rad, outputs.size))
        return np.where((4 * sizes < a.overflow) & ((4 * reach).max(initial=0.0) < a.overflow), off, np.inf)


def network_of(model: SingleLayerTransformer) -> tuple[SingleLayerTransformer, OuterNetwork] | None:
    """(the inner model, whose outputs are the lanes; what the network makes of them); None for models of another form."""
    c = model.config
    plain = c.norm == "none" and c.activation == "relu" and not c.residual and not c.dropout and c.readout != "mean"
    if not plain or c.places != 1:
        return None
    w = {name: getattr(model, name).detach().to(torch.float64).numpy() for name in FEED_FORWARD}
    used = w["W_1"] != 0
    straight = (used.sum(axis=0) == 1).all() and (w["W_1"][used] == 1.0).all()
    eye = np.zeros_like(w["W_R"])
    eye[: c.features_out] = np.eye(c.features_out)
    passed = np.array_equal(w["W_R"], eye) and not w["W_2"][:, c.features_out :].any() and not w["b_2"].any()
    if not (straight and passed and all(np.isfinite(t).all() for t in w.values())):
        return None
    coordinates, lanes = np.unique(used.argmax(axis=0), return_inverse=True)
    network = OuterNetwork(lanes.ravel(), w["b_1"], w["W_2"][:, : c.features_out], w["b_R"])
    return _passing(model, coordinates.tolist()), network


def _passing(model: SingleLayerTransformer, coordinates: list[int]) -> SingleLayerTransformer:
    """The model with a network that passes these coordinates through."""
    K = len(coordinates)
    inner = SingleLayerTransformer(replace(model.config, features_out=K, ffn_width=2 * K), dtype=model.W_E.dtype)
    kept = {name: t for name, t in model.state_dict().items() if name not in FEED_FORWARD}
    inner.load_state_dict(inner.state_dict() | kept)
    with torch.no_grad():
        for name in FEED_FORWARD:
            getattr(inner, name).zero_()
        write_identity(inner, K, torch.zeros(K))
        read = inner.W_1[:K].clone()
        inner.W_1.zero_()
        inner.W_1[coordinates] = read
    return inner
