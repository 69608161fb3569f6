"""ONNX for verifiers: one point at a time, matrices only, one head after the other.

Verifiers read fewer operators than ONNX Runtime, and few of them read a batch of any size. So x is [1, D], y is [1, m], and the
graph consists of MatMul, Add, Reshape, Transpose, Softmax and the activation (and what LayerNorm needs). Selecting rows, adding
special tokens and scaling the input are products with constant matrices. What does not depend on x is computed here: queries of
output tokens, and keys or values that read constant coordinates only. The scores of a built layer are then linear in x.
"""

from typing import Any

import numpy as np

from ....model.transformer import SingleLayerTransformer
from ..onnx import Graph

Value = str | np.ndarray  # a tensor of the graph, or a constant


class StaticGraph(Graph):
    """x [1, D] → y [1, m] of a layer of one length whose inputs are numbers."""

    def __init__(self, model: SingleLayerTransformer, places: tuple[int, ...]) -> None:
        super().__init__(model, "")
        c, w = self.c, self.w
        self.dimension, self.outputs = c.tokens * c.features_in, len(places) * c.features_out
        code = w["P"] if c.code != "none" else np.zeros((c.tokens, c.d_model))
        special = w["S"] if c.special_tokens else np.zeros((0, c.d_model))
        self.constant = np.concatenate([w["b_E"] + code, special])  # what tokens are beside what x adds
        self.moves = (w["W_E"] != 0).any(axis=0)  # the coordinates that depend on x
        rows = np.arange(c.all_tokens)[c.read_rows]
        self.rows = rows if c.readout == "mean" else rows[list(places)]

    def built(self, onnx: Any) -> Any:
        """The whole model."""
        e = self._tokens()
        asking: Value = self.constant[self.rows] if self._special else self._selected(e, self.rows)
        h = self.sublayers(self._name(asking), e)
        if self.c.readout == "mean":
            h = self.node("ReduceMean", h, self.whole(0), keepdims=1)
        y = self.node("Add", self.node("MatMul", h, self.weight("W_R")), self.weight("b_R"))
        self.node("Reshape", y, self.whole(1, self.outputs), name="y")
        return self.model(onnx)

    @property
    def _special(self) -> bool:
        """Whether the rows that are read out are special tokens, which are constant."""
        return self.c.readout == "output"

    def _tokens(self) -> str:
        """All tokens, [token, model]."""
        c, x = self.c, "x"
        shift, scale = self.w["shift"].ravel(), self.w["scale"].ravel()
        x = self.node("Add", x, self.weight("minus_shift", -shift[None])) if shift.any() else x
        x = self.node("MatMul", x, self.weight("scale", np.diag(scale))) if (scale != 1).any() else x
        x = self.node("Reshape", x, self.whole(c.tokens, c.features_in))
        e = self.node("MatMul", x, self.weight("W_E"))
        if c.special_tokens:
            e = self.node("MatMul", self.weight("with_special", np.eye(c.all_tokens, c.tokens)), e)
        return self.node("Add", e, self.weight("tokens", self.constant))

    def _selected(self, e: str, rows: np.ndarray) -> str:
        if len(rows) == self.c.all_tokens and (rows == np.arange(len(rows))).all():
            return e
        return self.node("MatMul", self.weight("read_rows", np.eye(self.c.all_tokens)[rows]), e)

    def _name(self, value: Value) -> str:
        return value if isinstance(value, str) else self.weight(f"constant_{len(self.constants)}", value)

    def attend(self, queries: str, e: str) -> str:
        c, found = self.c, ""
        known = None if c.norm == "pre" else self.constant
        for head in range(c.heads):
            q = self._projected(queries, "Q", head, None if known is None else known[self.rows], self._special)
            k, v = (self._projected(e, which, head, known) for which in "KV")
            z = self._product(self._softmax(self._product(q, self._transposed(k))), v)  # Eq. (5)–(7)
            part = self._product(z, self.w["W_O"].reshape(c.heads, c.d_v, c.d_model)[head])  # Eq. (8)
            found = self.node("Add", found, self._name(part)) if found else self._name(part)
        return self.node("Add", found, self.weight("b_O")) if c.projection_bias else found

    def _projected(self, x: str, which: str, head: int, known: np.ndarray | None = None, still: bool = False) -> Value:
        """Queries, keys or values of one head; a constant where they do not depend on the input.

        `known` is what x is beside its dependence on the input (None: not known), `still` says that x does not depend on it.
        """
        root = np.sqrt(self.c.d_k) if which == "Q" else 1.0
        w = self.w[f"W_{which}"][head] / root
        bias = self.w[f"b_{which}"][head] / root if self.c.projection_bias else np.zeros(1)
        if known is not None and (still or not w[self.moves].any()):
            found: np.ndarray = known @ w + bias
            return found
        p = self.node("MatMul", x, self.weight(f"W_{which}_{head}", w))
        return self.node("Add", p, self.weight(f"b_{which}_{head}", bias)) if self.c.projection_bias else p

    def _product(self, a: Value, b: Value) -> Value:
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            found: np.ndarray = a @ b
            return found
        return self.node("MatMul", self._name(a), self._name(b))

    def _transposed(self, a: Value) -> Value:
        return a.T if isinstance(a, np.ndarray) else self.node("Transpose", a, perm=[1, 0])

    def _softmax(self, scores: Value) -> Value:
        if isinstance(scores, str):
            return self.node("Softmax", scores, axis=-1)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        found: np.ndarray = weights / weights.sum(axis=-1, keepdims=True)
        return found

    def ends(self, helper: Any, kind: int) -> tuple[list[Any], list[Any]]:
        x = helper.make_tensor_value_info("x", kind, [1, self.dimension])
        y = helper.make_tensor_value_info("y", kind, [1, self.outputs])
        return [x], [y]
