"""A layer in another basis: the same function, up to rounding, from weights that look different."""

import numpy as np
import torch

from ..layer.affine_layer import opposite_pairs
from ..model.transformer import SingleLayerTransformer


def turned(model: SingleLayerTransformer, draw: np.random.Generator) -> SingleLayerTransformer:
    """The layer in a random orthogonal basis of the stream, and of every head's queries and keys, and values.

    Products are computed in long doubles where the machine has them, and rounded once.
    """
    c, w = model.config, {name: t.detach().numpy().astype(np.longdouble) for name, t in model.state_dict().items()}
    first, second = opposite_pairs(*(model.state_dict()[name].numpy() for name in ("W_1", "b_1", "W_2")))
    Q = _orthogonal(c.d_model, draw)
    for name in ("W_E", "b_E", "P", "S", "b_O", "W_2", "b_2"):
        if name in w:
            w[name] = w[name] @ Q
    for name in ("W_1", "W_R"):
        w[name] = Q.T @ w[name]
    keys, values = (np.stack([_orthogonal(n, draw) for _ in range(c.heads)]) for n in (c.d_k, c.d_v))
    for name, turn in (("Q", keys), ("K", keys), ("V", values)):
        w[f"W_{name}"] = Q.T @ w[f"W_{name}"] @ turn
        if c.projection_bias:
            w[f"b_{name}"] = (w[f"b_{name}"][:, None] @ turn)[:, 0]
    w["W_O"] = (values.swapaxes(1, 2) @ w["W_O"].reshape(c.heads, c.d_v, c.d_model) @ Q).reshape(-1, c.d_model)
    w["W_1"][:, second], w["W_2"][second] = -w["W_1"][:, first], -w["W_2"][first]  # opposite units stay opposite
    found = SingleLayerTransformer(c)
    found.load_state_dict({name: torch.from_numpy(t.astype(np.float64)) for name, t in w.items()})
    return found.eval()


def _orthogonal(n: int, draw: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix: a product of n reflections, and signs."""
    Q = np.diag(draw.choice([-1.0, 1.0], n)).astype(np.longdouble)
    for _ in range(n if n > 1 else 0):
        v = draw.standard_normal(n).astype(np.longdouble)
        Q = Q - np.outer(Q @ v, 2 * v / (v @ v))
    return Q
