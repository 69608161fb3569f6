"""ONNX: the graph of Eq. (5)–(8), the FFN and the read-out, operator by operator.

Every operator is one that ONNX Runtime has for float64 on a CPU: MatMul, Add, Sub, Mul, ReduceSum, Softmax, Relu, Sigmoid (SiLU),
Erf (GELU, only in float32), ReduceMean, Sqrt and Div (LayerNorm), and those that only move numbers. Input "x", output "y", any
batch. The graph is run by ONNX Runtime before it is written. Where the layer is a sum of softmax averages, what its CPU provider
can round differently is bounded (`program_distance`); otherwise it is measured only.

ONNX Runtime merges a product with a scalar constant into a neighbouring MatMul, and keeps that constant as float32 even in
float64 graphs (an error of 1e-8). So the graph multiplies by no scalar: 1/√d_k is in W^Q, and a scale of one number in W^E.

Constants of an ONNX graph as bfloat16 or int8, widened to float32 in the graph without rounding.

bfloat16 is widened by Cast, int8 by Cast and Mul with the powers of two of the columns. DequantizeLinear says the same, but ONNX
Runtime 1.31 fuses it with the MatMul that follows and rounds the other factor to 8 bits: answers were off by 10. A constant
that has other numbers, such as a bias beside int8 weights, stays float32.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, assert_never

import numpy as np
import torch

from ...common.errors import InputError
from ...layer.grid import BFLOAT16, INT8, MATRICES, exponents, to_bits
from ...layer.rounding.online_softmax import ONNX_RUNTIME
from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from .program_distance import backend_bound
from .subject import Made, Subject

BFLOAT16_TYPE, FLOAT_TYPE = 16, 1  # ONNX's numbers for them
NARROW = "_stored"  # behind the name of a weight: its narrow numbers
STEPS = "_steps"  # and the powers of two of its columns


def low_constants(onnx: Any, constants: dict[str, np.ndarray], stored: str) -> tuple[list[Any], list[Any]]:
    """(nodes that widen, initialisers): every float constant in the format `stored` if all of its numbers are on the grid."""
    nodes, found = list[Any](), list[Any]()
    for name, value in constants.items():
        if stored == "bfloat16" and _is_bfloat16(value):
            bits = value.view(np.uint32) >> 16
            raw = bits.astype("<u2").tobytes()
            found.append(onnx.helper.make_tensor(name + NARROW, BFLOAT16_TYPE, value.shape, raw, raw=True))
            nodes.append(onnx.helper.make_node("Cast", [name + NARROW], [name], name=name + "_widened", to=FLOAT_TYPE))
        elif stored == "int8" and (whole := _whole(name, value)) is not None:
            numbers, steps = whole
            found.append(onnx.numpy_helper.from_array(numbers, name + NARROW))
            found.append(onnx.numpy_helper.from_array(steps, name + STEPS))
            cast = name + "_whole"
            nodes.append(onnx.helper.make_node("Cast", [name + NARROW], [cast], name=cast, to=FLOAT_TYPE))
            nodes.append(onnx.helper.make_node("Mul", [cast, name + STEPS], [name], name=name + "_widened"))
        else:
            found.append(onnx.numpy_helper.from_array(value, name))
    return nodes, found


def _is_bfloat16(value: np.ndarray) -> bool:
    if value.dtype != np.float32 or not value.size:
        return False
    t = torch.from_numpy(value)
    return bool((to_bits(t, BFLOAT16.bits) == t).all())


def _whole(name: str, value: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """(int8 numbers, steps) of a matrix, if its columns are on the grid."""
    if value.dtype != np.float32 or value.ndim != 2 or name not in MATRICES or not value.size:
        return None
    t = torch.from_numpy(value)
    if not bool((INT8.rounded(name, t) == t).all()):
        return None
    steps = torch.exp2(exponents(t))
    return (t.double() / steps).to(torch.int8).numpy(), steps[0].to(torch.float32).numpy()


OPSET, IR = 18, 8  # from 2022: old enough for most runtimes
MOST_BYTES = 2**31 - 2**20  # in one protocol buffer
SMALL_PRODUCT = 16  # tokens times d_v up to which Eq. (6) and (7) are one product and sum
CHUNK = 2**22  # attention weights held at a time when measuring


def make(subject: Subject, x: np.ndarray) -> Made:
    """The file "model.onnx", checked at the points x."""
    onnx, runtime = packages()
    c, name = subject.model.config, subject.arithmetic.name
    if c.activation == "gelu" and name == "float64":
        found = "ONNX Runtime has Erf only in float32"
        raise InputError("a GELU layer as ONNX in float64", found, "build it with dtype='float32'")
    if subject.model.parameter_count * subject.model.W_E.element_size() > MOST_BYTES:
        raise InputError("weights of at most 2 GB", f"{subject.model.parameter_count:,} numbers", "use another format")
    graph = SingleLengthGraph(subject)
    graph.read(graph.sublayers(*graph.tokens()))
    model = graph.model(onnx)
    onnx.checker.check_model(model, full_check=True)
    session = session_of(runtime, model)
    rows = max(1, CHUNK // (c.heads * c.all_tokens * c.all_tokens))

    def answer(points: np.ndarray) -> np.ndarray:
        parts = [session.run(["y"], {"x": points[i : i + rows]})[0] for i in range(0, len(points), rows)]
        return np.concatenate(parts).reshape(len(points), -1) if parts else np.zeros((0, subject.outputs))

    measured = subject.measure(answer, x)
    bound = None if graph.vanishing else backend_bound(subject, ONNX_RUNTIME)
    bound = bound and bound.unless_contradicted(measured)
    metadata = subject.about() | measured.words() | {"runtime": f"onnxruntime {runtime.__version__}"}
    onnx.helper.set_model_props(model, metadata | (subject.proved_words(bound) if bound else {}))
    return Made({"model.onnx": model.SerializeToString()}, measured, bound)


def session_of(runtime: Any, model: Any) -> Any:
    """The graph, ready to run."""
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors only
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def packages() -> tuple[Any, Any]:
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        found = f"{error.name} is not installed"
        raise InputError("the packages onnx and onnxruntime", found, "pip install 'onelayer[onnx]'") from None
    return onnx, onnxruntime


class Graph(ABC):
    """Nodes and constants, in the order of evaluation; tensors are referred to by name."""

    def __init__(self, model: SingleLayerTransformer, target: str, stored: str = "") -> None:
        self.target = target
        self.c: LayerConfig = model.config
        self.dtype = np.dtype(str(model.W_E.dtype).removeprefix("torch."))
        self.w = {name: t.detach().numpy() for name, t in model.state_dict().items()}
        self.nodes: list[tuple[str, tuple[str, ...], str, dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}
        self.vanishing = (
            False  # whether a number that is derived from a weight is subnormal, or 0 where the weight is not
        )
        self.stored = (
            stored  # the format of weights: those that are on its grid are written so, and widened in the graph
        )

    def node(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append((kind, inputs, output, attributes))
        return output

    def weight(self, name: str, value: np.ndarray | None = None) -> str:
        """A weight of the model under its own name, or a value derived from it."""
        given = self.w[name] if value is None else value.astype(self.dtype)
        if value is not None and name in self.w:
            sizes = np.abs(given[given != 0])
            fewer = len(sizes) < np.count_nonzero(self.w[name])
            self.vanishing |= bool(fewer or (sizes < np.finfo(self.dtype).tiny).any())
        self.constants[name] = np.ascontiguousarray(given)
        return name

    def whole(self, *numbers: int) -> str:
        """Whole numbers: shapes, axes, rows."""
        name = "whole_" + "_".join(map(str, numbers)).replace("-", "minus")
        self.constants[name] = np.array(numbers, dtype=np.int64)
        return name

    def sublayers(self, queries: str, e: str) -> str:
        """Attention and FFN with residuals and LayerNorm, as in `SingleLayerTransformer`."""
        c = self.c
        a = self.attend(self.norm(queries, 1), self.norm(e, 1)) if c.norm == "pre" else self.attend(queries, e)
        h = self.node("Add", queries, a) if c.residual else a
        h = self.norm(h, 1) if c.norm == "post" else h
        f = self.feed_forward(self.norm(h, 2) if c.norm == "pre" else h)
        y = self.node("Add", h, f) if c.residual else f
        return self.norm(y, 2) if c.norm == "post" else y

    def attend(self, queries: str, e: str) -> str:
        c = self.c
        q, k, v = self.project(queries, "Q", c.d_k), self.project(e, "K", c.d_k), self.project(e, "V", c.d_v)
        k = self.node("Transpose", k, perm=[0, 1, 3, 2])
        scores = self.masked(self.node("Mul" if c.d_k == 1 else "MatMul", q, k))
        alpha = self.node("Softmax", scores, axis=-1)  # Eq. (5)
        if c.all_tokens * c.d_v <= SMALL_PRODUCT:  # quicker than many small matrix products
            alpha, v = self.node("Unsqueeze", alpha, self.whole(4)), self.node("Unsqueeze", v, self.whole(2))
            z = self.node("ReduceSum", self.node("Mul", alpha, v), self.whole(3), keepdims=0)  # Eq. (6) and (7)
        else:
            z = self.node("MatMul", alpha, v)
        z = self.node("Transpose", z, perm=[0, 2, 1, 3])
        z = self.node("Reshape", z, self.whole(0, 0, c.heads * c.d_v))
        a = self.node("MatMul", z, self.weight("W_O"))  # Eq. (8)
        return self.node("Add", a, self.weight("b_O")) if c.projection_bias else a

    def project(self, x: str, which: str, width: int) -> str:
        """[batch, token, model] → [batch, head, token, width], one product for all heads."""
        c, root = self.c, math.sqrt(self.c.d_k) if which == "Q" else 1.0
        w = self.w[f"W_{which}"].transpose(1, 0, 2).reshape(c.d_model, c.heads * width)
        p = self.node("MatMul", x, self.weight(f"W_{which}", w / root))
        if c.projection_bias:
            p = self.node("Add", p, self.weight(f"b_{which}", self.w[f"b_{which}"].ravel() / root))
        p = self.node("Reshape", p, self.whole(0, 0, c.heads, width))
        return self.node("Transpose", p, perm=[0, 2, 1, 3])

    def feed_forward(self, h: str) -> str:
        z = self.node("Add", self.node("MatMul", h, self.weight("W_1")), self.weight("b_1"))
        match self.c.activation:
            case "relu":
                z = self.node("Relu", z)
            case "silu":
                z = self.node("Mul", z, self.node("Sigmoid", z))
            case "gelu":  # z·(1 + erf(z/√2))/2
                phi = self.node("Erf", self.node("Mul", z, self.weight("half_root", np.array(math.sqrt(0.5)))))
                phi = self.node("Add", phi, self.weight("one", np.array(1)))
                phi = self.node("Mul", phi, self.weight("half", np.array(0.5)))
                z = self.node("Mul", z, phi)
            case other:
                assert_never(other)
        return self.node("Add", self.node("MatMul", z, self.weight("W_2")), self.weight("b_2"))

    def norm(self, x: str, which: int) -> str:
        """(x − mean)/√(variance + eps)·gain + offset, over the last axis."""
        last = self.whole(-1)
        d = self.node("Sub", x, self.node("ReduceMean", x, last, keepdims=1))
        variance = self.node("ReduceMean", self.node("Mul", d, d), last, keepdims=1)
        root = self.node("Sqrt", self.node("Add", variance, self.weight("eps", np.array(self.c.norm_eps))))
        scaled = self.node("Mul", self.node("Div", d, root), self.weight(f"gain_{which}"))
        return self.node("Add", scaled, self.weight(f"offset_{which}"))

    def masked(self, scores: str) -> str:
        """Scores in which hidden tokens have −∞: here nothing is hidden."""
        return scores

    @abstractmethod
    def ends(self, helper: Any, kind: int) -> tuple[list[Any], list[Any]]:
        """What goes in and what comes out."""

    def model(self, onnx: Any) -> Any:
        helper, kind = onnx.helper, element(self.dtype)
        nodes = [helper.make_node(k, list(i), [o], name=o, **attributes) for k, i, o, attributes in self.nodes]
        widened, constants = low_constants(onnx, self.constants, self.stored)
        nodes = [*widened, *nodes]
        inputs, outputs = self.ends(helper, kind)
        graph = helper.make_graph(nodes, "onelayer", inputs, outputs, constants, doc_string=self.target[:1000])
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, producer_name="onelayer", opset_imports=opsets, ir_version=IR)


class SingleLengthGraph(Graph):
    """x [batch, D] → y [batch, *shape], for a layer of one length."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject.model, subject.target, subject.stored)
        self.subject = subject

    def tokens(self) -> tuple[str, str]:
        """(the tokens that are read, all tokens): x̂_j W^E + b^E + p_j, then the special tokens."""
        c = self.c
        if self.subject.approximation.vocabulary is not None:  # token numbers become unit vectors
            x = self.node("Unsqueeze", "x", self.whole(-1))
            x = self.node("Equal", x, self.weight("alphabet", np.arange(c.features_in)))
            x = self.node("Cast", x, to=element(self.dtype))
        else:
            x = self.node("Reshape", "x", self.whole(-1, c.tokens, c.features_in))
        x = self.node("Sub", x, self.weight("shift"))
        if self.w["scale"].size == 1:
            e = self.node("MatMul", x, self.weight("W_E", self.w["scale"] * self.w["W_E"]))
        else:
            e = self.node("MatMul", self.node("Mul", x, self.weight("scale")), self.weight("W_E"))
        e = self.node("Add", e, self.weight("b_E"))
        e = e if c.code == "none" else self.node("Add", e, self.weight("P"))
        if c.special_tokens:
            batch = self.node("Shape", "x", start=0, end=1)
            shape = self.node("Concat", batch, self.whole(c.special_tokens, c.d_model), axis=0)
            e = self.node("Concat", e, self.node("Expand", self.weight("S"), shape), axis=1)
        rows = c.read_rows
        if rows == slice(0, c.all_tokens):
            return e, e
        return self.node("Slice", e, self.whole(rows.start), self.whole(rows.stop), self.whole(1)), e

    def read(self, h: str) -> None:
        """Read-out, the places of the outputs, and their shape."""
        c, subject = self.c, self.subject
        h = self.node("ReduceMean", h, self.whole(1), keepdims=1) if c.readout == "mean" else h
        y = self.node("Add", self.node("MatMul", h, self.weight("W_R")), self.weight("b_R"))
        y = self.node("Gather", y, self.whole(*subject.places), axis=1)
        self.node("Reshape", y, self.whole(-1, *subject.shape), name="y")

    def ends(self, helper: Any, kind: int) -> tuple[list[Any], list[Any]]:
        x = helper.make_tensor_value_info("x", kind, ["batch", self.subject.dimension])
        y = helper.make_tensor_value_info("y", kind, ["batch", *self.subject.shape])
        return [x], [y]


def element(dtype: np.dtype[Any]) -> int:
    """ONNX's number for a dtype: FLOAT is 1, DOUBLE is 11."""
    return {"float32": 1, "float64": 11}[dtype.name]
