"""The same layer with another attention: how far from softmax it is, what is proved about it, how fast it is."""

import math
import time

import numpy as np

from ....target.points import fitting_points
from ...peers.task import TEST_SEED
from .construction import TARGET_AXES, build_at, facts_of, target_at
from .registry import Point, Result, measure

TIMED_CALLS = 3  # of which the fastest counts


@measure(
    "attention", **TARGET_AXES, tolerance=float, method="polished", construction="auto", dtype="float64", attention="softmax",
    points=4096, seed=0, seconds=60.0,
)  # fmt: skip
def attention(point: Point) -> Result:
    """A built layer evaluated by softmax, linear, sparse or adaptive attention: bound, observed error, difference, points/s.

    Bound and verdict are those of this evaluation, not of the layer's own softmax.
    """
    target = target_at(point)
    built = build_at(point, target)
    fast = built.fast(point["attention"])
    x = target.domain.points(fitting_points(point["points"], target.dimension, TEST_SEED).numpy())
    x = target.domain.representable(x, point["dtype"] == "float32")
    y = np.asarray(fast(x), dtype=np.float64)  # also builds the cells of sparse attention
    seconds = math.inf
    for _ in range(TIMED_CALLS):
        started = time.perf_counter()
        fast(x)
        seconds = min(seconds, time.perf_counter() - started)
    softmax = np.asarray(built(x), dtype=np.float64)
    error = np.abs(y.reshape(len(x), -1) - target(x)).max()
    certified = built.certificate.verdict == "CERTIFIED"
    return {
        "dimension": target.dimension,
        **facts_of(built),
        "bound": float(fast.bound),
        "verdict": "CERTIFIED" if certified and fast.bound <= point["tolerance"] else "UNDECIDED",
        "observed": float(error),
        "difference": float(np.abs(y - softmax).max()),
        "points_per_second": len(x) / seconds,
    }
