"""What all entries on real numbers share: the box, its normalisation by a power of two, and the finished Approximation.

A scale that is a power of two makes the normalisation x̂ = (x − shift)·scale exact up to the rounding of x − shift.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...approximation import Approximation, Facts
from ...common.checks import require_whole
from ...common.errors import InputError
from ...common.numbers import at_most, exact
from ...layer.arithmetic import Arithmetic, arithmetic_of
from ...layer.assemble import Frame
from ...model.transformer import SingleLayerTransformer
from ...target.description import Description
from ...target.domain import Domain, domain_of
from ...target.sides import MOST_VARIABLES
from ...target.target import require_tolerance
from ..lemma import Lemma, approximation_by_lemma

OBSERVED = 4000  # points at which the error is observed
Ends = tuple[float, float]
Function = Callable[[np.ndarray], np.ndarray]  # [point, n] → [point, out], exact up to its own rounding


@dataclass(frozen=True)
class Entry:
    """One entry on n real numbers between two ends: what it computes, within which tolerance, in which arithmetic."""

    name: str
    description: str
    n: int
    outputs: int
    tolerance: float
    ends: Ends
    arithmetic: Arithmetic
    parameters: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    @property
    def domain(self) -> Domain:
        return domain_of([self.ends] * self.n)

    @property
    def span(self) -> float:
        """A power of two, at least the length of the interval."""
        side = self.ends[1] - self.ends[0]
        span = 2.0 ** math.ceil(math.log2(side))
        return 2 * span if span < side else span

    @property
    def frame(self) -> Frame:
        """x̂ ∈ [−½, ½] with a power of two as scale."""
        low, high = self.ends
        return Frame((low + (high - low) / 2,) * self.n, (1 / self.span,) * self.n)

    def holds(self, size: float) -> bool:
        """Whether numbers of that size are far from overflow."""
        return size < self.arithmetic.overflow / 8

    def require(self, lemma: Lemma | None) -> Lemma:
        """The lemma, if it proves the tolerance; a tolerance that rounding puts out of reach is refused with the numbers."""
        name, what = self.arithmetic.name, f"{self.name} of n = {self.n}"
        if lemma is None:
            found = "numbers that overflow, or weights that it cannot tell apart"
            raise InputError(f"{what} in {name}", found, "take a smaller domain, or a wider tolerance")
        if not (lemma.bound <= self.tolerance and math.isfinite(lemma.bound)):
            terms = ", ".join(f"{name} {at_most(value, 3)}" for name, value in lemma.terms.items())
            raise InputError(
                f"{what} within {exact(self.tolerance)} in {name}",
                f"no proof below {at_most(lemma.bound, 3)} ({terms})",
                f"ask for {at_most(1.1 * lemma.bound, 2)} or more" + (", or use float64" if name == "float32" else ""),
            )
        return lemma

    def approximation(
        self,
        model: SingleLayerTransformer,
        lemma: Lemma,
        function: Function,
        *,
        heads: tuple[tuple[str, int], ...],
        story: str,
        total: float | None = None,
        score: float | None = None,
        words: str = "",
    ) -> Approximation:
        """The finished Approximation; a layer that is read at positions has an output at each."""
        at_positions = model.config.readout == "position"
        description = Description(
            kind="gallery",
            text=self.description,
            domain=self.domain,
            shape=(self.n, 1),
            output_shape=(self.outputs,),
            entry=self.name,
            parameters=self.parameters,
        )
        x = self.domain.representable(points(self.n, self.ends, score or 0.0), self.arithmetic.name == "float32")
        facts = Facts(
            method="gallery",
            construction=self.name,
            layout="position" if at_positions else "token",
            heads=heads,
            units=sum(count for kind, count in heads if kind == "max"),
            total=total,
            seconds=time.perf_counter() - self.started,
            places=tuple(range(self.n)) if at_positions else (0,),
            largest_score=score,
            story=story,
        )
        return approximation_by_lemma(model, description, lemma, facts, self.tolerance, (x, function(x)), words)


def entry(
    name: str, description: str, n: int, outputs: int, tolerance: float, ends: Ends, dtype: str, **more: Any
) -> Entry:
    """An Entry with checked numbers; `more` are its other parameters."""
    require_length(n)
    require_tolerance(tolerance)
    box, arithmetic = domain_of([ends]), arithmetic_of(dtype)
    low, high = box.lower[0], box.upper[0]
    if arithmetic.name == "float32" and not len(box.representable(np.array([[low], [high]]), True)):
        raise InputError(f"a domain with {arithmetic.name} numbers in it", str(box), "use float64, or another domain")
    parameters = {"n": int(n), **more, "tolerance": tolerance, "domain": [low, high], "dtype": dtype}
    return Entry(name, description, int(n), outputs, tolerance, (low, high), arithmetic, parameters)


def require_length(n: int) -> None:
    require_whole("n", n, 1, MOST_VARIABLES)


def points(n: int, ends: Ends, sharpness: float) -> np.ndarray:
    """Random points, with ties, with corners, and with gaps around 1/sharpness, where smooth maxima are worst."""
    rng = np.random.default_rng(0)
    unit = rng.random((OBSERVED, n))
    kind = np.arange(OBSERVED) % 4
    unit[kind == 1] = np.round(unit[kind == 1] * 3) / 3
    unit[kind == 2] = np.round(unit[kind == 2])
    if sharpness > 0:
        close = rng.exponential(2.0, (int((kind == 3).sum()), n)) / sharpness
        unit[kind == 3] = np.clip(unit[kind == 3][:, :1] + close, 0.0, 1.0)
    low, high = ends
    return np.clip(low + (high - low) * unit, low, high)
