"""Boxes that touch a place where f is not analytic: its singular nodes become constants there.

Let v_1(x), v_2(x), … be the outermost nodes of f that are singular on a box (√u with 0 in the range of u), so that
f(x) = F(x, v(x)), and let v_i(x) lie in V_i, an interval with middle c_i. By the mean value theorem

    |f(x) − F(x, c)| ≤ Σ_i sup |∂F/∂v_i| · max |V_i − c_i|,    the supremum over the box and all V_i,

and F(x, c) has these singularities no longer: T − F(·, c) is interpolated in the place of T − f, and the right-hand side is
added to what is proved. Near the place of √u it is about √u: boxes are halved toward it until that is small.

f is claimed about only where it is defined: an argument's range is cut to where the node is defined.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ...common.outward import UP
from ...formula import UNDEFINED, Formula, Interval, enclose, gradient, interval
from ...formula.tree import Call, Node, Power, Tree, Variable, children, substituted
from ...target.singular import arguments_of, reaches, singular_nodes, singular_values


@dataclass(frozen=True)
class Frozen:
    """One box: F, its constants c, what they cost per output, and the coordinate across which halving helps most."""

    formula: Formula
    constants: tuple[float, ...]
    cost: np.ndarray
    axis: int


@dataclass(frozen=True)
class Freezer:
    """Freezes the singular nodes of one formula."""

    formula: Formula
    _formulas: dict[tuple[int, ...], Formula] = field(default_factory=dict)
    _inside: dict[int, Formula] = field(default_factory=dict)  # the arguments of a node

    @cached_property
    def _nodes(self) -> list[Node]:
        return singular_nodes(self.formula)

    @cached_property
    def _arguments(self) -> Formula:
        """All arguments of all nodes."""
        return replace(self.formula, outputs=tuple(a for node in self._nodes for a in arguments_of(node)))

    def __call__(self, box: np.ndarray, whole: tuple[np.ndarray, np.ndarray]) -> Frozen | None:
        """The box [2, coordinate] with what is singular there or next to it frozen; None if nothing is, or nothing is known.

        `whole`: the ends of the box beyond which nothing matters.
        """
        if not self._nodes:
            return None
        sides, width = [interval(a, b) for a, b in box.T.tolist()], box[1] - box[0]
        around = np.clip(np.stack([box[0] - width, box[1] + width]), *whole)
        near = enclose(self._arguments, [interval(a, b) for a, b in around.T.tolist()])
        here, first = enclose(self._arguments, sides), 0
        ranges: dict[int, list[Interval]] = {}
        for node in self._nodes:
            own = slice(first, first + len(arguments_of(node)))
            first = own.stop
            if reaches(singular_values(node)[0], near[own]) and all(x.is_finite() for x in here[own]):
                ranges[id(node)] = here[own]
        frozen = _outermost(self.formula.outputs, ranges)
        if not frozen:
            return None
        values = [_value_range(node, ranges[id(node)]) for node in frozen]
        if not all(v.is_finite() for v in values):
            return None
        formula = self._with_constants(frozen)
        constants = [(v.lower() + v.upper()) / 2 for v in values]
        radii = [max(v.upper() - c, c - v.lower()) * UP for v, c in zip(values, constants, strict=True)]
        partials = gradient(formula, [*sides, *values])[1]
        D = len(sides)
        costs = np.array([[_product(row[D + i].magnitude(), r) for i, r in enumerate(radii)] for row in partials]) * UP
        costs = np.where(np.isnan(costs), np.inf, costs)
        return Frozen(
            formula, tuple(constants), costs.sum(axis=1) * UP, self._axis(frozen, costs.max(axis=0), sides, box)
        )

    def _with_constants(self, frozen: list[Node]) -> Formula:
        """F: the frozen nodes are variables after those of the formula."""
        key, D = tuple(map(id, frozen)), self.formula.dimension
        if key not in self._formulas:
            new = {id(node): Variable(D + 1 + i) for i, node in enumerate(frozen)}

            def instead(tree: Tree) -> Node | None:
                return new.get(id(tree))

            names = (*self.formula.names, *(f"v{i + 1}" for i in range(len(frozen))))
            outputs = tuple(substituted(output, instead) for output in self.formula.outputs)
            self._formulas[key] = Formula(self.formula.text, names, outputs)
        return self._formulas[key]

    def _axis(self, frozen: list[Node], costs: np.ndarray, sides: list[Interval], box: np.ndarray) -> int:
        """The coordinate along which the arguments of the costliest node change most; the widest one if that is unknown."""
        width = box[1] - box[0]
        node = frozen[int(costs.argmax())]
        if id(node) not in self._inside:
            self._inside[id(node)] = replace(self.formula, outputs=arguments_of(node))
        partials = gradient(self._inside[id(node)], sides)[1]
        change = np.array([[g.magnitude() if g.is_finite() else math.inf for g in row] for row in partials]).max(axis=0)
        change = np.where(width > 0, change, 0.0) * np.where(width > 0, width, 0.0)
        return int((change if np.isfinite(change).all() and change.any() else width).argmax())


def _outermost(outputs: tuple[Node, ...], ranges: dict[int, list[Interval]]) -> list[Node]:
    found: dict[int, Node] = {}
    seen: set[int] = set()
    pending: list[Tree] = list(outputs)
    while pending:
        tree = pending.pop()
        if id(tree) in seen:
            continue
        seen.add(id(tree))
        if id(tree) in ranges:
            found[id(tree)] = tree  # type: ignore[assignment]
        else:
            pending.extend(children(tree))
    return [found[key] for key in sorted(found)]


def _value_range(node: Node, arguments: list[Interval]) -> Interval:
    """The range of a node whose arguments have these ranges, where it is defined."""
    low, high = singular_values(node)[1]
    if any(a.lower() > high or a.upper() < low for a in arguments):
        return UNDEFINED
    cut = [interval(max(a.lower(), low), min(a.upper(), high)) for a in arguments]
    own = tuple(Variable(i + 1) for i in range(len(cut)))
    assert isinstance(node, Power | Call)
    alone = Power(own[0], node.exponent) if isinstance(node, Power) else Call(node.name, own)
    return enclose(Formula("", tuple(f"u{i + 1}" for i in range(len(cut))), (alone,)), cut)[0]


def _product(slope: float, radius: float) -> float:
    return 0.0 if slope == 0 or radius == 0 else slope * radius
