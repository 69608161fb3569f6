"""Evaluators: an approximation with another attention, and how far that can take it from the target.

    softmax    the model itself, Eq. (5)–(8)
    linear     exact linear attention where heads share their keys, softmax averages elsewhere (`fast`)
    sparse     as linear, but heads of many memory tokens look only at those near the point (`cells`)
    adaptive   all heads cell by cell: saturated ones are not evaluated

"auto" is linear where the certificate covers that, too (those proved by interpolation do), softmax otherwise; on a GPU it is
linear, as the kernels are. A layer whose weights cannot be read as a sum of softmax averages (LayerNorm, most trained layers)
has the model alone, and so have points outside the domain.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from ...approximation import Approximation, Attention, Outside
from ...common.errors import InputError
from ...common.machine import device_of
from ...layer.arithmetic import arithmetic_of
from ...layer.reading import Reading, form_of_model
from ...layer.rounding.deployed import Deployment, deployed_rounding, edges
from ...model.transformer import SingleLayerTransformer
from ...proof.decision import deployment
from .kernels import summands
from .linear import Factored
from .sparse import EDGE, Sparse

MANY = 64  # tokens of a head from which sparse attention looks at it cell by cell
SHARE = 0.5  # of what the bound leaves of the tolerance, for the remainder
LITTLE = 1e-3  # of the tolerance: the remainder where the bound leaves nothing, and rounding that is small enough


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
    fast: Factored | Sparse | None

    def __call__(self, x: Any, outside: Outside = "allow") -> Any:
        """T(x) for one point or a batch, taken and given as `Approximation` does."""
        return self.approximation.answered(x, outside, self.values)

    def evaluate(
        self,
        source: str | Path,
        output: str | Path,
        outside: Outside = "allow",
        progress: Callable[[str, float], None] | None = None,
    ) -> int:
        """As `Approximation.evaluate`: all points of a file, in constant memory."""
        from ..files.streaming import evaluate_file

        return evaluate_file(self, Path(source), Path(output), outside, progress)

    def values(self, x: Tensor) -> Tensor:
        """[batch, outputs] for points [batch, D]."""
        given = x.to(self.device)
        if self.reading is None or self.fast is None:
            return self._by_model(given).to(x.device)
        hat = self.reading.frame(given)
        reach = min(self.reading.edge, EDGE) if isinstance(self.fast, Sparse) else self.reading.edge
        inside = (hat.abs() <= reach).all(dim=1)
        if inside.all():
            return self._quickly(given, hat).to(x.device)
        y = given.new_empty(len(x), len(self.reading.form.bias))
        y[inside], y[~inside] = self._quickly(given[inside], hat[inside]), self._by_model(given[~inside])
        return y.to(x.device)

    def _quickly(self, x: Tensor, hat: Tensor) -> Tensor:
        if not len(x):
            return x.new_empty(0, len(self.reading.form.bias)) if self.reading else x
        return self.fast(hat) if isinstance(self.fast, Sparse) else self.fast(x) if self.fast else self._by_model(x)

    def _by_model(self, x: Tensor) -> Tensor:
        return self.approximation.values_by(self.model, x)

    @cached_property
    def rounding(self) -> float:
        """How far floating point can take it from exact numbers on the domain, proved; infinite where nothing is."""
        if self.reading is None or len(self.reading.hinges):
            return float("inf")
        box, enough = _box(self.approximation), LITTLE * self.approximation.certificate.tolerance
        if isinstance(self.fast, Sparse):
            return self.fast.rounding(*box, enough)
        on_gpu = isinstance(self.fast, Factored) and self.device.type != "cpu"
        how = _how(self.reading, self.model, self.fast if on_gpu else None)
        return float(deployed_rounding(self.reading.form, *box, how, enough).max())

    @cached_property
    def bound(self) -> float:
        """sup |it − f| on the domain, as far as the certificate's bound reaches.

        The certificate covers the model's own softmax on the CPU; and linear attention, where it was proved by interpolation.
        """
        c = self.approximation.certificate
        if c.weights and c.weights != self.approximation.model.fingerprint():
            return float("inf")  # the weights are no longer those that the certificate speaks of
        covered = self.attention == "softmax" or (self.attention == "linear" and c.method == "analytic")
        if covered and self.device.type == "cpu":
            return c.bound
        return (c.bound + 2 * self.rounding + self.remainder) * (1 + 1e-12)


def evaluator(
    approximation: Approximation, attention: Attention = "auto", remainder: float | None = None, device: str = "cpu"
) -> Evaluator:
    """The approximation with that attention; `remainder` is what sparse and adaptive attention may leave out.

    By default that is half of what the certified bound leaves of the tolerance.
    """
    if attention not in get_args(Attention):
        raise InputError(f"attention, one of {', '.join(get_args(Attention))}", f"{attention!r}", "choose one of these")
    place, local = device_of(device), attention in ("sparse", "adaptive")
    if remainder is not None and not (local and 0 < remainder < float("inf")):
        found = f"remainder={remainder!r}" + ("" if local else f" with attention={attention!r}")
        raise InputError("a remainder above 0, for sparse or adaptive attention", found, "leave it out")
    if local and place.type != "cpu":
        raise InputError(f"attention={attention!r} on the CPU", f"device={device!r}", "use attention='linear' there")
    model = approximation.model if place.type == "cpu" else copy.deepcopy(approximation.model).to(place)
    reading = None if attention == "softmax" else _reading(approximation)
    if attention == "auto" and reading is not None:  # linear where the certificate speaks of it
        known = approximation.certificate.method == "analytic" and not len(reading.hinges)
        reading = reading if known or place.type != "cpu" else None
    if reading is None:
        if attention not in ("auto", "softmax"):
            found = "a layer that is no sum of softmax averages"
            raise InputError(f"attention={attention!r}", found, "use attention='softmax'")
        return Evaluator(approximation, "softmax", 0.0, place, model, None, None)
    hinges = (reading.hinges, reading.hinge_values)
    if not local:
        fast = Factored(reading.form, reading.frame, hinges, place)
        return Evaluator(approximation, "linear", 0.0, place, model, reading, fast)
    left = approximation.certificate.tolerance - approximation.certificate.bound
    spare = SHARE * left if left > 0 else LITTLE * approximation.certificate.tolerance
    allowed = spare if remainder is None else remainder
    how = _how(reading, model)
    cells = Sparse(reading.form, hinges, how, allowed, MANY if attention == "sparse" else 0)
    return Evaluator(approximation, attention, allowed, place, model, reading, cells)


def _reading(approximation: Approximation) -> Reading | None:
    """What the weights compute on the domain."""
    if approximation.vocabulary is not None:
        return None
    edge = float(torch.stack(_box(approximation)).abs().max())
    u = arithmetic_of(approximation.model.W_E.dtype).u
    return form_of_model(approximation.model, approximation.facts.places, edge * (1 + 4 * u))


def _box(approximation: Approximation) -> tuple[Tensor, Tensor]:
    """The domain in normalised coordinates."""
    model, domain = approximation.model, approximation.domain
    numbers = (domain.lower, domain.upper, model.shift.flatten().tolist(), model.scale.flatten().tolist())
    return edges(*(torch.tensor(t, dtype=torch.float64) for t in numbers))


def _how(reading: Reading, model: SingleLayerTransformer, fast: Factored | None = None) -> Deployment:
    """How the form is evaluated: on the CPU, or by the kernels of `fast`."""
    how = deployment(reading, arithmetic_of(model.W_E.dtype))
    if fast is None:
        return how
    heads, dtype = reading.form.heads, model.W_E.dtype
    beside = max(how.summands - heads, 0) + len(fast.plans[dtype].parts)  # coordinates and constants, kernels
    return replace(how, summands=summands(heads, dtype) + beside)
