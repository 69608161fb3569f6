"""The same layer with another attention: how far it is from softmax, what is proved of it, how fast it is."""

import math
import time

import numpy as np

from ....pipeline import build
from ....target.points import fitting_points
from .construction import TARGET, facts, target_of
from .registry import Point, Result, measure

TEST_SEED = 7_000_003  # of points that no layer was fitted to
ROUNDS = 3  # the fastest of so many calls counts


@measure(
    "attention", **TARGET, tolerance=float, method="polished", construction="auto", dtype="float64", attention="softmax",
    points=4096, seed=0, seconds=60.0,
)  # fmt: skip
def attention(point: Point) -> Result:
    """A built layer evaluated by softmax, linear, sparse or adaptive attention: bound, observed error, difference, points/s.

    Bound and verdict are those of this evaluation, not of the layer's own softmax.
    """
    target = target_of(point["formula"], point["domain"], point["margin"])
    built = build(
        target,
        tolerance=point["tolerance"],
        method=point["method"],
        construction=point["construction"],
        dtype=point["dtype"],
        seed=point["seed"],
        seconds=point["seconds"],
    )
    fast = built.fast(point["attention"])
    x = target.domain.points(fitting_points(point["points"], target.dimension, TEST_SEED).numpy())
    single = point["dtype"] == "float32"
    x = target.domain.representable(x, single)
    y = np.asarray(fast(x), dtype=np.float64)  # also makes the cells of sparse attention
    seconds = math.inf
    for _ in range(ROUNDS):
        started = time.perf_counter()
        fast(x)
        seconds = min(seconds, time.perf_counter() - started)
    softmax = np.asarray(built(x), dtype=np.float64)
    error = np.abs(y.reshape(len(x), -1) - target(x)).max()
    certified = built.certificate.verdict == "CERTIFIED"
    return {
        "dimension": target.dimension,
        **facts(built),
        "bound": float(fast.bound),
        "verdict": "CERTIFIED" if certified and fast.bound <= point["tolerance"] else "UNDECIDED",
        "observed": float(error),
        "difference": float(np.abs(y - softmax).max()),
        "points_per_second": len(x) / seconds,
    }
