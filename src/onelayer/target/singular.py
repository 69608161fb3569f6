"""Where a formula is not analytic: arguments of fractional powers and of functions that reach a singular value (`functions`).

√ has an infinite slope where its argument is 0, asin where it is ±1. Such places are points, lines or faces of the domain.
`places_of` finds them by bisection of the enclosures of the arguments, as points of them: layers and samples are graded
toward these. The points need not be exact, nothing is proved by them.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from ..formula import Formula, Interval, enclose, evaluate, interval
from ..formula.functions import FUNCTIONS
from ..formula.tree import Call, Node, Number, Power, Tree, children, postorder, variables
from ..formula.tree import has_kinks as is_kinked

EVERYWHERE = (-math.inf, math.inf)
BOXES = 64  # of one place, before some are followed to points
POINTS = 16  # of one place, at most
SAME = 2.0**-7  # share of a side: points closer than this are one
FINEST = 2.0**-46  # share of a side: how close the points come to the place


def singular_values(tree: Tree) -> tuple[tuple[float, ...], tuple[float, float]]:
    """(values of the arguments at which the node is not analytic, where it is defined); no values if there are none."""
    if isinstance(tree, Call) and len(tree.arguments) == 1:
        f = FUNCTIONS[tree.name]
        return f.singular, (f.domain.lo, f.domain.hi) if f.domain else EVERYWHERE
    if isinstance(tree, Power) and isinstance(tree.exponent, Number) and tree.exponent.value > 0:
        return (0.0,), (0.0, math.inf)
    return (), EVERYWHERE


def arguments_of(tree: Tree) -> tuple[Node, ...]:
    """The arguments of a singular node: the exponent of a power is none."""
    return (tree.base,) if isinstance(tree, Power) else tree.arguments if isinstance(tree, Call) else ()


def singular_nodes(formula: Formula, steep: bool = False) -> list[Node]:
    """The singular nodes, children before parents; with `steep` only those of finite value and infinite slope."""
    nodes = [t for t in postorder(formula.outputs) if singular_values(t)[0] and variables(t)]
    return [t for t in nodes if not steep or isinstance(t, Power) or (isinstance(t, Call) and FUNCTIONS[t.name].holder)]  # type: ignore[misc]


def has_kinks(formula: Formula) -> bool:
    """Whether it has kinks or jumps other than inside nodes that are singular there anyway, as abs in abs(x)**(2/3)."""
    steep = {id(node) for node in singular_nodes(formula, steep=True)}
    pending: list[Tree] = list(formula.outputs)
    while pending:
        tree = pending.pop()
        if is_kinked(tree):
            return True
        inner = arguments_of(tree) if id(tree) in steep else ()
        absolute = len(inner) == 1 and isinstance(inner[0], Call) and inner[0].name == "abs"
        pending += children(inner[0]) if absolute else children(tree)
    return False


def reaches(values: tuple[float, ...], arguments: list[Interval]) -> bool:
    """Whether all arguments may have the same singular value."""
    return all(x.is_finite() for x in arguments) and any(
        all(x.lower() <= v <= x.upper() for x in arguments) for v in values
    )


def may_be_steep(formula: Formula, lower: tuple[float, ...], upper: tuple[float, ...]) -> bool:
    """Whether enclosures over the whole box leave room for infinite slopes."""
    sides = [interval(a, b) for a, b in zip(lower, upper, strict=True)]
    return any(
        reaches(singular_values(node)[0], enclose(replace(formula, outputs=arguments_of(node)), sides))
        for node in singular_nodes(formula, steep=True)
    )


@dataclass(frozen=True)
class Place:
    """Where one node is singular: points [point, coordinate] in the coordinates of its arguments."""

    node: Node
    coordinates: tuple[int, ...]
    points: Float[np.ndarray, "point coordinate"]


def places_of(formula: Formula, lower: tuple[float, ...], upper: tuple[float, ...]) -> list[Place]:
    """The places in a box where the formula has infinite slopes."""
    found = []
    for node in singular_nodes(formula, steep=True):
        coordinates = tuple(i - 1 for i in variables(node))
        search = _Search(formula, node, coordinates, np.array(lower), np.array(upper))
        points = search.points()
        if len(points):
            found.append(Place(node, coordinates, points))
    return found


@dataclass(frozen=True)
class _Search:
    formula: Formula
    node: Node
    coordinates: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray

    def points(self) -> np.ndarray:
        """One point for every box that is left; boxes are halved, the widest first, as long as there are few."""
        pick = list(self.coordinates)
        boxes = [np.stack([self.lower[pick], self.upper[pick]])]
        while boxes and len(boxes) <= BOXES and self._width(boxes[0]).max() > FINEST:
            boxes = [half for box in boxes for half in self._halves(box) if self._reached(half)]
        apart = {tuple(np.round(box.mean(axis=0) / self._coarse).tolist()): box for box in boxes}
        step = -(-len(apart) // POINTS)
        found = [self._followed(box) for box in list(apart.values())[:: max(step, 1)]]
        return np.array([z for z in found if z is not None]).reshape(-1, len(pick))

    def _followed(self, box: np.ndarray) -> np.ndarray | None:
        """The point to which the halves lead that come nearest to the place."""
        while self._width(box).max() > FINEST:
            halves = [half for half in self._halves(box) if self._reached(half)]
            if not halves:
                return None
            box = min(halves, key=self._distance)
        ends = [box[0], box[1], box.mean(axis=0)]
        return min(ends, key=lambda z: self._distance(np.stack([z, z])))

    def _width(self, box: np.ndarray) -> np.ndarray:
        """Shares of the sides; 0 where no number lies between the ends."""
        pick, middle = list(self.coordinates), (box[0] + box[1]) / 2
        able = (box[0] < middle) & (middle < box[1])
        return np.where(able, (box[1] - box[0]) / (self.upper[pick] - self.lower[pick]), 0.0)

    def _halves(self, box: np.ndarray) -> list[np.ndarray]:
        axis = int(self._width(box).argmax())
        left, right = box.copy(), box.copy()
        left[1, axis] = right[0, axis] = (box[0, axis] + box[1, axis]) / 2
        return [left, right]

    @property
    def _coarse(self) -> np.ndarray:
        return SAME * (self.upper - self.lower)[list(self.coordinates)]

    @cached_property
    def _arguments(self) -> Formula:
        return replace(self.formula, outputs=arguments_of(self.node))

    def _reached(self, box: np.ndarray) -> bool:
        sides = [interval(a, b) for a, b in zip(self.lower.tolist(), self.upper.tolist(), strict=True)]
        for j, (a, b) in zip(self.coordinates, box.T.tolist(), strict=True):
            sides[j] = interval(a, b)
        return reaches(singular_values(self.node)[0], enclose(self._arguments, sides))

    def _distance(self, box: np.ndarray) -> float:
        """How far the arguments at the middle of a box are from singular."""
        middle = (self.lower + self.upper) / 2
        middle[list(self.coordinates)] = box.mean(axis=0)
        with np.errstate(all="ignore"):
            at = np.asarray(evaluate(self._arguments, middle[None]), dtype=float).reshape(-1)
        far = min(float(np.abs(at - v).max()) for v in singular_values(self.node)[0])
        return far if math.isfinite(far) else math.inf
