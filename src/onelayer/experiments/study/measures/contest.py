"""Construction against training against the theorem, on one target."""

import math
import time

import numpy as np

from ....common.errors import InputError
from ....construction.representative.layer import plan_representative
from ....pipeline import build
from ....training.train import train
from ...compare import layer_size
from ...peers.task import observed
from .construction import TARGET, facts, target_of
from .registry import Point, Result, measure


@measure("contest", **TARGET, tolerance=float, steps=2000, seed=0, seconds=30.0)
def contest(point: Point) -> Result:
    """A constructed layer, a trained one with as many parameters (±10 %), and how many heads the theorem would take.

    The theorem's number is that of `plan`; none where no modulus is known or the number is beyond memory. Both errors are
    observed at the same test points (a target with a margin around its jumps has only what its certificate saw, and nothing is
    trained on it). A trained layer with so few parameters may not exist, and has none.
    """
    target = target_of(point["formula"], point["domain"], point["margin"])
    started = time.perf_counter()
    built = build(target, tolerance=point["tolerance"], seed=point["seed"], seconds=point["seconds"])
    took = time.perf_counter() - started
    result = {
        "dimension": target.dimension,
        **facts(built),
        "took": took,
        "theorem_units": theorem_units(point),
        "trained_observed": math.nan,
        "trained_parameters": 0,
        "trained_took": 0.0,
    }
    if target.margin:
        return result
    result["observed"] = max(built.certificate.observed, observed(lambda x: np.asarray(built(x)), target))
    size = layer_size(target, built.parameters)
    if size is None:
        return result
    started = time.perf_counter()
    options = {"steps": point["steps"], "seed": point["seed"], "dtype": "float64"}
    trained = train(target, heads=size[0], width=size[1], d_model=size[2], **options)
    return result | {
        "trained_observed": observed(lambda x: np.asarray(trained(x), dtype=np.float64), target),
        "trained_parameters": trained.parameters,
        "trained_took": time.perf_counter() - started,
    }


def theorem_units(point: Point) -> int | None:
    """Heads of the paper's construction at the tolerance, from its plan; None if there is none."""
    target = target_of(point["formula"], point["domain"], point["margin"])
    try:
        return plan_representative(target, point["tolerance"]).units
    except InputError:
        return None
