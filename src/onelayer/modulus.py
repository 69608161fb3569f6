"""The modulus of continuity: how far f can move when x moves by r.

    declared    the user says so; the certificate lists it as an assumption
    derived     proved from the formula by enclosures and bisection: Lipschitz constants L_j = max |∂_j f|, or, where a
                slope is unbounded (sqrt at 0), ω(r) from the oscillation over small boxes
    estimated   sampled; good for a forecast, never for a proof

Distances r are fractions of the sides of the box (the normalised maximum norm); Lipschitz constants are in the units of x.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from .errors import InputError
from .formula import Formula, Interval, gradient, interval
from .groups import terms_of

if TYPE_CHECKING:
    from .target import Target

BUDGET = 3000  # enclosures spent on one constant
CLOSE = 1.02  # a derived constant is at most this factor above a slope that was seen, budget permitting
FINEST = 2.0**-14  # a box this small, relative to the domain, with no finite slope: the slope is unbounded
Box = tuple[tuple[float, float], ...]  # in fractions of the sides


@dataclass(frozen=True)
class Modulus:
    """Lipschitz constants per coordinate, or ω(r); `kind` says how we know."""

    kind: Literal["declared", "derived", "estimated"]
    lipschitz: tuple[float, ...] | None = None
    omega: Callable[[float], float] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.lipschitz is not None:
            return f"{self.kind} Lipschitz constants {', '.join(f'{L:.4g}' for L in self.lipschitz)}"
        return f"{self.kind} modulus of continuity"


def modulus_of(
    target: "Target", lipschitz: float | Sequence[float] | None, omega: Callable[[float], float] | None
) -> Modulus:
    """The declared modulus, else the one derived from the formula, else an estimate."""
    D = target.dimension
    if lipschitz is not None:
        constants = [float(lipschitz)] * D if isinstance(lipschitz, int | float) else [float(L) for L in lipschitz]
        if len(constants) != D or not all(math.isfinite(L) and L >= 0 for L in constants):
            raise InputError(f"lipschitz: one number or {D}, finite and ≥ 0", f"{lipschitz}", "give a valid constant")
        return Modulus("declared", tuple(constants))
    if omega is not None:
        longest = float(target.domain.sides.max())
        return Modulus("declared", omega=lambda r: _checked(omega, r * longest))
    if target.formula is not None:
        derivation = Derivation(target.formula, target.domain.lower, target.domain.upper)
        constants_found = derivation.lipschitz()
        return Modulus("derived", constants_found, None if constants_found else derivation.omega)
    return Modulus("estimated", _estimated(target))


def _checked(omega: Callable[[float], float], r: float) -> float:
    value = float(omega(r))
    if not value >= 0:
        raise InputError("modulus(r) ≥ 0 for every r ≥ 0", f"modulus({r:g}) = {value}", "declare a valid modulus")
    return value


@dataclass(frozen=True)
class Derivation:
    """Proofs about a formula on a box, by best-first bisection."""

    formula: Formula
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @property
    def dimension(self) -> int:
        return len(self.lower)

    @cached_property
    def _used(self) -> tuple[int, ...]:
        return tuple(i - 1 for i in self.formula.variables)

    def lipschitz(self) -> tuple[float, ...] | None:
        """L_j ≥ max |∂_j f| over the box and all outputs, in the units of x; None if some slope is not bounded."""
        for output, used in enumerate(self.formula.output_variables):
            alone = Formula(self.formula.text, self.formula.names, (self.formula.outputs[output],))
            if not used and not gradient(alone, self._sides(((0.0, 1.0),) * self.dimension))[0][0].is_finite():
                raise InputError("a finite value of every output", f"none of output {output + 1}", "correct that output")
        constants = []
        for j in range(self.dimension):
            bound = 0.0
            for output in range(len(self.formula.outputs)):
                if j in (v - 1 for v in self.formula.output_variables[output]):
                    found = self._largest_slope(j, output)
                    if found is None:
                        return None
                    bound = max(bound, found)
            constants.append(bound)
        return tuple(constants)

    def _largest_slope(self, j: int, output: int) -> float | None:
        """An upper bound on |∂_j f_output|: the largest enclosure left after splitting where it matters."""
        alone = Formula(self.formula.text, self.formula.names, (self.formula.outputs[output],))
        which = self._linked(j, output)

        def slope(box: Box) -> float:
            found = gradient(alone, self._sides(box))[1][0][j]
            return found.magnitude() if found.is_finite() else math.inf

        seen = 0.0
        for bound, box in _best_first(slope, which, self.dimension):
            middle: Box = tuple(((a + b) / 2, (a + b) / 2) for a, b in box)
            at_middle = slope(middle)
            seen = max(seen, at_middle if math.isfinite(at_middle) else 0.0)
            if bound <= CLOSE * seen or bound <= 1e-300:
                return bound
            width = max(box[i][1] - box[i][0] for i in which)
            if not math.isfinite(bound) and width <= FINEST:
                return None
        return bound if math.isfinite(bound) else None

    def omega(self, r: float) -> float:
        """ω(r) ≥ |f(p) − f(q)| whenever p and q differ by at most r of a side in every coordinate.

        Let m be the lower corner of p and q. For m in a box B, both lie in B enlarged by r upward; so ω is at most the
        largest oscillation over such boxes, or Σ_j L_j r there if that is smaller.
        """
        key = math.ceil(math.log2(max(r, 1e-30)) * 4) / 4  # ω is non-decreasing: round r up to a power of 2^(1/4)
        if key not in self._known:
            self._known[key] = self._oscillation(2.0**key)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[float, float]:
        return {}

    def _oscillation(self, r: float) -> float:
        def oscillation(box: Box) -> float:
            around = self._sides(tuple((a, min(b + r, 1.0)) for a, b in box))
            values, partials = gradient(self.formula, around)
            if not all(v.is_finite() for v in values):
                return math.inf
            width = max(_up(v.upper() - v.lower()) for v in values)
            slopes = [
                sum(p.magnitude() * (s.upper() - s.lower()) for p, s in zip(row, around, strict=True) if p.is_finite())
                if all(p.is_finite() for p in row)
                else math.inf
                for row in partials
            ]
            return min(width, _up(max(slopes) * (1 + 1e-12)))

        for found in _best_first(oscillation, self._used, self.dimension):
            bound, box = found
            if max(box[i][1] - box[i][0] for i in self._used) <= r / 8:
                break
        if not math.isfinite(bound):
            at = [f"{s.lower():.6g}" for s in self._sides(box)]
            raise InputError(
                "a formula that is finite on the whole domain",
                f"no finite value could be proved near x = ({', '.join(at)})",
                "shrink the domain, or rewrite the formula there",
            )
        return bound

    def _linked(self, j: int, output: int) -> tuple[int, ...]:
        """The coordinates that ∂_j f_output can depend on: those of the additive terms that contain x_j."""
        terms = [v for v in terms_of(self.formula.outputs[output]) if j + 1 in v]
        return tuple(sorted({i - 1 for v in terms for i in v}))

    def _sides(self, box: Box) -> list[Interval]:
        """The box in the units of x, rounded outward but never beyond the domain."""
        sides = []
        for (a, b), low, high in zip(box, self.lower, self.upper, strict=True):
            start = max(low, math.nextafter(low + (high - low) * a, -math.inf)) if a > 0 else low
            end = min(high, math.nextafter(low + (high - low) * b, math.inf)) if b < 1 else high
            sides.append(interval(start, end))
        return sides


def _best_first(bound: Callable[[Box], float], which: tuple[int, ...], dimension: int) -> Iterator[tuple[float, Box]]:
    """Boxes with the largest bound first; each is then halved along its longest side. Every yielded bound covers all boxes."""
    start: Box = ((0.0, 1.0),) * dimension
    counter = itertools.count()
    heap = [(-bound(start), next(counter), start)]
    for _ in range(BUDGET // 3):
        negative, _, box = heap[0]
        yield -negative, box
        heapq.heappop(heap)
        axis = max(which, key=lambda i: box[i][1] - box[i][0]) if which else 0
        a, b = box[axis]
        middle = (a + b) / 2
        for side in ((a, middle), (middle, b)):
            part = (*box[:axis], side, *box[axis + 1 :])
            heapq.heappush(heap, (-bound(part), next(counter), part))
    yield -heap[0][0], heap[0][2]


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)


def _estimated(target: "Target") -> tuple[float, ...]:
    """1.5 times the steepest coordinate slope seen between close points: an estimate, not a bound."""
    rng = np.random.default_rng(0)
    D = target.dimension
    unit = rng.random((400, D))
    step = 1e-4
    base = target(target.domain.points(unit * (1 - step)))
    slopes = []
    for j in range(D):
        moved = unit * (1 - step)
        moved[:, j] += step
        slopes.append(
            1.5 * float(np.abs(target(target.domain.points(moved)) - base).max()) / step / target.domain.sides[j]
        )
    return tuple(slopes)
