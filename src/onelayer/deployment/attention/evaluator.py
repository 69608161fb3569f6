"""An approximation with another attention, and how far that can take it from the target.

    softmax    the model itself, Eq. (5)–(8), also where its own attention is another
    fused      the model with torch's `scaled_dot_product_attention`, which may go through the tokens in blocks; on a GPU in its
               form `math`, the one that exists there for float64 and for heads of any width
    linear     exact linear attention where heads share their keys, softmax averages elsewhere (`linear`)
    sparse     as linear, but heads of many memory tokens attend only to those near the point (`sparse`)
    adaptive   all heads cell by cell: saturated ones are not evaluated

"auto" is linear where the certificate covers that too (those proved by interpolation do), softmax otherwise; on a GPU it is
linear, as the kernels are. A layer whose weights cannot be read as a sum of softmax averages (LayerNorm, most trained layers)
is always evaluated by the model itself, and so are points outside the domain.
"""

import copy
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ...approximation import Approximation, Attention
from ...common.checks import require_choice
from ...common.errors import InputError
from ...common.machine import device_of
from ...common.outward import UP_FEW
from ...common.progress import Progress
from ...layer.arithmetic import Arithmetic, arithmetic_of
from ...layer.reading import Reading, form_of_model
from ...layer.rounding.deployed import FormProgram, edges
from ...layer.rounding.online_softmax import CUDA, arithmetic_of_model
from ...model.transformer import SingleLayerTransformer
from ...target.description import Outside
from .kernels import card, summands
from .linear import LinearAttention
from .shared_keys import EDGE
from .sparse import SparseAttention

SPARSE_TOKENS = 64  # sparse attention evaluates heads with at least this many tokens cell by cell
REMAINDER_SHARE = 0.5  # of the gap between bound and tolerance, given to the remainder
NEGLIGIBLE = 1e-3  # share of the tolerance: the remainder where there is no gap; rounding that is small enough


@dataclass(frozen=True, eq=False)
class Evaluator:
    """T by another attention: call it as you call the approximation.

    On the domain |it − T| ≤ rounding + remainder, T being the function of the weights in exact numbers.
    """

    approximation: Approximation
    attention: str  # "auto" resolved
    remainder: float
    device: torch.device
    model: SingleLayerTransformer
    reading: Reading | None
    fast: LinearAttention | SparseAttention | None

    def __call__(self, x: Any, outside: Outside = "allow") -> Any:
        """T(x) for one point or a batch, in the shapes that `Approximation` takes and returns."""
        self.approximation.require_same_dtype()
        return self.approximation.call_with(self.values, x, outside)

    def covers(self, x: Any) -> Any:
        """Of which points the certificate speaks, and so `bound` (`Approximation.covers`)."""
        return self.approximation.covers(x)

    def evaluate(
        self,
        source: str | Path,
        output: str | Path,
        outside: Outside = "allow",
        progress: Progress | None = None,
        overwrite: bool = False,
        dask: str | None = None,
    ) -> int:
        """All points of a file or of a folder of parts, in constant memory, as `Approximation.evaluate` does."""
        from ..files.parts import evaluate_points

        return evaluate_points(self, Path(source), Path(output), outside, progress, None, overwrite, dask).points

    def values(self, x: Tensor) -> Tensor:
        """[batch, outputs] for points [batch, D]."""
        given = x.to(self.device)
        if self.reading is None or self.fast is None:
            return self._by_model(given).to(x.device)
        hat, reach, points = self.reading.frame(given), self.reading.edge, given
        if isinstance(self.fast, SparseAttention):
            reach, points = min(reach, EDGE), hat
        inside = (hat.abs() <= reach).all(dim=1)
        if len(x) and inside.all():
            return self.fast(points).to(x.device)
        y = given.new_empty(len(x), len(self.reading.form.bias))
        if inside.any():
            y[inside] = self.fast(points[inside])
        if not inside.all():
            y[~inside] = self._by_model(given[~inside])
        return y.to(x.device)

    def _by_model(self, x: Tensor) -> Tensor:
        fused = self.model.config.attention == "fused" and self.device.type != "cpu"
        with sdpa_kernel(SDPBackend.MATH) if fused else nullcontext():
            return self.approximation.values_of(self.model, x)

    @cached_property
    def rounding(self) -> float:
        """A proved bound on how far floating point takes it from exact numbers on the domain; infinite if none is proved."""
        own = _of_device(self.model, self.device)
        reading = self.reading if self.fast is not None else _reading(self.approximation, self.model, own)
        if reading is None or len(reading.hinges):
            return float("inf")
        box, enough = _box(self.approximation), NEGLIGIBLE * self.approximation.certificate.tolerance
        read = float(reading.error.max())  # how far what was read from the weights may be from their function
        if isinstance(self.fast, SparseAttention):
            found = self.fast.rounding(*box, enough)
            if reading.edge > EDGE:  # what lies beyond is answered by the model
                found = max(found, float(reading.program.rounding(*box, enough).max()))
            return (found + read) * UP_FEW
        on_gpu = isinstance(self.fast, LinearAttention) and self.device.type != "cpu"
        program = reading.program
        if isinstance(self.fast, LinearAttention):
            program = program_of(reading, self.model.W_E.dtype, self.fast if on_gpu else None)
        return (float(program.rounding(*box, enough).max()) + read) * UP_FEW

    @cached_property
    def bound(self) -> float:
        """A bound on |it − f| at every point that is covered (`covers`), if the certificate's bound is proved.

        The certificate covers the model itself on the CPU and, where it was proved by interpolation, linear attention. Any other
        evaluation is within its own rounding of the real function, and so is the model, whose rounding is no larger.
        """
        c = self.approximation.certificate
        if not self.approximation.unchanged:
            return float("inf")  # this is no longer the model that was certified
        hinges = self.reading is not None and len(self.reading.hinges) > 0
        covered = self.attention == "softmax" or (self.attention == "linear" and c.method == "analytic" and not hinges)
        if covered and self.device.type == "cpu":
            return c.bound
        return (c.bound + 2 * self.rounding + self.remainder) * UP_FEW


