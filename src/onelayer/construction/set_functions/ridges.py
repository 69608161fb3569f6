"""Functions of two inputs as sums of functions of one linear form each: ridge polynomials.

A polynomial of degree d in two variables is a sum of d + 1 ridge polynomials h_p(w_p·z) in any distinct directions w_p. So
g ≈ Σ_p h_p(w_p·z) is solved for by least squares, with directions at equal angles whose weights are floats of few digits,
for growing degree until the error is proved to be small enough. The difference is a formula, and its range is enclosed.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.polynomial import chebyshev

from ...common.errors import InputError
from ...common.numbers import at_most, exact
from ...formula import Formula, evaluate
from ...formula.tree import Negation, Node, Number, Product, Sum, Variable, substituted
from .closeness import largest_size
from .terms import Group, Term

MOST_DEGREE = 14
GRID = 48  # points along a side
FIT_SHARE = 0.7  # share of the tolerance allowed at the grid


@dataclass(frozen=True)
class RidgeSum:
    """Terms whose sum is within `error` of a group; `constant` is to be added."""

    terms: tuple[Term, ...]
    constant: Fraction
    error: float


def ridges_of(group: Group, tolerance: float) -> RidgeSum:
    """The sum of ridge polynomials of least degree that is proved to be within the tolerance."""
    if len(group.inputs) != 2:
        many = f"{len(group.inputs)} inputs that interact in {group.text}"
        raise InputError("a function of at most two inputs", many, "add functions of one or two aggregates")
    box = [(one.low, one.high) for one in group.inputs]
    best = math.inf
    for degree in range(2, MOST_DEGREE + 1):
        found = _fit(group, box, degree)
        if found.error > FIT_SHARE * tolerance:
            best = min(best, found.error)
            continue
        error = largest_size(_difference(group, found), box, tolerance)
        if error <= tolerance:
            return RidgeSum(found.terms, found.constant, error)
        best = min(best, error)
    asked = f"{group.text} as a sum of ridge polynomials within {exact(tolerance)}"
    raise InputError(asked, f"{at_most(best, 2)} at degree {MOST_DEGREE}", "ask for a larger tolerance")


def _fit(group: Group, box: list[tuple[float, float]], degree: int) -> RidgeSum:
    """Least squares on a grid of Chebyshev's points; the error is what is seen there."""
    at = (np.cos(np.pi * np.arange(GRID) / (GRID - 1)) + 1) / 2
    sides = [low + (high - low) * at for low, high in box]
    z = np.stack([side.ravel() for side in np.meshgrid(*sides)], axis=1).clip(*np.array(box).T)
    with np.errstate(all="ignore"):
        y = np.asarray(evaluate(group.outer, z))[:, 0]
    if not np.isfinite(y).all():
        change = "choose a domain on which the function is defined for all values of its inputs, related or not"
        raise InputError(f"a value of {group.text} everywhere", "none somewhere", change)
    halves = [(high - low) / 2 for low, high in box]
    angles = np.pi * np.arange(degree + 1) / (degree + 1)
    directions = [(_short(math.cos(t) / halves[0]), _short(math.sin(t) / halves[1])) for t in angles]
    tables, spans = [np.ones((len(z), 1))], []
    for w in directions:
        form = z @ np.array(w)
        centre, half = _span(w, box)
        spans.append((centre, half))
        tables.append(chebyshev.chebvander((form - centre) / half, degree)[:, 1:])
    table = np.concatenate(tables, axis=1)
    found = np.linalg.lstsq(table, y, rcond=1e-12)[0]
    error = float(np.abs(table @ found - y).max())
    terms = []
    for p, (w, (centre, half)) in enumerate(zip(directions, spans, strict=True)):
        coefficients = [0.0, *found[1 + p * degree : 1 + (p + 1) * degree]]
        outer = Formula("", ("u",), (_polynomial(chebyshev.cheb2poly(coefficients), centre, half),))
        kept = [k for k in range(2) if w[k]]
        terms.append(Term(tuple(group.inputs[k] for k in kept), tuple(w[k] for k in kept), outer))
    return RidgeSum(tuple(terms), Fraction(float(found[0])), error)


def _short(value: float) -> float:
    """The value with eight binary digits; exactly 0 where it is only rounding."""
    mantissa, exponent = math.frexp(value)
    return 0.0 if abs(value) < 1e-9 else math.ldexp(round(mantissa * 256) / 256, exponent)


def _span(w: tuple[float, float], box: list[tuple[float, float]]) -> tuple[float, float]:
    """Centre and half-width of the values of a linear form."""
    centre = sum(a * (low + high) / 2 for a, (low, high) in zip(w, box, strict=True))
    half = sum(abs(a) * (high - low) / 2 for a, (low, high) in zip(w, box, strict=True))
    return float(centre), float(half)


def _polynomial(coefficients: np.ndarray, centre: float, half: float) -> Node:
    """Σ_k coefficients_k t^k, t = (u − centre)/half, by Horner's rule; 1/half is rounded to a float."""
    t = Product((Number(Fraction(1 / half)), Sum((Variable(1), Number(-Fraction(centre))))))
    node: Node = Number(Fraction(float(coefficients[-1])))
    for c in coefficients[-2::-1]:
        node = Sum((Number(Fraction(float(c))), Product((t, node))))
    return node


def _difference(group: Group, found: RidgeSum) -> Formula:
    """g − Σ_p h_p as a formula of the two inputs."""
    parts: list[Node] = [group.outer.outputs[0], Number(-found.constant)]
    for term in found.terms:
        places = [group.inputs.index(one) + 1 for one in term.inputs]
        factors = zip(places, term.weights, strict=True)
        form = Sum(tuple(Product((Number(Fraction(w)), Variable(k))) for k, w in factors))
        parts.append(Negation(_at(term.outer.outputs[0], form)))
    return Formula("", ("x1", "x2"), (Sum(tuple(parts)),))


def _at(outer: Node, form: Node) -> Node:
    """A function of one variable at a linear form."""
    return substituted(outer, lambda tree: form if tree == Variable(1) else None)
