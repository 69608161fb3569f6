"""The programs and kernels that evaluate a layer, what is assumed of each, and how it is run."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from onelayer.deployment.attention.evaluator import program_of
from onelayer.deployment.attention.kernels import KERNELS
from onelayer.deployment.attention.linear import LinearAttention
from onelayer.deployment.export.onnx import SingleLengthGraph, packages, session_of
from onelayer.deployment.export.subject import subject_of
from onelayer.layer.arithmetic import arithmetic_of
from onelayer.layer.reading import Reading, form_of_model
from onelayer.layer.rounding.deployed import FormProgram
from onelayer.layer.rounding.online_softmax import CUDA, FUSED, MEMORY_EFFICIENT, ONNX_RUNTIME, Backend
from onelayer.model.transformer import SingleLayerTransformer

OWN = Backend("torch, softmax", {"float64": 2.0, "float32": 2.0})
Answer = Callable[[torch.Tensor], torch.Tensor]  # points [batch, D] → [batch, outputs], both on the CPU


@dataclass(frozen=True)
class Program:
    """A way to evaluate a layer: what is assumed of it, and how it is run."""

    name: str
    backend: Backend
    run: Callable[[SingleLayerTransformer, Reading], Answer]

    def rounding(self, model: SingleLayerTransformer, reading: Reading) -> FormProgram:
        """How its rounding is bounded; our own kernels evaluate the form."""
        if self.backend is KERNELS:
            return program_of(reading, model.W_E.dtype, LinearAttention(reading.form, reading.frame))
        own = self.backend.arithmetic(arithmetic_of(model.W_E.dtype), model.config.all_tokens)
        again = form_of_model(model, edge=reading.edge, arithmetic=own)
        assert again is not None
        return again.program


class Contiguous(SingleLayerTransformer):
    """A model whose heads of width one are laid out as all kernels want them."""

    def _project(self, x: torch.Tensor, which: str) -> torch.Tensor:
        return super()._project(x, which).clone(memory_format=torch.contiguous_format)


def by_model(
    fused: SDPBackend | None = None, device: str = "cpu"
) -> Callable[[SingleLayerTransformer, Reading], Answer]:
    """The model itself, or with one of torch's kernels; a kernel that does not take the layer raises RuntimeError."""

    def run(model: SingleLayerTransformer, _: Reading) -> Answer:
        c, D = model.config, model.config.tokens * model.config.features_in
        chosen = Contiguous(replace(c, attention="fused" if fused else "softmax"), dtype=model.W_E.dtype)
        chosen.load_state_dict(model.state_dict())
        chosen = chosen.to(device)

        @torch.no_grad()
        def answer(x: torch.Tensor) -> torch.Tensor:
            with sdpa_kernel(fused or SDPBackend.MATH), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # why a kernel does not take a layer
                return chosen(x.to(device).reshape(-1, c.tokens, D // c.tokens)).flatten(1).cpu()

        return answer

    return run


def by_onnx(model: SingleLayerTransformer, _: Reading) -> Answer:
    """The graph of an export in ONNX Runtime."""
    from exporting import wrapped

    onnx, runtime = packages()
    graph = SingleLengthGraph(subject_of(wrapped(model), None))
    graph.read(graph.sublayers(*graph.tokens()))
    session = session_of(runtime, graph.model(onnx))
    return lambda x: torch.from_numpy(session.run(["y"], {"x": x.numpy()})[0]).reshape(len(x), -1)


def by_form(device: str = "cpu") -> Callable[[SingleLayerTransformer, Reading], Answer]:
    """`approx.fast()`: linear attention, on a GPU by our own kernels."""

    def run(_: SingleLayerTransformer, reading: Reading) -> Answer:
        fast = LinearAttention(reading.form, reading.frame, device=device)
        return lambda x: fast(x.to(device)).cpu()

    return run


def programs(device: str) -> list[Program]:
    """What there is on a CPU, or on an NVIDIA card."""
    if device == "cpu":
        return [
            Program("torch, softmax", OWN, by_model()),
            Program("torch, linear attention", OWN, by_form()),
            Program("torch, fused: flash", FUSED, by_model(SDPBackend.FLASH_ATTENTION)),
            Program("torch, fused: math", FUSED, by_model(SDPBackend.MATH)),
            Program("ONNX Runtime", ONNX_RUNTIME, by_onnx),
        ]
    return [
        Program("torch, softmax", CUDA, by_model(None, device)),
        Program("torch, fused: math", CUDA, by_model(SDPBackend.MATH, device)),
        Program("torch, fused: memory-efficient", MEMORY_EFFICIENT, by_model(SDPBackend.EFFICIENT_ATTENTION, device)),
        Program("our kernels (Triton)", KERNELS, by_form(device)),
    ]


def kernel_refuses(error: RuntimeError) -> bool:
    """Whether torch has no such kernel for these heads, or none at all."""
    return "No available kernel" in str(error) or "No viable backend" in str(error)