def evaluator(
    approximation: Approximation, attention: Attention = "auto", remainder: float | None = None, device: str = "cpu"
) -> Evaluator:
    """The approximation with this attention; `remainder` bounds the error that sparse and adaptive attention may add.

    By default it is half of the gap between the certified bound and the tolerance.
    """
    require_choice("attention", attention, get_args(Attention))
    approximation.require_same_dtype()
    place, local = device_of(device), attention in ("sparse", "adaptive")
    if remainder is not None and not (local and 0 < remainder < float("inf")):
        found = f"remainder={remainder!r}" + ("" if local else f" with attention={attention!r}")
        raise InputError("a remainder above 0, for sparse or adaptive attention", found, "leave it out")
    if local and place.type != "cpu":
        raise InputError(f"attention={attention!r} on the CPU", f"device={device!r}", "use attention='linear' there")
    model = _fused(approximation.model) if attention == "fused" else approximation.model
    model = model if place.type == "cpu" else copy.deepcopy(model).to(place)
    if attention == "fused":
        return Evaluator(approximation, attention, 0.0, place, model, None, None)
    reading = None if attention == "softmax" else _reading(approximation, model)
    if attention == "auto" and reading is not None:  # linear where the certificate covers it
        covered = approximation.certificate.method == "analytic" and not len(reading.hinges)
        reading = reading if covered or place.type != "cpu" else None
    if reading is None:
        if attention not in ("auto", "softmax"):
            found = "a layer that is no sum of softmax averages"
            raise InputError(f"attention={attention!r}", found, "use attention='softmax'")
        return Evaluator(approximation, "softmax", 0.0, place, model, None, None)
    hinges = (reading.hinges, reading.hinge_values)
    if not local:
        fast = LinearAttention(reading.form, reading.frame, hinges, place)
        return Evaluator(approximation, "linear", 0.0, place, model, reading, fast)
    if remainder is None:
        c = approximation.certificate
        gap = c.tolerance - c.bound
        remainder = REMAINDER_SHARE * gap if gap > 0 else NEGLIGIBLE * c.tolerance
    many = SPARSE_TOKENS if attention == "sparse" else 0
    sparse = SparseAttention(reading.form, hinges, program_of(reading, model.W_E.dtype), remainder, many)
    return Evaluator(approximation, attention, remainder, place, model, reading, sparse)


def _fused(model: SingleLayerTransformer) -> SingleLayerTransformer:
    """The same weights, evaluated by torch's fused attention."""
    model.config.require_softmax("fused evaluation")
    found = SingleLayerTransformer(replace(model.config, attention="fused"), dtype=model.W_E.dtype)
    found.load_state_dict(model.state_dict())
    return found.train(model.training)


def _of_device(model: SingleLayerTransformer, device: torch.device) -> Arithmetic:
    """The arithmetic of the model itself on a device."""
    if device.type == "cpu":
        return arithmetic_of_model(model)
    return CUDA.arithmetic(arithmetic_of(model.W_E.dtype), model.config.all_tokens)


def _reading(
    approximation: Approximation, model: SingleLayerTransformer, arithmetic: Arithmetic | None = None
) -> Reading | None:
    """What the weights compute on the domain; None if that is no sum of softmax averages."""
    if approximation.vocabulary is not None:
        return None
    edge = float(torch.stack(_box(approximation)).abs().max())
    u = arithmetic_of(model.W_E.dtype).u
    return form_of_model(copy.deepcopy(model).cpu(), approximation.facts.places, edge * (1 + 4 * u), arithmetic)


def _box(approximation: Approximation) -> tuple[Tensor, Tensor]:
    """The domain in normalised coordinates."""
    model, domain = approximation.model, approximation.domain
    numbers = (domain.lower, domain.upper, model.shift.flatten().tolist(), model.scale.flatten().tolist())
    return edges(*(torch.tensor(t, dtype=torch.float64) for t in numbers))


def program_of(reading: Reading, dtype: torch.dtype, fast: LinearAttention | None = None) -> FormProgram:
    """How the form is evaluated: on the CPU, or by the kernels of `fast`."""
    form, own = reading.form, arithmetic_of(dtype)
    if fast is None:
        return FormProgram.of_form(form, own, reading.frame, stores=True)
    terms = summands(form.heads, dtype) + form.dimension + 8 + len(fast.compiled[dtype].parts)
    return FormProgram.of_form(form, card(own), reading.frame, terms, stores=True)
