"""Aiming a little beside f, so that the layer has the properties that f has.

A layer within ε of an increasing f need not be increasing: its slopes are off by a little, and where those of f are almost 0 that
is too much. So the layer is fitted to f̃, which is within about ε/2 of f and has the property with room to spare, to the rest
of ε, and its slopes to what that room allows:

    increasing, decreasing    f̃ = f ± δ·(x_i − middle)
    convex, concave           f̃ = f ± δ·((x_i − middle)² − half of what that reaches)
    T <= c, T >= c            f̃ = f ∓ δ
    Lipschitz c, or both      f̃ = (1 − δ)·f + δ·middle

First f itself is tried, and where f has room enough f̃ is f. Whether the layer then has the property is proved afterwards, and
so is its error with respect to f. Second derivatives are not fitted: further attempts aim at smaller errors, which make them
smaller too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..common.budget import Budget
from ..common.errors import InputError
from ..common.numbers import point
from ..formula import Formula, to_text
from ..formula.tree import IntegerPower, Negation, Node, Number, Product, Sum, Variable
from ..proof.properties.judge import Judgement, judge
from ..proof.properties.real_function import formula_function
from ..proof.properties.statement import Statement, read
from ..proof.slopes import has_jumps, slopes_of
from ..target.points import judging_points
from ..target.target import Target
from .request import Request

LEANING, FITTED = 0.5, 0.45  # shares of the tolerance: for f̃ − f, and for the layer's distance from f̃
AMPLE = 4.0  # times the room that leaning makes: if f has that much already, f̃ is f
SLOPE_SHARE = 0.7  # share of the room that errors of slopes may take
CLOSER = (1.0, 0.25, 0.06)  # times the tolerance, attempt by attempt
JUDGING_TIME = 0.05  # share of the seconds for the question whether f has the property
POINTS = 2_000  # at which the range of f is looked at


def statements_of(properties: Sequence[str], target: Target) -> tuple[Statement, ...]:
    """The properties that are asked for, of a target that is a formula."""
    if isinstance(properties, str) or not isinstance(properties, Sequence):
        raise InputError("properties, a list of texts", repr(properties), 'give for instance ["increasing in x1"]')
    found = tuple(read(text, target.domain.names) for text in properties)
    if found and target.formula is None:
        raise InputError("a formula, whose properties are known", target.kind, "give f as a formula, or no properties")
    return found


def attempts(request: Request, statements: Sequence[Statement]) -> Iterator[Request]:
    """The requests to try in turn, the one that was made first. Refuses a property that f does not have."""
    if not statements:
        yield request
        return
    subject = formula_function(request.target)
    judged = [(s, judge(subject, s, request.budget.share(JUDGING_TIME))) for s in statements]
    for statement, found in judged:
        if found.verdict == "REFUTED":
            points = " and ".join(map(point, found.witness or ())) or "everywhere"
            change = "leave the property out, or change f or its domain"
            raise InputError(
                f"a function that has the property {statement.text!r}", f"one that has not: {points}", change
            )
    yield replace(request, budget=request.budget.share(1 / (len(CLOSER) + 1)))
    lean, slopes = Lean.toward(request, judged), slopes_of(request.target)
    smooth = slopes is not None and not has_jumps(slopes)
    for number, closer in enumerate(CLOSER):
        slope = lean.slope_tolerance if request.method == "polished" and smooth else None
        given = [t for t in (slope, request.slope_tolerance) if t is not None]
        yield replace(
            request,
            target=lean.target,
            tolerance=lean.tolerance * closer,
            slope_tolerance=min(given) * closer if given else None,
            budget=request.budget.share(1 / (len(CLOSER) - number)),
        )
        if request.budget.over():
            return


@dataclass(frozen=True)
class Lean:
    """f̃, how close the layer has to come to it, and its slopes to those of f̃."""

    target: Target
    tolerance: float
    slope_tolerance: float | None = None

    @staticmethod
    def toward(request: Request, judged: Sequence[tuple[Statement, Judgement]]) -> "Lean":
        """What makes room for all the statements."""
        wanted = [(s, found) for s, found in judged if not s.negated]
        share = LEANING * request.tolerance / max(len(wanted), 1)
        lean, leaned = Lean(request.target, (LEANING + FITTED) * request.tolerance), False
        for statement, found in wanted:
            room = min((statement.room(e.reached_low, e.reached_high) for e in found.enclosures), default=0.0)
            own = _Nudge(request.target, statement, share, shrinks=_has_opposite(statement, wanted))
            if not room >= AMPLE * own.gain:
                lean, leaned, room = replace(lean, target=own.leaned(lean.target)), True, max(room, 0.0) + own.gain
            slope = room * own.slope_per_room
            if slope > 0:
                slope = min(slope, lean.slope_tolerance or slope)
                lean = replace(lean, slope_tolerance=slope)
        return replace(lean, tolerance=FITTED * request.tolerance) if leaned else lean


@dataclass(frozen=True)
class _Nudge:
    """One statement and the share of the tolerance that leaning toward it may take."""

    target: Target
    statement: Statement
    share: float
    shrinks: bool  # toward the middle, since there are limits on both sides

    @property
    def side(self) -> float:
        return float(self.target.domain.sides[self.statement.coordinate])

    @property
    def sign(self) -> int:
        return 1 if self.statement.least is not None else -1

    @property
    def factor(self) -> float:
        """δ: what the term is multiplied with."""
        if self.shrinks:
            low, high = self._range()
            return min(self.share / max(high - low, self.share), 0.5)
        return self.share * (1.0, 2 / self.side, 8 / self.side**2)[self.statement.order]

    @property
    def gain(self) -> float:
        """The room that leaning makes."""
        if self.shrinks:
            low, high = self._range()
            most = self.statement.most
            return self.factor * (most.below if self.statement.order and most else (high - low) / 2)
        return self.factor * (1.0, 1.0, 2.0)[self.statement.order]

    @property
    def slope_per_room(self) -> float:
        """How far slopes may be off for every unit of room; 0 if slopes do not count."""
        return SLOPE_SHARE * (0.0, 1.0, self.side / 8)[self.statement.order]

    def leaned(self, target: Target) -> Target:
        """The target with the term added."""
        formula = target.formula
        assert formula is not None
        trees = tuple(self._leaned(tree) for tree in formula.outputs)
        text = "; ".join(to_text(tree, formula.names) for tree in trees)
        return target.part(Formula(text, formula.names, trees, limits=formula.limits))

    def _leaned(self, tree: Node) -> Node:
        delta, domain, i = Number(Fraction(self.factor)), self.target.domain, self.statement.coordinate
        if self.shrinks:
            low, high = self._range()
            rest = Number(1 - Fraction(self.factor))
            return Sum((Product((rest, tree)), _signed(Fraction(self.factor) * Fraction(low / 2 + high / 2))))
        middle = Fraction(domain.lower[i] / 2 + domain.upper[i] / 2)
        if self.statement.order == 0:
            term: Node = delta
        else:
            along: Node = Sum((Variable(i + 1), _signed(-middle)))
            if self.statement.order == 2:
                along = Sum((IntegerPower(along, 2), _signed(-(Fraction(self.side) ** 2) / 8)))
            term = Product((delta, along))
        return Sum((tree, term if self.sign > 0 else Negation(term)))

    def _range(self) -> tuple[float, float]:
        """What f was seen to span, all outputs together."""
        unit = judging_points(POINTS, self.target.dimension, 0).numpy()
        x = self.target.domain.points(unit)
        values = self.target.values(x[self.target.domain.contains(x)])
        good = values[np.isfinite(values)]
        return (float(good.min()), float(good.max())) if len(good) else (0.0, 1.0)


def _has_opposite(statement: Statement, wanted: Sequence[tuple[Statement, Judgement]]) -> bool:
    """Whether there are limits on both sides: leaning away from one is leaning toward the other."""
    if statement.order:
        return statement.least is not None and statement.most is not None
    values = [s for s, _ in wanted if s.order == 0]
    return any(s.least is not None for s in values) and any(s.most is not None for s in values)


def _signed(value: Fraction) -> Node:
    return Number(value) if value >= 0 else Negation(Number(-value))


def time_to_judge(budget: Budget, statements: Sequence[Statement]) -> Budget:
    """What one statement about a layer may take."""
    return budget.share(JUDGING_TIME * 2 / max(len(statements), 1))
