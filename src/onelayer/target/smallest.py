"""How small |f| can be on a domain: m with |f| ≥ m for all outputs, by bisection.

For a formula m is proved, from enclosures of f and of its slopes. For a callable or data it rests on the declared modulus.
"""

import math

import numpy as np

from ..common.budget import Budget
from ..common.outward import UP_FEW
from ..formula import Formula, Interval, enclose, gradient, holds
from .domain import Domain
from .slopes import CLOSE, Box, FormulaOnBox, best_first
from .target import Target

MOST_VALUES = 20_000  # of a callable that are evaluated


def smallest_of_formula(formula: Formula, domain: Domain, budget: Budget | None = None) -> tuple[float, float]:
    """(m, seen): |f| ≥ m for all outputs on the domain, proved; and the smallest |f| that was seen in it.

    Boxes with the smallest lower bound are halved first. On a box |f| ≥ the distance of f's enclosure from 0, and
    |f| ≥ |f(c)| − Σ_j max|∂_j f|·|x_j − c_j| with its centre c. An output with both signs may be 0 between: (0, 0).
    """
    on_box, where = FormulaOnBox(formula, domain.lower, domain.upper), domain.within
    which = tuple(range(domain.dimension)) if where else tuple(i - 1 for i in formula.variables)
    seen, signs = math.inf, [set[bool]() for _ in formula.outputs]

    def bound(box: Box) -> float:
        nonlocal seen
        sides = on_box.sides_of(box)
        if where is not None and holds(where, sides) is False:
            return -math.inf  # not in the domain: no bound is needed there
        centre = [min(max((s.lower() + s.upper()) / 2, s.lower()), s.upper()) for s in sides]
        at_centre = enclose(formula, centre)
        inside = where is None or holds(where, centre) is True
        for ball, found in zip(at_centre, signs, strict=True):
            if inside and ball.is_finite():
                seen = min(seen, ball.magnitude())
                found |= {ball.lower() > 0} if ball.lower() > 0 or ball.upper() < 0 else {True, False}
        reach = [max(s.upper() - c, c - s.lower()) for s, c in zip(sides, centre, strict=True)]
        smallest = math.inf
        for value, row, ball in zip(*gradient(formula, sides), at_centre, strict=True):
            falls = ball.is_finite() and all(p.is_finite() for p in row)
            fall = sum(p.magnitude() * r for p, r in zip(row, reach, strict=True)) * UP_FEW if falls else math.inf
            centred = math.nextafter(_off_zero(ball) - fall, -math.inf) if math.isfinite(fall) else 0.0
            smallest = min(smallest, max(_off_zero(value), centred))
        return -smallest

    for worst, _ in best_first(bound, which, domain.dimension):
        if where is None and any(len(found) == 2 for found in signs):
            return 0.0, 0.0
        if -worst >= seen / CLOSE or (budget is not None and budget.over()):
            break
    return max(-worst, 0.0), seen


def _off_zero(x: Interval) -> float:
    """The distance from 0, rounded down; 0 if there is no enclosure."""
    return max(x.lower(), -x.upper(), 0.0) if x.is_finite() else 0.0


def smallest_by_modulus(target: Target, budget: Budget | None = None) -> tuple[float, float]:
    """(m, seen) by halving boxes where |f|, as declared, might be smaller than what was seen.

    Boxes are kept in fractions of the sides, which are dyadic and exact. The point that represents a centre is off by
    rounding, at most a few units in the last place of the ends, which is included.
    """
    sides = target.domain.sides
    off = 4 * np.spacing(np.maximum(np.abs(target.domain.lower), np.abs(target.domain.upper)))
    low, high = np.zeros((1, target.dimension)), np.ones((1, target.dimension))
    seen, smallest, evaluated = math.inf, math.inf, 0
    signs = np.zeros((2, target.outputs), dtype=bool)
    while len(low):
        x = target.domain.points((low + high) / 2)
        values, radius = target.enclosed(x)
        if not np.isfinite(values).all():
            target(x)  # says where
        evaluated += len(x)
        reach = ((high - low) / 2 * sides + off) * UP_FEW
        size = np.nextafter(np.nextafter(np.abs(values) - radius, -np.inf).min(axis=1) - _fall(target, reach), -np.inf)
        seen = min(seen, float(np.abs(values).min()))
        signs |= np.stack([(values - radius > 0).any(axis=0), (values + radius < 0).any(axis=0)])
        if signs.all(axis=0).any():  # 0 lies between
            return 0.0, 0.0
        open_ = size < seen / CLOSE
        smallest = min(smallest, float(size[~open_].min(initial=math.inf)))
        if evaluated + 2 * int(open_.sum()) > MOST_VALUES or (budget is not None and budget.over()):
            return min(smallest, float(size[open_].min(initial=math.inf))), seen
        low, high = _halved(low[open_], high[open_], _weights(target))
    return smallest, seen


def _fall(target: Target, reach: np.ndarray) -> np.ndarray:
    """How much f can fall within `reach` of a point, per coordinate, by the declared modulus."""
    modulus = target.modulus
    if modulus.lipschitz is not None:
        return reach @ np.array(modulus.lipschitz) * UP_FEW
    assert modulus.omega is not None
    r = (reach / target.domain.sides).max(axis=1) * UP_FEW
    known = {float(v): modulus.omega(float(v)) for v in np.unique(r)}
    return np.array([known[float(v)] for v in r])


def _weights(target: Target) -> np.ndarray:
    """How much each side matters for where to halve."""
    if target.modulus.lipschitz is None:
        return np.ones(target.dimension)
    return np.array(target.modulus.lipschitz) * target.domain.sides + 1e-300


def _halved(low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both halves of every box along the side that matters most."""
    axis = ((high - low) * weights).argmax(axis=1)
    rows = np.arange(len(low))
    middle = ((low + high) / 2)[rows, axis]
    first, second = high.copy(), low.copy()
    first[rows, axis] = second[rows, axis] = middle
    return np.concatenate([low, second]), np.concatenate([first, high])
