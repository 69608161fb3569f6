"""Whether a value of high precision is where an enclosure says."""

import numpy as np
import torch
from flint import arb, ctx

from cases import random_model
from onelayer.formula.taylor.series import Space
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.proof.bisection.transformer import Network
from onelayer.proof.witness import in_balls


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


def require_enclosed(config, seed, size, sharp, single):
    """The real function of the weights is enclosed; the model's answers lie within the stated rounding of what is."""
    model = random_model(config, seed)
    with torch.no_grad():
        model.W_K.mul_(10.0**sharp)
    model = model.float() if single else model
    rng = np.random.default_rng(seed)
    D = config.tokens * config.features_in
    middle = rng.normal(size=(2, D)).astype(np.float32)
    half = 10.0**size * rng.random((2, D))
    lower, upper = (middle - half).astype(np.float32), (middle + half).astype(np.float32)
    answer = Network(model, FLOAT32 if single else FLOAT64)(Space(lower.astype(float), upper.astype(float)))
    low, high = answer.model.range()
    for b in range(2):
        points = np.clip(lower[b] + (upper[b] - lower[b]) * rng.random((3, D)), lower[b], upper[b]).astype(np.float32)
        given_points = torch.from_numpy(points).to(model.W_E.dtype).reshape(3, config.tokens, config.features_in)
        with torch.no_grad():
            computed = model(given_points).flatten(1).double().numpy()
        for point, row in zip(points.astype(float), computed, strict=True):
            exact = [value for place in in_balls(model, point.tolist()) for value in place]
            for o, value in enumerate(exact):
                assert inside(value, low[b, o], high[b, o])
                assert follows(answer.model[o], b, point.tolist(), value)
                assert follows(answer.model[o], b, point.tolist(), arb(float(row[o])), answer.off[b, o])
