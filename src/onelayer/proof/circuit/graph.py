"""The parts of a layer as a graph: heads and hidden units, and the edges that non-zero weights make.

A head reads a token where its keys, values or queries depend on it, writes to a hidden unit where W^O W^1 is not 0, and to an
output where W^O W^R is not 0, if the layer has a residual stream; a unit writes to an output where W^2 W^R is not 0. These
products are computed in floats: an edge is drawn where one exceeds its own rounding.

`without` is what "without a node" means throughout: zero ablation. The head's part of the concatenated outputs is multiplied by
0 instead of its rows of W^O, the unit's activation by 0 instead of its row of W^2. Everything else stays, biases included.
"""

import copy
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from ...common.outward import UP_FEW, U
from ...formula.taylor.series import TINY
from ...model.transformer import SingleLayerTransformer

NodeKind = Literal["head", "unit"]
Edge = tuple[str, str]


@dataclass(frozen=True)
class Node:
    """A head or a hidden unit, counted from 0 as in the weights."""

    kind: NodeKind
    index: int

    @property
    def name(self) -> str:
        return f"{self.kind} {self.index + 1}"


def nodes_of(model: SingleLayerTransformer) -> tuple[Node, ...]:
    """Every head, then every hidden unit that has an input and an output weight."""
    c = model.config
    used = model.W_2.ne(0).any(dim=1) & (model.W_1.ne(0).any(dim=0) | model.b_1.ne(0))
    units = used.nonzero().flatten().tolist()
    return (*(Node("head", h) for h in range(c.heads)), *(Node("unit", k) for k in units))


def without(model: SingleLayerTransformer, *nodes: Node) -> SingleLayerTransformer:
    """A copy of the model with these nodes ablated."""
    ablated, d_v = copy.deepcopy(model), model.config.d_v
    with torch.no_grad():
        for node in nodes:
            if node.kind == "head":
                ablated.W_O[node.index * d_v : (node.index + 1) * d_v] = 0.0
            else:
                ablated.W_2[node.index] = 0.0
    return ablated


def with_heads(model: SingleLayerTransformer, heads: list[int]) -> SingleLayerTransformer:
    """A model with these heads alone; the rest of it stays."""
    config = replace(model.config, heads=len(heads))
    fewer, d_v = SingleLayerTransformer(config, dtype=model.W_E.dtype), model.config.d_v
    state = dict(model.state_dict())
    for name in ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"):
        if name in state:
            state[name] = state[name][heads]
    state["W_O"] = state["W_O"].reshape(-1, d_v, model.config.d_model)[heads].flatten(0, 1)
    fewer.load_state_dict(state)
    return fewer.eval()


def product(*factors: np.ndarray, error: np.ndarray | float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """(A B …, an upper bound on its rounding), in float64; A is known up to `error`."""
    value, off = factors[0], np.broadcast_to(error, factors[0].shape)
    for W in factors[1:]:
        size = np.abs(W)
        off = (off @ size + (W.shape[-2] + 4) * U * (np.abs(value) @ size)) * UP_FEW + TINY
        value = value @ W
    return value, off


def edges_of(model: SingleLayerTransformer, inputs: list[str], outputs: list[str]) -> tuple[Edge, ...]:
    """Pairs of names, from tokens to heads, to units, to outputs. `inputs` names the tokens, `outputs` the read-out's columns."""
    c = model.config
    w = {name: t.detach().double().cpu().numpy() for name, t in model.state_dict().items()}
    heads, units = [Node("head", h).name for h in range(c.heads)], nodes_of(model)[c.heads :]
    W_O = w["W_O"].reshape(c.heads, c.d_v, c.d_model)

    def linked(*factors: np.ndarray) -> list[bool]:
        """Which columns of a product are not 0."""
        value, error = product(*factors)
        return [bool(row.any()) for row in (np.abs(value) > error).T]

    found: list[Edge] = []
    reads = np.concatenate([w["W_Q"], w["W_K"], w["W_V"]], axis=2)  # [head, d_model, widths]
    rows = [w["W_E"]] * c.tokens + [w["S"][t : t + 1] for t in range(c.special_tokens)]
    for h, name in enumerate(heads):
        found += [(token, name) for token, row in zip(inputs, rows, strict=True) if any(linked(row, reads[h]))]
    for h, name in enumerate(heads):
        to_units = linked(W_O[h], w["W_1"])
        found += [(name, unit.name) for unit in units if to_units[unit.index]]
        if c.residual:
            to_outputs = linked(W_O[h], w["W_R"])
            found += [(name, out) for out, yes in zip(outputs, to_outputs, strict=True) if yes]
    for unit in units:
        to_outputs = linked(w["W_2"][unit.index : unit.index + 1], w["W_R"])
        found += [(unit.name, out) for out, yes in zip(outputs, to_outputs, strict=True) if yes]
    if c.residual:
        own = w["W_E"] if c.readout != "output" else w["S"][-c.output_tokens :]
        to_units, to_outputs = linked(own, w["W_1"]), linked(own, w["W_R"])
        for token in inputs[c.read_rows]:
            found += [(token, unit.name) for unit in units if to_units[unit.index]]
            found += [(token, out) for out, yes in zip(outputs, to_outputs, strict=True) if yes]
    return tuple(found)
