"""ONNX for sequences of any length: the graph of `onnx` with masks, inputs "x" and "padding" [batch, length], both dynamic.

padding is True where a position holds no token (torch's key_padding_mask). The answer there is 0 if every position has one. Masks
are those of the layer: hidden scores are −∞, hidden weights 0. The graph is run by ONNX Runtime at sequences of several lengths,
padded and not, before it is written; its rounding is measured, not bounded.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ... import __version__
from ...common.errors import InputError
from ...layer.arithmetic import Arithmetic, arithmetic_of
from ...model.transformer import SingleLayerTransformer
from ...sequence_layer import SequenceLayer
from .onnx import Graph, element, packages, session_of
from .subject import Made, Measured

BOOL = 9  # ONNX's number for booleans
ROWS = 64  # sequences of one length that are compared


@dataclass(frozen=True)
class SequenceSubject:
    """A layer for any length, and its model in the dtype of the export."""

    layer: SequenceLayer
    model: SingleLayerTransformer

    @property
    def arithmetic(self) -> Arithmetic:
        return arithmetic_of(self.model.W_E.dtype)

    @property
    def target(self) -> str:
        return self.layer.description.text

    def about(self) -> dict[str, str]:
        """What the layer is, in words, as metadata."""
        d, c = self.layer.description, self.layer.certificate
        answers = ("length, " if d.answer == "position" else "") + f"{d.outputs}"
        return {
            "producer": f"onelayer {__version__}",
            "target": self.target,
            "domain": c.domain,
            "input": f"x [batch, length], length ≤ {d.longest}; padding [batch, length], True where there is no token",
            "output": f"y [batch, {answers}]",
            "dtype": self.arithmetic.name,
            "tolerance": c.tolerance_text,
            "verdict": f"{c.headline}, of the layer in onelayer, {c.arithmetic}",
            "bound": f"{c.stated_bound}, of the layer in onelayer, {c.arithmetic}",
        }


def subject_of(layer: SequenceLayer, dtype: str | None) -> SequenceSubject:
    """The layer in `dtype` (its own, if None)."""
    layer.require_unchanged()  # the file repeats what the certificate says
    wanted = layer.model.W_E.dtype if dtype is None else arithmetic_of(dtype).dtype
    return SequenceSubject(layer, copy.deepcopy(layer.model).to(wanted).eval())


def make(subject: SequenceSubject, seed: int) -> Made:
    """The file "model.onnx", checked at random sequences."""
    onnx, runtime = packages()
    graph = LengthGraph(subject)
    graph.read(graph.sublayers(*graph.tokens()))
    model = graph.model(onnx)
    onnx.checker.check_model(model, full_check=True)
    session = session_of(runtime, model)
    measured = _measured(subject, session, seed)
    onnx.helper.set_model_props(
        model, subject.about() | measured.words() | {"runtime": f"onnxruntime {runtime.__version__}"}
    )
    return Made({"model.onnx": model.SerializeToString()}, measured)


def _measured(subject: SequenceSubject, session: Any, seed: int) -> Measured:
    """The largest difference from our own layer, at sequences of several lengths in padded batches."""
    d, rng, worst, count = subject.layer.description, np.random.default_rng(seed), 0.0, 0
    for n in sorted({1, 2, min(7, d.longest), max(1, d.longest // 2), d.longest}):
        rows = max(2, min(ROWS, 2**21 // (n * n * subject.model.config.heads)))
        low, high = d.ends
        x = rng.integers(0, d.vocabulary, (rows, n)) if d.vocabulary else low + (high - low) * rng.random((rows, n))
        given = x.astype(subject.arithmetic.name).clip(low, high)
        padding = np.arange(n) >= rng.integers(1, n + 1, (rows, 1))
        padding[0] = False
        (found,) = session.run(["y"], {"x": given, "padding": padding})
        own = subject.layer.values(torch.from_numpy(given.astype(np.float64)), torch.from_numpy(padding))
        difference = np.abs(found.astype(np.float64).reshape(own.shape) - own)
        if not np.isfinite(difference).all():
            raise InputError(
                f"a layer that can be evaluated in {subject.arithmetic.name}",
                "values that are not finite",
                "export in float64",
            )
        worst, count = max(worst, float(difference.max())), count + rows
    return Measured(count, worst, None)


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
