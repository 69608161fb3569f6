"""Attacks on both ends of sup |T − f|: random layers and random targets, without any slack.

The lower end claims an error at a point: there T is evaluated once more by the paper's formulas (`exact`), f by the formula
reader of the checker, which shares no code with the library. The upper end has to be above every error that is found.
"""

import numpy as np
from flint import arb, ctx

from checking import checker
from exact import exact_model
from hostile import Case
from hunting import observed
from onelayer.common.budget import Budget
from onelayer.common.errors import InputError
from onelayer.common.machine import one_thread
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.proof.supremum import layer_and_target, supremum_of
from onelayer.proof.two_sided import Supremum
from onelayer.proof.witness import in_balls

ACCURACIES = (0.01, 0.05, 0.05, 1.0)


def attack(one: Case, seconds: float) -> list[str]:
    """What turned out false about sup |T − f| of one case."""
    model = one.model.float() if one.seed % 3 == 0 else one.model
    places, budget = tuple(range(model.config.places)), Budget(seconds, 20_000)
    try:
        with one_thread():
            pair = layer_and_target(model, one.target, places, budget)
            found = supremum_of(pair, ACCURACIES[one.seed % len(ACCURACIES)], budget, seed=one.seed % 1000)
    except InputError as error:  # a condition that no sample meets: nothing is said
        return [] if "none of" in str(error) else [f"{one}: {error}"]
    return [f"{one}: {line}, {found!r}" for line in contradictions(one, model, found)]


def contradictions(one: Case, model: SingleLayerTransformer, found: Supremum) -> list[str]:
    """Every sentence of `found` that is false."""
    if one.poisoned:
        return ["bounds for weights that are not finite"] if found.lower or np.isfinite(found.upper) else []
    false = [] if found.lower <= found.upper else ["the ends are in the wrong order"]
    if found.point is not None and error_at(one, model, list(found.point)) < found.lower:
        false.append("the error at the point is below the lower end")
    if found.point is None and found.lower:
        false.append("a lower end without a point")
    if np.isfinite(found.upper) and observed(one, model.W_E.dtype) > found.upper:
        false.append("an error above the upper end")
    return false


def error_at(one: Case, model: SingleLayerTransformer, x: list[float]) -> arb:
    """max |T − f| at a point, as a ball."""
    domain, c = one.target.domain, model.config
    assert all(a <= v <= b for a, v, b in zip(domain.lower, x, domain.upper, strict=True))
    plain = c.norm == "none" and c.activation == "relu" and c.attention == "softmax" and not c.projection_bias
    if plain and c.readout != "mean":
        T = exact_model(model, x, range(c.places))
    else:
        T = [value for place in in_balls(model, x) for value in place]
    with ctx.workprec(256):
        f = [checker.Reader(domain.names, text).node() for text in one.target.text.split(";")]
        gaps = [abs(t - checker.value(node, checker.balls(x))) for t, node in zip(T, f, strict=True)]
        return max(gaps, key=lambda gap: float(gap.mid()))
