"""Whether a value of high precision is where an enclosure says."""

import numpy as np
from flint import arb, ctx


def inside(value, low, high):
    """Whether a ball is not proved to lie outside [low, high]."""
    return not (value < arb(float(low)) or value > arb(float(high)))


def follows(model, box, point, value, off=0.0):
    """Whether the polynomial at a point is not proved farther from the value than remainder, kinks and `off` allow."""
    space, c, r = model.space, model.c[:, box], float(model.r[box])
    if not (np.isfinite(c).all() and np.isfinite(r)):
        return True
    total, slack = arb(0), arb(r) + arb(float(off))
    with ctx.workprec(300):
        t = [
            (arb(x) - arb(m)) / arb(h)
            for x, m, h in zip(point, space.centre[box].tolist(), space.half[box].tolist(), strict=True)
        ]
        for exponents, coefficient in zip(space.monomials.exponents.tolist(), c.tolist(), strict=True):
            term = arb(coefficient)
            for base, power in zip(t, exponents, strict=True):
                term *= base**power
            total += term
        for k, a in model.a.items():
            slack += abs(arb(float(a[box]))) * arb(float(space.kinks[k].half[box]))
        return not abs(value - total) > slack
