"""The least error that every layer has: its answers are floats, and f is not a float at most points."""

import numpy as np
from flint import arb, ctx

from ..common.errors import InputError
from ..common.numbers import at_least, at_most, exact
from ..formula import enclose, holds
from ..layer.arithmetic import FLOAT32, Arithmetic
from ..target.margin import in_scope
from ..target.points import uniform_points
from ..target.target import Target

POINTS = 256
PRECISION = 256  # bits


def require_attainable(target: Target, tolerance: float, arithmetic: Arithmetic) -> None:
    """Refuse a tolerance that no layer in this arithmetic can keep, whatever its weights."""
    least = least_error(target, tolerance, arithmetic)
    if least > tolerance:
        off = f"{exact(tolerance)}, though at some point f is {at_least(least, 2)} away from every {arithmetic.name} number"
        raise InputError("a tolerance that rounding allows", off, f"ask for more than {at_most(least, 2)}")


def least_error(target: Target, tolerance: float, arithmetic: Arithmetic) -> float:
    """Proved: at some point of the domain every float is this far from f. 0 where that is not known to exceed the tolerance."""
    if target.formula is None or target.margin:
        return 0.0
    kind = np.float32 if arithmetic is FLOAT32 else np.float64
    unit = uniform_points(POINTS, target.dimension, 0).numpy()
    points = target.domain.points(unit).astype(kind).astype(np.float64)
    points = points[in_scope(target, points)]
    with np.errstate(all="ignore"):
        if not len(points) or not 4 * arithmetic.u * np.abs(target(points)).max() > tolerance:
            return 0.0
    before, ctx.prec = ctx.prec, PRECISION
    try:
        return max(_off(target, point.tolist(), kind) for point in points)
    finally:
        ctx.prec = before


def _off(target: Target, point: list[float], kind: type[np.floating]) -> float:
    """How far the nearest float is from f at a point, at least; the largest over the outputs."""
    assert target.formula is not None
    within, largest = target.domain.within, 0.0
    if within is not None and holds(within, point) is not True:
        return 0.0
    for value in enclose(target.formula, point, strict=True):
        if not value.is_finite():
            continue
        ball = value.lo.union(value.hi)
        near = kind(float(ball.mid()))
        floats = [np.nextafter(near, kind(-np.inf)), near, np.nextafter(near, kind(np.inf))]
        gap = min(float((ball - arb(float(n))).abs_lower()) for n in floats)
        largest = max(largest, float(np.nextafter(gap, 0.0)))
    return largest
