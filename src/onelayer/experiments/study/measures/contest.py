"""Construction against training against the theorem, on one target."""

import math
import time

import numpy as np

from ....common.errors import InputError
from ....construction.representative.layer import plan_representative
from ....pipeline import build
from ....target.target import Target
from ....training.descent import train
from ...matched_size import layer_size
from ...peers.task import observed_error
from .construction import TARGET_AXES, facts_of, seconds_at, target_at
from .registry import Point, Result, measure


@measure("contest", **TARGET_AXES, tolerance=float, steps=2000, seed=0, seconds=30.0)
def contest(point: Point) -> Result:
    """A constructed layer, a trained one with as many parameters (±10 %), and how many heads the theorem would take.

    The theorem's number is that of `plan`; None if no modulus is known or the heads do not fit in memory. Both errors are
    observed at the same test points; for a target with a margin around its jumps only the certificate's observed error is
    given, and nothing is trained. If no trained layer is that small, `trained_parameters` is 0.
    """
    target = target_at(point)
    started = time.perf_counter()
    built = build(target, tolerance=point["tolerance"], seed=point["seed"], seconds=seconds_at(point))
    took = time.perf_counter() - started
    result = {"dimension": target.dimension, **facts_of(built), "took": took}
    result["theorem_units"] = theorem_units(target, point["tolerance"])
    result |= {"trained_observed": math.nan, "trained_parameters": 0, "trained_took": 0.0}
    if target.margin:
        return result
    result["observed"] = max(built.certificate.observed, observed_error(lambda x: np.asarray(built(x)), target))
    size = layer_size(target, built.parameters)
    if size is None:
        return result
    started = time.perf_counter()
    trained = train(
        target, heads=size[0], width=size[1], d_model=size[2], steps=point["steps"], seed=point["seed"], dtype="float64"
    )
    return result | {
        "trained_observed": observed_error(lambda x: np.asarray(trained(x), dtype=np.float64), target),
        "trained_parameters": trained.parameters,
        "trained_took": time.perf_counter() - started,
    }


def theorem_units(target: Target, tolerance: float) -> int | None:
    """Heads of the paper's construction at the tolerance, from its plan; None if there is no plan."""
    try:
        return plan_representative(target, tolerance).units
    except InputError:
        return None
