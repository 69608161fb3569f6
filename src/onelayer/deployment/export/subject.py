"""What every format starts from: the layer in the requested dtype, points of its domain, and the comparison with it.

An exported layer takes and returns what the approximation does: x [batch, D], in the order of the variables, and y of shape
[batch], or [batch, *output_shape] for several outputs. Token numbers are passed in x as they are.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ... import __version__
from ...approximation import Approximation
from ...common.errors import InputError
from ...common.numbers import at_least, at_most, exact
from ...common.outward import UP_FEW
from ...layer.arithmetic import Arithmetic, arithmetic_of
from ...layer.rounding.deployed import edges
from ...layer.rounding.online_softmax import arithmetic_of_model
from ...model.transformer import SingleLayerTransformer
from ...target.margin import in_scope
from ...target.points import uniform_points

Answer = Callable[[np.ndarray], np.ndarray]  # [point, D] in the exported dtype → [point, outputs]


@dataclass(frozen=True)
class Measured:
    """The largest observed difference from our own model, and the largest observed error where the target is known."""

    points: int
    difference: float
    error: float | None

    def words(self) -> dict[str, str]:
        """As metadata."""
        found = {
            "difference": f"{at_least(self.difference, 3)} observed at {self.points} points, from the layer in onelayer"
        }
        return (
            found if self.error is None else found | {"error": f"{at_least(self.error, 3)} observed at the same points"}
        )


@dataclass(frozen=True)
class Bound:
    """A proved bound, and what it bounds; `rounding` is how far the export is from the real function of its weights."""

    value: float
    of: str
    rounding: float | None = None

    def __str__(self) -> str:
        return f"{at_most(self.value)}: {self.of}"

    def unless_contradicted(self, measured: Measured | None) -> "Bound | None":
        """The bound; None where a difference above it was seen: then it is wrong, and nothing is claimed."""
        return None if measured is not None and measured.difference > self.value else self


@dataclass(frozen=True)
class Made:
    """Files in memory, by name; what was measured (None: nothing here could run them), and what is proved."""

    files: dict[str, bytes]
    measured: Measured | None
    bound: Bound | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """An approximation, and its model in the dtype of the export."""

    approximation: Approximation
    model: SingleLayerTransformer

    @property
    def arithmetic(self) -> Arithmetic:
        return arithmetic_of_model(self.model)

    @property
    def same(self) -> bool:
        """Whether the export keeps the dtype of the layer, so that all weights are the same."""
        return self.model.W_E.dtype == self.approximation.model.W_E.dtype

    @property
    def stored(self) -> str:
        """The format of the weights where it is another one than the arithmetic's: "bfloat16" or "int8"."""
        return self.approximation.certificate.weight_format if self.same else ""

    @property
    def dimension(self) -> int:
        return self.approximation.domain.dimension

    @property
    def outputs(self) -> int:
        return math.prod(self.approximation.output_shape)

    @property
    def places(self) -> tuple[int, ...]:
        return self.approximation.facts.places

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one answer."""
        given = self.approximation.output_shape
        return () if given == (1,) else given

    @property
    def target(self) -> str:
        return self.approximation.description.text

    @property
    def vocabulary(self) -> int | None:
        return self.approximation.vocabulary

    @property
    def reach(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(lowest, highest) x̂ of every token and feature on the domain, rounded outward; unit vectors for token numbers."""
        c, d = self.model.config, self.approximation.domain
        shift, scale = (t.double().flatten() for t in (self.model.shift, self.model.scale))
        ends = (d.lower, d.upper)
        if self.vocabulary is not None:
            ends = ((0.0,) * len(shift), (1.0,) * len(shift))
        lower, upper = (torch.tensor(t, dtype=torch.float64) for t in ends)
        low, high = edges(lower, upper, shift, scale)
        low, high = torch.minimum(low, high), torch.maximum(low, high)  # a trained scale may be negative
        return low.reshape(c.tokens, c.features_in), high.reshape(c.tokens, c.features_in)

    @property
    def apart(self) -> str:
        """How far the points that the certificate covers are from jumps; empty where it keeps no distance."""
        margin = self.approximation.certificate.margin
        return f", more than {exact(margin)} away from every jump" if margin else ""

    def about(self) -> dict[str, str]:
        """What the layer is, in words, as metadata."""
        a, c = self.approximation, self.approximation.certificate
        names = ", ".join(a.domain.names) if self.dimension <= 16 else f"{a.domain.names[0]}, …, {a.domain.names[-1]}"
        shape = "".join(f", {size}" for size in self.shape)
        return {
            "producer": f"onelayer {__version__}",
            "target": self.target,
            "domain": (c.domain if c.method == "lemma" else str(a.domain)) + self.apart,
            "input": f"x [batch, {self.dimension}]: {names}",
            "output": f"y [batch{shape}]",
            "dtype": self.arithmetic.name,
            **({"weights": f"{self.stored}, computed in {self.arithmetic.name}"} if self.stored else {}),
            "tolerance": c.tolerance_text,
            "verdict": f"{c.headline}, of the layer in onelayer, {c.arithmetic}",
            "bound": f"{c.stated_bound}, of the layer in onelayer, {c.arithmetic}",
        }

    def proved_words(self, bound: Bound) -> dict[str, str]:
        """A bound on the distance from our own layer, and what it makes of the certificate's, as metadata."""
        found, c, total = {"proved": str(bound)}, self.approximation.certificate, self.in_all(bound)
        if total is not None:
            where = f"on the domain{self.apart}"
            found["in all"] = f"an error of at most {at_most(total)} {where}, by the certificate{c.if_declared}"
        return found

    def in_all(self, bound: Bound | None) -> float | None:
        """How far the export is from f at most; None where that is not proved.

        The layer's computed answers are within the certificate's bound of f, and the export within its own of these. How the
        certificate's bound is made up is evidence, which nobody checks: it is not used.
        """
        c = self.approximation.certificate
        if bound is None or bound.rounding is None or not self.same or c.verdict != "CERTIFIED":
            return None
        return (c.bound + bound.value) * UP_FEW

    def points(self, count: int, seed: int) -> np.ndarray:
        """Random points of the domain and its corners, as numbers of the dtype; token numbers for token layers."""
        a = self.approximation
        x = a.domain.points(uniform_points(count, self.dimension, seed).numpy())
        x = np.rint(x) if a.vocabulary is not None else x
        x = a.domain.representable(x, self.arithmetic.name == "float32")
        return x[in_scope(a.target, x)] if a.target is not None else x

    def measure(self, answer: Answer, x: np.ndarray) -> Measured:
        """The exported layer compared with our own at the points x; values that are not finite are refused."""
        own = np.asarray(self.approximation(x), dtype=np.float64).reshape(len(x), -1)
        found = np.asarray(answer(x.astype(self.arithmetic.name)), dtype=np.float64).reshape(len(x), -1)
        if np.isfinite(own).all() and not np.isfinite(found).all():
            name = self.arithmetic.name
            change = "export in float64" if name == "float32" else "choose another format, or a smaller domain"
            raise InputError(f"a layer that can be evaluated in {name}", "values that are not finite", change)
        difference = float(np.abs(found - own).max(initial=0.0))
        target = self.approximation.target
        if target is None or target.data is not None or not len(x):
            return Measured(len(x), difference, None)
        return Measured(len(x), difference, float(np.abs(found - target(x).reshape(len(x), -1)).max()))


def subject_of(approximation: object, dtype: str | None, causal: bool = False) -> Subject:
    """The layer in `dtype` (its own, if None); one whose positions look back only if the format can have it, `causal`."""
    if not isinstance(approximation, Approximation):
        found = type(approximation).__name__
        raise InputError("an Approximation or a model folder", found, "pass what `build` made or wrote")
    approximation.require_unchanged()  # the files repeat what the certificate says
    wanted = approximation.model.W_E.dtype if dtype is None else arithmetic_of(dtype).dtype
    model = copy.deepcopy(approximation.model).to(wanted).eval()
    if not all(bool(t.isfinite().all()) for t in model.state_dict().values()):
        raise InputError(f"finite weights in {dtype or wanted}", "infinite or undefined ones", "export in float64")
    model.config.require_softmax("an export")
    if not causal:
        model.config.require_unmasked("an export")
    return Subject(approximation, model)
