"""Composed layers to hunt with: fitted to random compositions, then damaged at random."""

import numpy as np
import torch

import onelayer as ol
from hostile import Case
from onelayer.common.budget import Budget
from onelayer.construction.composed.layer import composed_layer, lanes_of
from onelayer.construction.request import Request
from onelayer.layer.assemble import assemble, outputs_of

FORMULAS = {  # formula → whether the variables must be positive
    "a*b/c": True,
    "a*b^2*c^-3": True,
    "sqrt((a - b)^2 + (c - d)^2)": False,
    "sin(a*b)": False,
    "exp(-(a - b)^2)*c": True,
    "a*b*cos(c)": True,
    "a*(b + c*d)": True,
    "a*b + b*c - 4": True,
    "asin(a*b/40)": True,
    "1/(1 + (a - b)^2 + c^2)": False,
    "log(1 + a^2 + b^2)": False,
    "a*b; sqrt(a^2 + b^2)": True,
    "tanh(a - b*c)": False,
}


def composition(seed: int) -> Case:
    """The case of a seed: a third as fitted, the others with some weights changed, a little or much."""
    rng = np.random.default_rng(seed)
    while True:
        formula, positive = list(FORMULAS.items())[rng.integers(len(FORMULAS))]
        width = 10 ** rng.uniform(-1, 0.5)
        start = rng.uniform(0.5, 2) if positive else rng.uniform(-2, 2)
        target = ol.Target(formula, dict.fromkeys(ol.Target(formula, "1:2").domain.names, (start, start + width)))
        spread = np.ptp(target(target.domain.points(rng.random((500, target.dimension)))), axis=0).max()
        request = Request(target, float(spread * 10 ** rng.uniform(-3, -1)), budget=Budget(20.0), seed=seed)
        lanes = lanes_of(request)
        layer = composed_layer(request, lanes) if lanes else None
        if layer is not None:
            break
    model = assemble(layer, request.frame, outputs_of(target))
    if rng.random() < 2 / 3:
        _damage(model, rng)
    return Case(seed, target, None, request.tolerance * 10 ** rng.uniform(-3, 1), network=model)


def _damage(model: ol.SingleLayerTransformer, rng: np.random.Generator) -> None:
    """Change some of the numbers that are not 0 or 1 by a random factor."""
    names = ["W_K", "W_V", "W_O", "S", "b_1", "W_2", "b_R"]
    size = 10 ** rng.uniform(-14, -1)
    with torch.no_grad():
        for name in rng.choice(names, rng.integers(1, 4), replace=False):
            weights = getattr(model, str(name), None)
            if weights is not None:
                free = (weights != 0) & (weights.abs() != 1)
                weights += torch.where(free, weights * torch.from_numpy(size * rng.normal(size=weights.shape)), 0.0)
