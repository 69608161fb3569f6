"""Proofs about a formula on a box, by bisection: the largest slopes, the oscillation over small boxes, finiteness."""

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..common.errors import InputError
from ..common.numbers import point
from ..common.outward import UP_FEW
from ..formula import Condition, Formula, Interval, enclose, gradient, holds, interval
from ..formula.additive import terms_of
from ..formula.float_bounds import evaluate_defined
from ..formula.functions import natural_domain
from ..formula.simpler_kinks import one_sided
from ..formula.tree import Call, Number, Power, postorder

BUDGET = 3000  # enclosures spent on one constant
CLOSE = 1.02  # budget permitting, a derived constant is at most this factor above a slope that was seen
FINEST = 2.0**-14  # a box this small, relative to the domain, with no finite slope: the slope is unbounded
PIECES = 200  # into which a box without a finite enclosure is cut, at most
TINY = 2.0**-40  # in a box this small with no finite enclosure, f is evaluated at points
Box = tuple[tuple[float, float], ...]  # in fractions of the sides


@dataclass(frozen=True)
class FormulaOnBox:
    """Proofs about a formula on a box, by best-first bisection."""

    formula: Formula
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @property
    def dimension(self) -> int:
        return len(self.lower)

    @cached_property
    def _one_sided(self) -> Formula:
        """The same function on the box, for its slopes: without the kinks that the box does not cross."""
        return one_sided(self.formula, self.lower, self.upper)

    @cached_property
    def _used(self) -> tuple[int, ...]:
        return tuple(i - 1 for i in self.formula.variables)

    def lipschitz(self) -> tuple[float, ...] | None:
        """L_j ≥ max |∂_j f| over the box and all outputs, in the units of x; None if some slope is not bounded."""
        for output, used in enumerate(self.formula.output_variables):
            alone = replace(self.formula, outputs=(self.formula.outputs[output],))
            if not used and not enclose(alone, self.sides_of(((0.0, 1.0),) * self.dimension))[0].is_finite():
                raise InputError(
                    "a finite value of every output", f"none of output {output + 1}", "correct that output"
                )
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
        alone = replace(self._one_sided, outputs=(self._one_sided.outputs[output],))
        which = self._linked(j, output)

        def slope(box: Box) -> float:
            found = gradient(alone, self.sides_of(box))[1][0][j]
            return found.magnitude() if found.is_finite() else math.inf

        seen = 0.0
        for bound, box in best_first(slope, which, self.dimension):
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
        if key not in self._oscillations:
            self._oscillations[key] = self._oscillation(2.0**key)
        return self._oscillations[key]

    @cached_property
    def _oscillations(self) -> dict[float, float]:
        return {}

    def _oscillation(self, r: float) -> float:
        def oscillation(box: Box) -> float:
            around = tuple((a, min(b + r, 1.0)) for a, b in box)
            sides = self.sides_of(around)
            _, partials = gradient(self._one_sided, sides)
            slopes = [
                sum(p.magnitude() * (s.upper() - s.lower()) for p, s in zip(row, sides, strict=True))
                if all(p.is_finite() for p in row)
                else math.inf
                for row in partials
            ]
            return min(self._spread(around), _up(max(slopes) * UP_FEW))

        for bound, box in best_first(oscillation, self._used, self.dimension):
            width = max(box[i][1] - box[i][0] for i in self._used)
            if width <= (r / 8 if math.isfinite(bound) else min(r / 8, FINEST)):
                break
        if not math.isfinite(bound):
            raise self._not_finite(box)
        return bound

    def _spread(self, box: Box) -> float:
        """The largest range of an output over the box, in pieces where the whole has no finite enclosure."""
        low, high = [math.inf] * len(self.formula.outputs), [-math.inf] * len(self.formula.outputs)
        pending = [box]
        for _ in range(PIECES):
            if not pending:
                return max(_up(b - a) for a, b in zip(low, high, strict=True))
            piece = pending.pop()
            balls = enclose(self.formula, self.sides_of(piece))
            if all(ball.is_finite() for ball in balls):
                low = [min(a, ball.lower()) for a, ball in zip(low, balls, strict=True)]
                high = [max(b, ball.upper()) for b, ball in zip(high, balls, strict=True)]
            else:
                pending += _halves(piece, self._used)
        return math.inf

    def require_finite(self) -> None:
        """Refuse a formula with a pole or an undefined value in the box; one that is merely hard to bound passes.

        First f is evaluated at random points. Then boxes without a finite enclosure are halved down to 2^−40 of a side,
        where f is evaluated again: a pole shows.
        """
        low, high = np.array(self.lower), np.array(self.upper)
        unit = np.random.default_rng(1).random((500, self.dimension))
        unit[:32] = np.round(unit[:32])  # some corners
        x = np.clip(low + (high - low) * unit, low, high)
        bad = ~np.isfinite(evaluate_defined(self.formula, x)).all(axis=1)
        if bad.any():
            raise self._not_finite_at(x[int(bad.argmax())])
        pending: list[Box] = [((0.0, 1.0),) * self.dimension]
        for _ in range(BUDGET):
            if not pending:
                return
            box = pending.pop()
            if all(ball.is_finite() for ball in enclose(self.formula, self.sides_of(box))):
                continue
            if not self._used or max(box[i][1] - box[i][0] for i in self._used) <= TINY:
                if self._wild_at(box):
                    raise self._not_finite(box)
                return
            pending += _halves(box, self._used)

    def is_defined(self, within: Condition | None = None) -> bool:
        """Whether f is proved to be defined in the whole box, or where the condition holds.

        Only arguments that are cut (`real_balls`) are in doubt: anything else without a value has no finite bound either.
        """
        roots = [tree for tree in postorder(self.formula.outputs) if isinstance(tree, Call | Power)]
        if not any(natural_domain(t.name) if isinstance(t, Call) else isinstance(t.exponent, Number) for t in roots):
            return True
        pending: list[Box] = [((0.0, 1.0),) * self.dimension]
        for _ in range(BUDGET):
            if not pending:
                return True
            sides = self.sides_of(box := pending.pop())
            if within is not None and holds(within, sides) is False:
                continue
            if all(ball.is_finite() for ball in enclose(self.formula, sides, strict=True)):
                continue
            if not self._used or max(box[i][1] - box[i][0] for i in self._used) <= TINY:
                return False
            pending += _halves(box, self._used if within is None else range(self.dimension))
        return False

    def _wild_at(self, box: Box) -> bool:
        """Whether values in a tiny box are not finite, or vastly larger than elsewhere."""
        low, high = np.array(self.lower), np.array(self.upper)
        unit = np.random.default_rng(0).random((64, self.dimension))
        ends = np.array(box)
        here = evaluate_defined(self.formula, low + (high - low) * (ends[:, 0] + (ends[:, 1] - ends[:, 0]) * unit))
        elsewhere = np.abs(evaluate_defined(self.formula, low + (high - low) * unit))
        usual = float(np.nanmedian(elsewhere)) if np.isfinite(elsewhere).any() else 0.0
        return not np.isfinite(here).all() or float(np.abs(here).max()) > 1e8 * (1 + usual)

    def _not_finite(self, box: Box) -> InputError:
        return self._not_finite_at(np.array([(s.lower() + s.upper()) / 2 for s in self.sides_of(box)]))

    def _not_finite_at(self, x: np.ndarray) -> InputError:
        return InputError(
            "a formula that is finite on the whole domain",
            f"no finite value near x = {point(x.tolist())}",
            "shrink the domain, or rewrite the formula there",
        )

    def _linked(self, j: int, output: int) -> tuple[int, ...]:
        """The coordinates that ∂_j f_output can depend on: those of the additive terms that contain x_j."""
        terms = [v for v in terms_of(self.formula.outputs[output]) if j + 1 in v]
        return tuple(sorted({i - 1 for v in terms for i in v}))

    def sides_of(self, box: Box) -> list[Interval]:
        """The box in the units of x, rounded outward but never beyond the domain."""
        sides = []
        for (a, b), low, high in zip(box, self.lower, self.upper, strict=True):
            start = max(low, math.nextafter(low + (high - low) * a, -math.inf)) if a > 0 else low
            end = min(high, math.nextafter(low + (high - low) * b, math.inf)) if b < 1 else high
            sides.append(interval(start, end))
        return sides


def best_first(bound: Callable[[Box], float], which: tuple[int, ...], dimension: int) -> Iterator[tuple[float, Box]]:
    """Boxes with the largest bound first; each is then halved along its longest side. Every yielded bound covers all boxes."""
    start: Box = ((0.0, 1.0),) * dimension
    counter = itertools.count()
    heap = [(-bound(start), next(counter), start)]
    for _ in range(BUDGET // 3):
        negative, _, box = heap[0]
        yield -negative, box
        heapq.heappop(heap)
        for part in _halves(box, which):
            heapq.heappush(heap, (-bound(part), next(counter), part))
    yield -heap[0][0], heap[0][2]


def _halves(box: Box, which: Sequence[int]) -> list[Box]:
    """The two halves along the longest of the sides `which`."""
    axis = max(which, key=lambda i: box[i][1] - box[i][0]) if which else 0
    a, b = box[axis]
    middle = (a + b) / 2
    return [(*box[:axis], side, *box[axis + 1 :]) for side in ((a, middle), (middle, b))]


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)
