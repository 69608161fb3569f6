"""Where a function of one coordinate is not smooth: kinks, which hinges take away, and infinite slopes.

A kink is where the two sides of a maximum, the argument of an absolute value, or the two sides of a condition are equal: roots of
their difference, found by bracketing. What f bends by there, J, is measured; f − J·relu(u − r) has a second derivative that
jumps at most, and a mesh with an edge at r follows that.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from ...formula import Formula, evaluate
from ...formula.tree import And, Call, Negation, Node, Not, Or, Predicate, Relation, Sum, Where, postorder, variables
from .spacing import Curve

SAMPLES = 4097  # at which changes of sign are seen
MOST = 400  # places
STEP = 1e-3  # share of the way to the next place: for difference quotients
STEADY = 0.05  # relative change of J between two steps: of a kink; slopes without end have more


def kinks_of(formula: Formula, coordinate: int, x: Float[np.ndarray, "point coordinate"]) -> list[float]:
    """The kinks along a line of points that differ in this coordinate alone, in which they increase; `MOST` at the most."""
    found = set[float]()
    for node in _differences(formula.outputs, coordinate + 1):
        d = replace(formula, outputs=(node,))

        def at(t: float, d: Formula = d) -> float:
            point = x[:1].copy()
            point[0, coordinate] = t
            return float(np.asarray(evaluate(d, point))[0, 0])

        with np.errstate(all="ignore"):
            y, t = np.asarray(evaluate(d, x))[:, 0], x[:, coordinate]
            for i in np.flatnonzero(np.isfinite(y[:-1]) & np.isfinite(y[1:]) & (np.sign(y[:-1]) != np.sign(y[1:]))):
                found.add(
                    brentq(at, t[i], t[i + 1], xtol=1e-300) if y[i] * y[i + 1] < 0 else t[i if y[i] == 0 else i + 1]
                )
    return sorted(map(float, found))[:MOST]


def _differences(trees: tuple[Node, ...], variable: int) -> Iterator[Node]:
    """What changes its sign at kinks that depend on this variable alone."""
    for tree in postorder(trees):
        if isinstance(tree, Where):
            sides = [(r.left, r.right) for r in _relations(tree.condition)]
        elif isinstance(tree, Call) and tree.name in ("min", "max"):
            sides = list(itertools.combinations(tree.arguments, 2))
        elif isinstance(tree, Call) and tree.name == "abs":
            yield from (u for u in tree.arguments if variables(u) == (variable,))
            continue
        else:
            continue
        differences = (Sum((a, Negation(b))) for a, b in sides)
        yield from (d for d in differences if variables(d) == (variable,))


def _relations(condition: Predicate) -> list[Relation]:
    match condition:
        case Relation():
            return [condition]
        case And(parts) | Or(parts):
            return [relation for part in parts for relation in _relations(part)]
        case Not(part):
            return _relations(part)


def bends(f: Curve, places: Float[np.ndarray, " place"]) -> Float[np.ndarray, "inner out"]:
    """What f bends by at the places, the first and the last left out; 0 where that does not settle down."""
    r, gap = places[1:-1], np.minimum(np.diff(places)[:-1], np.diff(places)[1:])
    steps = STEP * gap * np.array([1.0, 0.5, 0.25])[:, None]
    at = np.stack([r - steps, r + 0 * steps, r + steps])  # [side, step, place]
    values = f(at.ravel())
    left, middle, right = values.reshape(*at.shape, values.shape[1])
    D = (left - 2 * middle + right) / steps[..., None]
    J = (8 * D[2] - 6 * D[1] + D[0]) / 3  # without the terms of first and second order
    steady = np.abs(D[2] - D[1]) <= STEADY * np.abs(J).max(axis=1, keepdims=True)
    return np.where(steady & np.isfinite(J), J, 0.0)


def without_bends(f: Curve, places: Float[np.ndarray, " place"], J: Float[np.ndarray, "inner out"]) -> Curve:
    """f less its hinges."""
    return lambda u: f(u) - np.maximum(u[:, None] - places[1:-1], 0.0) @ J
