"""Targets of a suite: certified or not at a tolerance, in how many seconds, and why not."""

import math
import time

from ....approximation import Approximation
from ....common.errors import InputError
from ....common.numbers import exact
from ....pipeline import build
from ...extremes import observed_range
from .construction import TARGET_AXES, facts_of, target_at
from .registry import Point, Result, measure


@measure("suite", **TARGET_AXES, share=0.0, tolerance=0.0, seconds=120.0, seed=0)
def suite(point: Point) -> Result:
    """A layer built with default options: the range of f as observed, tolerance, size, bound, verdict, seconds, the reason.

    `share` above 0 sets the tolerance to this share of the observed range; otherwise `tolerance` is the tolerance. The build
    has `seconds` of wall time in all.
    """
    return suite_result(point)[1]


def suite_result(point: Point) -> tuple[Approximation, Result]:
    """The layer of a point, and what is measured about it."""
    if (point["share"] > 0) == (point["tolerance"] > 0):
        found = f"share {exact(point['share'])}, tolerance {exact(point['tolerance'])}"
        raise InputError("a share or a tolerance above 0", found, "give one of them")
    target = target_at(point)
    low, high = observed_range(target)
    tolerance = point["share"] * (high - low) if point["share"] > 0 else point["tolerance"]
    wall, processor = time.perf_counter(), time.process_time()
    built = build(target, tolerance=tolerance, seconds=point["seconds"], seed=point["seed"])
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    bound = built.certificate.bound
    return built, {
        "dimension": target.dimension,
        "low": low,
        "high": high,
        "tolerance": tolerance,
        **facts_of(built),
        "ratio": bound / tolerance if math.isfinite(bound) else None,
        "processor": processor,
        "wall": wall,
        "reason": "" if built.certificate.verdict == "CERTIFIED" else "; ".join(built.facts.notes),
    }
