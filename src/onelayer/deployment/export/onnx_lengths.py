"""ONNX for sequences of any length: the graph of `onnx` with masks, inputs "x" and "padding" [batch, length], both dynamic.

padding is True where a position holds no token (torch's key_padding_mask). The answer there is 0 if every position has one. Masks
are those of the layer: hidden scores are −∞, hidden weights 0. The graph is run by ONNX Runtime at sequences of several lengths,
padded and not, before it is written; its rounding is measured, not bounded.
"""

from typing import Any

import numpy as np

from .onnx import Graph, element, packages, session_of
from .sequence_subject import SequenceSubject
from .subject import Made

BOOL = 9  # ONNX's number for booleans


def make(subject: SequenceSubject, seed: int) -> Made:
    """The file "model.onnx", checked at random sequences."""
    onnx, runtime = packages()
    graph = LengthGraph(subject)
    graph.read(graph.sublayers(*graph.tokens()))
    model = graph.model(onnx)
    onnx.checker.check_model(model, full_check=True)
    session = session_of(runtime, model)

    def answer(x: np.ndarray, padding: np.ndarray) -> np.ndarray:
        return np.asarray(session.run(["y"], {"x": x, "padding": padding})[0])

    measured = subject.measure(answer, seed)
    onnx.helper.set_model_props(
        model, subject.about() | measured.words() | {"runtime": f"onnxruntime {runtime.__version__}"}
    )
    return Made({"model.onnx": model.SerializeToString()}, measured)


class LengthGraph(Graph):
    """The graph with dynamic length: rows of codes and normalisation are cut, later and missing tokens hidden."""

    def __init__(self, subject: SequenceSubject) -> None:
        super().__init__(subject.model, subject.target)
        self.vocabulary = subject.layer.description.vocabulary
        self.per_position = subject.layer.description.answer == "position"

    def tokens(self) -> tuple[str, str]:
        c = self.c
        self.n = self.node("Shape", "x", start=1, end=2)
        x = self.node("Unsqueeze", "x", self.whole(-1))
        if self.vocabulary is not None:  # token numbers become unit vectors
            x = self.node("Equal", x, self.weight("alphabet", np.arange(c.features_in)))
            x = self.node("Cast", x, to=element(self.dtype))
        x = self.node("Mul", self.node("Sub", x, self.cut("shift")), self.cut("scale"))
        e = self.node("Add", self.node("MatMul", x, self.weight("W_E")), self.weight("b_E"))
        e = e if c.code == "none" else self.node("Add", e, self.cut("P"))
        data = e
        if c.special_tokens:
            shape = self.node(
                "Concat", self.node("Shape", "x", start=0, end=1), self.whole(c.special_tokens, c.d_model), axis=0
            )
            special = self.node("Expand", self.weight("S"), shape)
            e = self.node("Concat", e, special, axis=1)
        if c.readout != "output":
            return data, e
        return self.node("Slice", special, self.whole(-c.output_tokens), self.whole(c.special_tokens), self.whole(1)), e

    def cut(self, name: str) -> str:
        """The rows of the positions that are there."""
        return self.node("Slice", self.weight(name), self.whole(0), self.n, self.whole(0))

    def masked(self, scores: str) -> str:
        """−∞ on tokens that are hidden from a row; a position always sees itself."""
        c = self.c
        hidden = self.node("Unsqueeze", "padding", self.whole(1))  # [batch, 1, length]
        if c.readout != "output":
            length = self.node("Squeeze", self.n)
            one = self.whole_number(1)
            place = self.node("Range", self.whole_number(0), length, one)
            row, column = self.node("Unsqueeze", place, self.whole(1)), self.node("Unsqueeze", place, self.whole(0))
            if c.causal:
                hidden = self.node("Or", hidden, self.node("Greater", column, row))
            hidden = self.node("And", hidden, self.node("Not", self.node("Equal", column, row)))
        if c.special_tokens:
            rows = self.node("Shape", hidden, start=0, end=2)
            seen = self.node("Concat", rows, self.whole(c.special_tokens), axis=0)
            self.constants["seen"] = np.array(False)
            hidden = self.node("Concat", hidden, self.node("Expand", "seen", seen), axis=2)
        return self.node(
            "Where",
            self.node("Unsqueeze", hidden, self.whole(1)),
            self.weight("minus_infinity", np.array(-np.inf)),
            scores,
        )

    def whole_number(self, value: int) -> str:
        name = f"number_{value}"
        self.constants[name] = np.array(value, dtype=np.int64)
        return name

    def read(self, h: str) -> None:
        """Read-out: an answer for every position, 0 where there is no token, or one for the sequence."""
        c = self.c
        empty = self.node("Unsqueeze", "padding", self.whole(2))
        zero = self.weight("zero", np.array(0.0))
        if c.readout == "mean":
            there = self.node("Cast", self.node("Not", empty), to=element(self.dtype))
            count = self.node("ReduceSum", there, self.whole(1), keepdims=1)
            h = self.node(
                "Div", self.node("ReduceSum", self.node("Where", empty, zero, h), self.whole(1), keepdims=1), count
            )
        y = self.node("Add", self.node("MatMul", h, self.weight("W_R")), self.weight("b_R"))
        if self.per_position:
            self.node("Where", empty, zero, y, name="y")
        else:
            self.node("Reshape", y, self.whole(-1, c.features_out), name="y")

    def ends(self, helper: Any, kind: int) -> tuple[list[Any], list[Any]]:
        info, width = helper.make_tensor_value_info, self.c.features_out
        x, padding = info("x", kind, ["batch", "length"]), info("padding", BOOL, ["batch", "length"])
        return [x, padding], [info("y", kind, ["batch", *(["length"] if self.per_position else []), width])]
