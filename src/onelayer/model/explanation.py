"""Why T(x) has its value: the contribution of every head at one point.

A ReLU network is affine near any input, so with the units that are active at x the read-out sees

    T(x) = Σ_heads z_h J + (rest),    z_h = what head h adds to the stream through W^O,  J the FFN's and read-out's slope,

and the heads' contributions z_h J and the rest add up to T(x) up to rounding. The rest holds the biases, and the residual
stream where there is one. Exact for ReLU without LayerNorm, which is what constructions are made of.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..common.errors import InputError
from ..common.table import Table
from .transformer import SingleLayerTransformer


@dataclass(frozen=True, eq=False)
class Explanation:
    """Contributions [head, output], attention weights [head, token] at the row read for each output, rest and value."""

    kinds: tuple[str, ...]
    tokens: tuple[str, ...]
    weights: Float[np.ndarray, "place head token"]
    contributions: Float[np.ndarray, "head out"]
    rest: Float[np.ndarray, " out"]
    value: Float[np.ndarray, " out"]

    def table(self, most: int = 12) -> Table:
        """The heads with the largest contributions, and what all the others add."""
        size = np.abs(self.contributions).max(axis=1)
        order = np.argsort(-size, kind="stable")[:most]
        outputs = [f"adds to output {o + 1}" for o in range(len(self.value))] if len(self.value) > 1 else ["adds"]
        table = Table("Why T(x) has its value", ("head", "kind", "attends to", *outputs))
        for h in order:
            table.rows.append((int(h) + 1, self.kinds[h], self._attends(int(h)), *self.contributions[h].tolist()))
        others = self.contributions.sum(axis=0) - self.contributions[order].sum(axis=0)
        if len(self.kinds) > len(order):
            table.rows.append((f"{len(self.kinds) - len(order)} others", "", "", *others.tolist()))
        table.rows.append(("rest", "", "", *self.rest.tolist()))
        table.rows.append(("T(x)", "", "", *self.value.tolist()))
        return table

    def _attends(self, head: int) -> str:
        """The tokens with the largest weights, at the place where the head contributes most."""
        place = int(self.weights[:, head, : len(self.tokens)].max(axis=1).argmax()) if len(self.weights) > 1 else 0
        w = self.weights[place, head]
        top = [j for j in np.argsort(-w, kind="stable")[:3] if w[j] >= 0.005]
        return ", ".join(f"{self.tokens[j]} {w[j]:.2f}" for j in top)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def explain(
    model: SingleLayerTransformer,
    x: Float[Tensor, "1 data feature"],
    heads: tuple[tuple[str, int], ...],
    places: tuple[int, ...],
    tokens: list[str],
) -> Explanation:
    """Contributions of every head to every output at one point."""
    c = model.config
    if c.activation != "relu" or c.norm != "none" or c.readout == "mean":
        raise InputError(
            "a ReLU layer without LayerNorm, read at its tokens",
            f"activation={c.activation!r}, norm={c.norm!r}, readout={c.readout!r}",
            "explain constructed layers",
        )
    rows = [c.read_rows.start + p for p in places]
    with torch.no_grad():
        e = model.tokens(x)
        alpha = model.attention(x)[0][:, rows]  # [head, place, token]
        v = model._project(e, "V")[0]  # [head, token, d_v]
        W_O = model.W_O.reshape(c.heads, c.d_v, c.d_model)
        written = torch.einsum("hpt,htw,hwm->phm", alpha, v, W_O)  # what each head adds to the stream of each place
        start = e[0, rows] if c.residual else torch.zeros(len(rows), c.d_model, dtype=e.dtype)
        if c.projection_bias:
            start = start + model.b_O
        stream = start + written.sum(dim=1)
        active = (stream @ model.W_1 + model.b_1 > 0).to(e.dtype)
        slope = torch.einsum("mf,pf,fn,no->pmo", model.W_1, active, model.W_2, model.W_R)
        if c.residual:
            slope = slope + model.W_R
        by_head = torch.einsum("phm,pmo->hpo", written, slope).flatten(1)
        value = model(x)[0, list(places)].flatten()
    kinds = tuple(kind for kind, count in heads for _ in range(count)) or ("head",) * c.heads
    return Explanation(
        kinds=kinds,
        tokens=tuple(tokens),
        weights=alpha.transpose(0, 1).numpy(),
        contributions=by_head.numpy(),
        rest=(value - by_head.sum(dim=0)).numpy(),
        value=value.numpy(),
    )
