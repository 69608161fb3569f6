"""Distractor heads: they look like heads of a layer, and what they do to its function is known.

They attend as heads of the layer do, with the same queries, keys and values; only W^O differs. In the basis in which the layer
was built, heads that write aside add exactly nothing, and so do the two of a pair together; quiet heads add at most δ each.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..common.checks import require_not_negative, require_whole
from ..model.transformer import SingleLayerTransformer
from ..proof.circuit.effects import AblatedLayer
from ..proof.circuit.graph import Node

QUIET = 2.0**-34  # δ as a rule: 5.8e-11
ASIDE_LANES = 2
MOST_DISTRACTORS = 64  # of each kind


@dataclass(frozen=True)
class Distractors:
    """How many heads of each kind are added, a pair being two heads, and δ, the largest effect of a quiet one."""

    quiet: int = 2
    aside: int = 1
    pairs: int = 1
    effect: float = QUIET

    def __post_init__(self) -> None:
        require_not_negative("effect", self.effect, "give the largest effect of a quiet head")
        for name in ("quiet", "aside", "pairs"):
            require_whole(name, getattr(self, name), 0, MOST_DISTRACTORS)


def extended(
    layer: AblatedLayer, extra: Distractors, draw: np.random.Generator
) -> tuple[SingleLayerTransformer, tuple[str, ...]]:
    """The layer with more lanes, wider heads and distractors, all in a random order, in the old basis."""
    model = layer.model
    c, w = model.config, {name: t.detach().clone() for name, t in model.state_dict().items()}
    wide_k = 4 * c.d_k if c.d_k < 4 else c.d_k  # √d_k doubles, exactly
    wide_v, lanes = max(c.d_v, 3), c.d_model + ASIDE_LANES
    count = c.heads + extra.quiet + extra.aside + 2 * extra.pairs
    config = replace(
        c, d_model=lanes, d_k=wide_k, d_v=wide_v, heads=count, code="none" if c.code == "none" else "learned"
    )
    for name, t in w.items():  # the stream gets new lanes, which are read by nobody
        if name in ("W_E", "b_E", "P", "S", "b_O", "W_2", "b_2"):
            w[name] = _padded(t, -1, lanes)
        elif name in ("W_1", "W_R"):
            w[name] = _padded(t, 0, lanes)
    double = 2.0 if wide_k != c.d_k else 1.0
    for name, width, factor in (("Q", wide_k, double), ("K", wide_k, 1.0), ("V", wide_v, 1.0)):
        w[f"W_{name}"] = _padded(_padded(w[f"W_{name}"], 1, lanes), 2, width) * factor
        if c.projection_bias:
            w[f"b_{name}"] = _padded(w[f"b_{name}"], 1, width) * factor
    W_O = _padded(_padded(w["W_O"].reshape(c.heads, c.d_v, c.d_model), 2, lanes), 1, wide_v)
    chosen, writes, roles = list(range(c.heads)), list(W_O), ["layer"] * c.heads
    for role, number in (("quiet", extra.quiet), ("aside", extra.aside), ("pair", extra.pairs)):
        for _ in range(number):
            like = int(draw.integers(c.heads))
            write = _alike(W_O[like], draw)
            if role == "aside":
                write = torch.zeros_like(write)
                size = float(W_O[like].abs().max())
                write[:, c.d_model :] = size * torch.from_numpy(draw.standard_normal((wide_v, ASIDE_LANES)))
            chosen += [like] * (2 if role == "pair" else 1)
            writes += [write, -write] if role == "pair" else [write]
            roles += [role] * (2 if role == "pair" else 1)
    order = draw.permutation(count)
    units = torch.from_numpy(draw.permutation(c.ffn_width))
    heads = torch.tensor([chosen[i] for i in order])
    for name in ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"):
        if name in w:
            w[name] = w[name][heads]
    w["W_O"] = torch.stack([writes[i] for i in order]).flatten(0, 1)
    w["W_1"], w["b_1"], w["W_2"] = w["W_1"][:, units], w["b_1"][units], w["W_2"][units]
    wider = SingleLayerTransformer(config)
    wider.load_state_dict(w)
    sorted_roles = tuple(roles[i] for i in order)
    _hush(replace(layer, model=wider.eval()), sorted_roles, extra.effect)
    return wider, sorted_roles


def _hush(layer: AblatedLayer, roles: tuple[str, ...], effect: float) -> None:
    """Quiet heads write less, by a power of two, until their effect is at most δ."""
    model, paths, d_v = layer.model, layer.paths, layer.model.config.d_v
    assert paths is not None
    with torch.no_grad():
        for h, role in enumerate(roles):
            if role == "quiet":
                most = max(paths.most(Node("head", h)), 1e-300)
                less = 2.0 ** min(0.0, np.floor(np.log2(effect / most) - 1)) if effect else 0.0
                model.W_O[h * d_v : (h + 1) * d_v] *= less


def _alike(write: Tensor, draw: np.random.Generator) -> Tensor:
    """Rows of W^O in the same directions, half to twice as large, of either sign."""
    return write * (float(draw.choice([-1.0, 1.0])) * float(draw.uniform(0.5, 2.0)))


def _padded(t: Tensor, axis: int, size: int) -> Tensor:
    """More zeros along an axis."""
    shape = list(t.shape)
    shape[axis] = size - t.shape[axis]
    return torch.cat([t, t.new_zeros(shape)], dim=axis)
